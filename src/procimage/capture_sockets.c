/* capture_sockets.c - sockets of a stopped program. They are asked through duplicates. */
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/capture_descriptors.h"
#include "procimage/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

static int capture_duplicate(struct capture *c, int number)
{
	auto_fd int pidfd = (int)syscall(SYS_pidfd_open, c->tracee.pid, 0);

	return pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
}

static int capture_socket_option(int fd, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, level, name, &value, &len) < 0 ? -1 : value;
}

/* ---- unix sockets ---- */

/* A netlink socket in the network namespace of the program. */
static int capture_open_diag(struct capture *c)
{
	char path[64];
	auto_fd int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	auto_fd int theirs = -1;
	struct stat a, b;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", c->tracee.pid);
	theirs = open(path, O_RDONLY | O_CLOEXEC);
	if (own < 0 || theirs < 0 || fstat(own, &a) < 0 || fstat(theirs, &b) < 0)
		return -1;
	if (a.st_ino == b.st_ino)
		return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (setns(theirs, CLONE_NEWNET) < 0)
		return -1;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (setns(own, CLONE_NEWNET) < 0)
		abort(); /* later sockets would be made in the box */
	return fd;
}

/* Inode of the other end; 0: unknown or none. */
uint64_t capture_unix_peer(struct capture *c, uint64_t inode)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req req;
	} ask = { .head = { sizeof(ask), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0 },
		  .req = { .sdiag_family = AF_UNIX,
			   .udiag_states = ~0U,
			   .udiag_ino = (uint32_t)inode,
			   .udiag_show = UDIAG_SHOW_PEER,
			   .udiag_cookie = { ~0U, ~0U } } };
	char answer[4096] __attribute__((aligned(8)));
	struct nlmsghdr *head = (struct nlmsghdr *)answer;
	struct unix_diag_msg *m = NLMSG_DATA(head);
	auto_fd int fd = capture_open_diag(c);
	struct rtattr *attr;
	ssize_t n;
	int left;

	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) < 0 ||
	    (n = recv(fd, answer, sizeof(answer), 0)) < 0 || !NLMSG_OK(head, (size_t)n) ||
	    head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return 0;
	left = (int)(head->nlmsg_len - NLMSG_LENGTH(sizeof(*m)));
	for (attr = (struct rtattr *)(m + 1); RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if (attr->rta_type == UNIX_DIAG_PEER) {
			uint32_t peer;

			memcpy(&peer, RTA_DATA(attr), 4);
			return peer;
		}
	return 0;
}

/* The bytes that wait in the socket, which keeps them. */
static int capture_peek(struct capture *c, struct image_descriptor *d,
			const struct open_descriptor *o, int fd, int type, struct err *e)
{
	static char bytes[1 << 20];
	char control[256];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n <= 0)
		return 0;
	if (m.msg_controllen || n == (ssize_t)sizeof(bytes))
		return keep_refuse(e, KEEP_IN_FLIGHT, c->tracee.pid, o->number,
				   m.msg_controllen ? "descriptors in flight"
						    : "too many bytes in flight");
	if (type != SOCK_STREAM)
		return keep_refuse(e, KEEP_IN_FLIGHT, c->tracee.pid, o->number,
				   "messages in flight");
	d->data_bytes = (uint32_t)n;
	d->data = procimage_add_bytes(&c->image, bytes, (size_t)n);
	return 0;
}

int capture_add_waiting(struct capture *c, struct image_descriptor *d,
			const struct open_descriptor *o, struct err *e)
{
	auto_fd int fd = capture_duplicate(c, o->number);

	if (fd < 0)
		return err_sys(e, "duplicate descriptor %d of process %d", o->number,
			       c->tracee.pid);
	return capture_peek(c, d, o, fd, capture_socket_option(fd, SOL_SOCKET, SO_TYPE), e);
}

int capture_is_connected_unix(struct capture *c, int number)
{
	auto_fd int fd = capture_duplicate(c, number);
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	return fd >= 0 && capture_socket_option(fd, SOL_SOCKET, SO_DOMAIN) == AF_UNIX &&
	       getpeername(fd, (struct sockaddr *)&peer, &len) == 0;
}

static int capture_add_pair(struct capture *c, struct image_descriptor *d,
			    const struct open_descriptor *o, int fd, int type, struct err *e)
{
	d->kind = DESCRIPTOR_PAIR;
	d->offset = capture_unix_peer(c, o->st.st_ino);
	return capture_peek(c, d, o, fd, type, e);
}

/* ---- all sockets ---- */

static int capture_add_listener(struct capture *c, struct image_descriptor *d, int fd, int domain)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	(void)c;
	d->kind = DESCRIPTOR_LISTENER;
	d->backlog = 128;
	if (domain != AF_UNIX && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
		d->backlog = info.tcpi_sacked; /* of a listener: its limit */
	if (domain == AF_INET6)
		d->offset = (uint64_t)capture_socket_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	return 0;
}

static int capture_has_address(const struct sockaddr_storage *a, socklen_t len)
{
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_port != 0;
	if (a->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)a)->sin6_port != 0;
	return len > sizeof(sa_family_t);
}

int capture_add_socket(struct capture *c, struct image_descriptor *d,
		       const struct open_descriptor *o, struct err *e)
{
	auto_fd int fd = capture_duplicate(c, o->number);
	int domain, type;
	struct sockaddr_storage name = { 0 }, peer;
	socklen_t len = sizeof(name), peer_len = sizeof(peer);

	if (fd < 0)
		return err_sys(e, "duplicate descriptor %d of process %d", o->number,
			       c->tracee.pid);
	domain = capture_socket_option(fd, SOL_SOCKET, SO_DOMAIN);
	type = capture_socket_option(fd, SOL_SOCKET, SO_TYPE);
	if ((domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX) || type == SOCK_RAW)
		return keep_refuse(e, KEEP_RAW_SOCKET, c->tracee.pid, o->number, o->target);
	if (getsockname(fd, (struct sockaddr *)&name, &len) < 0)
		return err_sys(e, "ask descriptor %d for its address", o->number);
	d->type = (uint32_t)domain << 16 | (uint32_t)type;
	if (capture_has_address(&name, len)) {
		d->data_bytes = len;
		d->data = procimage_add_bytes(&c->image, &name, len);
	}
	if (capture_socket_option(fd, SOL_SOCKET, SO_ACCEPTCONN) == 1)
		return capture_add_listener(c, d, fd, domain);
	if (getpeername(fd, (struct sockaddr *)&peer, &peer_len) < 0) {
		d->kind = DESCRIPTOR_SOCKET;
		return 0;
	}
	if (domain == AF_UNIX)
		return capture_add_pair(c, d, o, fd, type, e);
	if (type != SOCK_STREAM)
		return keep_refuse(e, KEEP_OTHER_SOCKET, c->tracee.pid, o->number, "connected UDP");
	d->kind = DESCRIPTOR_RESET;
	return 0;
}
