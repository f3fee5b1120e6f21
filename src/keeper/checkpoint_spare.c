/* checkpoint_spare.c - see checkpoint_spare.h. */
#include "keeper/checkpoint_spare.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/checkpoint_store.h"
#include "wire/sock.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The pause lets the process of the last checkpoint answer first. */
enum { SPARE_PAUSE_MS = 3, SPARE_IDLE_MS = 60000 };

static struct {
	int sock; /* 0: there is no spare process */
	int wanted;
	uint32_t check_uid;
	uint64_t used_ns; /* the last order */
} spare;

static void spare_end(void)
{
	close(spare.sock);
	spare.sock = 0;
}

int checkpoint_spare_give(uint32_t check_uid, const void *order, size_t n, const int *fds,
			  unsigned nfds)
{
	int given = spare.sock && spare.check_uid == check_uid &&
		    sock_send_message(spare.sock, order, n, fds, nfds) == 0;

	if (spare.sock)
		spare_end();
	spare.wanted = 1;
	spare.check_uid = check_uid;
	spare.used_ns = now_ns();
	return given;
}

static _Noreturn void spare_process(int dir, int sock, pid_t parent,
				    void (*serve)(struct checkpoint_worker *w, int sock))
{
	struct checkpoint_worker w;
	struct err e;

	signal(SIGCHLD, SIG_DFL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
	    checkpoint_worker_start(&w, dir, spare.check_uid, &e) == 0)
		serve(&w, sock);
	_exit(1);
}

static void spare_start(int dir, void (*serve)(struct checkpoint_worker *w, int sock))
{
	pid_t parent = getpid(), pid;
	struct err ignored; /* checkpoints then take longer */
	int pair[2];

	spare.wanted = 0;
	if (sock_pair(pair, &ignored) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		spare_process(dir, pair[1], parent, serve);
	}
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	else
		spare.sock = pair[0];
}

int checkpoint_spare_refresh(int dir, void (*serve)(struct checkpoint_worker *w, int sock))
{
	uint64_t waited_ms = (now_ns() - spare.used_ns) / 1000000;

	if (spare.wanted && waited_ms >= SPARE_PAUSE_MS)
		spare_start(dir, serve);
	if (spare.sock && waited_ms >= SPARE_IDLE_MS)
		spare_end();
	return spare.wanted ? SPARE_PAUSE_MS : spare.sock ? SPARE_IDLE_MS - (int)waited_ms : -1;
}
