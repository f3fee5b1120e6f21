/* trace_test.c - traceparent, sampling, the queue of spans, and their form as OTLP. */
#include "outbound/outbound.h"
#include "tap.h"
#include "trace/otlp.h"

#include <string.h>

static struct err e;
static struct loop loop;
static struct outbound *out;

static void nothing(void *user)
{
	(void)user;
}

static int begin(double sample)
{
	struct trace_conf conf = { .endpoint = "http://127.0.0.1:4318", .sample = sample };

	return loop_init(&loop, &e) == 0 && outbound_new(&out, &loop, nothing, NULL, &e) == 0 &&
	       trace_start(&conf, &loop, out, &e) == 0;
}

static void end(void)
{
	trace_stop();
	outbound_free(out);
	loop_fini(&loop);
}

#define GOOD "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

TEST(a_valid_traceparent_is_parsed_and_written_again)
{
	struct trace_context c;
	char text[TRACE_TEXT];

	CHECK_INT(trace_parse(GOOD, &c), 0);
	CHECK(c.is_valid && !c.is_recorded && c.flags == 1 && c.trace[0] == 0x0a &&
	      c.span[7] == 0x31);
	trace_format(&c, text);
	CHECK_STR(text, GOOD);
	/* A later version may have more fields; they are not passed on. */
	CHECK_INT(trace_parse("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff-more", &c),
		  0);
	trace_format(&c, text);
	CHECK_STR(text, GOOD);
}

TEST(invalid_traceparents_are_ignored)
{
	static const char *const bad[] = {
		NULL,
		"",
		"00",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-011",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01more",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
		"00 0af7651916cd43dd8448eb211c80319c b7ad6b7169203331 01",
		"00-0af7651916cd43dd8448eb211c80319c\n-7ad6b7169203331-01",
	};
	struct trace_context c;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_INT(trace_parse(bad[i], &c), -1);
		CHECK(!c.is_valid);
	}
}

TEST(without_a_collector_a_traceparent_is_only_passed_on)
{
	struct trace_context c, child;
	char text[TRACE_TEXT];

	trace_request(&c, GOOD);
	CHECK(c.is_valid && !c.is_recorded);
	trace_child(&child, &c);
	trace_format(&child, text);
	CHECK_STR(text, GOOD);
	CHECK(!trace_add(&c, "x", TRACE_SERVER, 1, 2));
	trace_request(&c, NULL);
	CHECK(!c.is_valid);
}

