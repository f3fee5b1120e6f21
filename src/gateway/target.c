/* target.c - see target.h. */
#include "gateway/target.h"
#include "base/cleanup.h"
#include "base/id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A path whose last segment is "**" fits all paths below it, and the path itself. "{id}" is an id or, with a
 * collection, a name in it: the list GET <collection>/NAME finds it. The first row that fits counts. */
static const struct target_row {
	const char *method; /* NULL: any */
	const char *pattern;
	enum target_kind kind; /* TARGET_NODE: by {id} */
	enum target_shape shape;
	const char *collection; /* NULL: its objects have no names */
} target_rows[] = {
	{ "POST", "/v1/boxes", TARGET_CREATE, 0, "/v1/boxes" },
	{ "GET", "/v1/boxes", TARGET_LIST, TARGET_PAGE, NULL },
	{ NULL, "/v1/boxes/{id}/shares/**", TARGET_LOCAL, 0, NULL }, /* keys of the gateway */
	{ NULL, "/v1/boxes/{id}/**", TARGET_NODE, 0, "/v1/boxes" },
	{ "POST", "/v1/run", TARGET_CREATE, 0, NULL },
	{ "GET", "/v1/runs", TARGET_LIST, TARGET_PAGE, NULL },
	{ NULL, "/v1/runs/{id}/**", TARGET_NODE, 0, NULL },
	{ "GET", "/v1/shared/runs/{id}", TARGET_SHARED, 0, "/v1/shared/runs" },
	{ "POST", "/v1/batch", TARGET_STREAM, 0, NULL },
	{ "GET", "/v1/batch", TARGET_LIST, TARGET_PAGE, NULL },
	{ NULL, "/v1/batch/{id}/**", TARGET_NODE, 0, NULL },
	{ "GET", "/v1/pipelines/metrics", TARGET_GATHER, TARGET_RATIOS, NULL },
	{ "DELETE", "/v1/pipelines/memory", TARGET_EVERY, 0, NULL },
	{ NULL, "/v1/pipelines/policy", TARGET_LOCAL, 0, NULL },
	{ "POST", "/v1/pipelines", TARGET_CREATE, 0, NULL },
	{ "GET", "/v1/pipelines", TARGET_LIST, TARGET_PAGE, NULL },
	{ NULL, "/v1/pipelines/{id}/**", TARGET_NODE, 0, NULL },
	{ "POST", "/v1/agents", TARGET_CREATE, 0, NULL },
	{ "GET", "/v1/agents", TARGET_LIST, TARGET_PAGE, NULL },
	{ NULL, "/v1/agents/{id}/**", TARGET_NODE, 0, NULL },
	{ "POST", "/v1/schedules", TARGET_CREATE, 0, "/v1/schedules" },
	{ "GET", "/v1/schedules", TARGET_LIST, TARGET_PAGE, NULL },
	{ "GET", "/v1/schedules/next", TARGET_ANY, 0, NULL },
	{ NULL, "/v1/schedules/{id}/**", TARGET_NODE, 0, "/v1/schedules" },
	{ "POST", "/v1/snapshots", TARGET_BODY, 0, "/v1/boxes" },
	{ "GET", "/v1/snapshots", TARGET_LIST, TARGET_PAGE, NULL },
	{ NULL, "/v1/snapshots/{id}/**", TARGET_NODE, 0, "/v1/snapshots" },
	{ NULL, "/v1/checkpoints/{id}/**", TARGET_NODE, 0, NULL },
	{ "POST", "/v1/volumes", TARGET_CREATE, 0, "/v1/volumes" },
	{ "GET", "/v1/volumes", TARGET_LIST, TARGET_PAGE, NULL },
	{ NULL, "/v1/volumes/{id}/**", TARGET_NODE, 0, "/v1/volumes" },
	{ "POST", "/v1/templates", TARGET_TEMPLATE, 0, TARGET_TEMPLATES },
	{ "GET", "/v1/templates", TARGET_GATHER, TARGET_ITEMS, NULL },
	{ "PUT", "/v1/templates/uploads/{id}", TARGET_HOME, 0, NULL },
	{ NULL, "/v1/templates/{id}/**", TARGET_NODE, 0, TARGET_TEMPLATES },
	{ "GET", "/v1/builds", TARGET_LIST, TARGET_PAGE, NULL },
	{ NULL, "/v1/builds/{id}/**", TARGET_NODE, 0, "/v1/builds" },
	{ "GET", "/v1/packages", TARGET_GATHER, TARGET_SETS, NULL },
	{ NULL, "/v1/packages/**", TARGET_EVERY, 0, NULL },
	{ "GET", "/v1/receipts/**", TARGET_CHAIN, 0, NULL },
	{ "GET", "/v1/proofs", TARGET_LIST, TARGET_PAGE, NULL },
	{ NULL, "/v1/proofs/{id}", TARGET_NODE, 0, NULL },
	{ "GET", "/v1/socket", TARGET_SOCKET, 0, NULL },
	{ "GET", "/v1/languages", TARGET_ANY, 0, NULL },
	{ "GET", "/v1/tiers", TARGET_ANY, 0, NULL },
	{ "POST", "/v1/tiers/refresh", TARGET_EVERY, 0, NULL },
	{ "GET", "/v1/tools", TARGET_ANY, 0, NULL },
	{ NULL, "/v1/models/**", TARGET_ANY, 0, NULL },
	{ "POST", "/api/sandbox", TARGET_CREATE, 0, NULL },
	{ NULL, "/api/sandbox/{id}/**", TARGET_NODE, 0, "/v1/boxes" },
	/* Of this machine, or stored by gateways. */
	{ NULL, "/v1/info", TARGET_LOCAL, 0, NULL },
	{ NULL, "/v1/who", TARGET_LOCAL, 0, NULL },
	{ NULL, "/v1/keys/**", TARGET_LOCAL, 0, NULL },
	{ NULL, "/v1/teams/**", TARGET_LOCAL, 0, NULL },
	{ NULL, "/v1/secrets/**", TARGET_LOCAL, 0, NULL },
	{ NULL, "/v1/webhooks/**", TARGET_LOCAL, 0, NULL },
	{ NULL, "/v1/ui/**", TARGET_LOCAL, 0, NULL },
	{ "POST", "/v1/nodes/{id}/**", TARGET_MEMBER, 0, NULL },
	{ NULL, "/v1/nodes/**", TARGET_LOCAL, 0, NULL },
	{ NULL, "/v1/cluster/**", TARGET_LOCAL, 0, NULL },
	{ NULL, "/v1/scale", TARGET_LOCAL, 0, NULL },
	{ NULL, "/v1/doctor", TARGET_LOCAL, 0, NULL },
	{ NULL, "/v1/stats/**", TARGET_LOCAL, 0, NULL },
	{ NULL, "/v1/alerts/**", TARGET_LOCAL, 0, NULL },
	{ "GET", "/v1/usage", TARGET_LOCAL, 0, NULL },
	{ "GET", "/v1/audit", TARGET_LIST, TARGET_PAGE, NULL },
	{ "GET", "/v1/events", TARGET_LIST, TARGET_PAGE, NULL },
	{ NULL, "/v1/**", TARGET_ABSENT, 0, NULL },
	/* E2B. */
	{ "POST", "/sandboxes", TARGET_CREATE, 0, NULL },
	{ "POST", "/v2/sandboxes", TARGET_CREATE, 0, NULL },
	{ "GET", "/sandboxes", TARGET_LIST, TARGET_ARRAY, NULL },
	{ "GET", "/v2/sandboxes", TARGET_LIST, TARGET_ARRAY, NULL },
	{ "GET", "/sandboxes/metrics", TARGET_GATHER, TARGET_OBJECT, NULL },
	{ NULL, "/sandboxes/{id}/**", TARGET_NODE, 0, "/v1/boxes" },
	{ NULL, "/v2/sandboxes/{id}/**", TARGET_NODE, 0, "/v1/boxes" },
	{ "GET", "/events/sandboxes", TARGET_GATHER, TARGET_EVENTS, NULL },
	{ NULL, "/events/sandboxes/{id}", TARGET_NODE, 0, "/v1/boxes" },
	{ NULL, "/events/webhooks/**", TARGET_LOCAL, 0, NULL },
	{ NULL, "/events/**", TARGET_ABSENT, 0, NULL },
	{ "GET", "/snapshots", TARGET_LIST, TARGET_ARRAY, NULL },
	{ "POST", "/templates", TARGET_TEMPLATE, 0, TARGET_TEMPLATES },
	{ "POST", "/v2/templates", TARGET_TEMPLATE, 0, TARGET_TEMPLATES },
	{ "POST", "/v3/templates", TARGET_TEMPLATE, 0, TARGET_TEMPLATES },
	{ "GET", "/templates", TARGET_GATHER, TARGET_ITEMS, NULL },
	{ "GET", "/v2/templates", TARGET_GATHER, TARGET_ITEMS, NULL },
	{ NULL, "/templates/tags", TARGET_BODY, 0, TARGET_TEMPLATES },
	{ NULL, "/templates/aliases/{id}", TARGET_NODE, 0, TARGET_TEMPLATES },
	{ "PUT", "/templates/{id}/files/**", TARGET_SIGNED, 0, NULL },
	{ NULL, "/templates/{id}/**", TARGET_NODE, 0, TARGET_TEMPLATES },
	{ NULL, "/v2/templates/{id}/**", TARGET_NODE, 0, TARGET_TEMPLATES },
	{ "POST", "/volumes", TARGET_CREATE, TARGET_VOLUME, "/v1/volumes" },
	{ "GET", "/volumes", TARGET_GATHER, TARGET_ITEMS, NULL },
	{ "GET", "/volumes/{id}", TARGET_NODE, TARGET_VOLUME, "/v1/volumes" },
	{ NULL, "/volumes/{id}/**", TARGET_NODE, 0, "/v1/volumes" },
	{ NULL, "/volumecontent/{id}/**", TARGET_NODE, 0, "/v1/volumes" },
	{ "GET", "/teams/{id}/metrics/**", TARGET_GATHER, TARGET_SUM, NULL },
};

