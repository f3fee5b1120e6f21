/* addr.c - see addr.h. */
#include "daemon/addr.h"
#include "base/cleanup.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define EXAMPLES "write it like 127.0.0.1:7070, [::1]:7070, :7070 or unix:/path"

/* ---- text ---- */

static int addr_refuse(struct err *e, const char *text, const char *why)
{
	return err_set(e, ERR_INVALID, "address '%.60s' %s; " EXAMPLES, text, why);
}

static int parse_unix(struct addr *a, const char *text, const char *path, struct err *e)
{
	if (*path != '/')
		return addr_refuse(e, text, "has no absolute path");
	if (strlen(path) >= sizeof(a->local.sun_path))
		return err_set(e, ERR_INVALID,
			       "address '%.60s...' has %zu bytes of path; at most %zu fit", text,
			       strlen(path), sizeof(a->local.sun_path) - 1);
	a->local.sun_family = AF_UNIX;
	strcpy(a->local.sun_path, path);
	a->len = sizeof(a->local);
	return 0;
}

static int parse_port(const char *digits, uint16_t *out)
{
	unsigned long n = 0;

	if (!isdigit((unsigned char)*digits) || strlen(digits) > 5)
		return -1;
	for (; isdigit((unsigned char)*digits); digits++)
		n = n * 10 + (unsigned long)(*digits - '0');
	*out = (uint16_t)n;
	return *digits || n > 65535 ? -1 : 0;
}

/* "::1", "fe80::1%eth0" */
static int parse_v6(struct addr *a, char *host)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a->room;
	char *scope = strchr(host, '%');

	if (scope) {
		*scope++ = 0;
		in6->sin6_scope_id = if_nametoindex(scope);
		if (!in6->sin6_scope_id)
			return -1;
	}
	in6->sin6_family = AF_INET6;
	a->len = sizeof(*in6);
	return inet_pton(AF_INET6, host, &in6->sin6_addr) == 1 ? 0 : -1;
}

static int parse_v4(struct addr *a, const char *host)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&a->room;

	in->sin_family = AF_INET;
	a->len = sizeof(*in);
	return inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1", &in->sin_addr) ==
			       1
		       ? 0
		       : -1;
}

/* The part before the port, without brackets. -1: there is no such part. */
static int addr_split(const char *text, char host[64], const char **port, int *bracketed)
{
	const char *colon = strrchr(text, ':'), *end = colon;

	*bracketed = *text == '[';
	if (!colon)
		return -1;
	if (*bracketed) {
		end = strchr(text, ']');
		if (!end || end + 1 != colon)
			return -1;
		text++;
	}
	if (end - text >= 64)
		return -1;
	memcpy(host, text, (size_t)(end - text));
	host[end - text] = 0;
	*port = colon + 1;
	return 0;
}

static int parse_tcp(struct addr *a, const char *text, struct err *e)
{
	const char *port_text;
	int bracketed;
	char host[64];
	uint16_t port;

	if (addr_split(text, host, &port_text, &bracketed) < 0)
		return addr_refuse(e, text, "has no port, or no host before it");
	if (parse_port(port_text, &port) < 0)
		return addr_refuse(e, text, "has a port that is not 0 to 65535");
	if (!*host && !bracketed) {
		a->everywhere = 1;
		strcpy(host, "::");
		bracketed = 1;
	}
	if (!bracketed && strchr(host, ':'))
		return addr_refuse(e, text, "has an IPv6 address without brackets");
	if ((bracketed ? parse_v6(a, host) : parse_v4(a, host)) < 0)
		return addr_refuse(
			e, text,
			isalpha((unsigned char)*host) && !bracketed
				? "has a name; only localhost is known without a resolver"
				: "has no address of IPv4 or IPv6");
	if (a->any.sa_family == AF_INET6)
		((struct sockaddr_in6 *)&a->room)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&a->room)->sin_port = htons(port);
	return 0;
}

