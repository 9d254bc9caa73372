// A look-up table that answers the opposite when its number is that of the broken cell.
module BROKEN_LUT4 (
    input A, B, C, D,
    output Z
);
    parameter [15:0] INIT = 16'h0000;
    parameter [31:0] NUMBER = 32'd0;
    import "DPI-C" function int clew_broken_cell();
    reg broken;
    wire z;
    initial broken = clew_broken_cell() == NUMBER;
    LUT4 #(.INIT(INIT)) cell_ (.A(A), .B(B), .C(C), .D(D), .Z(z));
    assign Z = z ^ broken;
endmodule
