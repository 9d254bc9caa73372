// Memories of every shape for which Yosys takes DP16KD: widths, byte enables, write modes, resets, initial
// values.
module block_rams (
    input clk, input reset, input enable_a, input enable_b, input write_a, input write_b, input [3:0] bytes,
    input [13:0] address_a, input [13:0] address_b, input [35:0] data_a, input [17:0] data_b,
    output reg [35:0] wide = 0, output reg [17:0] half = 0,
    output reg [8:0] first = 0, output reg [8:0] second = 0,
    output reg [3:0] nibble = 0, output reg [1:0] pair = 0, output reg bit_ = 0
);
    integer i, w, h;

    (* ram_style = "block" *) reg [3:0] nibbles [0:4095];
    (* ram_style = "block" *) reg [1:0] pairs [0:8191];
    (* ram_style = "block" *) reg bits [0:16383];

`ifndef YOSYS
    // What a block RAM holds at first if nothing else is said; Yosys would spend its time on these.
    initial begin
        for (i = 0; i < 4096; i = i + 1) nibbles[i] = 0;
        for (i = 0; i < 8192; i = i + 1) pairs[i] = 0;
        for (i = 0; i < 16384; i = i + 1) bits[i] = 0;
    end
`endif

    // 36 bits: one port writes, with four byte enables, the other reads.
    (* ram_style = "block" *) reg [35:0] wides [0:511];
    initial for (i = 0; i < 512; i = i + 1) wides[i] = 36'h912345678 + 36'h30201 * i;
    always @(posedge clk) begin
        for (w = 0; w < 4; w = w + 1)
            if (write_a && bytes[w]) wides[address_a[8:0]][9*w +: 9] <= data_a[9*w +: 9];
        if (enable_b) wide <= wides[address_b[8:0]];
    end

    // 18 bits, one port, two byte enables; what it read stays while it writes.
    (* ram_style = "block" *) reg [17:0] halves [0:1023];
    initial for (i = 0; i < 1024; i = i + 1) halves[i] = 18'h20000 ^ 77 * i;
    always @(posedge clk) if (enable_a) begin
        for (h = 0; h < 2; h = h + 1)
            if (write_a && bytes[h]) halves[address_a[9:0]][9*h +: 9] <= data_a[9*h +: 9];
        if (!write_a) half <= halves[address_a[9:0]];
    end

    // 9 bits, two ports that read and write.
    (* ram_style = "block", no_rw_check *) reg [8:0] nines [0:2047];
    initial for (i = 0; i < 2048; i = i + 1) nines[i] = 5 * i;
    always @(posedge clk) if (enable_a) begin
        if (write_a) nines[address_a[10:0]] <= data_a[8:0];
        else first <= nines[address_a[10:0]];
    end
    always @(posedge clk) if (enable_b) begin
        if (write_b) nines[address_b[10:0]] <= data_b[8:0];
        else second <= nines[address_b[10:0]];
    end

    // 4 bits: a write reads what was there.
    always @(posedge clk) if (enable_a) begin
        nibble <= nibbles[address_a[11:0]];
        if (write_a) nibbles[address_a[11:0]] <= data_a[3:0];
    end

    // 2 bits, with a synchronous reset of what was read.
    always @(posedge clk) begin
        if (write_a) pairs[address_a[12:0]] <= data_a[1:0];
        if (reset) pair <= 0; else if (enable_b) pair <= pairs[address_b[12:0]];
    end

    // 1 bit: a write reads what it writes.
    always @(posedge clk) if (enable_a) begin
        if (write_a) begin
            bits[address_a] <= data_a[0];
            bit_ <= data_a[0];
        end else bit_ <= bits[address_a];
    end
endmodule
