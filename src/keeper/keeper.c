/* keeper.c - see keeper.h. Start, loop and clients.
 *
 * One thread with level-triggered epoll, plus builder threads (builder.h). Of clients and boxes
 * only fixed structs are parsed. */
#include "keeper/keeper.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/run_dir.h"
#include "jail/launch.h"
#include "keeper/mount_reaper.h"
#include "keeper/netns_pool.h"
#include "keeper/keeper_internal.h"
#include "wire/frame.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define CLIENTS_MAX 1024
/* For the answers to all requests that one client may have in progress. */
#define ANSWERS_BYTES (4 << 20)

/* ---- clients ---- */

struct client *client_find(struct keeper *k, uint64_t number)
{
	struct client *c = k->clients;

	while (c && c->number != number)
		c = c->next;
	return c;
}

static void client_close(struct keeper *k, struct client *c)
{
	struct client **at = &k->clients;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	k->nclients--;
	if (k->filler.client == c->number)
		k->filler.client = 0;
	keeper_unwatch(k, &c->src);
	procimage_client_left(k, c->number);
	if (c->is_server)
		deadline_server_gone(k);
	free(c);
}

void client_send(struct keeper *k, uint64_t client, const void *frame, size_t len, int fd)
{
	struct client *c = client_find(k, client);
	struct err e;

	/* The socket buffer has space for the answers to all allowed requests, so a client whose
	 * buffer is full is broken: its socket is shut down, and the loop sees its end. */
	if (c && sock_send(c->src.fd, frame, len, NULL, 0, &fd, fd >= 0, &e) < 0)
		shutdown(c->src.fd, SHUT_RDWR);
}

void client_error(struct keeper *k, uint64_t client, uint32_t ref, const struct err *e)
{
	struct wire_error out = { .head = sock_head(WIRE_ERROR, ref),
				  .kind = e->kind,
				  .sys = e->sys };

	memcpy(out.msg, e->msg, sizeof(out.msg));
	client_send(k, client, &out, sizeof(out), -1);
}

static int peer_may(int fd)
{
	struct ucred u;
	socklen_t n = sizeof(u);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &u, &n) == 0 &&
	       (u.uid == 0 || u.uid == geteuid());
}

static void room_for_answers(int fd)
{
	int bytes = ANSWERS_BYTES;

	/* Without root the limit of the host applies: then fewer answers may wait. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

/* Uses the descriptors that are reserved from boxes: else no client could connect to end some. */
static int accept_high(struct keeper *k, int listener)
{
	int fd, high;

	host_use_reserve(&k->host, 1);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, JAIL_FD_HIGH);
	host_use_reserve(&k->host, 0);
	if (fd >= 0)
		close(fd);
	return high;
}

static void client_accept(struct keeper *k, int listener)
{
	int high = accept_high(k, listener);
	struct client *c;
	struct err e;

	if (high < 0)
		return;
	if (k->nclients >= CLIENTS_MAX || !peer_may(high)) {
		close(high);
		return;
	}
	room_for_answers(high);
	c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	*c = (struct client){ .src = { SRC_CLIENT, high },
			      .number = ++k->last_client,
			      .next = k->clients };
	k->clients = c;
	k->nclients++;
	if (keeper_watch(k, &c->src, &e) < 0)
		client_close(k, c);
}

static void client_read(struct keeper *k, struct client *c)
{
	static _Alignas(8) char bytes[WIRE_MAX];
	auto_fd int fd = -1;
	unsigned nfds = 1;
	struct err e;
	int n = sock_recv(c->src.fd, bytes, &fd, &nfds, &e);

	c->len = n > 0 ? (uint32_t)n : 0;
	if (n > 0)
		request_handle(k, c, (const struct frame *)bytes, &fd);
	else if (n == 0 || e.sys != EAGAIN)
		client_close(k, c);
}

/* ---- the loop ---- */

