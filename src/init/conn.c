/* conn.c - see conn.h. */
#include "init/conn.h"
#include "base/err.h"
#include "init/tcp.h"
#include "init/exec.h"
#include "init/hold.h"
#include "initlib/scratch.h"
#include "init/stop_all.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/requests.h"
#include "init/attachment.h"
#include "wire/frame.h"

enum { FRAMES_LEFT_MAX = 4096 }; /* more than a socket holds */

union answer { /* every frame that is an answer rather than a state */
	struct frame head;
	struct wire_error error;
	struct wire_started started;
	struct wire_attached reading;
	struct wire_status status;
};

static struct conn conns[CONN_MAX];         /* src.fd 0: never used; -1: closed */
static LAZY union answer answers[CONN_MAX]; /* those that wait */
static struct event_source listener;
static uint64_t dead; /* one bit per connection */
_Static_assert(CONN_MAX <= 64, "a connection without a bit");
static int kept, claimed;

struct frame conn_head(uint8_t type, uint32_t ref)
{
	return (struct frame){ .version = WIRE_VERSION, .type = type, .ref = ref };
}

/* ---- out ---- */

/* The requested epoll events depend only on the state of the connection. */
static void conn_arm(struct conn *c)
{
	uint32_t in = c->answer_len || c->listing || hold_excludes(c) ? 0 : EPOLLIN;

	loop_want(&c->src, in | (c->blocked ? EPOLLOUT : 0));
}

static void conn_die(struct conn *c)
{
	c->dead = 1;
	dead |= (uint64_t)1 << (c - conns);
}

int conn_idle(const struct conn *c)
{
	return !c->blocked && !c->dead && !c->answer_len && !c->listing;
}

int conn_send(struct conn *c, const void *body, size_t n, const void *tail, size_t tail_n, int fd)
{
	struct iovec iov[2] = { { (void *)body, n }, { (void *)tail, tail_n } };
	struct {
		struct cmsghdr head;
		int fd;
		int pad;
	} ride = { .head = { sizeof(struct cmsghdr) + sizeof(int), SOL_SOCKET, SCM_RIGHTS },
		   .fd = fd };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = tail_n ? 2 : 1 };
	long err;

	if (c->blocked || c->dead)
		return 0;
	if (fd >= 0) {
		m.msg_control = &ride;
		m.msg_controllen = sizeof(ride);
	}
	err = sys_sendmsg(c->src.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (err >= 0)
		return 1;
	if (err == -EAGAIN || err == -ENOBUFS || err == -ENOMEM) {
		c->blocked = 1;
		conn_arm(c);
	} else {
		conn_die(c);
	}
	return 0;
}

int conn_answer(struct conn *c, const void *body, size_t n, int take_fd)
{
	if (c->answer_len && !c->dead)
		return 0;
	if (c->dead || conn_send(c, body, n, NULL, 0, take_fd) || c->dead) {
		sys_close(take_fd);
		return 1;
	}
	memcpy(&answers[c - conns], body, n);
	c->answer_len = (uint32_t)n;
	c->answer_fd = take_fd;
	conn_arm(c);
	return 1;
}

int conn_error(struct conn *c, uint32_t ref, uint32_t kind, int sys, const char *what)
{
	struct wire_error e = { .head = conn_head(WIRE_ERROR, ref), .kind = kind, .sys = sys };
	struct text t = { .to = e.msg, .room = sizeof(e.msg) };

	text_add(&t, what);
	if (kind == ERR_NONE) {
		text_add(&t, ": ");
		text_add(&t, text_errno(sys, &e.kind));
	}
	return conn_answer(c, &e, sizeof(e), -1);
}

