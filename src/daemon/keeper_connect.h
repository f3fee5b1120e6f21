/* keeper_connect.h - a connection to a keeper that understands us.
 * One that another version of atoll left behind is asked to leave; boxes live on without it. */
#pragma once
#include "base/err.h"

/* Starts one if there is none. Returns the descriptor; blocks for seconds at most. */
must_check int keeper_connect(struct err *e);
