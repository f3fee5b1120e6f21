/* exec.c - see exec.h. */
#include "init/exec.h"
#include "init/foreground.h"
#include "init/args.h"
#include "init/child.h"
#include "init/conn.h"
#include "init/disk_usage.h"
#include "init/zygote_child.h"
#include "init/params.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/attachment.h"
#include <asm/termios.h>

enum { REAP_A_TURN = 64 };

static LAZY struct exec execs[EXEC_MAX];
/* One bit per slot: the sets are walked every turn, the table is not. */
enum { WORDS = EXEC_MAX / 64 };
_Static_assert(EXEC_MAX % 64 == 0, "a slot without a bit");
struct set {
	uint64_t word[WORDS];
};
static struct set used, running, due;
static uint64_t turns, reaped;
static int zombies_left, childless;

static void set_add(struct set *s, const struct exec *x)
{
	s->word[(x - execs) / 64] |= 1ull << (x - execs) % 64;
}

static void set_drop(struct set *s, const struct exec *x)
{
	s->word[(x - execs) / 64] &= ~(1ull << (x - execs) % 64);
}

/* The next exec of the set after `after` (NULL: the first), or NULL. */
static struct exec *set_next(const struct set *s, const struct exec *after)
{
	int from = after ? (int)(after - execs) + 1 : 0, i = from / 64;
	uint64_t rest = from < EXEC_MAX ? s->word[i] >> from % 64 << from % 64 : 0;

	while (!rest && ++i < WORDS)
		rest = s->word[i];
	return rest ? &execs[i * 64 + __builtin_ctzll(rest)] : NULL;
}

static unsigned set_count(const struct set *s)
{
	unsigned n = 0;
	uint64_t rest;
	int i;

	for (i = 0; i < WORDS; i++)
		for (rest = s->word[i]; rest;
		     rest &= rest - 1) /* popcount needs a library on x86 */
			n++;
	return n;
}

/* ---- the table ---- */

struct exec *exec_next(const struct exec *after)
{
	return set_next(&used, after);
}

struct exec *exec_at(int slot)
{
	return used.word[slot / 64] >> slot % 64 & 1 ? &execs[slot] : NULL;
}

static struct exec *free_slot(void)
{
	int i;

	for (i = 0; i < WORDS; i++)
		if (~used.word[i])
			return &execs[i * 64 + __builtin_ctzll(~used.word[i])];
	return NULL;
}

struct exec *exec_find(uint32_t ref)
{
	struct exec *x = exec_next(NULL);

	while (x && x->ref != ref)
		x = exec_next(x);
	return x;
}

/* Finished execs without readers are evicted before those with readers. */
static struct exec *oldest_finished(void)
{
	struct exec *x, *oldest = NULL;

	for (x = exec_next(NULL); x; x = exec_next(x)) {
		if (!x->over)
			continue;
		if (!oldest || (!x->views && oldest->views) ||
		    (!x->views == !oldest->views && x->turn < oldest->turn))
			oldest = x;
	}
	return oldest;
}

struct exec *exec_new(uint32_t ref)
{
	unsigned now = set_count(&running), all = set_count(&used);
	struct exec *x = all - now >= EXEC_KEPT ? oldest_finished() : NULL;

	if (now >= EXEC_MAX - EXEC_KEPT)
		return NULL;
	if (x)
		exec_forget(x);
	x = free_slot();
	if (!x)
		return NULL;
	memset(x, 0, sizeof(*x));
	x->ref = ref;
	x->turn = turns++;
	x->end.head = conn_head(WIRE_EXIT, ref);
	guest_counts_read(&x->before);
	set_add(&used, x);
	return x;
}

void exec_forget(struct exec *x)
{
	int i;

	attachment_detach_all(x);
	for (i = 0; i < WIRE_STREAMS; i++)
		exec_pump_fini(&x->out[i]);
	stdin_buf_fini(&x->in);
	stdin_buf_fini(&x->channel_in);
	set_drop(&used, x);
	set_drop(&running, x);
	set_drop(&due, x);
}

static void cut_logs(struct exec *x)
{
	int i;

	for (i = 0; i < WIRE_STREAMS; i++)
		log_cut(&x->out[i].log, attachment_slowest(x, i));
}

