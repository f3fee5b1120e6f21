/* keeper.h - the privileged process: creates, records, measures and ends boxes. It has no client
 * state. If it is killed, the next one finds every box in the run folder. */
#pragma once

int keeper_main(int argc, char **argv); /* the hidden command `atoll keeper`; returns an
					 * exit status */