TEST(the_client_decides_about_its_trace_and_the_setting_about_others)
{
	struct trace_context c, child;
	unsigned n = 0;

	CHECK(begin(0.25));
	trace_request(&c, GOOD);
	CHECK(c.is_recorded && c.parent[7] == 0x31 && c.trace[0] == 0x0a);
	trace_child(&child, &c);
	CHECK(child.is_recorded && !memcmp(child.parent, c.span, 8) &&
	      memcmp(child.span, c.span, 8) != 0);
	trace_request(&c, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
	CHECK(c.is_valid && !c.is_recorded);
	for (unsigned i = 0; i < 10000; i++) {
		trace_request(&c, "nonsense");
		CHECK(c.is_valid == c.is_recorded);
		n += c.is_recorded;
	}
	CHECK(n > 2000 && n < 3000);
	end();
	CHECK(begin(0));
	for (unsigned i = 0; i < 1000; i++) {
		trace_request(&c, NULL);
		CHECK(!c.is_recorded);
	}
	end();
}

TEST(the_present_context_is_restored)
{
	struct trace_context a, b, before, between;

	CHECK_INT(trace_parse(GOOD, &a), 0);
	b = a;
	b.span[0] = 1;
	before = trace_enter(&a);
	between = trace_enter(&b);
	CHECK(trace_current()->span[0] == 1);
	trace_leave(&between);
	CHECK(trace_current()->span[0] == 0xb7);
	trace_leave(&before);
	CHECK(!trace_current()->is_valid);
}

TEST(a_full_queue_drops_spans_and_counts_them)
{
	struct trace_context c;

	CHECK(begin(1));
	trace_request(&c, NULL);
	for (unsigned i = 0; i < TRACE_SPANS; i++)
		CHECK(trace_add(&c, "x", TRACE_INTERNAL, 1, 2) != NULL);
	CHECK(!trace_add(&c, "x", TRACE_INTERNAL, 1, 2));
	CHECK(!trace_add(&c, "x", TRACE_INTERNAL, 1, 2));
	CHECK_INT(trace_figures().dropped, 2);
	end();
	CHECK_INT(trace_figures().dropped, 0);
}

TEST(attributes_beyond_the_bound_are_left_out)
{
	struct trace_context c;
	struct trace_span *s;
	char longest[300];

	CHECK(begin(1));
	trace_request(&c, NULL);
	s = trace_add(&c, "x", TRACE_INTERNAL, 5, 3);
	CHECK(s && s->end_ns == 5); /* the clock was set back */
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	for (unsigned i = 0; i < 20; i++)
		trace_text(s, "k", longest);
	trace_number(s, "n", 1);
	CHECK_INT(s->n, TRACE_ATTRIBUTES);
	CHECK_INT(strlen(s->v[0].text), TRACE_VALUE - 1);
	trace_text(NULL, "k", "v");
	trace_number(NULL, "k", 1);
	trace_failed(NULL);
	end();
}

TEST(spans_have_the_form_of_otlp)
{
	struct otlp_resource r = { .version = "1", .host = "h" };
	struct trace_span ring[2] = { { .name = "POST /v1/run",
					.kind = TRACE_SERVER,
					.start_ns = INT64_C(1700000000000000001),
					.end_ns = INT64_C(1700000000000000002),
					.failed = 1,
					.n = 2 },
				      { .name = "cut \xc3", .kind = TRACE_INTERNAL } };
	auto_buf struct buf text = { 0 };
	json_t *doc;
	const json_t *span;

	CHECK_INT(trace_parse(GOOD, &ring[0].at), 0);
	ring[1].at = ring[0].at;
	ring[1].at.parent[0] = 0xab;
	ring[0].v[0].key = "a";
	strcpy(ring[0].v[0].text, "\"\n\xe2\x82");
	ring[0].v[1].key = "b";
	ring[0].v[1].is_number = 1;
	ring[0].v[1].number = INT64_MAX;
	otlp_request(&text, &r, ring, 2, 1, 2); /* the second one first */
	doc = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, NULL);
	CHECK(doc != NULL);
	span = json_array_get(
		json_object_get(
			json_array_get(
				json_object_get(
					json_array_get(json_object_get(doc, "resourceSpans"), 0),
					"scopeSpans"),
				0),
			"spans"),
		1);
	CHECK_STR(json_string_value(json_object_get(span, "traceId")),
		  "0af7651916cd43dd8448eb211c80319c");
	CHECK_STR(json_string_value(json_object_get(span, "spanId")), "b7ad6b7169203331");
	CHECK(!json_object_get(span, "parentSpanId"));
	CHECK_STR(json_string_value(json_object_get(span, "startTimeUnixNano")),
		  "1700000000000000001");
	CHECK_INT(json_integer_value(json_object_get(span, "kind")), 2);
	CHECK_INT(json_integer_value(json_object_get(json_object_get(span, "status"), "code")), 2);
	CHECK_INT(json_array_size(json_object_get(span, "attributes")), 2);
	CHECK_STR(json_string_value(json_object_get(
			  json_object_get(json_array_get(json_object_get(span, "attributes"), 0),
					  "value"),
			  "stringValue")),
		  "\"\n");
	CHECK_STR(json_string_value(json_object_get(
			  json_object_get(json_array_get(json_object_get(span, "attributes"), 1),
					  "value"),
			  "intValue")),
		  "9223372036854775807");
	json_decref(doc);
}

TEST(rejected_spans_are_read_from_the_answer)
{
	CHECK_INT(otlp_rejected("{}", 5), 0);
	CHECK_INT(otlp_rejected("", 5), 0);
	CHECK_INT(otlp_rejected("no JSON", 5), 0);
	CHECK_INT(otlp_rejected("{\"partialSuccess\":{\"rejectedSpans\":\"3\"}}", 5), 3);
	CHECK_INT(otlp_rejected("{\"partialSuccess\":{\"rejectedSpans\":3}}", 5), 3);
	CHECK_INT(otlp_rejected("{\"partialSuccess\":{\"rejectedSpans\":\"99999999999999999999\"}}",
				5),
		  5);
	CHECK_INT(otlp_rejected("{\"partialSuccess\":{\"rejectedSpans\":-7}}", 5), 0);
	CHECK_INT(otlp_rejected("{\"partialSuccess\":[]}", 5), 0);
}

TEST(the_path_of_otlp_is_added_to_an_endpoint_without_one)
{
	char url[64];

	CHECK_INT(otlp_url("http://127.0.0.1:4318", url, sizeof(url)), 0);
	CHECK_STR(url, "http://127.0.0.1:4318/v1/traces");
	CHECK_INT(otlp_url("https://collector/", url, sizeof(url)), 0);
	CHECK_STR(url, "https://collector/v1/traces");
	CHECK_INT(otlp_url("https://collector/otlp/v1/traces", url, sizeof(url)), 0);
	CHECK_STR(url, "https://collector/otlp/v1/traces");
	CHECK_INT(
		otlp_url("https://collector-with-a-very-long-name.example.org:4318/otlp/v1/traces",
			 url, sizeof(url)),
		-1);
}
