/* root_pool.c - see root_pool.h. On the loop's thread. */
#include "keeper/root_pool.h"
#include "base/clock.h"
#include "keeper/keeper_internal.h"
#include "wire/sock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ull
#define ROOT_POOL_IDLE_NS (120 * SECOND)
#define ROOT_POOL_EVICT_NS (20 * SECOND) /* then it may serve another root, or another disk */
#define ROOT_POOL_RETRY_NS (5 * SECOND)
#define ROOT_POOL_WAKE_MS 5000

static struct root_pool *root_pool_find(struct keeper *k, const char *root)
{
	for (unsigned i = 0; i < ROOT_POOLS; i++)
		if (strcmp(k->root_pools[i].root, root) == 0)
			return &k->root_pools[i];
	return NULL;
}

struct root_pool *root_pool_of(struct keeper *k, const struct keeper_box *b)
{
	return root_pool_find(k, b->meta.root);
}

static void root_pool_empty(struct keeper *k, struct root_pool *p)
{
	struct keeper_box *b;

	p->boxes.depth = 0;
	while ((b = p->boxes.first) != NULL) {
		pool_drop(k, b);
		teardown_kill(k, b);
	}
}

static void root_pool_answer(struct keeper *k, struct root_pool *p, const struct err *e)
{
	struct frame done = sock_head(WIRE_DONE, p->filler.ref);

	if (p->filler.client && e)
		client_error(k, p->filler.client, p->filler.ref, e);
	else if (p->filler.client)
		client_send(k, p->filler.client, &done, sizeof(done), -1);
	p->filler.client = 0;
}

static void root_pool_free_if_closed(struct keeper *k, struct root_pool *p)
{
	struct err e;

	if (!p->closing || p->boxes.making)
		return;
	err_set(&e, ERR_NOT_FOUND, "root %.12s was deleted", p->root);
	root_pool_answer(k, p, &e);
	*p = (struct root_pool){ .root = "" };
}

void root_pool_close(struct keeper *k, const char *root)
{
	struct root_pool *p = root_pool_find(k, root);

	warm_pool_close_root(k, root);
	if (!p)
		return;
	root_pool_empty(k, p);
	p->closing = 1;
	root_pool_free_if_closed(k, p);
}

void root_pool_end_all(struct keeper *k)
{
	for (unsigned i = 0; i < ROOT_POOLS; i++)
		root_pool_empty(k, &k->root_pools[i]);
}

/* A free one, or the one with the oldest request if that was long ago. */
static struct root_pool *root_pool_unused(struct keeper *k)
{
	uint64_t before = now_ns() - ROOT_POOL_EVICT_NS;
	struct root_pool *found = NULL;

	for (unsigned i = 0; i < ROOT_POOLS; i++) {
		struct root_pool *p = &k->root_pools[i];

		if (!p->root[0])
			return p;
		if (!p->pinned && !p->boxes.making && !p->closing && p->asked_ns < before) {
			before = p->asked_ns;
			found = p;
		}
	}
	if (found) {
		root_pool_empty(k, found);
		*found = (struct root_pool){ .root = "" };
	}
	return found;
}

static struct root_pool *root_pool_new(struct keeper *k, const char *root, const char *template,
				       const struct wire_limits *limits)
{
	struct root_pool *p = root_pool_unused(k);

	if (!p)
		return NULL;
	memcpy(p->root, root, TREE_ID);
	snprintf(p->template, sizeof(p->template), "%s", template);
	p->limits = *limits;
	return p;
}

/* Cgroup limits are written when a client gets a box, but its disk is mounted already. */
static int root_pool_fits(const struct root_pool *p, const struct wire_limits *want)
{
	return p->limits.disk_bytes == want->disk_bytes &&
	       p->limits.disk_files == want->disk_files &&
	       keeper_box_disk_in_memory(&p->limits) == keeper_box_disk_in_memory(want);
}

struct keeper_box *root_pool_take(struct keeper *k, const struct wire_create *w,
				  const struct wire_limits *limits)
{
	struct root_pool *p = root_pool_find(k, w->root);
	uint64_t now = now_ns();
	struct keeper_box *b;

	if (!k->pool_depth) /* a keeper without a pool */
		return NULL;
	if (!p)
		p = root_pool_new(k, w->root, w->template, limits);
	if (!p || p->closing)
		return NULL;
	if (!root_pool_fits(p, limits) && !p->boxes.making &&
	    (!p->boxes.pooled || now - p->asked_ns > ROOT_POOL_EVICT_NS)) {
		root_pool_empty(k, p);
		p->limits = *limits;
	}
	if (!root_pool_fits(p, limits))
		return NULL;
	/* The roots of the steps of a build are requested once. */
	if (p->asked_ns)
		p->boxes.depth = p->pinned > ROOT_POOL_DEPTH ? p->pinned : ROOT_POOL_DEPTH;
	p->asked_ns = now;
	keeper_wake_in(k, ROOT_POOL_WAKE_MS);
	b = p->boxes.first;
	if (b) {
		pool_drop(k, b);
		b->of_root_pool = 0;
	}
	pool_stay_quiet(k);
	return b;
}