void exec_cut_logs(void)
{
	uint64_t from = 0;
	struct exec *x, *oldest;

	/* Finished ones, oldest first. */
	do {
		oldest = NULL;
		for (x = exec_next(NULL); x; x = exec_next(x))
			if (x->over && x->turn >= from && (!oldest || x->turn < oldest->turn))
				oldest = x;
		if (oldest) {
			cut_logs(oldest);
			from = oldest->turn + 1;
		}
	} while (oldest && log_crowded());
	for (x = exec_next(NULL); x && log_crowded(); x = exec_next(x))
		if (!x->over)
			cut_logs(x);
}

unsigned exec_running(void)
{
	return set_count(&running);
}

uint64_t exec_reaped(void)
{
	return reaped;
}

void exec_due(struct exec *x)
{
	set_add(&due, x);
}

/* ---- beginning ---- */

/* Init's end does not block; the program's does, as programs expect. */
int exec_pipe(int out_pair[2], int ours)
{
	long err = sys_pipe(out_pair, O_CLOEXEC);

	if (err >= 0)
		err = sys_fcntl(out_pair[ours], F_SETFL, O_NONBLOCK | (ours ? O_WRONLY : O_RDONLY));
	return (int)err;
}

/* theirs[] starts as /dev/null and -1s; on failure the caller closes the opened descriptors. */
static int open_pipes(struct exec *x, const struct wire_start *st, int theirs[3])
{
	int i, err, p[2];

	for (i = 0; i < 2; i++) {
		err = exec_pipe(p, 0);
		if (err < 0)
			return err;
		stream_open(&x->out[i], p[0], 0);
		theirs[1 + i] = p[1];
	}
	if (st->head.flags & WIRE_START_STDIN) {
		err = exec_pipe(p, 1);
		if (err < 0)
			return err;
		stdin_buf_init(&x->in, x, p[1], STDIN_BUF_PIPE);
		theirs[0] = p[0];
	}
	return 0;
}

/* One socket for both directions. Init has two descriptors of it, so that reading and writing
 * are waited for independently. */
