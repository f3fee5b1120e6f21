/* activation.c - see activation.h. */
#include "daemon/activation.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { FIRST = 3 };

/* A number from the environment. -1: not set, -2: not a number. */
static long activation_number(const char *name)
{
	const char *text = getenv(name);
	char *end;
	long n;

	if (!text || !*text)
		return -1;
	errno = 0;
	n = strtol(text, &end, 10);
	return errno || *end || n < 0 || *text < '0' || *text > '9' ? -2 : n;
}

static void activation_forget(void)
{
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

static int activation_check(int fd, struct err *e)
{
	int flags = fcntl(fd, F_GETFL), listening = 0, type = 0;

	if (flags < 0)
		return err_sys(e, "LISTEN_FDS counts fd %d, which is not open", fd);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening,
		       &(socklen_t){ sizeof(listening) }) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof(type) }) < 0 ||
	    !listening || type != SOCK_STREAM)
		return err_set(e, ERR_INVALID,
			       "fd %d of LISTEN_FDS is not a listening stream socket", fd);
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return err_sys(e, "fcntl on fd %d", fd);
	return 0;
}

int activation_take(int out_fds[ACTIVATION_MOST], struct err *e)
{
	long pid = activation_number("LISTEN_PID"), count = activation_number("LISTEN_FDS");

	activation_forget();
	if (pid == -2 || count == -2)
		return err_set(e, ERR_INVALID, "LISTEN_PID or LISTEN_FDS is not a number");
	if (pid != getpid() || count <= 0)
		return 0;
	if (count > ACTIVATION_MOST)
		return err_set(e, ERR_LIMIT, "LISTEN_FDS is %ld; at most %d are taken", count,
			       ACTIVATION_MOST);
	for (int i = 0; i < count; i++)
		if (activation_check(FIRST + i, e) < 0)
			return -1;
	for (int i = 0; i < count; i++)
		out_fds[i] = FIRST + i;
	return (int)count;
}

int activation_notify(const char *state, struct err *e)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	auto_fd int fd = -1;
	size_t n;

	if (!path || !*path)
		return 0;
	n = strlen(path);
	if ((*path != '/' && *path != '@') || n >= sizeof(a.sun_path))
		return err_set(e, ERR_INVALID, "NOTIFY_SOCKET '%.60s' is not a path of a socket",
			       path);
	memcpy(a.sun_path, path, n);
	if (*path == '@')
		a.sun_path[0] = 0; /* a name without a file */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(e, "socket");
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&a,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (*path == '/'))) < 0)
		return err_sys(e, "notify %.60s of %.40s", path, state);
	return 0;
}
