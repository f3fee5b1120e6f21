/* wirebox.h - real boxes over the wire, for tests in C. Starts its own keeper: this executable as
 * `keeper`, in a separate run folder. Needs root. A test file ends with a test that calls
 * leave_nothing(). */
#pragma once
#include "base/clock.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "keeper/keeper.h"
#include "tap.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char run_dir[64], state_dir[64];
static _Alignas(8) char bytes[WIRE_MAX + 1];
#define GOT(type) ((const struct type *)(const void *)bytes)
static int got_fd;

/* The library starts a keeper from /proc/self/exe, which is this test. */
__attribute__((constructor)) static void set_up(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "keeper") == 0)
		_exit(keeper_main(argc - 1, argv + 1));
	snprintf(run_dir, sizeof(run_dir), "/dev/shm/atoll-wire.%d", (int)getpid());
	snprintf(state_dir, sizeof(state_dir), "/tmp/atoll-wire.%d", (int)getpid());
	setenv("ATOLL_RUN", run_dir, 1);
	setenv("ATOLL_STATE", state_dir, 1);
}

#define NEED_ROOT()                                                                                \
	do {                                                                                       \
		if (geteuid() != 0)                                                                \
			SKIP("needs root");                                                        \
	} while (0)

/* keeper_sync_open(), and why not. Waits while other tests have all keepers that a host can have. */
static inline int open_keeper(struct keeper_sync *k, int start)
{
	struct err e;

	for (int i = 0; i < 240; i++) {
		if (keeper_sync_open(k, start, &e) == 0)
			return 0;
		if (!strstr(e.msg, "have all user ids"))
			break;
		poll(NULL, 0, 500);
	}
	printf("# no keeper: %s\n", e.msg);
	return -1;
}

/* ---- frames ---- */

/* The type of the next frame; 0 at the end or if none arrives. */
static inline int receive(int fd)
{
	unsigned nfds = 1;
	struct err e;
	int n;

	got_fd = -1;
	if (poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 60000) != 1)
		return 0;
	n = sock_recv(fd, bytes, &got_fd, &nfds, &e);
	if (n <= 0)
		return 0;
	bytes[n] = '\0';
	if (GOT(frame)->type == WIRE_ERROR)
		printf("# said: %s\n", GOT(wire_error)->msg);
	return GOT(frame)->type;
}

static inline int ask(int fd, const void *body, size_t n, const char *tail, size_t tail_n)
{
	struct err e;

	return sock_send(fd, body, n, tail, tail_n, NULL, 0, &e) < 0 ? 0 : receive(fd);
}

static inline int is_error(int type, enum err_kind kind, const char *words)
{
	return type == WIRE_ERROR && GOT(wire_error)->kind == kind &&
	       strstr(GOT(wire_error)->msg, words);
}

static inline struct wire_create wish(unsigned flags, uint32_t ref)
{
	struct wire_create w = { .head = sock_head(WIRE_CREATE, ref),
				 .limits = box_default_limits() };

	w.head.flags = (uint16_t)flags;
	keeper_test_tier(&w);
	snprintf(w.template, sizeof(w.template), "base");
	return w;
}

/* Also closes the connection. Returns when the box was destroyed. */
static inline int end_keeper(struct keeper_sync *k, int signo)
{
	struct frame info = sock_head(WIRE_INFO, 7);
	auto_fd int pidfd = -1;

	if (ask(k->fd, &info, sizeof(info), NULL, 0) == WIRE_INFO_REPLY)
		pidfd = (int)syscall(SYS_pidfd_open, GOT(wire_info)->pid, 0);
	keeper_sync_close(k);
	if (pidfd < 0)
		return -1;
	syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
	return poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, 60000) == 1 ? 0 : -1;
}

/* After a kill: the old socket may still accept connections for a moment, and drops them. */
static inline int next_keeper(struct keeper_sync *k)
{
	struct wire_info about;
	struct err e;

	if (keeper_sync_open(k, 1, &e) < 0)
		return -1;
	return keeper_sync_info(k, &about, &e); /* tries again, with another one if necessary */
}

/* The facts of all tiers, by number (rank 0 and no reason: not listed); how many, or -1. flags: of TIERS. */
static inline int learn_tiers(int keeper, uint16_t flags,
			      struct wire_tier_facts out[WIRE_TIER_COUNT])
{
	struct frame f = sock_head(WIRE_TIERS, 9);
	const struct wire_tier_facts *at = (const void *)(bytes + sizeof(f));
	unsigned nfds = 0;
	struct err e;
	int n;

	f.flags = flags;
	memset(out, 0, WIRE_TIER_COUNT * sizeof(*out));
	if (sock_send(keeper, &f, sizeof(f), NULL, 0, NULL, 0, &e) < 0)
		return -1;
	n = sock_recv(keeper, bytes, NULL, &nfds, &e);
	if (n < (int)sizeof(f) || GOT(frame)->type != WIRE_TIERS_REPLY ||
	    (n - sizeof(f)) % sizeof(*at) != 0)
		return -1;
	n = (int)((n - sizeof(f)) / sizeof(*at));
	for (int i = 0; i < n; i++)
		if (at[i].tier < WIRE_TIER_COUNT)
			out[at[i].tier] = at[i];
	return n;
}

