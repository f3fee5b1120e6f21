/* checkpoint_diff.c - GET /v1/checkpoints/{checkpoint}/diff: what differs from another checkpoint, or from now. */
#include "v1box/checkpoints.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "checkpoint/compare.h"
#include "fleet/box_secrets.h"
#include "v1box/checkpoint_texts.h"
#include "v1box/file_request.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { DIFF_ITEMS = 1000, DIFF_ITEMS_MOST = 10000 };

const struct field checkpoints_diff_query[] = {
	/* clang-format off */
	{ "to", FIELD_TEXT, 0, 0, STORE_NAME, "the other checkpoint: id, name in the same box, or `now` (default: the present files of its box)", NULL },
	{ "path", FIELD_TEXT, 0, 0, FILE_REQUEST_PATH, "only this file or folder; relative to /home/user", NULL },
	{ "limit", FIELD_INT, 0, 1, DIFF_ITEMS_MOST, "maximum number of items (default 1000)", NULL },
	{ "content", FIELD_BOOL, 0, 0, 0, "1: also the texts of up to 200 files of up to 64 KiB, in the unified format", NULL },
	{ 0 },
	/* clang-format on */
};

struct checkpoint_diffing {
	struct call *call;
	struct checkpoint_job *job;
	struct checkpoint_files_load *reading;
	struct checkpoint_texts *texts;
	json_t *answer; /* while the texts are read */
	struct checkpoint_files from;
	struct store_checkpoint a, b; /* without spec */
	const char *below;            /* "": everything */
};

static void diff_fini(struct checkpoint_diffing *d)
{
	checkpoint_files_fini(&d->from);
	d->call->drop = NULL;
}

static void diff_left(struct call *c)
{
	struct checkpoint_diffing *d = c->state;

	checkpoint_leave(d->job);
	checkpoint_files_leave(d->reading);
	checkpoint_texts_leave(d->texts);
	json_decref(d->answer);
	checkpoint_files_fini(&d->from);
}

static void diff_fail(struct checkpoint_diffing *d, const struct err *e)
{
	diff_fini(d);
	call_fail(d->call, e);
}

/* ---- answer ---- */

static const char *diff_type(uint32_t mode)
{
	return S_ISDIR(mode) ? "folder" : S_ISREG(mode) ? "file" : S_ISLNK(mode) ? "link" : "fifo";
}

static json_t *diff_entry(const struct layer_index_fixed *f)
{
	char mode[8], sum[65];
	json_t *doc;

	if (!f)
		return json_null();
	snprintf(mode, sizeof(mode), "%04o", f->mode & 07777);
	doc = json_pack("{s:s, s:I, s:s, s:i, s:i}", "type", diff_type(f->mode), "size",
			(json_int_t)f->size, "mode", mode, "uid", (int)f->uid, "gid", (int)f->gid);
	if (f->flags & LAYER_INDEX_HASHED) {
		hex_encode(sum, f->sha256, sizeof(f->sha256));
		json_object_set_new(doc, "sha256", json_string(sum));
	}
	return doc;
}

static void diff_set_path(json_t *doc, const char *key, const char *path)
{
	auto_buf struct buf full = { 0 };

	buf_printf(&full, "/%s", path);
	file_request_set_text(doc, key, buf_str(&full));
}

static int diff_is_wanted(const struct checkpoint_diffing *d, const char *path)
{
	if (d->call->who.role < ROLE_EDITOR &&
	    checkpoint_files_are_below(path, &BOX_SECRETS_FOLDER[1]))
		return 0;
	return !*d->below || strcmp(path, d->below) == 0 ||
	       checkpoint_files_are_below(path, d->below);
}

static json_t *diff_item(const struct checkpoint_difference *x)
{
	json_t *doc = json_pack("{s:s, s:o, s:o}", "change", checkpoint_change_name(x->change),
				"from", diff_entry(x->from), "to", diff_entry(x->to));

	diff_set_path(doc, "path", x->path);
	if (x->was)
		diff_set_path(doc, "was", x->was);
	return doc;
}

/* ---- texts ---- */

/* NULL: the file of the template. */
static int diff_is_file(const struct layer_index_fixed *f)
{
	return !f || S_ISREG(f->mode);
}

static void diff_want_text(struct checkpoint_texts *t, json_t *item,
			   const struct checkpoint_difference *x)
{
	uint64_t from = x->from ? x->from->size : 0, to = x->to ? x->to->size : 0;

	if ((x->change == CHANGE_ADDED || x->change == CHANGE_DELETED ||
	     x->change == CHANGE_CONTENT) &&
	    diff_is_file(x->from) && diff_is_file(x->to))
		checkpoint_texts_add(t, item, x->path, x->change != CHANGE_ADDED,
				     x->change != CHANGE_DELETED, from > to ? from : to);
}

static void diff_texts_read(void *ctx, const struct err *e)
{
	struct checkpoint_diffing *d = ctx;
	json_t *doc = d->answer;

	d->texts = NULL;
	d->answer = NULL;
	if (e) {
		json_decref(doc);
		diff_fail(d, e);
		return;
	}
	diff_fini(d);
	call_json(d->call, 200, doc);
}

