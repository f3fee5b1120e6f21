/* hold.c - see hold.h. */
#include "init/hold.h"
#include "init/conn.h"
#include "init/exec.h"
#include "init/zygote_child.h"
#include "initlib/boot_id.h"
#include "initlib/scratch.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include <asm/termios.h>

enum { HOLD_MS = 10000, PART = 32768 };
#define AGE_MOST (UINT64_C(1) << 53) /* microseconds */

struct hold hold;

int hold_begin(const struct conn *c)
{
	if (hold_excludes(c))
		return -1;
	/* It is no exec, and would be missing in a copy. */
	zygote_child_end();
	hold = (struct hold){ c, loop_now_ns + HOLD_MS * 1000000ull };
	exec_hold();
	conn_arm_all();
	return 0;
}

void hold_end(void)
{
	hold.by = NULL;
	exec_hold();
	conn_arm_all();
}

/* ---- export ---- */

static int hold_write(int fd, const char *bytes, size_t n, uint64_t *at)
{
	while (n) {
		long w = sys_pwrite(fd, bytes, n, *at);

		if (w <= 0)
			return w < 0 ? (int)w : -EIO;
		bytes += w;
		*at += (uint64_t)w;
		n -= (size_t)w;
	}
	return 0;
}

static int hold_write_log(int fd, const struct log *l, uint64_t *at)
{
	uint64_t from = l->from;
	long n;
	int err = 0;

	for (; !err && from < l->tip; from += (uint64_t)n) {
		uint64_t left = l->tip - from;

		n = log_read(l, from, scratch, left < PART ? (size_t)left : PART);
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		scratch_used((size_t)n);
		err = hold_write(fd, scratch, (size_t)n, at);
	}
	return err;
}

static int hold_write_input(int fd, const struct stdin_buf *f, uint64_t *at)
{
	uint32_t from = 0;
	int err = 0;

	while (!err && from < f->len) {
		size_t n = stdin_buf_read(f, from, scratch, PART);

		scratch_used(n);
		err = hold_write(fd, scratch, n, at);
		from += (uint32_t)n;
	}
	return err;
}

static int hold_write_content(int fd, const struct exec *x)
{
	uint64_t at = 0;
	int i, err = 0;

	for (i = 0; !err && i < WIRE_STREAMS; i++)
		err = hold_write_log(fd, &x->out[i].log, &at);
	if (!err)
		err = hold_write_input(fd, &x->in, &at);
	return err ? err : hold_write_input(fd, &x->channel_in, &at);
}

static int hold_empty_streams(struct exec *x)
{
	int i, err = 0;

	/* The channel last: see stream.h. */
	for (i = 0; !err && i < WIRE_STREAMS; i++)
		err = stream_empty(&x->out[i]);
	/* A terminal that no process has open. */
	if (x->tty && err == -EIO)
		err = 0;
	exec_due(x);
	return err;
}

static uint64_t hold_inode(int fd)
{
	struct stat st;

	return fd >= 0 && sys_fstat(fd, &st) >= 0 ? st.st_ino : 0;
}

static uint8_t hold_terminal(const struct exec *x)
{
	uint32_t number;

	if (!x->tty)
		return 0;
	if (x->out[0].src.fd < 0 || sys_ioctl(x->out[0].src.fd, TIOCGPTN, &number) < 0 ||
	    number >= WIRE_TERMINALS)
		return WIRE_TTY_LOST;
	return (uint8_t)(1 + number);
}

