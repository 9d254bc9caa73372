// The warnings of slang's -Weverything that are waived, each with its reason. Everything else is an error.
-Weverything
-Werror

// Amaranth writes `casez` without a default: the value before it is the default.
-Wno-case-default
-Wno-case-incomplete
// Yosys writes a shift whose lowest bit is wanted as an assignment to one bit.
-Wno-width-trunc
// Yosys writes integer constants with the size they need, and differences as signed ones of any width.
-Wno-arith-op-mismatch
-Wno-sign-conversion
// Yosys gives every signal of the source a net, read or not, in every module that it passes through.
-Wno-unused-but-set-net
-Wno-unused-but-set-variable
-Wno-unused-port
