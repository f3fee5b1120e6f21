/* sock_test.c - frames and descriptors through a socket, and peers that misbehave. */
#include "wire/sock.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char buf[WIRE_MAX];
static int pair[2];

static int fresh_pair(void)
{
	struct err e;

	return sock_pair(pair, &e) == 0;
}

static void close_pair(void)
{
	close(pair[0]);
	close(pair[1]);
}

static unsigned open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int send_with_fds(const int *fds, unsigned nfds)
{
	struct frame f = sock_head(WIRE_FD, 7);
	struct err e;

	return sock_send(pair[0], &f, sizeof(f), NULL, 0, fds, nfds, &e);
}

TEST(a_frame_arrives_as_it_was_sent)
{
	struct wire_output out = { .head = sock_head(WIRE_OUTPUT, 42), .stream = 1, .offset = 99 };
	struct err e;

	CHECK(fresh_pair());
	CHECK(sock_send(pair[0], &out, sizeof(out), "hello", 5, NULL, 0, &e) == 0);
	CHECK_INT(sock_recv(pair[1], buf, NULL, NULL, &e), sizeof(out) + 5);
	CHECK(memcmp(buf, &out, sizeof(out)) == 0);
	CHECK(memcmp(buf + sizeof(out), "hello", 5) == 0);
	close_pair();
}

TEST(the_largest_frame_fits_and_one_byte_more_does_not)
{
	static char tail[WIRE_MAX];
	struct frame f = sock_head(WIRE_DATA, 1);
	struct err e;

	CHECK(fresh_pair());
	CHECK(sock_send(pair[0], &f, sizeof(f), tail, WIRE_MAX - sizeof(f), NULL, 0, &e) == 0);
	CHECK_INT(sock_recv(pair[1], buf, NULL, NULL, &e), WIRE_MAX);
	CHECK(sock_send(pair[0], &f, sizeof(f), tail, WIRE_MAX - sizeof(f) + 1, NULL, 0, &e) < 0);
	CHECK_INT(e.kind, ERR_LIMIT);
	close_pair();
}

TEST(a_message_carries_descriptors_and_those_without_room_are_closed)
{
	int fds[3], got[2] = { -2, -2 };
	unsigned before = open_descriptors();
	char bytes[4] = "";

	CHECK(fresh_pair());
	fds[0] = fds[1] = fds[2] = pair[0];
	CHECK(sock_send_message(pair[0], "abc", 4, fds, 3) == 0);
	CHECK_INT(sock_recv_message(pair[1], bytes, sizeof(bytes), got, 2), 4);
	CHECK(strcmp(bytes, "abc") == 0);
	CHECK_INT(open_descriptors(), before + 4);
	CHECK_INT(fcntl(got[1], F_GETFD), FD_CLOEXEC);
	close(got[0]);
	close(got[1]);
	CHECK(sock_send_message(pair[0], "ab", 3, NULL, 0) == 0);
	CHECK_INT(sock_recv_message(pair[1], bytes, sizeof(bytes), got, 2), 3);
	CHECK(got[0] == -1 && got[1] == -1);
	close_pair();
	CHECK_INT(open_descriptors(), before);
}

TEST(descriptors_of_a_frame_arrive_close_on_exec)
{
	int fds[WIRE_FDS], got[WIRE_FDS];
	unsigned before = open_descriptors(), n = WIRE_FDS;
	struct err e;

	CHECK(fresh_pair());
	for (int i = 0; i < WIRE_FDS; i++)
		fds[i] = pair[0];
	CHECK(send_with_fds(fds, WIRE_FDS) == 0);
	CHECK_INT(sock_recv(pair[1], buf, got, &n, &e), sizeof(struct frame));
	CHECK_INT(n, WIRE_FDS);
	for (unsigned i = 0; i < n; i++) {
		CHECK_INT(fcntl(got[i], F_GETFD), FD_CLOEXEC);
		close(got[i]);
	}
	close_pair();
	CHECK_INT(open_descriptors(), before);
}

TEST(descriptors_over_the_expected_number_are_closed)
{
	int fds[3], got[3];
	unsigned before = open_descriptors(), n;
	struct err e;

	CHECK(fresh_pair());
	fds[0] = fds[1] = fds[2] = pair[0];
	n = 1;
	CHECK(send_with_fds(fds, 3) == 0);
	CHECK(sock_recv(pair[1], buf, got, &n, &e) > 0);
	CHECK_INT(n, 1);
	close(got[0]);
	n = 0;
	CHECK(send_with_fds(fds, 3) == 0);
	CHECK(sock_recv(pair[1], buf, got, &n, &e) > 0);
	CHECK_INT(n, 0);
	CHECK(send_with_fds(fds, 3) == 0);
	CHECK(sock_recv(pair[1], buf, NULL, NULL, &e) > 0);
	close_pair();
	CHECK_INT(open_descriptors(), before);
}

