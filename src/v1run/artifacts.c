/* artifacts.c - see artifacts.h.
 *
 *   worker -> CHANGES: every file of the upper layer -> GET of each that matches, one after the other -> done
 */
#include "v1run/artifacts.h"
#include "v1box/file_request.h"
#include "api/event_stream.h"
#include "base/base64.h"
#include "base/glob.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "record/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct artifacts_file {
	char *path; /* absolute */
	uint64_t size;
	int read; /* its content is being read, or was read */
};

int artifacts_check(const json_t *patterns, struct err *e)
{
	struct glob g;
	const json_t *one;
	size_t i;

	json_array_foreach(patterns, i, one) if (glob_compile(&g, json_string_value(one), e) <
						 0) return err_in(e, "artifacts");
	return 0;
}

/* ---- files of the request ---- */

static void artifacts_note_put(struct artifacts *x, const char *path, const void *bytes, size_t n)
{
	char full[512], hex[2 * SHA256_BYTES + 1];
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, bytes, n);
	sha256_end(&s, sum);
	hex_encode(hex, sum, SHA256_BYTES);
	json_object_set_new(x->put, program_path(path, full), json_string(hex));
}

static void artifacts_note_request(struct artifacts *x)
{
	const json_t *code = json_object_get(x->plan->body, "code");
	const struct lang *l = x->plan->program.lang;
	auto_buf struct buf bytes = { 0 };
	const char *path;
	json_t *v;

	for (const struct lang_pair *f = l ? l->support : NULL; f && f->key; f++)
		artifacts_note_put(x, f->key, f->value, strlen(f->value));
	json_object_foreach(json_object_get(x->plan->body, "files"), path, v)
	{
		const json_t *coded = json_object_get(v, "base64");

		buf_cut(&bytes, 0);
		if (coded)
			(void)!base64_decode(&bytes, json_string_value(coded),
					     json_string_length(coded));
		if (coded)
			artifacts_note_put(x, path, bytes.p ? bytes.p : "", bytes.len);
		else
			artifacts_note_put(x, path, json_string_value(v), json_string_length(v));
	}
	if (code)
		artifacts_note_put(x, x->plan->program.source, json_string_value(code),
				   json_string_length(code));
}

/* ---- which files ---- */

/* A plain path consists of names with one slash before each; none of them is . or .. */
static int artifacts_path_is_plain(const char *path)
{
	if (*path != '/')
		return 0;
	for (const char *name = path + 1;; name++) {
		size_t n = strcspn(name, "/");

		if (!n || (n == 1 && *name == '.') || (n == 2 && name[0] == '.' && name[1] == '.'))
			return 0;
		name += n;
		if (!*name)
			return 1;
	}
}

static const char *artifacts_in_home(const char *path)
{
	size_t n = strlen(BOX_HOME);

	return !strncmp(path, BOX_HOME, n) && path[n] == '/' ? path + n + 1 : NULL;
}

/* A pattern without a slash matches a name in any folder of the home; one with a leading slash
 * matches the whole path. */
static int artifacts_matches(const struct artifacts *x, const char *path)
{
	const char *below = artifacts_in_home(path);
	const json_t *patterns = json_object_get(x->plan->body, "artifacts");

	for (unsigned i = 0; i < x->nglobs; i++) {
		const char *pattern = json_string_value(json_array_get(patterns, i));
		const char *against = *pattern == '/'        ? path
				      : strchr(pattern, '/') ? below
				      : below                ? strrchr(path, '/') + 1
							     : NULL;

		if (against && glob_match(&x->globs[i], against))
			return 1;
	}
	return 0;
}

static void artifacts_want_file(struct artifacts *x, const char *path, uint64_t size)
{
	if (x->nfiles == ARTIFACTS_FILES) {
		x->truncated = 1;
		return;
	}
	x->files[x->nfiles] = (struct artifacts_file){ .path = strdup(path), .size = size };
	if (!x->files[x->nfiles++].path)
		abort();
}

static void artifacts_tell_change(struct artifacts *x, const char *path, const char *kind,
				  const struct wire_entry *e)
{
	char hex[2 * SHA256_BYTES + 1];
	json_t *row;

	if (json_array_size(x->changed) == ARTIFACTS_CHANGED) {
		x->changed_truncated = 1;
		return;
	}
	row = json_object();
	json_object_set_new(row, "path", json_text(path));
	json_object_set_new(row, "kind", json_string(kind));
	if (e) {
		if (e->hashed)
			hex_encode(hex, e->sha256, SHA256_BYTES);
		json_object_set_new(row, "type", json_string(file_request_type(e->mode)));
		json_object_set_new(row, "size", json_integer((json_int_t)e->size));
		json_object_set_new(row, "sha256", e->hashed ? json_string(hex) : json_null());
	}
	json_array_append_new(x->changed, row);
}

