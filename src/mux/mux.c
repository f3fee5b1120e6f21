/* mux.c - see mux.h.
 *
 *   fd 0 1 2   /dev/null           argv[1]  uid of the user
 *   fd 3       first connection    argv[2]  1 if clients may ask for the image's root
 *   fd 4       listening socket    after "--": the command line of the engine; without it
 *   fd 5       upper layer         mux forks, and its child is the guest stub (test builds)
 *   fd 6       boot id
 *   fd 8...    for the engine; without one, 8 is the executable of init
 *
 * The same descriptors and arguments as those of init. Everything that comes from the channel is
 * untrusted: packet.c checks it, and a fault ends mux, which ends the box. */
#include "mux/mux.h"
#include "base/err.h"
#include "initlib/loop.h"
#include "initlib/str.h"
#include "initlib/sys.h"
#include "mux/filter.h"
#include "mux/guest.h"
#include "mux/listener.h"
#include "mux/stream.h"
#include "wire/wire.h"

enum { KEEPER_FD = 3, LISTEN_FD, UPPER_FD, BOOT_FD, IMAGE_FD, ENGINE_FD };
enum { BAD_START = 70, FILES_MOST = 4096, REALTIME = 0, ALL_FDS = 0x7fffffff };
#define DRAIN_NS 30000000000ull /* clients get so long to read the rest, after the end */
#define CHILD_NS 1000000000ull  /* the end of the channel and that of the engine come together */

static struct event_source listener, children;
static int engine, engine_over, engine_status; /* pid; its end; as a status of ours */
static int has_engine, ready; /* ready: HELLO has arrived, and the keeper knows it */
static int kept, claimed;     /* see src/init/conn.c: PERSIST has arrived; a client has the box */
static uint64_t ended_ns, engine_over_ns; /* of the channel, 0: it is open; of the engine */
static uint8_t ends_box[PACKET_STREAMS];  /* the end of this connection is the end of the box */

