/* spawn.h - brings a keeper to life.
 * Owns: the start lock, the keeper's log file and the hand-over of its first words. */
#pragma once
#include "base/err.h"

/* Returns once a keeper listens in run_dir, whoever started it. A keeper that cannot serve says
 * why through the ready pipe; that text is the error. */
must_check int spawn_keeper(const char *run_dir, const char *sock_path, struct err *e);
