/* snapshots.c - see snapshots.h.
 *
 * A snapshot of E2B is its own template: "<id>:default", or "<team>/<name>:<tag>" when it was
 * named. A fork starts from a checkpoint of the box, with its running programs unless its metadata says otherwise; where its
 * tier has none, from a snapshot that no list shows, with files only. */
#include "e2bcontrol/snapshots.h"
#include "api/quota.h"
#include "v1box/checkpoints.h"
#include "v1box/snapshot_source.h"
#include "base/cleanup.h"
#include "checkpoint/memory.h"
#include "e2bcontrol/pause.h"
#include "e2bcontrol/sandboxes.h"
#include "e2bcontrol/sandbox_json.h"

#include <stdio.h>
#include <string.h>

enum { FORKS_MOST = 100, FORKS_AT_ONCE = 4, FORK_S = 300 };

const struct field e2b_snapshot_fields[] = {
	{ "name", FIELD_TEXT, 0, 0, 2 * STORE_NAME + 1, "name or name:tag", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

const struct field e2b_fork_fields[] = {
	{ "count", FIELD_INT, 0, 1, FORKS_MOST, "number of sandboxes (default 1)", NULL },
	{ "timeout", FIELD_INT, 0, 0, 30 * 24 * 3600, "lifetime of the sandboxes in seconds",
	  NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

/* ---- taken, listed, removed ---- */

static json_t *snapshot_json(const struct store_snapshot *x)
{
	char id[3 * STORE_NAME + 8];
	json_t *names = json_array();

	if (!x->name[0]) {
		snprintf(id, sizeof(id), "%s:default", x->id);
	} else {
		snprintf(id, sizeof(id), "%s/%s", x->team, x->name);
		json_array_append_new(names, json_string(id));
		snprintf(id, sizeof(id), "%s/%s:%s", x->team, x->name, x->tag);
	}
	return json_pack("{s:s, s:o}", "snapshotID", id, "names", names);
}

static void snapshots_taken(struct call *c, const struct store_snapshot *row, const struct err *e)
{
	if (e)
		call_fail(c, e);
	else
		call_json(c, 201, snapshot_json(row));
}

/* The box whose files are copied: it must run, or be paused so that it can be resumed. */
static struct box *snapshots_source(struct call *c)
{
	struct box *b = call_box_peek(c, 0);

	if (b && b->state == BOX_PAUSED) {
		e2b_error(c, 409, "Sandbox %s is paused", b->row.id);
		return NULL;
	}
	if (b)
		call_hold(c, b);
	return b;
}

/* A stopped box has no programs. */
static int snapshots_with_memory(const struct box *b)
{
	return b->state == BOX_RUNNING && pausing_forks_memory(b);
}

void e2b_snapshot_create(struct call *c)
{
	struct store_snapshot want = { 0 };
	const char *name = call_text(c, "name", "");
	struct box *b = snapshots_source(c);
	struct err e;

	if (!b)
		return;
	if (*name && snapshots_name(c->who.team, name, &want, &e) < 0) {
		e2b_error(c, 400, "%s", e.msg);
		return;
	}
	snprintf(want.team, sizeof(want.team), "%s", c->who.team);
	snapshots_take(c, b, &want,
		       snapshots_with_memory(b) ? SNAPSHOTS_MEMORY : SNAPSHOTS_CHECKPOINT,
		       snapshots_taken);
}

void e2b_snapshot_list(struct call *c)
{
	struct store_snapshot named = { 0 };
	const char *name = call_query(c, "name"), *after = call_query(c, "nextToken"),
		   *limit = call_query(c, "limit");
	struct store_snapshot_filter f = { .team = c->who.team, .box = call_query(c, "sandboxID") };
	struct store_snapshots rows = { 0 };
	char next[STORE_CURSOR_TEXT];
	json_t *items;
	struct err e;

	f.limit = limit ? (unsigned)strtoul(limit, NULL, 10) : 0;
	f.limit = f.limit > STORE_PAGE_MAX ? STORE_PAGE_MAX : f.limit;
	if (after && *after && store_cursor_parse(after, &f.after, &e) < 0) {
		e2b_error(c, 400, "nextToken: %s", e.msg);
		return;
	}
	if (name && *name && snapshots_name(c->who.team, name, &named, &e) < 0) {
		call_json(c, 200, json_array());
		return;
	}
	f.name = name && *name ? named.name : NULL;
	f.tag = f.name && strchr(name, ':') ? named.tag : NULL;
	if (store_snapshot_list(c->api->store, &f, &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, snapshot_json(&rows.v[i]));
	if (rows.more) {
		struct store_cursor at = store_snapshot_cursor(&rows.v[rows.n - 1]);

		store_cursor_text(&at, next);
		http_set(c->req, "X-Next-Token", "%s", next);
	}
	store_snapshots_fini(&rows);
	call_json(c, 200, items);
}

int e2b_snapshot_delete(struct call *c, const char *id)
{
	struct store_snapshot x;
	struct err e;

	if (snapshots_find(c->api, c->who.team, id, &x, &e) < 0)
		return 0;
	if (snapshots_remove(c->api, &x, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
	return 1;
}

int e2b_snapshot_want(struct call *c, const char *template_id, struct store_snapshot *out)
{
	struct err e;

	return snapshot_source_find(c->api, c->who.team, template_id, out, &e) == 0;
}

/* ---- forks ---- */

struct fork {
	struct forking *all;
	struct box_wait wait;
	struct snapshot *snap;
	struct checkpoint_start start;
	char box[ID_MAX + 1];
	json_t *said; /* its entry in the answer, once it exists or has failed */
};

struct forking {
	struct call *call;
	struct box_spec want; /* row.surface: of the old box */
	struct e2b_box surface;
	struct checkpoint_job *job; /* of the box whose files they get */
	char image[ID_MAX + 1];     /* its programs, too; "": none */
	int memory;
	char snapshot[ID_MAX + 1]; /* "": want has the layers of a checkpoint */
	unsigned count, begun, over;
	int beginning; /* a snapshot that ends at once is answered after the loop that starts it */
	struct fork *v;
};

static void end_fork(struct fork *k)
{
	struct box *b = k->box[0] ? fleet_find(&k->all->call->api->fleet, k->box) : NULL;

	if (b)
		box_end(b, CAUSE_OPERATOR, NULL);
}

static void fork_fini(struct forking *f)
{
	struct err ignored;

	checkpoint_leave(f->job); /* it expires by itself */
	/* It needs as much memory as the programs. */
	if (f->image[0])
		checkpoint_memory_drop(f->call->api->checkpoints, f->image);
	if (f->snapshot[0])
		(void)!snapshot_remove(&f->call->api->fleet, f->snapshot,
				       &ignored); /* what stays is swept */
}

/* No client will know their ids. */
static void forker_left(struct call *c)
{
	struct forking *f = c->state;

	for (unsigned i = 0; i < f->begun; i++) {
		struct box *b = f->v[i].wait.box;

		box_wait_cancel(&f->v[i].wait);
		snapshot_cancel(f->v[i].snap);
		checkpoint_memory_cancel(&f->v[i].start);
		if (b)
			box_end(b, CAUSE_OPERATOR, NULL);
		else
			end_fork(&f->v[i]);
		json_decref(f->v[i].said);
	}
	fork_fini(f);
}

static void begin_forks(struct forking *f);

static void all_over(struct forking *f)
{
	json_t *all = json_array();

	f->call->drop = NULL;
	fork_fini(f);
	for (unsigned i = 0; i < f->count; i++)
		json_array_append_new(all, f->v[i].said);
	call_json(f->call, 201, all);
}

static void fork_over(struct fork *k, json_t *take_said)
{
	struct forking *f = k->all;

	k->said = take_said;
	f->over++;
	if (!f->beginning)
		begin_forks(f);
}

static void fork_failed(struct fork *k, int status, const char *why)
{
	end_fork(k);
	fork_over(k, json_pack("{s:{s:i, s:s}}", "error", "code", status, "message", why));
}

static void fork_filled(void *ctx, const struct store_snapshot *row, const char *box,
			const struct err *e)
{
	struct fork *k = ctx;
	struct box *b = fleet_find(&k->all->call->api->fleet, box);

	(void)row;
	k->snap = NULL;
	if (e || !b)
		fork_failed(k, e ? call_status(e) : 500, e ? e->msg : "the sandbox has ended");
	else
		fork_over(k, json_pack("{s:o}", "sandbox", sandbox_json_created(k->all->call, b)));
}

/* A sandbox without its programs is not what was requested. */
static void fork_continued(struct checkpoint_start *s, const struct err *e)
{
	struct fork *k = loop_owner(s, struct fork, start);
	struct box *b = fleet_find(&k->all->call->api->fleet, k->box);

	if (e || !b)
		fork_failed(k, e ? call_status(e) : 500, e ? e->msg : "the sandbox has ended");
	else
		fork_over(k, json_pack("{s:o}", "sandbox", sandbox_json_created(k->all->call, b)));
}

static void fork_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct fork *k = loop_owner(w, struct fork, wait);
	struct err own;

	if (e) {
		fork_failed(k, call_status(e), e->msg);
		return;
	}
	memcpy(k->box, b->row.id, sizeof(k->box));
	if (k->all->image[0])
		checkpoint_memory_start(&k->start, k->all->call->api->checkpoints, k->all->image,
					b);
	else if (!k->all->snapshot[0])
		fork_over(k, json_pack("{s:o}", "sandbox", sandbox_json_created(k->all->call, b)));
	else if (snapshot_fill(b->fleet, b, k->all->snapshot, fork_filled, k, &k->snap, &own) < 0)
		fork_failed(k, call_status(&own), own.msg);
}

/* The id of the box is one of its variables and is known only now; the box is not in the store
 * yet. */
static int fork_named(struct box_wait *w, const char *id, struct err *e)
{
	struct store_box *row = &w->box->row;
	json_t *env = row->env ? json_loads(row->env, 0, NULL) : NULL;

	(void)e;
	if (!json_object_get(env, "E2B_SANDBOX_ID")) {
		json_decref(env);
		return 0;
	}
	json_object_set_new(env, "E2B_SANDBOX_ID", json_string(id));
	free(row->env);
	row->env = json_dumps(env, JSON_COMPACT);
	json_decref(env);
	return 0;
}

/* Each fork has its own tokens: the token of the old box must not open this one. */
static int fork_want(struct forking *f, struct box_spec *out, char **out_surface, struct err *e)
{
	struct e2b_box x = f->surface;

	*out = f->want;
	if (x.token[0] && sandboxes_tokens(&x, e) < 0)
		return -1;
	*out_surface = out->row.surface = e2b_box_text_on(f->want.row.surface, &x);
	return 0;
}

static void begin_fork(struct forking *f, struct fork *k)
{
	struct box_spec want;
	auto_free char *surface = NULL;
	struct box *b;
	struct err e;

	*k = (struct fork){ .all = f,
			    .wait = { .done = fork_made, .named = fork_named },
			    .start.done = fork_continued };
	if (quota_boxes_left(f->call->api, f->call->who.team) == 0)
		fork_failed(k, 429, "the team has as many sandboxes as it may");
	else if (fork_want(f, &want, &surface, &e) < 0 ||
		 box_create(&f->call->api->fleet, &want, &k->wait, &b, &e) < 0)
		fork_failed(k, call_status(&e), e.msg);
}

static void begin_forks(struct forking *f)
{
	f->beginning = 1;
	while (f->begun < f->count && f->begun - f->over < FORKS_AT_ONCE) {
		unsigned i = f->begun++;

		begin_fork(f, &f->v[i]);
	}
	f->beginning = 0;
	if (f->over == f->count)
		all_over(f);
}

static void snapshots_forkable(struct call *c, const struct store_snapshot *row,
			       const struct err *e)
{
	struct forking *f = c->surface;

	if (e) {
		call_fail(c, e);
		return;
	}
	memcpy(f->snapshot, row->id, sizeof(f->snapshot));
	c->state = f;
	c->drop = forker_left;
	begin_forks(f);
}

/* A program that cannot be captured: each fork has failed, and its entry names the program. */
static void forks_refused(struct forking *f, const struct err *e)
{
	for (unsigned i = 0; i < f->count; i++)
		f->v[i].said = json_pack("{s:{s:i, s:s}}", "error", "code", call_status(e),
					 "message", e->msg);
	all_over(f);
}

static void fork_taken(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct forking *f = ctx;
	char *env = f->want.row.env;

	f->job = NULL;
	if (e && f->memory) {
		forks_refused(f, e);
		return;
	}
	if (e) {
		f->call->drop = NULL;
		call_fail(f->call, e);
		return;
	}
	checkpoints_spec(f->call, row, &f->want);
	f->want.row.env = env; /* of the box, as it is now */
	f->want.continues_programs = f->memory;
	if (f->memory)
		memcpy(f->image, row->id, sizeof(f->image));
	begin_forks(f);
}

/* 0: boxes of this tier, and those of earlier versions, have no checkpoints. */
static int fork_by_checkpoint(struct forking *f, struct box *b)
{
	struct checkpoint_want want = { .reason = CHECKPOINT_FORK,
					.author = f->call->who.id,
					.memory = snapshots_with_memory(b) };
	struct err e;

	f->memory = want.memory;
	if (!isolation_has_checkpoints(&b->row))
		return 0;
	if (checkpoint_take(f->call->api->checkpoints, b, &want, fork_taken, f, &f->job, &e) == 0) {
		f->call->state = f;
		f->call->drop = forker_left;
		return 1;
	}
	if (e.kind == ERR_CONFLICT && !want.memory)
		return 0;
	call_fail(f->call, &e);
	return 1;
}

static char *dup_text(struct call *c, const char *text)
{
	return text ? http_strdup(c->req, text, strlen(text)) : NULL;
}

static struct wire_limits limits_of(const struct store_limits *l)
{
	return (struct wire_limits){ .mem_bytes = l->mem_bytes,
				     .disk_bytes = l->disk_bytes,
				     .disk_files = l->disk_files,
				     .cpu_ms = l->cpu_ms,
				     .cpu_milli = l->cpu_milli,
				     .pids = l->pids };
}

/* Volumes are not forked: one box may write to one. */
static void snapshots_describe(struct forking *f, const struct box *b, uint64_t lifetime_ms)
{
	struct call *c = f->call;

	e2b_box_read(b, &f->surface);
	f->want = (struct box_spec){ .limits = limits_of(&b->row.limits) };
	f->want.isolation = isolation_like(&b->row);
	f->want.flags = box_made_flags(&b->row);
	f->want.row = (struct store_box){ .lifetime_ms = lifetime_ms,
					  .metadata = dup_text(c, b->row.metadata),
					  .env = dup_text(c, b->row.env),
					  .network = dup_text(c, b->row.network),
					  .surface = dup_text(c, b->row.surface) };
	memcpy(f->want.row.team, b->row.team, sizeof(f->want.row.team));
	memcpy(f->want.row.key, b->row.key, sizeof(f->want.row.key));
	memcpy(f->want.row.template, b->row.template, sizeof(f->want.row.template));
	pausing_want(&f->want.row, &f->surface);
}

void e2b_fork(struct call *c)
{
	struct forking *f = call_alloc(c, sizeof(*f));
	struct store_snapshot want = { 0 };
	int64_t seconds = call_int(c, "timeout", FORK_S);
	uint64_t lifetime_ms = (uint64_t)(seconds ? seconds : FORK_S) * 1000,
		 most = quota_max_lifetime_ms(c->api, c->who.team);
	struct box *b = snapshots_source(c);

	if (!b)
		return;
	if (most && lifetime_ms > most) {
		e2b_error(c, 400, "Timeout cannot be greater than %llu seconds",
			  (unsigned long long)most / 1000);
		return;
	}
	*f = (struct forking){ .call = c, .count = (unsigned)call_int(c, "count", 1) };
	f->v = call_alloc(c, f->count * sizeof(*f->v));
	memset(f->v, 0, f->count * sizeof(*f->v));
	snapshots_describe(f, b, lifetime_ms);
	snprintf(want.team, sizeof(want.team), "%s", c->who.team);
	if (fork_by_checkpoint(f, b))
		return;
	c->surface = f;
	snapshots_take(c, b, &want, SNAPSHOTS_HIDDEN, snapshots_forkable);
}
