/* mux.h - the outer end of the channel: PID 1 of a box whose programs run behind an engine. */
#pragma once

_Noreturn void mux_main(int argc, char **argv); /* init UID ROOT [-- ENGINE ARGUMENT...] */
