/* canary.c - things of the host that a box must not reach, and what has happened to them. */
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/id.h"
#include "prove/prove_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

static int canary_token(char out[PROVE_TOKEN], struct err *e)
{
	unsigned char bytes[(PROVE_TOKEN - 1) / 2];

	if (id_random(bytes, sizeof(bytes), e) < 0)
		return -1;
	hex_encode(out, bytes, sizeof(bytes));
	return 0;
}

/* ---- the folder ---- */

static void canary_remove_folder(const char *folder)
{
	static const char *const names[] = { "canary", "socket", "made-by-the-box" };
	char path[200];

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

/* A process that waits for the end of this one, also by SIGKILL, and then removes the folder. Closing c->guard ends it. */
static int canary_start_guard(struct prove_canary *c, struct err *e)
{
	int pair[2];
	char byte;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe to the guard");
	c->guard_pid = fork();
	if (c->guard_pid == 0) {
		setsid();
		signal(SIGHUP, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		prctl(PR_SET_NAME, "atoll-guard");
		/* It holds no other descriptor of this process: the boxes end when those are closed. */
		dup2(pair[0], 3);
		syscall(SYS_close_range, 4, ~0U, 0);
		while (read(3, &byte, 1) < 0 && errno == EINTR)
			;
		canary_remove_folder(c->folder);
		_exit(0);
	}
	close(pair[0]);
	c->guard = pair[1];
	if (c->guard_pid < 0) {
		own_close_fd(&c->guard);
		return err_sys(e, "fork the guard");
	}
	return 0;
}

static int canary_make_file(struct prove_canary *c, struct err *e)
{
	struct {
		struct file_handle h;
		unsigned char bytes[128];
	} handle = { .h.handle_bytes = 128 };
	char path[96];
	auto_fd int fd = -1;
	int mount_id;

	snprintf(path, sizeof(path), "%s/canary", c->folder);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0 || write(fd, c->file, strlen(c->file)) < 0)
		return err_sys(e, "create %s", path);
	if (name_to_handle_at(fd, "", &handle.h, &mount_id, AT_EMPTY_PATH) == 0) {
		hex_encode(c->handle, handle.bytes, handle.h.handle_bytes);
		c->handle_type = handle.h.handle_type;
	}
	return 0;
}

static int canary_make_folder(struct prove_canary *c, struct err *e)
{
	snprintf(c->folder, sizeof(c->folder), "/tmp/atoll-prove-XXXXXX");
	if (!mkdtemp(c->folder)) {
		c->folder[0] = 0;
		return err_sys(e, "create a folder in /tmp");
	}
	if (canary_start_guard(c, e) < 0)
		return -1;
	/* Every user of the host may read it, so that the isolation alone protects it. */
	if (chmod(c->folder, 0777) < 0)
		return err_sys(e, "chmod %s", c->folder);
	return canary_make_file(c, e);
}

void canary_foreign_file(const struct prove_canary *c, char out[64])
{
	DIR *d = opendir(c->folder);
	struct dirent *entry;

	out[0] = 0;
	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "canary") != 0 &&
		    strcmp(entry->d_name, "socket") != 0)
			snprintf(out, 64, "%.60s", entry->d_name);
	if (d)
		closedir(d);
}

/* ---- the process ---- */

static _Noreturn void canary_be_process(const struct prove_canary *c, pid_t parent)
{
	char variable[80];
	char *argv[] = { (char *)"sleep", (char *)"600", NULL };
	char *env[] = { variable, NULL };
	int secret = memfd_create("canary", 0);

	snprintf(variable, sizeof(variable), "CANARY=%s", c->environment);
	if (secret < 0 || write(secret, c->descriptor, strlen(c->descriptor)) < 0 ||
	    dup2(secret, 3) < 0)
		_exit(1);
	syscall(SYS_close_range, 4, ~0U, 0);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	execve("/bin/sleep", argv, env);
	_exit(127);
}

/* State, tracer, pending signals, priority, limits, processors, OOM score: all that the probe tries to change. */
static void canary_process_state(pid_t pid, char out[400])
{
	static const char *const lines[] = { "State:", "TracerPid:", "SigPnd:", "ShdPnd:",
					     "Cpus_allowed:" };
	char path[64], line[256], score[16] = "";
	struct rlimit files = { 0 };
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	f = fopen(path, "re");
	if (f && !fgets(score, sizeof(score), f))
		score[0] = 0;
	if (f)
		fclose(f);
	score[strcspn(score, "\n")] = 0;
	prlimit(pid, RLIMIT_NOFILE, NULL, &files);
	snprintf(out, 400, "OOM score %s; priority %d; descriptors %llu", score,
		 getpriority(PRIO_PROCESS, (id_t)pid), (unsigned long long)files.rlim_cur);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		for (unsigned i = 0; i < ARRAY_LEN(lines); i++)
			if (!strncmp(line, lines[i], strlen(lines[i]))) {
				line[strcspn(line, "\n")] = 0;
				n = strlen(out);
				snprintf(out + n, 400 - n, "; %.60s", line);
			}
	if (f)
		fclose(f);
}

