/* init_test.c - promises of PID 1, kept outside any box.
 * argv[1] is the init executable. Each test starts it as a plain process (user uid = ours) with a
 * birth connection, a listening socket and a directory for its upper layer, then speaks the wire
 * protocol with it. Prints TAP. */
#include "base/err.h"
#include "base/own.h"
#include "base/sha256.h"
#include "init/rows.h"
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
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#define PATIENCE_MS 20000 /* longest wait for one event; reached only when something is broken */
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

static struct frame head(int type, uint32_t ref)
{
	return (struct frame){ .version = WIRE_VERSION, .type = (uint8_t)type, .ref = ref };
}

static char *in_dir(const char *name)
{
	static char path[8][256];
	static int turn;
	char *p = path[turn++ % 8];

	snprintf(p, 256, "%s/%s", dir, name);
	return p;
}

static void box_start(struct box *b)
{
	char uid[16];
	int pair[2], upper;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	b->addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(b->addr.sun_path, sizeof(b->addr.sun_path), "%s/sock", dir);
	unlink(b->addr.sun_path);
	b->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(!bind(b->listener, (struct sockaddr *)&b->addr, sizeof(b->addr)));
	CHECK(!listen(b->listener, 32));
	upper = open(in_dir("upper"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(uid, sizeof(uid), "%u", getuid());
	b->pid = fork();
	if (!b->pid) {
		char *argv[] = { "init", uid, "1", NULL }, *env[] = { NULL };
		int null = open("/dev/null", O_RDWR), from[3] = { pair[1], b->listener, upper }, i;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < 3; i++)
			dup2(null, i);
		for (i = 0; i < 3; i++) /* out of the way first */
			from[i] = fcntl(from[i], F_DUPFD, 100);
		for (i = 0; i < 3; i++)
			dup2(from[i], 3 + i);
		for (i = 6; i < 256; i++)
			close(i);
		execve(init_path, argv, env);
		_exit(99);
	}
	close(pair[1]);
	close(upper);
	b->conn = pair[0];
}

/* Its exit status, waited for; -1 if it does not end. */
static int box_wait(struct box *b)
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

static void box_stop(struct box *b)
{
	close(b->conn);
	close(b->listener);
	if (b->pid > 0) {
		kill(b->pid, SIGKILL);
		waitpid(b->pid, NULL, 0);
	}
}

static int box_connect(struct box *b)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(!connect(fd, (struct sockaddr *)&b->addr, sizeof(b->addr)));
	return fd;
}

static int try_send(int conn, const void *body, size_t n, const void *tail, size_t tail_n, int fd)
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

static void send_frame(int conn, const void *body, size_t n, const void *tail, size_t tail_n,
		       int fd)
{
	if (try_send(conn, body, n, tail, tail_n, fd) < 0)
		fail("send %s: %s", frame_name(((const struct frame *)body)->type),
		     strerror(errno));
}

static void send_head(int conn, int type, uint32_t ref)
{
	struct frame f = head(type, ref);

	send_frame(conn, &f, sizeof(f), NULL, 0, -1);
}

static int readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* The next frame's type; 0 at the end of the stream. */
static int receive(int conn)
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

static void expect(int conn, int type)
{
	int got = receive(conn);

	if (got == WIRE_ERROR && type != WIRE_ERROR)
		fail("wanted %s, got ERROR '%s'", frame_name((uint8_t)type), GOT(wire_error)->msg);
	if (got != type)
		fail("wanted %s, got %s", frame_name((uint8_t)type), frame_name((uint8_t)got));
}

static void expect_error(int conn, uint32_t kind)
{
	expect(conn, WIRE_ERROR);
	if (GOT(wire_error)->kind != kind)
		fail("wanted kind %u, got %u '%s'", kind, GOT(wire_error)->kind,
		     GOT(wire_error)->msg);
}

/* Asks something small: when the answer is here, all that was sent before has been handled. */
static struct wire_status ask_status(int conn)
{
	send_head(conn, WIRE_STAT, 999);
	expect(conn, WIRE_STATUS);
	return *GOT(wire_status);
}

/* ---- starting programs ---- */

static struct wire_start starting(uint32_t ref)
{
	return (struct wire_start){ .head = head(WIRE_START, ref),
				    .credit = { ALL, ALL },
				    .grace_ms = 10000 };
}

/* cwd, argv and an empty environment, as START wants them. */
static size_t pack(struct wire_start *st, char *to, const char *cwd, char *const *argv)
{
	char *at = stpcpy(to, cwd) + 1;

	for (st->argc = 0; argv[st->argc]; st->argc++)
		at = stpcpy(at, argv[st->argc]) + 1;
	st->tail_bytes = (uint32_t)(at - to);
	return st->tail_bytes;
}

static void start_in(int conn, struct wire_start *st, const char *cwd, char *const *argv)
{
	char tail[4096];
	size_t n = pack(st, tail, cwd, argv);

	send_frame(conn, st, sizeof(*st), tail, n, -1);
}

#define start(conn, st, ...) start_in(conn, st, "/", (char *[]){ __VA_ARGS__, NULL })
#define shell(conn, st, script) start(conn, st, "/bin/sh", "-c", script)

struct heard { /* what came out of one exec */
	char text[2][65536];
	uint64_t n[2], first[2], last[2];
	struct wire_exit end;
};

static void hear_output(struct heard *h)
{
	struct wire_output *o = GOT(wire_output);
	int s = (int)o->stream;
	size_t n = (size_t)frame_len - sizeof(*o), i;

	CHECK(s < 2);
	if (!h->n[s])
		h->first[s] = h->last[s] = o->offset;
	CHECK(o->offset == h->last[s]);
	for (i = 0; i < n && h->n[s] + i < sizeof(h->text[s]) - 1; i++)
		h->text[s][h->n[s] + i] = frame_bytes[sizeof(*o) + i];
	h->n[s] += n;
	h->last[s] += n;
}

