/* snapshots.c - see snapshots.h. */
#include "v1box/snapshots.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "v1box/box_spec.h"
#include "v1box/checkpoints.h"
#include "v1box/snapshot_source.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_TAG "default"

const struct field snapshots_create_fields[] = {
	{ "box", FIELD_TEXT, 1, 0, STORE_NAME, "the box whose files are saved", NULL },
	{ "name", FIELD_TEXT, 0, 0, 2 * STORE_NAME,
	  "name or name:tag; a name refers to its newest snapshot", NULL },
	{ "packed", FIELD_BOOL, 0, 0, 0,
	  "true (default): the files in one file, for boxes of any tier and template, and for "
	  "templates; false: a checkpoint, which takes the same time for any number of files",
	  NULL },
	{ 0 },
};

const struct field snapshots_list_query[] = {
	{ "box", FIELD_TEXT, 0, 0, STORE_NAME, "only snapshots of this box", NULL },
	{ "name", FIELD_TEXT, 0, 0, 2 * STORE_NAME, "only snapshots with this name", NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
};

/* ---- names ---- */

static int take_word(char out[STORE_NAME + 1], const char *from, size_t n, const char *more)
{
	if (n == 0 || n > STORE_NAME)
		return -1;
	for (size_t i = 0; i < n; i++) {
		char x = (char)tolower((unsigned char)from[i]);

		if (!(x >= 'a' && x <= 'z') && !(x >= '0' && x <= '9') && !strchr(more, x))
			return -1;
		out[i] = x;
	}
	out[n] = 0;
	return 0;
}

int snapshots_name(const char *team, const char *text, struct store_snapshot *out, struct err *e)
{
	const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text,
		   *colon = strchr(name, ':');

	if (slash && ((size_t)(slash - text) != strlen(team) || strncmp(text, team, strlen(team))))
		return err_set(e, ERR_NOT_FOUND, "'%.64s' belongs to another team", text);
	snprintf(out->tag, sizeof(out->tag), DEFAULT_TAG);
	if (take_word(out->name, name, colon ? (size_t)(colon - name) : strlen(name), "-_") < 0 ||
	    (colon && take_word(out->tag, colon + 1, strlen(colon + 1), "-_.") < 0))
		return err_set(
			e, ERR_INVALID,
			"'%.80s': a name has letters, digits, - and _; a tag, after a colon, "
			"dots as well",
			text);
	return 0;
}

int snapshots_find(struct api *a, const char *team, const char *text, struct store_snapshot *out,
		   struct err *e)
{
	struct store_snapshot x = { 0 };

	if (snapshots_name(team, text, &x, e) < 0)
		return err_set(e, ERR_NOT_FOUND, "there is no snapshot '%.80s'", text);
	if (id_valid(x.name) && !strcmp(x.tag, DEFAULT_TAG) &&
	    store_snapshot_get(a->store, team, x.name, out, e) == 0)
		return 0;
	return store_snapshot_named(a->store, team, x.name, x.tag, out, e);
}

/* ---- for a call ---- */

struct taking {
	struct call *call;
	struct snapshot *snap;
	char box[ID_MAX + 1];
	snapshots_done *taken;
	void (*filled)(struct call *c, struct box *b, const struct err *e);
};

static void snapshots_took(void *ctx, const struct store_snapshot *row, const char *box,
			   const struct err *e)
{
	struct taking *t = ctx;

	(void)box;
	t->call->drop = NULL;
	t->taken(t->call, row, e);
}

static void taker_left(struct call *c)
{
	snapshot_cancel(((struct taking *)c->state)->snap);
}

/* ---- by a checkpoint ---- */

struct saving {
	struct call *call; /* NULL: the client has disconnected */
	struct api *api;
	struct checkpoint_job *job;
	struct store_snapshot row;
	snapshots_done *done;
};

static int saving_store(struct saving *s, const struct store_checkpoint *x, struct err *e)
{
	struct store_snapshot *row = &s->row;
	struct err ignored;

	memcpy(row->id, x->id, sizeof(row->id));
	memcpy(row->checkpoint, x->id, sizeof(row->checkpoint));
	memcpy(row->box, x->box, sizeof(row->box));
	memcpy(row->template, x->template, sizeof(row->template));
	row->bytes = x->bytes ? x->bytes : 1; /* 0: not complete */
	row->created_ns = x->created_ns;
	if (store_snapshot_insert(s->api->store, row, e) == 0)
		return 0;
	(void)!checkpoint_remove(s->api->checkpoints, x, &ignored);
	return -1;
}

static void saving_saved(void *ctx, const struct store_checkpoint *x, const struct err *e)
{
	struct saving *s = ctx;
	struct err own;

	if (s->call)
		s->call->drop = NULL;
	if (!s->call && !e)
		(void)!checkpoint_remove(s->api->checkpoints, x, &own);
	else if (s->call && !e && saving_store(s, x, &own) < 0)
		s->done(s->call, NULL, &own);
	else if (s->call)
		s->done(s->call, e ? NULL : &s->row, e);
	free(s);
}

static void saver_left(struct call *c)
{
	((struct saving *)c->state)->call = NULL;
}

/* 0: boxes of this tier, and those of earlier versions, have no checkpoints. */
static int snapshots_by_checkpoint(struct call *c, struct box *b, const struct store_snapshot *want,
				   int memory, snapshots_done *done)
{
	/* With memory it is worth nothing when only the keeper has its image. */
	struct checkpoint_want how = { .reason = CHECKPOINT_SNAPSHOT,
				       .author = c->who.id,
				       .pin = 1,
				       .memory = memory,
				       .durable = memory,
				       .must_save = memory };
	struct saving *s;
	struct err e;

	if (!isolation_has_checkpoints(&b->row))
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	*s = (struct saving){ .call = c, .api = c->api, .row = *want, .done = done };
	snprintf(s->row.tier, sizeof(s->row.tier), "%s", isolation_tier(&b->row));
	if (checkpoint_take(c->api->checkpoints, b, &how, saving_saved, s, &s->job, &e) == 0) {
		c->state = s;
		c->drop = saver_left;
		return 1;
	}
	free(s);
	if (e.kind == ERR_CONFLICT && !memory)
		return 0;
	done(c, NULL, &e);
	return 1;
}

int snapshots_spec(struct call *c, const struct store_snapshot *x, struct box_spec *out,
		   struct err *e)
{
	static const char *const others[] = { "packages", "warm" };
	const char *template = call_text(c, "template", NULL);
	struct store_checkpoint files;

	if (!x->checkpoint[0])
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(others); i++)
		if (call_get(c, others[i]))
			return err_set(e, ERR_INVALID,
				       "%s: cannot be used together with a snapshot, which has "
				       "those of its box",
				       others[i]);
	if (template && strcmp(template, x->template) != 0)
		return err_set(e, ERR_INVALID, "template: the snapshot is of a box of template %s",
			       x->template);
	if (store_checkpoint_get(c->api->store, c->who.team, x->checkpoint, &files, e) < 0)
		return err_in(e, "snapshot %s", x->id);
	checkpoints_spec(c, &files, out);
	store_checkpoint_fini(&files);
	return 1;
}

