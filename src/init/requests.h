/* requests.h - the requests of clients to init. */
#pragma once
#include "wire/wire.h"

struct conn;

/* f: its size was checked. -1: a violation of the protocol, end the connection. Descriptors that
 * were taken are replaced by -1 in fds; the caller closes the rest. */
int requests_run(struct conn *c, struct frame *f, uint32_t len, int *fds, unsigned nfds);
