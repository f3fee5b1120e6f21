/* llm_dialect_test.c - the four dialects: request bodies as they are sent, and recorded answer
 * streams. */
#include "base/cleanup.h"
#include "llm/completion.h"
#include "llm/dialect.h"
#include "llm/sse.h"
#include "tap.h"

static struct models_config_provider provider = { .name = "p", .base = "https://x" };
static struct models_config_model model = { .id = "small", .name = "m-1", .provider = &provider };

#define TALK                                                                                                    \
	"{\"role\":\"agent\",\"system\":[\"Be brief.\",\"Be right.\"],\"messages\":["                           \
	"{\"role\":\"user\",\"text\":\"list the files\"},"                                                      \
	"{\"role\":\"assistant\",\"calls\":[{\"id\":\"c1\",\"name\":\"ls\",\"arguments\":{\"path\":\".\"}}]},"  \
	"{\"role\":\"user\",\"results\":[{\"id\":\"c1\",\"text\":\"a.c\",\"error\":true}],\"text\":\"and?\"}]," \
	"\"tools\":[{\"name\":\"ls\",\"description\":\"Lists.\",\"parameters\":{\"type\":\"object\"}}],"        \
	"\"schema\":{\"name\":\"out\",\"schema\":{\"type\":\"object\",\"properties\":{}}},"                     \
	"\"max_tokens\":99,\"temperature\":0.5,\"stop\":[\"END\"]}"

static char *body(const char *dialect, const char *request)
{
	json_t *q = json_loads(request, 0, NULL);
	struct err e = { 0 };
	char *text;

	provider.dialect = dialect_find(dialect);
	if (request_check(q, &e) < 0)
		printf("# %s\n", e.msg);
	text = dialect_body(q, &model);
	json_decref(q);
	return text;
}

#define CHECK_BODY(dialect, request, want)                                                         \
	do {                                                                                       \
		auto_free char *text_ = body(dialect, request);                                    \
		CHECK_STR(text_, want);                                                            \
	} while (0)

TEST(a_conversation_is_encoded_for_openai_chat)
{
	provider.schema = SCHEMA_NATIVE;
	CHECK_BODY(
		"chat", TALK,
		"{\"model\":\"m-1\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"ls\","
		"\"description\":\"Lists.\",\"parameters\":{\"type\":\"object\"}}}],"
		"\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"out\",\"strict\":true,"
		"\"schema\":{\"type\":\"object\",\"properties\":{}}}},"
		"\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\\n\\nBe right.\"},"
		"{\"role\":\"user\",\"content\":\"list the files\"},"
		"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\","
		"\"function\":{\"name\":\"ls\",\"arguments\":\"{\\\"path\\\":\\\".\\\"}\"}}]},"
		"{\"role\":\"tool\",\"content\":\"a.c\",\"tool_call_id\":\"c1\"},"
		"{\"role\":\"user\",\"content\":\"and?\"}],"
		"\"max_completion_tokens\":99,\"temperature\":0.5,\"stop\":[\"END\"],\"stream\":true,"
		"\"stream_options\":{\"include_usage\":true}}");
}

TEST(a_conversation_is_encoded_for_openai_responses)
{
	provider.schema = SCHEMA_NATIVE;
	CHECK_BODY(
		"responses", TALK,
		"{\"model\":\"m-1\",\"tools\":[{\"type\":\"function\",\"name\":\"ls\",\"description\":\"Lists.\","
		"\"parameters\":{\"type\":\"object\"},\"strict\":false}],"
		"\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"out\",\"strict\":true,"
		"\"schema\":{\"type\":\"object\",\"properties\":{}}}},\"instructions\":\"Be brief.\\n\\nBe right.\","
		"\"input\":[{\"role\":\"user\",\"content\":\"list the files\"},"
		"{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"ls\",\"arguments\":\"{\\\"path\\\":\\\".\\\"}\"},"
		"{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":\"a.c\"},"
		"{\"role\":\"user\",\"content\":\"and?\"}],"
		"\"max_output_tokens\":99,\"temperature\":0.5,\"store\":false,\"stream\":true}");
}

