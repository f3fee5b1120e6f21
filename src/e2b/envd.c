/* envd.c - the table of port 49983, which requires the box's token. */
#include "e2b/envd.h"
#include "api/auth.h"
#include "api/fields.h"
#include "base/cleanup.h"
#include "e2b/files.h"
#include "e2b/process.h"

static void envd_health(struct call *c)
{
	http_set(c->req, "Cache-Control", "no-store");
	call_empty(c, 204);
}

static const struct api_route rows[] = {
	/* clang-format off */
	{ "GET", "/health", NEED_NOTHING, envd_health, "check that the server is running", .query = e2b_any_query },
	{ "GET", "/metrics", NEED_VIEWER, envd_metrics, "show the resource usage of the box", .query = e2b_any_query },
	{ "GET", "/envs", NEED_VIEWER, envd_envs, "show the environment variables of the box", .query = e2b_any_query },

	/* programs */
	{ "POST", "/process.Process/Start", NEED_EDITOR, process_start, "start a process and stream its output", .query = e2b_any_query, .action = "exec.start", .flags = ROUTE_NO_FLUSH },
	{ "POST", "/process.Process/Connect", NEED_EDITOR, process_connect, "stream the output of a process from now on", .query = e2b_any_query },
	{ "POST", "/process.Process/List", NEED_EDITOR, process_list, "list running processes", .query = e2b_any_query },
	{ "POST", "/process.Process/Update", NEED_EDITOR, process_update, "set the terminal size of a process", .query = e2b_any_query, .action = "exec.resize" },
	{ "POST", "/process.Process/SendInput", NEED_EDITOR, process_send_input, "write bytes to the stdin of a process", .query = e2b_any_query, .action = "exec.stdin" },
	{ "POST", "/process.Process/StreamInput", NEED_EDITOR, process_stream_input, "write a stream of bytes to the stdin of a process", .query = e2b_any_query, .how = HTTP_BODY_STREAM, .action = "exec.stdin" },
	{ "POST", "/process.Process/SendSignal", NEED_EDITOR, process_signal, "send a signal to a process", .query = e2b_any_query, .action = "exec.signal" },
	{ "POST", "/process.Process/CloseStdin", NEED_EDITOR, process_close_stdin, "close the stdin of a process", .query = e2b_any_query, .action = "exec.stdin" },

	/* files */
	{ "POST", "/filesystem.Filesystem/Stat", NEED_VIEWER, filesystem_stat, "show type, size and times of a path", .query = e2b_any_query },
	{ "POST", "/filesystem.Filesystem/ListDir", NEED_VIEWER, filesystem_list, "list a folder", .query = e2b_any_query },
	{ "POST", "/filesystem.Filesystem/MakeDir", NEED_EDITOR, filesystem_make, "create a folder", .query = e2b_any_query, .action = "file.mkdir" },
	{ "POST", "/filesystem.Filesystem/Move", NEED_EDITOR, filesystem_move, "rename or move a path", .query = e2b_any_query, .action = "file.move" },
	{ "POST", "/filesystem.Filesystem/Remove", NEED_EDITOR, filesystem_remove, "remove a path", .query = e2b_any_query, .action = "file.delete" },
	{ "POST", "/filesystem.Filesystem/WatchDir", NEED_VIEWER, filesystem_watch, "stream the changes of a folder", .query = e2b_any_query },
	{ "POST", "/filesystem.Filesystem/CreateWatcher", NEED_VIEWER, filesystem_watcher_new, "create a watcher that stores changes of a folder", .query = e2b_any_query },
	{ "POST", "/filesystem.Filesystem/GetWatcherEvents", NEED_VIEWER, filesystem_watcher_events, "get the changes since the last call", .query = e2b_any_query },
	{ "POST", "/filesystem.Filesystem/RemoveWatcher", NEED_VIEWER, filesystem_watcher_remove, "remove a watcher", .query = e2b_any_query },
	{ "GET", "/files", NEED_NOTHING, files_http_get, "read a file", .query = e2b_any_query },
	{ "POST", "/files", NEED_NOTHING, files_http_post, "write files", .query = e2b_any_query, .how = HTTP_BODY_STREAM, .action = "file.put" },
	{ "OPTIONS", "/files", NEED_NOTHING, files_http_options, "may a page?", .query = e2b_any_query },
	{ "POST", "/files/compose", NEED_EDITOR, files_http_compose, "write one file that consists of several files", transfer_compose_fields, .query = e2b_any_query, .action = "file.put" },
	/* clang-format on */
};

/* Routes without a required token check it themselves: for a file a signature is enough. */
static int envd_admit(struct call *c)
{
	const char *has = http_header(c->req, "x-access-token");
	struct e2b_box x;

	if (c->row && c->row->need == NEED_NOTHING)
		return 1;
	e2b_box_read(e2b_find_box(c), &x);
	if (!x.token[0] || (has && e2b_same(has, x.token)))
		return 1;
	if (has && auth_failed(c->api, c->req)) {
		call_fail_throttled(c);
		return 0;
	}
	e2b_error(c, 401, has ? "the access token is not valid" : "an access token is needed");
	return 0;
}

static const struct api_format format = { .error = e2b_format_error, .admit = envd_admit };
struct api_table e2b_envd = { .rows = rows, .n = ARRAY_LEN(rows), .format = &format };
