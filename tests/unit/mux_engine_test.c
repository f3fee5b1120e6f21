/* mux_engine_test.c - mux with engines that fail, and with guests that are hostile. This program is the
 * engine, too: "mux_engine_test engine CASE" speaks on descriptor 0. */
#include "base/cleanup.h"
#include "mux/packet.h"
#include "tap.h"
#include "wire/frame.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 60000

/* ---- the engine ---- */

static void say(const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n) {
		ssize_t w = write(0, at, n);

		if (w <= 0)
			_exit(0);
		at += w;
		n -= (size_t)w;
	}
}

static void say_packet(uint8_t type, unsigned stream, uint32_t bytes, unsigned nfds,
		       const struct packet_fd *fds, const void *body, size_t body_n)
{
	struct packet_head h = {
		.bytes = bytes, .stream = (uint16_t)stream, .type = type, .nfds = (uint8_t)nfds
	};

	say(&h, sizeof(h));
	say(fds, (fds ? nfds : 0) * sizeof(*fds));
	say(body, body_n);
}

static void say_hello(uint32_t version, uint32_t generation)
{
	struct packet_hello m = { .version = version, .generation = generation };

	say_packet(PACKET_HELLO, 0, sizeof(m), 0, NULL, &m, sizeof(m));
}

static void hear(size_t n)
{
	char c[256];

	while (n) {
		ssize_t r = read(0, c, n < sizeof(c) ? n : sizeof(c));

		if (r <= 0)
			_exit(0);
		n -= (size_t)r;
	}
}

/* As a good guest, up to the first frame (PERSIST) on stream 1. */
static void boot(void)
{
	say_hello(PACKET_VERSION, 0);
	hear(sizeof(struct packet_head) + sizeof(struct packet_resume));
	hear(sizeof(struct packet_head) + sizeof(struct packet_fd)); /* OPEN */
	hear(sizeof(struct packet_head) + sizeof(struct frame));
	say_hello(PACKET_VERSION, 1);
}

static void attach(unsigned stream, unsigned kind)
{
	struct packet_fd fd = { .stream = (uint16_t)stream, .kind = (uint8_t)kind };
	struct frame f = { .version = WIRE_VERSION, .type = WIRE_FD };

	say_packet(PACKET_FRAME, 1, sizeof(f), 1, &fd, &f, sizeof(f));
}

/* Grants nothing, reads nothing, until mux has ended. */
static void await_end(void)
{
	struct pollfd p = { .fd = 0 };

	poll(&p, 1, -1);
	_exit(0);
}

