/* mcp_fixtures.c - tools and resources for the public conformance suite. Test builds only: they do
 * nothing and return what the suite expects. */
#include "base/cleanup.h"
#include "mcp/mcp.h"

#ifdef ATOLL_TEST
#include <string.h>

/* One red pixel; and an empty sound. */
#define PNG                                                                                        \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
#define TEXT(text) "{\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}"
#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"
#define MESSAGE(content) "{\"role\":\"user\",\"content\":" content "}"

#define ASK(key, method, params) "\"" key "\":{\"method\":\"" method "\",\"params\":{" params "}}"
#define FORM(message, properties, required)                                                        \
	"\"message\":\"" message                                                                   \
	"\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{" properties "},"             \
	"\"required\":[" required "]}"
#define SAMPLE(text)                                                                               \
	"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text         \
	"\"}}],\"maxTokens\":100"
#define IS(name, type) "\"" name "\":{\"type\":\"" type "\"}"
#define NAME                                                                                       \
	ASK("user_name", "elicitation/create",                                                     \
	    FORM("What is your name?", IS("name", "string"), "\"name\""))
#define CONFIRM                                                                                    \
	ASK("confirm", "elicitation/create", FORM("Please confirm", IS("ok", "boolean"), "\"ok\""))
#define ROOTS ASK("client_roots", "roots/list", "")
#define TITLED(a, b)                                                                               \
	"{\"const\":\"value1\",\"title\":\"" a "\"},{\"const\":\"value2\",\"title\":\"" b "\"}"
#define OPTIONS "\"option1\",\"option2\",\"option3\""

struct fixture {
	const char *method, *name, *result;
	void (*before)(struct mcp_call *m);
	const char *asks[2]; /* rounds of questions to the client: {key: {method, params}} */
	int keeps;           /* which round it is, in a sealed state */
};

static void fixture_progresses(struct mcp_call *m)
{
	mcp_stream(m);
	for (int at = 0; m->token && m->streaming && at <= 100; at += 50)
		mcp_notify(m, "notifications/progress",
			   json_pack("{s:O, s:i, s:i}", "progressToken", m->token, "progress", at,
				     "total", 100));
}

static void fixture_logs(struct mcp_call *m)
{
	static const char *const said[] = { "Tool execution started", "Tool processing data",
					    "Tool execution completed" };

	mcp_stream(m);
	for (unsigned i = 0; m->level >= 0 && m->level <= 1 && m->streaming && i < 3; i++)
		mcp_notify(m, "notifications/message",
			   json_pack("{s:s, s:s}", "level", "info", "data", said[i]));
}

/* A parameter that a header repeats. */
static void fixture_mirrored(struct mcp_call *m)
{
	const json_t *args = json_object_get(m->params, "arguments");

	if (m->modern)
		(void)!mcp_mirrors(m, "mcp-param-region",
				   json_string_value(json_object_get(args, "region")));
}

