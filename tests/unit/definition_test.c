/* definition_test.c - definitions of templates: what is rejected, which stages are needed; references of
 * templates. */
#include "template/definition.h"
#include "template/templates.h"

#include "tap.h"

#include <stdlib.h>
#include <string.h>

static struct err e;

/* "": valid; else the error. */
static const char *judged(const char *text)
{
	json_t *doc = json_loads(text, JSON_ALLOW_NUL, NULL);

	e.msg[0] = 0;
	if (!doc)
		return "not JSON";
	if (definition_check(doc, &e) == 0)
		e.msg[0] = 0;
	json_decref(doc);
	return e.msg;
}

static const char *judged_step(const char *step)
{
	static char text[1000];

	snprintf(text, sizeof(text), "{\"stages\": [{\"from\": \"base\", \"steps\": [%s]}]}", step);
	return judged(text);
}

TEST(valid_definitions_are_accepted)
{
	CHECK_STR(judged("{\"stages\": [{\"from\": \"base\"}]}"), "");
	CHECK_STR(
		judged("{\"stages\": [{\"name\": \"a\", \"from\": \"debian:12\", \"steps\": []}, {\"from\": \"a\"}],"
		       " \"target\": 1, \"env\": {\"A\": \"b\"}, \"port\": 80, \"start\": null}"),
		"");
	CHECK_STR(judged_step("{\"type\": \"RUN\", \"args\": [\"a\", \"b\"], \"exec\": true}"), "");
	CHECK_STR(
		judged_step(
			"{\"type\": \"COPY\", \"args\": [\"a\", \"b\"], \"from\": \"x\", \"mode\": \"0755\"}"),
		"");
	CHECK_STR(judged_step("{\"type\": \"COPY\", \"args\": [\"/b\"], \"content\": \"\"}"), "");
}

TEST(a_definition_has_a_minimum_tier_and_needs_that_exist)
{
	CHECK_STR(
		judged("{\"stages\": [{\"from\": \"base\"}], \"isolation\": \"gvisor\", \"needs\": [\"gpu\"]}"),
		"");
	CHECK_STR(judged("{\"stages\": [{\"from\": \"base\"}], \"isolation\": \"gvsior\"}"),
		  "isolation: there is no isolation tier 'gvsior'; did you mean gvisor?");
	CHECK(strstr(judged("{\"stages\": [{\"from\": \"base\"}], \"isolation\": \"process\"}"),
		     "process is no minimum"));
	CHECK_STR(judged("{\"stages\": [{\"from\": \"base\"}], \"needs\": [\"gpu\", \"gp\"]}"),
		  "needs: there is no need 'gp'; did you mean gpu?");
	CHECK_STR(judged("{\"stages\": [{\"from\": \"base\"}], \"isolation\": 3}"),
		  "isolation: must be a text");
}

TEST(errors_name_the_place)
{
	CHECK_STR(judged("[]"), "definition: must be an object");
	CHECK_STR(judged("{}"), "stages: must be an array of 1 to 64 stages");
	CHECK_STR(judged("{\"stages\": [{\"from\": \"base\"}], \"x\": 1}"),
		  "x: there is no such field");
	CHECK_STR(judged("{\"stages\": [{\"from\": \"base\"}], \"port\": 70000}"),
		  "port: must be a number from 0 to 65535");
	CHECK_STR(judged("{\"stages\": [{\"from\": \"base\"}], \"target\": 1}"),
		  "target: there is no stage 1");
	CHECK_STR(
		judged("{\"stages\": [{\"from\": \"\"}]}"),
		"stages[0].from: needs base, scratch, a stage, template:NAME, box:ID, upload:HASH or an image");
	CHECK_STR(judged_step("1"), "stages[0].steps[0]: must be an object");
	CHECK_STR(judged_step("{\"type\": \"RUN\", \"args\": \"x\"}"),
		  "stages[0].steps[0].args: must be an array of at most 256 texts");
	CHECK_STR(judged_step("{\"type\": \"RUN\", \"args\": [\"a\\u0000b\"]}"),
		  "stages[0].steps[0].args: must not contain NUL");
	CHECK_STR(judged_step("{\"type\": \"ENV\", \"args\": [\"A\"]}"),
		  "stages[0].steps[0].args: must be names and values in turn");
	CHECK_STR(judged_step("{\"type\": \"COPY\", \"args\": [\"a\", \"b\"]}"),
		  "stages[0].steps[0]: needs `files` (the hash of an upload), `from` or `content`");
	CHECK_STR(
		judged_step("{\"type\": \"COPY\", \"args\": [\"a\", \"b\"], \"files\": \"../x\"}"),
		"stages[0].steps[0].files: must be the hash of an upload, up to 64 of 0-9 and a-f");
	CHECK_STR(
		judged_step(
			"{\"type\": \"COPY\", \"args\": [\"a\", \"b\"], \"from\": \"x\", \"mode\": \"9\"}"),
		"stages[0].steps[0].mode: '9' is not an octal number");
}

TEST(stages_that_the_target_needs)
{
	json_t *doc = json_loads(
		"{\"stages\": [{\"name\": \"a\", \"from\": \"base\"},"
		" {\"name\": \"b\", \"from\": \"base\"},"
		" {\"from\": \"base\", \"steps\": [{\"type\": \"COPY\", \"from\": \"A\","
		" \"args\": [\"x\", \"y\"]}]}, {\"from\": \"2\"}, {\"from\": \"b\"}], \"target\": 3}",
		0, NULL);

	CHECK(definition_check(doc, &e) == 0);
	CHECK_INT(definition_stage(doc, "a", 4), 0);
	CHECK_INT(definition_stage(doc, "2", 3), 2);
	CHECK_INT(definition_stage(doc, "2", 2), -1);
	CHECK_INT(definition_stage(doc, "debian", 4), -1);
	CHECK_INT(definition_needs(doc, 0), 1);
	CHECK_INT(definition_needs(doc, 1), 0);
	CHECK_INT(definition_needs(doc, 2), 1);
	CHECK_INT(definition_needs(doc, 3), 1);
	CHECK_INT(definition_needs(doc, 4), 0);
	json_decref(doc);
}

TEST(references_of_templates)
{
	struct template_reference r;

	CHECK(template_reference_parse("Web", NULL, &r, &e) == 0);
	CHECK_STR(r.name, "web");
	CHECK_STR(r.tag, "default");
	CHECK_INT(r.tagged, 0);
	CHECK(template_reference_parse("mine/a_b-1:V1.2", "mine", &r, &e) == 0);
	CHECK_STR(r.name, "a_b-1");
	CHECK_STR(r.tag, "v1.2");
	CHECK(template_reference_parse("theirs/a", "mine", &r, &e) < 0);
	CHECK(template_reference_parse("", NULL, &r, &e) < 0);
	CHECK(template_reference_parse("-a", NULL, &r, &e) < 0);
	CHECK(template_reference_parse("a:", NULL, &r, &e) < 0);
	CHECK(template_reference_parse("a b", NULL, &r, &e) < 0);
	CHECK(template_reference_parse("a/../b", NULL, &r, &e) < 0);
	CHECK(template_reference_parse(
		      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL, &r,
		      &e) < 0);
}
