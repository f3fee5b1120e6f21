/* keeper.h - the privileged process: makes, keeps, counts and ends boxes.
 * Holds no client state. Killed at any moment, the next one finds every box in the run folder. */
#pragma once

int keeper_main(int argc, char **argv); /* the hidden verb `atoll keeper`; returns an exit status */
