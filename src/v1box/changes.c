/* changes.c - see changes.h. A file worker in the box lists its upper layer. Folders are omitted,
 * because a folder changes whenever an entry in it changes. The programs of the box keep running,
 * and may change files at the same time. */
#include "v1box/changes.h"
#include "v1box/file_request.h"
#include "record/record.h"
#include "base/hex.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LISTED = 1000, LISTED_MAX = 10000 };
#define HASHED (UINT64_C(64) << 20) /* bytes, all files together */

const struct field changes_query[] = {
	{ "limit", FIELD_INT, 0, 1, LISTED_MAX, "maximum number of paths (default 1000)", NULL },
	{ "hash", FIELD_BOOL, 0, 0, 0, "include the SHA-256 of each file, up to 64 MiB of files",
	  NULL },
	{ 0 },
};

struct changes_call {
	struct file_request file_req;
	uint32_t max;
	json_t *items;
	int truncated;
};

static void changes_ready(struct file_client *k)
{
	struct changes_call *x = loop_owner(k, struct changes_call, file_req.file_client);
	struct wire_changes ask = { .max_entries = CHANGES_SEEN };

	if (call_query_flag(x->file_req.call, "hash"))
		ask.hash_bytes = HASHED;
	file_client_ask(k, WIRE_CHANGES, &ask, sizeof(ask), NULL, 0);
}

static json_t *hash_json(const struct wire_entry *e)
{
	char hex[2 * sizeof(e->sha256) + 1];

	if (!e->hashed)
		return json_null();
	hex_encode(hex, e->sha256, sizeof(e->sha256));
	return json_string(hex);
}

/* The same values as in a run record. A template has files in these two folders only
 * (src/keeper/template.c), and only root may write there; everything else in the upper layer was
 * created in the box. */
static const char *changes_kind(const struct wire_entry *e, const char *path)
{
	if (!e->mode)
		return "deleted";
	return !strncmp(path, "/etc/", 5) || !strncmp(path, "/opt/atoll/", 11) ? "modified"
									       : "added";
}

static void changes_entry(struct file_client *k, const struct wire_entry *e, const char *name,
			  size_t n)
{
	struct changes_call *x = loop_owner(k, struct changes_call, file_req.file_client);
	struct file_request_entry parts;
	json_t *doc;

	if (S_ISDIR(e->mode))
		return;
	if (json_array_size(x->items) == x->max || !file_request_split(e, name, n, &parts)) {
		x->truncated = 1;
		return;
	}
	doc = json_object();
	file_request_set_text(doc, "path", parts.name);
	json_object_set_new(doc, "kind", json_string(changes_kind(e, parts.name)));
	if (e->mode) {
		json_object_set_new(doc, "type", json_string(file_request_type(e->mode)));
		json_object_set_new(doc, "size", json_integer((json_int_t)e->size));
		json_object_set_new(doc, "mtime", json_time(e->mtime_ns));
	}
	if (e->mode && call_query_flag(x->file_req.call, "hash"))
		json_object_set_new(doc, "sha256", hash_json(e));
	json_array_append_new(x->items, doc);
}

static void changes_done(struct file_client *k, uint16_t flags)
{
	struct changes_call *x = loop_owner(k, struct changes_call, file_req.file_client);

	file_request_json(&x->file_req, 200,
			  json_pack("{s:O, s:n, s:b}", "items", x->items, "next", "truncated",
				    x->truncated || (flags & WIRE_DONE_TRUNCATED)));
}

static void changes_failed(struct file_client *k, const struct err *e)
{
	file_request_fail(&loop_owner(k, struct changes_call, file_req.file_client)->file_req, e);
}

static void changes_dropped(struct call *c)
{
	struct changes_call *x = c->state;

	file_request_close(&x->file_req);
	json_decref(x->items);
}

void changes_list(struct call *c)
{
	static const struct file_client_events on = { .ready = changes_ready,
						      .entry = changes_entry,
						      .done = changes_done,
						      .failed = changes_failed };
	struct changes_call *x = call_alloc(c, sizeof(*x));

	*x = (struct changes_call){ .file_req.path = "/",
				    .max = (uint32_t)call_query_int(c, "limit", LISTED) };
	if (!file_request_open(&x->file_req, c, &on))
		return;
	x->items = json_array();
	c->drop = changes_dropped;
}
