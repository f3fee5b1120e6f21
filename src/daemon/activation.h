/* activation.h - what a service manager hands over, and the notifications for it.
 * The protocol of systemd: sockets are descriptors 3 and up, counted by LISTEN_FDS for the
 * process LISTEN_PID; notifications are datagrams to NOTIFY_SOCKET. */
#pragma once
#include "base/err.h"

enum { ACTIVATION_MOST = 32 };

/* Returns how many listening sockets were passed; 0: none, or not for this process. They are
 * non-blocking and CLOEXEC afterwards. LISTEN_* is removed from the environment: children must
 * not use it. -1: what was passed is invalid. */
must_check int activation_take(int out_fds[ACTIVATION_MOST], struct err *e);

/* "READY=1", "RELOADING=1\nMONOTONIC_USEC=...", "STOPPING=1", "STATUS=...". Without a manager it
 * does nothing and succeeds. */
must_check int activation_notify(const char *state, struct err *e);