TEST(a_conversation_is_encoded_for_anthropic_with_cache_marks)
{
	provider.schema = SCHEMA_NATIVE;
	CHECK_BODY(
		"messages", TALK,
		"{\"model\":\"m-1\",\"max_tokens\":99,\"tools\":[{\"name\":\"ls\",\"description\":\"Lists.\","
		"\"input_schema\":{\"type\":\"object\"}}],"
		"\"system\":[{\"type\":\"text\",\"text\":\"Be brief.\"},{\"type\":\"text\",\"text\":\"Be right.\","
		"\"cache_control\":{\"type\":\"ephemeral\"}}],"
		"\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\",\"properties\":{}}}},"
		"\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"list the files\"}]},"
		"{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"ls\",\"input\":{\"path\":\".\"}}]},"
		"{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c1\",\"content\":\"a.c\",\"is_error\":true},"
		"{\"type\":\"text\",\"text\":\"and?\",\"cache_control\":{\"type\":\"ephemeral\"}}]}],"
		"\"temperature\":0.5,\"stop_sequences\":[\"END\"],\"stream\":true}");
}

TEST(a_conversation_is_encoded_for_ollama)
{
	provider.schema = SCHEMA_NATIVE;
	CHECK_BODY(
		"ollama", TALK,
		"{\"model\":\"m-1\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"ls\","
		"\"description\":\"Lists.\",\"parameters\":{\"type\":\"object\"}}}],"
		"\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\\n\\nBe right.\"},"
		"{\"role\":\"user\",\"content\":\"list the files\"},"
		"{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\","
		"\"function\":{\"name\":\"ls\",\"arguments\":{\"path\":\".\"}}}]},"
		"{\"role\":\"tool\",\"content\":\"a.c\",\"tool_name\":\"ls\"},{\"role\":\"user\",\"content\":\"and?\"}],"
		"\"format\":{\"type\":\"object\",\"properties\":{}},"
		"\"options\":{\"num_predict\":99,\"temperature\":0.5,\"stop\":[\"END\"]},\"stream\":true}");
}

TEST(without_schema_support_a_tool_call_is_required)
{
	static const char q[] = "{\"role\":\"a\",\"messages\":[{\"role\":\"user\",\"text\":\"x\"}],"
				"\"schema\":{\"name\":\"out\",\"schema\":{\"type\":\"object\"}}}";

	provider.schema = SCHEMA_TOOL;
	CHECK_BODY(
		"messages", q,
		"{\"model\":\"m-1\",\"max_tokens\":4096,\"tools\":[{\"name\":\"out\",\"description\":\"Gives the answer.\","
		"\"input_schema\":{\"type\":\"object\"},\"cache_control\":{\"type\":\"ephemeral\"}}],"
		"\"tool_choice\":{\"type\":\"tool\",\"name\":\"out\"},"
		"\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}],\"stream\":true}");
	provider.schema = SCHEMA_NATIVE;
}

