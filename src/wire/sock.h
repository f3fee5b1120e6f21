/* sock.h - frames over a SOCK_SEQPACKET socket, with descriptors. Hosted side only. */
#pragma once
#include "base/err.h"
#include "wire/wire.h"
#include <stddef.h>
#include <sys/types.h>

/* A frame's body and tail in one packet. Blocks unless the socket is non-blocking; a vanished
 * peer is ERR_SYS with EPIPE, never a signal. EAGAIN is reported as ERR_SYS/EAGAIN. */
must_check int sock_send(int fd, const void *body, size_t body_len, const void *tail,
			 size_t tail_len, const int *fds, unsigned nfds, struct err *e);

/* Receives one checked frame into buf (WIRE_MAX bytes). Returns its length, 0 at the end of the
 * stream, -1 with e set (ERR_INVALID: not a frame). Received descriptors are O_CLOEXEC and owned
 * by the caller; *nfds in: room, out: number. Descriptors that exceed the room are closed. */
must_check int sock_recv(int fd, void *buf, int *fds, unsigned *nfds, struct err *e);

must_check int sock_pair(int out_pair[2], struct err *e);                 /* SEQPACKET, CLOEXEC */
must_check int sock_listen(const char *path, int backlog, struct err *e); /* replaces a stale one */
must_check int sock_listen_new(const char *path, int backlog,
			       struct err *e); /* refuses any that is there */
must_check int sock_connect(const char *path, struct err *e);
/* The same without waiting for a listener whose queue is full: EAGAIN. The socket blocks
 * afterwards. */
must_check int sock_connect_now(const char *path, struct err *e);

/* One message of n bytes between processes of the keeper, which is no frame, with up to WIRE_FDS descriptors. 0, or -1
 * with errno. */
must_check int sock_send_message(int fd, const void *bytes, size_t n, const int *fds,
				 unsigned nfds);
/* Returns as recvmsg(). fds: O_CLOEXEC, -1 for those that were not sent; more than nfds are closed. */
must_check ssize_t sock_recv_message(int fd, void *bytes, size_t n, int *fds, unsigned nfds);

/* Fills a head. */
struct frame sock_head(uint8_t type, uint32_t ref);
