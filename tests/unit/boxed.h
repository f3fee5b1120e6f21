/* boxed.h - an init outside any box, for tests of its protocol. argv[1] of such a test is the
 * init executable. Each test starts it as a plain process (as the user of the test) with a first
 * connection, a listening socket and a directory for its upper layer, then sends it frames.
 * Prints TAP. */
#pragma once
#include "base/err.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "init/exec_steps.h"
#include "wire/frame.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#define PATIENCE_MS 60000 /* longest wait for one event; reached only if a test fails */
#define ALL (~0ull)

/* ---- the harness ---- */

static const char *init_path;
static char dir[] = "/tmp/init-test-XXXXXX"; /* of this run: socket, upper layer, files */
static jmp_buf failed;
static char why[512];

static __attribute__((noreturn, format(printf, 1, 2))) void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	longjmp(failed, 1);
}

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			fail("line %d: %s", __LINE__, #cond);                                      \
	} while (0)

struct box { /* one init, and a first connection to it */
	int conn, listener;
	pid_t pid;
	struct sockaddr_un addr;
};

static char frame_bytes[WIRE_MAX]; /* the last frame received */
static int frame_len, frame_fd;
#define GOT(type) ((struct type *)(void *)frame_bytes)
#define HEAD GOT(frame)

static inline struct frame head(int type, uint32_t ref)
{
	return (struct frame){ .version = WIRE_VERSION, .type = (uint8_t)type, .ref = ref };
}

static inline char *in_dir(const char *name)
{
	static char path[8][256];
	static int turn;
	char *p = path[turn++ % 8];

	snprintf(p, 256, "%s/%s", dir, name);
	return p;
}

#ifdef BOXED_MUX
static inline void boxh_await_guest(struct box *b);

/* In the folder of init: init is then started by mux and the guest stub. */
static inline const char *mux_path(void)
{
	static char path[512];
	const char *slash = strrchr(init_path, '/');

	snprintf(path, sizeof(path), "%.*satoll-mux", slash ? (int)(slash + 1 - init_path) : 0,
		 init_path);
	return path;
}
#endif

/* fork(), into a new pid namespace on request: only a PID 1 may kill all processes. */
static inline pid_t fork_init(int alone)
{
	long pid;

	if (!alone)
		return fork();
	pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		pid = syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	return (pid_t)pid;
}

