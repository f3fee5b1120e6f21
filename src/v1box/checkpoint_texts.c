/* checkpoint_texts.c - see checkpoint_texts.h.
 *
 *   two boxes are created ─► a file worker in each ─► for each file: GET on one side, GET on the other ─► text
 *
 * What boxes answer is untrusted: it is limited in size, and only becomes text of the answer. */
#include "v1box/checkpoint_texts.h"
#include "base/cleanup.h"
#include "base/line_diff.h"
#include "base/utf8.h"
#include "client/file_client.h"
#include "fleet/box.h"
#include "v1box/checkpoints.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TEXTS_FILES = 200,
	TEXTS_FILE_BYTES = 64 << 10, /* of each side */
	TEXTS_BYTES = 1 << 20,       /* of all texts of an answer */
	TEXTS_PATIENCE_MS = 60000,
	TEXTS_BOX_MS = 600000
};

enum { TEXTS_FROM, TEXTS_TO, TEXTS_SIDES };

struct texts_side {
	struct checkpoint_texts *all;
	struct box_wait wait;
	struct file_client file_client;
	char box[ID_MAX + 1];
	int wanted, open, ready;
	struct buf bytes;
	const char *omitted; /* why the present file was not read; NULL: it was */
};

struct texts_file {
	json_t *item;
	char *path;
	int has[TEXTS_SIDES];
};

struct checkpoint_texts {
	struct call *call;
	struct texts_side side[TEXTS_SIDES];
	struct texts_file file[TEXTS_FILES];
	unsigned n, at;
	unsigned reading; /* a side */
	size_t left;
	struct timer patience;
	void (*done)(void *ctx, const struct err *e);
	void *ctx;
};

static void texts_omit(json_t *item, const char *why)
{
	json_object_set_new(item, "text", json_null());
	json_object_set_new(item, "text_omitted", json_string(why));
}

struct checkpoint_texts *checkpoint_texts_new(struct call *c)
{
	struct checkpoint_texts *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->call = c;
	t->left = TEXTS_BYTES;
	for (unsigned i = 0; i < TEXTS_SIDES; i++)
		t->side[i].all = t;
	return t;
}

void checkpoint_texts_add(struct checkpoint_texts *t, json_t *item, const char *path, int from,
			  int to, uint64_t size)
{
	if (size > TEXTS_FILE_BYTES || t->n == TEXTS_FILES) {
		texts_omit(item, size > TEXTS_FILE_BYTES ? "size" : "limit");
		return;
	}
	t->file[t->n] = (struct texts_file){ .item = item,
					     .path = buf_text("/%s", path),
					     .has = { from, to } };
	t->n++;
	t->side[TEXTS_FROM].wanted |= from;
	t->side[TEXTS_TO].wanted |= to;
}

int checkpoint_texts_is_empty(const struct checkpoint_texts *t)
{
	return !t->n;
}

static void texts_end_box(struct texts_side *s)
{
	struct box *b = s->box[0] ? fleet_find(&s->all->call->api->fleet, s->box) : s->wait.box;

	if (s->open)
		file_client_close(&s->file_client);
	box_wait_cancel(&s->wait);
	if (b)
		box_end(b, CAUSE_EXIT, NULL);
	buf_fini(&s->bytes);
}

void checkpoint_texts_leave(struct checkpoint_texts *t)
{
	if (!t)
		return;
	if (t->done)
		timer_clear(&t->patience);
	for (unsigned i = 0; i < TEXTS_SIDES; i++)
		texts_end_box(&t->side[i]);
	for (unsigned i = 0; i < t->n; i++)
		free(t->file[i].path);
	free(t);
}

static void texts_end(struct checkpoint_texts *t, const struct err *e)
{
	void (*done)(void *ctx, const struct err *e) = t->done;
	void *ctx = t->ctx;
	struct err own = { 0 };

	if (e)
		own = *e;
	checkpoint_texts_leave(t);
	done(ctx, e ? &own : NULL);
}

/* ---- a file ---- */

static int texts_is_text(const struct buf *b)
{
	return !memchr(buf_str(b), 0, b->len) && utf8_valid(buf_str(b), b->len);
}

static void texts_write(struct checkpoint_texts *t)
{
	const struct texts_file *f = &t->file[t->at];
	const struct texts_side *a = &t->side[TEXTS_FROM], *b = &t->side[TEXTS_TO];
	const char *omitted = a->omitted ? a->omitted : b->omitted;
	auto_buf struct buf out = { 0 };

	if (!omitted && (!texts_is_text(&a->bytes) || !texts_is_text(&b->bytes)))
		omitted = "binary";
	if (!omitted && line_diff_unified(buf_str(&a->bytes), a->bytes.len, buf_str(&b->bytes),
					  b->bytes.len, &out) < 0)
		omitted = "size";
	if (!omitted && out.len > t->left)
		omitted = "limit";
	if (omitted) {
		texts_omit(f->item, omitted);
		return;
	}
	t->left -= out.len;
	json_object_set_new(f->item, "text", json_stringn(buf_str(&out), out.len));
}

