/* keeper_sync.c - blocking requests to the keeper. */
#include "client/keeper_sync.h"
#include "base/cleanup.h"
#include "base/run_dir.h"
#include "client/spawn.h"
#include "wire/frame.h"
#include "wire/sock.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { ASK_AGAIN = 5, ASK_PAUSE_US = 20000 };

static int keeper_reopen(struct keeper_sync *k, struct err *e)
{
	char dir[256], path[300];
	int fd;

	if (run_dir_find(dir, sizeof(dir), e) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/keeper.sock", dir);
	fd = sock_connect(path, e);
	if (fd < 0 && k->start && (e->sys == ENOENT || e->sys == ECONNREFUSED)) {
		if (spawn_keeper(dir, path, e) < 0)
			return err_in(e, "start a keeper");
		fd = sock_connect(path, e);
	}
	if (fd < 0)
		return err_in(e, "keeper");
	if (k->fd >= 0)
		close(k->fd);
	k->fd = fd;
	return 0;
}

int keeper_sync_open(struct keeper_sync *k, int start, struct err *e)
{
	*k = (struct keeper_sync){ .fd = -1, .next_ref = 1, .start = start };
	return keeper_reopen(k, e);
}

void keeper_sync_close(struct keeper_sync *k)
{
	own_close_fd(&k->fd);
}

int wire_error_read(const struct wire_error *said, struct err *e)
{
	int known = said->kind > ERR_NONE && said->kind <= ERR_SYS;
	char text[sizeof(said->msg) + 1];

	memcpy(text, said->msg, sizeof(said->msg));
	text[sizeof(said->msg)] = 0;
	for (char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	err_set(e, known ? (enum err_kind)said->kind : ERR_SYS, "%s", text);
	e->sys = said->sys;
	return -1;
}

int keeper_check_tier(const struct wire_create *asked, const struct wire_box *got, struct err *e)
{
	unsigned want = wire_tier_of(asked->head.flags);

	if (got->tier == want)
		return 0;
	return err_set(e, ERR_DENIED,
		       "the keeper made a box of isolation tier %u instead of %u: it is older than "
		       "this program; stop it, and repeat the request",
		       got->tier, want);
}

#ifdef ATOLL_TEST
static unsigned keeper_test_number = WIRE_TIER_CONTAINER;

/* Before main(): a server clears its environment. */
__attribute__((constructor)) static void keeper_read_test_tier(void)
{
	const char *set = getenv("ATOLL_TIER");

	for (unsigned i = 0; set && i < WIRE_TIER_COUNT; i++)
		if (strcmp(set, wire_tier_name(i)) == 0)
			keeper_test_number = i;
}
#endif

unsigned keeper_test_tier_number(void)
{
#ifdef ATOLL_TEST
	return keeper_test_number;
#else
	return WIRE_TIER_CONTAINER;
#endif
}

void keeper_test_tier(struct wire_create *ask)
{
	/* Builds of templates read the writable layer of their box from outside. */
	if (!(ask->head.flags & (WIRE_CREATE_TIER | WIRE_CREATE_HOST_WRITABLE)))
		ask->head.flags |= wire_tier_flags(keeper_test_tier_number());
}

/* Receives one frame and its first descriptor; closes the others. */
static int keeper_receive(struct keeper_sync *k, void *buf, int *out_fd, struct err *e)
{
	int fds[WIRE_FDS], n;
	unsigned nfds = WIRE_FDS;

	n = sock_recv(k->fd, buf, fds, &nfds, e);
	if (n <= 0) {
		if (n == 0) {
			errno = EPIPE;
			err_sys(e, "keeper");
		}
		return -1;
	}
	*out_fd = -1;
	for (unsigned i = 0; i < nfds; i++) {
		if (i == 0)
			*out_fd = fds[i];
		else
			close(fds[i]);
	}
	return n;
}

static int take_answer(struct answer *a, const char *buf, size_t n, int *take_fd, struct err *e)
{
	const struct frame *f = (const struct frame *)buf;

	if (f->type == WIRE_ERROR)
		return wire_error_read((const struct wire_error *)buf, e);
	if (f->type != a->want || n > a->room || (a->wants_fd && *take_fd < 0))
		return err_set(e, ERR_INVALID, "keeper: unexpected frame (type %u)", f->type);
	memcpy(a->to, buf, n);
	a->len = n;
	if (a->wants_fd)
		a->fd = steal_fd(take_fd);
	return 0;
}

int link_hear(struct keeper_sync *k, uint32_t ref, struct answer *a, struct err *e)
{
	char buf[WIRE_MAX];

	for (;;) {
		auto_fd int fd = -1;
		int n = keeper_receive(k, buf, &fd, e);

		if (n < 0)
			return -1;
		/* Another ref: the answer to an earlier boxh_drop(). */
		if (((const struct frame *)buf)->ref == ref)
			return take_answer(a, buf, (size_t)n, &fd, e);
	}
}

static int ask_once(struct keeper_sync *k, void *ask, size_t ask_len, struct answer *a,
		    struct err *e)
{
	struct frame *head = ask;

	head->version = WIRE_VERSION;
	head->ref = k->next_ref++;
	if (sock_send(k->fd, ask, ask_len, NULL, 0, NULL, 0, e) < 0)
		return err_in(e, "keeper");
	return link_hear(k, head->ref, a, e);
}

/* Every request may be repeated. A box that the old keeper was creating for this client was never
 * claimed, so it ended with that keeper. Tries more than once, because a killed keeper still
 * accepts connections until its children have noticed. */
static int ask_repeatedly(struct keeper_sync *k, void *ask, size_t ask_len, struct answer *a,
			  struct err *e)
{
	for (int tries = 0; ask_once(k, ask, ask_len, a, e) < 0; tries++) {
		if ((e->sys != EPIPE && e->sys != ECONNRESET) || tries == ASK_AGAIN)
			return -1;
		if (tries > 0)
			usleep(ASK_PAUSE_US);
		if (keeper_reopen(k, e) < 0)
			return -1;
	}
	return 0;
}

int link_ask(struct keeper_sync *k, void *ask, size_t ask_len, struct answer *a, struct err *e)
{
	const struct frame *head = ask;
	const struct wire_box *box = a->to;
	struct wire_id kill = { .head = sock_head(WIRE_KILL, 0) };
	struct err ignored;

	if (ask_repeatedly(k, ask, ask_len, a, e) < 0)
		return -1;
	if (head->type != WIRE_CREATE || keeper_check_tier(ask, box, e) == 0)
		return 0;
	kill.head.ref = k->next_ref++;
	memcpy(kill.id, box->id, sizeof(kill.id));
	(void)!sock_send(k->fd, &kill, sizeof(kill), NULL, 0, NULL, 0, &ignored);
	own_close_fd(&a->fd);
	return -1;
}

int keeper_sync_greet(struct keeper_sync *k, struct wire_info *out, struct err *e)
{
	struct frame ask = sock_head(WIRE_INFO, 0);
	struct answer a = { .want = WIRE_INFO_REPLY, .to = out, .room = sizeof(*out) };

	return ask_once(k, &ask, sizeof(ask), &a, e);
}

int keeper_sync_info(struct keeper_sync *k, struct wire_info *out, struct err *e)
{
	struct frame ask = sock_head(WIRE_INFO, 0);
	struct answer a = { .want = WIRE_INFO_REPLY, .to = out, .room = sizeof(*out) };

	return link_ask(k, &ask, sizeof(ask), &a, e);
}

int keeper_sync_tiers(struct keeper_sync *k, struct wire_tier_facts *out, unsigned max,
		      unsigned timeout_ms, struct err *e)
{
	struct timeval limit = { timeout_ms / 1000, timeout_ms % 1000 * 1000 }, none = { 0 };
	struct frame ask = sock_head(WIRE_TIERS, 0);
	struct {
		struct frame head;
		struct wire_tier_facts facts[WIRE_TIER_COUNT];
	} got;
	struct answer a = { .want = WIRE_TIERS_REPLY, .to = &got, .room = sizeof(got) };
	size_t n;
	int rc;

	(void)setsockopt(k->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	rc = link_ask(k, &ask, sizeof(ask), &a, e);
	(void)setsockopt(k->fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	if (rc < 0)
		return -1;
	n = (a.len - sizeof(got.head)) / sizeof(got.facts[0]);
	n = n < max ? n : max;
	for (size_t i = 0; i < n; i++) {
		out[i] = got.facts[i];
		out[i].engine[sizeof(out[i].engine) - 1] =
			out[i].version[sizeof(out[i].version) - 1] = 0;
		out[i].platform[sizeof(out[i].platform) - 1] =
			out[i].reason[sizeof(out[i].reason) - 1] = 0;
	}
	return (int)n;
}

int keeper_sync_set_pool(struct keeper_sync *k, unsigned depth, struct wire_info *out,
			 struct err *e)
{
	struct wire_pool_size ask = { .head = sock_head(WIRE_POOL_SIZE, 0), .depth = depth };
	struct answer a = { .want = WIRE_INFO_REPLY, .to = out, .room = sizeof(*out) };

	return link_ask(k, &ask, sizeof(ask), &a, e);
}

int keeper_sync_boxes(struct keeper_sync *k, const char *after, struct wire_box *out, unsigned max,
		      struct err *e)
{
	struct wire_id ask = { .head = sock_head(WIRE_BOXES, 0) };
	char buf[WIRE_MAX];
	struct answer a = { .want = WIRE_LISTED, .to = buf, .room = sizeof(buf) };
	unsigned count;

	snprintf(ask.id, sizeof(ask.id), "%s", after);
	if (link_ask(k, &ask, sizeof(ask), &a, e) < 0)
		return -1;
	count = (unsigned)((a.len - sizeof(struct frame)) / sizeof(*out));
	if (count > max)
		count = max;
	memcpy(out, buf + sizeof(struct frame), count * sizeof(*out));
	for (unsigned i = 0; i < count; i++) {
		out[i].id[sizeof(out[i].id) - 1] = 0;
		out[i].template[sizeof(out[i].template) - 1] = 0;
	}
	return (int)count;
}
