/* fence.h - stops all processes of the box when the lease of its node expires (LEASE).
 * Owns: the time of expiry, and the list of processes that were stopped before.
 * The daemon and the keeper may be dead: init does this alone, and only init continues the processes. */
#pragma once
#include <stdint.h>

#define FENCE_CLOSED "the lease of this box has expired: its processes are stopped"

int fence_lease(uint32_t ms); /* -1: init is not PID 1 and cannot stop all processes */
void fence_off(void);
int fence_closed(void); /* the processes are stopped: start nothing */

/* The loop's. */
void fence_turn(void);
int fence_timeout_ms(void); /* until something is due; -1: nothing is */