/* Everything up to EXIT; other frames of the exec are skipped. */
static struct heard *hear(int conn)
{
	static struct heard h;

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

static void send_stdin(int conn, uint32_t ref, const char *bytes, size_t n)
{
	struct frame f = head(WIRE_STDIN, ref);

	send_frame(conn, &f, sizeof(f), bytes, n, -1);
}

static void send_signal(int conn, uint32_t ref, int signo)
{
	struct wire_signal s = { .head = head(WIRE_SIGNAL, ref), .signo = signo };

	send_frame(conn, &s, sizeof(s), NULL, 0, -1);
}

static void send_credit(int conn, int type, uint32_t ref, uint32_t stream, uint64_t from,
			uint64_t until, int flags)
{
	struct wire_credit c = { .head = head(type, ref), .stream = stream };

	c.head.flags = (uint16_t)flags;
	c.from = from;
	c.until = until;
	send_frame(conn, &c, sizeof(c), NULL, 0, -1);
}

static long init_rss_kib(const struct box *b)
{
	char path[64], line[128];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", b->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmRSS: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

/* ---- birth ---- */

static void end_of_file_before_keep_ends_init(struct box *b)
{
	close(b->conn);
	b->conn = -1;
	CHECK(box_wait(b) == 0);
}

static void after_keep_the_birth_connection_is_like_any_other(struct box *b)
{
	int other;

	send_head(b->conn, WIRE_KEEP, 0);
	ask_status(b->conn);
	other = box_connect(b);
	close(b->conn);
	b->conn = other;
	while (ask_status(other).clients != 1)
		;
}

static void adopt_writes_a_zero_into_each_descriptor(struct box *b)
{
	struct frame f = head(WIRE_ADOPT, 0);
	char got[8] = "";
	int p[2];

	CHECK(!pipe(p));
	send_frame(b->conn, &f, sizeof(f), NULL, 0, p[1]);
	CHECK(read(p[0], got, sizeof(got)) == 1 && got[0] == '0');
	close(p[0]);
	close(p[1]);
}

static void a_failed_adopt_ends_init(struct box *b)
{
	struct frame f = head(WIRE_ADOPT, 0);
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	send_frame(b->conn, &f, sizeof(f), NULL, 0, fd);
	close(fd);
	CHECK(WEXITSTATUS(box_wait(b)) == 70);
}

static void adopt_comes_too_late_after_the_first_start(struct box *b)
{
	struct wire_start st = starting(1);
	struct frame f = head(WIRE_ADOPT, 0);

	send_head(b->conn, WIRE_KEEP, 0);
	start(b->conn, &st, "true");
	hear(b->conn);
	send_frame(b->conn, &f, sizeof(f), NULL, 0, 2);
	CHECK(!receive(b->conn));
}

static void a_stranger_may_neither_keep_nor_adopt(struct box *b)
{
	int a = box_connect(b), c = box_connect(b);
	struct frame f = head(WIRE_ADOPT, 0);

	send_head(a, WIRE_KEEP, 0);
	CHECK(!receive(a));
	send_frame(c, &f, sizeof(f), NULL, 0, 2);
	CHECK(!receive(c));
	close(a);
	close(c);
	ask_status(b->conn);
}

static void a_leash_ends_init_with_its_connection(struct box *b)
{
	int other = box_connect(b);

	send_head(b->conn, WIRE_KEEP, 0);
	send_head(other, WIRE_LEASH, 0);
	ask_status(other);
	close(other);
	CHECK(box_wait(b) == 0);
}

/* ---- programs ---- */

static void a_program_runs_and_its_status_comes_back(struct box *b)
{
	struct wire_start st = starting(7);
	struct heard *h;

	st.head.flags = WIRE_START_TOLD;
	shell(b->conn, &st, "exit 3");
	expect(b->conn, WIRE_STARTED);
	CHECK(GOT(wire_started)->pid > 0 && HEAD->ref == 7);
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_EXIT && h->end.status == 3 && h->end.head.ref == 7);
	CHECK(h->end.wall_us > 0 && h->end.max_rss_kib > 0 && h->end.disk_size > 0);
	CHECK(!h->end.cut && !h->end.dropped[0]);
}

static void output_has_offsets_and_streams(struct box *b)
{
	struct wire_start st = starting(1);
	struct heard *h;

	shell(b->conn, &st, "echo one; echo two >&2; echo three");
	h = hear(b->conn);
	CHECK(!strcmp(h->text[0], "one\nthree\n") && h->first[0] == 0);
	CHECK(!strcmp(h->text[1], "two\n") && h->first[1] == 0);
	CHECK(h->end.bytes[0] == 10 && h->end.bytes[1] == 4);
}

static void directory_environment_and_path_are_as_asked(struct box *b)
{
	static const char tail[] = "/tmp\0sh\0-c\0pwd; echo $A $PATH\0A=b c\0PATH=/nowhere:/bin";
	struct wire_start st = starting(1);

	st.argc = 3;
	st.envc = 2;
	st.tail_bytes = sizeof(tail);
	send_frame(b->conn, &st, sizeof(st), tail, sizeof(tail), -1);
	CHECK(!strcmp(hear(b->conn)->text[0], "/tmp\nb c /nowhere:/bin\n"));
}

static void strings_may_come_in_a_memfd(struct box *b)
{
	auto_fd int fd = memfd_create("args", MFD_CLOEXEC);
	auto_free char *tail = calloc(1, 1 << 20);
	struct wire_start st = starting(1);
	char *at = tail;
	int i;

	at = stpcpy(stpcpy(stpcpy(stpcpy(at, "/") + 1, "sh") + 1, "-c") + 1, "echo $#; echo $0") +
	     1;
	for (i = 0; i < 3000; i++)
		at = stpcpy(at, "a fairly long argument, to get beyond what one frame can hold") +
		     1;
	st.argc = 3003;
	st.tail_bytes = (uint32_t)(at - tail);
	st.head.flags = WIRE_START_MEMFD;
	CHECK(write(fd, tail, st.tail_bytes) == (ssize_t)st.tail_bytes);
	send_frame(b->conn, &st, sizeof(st), NULL, 0, fd);
	CHECK(!strncmp(hear(b->conn)->text[0], "2999\na fairly", 13));
}

static void too_many_strings_are_an_exit_not_a_broken_box(struct box *b)
{
	auto_fd int fd = memfd_create("args", MFD_CLOEXEC);
	struct wire_start st = starting(1);
	struct heard *h;

	st.argc = 1;
	st.tail_bytes = 9 << 20;
	st.head.flags = WIRE_START_MEMFD;
	CHECK(!ftruncate(fd, st.tail_bytes));
	send_frame(b->conn, &st, sizeof(st), NULL, 0, fd);
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_EXEC && h->end.status == E2BIG);
	CHECK(!strcmp(h->end.step, "arguments"));
}

static void counts_that_do_not_match_are_refused(struct box *b)
{
	static const struct {
		uint32_t argc, envc, bytes;
	} wrong[] = { { 0, 0, 9 }, { 1, 2, 9 }, { 3, 0, 9 },    { 1, 0, 9 },
		      { 2, 0, 8 }, { 2, 0, 0 }, { ~0u, ~0u, 9 } };
	struct wire_start st = starting(1);
	size_t i;

	for (i = 0; i < ARRAY_LEN(wrong); i++) {
		st.argc = wrong[i].argc;
		st.envc = wrong[i].envc;
		st.tail_bytes = wrong[i].bytes;
		/* "/", "sh", "-ca": three strings, nine bytes */
		send_frame(b->conn, &st, sizeof(st), "/\0sh\0-ca", i == 4 ? 8 : 9, -1);
		expect_error(b->conn, ERR_INVALID);
	}
}

static void expect_no_exec(struct box *b, int err, const char *step)
{
	struct heard *h = hear(b->conn);

	if (h->end.why != WIRE_WHY_EXEC || h->end.status != err || strcmp(h->end.step, step))
		fail("why %u, status %d, step '%s'", h->end.why, h->end.status, h->end.step);
}