int target_node_of(const char *text, size_t n)
{
	char id[ID_MAX + 1];

	if (n != ID_MAX)
		return -1;
	memcpy(id, text, n);
	id[n] = 0;
	return id_valid(id) ? id_node(id) : -1;
}

int target_is_plain_name(const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return *text && strlen(text) < TARGET_TEXT && text[strspn(text, plain)] == 0 &&
	       strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

/* ---- by a box in Host or a header ---- */

/* "<port>-<id>" or "<port>-<name>", before the first dot. */
static int target_by_host(struct target *out, const char *host)
{
	size_t label = strcspn(host, "."), port = strspn(host, "0123456789");
	const char *id = host + port + 1;
	size_t n;

	if (host[label] != '.' || port == 0 || port > 5 || host[port] != '-' || label <= port + 1)
		return 0;
	n = label - port - 1;
	if (memchr(id, '-', n) && target_node_of(id, strcspn(id, "-.")) >= 0)
		n = strcspn(id, "-."); /* old clients of E2B append a client id */
	out->is_keyless = 1;
	out->node = (unsigned)target_node_of(id, n);
	out->kind = target_node_of(id, n) >= 0 ? TARGET_NODE : TARGET_NAME;
	out->collection = "/v1/boxes";
	snprintf(out->object, sizeof(out->object), "%.*s", (int)n, id);
	return 1;
}

static int target_by_header(struct target *out, const struct http_req *r)
{
	const char *id = http_header(r, "e2b-sandbox-id");
	int node = id ? target_node_of(id, strcspn(id, "-")) : -1;

	if (!id)
		return 0;
	out->is_keyless = out->is_e2b = 1;
	out->node = (unsigned)node;
	out->kind = node >= 0 ? TARGET_NODE
			      : TARGET_LOCAL; /* which answers that there is no such box */
	snprintf(out->object, sizeof(out->object), "%.*s", (int)strcspn(id, "-"), id);
	return 1;
}

/* ---- by the path ---- */

/* 1: fits; *out_id and *out_n: the segment of {id}. */
static int target_fits(const char *pattern, const char *path, const char **out_id, size_t *out_n)
{
	*out_id = NULL;
	for (;;) {
		size_t p = strcspn(pattern + 1, "/"), n;

		if (strcmp(pattern, "/**") == 0)
			return !*path || *path == '/';
		if (*path != '/')
			return 0;
		n = strcspn(path + 1, "/");
		if (p == 4 && memcmp(pattern + 1, "{id}", 4) == 0 && n > 0) {
			*out_id = path + 1;
			*out_n = n;
		} else if (p != n || memcmp(pattern + 1, path + 1, n) != 0) {
			return 0;
		}
		pattern += p + 1;
		path += n + 1;
		if (!*pattern)
			return !*path;
	}
}

static void target_by_id(struct target *out, const struct target_row *row, const char *id, size_t n)
{
	size_t bare = n;
	int node;

	/* Old clients of E2B append a client id; snapshots of E2B are "<id>:default". */
	if (out->is_e2b && n > ID_MAX && strchr("-:%", id[ID_MAX]) &&
	    target_node_of(id, ID_MAX) >= 0)
		bare = ID_MAX;
	node = target_node_of(id, bare);
	snprintf(out->object, sizeof(out->object), "%.*s", (int)n, id);
	if (node >= 0) {
		out->kind = TARGET_NODE;
		out->node = (unsigned)node;
		return;
	}
	/* Only ids: this gateway answers 404. */
	out->kind = row->collection && n < TARGET_TEXT ? TARGET_NAME : TARGET_LOCAL;
}

/* The decimal value of this parameter of the query; -1: it has none. */
static long target_number(const char *query, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = query ? query : ""; *at;) {
		size_t len = strcspn(at, "&"), digits;

		if (len > n && strncmp(at, name, n) == 0 && at[n] == '=') {
			digits = strspn(at + n + 1, "0123456789");
			if (digits > 0 && digits < 6 && n + 1 + digits == len)
				return strtol(at + n + 1, NULL, 10);
		}
		at += len + (at[len] == '&');
	}
	return -1;
}