int exec_channel(struct exec *x, int take_fd)
{
	long copy, err;

	stream_open(&x->out[2], take_fd, 0);
	err = sys_fcntl(take_fd, F_SETFL, O_NONBLOCK | O_RDWR);
	copy = err < 0 ? err : sys_fcntl(take_fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return (int)copy;
	stdin_buf_init(&x->channel_in, x, (int)copy, STDIN_BUF_SOCKET);
	return 0;
}

static int open_channel(struct exec *x, int *theirs)
{
	int p[2], err = (int)sys_socketpair(SOCK_STREAM | SOCK_CLOEXEC, p);

	if (err < 0)
		return err;
	*theirs = p[1];
	return exec_channel(x, p[0]);
}

/* The slave of a terminal belongs to the user that opens the master, so init opens it as the
 * program's user. */
static int open_master(const struct child_args *c)
{
	uint32_t id = c->ids ? c->uid : c->root ? 0 : self.user;
	int fd;

	if (id != self.uid)
		sys_setfsid(id, c->ids ? c->gid : id);
	fd = (int)sys_openat(AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0);
	if (id != self.uid) {
		sys_setfsid(self.uid, self.gid);
		sys_prctl(PR_SET_DUMPABLE, 0, 0); /* the kernel resets it with the id */
	}
	return fd;
}

/* gVisor, which has no TIOCGPTPEER, sends no signals from a terminal either. */
static LAZY int terminals_send_no_signals;

int exec_terminals_are_silent(void)
{
	return terminals_send_no_signals;
}

/* The other end of a terminal. gVisor has no TIOCGPTPEER; there it is opened by its name. */
static int open_slave(int master)
{
	const int how = O_RDWR | O_NOCTTY | O_CLOEXEC;
	long slave = sys_ioctl(master, TIOCGPTPEER, (void *)(uintptr_t)how);
	char name[32];
	struct text t = { .to = name, .room = sizeof(name) };
	unsigned number;

	if (slave != -ENOTTY)
		return (int)slave;
	terminals_send_no_signals = 1;
	slave = sys_ioctl(master, TIOCGPTN, &number);
	if (slave < 0)
		return (int)slave;
	text_add(&t, "/dev/pts/");
	text_add_number(&t, number);
	return (int)sys_openat(AT_FDCWD, name, how, 0);
}

/* The lowest free number is given: those below are taken for a moment. */
int exec_new_terminal(uint32_t number)
{
	const struct child_args user = { 0 };
	int below[WIRE_TERMINALS], n = 0, unlock = 0, master, err;
	uint32_t got = 0;

	for (;;) {
		master = open_master(&user);
		err = master < 0 ? master : (int)sys_ioctl(master, TIOCGPTN, &got);
		if (err < 0 || got >= number || n == WIRE_TERMINALS)
			break;
		below[n++] = master;
	}
	while (n)
		sys_close(below[--n]);
	if (!err && got != number)
		err = -EEXIST;
	if (!err)
		err = (int)sys_ioctl(master, TIOCSPTLCK, &unlock);
	if (err < 0 && master >= 0)
		sys_close(master);
	return err < 0 ? err : master;
}

/* One descriptor for reading and one for writing: see open_terminal(). */
int exec_import_terminal(struct exec *x, int master)
{
	struct winsize size = { 0 };
	long out, in;

	out = sys_fcntl(master, F_DUPFD_CLOEXEC, 3);
	if (out < 0)
		return (int)out;
	sys_fcntl((int)out, F_SETFL, O_RDWR | O_NONBLOCK);
	stream_open(&x->out[0], (int)out, 1);
	in = sys_fcntl(master, F_DUPFD_CLOEXEC, 3);
	if (in < 0)
		return (int)in;
	stdin_buf_init(&x->in, x, (int)in, STDIN_BUF_TTY);
	x->tty = 1;
	if (sys_ioctl((int)out, TIOCGWINSZ, &size) >= 0) {
		x->rows = size.ws_row;
		x->cols = size.ws_col;
	}
	return 0;
}

static int open_terminal(struct exec *x, const struct wire_start *st, struct child_args *c)
{
	int unlock = 0, slave, master = open_master(c), *theirs = c->stdio;
	long copy;

	if (master < 0)
		return master;
	stream_open(&x->out[0], master, 1);
	if (sys_ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -EIO;
	slave = open_slave(master);
	if (slave < 0)
		return slave;
	theirs[0] = theirs[1] = theirs[2] = slave;
	/* A second descriptor of the same terminal, so that reading and writing are waited for
	 * independently. */
	copy = sys_fcntl(master, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return (int)copy;
	stdin_buf_init(&x->in, x, (int)copy, STDIN_BUF_TTY);
	x->tty = 1;
	exec_resize(x, st->rows ? st->rows : 24, st->cols ? st->cols : 80);
	return 0;
}

static void close_theirs(const struct child_args *c)
{
	const int *theirs = c->stdio;

	if (theirs[0] > 2)
		sys_close(theirs[0]);
	if (theirs[1] != theirs[0]) { /* a terminal is one descriptor three times */
		sys_close(theirs[1]);
		sys_close(theirs[2]);
	}
	if (c->channel >= 0)
		sys_close(c->channel);
}

static void exec_resume(struct exec *x)
{
	int i;

	for (i = 0; i < WIRE_STREAMS; i++)
		stream_resume(&x->out[i]);
}

static void exec_do_begin(struct exec *x, const struct wire_start *st)
{
	x->grace_ms = st->grace_ms;
	x->lone = !!(st->head.flags & WIRE_START_LEADER_ONLY);
	x->deadline_ns = st->wall_ms ? x->born_ns + st->wall_ms * 1000000ull : 0;
	set_add(&running, x);
	exec_resume(x);
}

void exec_run(struct exec *x, const struct wire_start *st, const struct exec_args *a)
{
	struct child_args c = {
		.cwd = a->cwd,
		.argv = a->argv,
		.env = a->env,
		.stdio = { 0, -1, -1 },
		.channel = -1,
		.tty = st->head.flags & WIRE_START_PTY,
		.root = st->head.flags & WIRE_START_ROOT ||
			(st->head.flags & WIRE_START_IDS && st->uid == 0),
		.ids = st->head.flags & WIRE_START_IDS,
		.uid = st->uid,
		.gid = st->gid,
		.fsize_bytes = st->fsize_bytes,
		.without = st->without,
	};
	int pid, err;

	x->born_ns = loop_now_ns;
	if (st->head.flags & WIRE_START_WARM && zygote_child_start(x, st, a)) {
		exec_do_begin(x, st);
		return;
	}
	err = c.tty ? open_terminal(x, st, &c) : open_pipes(x, st, c.stdio);
	if (err >= 0 && st->head.flags & WIRE_START_CHANNEL)
		err = open_channel(x, &c.channel);
	if (err < 0) {
		close_theirs(&c);
		exec_fail(x, c.tty ? "terminal" : "pipes", -err);
		return;
	}
	pid = child_start(&c);
	close_theirs(&c);
	if (pid < 0 || c.failed) {
		exec_fail(x, pid < 0 ? "clone" : c.failed, pid < 0 ? -pid : c.err);
		return;
	}
	x->pid = x->group = pid;
	exec_do_begin(x, st);
}

void exec_adopt(struct exec *x)
{
	set_add(&running, x);
	exec_resume(x);
}

void exec_hold(void)
{
	struct exec *x;

	for (x = set_next(&running, NULL); x; x = set_next(&running, x)) {
		exec_resume(x);
		stdin_buf_resume(&x->in);
		stdin_buf_resume(&x->channel_in);
	}
}

/* ---- end ---- */

static void exec_finish(struct exec *x)
{
	struct disk d;
	int i;

	for (i = 0; i < WIRE_STREAMS; i++) {
		loop_close(&x->out[i].src);
		x->end.bytes[i] = x->out[i].log.tip;
		x->end.dropped[i] = x->out[i].log.from;
	}
	x->end.stdin_bytes = x->in.consumed;
	stdin_buf_fini(&x->in);
	stdin_buf_fini(&x->channel_in);
	disk_measure(&d);
	x->end.disk_free = d.free;
	x->end.disk_size = d.size;
	x->end.files_free = d.files_free;
	x->end.files_size = d.files_size;
	x->end.reaped = (uint32_t)reaped;
	x->over = 1;
	set_drop(&running, x);
	x->end.head.flags =
		guest_counts_flags(&x->before, x->end.why != WIRE_WHY_EXIT || x->end.status != 0,
				   set_count(&running) == 0);
	exec_due(x);
}

void exec_fail(struct exec *x, const char *step, int err)
{
	struct text t = { .to = x->end.step, .room = sizeof(x->end.step) };

	x->end.why = WIRE_WHY_EXEC;
	x->end.status = err;
	text_add(&t, step);
	exec_finish(x);
}

void exec_check(struct exec *x)
{
	if (!x->over && !x->pid && x->out[0].src.fd < 0 && x->out[1].src.fd < 0 &&
	    x->out[2].src.fd < 0)
		exec_finish(x);
}

void exec_was_cut(struct exec *x, int stream)
{
	x->end.cut |= 1u << stream;
}

static uint64_t exec_micros(long sec, long usec)
{
	return (uint64_t)sec * 1000000u + (uint64_t)usec;
}

static void leader_ended(struct exec *x, int status, const struct rusage *ru)
{
	struct wire_exit *e = &x->end;
	int signo = status & 0x7f;

	x->pid = 0;
	e->why = !signo ? WIRE_WHY_EXIT : x->walled ? WIRE_WHY_WALL : WIRE_WHY_SIGNAL;
	e->status = signo ? signo : status >> 8 & 0xff;
	e->wall_us = (loop_now_ns - x->born_ns) / 1000;
	e->user_us = exec_micros(ru->ru_utime.tv_sec, ru->ru_utime.tv_usec);
	e->system_us = exec_micros(ru->ru_stime.tv_sec, ru->ru_stime.tv_usec);
	e->max_rss_kib = (uint64_t)ru->ru_maxrss;
	e->reads = (uint64_t)ru->ru_inblock;
	e->writes = (uint64_t)ru->ru_oublock;
	if (!x->lone)
		x->deadline_ns = loop_now_ns + x->grace_ms * 1000000ull;
	else if (x->walled || x->put_down)
		x->deadline_ns = loop_now_ns;
	if (x->tty)
		stream_hang_up(&x->out[0]);
	exec_check(x);
}

static struct exec *led_by(int pid)
{
	struct exec *x = set_next(&running, NULL);

	while (x && x->pid != pid)
		x = set_next(&running, x);
	return x;
}

static void exec_reap_one(int pid, int status, const struct rusage *ru)
{
	struct exec *x = led_by(pid);

	reaped++;
	if (x)
		leader_ended(x, status, ru);
	else if (zygote_child_reaped(pid) && !conn_kept())
		sys_exit(70); /* no client has this box yet: the keeper makes another one */
}

/* Reaps every process that ends in the box: leaders of execs, and orphans. */
static void exec_reap(void)
{
	struct rusage ru;
	int i, status;

	for (i = 0; i < REAP_A_TURN; i++) {
		int pid = (int)sys_wait4(-1, &status, WNOHANG, &ru);

		if (pid <= 0) {
			childless = pid == -ECHILD;
			break;
		}
		exec_reap_one(pid, status, &ru);
	}
	zombies_left = i == REAP_A_TURN;
}

static void child_signal(struct event_source *s, uint32_t events)
{
	struct signalfd_siginfo info;

	(void)events;
	/* Read before waiting: a child that ends in between then wakes init again. */
	sys_read(s->fd, &info, sizeof(info));
	exec_reap();
}

void exec_init(void)
{
	static struct event_source children;

	children.ready = child_signal;
	children.fd = (int)sys_signalfd(1ull << (SIGCHLD - 1), O_CLOEXEC | O_NONBLOCK);
	if (children.fd < 0)
		sys_exit(70);
	loop_want(&children, EPOLLIN);
}

/* Is /proc that of init's pid namespace? In another one the numbers mean other processes. */
static int exec_proc_is_own(void)
{
	char name[16];
	long n = sys_readlinkat(AT_FDCWD, "/proc/self", name, sizeof(name) - 1);

	name[n > 0 ? n : 0] = '\0';
	return text_number(name, 1u << 30) == sys_getpid();
}

/* Kills the children that /proc lists now. 0, or -errno. */
static int exec_kill_children(void)
{
	static LAZY char pids[4096];
	long n, i, fd;
	int pid = 0;

	if (self.children >= 0) {
		n = sys_pread(self.children, pids, sizeof(pids) - 1, 0);
	} else {
		fd = sys_openat(AT_FDCWD, "/proc/thread-self/children", O_RDONLY | O_CLOEXEC, 0);
		if (fd < 0 || !exec_proc_is_own()) {
			sys_close((int)fd);
			return fd < 0 ? (int)fd : -EXDEV;
		}
		n = sys_read((int)fd, pids, sizeof(pids) - 1);
		sys_close((int)fd);
	}
	for (i = 0; i < n; i++) {
		if (pids[i] != ' ') {
			pid = pid * 10 + (pids[i] - '0');
			continue;
		}
		sys_kill(pid, SIGKILL);
		pid = 0;
	}
	return n < 0 ? (int)n : 0;
}

/* An init that is not PID 1 (main.c) is the parent of every orphan: killing its children until there
 * are none ends all its descendants, and no other process. */
static int exec_kill_descendants(void)
{
	struct rusage ru;
	int err, pid, status;

	for (;;) {
		err = exec_kill_children();
		if (err < 0)
			return err;
		do
			pid = (int)sys_wait4(-1, &status, 0, &ru);
		while (pid == -EINTR);
		if (pid < 0)
			break;
		exec_reap_one(pid, status, &ru);
	}
	childless = 1;
	return 0;
}

/* The kernel signals all processes and prevents forks meanwhile, so one call is enough. Outside
 * a pid namespace of its own this would signal all processes of the machine. */
int exec_kill_all(void)
{
	if (sys_getpid() != 1)
		return exec_kill_descendants();
	sys_kill(-1, SIGKILL);
	childless = 0;
	exec_reap();
	return 0;
}

/* All processes descend from init, so when init has no child the box has no process. */
int exec_childless(void)
{
	return childless;
}

/* ---- meanwhile ---- */

void exec_signal(struct exec *x, int signo)
{
	if (x->over)
		return;
	if (!x->lone)
		sys_kill(-x->group, signo);
	else if (x->pid)
		sys_kill(x->pid, signo);
	if (x->lone && (signo == SIGKILL || signo == SIGTERM)) {
		x->put_down = 1;
		x->deadline_ns = x->pid ? x->deadline_ns : loop_now_ns;
	}
}

/* To the foreground of its terminal. */
void exec_signal_foreground(const struct exec *x, int signo)
{
	int group = 0;

	if (x->group <= 1)
		return;
	if (sys_ioctl(x->out[0].src.fd, TIOCGPGRP, &group) < 0 || group <= 1)
		group = foreground_group(x->group);
	sys_kill(-group, signo);
}

void exec_resize(struct exec *x, uint16_t rows, uint16_t cols)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };

	if (!x->tty || sys_ioctl(x->out[0].src.fd, TIOCSWINSZ, &size) < 0)
		return;
	x->rows = rows;
	x->cols = cols;
	if (terminals_send_no_signals && x->pid)
		exec_signal_foreground(x, SIGWINCH);
}

/* The grace period has ended: init no longer waits for the processes that hold the pipes. A
 * stream that waits for its readers is not cut; they get all that the program wrote. */
static void exec_cut(struct exec *x)
{
	int i;

	x->deadline_ns = 0;
	x->overdue = 1;
	/* The channel is cut last: if another stream must wait for its readers, so must the
	 * channel. */
	for (i = 0; i < WIRE_STREAMS; i++)
		if (x->out[i].src.fd >= 0 && !stream_cut(&x->out[i]))
			break;
	exec_check(x);
}

/* The deadline has passed after the leader ended, while other processes still hold its pipes. */
static void exec_outlived(struct exec *x)
{
	if (x->lone && !x->walled && !x->put_down) { /* the wall limit includes them */
		x->end.why = WIRE_WHY_WALL;
		x->end.status = SIGKILL;
	}
	exec_cut(x);
}

static void exec_deadline(struct exec *x)
{
	if (!x->pid) {
		exec_outlived(x);
		return;
	}
	x->walled = 1;
	x->deadline_ns = 0;
	if (!x->lone)
		sys_kill(-x->group, SIGKILL);
	sys_kill(x->pid, SIGKILL); /* it may have moved to another group */
}

void exec_timers(void)
{
	struct exec *x;

	if (zombies_left)
		exec_reap();
	for (x = set_next(&running, NULL); x; x = set_next(&running, x)) {
		if (x->deadline_ns && x->deadline_ns <= loop_now_ns)
			exec_deadline(x);
		if (x->tell_ns && x->tell_ns <= loop_now_ns) {
			x->tell_ns = 0;
			exec_due(x);
		}
	}
}

int exec_timeout_ms(void)
{
	const struct exec *x;
	uint64_t first = ~0ull;

	if (set_next(&due, NULL) || zombies_left)
		return 0;
	for (x = set_next(&running, NULL); x; x = set_next(&running, x)) {
		if (x->deadline_ns && x->deadline_ns < first)
			first = x->deadline_ns;
		if (x->tell_ns && x->tell_ns < first)
			first = x->tell_ns;
	}
	if (first == ~0ull)
		return -1;
	if (first <= loop_now_ns)
		return 0;
	first = (first - loop_now_ns) / 1000000 + 1;
	return first < 1 << 30 ? (int)first : 1 << 30;
}

static void exec_do_pump(struct exec *x)
{
	if (attachment_pump(x))
		exec_due(x);
	exec_resume(x);
	if (x->overdue && !x->over)
		exec_cut(x);
}

void exec_pump(void)
{
	struct set now = due;
	struct exec *x;

	due = (struct set){ 0 };
	for (x = set_next(&now, NULL); x; x = set_next(&now, x))
		exec_do_pump(x);
}
