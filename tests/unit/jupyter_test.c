/* jupyter_test.c - messages of a kernel: which are accepted, and the events they become. */
#include "base/cleanup.h"
#include "notebook/driver_protocol.h"
#include "jupyter/cell.h"
#include "jupyter/launch.h"
#include "jupyter/message.h"
#include "jupyter/spec.h"
#include "jupyter/driver_events.h"
#include "lang/driver.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define REQUEST "session-1"

static struct err e;

static struct msg_frame frame(const char *text)
{
	return (struct msg_frame){ text, strlen(text) };
}

/* ---- messages ---- */

struct post {
	char signature[JUPYTER_MSG_SIGNATURE + 1];
	struct msg_frame frames[3 + JUPYTER_MSG_PARTS];
};

/* As a kernel sends it on iopub: the topic is the first frame. */
static void sign(struct post *p, const char *header, const char *parent, const char *content,
		 size_t n)
{
	p->frames[0] = frame("kernel.1.stream");
	p->frames[1] = frame(JUPYTER_MSG_DELIMITER);
	p->frames[3] = frame(header);
	p->frames[4] = frame(parent);
	p->frames[5] = frame("{}");
	p->frames[6] = (struct msg_frame){ content, n };
	jupyter_msg_sign(p->signature, KEY, p->frames + 3);
	p->frames[2] = frame(p->signature);
}

static int parse(struct jupyter_msg *m, const struct post *p)
{
	return jupyter_msg_parse(m, p->frames, ARRAY_LEN(p->frames), KEY, &e);
}

/* The kind of the error for these parts, or ERR_NONE. */
static enum err_kind judged(const char *header, const char *parent, const char *content)
{
	struct jupyter_msg m;
	struct post p;

	sign(&p, header, parent, content, strlen(content));
	e.kind = ERR_NONE;
	if (parse(&m, &p) < 0)
		return e.kind;
	jupyter_msg_fini(&m);
	return ERR_NONE;
}

