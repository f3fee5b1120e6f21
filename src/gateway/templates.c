/* templates.c - which node has a template. All templates of a team are built on its own node, the first by a hash of the
 * team and the number, so that uploads, builds and aliases meet; boxes of a template are created where it is. A team
 * whose own node has changed, because nodes joined or left, keeps its older templates: they are found by asking all nodes.
 *
 * Templates that are a part of the server exist on every node. What was found counts for TEMPLATES_HIT_MS. */
#include "gateway/gateway_call.h"
#include "gateway/moved.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { TEMPLATES_HIT_MS = 2000 };

/* ---- what was found a moment ago ---- */

static struct gateway_template *templates_slot(const struct gateway_call *x, const char *path)
{
	uint64_t hash = control_hash(x->call->who.team) * 31 + control_hash(path);

	return &x->gateway->templates[hash % GATEWAY_TEMPLATES];
}

static int templates_is_known(const struct gateway_call *x, const struct gateway_template *t,
			      const char *path)
{
	return t->until_ms > loop_now_ms() && strcmp(t->team, x->call->who.team) == 0 &&
	       strcmp(t->path, path) == 0;
}

/* What exists on every node is remembered for creations only: a build of that name may follow. */
static void templates_end(struct gateway_call *x, int node)
{
	struct gateway_template *t = templates_slot(x, x->template_path);

	if (node >= 0 && (!x->is_common || x->target.kind == TARGET_CREATE)) {
		t->until_ms = loop_now_ms() + TEMPLATES_HIT_MS;
		t->node = (unsigned)node;
		t->is_common = x->is_common;
		snprintf(t->team, sizeof(t->team), "%s", x->call->who.team);
		snprintf(t->path, sizeof(t->path), "%s", x->template_path);
	}
	x->template_found(x, node);
}

/* E2B's clients use a snapshot by its name like a template. */
static void templates_found(struct gateway_call *x, int node)
{
	if (node < 0 && !x->missing[0] && x->target.is_e2b)
		find_begin(x, "/v1/snapshots", x->template_path, templates_end);
	else
		templates_end(x, node);
}

/* ---- references ---- */

/* "team/name:tag" as a name in the path /v1/templates/NAME. 0: no template has this name. */
static int templates_path(const char *reference, char out[GATEWAY_TEMPLATE])
{
	size_t n = 0;

	for (; *reference && n + 4 < GATEWAY_TEMPLATE; reference++) {
		if (*reference == '/' || *reference == ':')
			n += (size_t)snprintf(out + n, GATEWAY_TEMPLATE - n, "%%%02X", *reference);
		else if (isalnum((unsigned char)*reference) || strchr("-_.", *reference))
			out[n++] = *reference;
		else
			return 0;
	}
	out[n] = 0;
	return n > 0 && !*reference;
}

/* A segment of a path as a reference: with / and : in place of %2F and %3A. */
static void templates_decode(const char *segment, char out[TARGET_TEXT])
{
	size_t n = 0;

	while (*segment && n + 1 < TARGET_TEXT) {
		int is_slash = strncasecmp(segment, "%2f", 3) == 0,
		    is_colon = strncasecmp(segment, "%3a", 3) == 0;

		out[n++] = is_slash ? '/' : is_colon ? ':' : *segment;
		segment += is_slash || is_colon ? 3 : 1;
	}
	out[n] = 0;
}

/* The id of a build in place of a name: 8-4-4-4-12 hexadecimal digits. */
static int templates_is_build(const char *reference)
{
	return strlen(reference) == 36 && reference[8] == '-' && reference[13] == '-' &&
	       reference[18] == '-' && reference[23] == '-' &&
	       strspn(reference, "0123456789abcdefABCDEF-") == 36;
}

void templates_find(struct gateway_call *x, const char *reference,
		    void (*found)(struct gateway_call *x, int node))
{
	const struct gateway_template *t;
	int is_build = templates_is_build(reference);

	x->template_found = found;
	x->is_common = 0;
	x->missing[0] = 0;
	if (!templates_path(reference, x->template_path)) {
		found(x, -1);
		return;
	}
	t = templates_slot(x, x->template_path);
	if (templates_is_known(x, t, x->template_path) &&
	    (!t->is_common || x->target.kind == TARGET_CREATE)) {
		x->is_common = t->is_common;
		found(x, (int)t->node);
		return;
	}
	find_begin(x, is_build ? "/v1/builds" : TARGET_TEMPLATES, x->template_path,
		   templates_found);
}

void templates_go(struct gateway_call *x)
{
	char reference[TARGET_TEXT];

	templates_decode(x->target.object, reference);
	templates_find(x, reference, gateway_named);
}

/* ---- a new build ---- */

static void templates_build_at(struct gateway_call *x, int node)
{
	if (node < 0)
		node = create_own_node(x, "templates", "");
	if (node >= 0)
		forward_begin(x, (unsigned)node);
	else
		forward_fail_unreachable(x, "no node is connected");
}

static void templates_build_found(struct gateway_call *x, int node)
{
	if (node < 0 && x->missing[0])
		find_fail_missing(x);
	else
		templates_build_at(x, x->is_common ? -1 : node);
}

void templates_create(struct gateway_call *x)
{
	const char *box = json_string_value(json_object_get(x->doc, "from_box")),
		   *name = json_string_value(json_object_get(x->doc, "name")),
		   *alias = json_string_value(json_object_get(x->doc, "alias"));
	int node = box ? gateway_moved_node(x->gateway->moved, box, strlen(box)) : -1;

	name = name ? name : alias;
	if (node >= 0)
		forward_begin(x, (unsigned)node);
	else if (box && target_is_plain_name(box))
		find_begin(x, "/v1/boxes", box, templates_build_at);
	else if (name)
		templates_find(x, name, templates_build_found);
	else
		templates_build_at(x, -1);
}
