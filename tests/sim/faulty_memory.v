// A memory that reads as zero and is at fault in a way of its own at each of the first addresses.
// The test defines the bit positions of the port's structs.

module memory_subsystem (
    input  wire         clk,
    input  wire         rst,
    input  wire         memory__request__valid,
    input  wire [`REQUEST_WIDTH-1:0] memory__request__payload,
    output wire         memory__request__ready,
    output wire         memory__response__valid,
    output wire [`RESPONSE_WIDTH-1:0] memory__response__payload,
    input  wire         memory__response__ready,
    input  wire [1:0]   refresh,
    input  wire         restart,
    output wire         restarted,
    output wire [1:0]   access__row_class,
    output wire [8:0]   access__tag,
    output wire         access__write,
    output wire [2:0]   row__op,
    output wire         row__pseudo_channel,
    output wire [5:0]   row__bank,
    output wire [15:0]  row__row,
    output wire [2:0]   column__op,
    output wire         column__pseudo_channel,
    output wire [5:0]   column__bank,
    output wire [5:0]   column__column,
    output wire         violation,
    output wire [5:0]   violation_rule
);

  localparam WRONG_DATA = 1, WRONG_STATUS = 2, WRONG_KIND = 3, TWICE = 4, NEVER = 5, CHANGES = 6, RULE = 7;
  localparam POISONED = 8, CORRECTED = 9;

  reg         answering;
  reg         again;
  reg         toggle;
  reg  [31:0] address;
  reg  [8:0]  tag;
  reg         write;
  reg  [31:0] accepted;

  wire taken = memory__request__valid & memory__request__ready;
  wire sent = memory__response__valid & memory__response__ready;

  always @(posedge clk) begin
    toggle <= ~toggle;
    if (taken) begin
      address <= memory__request__payload[`REQUEST_ADDRESS +: 32];
      tag <= memory__request__payload[`REQUEST_TAG +: 9];
      write <= memory__request__payload[`REQUEST_WRITE];
      answering <= memory__request__payload[`REQUEST_ADDRESS +: 32] != NEVER;
      again <= memory__request__payload[`REQUEST_ADDRESS +: 32] == TWICE;
      accepted <= accepted + 1;
    end
    if (sent) begin
      answering <= again;
      again <= 0;
    end
    if (rst) begin
      answering <= 0;
      again <= 0;
      toggle <= 0;
      accepted <= 0;
    end
  end

  assign memory__request__ready = ~answering & ~restart;
  assign memory__response__valid = answering;
  assign memory__response__payload[`RESPONSE_TAG +: 9] = tag;
  assign memory__response__payload[`RESPONSE_WRITE] = write ^ (address == WRONG_KIND);
  assign memory__response__payload[`RESPONSE_STATUS +: 3] =
      address == WRONG_STATUS ? 3'd3 : address == POISONED ? 3'd2 : address == CORRECTED ? 3'd1 : 3'd0;
  assign memory__response__payload[`RESPONSE_DATA +: 256] =
      address == WRONG_DATA ? 256'd1 << 200 : address == CHANGES ? {255'd0, toggle} : 256'd0;
  assign restarted = restart;
  assign violation = answering & (address == RULE) & ~again;
  assign violation_rule = 6'd2;
  assign {access__row_class, access__tag, access__write} = 12'd0;
  assign {row__op, row__pseudo_channel, row__bank, row__row} = 26'd0;
  assign {column__op, column__pseudo_channel, column__bank, column__column} = 16'd0;

endmodule