TEST(max_tokens_does_not_exceed_the_maximum_of_the_model)
{
	model.max_tokens = 50;
	provider.old_limit = 1;
	CHECK_BODY(
		"chat",
		"{\"role\":\"a\",\"messages\":[{\"role\":\"user\",\"text\":\"x\"}],\"max_tokens\":99}",
		"{\"model\":\"m-1\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":50,"
		"\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
	model.max_tokens = 0;
	provider.old_limit = 0;
}

/* ---- what is no request ---- */

static const struct {
	/* clang-format off */
	const char *text, *wants;
} wrong[] = {
	{ "{}", "messages is missing" },
	{ "{\"messages\":[{\"role\":\"user\",\"text\":\"x\"}]}", "role or model is missing" },
	{ "{\"role\":\"a\",\"messages\":[]}", "messages: 1 to 512" },
	{ "{\"role\":\"a\",\"messages\":[{\"role\":\"system\",\"text\":\"x\"}]}", "messages[0]: role: it is" },
	{ "{\"role\":\"a\",\"messages\":[{\"role\":\"user\"}]}", "messages[0]: it is empty" },
	{ "{\"role\":\"a\",\"messages\":[{\"role\":\"user\",\"text\":7}]}", "messages[0]: text: a text is expected" },
	{ "{\"role\":\"a\",\"messages\":[{\"role\":\"user\",\"calls\":[]}]}", "calls are the assistant's" },
	{ "{\"role\":\"a\",\"messages\":[{\"role\":\"user\",\"results\":[{\"id\":\"1\"}]}]}", "messages[0]: results[0]: text is missing" },
	{ "{\"role\":\"a\",\"messages\":[{\"role\":\"user\",\"text\":\"x\"}],\"tools\":[{}]}", "tools[0]: name is missing" },
	{ "{\"role\":\"a\",\"messages\":[{\"role\":\"user\",\"text\":\"x\"}],\"schema\":{\"name\":\"a\"}}", "schema: schema is missing" },
	{ "{\"role\":\"a\",\"messages\":[{\"role\":\"user\",\"text\":\"x\"}],\"n\":1}", "'n' is not known" },
	{ "{\"role\":\"a\",\"level\":-1,\"messages\":[{\"role\":\"user\",\"text\":\"x\"}]}", "level: a whole number" },
	{ "[]", "an object is expected" },
	/* clang-format on */
};

TEST(an_invalid_completion_request_names_the_json_path)
{
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		json_t *q = json_loads(wrong[i].text, 0, NULL);
		struct err e = { 0 };
		int rc = request_check(q, &e);

		json_decref(q);
		if (rc == 0 || !strstr(e.msg, wrong[i].wants))
			printf("# %u: '%s'\n", i, e.msg);
		CHECK(rc < 0 && strstr(e.msg, wrong[i].wants));
	}
}

/* ---- streams ---- */

static struct reply reply;
static struct err broke;

static int on_event(void *ctx, const char *name, const char *data, size_t len, struct err *e)
{
	return ((const struct dialect *)ctx)->event(&reply, name, data, len, e);
}

/* In two pieces, split at every position: the answer, or -1. */
static int hear(const char *dialect, const char *text)
{
	const struct dialect *d = dialect_find(dialect);
	struct sse s = { .lines = d->lines, .event = on_event, .ctx = (void *)(uintptr_t)d };
	int rc;

	reply_fini(&reply);
	memset(&reply, 0, sizeof(reply));
	broke = (struct err){ 0 };
	rc = sse_feed(&s, text, strlen(text) / 2, &broke);
	if (rc == 0)
		rc = sse_feed(&s, text + strlen(text) / 2, strlen(text) - strlen(text) / 2, &broke);
	if (rc == 0)
		rc = sse_end(&s, &broke);
	sse_fini(&s);
	return rc;
}

static const char *calls(void)
{
	static char text[1000];
	json_t *j = reply_calls(&reply);
	char *s = json_dumps(j, JSON_COMPACT);

	snprintf(text, sizeof(text), "%s", s);
	free(s);
	json_decref(j);
	return text;
}

TEST(chat_text_and_a_last_event_with_usage_are_parsed)
{
	CHECK_INT(
		hear("chat",
		     "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hel\"},\"finish_reason\":null}]}\n\n"
		     "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":null}],\"usage\":null}\n\n"
		     "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
		     "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":64,\"completion_tokens\":13,"
		     "\"prompt_tokens_details\":{\"cached_tokens\":40,\"cache_write_tokens\":4}}}\n\n"
		     "data: [DONE]\n\n"),
		0);
	CHECK_STR(buf_str(&reply.text), "Hello");
	CHECK_INT(reply.stop, STOP_END);
	CHECK(reply.complete && reply.told_usage);
	CHECK_INT(reply.usage.in, 20);
	CHECK_INT(reply.usage.cache_read, 40);
	CHECK_INT(reply.usage.cache_write, 4);
	CHECK_INT(reply.usage.out, 13);
}

TEST(chat_tool_calls_in_several_events_are_joined)
{
	CHECK_INT(
		hear("chat",
		     "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null},\"finish_reason\":null}]}\n\n"
		     "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"run\",\"arguments\":\"\"}}]}}]}\n\n"
		     "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\n"
		     "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\"}}]}}]}\n\n"
		     "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"c2\",\"function\":{\"name\":\"now\",\"arguments\":\"\"}}]}}]}\n\n"
		     "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]}}]}\n\n"
		     "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"),
		0);
	CHECK_STR(
		calls(),
		"[{\"id\":\"c1\",\"name\":\"run\",\"arguments\":{\"a\":1}},{\"id\":\"c2\",\"name\":\"now\",\"arguments\":{}}]");
	CHECK_INT(reply.stop, STOP_TOOLS);
	CHECK(reply.complete);
}

