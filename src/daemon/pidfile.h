/* pidfile.h - who serves from a run folder: the file serve.pid, and the lock on it.
 * Owns: the descriptor that holds the lock. The warden takes it and every front inherits it, so that
 *       it is free only when nobody who may touch the boxes is left; across an upgrade it is kept.
 *
 * The file says "PID VERSION FRONT FAILURES ERRNO": the warden, what it runs, the front that serves (0: none
 * yet), how many upgrades could not execute their binary, and why the last of these could not. */
#pragma once
#include "base/err.h"
#include <sys/types.h>

#define SEAT_VERSION 40

struct seat_note {
	pid_t warden, front;
	char version[SEAT_VERSION];
	int failed_upgrades, upgrade_errno; /* 0 in the file of a daemon that does not write them */
};

/* Waits some seconds for those who are leaving. The descriptor, or -1: somebody stays. */
must_check int seat_take(const char *run_dir, struct err *e);
/* The same for the state folder, which daemons with different run folders could name: their rows and boxes are
 * not each other's. */
must_check int seat_lock_state(const char *state_dir, struct err *e);
must_check int seat_write(int fd, const struct seat_note *note, struct err *e);
/* Of the one that serves there; ERR_NOT_FOUND: nobody does. */
must_check int seat_read(const char *run_dir, struct seat_note *out, struct err *e);
/* The same, with a pidfd of its supervisor, for signals. */
must_check int seat_find_process(const char *run_dir, struct seat_note *out, int *out_pidfd, struct err *e);
void seat_leave(const char *run_dir, int fd); /* for good: the file goes, too */
