/* stop_all.h - the end of every program of the box, while the box itself stays.
 * Owns: who waits for it. Between the kill and the last reaped process nothing new is started. */
#pragma once
#include <stdint.h>

enum { STOP_MAX = 4 }; /* who may wait at once */

struct conn;

int stop_start(struct conn *c, uint32_t ref); /* 0; -EAGAIN: too many wait; -EPERM: not PID 1 */
int stop_busy(void);                          /* still reaping: start nothing now */
void stop_drop(const struct conn *c);
void stop_turn(void); /* the loop's: DONE to those who wait, once all are reaped */
