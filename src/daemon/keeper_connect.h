/* keeper_connect.h - a connection to a keeper of the same protocol version.
 * A keeper of another version of atoll is asked to exit; boxes keep running without it. */
#pragma once
#include "base/err.h"

/* Starts a keeper if none runs. Returns the descriptor; blocks for seconds at most. */
must_check int keeper_connect(struct err *e);

/* Whether a keeper that this process starts later may offer the tier process: isolation.process. */
void keeper_allow_process(int allowed);