static int send_exec(struct conn *c, const struct exec *x)
{
	struct wire_exec e = { .head = conn_head(WIRE_EXEC, x->ref),
			       .pid = x->pid,
			       .group = x->group,
			       .over = x->over,
			       .tty = x->tty,
			       .stdin_open = x->in.src.fd >= 0 && !x->in.ending,
			       .rows = x->rows,
			       .cols = x->cols,
			       .stdin_bytes = x->in.accepted,
			       .stdin_room = x->in.room,
			       .channel = x->channel_in.src.fd >= 0,
			       .channel_bytes = x->channel_in.accepted,
			       .channel_room = x->channel_in.room };
	int i;

	for (i = 0; i < WIRE_STREAMS; i++) {
		e.tip[i] = x->out[i].log.tip;
		e.kept_from[i] = x->out[i].log.from;
	}
	e.wall_us = x->pid ? (loop_now_ns - x->born_ns) / 1000 : x->end.wall_us;
	return conn_send(c, &e, sizeof(e), NULL, 0, -1);
}

/* The position in the list is stored, not the list: execs may start and end while the client is
 * slow. */
static void conn_continue_listing(struct conn *c)
{
	struct frame done = conn_head(WIRE_DONE, c->listing_ref);

	for (; c->listing <= EXEC_MAX; c->listing++) {
		const struct exec *x = exec_at(c->listing - 1);

		if (x && !send_exec(c, x))
			return;
	}
	if (conn_send(c, &done, sizeof(done), NULL, 0, -1))
		c->listing = 0;
}

void conn_list(struct conn *c, uint32_t ref)
{
	c->listing = 1;
	c->listing_ref = ref;
	conn_continue_listing(c);
}

static void conn_writable(struct conn *c)
{
	c->blocked = 0;
	if (c->answer_len &&
	    conn_send(c, &answers[c - conns], c->answer_len, NULL, 0, c->answer_fd)) {
		sys_close(c->answer_fd);
		c->answer_len = 0;
	}
	if (c->listing && !c->answer_len)
		conn_continue_listing(c);
	if (conn_idle(c))
		attachment_conn_due(c);
}

/* ---- in ---- */

struct packet {
	long len;
	int fds[WIRE_FDS];
	unsigned nfds;
	int cut; /* descriptors or bytes were lost on the way */
};

