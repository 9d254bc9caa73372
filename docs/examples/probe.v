// A design of somebody's own around Clew: after reset it reads the ID register, and `found` says that it is a Clew.
module probe (input clk, input rst, output found);
    reg sent;
    wire taken, valid;
    wire [31:0] data;
    always @(posedge clk) sent <= !rst && (sent || taken);
    clew clew (
        .clk(clk), .rst(rst), .interrupt(),
        .s_axil_araddr(20'h0), .s_axil_arprot(3'b000), .s_axil_arvalid(!sent), .s_axil_arready(taken),
        .s_axil_rdata(data), .s_axil_rresp(), .s_axil_rvalid(valid), .s_axil_rready(1'b1),
        .s_axil_awaddr(20'h0), .s_axil_awprot(3'b000), .s_axil_awvalid(1'b0), .s_axil_awready(),
        .s_axil_wdata(32'h0), .s_axil_wstrb(4'h0), .s_axil_wvalid(1'b0), .s_axil_wready(),
        .s_axil_bresp(), .s_axil_bvalid(), .s_axil_bready(1'b1));
    assign found = valid && data == 32'h434c4557; // "CLEW"
endmodule