static void what_cannot_run_says_which_step_and_why(struct box *b)
{
	struct wire_start st = starting(1);
	int fd;

	start(b->conn, &st, "no-such-program");
	expect_no_exec(b, ENOENT, "program");
	st.head.ref++;
	start(b->conn, &st, "/etc/passwd");
	expect_no_exec(b, EACCES, "program");
	st.head.ref++;
	start_in(b->conn, &st, "/no/such/directory", (char *[]){ "true", NULL });
	expect_no_exec(b, ENOENT, "directory");
	st.head.ref++;
	start(b->conn, &st, "");
	expect_no_exec(b, ENOENT, "program");
	st.head.ref++;
	fd = open(in_dir("text"), O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	CHECK(write(fd, "no magic\n", 9) == 9);
	close(fd);
	start(b->conn, &st, in_dir("text"));
	expect_no_exec(b, ENOEXEC, "program");
}

static void a_child_keeps_nothing_of_init(struct box *b)
{
	struct wire_start st = starting(1);
	struct heard *h;

	/* ls itself opens one more; signals: none blocked, none ignored; no capability anywhere */
	shell(b->conn, &st,
	      "ls /proc/self/fd | tr '\\n' ' '; umask; grep -c 0000000000000000 /proc/self/status; "
	      "grep NoNewPrivs /proc/self/status");
	h = hear(b->conn);
	if (strcmp(h->text[0], "0 1 2 3 0022\n6\nNoNewPrivs:\t1\n") &&
	    strcmp(h->text[0], "0 1 2 3 0022\n7\nNoNewPrivs:\t1\n") &&
	    strcmp(h->text[0], "0 1 2 3 0022\n8\nNoNewPrivs:\t1\n"))
		fail("%s", h->text[0]);
}

static void file_size_is_limited_as_asked(struct box *b)
{
	struct wire_start st = starting(1);
	struct heard *h;

	st.fsize_bytes = 1024;
	start_in(b->conn, &st, dir,
		 (char *[]){ "sh", "-c", "exec head -c 4096 /dev/zero > big", NULL });
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_SIGNAL && h->end.status == SIGXFSZ);
}

static void a_duplicate_ref_is_a_conflict(struct box *b)
{
	struct wire_start st = starting(5);

	start(b->conn, &st, "cat"); /* stdin is /dev/null: ends at once */
	hear(b->conn);
	start(b->conn, &st, "true");
	expect_error(b->conn, ERR_CONFLICT);
	send_head(b->conn, WIRE_FORGET, 5);
	start(b->conn, &st, "true");
	CHECK(hear(b->conn)->end.status == 0);
}

static void rows_can_be_left_out_only_in_a_test_build(struct box *b)
{
	struct wire_start st = starting(1);
	int row = 0;

	while (strcmp(inside_names[row], "directory"))
		row++;
	st.without = 1ull << row;
	start_in(b->conn, &st, "/no/such/directory", (char *[]){ "/bin/true", NULL });
	if (receive(b->conn) == WIRE_EXIT) /* this is a test build */
		CHECK(GOT(wire_exit)->why == WIRE_WHY_EXIT && !GOT(wire_exit)->status);
	else
		CHECK(HEAD->type == WIRE_ERROR && GOT(wire_error)->kind == ERR_INVALID);
}

static void two_hundred_programs_leave_no_zombie(struct box *b)
{
	struct wire_start st = starting(1);
	struct wire_status s;
	char path[64];
	FILE *f;

	for (; st.head.ref <= 200; st.head.ref++) {
		shell(b->conn, &st, "true & true & exit 0"); /* two orphans each, perhaps */
		CHECK(hear(b->conn)->end.why == WIRE_WHY_EXIT);
	}
	s = ask_status(b->conn);
	CHECK(s.execs == 64 && !s.running && s.reaped >= 200);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", b->pid, b->pid);
	f = fopen(path, "re");
	CHECK(f && fgetc(f) == EOF);
	fclose(f);
}

static void the_oldest_finished_is_evicted_and_the_running_never(struct box *b)
{
	struct wire_start st = starting(1);

	st.head.flags = WIRE_START_STDIN;
	for (; st.head.ref <= 64; st.head.ref++) {
		start(b->conn, &st, "cat");
		expect(b->conn, WIRE_ROOM);
	}
	start(b->conn, &st, "cat");
	expect_error(b->conn, ERR_LIMIT);
	send_stdin(b->conn, 9, NULL, 0);
	CHECK(hear(b->conn)->end.head.ref == 9);
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_ROOM);
	send_credit(b->conn, WIRE_READ, 9, 0, 0, ALL, 0);
	expect_error(b->conn, ERR_NOT_FOUND);
	CHECK(ask_status(b->conn).running == 64);
}

static void listing_names_every_exec(struct box *b)
{
	struct wire_start st = starting(11);
	int seen = 0;

	shell(b->conn, &st, "echo hello");
	hear(b->conn);
	st.head.ref = 12;
	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_ROOM);
	send_head(b->conn, WIRE_EXECS, 77);
	while (receive(b->conn) == WIRE_EXEC) {
		seen += (int)HEAD->ref;
		if (HEAD->ref == 11)
			CHECK(GOT(wire_exec)->over && GOT(wire_exec)->tip[0] == 6);
		else
			CHECK(!GOT(wire_exec)->over && GOT(wire_exec)->pid > 0);
	}
	CHECK(HEAD->type == WIRE_DONE && HEAD->ref == 77 && seen == 23);
}

/* ---- output ---- */

static void a_second_connection_resumes_where_it_wants(struct box *b)
{
	struct wire_start st = starting(1);
	struct heard *h;
	auto_fd int other = -1;

	shell(b->conn, &st, "printf 0123456789; printf abc >&2");
	hear(b->conn);
	other = box_connect(b);
	send_credit(other, WIRE_READ, 1, 0, 4, ALL, WIRE_READ_MORE);
	expect(other, WIRE_READING);
	CHECK(GOT(wire_reading)->from == 4 && GOT(wire_reading)->tip == 10);
	send_credit(other, WIRE_READ, 1, 1, 0, ALL, 0);
	h = hear(other);
	CHECK(!strcmp(h->text[0], "456789") && h->first[0] == 4 && !strcmp(h->text[1], "abc"));
	CHECK(h->end.why == WIRE_WHY_EXIT);
}

static void two_readers_of_a_living_program_both_get_everything(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);

	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_ROOM);
	send_credit(other, WIRE_READ, 1, 0, 0, ALL, 0);
	expect(other, WIRE_READING);
	send_stdin(b->conn, 1, "shared", 6);
	send_stdin(b->conn, 1, NULL, 0);
	CHECK(!strcmp(hear(b->conn)->text[0], "shared"));
	CHECK(!strcmp(hear(other)->text[0], "shared"));
}