static void conn_receive(struct conn *c, struct packet *p)
{
	struct {
		struct cmsghdr head;
		int fds[WIRE_FDS];
	} ride;
	struct iovec iov = { scratch, sizeof(scratch) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ride,
			    .msg_controllen = sizeof(ride) };

	p->nfds = 0;
	p->len = sys_recvmsg(c->src.fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (p->len <= 0)
		return;
	scratch_used((size_t)p->len);
	p->cut = !!(m.msg_flags & (MSG_CTRUNC | MSG_TRUNC));
	if (m.msg_controllen >= sizeof(ride.head) && ride.head.cmsg_level == SOL_SOCKET &&
	    ride.head.cmsg_type == SCM_RIGHTS) {
		p->nfds = (unsigned)((ride.head.cmsg_len - sizeof(ride.head)) / sizeof(int));
		memcpy(p->fds, ride.fds, p->nfds * sizeof(int));
	}
}

/* 1: one frame was read; 0: there is none now; -1: the end, or an invalid frame. */
static int conn_take_frame(struct conn *c)
{
	struct packet p = { 0 };
	unsigned i;
	int valid;

	conn_receive(c, &p);
	/* When a peer ends with frames of init unread, the kernel returns ECONNRESET once,
	 * before the frames that the peer had sent. */
	if (p.len == -EAGAIN || p.len == -EINTR || p.len == -ECONNRESET)
		return p.len == -ECONNRESET;
	valid = p.len > 0 && !p.cut && frame_check(scratch, (uint32_t)p.len) >= 0 &&
		requests_run(c, (struct frame *)(void *)scratch, (uint32_t)p.len, p.fds, p.nfds) >=
			0;
	for (i = 0; i < p.nfds; i++)
		sys_close(p.fds[i]);
	c->ended = !valid;
	return valid ? 1 : -1;
}

/* One frame per wake-up: the next client gets its turn, and a single request needs no second
 * call. */
static void conn_readable(struct conn *c)
{
	if (conn_take_frame(c) < 0)
		conn_die(c);
}

/* Frames that a peer sent before its end count: KEEP, and the input of a program, which the peer
 * has reported as delivered. All of them are read before another request is: a new server asks how
 * much input has arrived. */
static void conn_read_rest(struct conn *c)
{
	int most = FRAMES_LEFT_MAX;

	while (!c->ended && most-- && conn_take_frame(c) > 0)
		;
}

static void conn_ready(struct event_source *s, uint32_t events)
{
	struct conn *c = source_owner(s, struct conn, src);

	if (c->dead)
		return;
	if (events & EPOLLHUP) {
		conn_die(c);
		return;
	}
	if (c->blocked && events & (EPOLLOUT | EPOLLERR))
		conn_writable(c);
	if (s->armed & EPOLLIN && events & (EPOLLIN | EPOLLERR))
		conn_readable(c);
	conn_arm(c);
}

/* ---- life ---- */

static struct conn *conn_adopt(int take_fd)
{
	int i;

	for (i = 0; i < CONN_MAX; i++) {
		struct conn *c = &conns[i];

		if (c->src.fd > 0)
			continue;
		memset(c, 0, sizeof(*c));
		c->src = (struct event_source){ .fd = take_fd, .ready = conn_ready };
		c->answer_fd = -1;
		conn_arm(c);
		return c;
	}
	sys_close(take_fd);
	return NULL;
}

/* The client can read frames that were sent before the close. But if init closes the socket with an
 * unread frame, the client gets ECONNRESET before these frames. So all frames are read first. */
void conn_end(struct conn *c)
{
	struct packet p;

	sys_shutdown(c->src.fd, SHUT_READ);
	do
		conn_receive(c, &p);
	while (p.len > 0);
	sys_exit(0);
}

/* A guest stub passes connected sockets, because programs could connect to a listener inside. When
 * the stub ends, so does the box. */
static int conn_receive_socket(int from)
{
	struct {
		struct cmsghdr head;
		int fd, pad;
	} ride = { .fd = -1 };
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ride,
			    .msg_controllen = sizeof(ride) };
	long n = sys_recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (!n)
		sys_exit(0);
	return n > 0 && m.msg_controllen >= sizeof(ride.head) ? ride.fd : -1;
}

static void conn_knock(struct event_source *s, uint32_t events)
{
	int fd = (int)sys_accept(s->fd, SOCK_CLOEXEC);

	(void)events;
	if (fd == -EINVAL) /* it does not listen */
		fd = conn_receive_socket(s->fd);
	if (fd >= 0)
		conn_adopt(fd);
}

void conn_init(int take_keeper, int take_listener)
{
	conn_adopt(take_keeper)->is_keeper = 1;
	listener = (struct event_source){ .fd = take_listener, .ready = conn_knock };
	loop_want(&listener, EPOLLIN);
}

void conn_arm_all(void)
{
	int i;

	for (i = 0; i < CONN_MAX; i++)
		if (conns[i].src.fd > 0 && !conns[i].dead)
			conn_arm(&conns[i]);
}

int conn_kept(void)
{
	return kept;
}

void conn_claim(void)
{
	claimed = 1;
}

void conn_keep(void)
{
	kept = 1;
}

unsigned conn_count(void)
{
	unsigned i, n = 0;

	for (i = 0; i < CONN_MAX; i++)
		n += conns[i].src.fd > 0;
	return n;
}

void conn_sweep(void)
{
	while (dead) {
		struct conn *c = &conns[__builtin_ctzll(dead)];

		dead &= dead - 1;
		conn_read_rest(c);
		/* A keeper that ends before it has recorded this box, or before its client knows
		 * of it, must leave no box running. */
		if (c->kill_on_close || (c->is_keeper && !claimed))
			sys_exit(0);
		attachment_detach_conn(c);
		tcp_drop(c);
		stop_drop(c);
		hold_drop(c);
		if (c->answer_len)
			sys_close(c->answer_fd);
		loop_close(&c->src);
	}
}
