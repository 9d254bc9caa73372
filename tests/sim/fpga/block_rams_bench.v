// Drives `block_rams` and its netlist alike, at random, and compares what they read in every cycle. Addresses
// are few, so that ports meet; the two ports of one memory that both may write never meet in one word. First it
// compares look-up tables with Yosys' own, which is called `yosys_lut4` here.
`timescale 1ns/1ns

module block_rams_bench;
    reg clk = 0, reset = 0, enable_a = 0, enable_b = 0, write_a = 0, write_b = 0;
    reg [3:0] bytes = 0;
    reg [13:0] address_a = 0, address_b = 1;
    reg [35:0] data_a = 0;
    reg [17:0] data_b = 0;
    wire [78:0] expected, found;
    reg [13:0] high;
    integer cycle, seed, ignored;

    block_rams rtl (
        .clk(clk), .reset(reset), .enable_a(enable_a), .enable_b(enable_b), .write_a(write_a),
        .write_b(write_b), .bytes(bytes), .address_a(address_a), .address_b(address_b),
        .data_a(data_a), .data_b(data_b),
        .wide(expected[78:43]), .half(expected[42:25]), .first(expected[24:16]), .second(expected[15:7]),
        .nibble(expected[6:3]), .pair(expected[2:1]), .bit_(expected[0])
    );
    block_rams_netlist netlist (
        .clk(clk), .reset(reset), .enable_a(enable_a), .enable_b(enable_b), .write_a(write_a),
        .write_b(write_b), .bytes(bytes), .address_a(address_a), .address_b(address_b),
        .data_a(data_a), .data_b(data_b),
        .wide(found[78:43]), .half(found[42:25]), .first(found[24:16]), .second(found[15:7]),
        .nibble(found[6:3]), .pair(found[2:1]), .bit_(found[0])
    );

    reg [3:0] inputs;
    wire [255:0] tables, yosys_tables;
    genvar n;
    generate
        for (n = 0; n < 256; n = n + 1) begin : lut
            LUT4 #(.INIT(16'h9e37 * n + 16'h79b9 * (n / 16))) ours (
                .A(inputs[0]), .B(inputs[1]), .C(inputs[2]), .D(inputs[3]), .Z(tables[n])
            );
            yosys_lut4 #(.INIT(16'h9e37 * n + 16'h79b9 * (n / 16))) theirs (
                .A(inputs[0]), .B(inputs[1]), .C(inputs[2]), .D(inputs[3]), .Z(yosys_tables[n])
            );
        end
    endgenerate

    initial begin
        for (cycle = 0; cycle < 16; cycle = cycle + 1) begin
            inputs = cycle;
            #1 if (tables !== yosys_tables) $display("DIFFERENT look-up tables at %0d", inputs);
        end
        if (!$value$plusargs("seed=%d", seed)) seed = 1;
        ignored = $urandom(seed);
        for (cycle = 0; cycle < 20000; cycle = cycle + 1) begin
            {reset, enable_a, enable_b, write_a, write_b, bytes} = $urandom;
            reset = reset & ($urandom % 8 == 0);
            // Now and then another part of the memories.
            if (cycle % 500 == 0) high = $urandom;
            address_a = high ^ {10'd0, $urandom} % 8;
            address_b = high ^ {10'd0, $urandom} % 8;
            data_a = {$urandom, $urandom};
            data_b = $urandom;
            if (address_a[10:0] == address_b[10:0]) begin
                write_b = 0;
                if (enable_a && write_a) enable_b = 0;
            end
            #1 clk = 1;
            #1 clk = 0;
            if (expected !== found) begin
                $display("DIFFERENT in cycle %0d: %h, netlist %h", cycle, expected, found);
                $finish;
            end
        end
        $display("EQUAL");
        $finish;
    end
endmodule
