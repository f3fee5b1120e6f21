/* activation.h - what a service manager hands over, and what it wants to hear.
 * The protocol of systemd, in its few lines: sockets are descriptors 3 and up, counted by
 * LISTEN_FDS for the process LISTEN_PID; news are datagrams to NOTIFY_SOCKET. */
#pragma once
#include "base/err.h"

enum { ACTIVATION_MOST = 32 };

/* How many listening sockets came along; 0: none, or not for this process. They are non-blocking
 * and CLOEXEC afterwards. LISTEN_* leaves the environment: children must not believe it.
 * -1: what came is not what it should be. */
must_check int activation_take(int out_fds[ACTIVATION_MOST], struct err *e);

/* "READY=1", "RELOADING=1\nMONOTONIC_USEC=...", "STOPPING=1", "STATUS=...". Without a manager
 * nothing happens and nothing is wrong. */
must_check int activation_notify(const char *state, struct err *e);
