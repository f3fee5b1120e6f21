/* host_service.h - the processes of the keeper that stay in the mounts of the host: disks, layers, tiers, process images.
 * Owns: their pids in host_state.h. Each ends when its socket is closed, and is started again here when it was killed.
 *
 * A later start differs from the first one: the keeper has left the mounts of the host, and has threads. So the loop's
 * thread enters those mounts, forks the process, and goes back; the other threads share neither mounts nor folder. */
#pragma once
#include "base/err.h"

struct host_state;

enum host_service { HOST_DISKS, HOST_LAYERS, HOST_TIERS, HOST_IMAGES, HOST_SERVICES };

/* Returns the socket to it. In the mounts of the host. */
must_check int host_service_start(struct host_state *h, enum host_service which, struct err *e);
/* The same, later, on the loop's thread: the process has ended, or ends now. -1: also without root. */
must_check int host_service_restart(struct host_state *h, enum host_service which, struct err *e);
const char *host_service_name(enum host_service which);
