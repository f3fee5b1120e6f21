/* sock.c - see sock.h. */
#include "wire/sock.h"
#include "base/cleanup.h"
#include "wire/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

union control { /* room for the descriptors of one frame, aligned as the kernel requires */
	struct cmsghdr head;
	char room[CMSG_SPACE(WIRE_FDS * sizeof(int))];
};

struct frame sock_head(uint8_t type, uint32_t ref)
{
	return (struct frame){ .version = WIRE_VERSION, .type = type, .ref = ref };
}

int sock_send(int fd, const void *body, size_t body_len, const void *tail, size_t tail_len,
	      const int *fds, unsigned nfds, struct err *e)
{
	struct iovec part[2] = {
		{ .iov_base = (void *)body, .iov_len = body_len },
		{ .iov_base = (void *)tail, .iov_len = tail_len },
	};
	struct msghdr msg = { .msg_iov = part, .msg_iovlen = tail_len ? 2 : 1 };
	const struct frame *head = body;
	union control control = { 0 };

	if (body_len + tail_len > WIRE_MAX || nfds > WIRE_FDS)
		return err_set(e, ERR_LIMIT, "a frame of %zu bytes and %u descriptors",
			       body_len + tail_len, nfds);
	if (nfds) {
		control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(nfds * sizeof(int)),
						 .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), fds, nfds * sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	}
	/* A packet is sent completely or not at all, so there is no rest to send. */
	while (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return err_sys(e, "send %s", frame_name(head->type));
	return 0;
}

static void close_all(const int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

/* All received descriptors are read here: others would leak. */
static unsigned descriptors_of(struct msghdr *msg, int got[WIRE_FDS])
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(got, CMSG_DATA(c), n * sizeof(int));
	}
	return n;
}

int sock_recv(int fd, void *buf, int *fds, unsigned *nfds, struct err *e)
{
	union control control = { 0 };
	struct iovec part = { .iov_base = buf, .iov_len = WIRE_MAX };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	unsigned n, room = nfds ? *nfds : 0;
	int got[WIRE_FDS];
	ssize_t len;

	while ((len = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC)) < 0)
		if (errno != EINTR)
			return err_sys(e, "receive a frame");
	n = descriptors_of(&msg, got);
	if (len > 0 && (msg.msg_flags & MSG_TRUNC || frame_check(buf, (uint32_t)len) < 0)) {
		close_all(got, n);
		return err_set(e, ERR_INVALID, "%zd bytes that are not a frame", len);
	}
	if (n > room || len == 0) {
		unsigned kept = len ? room : 0;

		close_all(got + kept, n - kept);
		n = kept;
	}
	if (n)
		memcpy(fds, got, n * sizeof(int));
	if (nfds)
		*nfds = n;
	return (int)len;
}

int sock_send_message(int fd, const void *bytes, size_t n, const int *fds, unsigned nfds)
{
	union control control = { .head = { .cmsg_len = CMSG_LEN(nfds * sizeof(int)),
					    .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { .iov_base = (void *)bytes, .iov_len = n };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	if (nfds > WIRE_FDS) {
		errno = EMSGSIZE;
		return -1;
	}
	if (nfds) {
		memcpy(CMSG_DATA(&control.head), fds, nfds * sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	}
	do
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)n ? 0 : -1;
}

ssize_t sock_recv_message(int fd, void *bytes, size_t n, int *fds, unsigned nfds)
{
	union control control = { 0 };
	struct iovec part = { .iov_base = bytes, .iov_len = n };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int got[WIRE_FDS];
	unsigned ngot;
	ssize_t len;

	for (unsigned i = 0; i < nfds; i++)
		fds[i] = -1;
	do
		len = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	ngot = len < 0 ? 0 : descriptors_of(&msg, got);
	for (unsigned i = 0; i < ngot; i++)
		if (i < nfds)
			fds[i] = got[i];
		else
			close(got[i]);
	return len;
}

int sock_pair(int out_pair[2], struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out_pair) < 0)
		return err_sys(e, "socketpair");
	return 0;
}

static int sock_address(struct sockaddr_un *out, const char *path, struct err *e)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!*path || strlen(path) >= sizeof(out->sun_path))
		return err_set(e, ERR_INVALID, "socket path '%.40s' has %zu bytes, want 1 to %zu",
			       path, strlen(path), sizeof(out->sun_path) - 1);
	strcpy(out->sun_path, path);
	return 0;
}

static int new_socket(struct err *e)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	return fd < 0 ? err_sys(e, "socket") : fd;
}

static int connect_with(const char *path, int flags, struct err *e)
{
	auto_fd int fd = -1;
	struct sockaddr_un addr;

	if (sock_address(&addr, path, e) < 0 || (fd = new_socket(e)) < 0)
		return -1;
	if (fcntl(fd, F_SETFL, O_RDWR | flags) < 0 ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    fcntl(fd, F_SETFL, O_RDWR) < 0)
		return err_sys(e, "connect to %.100s", path);
	return steal_fd(&fd);
}

int sock_connect(const char *path, struct err *e)
{
	return connect_with(path, 0, e);
}

int sock_connect_now(const char *path, struct err *e)
{
	return connect_with(path, O_NONBLOCK, e);
}

/* A socket file exists longer than its listener. Removes it if no process listens. The caller must
 * prevent that two processes start at the same time. */
static int remove_stale(const char *path, struct err *e)
{
	struct err refused;
	struct stat st;
	int fd;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "stat %.100s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, ERR_CONFLICT, "%.100s exists and is not a socket", path);
	fd = sock_connect(path, &refused);
	if (fd >= 0) {
		close(fd);
		return err_set(e, ERR_CONFLICT, "another process listens on %.100s", path);
	}
	if (refused.sys != ECONNREFUSED) {
		*e = refused;
		return -1;
	}
	if (unlink(path) < 0 && errno != ENOENT)
		return err_sys(e, "remove the stale %.100s", path);
	return 0;
}

int sock_listen(const char *path, int backlog, struct err *e)
{
	return remove_stale(path, e) < 0 ? -1 : sock_listen_new(path, backlog, e);
}

int sock_listen_new(const char *path, int backlog, struct err *e)
{
	auto_fd int fd = -1;
	struct sockaddr_un addr;

	if (sock_address(&addr, path, e) < 0 || (fd = new_socket(e)) < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return err_sys(e, "bind to %.100s", path);
	if (listen(fd, backlog) < 0)
		return err_sys(e, "listen on %.100s", path);
	return steal_fd(&fd);
}
