/* capture.h - directs the outbound connections of a network namespace to sockets in it.
 * Owns:         nothing; the caller gets the descriptors. When all of them are closed, the namespace has
 *               a route left, and connections to other addresses are refused.
 * Does not own: the decision about a connection (egress).
 *
 *   program ── connect(192.0.2.1:5432)
 *      │ route "local default dev lo": every address is an address of lo
 *      ▼
 *   sk_lookup program of the namespace ──► tcp: getsockname() of the accepted socket is 192.0.2.1:5432
 *
 * Connections to loopback addresses are not changed: servers in the box work as before. UDP is
 * captured for port 53 only; other datagrams get "port unreachable" from the kernel. */
#pragma once
#include "base/err.h"

enum { CAPTURE_TCP, CAPTURE_UDP, CAPTURE_LINK, CAPTURE_TCP6, CAPTURE_FDS };

struct net_capture {
	int fd[CAPTURE_FDS]; /* TCP6: -1 on a host without IPv6 */
};

/* ns: a descriptor of the namespace, or a pidfd of a process in it. proc: the host's. Repeatable: the
 * sockets of the last call are used. Needs CAP_NET_ADMIN and CAP_BPF of the host. */
must_check int capture_open(int proc, int ns, struct net_capture *out, struct err *e);
void capture_close(struct net_capture *c); /* fine on a partly open one */
/* 0: this kernel accepts the program from this process. */
must_check int capture_check(struct err *e);