static int target_has(const char *query, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = query ? query : ""; *at;) {
		size_t len = strcspn(at, "&");

		if (len > n && strncmp(at, name, n) == 0 && at[n] == '=')
			return 1;
		at += len + (at[len] == '&');
	}
	return 0;
}

/* A link that a node has signed has no key, and the number of the node. */
static void target_by_link(struct target *out, const struct http_req *r)
{
	long node = target_number(r->query, "node");

	out->kind = TARGET_LOCAL; /* which answers that the link is not valid */
	if (node < 0)
		return;
	out->is_keyless = 1;
	out->kind = TARGET_NODE;
	out->node = (unsigned)node;
}

static void target_by_session(struct target *out, const struct http_req *r)
{
	const char *session = http_header(r, "mcp-session-id");
	int node = session ? target_node_of(session, strlen(session)) : -1;

	out->kind = node >= 0 ? TARGET_NODE : TARGET_CREATE;
	out->node = (unsigned)node;
}

static void target_by_row(struct target *out, const struct target_row *row,
			  const struct http_req *r, const char *id, size_t n)
{
	if (row->kind == TARGET_NODE) {
		target_by_id(out, row, id, n);
	} else if (row->kind == TARGET_SIGNED) {
		target_by_link(out, r);
	} else if (row->kind == TARGET_SHARED) {
		snprintf(out->object, sizeof(out->object), "%.*s", (int)n, id);
		out->is_keyless = 1;
	} else if (row->kind == TARGET_MEMBER) {
		snprintf(out->object, sizeof(out->object), "%.*s", (int)n, id);
		if (strcmp(out->object, "self") == 0) /* a gateway that is a node, too */
			out->kind = TARGET_LOCAL;
	}
}

