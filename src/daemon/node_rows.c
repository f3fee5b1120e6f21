/* node_rows.c - see node_rows.h. */
#include "daemon/node_rows.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cluster/control.h"
#include "cluster/tunnel.h"
#include "e2bcontrol/sandbox_json.h"
#include "e2bcontrol/sandboxes.h"
#include "fleet/box.h"
#include "store/boxes.h"
#include "store/directory.h"
#include "store/runs.h"
#include "v1box/boxes.h"
#include "v1run/execs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	NODE_ROWS_MS = 50,
	NODE_ROWS_BUSY_MS = 2, /* while more rows wait: other work of the server comes first */
	NODE_ROWS_BATCH = 250,
	NODE_ROWS_BYTES = 48 << 10, /* of a message, which CONTROL_LINE_NODE bounds */
	NODE_ROWS_ROW = 24 << 10,   /* of one row; longer texts of a run are left out */
};

struct node_rows {
	struct api *api;
	node_rows_send *send;
	void *user;
	struct timer clock;
	int is_open;
	int64_t sent;
	unsigned ahead;
	struct directory_wait *waiting;
};

/* ---- one row ---- */

static json_t *rows_pack(const char *kind, const char *id, int64_t rev, const char *team,
			 int64_t at_ns, json_t *take_row)
{
	return json_pack("{s:s, s:s, s:I, s:s, s:I, s:o}", "kind", kind, "id", id, "rev",
			 (json_int_t)rev, "team", team, "at_ns", (json_int_t)at_ns, "row",
			 take_row);
}

static int rows_is_sandbox(const struct box *b)
{
	return b && (b->state == BOX_RUNNING || sandboxes_paused(b)) && !b->is_installer &&
	       !(b->row.metadata && strstr(b->row.metadata, "\"" BOX_EPHEMERAL "\":"));
}

static json_t *rows_box(struct api *a, const char *id, int64_t rev)
{
	const struct box *b = fleet_find(&a->fleet, id);
	struct store_box row = { 0 };
	json_t *doc, *out = NULL;
	struct err e;

	if (store_box_get(a->store, id, &row, &e) < 0)
		return NULL;
	doc = boxes_listed_json(a, &row);
	if (doc)
		out = rows_pack("box", id, rev, row.team, row.created_ns,
				json_pack("{s:o, s:o, s:I, s:I}", "v1", doc, "e2b",
					  rows_is_sandbox(b) ? sandbox_json_listed(b) : json_null(),
					  "started_ns",
					  (json_int_t)(b ? sandboxes_started(b) : row.created_ns),
					  "ended_ns", (json_int_t)row.ended_ns));
	store_box_fini(&row);
	return out;
}

/* A list of runs does not need the output of each: a long one is at the node. */
static void rows_shorten(json_t *doc)
{
	static const char *const long_ones[] = { "stdout",    "stderr",  "results", "artifacts",
						 "changes",   "request", "output",  "diagnostics",
						 "traceback", "files" };

	if (json_dumpb(doc, NULL, 0, JSON_COMPACT) <= NODE_ROWS_ROW)
		return;
	for (unsigned i = 0; i < ARRAY_LEN(long_ones); i++)
		json_object_del(doc, long_ones[i]);
	json_object_set_new(doc, "shortened", json_true());
}

static json_t *rows_run(struct api *a, const char *id, int64_t rev)
{
	struct store_run row = { 0 };
	json_t *doc, *out;
	struct err e;

	if (store_run_get(a->store, id, &row, &e) < 0)
		return NULL;
	doc = execs_row_json(a, &row);
	rows_shorten(doc);
	out = rows_pack("run", id, rev, row.team, row.started_ns,
			json_pack("{s:s, s:s, s:b, s:o}", "box", row.box, "cause", row.cause,
				  "running", row.ended_ns == 0, "v1", doc));
	store_run_fini(&row);
	return out;
}

static json_t *rows_other(const struct store_directory_row *r)
{
	static const int64_t day_ns = INT64_C(86400000000000);
	json_t *doc = r->row ? json_loads(r->row, 0, NULL) : NULL;
	const char *team = json_string_value(json_object_get(doc, "team"));
	json_int_t at = json_integer_value(json_object_get(doc, "at_ns"));

	if (!doc)
		return NULL;
	if (json_object_get(doc, "day"))
		at = json_integer_value(json_object_get(doc, "day")) * day_ns;
	return rows_pack(r->kind, r->id, r->rev, team ? team : "", at, doc);
}