/* The facts of one tier; -1: the keeper does not list it. */
static inline int learn_tier(int keeper, unsigned tier, uint16_t flags, struct wire_tier_facts *out)
{
	struct wire_tier_facts all[WIRE_TIER_COUNT];

	if (learn_tiers(keeper, flags, all) < 0 || !(all[tier].rank || all[tier].reason[0]))
		return -1;
	*out = all[tier];
	return 0;
}

/* ---- one box ---- */

struct made { /* a box and the connections to it */
	int init;
	char id[WIRE_ID];
	struct wire_box about;
};

static inline int make_as(int keeper, const struct wire_create *w, struct made *out)
{
	if (ask(keeper, w, sizeof(*w), NULL, 0) != WIRE_BOX || got_fd < 0)
		return -1;
	out->init = got_fd;
	out->about = *GOT(wire_box);
	memcpy(out->id, out->about.id, sizeof(out->id));
	return 0;
}

static inline int make(int keeper, struct made *out)
{
	struct wire_create w = wish(0, 1);

	return make_as(keeper, &w, out);
}

static inline int end(int keeper, struct made *m)
{
	struct wire_id w = { .head = sock_head(WIRE_KILL, 2) };

	memcpy(w.id, m->id, sizeof(w.id));
	own_close_fd(&m->init);
	return ask(keeper, &w, sizeof(w), NULL, 0) == WIRE_DESTROYED ? 0 : -1;
}

/* Runs a script, as the box's user or with WIRE_START_ROOT. Returns its exit status, or -1; its output is in `said`. */
static char said[8192];

static inline int sh_as(const struct made *m, unsigned flags, const char *script)
{
	static uint32_t ref = 1000;
	struct wire_start st = { .head = sock_head(WIRE_START, ref++),
				 .argc = 3,
				 .grace_ms = 1000,
				 .credit = { UINT64_MAX, UINT64_MAX } };
	char tail[4096];
	size_t n = 0;
	struct err e;

	st.head.flags = (uint16_t)flags;
	st.tail_bytes = (uint32_t)snprintf(tail, sizeof(tail), "/home/user%c/bin/sh%c-c%c%s%c", 0,
					   0, 0, script, 0);
	said[0] = '\0';
	if (sock_send(m->init, &st, sizeof(st), tail, st.tail_bytes, NULL, 0, &e) < 0)
		return -1;
	for (;;) {
		int type = receive(m->init);

		if (type == WIRE_OUTPUT)
			n += (size_t)snprintf(said + n, sizeof(said) - n, "%s",
					      bytes + sizeof(struct wire_output));
		else if (type == WIRE_EXIT && GOT(frame)->ref == st.head.ref)
			return GOT(wire_exit)->why == WIRE_WHY_EXIT ? GOT(wire_exit)->status : -1;
		else if (!type || type == WIRE_ERROR)
			return -1;
		n = n < sizeof(said) ? n : sizeof(said) - 1;
	}
}

static inline int sh(const struct made *m, const char *script)
{
	return sh_as(m, 0, script);
}

static inline int worker(const struct made *m)
{
	struct frame f = sock_head(WIRE_FILES, 5);

	return ask(m->init, &f, sizeof(f), NULL, 0) == WIRE_FD ? got_fd : -1;
}

/* Ends processes that a failed test has left running. */
static inline int end_what_is_left(struct keeper_sync *k)
{
	struct wire_box page[64];
	struct err e;
	int left = 0, n;

	while ((n = keeper_sync_boxes(k, "", page, 64, &e)) > 0)
		for (int i = 0; i < n; i++, left++)
			if (boxh_kill(k, page[i].id, NULL, &e) < 0)
				return -1;
	return left;
}

/* The last test of each file. */
static inline void leave_nothing(void)
{
	struct frame info = sock_head(WIRE_INFO, 7);
	struct keeper_sync k;
	char command[200];
	int left;

	NEED_ROOT();
	CHECK(open_keeper(&k, 0) == 0);
	left = end_what_is_left(&k);
	/* On a busy host a guest that was made for the pool is still being ended. */
	for (int i = 0; i < 1200; i++) {
		CHECK_INT(ask(k.fd, &info, sizeof(info), NULL, 0), WIRE_INFO_REPLY);
		if (!GOT(wire_info)->boxes && !GOT(wire_info)->waiting)
			break;
		poll(NULL, 0, 50);
	}
	CHECK_INT(GOT(wire_info)->boxes, 0);
	CHECK_INT(GOT(wire_info)->waiting, 0);
	CHECK(end_keeper(&k, SIGTERM) == 0);
	snprintf(command, sizeof(command), "rm -rf %s %s", run_dir, state_dir);
	CHECK(system(command) == 0);
	CHECK_INT(left, 0);
}
