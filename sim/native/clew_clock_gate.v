// The clock gate of simulations. What `enable` depends on changes after a rising edge, while the clock is high
// and hides it: no latch is needed, which a simulator would have to evaluate.
module clew_clock_gate (
    input  wire clk,
    input  wire enable,
    output wire gated_clk
);
    assign gated_clk = clk | ~enable;
endmodule
