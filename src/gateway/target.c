/* target.c - see target.h. */
#include "gateway/target.h"
#include "base/cleanup.h"
#include "base/id.h"

#include <stdio.h>
#include <string.h>

/* A path whose last segment is "**" fits all paths below it, and the path itself. "{id}" is an id or a name of
 * the collection in front of it. The first row that fits counts. */
static const struct target_row {
	const char *method; /* NULL: any */
	const char *pattern;
	enum target_kind kind; /* TARGET_NODE: by {id} */
	enum target_shape shape;
} target_rows[] = {
	{ "POST", "/v1/boxes", TARGET_CREATE, 0 },
	{ "GET", "/v1/boxes", TARGET_LIST, TARGET_PAGE },
	{ NULL, "/v1/boxes/{id}/**", TARGET_NODE, 0 },
	{ "POST", "/v1/run", TARGET_CREATE, 0 },
	{ "GET", "/v1/runs", TARGET_LIST, TARGET_PAGE },
	{ NULL, "/v1/runs/{id}/**", TARGET_NODE, 0 },
	{ "POST", "/v1/batch", TARGET_STREAM, 0 },
	{ "GET", "/v1/batch", TARGET_LIST, TARGET_PAGE },
	{ NULL, "/v1/batch/{id}/**", TARGET_NODE, 0 },
	{ NULL, "/v1/pipelines/metrics", TARGET_ABSENT, 0 },
	{ NULL, "/v1/pipelines/memory", TARGET_ABSENT, 0 },
	{ NULL, "/v1/pipelines/policy", TARGET_ABSENT, 0 },
	{ "POST", "/v1/pipelines", TARGET_CREATE, 0 },
	{ "GET", "/v1/pipelines", TARGET_LIST, TARGET_PAGE },
	{ NULL, "/v1/pipelines/{id}/**", TARGET_NODE, 0 },
	{ "POST", "/v1/agents", TARGET_CREATE, 0 },
	{ "GET", "/v1/agents", TARGET_LIST, TARGET_PAGE },
	{ NULL, "/v1/agents/{id}/**", TARGET_NODE, 0 },
	{ "POST", "/v1/snapshots", TARGET_BODY, 0 },
	{ "GET", "/v1/snapshots", TARGET_LIST, TARGET_PAGE },
	{ NULL, "/v1/snapshots/{id}/**", TARGET_NODE, 0 },
	{ "POST", "/v1/volumes", TARGET_CREATE, 0 },
	{ "GET", "/v1/volumes", TARGET_LIST, TARGET_PAGE },
	{ NULL, "/v1/volumes/{id}/**", TARGET_NODE, 0 },
	{ "GET", "/v1/socket", TARGET_SOCKET, 0 },
	{ "GET", "/v1/languages", TARGET_ANY, 0 },
	{ "GET", "/v1/tiers", TARGET_ANY, 0 },
	{ "GET", "/v1/tools", TARGET_ANY, 0 },
	{ "POST", "/api/sandbox", TARGET_CREATE, 0 },
	{ NULL, "/api/sandbox/{id}/**", TARGET_NODE, 0 },
	/* Of this machine, or stored by gateways. */
	{ NULL, "/v1/info", TARGET_LOCAL, 0 },
	{ NULL, "/v1/who", TARGET_LOCAL, 0 },
	{ NULL, "/v1/keys/**", TARGET_LOCAL, 0 },
	{ NULL, "/v1/teams/{id}/network", TARGET_ABSENT, 0 },
	{ NULL, "/v1/teams/**", TARGET_LOCAL, 0 },
	{ NULL, "/v1/ui/**", TARGET_LOCAL, 0 },
	{ "POST", "/v1/nodes/{id}/**", TARGET_MEMBER, 0 },
	{ NULL, "/v1/nodes/**", TARGET_LOCAL, 0 },
	{ NULL, "/v1/cluster/**", TARGET_LOCAL, 0 },
	{ NULL, "/v1/scale", TARGET_LOCAL, 0 },
	{ NULL, "/v1/models/**", TARGET_LOCAL, 0 },
	{ "GET", "/v1/audit", TARGET_LIST, TARGET_PAGE },
	{ "GET", "/v1/events", TARGET_LIST, TARGET_PAGE },
	{ NULL, "/v1/**", TARGET_ABSENT, 0 },
	/* E2B. */
	{ "POST", "/sandboxes", TARGET_CREATE, 0 },
	{ "POST", "/v2/sandboxes", TARGET_CREATE, 0 },
	{ "GET", "/sandboxes", TARGET_LIST, TARGET_ARRAY },
	{ "GET", "/v2/sandboxes", TARGET_LIST, TARGET_ARRAY },
	{ NULL, "/sandboxes/metrics", TARGET_ABSENT, 0 },
	{ NULL, "/sandboxes/{id}/**", TARGET_NODE, 0 },
	{ NULL, "/v2/sandboxes/{id}/**", TARGET_NODE, 0 },
	{ NULL, "/events/sandboxes/{id}", TARGET_NODE, 0 },
	{ NULL, "/events/**", TARGET_ABSENT, 0 },
	{ "GET", "/snapshots", TARGET_LIST, TARGET_ARRAY },
	{ NULL, "/templates/**", TARGET_ABSENT, 0 },
	{ NULL, "/v2/templates/**", TARGET_ABSENT, 0 },
	{ NULL, "/v3/templates/**", TARGET_ABSENT, 0 },
	{ NULL, "/volumes/**", TARGET_ABSENT, 0 },
	{ NULL, "/volumecontent/**", TARGET_ABSENT, 0 },
	{ NULL, "/teams/{id}/**", TARGET_ABSENT, 0 },
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

static void target_by_id(struct target *out, const char *path, const char *id, size_t n)
{
	static const struct {
		const char *prefix, *collection;
	} all[] = {
		{ "/v1/boxes/", "/v1/boxes" },         { "/v1/snapshots/", "/v1/snapshots" },
		{ "/v1/volumes/", "/v1/volumes" },     { "/api/sandbox/", "/v1/boxes" },
		{ "/sandboxes/", "/v1/boxes" },        { "/v2/sandboxes/", "/v1/boxes" },
		{ "/events/sandboxes/", "/v1/boxes" },
	};
	size_t bare = n;
	int node;

	if (out->is_e2b && memchr(id, '-', n) && target_node_of(id, strcspn(id, "-")) >= 0)
		bare = strcspn(id, "-");
	node = target_node_of(id, bare);
	snprintf(out->object, sizeof(out->object), "%.*s", (int)n, id);
	if (node >= 0) {
		out->kind = TARGET_NODE;
		out->node = (unsigned)node;
		return;
	}
	out->kind = TARGET_LOCAL; /* only ids: this gateway answers 404 */
	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		if (strncmp(path, all[i].prefix, strlen(all[i].prefix)) == 0) {
			out->kind = n < TARGET_TEXT ? TARGET_NAME : TARGET_LOCAL;
			out->collection = all[i].collection;
		}
}

static void target_by_session(struct target *out, const struct http_req *r)
{
	const char *session = http_header(r, "mcp-session-id");
	int node = session ? target_node_of(session, strlen(session)) : -1;

	out->kind = node >= 0 ? TARGET_NODE : TARGET_CREATE;
	out->node = (unsigned)node;
}

void target_find(struct target *out, const struct http_req *r, int is_preview_host)
{
	const char *host = http_header(r, "host"), *id;
	size_t n = 0;

	*out = (struct target){ .kind = TARGET_LOCAL };
	if (target_by_header(out, r) || (host && is_preview_host && target_by_host(out, host)))
		return;
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
		if (row->kind == TARGET_NODE)
			target_by_id(out, r->path, id, n);
		else if (row->kind == TARGET_MEMBER) {
			snprintf(out->object, sizeof(out->object), "%.*s", (int)n, id);
			if (strcmp(out->object, "self") == 0) /* a gateway that is a node, too */
				out->kind = TARGET_LOCAL;
		}
		return;
	}
}
