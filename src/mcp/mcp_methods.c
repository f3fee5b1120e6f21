/* mcp_methods.c - the methods of a client, by protocol version. */
#include "base/cleanup.h"
#include "mcp/mcp.h"

#include <string.h>

enum { LIST_TTL_MS = 60000 };

static const char instructions[] =
	"Atoll runs code in boxes: small Linux sandboxes with their own files and processes. Every tool takes "
	"`box`, an id or a name; without it your own box is used, which is made when it is first needed and keeps "
	"its files. Relative paths are below /home/user.";

static const char *const old_versions[] = { MCP_NEWEST_OLD, "2025-06-18", "2025-03-26" };

const char *mcp_old_version(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(old_versions); i++)
		if (!strcmp(old_versions[i], name))
			return old_versions[i];
	return NULL;
}

int mcp_level(const char *name)
{
	static const char *const levels[] = { "debug", "info",     "notice", "warning",
					      "error", "critical", "alert",  "emergency" };

	for (unsigned i = 0; i < ARRAY_LEN(levels); i++)
		if (!strcmp(levels[i], name))
			return (int)i;
	return -1;
}

static json_t *mcp_do_capabilities(void)
{
	json_t *all = json_pack("{s:{s:b}, s:{s:b, s:b}, s:{s:b}, s:{}}", "tools", "listChanged", 0,
				"resources", "listChanged", 0, "subscribe", 0, "prompts",
				"listChanged", 0, "completions");

	json_object_set_new(all, "logging", json_object());
	return all;
}

/* ---- the handshake ---- */

static void mcp_initialize(struct mcp_call *m)
{
	const char *asked = json_string_value(json_object_get(m->params, "protocolVersion"));
	const char *version = asked ? mcp_old_version(asked) : NULL;
	struct err e;

	if (!asked) {
		mcp_error(m, 200, RPC_PARAMS, NULL, "protocolVersion: is missing");
		return;
	}
	if (mcp_session_begin(m, json_object_get(m->params, "capabilities"), &e) < 0) {
		mcp_error(m, 503, RPC_INTERNAL, NULL, "a session cannot begin: %s", e.msg);
		return;
	}
	http_set(m->call->req, "Mcp-Session-Id", "%s", m->session_id);
	mcp_result(m, json_pack("{s:s, s:o, s:{s:s, s:s, s:s}, s:s}", "protocolVersion",
				version ? version : MCP_NEWEST_OLD, "capabilities",
				mcp_do_capabilities(), "serverInfo", "name", "atoll", "title",
				"Atoll", "version", ATOLL_VERSION, "instructions", instructions));
}

static void mcp_discover(struct mcp_call *m)
{
	mcp_cached(m,
		   json_pack("{s:[s], s:o, s:s}", "supportedVersions", MCP_MODERN, "capabilities",
			     mcp_do_capabilities(), "instructions", instructions),
		   LIST_TTL_MS);
}

static void mcp_ping(struct mcp_call *m)
{
	mcp_result(m, json_object());
}

static void set_level(struct mcp_call *m)
{
	const char *name = json_string_value(json_object_get(m->params, "level"));
	int level = name ? mcp_level(name) : -1;
	struct err e;

	if (level < 0) {
		mcp_error(m, 200, RPC_PARAMS, NULL, "level: is none of debug ... emergency");
		return;
	}
	if (store_mcp_session_set_level(m->call->api->store, m->session_id, level, &e) < 0)
		mcp_error(m, 200, RPC_INTERNAL, NULL, "the level cannot be kept: %s", e.msg);
	else
		mcp_result(m, json_object());
}

/* Everything fits on one page, so every cursor is invalid. 0: there is one, and the error was
 * sent. */
static int first_page(struct mcp_call *m)
{
	const json_t *cursor = json_object_get(m->params, "cursor");

	if (!cursor || json_is_null(cursor))
		return 1;
	mcp_error(m, 200, RPC_PARAMS, NULL, "cursor: is none of ours");
	return 0;
}

static void tools_list(struct mcp_call *m)
{
	json_t *all;

	if (!first_page(m))
		return;
	all = tools_json(TOOLS_MCP);
	mcp_list_fixtures(all);
	mcp_cached(m, json_pack("{s:o}", "tools", all), LIST_TTL_MS);
}

/* ---- the table ---- */

enum { OLD = 1, MODERN = 2, BOTH = 3 };

static const struct {
	const char *name;
	int eras;
	void (*run)(struct mcp_call *m);
} methods[] = {
	{ "initialize", OLD, mcp_initialize },
	{ "ping", OLD, mcp_ping },
	{ "logging/setLevel", OLD, set_level },
	{ "server/discover", MODERN, mcp_discover },
	{ "tools/list", BOTH, tools_list },
	{ "tools/call", BOTH, mcp_tools_call },
	{ "resources/list", BOTH, mcp_resources_list },
	{ "resources/templates/list", BOTH, mcp_templates_list },
	{ "resources/read", BOTH, mcp_resources_read },
	{ "prompts/list", BOTH, mcp_prompts_list },
	{ "prompts/get", BOTH, mcp_prompts_get },
	{ "completion/complete", BOTH, mcp_complete },
};

void mcp_method(struct mcp_call *m)
{
	int era = m->modern ? MODERN : OLD;

	if (mcp_fixture(m))
		return;
	for (unsigned i = 0; i < ARRAY_LEN(methods); i++)
		if (methods[i].eras & era && !strcmp(methods[i].name, m->method)) {
			methods[i].run(m);
			return;
		}
	mcp_error(m, m->modern ? 404 : 200, RPC_METHOD, NULL, "there is no method '%.60s'",
		  m->method);
}