static int canary_is_asleep(pid_t pid)
{
	char path[64], name[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (f && !fgets(name, sizeof(name), f))
		name[0] = 0;
	if (f)
		fclose(f);
	return !strcmp(name, "sleep\n");
}

static int canary_start_process(struct prove_canary *c, struct err *e)
{
	pid_t parent = getpid();
	char state[400];

	c->process = fork();
	if (c->process == 0)
		canary_be_process(c, parent);
	if (c->process < 0) {
		c->process = 0;
		return err_sys(e, "fork");
	}
	for (unsigned i = 0; i < 2000; i++) {
		canary_process_state(c->process, state);
		if (canary_is_asleep(c->process) && strstr(state, "S (sleeping)")) {
			snprintf(c->process_before, sizeof(c->process_before), "%s", state);
			return 0;
		}
		if (waitpid(c->process, NULL, WNOHANG) == c->process) {
			c->process = 0;
			return err_set(e, ERR_SYS, "/bin/sleep could not be started");
		}
		usleep(1000);
	}
	return err_set(e, ERR_SYS, "/bin/sleep did not start");
}

void canary_process_changes(const struct prove_canary *c, char out[200])
{
	char now[400];
	const char *a = c->process_before, *b = now;

	out[0] = 0;
	if (waitpid(c->process, NULL, WNOHANG) == c->process) {
		snprintf(out, 200, "it was killed");
		return;
	}
	canary_process_state(c->process, now);
	if (!strcmp(a, b))
		return;
	while (*a && *a == *b)
		a++, b++;
	while (b > now && b[-1] != ';')
		b--;
	snprintf(out, 200, "changed: %.*s", (int)strcspn(b, ";"), b + (*b == ' '));
}

/* ---- sockets ---- */

static int canary_listen(int family, int type, const void *addr, socklen_t len)
{
	int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), no = 0;

	if (fd < 0)
		return -1;
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, addr, len) < 0 || (type == SOCK_STREAM && listen(fd, 16) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static unsigned canary_port(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	if (fd < 0 || getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return 0;
	if (at.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&at)->sin6_port);
	if (at.ss_family == AF_VSOCK)
		return ((struct sockaddr_vm *)&at)->svm_port;
	return ntohs(((struct sockaddr_in *)&at)->sin_port);
}

/* Of any address family that the host has; IPv4 alone where it has no IPv6. */
static int canary_listen_inet(int type)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any };
	struct sockaddr_in in = { .sin_family = AF_INET };
	int fd = canary_listen(AF_INET6, type, &in6, sizeof(in6));

	return fd >= 0 ? fd : canary_listen(AF_INET, type, &in, sizeof(in));
}

static int canary_open_sockets(struct prove_canary *c, struct err *e)
{
	struct sockaddr_vm vm = { .svm_family = AF_VSOCK,
				  .svm_cid = VMADDR_CID_ANY,
				  .svm_port = VMADDR_PORT_ANY };
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	c->tcp = canary_listen_inet(SOCK_STREAM);
	c->udp = canary_listen_inet(SOCK_DGRAM);
	if (c->tcp < 0 || c->udp < 0)
		return err_sys(e, "open a socket");
	c->vsock = canary_listen(AF_VSOCK, SOCK_STREAM, &vm, sizeof(vm));
	c->tcp_port = canary_port(c->tcp);
	c->udp_port = canary_port(c->udp);
	c->vsock_port = canary_port(c->vsock);
	snprintf(c->abstract_name, sizeof(c->abstract_name), "atoll-prove-%.16s", c->token);
	snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s", c->abstract_name);
	c->abstract = canary_listen(
		AF_UNIX, SOCK_STREAM, &un,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(c->abstract_name)));
	snprintf(c->socket_path, sizeof(c->socket_path), "%s/socket", c->folder);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", c->socket_path);
	c->path = canary_listen(AF_UNIX, SOCK_STREAM, &un, sizeof(un));
	if (c->abstract < 0 || c->path < 0 || chmod(c->socket_path, 0777) < 0)
		return err_sys(e, "listen on a unix socket");
	return 0;
}

static int canary_has_token(int fd, const char *token)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[64];
	ssize_t n;

	if (poll(&p, 1, 50) != 1)
		return 0;
	n = recv(fd, text, sizeof(text), MSG_DONTWAIT);
	return n >= (ssize_t)strlen(token) && !memcmp(text, token, strlen(token));
}

int canary_reached(int fd, const char *token, int datagrams)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int reached = 0;

	/* Others may connect to a port, too: only the token counts. */
	for (unsigned i = 0; fd >= 0 && i < 64 && poll(&p, 1, 0) == 1; i++) {
		auto_fd int conn = datagrams ? -1 : accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (!datagrams && conn < 0)
			break;
		reached |= canary_has_token(datagrams ? fd : conn, token);
	}
	return reached;
}

/* ---- all ---- */

int canary_init(struct prove_canary *c, struct err *e)
{
	c->tcp = c->udp = c->abstract = c->path = c->vsock = c->guard = -1;
	if (canary_token(c->file, e) < 0 || canary_token(c->environment, e) < 0 ||
	    canary_token(c->descriptor, e) < 0 || canary_token(c->other, e) < 0 ||
	    canary_token(c->token, e) < 0 || canary_make_folder(c, e) < 0 ||
	    canary_start_process(c, e) < 0 || canary_open_sockets(c, e) < 0)
		return err_in(e, "canaries");
	return 0;
}

void canary_fini(struct prove_canary *c)
{
	own_close_fd(&c->tcp);
	own_close_fd(&c->udp);
	own_close_fd(&c->abstract);
	own_close_fd(&c->path);
	own_close_fd(&c->vsock);
	if (c->process) {
		kill(c->process, SIGKILL);
		waitpid(c->process, NULL, 0);
		c->process = 0;
	}
	if (c->folder[0])
		canary_remove_folder(c->folder);
	own_close_fd(&c->guard);
	if (c->guard_pid > 0)
		waitpid(c->guard_pid, NULL, 0);
}

const char *canary_in(const struct prove_canary *c, const char *text)
{
	if (strstr(text, c->file))
		return "the canary file";
	if (strstr(text, c->environment))
		return "the environment of the canary process";
	if (strstr(text, c->descriptor))
		return "a descriptor of the canary process";
	return strstr(text, c->other) ? "the canary of the other box" : NULL;
}
