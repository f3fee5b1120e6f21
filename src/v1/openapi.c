/* openapi.c - see openapi.h. */
#include "v1/openapi.h"
#include "v1/v1.h"
#include "api/fields.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char api_answers[], api_answers_end[]; /* answers.json, from answers.S */

/* ---- answers ---- */

/* {"schemas": {NAME: schema}, "answers": {"GET /path": what}}; read once. The file is part of the
 * executable; tests/system/api_admin.sh finds mistakes in it. */
static const json_t *openapi_answers(void)
{
	static json_t *doc;

	if (!doc)
		doc = json_loadb(api_answers, (size_t)(api_answers_end - api_answers),
				 JSON_REJECT_DUPLICATES, NULL);
	if (!doc)
		abort();
	return doc;
}

static json_t *openapi_ref(const char *name)
{
	return json_pack("{s:s+}", "$ref", "#/components/schemas/", name);
}

/* "Box": that schema. "Box[]": a page of them. "": nothing, or bytes of another type "image/png". */
static json_t *openapi_content(const char *what)
{
	size_t n = strlen(what);
	auto_free char *item = NULL;

	if (strchr(what, '/'))
		return json_pack("{s:{}}", what);
	if (n < 3 || strcmp(what + n - 2, "[]") != 0)
		return json_pack("{s:{s:o}}", "application/json", "schema", openapi_ref(what));
	item = strndup(what, n - 2);
	if (!item)
		abort();
	return json_pack("{s:{s:{s:s, s:[s, s], s:{s:{s:s, s:o}, s:{s:[s, s], s:s}}}}}",
			 "application/json", "schema", "type", "object", "required", "items",
			 "next", "properties", "items", "type", "array", "items", openapi_ref(item),
			 "next", "type", "string", "null", "description",
			 "pass it as `after` for the next page; null: this was the last");
}

static json_t *openapi_responses(const char *method, const char *pattern)
{
	json_t *all = json_object(), *done = json_object();
	char key[256];
	const char *what;

	snprintf(key, sizeof(key), "%s %s", method, pattern);
	what = json_string_value(
		json_object_get(json_object_get(openapi_answers(), "answers"), key));
	json_object_set_new(done, "description",
			    json_string(what && *what ? "done" : "done, without a body"));
	if (what && *what)
		json_object_set_new(done, "content", openapi_content(what));
	json_object_set_new(all, "2XX", done);
	json_object_set_new(all, "default",
			    json_pack("{s:s, s:o}", "description",
				      "refused or failed: what, why, and what to do", "content",
				      openapi_content("Error")));
	return all;
}

/* ---- requests ---- */

static json_t *openapi_parameters(const struct api_route *r)
{
	json_t *all = json_array(), *query = fields_schema(r->query), *schema;
	const char *name;

	for (const char *p = strchr(r->pattern, '{'); p; p = strchr(p + 1, '{'))
		json_array_append_new(all, json_pack("{s:s%, s:s, s:b, s:{s:s}}", "name", p + 1,
						     strcspn(p + 1, "}"), "in", "path", "required",
						     1, "schema", "type", "string"));
	json_object_foreach(json_object_get(query, "properties"), name, schema)
	{
		int required = 0;
		json_t *one;
		size_t i;

		json_array_foreach(json_object_get(query, "required"), i, one) required |=
			!strcmp(json_string_value(one), name);
		json_array_append_new(all,
				      json_pack("{s:s, s:s, s:b, s:O}", "name", name, "in", "query",
						"required", required, "schema", schema));
	}
	json_decref(query);
	return all;
}

/* A body of one of these types is accepted unparsed. */
static json_t *openapi_request_body(const struct api_route *r)
{
	if (r->body)
		return json_pack("{s:{s:{s:o}}}", "content", "application/json", "schema",
				 fields_schema(r->body));
	if (r->how == HTTP_BODY_STREAM)
		return json_pack("{s:{s:{}}}", "content", "application/octet-stream");
	return NULL;
}

static json_t *openapi_operation(const struct api_route *r, const char *pattern)
{
	static const char *const roles[] = { "none", "viewer", "editor", "owner" };
	json_t *body = openapi_request_body(r),
	       *op = json_pack("{s:s, s:[s], s:o, s:s, s:o}", "summary", r->summary, "tags",
			       r->group, "parameters", openapi_parameters(r), "x-atoll-role",
			       roles[r->need], "responses", openapi_responses(r->method, pattern));

	if (r->action)
		json_object_set_new(op, "x-atoll-audit", json_string(r->action));
	if (r->need == NEED_NOTHING)
		json_object_set_new(op, "security", json_array());
	if (body)
		json_object_set_new(op, "requestBody", body);
	return op;
}

void openapi_add(json_t *paths, const char *pattern, const struct api_route *r)
{
	json_t *path = json_object_get(paths, r->pattern);
	char method[16];
	unsigned n = 0;

	if (!path) {
		path = json_object();
		json_object_set_new(paths, r->pattern, path);
	}
	for (; r->method[n] && n < sizeof(method) - 1; n++)
		method[n] = (char)tolower((unsigned char)r->method[n]);
	method[n] = 0;
	json_object_set_new(path, method, openapi_operation(r, pattern));
}

static json_t *openapi_paths(const struct api *a)
{
	json_t *paths = json_object();

	for (unsigned i = 0; i < v1_nroutes; i++)
		openapi_add(paths, v1_routes[i].pattern, &v1_routes[i]);
	for (const struct api_surface *const *d = a->surfaces; d && *d; d++) {
		for (unsigned i = 0; i < (*d)->nroutes; i++)
			openapi_add(paths, (*d)->routes[i].pattern, &(*d)->routes[i]);
		if ((*d)->document)
			(*d)->document(paths);
	}
	return paths;
}

/* The routes do not change while the server runs, and the document takes milliseconds to build: it
 * is built once. */
void openapi_show(struct call *c)
{
	static char *text;
	static size_t n;

	if (!text) {
		json_t *doc =
			json_pack("{s:s, s:{s:s, s:s}, s:o, s:{s:{s:{s:s, s:s}}, s:O}, s:[{s:[]}]}",
				  "openapi", "3.1.0", "info", "title", "Atoll", "version",
				  ATOLL_VERSION, "paths", openapi_paths(c->api), "components",
				  "securitySchemes", "key", "type", "http", "scheme", "bearer",
				  "schemas", json_object_get(openapi_answers(), "schemas"),
				  "security", "key");

		text = json_dumps(doc, JSON_COMPACT);
		json_decref(doc);
		if (!text)
			abort();
		n = strlen(text);
	}
	http_reply(c->req, 200, "application/json", text, n);
}
