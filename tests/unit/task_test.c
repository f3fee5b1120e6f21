/* task_test.c - validation of tasks. */
#include "document/document.h"
#include "tap.h"

static int check(const char *text, struct err *e)
{
	json_t *doc = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	int done = doc ? task_check(doc, e) : -2;

	json_decref(doc);
	return done;
}

TEST(a_task_with_all_members_is_accepted)
{
	struct err e = { 0 };

	CHECK_INT(check("{\"task\":\"x\"}", &e), 0);
	CHECK_INT(
		check("{\"task\":\"x\",\"language\":\"c\",\"files\":{\"a/b.c\":\"\"},\"entry\":\"a/b.c\","
		      "\"stdin\":\"\",\"examples\":[{\"input\":\"\",\"expected\":\"\"},{\"call\":\"f()\","
		      "\"expected\":\"1\"}],\"tests\":[{\"path\":\"t.py\",\"content\":\"\",\"command\":\"true\"}],"
		      "\"packages\":{\"pip\":[\"numpy\"]},\"mode\":\"heuristic\",\"race\":4,\"remember\":false,"
		      "\"limits\":{\"run_ms\":1,\"install_ms\":2,\"memory\":1048576},\"network\":false,"
		      "\"budget\":{\"max_attempts\":10,\"max_tokens\":0,\"max_cost\":0.5,\"max_calls\":0,"
		      "\"max_wall_ms\":1},\"answers\":{\"n\":\"7\"}}",
		      &e),
		0);
	CHECK_INT(check("{\"task\":\"x\",\"files\":null}", &e), 0);
}

TEST(an_invalid_member_of_a_task_is_named_by_its_path)
{
	static const struct {
		const char *doc, *says;
	} rows[] = {
		{ "[]", "an object" },
		{ "{}", "task" },
		{ "{\"task\":\"\"}", "task: must have" },
		{ "{\"task\":\"a\\u0000b\"}", "task: must be a text without NUL" },
		{ "{\"task\":\"x\",\"taks\":1}", "taks: there is no such member" },
		{ "{\"task\":\"x\",\"examples\":[1]}", "examples[0]: must be an object" },
		{ "{\"task\":\"x\",\"examples\":[{\"call\":\"f()\"}]}", "examples[0].expected" },
		{ "{\"task\":\"x\",\"examples\":[{\"expected\":\"\"}]}",
		  "examples[0]: give either" },
		{ "{\"task\":\"x\",\"limits\":{\"memory\":1}}", "limits.memory" },
		{ "{\"task\":\"x\",\"budget\":{\"max_cost\":-1}}", "budget.max_cost" },
		{ "{\"task\":\"x\",\"budget\":{\"max_attempts\":1.5}}", "budget.max_attempts" },
		{ "{\"task\":\"x\",\"race\":0}", "race" },
		{ "{\"task\":\"x\",\"files\":{\"\":\"\"}}", "files." },
		{ "{\"task\":\"x\",\"files\":{\"a/../b\":\"\"}}", "files" },
		{ "{\"task\":\"x\",\"files\":{\"a/\":\"\"}}", "files" },
		{ "{\"task\":\"x\",\"tests\":[{\"path\":\"/x\",\"content\":\"\"}]}", "tests" },
		{ "{\"task\":\"x\",\"packages\":{\"pip\":[\"\"]}}", "packages.pip" },
		{ "{\"task\":\"x\",\"entry\":\"main.py\"}", "entry" },
		{ "{\"task\":\"x\",\"mode\":\"\"}", "mode" },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err e = { 0 };

		if (check(rows[i].doc, &e) != -1 || !strstr(e.msg, rows[i].says))
			printf("# %s: %s\n", rows[i].doc, e.msg);
		CHECK_INT(check(rows[i].doc, &e), -1);
		CHECK(strstr(e.msg, rows[i].says));
	}
}

TEST(the_artifact_hash_covers_only_what_is_executed)
{
	json_t *a = json_pack("{s:s, s:{s:s}, s:s, s:i}", "language", "python", "files", "main.py",
			      "1", "entry", "main.py", "attempt", 1),
	       *b;
	char hash[65];

	artifact_set_hash(a);
	snprintf(hash, sizeof(hash), "%s", doc_text(a, "hash"));
	b = artifact_child(a, "debug:x", "because");
	json_object_set_new(b, "attempt", json_integer(2));
	artifact_set_hash(b);
	CHECK_STR(doc_text(b, "hash"), hash);
	CHECK_STR(doc_text(b, "parent"), hash);
	json_object_set_new(b, "stdin", json_string("x"));
	artifact_set_hash(b);
	CHECK(strcmp(doc_text(b, "hash"), hash) != 0);
	json_decref(a);
	json_decref(b);
}