static void without_credit_the_program_waits_and_init_stays_small(struct box *b)
{
	struct wire_start st = starting(1);
	struct wire_exec x = { 0 };
	uint64_t total = 8 << 20, got = 0, until = 0, before = 0;

	st.log_bytes = 65536;
	st.credit[0] = st.credit[1] = 0;
	start(b->conn, &st, "head", "-c", "8388608", "/dev/zero");
	do { /* until the log is full and the pipe, too: the tip stands still */
		send_head(b->conn, WIRE_EXECS, 2);
		before = x.tip[0];
		expect(b->conn, WIRE_EXEC);
		x = *GOT(wire_exec);
		expect(b->conn, WIRE_DONE);
	} while (x.tip[0] != 65536 || before != x.tip[0]);
	CHECK(!x.over && x.pid > 0 && x.kept_from[0] == 0);
	CHECK(init_rss_kib(b) < 256);
	while (got < total) {
		until += 100000;
		send_credit(b->conn, WIRE_CREDIT, 1, 0, 0, until, 0);
		while (got < until && got < total) {
			expect(b->conn, WIRE_OUTPUT);
			CHECK(GOT(wire_output)->offset == got);
			got += (uint64_t)frame_len - sizeof(struct wire_output);
			CHECK(got <= until);
		}
	}
	expect(b->conn, WIRE_EXIT);
	CHECK(GOT(wire_exit)->bytes[0] == total && GOT(wire_exit)->status == 0);
	CHECK(GOT(wire_exit)->dropped[0] <= total - 65536 && !GOT(wire_exit)->cut);
}

static void exit_waits_for_the_credit_that_shows_the_last_byte(struct box *b)
{
	struct wire_start st = starting(1);
	struct wire_exec x;

	st.credit[0] = 3;
	shell(b->conn, &st, "printf abcdef");
	expect(b->conn, WIRE_OUTPUT);
	CHECK(frame_len == (int)sizeof(struct wire_output) + 3);
	do {
		send_head(b->conn, WIRE_EXECS, 2);
		expect(b->conn, WIRE_EXEC);
		x = *GOT(wire_exec);
		expect(b->conn, WIRE_DONE);
	} while (!x.over);
	send_credit(b->conn, WIRE_CREDIT, 1, 0, 0, 6, 0);
	expect(b->conn, WIRE_OUTPUT);
	CHECK(GOT(wire_output)->offset == 3);
	expect(b->conn, WIRE_EXIT);
}

static void a_reader_that_never_reads_costs_no_memory(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);
	uint64_t got = 0;

	st.log_bytes = 65536;
	start(other, &st, "head", "-c", "4194304", "/dev/zero"); /* all the credit, nobody reads */
	while (!readable(other, PATIENCE_MS))
		;
	CHECK(ask_status(b->conn).running == 1 && init_rss_kib(b) < 256);
	while (receive(other) == WIRE_OUTPUT) {
		CHECK(GOT(wire_output)->offset == got);
		got += (uint64_t)frame_len - sizeof(struct wire_output);
	}
	CHECK(HEAD->type == WIRE_EXIT && got == 4194304);
}

static void with_nobody_attached_the_oldest_bytes_go(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);
	struct heard *h;

	st.log_bytes = 8192;
	st.credit[0] = st.credit[1] = 0;
	start(other, &st, "head", "-c", "1048576", "/dev/zero");
	ask_status(other);
	close(steal_fd(&other));
	while (ask_status(b->conn).running)
		;
	send_credit(b->conn, WIRE_READ, 1, 0, 0, ALL, 0);
	expect(b->conn, WIRE_READING);
	CHECK(GOT(wire_reading)->tip == 1048576);
	CHECK(GOT(wire_reading)->from >= 1048576 - 8192 - 8192);
	CHECK(GOT(wire_reading)->from <= 1048576 - 8192);
	h = hear(b->conn);
	CHECK(h->last[0] == 1048576 && h->first[0] == h->end.dropped[0]);
}

static void a_daemon_that_keeps_the_pipe_is_cut_after_the_grace(struct box *b)
{
	struct wire_start st = starting(1);
	struct heard *h;

	st.grace_ms = 50;
	shell(b->conn, &st, "setsid sh -c 'while :; do sleep 1; done' & echo $!");
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_EXIT && h->end.cut == 3);
	kill(atoi(h->text[0]), SIGKILL);
}

/* ---- stdin ---- */

static void stdin_arrives_and_ends(struct box *b)
{
	struct wire_start st = starting(1);
	struct heard *h;

	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	send_stdin(b->conn, 1, "hello ", 6); /* sent with the START, before any answer */
	send_stdin(b->conn, 1, "world", 5);
	send_stdin(b->conn, 1, NULL, 0);
	h = hear(b->conn);
	CHECK(!strcmp(h->text[0], "hello world") && h->end.stdin_bytes == 11);
}

static void room_lets_a_megabyte_through(struct box *b)
{
	struct wire_start st = starting(1);
	uint64_t room = 0, sent = 0, total = 1 << 20, got = 0;
	static char zeros[30000];

	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	while (got < total) {
		uint64_t n = room - sent < sizeof(zeros) ? room - sent : sizeof(zeros);

		n = n < total - sent ? n : total - sent;
		if (n) {
			send_stdin(b->conn, 1, zeros, n);
			sent += n;
			continue;
		}
		if (receive(b->conn) == WIRE_ROOM) {
			CHECK(GOT(wire_room)->until > room);
			room = GOT(wire_room)->until;
		} else {
			CHECK(HEAD->type == WIRE_OUTPUT);
			got += (uint64_t)frame_len - sizeof(struct wire_output);
		}
	}
	send_stdin(b->conn, 1, NULL, 0);
	CHECK(hear(b->conn)->end.stdin_bytes == total);
}

static void more_than_the_room_ends_that_connection_only(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);
	static char zeros[40000];
	int i;

	st.head.flags = WIRE_START_STDIN;
	start(other, &st, "sleep", "1000");
	for (i = 0; i < 4; i++) {
		struct frame f = head(WIRE_STDIN, 1);

		try_send(other, &f, sizeof(f), zeros, sizeof(zeros), -1);
	}
	while (receive(other))
		CHECK(HEAD->type == WIRE_ROOM);
	CHECK(ask_status(b->conn).running == 1);
	send_signal(b->conn, 1, SIGKILL);
}

static void a_program_that_closed_its_stdin_is_no_problem(struct box *b)
{
	struct wire_start st = starting(1);
	struct heard *h;

	st.head.flags = WIRE_START_STDIN;
	shell(b->conn, &st, "exec 0<&-; echo closed; while :; do sleep 0.01; done");
	expect(b->conn, WIRE_ROOM);
	expect(b->conn, WIRE_OUTPUT);
	send_stdin(b->conn, 1, "into the void", 13);
	send_stdin(b->conn, 1, NULL, 0);
	send_signal(b->conn, 1, SIGKILL);
	h = hear(b->conn);
	CHECK(h->end.status == SIGKILL && !h->end.stdin_bytes);
}

/* ---- terminals, signals, time ---- */

/* Reads output until the text is in it. */
static void hear_text(int conn, struct heard *h, const char *text)
{
	while (!strstr(h->text[0], text)) {
		int type = receive(conn);

		if (type == WIRE_OUTPUT)
			hear_output(h);
		else if (type != WIRE_ROOM)
			fail("wanted '%s', got %s", text, frame_name((uint8_t)type));
	}
}

