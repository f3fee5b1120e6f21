/* requests.c - see requests.h.
 * A late frame is no error: a frame for an exec that has just ended, or was forgotten, is
 * dropped without an answer, because its sender could not know. Only requests that wait for an
 * answer get one. */
#include "init/requests.h"
#include "base/err.h"
#include "init/args.h"
#include "init/child.h"
#include "init/conn.h"
#include "init/tcp.h"
#include "init/disk_usage.h"
#include "init/exec.h"
#include "init/fence.h"
#include "init/files.h"
#include "init/hold.h"
#include "init/early_file.h"
#include "initlib/scratch.h"
#include "init/zygote_child.h"
#include "init/params.h"
#include "init/stop_all.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/attachment.h"
#include "wire/frame.h"

struct request {
	struct conn *conn;
	union {
		struct frame *head;
		const struct wire_start *start;
		const struct wire_signal *signal;
		const struct wire_resize *resize;
		const struct wire_output_window *credit;
		const struct wire_connect *connect;
		const struct wire_zygote *zygote;
		const struct wire_put *put;
		const struct wire_lease *lease;
		const struct wire_exec_state *exec_state;
		const struct wire_terminal *terminal;
	};
	char *tail;
	uint32_t tail_len;
	int *fds;
	unsigned nfds;
};

enum {
	START_FLAGS = WIRE_START_PTY | WIRE_START_STDIN | WIRE_START_ROOT | WIRE_START_NOTIFY |
		      WIRE_START_MEMFD | WIRE_START_DETACHED | WIRE_START_CHANNEL |
		      WIRE_START_WARM | WIRE_START_LEADER_ONLY | WIRE_START_ONE_SHOT |
		      WIRE_START_IDS,
};

/* A client has run a program: from then on files in the box are not trusted. */
static int used;

static int requests_refuse(const struct request *r, enum err_kind kind, const char *why)
{
	conn_error(r->conn, r->head->ref, kind, 0, why);
	return 0;
}

/* ---- from the keeper ---- */

static int requests_keep(const struct request *r)
{
	if (!r->conn->is_keeper)
		return -1;
	conn_keep();
	return 0;
}

static int requests_adopt(const struct request *r)
{
	unsigned i;

	if (!r->conn->is_keeper || conn_kept() || !r->nfds)
		return -1; /* after the box was given to a client its limits cannot change */
	for (i = 0; i < r->nfds; i++)
		if (sys_write(r->fds[i], "0", 1) != 1)
			sys_exit(70); /* outside its limits nothing may run */
	return 0;
}

/* Takes an interpreter that runs already, or the arguments to start one with. A box that was
 * requested with an interpreter must not be used without it. */
static int requests_plant(const struct request *r)
{
	enum { WORDS = 8 };
	char *argv[WORDS + 1], *at = r->tail, *end = r->tail + r->tail_len;
	int n = 0, err;

	if (!r->conn->is_keeper || conn_kept() || r->nfds != !r->tail_len)
		return -1;
	if (r->nfds) {
		/* The caller closes the descriptors in fds[]. */
		int fd = (int)sys_fcntl(r->fds[0], F_DUPFD_CLOEXEC, 3);

		err = fd < 0 ? fd : zygote_child_take(r->zygote, fd);
	} else {
		if (end[-1])
			return -1;
		for (; at < end && n < WORDS; at += strlen(at) + 1)
			argv[n++] = at;
		argv[n] = NULL;
		err = zygote_child_run(r->zygote, argv);
	}
	if (err < 0)
		sys_exit(70);
	return 0;
}

/* ---- execs ---- */

/* Ids of the image's users, up to the highest; never the ids of init. A box without root has
 * one id only. */
static int ids_allowed(const struct request *r, const struct wire_start *st)
{
	if (!self.root_allowed)
		return requests_refuse(r, ERR_DENIED, "this box has one user only");
	if (st->head.flags & (WIRE_START_ROOT | WIRE_START_WARM))
		return requests_refuse(r, ERR_INVALID, "ids exclude root and a warm interpreter");
	if (st->uid > WIRE_ID_MAX || st->gid > WIRE_ID_MAX || st->uid == self.uid ||
	    st->gid == self.gid)
		return requests_refuse(r, ERR_INVALID, "an id that programs cannot have");
	return 1;
}