static void hold_describe(const struct exec *x, struct wire_exec_state *s)
{
	const struct stdin_buf *in[2] = { &x->in, &x->channel_in };
	int i, fd[4];

	*s = (struct wire_exec_state){ .head = conn_head(WIRE_EXEC_STATE, x->ref),
				       .pid = x->pid,
				       .group = x->group,
				       .tty = hold_terminal(x),
				       .lone = x->lone,
				       .grace_ms = x->grace_ms,
				       .age_us = (loop_now_ns - x->born_ns) / 1000 };
	if (x->deadline_ns > loop_now_ns)
		s->left_us = (x->deadline_ns - loop_now_ns) / 1000 + 1;
	for (i = 0; i < WIRE_STREAMS; i++) {
		s->from[i] = x->out[i].log.from;
		s->tip[i] = x->out[i].log.tip;
		s->limit[i] = x->out[i].log.limit;
		fd[i] = x->out[i].src.fd;
	}
	fd[3] = x->in.src.fd;
	for (i = 0; i < 4; i++) {
		s->open |= (uint8_t)(fd[i] >= 0 ? 1u << i : 0);
		s->inode[i] = hold_inode(fd[i]);
	}
	for (i = 0; i < 2; i++) {
		s->accepted[i] = in[i]->accepted;
		s->consumed[i] = in[i]->consumed;
		s->room[i] = in[i]->room;
		s->buffered[i] = in[i]->len;
		s->ending |= (uint8_t)(in[i]->ending ? 1u << i : 0);
	}
}

static int hold_export_one(struct conn *c, struct exec *x)
{
	struct wire_exec_state s;
	int fd, err = hold_empty_streams(x);

	if (err < 0)
		return err;
	hold_describe(x, &s);
	boot_read(s.boot);
	fd = (int)sys_memfd_create("exec", 1 /* MFD_CLOEXEC */);
	if (fd < 0)
		return fd;
	err = hold_write_content(fd, x);
	/* The client has sent nothing else and reads: its socket has room. */
	if (!err && !conn_send(c, &s, sizeof(s), NULL, 0, fd))
		err = -EAGAIN;
	sys_close(fd);
	return err;
}

int hold_export(struct conn *c)
{
	struct exec *x;
	int i, err = 0;

	for (i = 0; !err && i < EXEC_MAX; i++) {
		x = exec_at(i);
		if (x && !x->over)
			err = hold_export_one(c, x);
	}
	return err;
}

/* ---- import ---- */

const char *hold_check_import(const struct wire_exec_state *s, unsigned nfds)
{
	unsigned i, n = 1;

	if (s->open & ~WIRE_OPEN_ALL || s->ending > 3 || s->lone > 1)
		return "unknown bits";
	if (s->tty > WIRE_TERMINALS)
		return "no such terminal";
	if (s->tty && !(s->open & WIRE_OPEN_OUT))
		return "a terminal that is closed";
	for (i = 0; i < 4 && !s->tty; i++)
		n += s->open >> i & 1;
	n += s->tty != 0;
	if (nfds != n)
		return "the number of descriptors does not match what is open";
	if (s->pid < 2 || s->group < 2 || s->age_us > AGE_MOST || s->left_us > AGE_MOST)
		return "a value out of its range";
	for (i = 0; i < WIRE_STREAMS; i++)
		if (s->from[i] > s->tip[i] || s->tip[i] - s->from[i] > 2 * (uint64_t)LOG_MOST ||
		    s->tip[i] > INT64_MAX)
			return "offsets of a stream out of their range";
	for (i = 0; i < 2; i++)
		if (s->buffered[i] > STDIN_BUF_ROOM || s->consumed[i] > s->accepted[i] ||
		    s->accepted[i] > s->room[i] || s->room[i] - s->accepted[i] > STDIN_BUF_ROOM)
			return "offsets of the input out of their range";
	return NULL;
}

static int hold_read_log(struct log *l, uint64_t from, uint64_t tip, int fd, uint64_t *at)
{
	l->from = l->tip = l->base = from;
	while (l->tip < tip) {
		uint64_t left = tip - l->tip;
		long n = sys_pread(fd, scratch, left < PART ? (size_t)left : PART, *at);

		if (n <= 0)
			return n < 0 ? (int)n : -EINVAL;
		scratch_used((size_t)n);
		log_append(l, scratch, (size_t)n);
		*at += (uint64_t)n;
	}
	return 0;
}