static void play(const char *what)
{
	uint64_t much = 1ull << 63;
	char bytes[4096];
	int i;

	if (!strcmp(what, "exits"))
		_exit(3);
	if (!strcmp(what, "leaves"))
		_exit(0);
	if (!strcmp(what, "killed"))
		raise(SIGKILL);
	if (!strcmp(what, "random"))
		for (i = 0; i < 16; i++) {
			(void)!getrandom(bytes, sizeof(bytes), 0);
			bytes[0] |= 1; /* never a valid size of HELLO */
			say(bytes, sizeof(bytes));
		}
	if (!strcmp(what, "version"))
		say_hello(PACKET_VERSION + 1, 0);
	if (!strcmp(what, "hello twice")) {
		say_hello(PACKET_VERSION, 0);
		say_hello(PACKET_VERSION, 0);
	}
	if (!strcmp(what, "no hello"))
		say_packet(PACKET_FRAME, 1, 8, 0, NULL, "12345678", 8);
	if (!strcmp(what, "detaches")) { /* as runsc: a child keeps the channel */
		if (fork())
			_exit(0);
		boot();
		await_end();
	}
	if (!strcmp(what, "cut before")) {
		say(bytes, 3);
		_exit(0);
	}
	boot();
	if (!strcmp(what, "size 0"))
		say_packet(PACKET_FRAME, 1, 0, 0, NULL, NULL, 0);
	if (!strcmp(what, "size max"))
		say_packet(PACKET_FRAME, 1, UINT32_MAX, 0, NULL, NULL, 0);
	if (!strcmp(what, "nfds"))
		say_packet(PACKET_FRAME, 1, 8, 255, NULL, NULL, 0);
	if (!strcmp(what, "other side"))
		attach(3, PACKET_STREAM);
	if (!strcmp(what, "open")) {
		struct packet_fd fd = { .stream = 2, .kind = PACKET_SEQPACKET };

		say_packet(PACKET_OPEN, 2, 0, 1, &fd, NULL, 0);
	}
	if (!strcmp(what, "twice")) {
		attach(2, PACKET_STREAM);
		attach(2, PACKET_STREAM);
	}
	if (!strcmp(what, "after close")) {
		attach(2, PACKET_STREAM);
		say_packet(PACKET_CLOSE, 2, 0, 0, NULL, NULL, 0);
		say_packet(PACKET_DATA, 2, 5, 0, NULL, "12345", 5);
	}
	if (!strcmp(what, "window"))
		say_packet(PACKET_GRANT, 1, sizeof(much), 0, NULL, &much, sizeof(much));
	if (!strcmp(what, "many"))
		for (i = 0; i < 10000; i++)
			attach(2 + 2 * (unsigned)i, PACKET_STREAM);
	if (!strcmp(what, "too much"))
		for (i = 0; i < 200; i++)
			say_packet(PACKET_FRAME, 1, sizeof(bytes), 0, NULL, bytes, sizeof(bytes));
	if (!strcmp(what, "cut")) {
		say_packet(PACKET_FRAME, 1, 100, 0, NULL, bytes, 50);
		_exit(0);
	}
	if (!strcmp(what, "fails later")) {
		say_packet(PACKET_CLOSE, 1, 0, 0, NULL, NULL, 0);
		_exit(5);
	}
	await_end();
}

__attribute__((constructor)) static void engine(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[1], "engine"))
		return;
	signal(SIGPIPE, SIG_IGN);
	play(argv[2]);
	_exit(0);
}

/* ---- mux ---- */

static int conn; /* the first connection */
static pid_t mux;

static const char *mux_path(void)
{
	static char path[512];
	const char *init = tap_argc > 1 ? tap_argv[1] : "build/atoll-init";

	snprintf(path, sizeof(path), "%.*satoll-mux", (int)(strrchr(init, '/') + 1 - init), init);
	return path;
}

/* command NULL: without an engine; descriptor 8 is init. */
static void mux_start(const char *command, const char *what)
{
	char *argv[] = { "mux",           "0",      "1",          command ? "--" : NULL,
			 (char *)command, "engine", (char *)what, NULL };
	char *env[] = { NULL };
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	int pair[2], i;
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (conn > 0)
		close(conn);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    bind(listener, (struct sockaddr *)&any, sizeof(any.sun_family)) < 0 ||
	    listen(listener, 8) < 0)
		abort();
	mux = fork();
	if (!mux) {
		int null = open("/dev/null", O_RDWR);
		int from[] = { null, null, null, pair[1], listener, null, null };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < 7; i++)
			from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 100);
		for (i = 0; i < 7; i++)
			dup2(from[i], i);
		if (!command)
			dup2(open(tap_argv[1], O_RDONLY | O_CLOEXEC), 8);
		execve(mux_path(), argv, env);
		_exit(99);
	}
	close(pair[1]);
	close(listener);
	conn = pair[0];
}

static int mux_wait(void)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, mux, 0), .events = POLLIN };
	int status = -1;

	if (poll(&p, 1, PATIENCE_MS) != 1)
		kill(mux, SIGKILL);
	waitpid(mux, &status, 0);
	close(p.fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The next frame; its type, 0 at the end. */
static int mux_frame(struct wire_error *out)
{
	struct pollfd p = { .fd = conn, .events = POLLIN };

	memset(out, 0, sizeof(*out));
	if (poll(&p, 1, PATIENCE_MS) != 1)
		return -1;
	return recv(conn, out, sizeof(*out), MSG_DONTWAIT) <= 0 ? 0 : out->head.type;
}

static void mux_persist(void)
{
	struct frame f = { .version = WIRE_VERSION, .type = WIRE_PERSIST };

	(void)!send(conn, &f, sizeof(f), MSG_NOSIGNAL);
}

#define SELF tap_argv[0]

TEST(an_engine_that_fails_before_hello_is_reported_with_its_reason)
{
	static const struct {
		const char *what;
		int fault;
	} cases[] = {
		{ "exits", PACKET_ENGINE_DIED },  { "leaves", PACKET_ENGINE_DIED },
		{ "killed", PACKET_ENGINE_DIED }, { "version", PACKET_BAD_HELLO },
		{ "no hello", PACKET_BAD_HELLO }, { "cut before", PACKET_CUT },
	};
	struct wire_error e;
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mux_start(SELF, cases[i].what);
		CHECK_INT(mux_frame(&e), WIRE_ERROR);
		CHECK_STR(e.msg, packet_reason(PACKET_EXIT + cases[i].fault));
		CHECK_INT(mux_wait(), PACKET_EXIT + cases[i].fault);
	}
}