/* Until the guest stub is ready, the keeper waits for a frame on the first connection. */
static _Noreturn void mux_exit(int status)
{
	struct wire_error e = { .head = { .version = WIRE_VERSION, .type = WIRE_ERROR },
				.kind = ERR_SYS };
	struct text t = { .to = e.msg, .room = sizeof(e.msg) };
	const char *why = packet_reason(status);
	struct iovec iov = { &e, sizeof(e) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	text_add(&t, why ? why : "mux: the guest stub ended before init was started");
	if (!ready)
		sys_sendmsg(KEEPER_FD, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	sys_exit(status);
}

static _Noreturn void mux_fault(enum packet_fault why)
{
	mux_exit(PACKET_EXIT + (int)why);
}

/* ---- the role ---- */

static void mux_ended(void)
{
	channel_close();
	ended_ns = loop_now_ns;
	if (ready)
		stream_end_all();
}

static void mux_greeted(const void *body)
{
	struct frame f = { .version = WIRE_VERSION, .type = WIRE_DONE };
	struct packet_hello m;

	memcpy(&m, body, sizeof(m));
	f.flags = (uint16_t)m.features;
	if (!ready)
		stream_answer(PACKET_FIRST, &f, sizeof(f), -1);
	ready = 1;
}

static void mux_begin(void)
{
	struct packet_resume m = { .generation = 1 };
	struct __kernel_timespec now = { 0 };

	if (channel_state.generation)
		return;
	SYS(clock_gettime, REALTIME, &now);
	m.realtime_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (sys_random(m.random, sizeof(m.random)) != (long)sizeof(m.random))
		sys_exit(BAD_START);
	channel_state.generation = m.generation;
	memcpy(channel_room(), &m, sizeof(m));
	channel_send(PACKET_RESUME, 0, NULL, 0, sizeof(m));
}

static void mux_error(unsigned number, uint32_t ref, uint32_t kind, const char *what)
{
	struct wire_error e = { .head = { .version = WIRE_VERSION, .type = WIRE_ERROR, .ref = ref },
				.kind = kind };
	struct text t = { .to = e.msg, .room = sizeof(e.msg) };

	text_add(&t, what);
	stream_answer(number, &e, sizeof(e), -1);
}

/* The writable layer of the outer box, which only mux has. */
static void mux_answer_upper(unsigned number, uint32_t ref)
{
	struct frame f = { .version = WIRE_VERSION, .type = WIRE_FD, .ref = ref };
	struct stat st;
	long fd = -1;

	if (sys_fstat(UPPER_FD, &st) >= 0 && (st.st_mode & S_IFMT) == S_IFDIR)
		fd = sys_fcntl(UPPER_FD, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		mux_error(number, ref, ERR_INVALID,
			  "the writable layer of this box does not exist on the host");
	else
		stream_answer(number, &f, sizeof(f), (int)fd);
}

/* LISTEN may request the port of a listener that was closed outside: inside it is closed first. */
static int mux_before(unsigned number)
{
	struct frame f;

	if (number % 2 == 0 || !listener_exists() ||
	    sys_peek(stream_at(number)->src.fd, &f, sizeof(f)) < (long)sizeof(f) ||
	    f.type != WIRE_LISTEN)
		return 1;
	return !listener_close_abandoned();
}

static int mux_frame(unsigned number, char *frame, uint32_t bytes, const int *fds, unsigned nfds)
{
	const struct frame *f = (const struct frame *)(const void *)frame;
	int first = number == PACKET_FIRST;

	(void)fds;
	if (number % 2 == 0 || bytes < sizeof(*f)) /* to a file worker */
		return 1;
	if (first && !kept && f->type == WIRE_JOIN_CGROUPS)
		mux_fault(PACKET_NO_CGROUPS);
	if (first && !kept && f->type == WIRE_ZYGOTE && nfds)
		mux_fault(PACKET_NO_ZYGOTE);
	ends_box[number] |= f->type == WIRE_KILL_ON_CLOSE ||
			    (f->type == WIRE_START && f->flags & WIRE_START_ONE_SHOT);
	if (first && f->type == WIRE_PERSIST)
		kept = 1;
	else if (kept)
		claimed = 1;
	if (f->type == WIRE_FILES && f->flags & WIRE_FILES_UPPER) {
		mux_answer_upper(number, f->ref);
		return 0;
	}
	return 1;
}

static int mux_refuse(unsigned number, char *frame, uint32_t *bytes)
{
	if (*bytes < sizeof(struct frame))
		return -1;
	mux_error(number, ((const struct frame *)(const void *)frame)->ref, ERR_LIMIT,
		  "all 256 streams of this box are in use");
	return 0;
}

static const struct channel_role mux_role = {
	.fault = mux_fault,
	.ended = mux_ended,
	.greeted = mux_greeted,
	.begin = mux_begin,
	.before = mux_before,
	.frame = mux_frame,
	.refuse = mux_refuse,
};

/* ---- clients ---- */

static void mux_arm_listener(void)
{
	loop_want(&listener, !ended_ns && packet_free_number(&channel_state) ? EPOLLIN : 0);
}

static void mux_accept(struct event_source *s, uint32_t events)
{
	int fd = (int)sys_accept(s->fd, SOCK_CLOEXEC);
	unsigned number;

	(void)events;
	if (fd < 0)
		return;
	number = stream_add(PACKET_SEQPACKET, fd, STREAM_OPEN);
	if (number)
		stream_due(number);
	else
		sys_close(fd);
}

/* ---- the engine ---- */

static _Noreturn void mux_exec_engine(int channel, char **argv)
{
	char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char *env[] = { path, NULL };

	if (sys_dup3(channel, 0, 0) < 0 || sys_close_range(KEEPER_FD, IMAGE_FD) < 0)
		sys_exit(BAD_START);
	sys_sigmask(0);
	if (!text_compare(argv[0], MUX_VM) && (filter_load_vm() < 0 || !*++argv))
		sys_exit(BAD_START);
	if (!text_compare(argv[0], MUX_RUNSC) && (filter_load_runsc() < 0 || !*++argv))
		sys_exit(BAD_START);
	sys_execve(argv[0], argv, env);
	sys_exit(127);
}

static _Noreturn void mux_exit_guest(int status)
{
	sys_exit(status);
}

static _Noreturn void mux_become_guest(int channel, char **argv)
{
	static struct guest how;

	sys_close(KEEPER_FD);
	sys_close(LISTEN_FD);
	how = (struct guest){ .channel = channel,
			      .init_exe = ENGINE_FD,
			      .user = argv[1],
			      .root = argv[2],
			      .upper = UPPER_FD,
			      .boot = BOOT_FD,
			      .over = mux_exit_guest };
	sys_prctl(PR_SET_NAME, (unsigned long)"atoll-guest", 0);
	guest_run(&how);
}

/* Descriptors of the engine are its own from here on. */
static int mux_start_engine(char **argv, char **command)
{
	int pair[2];
	long err = sys_socketpair(SOCK_STREAM | SOCK_CLOEXEC, pair);

	if (err < 0)
		mux_fault(PACKET_NO_ENGINE);
	err = sys_fork();
	if (!err) {
		sys_close(pair[0]);
		if (command)
			mux_exec_engine(pair[1], command);
		mux_become_guest(pair[1], argv);
	}
	if (err < 0)
		mux_fault(PACKET_NO_ENGINE);
	engine = (int)err;
	has_engine = !!command;
	/* A number above those of the engine, all of which are closed then. */
	err = sys_fcntl(pair[0], F_DUPFD_CLOEXEC, 256);
	if (err < 0)
		mux_fault(PACKET_NO_ENGINE);
	sys_close_range(IMAGE_FD, 255);
	sys_close(BOOT_FD);
	return (int)err;
}

/* What mux has beyond a program, its engine has inherited. */
static void mux_drop_privileges(void)
{
	struct __user_cap_data_struct none[2] = { 0 }, have[2];

	sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0);
	if (sys_capset(none) < 0 || sys_capget(have) < 0 || memcmp(none, have, sizeof(none)))
		sys_exit(BAD_START);
}

static void mux_reaped(int status)
{
	int signo = status & 0x7f, code = status >> 8 & 0xff;

	engine_over = 1;
	engine_over_ns = loop_now_ns;
	if (!has_engine)
		engine_status = signo ? PACKET_EXIT + PACKET_ENGINE_DIED : code;
	else if (signo || code)
		engine_status = PACKET_EXIT + (code == 127 ? PACKET_NO_ENGINE : PACKET_ENGINE_DIED);
}

static void mux_reap(struct event_source *s, uint32_t events)
{
	struct signalfd_siginfo info;
	int status;
	long pid;

	(void)events;
	sys_read(s->fd, &info, sizeof(info));
	while ((pid = sys_wait4(-1, &status, WNOHANG, NULL)) > 0)
		if (pid == engine)
			mux_reaped(status);
	if (pid == -ECHILD)
		engine_over = 1;
}

/* ---- the loop ---- */

/* The engine has failed, and another process keeps the channel open. */
static int mux_engine_failed(void)
{
	return engine_over && engine_status && !ended_ns;
}

/* KILL_ON_CLOSE and a START for one exec are promises to the client. init keeps them, too, but a guest may hang, at the process limit of its
 * engine for example. Numbers of connections are odd; one is not used again in the turn in which it has ended. */
static int mux_client_left(void)
{
	unsigned i;

	for (i = PACKET_FIRST; i < PACKET_STREAMS; i += 2)
		if (ends_box[i] && stream_at(i)->gone)
			return 1;
	return 0;
}

static void mux_check_end(void)
{
	const struct packet_stream *first = &channel_state.streams[PACKET_FIRST];

	/* Before a client has the box, the end of the first connection is the end of the box. If the guest
	 * has closed it, the channel ends, too. */
	if (stream_at(PACKET_FIRST)->gone && first->kind && !first->peer_closed && !claimed)
		sys_exit(0);
	if (!ended_ns && mux_client_left())
		sys_exit(0);
	if (mux_engine_failed() && loop_now_ns - engine_over_ns > CHILD_NS)
		mux_ended();
	if (!ended_ns)
		return;
	if (!ready && engine_over && !engine_status)
		engine_status = PACKET_EXIT + PACKET_ENGINE_DIED;
	if ((!stream_waiting() && (engine_over || loop_now_ns - ended_ns > CHILD_NS)) ||
	    loop_now_ns - ended_ns > DRAIN_NS)
		mux_exit(engine_status);
}

static char **mux_command(int argc, char **argv)
{
	if (argc == 3)
		return NULL;
	if (argc < 5 || text_compare(argv[3], "--"))
		sys_exit(BAD_START);
	return argv + 4;
}

static void mux_settle(void)
{
	if (sys_prctl(PR_SET_DUMPABLE, 0, 0) < 0)
		sys_exit(BAD_START);
	sys_prctl(PR_SET_NAME, (unsigned long)"atoll-mux", 0);
	sys_sigmask(~0ull);
	sys_umask(022);
}

_Noreturn void mux_main(int argc, char **argv)
{
	char **command = mux_command(argc, argv);
	int channel, fd;

	mux_settle();
	for (fd = KEEPER_FD; fd <= UPPER_FD; fd++)
		if (sys_fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			sys_exit(BAD_START);
	channel = mux_start_engine(argv, command);
	mux_drop_privileges();
	sys_setrlimit(RLIMIT_NOFILE, FILES_MOST, FILES_MOST);
	loop_init();
	children.ready = mux_reap;
	children.fd = (int)sys_signalfd(1ull << (SIGCHLD - 1), O_CLOEXEC | O_NONBLOCK);
	if (children.fd < 0)
		sys_exit(BAD_START);
	loop_want(&children, EPOLLIN);
	channel_init(channel, &mux_role, 1);
	packet_open(&channel_state, PACKET_FIRST, PACKET_SEQPACKET);
	stream_start(PACKET_FIRST, KEEPER_FD, STREAM_OPEN);
	sys_fcntl(LISTEN_FD, F_SETFL, O_RDWR | O_NONBLOCK);
	listener = (struct event_source){ .fd = LISTEN_FD, .ready = mux_accept };
	if (filter_load() < 0)
		sys_exit(BAD_START);
	for (;;) {
		stream_flush();
		mux_arm_listener();
		mux_check_end();
		loop_turn(ended_ns || mux_engine_failed() ? 100 : -1);
	}
}
