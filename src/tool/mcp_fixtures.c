/* mcp_fixtures.c - what the public conformance suite wants a server to have. Test builds only: these do
 * nothing and say what the suite expects. */
#include "base/own.h"
#include "tool/mcp.h"

#ifdef ATOLL_TEST
#include <string.h>

/* One red pixel; and a sound of no length. */
#define PNG "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
#define TEXT(text) "{\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}"
#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"
#define MESSAGE(content) "{\"role\":\"user\",\"content\":" content "}"

struct fixture {
	const char *method, *name, *result;
	void (*before)(struct mcp_call *m);
};

static void progresses(struct mcp_call *m)
{
	mcp_stream(m);
	for (int at = 0; m->token && m->streaming && at <= 100; at += 50)
		mcp_notify(m, "notifications/progress",
			   json_pack("{s:O, s:i, s:i}", "progressToken", m->token, "progress", at,
				     "total", 100));
}

static void logs(struct mcp_call *m)
{
	static const char *const said[] = { "Tool execution started", "Tool processing data",
					    "Tool execution completed" };

	mcp_stream(m);
	for (unsigned i = 0; m->level >= 0 && m->level <= 1 && m->streaming && i < 3; i++)
		mcp_notify(m, "notifications/message",
			   json_pack("{s:s, s:s}", "level", "info", "data", said[i]));
}

static const struct fixture fixtures[] = {
	{ "tools/call", "test_simple_text", TEXT("This is a simple text response for testing."), NULL },
	{ "tools/call", "test_image_content", "{\"content\":[" IMAGE "]}", NULL },
	{ "tools/call", "test_audio_content",
	  "{\"content\":[{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}]}", NULL },
	{ "tools/call", "test_embedded_resource",
	  "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
	  "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource content.\"}}]}", NULL },
	{ "tools/call", "test_multiple_content_types",
	  "{\"content\":[{\"type\":\"text\",\"text\":\"Multiple content types test:\"}," IMAGE
	  ",{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\",\"mimeType\":"
	  "\"application/json\",\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\"}}]}", NULL },
	{ "tools/call", "test_error_handling",
	  "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":"
	  "\"This tool intentionally returns an error for testing\"}]}", NULL },
	{ "tools/call", "test_tool_with_progress", TEXT("done"), progresses },
	{ "tools/call", "test_tool_with_logging", TEXT("done"), logs },
	{ "tools/call", "test_logging_tool", TEXT("done"), logs },
	{ "tools/call", "test_streaming_elicitation", TEXT("nothing is asked"), mcp_stream },
	{ "tools/call", "test_missing_capability", TEXT("it was declared"), NULL },
	{ "prompts/get", "test_simple_prompt",
	  "{\"messages\":[" MESSAGE("{\"type\":\"text\",\"text\":\"This is a simple prompt for testing.\"}") "]}", NULL },
	{ "prompts/get", "test_prompt_with_arguments",
	  "{\"messages\":[" MESSAGE("{\"type\":\"text\",\"text\":\"Prompt with arguments: arg1='$arg1', arg2='$arg2'\"}") "]}", NULL },
	{ "prompts/get", "test_prompt_with_embedded_resource",
	  "{\"messages\":[" MESSAGE("{\"type\":\"resource\",\"resource\":{\"uri\":\"$resourceUri\",\"mimeType\":"
	  "\"text/plain\",\"text\":\"Embedded resource content for testing.\"}}") ","
	  MESSAGE("{\"type\":\"text\",\"text\":\"Please process the embedded resource above.\"}") "]}", NULL },
	{ "prompts/get", "test_prompt_with_image",
	  "{\"messages\":[" MESSAGE(IMAGE) "," MESSAGE("{\"type\":\"text\",\"text\":\"Please analyze the image above.\"}") "]}", NULL },
	{ "resources/read", "test://static-text",
	  "{\"contents\":[{\"uri\":\"test://static-text\",\"mimeType\":\"text/plain\",\"text\":"
	  "\"This is the content of the static text resource.\"}]}", NULL },
	{ "resources/read", "test://static-binary",
	  "{\"contents\":[{\"uri\":\"test://static-binary\",\"mimeType\":\"image/png\",\"blob\":\"" PNG "\"}]}", NULL },
	{ "resources/read", "test://template/123/data",
	  "{\"contents\":[{\"uri\":\"test://template/123/data\",\"mimeType\":\"application/json\",\"text\":"
	  "\"{\\\"id\\\":\\\"123\\\",\\\"templateTest\\\":true,\\\"data\\\":\\\"Data for ID: 123\\\"}\"}]}", NULL },
};

/* "$name" is where an argument goes. */
static json_t *filled(const char *text, const json_t *args)
{
	auto_buf struct buf out = { 0 };

	for (; *text; text++) {
		const char *name;
		json_t *v;
		size_t n = 0;

		json_object_foreach((json_t *)args, name, v)
			if (*text == '$' && !n && !strncmp(text + 1, name, strlen(name)) && json_is_string(v)) {
				buf_puts(&out, json_string_value(v));
				n = strlen(name);
			}
		if (!n)
			buf_putc(&out, *text);
		text += n;
	}
	return json_loads(buf_str(&out), 0, NULL);
}

/* A client that has not said that it can sample is not asked to. */
static int lacks_capability(struct mcp_call *m, const char *name)
{
	const json_t *can = json_object_get(json_object_get(m->params, "_meta"),
					    MCP_META "clientCapabilities");

	if (strcmp(name, "test_missing_capability") != 0 || json_object_get(can, "sampling"))
		return 0;
	mcp_error(m, 400, -32021, json_pack("{s:{s:{}}}", "requiredCapabilities", "sampling"),
		  "the client must be able to sample");
	return 1;
}

int mcp_fixture(struct mcp_call *m)
{
	const char *name = json_string_value(json_object_get(
		m->params, !strcmp(m->method, "resources/read") ? "uri" : "name"));

	for (unsigned i = 0; name && i < ARRAY_LEN(fixtures); i++) {
		const struct fixture *f = &fixtures[i];

		if (strcmp(f->method, m->method) != 0 || strcmp(f->name, name) != 0)
			continue;
		if (lacks_capability(m, name))
			return 1;
		if (f->before)
			f->before(m);
		if (!strcmp(m->method, "resources/read"))
			mcp_cached(m, filled(f->result, NULL), 0);
		else
			mcp_result(m, filled(f->result, json_object_get(m->params, "arguments")));
		return 1;
	}
	return 0;
}

void mcp_list_fixtures(json_t *tools_array)
{
	for (unsigned i = 0; i < ARRAY_LEN(fixtures); i++)
		if (!strcmp(fixtures[i].method, "tools/call"))
			json_array_append_new(tools_array,
					      json_pack("{s:s, s:s, s:{s:s, s:b}}", "name",
							fixtures[i].name, "description",
							"of the conformance suite", "inputSchema",
							"type", "object", "additionalProperties", 0));
}
#else
int mcp_fixture(struct mcp_call *m)
{
	(void)m;
	return 0;
}

void mcp_list_fixtures(json_t *tools_array)
{
	(void)tools_array;
}
#endif