/* 1: the file was part of the request and was not changed. */
static int artifacts_is_unchanged(const struct artifacts *x, const char *was,
				  const struct wire_entry *e)
{
	char hex[2 * SHA256_BYTES + 1];

	if (!was)
		return 0;
	if (!e->hashed)
		return e->mtime_ns <= x->files_put_ns;
	hex_encode(hex, e->sha256, SHA256_BYTES);
	return !strcmp(hex, was);
}

static void artifacts_entry(struct file_client *k, const struct wire_entry *e, const char *name,
			    size_t n)
{
	struct artifacts *x = loop_owner(k, struct artifacts, file_client);
	struct file_request_entry parts;
	const char *was;

	if (x->at < x->nfiles && x->files[x->at].read)
		return; /* the answer to a GET: the content of the file follows */
	if (S_ISDIR(e->mode) || !e->mode)
		return;
	if (!file_request_split(e, name, n, &parts) || strlen(parts.name) > ARTIFACTS_PATH ||
	    !artifacts_path_is_plain(parts.name)) {
		x->truncated = x->changed_truncated = 1;
		return;
	}
	if (x->plan->program.binary && !strcmp(parts.name, x->plan->program.binary))
		return; /* the output of the compiler */
	was = json_string_value(json_object_get(x->put, parts.name));
	if (!artifacts_is_unchanged(x, was, e)) {
		artifacts_tell_change(x, parts.name, was ? "modified" : "added", e);
		if (S_ISREG(e->mode) && artifacts_matches(x, parts.name))
			artifacts_want_file(x, parts.name, e->size);
	}
	if (was)
		json_object_set_new(x->put, parts.name, json_null());
}

/* ---- content ---- */

static void artifacts_end(struct artifacts *x)
{
	file_client_close(&x->file_client);
	x->open = 0;
	timer_clear(&x->patience);
	x->done(x);
}

static json_t *artifacts_item(const struct artifacts *x)
{
	const struct artifacts_file *f = &x->files[x->at];
	const char *below = artifacts_in_home(f->path);
	json_t *item = json_object();

	file_request_set_text(item, "path", below ? below : f->path);
	json_object_set_new(item, "size", json_integer((json_int_t)f->size));
	return item;
}

static void artifacts_omit(struct artifacts *x, const char *why)
{
	json_t *item = artifacts_item(x);

	json_object_set_new(item, "omitted", json_string(why));
	json_array_append_new(x->items, item);
	x->truncated = 1;
}

/* 1: the content is short as a JSON string. A control character takes six bytes there: all
 * artifacts together could be an answer of 48 MiB, and every other request waits while it is
 * encoded. */
static int artifacts_is_short_text(const struct buf *b)
{
	size_t more = 0;

	for (size_t i = 0; i < b->len; i++) {
		unsigned char c = (unsigned char)b->p[i];

		if (!c)
			return 0;
		more += c >= 0x20 ? c == '"' || c == '\\' : strchr("\b\t\n\f\r", c) ? 1 : 5;
	}
	return more <= b->len + ARTIFACTS_ESCAPES;
}

static void artifacts_add(struct artifacts *x)
{
	json_t *item = artifacts_item(x), *text = NULL;
	auto_buf struct buf coded = { 0 };

	json_object_set_new(item, "size", json_integer((json_int_t)x->bytes.len));
	if (artifacts_is_short_text(&x->bytes))
		text = json_stringn(x->bytes.len ? x->bytes.p : "",
				    x->bytes.len); /* NULL: it is not UTF-8 */
	if (text) {
		json_object_set_new(item, "text", text);
	} else {
		base64_encode(&coded, x->bytes.p, x->bytes.len);
		json_object_set_new(item, "base64", json_stringn(buf_str(&coded), coded.len));
	}
	json_array_append_new(x->items, item);
	x->bytes_left -= x->bytes.len;
}

static void artifacts_read_next(struct artifacts *x)
{
	for (; x->at < x->nfiles; x->at++) {
		struct artifacts_file *f = &x->files[x->at];
		struct wire_get get = { .from = 0, .bytes = x->bytes_left + 1 };

		if (f->size > x->bytes_left) {
			artifacts_omit(x, "too_large");
			continue;
		}
		f->read = 1;
		x->too_large = 0;
		buf_cut(&x->bytes, 0);
		file_client_ask(&x->file_client, WIRE_GET, &get, sizeof(get), f->path,
				strlen(f->path));
		return;
	}
	artifacts_end(x);
}