int snapshots_remove(struct api *a, const struct store_snapshot *x, struct err *e)
{
	struct store_checkpoint files;

	if (!x->checkpoint[0])
		return snapshot_remove(&a->fleet, x->id, e);
	if (store_snapshot_remove(a->store, x->id, e) < 0)
		return -1;
	if (store_checkpoint_get(a->store, x->team, x->checkpoint, &files, e) < 0)
		return 0; /* nothing is left to remove */
	if (checkpoint_remove(a->checkpoints, &files, e) < 0) {
		store_checkpoint_fini(&files);
		return -1;
	}
	store_checkpoint_fini(&files);
	return 0;
}

/* ---- by packing ---- */

void snapshots_take(struct call *c, struct box *b, const struct store_snapshot *want,
		    enum snapshots_how how, snapshots_done *done)
{
	struct taking *t;
	struct err e;

	if ((how == SNAPSHOTS_CHECKPOINT || how == SNAPSHOTS_MEMORY) &&
	    snapshots_by_checkpoint(c, b, want, how == SNAPSHOTS_MEMORY, done))
		return;
	t = call_alloc(c, sizeof(*t));

	*t = (struct taking){ .call = c, .taken = done };
	if (snapshot_take(&c->api->fleet, b, want, how == SNAPSHOTS_HIDDEN, snapshots_took, t,
			  &t->snap, &e) < 0) {
		done(c, want, &e);
		return;
	}
	c->state = t;
	c->drop = taker_left;
}

static void end_box(struct api *a, const char *id)
{
	struct box *b = fleet_find(&a->fleet, id);

	if (b)
		box_end(b, CAUSE_OPERATOR, NULL);
}