static json_t *rows_one(struct api *a, const struct store_directory_row *r)
{
	if (strcmp(r->kind, "box") == 0)
		return rows_box(a, r->id, r->rev);
	if (strcmp(r->kind, "run") == 0)
		return rows_run(a, r->id, r->rev);
	return rows_other(r);
}

json_t *node_rows_box(struct api *a, const char *id)
{
	return rows_box(a, id, 1);
}

/* ---- batches ---- */

/* 1: more rows may wait. */
static int rows_send_batch(struct node_rows *x)
{
	struct store_directory_rows l = { 0 };
	json_t *all = json_array();
	size_t bytes = 0;
	int64_t last = x->sent;
	struct err e;
	int more, rc;

	if (store_directory_list(x->api->store, x->sent, NODE_ROWS_BATCH, &l, &e) < 0) {
		log_error("rows for the directory of the cluster", LOG_E(&e));
		json_decref(all);
		return 0;
	}
	more = l.n == NODE_ROWS_BATCH;
	for (unsigned i = 0; i < l.n; i++) {
		json_t *one = rows_one(x->api, &l.v[i]);
		size_t n = one ? json_dumpb(one, NULL, 0, JSON_COMPACT) + 1 : 0;

		if (one && json_array_size(all) && bytes + n > NODE_ROWS_BYTES) {
			json_decref(one);
			more = 1;
			break;
		}
		if (one && n <= NODE_ROWS_BYTES)
			json_array_append(all, one);
		else if (one)
			log_warn("a row is too long for the directory", LOG_S("kind", l.v[i].kind),
				 LOG_S("id", l.v[i].id));
		bytes += n;
		last = l.v[i].rev;
		json_decref(one);
	}
	rc = last > x->sent ? x->send(x->user, (uint64_t)last, all) : 0;
	if (rc > 0) {
		x->sent = last;
		x->ahead++;
	}
	store_directory_rows_fini(&l);
	json_decref(all);
	return rc > 0 && more;
}

static void rows_due(struct timer *t)
{
	struct node_rows *x = loop_owner(t, struct node_rows, clock);
	int more = 0;

	if (!x->is_open)
		return;
	if (x->ahead < TUNNEL_ROWS_AHEAD) {
		run_writer_flush(&x->api->fleet.run_writer);
		more = rows_send_batch(x);
	}
	timer_set(t, more ? NODE_ROWS_BUSY_MS : NODE_ROWS_MS);
}

static void rows_wake(struct node_rows *x, int64_t kept)
{
	for (struct directory_wait *w = x->waiting, *next; w; w = next) {
		next = w->next;
		if (w->rev > kept)
			continue;
		directory_wait_cancel(w);
		w->done(w);
	}
}

void node_rows_kept(struct node_rows *x, uint64_t last)
{
	struct err e;

	if (!x || !x->is_open)
		return;
	if (store_directory_kept(x->api->store, (int64_t)last, &e) < 0)
		log_error("rows for the directory of the cluster", LOG_E(&e));
	if (x->ahead)
		x->ahead--;
	if (x->ahead == TUNNEL_ROWS_AHEAD - 1)
		timer_set(&x->clock, NODE_ROWS_BUSY_MS);
	rows_wake(x, (int64_t)last);
}

int node_rows_settle(struct node_rows *x, struct directory_wait *w)
{
	struct err e;

	if (!x->is_open)
		return -1;
	run_writer_flush(&x->api->fleet.run_writer);
	quota_flush(x->api);
	if (store_directory_last(x->api->store, &w->rev, &e) < 0) {
		log_error("rows for the directory of the cluster", LOG_E(&e));
		return -1;
	}
	if (!w->rev)
		return 1;
	w->next = x->waiting;
	w->at = &x->waiting;
	if (w->next)
		w->next->at = &w->next;
	x->waiting = w;
	timer_set(&x->clock, 0);
	return 0;
}

void node_rows_set_open(struct node_rows *x, int open)
{
	x->is_open = open;
	x->sent = 0;
	x->ahead = 0;
	if (open)
		timer_set(&x->clock, 0);
	else
		timer_clear(&x->clock);
}

struct node_rows *node_rows_new(struct api *a, node_rows_send *send, void *user)
{
	struct node_rows *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->api = a;
	x->send = send;
	x->user = user;
	timer_init(&x->clock, a->loop, rows_due);
	return x;
}

void node_rows_free(struct node_rows *x)
{
	if (!x)
		return;
	timer_fini(&x->clock);
	while (x->waiting)
		directory_wait_cancel(x->waiting);
	free(x);
}
