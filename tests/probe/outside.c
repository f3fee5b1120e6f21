/* outside.c - see probe.h. What a test needs on the host: listeners that a box must not reach, and
 * kernels without certain system calls. */
#include "probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef NS_GET_OWNER_UID
#define NS_GET_OWNER_UID _IO(0xb7, 0x4)
#endif

/* ---- listen ---- */

static int listen_at(int family, const void *address, socklen_t len)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, address, len) < 0 || listen(fd, 64) < 0) {
		perror("probe: listen");
		exit(3);
	}
	return fd;
}

static int listen_path(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	fd = listen_at(AF_UNIX, &a, sizeof(a));
	chmod(path, 0777);
	return fd;
}

static int listen_name(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s", name);
	return listen_at(AF_UNIX, &a, (socklen_t)(sizeof(a.sun_family) + 1 + strlen(name)));
}

static int listen_tcp(unsigned short *out_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = listen_at(AF_INET, &a, len);

	getsockname(fd, (struct sockaddr *)&a, &len);
	*out_port = ntohs(a.sin_port);
	return fd;
}

int outside_listen(const char *dir)
{
	char path[100], name[40];
	unsigned short port;
	int visitors = 0;

	snprintf(path, sizeof(path), "%s/socket", dir);
	snprintf(name, sizeof(name), "atoll-probe-%d", (int)getpid());
	struct pollfd on[] = { { .fd = listen_tcp(&port) },
			       { .fd = listen_name(name) },
			       { .fd = listen_path(path) },
			       { .fd = 0 } };

	for (int i = 0; i < 4; i++)
		on[i].events = POLLIN;
	printf("tcp %hu\nabstract %s\npath %s\nready\n", port, name, path);
	fflush(stdout);
	while (poll(on, 4, -1) > 0 && !on[3].revents)
		for (int i = 0; i < 3; i++)
			if (on[i].revents) {
				close(accept(on[i].fd, NULL, NULL));
				visitors++;
			}
	/* Connections that arrived before the end of stdin count, too. */
	while (poll(on, 3, 0) > 0)
		for (int i = 0; i < 3; i++)
			if (on[i].revents) {
				close(accept(on[i].fd, NULL, NULL));
				visitors++;
			}
	printf("visitors %d\n", visitors);
	return 0;
}

/* ---- a keeper with a secret key and a terminal ---- */

int outside_with_key(const char *description, char **command)
{
	static const char secret[] = "the launcher's secret";

	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 ||
	    syscall(SYS_add_key, "user", description, secret, sizeof(secret),
		    KEY_SPEC_SESSION_KEYRING) < 0)
		perror("probe: a key"); /* a kernel without keys has none to leak */
	execvp(command[0], command);
	perror(command[0]);
	return 127;
}

/* The parent process holds the master of the terminal and exits when the command does. */
int outside_on_terminal(char **command)
{
	int master, slave, status;
	pid_t pid;

	if (openpty(&master, &slave, NULL, NULL, NULL) < 0)
		return 3;
	pid = fork();
	if (pid == 0) {
		setsid();
		ioctl(slave, TIOCSCTTY, 0);
		close(master);
		execvp(command[0], command);
		_exit(127);
	}
	close(slave);
	printf("pid %d\n", (int)pid);
	fflush(stdout);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* ---- a machine that does not schedule a new process ---- */

static int trace_all_threads(const char *pid)
{
	long options =
		PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
	char path[64];
	const struct dirent *d;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%.20s/task", pid);
	tasks = opendir(path);
	while (tasks && (d = readdir(tasks)))
		if (d->d_name[0] != '.' &&
		    ptrace(PTRACE_SEIZE, atoi(d->d_name), NULL, (void *)options) < 0)
			return -1;
	return tasks ? closedir(tasks) : -1;
}

/* Lets every traced process continue but the first one that executes a program: it stays where it is,
 * before its first instruction. */
static void continue_traced(void)
{
	static int held;
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		int event = status >> 16, signo = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

		if (event == PTRACE_EVENT_EXEC && !held) {
			held = pid;
			printf("held %d\n", held);
		} else if (WIFSTOPPED(status)) {
			ptrace(PTRACE_CONT, pid, NULL, (void *)(long)(event ? 0 : signo));
		}
	}
}

int outside_hold_exec(const char *pid)
{
	struct signalfd_siginfo si;
	sigset_t set;
	struct pollfd on[2] = { { .fd = 0, .events = POLLIN }, { .events = POLLIN } };

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	on[1].fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (on[1].fd < 0 || trace_all_threads(pid) < 0) {
		perror("probe: trace");
		return 3;
	}
	printf("watching\n");
	while (!on[0].revents)
		if (poll(on, 2, -1) > 0 && on[1].revents &&
		    read(on[1].fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
			continue_traced();
	return 0; /* the kernel detaches from all of them */
}

/* ---- an older kernel ---- */

static const struct {
	const char *name;
	unsigned number;
} calls[] = {
	{ "landlock", SYS_landlock_create_ruleset },
	{ "openat2", SYS_openat2 },
	{ "close_range", SYS_close_range },
	{ "mount_setattr", SYS_mount_setattr },
	{ "open_tree", SYS_open_tree },
	{ "move_mount", SYS_move_mount },
	{ "fsopen", SYS_fsopen },
	{ "clone3", SYS_clone3 },
	{ "pidfd_open", SYS_pidfd_open },
	{ "seccomp", SYS_seccomp },
	{ "unshare", SYS_unshare },
	{ "keyctl", SYS_keyctl },
	{ "pidfd_send_signal", SYS_pidfd_send_signal },
};

static int number_of(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(calls[i].name, name))
			return (int)calls[i].number;
	fprintf(stderr, "probe: cannot block %s\n", name);
	exit(2);
}

int outside_block(char **words)
{
	struct sock_filter code[64] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog prog = { .len = 1, .filter = code };

	for (; *words && strcmp(*words, "--"); words++) {
		unsigned nr = (unsigned)number_of(*words);

		code[prog.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
		code[prog.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	}
	code[prog.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (!*words || !words[1])
		return 2;
	/* The older call, so that `seccomp` can be among the blocked. Root needs no no_new_privs. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0) {
		perror("probe: block");
		return 3;
	}
	execvp(words[1], words + 1);
	perror(words[1]);
	return 127;
}

/* ---- facts that /proc does not have as text ---- */

int outside_names(const char *pid)
{
	char path[64];
	struct stat st;
	unsigned uid;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, NS_GET_OWNER_UID, &uid) < 0) {
		perror("probe: user namespace");
		return 3;
	}
	printf("owner %u\n", uid);
	snprintf(path, sizeof(path), "/proc/%s/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		perror("probe: program");
		return 3;
	}
	printf("seals %#x\nmode %03o\n", fcntl(fd, F_GET_SEALS), st.st_mode & 07777);
	return 0;
}