static void snapshots_filled(void *ctx, const struct store_snapshot *row, const char *box,
			     const struct err *e)
{
	struct taking *t = ctx;
	struct box *b = fleet_find(&t->call->api->fleet, box);
	struct err gone;

	(void)row;
	t->call->drop = NULL;
	if (!e && (!b || b->state != BOX_RUNNING)) {
		err_set(&gone, ERR_NOT_FOUND, "box %s has ended", box);
		e = &gone;
	}
	if (e)
		end_box(t->call->api, box);
	t->filled(t->call, e ? NULL : b, e);
}

static void filler_left(struct call *c)
{
	struct taking *t = c->state;

	snapshot_cancel(t->snap);
	end_box(c->api, t->box);
}

void snapshots_fill(struct call *c, struct box *b, const char *id,
		    void (*done)(struct call *c, struct box *b, const struct err *e))
{
	struct taking *t = call_alloc(c, sizeof(*t));
	struct err e;

	*t = (struct taking){ .call = c, .filled = done };
	memcpy(t->box, b->row.id, sizeof(t->box));
	if (snapshot_source_fill(c->api, b, id, snapshots_filled, t, &t->snap, &e) < 0) {
		end_box(c->api, t->box);
		done(c, NULL, &e);
		return;
	}
	c->state = t;
	c->drop = filler_left;
}

/* ---- /v1 ---- */

static json_t *snapshot_json(const struct store_snapshot *x)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:o, s:b}", "id", x->id, "name", x->name,
			 "tag", x->name[0] ? x->tag : "", "box", x->box, "template", x->template,
			 "bytes", (json_int_t)x->bytes, "created",
			 json_time((uint64_t)x->created_ns), "packed", !x->checkpoint[0]);
}

static void snapshots_created(struct call *c, const struct store_snapshot *row, const struct err *e)
{
	if (e) {
		call_fail(c, e);
		return;
	}
	call_audit(c, "snapshot.create", row->id, "ok");
	http_set(c->req, "Location", "/v1/snapshots/%s", row->id);
	if (c->req->trusted_peer && !row->checkpoint[0]) /* for the object store */
		http_set(c->req, "Atoll-Snapshot", "%s %s", row->id, row->name);
	call_json(c, 201, snapshot_json(row));
}

void snapshots_create(struct call *c)
{
	struct store_snapshot want = { 0 };
	const char *box = call_text(c, "box", ""), *name = call_text(c, "name", "");
	struct box *b = fleet_named(&c->api->fleet, c->who.team, box);
	struct err e;

	if (!b || (b->state != BOX_RUNNING && b->state != BOX_STOPPED && b->state != BOX_PAUSED) ||
	    (c->who.box[0] && strcmp(c->who.box, b->row.id) != 0)) {
		call_no_box(c, box);
		return;
	}
	if (*name && snapshots_name(c->who.team, name, &want, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (b->state == BOX_PAUSED) {
		call_fail_paused(c, b);
		return;
	}
	snprintf(want.team, sizeof(want.team), "%s", c->who.team);
	call_hold(c, b);
	snapshots_take(c, b, &want,
		       call_flag(c, "packed", 1) ? SNAPSHOTS_PACKED : SNAPSHOTS_CHECKPOINT,
		       snapshots_created);
}

void snapshots_list(struct call *c)
{
	struct store_snapshot named = { 0 };
	const char *name = call_query(c, "name"), *after = call_query(c, "after");
	struct store_snapshot_filter f = { .team = c->who.team,
					   .box = call_query(c, "box"),
					   .limit = (unsigned)call_query_int(c, "limit", 0) };
	struct store_snapshots rows = { 0 };
	char next[STORE_CURSOR_TEXT] = "";
	json_t *items;
	struct err e;

	if ((name && snapshots_name(c->who.team, name, &named, &e) < 0) ||
	    (after && store_cursor_parse(after, &f.after, &e) < 0)) {
		call_fail(c, &e);
		return;
	}
	f.name = name ? named.name : NULL;
	f.tag = name && strchr(name, ':') ? named.tag : NULL;
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
	}
	store_snapshots_fini(&rows);
	call_list(c, items, next);
}

void snapshots_show(struct call *c)
{
	struct store_snapshot x;
	struct err e;

	if (snapshots_find(c->api, c->who.team, call_param(c, 0), &x, &e) < 0)
		call_fail(c, &e);
	else
		call_json(c, 200, snapshot_json(&x));
}

void snapshots_delete(struct call *c)
{
	struct store_snapshot x;
	struct err e;

	if (snapshots_find(c->api, c->who.team, call_param(c, 0), &x, &e) < 0 ||
	    snapshots_remove(c->api, &x, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}