TEST(an_engine_that_does_not_exist_is_reported)
{
	struct wire_error e;

	mux_start("/nowhere/runsc", "x");
	CHECK_INT(mux_frame(&e), WIRE_ERROR);
	CHECK_STR(e.msg, "mux: the engine could not be started");
	CHECK_INT(mux_wait(), PACKET_EXIT + PACKET_NO_ENGINE);
}

TEST(random_bytes_end_mux_and_do_not_crash_it)
{
	struct wire_error e;
	int i, status;

	for (i = 0; i < 20; i++) {
		mux_start(SELF, "random");
		CHECK_INT(mux_frame(&e), WIRE_ERROR);
		status = mux_wait();
		CHECK(status > PACKET_EXIT && status < PACKET_EXIT + PACKET_FAULTS);
	}
}

TEST(hostile_packets_end_mux_with_their_fault)
{
	static const struct {
		const char *what;
		int fault;
	} cases[] = {
		{ "size 0", PACKET_BAD_SIZE },
		{ "size max", PACKET_BAD_SIZE },
		{ "nfds", PACKET_BAD_FDS },
		{ "other side", PACKET_BAD_STREAM },
		{ "open", PACKET_BAD_TYPE },
		{ "twice", PACKET_BAD_STREAM },
		{ "after close", PACKET_BAD_STATE },
		{ "window", PACKET_BAD_WINDOW },
		{ "many", PACKET_BAD_STREAM },
		{ "too much", PACKET_BAD_WINDOW },
		{ "cut", PACKET_CUT },
		{ "fails later", PACKET_ENGINE_DIED },
	};
	struct wire_error e;
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status;

		mux_start(SELF, cases[i].what);
		CHECK_INT(mux_frame(&e), WIRE_DONE);
		mux_persist();
		status = mux_wait();
		if (status != PACKET_EXIT + cases[i].fault)
			printf("# %s: status %d, not %d\n", cases[i].what, status,
			       PACKET_EXIT + cases[i].fault);
		CHECK(status == PACKET_EXIT + cases[i].fault);
	}
}

TEST(hello_twice_ends_mux)
{
	mux_start(SELF, "hello twice");
	CHECK_INT(mux_wait(), PACKET_EXIT + PACKET_BAD_HELLO);
}

