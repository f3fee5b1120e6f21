/* build_runtimes_test.c - the interpreters that a template has, from the output of a program in it. */
#include "template/build_runtimes.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static const char *parsed(const char *said)
{
	static char text[1200];
	json_t *doc = build_runtimes_parse(said);
	char *dump = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);

	snprintf(text, sizeof(text), "%s", dump);
	free(dump);
	json_decref(doc);
	return text;
}

TEST(interpreters_have_a_path_a_version_and_whether_they_can_wait)
{
	CHECK_STR(
		parsed("python\t/usr/local/bin/python3\t3.12.1\twarm\n"),
		"{\"python\":{\"program\":\"/usr/local/bin/python3\",\"version\":\"3.12.1\",\"warm\":true}}");
	CHECK_STR(
		parsed("node\t/opt/n/node\t20.1.0\tno: a\tb\npython\t/bin/python3\t3.9.2\twarm"),
		"{\"node\":{\"program\":\"/opt/n/node\",\"version\":\"20.1.0\",\"warm\":false,\"why\":\"no: a\\tb\"},"
		"\"python\":{\"program\":\"/bin/python3\",\"version\":\"3.9.2\",\"warm\":true}}");
	CHECK_STR(parsed(""), "{}");
}

/* The script runs in a box of the template: any bytes may be printed in its place. */
TEST(other_output_is_ignored)
{
	char many[5000];

	CHECK_STR(parsed("python\n"), "{}");
	CHECK_STR(parsed("python\t/p\t3\n"), "{}");
	CHECK_STR(parsed("perl\t/usr/bin/perl\t5\twarm\n"), "{}");
	CHECK_STR(parsed("python\tpython3\t3.12\twarm\n"), "{}");
	CHECK_STR(parsed("python\t/\xff\xfe\t3.12\twarm\n"), "{}");
	CHECK_STR(parsed("\t\t\t\n\n\n\t/\n"), "{}");
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = 0;
	memcpy(many, "node\t/", 6);
	CHECK_STR(parsed(many), "{}");
}

static const char *warm(const char *root, const char *name)
{
	json_t *doc = root ? json_loads(root, 0, NULL) : NULL;
	const char *found = build_runtimes_warm(doc, name);

	json_decref(doc);
	return found ? found : "-";
}

TEST(a_box_of_a_template_gets_an_interpreter_of_that_template_or_none)
{
	static const char has[] =
		"{\"uid\":1000,\"gid\":1000,\"runtimes\":{\"python\":{\"warm\":true},\"node\":{\"warm\":false}}}";

	CHECK_STR(warm(NULL, "python-data"), "python-data");
	CHECK_STR(warm(NULL, NULL), "-");
	CHECK_STR(warm(has, "python"), "python");
	CHECK_STR(warm(has, "python-data"), "python");
	CHECK_STR(warm(has, "node"), "-");
	CHECK_STR(warm(has, NULL), "-");
	CHECK_STR(warm("{\"uid\":1000,\"gid\":1000}", "python"), "-");
	CHECK_STR(warm("{\"uid\":0,\"gid\":0,\"runtimes\":{\"python\":{\"warm\":true}}}", "python"),
		  "-");
}
