"""The counts of a small design, and what is said when the tool refuses it."""

import pytest

from sim.synthesis import Area, synthesized_area
from sim.verilator import BuildError

#: 8 bits of state, a memory of 16 x 4, and one look-up table for every bit of the exclusive or.
DESIGN = """
module top(input clk, input [7:0] a, input [7:0] b, input [3:0] address, input write, output [3:0] found,
           output reg [7:0] state);
  reg [3:0] contents [15:0];
  assign found = contents[address];
  always @(posedge clk) begin
    state <= a ^ b;
    if (write) contents[address] <= a[3:0];
  end
endmodule
"""


def test_logic_state_and_memories_are_counted_apart():
    assert synthesized_area(DESIGN, top="top") == Area(luts=8, flip_flops=8, memory_bits=64)


def test_a_module_that_is_not_there_is_an_error_of_the_tool():
    with pytest.raises(BuildError, match="absent"):
        synthesized_area(DESIGN, top="absent")
