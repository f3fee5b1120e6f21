/* activation_test.c - sockets from a service manager, and notifications to it. */
#include "daemon/activation.h"
#include "daemon/addr.h"
#include "base/cleanup.h"
#include "forked.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

static void promise(const char *pid, const char *count)
{
	char mine[16];

	snprintf(mine, sizeof(mine), "%d", (int)getpid());
	setenv("LISTEN_PID", pid ? pid : mine, 1);
	setenv("LISTEN_FDS", count, 1);
	setenv("LISTEN_FDNAMES", "a:b", 1);
}

/* A listening socket at this descriptor, blocking and inherited, as a manager leaves it. */
static void place(int at)
{
	struct err e;
	struct addr a;
	int fd = addr_parse(&a, "127.0.0.1:0", &e) < 0 ? -1 : addr_listen(&a, 1, &e);

	fcntl(fd, F_SETFL, 0);
	if (fd != at) {
		dup2(fd, at);
		close(fd);
	}
	fcntl(at, F_SETFD, 0);
}

TEST_FORKED(inherited_listening_sockets_are_used_in_order)
{
	int fds[ACTIVATION_MOST];
	struct err e = { 0 };

	place(3);
	place(4);
	promise(NULL, "2");
	CHECK_INT(activation_take(fds, &e), 2);
	CHECK(fds[0] == 3 && fds[1] == 4);
	CHECK_INT(fcntl(4, F_GETFD), FD_CLOEXEC);
	CHECK(fcntl(4, F_GETFL) & O_NONBLOCK);
	CHECK(!getenv("LISTEN_PID") && !getenv("LISTEN_FDS") && !getenv("LISTEN_FDNAMES"));
	CHECK_INT(activation_take(fds, &e), 0);
}

TEST_FORKED(inherited_sockets_of_another_pid_are_ignored)
{
	int fds[ACTIVATION_MOST];
	struct err e = { 0 };

	promise("1", "1");
	CHECK_INT(activation_take(fds, &e), 0);
	CHECK(!getenv("LISTEN_FDS"));
	promise(NULL, "0");
	CHECK_INT(activation_take(fds, &e), 0);
	CHECK_INT(activation_take(fds, &e), 0); /* not set at all */
}

TEST_FORKED(an_inherited_descriptor_that_does_not_listen_is_rejected)
{
	int fds[ACTIVATION_MOST], pair[2];
	struct err e = { 0 };

	place(3);
	dup2(open("/dev/null", O_RDONLY), 4);
	promise(NULL, "2");
	CHECK_INT(activation_take(fds, &e), -1);
	CHECK_STR(e.msg, "fd 4 of LISTEN_FDS is not a listening stream socket");
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	dup2(pair[0], 4);
	promise(NULL, "2");
	CHECK_INT(activation_take(fds, &e), -1);
	close(4);
	promise(NULL, "2");
	CHECK_INT(activation_take(fds, &e), -1);
	CHECK_INT(e.sys, EBADF);
}

TEST_FORKED(invalid_activation_variables_are_an_error)
{
	static const char *const counts[] = { "x",  "-1", "1x",  "99999999999999999999",
					      " 1", "+1", "1000" };
	int fds[ACTIVATION_MOST];

	for (unsigned i = 0; i < ARRAY_LEN(counts); i++) {
		struct err e = { 0 };

		promise(NULL, counts[i]);
		CHECK_INT(activation_take(fds, &e), -1);
		CHECK(*e.msg);
	}
}

static int manager(struct sockaddr_un *a, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return bind(fd, (struct sockaddr *)a, len) < 0 ? -1 : fd;
}

TEST_FORKED(notifications_reach_a_path_and_an_abstract_socket)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct err e = { 0 };
	char got[64] = "";
	int fd, n;

	n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/n%d",
		     getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
	fd = manager(&a, sizeof(a));
	CHECK(fd >= 0);
	setenv("NOTIFY_SOCKET", a.sun_path, 1);
	CHECK_INT(activation_notify("READY=1", &e), 0);
	CHECK_INT(recv(fd, got, sizeof(got), MSG_DONTWAIT), 7);
	CHECK_STR(got, "READY=1");
	unlink(a.sun_path);
	CHECK_INT(activation_notify("READY=1", &e), -1); /* gone: said, not hidden */
	CHECK_INT(e.sys, ENOENT);

	snprintf(got, sizeof(got), "@atoll-test-%d", (int)getpid());
	n = (int)strlen(got);
	memset(&a, 0, sizeof(a));
	a.sun_family = AF_UNIX;
	memcpy(a.sun_path + 1, got + 1, (size_t)n - 1);
	fd = manager(&a, (socklen_t)(sizeof(sa_family_t) + (size_t)n));
	CHECK(fd >= 0);
	setenv("NOTIFY_SOCKET", got, 1);
	CHECK_INT(activation_notify("STOPPING=1", &e), 0);
	CHECK_INT(recv(fd, got, sizeof(got), MSG_DONTWAIT), 10);
}

TEST_FORKED(without_a_notify_socket_nothing_is_sent)
{
	struct err e = { 0 };

	unsetenv("NOTIFY_SOCKET");
	CHECK_INT(activation_notify("READY=1", &e), 0);
	setenv("NOTIFY_SOCKET", "", 1);
	CHECK_INT(activation_notify("READY=1", &e), 0);
	setenv("NOTIFY_SOCKET", "relative", 1);
	CHECK_INT(activation_notify("READY=1", &e), -1);
}
