/* interpreter.c - port 49999 of a box: cells, as E2B's code interpreter takes them. */
#include "api/fields.h"
#include "base/own.h"
#include "e2b/e2b.h"

#include <string.h>

static void health(struct call *c)
{
	http_reply(c->req, 200, "text/plain", "OK", 2);
}

static const struct api_route rows[] = {
	/* clang-format off */
	{ "GET", "/health", NEED_NOTHING, health, "is it up?", .query = e2b_any_query },
	/* clang-format on */
};

static int admit(struct call *c) /* the traffic token was looked at on the way here */
{
	(void)c;
	return 1;
}

/* Plain text: what is shown is the body. */
static void say(struct call *c, int status, const char *code, const char *message, const char *why,
		const char *hint)
{
	(void)code;
	(void)why;
	(void)hint;
	http_reply(c->req, status, "text/plain", message, strlen(message));
}

static const struct api_manner manner = { .error = say, .admit = admit };
struct api_table e2b_interpreter = { .rows = rows, .n = ARRAY_LEN(rows), .manner = &manner };