static const struct fixture fixtures[] = {
	/* clang-format off */
	{ "tools/call", "test_simple_text", TEXT("This is a simple text response for testing."), NULL, { NULL }, 0 },
	{ "tools/call", "test_image_content", "{\"content\":[" IMAGE "]}", NULL, { NULL }, 0 },
	{ "tools/call", "test_audio_content",
	  "{\"content\":[{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}]}", NULL, { NULL }, 0 },
	{ "tools/call", "test_embedded_resource",
	  "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
	  "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource content.\"}}]}", NULL, { NULL }, 0 },
	{ "tools/call", "test_multiple_content_types",
	  "{\"content\":[{\"type\":\"text\",\"text\":\"Multiple content types test:\"}," IMAGE
	  ",{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\",\"mimeType\":"
	  "\"application/json\",\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\"}}]}", NULL, { NULL }, 0 },
	{ "tools/call", "test_error_handling",
	  "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":"
	  "\"This tool intentionally returns an error for testing\"}]}", NULL, { NULL }, 0 },
	{ "tools/call", "test_tool_with_progress", TEXT("done"), fixture_progresses, { NULL }, 0 },
	{ "tools/call", "test_tool_with_logging", TEXT("done"), fixture_logs, { NULL }, 0 },
	{ "tools/call", "test_logging_tool", TEXT("done"), fixture_logs, { NULL }, 0 },
	{ "tools/call", "test_streaming_elicitation", TEXT("nothing is asked"), mcp_stream, { NULL }, 0 },
	{ "tools/call", "test_missing_capability", TEXT("it was declared"), NULL, { NULL }, 0 },
	{ "tools/call", "test_sampling", TEXT("LLM response: it came"), NULL,
	  { "{" ASK("s", "sampling/createMessage", SAMPLE("$prompt")) "}" }, 0 },
	{ "tools/call", "test_elicitation", TEXT("User response: it came"), NULL,
	  { "{" ASK("e", "elicitation/create", FORM("$message", IS("username", "string") "," IS("email", "string"),
	    "\"username\",\"email\"")) "}" }, 0 },
	{ "tools/call", "test_elicitation_sep1034_defaults", TEXT("Elicitation completed"), NULL,
	  { "{" ASK("e", "elicitation/create", FORM("Check these", "\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
	    "\"age\":{\"type\":\"integer\",\"default\":30},\"score\":{\"type\":\"number\",\"default\":95.5},"
	    "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],\"default\":\"active\"},"
	    "\"verified\":{\"type\":\"boolean\",\"default\":true}", "")) "}" }, 0 },
	{ "tools/call", "test_elicitation_sep1330_enums", TEXT("Elicitation completed"), NULL,
	  { "{" ASK("e", "elicitation/create", FORM("Choose", "\"untitledSingle\":{\"type\":\"string\",\"enum\":[" OPTIONS "]},"
	    "\"titledSingle\":{\"type\":\"string\",\"oneOf\":[" TITLED("First Option", "Second Option") "]},"
	    "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\"],\"enumNames\":[\"Option One\",\"Option Two\"]},"
	    "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[" OPTIONS "]}},"
	    "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":[" TITLED("First Choice", "Second Choice") "]}}", "")) "}" }, 0 },
	{ "tools/call", "test_input_required_result_elicitation", TEXT("Hello!"), NULL, { "{" NAME "}" }, 0 },
	{ "tools/call", "test_input_required_result_sampling", TEXT("it came"), NULL,
	  { "{" ASK("capital_question", "sampling/createMessage", SAMPLE("What is the capital of France?")) "}" }, 0 },
	{ "tools/call", "test_input_required_result_list_roots", TEXT("they came"), NULL, { "{" ROOTS "}" }, 0 },
	{ "tools/call", "test_input_required_result_request_state", TEXT("state-ok"), NULL, { "{" CONFIRM "}" }, 1 },
	{ "tools/call", "test_input_required_result_tampered_state", TEXT("state-ok"), NULL, { "{" CONFIRM "}" }, 1 },
	{ "tools/call", "test_input_required_result_multiple_inputs", TEXT("all came"), NULL,
	  { "{" NAME "," ASK("greeting", "sampling/createMessage", SAMPLE("Generate a greeting")) "," ROOTS "}" }, 1 },
	{ "tools/call", "test_input_required_result_multi_round", TEXT("both came"), NULL,
	  { "{" ASK("step1", "elicitation/create", FORM("Step 1: What is your name?", IS("name", "string"), "\"name\"")) "}",
	    "{" ASK("step2", "elicitation/create", FORM("Step 2: What is your favorite color?", IS("color", "string"), "\"color\"")) "}" }, 1 },
	{ "tools/call", "test_input_required_result_capabilities", TEXT("it came"), NULL,
	  { "{" NAME "," ASK("greeting", "sampling/createMessage", SAMPLE("Generate a greeting")) "}" }, 0 },
	{ "tools/call", "json_schema_2020_12_tool", TEXT("done"), NULL, { NULL }, 0 },
	{ "tools/call", "test_custom_headers", TEXT("done"), fixture_mirrored, { NULL }, 0 },
	{ "prompts/get", "test_input_required_result_prompt",
	  "{\"messages\":[" MESSAGE("{\"type\":\"text\",\"text\":\"Use this context.\"}") "]}", NULL,
	  { "{" ASK("user_context", "elicitation/create", FORM("What context should the prompt use?", IS("context", "string"), "\"context\"")) "}" }, 0 },
	{ "resources/subscribe", "test://watched-resource", "{}", NULL, { NULL }, 0 },
	{ "resources/unsubscribe", "test://watched-resource", "{}", NULL, { NULL }, 0 },
	{ "prompts/get", "test_simple_prompt",
	  "{\"messages\":[" MESSAGE("{\"type\":\"text\",\"text\":\"This is a simple prompt for testing.\"}") "]}", NULL, { NULL }, 0 },
	{ "prompts/get", "test_prompt_with_arguments",
	  "{\"messages\":[" MESSAGE("{\"type\":\"text\",\"text\":\"Prompt with arguments: arg1='$arg1', arg2='$arg2'\"}") "]}", NULL, { NULL }, 0 },
	{ "prompts/get", "test_prompt_with_embedded_resource",
	  "{\"messages\":[" MESSAGE("{\"type\":\"resource\",\"resource\":{\"uri\":\"$resourceUri\",\"mimeType\":"
	  "\"text/plain\",\"text\":\"Embedded resource content for testing.\"}}") ","
	  MESSAGE("{\"type\":\"text\",\"text\":\"Please process the embedded resource above.\"}") "]}", NULL, { NULL }, 0 },
	{ "prompts/get", "test_prompt_with_image",
	  "{\"messages\":[" MESSAGE(IMAGE) "," MESSAGE("{\"type\":\"text\",\"text\":\"Please analyze the image above.\"}") "]}", NULL, { NULL }, 0 },
	{ "resources/read", "test://static-text",
	  "{\"contents\":[{\"uri\":\"test://static-text\",\"mimeType\":\"text/plain\",\"text\":"
	  "\"This is the content of the static text resource.\"}]}", NULL, { NULL }, 0 },
	{ "resources/read", "test://static-binary",
	  "{\"contents\":[{\"uri\":\"test://static-binary\",\"mimeType\":\"image/png\",\"blob\":\"" PNG "\"}]}", NULL, { NULL }, 0 },
	{ "resources/read", "test://template/123/data",
	  "{\"contents\":[{\"uri\":\"test://template/123/data\",\"mimeType\":\"application/json\",\"text\":"
	  "\"{\\\"id\\\":\\\"123\\\",\\\"templateTest\\\":true,\\\"data\\\":\\\"Data for ID: 123\\\"}\"}]}", NULL, { NULL }, 0 },
	/* clang-format on */
};

/* "$name" is replaced by an argument. */
static json_t *fixture_filled(const char *text, const json_t *args)
{
	auto_buf struct buf out = { 0 };

	for (; *text; text++) {
		const char *name;
		json_t *v;
		size_t n = 0;

		json_object_foreach((json_t *)args, name,
				    v) if (*text == '$' && !n &&
					   !strncmp(text + 1, name, strlen(name)) &&
					   json_is_string(v))
		{
			buf_puts(&out, json_string_value(v));
			n = strlen(name);
		}
		if (!n)
			buf_putc(&out, *text);
		text += n;
	}
	return json_loads(buf_str(&out), 0, NULL);
}

/* A client without the sampling capability gets no sampling request. */
static int lacks_capability(struct mcp_call *m, const char *name)
{
	const json_t *can =
		json_object_get(json_object_get(m->params, "_meta"), MCP_META "clientCapabilities");

	if (strcmp(name, "test_missing_capability") != 0 || json_object_get(can, "sampling"))
		return 0;
	mcp_error(m, 400, -32021, json_pack("{s:{s:{}}}", "requiredCapabilities", "sampling"),
		  "the client must be able to sample");
	return 1;
}

/* The questions that the client supports and has not answered. */
static json_t *fixture_unanswered(const struct mcp_call *m, const char *asks)
{
	json_t *all = fixture_filled(asks, json_object_get(m->params, "arguments")), *one;
	const char *key;
	void *next;

	json_object_foreach_safe(
		all, next, key,
		one) if (mcp_answer(m, key) ||
			 !mcp_can(m, json_string_value(json_object_get(one, "method"))))
		json_object_del(all, key);
	return all;
}

/* 1: an input is missing, and it was requested from the client. */
static int fixture_asks(struct mcp_call *m, const struct fixture *f)
{
	json_t *state, *need;
	unsigned round;

	if (mcp_state(m, &state) < 0)
		return 1;
	round = (unsigned)json_integer_value(state);
	json_decref(state);
	need = fixture_unanswered(m, f->asks[round < 2 ? round : 0]);
	if (!json_object_size(need) && round < 1 && f->asks[1]) {
		json_decref(need);
		need = fixture_unanswered(m, f->asks[++round]);
	}
	if (json_object_size(need)) {
		mcp_need(m, need, f->keeps ? json_integer(round) : NULL);
		return 1;
	}
	json_decref(need);
	return 0;
}

int mcp_fixture(struct mcp_call *m)
{
	const char *name = json_string_value(
		json_object_get(m->params, !strncmp(m->method, "resources/", 10) ? "uri" : "name"));

	for (unsigned i = 0; name && i < ARRAY_LEN(fixtures); i++) {
		const struct fixture *f = &fixtures[i];

		if (strcmp(f->method, m->method) != 0 || strcmp(f->name, name) != 0)
			continue;
		if (lacks_capability(m, name))
			return 1;
		if (f->asks[0] && fixture_asks(m, f))
			return 1;
		if (f->before)
			f->before(m);
		if (m->call->req->status && !m->streaming) /* the error was sent there */
			return 1;
		if (!strcmp(m->method, "resources/read"))
			mcp_cached(m, fixture_filled(f->result, NULL), 0);
		else
			mcp_result(m, fixture_filled(f->result,
						     json_object_get(m->params, "arguments")));
		return 1;
	}
	return 0;
}

/* Schemas that the suite checks; other tools need none. */
static json_t *schema_of(const char *name)
{
	if (!strcmp(name, "test_custom_headers"))
		return json_loads(
			"{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
			"\"x-mcp-header\":\"Region\"}}}",
			0, NULL);
	if (!strcmp(name, "json_schema_2020_12_tool"))
		return json_loads(
			"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
			"\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"
			"\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},\"properties\":{"
			"\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"
			"\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
			"\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
			"\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
			"\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},\"required\":[\"contactMethod\"]},"
			"\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"
			"\"additionalProperties\":false}",
			0, NULL);
	return json_pack("{s:s, s:b}", "type", "object", "additionalProperties", 0);
}

void mcp_list_fixtures(json_t *tools_array)
{
	for (unsigned i = 0; i < ARRAY_LEN(fixtures); i++)
		if (!strcmp(fixtures[i].method, "tools/call"))
			json_array_append_new(
				tools_array, json_pack("{s:s, s:s, s:o}", "name", fixtures[i].name,
						       "description", "of the conformance suite",
						       "inputSchema", schema_of(fixtures[i].name)));
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
