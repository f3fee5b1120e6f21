/* batch_item_test.c - items of a batch: parsing, and errors of invalid lines. */
#include "batch/item.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "tap.h"

#include <string.h>

static struct err err;

#define CHECK_FINE(call) CHECK_INT(call, 0)

static int parse(struct batch_item *x, const char *line)
{
	struct batch_item_defaults d = { .max_output = 100 };

	return batch_item_parse(x, line, strlen(line), &d, &err);
}

static void refused(const char *line, const char *why)
{
	struct batch_item x;

	CHECK(parse(&x, line) < 0);
	CHECK(strstr(err.msg, why) != NULL);
	if (!strstr(err.msg, why))
		printf("# %s -> %s\n", line, err.msg);
	batch_item_fini(&x);
}

TEST(the_code_of_an_item_becomes_a_file_and_a_command)
{
	struct batch_item x;

	CHECK_FINE(parse(
		&x, "{\"id\":\"a\",\"language\":\"bash\",\"code\":\"echo $1\",\"args\":[\"x\"]}"));
	CHECK_STR(json_string_value(x.id), "a");
	CHECK_INT(x.nsteps, 1);
	CHECK_STR(x.steps[0].argv[1], BOX_HOME "/main.sh");
	CHECK_STR(x.steps[0].argv[2], "x");
	CHECK(!x.steps[0].argv[3]);
	CHECK_STR(x.program.source, BOX_HOME "/main.sh");
	CHECK_STR(x.code, "echo $1");
	CHECK_INT(x.steps[0].wall_ms, ITEM_RUN_MS);
	CHECK(x.steps[0].is_usual);
	CHECK_INT(x.max_output, 100);
	CHECK(!x.want && !x.any_code && x.want_code == 0);
	batch_item_fini(&x);
}

TEST(a_command_is_a_shell_string_or_a_list)
{
	struct batch_item x;

	CHECK_FINE(parse(&x, "{\"command\":\"a | b\",\"timeout_ms\":5}"));
	CHECK_STR(x.steps[0].argv[2], "a | b");
	CHECK_INT(x.steps[0].wall_ms, 5);
	batch_item_fini(&x);
	CHECK_FINE(parse(&x, "{\"command\":[\"a\",\"b\"],\"timeouts\":{\"run_ms\":7}}"));
	CHECK_STR(x.steps[0].argv[1], "b");
	CHECK_INT(x.steps[0].wall_ms, 7);
	batch_item_fini(&x);
}

TEST(settings_of_the_batch_apply_to_items_without_their_own)
{
	struct batch_item_defaults d = { .language = "bash", .run_ms = 9, .limits.mem_bytes = 1 };
	static const char plain[] = "{\"code\":\"x\"}",
			  own[] = "{\"code\":\"x\",\"timeout_ms\":3,\"limits\":{\"mem\":2}}";
	struct batch_item x;

	CHECK_FINE(batch_item_parse(&x, plain, strlen(plain), &d, &err));
	CHECK_INT(x.steps[0].wall_ms, 9);
	CHECK(!x.steps[0].is_usual);
	CHECK_INT(x.limits.mem_bytes, 1);
	batch_item_fini(&x);
	CHECK_FINE(batch_item_parse(&x, own, strlen(own), &d, &err));
	CHECK_INT(x.steps[0].wall_ms, 3);
	CHECK_INT(x.limits.mem_bytes, 2);
	batch_item_fini(&x);
}

TEST(expected_output_has_a_short_and_a_long_form)
{
	struct batch_item x;

	CHECK_FINE(parse(&x, "{\"command\":\"a\",\"expected\":\"42\\n\"}"));
	CHECK_STR(x.want, "42\n");
	CHECK_INT(x.how, JUDGE_TRIMMED);
	batch_item_fini(&x);
	CHECK_FINE(parse(
		&x,
		"{\"command\":\"a\",\"expected\":{\"stdout\":\"\",\"compare\":\"tokens\",\"exit_code\":3}}"));
	CHECK(x.want && x.want_len == 0);
	CHECK_INT(x.how, JUDGE_TOKENS);
	CHECK_INT(x.want_code, 3);
	batch_item_fini(&x);
	CHECK_FINE(parse(&x, "{\"command\":\"a\",\"expected\":{\"exit_code\":null}}"));
	CHECK(!x.want && x.any_code);
	batch_item_fini(&x);
}

