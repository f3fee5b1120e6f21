/* mux_files_test.c - the tests of the file worker through mux and guest stub, without an engine. */
#define BOXED_MUX
#include "unit/files_test.c"
