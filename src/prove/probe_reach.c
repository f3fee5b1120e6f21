/* probe_reach.c - see probe.h. Ways to processes and to sockets of the host and of another box. */
#include "prove/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* ---- processes ---- */

static pid_t reach_pid(void)
{
	return probe_number("pid");
}

static int reach_kill(void)
{
	return kill(reach_pid(), SIGUSR1);
}

static int reach_tgkill(void)
{
	return (int)syscall(SYS_tgkill, reach_pid(), reach_pid(), SIGUSR1);
}

static int reach_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, reach_pid(), 0);

	return fd < 0 ? -1 : (int)syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0);
}

static int reach_pidfd_getfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, reach_pid(), 0);
	int taken = fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, fd, 3, 0);
	char self[40];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", taken);
	return taken < 0 ? -1 : probe_read(self);
}

static int reach_trace(void)
{
	return ptrace(PTRACE_ATTACH, reach_pid(), NULL, NULL) < 0 ? -1 : 0;
}

static int reach_memory(void)
{
	char path[40], c = 0;
	struct iovec here = { &c, 1 }, there = { (void *)4096, 1 };

	snprintf(path, sizeof(path), "/proc/%d/mem", reach_pid());
	if (open(path, O_RDWR | O_CLOEXEC) >= 0)
		return 0;
	/* EFAULT: permitted, but nothing is mapped there. */
	return process_vm_readv(reach_pid(), &here, 1, &there, 1, 0) < 0 && errno != EFAULT ? -1
											    : 0;
}

static int reach_priority(void)
{
	return setpriority(PRIO_PROCESS, (id_t)reach_pid(), 19);
}

static int reach_limits(void)
{
	struct rlimit less = { 17, 17 };

	return (int)syscall(SYS_prlimit64, reach_pid(), RLIMIT_NOFILE, &less, NULL);
}

static int reach_affinity(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	return sched_setaffinity(reach_pid(), sizeof(one), &one);
}

static int reach_oom_score(void)
{
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", reach_pid());
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, "999", 3) < 0 ? -1 : 0;
}

const struct probe_row probe_processes[] = {
	{ "host processes", "kill", reach_kill },
	{ "host processes", "tgkill", reach_tgkill },
	{ "host processes", "a signal by pidfd", reach_pidfd },
	{ "host processes", "a descriptor by pidfd", reach_pidfd_getfd },
	{ "host processes", "ptrace", reach_trace },
	{ "host processes", "its memory", reach_memory },
	{ "host processes", "its priority", reach_priority },
	{ "host processes", "its limits", reach_limits },
	{ "host processes", "its processors", reach_affinity },
	{ "host processes", "its OOM score", reach_oom_score },
	{ 0 },
};

/* ---- sockets ---- */

static int reach_connect(int family, int type, const void *addr, socklen_t len)
{
	int fd = socket(family, type | SOCK_CLOEXEC, 0);
	/* A network that drops packets must not cost the two seconds of an attempt. */
	struct timeval soon = { .tv_usec = 300000 };

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
	if (connect(fd, addr, len) < 0)
		return -1;
	return send(fd, probe_word("token"), strlen(probe_word("token")), MSG_NOSIGNAL) < 0 ? -1
											    : 0;
}

static int reach_inet(int type, const char *host, int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };

	if (inet_pton(AF_INET, host, &in.sin_addr) == 1)
		return reach_connect(AF_INET, type, &in, sizeof(in));
	if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1)
		return reach_connect(AF_INET6, type, &in6, sizeof(in6));
	errno = EINVAL;
	return -1;
}

static int reach_unix(const char *name, int abstract)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract +
				    strlen(name) + !abstract);

	snprintf(un.sun_path + abstract, sizeof(un.sun_path) - (size_t)abstract, "%s", name);
	return reach_connect(AF_UNIX, SOCK_STREAM, &un, len);
}

static int reach_loopback(void)
{
	return reach_inet(SOCK_STREAM, "127.0.0.1", probe_number("tcp"));
}

static int reach_loopback6(void)
{
	return reach_inet(SOCK_STREAM, "::1", probe_number("tcp"));
}

static int reach_addresses(void)
{
	const char *host;
	int reached = -1;

	errno = ENODATA;
	for (unsigned i = 0; (host = probe_nth("addr", i)); i++)
		if (reach_inet(SOCK_STREAM, host, probe_number("tcp")) == 0)
			reached = 0;
	return reached;
}

static int reach_udp(void)
{
	return reach_inet(SOCK_DGRAM, "127.0.0.1", probe_number("udp"));
}

static int reach_abstract(void)
{
	return reach_unix(probe_word("abstract"), 1);
}

static int reach_path(void)
{
	return reach_unix(probe_word("path"), 0);
}

static int reach_vsock(void)
{
	int reached = -1;

	for (unsigned cid = 1; cid <= 3; cid++) {
		struct sockaddr_vm vm = { .svm_family = AF_VSOCK,
					  .svm_cid = cid,
					  .svm_port = (unsigned)probe_number("vsock") };

		if (reach_connect(AF_VSOCK, SOCK_STREAM, &vm, sizeof(vm)) == 0)
			reached = 0;
	}
	return reached;
}

static int reach_metadata(void)
{
	return reach_inet(SOCK_STREAM, "169.254.169.254", 80);
}

/* Frames of the host's network, without a connection. */
static int reach_packets(void)
{
	return socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) < 0 ? -1 : 0;
}

/* ---- the other box ---- */

static int reach_other_loopback(void)
{
	return reach_inet(SOCK_STREAM, "127.0.0.1", probe_number("other_tcp"));
}

static int reach_other_abstract(void)
{
	return reach_unix(probe_word("other_abstract"), 1);
}

static int reach_other_file(void)
{
	static const char *const folders[] = { "/dev/shm", "/tmp", "/home/user", "/var/tmp" };
	char path[200];
	int found = -1;

	for (unsigned i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], probe_word("other_abstract"));
		if (probe_read(path) == 0)
			found = 0;
	}
	return found;
}

static int reach_other_kill(void)
{
	const char *pid;
	int reached = -1;

	errno = ENODATA;
	for (unsigned i = 0; (pid = probe_nth("other_pid", i)); i++)
		if (kill(atoi(pid), SIGKILL) == 0)
			reached = 0;
	return reached;
}

const struct probe_row probe_sockets[] = {
	{ "host sockets", "TCP at 127.0.0.1", reach_loopback },
	{ "host sockets", "TCP at ::1", reach_loopback6 },
	{ "host sockets", "TCP at the addresses of the host", reach_addresses },
	{ "host sockets", "UDP at 127.0.0.1", reach_udp },
	{ "host sockets", "an abstract socket", reach_abstract },
	{ "host sockets", "a socket in a folder", reach_path },
	{ "host sockets", "vsock", reach_vsock },
	{ "host sockets", "the metadata address", reach_metadata },
	{ "host sockets", "packets", reach_packets },
	{ "other box", "TCP at 127.0.0.1", reach_other_loopback },
	{ "other box", "an abstract socket", reach_other_abstract },
	{ "other box", "files in shared places", reach_other_file },
	{ "other box", "kill", reach_other_kill },
	{ 0 },
};