static void diff_read_texts(struct checkpoint_diffing *d, json_t *take_doc)
{
	struct checkpoint_texts *t = d->texts;
	struct err e;

	d->answer = take_doc;
	if (!quota_box(d->call)) {
		checkpoint_texts_leave(t);
		json_decref(take_doc);
		diff_fini(d);
	} else if (checkpoint_texts_read(t, d->a.id, d->b.id, diff_texts_read, d, &e) < 0) {
		json_decref(take_doc);
		diff_fail(d, &e);
	}
}

static void diff_answer(struct checkpoint_diffing *d, const struct checkpoint_files *to)
{
	size_t most = (size_t)call_query_int(d->call, "limit", DIFF_ITEMS), left_out = 0;
	json_int_t count[CHANGE_RENAMED + 1] = { 0 };
	json_t *items = json_array(), *doc, *counts = json_object(), *item;
	struct checkpoint_differences all;

	if (call_query_flag(d->call, "content"))
		d->texts = checkpoint_texts_new(d->call);

	checkpoint_compare(&d->from, to, &all);
	for (size_t i = 0; i < all.n; i++) {
		if (!diff_is_wanted(d, all.v[i].path))
			continue;
		count[all.v[i].change]++;
		if (json_array_size(items) < most) {
			item = diff_item(&all.v[i]);
			json_array_append_new(items, item);
			if (d->texts)
				diff_want_text(d->texts, item, &all.v[i]);
		} else {
			left_out++;
		}
	}
	checkpoint_differences_fini(&all);
	for (unsigned i = 0; i <= CHANGE_RENAMED; i++)
		json_object_set_new(counts, checkpoint_change_name(i), json_integer(count[i]));
	doc = json_pack("{s:s, s:s, s:o, s:I, s:o}", "from", d->a.id, "to", d->b.id, "counts",
			counts, "left_out", (json_int_t)left_out, "items", items);
	if (d->texts && !checkpoint_texts_is_empty(d->texts)) {
		diff_read_texts(d, doc);
		return;
	}
	checkpoint_texts_leave(d->texts);
	diff_fini(d);
	call_json(d->call, 200, doc);
}

/* ---- reading ---- */

static void diff_read_to(void *ctx, struct checkpoint_files *l, const struct err *e)
{
	struct checkpoint_diffing *d = ctx;

	d->reading = NULL;
	if (e)
		diff_fail(d, e);
	else
		diff_answer(d, l);
}

static void diff_read_from(void *ctx, struct checkpoint_files *l, const struct err *e)
{
	struct checkpoint_diffing *d = ctx;
	struct err own;

	d->reading = NULL;
	if (e) {
		diff_fail(d, e);
		return;
	}
	d->from = *l;
	*l = (struct checkpoint_files){ 0 };
	if (checkpoint_files_read(d->call->api->checkpoints, &d->b, diff_read_to, d, &d->reading,
				  &own) < 0)
		diff_fail(d, &own);
}

static void diff_begin(struct checkpoint_diffing *d)
{
	struct err e;

	if (checkpoint_files_read(d->call->api->checkpoints, &d->a, diff_read_from, d, &d->reading,
				  &e) < 0)
		diff_fail(d, &e);
}

static void diff_taken(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct checkpoint_diffing *d = ctx;

	d->job = NULL;
	if (e) {
		diff_fail(d, e);
		return;
	}
	d->b = *row;
	d->b.spec = NULL;
	diff_begin(d);
}

/* The present files become a checkpoint, which expires after a day. */
static void diff_take_now(struct checkpoint_diffing *d)
{
	struct call *c = d->call;
	struct checkpoint_want want = { .reason = CHECKPOINT_DIFF, .author = c->who.id };
	struct box *b = fleet_find(&c->api->fleet, d->a.box);
	struct err e;

	if (c->who.role < ROLE_EDITOR) {
		call_error(c, 403, "denied",
			   "to: the present files become a checkpoint, which a viewer cannot take",
			   "now", "compare with a checkpoint: ?to=ID");
		return;
	}
	if (!b) {
		call_error(c, 409, "conflict", "to: the box of the checkpoint has ended", d->a.box,
			   "compare with a checkpoint: ?to=ID");
		return;
	}
	if (checkpoint_take(c->api->checkpoints, b, &want, diff_taken, d, &d->job, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	c->state = d;
	c->drop = diff_left;
}

void checkpoints_diff(struct call *c)
{
	checkpoints_diff_from(c, NULL, call_param(c, 0));
}

void checkpoints_diff_from(struct call *c, const struct box *b, const char *from)
{
	const char *to = call_query(c, "to"), *path = call_query(c, "path");
	struct checkpoint_diffing *d = call_alloc(c, sizeof(*d));
	struct store_checkpoint x;

	*d = (struct checkpoint_diffing){ .call = c, .below = "" };
	if (path) {
		path = file_request_path(c, path);
		if (!path)
			return;
		d->below = path + 1;
	}
	if (!checkpoints_find(c, b, from, &x))
		return;
	store_checkpoint_fini(&x);
	d->a = x;
	if (!to || !strcmp(to, "now")) {
		diff_take_now(d);
		return;
	}
	b = fleet_find(&c->api->fleet, d->a.box);
	if (!checkpoints_find(c, b, to, &x))
		return;
	store_checkpoint_fini(&x);
	d->b = x;
	c->state = d;
	c->drop = diff_left;
	diff_begin(d);
}
