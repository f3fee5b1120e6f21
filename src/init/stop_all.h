/* stop_all.h - ends every program of the box, while the box itself stays.
 * Owns: the list of clients that wait for it. Between the kill and the last reaped process no
 * program is started. */
#pragma once
#include <stdint.h>

enum { STOP_MAX = 4 }; /* clients that may wait at once */

struct conn;

int stop_start(struct conn *c, uint32_t ref); /* 0; -EAGAIN: too many wait; -EPERM: not PID 1 */
int stop_busy(void);                          /* still reaping: start nothing now */
void stop_drop(const struct conn *c);
void stop_turn(void); /* called by the loop: sends DONE to the waiting clients, once all are
		       * reaped */
