/* build_collect.c - removes what no template needs: old builds without a tag, and layers and roots that
 * no build, cache row or box uses. The keeper refuses to drop what a box or a root uses, so the rows
 * here decide only what is tried. */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

enum {
	COLLECT_MS = 500,        /* after a box has ended */
	COLLECT_MOST_MS = 60000, /* the next attempt for those in use: after twice the time */
	COUNT_MS = 1000,
	BUILDS_KEPT = 5,  /* of a template: ready ones without a tag ... */
	FAILED_KEPT = 20, /* ... and those that failed or were cancelled */
};

/* ---- counts of boxes ---- */

struct build_spawned {
	struct build_spawned *next;
	char template[STORE_TEMPLATE_ID + 1];
	uint64_t boxes;
};

/* One transaction per second, not one per box: it would take longer than the box. */
static void build_count_due(struct timer *t)
{
	struct builds *b = loop_owner(t, struct builds, count);
	struct err e;

	while (b->spawned) {
		struct build_spawned *x = b->spawned;

		b->spawned = x->next;
		if (store_template_spawned(b->fleet->store, x->template, x->boxes, fleet_now_ns(),
					   &e) < 0)
			log_warn("cannot count the boxes of a template", LOG_E(&e));
		free(x);
	}
}

void template_spawned(struct builds *b, const char *template)
{
	struct build_spawned *x = b->spawned;

	while (x && strcmp(x->template, template) != 0)
		x = x->next;
	if (!x) {
		x = calloc(1, sizeof(*x));
		if (!x)
			abort();
		snprintf(x->template, sizeof(x->template), "%s", template);
		x->next = b->spawned;
		b->spawned = x;
	}
	x->boxes++;
	if (!timer_pending(&b->count))
		timer_set(&b->count, COUNT_MS);
}

/* ---- old builds ---- */

static int build_is_tagged(const struct store_tags *tags, const char *id)
{
	for (unsigned i = 0; i < tags->n; i++)
		if (!strcmp(tags->v[i].build, id))
			return 1;
	return 0;
}

void build_expire(struct builds *b, const char *template)
{
	struct store_builds rows = { 0 };
	struct store_tags tags = { 0 };
	unsigned ready = 0, failed = 0;
	struct err e;

	int known =
		store_build_list(b->fleet->store, NULL, template, STORE_PAGE_MAX, &rows, &e) == 0 &&
		store_tag_list(b->fleet->store, template, &tags, &e) == 0;

	for (unsigned i = 0; known && i < rows.n; i++) {
		const struct store_build *x = &rows.v[i];
		int old = x->state == STORE_BUILD_READY
				  ? !build_is_tagged(&tags, x->id) && ++ready > BUILDS_KEPT
			  : x->ended_ns ? ++failed > FAILED_KEPT
					: 0;

		if (old && store_build_remove(b->fleet->store, x->id, &e) == 0)
			build_log_remove(b, x->id);
	}
	store_builds_fini(&rows);
	store_tags_fini(&tags);
}

int template_delete(struct builds *b, const char *template, struct err *e)
{
	struct store_builds rows = { 0 };
	int rc;

	if (store_build_list(b->fleet->store, NULL, template, STORE_PAGE_MAX, &rows, e) < 0)
		return -1;
	rc = store_template_remove(b->fleet->store, template, e);
	for (unsigned i = 0; rc == 0 && i < rows.n; i++) {
		struct build *x = build_lookup(b, rows.v[i].id);

		if (x)
			build_end(x, STORE_BUILD_CANCELLED);
		build_log_remove(b, rows.v[i].id);
	}
	store_builds_fini(&rows);
	if (rc == 0)
		builds_collect(b);
	return rc;
}

/* ---- layers and roots ---- */

static void builds_drop_next(struct builds *b);

static void builds_dropped(void *ctx, const struct frame *f, size_t len, int *fd,
			   const struct err *e)
{
	struct builds *b = ctx;
	struct err own;

	(void)len;
	(void)fd;
	b->dropping = NULL;
	if ((!f && e->kind != ERR_NOT_FOUND) ||
	    store_layer_forget(b->fleet->store, b->dropped.id, &own) < 0)
		b->drop_skip++; /* a box or a root uses it */
	builds_drop_next(b);
}

/* While a build runs, layers and roots that it has just made are named by no row. */
static int64_t builds_oldest_ns(const struct builds *b)
{
	int64_t oldest = fleet_now_ns();

	for (const struct build *x = b->list; x; x = x->next)
		if (x->running && x->row.started_ns < oldest)
			oldest = x->row.started_ns;
	return oldest;
}

/* Some are in use: by a box that runs, or by one that is just being destroyed. */
static void builds_collect_later(struct builds *b)
{
	b->drop_left = b->drop_skip > 0;
	b->drop_skip = 0;
	if (b->drop_left && !timer_pending(&b->collect)) {
		b->collect_ms =
			b->collect_ms * 2 < COLLECT_MOST_MS ? b->collect_ms * 2 : COLLECT_MOST_MS;
		timer_set(&b->collect, b->collect_ms);
	}
}

static void builds_drop_next(struct builds *b)
{
	struct wire_root root = { .head.type = WIRE_ROOT_DROP };
	struct wire_layer layer = { .head.type = WIRE_LAYER_DROP };
	struct err e;

	if (store_layer_unused(b->fleet->store, builds_oldest_ns(b), b->drop_skip, &b->dropped,
			       &e) < 0) {
		builds_collect_later(b);
		return;
	}
	snprintf(root.id, sizeof(root.id), "%s", b->dropped.id);
	snprintf(layer.id, sizeof(layer.id), "%s", b->dropped.id);
	b->dropping = b->dropped.is_root
			      ? keeper_client_request(&b->fleet->keeper, &root, sizeof(root),
						      WIRE_DONE, builds_dropped, b)
			      : keeper_client_request(&b->fleet->keeper, &layer, sizeof(layer),
						      WIRE_DONE, builds_dropped, b);
}

static void builds_collect_now(struct builds *b)
{
	struct err e;

	if (b->dropping)
		return;
	if (b->conf.cache_bytes && store_cache_trim(b->fleet->store, b->conf.cache_bytes, &e) < 0)
		log_warn("cannot shorten the cache of builds", LOG_E(&e));
	builds_drop_next(b);
}

void builds_collect(struct builds *b)
{
	b->collect_ms = COLLECT_MS;
	builds_collect_now(b);
}

static void build_collect_due(struct timer *t)
{
	builds_collect_now(loop_owner(t, struct builds, collect));
}

/* The last box of a deleted template may have ended. */
static void build_collect_event(struct fleet_subscriber *x, const struct store_event *ev,
				const json_t *data)
{
	struct builds *b = loop_owner(x, struct builds, events);

	(void)data;
	if (!b->drop_left || strcmp(ev->type, "box.ended") != 0)
		return;
	b->drop_left = 0; /* once: further boxes must not delay it */
	timer_set(&b->collect, COLLECT_MS);
}

void build_collect_begin(struct builds *b)
{
	timer_init(&b->collect, b->fleet->loop, build_collect_due);
	timer_init(&b->count, b->fleet->loop, build_count_due);
	b->events.on_event = build_collect_event;
	fleet_subscribe(b->fleet, &b->events);
}

void build_collect_end(struct builds *b)
{
	fleet_unsubscribe(b->fleet, &b->events);
	keeper_client_cancel(&b->fleet->keeper, b->dropping);
	keeper_client_cancel(&b->fleet->keeper, b->finding);
	timer_fini(&b->collect);
	build_count_due(&b->count);
	timer_fini(&b->count);
}