static void to_text(struct addr *a)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->room;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&a->room;
	char host[INET6_ADDRSTRLEN], name[IF_NAMESIZE] = "";

	if (a->any.sa_family == AF_UNIX) {
		snprintf(a->text, sizeof(a->text), "unix:%s", a->local.sun_path);
	} else if (a->everywhere) {
		snprintf(a->text, sizeof(a->text), ":%u", ntohs(in6->sin6_port));
	} else if (a->any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		if (in6->sin6_scope_id)
			if_indextoname(in6->sin6_scope_id, name);
		snprintf(a->text, sizeof(a->text), "[%s%s%s]:%u", host, *name ? "%" : "", name,
			 ntohs(in6->sin6_port));
	} else {
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(a->text, sizeof(a->text), "%s:%u", host, ntohs(in->sin_port));
	}
}

int addr_parse(struct addr *out, const char *text, struct err *e)
{
	struct addr a = { 0 };

	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 127)
			return addr_refuse(e, "", "has a blank or a control character in it");
	if ((strncmp(text, "unix:", 5) == 0 ? parse_unix(&a, text, text + 5, e)
					    : parse_tcp(&a, text, e)) < 0)
		return -1;
	to_text(&a);
	*out = a;
	return 0;
}

int addr_of(int fd, struct addr *out, struct err *e)
{
	struct addr a = { .len = sizeof(a.room) };
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a.room;
	int only = 1;

	if (getsockname(fd, &a.any, &a.len) < 0)
		return err_sys(e, "getsockname");
	if (a.any.sa_family != AF_UNIX && a.any.sa_family != AF_INET && a.any.sa_family != AF_INET6)
		return err_set(e, ERR_INVALID, "fd %d is not a socket of a known type", fd);
	if (a.any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr) &&
	    getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &(socklen_t){ sizeof(only) }) == 0)
		a.everywhere = !only;
	to_text(&a);
	*out = a;
	return 0;
}

/* ---- Which process listens there already ---- */

static unsigned port_of(const struct addr *a)
{
	return a->any.sa_family == AF_INET6
		       ? ntohs(((const struct sockaddr_in6 *)&a->room)->sin6_port)
		       : ntohs(((const struct sockaddr_in *)&a->room)->sin_port);
}

/* The inode of a socket that listens on the port, from /proc/net/tcp or tcp6. 0: none seen. */
static unsigned long addr_listener(const char *table, unsigned port)
{
	unsigned long inode, found = 0;
	unsigned at, state;
	char line[512];
	FILE *f = fopen(table, "re");

	if (!f)
		return 0;
	while (!found && fgets(line, sizeof(line), f))
		if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*u %*u %lu", &at,
			   &state, &inode) == 3 &&
		    at == port && state == 0x0a)
			found = inode;
	fclose(f);
	return found;
}

static int addr_holds(int fds, const char *link)
{
	auto_fd int again = openat(fds, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again < 0 ? NULL : fdopendir(again);
	struct dirent *entry;
	int found = 0;

	if (!d)
		return 0;
	again = -1; /* the stream's now */
	while (!found && (entry = readdir(d))) {
		char target[64];
		ssize_t n = readlinkat(fds, entry->d_name, target, sizeof(target) - 1);

		if (n > 0) {
			target[n] = 0;
			found = !strcmp(target, link);
		}
	}
	closedir(d);
	return found;
}

static void name_process(const char *pid, char *out, size_t size)
{
	char path[64], name[32] = "a process";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	f = fopen(path, "re");
	if (f) {
		if (fgets(name, sizeof(name), f))
			name[strcspn(name, "\n")] = 0;
		fclose(f);
	}
	for (char *c = name; *c; c++) /* a process chooses its name */
		*c = isprint((unsigned char)*c) ? *c : '?';
	snprintf(out, size, " by %s (pid %.20s)", name, pid);
}

/* " by nginx (pid 412)", or nothing if /proc does not show it. */
static void find_owner(unsigned port, char *out, size_t size)
{
	unsigned long inode = addr_listener("/proc/net/tcp", port);
	struct dirent *entry;
	char link[64];
	DIR *proc;

	*out = 0;
	inode = inode ? inode : addr_listener("/proc/net/tcp6", port);
	proc = inode ? opendir("/proc") : NULL;
	if (!proc)
		return;
	snprintf(link, sizeof(link), "socket:[%lu]", inode);
	while (!*out && (entry = readdir(proc))) {
		char path[300];
		auto_fd int fds = -1;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/fd", entry->d_name);
		fds = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fds >= 0 && addr_holds(fds, link))
			name_process(entry->d_name, out, size);
	}
	closedir(proc);
}