TEST(more_descriptors_than_a_frame_may_carry_are_not_sent)
{
	int fds[WIRE_FDS + 1] = { 0 };

	CHECK(fresh_pair());
	CHECK(send_with_fds(fds, WIRE_FDS + 1) < 0);
	close_pair();
}

/* A hostile peer does not use sock_send(). */
static int send_raw(const void *bytes, size_t len, const int *fds, unsigned nfds)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(32 * sizeof(int))];
	} control;
	struct iovec part = { .iov_base = (void *)bytes, .iov_len = len };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(nfds * sizeof(int)) };

	memset(&control, 0, sizeof(control));
	control.head.cmsg_len = CMSG_LEN(nfds * sizeof(int));
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(&control.head), fds, nfds * sizeof(int));
	return sendmsg(pair[0], &msg, MSG_NOSIGNAL) == (ssize_t)len;
}

TEST(many_descriptors_in_one_message_are_all_closed)
{
	struct frame f = sock_head(WIRE_FD, 1);
	int fds[32], got[WIRE_FDS];
	unsigned before = open_descriptors(), n = WIRE_FDS;
	struct err e;

	CHECK(fresh_pair());
	for (int i = 0; i < 32; i++)
		fds[i] = pair[0];
	CHECK(send_raw(&f, sizeof(f), fds, 32));
	CHECK(sock_recv(pair[1], buf, got, &n, &e) > 0);
	CHECK_INT(n, WIRE_FDS);
	for (unsigned i = 0; i < n; i++)
		close(got[i]);
	close_pair();
	CHECK_INT(open_descriptors(), before);
}

TEST(an_invalid_frame_is_rejected_and_its_descriptors_closed)
{
	static char too_long[WIRE_MAX + 100];
	struct frame good = sock_head(WIRE_DATA, 1), bad = sock_head(WIRE_DATA, 1);
	int fds[2], got[WIRE_FDS];
	unsigned before = open_descriptors(), n = WIRE_FDS;
	struct err e;

	CHECK(fresh_pair());
	fds[0] = fds[1] = pair[0];
	bad.version++;
	memcpy(too_long, &good, sizeof(good));
	CHECK(send_raw("hi", 2, fds, 2) && send_raw(&bad, sizeof(bad), fds, 2) &&
	      send_raw(too_long, sizeof(too_long), fds, 2));
	for (int i = 0; i < 3; i++) {
		CHECK_INT(sock_recv(pair[1], buf, got, &n, &e), -1);
		CHECK_INT(e.kind, ERR_INVALID);
		CHECK_INT(n, WIRE_FDS); /* out parameters are written on success only */
	}
	close_pair();
	CHECK_INT(open_descriptors(), before);
}

TEST(an_empty_packet_is_end_of_file_and_its_descriptors_are_closed)
{
	unsigned before = open_descriptors(), n = WIRE_FDS;
	int fds[2], got[WIRE_FDS];
	struct err e;

	CHECK(fresh_pair());
	fds[0] = fds[1] = pair[0];
	CHECK(send_raw("", 0, fds, 2));
	CHECK_INT(sock_recv(pair[1], buf, got, &n, &e), 0);
	CHECK_INT(n, 0);
	close_pair();
	CHECK_INT(open_descriptors(), before);
}

TEST(a_closed_peer_is_end_of_file_for_reads_and_an_error_for_writes)
{
	struct frame f = sock_head(WIRE_INFO, 1);
	struct err e;

	CHECK(fresh_pair());
	close(pair[1]);
	CHECK_INT(sock_recv(pair[0], buf, NULL, NULL, &e), 0);
	CHECK(sock_send(pair[0], &f, sizeof(f), NULL, 0, NULL, 0, &e) < 0); /* and no SIGPIPE */
	CHECK_INT(e.sys, EPIPE);
	CHECK_STR(e.msg, "send INFO: Broken pipe");
	close(pair[0]);
}