static void texts_next(struct checkpoint_texts *t)
{
	struct wire_get get = { .from = 0, .bytes = TEXTS_FILE_BYTES + 1 };
	const struct texts_file *f;

	for (; t->at < t->n; t->at++, t->reading = 0) {
		f = &t->file[t->at];
		for (; t->reading < TEXTS_SIDES; t->reading++) {
			struct texts_side *s = &t->side[t->reading];

			buf_cut(&s->bytes, 0);
			s->omitted = NULL;
			if (!f->has[t->reading])
				continue;
			timer_set(&t->patience, TEXTS_PATIENCE_MS);
			file_client_ask(&s->file_client, WIRE_GET, &get, sizeof(get), f->path,
					strlen(f->path));
			return;
		}
		texts_write(t);
	}
	texts_end(t, NULL);
}

/* ---- file workers ---- */

static void texts_data(struct file_client *k, const char *bytes, size_t n)
{
	struct texts_side *s = loop_owner(k, struct texts_side, file_client);

	if (s->bytes.len + n > TEXTS_FILE_BYTES)
		s->omitted = "size";
	else if (n)
		buf_add(&s->bytes, bytes, n);
	if (n)
		return;
	s->all->reading++;
	texts_next(s->all);
}

static void texts_ready(struct file_client *k)
{
	struct texts_side *s = loop_owner(k, struct texts_side, file_client);
	struct checkpoint_texts *t = s->all;

	s->ready = 1;
	for (unsigned i = 0; i < TEXTS_SIDES; i++)
		if (t->side[i].wanted && !t->side[i].ready)
			return;
	texts_next(t);
}

static void texts_entry(struct file_client *k, const struct wire_entry *e, const char *name,
			size_t n)
{
	(void)k;
	(void)e;
	(void)name;
	(void)n;
}

static void texts_done(struct file_client *k, uint16_t flags)
{
	(void)k;
	(void)flags;
}

static void texts_failed(struct file_client *k, const struct err *e)
{
	struct texts_side *s = loop_owner(k, struct texts_side, file_client);
	struct checkpoint_texts *t = s->all;

	if (!s->ready || e->sys == EPIPE || e->sys == ECONNRESET || !e->sys) {
		texts_end(t, e); /* the worker or the box has ended */
		return;
	}
	s->omitted = "unreadable";
	t->reading++;
	texts_next(t);
}

static void texts_waited(struct timer *timer)
{
	struct err e;

	err_set(&e, ERR_SYS, "the files of a checkpoint were not read within %d s",
		TEXTS_PATIENCE_MS / 1000);
	texts_end(loop_owner(timer, struct checkpoint_texts, patience), &e);
}

/* ---- boxes ---- */

static void texts_made(struct box_wait *w, struct box *b, const struct err *e)
{
	static const struct file_client_events on = { .ready = texts_ready,
						      .entry = texts_entry,
						      .data = texts_data,
						      .done = texts_done,
						      .failed = texts_failed };
	struct texts_side *s = loop_owner(w, struct texts_side, wait);

	if (e) {
		texts_end(s->all, e);
		return;
	}
	memcpy(s->box, b->row.id, sizeof(s->box));
	s->open = 1;
	file_client_open(&s->file_client, &b->line, 0, &on);
}

static int texts_create(struct checkpoint_texts *t, unsigned side, const char *id, struct err *e)
{
	struct call *c = t->call;
	struct box_spec want = { .limits = c->api->fleet.conf.limits };
	struct store_checkpoint x = { 0 };
	struct box *b;

	if (store_checkpoint_any(c->api->store, id, &x, e) < 0)
		return -1;
	checkpoints_spec(c, &x, &want);
	store_checkpoint_fini(&x);
	snprintf(want.row.team, sizeof(want.row.team), "%s", c->who.team);
	snprintf(want.row.key, sizeof(want.row.key), "%s", c->who.id);
	want.row.metadata = (char *)"{\"" BOX_EPHEMERAL "\":\"1\"}";
	want.row.lifetime_ms = TEXTS_BOX_MS;
	t->side[side].wait.done = texts_made;
	return box_create(&c->api->fleet, &want, &t->side[side].wait, &b, e);
}

int checkpoint_texts_read(struct checkpoint_texts *t, const char *from, const char *to,
			  void (*done)(void *ctx, const struct err *e), void *ctx, struct err *e)
{
	const char *const ids[] = { from, to };

	t->done = done;
	t->ctx = ctx;
	timer_init(&t->patience, t->call->api->loop, texts_waited);
	timer_set(&t->patience, TEXTS_PATIENCE_MS);
	for (unsigned i = 0; i < TEXTS_SIDES; i++)
		if (t->side[i].wanted && texts_create(t, i, ids[i], e) < 0) {
			checkpoint_texts_leave(t);
			return -1;
		}
	return 0;
}
