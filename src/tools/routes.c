/* routes.c - /v1/tools, and the tools below a box. */
#include "api/auth.h"
#include "api/event_stream.h"
#include "api/fields.h"
#include "v1/openapi.h"
#include "base/cleanup.h"
#include "tools/tool.h"

#include <stdio.h>
#include <string.h>

/* ---- GET /v1/tools ---- */

static const struct field tools_formats_values[] = {
	FIELD_VALUE("atoll"),     FIELD_VALUE("openai"), FIELD_VALUE("openai-responses"),
	FIELD_VALUE("anthropic"), FIELD_VALUE("mcp"),    { 0 }
};
static const struct field list_query[] = {
	{ "format", FIELD_CHOICE, 0, 0, 0, "format of the list (default atoll)",
	  tools_formats_values },
	{ 0 },
};

static void routes_list(struct call *c)
{
	const char *name = call_query(c, "format");
	int f = name ? tools_format(name) : TOOLS_ATOLL;

	if (f < 0)
		call_error(c, 400, "invalid", "?format= is not supported", name,
			   "atoll, openai, openai-responses, anthropic, mcp");
	else
		call_send(c, 200, json_pack("{s:o}", "tools", tools_json((enum tool_format)f)));
}

/* ---- POST /v1/boxes/{box}/tools/{name} ---- */

struct plain {
	struct tool_call call;
	struct event_stream event_stream;
	enum event_stream_kind kind;
};

static json_t *result_json(const struct tool_job *j, const struct tool_result *r)
{
	json_t *doc =
		json_pack("{s:s, s:b, s:o, s:O}", "tool", j->tool->name, "is_error", r->failed,
			  "text", json_stringn(buf_str(&r->text), r->text.len), "data", r->data);

	if (r->image.len)
		json_object_set_new(doc, "image",
				    json_pack("{s:s, s:s#}", "mime_type", "image/png", "base64",
					      r->image.p, (int)r->image.len));
	return doc;
}

static void plain_over(struct tool_job *j, const struct tool_result *r)
{
	static const char *const types[2] = { "stdout", "stderr" };
	struct plain *p = j->call->surface;
	json_t *doc = result_json(j, r);

	if (p->kind == EVENT_STREAM_NONE) {
		call_send(j->call, 200, doc);
		return;
	}
	event_stream_flush(&p->event_stream, types);
	json_object_set_new(doc, "type", json_string("result"));
	event_stream_event(&p->event_stream, doc);
	event_stream_end(&p->event_stream);
}

static int plain_said(struct tool_job *j, unsigned stream, const char *bytes, size_t n)
{
	struct plain *p = j->call->surface;
	uint64_t offset = j->out[stream].total - n;

	return p->kind == EVENT_STREAM_NONE
		       ? 0
		       : event_stream_output(&p->event_stream, stream ? "stderr" : "stdout", stream,
					     offset, bytes, n);
}

static const struct tool_surface plain_on = { plain_said, plain_over };

static void routes_use(struct call *c)
{
	const struct tool *t = tool_named(call_param(c, 1));
	struct plain *p = call_alloc(c, sizeof(*p));
	struct err e;

	if (!t || t->marks & TOOL_BOXES) {
		call_error(c, 404, "not_found", "there is no such tool", call_param(c, 1),
			   "all of them: GET /v1/tools");
		return;
	}
	/* An invalid request is an HTTP error; later failures are tool results. */
	if (fields_check(c->body, t->fields, "", &e) < 0) {
		call_error(c, 400, "invalid", e.msg, NULL, "its schema: GET /v1/tools");
		return;
	}
	if (!call_box(c, 0))
		return;
	*p = (struct plain){ .kind = event_stream_wanted(c) };
	tool_enter(c, &p->call);
	if (p->kind != EVENT_STREAM_NONE)
		event_stream_begin(&p->event_stream, c->req, p->kind);
	tool_begin(c, t, c->body, &plain_on);
}

/* ---- the table ---- */

static const struct field any[] = { { FIELDS_OTHERS, FIELD_ANY, 0, 0, 0, NULL, NULL }, { 0 } };

static const struct api_route rows[] = {
	/* clang-format off */
	{ "GET", "/v1/tools", NEED_VIEWER, routes_list, "list the tools in the format of a model provider", .query = list_query, .group = "tools" },
	{ "POST", "/v1/boxes/{box}/tools/openai", NEED_VIEWER, openai_use, "execute a tool call in OpenAI's format", any, .group = "tools", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/tools/anthropic", NEED_VIEWER, anthropic_use, "execute a tool call in Anthropic's format", any, .group = "tools", .scope = SCOPE_BOX },
	{ "POST", "/v1/boxes/{box}/tools/{tool}", NEED_VIEWER, routes_use, "call a tool", any, .group = "tools", .scope = SCOPE_BOX },
	/* clang-format on */
};
static struct api_table table = { rows, ARRAY_LEN(rows), &tool_format, NULL };

/* "/v1/boxes/NAME/tools/" */
static int is_ours(const char *path)
{
	static const char boxes[] = "/v1/boxes/";
	const char *rest;

	if (!strcmp(path, "/v1/tools"))
		return 1;
	if (strncmp(path, boxes, sizeof(boxes) - 1) != 0)
		return 0;
	rest = strchr(path + sizeof(boxes) - 1, '/');
	return rest && !strncmp(rest, "/tools/", 7);
}

static int routes_take(struct call *c)
{
	const char *why;
	int status;

	if (!is_ours(c->req->path))
		return 0;
	status = auth_origin(c->api, c->req, &why);
	if (status)
		call_error(c, status, "denied", "not at this address", why, NULL);
	else
		call_serve(c, &table);
	return 1;
}

/* A path for each tool, with its fields. */
static void tool_document(json_t *paths)
{
	char path[128];

	for (unsigned i = 0; i < ntools; i++) {
		const struct tool *t = &tools[i];
		struct api_route r = { "POST",  path,      NEED_VIEWER,     routes_use,
				       t->help, t->fields, .group = "tools" };

		if (t->marks & TOOL_BOXES)
			continue;
		snprintf(path, sizeof(path), "/v1/boxes/{box}/tools/%s", t->name);
		openapi_add(paths, "/v1/boxes/{box}/tools/{tool}", &r);
	}
}

const struct api_surface tool_surface = { routes_take, rows, ARRAY_LEN(rows), tool_document };