static int hold_read_input(struct stdin_buf *f, uint32_t bytes, int fd, uint64_t *at)
{
	uint32_t done = 0;

	while (done < bytes) {
		uint32_t left = bytes - done;
		long n = sys_pread(fd, scratch, left < PART ? left : PART, *at);

		if (n <= 0)
			return n < 0 ? (int)n : -EINVAL;
		scratch_used((size_t)n);
		stdin_buf_restore(f, scratch, (size_t)n);
		done += (uint32_t)n;
		*at += (uint64_t)n;
	}
	return 0;
}

static void hold_set_input(struct stdin_buf *f, const struct wire_exec_state *s, int i)
{
	f->accepted = s->accepted[i];
	f->consumed = s->consumed[i];
	f->room = f->src.fd < 0 ? 0 : s->room[i];
	f->ending = s->ending >> i & 1;
}

/* The caller closes its descriptors, the exec has its own. */
static int hold_own(int fd, int flags)
{
	int own = (int)sys_fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (own >= 0)
		sys_fcntl(own, F_SETFL, O_NONBLOCK | flags);
	return own;
}

static int hold_open_streams(struct exec *x, const struct wire_exec_state *s, const int *fds)
{
	unsigned i, k = 1;
	int fd;

	for (i = 0; i < WIRE_STREAMS; i++)
		exec_pump_init(&x->out[i], x, (int)i, s->limit[i]);
	stdin_buf_init(&x->in, x, -1, STDIN_BUF_PIPE);
	stdin_buf_init(&x->channel_in, x, -1, STDIN_BUF_SOCKET);
	if (s->tty) {
		fd = exec_import_terminal(x, fds[k]);
		if (fd < 0)
			return fd;
	}
	for (i = 0; i < 4 && !s->tty; i++) {
		if (!(s->open >> i & 1))
			continue;
		fd = hold_own(fds[k++], i == 2 ? O_RDWR : i == 3 ? O_WRONLY : O_RDONLY);
		if (fd < 0)
			return fd;
		if (i == 2 && exec_channel(x, fd) < 0)
			return -EMFILE;
		if (i < 2)
			stream_open(&x->out[i], fd, 0);
		if (i == 3)
			stdin_buf_init(&x->in, x, fd, STDIN_BUF_PIPE);
	}
	hold_set_input(&x->in, s, 0);
	hold_set_input(&x->channel_in, s, 1);
	return 0;
}

static int hold_read_content(struct exec *x, const struct wire_exec_state *s, int fd)
{
	uint64_t at = 0;
	int i, err = 0;

	for (i = 0; !err && i < WIRE_STREAMS; i++)
		err = hold_read_log(&x->out[i].log, s->from[i], s->tip[i], fd, &at);
	if (!err && x->in.src.fd >= 0)
		err = hold_read_input(&x->in, s->buffered[0], fd, &at);
	if (!err && x->channel_in.src.fd >= 0)
		err = hold_read_input(&x->channel_in, s->buffered[1], fd, &at);
	return err;
}

/* The frame lies in `scratch`, which is used here: so it is copied first. */
int hold_import(const struct wire_exec_state *from, const int *fds)
{
	struct wire_exec_state s = *from;
	struct exec *x = exec_new(s.head.ref);
	int err = x ? hold_open_streams(x, &s, fds) : -ENOSPC;

	boot_take(s.boot);
	boot_due();
	if (!err)
		err = hold_read_content(x, &s, fds[0]);
	if (err) {
		if (x)
			exec_forget(x);
		return err;
	}
	x->pid = s.pid;
	x->group = s.group;
	x->lone = s.lone;
	x->grace_ms = s.grace_ms;
	x->born_ns = loop_now_ns - s.age_us * 1000;
	x->deadline_ns = s.left_us ? loop_now_ns + s.left_us * 1000 : 0;
	exec_adopt(x);
	return 0;
}