static void artifacts_data(struct file_client *k, const char *bytes, size_t n)
{
	struct artifacts *x = loop_owner(k, struct artifacts, file_client);

	if (x->at >= x->nfiles || !x->files[x->at].read)
		return;
	if (n && x->bytes.len + n > x->bytes_left)
		x->too_large = 1;
	else if (n)
		buf_add(&x->bytes, bytes, n);
	if (n)
		return;
	if (x->too_large)
		artifacts_omit(x, "too_large");
	else
		artifacts_add(x);
	x->at++;
	artifacts_read_next(x);
}

/* ---- the worker ---- */

static void artifacts_ready(struct file_client *k)
{
	struct wire_changes ask = { .max_entries = ARTIFACTS_SEEN, .hash_bytes = CHANGES_HASHED };

	file_client_ask(k, WIRE_CHANGES, &ask, sizeof(ask), NULL, 0);
}

static void artifacts_listed(struct file_client *k, uint16_t flags)
{
	struct artifacts *x = loop_owner(k, struct artifacts, file_client);
	const char *path;
	json_t *was;

	if (x->nfiles && x->files[0].read)
		return;
	if (flags & WIRE_DONE_TRUNCATED)
		x->truncated = x->changed_truncated = 1;
	else
		json_object_foreach(x->put, path,
				    was) if (json_is_string(was) && artifacts_path_is_plain(path))
			artifacts_tell_change(x, path, "deleted", NULL);
	artifacts_read_next(x);
}

static void artifacts_failed(struct file_client *k, const struct err *e)
{
	struct artifacts *x = loop_owner(k, struct artifacts, file_client);

	if (e->sys && x->at < x->nfiles && x->files[x->at].read) { /* the error concerns only this
								    * file */
		artifacts_omit(x, "not_readable");
		x->at++;
		artifacts_read_next(x);
		return;
	}
	x->failed = *e;
	x->truncated = x->changed_truncated = 1;
	artifacts_end(x);
}

static void artifacts_overdue(struct timer *t)
{
	struct artifacts *x = loop_owner(t, struct artifacts, patience);

	err_set(&x->failed, ERR_LIMIT, "reading the files took longer than %d s",
		ARTIFACTS_MS / 1000);
	x->truncated = x->changed_truncated = 1;
	artifacts_end(x);
}

void artifacts_begin(struct artifacts *x, const struct run_request_plan *p, struct init_conn *box,
		     struct loop *l)
{
	static const struct file_client_events on = { .ready = artifacts_ready,
						      .entry = artifacts_entry,
						      .data = artifacts_data,
						      .done = artifacts_listed,
						      .failed = artifacts_failed };
	const json_t *patterns = json_object_get(p->body, "artifacts");
	struct err e;

	x->plan = p;
	x->bytes_left = ARTIFACTS_BYTES;
	x->put = json_object();
	x->items = json_array();
	x->changed = json_array();
	x->globs = calloc(json_array_size(patterns) + 1, sizeof(*x->globs));
	x->files = calloc(ARTIFACTS_FILES, sizeof(*x->files));
	if (!x->globs || !x->files)
		abort();
	for (size_t i = 0; i < json_array_size(patterns); i++) /* checked before the first program
							        * has run */
		x->nglobs += !glob_compile(&x->globs[i],
					   json_string_value(json_array_get(patterns, i)), &e);
	artifacts_note_request(x);
	timer_init(&x->patience, l, artifacts_overdue);
	timer_set(&x->patience, ARTIFACTS_MS);
	file_client_open(&x->file_client, box, WIRE_FILES_ALONE, &on);
	x->open = 1;
}

void artifacts_lost(struct artifacts *x)
{
	x->items = json_array();
	x->changed = json_array();
	x->truncated = x->changed_truncated = 1;
	err_set(&x->failed, ERR_NOT_FOUND, "the box ended before its files were read");
}

void artifacts_report(const struct artifacts *x, json_t *record)
{
	if (!x->items)
		return;
	json_object_set(record, "artifacts", x->items);
	json_object_set_new(record, "artifacts_truncated", json_boolean(x->truncated));
	json_object_set(record, "files_changed", x->changed);
	json_object_set_new(record, "files_truncated", json_boolean(x->changed_truncated));
	if (x->failed.kind != ERR_NONE)
		json_object_set_new(record, "files_error", json_text(x->failed.msg));
}

void artifacts_fini(struct artifacts *x)
{
	if (x->open)
		file_client_close(&x->file_client);
	x->open = 0;
	timer_fini(&x->patience);
	for (unsigned i = 0; i < x->nfiles; i++)
		free(x->files[i].path);
	free(x->files);
	free(x->globs);
	buf_fini(&x->bytes);
	json_decref(x->put);
	json_decref(x->items);
	json_decref(x->changed);
}
