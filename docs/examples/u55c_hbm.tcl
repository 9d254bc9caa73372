# A block design for the Alveo U55C: Clew with AXI4 managers on the HBM, its host port on PCIe.
#
#   clew verilog -o DIR --memory axi4 --channels 1
#   vivado -mode batch -source u55c_hbm.tcl -tclargs DIR
#
# An example: it was not run, for it needs Vivado. The names of cells, parameters and pins are those of published
# designs for this board and of PG276 (HBM), PG195 (XDMA), PG065 (clocking wizard) and PG164 (resets).
# Pins, and the board's clocks on the ports made here, are for your constraints.

set verilog [lindex $argv 0]
set design clew_u55c

create_project $design ./$design -part xcu55c-fsvh2892-2L-e
add_files -norecurse [file join $verilog clew.v]
update_compile_order -fileset sources_1
create_bd_design $design

# -- Clew, as a module: its AXI ports have AMBA's names, so their interfaces are inferred --
set clew [create_bd_cell -type module -reference clew clew_0]

# -- HBM: 16 GB in two stacks. A port's own pseudo channel has 512 MiB here, as a channel of Clew has: its channel n
# is on port n, and the switch between ports, which takes time, is off. (An Alveo U50 or U280 has 256 MiB a port: there
# a channel is two ports wide, and the switch has to be on.) --
set hbm [create_bd_cell -type ip -vlnv xilinx.com:ip:hbm:1.0 hbm_0]
set used {00}
set parameters [list \
    CONFIG.USER_HBM_DENSITY {16GB} \
    CONFIG.USER_HBM_STACK {2} \
    CONFIG.USER_APB_EN {false} \
    CONFIG.USER_XSDB_INTF_EN {FALSE} \
    CONFIG.USER_SWITCH_ENABLE_00 {FALSE} \
    CONFIG.USER_SWITCH_ENABLE_01 {FALSE} \
    CONFIG.USER_CLK_SEL_LIST0 {AXI_00_ACLK} \
]
for {set port 0} {$port < 32} {incr port} {
    set number [format %02d $port]
    lappend parameters CONFIG.USER_SAXI_$number [expr {$number in $used ? "true" : "false"}]
}
set_property -dict $parameters $hbm

# -- Clocks: 100 MHz for HBM and its APB, 450 MHz for its ports, and a slow one for Clew --
create_bd_port -dir I -type clk -freq_hz 100000000 clk_100
create_bd_port -dir I -type rst reset_n
set_property CONFIG.POLARITY ACTIVE_LOW [get_bd_ports reset_n]
set clocks [create_bd_cell -type ip -vlnv xilinx.com:ip:clk_wiz:6.0 clk_wiz_0]
set_property -dict [list \
    CONFIG.PRIM_IN_FREQ {100.000} \
    CONFIG.USE_RESET {false} \
    CONFIG.CLKOUT2_USED {true} \
    CONFIG.CLKOUT3_USED {true} \
    CONFIG.CLKOUT1_REQUESTED_OUT_FREQ {100.000} \
    CONFIG.CLKOUT2_REQUESTED_OUT_FREQ {450.000} \
    CONFIG.CLKOUT3_REQUESTED_OUT_FREQ {50.000} \
] $clocks
connect_bd_net [get_bd_ports clk_100] [get_bd_pins clk_wiz_0/clk_in1]
foreach {name output} {reset_apb clk_out1 reset_hbm clk_out2 reset_clew clk_out3} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:proc_sys_reset:5.0 $name
    connect_bd_net [get_bd_pins clk_wiz_0/$output] [get_bd_pins $name/slowest_sync_clk]
    connect_bd_net [get_bd_pins clk_wiz_0/locked] [get_bd_pins $name/dcm_locked]
    connect_bd_net [get_bd_ports reset_n] [get_bd_pins $name/ext_reset_in]
}
connect_bd_net [get_bd_pins clk_wiz_0/clk_out1] [get_bd_pins hbm_0/HBM_REF_CLK_0] \
    [get_bd_pins hbm_0/HBM_REF_CLK_1] [get_bd_pins hbm_0/APB_0_PCLK] [get_bd_pins hbm_0/APB_1_PCLK]
connect_bd_net [get_bd_pins reset_apb/peripheral_aresetn] \
    [get_bd_pins hbm_0/APB_0_PRESET_N] [get_bd_pins hbm_0/APB_1_PRESET_N]
