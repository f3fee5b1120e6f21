/* mux.h - the outer end of the channel: PID 1 of a box whose programs run behind an engine. */
#pragma once

/* The first word of a command line whose engine gets the filter of filter_load_vm() or filter_load_runsc(). */
#define MUX_VM "@vm"
#define MUX_RUNSC "@runsc"

_Noreturn void mux_main(int argc, char **argv); /* init UID ROOT [-- ENGINE ARGUMENT...] */
