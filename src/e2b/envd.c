/* envd.c - the table of port 49983, and who may use it: whoever has the box's token. */
#include "e2b/envd.h"
#include "api/fields.h"
#include "base/own.h"

static void health(struct call *c)
{
	http_set(c->req, "Cache-Control", "no-store");
	call_empty(c, 204);
}

static const struct api_route rows[] = {
	/* clang-format off */
	{ "GET", "/health", NEED_NOTHING, health, "is it up?", .query = e2b_any_query },

	/* programs */

	/* files */
	/* clang-format on */
};

/* Rows that need nothing look for themselves: a signature will do for a file. */
static int admit(struct call *c)
{
	const char *has = http_header(c->req, "x-access-token");
	struct e2b_box x;

	if (c->row && c->row->need == NEED_NOTHING)
		return 1;
	e2b_box_read(e2b_berth(c), &x);
	if (!x.token[0] || (has && e2b_same(has, x.token)))
		return 1;
	e2b_error(c, 401, has ? "the access token is not valid" : "an access token is needed");
	return 0;
}

static const struct api_manner manner = { .error = e2b_manner_error, .admit = admit };
struct api_table e2b_envd = { .rows = rows, .n = ARRAY_LEN(rows), .manner = &manner };