static inline void boxh_start(struct box *b, int alone)
{
	char uid[16];
	int pair[2], upper, boot;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	b->addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(b->addr.sun_path, sizeof(b->addr.sun_path), "%s/sock", dir);
	unlink(b->addr.sun_path);
	b->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(!bind(b->listener, (struct sockaddr *)&b->addr, sizeof(b->addr)));
	CHECK(!listen(b->listener, 32));
	upper = open(in_dir("upper"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	boot = open(in_dir("boot"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	b->pid = fork_init(alone);
	CHECK(b->pid >= 0);
	if (!b->pid) {
		char *argv[] = { "init", uid, "1", NULL, NULL }, *env[] = { NULL };
		int null = open("/dev/null", O_RDWR), i;
		int from[4] = { pair[1], b->listener, upper, boot };

		snprintf(uid, sizeof(uid), "%u", getuid());
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < 3; i++)
			dup2(null, i);
		for (i = 0; i < 4; i++) /* out of the way first */
			from[i] = fcntl(from[i], F_DUPFD, 100);
		for (i = 0; i < 4; i++)
			dup2(from[i], 3 + i);
		for (i = 7; i < 256; i++)
			close(i);
#ifdef BOXED_COUNTS /* a folder with the counters of a cgroup */
		mkdir(in_dir("counts"), 0755);
		i = open(in_dir("counts"), O_RDONLY | O_DIRECTORY);
		if (i >= 0 && i != 7 && dup2(i, 7) == 7)
			close(i);
		argv[3] = "guest";
#endif
#ifdef BOXED_ENGINE
		boxed_engine(uid, sizeof(uid)); /* of the test: the kernel of an engine */
#endif
#ifdef BOXED_MUX
		/* init is not PID 1 then, and finds its children in /proc. */
		if (alone &&
		    (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		     mount("proc", "/proc", "proc", 0, NULL)))
			_exit(98);
		/* Descriptor 8 is the executable of init; mux has no other arguments in `plain`. */
		i = open(init_path, O_RDONLY);
		if (dup2(i, 8) == 8)
			close(i);
		execve(mux_path(), argv, env);
#else
		/* A /proc of its own, where that is permitted. */
		if (alone && !unshare(CLONE_NEWNS) &&
		    !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
			(void)!mount("proc", "/proc", "proc", 0, NULL);
		execve(init_path, argv, env);
#endif
		_exit(99);
	}
	close(pair[1]);
	close(upper);
	close(boot);
	b->conn = pair[0];
#ifdef BOXED_MUX
	boxh_await_guest(b);
#endif
}

/* Its exit status, waited for; -1 if it does not end. */
static inline int box_wait(struct box *b)
{
	struct pollfd p = { .events = POLLIN };
	int status = -1;

	p.fd = (int)syscall(434 /* pidfd_open */, b->pid, 0);
	if (poll(&p, 1, PATIENCE_MS) == 1)
		waitpid(b->pid, &status, 0);
	close(p.fd);
	b->pid = 0;
	return status;
}

static inline void box_stop(struct box *b)
{
	close(b->conn);
	close(b->listener);
	if (b->pid > 0) {
		kill(b->pid, SIGKILL);
		waitpid(b->pid, NULL, 0);
	}
}

static inline int box_connect(struct box *b)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(!connect(fd, (struct sockaddr *)&b->addr, sizeof(b->addr)));
	return fd;
}

static inline int try_send(int conn, const void *body, size_t n, const void *tail, size_t tail_n,
			   int fd)
{
	struct iovec iov[2] = { { (void *)body, n }, { (void *)tail, tail_n } };
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };

	if (fd >= 0) {
		m.msg_control = room;
		m.msg_controllen = sizeof(room);
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof(int));
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(int));
	}
	return sendmsg(conn, &m, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static inline void send_frame(int conn, const void *body, size_t n, const void *tail, size_t tail_n,
			      int fd)
{
	if (try_send(conn, body, n, tail, tail_n, fd) < 0)
		fail("send %s: %s", frame_name(((const struct frame *)body)->type),
		     strerror(errno));
}

static inline void send_head(int conn, int type, uint32_t ref)
{
	struct frame f = head(type, ref);

	send_frame(conn, &f, sizeof(f), NULL, 0, -1);
}

static inline int readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* The next frame's type; 0 at the end of the stream. */
static inline int receive(int conn)
{
	char room[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { frame_bytes, sizeof(frame_bytes) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	m.msg_control = room;
	m.msg_controllen = sizeof(room);
	if (!readable(conn, PATIENCE_MS))
		fail("no frame came");
	frame_len = (int)recvmsg(conn, &m, MSG_CMSG_CLOEXEC);
	frame_fd = -1;
	if (frame_len <= 0)
		return 0;
	if (frame_check(frame_bytes, (uint32_t)frame_len) < 0)
		fail("a bad frame came");
	if (m.msg_controllen)
		memcpy(&frame_fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return HEAD->type;
}

static inline void expect(int conn, int type)
{
	int got = receive(conn);

	if (got == WIRE_ERROR && type != WIRE_ERROR)
		fail("wanted %s, got ERROR '%s'", frame_name((uint8_t)type), GOT(wire_error)->msg);
	if (got != type)
		fail("wanted %s, got %s", frame_name((uint8_t)type), frame_name((uint8_t)got));
}

#ifdef BOXED_MUX
/* The first frame of mux: the guest stub is ready. */
static inline void boxh_await_guest(struct box *b)
{
	expect(b->conn, WIRE_DONE);
}
#endif

static inline void expect_error(int conn, uint32_t kind)
{
	expect(conn, WIRE_ERROR);
	if (GOT(wire_error)->kind != kind)
		fail("wanted kind %u, got %u '%s'", kind, GOT(wire_error)->kind,
		     GOT(wire_error)->msg);
}

/* Sends a small request: when its answer arrives, all earlier frames have been handled. */
static inline struct wire_status ask_status(int conn)
{
	send_head(conn, WIRE_STAT, 999);
	expect(conn, WIRE_STATUS);
	return *GOT(wire_status);
}

/* ---- starting programs ---- */

static inline struct wire_start starting(uint32_t ref)
{
	return (struct wire_start){ .head = head(WIRE_START, ref),
				    .credit = { ALL, ALL, ALL },
				    .grace_ms = 10000 };
}

/* cwd, argv and an empty environment, in the format of START. */
static inline size_t pack(struct wire_start *st, char *to, const char *cwd, char *const *argv)
{
	char *at = stpcpy(to, cwd) + 1;

	for (st->argc = 0; argv[st->argc]; st->argc++)
		at = stpcpy(at, argv[st->argc]) + 1;
	st->tail_bytes = (uint32_t)(at - to);
	return st->tail_bytes;
}

static inline void start_in(int conn, struct wire_start *st, const char *cwd, char *const *argv)
{
	char tail[4096];
	size_t n = pack(st, tail, cwd, argv);

	send_frame(conn, st, sizeof(*st), tail, n, -1);
}

#define start(conn, st, ...) start_in(conn, st, "/", (char *[]){ __VA_ARGS__, NULL })
#define shell(conn, st, script) start(conn, st, "/bin/sh", "-c", script)

struct exec_output { /* output and exit of one exec */
	char text[WIRE_STREAMS][65536];
	uint64_t n[WIRE_STREAMS], first[WIRE_STREAMS], last[WIRE_STREAMS];
	struct wire_exit end;
};

static inline void hear_output(struct exec_output *h)
{
	struct wire_output *o = GOT(wire_output);
	int s = (int)o->stream;
	size_t n = (size_t)frame_len - sizeof(*o), i;

	CHECK(s < WIRE_STREAMS);
	if (!h->n[s])
		h->first[s] = h->last[s] = o->offset;
	CHECK(o->offset == h->last[s]);
	for (i = 0; i < n && h->n[s] + i < sizeof(h->text[s]) - 1; i++)
		h->text[s][h->n[s] + i] = frame_bytes[sizeof(*o) + i];
	h->n[s] += n;
	h->last[s] += n;
}

/* Reads all frames up to EXIT; other frames of the exec are skipped. */
static inline struct exec_output *hear(int conn)
{
	static struct exec_output h;

	memset(&h, 0, sizeof(h));
	for (;;) {
		int type = receive(conn);

		if (type == WIRE_OUTPUT)
			hear_output(&h);
		else if (type == WIRE_ERROR)
			fail("ERROR '%s'", GOT(wire_error)->msg);
		else if (type == WIRE_EXIT)
			break;
		else if (!type)
			fail("the connection ended");
	}
	h.end = *GOT(wire_exit);
	return &h;
}

static inline void send_stdin(int conn, uint32_t ref, const char *bytes, size_t n)
{
	struct frame f = head(WIRE_STDIN, ref);

	send_frame(conn, &f, sizeof(f), bytes, n, -1);
}

static inline void send_channel(int conn, uint32_t ref, const char *bytes, size_t n)
{
	struct frame f = head(WIRE_STDIN, ref);

	f.flags = WIRE_STDIN_CHANNEL;
	send_frame(conn, &f, sizeof(f), bytes, n, -1);
}

static inline void send_signal(int conn, uint32_t ref, int signo)
{
	struct wire_signal s = { .head = head(WIRE_SIGNAL, ref), .signo = signo };

	send_frame(conn, &s, sizeof(s), NULL, 0, -1);
}

static inline void send_credit(int conn, int type, uint32_t ref, uint32_t stream, uint64_t from,
			       uint64_t until, int flags)
{
	struct wire_output_window c = { .head = head(type, ref), .stream = stream };

	c.head.flags = (uint16_t)flags;
	c.from = from;
	c.until = until;
	send_frame(conn, &c, sizeof(c), NULL, 0, -1);
}

/* One of the figures of /proc/PID/status: "VmRSS", "RssAnon"... */
static inline long init_kib(const struct box *b, const char *name)
{
	char path[64], line[128];
	size_t n = strlen(name);
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", b->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, n) == 0 && line[n] == ':')
			sscanf(line + n + 1, "%ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

/* ---- the file worker ---- */

static inline int open_worker(struct box *b)
{
	send_head(b->conn, WIRE_FILES, 3);
	expect(b->conn, WIRE_FD);
	CHECK(frame_fd >= 0 && HEAD->ref == 3);
	return frame_fd;
}

static inline void ask_path(int w, int type, uint32_t ref, const char *path, size_t n)
{
	struct frame f = head(type, ref);

	send_frame(w, &f, sizeof(f), path, n, -1);
}

static inline void ask_put(int w, int type, uint32_t ref, const char *path, uint32_t mode,
			   uint32_t flags)
{
	struct wire_put p = { .head = head(type, ref), .mode = mode, .flags = flags };

	send_frame(w, &p, sizeof(p), path, strlen(path), -1);
}

static inline void put_text(int w, uint32_t ref, const char *path, const char *text, uint32_t mode,
			    uint32_t flags)
{
	ask_put(w, WIRE_PUT, ref, path, mode, flags);
	if (*text)
		ask_path(w, WIRE_DATA, ref, text, strlen(text));
	ask_path(w, WIRE_DATA, ref, NULL, 0);
}

/* The bytes of a GET, up to its empty DATA. */
static inline uint64_t get_bytes(int w, const char *path, uint64_t from, uint64_t most, char *to,
				 size_t room)
{
	struct wire_get g = { .head = head(WIRE_GET, 8), .from = from, .bytes = most };
	uint64_t got = 0;

	send_frame(w, &g, sizeof(g), path, strlen(path), -1);
	expect(w, WIRE_ENTRY);
	for (;;) {
		size_t n;

		expect(w, WIRE_DATA);
		n = (size_t)frame_len - sizeof(struct frame);
		if (!n)
			return got;
		if (got + n <= room)
			memcpy(to + got, frame_bytes + sizeof(struct frame), n);
		got += n;
	}
}

static inline int count_names(const char *path)
{
	DIR *d = opendir(path);
	int n = -2; /* "." and ".." */

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* ---- the runner ---- */

struct test {
	void (*run)(struct box *b);
	const char *name;
	int alone;  /* as PID 1 of a pid namespace */
	int direct; /* about init itself: not through mux */
};
#define TEST(name)                                                                                 \
	{                                                                                          \
		name, #name, 0, 0                                                                  \
	}
#define TEST_DIRECT(name)                                                                          \
	{                                                                                          \
		name, #name, 0, 1                                                                  \
	}
#define TEST_PID1_DIRECT(name)                                                                     \
	{                                                                                          \
		name, #name, 1, 1                                                                  \
	}
#define TEST_PID1(name)                                                                            \
	{                                                                                          \
		name, #name, 1, 0                                                                  \
	}

static inline void print_result(int ok, size_t number, const char *name)
{
	char words[128];
	size_t i;

	for (i = 0; name[i] && i < sizeof(words) - 1; i++)
		words[i] = name[i] == '_' ? ' ' : name[i];
	words[i] = '\0';
	printf("%sok %zu - %s\n", ok ? "" : "not ", number, words);
	if (!ok)
		printf("# %s\n", why);
	fflush(stdout);
}

/* A program of a test whose init was killed, or was no PID 1, is a child of this process now. */
static inline pid_t boxh_any_child(void)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	pid_t found = 0;

	while (d && !found && (de = readdir(d)) != NULL) {
		char path[300], text[400] = "", *after;
		int parent = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%s/stat", de->d_name);
		f = de->d_name[0] >= '1' && de->d_name[0] <= '9' ? fopen(path, "r") : NULL;
		if (!f)
			continue;
		after = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
		if (after && sscanf(after, ") %*c %d", &parent) == 1 && parent == getpid())
			found = (pid_t)atoi(de->d_name);
		fclose(f);
	}
	if (d)
		closedir(d);
	return found;
}

static inline void boxh_end_programs(void)
{
	pid_t left;

	while ((left = boxh_any_child()) > 0) {
		kill(left, SIGKILL);
		waitpid(left, NULL, 0);
	}
}

static inline int passes(const struct test *t)
{
	static struct box b; /* static: it must outlive the longjmp */
	int ok;

	b = (struct box){ .conn = -1, .listener = -1 };
	ok = !setjmp(failed);
	if (ok) {
		boxh_start(&b, t->alone);
		t->run(&b);
	}
	box_stop(&b);
	boxh_end_programs();
	return ok;
}

static inline void remove_dir(void)
{
	if (fork() == 0) {
		execlp("rm", "rm", "-rf", dir, NULL);
		_exit(1);
	}
	wait(NULL);
}

static inline int runs(const struct test *t, int argc, char **argv)
{
#ifdef BOXED_MUX
	if (t->direct)
		return 0;
#endif
	return argc < 3 || !strcmp(argv[2], t->name);
}

static inline int run_tests(const struct test *tests, size_t n, int argc, char **argv)
{
	int bad = 0;
	size_t i, count = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: init_test INIT [TEST]\n");
		return 2;
	}
	init_path = argv[1];
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* for boxh_end_programs() */
	if (!mkdtemp(dir) || mkdir(in_dir("upper"), 0755))
		return 2;
	for (i = 0; i < n; i++)
		count += runs(&tests[i], argc, argv);
	printf("1..%zu\n", count);
	for (i = count = 0; i < n; i++) {
		int ok;

		if (!runs(&tests[i], argc, argv))
			continue;
		ok = passes(&tests[i]);
		bad += !ok;
		print_result(ok, ++count, tests[i].name);
	}
	remove_dir();
	return bad != 0;
}