connect_bd_net [get_bd_pins clk_wiz_0/clk_out2] [get_bd_pins clew_0/m_axi_aclk]
connect_bd_net [get_bd_pins reset_hbm/peripheral_aresetn] [get_bd_pins clew_0/m_axi_aresetn]
connect_bd_net [get_bd_pins clk_wiz_0/clk_out3] [get_bd_pins clew_0/clk]
connect_bd_net [get_bd_pins reset_clew/peripheral_reset] [get_bd_pins clew_0/rst]

# -- Clew's managers on the HBM's ports, pin by pin: no interconnect, which would take time. HBM is AXI3: AxLEN has
# four bits, of which our bursts need no more; it has no AxCACHE and AxPROT; ours has no parity. --
set zero [create_bd_cell -type ip -vlnv xilinx.com:ip:xlconstant:1.1 no_parity]
set_property -dict [list CONFIG.CONST_WIDTH {32} CONFIG.CONST_VAL {0}] $zero
foreach number $used {
    set ours clew_0/m_axi
    set theirs hbm_0/AXI_$number
    foreach signal {
        awid awaddr awsize awburst awvalid awready wdata wstrb wlast wvalid wready bid bresp bvalid bready
        arid araddr arsize arburst arvalid arready rid rdata rresp rlast rvalid rready
    } {
        connect_bd_net [get_bd_pins ${ours}_$signal] [get_bd_pins ${theirs}_[string toupper $signal]]
    }
    foreach signal {awlen arlen} {
        set slice [create_bd_cell -type ip -vlnv xilinx.com:ip:xlslice:1.0 ${signal}_$number]
        set_property -dict [list CONFIG.DIN_WIDTH {8} CONFIG.DIN_FROM {3} CONFIG.DIN_TO {0}] $slice
        connect_bd_net [get_bd_pins ${ours}_$signal] [get_bd_pins ${signal}_$number/Din]
        connect_bd_net [get_bd_pins ${signal}_$number/Dout] [get_bd_pins ${theirs}_[string toupper $signal]]
    }
    connect_bd_net [get_bd_pins no_parity/dout] [get_bd_pins ${theirs}_WDATA_PARITY]
    connect_bd_net [get_bd_pins clk_wiz_0/clk_out2] [get_bd_pins ${theirs}_ACLK]
    connect_bd_net [get_bd_pins reset_hbm/peripheral_aresetn] [get_bd_pins ${theirs}_ARESET_N]
}

# -- The host: XDMA's AXI4-Lite manager, 1 MiB, to Clew's registers --
set xdma [create_bd_cell -type ip -vlnv xilinx.com:ip:xdma:4.1 xdma_0]
set_property -dict [list \
    CONFIG.pl_link_cap_max_link_width {X8} \
    CONFIG.pl_link_cap_max_link_speed {8.0_GT/s} \
    CONFIG.axilite_master_en {true} \
    CONFIG.axilite_master_scale {Megabytes} \
    CONFIG.axilite_master_size {1} \
    CONFIG.xdma_num_usr_irq {1} \
] $xdma
set buffer [create_bd_cell -type ip -vlnv xilinx.com:ip:util_ds_buf:2.2 pcie_clock]
set_property CONFIG.C_BUF_TYPE {IBUFDSGTE} $buffer
make_bd_intf_pins_external [get_bd_intf_pins pcie_clock/CLK_IN_D] [get_bd_intf_pins xdma_0/pcie_mgt]
make_bd_pins_external [get_bd_pins xdma_0/sys_rst_n]
connect_bd_net [get_bd_pins pcie_clock/IBUF_OUT] [get_bd_pins xdma_0/sys_clk_gt]
connect_bd_net [get_bd_pins pcie_clock/IBUF_DS_ODIV2] [get_bd_pins xdma_0/sys_clk]
set crossing [create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect:1.0 host]
set_property -dict [list CONFIG.NUM_SI {1} CONFIG.NUM_MI {1} CONFIG.NUM_CLKS {2}] $crossing
connect_bd_intf_net [get_bd_intf_pins xdma_0/M_AXI_LITE] [get_bd_intf_pins host/S00_AXI]
connect_bd_intf_net [get_bd_intf_pins host/M00_AXI] [get_bd_intf_pins clew_0/s_axil]
connect_bd_net [get_bd_pins xdma_0/axi_aclk] [get_bd_pins host/aclk]
connect_bd_net [get_bd_pins xdma_0/axi_aresetn] [get_bd_pins host/aresetn]
connect_bd_net [get_bd_pins clk_wiz_0/clk_out3] [get_bd_pins host/aclk1]
connect_bd_net [get_bd_pins clew_0/interrupt] [get_bd_pins xdma_0/usr_irq_req]

assign_bd_address
validate_bd_design
save_bd_design