int keeper_watch(struct keeper *k, struct source *s, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s };

	if (epoll_ctl(k->epoll, EPOLL_CTL_ADD, s->fd, &ev) < 0)
		return err_sys(e, "watch descriptor %d", s->fd);
	return 0;
}

void keeper_unwatch(struct keeper *k, struct source *s)
{
	/* A close alone is not enough: a box being created may hold a copy of the descriptor for a
	 * moment, and epoll would return a source that was freed. */
	if (s->fd >= 0)
		epoll_ctl(k->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	own_close_fd(&s->fd);
}

void keeper_wake_in(struct keeper *k, unsigned ms)
{
	struct itimerspec in = { .it_value = { ms / 1000, (ms % 1000) * 1000000L + 1 } };
	uint64_t at_ns = now_ns() + ms * 1000000ull;

	/* The earlier time is kept; code that needs a later one sets it again when woken. */
	if (k->wake_ns && k->wake_ns <= at_ns)
		return;
	k->wake_ns = at_ns;
	timerfd_settime(k->timer, 0, &in, NULL);
}

int netns_work(const struct host_state *h, struct build_job *j, struct err *e)
{
	(void)j;
	(void)e;
	netns_pool_maintain(h->netns_pool);
	return 0;
}

void netns_back(struct keeper *k, struct build_job *take_job)
{
	k->maintaining = 0;
	free(take_job);
	keeper_maintain_netns(k);
}

void keeper_maintain_netns(struct keeper *k)
{
	int due = !k->host.netns_pool || k->maintaining || k->stopping
			  ? -1
			  : netns_pool_next_ms(k->host.netns_pool);
	struct build_job *j;

	if (due > 0)
		keeper_wake_in(k, (unsigned)due);
	if (due != 0)
		return;
	j = build_job_new(BUILD_NETNS);
	j->for_pool = 1; /* after all jobs that clients wait for */
	k->maintaining = 1;
	builder_submit(k->builder, j);
}

static void on_timer(struct keeper *k)
{
	uint64_t n;

	if (read(k->timer, &n, sizeof(n)) < 0)
		return;
	k->wake_ns = 0;
	services_look(k);
	teardown_retry(k);
	cgroup_cache_inspect(k);
	teardown_meter(k);
	deadline_look(k);
	guest_wait_look(k);
	warm_pool_maintain(k);
	root_pool_maintain(k);
	tier_pool_maintain(k);
	pool_refill(k);
	keeper_maintain_netns(k);
}

static void on_made(struct keeper *k)
{
	struct build_job *j;
	uint64_t n;

	if (read(builder_fd(k->builder), &n, sizeof(n)) < 0)
		return;
	while ((j = builder_collect(k->builder)) != NULL)
		build_job_finish(k, j);
	pool_filled(k);
	pool_refill(k);
}

/* Only whole seconds matter, so this is checked once per wakeup. */
static void leave_if_idle(struct keeper *k)
{
	unsigned taken = k->boxes.count - k->pooled - k->pool_making - k->homes;

	if (taken || k->nclients)
		k->busy_ns = now_ns();
	if (!k->idle_exit_s)
		return;
	if (now_ns() - k->busy_ns >= k->idle_exit_s * 1000000000ull)
		k->stopping = 1;
	else
		keeper_wake_in(k, 1000);
}

static void keeper_dispatch(struct keeper *k, struct source *s)
{
	struct signalfd_siginfo si;

	switch (s->kind) {
	case SRC_LISTENER:
		client_accept(k, s->fd);
		break;
	case SRC_CLIENT:
		client_read(k, (struct client *)s);
		break;
	case SRC_BOX:
		teardown_seen(k, (struct keeper_box *)s);
		break;
	case SRC_MADE:
		on_made(k);
		break;
	case SRC_TIMER:
		on_timer(k);
		break;
	case SRC_ZYGOTE:
		warm_pool_on_message(k, (struct zygote *)s);
		break;
	case SRC_LAYER:
		layer_answered(k, s);
		break;
	case SRC_IMAGE:
		procimage_answered(k, s);
		break;
	case SRC_TIERS:
		tiers_learned(k);
		break;
	case SRC_SERVICE:
		service_ended(k, s);
		break;
	case SRC_GUEST:
		guest_wait_ready(k, s);
		break;
	case SRC_SIGNAL:
		if (read(s->fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
			k->stopping = 1;
		break;
	}
}

static void keeper_loop(struct keeper *k)
{
	struct epoll_event ev;

	while (!k->stopping) {
		/* One event at a time: a handler may free any other source of a batch. */
		if (epoll_wait(k->epoll, &ev, 1, -1) > 0)
			keeper_dispatch(k, ev.data.ptr);
		leave_if_idle(k);
	}
}

static int any_dying(struct keeper *k)
{
	struct keeper_box *b = keeper_box_after(&k->boxes, "");

	while (b && b->meta.about.state != WIRE_BOX_DYING)
		b = keeper_box_after(&k->boxes, b->meta.about.id);
	return b != NULL;
}

/* Boxes of clients keep running for the next keeper; pooled boxes end with this one. */
static void keeper_drain(struct keeper *k)
{
	struct epoll_event ev;
	struct keeper_box *b;

	for (;;) {
		warm_pool_end_all(k);
		guest_wait_end_all(k);
		for (unsigned i = 0; i < POOL_CLASSES; i++)
			while ((b = pool_take(k, i)) != NULL)
				teardown_kill(k, b);
		root_pool_end_all(k);
		tier_pool_end_all(k);
		if (!builder_busy(k->builder) && !any_dying(k))
			return;
		if (epoll_wait(k->epoll, &ev, 1, 1000) > 0)
			keeper_dispatch(k, ev.data.ptr);
	}
}

/* ---- start ---- */

struct keeper_options {
	unsigned idle_exit_s, pool, builders;
	int ready_fd, process;
	char run_dir[2048], state_dir[2048];
};

/* ATOLL_STATE, else the folder of the system for root and the user's folder for others. */
static void keeper_default_state_dir(char *out, size_t size)
{
	const char *set = getenv("ATOLL_STATE"), *user = getenv("XDG_STATE_HOME"),
		   *home = getenv("HOME");

	if (set)
		snprintf(out, size, "%s", set);
	else if (geteuid() == 0 || (!user && !home))
		snprintf(out, size, "/var/lib/atoll");
	else if (user)
		snprintf(out, size, "%s/atoll", user);
	else
		snprintf(out, size, "%s/.local/state/atoll", home);
}

/* The operator's setting isolation.process, as atolld passes it on. */
static int keeper_allows_process(void)
{
	const char *set = getenv("ATOLL_KEEPER_PROCESS");

	return set && !strcmp(set, "true");
}

static int keeper_parse(int argc, char **argv, struct keeper_options *o, struct err *e)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*o = (struct keeper_options){ .pool = 4,
				      .builders = cpus > 4   ? 4
						  : cpus > 1 ? 2
							     : 1,
				      .ready_fd = -1 };
	if (run_dir_find(o->run_dir, sizeof(o->run_dir), e) < 0)
		return -1;
	keeper_default_state_dir(o->state_dir, sizeof(o->state_dir));
	o->process = keeper_allows_process();
	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		char *end;
		unsigned long n = strtoul(value, &end, 10);

		if (!*value || *end || n > 1000000)
			return err_set(e, ERR_INVALID, "%.40s needs a number, not '%.40s'", argv[i],
				       value);
		if (strcmp(argv[i], "--idle-exit") == 0)
			o->idle_exit_s = (unsigned)n;
		else if (strcmp(argv[i], "--pool") == 0)
			o->pool = (unsigned)n;
		else if (strcmp(argv[i], "--ready-fd") == 0)
			o->ready_fd = (int)n;
		else
			return err_set(e, ERR_INVALID, "unknown option %.40s", argv[i]);
	}
	return 0;
}

static int watch_new(struct keeper *k, struct source *s, struct err *e)
{
	return s->fd < 0 ? err_sys(e, "a source of the loop") : keeper_watch(k, s, e);
}

static int keeper_start(struct keeper *k, const struct keeper_options *o, struct err *e)
{
	static struct source listener = { SRC_LISTENER, -1 }, made = { SRC_MADE, -1 },
			     timer = { SRC_TIMER, -1 }, signals = { SRC_SIGNAL, -1 };
	sigset_t mask;

	if (geteuid() == 0 && uid_range_claim(&k->ranges, o->run_dir, e) < 0)
		return -1;
	if (host_init(&k->host, o->run_dir, o->state_dir, o->process, e) < 0 ||
	    record_file_open(&k->records, k->host.run, k->host.boot, e) < 0 ||
	    keeper_box_lift(&k->records.fd, e) < 0)
		return -1;
	k->host.records = k->records.fd;
	node_number_load(k);
	k->common = pool_common_limits(k);
	for (unsigned i = 0; i < POOL_CLASSES; i++)
		k->zygotes[i].src = (struct source){ SRC_ZYGOTE, -1 };
	pool_set_depth(k, o->pool);
	k->idle_exit_s = o->idle_exit_s;
	k->busy_ns = now_ns();
	k->epoll = epoll_create1(EPOLL_CLOEXEC);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	/* Before the builder threads start, so that none of them receives the signal. */
	if (k->epoll < 0 || sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return err_sys(e, "start of the loop");
	k->timer = timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	signals.fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (watch_new(k, &timer, e) < 0 || watch_new(k, &signals, e) < 0 ||
	    builder_start(&k->builder, &k->host, o->builders, e) < 0 ||
	    mount_reaper_start(&k->mount_reaper, e) < 0)
		return -1;
	made.fd = builder_fd(k->builder);
	if (k->host.roots_dir >= 0 && root_table_load(&k->roots, k->host.roots_dir, e) < 0)
		return -1;
	if (watch_new(k, &made, e) < 0 || services_init(k, e) < 0 || tiers_init(k, e) < 0 ||
	    sweep_start(k, e) < 0)
		return -1;
	listener.fd = sock_listen("keeper.sock", 128, e);
	if (listener.fd < 0)
		return -1;
	pool_refill(k);
	keeper_maintain_netns(k);
	return watch_new(k, &listener, e);
}

/* The process that started the keeper waits for one of these. */
static void keeper_tell(int ready_fd, const struct err *e)
{
	if (e)
		fprintf(stderr, "atoll: keeper: %s\n", e->msg);
	if (ready_fd < 0)
		return;
	if (e)
		dprintf(ready_fd, "E%s", e->msg);
	else
		dprintf(ready_fd, "R");
	close(ready_fd);
}

int keeper_main(int argc, char **argv)
{
	static struct keeper k;
	struct keeper_options o = { .ready_fd = -1 };
	struct err e;

	prctl(PR_SET_NAME, "atoll-keeper"); /* executed through /proc/self/exe, the name would be
					     * "exe" */
	if (keeper_parse(argc, argv, &o, &e) < 0 || keeper_start(&k, &o, &e) < 0) {
		keeper_tell(o.ready_fd, &e);
		return 125;
	}
	keeper_tell(o.ready_fd, NULL);
	keeper_loop(&k);
	unlinkat(k.host.run, "keeper.sock", 0);
	keeper_drain(&k);
	cgroup_cache_drop_all(&k);
	builder_stop(k.builder);
	mount_reaper_stop(k.mount_reaper);
	netns_pool_free(k.host.netns_pool);
	record_file_end(&k.records, k.host.run);
	cgroups_fini(&k.host.cgroups);
	return 0;
}
