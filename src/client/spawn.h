/* spawn.h - starts a keeper.
 * Owns: the start lock, the log file of the keeper and its ready message. */
#pragma once
#include "base/err.h"

/* Returns when a keeper listens in run_dir, even if another client has started it. A keeper that
 * cannot start sends the reason through the ready pipe; that text is the error. */
must_check int spawn_keeper(const char *run_dir, const char *sock_path, struct err *e);
