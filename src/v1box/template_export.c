/* template_export.c - GET /v1/templates/{template}/export: a template as one file, for another machine. See templates.h.
 *
 *	{"atoll_template": 1, "name": ..., "definition": ...} newline, then a tar archive of its root file system
 *
 * The keeper writes the archive into a pipe; what the client does not read stays in the pipe. The definition builds the
 * same template from the archive, which the client uploads first: the hash of it is to be inserted in `from`. */
#include "v1box/templates.h"
#include "base/cleanup.h"
#include "template/expand.h"
#include "template/templates.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { EXPORT_PIECE = 64 << 10 };

struct template_export {
	struct call *call;
	struct watch watch;
	int fd; /* of the pipe */
	struct keeper_call *asking;
	int written; /* the keeper has written all of it */
	int read;    /* and all of it was sent */
};

/* ---- the definition ---- */

static json_t *export_quoted(const char *text)
{
	auto_buf struct buf out = { 0 };

	expand_quote(&out, text);
	return json_string(buf_str(&out));
}

static void export_step(json_t *steps, const char *type, const json_t *value)
{
	const char *text = json_string_value(value);

	if (text && *text)
		json_array_append_new(steps, json_pack("{s:s, s:[o]}", "type", type, "args",
						       export_quoted(text)));
}

/* Variables, working folder and user are steps; the rest are settings of the same name. */
static json_t *export_definition(const struct store_build *b, const json_t *settings)
{
	static const char *const same[] = { "start", "ready", "port",         "labels",      "lib",
					    "file",  "pool",  "instructions", "description", NULL };
	json_t *steps = json_array(), *pairs = json_array(), *doc, *v;
	json_t *progress = json_loads(b->progress, 0, NULL), *state;
	const char *name;
	char stage[12];

	snprintf(stage, sizeof(stage), "%d",
		 (int)json_integer_value(json_object_get(progress, "stage")));
	state = json_object_get(json_object_get(progress, "stages"), stage);
	json_object_foreach(json_object_get(settings, "env"), name, v)
	{
		json_array_append_new(pairs, json_string(name));
		json_array_append_new(pairs, export_quoted(json_string_value(v)));
	}
	if (json_array_size(pairs))
		json_array_append_new(steps, json_pack("{s:s, s:O}", "type", "ENV", "args", pairs));
	json_decref(pairs);
	export_step(steps, "WORKDIR", json_object_get(settings, "workdir"));
	export_step(steps, "USER", json_object_get(settings, "user"));
	doc = json_pack("{s:[{s:s, s:s, s:b, s:o}]}", "stages", "name", "0", "from",
			*b->root ? "archive:" : TEMPLATE_BASE, "base",
			json_is_true(json_object_get(state, "base")) || !*b->root, "steps", steps);
	json_decref(progress);
	for (const char *const *k = same; *k; k++) {
		v = json_object_get(settings, *k);
		if (v && !json_is_null(v))
			json_object_set(doc, *k, v);
	}
	if (b->cpu_milli)
		json_object_set_new(doc, "cpu", json_integer(b->cpu_milli));
	if (b->mem_bytes)
		json_object_set_new(doc, "memory", json_integer((json_int_t)b->mem_bytes));
	if (b->disk_bytes)
		json_object_set_new(doc, "disk", json_integer((json_int_t)b->disk_bytes));
	return doc;
}

static char *export_header(const struct template_found *f)
{
	json_t *settings = json_loads(f->build.settings, 0, NULL), *doc;
	char *text;

	doc = json_pack("{s:i, s:s, s:o}", "atoll_template", 1, "name", f->row.name, "definition",
			export_definition(&f->build, settings));
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(settings);
	json_decref(doc);
	if (!text)
		abort();
	return text;
}

/* ---- the archive ---- */

static void export_stop(struct template_export *x)
{
	struct call *c = x->call;

	watch_stop(&x->watch);
	own_close_fd(&x->fd);
	if (x->asking)
		keeper_client_cancel(&c->api->fleet.keeper, x->asking);
	x->asking = NULL;
	c->drop = NULL;
	c->state = NULL;
	c->req->on_drain = NULL;
}

static void export_end(struct template_export *x)
{
	struct http_req *q = x->call->req;

	if (!x->written || !x->read)
		return;
	export_stop(x);
	http_end(q);
}

static void export_ready(struct watch *w, unsigned what)
{
	struct template_export *x = loop_owner(w, struct template_export, watch);
	char bytes[EXPORT_PIECE];
	ssize_t n = read(x->fd, bytes, sizeof(bytes));

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		watch_stop(&x->watch);
		x->read = 1;
		export_end(x);
	} else if (http_write(x->call->req, bytes, (size_t)n)) {
		watch_want(&x->watch, 0);
	}
}

static void export_drained(struct http_req *q)
{
	struct call *c = q->user;
	struct template_export *x = c->state;

	if (x && !x->read)
		watch_want(&x->watch, LOOP_READ);
}

/* An archive that is not complete must not look like one: the connection is cut. */
static void export_written(void *ctx, const struct frame *f, size_t len, int *fd,
			   const struct err *e)
{
	struct template_export *x = ctx;
	struct http_req *q = x->call->req;

	(void)len;
	(void)fd;
	(void)e;
	x->asking = NULL;
	if (f) {
		x->written = 1;
		export_end(x);
		return;
	}
	export_stop(x);
	http_abort(q);
}

static void export_left(struct call *c)
{
	export_stop(c->state);
}

static int export_begin(struct call *c, const char *root, const char *header, struct err *e)
{
	struct wire_layer ask = { .head = { .type = WIRE_LAYER_EXPORT,
					    .flags = WIRE_LAYER_OF_ROOT } };
	struct template_export *x = call_alloc(c, sizeof(*x));
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	(void)!fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*x = (struct template_export){ .call = c, .fd = ends[0] };
	c->state = x;
	c->drop = export_left;
	c->endless = 1;
	c->req->on_drain = export_drained;
	watch_init(&x->watch, c->api->loop, x->fd, export_ready);
	snprintf(ask.id, sizeof(ask.id), "%s", root);
	x->asking = keeper_client_request_fd(&c->api->fleet.keeper, &ask, sizeof(ask), ends[1],
					     WIRE_LAYER, export_written, x);
	http_stream(c->req, 200, "application/octet-stream", UINT64_MAX);
	if (!http_write(c->req, header, strlen(header)))
		watch_want(&x->watch, LOOP_READ);
	return 0;
}

void v1_templates_export(struct call *c)
{
	struct template_found f;
	auto_free char *json = NULL;
	auto_buf struct buf header = { 0 };
	struct err e;

	if (template_resolve(c->api->store, c->who.team, call_param(c, 0), &f, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (f.builtin) {
		call_error(c, 409, "conflict", "this template is part of every server", f.name,
			   NULL);
		template_found_fini(&f);
		return;
	}
	json = export_header(&f);
	buf_printf(&header, "%s\n", json);
	if (!*f.build.root) {
		http_stream(c->req, 200, "application/octet-stream", header.len);
		http_write(c->req, buf_str(&header), header.len);
		http_end(c->req);
	} else if (export_begin(c, f.build.root, buf_str(&header), &e) < 0) {
		call_fail(c, &e);
	}
	template_found_fini(&f);
}
