/* seed.c - see seed.h. What the seed reads is described in src/seed/seed.h. */
#include "init/seed.h"
#include "init/args.h"
#include "init/exec.h"
#include "init/self.h"
#include "init/sys.h"
#include "init/text.h"
#include "seed/words.h"

static struct {
	int pid; /* 0: none */
	int sock;
	int in, out, err; /* our ends */
} seed;

/* Our end does not block; the program's does, as programs expect. */
static int open_pipe(int *ours, int *theirs, int ours_writes)
{
	int p[2];
	long err = sys_pipe(p, O_CLOEXEC);

	if (err < 0)
		return (int)err;
	*ours = p[ours_writes];
	*theirs = p[!ours_writes];
	return (int)sys_fcntl(*ours, F_SETFL, O_NONBLOCK | (ours_writes ? O_WRONLY : O_RDONLY));
}

static long send_stdio(const int theirs[3])
{
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct {
		struct cmsghdr head;
		int fds[4];
	} ride = { .head = { sizeof(struct cmsghdr) + 3 * sizeof(int), SOL_SOCKET, SCM_RIGHTS },
		   .fds = { theirs[0], theirs[1], theirs[2], 0 } };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ride,
			    .msg_controllen = sizeof(ride) };

	return sys_sendmsg(seed.sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void drop(void)
{
	sys_close(seed.sock);
	sys_close(seed.in);
	sys_close(seed.out);
	sys_close(seed.err);
	seed.pid = 0;
}

int seed_take(int pid, int take_fd)
{
	int theirs[3] = { -1, -1, -1 }, i;
	long err;

	seed.pid = pid;
	seed.sock = take_fd;
	seed.in = seed.out = seed.err = -1;
	err = open_pipe(&seed.in, &theirs[0], 1);
	if (err >= 0)
		err = open_pipe(&seed.out, &theirs[1], 0);
	if (err >= 0)
		err = open_pipe(&seed.err, &theirs[2], 0);
	if (err >= 0)
		err = send_stdio(theirs);
	for (i = 0; i < 3; i++)
		sys_close(theirs[i]);
	if (err < 0)
		drop();
	return err < 0 ? (int)err : 0;
}

/* A seed is the user's, has pipes, and was made without a limit to its files. */
static int suits(const struct wire_start *st, const struct args *a)
{
	return seed.pid && !(st->head.flags & (WIRE_START_PTY | WIRE_START_ROOT)) &&
	       !st->fsize_bytes && !st->without && st->tail_bytes < SEED_WORDS - 64 &&
	       (!*a->cwd || !text_compare(a->cwd, HOME));
}

/* cwd NUL argc NUL argv... env...: the strings of START lie one behind the other already. */
static int send_words(const struct wire_start *st, const struct args *a)
{
	size_t cwd = strlen(a->cwd) + 1, rest = st->tail_bytes - cwd;
	char count[24];
	struct text t = { .to = count, .room = sizeof(count) };
	uint32_t total;
	struct iovec iov[4] = { { &total, sizeof(total) }, { (void *)a->cwd, cwd }, { count, 0 },
				{ (void *)a->argv[0], rest } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 4 };

	text_add_number(&t, st->argc);
	iov[2].iov_len = t.len + 1;
	total = (uint32_t)(cwd + iov[2].iov_len + rest);
	return sys_sendmsg(seed.sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (long)(sizeof(total) + total);
}

int seed_start(struct exec *x, const struct wire_start *st, const struct args *a)
{
	int pid = seed.pid;

	if (!suits(st, a))
		return 0;
	if (!send_words(st, a)) {
		sys_kill(pid, SIGKILL); /* it may have had a part of it */
		drop();
		return 0;
	}
	stream_open(&x->out[0], seed.out, 0);
	stream_open(&x->out[1], seed.err, 0);
	seed.out = seed.err = -1;
	if (st->head.flags & WIRE_START_STDIN) {
		feed_init(&x->in, seed.in, 0);
		seed.in = -1;
	}
	drop();
	x->pid = x->group = pid;
	return 1;
}

int seed_reaped(int pid)
{
	if (!seed.pid || pid != seed.pid)
		return 0;
	drop();
	return 1;
}
