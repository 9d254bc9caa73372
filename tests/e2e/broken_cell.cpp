// Which cell of a netlist is broken, by its number: 0, none.

#include <cstdlib>

extern "C" int clew_broken_cell() {
    const char *number = std::getenv("CLEW_BROKEN_CELL");
    return number ? std::atoi(number) : 0;
}