/* 0: rejected, and an ERROR was sent; there is no exec that could have an EXIT. */
static int start_allowed(const struct request *r)
{
	const struct wire_start *st = r->start;

	if (st->head.flags & ~START_FLAGS)
		return requests_refuse(r, ERR_INVALID, "unknown flags");
	if (st->head.flags & WIRE_START_PTY && st->head.flags & WIRE_START_CHANNEL)
		return requests_refuse(r, ERR_INVALID, "a terminal has no channel");
	if (st->head.flags & WIRE_START_ONE_SHOT && st->head.flags & WIRE_START_DETACHED)
		return requests_refuse(r, ERR_INVALID, "a one-shot exec cannot start detached");
	if (st->head.flags & WIRE_START_ROOT && !self.root_allowed)
		return requests_refuse(r, ERR_DENIED, "this box does not allow root");
	if (st->head.flags & WIRE_START_IDS && !ids_allowed(r, st))
		return 0;
#ifndef ATOLL_TEST
	if (st->without)
		return requests_refuse(r, ERR_INVALID, "only a test build can leave out rows");
#endif
	if (stop_busy())
		return requests_refuse(r, ERR_CONFLICT, "the programs of this box are being ended");
	if (fence_closed())
		return requests_refuse(r, ERR_CONFLICT, FENCE_CLOSED);
	if (exec_find(st->head.ref))
		return requests_refuse(r, ERR_CONFLICT, "an exec with this ref already exists");
	return 1;
}

static struct exec *new_exec(const struct request *r)
{
	struct exec *x = exec_new(r->head->ref);
	struct attachment *v = x ? attachment_add(x, r->conn) : NULL;
	int i;

	for (i = 0; x && i < WIRE_STREAMS; i++)
		exec_pump_init(&x->out[i], x, i, r->start->log_bytes);
	if (x) {
		stdin_buf_init(&x->in, x, -1, STDIN_BUF_PIPE);
		stdin_buf_init(&x->channel_in, x, -1, STDIN_BUF_SOCKET);
	}
	if (!v) {
		if (x)
			exec_forget(x);
		return NULL;
	}
	v->streams = r->head->flags & WIRE_START_DETACHED ? 0 : (1u << WIRE_STREAMS) - 1;
	for (i = 0; i < WIRE_STREAMS; i++)
		v->until[i] = r->start->credit[i];
	if (r->head->flags & WIRE_START_ONE_SHOT) {
		r->conn->kill_on_close = 1;
		x->last = r->conn;
	}
	return x;
}

static int requests_start(const struct request *r)
{
	int err, in_memfd = !!(r->head->flags & WIRE_START_MEMFD);
	struct exec *x;
	struct exec_args a;

	if (r->nfds != (unsigned)in_memfd)
		return -1;
	if (!start_allowed(r))
		return 0;
	used = 1;
	err = args_init(&a, r->start, r->tail, r->tail_len, in_memfd ? r->fds[0] : -1);
	if (err == -EINVAL) {
		requests_refuse(r, ERR_INVALID, "the strings do not match the counts");
	} else if (!(x = new_exec(r))) {
		requests_refuse(r, ERR_LIMIT, "all slots for execs are in use");
	} else if (err < 0) {
		exec_fail(x, "arguments", -err);
	} else {
		exec_run(x, r->start, &a);
		if (r->head->flags & WIRE_START_NOTIFY && !x->over)
			attachment_will_report(x, attachment_find(x, r->conn));
		exec_due(x);
	}
	args_fini(&a);
	return 0;
}

static int signal_group(const struct request *r)
{
	struct exec *x = exec_find(r->head->ref);

	if (r->signal->signo < 1 || r->signal->signo > 64)
		return requests_refuse(r, ERR_INVALID, "no such signal");
	if (!x)
		return requests_refuse(r, ERR_NOT_FOUND, "no such exec");
	exec_signal(x, r->signal->signo);
	return 0;
}

static int requests_resize(const struct request *r)
{
	struct exec *x = exec_find(r->head->ref);

	if (x && !x->over)
		exec_resize(x, r->resize->rows, r->resize->cols);
	return 0;
}

