/* tcp.h - TCP from inside the box: connections for CONNECT, a listening socket for LISTEN.
 * Owns: the sockets until they are connected and handed to the client. */
#pragma once
#include <stdint.h>

enum { TCP_MAX = 16, TCP_BACKLOG = 64 };

struct conn;

/* Listens on that port of 127.0.0.1. Returns a descriptor that the caller closes; or -errno. */
int tcp_listen(uint16_t port);
/* Answers FD or ERROR, now or later. 127.0.0.1 first, then ::1. -1: too many in progress. */
int tcp_start(struct conn *c, uint32_t ref, uint16_t port);
void tcp_drop(const struct conn *c); /* its client is gone */
int tcp_timeout_ms(void);            /* as exec_timeout_ms() */
void tcp_timers(void);