TEST(tool_arguments_that_are_no_object_are_returned_unchanged)
{
	CHECK_INT(
		hear("chat",
		     "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"run\",\"arguments\":\"{\\\"a\\\": [1,\"}}]}}]}\n\n"
		     "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"),
		0);
	CHECK_STR(
		calls(),
		"[{\"id\":\"c1\",\"name\":\"run\",\"arguments\":null,\"raw\":\"{\\\"a\\\": [1,\"}]");
	CHECK_INT(reply.stop, STOP_LENGTH);
}

TEST(tool_calls_without_an_index_are_distinguished_by_id)
{
	CHECK_INT(
		hear("chat",
		     "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":\"{}\"}},"
		     "{\"id\":\"b\",\"function\":{\"name\":\"y\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}]}\n\n"),
		0);
	CHECK_INT(reply.ncalls, 2);
	CHECK_INT(reply.stop, STOP_TOOLS); /* "stop" with calls means the calls */
}

TEST(a_chat_stream_without_a_finish_reason_is_incomplete)
{
	CHECK_INT(
		hear("chat",
		     "data: {\"choices\":[{\"delta\":{\"content\":\"half\"},\"finish_reason\":null}]}\n\ndata: [DONE]\n\n"),
		0);
	CHECK(!reply.complete);
}

TEST(a_truncated_json_reply_stops_with_length)
{
	CHECK_INT(
		hear("chat",
		     "data: {\"choices\":[{\"delta\":{\"content\":\"{\\\"a\\\": [1, 2\"},\"finish_reason\":\"length\"}]}\n\n"),
		0);
	CHECK_INT(reply.stop, STOP_LENGTH);
}

TEST(a_refusal_is_reported_as_refusal)
{
	CHECK_INT(hear("chat",
		       "data: {\"choices\":[{\"delta\":{\"refusal\":\"I will not.\"}}]}\n\n"
		       "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"),
		  0);
	CHECK_INT(reply.stop, STOP_REFUSAL);
	CHECK_STR(buf_str(&reply.text), "I will not.");
}

TEST(an_error_event_with_a_numeric_code_is_parsed)
{
	CHECK_INT(
		hear("chat",
		     "data: {\"error\":{\"code\":500,\"message\":\"the slot is gone\",\"type\":\"server_error\"}}\n\n"),
		0);
	CHECK(reply.failed);
	CHECK_INT(reply.error.status, 500);
	CHECK_STR(reply.error.msg, "the slot is gone");
}

TEST(invalid_events_are_an_error)
{
	CHECK_INT(hear("chat", "data: {oops\n\n"), -1);
	CHECK_INT(hear("messages", "data: [1]\n\n"), -1);
	CHECK_INT(
		hear("chat",
		     "data: {\"choices\":7}\n\ndata: {\"choices\":[7]}\n\ndata: {\"choices\":[{\"delta\":[],\"finish_reason\":3}]}\n\n"),
		0);
	CHECK(!reply.complete);
}

TEST(anthropic_text_ping_and_cumulative_usage_are_parsed)
{
	CHECK_INT(
		hear("messages",
		     "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":14,"
		     "\"cache_read_input_tokens\":2210,\"cache_creation_input_tokens\":7,\"output_tokens\":1}}}\n\n"
		     "event: ping\ndata: {\"type\":\"ping\"}\n\n"
		     "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
		     "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n"
		     "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
		     "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":31}}\n\n"
		     "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
		0);
	CHECK_STR(buf_str(&reply.text), "Hello");
	CHECK_INT(reply.usage.in, 14);
	CHECK_INT(reply.usage.cache_read, 2210);
	CHECK_INT(reply.usage.cache_write, 7);
	CHECK_INT(reply.usage.out, 31);
	CHECK_INT(reply.stop, STOP_END);
	CHECK(reply.complete);
}

