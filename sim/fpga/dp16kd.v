// The block RAM of an ECP5 as Yosys uses it, for simulation: Yosys' own cell library leaves its body empty.
//
// Written from what Yosys' mapping connects (share/lattice/brams_map_16kd.v, brams_16kd.txt) and Lattice's
// memory guide for ECP5, FPGA-TN-02204. The memory is 512 rows of 36 bits: four 9-bit bytes. A port of 36 bits
// takes a row; narrower ones a part of it, chosen by the address pins above their width. With 18 or 36 bits the
// lowest address pins are byte enables of a write. Of a memory with 36 bits port A writes and port B reads, and
// the pins of A carry the lower half.
//
// What a read returns that meets a write of the other port is not defined. Here it is the complement of what
// was stored, so that a design which uses it fails. Both clocks are taken for one. What Yosys does not use is
// not modelled, and stops elaboration: output registers and chip selects.

// verilator lint_off DECLFILENAME
// Two ports write one memory, each reading and writing a row at once.
// verilator lint_off BLKSEQ
// verilator lint_off MULTIDRIVEN
// Pins and parameters of what is not modelled, and bits of the pins of narrow ports.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off UNUSEDPARAM

// One port of the memory of `DP16KD`: where in a row it reads and writes.
module DP16KD_port #(
    parameter WIDTH = 18
) (
    input [13:0] address,
    input [35:0] pins,
    output [8:0] row,
    output [5:0] offset,
    output [35:0] mask,
    output [35:0] data
);
    wire [2:0] part = WIDTH == 4 ? address[2:0] & 3'b100 : WIDTH == 2 ? address[2:0] & 3'b110 : address[2:0];
    wire [35:0] bytes = {{9{address[3]}}, {9{address[2]}}, {9{address[1]}}, {9{address[0]}}};
    assign row = address[13:5];
    assign offset = WIDTH == 36 ? 6'd0
        : (address[4] ? 6'd18 : 6'd0) + (WIDTH < 18 && address[3] ? 6'd9 : 6'd0)
        + (WIDTH < 9 ? {3'd0, part} : 6'd0);
    assign mask = WIDTH == 36 ? bytes
        : (WIDTH == 18 ? {18'd0, bytes[17:0]} : (36'd1 << WIDTH) - 36'd1) << offset;
    assign data = pins << offset;
endmodule

module DP16KD (
    input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9,
        DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0,
    input ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5,
        ADA4, ADA3, ADA2, ADA1, ADA0,
    input CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
    output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9,
        DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0,
    input DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9,
        DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0,
    input ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5,
        ADB4, ADB3, ADB2, ADB1, ADB0,
    input CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
    output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9,
        DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0
);
    parameter DATA_WIDTH_A = 18, DATA_WIDTH_B = 18;
    parameter REGMODE_A = "NOREG", REGMODE_B = "NOREG";
    parameter RESETMODE = "SYNC", ASYNC_RESET_RELEASE = "SYNC";
    parameter CSDECODE_A = "0b000", CSDECODE_B = "0b000";
    parameter WRITEMODE_A = "NORMAL", WRITEMODE_B = "NORMAL";
    parameter CLKAMUX = "CLKA", CLKBMUX = "CLKB";
    parameter GSR = "AUTO";
    parameter [319:0] INITVAL_00 = 0, INITVAL_01 = 0, INITVAL_02 = 0, INITVAL_03 = 0;
    parameter [319:0] INITVAL_04 = 0, INITVAL_05 = 0, INITVAL_06 = 0, INITVAL_07 = 0;
    parameter [319:0] INITVAL_08 = 0, INITVAL_09 = 0, INITVAL_0A = 0, INITVAL_0B = 0;
    parameter [319:0] INITVAL_0C = 0, INITVAL_0D = 0, INITVAL_0E = 0, INITVAL_0F = 0;
    parameter [319:0] INITVAL_10 = 0, INITVAL_11 = 0, INITVAL_12 = 0, INITVAL_13 = 0;
    parameter [319:0] INITVAL_14 = 0, INITVAL_15 = 0, INITVAL_16 = 0, INITVAL_17 = 0;
    parameter [319:0] INITVAL_18 = 0, INITVAL_19 = 0, INITVAL_1A = 0, INITVAL_1B = 0;
    parameter [319:0] INITVAL_1C = 0, INITVAL_1D = 0, INITVAL_1E = 0, INITVAL_1F = 0;
    parameter [319:0] INITVAL_20 = 0, INITVAL_21 = 0, INITVAL_22 = 0, INITVAL_23 = 0;
    parameter [319:0] INITVAL_24 = 0, INITVAL_25 = 0, INITVAL_26 = 0, INITVAL_27 = 0;
    parameter [319:0] INITVAL_28 = 0, INITVAL_29 = 0, INITVAL_2A = 0, INITVAL_2B = 0;
    parameter [319:0] INITVAL_2C = 0, INITVAL_2D = 0, INITVAL_2E = 0, INITVAL_2F = 0;
    parameter [319:0] INITVAL_30 = 0, INITVAL_31 = 0, INITVAL_32 = 0, INITVAL_33 = 0;
    parameter [319:0] INITVAL_34 = 0, INITVAL_35 = 0, INITVAL_36 = 0, INITVAL_37 = 0;
    parameter [319:0] INITVAL_38 = 0, INITVAL_39 = 0, INITVAL_3A = 0, INITVAL_3B = 0;
    parameter [319:0] INITVAL_3C = 0, INITVAL_3D = 0, INITVAL_3E = 0, INITVAL_3F = 0;

    generate
        if (REGMODE_A != "NOREG" || REGMODE_B != "NOREG") DP16KD_output_register_is_not_modelled wanted ();
        if (CSDECODE_A != "0b000" || CSDECODE_B != "0b000") DP16KD_chip_select_is_not_modelled wanted ();
    endgenerate

    // Words of 18 bits in 20.
    localparam [64*320-1:0] INITVAL = {
        INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B, INITVAL_3A, INITVAL_39, INITVAL_38,
        INITVAL_37, INITVAL_36, INITVAL_35, INITVAL_34, INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30,
        INITVAL_2F, INITVAL_2E, INITVAL_2D, INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28,
        INITVAL_27, INITVAL_26, INITVAL_25, INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20,
        INITVAL_1F, INITVAL_1E, INITVAL_1D, INITVAL_1C, INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18,
        INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13, INITVAL_12, INITVAL_11, INITVAL_10,
        INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A, INITVAL_09, INITVAL_08,
        INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03, INITVAL_02, INITVAL_01, INITVAL_00
    };
    reg [35:0] memory [0:511];
    integer i;
    initial for (i = 0; i < 512; i = i + 1) memory[i] = {INITVAL[40*i+20 +: 18], INITVAL[40*i +: 18]};

    wire [17:0] pins_a = {
        DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9,
        DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0
    };
    wire [17:0] pins_b = {
        DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9,
        DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0
    };
    wire [13:0] address_a = {
        ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5,
        ADA4, ADA3, ADA2, ADA1, ADA0
    };
    wire [13:0] address_b = {
        ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5,
        ADB4, ADB3, ADB2, ADB1, ADB0
    };
    wire [8:0] row_a, row_b;
    wire [5:0] offset_a, offset_b;
    wire [35:0] mask_a, mask_b, data_a, data_b;
    DP16KD_port #(.WIDTH(DATA_WIDTH_A)) port_a (
        .address(address_a), .pins({pins_b, pins_a}), .row(row_a),
        .offset(offset_a), .mask(mask_a), .data(data_a)
    );
    DP16KD_port #(.WIDTH(DATA_WIDTH_B)) port_b (
        .address(address_b), .pins({18'd0, pins_b}), .row(row_b),
        .offset(offset_b), .mask(mask_b), .data(data_b)
    );

    // A synchronous reset blocks writes.
    wire write_a = CEA & WEA & ~(RESETMODE == "SYNC" & RSTA);
    wire write_b = CEB & WEB & ~(RESETMODE == "SYNC" & RSTB);
    wire [35:0] undefined_a = write_b && row_a == row_b ? mask_b : 36'd0;
    wire [35:0] undefined_b = write_a && row_a == row_b ? mask_a : 36'd0;
    wire clk_a = CLKAMUX == "INV" ? ~CLKA : CLKA, clk_b = CLKBMUX == "INV" ? ~CLKB : CLKB;
    reg [35:0] seen_a, seen_b;
    reg [35:0] read_a = 36'd0, read_b = 36'd0;

    always @(posedge clk_a) begin
        seen_a = memory[row_a] ^ undefined_a;
        if (write_a) memory[row_a] = memory[row_a] & ~mask_a | data_a & mask_a;
        if (WRITEMODE_A == "WRITETHROUGH" && write_a) seen_a = seen_a & ~mask_a | data_a & mask_a;
        if (CEA && !(WRITEMODE_A == "NORMAL" && WEA)) read_a <= seen_a >> offset_a;
        if (RESETMODE == "SYNC" && RSTA) read_a <= 36'd0;
    end
    always @(posedge clk_b) begin
        seen_b = memory[row_b] ^ undefined_b;
        if (write_b) memory[row_b] = memory[row_b] & ~mask_b | data_b & mask_b;
        if (WRITEMODE_B == "WRITETHROUGH" && write_b) seen_b = seen_b & ~mask_b | data_b & mask_b;
        if (CEB && !(WRITEMODE_B == "NORMAL" && WEB)) read_b <= seen_b >> offset_b;
        if (RESETMODE == "SYNC" && RSTB) read_b <= 36'd0;
    end

    wire [35:0] shown_a = RESETMODE == "ASYNC" && RSTA ? 36'd0 : read_a;
    wire [35:0] shown_b = RESETMODE == "ASYNC" && RSTB ? 36'd0 : read_b;
    assign {
        DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9,
        DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0
    } = DATA_WIDTH_B == 36 ? shown_b[17:0] : shown_a[17:0];
    assign {
        DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9,
        DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0
    } = DATA_WIDTH_B == 36 ? shown_b[35:18] : shown_b[17:0];
endmodule
