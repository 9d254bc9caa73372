// The lines of the compute side's cache in simulation: one operation a cycle, kept in C.
// The ports are those of hdl/fabric/cache_cells.py. Yosys has no DPI: never synthesized.

module clew_cache_cells (
    input  wire         clk,
    input  wire [4:0]   sets_log2,
    input  wire [5:0]   ways,
    input  wire         enable,
    input  wire [2:0]   op,
    input  wire [31:0]  address,
    input  wire [5:0]   owner,
    input  wire [255:0] data,
    input  wire [31:0]  mask,
    output reg          hit,
    output reg  [255:0] read_data
);

  import "DPI-C" function chandle clew_cache_create();
  import "DPI-C" function void clew_cache_destroy(input chandle cache);
  import "DPI-C" function void clew_cache_operate(input chandle cache, input int unsigned sets_log2,
                                                  input int unsigned ways, input int unsigned op,
                                                  input int unsigned address, input int unsigned owner,
                                                  input bit [255:0] data, input bit [31:0] mask,
                                                  output bit found, output bit [255:0] line);

  chandle cache;
  initial cache = clew_cache_create();
  final clew_cache_destroy(cache);

  // DPI returns two-state data; it passes through variables because a register takes it non-blocking.
  bit found;
  bit [255:0] line;

  always @(posedge clk) begin
    if (enable) begin
      clew_cache_operate(cache, {27'd0, sets_log2}, {26'd0, ways}, {29'd0, op}, address, {26'd0, owner},
                         data, mask, found, line);
      hit <= found;
      if (found) read_data <= line;
    end
  end

endmodule