TEST(anthropic_tool_calls_with_and_without_arguments_are_parsed)
{
	CHECK_INT(
		hear("messages",
		     "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"run\",\"input\":{}}}\n\n"
		     "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}\n\n"
		     "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"c\\\":\"}}\n\n"
		     "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\\\"ls\\\"}\"}}\n\n"
		     "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"now\",\"input\":{}}}\n\n"
		     "data: {\"type\":\"content_block_stop\",\"index\":2}\n\n"
		     "data: {\"type\":\"content_block_start\",\"index\":3,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t3\",\"name\":\"at\",\"input\":{\"x\":1}}}\n\n"
		     "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":3}}\n\n"
		     "data: {\"type\":\"message_stop\"}\n\n"),
		0);
	CHECK_STR(
		calls(),
		"[{\"id\":\"t1\",\"name\":\"run\",\"arguments\":{\"c\":\"ls\"}},{\"id\":\"t2\",\"name\":\"now\",\"arguments\":{}},"
		"{\"id\":\"t3\",\"name\":\"at\",\"arguments\":{\"x\":1}}]");
	CHECK_INT(reply.stop, STOP_TOOLS);
}

TEST(an_anthropic_error_after_the_start_is_reported)
{
	CHECK_INT(
		hear("messages",
		     "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hel\"}}\n\n"
		     "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"),
		0);
	CHECK(reply.failed && !reply.complete);
	CHECK_STR(reply.error.type, "overloaded_error");
}

TEST(an_anthropic_stream_without_a_stop_is_incomplete)
{
	CHECK_INT(
		hear("messages",
		     "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{}}\n\n"),
		0);
	CHECK(!reply.complete);
}

TEST(openai_responses_text_calls_and_usage_are_parsed)
{
	CHECK_INT(
		hear("responses",
		     "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{}}\n\n"
		     "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Hi\"}\n\n"
		     "data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"run\",\"arguments\":\"\"}}\n\n"
		     "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":1,\"delta\":\"{\\\"a\\\":2}\"}\n\n"
		     "data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"run\",\"arguments\":\"{\\\"a\\\":2}\"}}\n\n"
		     "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":10,\"output_tokens\":5,"
		     "\"input_tokens_details\":{\"cached_tokens\":8}}}}\n\n"),
		0);
	CHECK_STR(buf_str(&reply.text), "Hi");
	CHECK_STR(calls(), "[{\"id\":\"c1\",\"name\":\"run\",\"arguments\":{\"a\":2}}]");
	CHECK_INT(reply.stop, STOP_TOOLS);
	CHECK_INT(reply.usage.in, 2);
	CHECK_INT(reply.usage.cache_read, 8);
}

TEST(incomplete_or_failed_openai_responses_are_reported)
{
	CHECK_INT(
		hear("responses",
		     "data: {\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n"),
		0);
	CHECK_INT(reply.stop, STOP_LENGTH);
	CHECK_INT(
		hear("responses",
		     "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"no\"}}}\n\n"),
		0);
	CHECK(reply.failed);
	CHECK_STR(reply.error.type, "server_error");
	CHECK_INT(
		hear("responses",
		     "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\"}\n\n"),
		0);
	CHECK_STR(reply.error.type, "rate_limit_exceeded");
}

TEST(ollama_lines_with_object_arguments_are_parsed)
{
	CHECK_INT(
		hear("ollama",
		     "{\"message\":{\"role\":\"assistant\",\"content\":\"Hel\"},\"done\":false}\n"
		     "{\"message\":{\"role\":\"assistant\",\"content\":\"lo\",\"tool_calls\":[{\"function\":{\"name\":\"run\",\"arguments\":{\"a\":1}}}]},\"done\":false}\n"
		     "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":26,\"eval_count\":9}"),
		0);
	CHECK_STR(buf_str(&reply.text), "Hello");
	CHECK_STR(calls(), "[{\"id\":\"call_1\",\"name\":\"run\",\"arguments\":{\"a\":1}}]");
	CHECK_INT(reply.usage.in, 26);
	CHECK_INT(reply.usage.out, 9);
	CHECK(reply.complete);
	CHECK_INT(hear("ollama", "{\"error\":\"model 'x' not found\"}\n"), 0);
	CHECK(reply.failed);
	CHECK_STR(reply.error.msg, "model 'x' not found");
}

