/* compose.c - /files/compose: concatenates many files into one, then removes the parts. See
 * files.h. */
#include "api/fields.h"
#include "base/cleanup.h"
#include "record/changes.h"
#include "e2b/file_auth.h"
#include "e2b/entry.h"
#include "e2b/files.h"

#include <errno.h>
#include <string.h>

enum { SOURCES_MOST = 1000 };

const struct field transfer_compose_fields[] = {
	{ "source_paths", FIELD_TEXTS, 1, 0, 0, "files to join; they are deleted afterwards",
	  NULL },
	{ "destination", FIELD_TEXT, 1, 1, 4000, "path of the joined file", NULL },
	{ "username", FIELD_TEXT, 0, 0, 64, "owner of the joined file", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

struct composing {
	struct file_request file_req;
	const char **sources;
	size_t n, removed;
	int root, made;
};

static void compose_ready(struct file_client *k)
{
	struct composing *x = loop_owner(k, struct composing, file_req.file_client);
	struct wire_put put = { .flags = WIRE_PUT_FOLLOW | (x->root ? 0 : WIRE_PUT_USER) };

	file_client_ask(k, WIRE_PUT, &put, sizeof(put), x->file_req.path, strlen(x->file_req.path));
	for (size_t i = 0; i < x->n; i++)
		file_client_more(k, WIRE_APPEND, x->sources[i], strlen(x->sources[i]));
	file_client_data(k, NULL, 0);
}

/* Removes the parts one after the other, after the file has been put together. */
static void compose_next(struct composing *x)
{
	if (x->removed < x->n) {
		const char *path = x->sources[x->removed++];

		file_request_ask(&x->file_req, WIRE_REMOVE, WIRE_REMOVE_ONE, path, strlen(path));
		return;
	}
	file_request_json(&x->file_req, 200,
			  json_pack("{s:o, s:o, s:s}", "path", json_text(x->file_req.path), "name",
				    json_text(entry_name(x->file_req.path)), "type", "file"));
}

static void compose_done(struct file_client *k, uint16_t flags)
{
	struct composing *x = loop_owner(k, struct composing, file_req.file_client);

	(void)flags;
	x->made = 1;
	compose_next(x);
}

static void compose_failed(struct file_client *k, const struct err *e)
{
	struct composing *x = loop_owner(k, struct composing, file_req.file_client);

	if (x->made && e->sys) {
		compose_next(
			x); /* listed twice, or not removable: the new file is complete nevertheless */
	} else if (e->sys == ENOENT) {
		file_request_close(&x->file_req);
		e2b_error(x->file_req.call, 404, "source file not found: %s", e->msg);
	} else {
		files_rest_fail(&x->file_req, e);
	}
}

void files_http_compose(struct call *c)
{
	static const struct file_client_events on = { .ready = compose_ready,
						      .done = compose_done,
						      .failed = compose_failed };
	struct composing *x = call_alloc(c, sizeof(*x));
	const char *user = call_text(c, "username", "user");
	json_t *sources = call_get(c, "source_paths"), *source;
	size_t i;

	*x = (struct composing){ .root = !strcmp(user, "root"), .n = json_array_size(sources) };
	if (!x->root && strcmp(user, "user") != 0) {
		e2b_error(c, 401, "error looking up user '%.64s': unknown user", user);
		return;
	}
	if (x->n == 0 || x->n > SOURCES_MOST) {
		e2b_error(c, 400,
			  x->n ? "source_paths has too many entries"
			       : "source_paths must not be empty");
		return;
	}
	x->file_req.path = file_auth_path(c, call_text(c, "destination", ""), x->root);
	if (!x->file_req.path)
		return;
	x->sources = call_alloc(c, x->n * sizeof(*x->sources));
	json_array_foreach(sources, i, source)
	{
		x->sources[i] = file_auth_path(c, json_string_value(source), x->root);
		if (!x->sources[i])
			return;
		if (!strcmp(x->sources[i], x->file_req.path)) {
			e2b_error(c, 400, "source path cannot be the same as destination");
			return;
		}
	}
	file_request_open_in(&x->file_req, c, e2b_find_box(c), FILES_WORKER, &on);
}
