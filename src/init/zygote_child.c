/* zygote_child.c - see zygote_child.h. */
#include "init/zygote_child.h"
#include "init/args.h"
#include "initlib/boot_id.h"
#include "init/child.h"
#include "init/exec.h"
#include "init/params.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "zygote/start_msg.h"

static struct {
	int pid; /* 0: none */
	int sock;
	int ours[3]; /* of its stdin, stdout, stderr */
	char program[32];
} zygote;

/* ---- zygote_fork_args ---- */

static long send_stdio(const int theirs[3])
{
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct {
		struct cmsghdr head;
		int fds[4];
	} ride = { .head = { sizeof(struct cmsghdr) + 3 * sizeof(int), SOL_SOCKET, SCM_RIGHTS },
		   .fds = { theirs[0], theirs[1], theirs[2], 0 } };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ride,
			    .msg_controllen = sizeof(ride) };

	return sys_sendmsg(zygote.sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void zygote_drop(void)
{
	int i;

	sys_close(zygote.sock);
	for (i = 0; i < 3; i++)
		sys_close(zygote.ours[i]);
	zygote.pid = 0;
}

static int open_stdio(int theirs[3])
{
	int i, err = 0, p[2];

	for (i = 0; i < 3; i++)
		zygote.ours[i] = theirs[i] = -1;
	for (i = 0; err >= 0 && i < 3; i++) {
		err = exec_pipe(p, i == 0);
		if (err >= 0) {
			zygote.ours[i] = p[i == 0];
			theirs[i] = p[i != 0];
		}
	}
	return err;
}

static int zygote_settle(long err, const int theirs[3])
{
	int i;

	for (i = 0; i < 3; i++)
		sys_close(theirs[i]);
	if (err < 0)
		zygote_drop();
	return err < 0 ? (int)err : 0;
}

static void zygote_learn(const struct wire_zygote *w)
{
	memcpy(zygote.program, w->program, sizeof(zygote.program));
	zygote.program[sizeof(zygote.program) - 1] = '\0';
}

int zygote_child_take(const struct wire_zygote *w, int take_fd)
{
	int theirs[3];
	long err;

	boot_due();
	zygote_learn(w);
	zygote.pid = w->pid;
	zygote.sock = take_fd;
	err = open_stdio(theirs);
	if (err >= 0)
		err = send_stdio(theirs);
	return zygote_settle(err, theirs);
}

int zygote_child_run(const struct wire_zygote *w, char **argv)
{
	/* Not static: initialised data takes a page, and every box would have its own copy. */
	char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", home[] = "HOME=" HOME;
	char *env[] = { path, home, NULL };
	struct child_args c = { .cwd = HOME, .argv = argv, .env = env, .channel = -1 };
	int pair[2] = { -1, -1 };
	long err = sys_socketpair(SOCK_STREAM | SOCK_CLOEXEC, pair);

	zygote_learn(w);
	zygote.sock = pair[0];
	c.channel = pair[1];
	if (err >= 0)
		err = open_stdio(c.stdio);
	if (err >= 0)
		err = child_start(&c);
	if (err >= 0 && c.failed)
		err = -c.err;
	zygote.pid = (int)err;
	sys_close(pair[1]);
	return zygote_settle(err, c.stdio);
}

/* ---- starting ---- */

/* "/usr/bin/python3" and "python3" mean the same interpreter; any other path is another file. */
static int is_meant(const char *name)
{
	const char *last = zygote.program, *at;

	for (at = last; *at; at++)
		if (*at == '/')
			last = at + 1;
	return !text_compare(name, zygote.program) || !text_compare(name, last);
}

/* A warm interpreter runs as the user, has pipes, and was created without a file size limit. */
static int zygote_suits(const struct wire_start *st, const struct exec_args *a)
{
	return zygote.pid && is_meant(a->argv[0]) &&
	       !(st->head.flags & (WIRE_START_PTY | WIRE_START_ROOT)) && !st->fsize_bytes &&
	       !st->without && st->tail_bytes < START_MSG_BYTES - 64 &&
	       (!*a->cwd || !text_compare(a->cwd, HOME));
}

/* cwd NUL argc NUL argv... env...: the strings of START are in this order already. */
static int send_words(const struct wire_start *st, const struct exec_args *a)
{
	size_t cwd = strlen(a->cwd) + 1, rest = st->tail_bytes - cwd;
	char count[24];
	struct text t = { .to = count, .room = sizeof(count) };
	uint32_t total;
	struct iovec iov[4] = { { &total, sizeof(total) },
				{ (void *)a->cwd, cwd },
				{ count, 0 },
				{ (void *)a->argv[0], rest } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 4 };

	text_add_number(&t, st->argc);
	iov[2].iov_len = t.len + 1;
	total = (uint32_t)(cwd + iov[2].iov_len + rest);
	return sys_sendmsg(zygote.sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (long)(sizeof(total) + total);
}

/* From here on the exec owns its pipes. */
static int hand_over(struct exec *x, const struct wire_start *st)
{
	int i, err = 0;

	for (i = 0; i < 2; i++) {
		stream_open(&x->out[i], zygote.ours[1 + i], 0);
		zygote.ours[1 + i] = -1;
	}
	if (st->head.flags & WIRE_START_STDIN) {
		stdin_buf_init(&x->in, x, zygote.ours[0], STDIN_BUF_PIPE);
		zygote.ours[0] = -1;
	}
	if (st->head.flags & WIRE_START_CHANNEL) {
		err = exec_channel(x, zygote.sock);
		zygote.sock = -1;
	}
	return err;
}

int zygote_child_start(struct exec *x, const struct wire_start *st, const struct exec_args *a)
{
	int pid = zygote.pid;

	if (!zygote_suits(st, a))
		return 0;
	if (!send_words(st, a)) {
		sys_kill(pid, SIGKILL); /* it may have received a part of it */
		zygote_drop();
		return 0;
	}
	if (hand_over(x, st) < 0)
		sys_kill(pid, SIGKILL); /* then that is how it ends */
	zygote_drop();
	x->pid = x->group = pid;
	return 1;
}

void zygote_child_end(void)
{
	if (!zygote.pid)
		return;
	sys_kill(zygote.pid, SIGKILL);
	zygote_drop();
}

int zygote_child_reaped(int pid)
{
	if (!zygote.pid || pid != zygote.pid)
		return 0;
	zygote_drop();
	return 1;
}