static void a_terminal_echoes_resizes_and_ends(struct box *b)
{
	struct wire_resize size = { .head = head(WIRE_RESIZE, 1), .rows = 50, .cols = 132 };
	struct wire_start st = starting(1);
	struct heard h = { 0 };

	st.head.flags = WIRE_START_PTY | WIRE_START_STDIN;
	st.rows = 25;
	st.cols = 81;
	shell(b->conn, &st,
	      "stty size; test -t 2 && tty; read line; echo got $line; read line; stty size; "
	      "while read line; do :; done; while read line; do echo again $line; done; exit 5");
	hear_text(b->conn, &h, "25 81\r\n/dev/pts/");
	send_stdin(b->conn, 1, "typed\n", 6);
	hear_text(b->conn, &h, "typed\r\ngot typed\r\n");
	send_frame(b->conn, &size, sizeof(size), NULL, 0, -1);
	send_stdin(b->conn, 1, "x\n", 2);
	hear_text(b->conn, &h, "50 132");
	send_stdin(b->conn, 1, NULL, 0); /* ^D ends the first loop */
	send_stdin(b->conn, 1, "y\n", 2);
	hear_text(b->conn, &h, "again y");
	send_stdin(b->conn, 1, NULL, 0);
	CHECK(hear(b->conn)->end.status == 5);
}

static void the_last_words_on_a_terminal_are_not_lost(struct box *b)
{
	struct wire_start st = starting(1);

	st.head.flags = WIRE_START_PTY;
	for (; st.head.ref <= 50; st.head.ref++) {
		start(b->conn, &st, "/bin/echo", "last words");
		CHECK(!strcmp(hear(b->conn)->text[0], "last words\r\n"));
	}
}

static void control_c_reaches_the_terminals_foreground(struct box *b)
{
	struct wire_start st = starting(1);
	struct heard h = { 0 };

	st.head.flags = WIRE_START_PTY;
	shell(b->conn, &st, "echo ready; exec sleep 1000");
	hear_text(b->conn, &h, "ready");
	send_stdin(b->conn, 1, "\003", 1);
	CHECK(hear(b->conn)->end.status == SIGINT);
}

static void a_signal_reaches_the_whole_group(struct box *b)
{
	struct wire_start st = starting(1);
	struct heard *h;

	shell(b->conn, &st, "sleep 1000 & echo; wait");
	expect(b->conn, WIRE_OUTPUT);
	send_signal(b->conn, 1, SIGTERM);
	h = hear(b->conn); /* comes only if the sleep has let go of the pipes as well */
	CHECK(h->end.why == WIRE_WHY_SIGNAL && h->end.status == SIGTERM && !h->end.cut);
	send_signal(b->conn, 1, SIGTERM); /* late, and no harm */
	send_signal(b->conn, 1, 65);
	expect_error(b->conn, ERR_INVALID);
	send_signal(b->conn, 2, SIGTERM);
	expect_error(b->conn, ERR_NOT_FOUND);
}

static void wall_time_ends_the_group(struct box *b)
{
	struct wire_start st = starting(1);
	struct heard *h;

	st.wall_ms = 80;
	shell(b->conn, &st, "sleep 1000 & wait");
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_WALL && h->end.status == SIGKILL && !h->end.cut);
	CHECK(h->end.wall_us >= 80000 && h->end.wall_us < 8000000);
}

static void a_client_that_leaves_does_not_end_its_program(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);

	st.head.flags = WIRE_START_STDIN;
	start(other, &st, "cat");
	expect(other, WIRE_ROOM);
	close(steal_fd(&other));
	send_credit(b->conn, WIRE_READ, 1, 0, 0, ALL, 0);
	expect(b->conn, WIRE_READING);
	expect(b->conn, WIRE_ROOM);
	send_stdin(b->conn, 1, "still here", 10);
	send_stdin(b->conn, 1, NULL, 0);
	CHECK(!strcmp(hear(b->conn)->text[0], "still here"));
}

/* ---- the connection ---- */

static void garbage_ends_only_the_connection_it_came_on(struct box *b)
{
	static const struct frame bad[] = {
		{ 2, WIRE_STAT, 0, 0 },
		{ WIRE_VERSION, 0, 0, 0 },
		{ WIRE_VERSION, 255, 0, 0 },
		{ WIRE_VERSION, WIRE_START, 0, 0 },
		{ WIRE_VERSION, WIRE_EXIT, 0, 0 },
		{ WIRE_VERSION, WIRE_CREATE, 0, 0 },
		{ WIRE_VERSION, WIRE_GET, 0, 0 },
	};
	struct wire_start st = starting(1);
	static char noise[65536];
	unsigned i, seed = 1;

	send_head(b->conn, WIRE_KEEP, 0);
	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_ROOM);
	for (i = 0; i < ARRAY_LEN(bad) + 100; i++) {
		auto_fd int other = box_connect(b);

		if (i < ARRAY_LEN(bad)) {
			send_frame(other, &bad[i], sizeof(bad[i]), NULL, 0, -1);
		} else {
			size_t n = (size_t)(rand_r(&seed) % 500) + 1, k;

			for (k = 0; k < n; k++)
				noise[k] = (char)rand_r(&seed);
			noise[0] = (char)(1 + (noise[0] & 1));
			if (n > 1 && (noise[1] == WIRE_LEASH || noise[1] == WIRE_SIGNAL))
				noise[1] = 0; /* the ones that are meant to do something */
			if (n > 1 && noise[0] == WIRE_VERSION)
				noise[1] = (char)((noise[1] & 31) ? noise[1] | (char)128 : 0);
			send_frame(other, noise, n, NULL, 0, -1);
		}
		CHECK(!receive(other));
	}
	send_stdin(b->conn, 1, "alive", 5);
	send_stdin(b->conn, 1, NULL, 0);
	CHECK(!strcmp(hear(b->conn)->text[0], "alive"));
}

static void descriptors_nobody_asked_for_end_the_connection(struct box *b)
{
	auto_fd int other = box_connect(b);
	struct frame f = head(WIRE_STAT, 1);

	send_frame(other, &f, sizeof(f), NULL, 0, 2);
	CHECK(!receive(other));
	ask_status(b->conn);
}

static void the_seventeenth_client_is_turned_away(struct box *b)
{
	int fd[17], i;

	for (i = 0; i < 15; i++) {
		fd[i] = box_connect(b);
		CHECK(ask_status(fd[i]).clients == (unsigned)i + 2);
	}
	fd[15] = box_connect(b);
	CHECK(!receive(fd[15]));
	for (i = 0; i < 16; i++)
		close(fd[i]);
	while (ask_status(b->conn).clients != 1)
		;
}

static void connect_reaches_a_port_inside(struct box *b)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct wire_connect w = { .head = head(WIRE_CONNECT, 5) };
	auto_fd int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), server = -1,
		    client = -1;
	socklen_t n = sizeof(at);
	char got[4] = "";

	CHECK(!bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 1));
	CHECK(!getsockname(listener, (struct sockaddr *)&at, &n));
	w.port = ntohs(at.sin_port);
	send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
	expect(b->conn, WIRE_FD);
	client = frame_fd;
	CHECK(client >= 0 && HEAD->ref == 5);
	server = accept(listener, NULL, NULL);
	CHECK(write(client, "abc", 3) == 3 && read(server, got, 3) == 3 && !strcmp(got, "abc"));
	close(steal_fd(&listener));
	send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
	expect_error(b->conn, ERR_NOT_FOUND);
	CHECK(GOT(wire_error)->sys == ECONNREFUSED);
	w.port = 65536;
	send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
	expect_error(b->conn, ERR_INVALID);
}

