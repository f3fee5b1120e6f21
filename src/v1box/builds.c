/* builds.c - see templates.h: builds, their logs, and uploads. */
#include "v1box/templates.h"
#include "api/event_stream.h"
#include "api/fields.h"
#include "base/cleanup.h"
#include "template/build.h"
#include "template/definition.h"
#include "template/templates.h"
#include "v1box/template_source.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOG_PIECE = 64 * 1024, PING_MS = 15000 };

const struct field v1_templates_create_fields[] = {
	{ "name", FIELD_TEXT, 0, 0, STORE_TEMPLATE,
	  "of the template: name or name:tag (default: that of the source)", NULL },
	{ "tags", FIELD_TEXTS, 0, 0, 16, "tags that will name the build (default: default)", NULL },
	{ "definition", FIELD_ANY, 0, 0, 0, "stages, steps and settings: docs/templates.md", NULL },
	{ "source", FIELD_ANY, 0, 0, 0,
	  "or texts of build files: {files: {path: text}, file, args, target, archive, manifest, folder}",
	  NULL },
	{ "from_box", FIELD_TEXT, 0, 0, STORE_NAME,
	  "or a box: its files become the template; its programs end", NULL },
	{ "secrets", FIELD_MAP, 0, 0, 64, "values for steps with `secrets`; stored nowhere", NULL },
	{ "force", FIELD_BOOL, 0, 0, 0, "use nothing of the cache", NULL },
	{ 0 },
};
const struct field v1_builds_list_query[] = {
	{ "template", FIELD_TEXT, 0, 0, STORE_TEMPLATE, "only builds of this template", NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items (default 100)", NULL },
	{ 0 },
};
const struct field v1_builds_log_query[] = {
	{ "from", FIELD_INT, 0, 0, INT64_MAX, "byte offset in the log (default 0)", NULL },
	{ "follow", FIELD_BOOL, 0, 0, 0, "wait for new lines until the build has ended", NULL },
	{ 0 },
};

/* ---- create ---- */

static void v1_builds_created(struct call *c, const struct store_build *row)
{
	call_audit(c, "template.build", row->id, "ok");
	http_set(c->req, "Location", "/v1/builds/%s", row->id);
	call_json(c, 202, template_build_json(row));
}

static void v1_builds_start(struct call *c, const char *name, const json_t *definition)
{
	struct build_request want = { .team = c->who.team,
				      .name = call_text(c, "name", name),
				      .tags = call_get(c, "tags") };
	struct store_build row = { 0 };
	struct err e, ignored;

	if (definition_check(definition, &e) < 0 ||
	    build_create(c->api->builds, &want, &row, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (build_begin(c->api->builds, row.id, definition, call_get(c, "secrets"),
			call_flag(c, "force", 0), &e) < 0) {
		(void)!build_cancel(c->api->builds, row.id, &ignored);
		call_fail(c, &e);
	} else {
		v1_builds_created(c, &row);
	}
	store_build_fini(&row);
}

static void v1_builds_start_shipped(struct call *c, const struct shipped_template *t)
{
	json_t *definition;
	struct err e;

	if (shipped_template_upload(t, c->api->builds, c->who.team, &e) < 0 ||
	    shipped_template_definition(t, &definition, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	v1_builds_start(c, t->name, definition);
	json_decref(definition);
}

static void v1_builds_start_box(struct call *c, const char *box)
{
	json_t *definition;
	char from[STORE_NAME + 8];

	if (!fleet_named(&c->api->fleet, c->who.team, box)) {
		call_no_box(c, box);
		return;
	}
	snprintf(from, sizeof(from), "box:%s", box);
	definition = json_pack("{s:[{s:s}]}", "stages", "from", from);
	v1_builds_start(c, "", definition);
	json_decref(definition);
}

void v1_templates_create(struct call *c)
{
	const json_t *definition = call_get(c, "definition"), *source = call_get(c, "source");
	const struct shipped_template *t = shipped_template_find(call_text(c, "name", ""));
	const char *box = call_text(c, "from_box", NULL);
	struct source found;

	if (!definition && !source && box) {
		v1_builds_start_box(c, box);
		return;
	}
	if (!definition && !source && t) {
		v1_builds_start_shipped(c, t);
		return;
	}
	if (!definition == !source) {
		call_error(
			c, 400, "invalid",
			"send either definition, source or from_box, or the name of a template that comes "
			"with the server",
			NULL, NULL);
		return;
	}
	if (definition) {
		v1_builds_start(c, "", definition);
		return;
	}
	if (v1_template_source(c, source, &found) < 0)
		return;
	v1_builds_start(c, found.name, found.definition);
	source_fini(&found);
}

/* ---- uploads ---- */

struct v1_upload {
	struct build_upload upload;
	struct err e;
	int open;
};

static void v1_upload_left(struct call *c)
{
	struct v1_upload *u = c->state;

	if (u->open)
		build_upload_drop(c->api->builds, &u->upload);
	u->open = 0;
}

static void v1_upload_bytes(struct http_req *q, const char *bytes, size_t n)
{
	struct call *c = q->user;
	struct v1_upload *u = c->state;

	while (u->open && n > 0) {
		ssize_t did = write(u->upload.fd, bytes, n);

		if (did < 0) {
			err_sys(&u->e, "store the upload");
			v1_upload_left(c);
			return;
		}
		bytes += did;
		n -= (size_t)did;
	}
}

static void v1_upload_end(struct http_req *q)
{
	struct call *c = q->user;
	struct v1_upload *u = c->state;

	c->drop = NULL;
	if (u->open && build_upload_finish(c->api->builds, &u->upload, c->who.team,
					   call_param(c, 0), &u->e) == 0) {
		call_empty(c, 204);
		return;
	}
	call_fail(c, &u->e);
}

void v1_templates_upload(struct call *c)
{
	struct v1_upload *u = call_alloc(c, sizeof(*u));
	const char *hash = call_param(c, 0);
	uint64_t most = c->api->conf.template_max;
	struct err e;

	if (!*hash || strlen(hash) > STORE_HASH ||
	    strspn(hash, "0123456789abcdef") != strlen(hash)) {
		call_error(c, 400, "invalid", "the hash must be up to 64 of 0-9 and a-f", hash,
			   NULL);
		return;
	}
	*u = (struct v1_upload){ 0 };
	if (build_upload_open(c->api->builds, &u->upload, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	u->open = 1;
	c->state = u;
	c->drop = v1_upload_left;
	c->req->on_body = v1_upload_bytes;
	c->req->on_body_end = v1_upload_end;
	http_want_body(c->req, HTTP_BODY_STREAM, most);
}

/* ---- reading ---- */

void v1_builds_list(struct call *c)
{
	const char *name = call_query(c, "template");
	struct template_found f = { 0 };
	struct store_builds rows = { 0 };
	json_t *all;
	struct err e;

	if ((name && template_find(c->api->store, c->who.team, name, &f, &e) < 0) ||
	    store_build_list(c->api->store, c->who.team, name ? f.row.id : NULL,
			     (unsigned)call_query_int(c, "limit", 0), &rows, &e) < 0) {
		template_found_fini(&f);
		call_fail(c, &e);
		return;
	}
	all = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(all, template_build_json(&rows.v[i]));
	store_builds_fini(&rows);
	template_found_fini(&f);
	call_list(c, all, "");
}

static int v1_builds_is_public(struct call *c, const struct store_build *b)
{
	struct store_template t = { 0 };
	struct err e;
	int is = store_template_find(c->api->store, c->who.team, b->template, &t, &e) == 0 &&
		 t.public;

	store_template_fini(&t);
	return is;
}

/* A build of the caller's team, or to be read one of a template that every team may use; -1: 404 was
 * answered. */
static int v1_builds_find(struct call *c, int read, struct store_build *out)
{
	struct err e;

	if (store_build_get(c->api->store, call_param(c, 0), out, &e) == 0) {
		if (!strcmp(out->team, c->who.team) || (read && v1_builds_is_public(c, out)))
			return 0;
		store_build_fini(out);
		err_set(&e, ERR_NOT_FOUND, "no build '%.40s'", call_param(c, 0));
	}
	call_fail(c, &e);
	return -1;
}

void v1_builds_show(struct call *c)
{
	struct store_build row;

	if (v1_builds_find(c, 1, &row) < 0)
		return;
	call_json(c, 200, template_build_json(&row));
	store_build_fini(&row);
}

void v1_builds_cancel(struct call *c)
{
	struct store_build row;
	struct err e;

	if (v1_builds_find(c, 0, &row) < 0)
		return;
	if (build_cancel(c->api->builds, row.id, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
	store_build_fini(&row);
}

/* ---- the log ---- */

struct log_reader {
	struct build_wait wait;
	struct call *call;
	struct timer ping;
	char id[STORE_BUILD_ID + 1];
	uint64_t at;
	int full, follow;
};

static void log_stop(struct log_reader *r)
{
	build_wait_cancel(&r->wait);
	timer_fini(&r->ping);
	r->call->drop = NULL;
	r->call->state = NULL;
	r->call->req->on_drain = NULL;
}

/* The last line: the state, so that a reader needs no second request. */
static void log_end(struct log_reader *r)
{
	struct store_build row;
	json_t *doc;
	auto_free char *text = NULL;
	struct err e;

	if (store_build_get(r->call->api->store, r->id, &row, &e) == 0) {
		doc = json_pack("{s:s, s:o, s:I}", "type", "end", "build",
				template_build_json(&row), "next", (json_int_t)r->at);
		text = json_dumps(doc, JSON_COMPACT);
		json_decref(doc);
		store_build_fini(&row);
		http_write(r->call->req, text, strlen(text));
		http_write(r->call->req, "\n", 1);
	}
	http_end(r->call->req);
	log_stop(r);
}

static void log_send(struct log_reader *r)
{
	struct err e;

	while (!r->full) {
		auto_buf struct buf piece = { 0 };
		uint64_t next;

		if (build_log_read(r->call->api->builds, r->id, r->at, LOG_PIECE, &piece, &next,
				   &e) < 0) {
			http_abort(r->call->req);
			log_stop(r);
			return;
		}
		if (!piece.len)
			break;
		r->at = next;
		r->full = http_write(r->call->req, piece.p, piece.len);
	}
	if (!r->full && !(r->follow && r->wait.build))
		log_end(r);
}

static void log_news(struct build_wait *w)
{
	struct log_reader *r = loop_owner(w, struct log_reader, wait);

	if (!r->full)
		log_send(r);
}

static void log_room(struct http_req *q)
{
	struct call *c = q->user;
	struct log_reader *r = c->state;

	if (!r)
		return;
	r->full = 0;
	log_send(r);
}

/* Only a write shows whether the client is still connected. */
static void log_ping(struct timer *t)
{
	struct log_reader *r = loop_owner(t, struct log_reader, ping);

	if (!r->full)
		r->full = http_write(r->call->req, "{\"type\":\"ping\"}\n", 16);
	timer_set(&r->ping, PING_MS);
}

static void log_left(struct call *c)
{
	log_stop(c->state);
}

void v1_builds_log(struct call *c)
{
	struct log_reader *r = call_alloc(c, sizeof(*r));
	struct store_build row;

	if (v1_builds_find(c, 1, &row) < 0)
		return;
	*r = (struct log_reader){ .call = c,
				  .wait.news = log_news,
				  .at = (uint64_t)call_query_int(c, "from", 0),
				  .follow = call_query_flag(c, "follow") };
	snprintf(r->id, sizeof(r->id), "%s", row.id);
	store_build_fini(&row);
	timer_init(&r->ping, c->api->loop, log_ping);
	c->state = r;
	c->drop = log_left;
	c->req->on_drain = log_room;
	c->endless = 1;
	if (r->follow && build_await(c->api->builds, r->id, &r->wait))
		timer_set(&r->ping, PING_MS);
	http_stream(c->req, 200, "application/x-ndjson", UINT64_MAX);
	log_send(r);
}