int root_pool_created(struct keeper *k, struct keeper_box *b)
{
	struct root_pool *p = root_pool_of(k, b);

	p->boxes.making--;
	k->pool_making--;
	if (p->closing) {
		root_pool_free_if_closed(k, p);
		return 0;
	}
	pool_add(k, b);
	if (p->boxes.pooled >= p->boxes.depth)
		root_pool_answer(k, p, NULL);
	return 1;
}

void root_pool_failed(struct keeper *k, struct keeper_box *b, const struct err *e)
{
	struct root_pool *p = root_pool_of(k, b);

	p->boxes.making--;
	k->pool_making--;
	if (!p->closing)
		pool_log(k, "pool", e);
	p->retry_ns = now_ns() + ROOT_POOL_RETRY_NS;
	root_pool_answer(k, p, e);
	root_pool_free_if_closed(k, p);
}

static int root_pool_add_one(struct keeper *k, struct root_pool *p, struct err *e)
{
	struct wire_create w = { .nmounts = 0 };
	struct build_job *j = build_job_new(BUILD_BOX);

	memcpy(w.root, p->root, sizeof(p->root));
	memcpy(w.template, p->template, sizeof(w.template));
	j->for_pool = 1;
	j->make.warm = 1;
	if (pool_begin_with(k, j, &p->limits, k->host.cgroups.version == 2, &w, e) < 0) {
		free(j);
		return -1;
	}
	j->make.box->of_root_pool = 1;
	p->boxes.making++;
	k->pool_making++;
	return 0;
}

int root_pool_refill(struct keeper *k, uint64_t now, struct err *e)
{
	for (unsigned i = 0; i < ROOT_POOLS; i++) {
		struct root_pool *p = &k->root_pools[i];

		if (!p->root[0] || p->closing || now < p->retry_ns)
			continue;
		while (p->boxes.pooled + p->boxes.making < p->boxes.depth)
			if (root_pool_add_one(k, p, e) < 0)
				return -1;
	}
	return 0;
}

static void root_pool_maintain_one(struct keeper *k, struct root_pool *p, uint64_t now, int low)
{
	int idle = !p->pinned && now - p->asked_ns > ROOT_POOL_IDLE_NS;

	if (low || idle)
		root_pool_empty(k, p);
	else if (p->boxes.depth < p->pinned)
		p->boxes.depth = p->pinned;
	if (idle && !p->boxes.making)
		*p = (struct root_pool){ .root = "" };
}

void root_pool_maintain(struct keeper *k)
{
	uint64_t now = now_ns();
	int low = -1;

	if (now < k->root_maintain_ns)
		return;
	for (unsigned i = 0; i < ROOT_POOLS; i++) {
		struct root_pool *p = &k->root_pools[i];

		if (!p->root[0] || p->closing)
			continue;
		keeper_wake_in(k, ROOT_POOL_WAKE_MS);
		low = low < 0 ? warm_pool_memory_is_low(k) : low;
		root_pool_maintain_one(k, p, now, low);
	}
	k->root_maintain_ns = now + ROOT_POOL_WAKE_MS * 1000000ull;
}

/* ---- POOL_ROOT ---- */

static int root_pool_set(struct keeper *k, struct client *c, const struct wire_pool_root *w,
			 struct err *e)
{
	struct frame done = sock_head(WIRE_DONE, w->head.ref);
	struct root_pool *p = root_pool_find(k, w->root);
	struct wire_limits limits;

	if (!layer_tree_id_ok(w->root))
		return err_set(e, ERR_INVALID, "a root's id has 64 hexadecimal digits");
	if (!root_table_find(&k->roots, w->root))
		return err_set(e, ERR_NOT_FOUND, "there is no root %.12s", w->root);
	if (w->depth > ROOT_POOL_MOST)
		return err_set(e, ERR_INVALID, "a pool of %u boxes of one root: at most %d",
			       w->depth, ROOT_POOL_MOST);
	if (request_pool_limits(k, &w->limits, &limits, e) < 0)
		return -1;
	if (w->warm)
		return warm_pool_pin(k, &(struct waiter){ c->number, w->head.ref }, w, &limits, e);
	if (p && w->depth && !root_pool_fits(p, &limits)) {
		root_pool_empty(k, p);
		p->limits = limits;
	}
	if (!p && w->depth)
		p = root_pool_new(k, w->root, "root", &limits);
	if (!p && w->depth)
		return err_set(e, ERR_LIMIT, "%d roots have a pool already", ROOT_POOLS);
	if (p) {
		root_pool_answer(k, p, NULL);
		p->pinned = p->boxes.depth = k->pool_depth ? w->depth : 0;
		p->asked_ns = now_ns();
		p->retry_ns = 0;
	}
	if (p && !w->depth)
		root_pool_empty(k, p);
	if (!p || p->boxes.pooled >= p->boxes.depth)
		client_send(k, c->number, &done, sizeof(done), -1);
	else
		p->filler = (struct waiter){ c->number, w->head.ref };
	keeper_wake_in(k, ROOT_POOL_WAKE_MS);
	pool_refill(k);
	return 0;
}

void root_pool_request(struct keeper *k, struct client *c, const struct frame *f)
{
	struct err e;

	if (layer_possible(k, &e) < 0 ||
	    root_pool_set(k, c, (const struct wire_pool_root *)f, &e) < 0)
		client_error(k, c->number, f->ref, &e);
}
