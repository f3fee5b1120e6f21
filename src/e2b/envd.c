/* envd.c - the table of port 49983, and who may use it: whoever has the box's token. */
#include "e2b/envd.h"
#include "api/fields.h"
#include "base/own.h"
#include "e2b/process.h"

static void health(struct call *c)
{
	http_set(c->req, "Cache-Control", "no-store");
	call_empty(c, 204);
}

static const struct api_route rows[] = {
	/* clang-format off */
	{ "GET", "/health", NEED_NOTHING, health, "is it up?", .query = e2b_any_query },

	/* programs */
	{ "POST", "/process.Process/Start", NEED_EDITOR, process_start, "a program, and all it says", .query = e2b_any_query, .action = "exec.start" },
	{ "POST", "/process.Process/Connect", NEED_EDITOR, process_connect, "what one says from now on", .query = e2b_any_query },
	{ "POST", "/process.Process/List", NEED_EDITOR, process_list, "those that run", .query = e2b_any_query },
	{ "POST", "/process.Process/Update", NEED_EDITOR, process_update, "another size of its terminal", .query = e2b_any_query, .action = "exec.resize" },
	{ "POST", "/process.Process/SendInput", NEED_EDITOR, process_send_input, "bytes for its input", .query = e2b_any_query, .action = "exec.stdin" },
	{ "POST", "/process.Process/StreamInput", NEED_EDITOR, process_stream_input, "many of them", .query = e2b_any_query, .how = HTTP_BODY_STREAM, .action = "exec.stdin" },
	{ "POST", "/process.Process/SendSignal", NEED_EDITOR, process_signal, "ends one", .query = e2b_any_query, .action = "exec.signal" },
	{ "POST", "/process.Process/CloseStdin", NEED_EDITOR, process_close_stdin, "the end of its input", .query = e2b_any_query, .action = "exec.stdin" },

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
