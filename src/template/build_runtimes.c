/* build_runtimes.c - see build_runtimes.h.
 *
 *   trial box -> script: path, version, can it wait? -> a box of each waits in the pool -> ready */
#include "template/build_runtimes.h"
#include "base/cleanup.h"
#include "template/build_internal.h"
#include "template/templates.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>

/* Fields: name, path, version, "warm" or why not. init starts interpreters with a PATH of its own, so one that the template finds
 * elsewhere does not wait. Descriptor 3 is at its end: an interpreter that has loaded exits with 0. */
const char build_runtimes_script[] =
	"one() {\n"
	" name=$1 program=$2 version=$3\n"
	" shift 3\n"
	" own=$(command -v \"$program\") || return 0\n"
	" version=$(\"$own\" $version 2>&1 | tr -cd '0-9.\\n' | head -n 1 | cut -c 1-30)\n"
	" usual=$(PATH=/usr/local/bin:/usr/bin:/bin; command -v \"$program\")\n"
	" if [ \"$own\" != \"$usual\" ]; then why=\"$own is not in /usr/local/bin, /usr/bin or /bin\"\n"
	" elif why=$(\"$own\" \"$@\" warm 3</dev/null 2>&1 </dev/null); then why=warm\n"
	" else why=\"it cannot be loaded in advance: $(echo \"$why\" | tail -n 1 | cut -c 1-120)\"; fi\n"
	" printf '%s\\t%s\\t%s\\t%s\\n' \"$name\" \"$own\" \"$version\" \"$why\"\n"
	"}\n"
	"one python python3 --version /opt/atoll/zygote_python.py\n"
	"one node node --version -r /opt/atoll/zygote_node.js\n";

/* In the order of enum wire_pool_warm. */
static const char *const build_runtimes_names[] = { "python", "node" };

static int build_runtimes_known(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(build_runtimes_names); i++)
		if (!strcmp(build_runtimes_names[i], name))
			return 1;
	return 0;
}

json_t *build_runtimes_parse(const char *said)
{
	json_t *all = json_object();
	char line[512], *at, *name, *program, *version, *why;

	for (size_t n; *said; said += n + (said[n] == '\n')) {
		json_t *one;

		n = strcspn(said, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)(n < sizeof(line) ? n : sizeof(line) - 1),
			 said);
		at = line;
		name = strsep(&at, "\t");
		program = strsep(&at, "\t");
		version = strsep(&at, "\t");
		why = at;
		if (!why || !build_runtimes_known(name) || *program != '/')
			continue;
		one = json_pack("{s:s, s:s, s:b}", "program", program, "version", version, "warm",
				!strcmp(why, "warm"));
		if (!one) /* not UTF-8 */
			continue;
		if (strcmp(why, "warm") != 0)
			json_object_set_new(one, "why", json_string(why));
		json_object_set_new(all, name, one);
	}
	return all;
}

const char *build_runtimes_warm(const json_t *root, const char *name)
{
	/* Interpreters of templates have no libraries loaded. */
	const char *own = name && !strcmp(name, "python-data") ? "python" : name;
	const json_t *one = own ? json_object_get(json_object_get(root, "runtimes"), own) : NULL;

	if (!root || !name)
		return name;
	if (json_integer_value(json_object_get(root, "uid")) != BUILD_USER_ID ||
	    json_integer_value(json_object_get(root, "gid")) != BUILD_USER_ID)
		return NULL; /* they run as this user */
	return json_is_true(json_object_get(one, "warm")) ? own : NULL;
}

/* ---- pools ---- */

static void build_runtimes_next(struct build *b);

static json_t *build_runtimes_of(const struct build *b, unsigned i)
{
	return json_object_get(json_object_get(b->settings, "runtimes"), build_runtimes_names[i]);
}

static void build_runtimes_filled(void *ctx, const struct frame *f, size_t len, int *fd,
				  const struct err *e)
{
	struct build *b = ctx;
	const char *name = build_runtimes_names[b->runtime];
	json_t *one = build_runtimes_of(b, b->runtime);

	(void)len;
	(void)fd;
	b->asking = NULL;
	if (f) {
		build_log(b, "info", "%s %s waits in boxes of this template", name,
			  build_text(one, "version"));
	} else {
		build_log(b, "warn", "%s is started when it is needed: %.200s", name, e->msg);
		json_object_set_new(one, "warm", json_false());
		json_object_set_new(one, "why", json_string(e->msg));
	}
	b->runtime++;
	build_runtimes_next(b);
}

static void build_runtimes_next(struct build *b)
{
	struct wire_pool_root ask = { .head = sock_head(WIRE_POOL_ROOT, 0), .depth = 1 };

	while (b->runtime < ARRAY_LEN(build_runtimes_names) &&
	       !json_is_true(json_object_get(build_runtimes_of(b, b->runtime), "warm")))
		b->runtime++;
	if (b->runtime == ARRAY_LEN(build_runtimes_names)) {
		build_succeed(b);
		return;
	}
	ask.head.flags = WIRE_POOL_ONCE;
	ask.limits = build_pool_limits(b->all, &b->row);
	snprintf(ask.root, sizeof(ask.root), "%s", b->row.root);
	ask.warm = WIRE_POOL_PYTHON + b->runtime;
	b->asking = keeper_client_request(&b->all->fleet->keeper, &ask, sizeof(ask), WIRE_DONE,
					  build_runtimes_filled, b);
}

void build_runtimes_pool(struct build *b)
{
	const char *name;
	json_t *one;

	json_object_foreach(json_object_get(b->settings, "runtimes"), name,
			    one) if (!json_is_true(json_object_get(one, "warm")))
		build_log(b, "info", "%s %s is started when it is needed: %s", name,
			  build_text(one, "version"), build_text(one, "why"));
	b->runtime = 0;
	build_runtimes_next(b);
}

unsigned build_runtimes_warms(const char *settings)
{
	json_t *doc = settings ? json_loads(settings, 0, NULL) : NULL;
	unsigned bits = 0;

	for (unsigned i = 0; i < ARRAY_LEN(build_runtimes_names); i++)
		if (json_is_true(json_object_get(json_object_get(json_object_get(doc, "runtimes"),
								 build_runtimes_names[i]),
						 "warm")))
			bits |= 1u << (WIRE_POOL_PYTHON + i);
	json_decref(doc);
	return bits;
}

/* 1: all interpreters can wait. For others the reason may no longer hold. */
static int build_runtimes_all_warm(json_t *runtimes)
{
	const char *name;
	json_t *one;

	json_object_foreach(runtimes, name,
			    one) if (!json_is_true(json_object_get(one, "warm"))) return 0;
	return runtimes != NULL;
}

int build_runtimes_known_before(struct build *b)
{
	struct store_tag tag;
	struct store_build row;
	json_t *settings, *found;
	struct err e;
	int same;

	if (!b->row.root[0])
		return 1; /* no layer: its boxes are those of base */
	if (store_tag_get(b->all->fleet->store, b->row.template, TEMPLATE_TAG, &tag, &e) < 0 ||
	    store_build_get(b->all->fleet->store, tag.build, &row, &e) < 0)
		return 0;
	settings = row.settings ? json_loads(row.settings, 0, NULL) : NULL;
	found = json_object_get(settings, "runtimes");
	same = build_runtimes_all_warm(found) && !strcmp(row.root, b->row.root);
	if (same)
		json_object_set(b->settings, "runtimes", found);
	json_decref(settings);
	store_build_fini(&row);
	return same;
}