TEST(a_guest_that_never_grants_stops_its_clients_and_not_mux)
{
	char bytes[60000] = "";
	struct frame f = { .version = WIRE_VERSION, .type = WIRE_STDIN };
	struct pollfd p = { .events = POLLOUT };
	struct wire_error e;
	uint64_t sent = 0;

	mux_start(SELF, "silent");
	CHECK_INT(mux_frame(&e), WIRE_DONE);
	mux_persist();
	memcpy(bytes, &f, sizeof(f));
	p.fd = conn;
	while (poll(&p, 1, 300) == 1 && send(conn, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		sent += sizeof(bytes);
	CHECK(sent >= PACKET_WINDOW / 2 && sent < 4 * PACKET_WINDOW);
	CHECK_INT(waitpid(mux, NULL, WNOHANG), 0);
	close(conn);
	conn = -1;
	kill(mux, SIGKILL);
	waitpid(mux, NULL, 0);
}

TEST(an_engine_may_leave_while_its_sandbox_has_the_channel)
{
	struct wire_error e;

	mux_start(SELF, "detaches");
	CHECK_INT(mux_frame(&e), WIRE_DONE);
	mux_persist();
	CHECK_INT(waitpid(mux, NULL, WNOHANG), 0);
	kill(mux, SIGKILL);
	waitpid(mux, NULL, 0);
}

TEST(before_a_client_has_the_box_the_end_of_the_first_connection_ends_mux)
{
	struct wire_error e;

	mux_start(SELF, "silent");
	CHECK_INT(mux_frame(&e), WIRE_DONE);
	mux_persist();
	close(conn);
	conn = -1;
	CHECK_INT(mux_wait(), 0);
}

TEST(the_end_of_a_client_ends_the_box_if_it_asked_for_that_also_with_a_silent_guest)
{
	struct frame f = { .version = WIRE_VERSION, .type = WIRE_KILL_ON_CLOSE };
	struct wire_error e;

	mux_start(SELF, "silent");
	CHECK_INT(mux_frame(&e), WIRE_DONE);
	mux_persist();
	CHECK_INT(send(conn, &f, sizeof(f), MSG_NOSIGNAL), sizeof(f));
	close(conn);
	conn = -1;
	CHECK_INT(mux_wait(), 0);
}

TEST(so_does_the_end_of_the_client_of_a_box_for_one_exec)
{
	struct wire_start st = { .head = { .version = WIRE_VERSION,
					   .type = WIRE_START,
					   .flags = WIRE_START_ONE_SHOT } };
	struct wire_error e;

	mux_start(SELF, "silent");
	CHECK_INT(mux_frame(&e), WIRE_DONE);
	mux_persist();
	CHECK_INT(send(conn, &st, sizeof(st), MSG_NOSIGNAL), sizeof(st));
	close(conn);
	conn = -1;
	CHECK_INT(mux_wait(), 0);
}

TEST(cgroups_and_warm_interpreters_of_the_keeper_come_too_late)
{
	static const struct {
		uint8_t type;
		int fault;
	} cases[] = { { WIRE_JOIN_CGROUPS, PACKET_NO_CGROUPS }, { WIRE_ZYGOTE, PACKET_NO_ZYGOTE } };
	struct wire_error e;
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct wire_zygote z = { .head = { .version = WIRE_VERSION,
						   .type = cases[i].type } };
		char room[CMSG_SPACE(sizeof(int))] = { 0 };
		struct iovec iov = { &z, i ? sizeof(z) : sizeof(z.head) };
		struct msghdr m = { .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = room,
				    .msg_controllen = sizeof(room) };
		int fd = 1;

		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof(int));
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(fd));
		mux_start(SELF, "silent");
		CHECK_INT(mux_frame(&e), WIRE_DONE);
		CHECK(sendmsg(conn, &m, MSG_NOSIGNAL) > 0);
		CHECK_INT(mux_wait(), PACKET_EXIT + cases[i].fault);
	}
}

/* The only child of a process; 0: none. */
static pid_t child_of(pid_t pid)
{
	char path[64], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = 0;
	if (f)
		fclose(f);
	return atoi(text);
}

static int has_ended(pid_t pid)
{
	int i;

	for (i = 0; i < PATIENCE_MS && kill(pid, 0) == 0; i++)
		poll(NULL, 0, 1);
	return kill(pid, 0) < 0;
}

TEST(the_end_of_any_of_the_three_processes_is_the_end_of_all)
{
	static const int status[3] = { -SIGKILL, PACKET_EXIT + PACKET_ENGINE_DIED, 128 + SIGKILL };
	struct wire_error e;
	int i;

	for (i = 0; i < 3; i++) {
		pid_t pids[3];

		mux_start(NULL, NULL);
		CHECK_INT(mux_frame(&e), WIRE_DONE);
		mux_persist();
		pids[0] = mux;
		pids[1] = child_of(mux);
		pids[2] = child_of(pids[1]);
		CHECK(pids[1] > 0 && pids[2] > 0);
		kill(pids[i], SIGKILL);
		CHECK_INT(mux_wait(), status[i]);
		CHECK(has_ended(pids[1]) && has_ended(pids[2]));
	}
}