void target_find(struct target *out, const struct http_req *r, int is_preview_host)
{
	const char *host = http_header(r, "host"), *id;
	size_t n = 0;

	*out = (struct target){ .kind = TARGET_LOCAL };
	if (target_by_header(out, r) || (host && is_preview_host && target_by_host(out, host)))
		return;
	if (strcmp(r->path, "/files") == 0 && target_has(r->query, "signature")) {
		out->is_keyless = out->is_e2b = 1;
		out->kind = TARGET_FILE;
		return;
	}
	if (strcmp(r->path, "/mcp") == 0) {
		target_by_session(out, r);
		return;
	}
	out->is_e2b = strncmp(r->path, "/v1/", 4) != 0 && strncmp(r->path, "/api/", 5) != 0;
	for (unsigned i = 0; i < ARRAY_LEN(target_rows); i++) {
		const struct target_row *row = &target_rows[i];

		if (row->method && strcmp(row->method, r->method) != 0 &&
		    !(strcmp(row->method, "GET") == 0 && strcmp(r->method, "HEAD") == 0))
			continue;
		if (!target_fits(row->pattern, r->path, &id, &n))
			continue;
		out->kind = row->kind;
		out->shape = row->shape;
		out->collection = row->collection;
		target_by_row(out, row, r, id, n);
		return;
	}
}
