/* mux_plain_test.c - the tests of init through mux and guest stub, without an engine. */
#define BOXED_MUX
#include "unit/init_test.c"