TEST(the_length_of_an_answer_is_limited)
{
	struct reply r = { .most = 100 };
	struct err e;
	int rc = 0, n = 0;

	while (rc == 0 && n++ < 100)
		rc = reply_text(&r, "0123456789", 10, &e);
	reply_fini(&r);
	CHECK_INT(n, 11);
	CHECK_INT(e.kind, ERR_LIMIT);
}

TEST(the_number_of_tool_calls_of_an_answer_is_limited)
{
	struct reply r = { 0 };
	struct err e;
	int n = 0;

	while (reply_call(&r, n, "id", "name", &e))
		n++;
	reply_fini(&r);
	CHECK_INT(n, REPLY_CALLS);
}

/* ---- errors, and whether to try again ---- */

static int again(int status, const char *body, const char *headers)
{
	struct ask_headers h = { .should_retry = -1, .after_ms = -1 };
	struct reply r = { 0 };

	if (headers)
		ask_header(&h, headers, strlen(headers));
	reply_fail_body(&r, status, body, strlen(body));
	return ask_retriable(status, &r.error, &h);
}

TEST(http_statuses_are_classified_as_retriable_or_not)
{
	static const int yes[] = { 408, 409, 429, 500, 502, 503, 504, 529 },
			 no[] = { 302, 400, 401, 402, 403, 404, 413, 422 };

	for (unsigned i = 0; i < ARRAY_LEN(yes); i++)
		CHECK(again(yes[i], "{}", NULL));
	for (unsigned i = 0; i < ARRAY_LEN(no); i++)
		CHECK(!again(no[i], "{}", NULL));
	CHECK(!again(
		429,
		"{\"error\":{\"message\":\"no money\",\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\"}}",
		NULL));
	CHECK(!again(
		500,
		"{\"error\":{\"message\":\"x\",\"type\":\"invalid_request_error\",\"code\":500}}",
		NULL));
	CHECK(!again(503, "{}", "x-should-retry: false\r\n"));
	CHECK(again(400, "{}", "X-Should-Retry: true\r\n"));
	CHECK(again(200, "{\"error\":{\"message\":\"x\",\"type\":\"overloaded_error\"}}", NULL));
	CHECK(!again(200, "{\"error\":{\"message\":\"x\",\"code\":400}}", NULL));
}

TEST(the_retry_delay_is_read_from_three_headers)
{
	struct ask_headers h = { .should_retry = -1, .after_ms = -1 };

	ask_header(&h, "Retry-After: 2\r\n", 16);
	CHECK_INT(h.after_ms, 2000);
	ask_header(&h, "retry-after-ms: 150\r\n", 21);
	CHECK_INT(h.after_ms, 150);
	ask_header(&h, "retry-after: 9\r\n", 16); /* the finer one counts */
	CHECK_INT(h.after_ms, 150);
	ask_header(&h, "HTTP/1.1 200 OK\r\n", 17); /* another answer */
	CHECK_INT(h.after_ms, -1);
	ask_header(&h, "retry-after: -5\r\n", 17);
	CHECK_INT(h.after_ms, -1);
	ask_header(&h, "nonsense", 8);
	ask_header(&h, "retry-after", 11);
	CHECK_INT(h.after_ms, -1);
}

#define FAILED(body) body, sizeof(body) - 1
TEST(errors_of_all_providers_become_one_line)
{
	struct reply r = { 0 };

	reply_fail_body(
		&r, 400,
		FAILED("{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"a\\nb\\u001b[31m\"}}"));
	CHECK_STR(r.error.msg, "a b [31m");
	CHECK_STR(r.error.type, "invalid_request_error");
	reply_fail_body(&r, 502, FAILED("<html>\xff bad gateway</html>"));
	CHECK_STR(r.error.msg, "<html>  bad gateway</html>"); /* unchanged, but without that byte */
	reply_fail_body(&r, 500, FAILED(""));
	CHECK_STR(r.error.msg, "");
	CHECK_INT(r.error.status, 500);
}
