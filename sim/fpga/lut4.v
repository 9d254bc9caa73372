// The look-up table of an ECP5 as one expression. Yosys' own model is a tree of multiplexers with a signal for
// each level, which makes four times as much C++ of a netlist. That they are the same is tested.
module LUT4 (
    input A, B, C, D,
    output Z
);
    parameter [15:0] INIT = 16'h0000;
    assign Z = INIT[{D, C, B, A}];
endmodule
