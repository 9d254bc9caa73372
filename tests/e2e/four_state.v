// Replays a host's accesses on the design in a four-state simulator: `+script=FILE` holds a line for each, of an
// operation and two hexadecimal numbers. 0 writes: address, data. 1 reads: address, expected data. 2 waits for the
// interrupt: cycles at most, 0. Every output must be known in every cycle after reset, and every read must give
// what is expected; the first fault ends the run. Addresses and data without a valid are unknown. `+dump=FILE` gets
// every variable's value after reset and at the end. With `+no_reset` there is no reset. MONITORS and MONITOR_BITS
// connect what else the design has.
`timescale 1ns/1ns

module four_state;
    reg clk = 0, rst;
    always #5 clk = ~clk;

    reg [19:0] awaddr = 0, araddr = 0;
    reg [31:0] wdata = 0;
    reg awvalid = 0, wvalid = 0, bready = 0, arvalid = 0, rready = 0;
    wire awready, wready, bvalid, arready, rvalid, interrupt;
    wire [1:0] bresp, rresp;
    wire [31:0] rdata;
    wire [`MONITOR_BITS-1:0] monitors;

    clew dut (
        .clk(clk), .rst(rst), .interrupt(interrupt),
        .s_axil_awaddr(awaddr), .s_axil_awprot(3'd0), .s_axil_awvalid(awvalid), .s_axil_awready(awready),
        .s_axil_wdata(wdata), .s_axil_wstrb(4'hf), .s_axil_wvalid(wvalid), .s_axil_wready(wready),
        .s_axil_bresp(bresp), .s_axil_bvalid(bvalid), .s_axil_bready(bready),
        .s_axil_araddr(araddr), .s_axil_arprot(3'd0), .s_axil_arvalid(arvalid), .s_axil_arready(arready),
        .s_axil_rdata(rdata), .s_axil_rresp(rresp), .s_axil_rvalid(rvalid), .s_axil_rready(rready),
        `MONITORS
    );
    wire [`MONITOR_BITS+43-1:0] outputs = {
        monitors, interrupt, awready, wready, bresp, bvalid, arready, rdata, rresp, rvalid
    };

    integer script, fields, operation, cycles = 0, limit;
    reg [31:0] first, second;
    reg [8*256-1:0] path;

    task fail(input [8*40-1:0] what);
        begin
            $display("FAILED in cycle %0d: %0s, operation %0d %h %h", cycles, what, operation, first, second);
            $finish;
        end
    endtask

    // Outputs are looked at where the next edge finds them.
    always @(negedge clk) if (!rst) begin
        cycles = cycles + 1;
        if (^outputs === 1'bx) begin
            $display("outputs %b", outputs);
            fail("an output is unknown");
        end
        if (cycles == limit) fail("no answer");
    end

    task write(input [19:0] address, input [31:0] data);
        begin
            {awaddr, wdata, awvalid, wvalid, bready} = {address, data, 3'b111};
            while (awvalid | wvalid | bready) begin
                @(posedge clk);
                if (awready) awvalid = 0;
                if (wready) wvalid = 0;
                if (bvalid) bready = 0;
                if (bvalid && bresp !== 2'd0) fail("error response");
                #1;
            end
            {awaddr, wdata} = 52'hx;
        end
    endtask

    task read(input [19:0] address, input [31:0] expected);
        begin
            {araddr, arvalid, rready} = {address, 2'b11};
            while (arvalid | rready) begin
                @(posedge clk);
                if (arready) arvalid = 0;
                if (rvalid) rready = 0;
                if (rvalid && {rresp, rdata} !== {2'd0, expected}) begin
                    $display("read %h", rdata);
                    fail("another word was read");
                end
                #1;
            end
            araddr = 20'hx;
        end
    endtask

    initial begin
        if (!$value$plusargs("script=%s", path)) $finish;
        script = $fopen(path, "r");
        limit = 1 << 30;
        rst = !$test$plusargs("no_reset");
        repeat (4) @(posedge clk);
        #1 rst = 0;
        if ($value$plusargs("dump=%s", path)) begin
            // The design is still in reset in the cycle that begins here.
            @(posedge clk) #1 $dumpfile(path);
            $dumpvars(0, dut);
            #1 $dumpoff;
        end
        fields = $fscanf(script, "%d %h %h", operation, first, second);
        while (fields == 3) begin
            limit = cycles + (operation == 2 ? first : 10000);
            case (operation)
                0: write(first[19:0], second);
                1: read(first[19:0], second);
                default: while (!interrupt) @(posedge clk) #1;
            endcase
            fields = $fscanf(script, "%d %h %h", operation, first, second);
        end
        {awaddr, wdata, araddr} = 72'd0;
        @(posedge clk) #1 $dumpon;
        #1 $display("PASSED after %0d cycles", cycles);
        $finish;
    end
endmodule
