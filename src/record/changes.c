/* changes.c - see changes.h. A file worker lists the upper layer; the program could have killed
 * an older worker, so each look has its own. */
#include "record/changes.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct changes_seen {
	char *path;
	uint64_t size, mtime_ns;
	int still_there;
};

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct changes_seen *)a)->path,
		      ((const struct changes_seen *)b)->path);
}

static void note_before(void *ctx, const struct wire_entry *entry, const char *path)
{
	struct changes_seen seen = { .size = entry->size, .mtime_ns = entry->mtime_ns };
	struct changes *c = ctx;

	if (S_ISDIR(entry->mode) || c->nbefore == CHANGES_SEEN)
		return;
	if ((c->nbefore & (c->nbefore - 1)) == 0) { /* 0, 1, 2, 4, ...: full */
		unsigned room = c->nbefore ? 2 * c->nbefore : 1;

		c->before = realloc(c->before, room * sizeof(*c->before));
		if (!c->before)
			abort();
	}
	seen.path = strdup(path);
	if (!seen.path)
		abort();
	c->before[c->nbefore++] = seen;
}

static int changes_look(struct files *f, const struct files_changes *want, struct err *e)
{
	int rc = files_changes(f, want, e);

	files_close(f);
	return rc;
}

int changes_before(struct changes *c, struct box_handle *b, struct err *e)
{
	struct files_changes want = { .max_entries = CHANGES_SEEN, .each = note_before, .ctx = c };
	struct files f;

	if (files_open(&f, b, e) < 0 || changes_look(&f, &want, e) < 0)
		return -1;
	if (c->nbefore)
		qsort(c->before, c->nbefore, sizeof(*c->before), by_path);
	return 0;
}

json_t *json_text(const char *foreign)
{
	auto_buf struct buf clean = { 0 };
	json_t *as_it_is = json_string(foreign);

	if (as_it_is)
		return as_it_is;
	utf8_scrub(&clean, foreign, strlen(foreign));
	return json_string(buf_str(&clean));
}

static const char *type_of(uint32_t mode)
{
	return S_ISREG(mode) ? "file" : S_ISLNK(mode) ? "link" : "special";
}

static json_t *hash_of(const struct wire_entry *entry)
{
	char hex[2 * sizeof(entry->sha256) + 1];

	if (!entry->hashed)
		return json_null();
	hex_encode(hex, entry->sha256, sizeof(entry->sha256));
	return json_string(hex);
}

/* entry NULL: deleted. */
static void changes_do_list(struct changes *c, const char *path, const char *kind,
			    const struct wire_entry *entry)
{
	json_t *row;

	if (json_array_size(c->list) == CHANGES_LISTED) {
		c->truncated = 1;
		return;
	}
	row = json_object();
	json_object_set_new(row, "path", json_text(path));
	json_object_set_new(row, "kind", json_string(kind));
	if (entry) {
		json_object_set_new(row, "type", json_string(type_of(entry->mode)));
		json_object_set_new(row, "size", json_integer((json_int_t)entry->size));
		json_object_set_new(row, "sha256", hash_of(entry));
	}
	json_array_append_new(c->list, row);
}

static struct changes_seen *find_before(const struct changes *c, const char *path)
{
	struct changes_seen key = { .path = (char *)path };

	return c->nbefore ? bsearch(&key, c->before, c->nbefore, sizeof(key), by_path) : NULL;
}

static void note_after(void *ctx, const struct wire_entry *entry, const char *path)
{
	struct changes *c = ctx;
	struct changes_seen *was = find_before(c, path);

	if (S_ISDIR(entry->mode))
		return;
	if (!entry->mode) {
		if (!was) /* else it is reported at the end */
			changes_do_list(c, path, "deleted", NULL);
		return;
	}
	if (was)
		was->still_there = 1;
	if (was && was->size == entry->size && was->mtime_ns == entry->mtime_ns)
		return;
	if (c->each)
		c->each(c->ctx, entry, path);
	changes_do_list(c, path, was ? "modified" : "added", entry);
}

int changes_after(struct changes *c, struct box_handle *b, struct err *e)
{
	struct files_changes want = {
		.max_entries = CHANGES_SEEN,
		.hash_bytes = CHANGES_HASHED,
		.each = note_after,
		.ctx = c,
	};
	struct files f;
	int rc;

	c->list = json_array();
	if (files_open_alone(&f, b, e) < 0)
		return -1;
	rc = changes_look(&f, &want, e);
	if (rc < 0)
		return -1;
	c->truncated |= rc;
	/* An unreported file may still exist. */
	for (unsigned i = 0; i < c->nbefore && !rc; i++)
		if (!c->before[i].still_there)
			changes_do_list(c, c->before[i].path, "deleted", NULL);
	return 0;
}

void changes_fini(struct changes *c)
{
	for (unsigned i = 0; i < c->nbefore; i++)
		free(c->before[i].path);
	free(c->before);
	json_decref(c->list);
	*c = (struct changes){ 0 };
}
