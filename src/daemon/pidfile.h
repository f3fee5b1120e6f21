/* pidfile.h - which daemon serves from a run folder: the file serve.pid, and the lock on it.
 * Owns: the descriptor that holds the lock. The supervisor takes it and every server inherits
 * it, so that it is free only when no process that may change boxes is left; across an upgrade
 * it is kept.
 *
 * The file contains "PID VERSION SERVER FAILURES ERRNO": the supervisor, its version, the server
 * that serves (0: none yet), how many upgrades could not execute their binary, and the errno of
 * the last of these. */
#pragma once
#include "base/err.h"
#include <sys/types.h>

#define PIDFILE_VERSION 40

struct pidfile_record {
	pid_t supervisor, server;
	char version[PIDFILE_VERSION];
	int failed_upgrades, upgrade_errno; /* 0 in the file of a daemon that does not write them */
};

/* Waits some seconds for a daemon that is exiting. The descriptor, or -1: a daemon keeps
 * running. */
must_check int pidfile_take(const char *run_dir, struct err *e);
/* The same for the state folder, which daemons with different run folders could name: each needs
 * rows and boxes of its own. */
must_check int pidfile_lock_state(const char *state_dir, struct err *e);
must_check int pidfile_write(int fd, const struct pidfile_record *note, struct err *e);
/* Of the daemon that serves there; ERR_NOT_FOUND: none does. */
must_check int pidfile_read(const char *run_dir, struct pidfile_record *out, struct err *e);
/* The same, with a pidfd of its supervisor, for signals. */
must_check int pidfile_find_process(const char *run_dir, struct pidfile_record *out, int *out_pidfd,
				    struct err *e);
void pidfile_leave(const char *run_dir, int fd); /* permanently: deletes the file, too */