static int stdin_buf_stdin(const struct request *r)
{
	struct exec *x = exec_find(r->head->ref);
	struct stdin_buf *f;

	if (r->head->flags & ~WIRE_STDIN_CHANNEL)
		return -1;
	if (!x || x->over)
		return 0;
	f = r->head->flags & WIRE_STDIN_CHANNEL ? &x->channel_in : &x->in;
	if (r->tail_len)
		return stdin_buf_push(f, r->tail, r->tail_len);
	event_stream_end(f);
	return 0;
}

static int requests_credit(const struct request *r)
{
	const struct wire_output_window *cr = r->credit;
	struct exec *x = exec_find(r->head->ref);
	struct attachment *v = x ? attachment_find(x, r->conn) : NULL;

	if (cr->stream >= WIRE_STREAMS)
		return -1;
	if (v && v->until[cr->stream] < cr->until) {
		v->until[cr->stream] = cr->until;
		exec_due(x);
	}
	return 0;
}

/* Reads from `from` or the nearest byte there is. */
static void move_cursor(struct exec *x, struct attachment *v, const struct wire_output_window *cr,
			struct wire_attached *a)
{
	const struct log *l = &x->out[cr->stream].log;

	a->from = cr->from < l->from ? l->from : cr->from > l->tip ? l->tip : cr->from;
	a->tip = l->tip;
	v->streams |= (uint8_t)(1u << cr->stream);
	v->cursor[cr->stream] = a->from;
	v->until[cr->stream] = cr->until;
}

static int read_from(const struct request *r)
{
	const struct wire_output_window *cr = r->credit;
	struct wire_attached a = { .head = conn_head(WIRE_ATTACHED, r->head->ref),
				   .stream = cr->stream };
	struct exec *x = exec_find(r->head->ref);
	struct attachment *v;

	if (cr->stream > WIRE_NO_STREAM)
		return -1;
	if (!x)
		return requests_refuse(r, ERR_NOT_FOUND, "no such exec");
	v = attachment_add(x, r->conn);
	if (!v)
		return requests_refuse(r, ERR_LIMIT, "too many readers");
	if (cr->stream != WIRE_NO_STREAM)
		move_cursor(x, v, cr, &a);
	v->hold = !!(r->head->flags & WIRE_ATTACH_MORE);
	exec_due(x);
	conn_answer(r->conn, &a, sizeof(a), -1);
	return 0;
}

static int requests_leave(const struct request *r)
{
	struct exec *x = exec_find(r->head->ref);
	struct attachment *v = x ? attachment_find(x, r->conn) : NULL;

	if (!v)
		return 0;
	v->streams = 0; /* neither the program nor the EXIT waits for this reader now */
	v->hold = 0;
	exec_due(x);
	return 0;
}

static int requests_forget(const struct request *r)
{
	struct exec *x = exec_find(r->head->ref);

	if (x && !x->over)
		return requests_refuse(r, ERR_CONFLICT, "this exec is still running");
	if (x)
		exec_forget(x);
	/* Warmed up by the keeper for the pool, where it may wait for hours among thousands: its
	 * memory is reduced again, and it counts as unused. */
	if (x && !conn_kept()) {
		used = 0;
		child_drop_stack();
		scratch_used(WIRE_MAX); /* released at the end of this turn */
	}
	return 0;
}

static int list_execs(const struct request *r)
{
	conn_list(r->conn, r->head->ref);
	return 0;
}

/* ---- the box ---- */

static int requests_kill_on_close(const struct request *r)
{
	r->conn->kill_on_close = 1;
	return 0;
}

static int stat_box(const struct request *r)
{
	struct wire_status s = { .head = conn_head(WIRE_STATUS, r->head->ref) };
	const struct exec *x;
	struct disk d;

	for (x = exec_next(NULL); x; x = exec_next(x))
		s.execs++;
	s.running = exec_running();
	s.clients = conn_count();
	s.pid = (uint32_t)sys_getpid();
	s.reaped = exec_reaped();
	disk_measure(&d);
	s.disk_free = d.free;
	s.disk_size = d.size;
	s.files_free = d.files_free;
	s.files_size = d.files_size;
	conn_answer(r->conn, &s, sizeof(s), -1);
	return 0;
}