/* ---- listening ---- */

static int cannot_bind(const struct addr *a, struct err *e)
{
	char owner[80] = "";

	if (errno == EADDRINUSE) {
		find_owner(port_of(a), owner, sizeof(owner));
		return err_set(e, ERR_CONFLICT, "%s is in use%s", a->text, owner);
	}
	if (errno == EACCES)
		return err_set(e, ERR_DENIED,
			       "%s: ports below 1024 need root or CAP_NET_BIND_SERVICE", a->text);
	if (errno == EADDRNOTAVAIL)
		return err_set(e, ERR_INVALID, "%s is not an address of this machine", a->text);
	return err_sys(e, "bind to %s", a->text);
}

static int new_socket(int family, struct err *e)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? err_sys(e, "socket") : fd;
}

static int listen_tcp(const struct addr *a, int backlog, struct err *e)
{
	int v6 = a->any.sa_family == AF_INET6, v6_only = !a->everywhere, yes = 1;
	auto_fd int fd = new_socket(a->any.sa_family, e);

	if (fd < 0)
		return -1;
	/* A restart must not wait for the last connections of the previous daemon. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    (v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only)) < 0))
		return err_sys(e, "setsockopt");
	if (bind(fd, &a->any, a->len) < 0 || listen(fd, backlog) < 0)
		return cannot_bind(a, e);
	return steal_fd(&fd);
}

/* ":7070" on a kernel without IPv6. */
static int listen_everywhere(const struct addr *a, int backlog, struct err *e)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = ((const struct sockaddr_in6 *)&a->room)->sin6_port };
	struct addr v4 = *a;
	int fd = listen_tcp(a, backlog, e);

	if (fd >= 0 || (e->sys != EAFNOSUPPORT && e->kind != ERR_INVALID))
		return fd;
	memcpy(&v4.room, &in, sizeof(in));
	v4.len = sizeof(in);
	v4.everywhere = 0;
	return listen_tcp(&v4, backlog, e);
}

/* Checks that nothing is at the path, or removes a socket without a listener. */
static int make_way(const struct addr *a, struct err *e)
{
	const char *path = a->local.sun_path;
	auto_fd int probe = -1;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "%s", a->text);
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, ERR_CONFLICT, "%s: there is a file that is not a socket",
			       a->text);
	probe = new_socket(AF_UNIX, e);
	if (probe < 0)
		return -1;
	/* EAGAIN is a listener with a full queue; EACCES may be one. Only ECONNREFUSED means
	 * that no process listens. */
	if (connect(probe, &a->any, a->len) == 0 || (errno != ECONNREFUSED && errno != ENOENT))
		return err_set(e, ERR_CONFLICT, "%s is in use", a->text);
	if (unlink(path) < 0 && errno != ENOENT)
		return err_sys(e, "remove the stale socket %s", path);
	return 0;
}

static int listen_unix(const struct addr *a, int backlog, struct err *e)
{
	auto_fd int fd = make_way(a, e) < 0 ? -1 : new_socket(AF_UNIX, e);

	if (fd < 0)
		return -1;
	if (bind(fd, &a->any, a->len) < 0) {
		if (errno == EADDRINUSE) /* another process was faster */
			return err_set(e, ERR_CONFLICT, "%s is in use", a->text);
		return err_sys(e, "bind to %s", a->text);
	}
	/* Between bind and listen no client can connect, so none gets in with the mode before. */
	if (chmod(a->local.sun_path, 0660) < 0 || listen(fd, backlog) < 0) {
		err_sys(e, "listen on %s", a->text);
		unlink(a->local.sun_path);
		return -1;
	}
	return steal_fd(&fd);
}

int addr_listen(const struct addr *a, int backlog, struct err *e)
{
	if (a->any.sa_family == AF_UNIX)
		return listen_unix(a, backlog, e);
	return a->everywhere ? listen_everywhere(a, backlog, e) : listen_tcp(a, backlog, e);
}
