/* entry.c - see entry.h. */
#include "e2b/entry.h"
#include "client/box_handle.h"
#include "record/changes.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ---- paths ---- */

static void drop_last(struct buf *b)
{
	const char *slash = b->len ? strrchr(buf_str(b), '/') : NULL;

	buf_cut(b, slash ? (size_t)(slash - b->p) : 0);
}

/* "//", "/./" and a slash at the end are removed. In an absolute path ".." stays: its meaning
 * depends on the links before it, which only the box knows. In a relative path it is resolved as
 * text. */
static void entry_tidy(const char *path, int lexical, struct buf *out)
{
	while (*path) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (lexical && n == 2 && !memcmp(path, "..", 2)) {
			drop_last(out);
		} else if (n && !(n == 1 && *path == '.')) {
			buf_putc(out, '/');
			buf_add(out, path, n);
		}
		path += n;
	}
	if (out->len == 0)
		buf_putc(out, '/');
}

int entry_path(const char *given, const char *home, const char *start, struct buf *out,
	       struct err *e)
{
	auto_buf struct buf full = { 0 };
	int absolute = given[0] == '/';

	if (strlen(given) > PATH_MAX - 32)
		return err_set(e, ERR_INVALID, "the path is longer than %d bytes", PATH_MAX - 32);
	if (given[0] == '~' && given[1] && given[1] != '/')
		return err_set(e, ERR_INVALID, "'%.60s': cannot expand user-specific home dir",
			       given);
	if (!absolute)
		buf_printf(&full, "%s/", given[0] == '~' ? home : start);
	if (given[0] == '~')
		given++;
	buf_puts(&full, given);
	entry_tidy(buf_str(&full), !absolute, out);
	return 0;
}

const char *entry_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* ---- modes ---- */

void entry_permissions(uint32_t mode, char out[ENTRY_PERMISSIONS])
{
	static const struct {
		uint32_t mask, is;
		const char *letters;
	} kinds[] = {
		{ S_IFMT, S_IFDIR, "d" },  { S_IFMT, S_IFLNK, "L" },  { S_IFMT, S_IFBLK, "D" },
		{ S_IFMT, S_IFIFO, "p" },  { S_IFMT, S_IFSOCK, "S" }, { S_ISUID, S_ISUID, "u" },
		{ S_ISGID, S_ISGID, "g" }, { S_IFMT, S_IFCHR, "Dc" }, { S_ISVTX, S_ISVTX, "t" },
	};
	size_t n = 0;

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((mode & kinds[i].mask) == kinds[i].is)
			for (const char *p = kinds[i].letters; *p; p++)
				out[n++] = *p;
	if (n == 0)
		out[n++] = '-';
	for (int i = 8; i >= 0; i--)
		out[n++] = mode >> i & 1 ? "xwr"[i % 3] : '-';
	out[n] = 0;
}

static const char *type_of(uint32_t mode)
{
	return S_ISREG(mode)   ? "FILE_TYPE_FILE"
	       : S_ISDIR(mode) ? "FILE_TYPE_DIRECTORY"
	       : S_ISLNK(mode) ? "FILE_TYPE_SYMLINK"
			       : "FILE_TYPE_UNSPECIFIED";
}

/* ---- an entry ---- */

struct entry_parts { /* of the tail */
	const char *name, *real, *owner, *group, *attributes, *end;
};

static const char *entry_next(const char **at, const char *end)
{
	const char *text = *at;
	size_t n = strnlen(text, (size_t)(end - text));

	if (text + n >= end)
		return NULL;
	*at = text + n + 1;
	return text;
}

static int entry_split(const char *tail, size_t n, struct entry_parts *out)
{
	const char *at = tail;

	out->end = tail + n;
	out->name = entry_next(&at, out->end);
	out->real = out->name ? entry_next(&at, out->end) : NULL;
	out->owner = out->real ? entry_next(&at, out->end) : NULL;
	out->group = out->owner ? entry_next(&at, out->end) : NULL;
	out->attributes = at;
	return out->group && *out->name;
}

static json_t *entry_attributes(const struct entry_parts *p)
{
	json_t *doc = json_object();
	const char *at = p->attributes, *key, *value;

	while ((key = entry_next(&at, p->end)) && (value = entry_next(&at, p->end)))
		json_object_set_new(doc, key,
				    json_string(value)); /* text that is not UTF-8 is omitted */
	return doc;
}

json_t *entry_metadata(const char *tail, size_t n)
{
	struct entry_parts p;

	return entry_split(tail, n, &p) ? entry_attributes(&p) : json_object();
}

static json_t *entry_when(uint64_t ns)
{
	time_t s = (time_t)(ns / 1000000000);
	char text[64];
	struct tm tm;
	size_t n;

	if (!gmtime_r(&s, &tm))
		return json_null();
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%09uZ", (unsigned)(ns % 1000000000));
	return json_string(text);
}

static void add_details(json_t *doc, const struct wire_entry *e, const struct entry_parts *p,
			const char *path)
{
	char size[24], letters[ENTRY_PERMISSIONS];
	int link = S_ISLNK(e->mode);
	json_t *metadata = entry_attributes(p);

	snprintf(size, sizeof(size), "%llu", (unsigned long long)e->size);
	entry_permissions(e->mode, letters);
	json_object_set_new(doc, "size", json_string(size));
	json_object_set_new(doc, "mode", json_integer((link ? e->target_mode : e->mode) & 0777));
	json_object_set_new(doc, "permissions", json_string(letters));
	json_object_set_new(doc, "owner", json_text(p->owner));
	json_object_set_new(doc, "group", json_text(p->group));
	json_object_set_new(doc, "modifiedTime", entry_when(e->mtime_ns));
	if (link) /* a link without a target is shown as its own target */
		json_object_set_new(doc, "symlinkTarget", json_text(*p->real ? p->real : path));
	if (json_object_size(metadata))
		json_object_set(doc, "metadata", metadata);
	json_decref(metadata);
}

json_t *entry_json(const struct entry_shape *s, const struct wire_entry *e, const char *tail,
		   size_t n)
{
	auto_buf struct buf path = { 0 };
	struct entry_parts p;
	json_t *doc;

	if (!entry_split(tail, n, &p) || e->size > INT64_MAX)
		return NULL;
	if (s->below && strcmp(s->below, "/") != 0)
		buf_puts(&path, s->below);
	if (s->below)
		buf_putc(&path, '/');
	buf_puts(&path, p.name);
	doc = json_pack("{s:o, s:s, s:o}", "name", json_text(entry_name(p.name)), "type",
			type_of(S_ISLNK(e->mode) ? e->target_mode : e->mode), "path",
			json_text(buf_str(&path)));
	if (!s->brief)
		add_details(doc, e, &p, buf_str(&path));
	return doc;
}