static int requests_upper(const struct request *r)
{
	struct frame f = conn_head(WIRE_FD, r->head->ref);
	long fd = sys_fcntl(self.upper, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		conn_error(r->conn, r->head->ref, ERR_NONE, (int)-fd, "the writable layer");
	else
		conn_answer(r->conn, &f, sizeof(f), (int)fd);
	return 0;
}

static int requests_files(const struct request *r)
{
	struct frame f = conn_head(WIRE_FD, r->head->ref);
	int fd, root = r->head->flags & WIRE_FILES_ROOT;

	if (root && !self.root_allowed)
		return requests_refuse(r, ERR_DENIED, "this box does not allow root");
	if (stop_busy())
		return requests_refuse(r, ERR_CONFLICT, "the programs of this box are being ended");
	if (fence_closed())
		return requests_refuse(r, ERR_CONFLICT, FENCE_CLOSED);
	if (r->head->flags & WIRE_FILES_UPPER)
		return requests_upper(r);
	if (r->head->flags & WIRE_FILES_ALONE && exec_kill_all() < 0)
		return requests_refuse(r, ERR_SYS, "cannot list the processes of this box");
	used |= conn_kept();
	fd = files_start(root || (r->head->flags & WIRE_FILES_ROOT_IF && self.root_allowed));
	if (fd < 0)
		conn_error(r->conn, r->head->ref, ERR_NONE, -fd, "start a file worker");
	else
		conn_answer(r->conn, &f, sizeof(f), fd);
	return 0;
}

/* No answer when it succeeds: START may follow at once. */
static int requests_lay(const struct request *r)
{
	uint32_t n = 0;
	int err;

	while (n < r->tail_len && r->tail[n])
		n++;
	if (n == r->tail_len)
		return -1;
	if (used)
		return requests_refuse(r, ERR_CONFLICT, "an exec was already started in this box");
	params_place_home(r->tail, n);
	err = lay_file(r->tail, r->put, r->tail + n + 1, r->tail_len - n - 1);
	if (err < 0)
		conn_error(r->conn, r->head->ref, ERR_NONE, -err, "lay a file");
	return 0;
}

static int requests_stop(const struct request *r)
{
	int err = stop_start(r->conn, r->head->ref);

	if (err == -EAGAIN)
		return requests_refuse(r, ERR_LIMIT, "too many wait for the programs to end");
	return err < 0 ? requests_refuse(r, ERR_SYS, "cannot list the processes of this box") : 0;
}

static int requests_lease(const struct request *r)
{
	if (r->lease->head.flags & ~WIRE_LEASE_OFF)
		return requests_refuse(r, ERR_INVALID, "unknown flags");
	if (r->lease->head.flags & WIRE_LEASE_OFF)
		fence_off();
	else if (fence_lease(r->lease->ms) < 0)
		return requests_refuse(r, ERR_SYS, "cannot stop all processes of this box");
	return 0;
}

static int requests_hold(const struct request *r)
{
	struct frame done = conn_head(WIRE_DONE, r->head->ref);

	if (r->head->flags & ~WIRE_HOLD_OFF)
		return requests_refuse(r, ERR_INVALID, "unknown flags");
	if (r->head->flags & WIRE_HOLD_OFF)
		hold_drop(r->conn);
	else if (stop_busy())
		return requests_refuse(r, ERR_CONFLICT, "the programs of this box are being ended");
	else if (fence_closed())
		return requests_refuse(r, ERR_CONFLICT, FENCE_CLOSED);
	else if (hold_begin(r->conn) < 0)
		return requests_refuse(r, ERR_CONFLICT, "another client holds this box");
	conn_answer(r->conn, &done, sizeof(done), -1);
	return 0;
}

static int requests_export(const struct request *r)
{
	struct frame done = conn_head(WIRE_DONE, r->head->ref);
	int err;

	if (!hold_is_by(r->conn))
		return requests_refuse(r, ERR_CONFLICT, "EXPORT needs a HOLD of this connection");
	err = hold_export(r->conn);
	if (err < 0)
		conn_error(r->conn, done.ref, ERR_NONE, -err, "export the execs");
	else
		conn_answer(r->conn, &done, sizeof(done), -1);
	return 0;
}

static int requests_import(const struct request *r)
{
	struct frame done = conn_head(WIRE_DONE, r->head->ref);
	const char *why = hold_check_import(r->exec_state, r->nfds);
	int err;

	if (why)
		return requests_refuse(r, ERR_INVALID, why);
	if (exec_find(r->head->ref))
		return requests_refuse(r, ERR_CONFLICT, "an exec with this ref already exists");
	used = 1;
	err = hold_import(r->exec_state, r->fds);
	if (err < 0)
		conn_error(r->conn, done.ref, ERR_NONE, -err, "import an exec");
	else
		conn_answer(r->conn, &done, sizeof(done), -1);
	return 0;
}

static int requests_terminal(const struct request *r)
{
	struct frame f = conn_head(WIRE_FD, r->head->ref);
	int fd;

	if (r->terminal->number >= WIRE_TERMINALS || r->terminal->pad)
		return requests_refuse(r, ERR_INVALID, "no such terminal");
	fd = exec_new_terminal(r->terminal->number);
	if (fd < 0)
		conn_error(r->conn, r->head->ref, ERR_NONE, -fd, "make a terminal");
	else
		conn_answer(r->conn, &f, sizeof(f), fd);
	return 0;
}

static int connect_port(const struct request *r)
{
	if (r->connect->port < 1 || r->connect->port > 65535)
		return requests_refuse(r, ERR_INVALID, "no such port");
	if (tcp_start(r->conn, r->head->ref, (uint16_t)r->connect->port) < 0)
		return requests_refuse(r, ERR_LIMIT, "too many connections are being made");
	return 0;
}

/* The listening socket belongs to the network of this box, also in another process. */
static int listen_port(const struct request *r)
{
	struct frame f = conn_head(WIRE_FD, r->head->ref);
	int fd;

	if (r->connect->port < 1024 || r->connect->port > 65535)
		return requests_refuse(r, ERR_INVALID, "no such port");
	fd = tcp_listen((uint16_t)r->connect->port);
	if (fd < 0)
		conn_error(r->conn, r->head->ref, ERR_NONE, -fd, "listen inside the box");
	else
		conn_answer(r->conn, &f, sizeof(f), fd);
	return 0;
}

static const struct request_row {
	int (*run)(const struct request *r);
	uint8_t takes_fds;
} request_rows[] = {
	/* clang-format off */
	[WIRE_PERSIST] = { requests_keep, 0 },
	[WIRE_JOIN_CGROUPS] = { requests_adopt, 1 },
	[WIRE_ZYGOTE] = { requests_plant, 1 },
	[WIRE_START] = { requests_start, 1 },
	[WIRE_SIGNAL] = { signal_group, 0 },
	[WIRE_RESIZE] = { requests_resize, 0 },
	[WIRE_STDIN] = { stdin_buf_stdin, 0 },
	[WIRE_OUTPUT_WINDOW] = { requests_credit, 0 },
	[WIRE_ATTACH] = { read_from, 0 },
	[WIRE_DETACH] = { requests_leave, 0 },
	[WIRE_FORGET] = { requests_forget, 0 },
	[WIRE_EXECS] = { list_execs, 0 },
	[WIRE_FILES] = { requests_files, 0 },
	[WIRE_CONNECT] = { connect_port, 0 },
	[WIRE_LISTEN] = { listen_port, 0 },
	[WIRE_KILL_ON_CLOSE] = { requests_kill_on_close, 0 },
	[WIRE_STAT] = { stat_box, 0 },
	[WIRE_STOP] = { requests_stop, 0 },
	[WIRE_LEASE] = { requests_lease, 0 },
	[WIRE_PUT_EARLY] = { requests_lay, 0 },
	[WIRE_HOLD] = { requests_hold, 0 },
	[WIRE_EXPORT] = { requests_export, 0 },
	[WIRE_EXEC_STATE] = { requests_import, 1 },
	[WIRE_TERMINAL] = { requests_terminal, 0 },
	/* clang-format on */
};

int requests_run(struct conn *c, struct frame *f, uint32_t len, int *fds, unsigned nfds)
{
	const struct request_row *v =
		f->type < ARRAY_LEN(request_rows) ? &request_rows[f->type] : NULL;
	struct request r = { .conn = c, .head = f, .fds = fds, .nfds = nfds };

	if (!v || !v->run || (nfds && !v->takes_fds))
		return -1;
	if (v->run != requests_keep && conn_kept())
		conn_claim();
	r.tail = (char *)f + frame_body(f->type);
	r.tail_len = len - frame_body(f->type);
	return v->run(&r);
}