TEST(variables_of_an_item_are_added_to_the_defaults)
{
	struct batch_item x;
	int home = 0, own = 0;

	CHECK_FINE(parse(&x, "{\"command\":\"a\",\"env\":{\"HOME\":\"/x\",\"A\":\"b\"}}"));
	for (unsigned i = 0; x.env[i]; i++) {
		home += !strncmp(x.env[i], "HOME=", 5);
		own += !strcmp(x.env[i], "HOME=/x") + !strcmp(x.env[i], "A=b");
	}
	CHECK_INT(home, 1);
	CHECK_INT(own, 2);
	batch_item_fini(&x);
}

TEST(an_invalid_item_is_rejected_with_the_reason)
{
	refused("", "not JSON");
	refused("{", "not JSON");
	refused("[]", "must be an object");
	refused("7", "not JSON");
	refused("{\"command\":\"a\"} x", "not JSON");
	refused("{\"command\":\"a\",\"command\":\"b\"}", "not JSON");
	refused("{}", "either command, or code");
	refused("{\"command\":\"a\",\"code\":\"b\"}", "either command, or code");
	refused("{\"code\":\"b\"}", "language: ''");
	refused("{\"code\":\"b\",\"language\":\"klingon\"}", "language: 'klingon'");
	refused("{\"code\":7,\"language\":\"bash\"}", "code: must be a text");
	refused("{\"command\":[]}", "command: must be");
	refused("{\"command\":[7]}", "command: must be");
	refused("{\"command\":\"a\\u0000b\"}", "command: must not have a NUL in it");
	refused("{\"command\":\"a\",\"cwd\":\"/tmp\\u0000b\"}", "cwd: must not have a NUL in it");
	refused("{\"language\":\"bash\\u0000\",\"code\":\"a\"}",
		"language: must not have a NUL in it");
	refused("{\"language\":\"bash\",\"entry\":\"a\\u0000.sh\"}",
		"entry: must not have a NUL in it");
	refused("{\"command\":\"a\",\"comand\":\"b\"}", "comand: there is no such field");
	refused("{\"command\":\"a\",\"id\":{}}", "id: must be");
	refused("{\"command\":\"a\",\"args\":\"b\"}", "args: must be");
	refused("{\"command\":\"a\",\"env\":{\"A=\":\"b\"}}", "env: 'A='");
	refused("{\"command\":\"a\",\"env\":{\"A\":\"b\\u0000c\"}}", "env: 'A'");
	refused("{\"command\":\"a\",\"timeout_ms\":0}", "timeout_ms: must be");
	refused("{\"command\":\"a\",\"timeouts\":{\"install\":1}}", "timeouts.install");
	refused("{\"command\":\"a\",\"limits\":{\"ram\":1}}", "limits.ram");
	refused("{\"command\":\"a\",\"limits\":{\"mem\":-1}}", "limits");
	refused("{\"command\":\"a\",\"expected\":7}", "expected: must be");
	refused("{\"command\":\"a\",\"expected\":{\"stdout\":7}}", "expected.stdout");
	refused("{\"command\":\"a\",\"expected\":{\"compare\":\"fuzzy\"}}", "expected.compare");
	refused("{\"command\":\"a\",\"expected\":{\"exit_code\":256}}", "exit_code: must be");
	refused("{\"command\":\"a\",\"files\":[]}", "files: must be");
	refused("{\"command\":\"a\",\"files\":{\"\":\"x\"}}", "files: ''");
	refused("{\"command\":\"a\",\"files\":{\"/etc/passwd\":\"x\"}}", "not below");
	refused("{\"command\":\"a\",\"files\":{\"../x\":\"x\"}}", "not below");
	refused("{\"command\":\"a\",\"files\":{\"x\":{\"base64\":\"?\"}}}", "must be text");
}

TEST(the_id_of_an_invalid_item_is_returned)
{
	struct batch_item x;

	CHECK(parse(&x, "{\"id\":\"me\",\"nonsense\":1}") < 0);
	CHECK_STR(json_string_value(x.id), "me");
	batch_item_fini(&x);
}

TEST(a_line_that_is_too_long_is_not_parsed)
{
	auto_buf struct buf line = { 0 };
	struct batch_item x;

	buf_puts(&line, "{\"command\":\"");
	memset(buf_space(&line, ITEM_BYTES), 'a', ITEM_BYTES);
	buf_grew(&line, ITEM_BYTES);
	buf_puts(&line, "\"}");
	CHECK(parse(&x, buf_str(&line)) < 0);
	CHECK_INT(err.kind, ERR_LIMIT);
	batch_item_fini(&x);
}