/* ---- the file worker ---- */

static int open_worker(struct box *b)
{
	send_head(b->conn, WIRE_FILES, 3);
	expect(b->conn, WIRE_FD);
	CHECK(frame_fd >= 0 && HEAD->ref == 3);
	return frame_fd;
}

static void ask_path(int w, int type, uint32_t ref, const char *path, size_t n)
{
	struct frame f = head(type, ref);

	send_frame(w, &f, sizeof(f), path, n, -1);
}

static void ask_put(int w, int type, uint32_t ref, const char *path, uint32_t mode, uint32_t flags)
{
	struct wire_put p = { .head = head(type, ref), .mode = mode, .flags = flags };

	send_frame(w, &p, sizeof(p), path, strlen(path), -1);
}

static void put_text(int w, uint32_t ref, const char *path, const char *text, uint32_t mode,
		     uint32_t flags)
{
	ask_put(w, WIRE_PUT, ref, path, mode, flags);
	if (*text)
		ask_path(w, WIRE_DATA, ref, text, strlen(text));
	ask_path(w, WIRE_DATA, ref, NULL, 0);
}

/* The bytes of a GET, up to its empty DATA. */
static uint64_t get_bytes(int w, const char *path, uint64_t from, uint64_t most, char *to,
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

static int count_names(const char *path)
{
	DIR *d = opendir(path);
	int n = -2; /* "." and ".." */

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void a_file_is_put_whole_with_its_mode_and_its_folders(struct box *b)
{
	auto_fd int w = open_worker(b);
	char *path = in_dir("a/b/c.txt"), text[16] = "";
	struct stat st;

	put_text(w, 1, path, "first", 0750, 0);
	expect(w, WIRE_DONE);
	CHECK(HEAD->ref == 1 && !stat(path, &st) && (st.st_mode & 07777) == 0750);
	put_text(w, 2, path, "second", 0, 0); /* the mode stays */
	expect(w, WIRE_DONE);
	CHECK(get_bytes(w, path, 0, ALL, text, sizeof(text)) == 6 && !memcmp(text, "second", 6));
	CHECK(!stat(path, &st) && (st.st_mode & 07777) == 0750);
	put_text(w, 3, path, "third", 0, WIRE_PUT_NEW);
	expect_error(w, ERR_CONFLICT);
	CHECK(get_bytes(w, path, 3, 2, text, sizeof(text)) == 2 && !memcmp(text, "on", 2));
	CHECK(count_names(in_dir("a/b")) == 1); /* no temporary file is left */
}

static void a_failed_put_is_answered_once_and_its_data_swallowed(struct box *b)
{
	auto_fd int w = open_worker(b);

	put_text(w, 1, "/dev/null/x", "lost", 0644, 0);
	put_text(w, 2, in_dir("after"), "kept", 0644, 0);
	expect_error(w, ERR_NOT_FOUND);
	CHECK(HEAD->ref == 1 && GOT(wire_error)->sys == ENOTDIR);
	CHECK(strstr(GOT(wire_error)->msg, "/dev/null/x"));
	expect(w, WIRE_DONE);
	CHECK(HEAD->ref == 2);
	put_text(w, 3, dir, "a folder", 0644, 0);
	expect(w, WIRE_ERROR);
	put_text(w, 4, in_dir("a/"), "no name", 0644, 0);
	expect_error(w, ERR_INVALID);
}

static void an_upload_cut_short_leaves_nothing(struct box *b)
{
	auto_fd int w = open_worker(b);

	CHECK(!mkdir(in_dir("cut"), 0755));
	ask_put(w, WIRE_PUT, 1, in_dir("cut/file"), 0644, 0);
	ask_path(w, WIRE_DATA, 1, "half", 4);
	ask_path(w, WIRE_LIST, 2, in_dir("cut"), strlen(in_dir("cut"))); /* gives it up */
	expect(w, WIRE_DONE);
	CHECK(!count_names(in_dir("cut")));
	ask_put(w, WIRE_PUT, 3, in_dir("cut/file"), 0644, 0);
	ask_path(w, WIRE_DATA, 3, "half", 4);
	close(steal_fd(&w));
	while (count_names(in_dir("cut")) || ask_status(b->conn).reaped < 1)
		;
}

static void a_large_file_comes_back_as_it_went(struct box *b)
{
	auto_fd int w = open_worker(b);
	auto_free char *sent = malloc(3000000), *back = malloc(3000000);
	size_t i, n;

	for (i = 0; i < 3000000; i++)
		sent[i] = (char)(i * 7 + i / 251);
	ask_put(w, WIRE_PUT, 1, in_dir("large"), 0600, 0);
	for (i = 0; i < 3000000; i += n) {
		n = 3000000 - i < 60000 ? 3000000 - i : 60000;
		ask_path(w, WIRE_DATA, 1, sent + i, n);
	}
	ask_path(w, WIRE_DATA, 1, NULL, 0);
	expect(w, WIRE_DONE);
	CHECK(get_bytes(w, in_dir("large"), 0, ALL, back, 3000000) == 3000000);
	CHECK(!memcmp(sent, back, 3000000));
	CHECK(get_bytes(w, in_dir("large"), 2999999, 0, back, 8) == 1);
	CHECK(get_bytes(w, in_dir("large"), 5000000, 0, back, 8) == 0);
}

static void only_plain_files_are_read(struct box *b)
{
	struct wire_get g = { .head = head(WIRE_GET, 8) };
	auto_fd int w = open_worker(b);

	CHECK(!mkfifo(in_dir("fifo"), 0644));
	send_frame(w, &g, sizeof(g), in_dir("fifo"), strlen(in_dir("fifo")), -1);
	expect_error(w, ERR_INVALID); /* and it did not hang */
	send_frame(w, &g, sizeof(g), "/dev/zero", 9, -1);
	expect_error(w, ERR_INVALID);
	send_frame(w, &g, sizeof(g), dir, strlen(dir), -1);
	expect_error(w, ERR_INVALID);
	send_frame(w, &g, sizeof(g), "/no/such", 8, -1);
	expect_error(w, ERR_NOT_FOUND);
	send_frame(w, &g, sizeof(g), "/etc/passwd\0.txt", 16, -1);
	expect_error(w, ERR_INVALID);
}

static void names_are_made_listed_moved_and_looked_at(struct box *b)
{
	auto_fd int w = open_worker(b);
	char two[600];
	size_t n;
	int seen = 0;

	ask_put(w, WIRE_MKDIR, 1, in_dir("m/n/o"), 0700, 0);
	expect(w, WIRE_DONE);
	ask_put(w, WIRE_MKDIR, 1, in_dir("m/n/o"), 0700, 0);
	expect(w, WIRE_DONE);
	ask_put(w, WIRE_MKDIR, 1, in_dir("m/n/o"), 0700, WIRE_PUT_NEW);
	expect_error(w, ERR_CONFLICT);
	n = (size_t)snprintf(two, sizeof(two), "../target%c%s", 0, in_dir("m/link"));
	ask_path(w, WIRE_LINK, 2, two, n);
	expect(w, WIRE_DONE);
	n = (size_t)snprintf(two, sizeof(two), "%s%c%s", in_dir("m/n"), 0, in_dir("m/moved"));
	ask_path(w, WIRE_MOVE, 3, two, n);
	expect(w, WIRE_DONE);
	ask_path(w, WIRE_LIST, 4, in_dir("m"), strlen(in_dir("m")));
	while (receive(w) == WIRE_ENTRY) {
		struct wire_entry *e = GOT(wire_entry);

		seen += S_ISLNK(e->mode) && !strncmp((char *)(e + 1), "link", 4);
		seen += S_ISDIR(e->mode) && !strncmp((char *)(e + 1), "moved", 5) ? 10 : 0;
	}
	CHECK(HEAD->type == WIRE_DONE && seen == 11);
	ask_path(w, WIRE_ENTRY_OF, 5, in_dir("m/moved/o"), strlen(in_dir("m/moved/o")));
	expect(w, WIRE_ENTRY);
	CHECK(GOT(wire_entry)->mode == (S_IFDIR | 0700) && GOT(wire_entry)->uid == getuid());
	ask_path(w, WIRE_MOVE, 6, "only one", 8);
	expect_error(w, ERR_INVALID);
}

static void remove_does_not_follow_links(struct box *b)
{
	auto_fd int w = open_worker(b);

	CHECK(!mkdir(in_dir("gone"), 0755) && !mkdir(in_dir("stays"), 0755));
	CHECK(!mkdir(in_dir("stays/x"), 0755) && !symlink("../stays", in_dir("gone/link")));
	ask_path(w, WIRE_REMOVE, 1, in_dir("gone"), strlen(in_dir("gone")));
	expect(w, WIRE_DONE);
	CHECK(access(in_dir("gone"), F_OK) && !access(in_dir("stays/x"), F_OK));
	ask_path(w, WIRE_REMOVE, 2, in_dir("gone"), strlen(in_dir("gone")));
	expect_error(w, ERR_NOT_FOUND);
}

/* depth directories, one inside the other, each with a file beside it */
static void make_deep(const char *top, int depth)
{
	int i, fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0);
	for (i = 0; i < depth; i++) {
		int next;

		close(openat(fd, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
		CHECK(!mkdirat(fd, "d", 0755));
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	close(fd);
}

static void a_tree_ten_thousand_deep_is_removed(struct box *b)
{
	auto_fd int w = open_worker(b);

	CHECK(!mkdir(in_dir("deep"), 0755));
	make_deep(in_dir("deep"), 10000);
	ask_path(w, WIRE_REMOVE, 1, in_dir("deep"), strlen(in_dir("deep")));
	expect(w, WIRE_DONE);
	CHECK(access(in_dir("deep"), F_OK));
}

static void a_wide_tree_is_removed(struct box *b)
{
	auto_fd int w = open_worker(b);
	char path[256];
	int i;

	CHECK(!mkdir(in_dir("wide"), 0755));
	for (i = 0; i < 800; i++) {
		snprintf(path, sizeof(path), "%s/wide/%d", dir, i);
		CHECK(!mkdir(path, 0755));
		strcat(path, "/file");
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	}
	ask_path(w, WIRE_REMOVE, 1, in_dir("wide"), strlen(in_dir("wide")));
	expect(w, WIRE_DONE);
	CHECK(access(in_dir("wide"), F_OK));
}

struct seen {
	int files, dirs, links, deleted, hashed, longest;
	uint64_t cut;
};

static struct seen see_changes(int w, uint32_t most, uint64_t hash_bytes)
{
	struct wire_changes c = { .head = head(WIRE_CHANGES, 4), .max_entries = most };
	struct seen s = { 0 };

	c.hash_bytes = hash_bytes;
	send_frame(w, &c, sizeof(c), NULL, 0, -1);
	while (receive(w) == WIRE_ENTRY) {
		struct wire_entry *e = GOT(wire_entry);
		int n = frame_len - (int)sizeof(*e);

		CHECK(frame_bytes[sizeof(*e)] == '/');
		s.files += S_ISREG(e->mode);
		s.dirs += S_ISDIR(e->mode);
		s.links += S_ISLNK(e->mode);
		s.deleted += !e->mode;
		s.hashed += (int)e->hashed;
		s.longest = n > s.longest ? n : s.longest;
		if (hash_bytes && n == 8 && !memcmp(e + 1, "/sub/abc", 8))
			CHECK(e->hashed && e->sha256[0] == 0xba && e->sha256[31] == 0xad);
	}
	CHECK(HEAD->type == WIRE_DONE && HEAD->ref == 4);
	s.cut = HEAD->flags;
	return s;
}

static void changes_tell_what_the_upper_layer_holds(struct box *b)
{
	auto_fd int w = open_worker(b);
	struct seen s;
	int fd, marked;

	CHECK(!mkdir(in_dir("upper/sub"), 0755) && !symlink("/etc", in_dir("upper/sub/out")));
	fd = open(in_dir("upper/sub/abc"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	CHECK(write(fd, "abc", 3) == 3);
	close(fd);
	CHECK(!truncate(in_dir("upper/sub/abc"), 3) && !mkfifo(in_dir("upper/pipe"), 0644));
	close(open(in_dir("upper/big"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	CHECK(!truncate(in_dir("upper/big"), 1 << 20));
	marked = !mknod(in_dir("upper/deleted"), S_IFCHR | 0000, makedev(0, 0));
	s = see_changes(w, 1000, 4096); /* enough for one of the two files */
	CHECK(s.files == 2 && s.dirs == 1 && s.links == 1 && s.hashed == 1 && !s.cut);
	CHECK(s.deleted == marked);
	s = see_changes(w, 2, 0);
	CHECK(s.cut == WIRE_DONE_TRUNCATED && s.files + s.dirs + s.links <= 2 && !s.hashed);
}

static void changes_survive_a_tree_of_thousands_of_levels(struct box *b)
{
	auto_fd int w = open_worker(b);
	struct seen s;

	CHECK(!mkdir(in_dir("upper/deep"), 0755));
	make_deep(in_dir("upper/deep"), 3500);
	s = see_changes(w, 1000000, 0);
	ask_path(w, WIRE_REMOVE, 1, in_dir("upper/deep"), strlen(in_dir("upper/deep")));
	expect(w, WIRE_DONE);
	CHECK(s.dirs >= 3501 && s.files >= 3500 && s.longest > 7000 && !s.cut);
}

static void a_path_too_long_for_a_frame_is_left_out_and_said(struct box *b)
{
	auto_fd int w = open_worker(b);
	int i, fd = open(in_dir("upper"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	static char name[251];
	struct seen s;

	memset(name, 'n', 250);
	for (i = 0; i < 300; i++) {
		int next;

		CHECK(!mkdirat(fd, name, 0755));
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	close(fd);
	s = see_changes(w, 1000000, 0);
	ask_path(w, WIRE_REMOVE, 1, in_dir("upper"), strlen(in_dir("upper")));
	expect(w, WIRE_DONE);
	CHECK(!mkdir(in_dir("upper"), 0755));
	CHECK(s.cut == WIRE_DONE_TRUNCATED && s.dirs >= 255 && s.longest > 60000);
}

static void garbage_ends_the_worker_and_not_the_box(struct box *b)
{
	auto_fd int w = open_worker(b);

	send_head(w, WIRE_STAT, 1); /* init's verb, not a worker's */
	CHECK(!receive(w));
	ask_status(b->conn);
}

static void sha256_agrees_with_its_standard(struct box *b)
{
	static const struct {
		const char *text;
		uint8_t first, last;
	} rows[] = {
		{ "", 0xe3, 0x55 },
		{ "abc", 0xba, 0xad },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 0x24, 0xc1 },
	};
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;
	size_t i;

	(void)b;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		sha256_init(&s);
		sha256_add(&s, rows[i].text, strlen(rows[i].text));
		sha256_end(&s, sum);
		CHECK(sum[0] == rows[i].first && sum[31] == rows[i].last);
	}
	sha256_init(&s);
	for (i = 0; i < 1000000; i += 10)
		sha256_add(&s, "aaaaaaaaaa", 10);
	sha256_end(&s, sum);
	CHECK(!memcmp(sum,
		      "\xcd\xc7\x6e\x5c\x99\x14\xfb\x92\x81\xa1\xc7\xe2\x84\xd7\x3e\x67"
		      "\xf1\x80\x9a\x48\xa4\x97\x20\x0e\x04\x6d\x39\xcc\xc7\x11\x2c\xd0",
		      32));
}

static void an_idle_init_is_small(struct box *b)
{
	ask_status(b->conn);
	printf("# VmRSS of an idle init: %ld KiB\n", init_rss_kib(b));
	CHECK(init_rss_kib(b) <= 64);
}

/* clang-format off */
static const struct test {
	void (*run)(struct box *b);
	const char *name;
} tests[] = {
#define TEST(name) { name, #name }
	TEST(end_of_file_before_keep_ends_init),
	TEST(after_keep_the_birth_connection_is_like_any_other),
	TEST(adopt_writes_a_zero_into_each_descriptor),
	TEST(a_failed_adopt_ends_init),
	TEST(adopt_comes_too_late_after_the_first_start),
	TEST(a_stranger_may_neither_keep_nor_adopt),
	TEST(a_leash_ends_init_with_its_connection),
	TEST(a_program_runs_and_its_status_comes_back),
	TEST(output_has_offsets_and_streams),
	TEST(directory_environment_and_path_are_as_asked),
	TEST(strings_may_come_in_a_memfd),
	TEST(too_many_strings_are_an_exit_not_a_broken_box),
	TEST(counts_that_do_not_match_are_refused),
	TEST(what_cannot_run_says_which_step_and_why),
	TEST(a_child_keeps_nothing_of_init),
	TEST(file_size_is_limited_as_asked),
	TEST(a_duplicate_ref_is_a_conflict),
	TEST(rows_can_be_left_out_only_in_a_test_build),
	TEST(two_hundred_programs_leave_no_zombie),
	TEST(the_oldest_finished_is_evicted_and_the_running_never),
	TEST(listing_names_every_exec),
	TEST(a_second_connection_resumes_where_it_wants),
	TEST(two_readers_of_a_living_program_both_get_everything),
	TEST(without_credit_the_program_waits_and_init_stays_small),
	TEST(exit_waits_for_the_credit_that_shows_the_last_byte),
	TEST(a_reader_that_never_reads_costs_no_memory),
	TEST(with_nobody_attached_the_oldest_bytes_go),
	TEST(a_daemon_that_keeps_the_pipe_is_cut_after_the_grace),
	TEST(stdin_arrives_and_ends),
	TEST(room_lets_a_megabyte_through),
	TEST(more_than_the_room_ends_that_connection_only),
	TEST(a_program_that_closed_its_stdin_is_no_problem),
	TEST(a_terminal_echoes_resizes_and_ends),
	TEST(the_last_words_on_a_terminal_are_not_lost),
	TEST(control_c_reaches_the_terminals_foreground),
	TEST(a_signal_reaches_the_whole_group),
	TEST(wall_time_ends_the_group),
	TEST(a_client_that_leaves_does_not_end_its_program),
	TEST(garbage_ends_only_the_connection_it_came_on),
	TEST(descriptors_nobody_asked_for_end_the_connection),
	TEST(the_seventeenth_client_is_turned_away),
	TEST(connect_reaches_a_port_inside),
	TEST(a_file_is_put_whole_with_its_mode_and_its_folders),
	TEST(a_failed_put_is_answered_once_and_its_data_swallowed),
	TEST(an_upload_cut_short_leaves_nothing),
	TEST(a_large_file_comes_back_as_it_went),
	TEST(only_plain_files_are_read),
	TEST(names_are_made_listed_moved_and_looked_at),
	TEST(remove_does_not_follow_links),
	TEST(a_tree_ten_thousand_deep_is_removed),
	TEST(a_wide_tree_is_removed),
	TEST(changes_tell_what_the_upper_layer_holds),
	TEST(changes_survive_a_tree_of_thousands_of_levels),
	TEST(a_path_too_long_for_a_frame_is_left_out_and_said),
	TEST(garbage_ends_the_worker_and_not_the_box),
	TEST(sha256_agrees_with_its_standard),
	TEST(an_idle_init_is_small),
};
/* clang-format on */

static void print_result(int ok, size_t number, const char *name)
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

static int passes(const struct test *t)
{
	static struct box b; /* static: it must outlive the longjmp */
	int ok;

	b = (struct box){ .conn = -1, .listener = -1 };
	ok = !setjmp(failed);
	if (ok) {
		box_start(&b);
		t->run(&b);
	}
	box_stop(&b);
	return ok;
}

static void remove_dir(void)
{
	if (fork() == 0) {
		execlp("rm", "rm", "-rf", dir, NULL);
		_exit(1);
	}
	wait(NULL);
}

int main(int argc, char **argv)
{
	int bad = 0;
	size_t i;

	if (argc < 2) {
		fprintf(stderr, "usage: init_test INIT [TEST]\n");
		return 2;
	}
	init_path = argv[1];
	if (!mkdtemp(dir) || mkdir(in_dir("upper"), 0755))
		return 2;
	printf("1..%zu\n", argc > 2 ? (size_t)1 : ARRAY_LEN(tests));
	for (i = 0; i < ARRAY_LEN(tests); i++) {
		int ok;

		if (argc > 2 && strcmp(argv[2], tests[i].name))
			continue;
		ok = passes(&tests[i]);
		bad += !ok;
		print_result(ok, i + 1, tests[i].name);
	}
	remove_dir();
	return bad != 0;
}
