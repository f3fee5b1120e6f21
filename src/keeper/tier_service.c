/* tier_service.c - see tier_service.h. */
#include "keeper/tier_service.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { SERVICE_FD = 3, SERVICE_HIGH = 64, PROBE_MS = 30000 };
enum { SERVICE_LAST = 1 }; /* flag of an answer */

/* ---- in the process that examines one tier ---- */

static _Noreturn void service_probe(unsigned tier, const struct tier_host *h,
				    tier_service_probe *probe, int out)
{
	struct wire_tier_facts facts;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* What an engine prints must not fill the log of the keeper. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || null < 0 || dup2(null, 0) < 0 ||
	    dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(1);
	probe(tier, h, &facts);
	_exit(write(out, &facts, sizeof(facts)) != (ssize_t)sizeof(facts));
}

/* ---- in the service ---- */

/* A fork whose child is PID 1 of a new namespace: its end is the end of all that it has started. */
static pid_t service_fork(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);

	return pid < 0 ? fork() : (pid_t)pid;
}

/* All bytes of the facts within the time. */
static int service_receive(int fd, unsigned timeout_ms, struct wire_tier_facts *out, struct err *e)
{
	uint64_t until_ns = now_ns() + timeout_ms * 1000000ull;
	size_t got = 0;

	while (got < sizeof(*out)) {
		uint64_t now = now_ns();
		int left_ms = now < until_ns ? (int)((until_ns - now) / 1000000) + 1 : 0;
		ssize_t n;

		if (!left_ms ||
		    poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, left_ms) == 0)
			return err_set(e, ERR_SYS,
				       "its engine was examined for %u s without a result",
				       timeout_ms / 1000);
		n = read(fd, (char *)out + got, sizeof(*out) - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, ERR_SYS, "the examination of its engine was killed");
		got += (size_t)n;
	}
	return 0;
}

static void service_end_texts(struct wire_tier_facts *f)
{
	f->engine[sizeof(f->engine) - 1] = f->version[sizeof(f->version) - 1] = 0;
	f->sha256[sizeof(f->sha256) - 1] = f->platform[sizeof(f->platform) - 1] = 0;
	f->reason[sizeof(f->reason) - 1] = 0;
}

void tier_service_examine(unsigned tier, const struct tier_host *h, tier_service_probe *probe,
			  unsigned timeout_ms, struct wire_tier_facts *out)
{
	struct wire_tier_facts facts;
	int pipes[2] = { -1, -1 }, done = -1;
	struct err e = { 0 };
	pid_t pid = -1;

	if (pipe2(pipes, O_CLOEXEC) < 0 || (pid = service_fork()) < 0)
		err_sys(&e, "start the examination");
	if (pid == 0)
		service_probe(tier, h, probe, pipes[1]);
	own_close_fd(&pipes[1]);
	if (pid > 0) {
		done = service_receive(pipes[0], timeout_ms, &facts, &e);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	own_close_fd(&pipes[0]);
	if (done == 0 && facts.tier == tier) {
		*out = facts;
		service_end_texts(out);
		return;
	}
	tier_facts_init(tier, h, out);
	out->state = WIRE_TIER_UNAVAILABLE;
	snprintf(out->reason, sizeof(out->reason), "%s", e.msg);
}

static int service_answer(int sock, const struct wire_tier_facts *f, int last)
{
	struct frame head = sock_head(WIRE_TIERS_REPLY, 0);
	struct err e;

	head.flags = last ? SERVICE_LAST : 0;
	return sock_send(sock, &head, sizeof(head), f, sizeof(*f), NULL, 0, &e);
}

static int service_examine_all(int sock, const struct tier_host *h)
{
	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++) {
		const struct tier *t = tier_find(i);
		struct wire_tier_facts facts;

		if (t && t->probe)
			tier_service_examine(i, h, tier_probe, PROBE_MS, &facts);
		else
			tier_facts_init(i, h, &facts);
		if (service_answer(sock, &facts, i == WIRE_TIER_COUNT - 1) < 0)
			return -1;
	}
	return 0;
}

/* Moves a descriptor to *next; a missing one stays -1. */
static int service_place(int high, int *next)
{
	int fd = high < 0 ? -1 : dup3(high, *next, O_CLOEXEC);

	*next += fd >= 0;
	return fd;
}

static int service_lift(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, SERVICE_HIGH);
}

static _Noreturn void service_process(int sock, const struct tier_host *h)
{
	struct tier_host own = *h;
	_Alignas(8) char bytes[WIRE_MAX];
	unsigned nfds = 0;
	struct err e;
	int next = SERVICE_FD;

	sock = service_lift(sock);
	own.dir = service_lift(h->dir);
	own.init_exe = service_lift(h->init_exe);
	own.mux_exe = service_lift(h->mux_exe);
	if (sock < 0 || service_place(sock, &next) != SERVICE_FD)
		_exit(1);
	own.dir = service_place(own.dir, &next);
	own.init_exe = service_place(own.init_exe, &next);
	own.mux_exe = service_place(own.mux_exe, &next);
	/* Closes all other descriptors, also the lock of the keeper: it must be free when the keeper
	 * has ended. */
	if (close_range((unsigned)next, ~0U, 0) < 0)
		_exit(1);
	signal(SIGTERM,
	       SIG_IGN); /* this process ends with the keeper, or when its socket is closed */
	signal(SIGINT, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (sock_recv(SERVICE_FD, bytes, NULL, &nfds, &e) > 0)
		if (service_examine_all(SERVICE_FD, &own) < 0)
			break;
	_exit(0);
}

/* ---- in the keeper ---- */

int tier_service_start(const struct tier_host *h, pid_t *out_pid, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (sock_pair(pair, e) < 0)
		return -1;
	pid = fork();
	if (pid < 0) {
		close(pair[0]);
		close(pair[1]);
		return err_sys(e, "start the tier service");
	}
	if (pid == 0)
		service_process(pair[1], h);
	close(pair[1]);
	*out_pid = pid;
	return pair[0];
}

int tier_service_ask(int service, struct err *e)
{
	struct frame ask = sock_head(WIRE_TIERS, 0);

	return sock_send(service, &ask, sizeof(ask), NULL, 0, NULL, 0, e);
}

int tier_service_read(int service, struct wire_tier_facts *out, int *last, struct err *e)
{
	_Alignas(8) char bytes[WIRE_MAX];
	const struct frame *f = (const struct frame *)bytes;
	unsigned nfds = 0;
	int n = sock_recv(service, bytes, NULL, &nfds, e);

	if (n != (int)(sizeof(*f) + sizeof(*out)) || f->type != WIRE_TIERS_REPLY)
		return err_set(e, ERR_SYS, "the tier service has exited");
	memcpy(out, f + 1, sizeof(*out));
	*last = !!(f->flags & SERVICE_LAST);
	return 0;
}