TEST(hmac_sha256_matches_rfc_4231)
{
	struct msg_frame parts[JUPYTER_MSG_PARTS] = { frame("what do "), frame(""),
						      frame("ya want for "), frame("nothing?") };
	char out[JUPYTER_MSG_SIGNATURE + 1];

	jupyter_msg_sign(out, "Jefe", parts);
	CHECK_STR(out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(a_message_is_accepted_only_with_its_key)
{
	json_t *parent = json_pack("{s:s}", "msg_id", "before");
	struct msg_frame frames[2 + JUPYTER_MSG_PARTS];
	struct jupyter_msg m;
	struct jupyter_out l;

	jupyter_out_write(&l, KEY, "execute_request", "session", REQUEST, parent,
			  json_pack("{s:s%}", "code", "a\0\xc3\xa4", (size_t)4));
	frames[0] = frame(JUPYTER_MSG_DELIMITER);
	frames[1] = frame(l.signature);
	for (unsigned i = 0; i < JUPYTER_MSG_PARTS; i++)
		frames[2 + i] = (struct msg_frame){ l.part[i].p, l.part[i].len };
	CHECK_INT(jupyter_msg_parse(&m, frames, ARRAY_LEN(frames), KEY, &e), 0);
	CHECK_STR(m.type, "execute_request");
	CHECK_STR(m.id, REQUEST);
	CHECK_STR(m.parent_id, "before");
	CHECK_INT(json_string_length(json_object_get(m.content, "code")), 4);
	jupyter_msg_fini(&m);
	CHECK_INT(jupyter_msg_parse(&m, frames, ARRAY_LEN(frames), &KEY[1], &e), -1);
	CHECK_INT(e.kind, ERR_DENIED);
	CHECK_INT(jupyter_msg_parse(&m, frames, ARRAY_LEN(frames), "", &e), -1);
	jupyter_out_fini(&l);
	json_decref(parent);
}

TEST(every_changed_bit_invalidates_the_signature)
{
	static const char header[] = "{\"msg_id\":\"k\",\"msg_type\":\"stream\"}",
			  content[] = "{\"text\":\"x\"}";
	struct jupyter_msg m;
	struct post p;

	for (unsigned part = 2; part < 7; part++) {
		size_t n;

		sign(&p, header, "{}", content, strlen(content));
		n = p.frames[part].n;
		for (size_t bit = 0; bit < 8 * n; bit++) {
			auto_free char *other = strndup(p.frames[part].p, n);

			other[bit / 8] ^= (char)(1 << bit % 8);
			p.frames[part] = (struct msg_frame){ other, n };
			CHECK_INT(parse(&m, &p), -1);
			CHECK_INT(e.kind, ERR_DENIED);
			sign(&p, header, "{}", content, strlen(content));
		}
	}
	/* A part must not be longer, and a signature not cut or in upper case. */
	p.frames[2].n = 63;
	CHECK_INT(parse(&m, &p), -1);
	p.frames[2].n = 0;
	CHECK_INT(parse(&m, &p), -1);
	sign(&p, header, "{}", content, strlen(content));
	for (unsigned i = 0; i < JUPYTER_MSG_SIGNATURE; i++)
		p.signature[i] =
			(char)(p.signature[i] >= 'a' ? p.signature[i] - 32 : p.signature[i]);
	CHECK_INT(parse(&m, &p), -1);
}

TEST(a_message_with_missing_frames_is_rejected)
{
	struct msg_frame frames[JUPYTER_MSG_FRAMES];
	struct jupyter_msg m;

	for (unsigned i = 0; i < JUPYTER_MSG_FRAMES; i++)
		frames[i] = frame("x");
	CHECK_INT(jupyter_msg_parse(&m, frames, 0, KEY, &e), -1);
	CHECK_INT(jupyter_msg_parse(&m, frames, JUPYTER_MSG_FRAMES, KEY, &e), -1);
	for (unsigned at = 0; at < JUPYTER_MSG_FRAMES; at++) {
		frames[at] = frame(JUPYTER_MSG_DELIMITER);
		CHECK_INT(jupyter_msg_parse(&m, frames, at + 1, KEY, &e), -1);
		CHECK_INT(jupyter_msg_parse(&m, frames, at + 5 < JUPYTER_MSG_FRAMES ? at + 5 : at,
					    KEY, &e),
			  -1);
		CHECK_INT(jupyter_msg_parse(&m, frames, JUPYTER_MSG_FRAMES, KEY, &e), -1);
		frames[at] = frame("x");
	}
}

TEST(a_signed_invalid_message_is_rejected)
{
	static const char good[] = "{\"msg_id\":\"k\",\"msg_type\":\"status\"}";
	auto_buf struct buf deep = { 0 }, longer = { 0 };

	CHECK_INT(judged(good, "{}", "{}"), ERR_NONE);
	CHECK_INT(judged("", "", ""), ERR_INVALID);
	CHECK_INT(judged("{}", "{}", "{}"), ERR_INVALID);
	CHECK_INT(judged("[]", "{}", "{}"), ERR_INVALID);
	CHECK_INT(judged(good, "[]", "{}"), ERR_INVALID);
	CHECK_INT(judged(good, "{}", "3"), ERR_INVALID);
	CHECK_INT(judged(good, "{}", "{\"a\":"), ERR_INVALID);
	CHECK_INT(judged("{\"msg_id\":1,\"msg_type\":\"status\"}", "{}", "{}"), ERR_INVALID);
	for (unsigned i = 0; i < 100000; i++)
		buf_putc(&deep, '[');
	CHECK_INT(judged(good, "{}", buf_str(&deep)), ERR_INVALID);
	buf_puts(&longer, "{\"msg_type\":\"status\",\"msg_id\":\"");
	for (unsigned i = 0; i <= JUPYTER_MSG_ID; i++)
		buf_putc(&longer, 'x');
	buf_puts(&longer, "\"}");
	CHECK_INT(judged(buf_str(&longer), "{}", "{}"), ERR_INVALID);
}

static int repaired(const char *text, size_t n, const char *want)
{
	json_t *doc = jupyter_msg_json(text, n);
	auto_free char *got =
		doc ? json_dumps(doc, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("nothing");
	int same = !strcmp(got, want);

	if (!same)
		printf("# %s\n", got);
	json_decref(doc);
	return same;
}
#define REPAIRED(text, want) CHECK(repaired(text, sizeof(text) - 1, want))

TEST(nan_surrogates_and_invalid_utf8_are_fixed_in_json)
{
	REPAIRED("[NaN,-Infinity,Infinity]", "[null,null,null]");
	REPAIRED("[\"NaN\",1180591620717411303424]", "[\"NaN\",1.1805916207174113e21]");
	REPAIRED("[\"\xff\xc3\xa4\xc3\"]", "[\"\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\"]");
	REPAIRED("[\"\\ud800x\\udc00\\ud83d\\ude00\"]",
		 "[\"\xef\xbf\xbdx\xef\xbf\xbd\xf0\x9f\x98\x80\"]");
	REPAIRED("[\"a\tb\\\"c\\\\\"]", "[\"a\xef\xbf\xbd"
					"b\\\"c\\\\\"]");
	REPAIRED("[\"\\", "nothing");
	REPAIRED("[\"\\u", "nothing");
	REPAIRED("NaNa", "nothing");
	REPAIRED("[\"\\ud8\x10\x10\"]", "nothing"); /* control characters are not hex digits */
}

/* ---- cells ---- */

static struct kernel_cell cell;
static struct said said;
static struct driver_msg talk;

static void hear(const char *type, const char *content)
{
	char header[200];
	struct jupyter_msg m;
	struct post p;

	snprintf(header, sizeof(header), "{\"msg_id\":\"k\",\"msg_type\":\"%s\"}", type);
	sign(&p, header, "{\"msg_id\":\"" REQUEST "\"}", content, strlen(content));
	if (parse(&m, &p) < 0)
		return;
	if (!strcmp(type, "stream"))
		cell_stream(&m, &said);
	else if (!strcmp(m.parent_id, cell.request))
		kernel_cell_on_message(&cell, &m, &said);
	cell_finish(&cell, 0, &said);
	jupyter_msg_fini(&m);
}

/* The events as the server parses them: the types of all events, and the last document. */
static json_t *last;
static const char *told(void)
{
	static char types[400];
	const char *bytes = buf_str(&said.channel);
	size_t n = said.channel.len;

	types[0] = 0;
	json_decref(last);
	last = NULL;
	while (n) {
		struct driver_msg_event ev;
		int rc = driver_msg_take(&talk, &bytes, &n, &ev, &e);

		if (rc < 0)
			return e.msg;
		if (!rc)
			continue;
		json_decref(last);
		last = ev.doc;
		snprintf(types + strlen(types), sizeof(types) - strlen(types), "%s ",
			 json_string_value(json_object_get(ev.doc, "type")));
	}
	said_fini(&said);
	return types;
}

static const char *field(const char *name)
{
	const char *v = json_string_value(json_object_get(last, name));

	return v ? v : "";
}

static void begin(void)
{
	json_decref(cell.asks);
	json_decref(cell.reply);
	cell_begin(&cell, "7", REQUEST);
}

TEST(a_cell_ends_after_both_reply_and_idle_status)
{
	begin();
	hear("status", "{\"execution_state\":\"busy\"}");
	hear("execute_input", "{\"code\":\"x\"}");
	CHECK(cell.begun);
	hear("execute_reply", "{\"status\":\"ok\",\"execution_count\":4}");
	CHECK_STR(told(), "");
	hear("execute_result", "{\"data\":{\"text/plain\":\"42\"}}");
	hear("status", "{\"execution_state\":\"idle\"}");
	CHECK_STR(told(), "result end ");
	CHECK_STR(field("status"), "ok");
	CHECK_INT(json_integer_value(json_object_get(last, "count")), 4);
	CHECK(!cell_runs(&cell));
	begin();
	hear("status", "{\"execution_state\":\"idle\"}");
	hear("status", "{\"execution_state\":\"idle\"}");
	CHECK_STR(told(), "");
	hear("execute_reply", "{\"status\":\"ok\",\"execution_count\":\"x\"}");
	CHECK_STR(told(), "end ");
	CHECK_INT(json_integer_value(json_object_get(last, "count")), 5);
	hear("execute_reply", "{\"status\":\"ok\"}"); /* without a request */
	CHECK_STR(told(), "");
}

TEST(an_error_is_reported_once)
{
	static const char bad[] =
		"{\"status\":\"error\",\"ename\":\"E\",\"evalue\":\"v\\u001b[0m\","
		"\"traceback\":[\"\\u001b[0;31mred\\u001b[0m\",3,\"line\"]}";

	begin();
	hear("error", bad);
	hear("execute_reply", bad);
	CHECK_STR(told(), "error ");
	CHECK_STR(field("text"), "red\nline");
	CHECK_STR(field("value"), "v");
	hear("status", "{\"execution_state\":\"idle\"}");
	CHECK_STR(told(), "end ");
	CHECK_STR(field("status"), "error");
	begin(); /* some kernels report it in the reply only */
	hear("execute_reply", bad);
	hear("status", "{\"execution_state\":\"idle\"}");
	CHECK_STR(told(), "error end ");
	begin(); /* and some not at all */
	hear("execute_reply", "{\"status\":\"aborted\"}");
	hear("status", "{\"execution_state\":\"idle\"}");
	CHECK_STR(told(), "error end ");
}

TEST(an_interrupted_cell_is_reported_without_a_reply)
{
	begin();
	cell.interrupted = 1;
	hear("status", "{\"execution_state\":\"idle\"}");
	CHECK_STR(told(), "");
	cell_finish(&cell, 1, &said);
	CHECK_STR(told(), "error end ");
	CHECK_STR(field("status"), "interrupted");
	begin(); /* it had succeeded before the signal arrived */
	cell.interrupted = 1;
	hear("execute_reply", "{\"status\":\"ok\"}");
	hear("status", "{\"execution_state\":\"idle\"}");
	CHECK_STR(told(), "end ");
	CHECK_STR(field("status"), "ok");
}

TEST(a_cell_has_one_result_and_any_number_of_displays)
{
	begin();
	hear("display_data",
	     "{\"data\":{\"image/png\":\"aGVs\\nbG8=\\n\"},\"transient\":{\"display_id\":\"d\"}}");
	CHECK_STR(told(), "result ");
	CHECK_STR(json_string_value(json_object_get(json_object_get(last, "data"), "image/png")),
		  "aGVsbG8=");
	CHECK_STR(json_string_value(json_object_get(json_object_get(last, "extra"), "display_id")),
		  "d");
	hear("update_display_data",
	     "{\"data\":{\"text/plain\":\"x\"},\"transient\":{\"display_id\":\"d\"}}");
	CHECK_STR(told(), "result ");
	CHECK(json_is_true(json_object_get(json_object_get(last, "extra"), "update")));
	hear("execute_result", "{\"data\":{\"text/plain\":\"1\"}}");
	CHECK_STR(told(), "result ");
	CHECK(json_is_true(json_object_get(last, "main")));
	hear("execute_result", "{\"data\":{\"text/plain\":\"2\"}}");
	CHECK_STR(told(), "result ");
	CHECK(json_is_false(json_object_get(last, "main")));
	hear("execute_result", "{}");
	hear("display_data", "{\"data\":[1]}");
	CHECK_STR(told(), "");
	hear("input_request", "{\"prompt\":\"n\\u0000? \",\"password\":true}");
	CHECK_STR(told(), "input ");
	CHECK_STR(field("prompt"), "n\\x00? ");
	CHECK(cell.asks);
	hear("stream", "{\"name\":\"stderr\",\"text\":\"e\\u0000\"}");
	hear("stream", "{\"name\":\"other\",\"text\":\"o\"}");
	hear("stream", "{\"name\":\"stdout\",\"text\":3}");
	CHECK_INT(said.err.len, 2);
	CHECK_INT(said.out.len, 1);
	CHECK_STR(told(), "");
	hear("comm_open", "{}");
	hear("nonsense", "{}");
	CHECK_STR(told(), "");
}

static int was_cut(const char *kind)
{
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(last, "truncated"), i, v)
	{
		if (!strcmp(json_string_value(v), kind))
			return 1;
	}
	return 0;
}

/* A display of one kind, n times the same between two texts. */
static const char *shown(const char *kind, const char *before, const char *many, size_t n,
			 const char *after)
{
	auto_buf struct buf content = { 0 };

	buf_printf(&content, "{\"data\":{\"text/html\":\"h\",\"%s\":%s", kind, before);
	for (size_t i = 0; i < n; i++)
		buf_puts(&content, many);
	buf_printf(&content, "%s}}", after);
	begin();
	hear("display_data", buf_str(&content));
	return told();
}

#define A16 "AAAAAAAAAAAAAAAA"
#define A64 A16 A16 A16 A16
#define X4 "\\u0001\\u0001\\u0001\\u0001"
#define X16 X4 X4 X4 X4

TEST(output_that_the_server_would_reject_is_left_out_and_named)
{
	CHECK_STR(shown("text/plain", "\"", "\xc3\xa4", 600000, "\""), "result ");
	CHECK(was_cut("text/plain"));
	CHECK_INT(json_string_length(json_object_get(json_object_get(last, "data"), "text/plain")),
		  TELL_TEXT);
	CHECK_STR(shown("image/png", "\"", A64, 1 << 18, "\""), "result ");
	CHECK(was_cut("image/png"));
	CHECK_STR(shown("text/x", "\"", X16, 180000, "\""), "result ");
	CHECK(was_cut("text/x"));
	CHECK_STR(shown("application/json", "[0", ",[]", 200000, "]"), "result ");
	CHECK(was_cut("application/json"));
	CHECK_STR(shown("application/json", "[0", ",1", 240000, "]"), "result ");
	CHECK(!was_cut("application/json"));
	CHECK_STR(shown("a/b+json", "[", "[", 120, "0"), ""); /* that is not even JSON */
	CHECK_STR(shown("text/y", "[1", "", 0, "]"), "result ");
	CHECK(was_cut("text/y"));
	CHECK_STR(json_string_value(json_object_get(json_object_get(last, "data"), "text/html")),
		  "h");
}

TEST(the_depth_of_json_is_limited)
{
	auto_buf struct buf content = { 0 };

	buf_puts(&content, "{\"data\":{\"application/json\":");
	for (unsigned i = 0; i < 200; i++)
		buf_puts(&content, "[");
	for (unsigned i = 0; i < 200; i++)
		buf_puts(&content, "]");
	buf_puts(&content, "}}");
	begin();
	hear("display_data", buf_str(&content));
	CHECK_STR(told(), "result ");
	CHECK(was_cut("application/json"));
}

/* ---- specs ---- */

static int spec_is(const char *text, const char *complaint)
{
	struct kernel_spec s;

	e.msg[0] = 0;
	if (spec_parse(&s, text, strlen(text), &e) == 0) {
		spec_fini(&s);
		return !*complaint;
	}
	if (!strstr(e.msg, complaint))
		printf("# %s\n", e.msg);
	return *complaint && strstr(e.msg, complaint);
}

TEST(every_field_of_a_kernel_spec_is_checked)
{
	CHECK(spec_is("{\"argv\":[\"a\",\"{connection_file}\"]}", ""));
	CHECK(spec_is(
		"{\"argv\":[\"a\",\"-f={connection_file}\"],\"env\":{\"A\":\"b\"},\"display_name\":null,"
		"\"interrupt_mode\":\"message\",\"metadata\":{\"x\":[]}}",
		""));
	CHECK(spec_is("", "line 1"));
	CHECK(spec_is("[]", "not an object"));
	CHECK(spec_is("{}", "argv is not a list"));
	CHECK(spec_is("{\"argv\":[]}", "argv is not a list"));
	CHECK(spec_is("{\"argv\":[\"\",\"{connection_file}\"]}", "empty word"));
	CHECK(spec_is("{\"argv\":[\"a\",\"{connection_file}\\u0000\"]}", "word 1"));
	CHECK(spec_is("{\"argv\":[\"a\",\"{connection_file}\"],\"argv\":[]}", "duplicate"));
	CHECK(spec_is("{\"argv\":[\"a\",\"{connection_file}\"],\"env\":[]}", "env is not"));
	CHECK(spec_is("{\"argv\":[\"a\",\"{connection_file}\"],\"env\":{\"A=B\":\"c\"}}",
		      "env: 'A=B'"));
	CHECK(spec_is("{\"argv\":[\"a\",\"{connection_file}\"],\"language\":[]}", "language"));
	CHECK(spec_is("{\"argv\":[\"a\",\"{connection_file}\"],\"interrupt_mode\":\"x\"}",
		      "interrupt_mode"));
}

TEST(invalid_kernel_names_are_rejected)
{
	static const char *const bad[] = { "",    ".",   "..",
					   "-a",  "a/b", "a b",
					   "a:b", "a\n", "0123456789012345678901234" };

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!spec_name_valid(bad[i]));
	CHECK(spec_name_valid("julia-1.9"));
	CHECK(spec_name_valid("012345678901234567890123"));
	CHECK(driver_of("jupyter:ir"));
	CHECK(!driver_of("jupyter:"));
	CHECK(!driver_of("jupyter"));
	CHECK(!driver_of("jupyter:../x"));
	CHECK(!driver_of("Jupyter:ir"));
}

TEST(the_driver_command_of_a_kernel_ends_with_its_name)
{
	const char *argv[DRIVER_WORDS];

	driver_words(driver_of("jupyter:ir"), "jupyter:ir", argv);
	CHECK_STR(argv[0], "/opt/atoll/bin/jupyter");
	CHECK_STR(argv[1], "ir");
	CHECK(!argv[2]);
	driver_words(driver_of("python"), "python", argv);
	CHECK_STR(argv[1], "/opt/atoll/python.py");
	CHECK(!argv[2]);
}

static const char *put(const char *folder, const char *name, const char *text)
{
	static char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/kernel.json", folder, name);
	f = fopen(path, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
	return path;
}

TEST(the_first_folder_that_has_a_kernel_is_used)
{
	char one[] = "/tmp/specs-XXXXXX", two[] = "/tmp/specs-XXXXXX", command[200];
	struct spec_places places = { .path = { "/nonexistent/kernels", mkdtemp(one),
						mkdtemp(two) } };
	struct kernel_spec s;
	json_t *all;

	put(two, "both", "{\"argv\":[\"two\",\"{connection_file}\"]}");
	put(one, "Both", "{\"argv\":[\"one\",\"{connection_file}\"],\"language\":\"L\"}");
	put(two, "alone", "{\"argv\":[\"two\",\"{connection_file}\"]}");
	put(one, "bad name", "{}");
	put(two, "broken", "{");
	CHECK_INT(spec_find(&s, &places, "both", &e), 0);
	CHECK_STR(json_string_value(json_array_get(s.argv, 0)), "one");
	CHECK_STR(s.name, "Both");
	spec_fini(&s);
	CHECK_INT(spec_find(&s, &places, "alone", &e), 0);
	CHECK(strstr(s.folder, two) && strstr(s.folder, "/alone"));
	spec_fini(&s);
	CHECK_INT(spec_find(&s, &places, "broken", &e), -1);
	CHECK_INT(e.kind, ERR_INVALID);
	CHECK_INT(spec_find(&s, &places, "ir", &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	CHECK(strstr(e.msg, "apt-get install r-cran-irkernel") && strstr(e.msg, "Both, alone"));
	CHECK_INT(spec_find(&s, &places, "../both", &e), -1);
	all = spec_json(&places);
	CHECK_INT(json_array_size(all), 2);
	CHECK_STR(json_string_value(json_object_get(json_array_get(all, 0), "name")),
		  "jupyter:Both");
	json_decref(all);
	snprintf(command, sizeof(command), "rm -r %s %s", one, two);
	CHECK_INT(system(command), 0);
}

static const char *filled(void (*how)(struct buf *out, const char *text), const char *text)
{
	static struct buf out;

	buf_cut(&out, 0);
	how(&out, text);
	return buf_str(&out);
}

static void word(struct buf *out, const char *text)
{
	launch_word(out, text, "/f", "/d");
}

TEST(placeholders_of_kernel_arguments_are_replaced)
{
	CHECK_STR(filled(word, "--f={connection_file}:{resource_dir}{prefix}"), "--f=/f:/d/usr");
	CHECK_STR(filled(word, "{connection_file"), "{connection_file");
	CHECK_STR(filled(word, ""), "");
	setenv("JUPYTER_TEST", "v", 1);
	CHECK_STR(filled(launch_value, "$JUPYTER_TEST-${JUPYTER_TEST}$$x"), "v-v$x");
	CHECK_STR(filled(launch_value, "${JUPYTER_TEST $NO_SUCH_NAME $ ${}"),
		  "${JUPYTER_TEST $NO_SUCH_NAME $ ${}");
}

/* ---- everything at once ---- */

/* Messages of real kernels, changed at random and signed: the server accepts their events. */
TEST(events_of_random_signed_messages_are_accepted_by_the_server)
{
	static const char *const types[] = {
		"stream", "display_data",  "update_display_data", "execute_result",
		"error",  "execute_reply", "input_request",       "status"
	};
	static const char *const contents[] = {
		"{\"name\":\"stdout\",\"text\":\"hi\\n\"}",
		"{\"data\":{\"text/plain\":\"<Figure>\",\"image/png\":\"iVBORw0K\\n\"},\"metadata\":{},"
		"\"transient\":{\"display_id\":\"a\"}}",
		"{\"data\":{\"application/vnd.plotly.v1+json\":{\"a\":[1,2.5,null,true,{\"b\":\"\\u00e4\"}]}}}",
		"{\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[\"\\u001b[0;31mE\\u001b[0m\"],\"status\":\"error\"}",
		"{\"status\":\"ok\",\"execution_count\":3,\"payload\":[{\"source\":\"page\",\"data\":"
		"{\"text/plain\":\"help\"}}]}",
		"{\"prompt\":\"? \",\"password\":false}",
		"{\"execution_state\":\"idle\"}",
	};
	static const char signs[] = "\\\"{}[],:0eu\x80\xff\x1b\x01Nd8";
	unsigned seed = 7;

	for (unsigned round = 0; round < 5000; round++) {
		char text[256];
		size_t n;

		snprintf(
			text, sizeof(text), "%s",
			contents[(seed = seed * 1103515245 + 12345) / 65536 % ARRAY_LEN(contents)]);
		n = strlen(text);
		for (unsigned i = 0, times = round % 5; i < times; i++) {
			seed = seed * 1103515245 + 12345;
			text[seed / 65536 % n] = signs[seed / 256 % (sizeof(signs) - 1)];
		}
		begin();
		hear(types[seed / 7 % ARRAY_LEN(types)], text);
		cell_finish(&cell, round & 1, &said);
		if (strstr(told(), "the driver sent an invalid message"))
			printf("# %s: %s\n", e.msg, text);
		CHECK(!said.channel.len);
	}
}
