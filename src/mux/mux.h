/* mux.h - the outer end of the channel: PID 1 of a box whose programs run behind an engine. */
#pragma once

/* The first word of a command line whose engine gets the list of system calls of filter_load_vm(). */
#define MUX_VM "@vm"

_Noreturn void mux_main(int argc, char **argv); /* init UID ROOT [-- ENGINE ARGUMENT...] */
