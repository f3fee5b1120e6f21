/* changes.c - see changes.h. A file worker lists the upper layer; the program could have killed
 * an older worker, so each look has its own. */
#include "box/changes.h"
#include "base/buf.h"
#include "base/own.h"

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
	return strcmp(((const struct changes_seen *)a)->path, ((const struct changes_seen *)b)->path);
}

static void note_before(void *ctx, const struct wire_entry *entry, const char *path)
{
	struct changes *c = ctx;

	if (S_ISDIR(entry->mode) || c->nbefore == CHANGES_SEEN)
		return;
	if ((c->nbefore & (c->nbefore - 1)) == 0) { /* 0, 1, 2, 4, ...: full */
		c->before = realloc(c->before, (c->nbefore ? 2 * c->nbefore : 1) * sizeof(*c->before));
		if (!c->before)
			abort();
	}
	c->before[c->nbefore] = (struct changes_seen){ .path = strdup(path), .size = entry->size, .mtime_ns = entry->mtime_ns };
	if (!c->before[c->nbefore].path)
		abort();
	c->nbefore++;
}

static int look(struct box *b, const struct files_changes *want, struct err *e)
{
	struct files f;
	int rc;

	if (files_open(&f, b, e) < 0)
		return -1;
	rc = files_changes(&f, want, e);
	files_close(&f);
	return rc;
}

int changes_before(struct changes *c, struct box *b, struct err *e)
{
	struct files_changes want = { .max_entries = CHANGES_SEEN, .each = note_before, .ctx = c };

	if (look(b, &want, e) < 0)
		return -1;
	if (c->nbefore)
		qsort(c->before, c->nbefore, sizeof(*c->before), by_path);
	return 0;
}

/* Well-formed sequences pass; every other byte becomes U+FFFD. */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : *s >= 0xe0 && *s < 0xf0 ? 3 : *s >= 0xf0 && *s < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) || (*s == 0xf0 && s[1] < 0x90) ||
	    (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

json_t *changes_text(const char *foreign)
{
	auto_buf struct buf clean = { 0 };
	json_t *as_it_is = json_string(foreign);

	if (as_it_is)
		return as_it_is;
	while (*foreign) {
		size_t n = utf8_length((const unsigned char *)foreign);

		if (n)
			buf_add(&clean, foreign, n);
		else
			buf_puts(&clean, "\xef\xbf\xbd");
		foreign += n ? n : 1;
	}
	return json_string(buf_str(&clean));
}

static void list(struct changes *c, const char *path, const char *kind, const struct wire_entry *entry)
{
	json_t *row = json_object();

	if (json_array_size(c->list) == CHANGES_LISTED) {
		c->truncated = 1;
		json_decref(row);
		return;
	}
	json_object_set_new(row, "path", changes_text(path));
	json_object_set_new(row, "kind", json_string(kind));
	if (entry) {
		char hex[65] = "";

		for (unsigned i = 0; i < sizeof(entry->sha256); i++)
			snprintf(hex + 2 * i, 3, "%02x", entry->sha256[i]);
		json_object_set_new(row, "type", json_string(S_ISLNK(entry->mode) ? "link" : S_ISREG(entry->mode) ? "file" : "special"));
		json_object_set_new(row, "size", json_integer((json_int_t)entry->size));
		json_object_set_new(row, "sha256", entry->hashed ? json_string(hex) : json_null());
	}
	json_array_append_new(c->list, row);
}

static void note_after(void *ctx, const struct wire_entry *entry, const char *path)
{
	struct changes *c = ctx;
	struct changes_seen key = { .path = (char *)path }, *was = NULL;

	if (S_ISDIR(entry->mode))
		return;
	if (c->nbefore)
		was = bsearch(&key, c->before, c->nbefore, sizeof(*c->before), by_path);
	if (was && entry->mode) {
		was->still_there = 1;
		if (was->size == entry->size && was->mtime_ns == entry->mtime_ns)
			return;
	}
	if (was && !entry->mode)
		return; /* said below */
	list(c, path, !entry->mode ? "deleted" : was ? "modified" : "added", entry->mode ? entry : NULL);
}

int changes_after(struct changes *c, struct box *b, struct err *e)
{
	struct files_changes want = { .max_entries = CHANGES_SEEN, .hash_bytes = CHANGES_HASHED, .each = note_after, .ctx = c };

	c->list = json_array();
	if (look(b, &want, e) < 0)
		return -1;
	for (unsigned i = 0; i < c->nbefore; i++)
		if (!c->before[i].still_there)
			list(c, c->before[i].path, "deleted", NULL);
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
