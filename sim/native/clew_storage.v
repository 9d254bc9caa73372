// The memory's contents in simulation: one access a cycle, answered at the next edge, stored in C.
// The ports are those of hdl/memory/storage.py. Yosys has no DPI: never synthesized.

module clew_storage (
    input  wire         clk,
    input  wire         read_enable,
    input  wire         write_enable,
    input  wire [31:0]  index,
    input  wire [255:0] write_data,
    input  wire [31:0]  write_mask,
    output reg  [255:0] read_data
);

  import "DPI-C" function void clew_storage_read(input int unsigned index, output bit [255:0] data);
  import "DPI-C" function void clew_storage_write(input int unsigned index, input bit [255:0] data,
                                                  input bit [31:0] mask);

  // DPI returns two-state data; it passes through a variable because a register takes it non-blocking.
  bit [255:0] fetched;

  always @(posedge clk) begin
    if (write_enable) clew_storage_write(index, write_data, write_mask);
    if (read_enable) begin
      clew_storage_read(index, fetched);
      read_data <= fetched;
    end
  end

endmodule

// The same for the check bits of a memory with ECC: 8 for each 64-bit word of the atom.
module clew_check_storage (
    input  wire        clk,
    input  wire        read_enable,
    input  wire        write_enable,
    input  wire [31:0] index,
    input  wire [31:0] write_data,
    input  wire [3:0]  write_mask,
    output reg  [31:0] read_data
);

  import "DPI-C" function void clew_check_storage_read(input int unsigned index, output bit [31:0] check);
  import "DPI-C" function void clew_check_storage_write(input int unsigned index, input bit [31:0] check,
                                                        input bit [3:0] mask);

  bit [31:0] fetched;

  always @(posedge clk) begin
    if (write_enable) clew_check_storage_write(index, write_data, write_mask);
    if (read_enable) begin
      clew_check_storage_read(index, fetched);
      read_data <= fetched;
    end
  end

endmodule