TEST(a_non_blocking_socket_returns_would_block)
{
	static char tail[WIRE_MAX / 2];
	struct frame f = sock_head(WIRE_DATA, 1);
	struct err e;

	CHECK(fresh_pair());
	CHECK(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0);
	CHECK_INT(sock_recv(pair[0], buf, NULL, NULL, &e), -1);
	CHECK_INT(e.sys, EAGAIN);
	while (sock_send(pair[0], &f, sizeof(f), tail, sizeof(tail), NULL, 0, &e) == 0)
		;
	CHECK_INT(e.sys, EAGAIN);
	close_pair();
}

/* ---- names ---- */

static char path[100];

static const char *fresh_path(void)
{
	snprintf(path, sizeof(path), "/tmp/sock-test.%d", (int)getpid());
	unlink(path);
	return path;
}

TEST(a_client_connects_to_a_listener)
{
	struct frame f = sock_head(WIRE_INFO, 5);
	int listener, client, server;
	struct err e;

	listener = sock_listen(fresh_path(), 4, &e);
	CHECK(listener >= 0);
	CHECK_INT(fcntl(listener, F_GETFD), FD_CLOEXEC);
	client = sock_connect(path, &e);
	CHECK(client >= 0);
	CHECK_INT(fcntl(client, F_GETFD), FD_CLOEXEC);
	server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(server >= 0);
	CHECK(sock_send(client, &f, sizeof(f), NULL, 0, NULL, 0, &e) == 0);
	CHECK_INT(sock_recv(server, buf, NULL, NULL, &e), sizeof(f));
	close(server);
	close(client);
	close(listener);
	unlink(path);
}

TEST(a_stale_socket_is_replaced_and_a_listening_one_is_not)
{
	struct err e;
	int first = sock_listen(fresh_path(), 4, &e), second;

	CHECK(first >= 0);
	CHECK_INT(sock_listen(path, 4, &e), -1);
	CHECK_INT(e.kind, ERR_CONFLICT);
	close(first);
	second = sock_listen(path, 4, &e);
	CHECK(second >= 0);
	close(second);
	unlink(path);
}

TEST(a_file_at_the_path_of_the_socket_is_not_replaced)
{
	struct stat st;
	struct err e;
	int fd = open(fresh_path(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	close(fd);
	CHECK_INT(sock_listen(path, 4, &e), -1);
	CHECK_INT(e.kind, ERR_CONFLICT);
	CHECK(stat(path, &st) == 0 && S_ISREG(st.st_mode));
	unlink(path);
}

TEST(a_socket_of_another_type_is_not_replaced)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int stream = socket(AF_UNIX, SOCK_STREAM, 0);
	struct stat st;
	struct err e;

	strcpy(addr.sun_path, fresh_path());
	CHECK(bind(stream, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(stream, 1) == 0);
	CHECK_INT(sock_listen(path, 4, &e), -1);
	CHECK_INT(e.sys, EPROTOTYPE);
	CHECK(stat(path, &st) == 0 && S_ISSOCK(st.st_mode));
	close(stream);
	unlink(path);
}

TEST(connecting_to_a_full_queue_waits_only_on_request)
{
	int listener, held[64], n = 0;
	struct err e;

	listener = sock_listen(fresh_path(), 1, &e);
	CHECK(listener >= 0);
	while (n < 64 && (held[n] = sock_connect_now(path, &e)) >= 0)
		n++;
	CHECK(n < 64);
	CHECK_INT(e.sys, EAGAIN);
	CHECK(!(fcntl(held[0], F_GETFL) & O_NONBLOCK));
	while (n > 0)
		close(held[--n]);
	close(listener);
	unlink(path);
}

TEST(a_failed_connect_keeps_errno)
{
	struct err e;
	int listener;

	CHECK_INT(sock_connect(fresh_path(), &e), -1);
	CHECK_INT(e.sys, ENOENT);
	listener = sock_listen(path, 4, &e);
	CHECK(listener >= 0);
	close(listener);
	CHECK_INT(sock_connect(path, &e), -1);
	CHECK_INT(e.sys, ECONNREFUSED);
	unlink(path);
}

TEST(a_path_too_long_for_a_socket_is_rejected)
{
	char name[200];
	struct err e;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	CHECK_INT(sock_listen(name, 4, &e), -1);
	CHECK_INT(e.kind, ERR_INVALID);
	CHECK_INT(sock_connect(name, &e), -1);
	CHECK_INT(e.kind, ERR_INVALID);
	CHECK_INT(sock_connect("", &e), -1); /* an empty name would bind to a random one */
	CHECK_INT(e.kind, ERR_INVALID);
}
