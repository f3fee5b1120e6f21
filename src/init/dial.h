/* dial.h - TCP connections made from inside the box, for CONNECT.
 * Owns: the sockets until they are connected and handed to the client. */
#pragma once
#include <stdint.h>

enum { DIAL_MAX = 16 };

struct conn;

/* Answers FD or ERROR, now or later. 127.0.0.1 first, then ::1. -1: too many under way. */
int dial_start(struct conn *c, uint32_t ref, uint16_t port);
void dial_drop(const struct conn *c); /* its client is gone */
int dial_timeout_ms(void);            /* as exec_timeout_ms() */
void dial_timers(void);
