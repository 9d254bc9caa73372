// An AXI4 memory of one channel in simulation: what it does is in axi_memory.cpp, its content in storage.cpp.
// It takes every address and every beat at once. Yosys has no DPI: never synthesized.

module clew_axi_memory #(
    parameter ID_BITS = 6,
    parameter ADDRESS_BITS = 33,
    parameter FIRST = 0,  // the channel's first atom
    // Widths of the fields of an atom's address within the channel, from the lowest up; the row is the rest.
    parameter PSEUDO_CHANNEL_BITS = 1,
    parameter BANK_GROUP_BITS = 2,
    parameter COLUMN_BITS = 5,
    parameter BANK_BITS = 2
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    active,
    input  wire [ID_BITS-1:0]      awid,
    input  wire [ADDRESS_BITS-1:0] awaddr,
    input  wire [7:0]              awlen,
    input  wire                    awvalid,
    output wire                    awready,
    input  wire [255:0]            wdata,
    input  wire [31:0]             wstrb,
    input  wire                    wlast,
    input  wire                    wvalid,
    output wire                    wready,
    output reg  [ID_BITS-1:0]      bid,
    output wire [1:0]              bresp,
    output reg                     bvalid,
    input  wire                    bready,
    input  wire [ID_BITS-1:0]      arid,
    input  wire [ADDRESS_BITS-1:0] araddr,
    input  wire [7:0]              arlen,
    input  wire                    arvalid,
    output wire                    arready,
    output reg  [ID_BITS-1:0]      rid,
    output reg  [255:0]            rdata,
    output wire [1:0]              rresp,
    output reg                     rlast,
    output reg                     rvalid,
    input  wire                    rready
);

  import "DPI-C" function chandle clew_axi_create(input int unsigned first, input int unsigned pseudo_channel,
                                                  input int unsigned bank_group, input int unsigned column,
                                                  input int unsigned bank);
  import "DPI-C" function void clew_axi_destroy(input chandle memory);
  import "DPI-C" function void clew_axi_begin(input chandle memory, input bit reset, input bit active,
                                              input bit read_taken, input bit reply_taken);
  import "DPI-C" function void clew_axi_read(input chandle memory, input int unsigned id,
                                             input longint unsigned address, input int unsigned length);
  import "DPI-C" function void clew_axi_write(input chandle memory, input int unsigned id,
                                              input longint unsigned address, input int unsigned length);
  import "DPI-C" function void clew_axi_data(input chandle memory, input bit [255:0] data,
                                             input bit [31:0] strobe);
  import "DPI-C" function void clew_axi_end(input chandle memory, output int unsigned read_valid,
                                            output int unsigned read_id, output int unsigned read_last,
                                            output bit [255:0] read_data, output int unsigned reply_valid,
                                            output int unsigned reply_id);

  chandle memory;
  int unsigned read_valid, read_id, read_last, reply_valid, reply_id;
  bit [255:0] read_data;

  initial memory = clew_axi_create(FIRST, PSEUDO_CHANNEL_BITS, BANK_GROUP_BITS, COLUMN_BITS, BANK_BITS);
  final clew_axi_destroy(memory);

  assign awready = 1'b1;
  assign wready = 1'b1;
  assign arready = 1'b1;
  assign bresp = 2'b00;
  assign rresp = 2'b00;

  always @(posedge clk) begin
    clew_axi_begin(memory, rst, active, rvalid && rready, bvalid && bready);
    if (arvalid) clew_axi_read(memory, 32'(arid), 64'(araddr), 32'(arlen));
    if (awvalid) clew_axi_write(memory, 32'(awid), 64'(awaddr), 32'(awlen));
    if (wvalid) clew_axi_data(memory, wdata, wstrb);
    clew_axi_end(memory, read_valid, read_id, read_last, read_data, reply_valid, reply_id);
    rvalid <= read_valid[0];
    rid <= read_id[ID_BITS-1:0];
    rlast <= read_last[0];
    rdata <= read_data;
    bvalid <= reply_valid[0];
    bid <= reply_id[ID_BITS-1:0];
  end

endmodule
