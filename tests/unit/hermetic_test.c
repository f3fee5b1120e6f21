/* hermetic_test.c - requests that may be hermetic, the hash of their inputs, and the bounds of stored answers. */
#include "base/cleanup.h"
#include "store/runs.h"
#include "store_dir.h"
#include "tap.h"
#include "v1run/hermetic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *refusal(const char *text)
{
	json_t *body = json_loads(text, 0, NULL);
	int rc = hermetic_check(body, &err);

	json_decref(body);
	return rc < 0 ? err.msg : "accepted";
}

TEST(a_run_with_other_inputs_than_its_request_is_not_hermetic)
{
	CHECK_STR(refusal("{}"), "accepted");
	CHECK_STR(refusal("{\"hermetic\":true}"), "accepted");
	CHECK_STR(
		refusal("{\"hermetic\":true,\"reuse\":true,\"network\":{\"allow\":[],\"registries\":false}}"),
		"accepted");
	CHECK_STR(refusal("{\"hermetic\":false,\"network\":{\"allow\":[\"a.test\"]}}"), "accepted");
	CHECK(strstr(refusal("{\"reuse\":true}"), "\"hermetic\": true"));
	CHECK(strstr(refusal("{\"hermetic\":false,\"reuse\":true}"), "hermetic"));
	CHECK(strstr(refusal("{\"hermetic\":true,\"network\":{\"allow\":[\"a.test\"]}}"),
		     "network"));
	CHECK(strstr(refusal("{\"hermetic\":true,\"network\":{\"registries\":true}}"), "network"));
	CHECK(strstr(refusal("{\"hermetic\":true,\"secrets\":[]}"), "secrets"));
	CHECK(strstr(refusal("{\"hermetic\":true,\"install\":\"x\"}"), "install"));
}

static const char *key_of(const char *body_text, const struct box_spec *box, const char *program)
{
	static char hex[4][2 * SHA256_BYTES + 1];
	static unsigned turn;
	char *out = hex[turn++ % 4];
	json_t *body = json_loads(body_text, 0, NULL);
	uint8_t key[SHA256_BYTES];

	hermetic_key(body, box, program, key);
	for (unsigned i = 0; i < SHA256_BYTES; i++)
		sprintf(out + 2 * i, "%02x", key[i]);
	json_decref(body);
	return out;
}

TEST(every_input_is_in_the_key_and_nothing_else)
{
	struct box_spec a = { .limits = { .mem_bytes = 1 } }, b = a, c = a, d = a;
	const char *body = "{\"code\":\"1\",\"args\":[\"x\"]}";

	CHECK_STR(key_of(body, &a, NULL), key_of("{\"args\":[\"x\"],\"code\":\"1\"}", &a, NULL));
	CHECK_STR(key_of(body, &a, NULL),
		  key_of("{\"args\":[\"x\"],\"code\":\"1\",\"tag\":\"t\"}", &a, NULL));
	CHECK(strcmp(key_of(body, &a, NULL),
		     key_of("{\"code\":\"2\",\"args\":[\"x\"]}", &a, NULL)) != 0);
	CHECK(strcmp(key_of(body, &a, NULL),
		     key_of("{\"code\":\"1\",\"args\":[\"x\"],\"stdin\":\"\"}", &a, NULL)) != 0);
	b.limits.mem_bytes = 2;
	CHECK(strcmp(key_of(body, &a, NULL), key_of(body, &b, NULL)) != 0);
	snprintf(c.root, sizeof(c.root), "abc");
	CHECK(strcmp(key_of(body, &a, NULL), key_of(body, &c, NULL)) != 0);
	snprintf(d.layers[0], sizeof(d.layers[0]), "abc");
	d.nlayers = 1;
	CHECK(strcmp(key_of(body, &a, NULL), key_of(body, &d, NULL)) != 0);
	CHECK(strcmp(key_of(body, &a, NULL), key_of(body, &a, "/bin/sh")) != 0);
}

/* A run that has ended, with a receipt. */
static int ended_run(struct store *s, unsigned n)
{
	struct store_run r = { .team = "default",
			       .box = "aaaaaaaaaaaa",
			       .ended_ns = 1,
			       .cause = "exit",
			       .receipt = n };

	snprintf(r.id, sizeof(r.id), "%s", id_of(n));
	return store_run_begin(s, &r, &err) < 0 ? -1 : store_run_end(s, &r, &err);
}

static int put(struct store *s, const char *team, unsigned n, int64_t at_ns, char *answer)
{
	struct store_memo m = { .created_ns = at_ns, .answer = answer };
	uint8_t key[SHA256_BYTES] = { (uint8_t)n };

	snprintf(m.run, sizeof(m.run), "%s", id_of(n));
	return store_memo_put(s, team, key, &m, &err);
}

static int get(struct store *s, const char *team, unsigned n, int64_t at_ns, uint64_t *out_receipt)
{
	uint8_t key[SHA256_BYTES] = { (uint8_t)n };
	struct store_memo m;

	if (store_memo_get(s, team, key, at_ns, &m, &err) < 0)
		return -1;
	*out_receipt = m.receipt;
	store_memo_fini(&m);
	return 0;
}

TEST(an_answer_is_found_by_its_team_while_it_is_young_and_its_run_was_recorded)
{
	STORE(s, dir);
	uint64_t receipt;

	CHECK_OK(ended_run(s, 5));
	CHECK_OK(put(s, "default", 5, 1000, (char *)"{}"));
	CHECK_OK(get(s, "default", 5, 2000, &receipt));
	CHECK_INT(receipt, 5);
	CHECK_ERR(get(s, "other", 5, 2000, &receipt), ERR_NOT_FOUND);
	CHECK_ERR(get(s, "default", 6, 2000, &receipt), ERR_NOT_FOUND);
	CHECK_OK(get(s, "default", 5, -2000, &receipt)); /* the clock was set back */
	CHECK_ERR(get(s, "default", 5, 1000 + MEMO_KEEP_NS, &receipt), ERR_NOT_FOUND);
	CHECK_ERR(get(s, "default", 5, 2000, &receipt), ERR_NOT_FOUND); /* it was removed */
	/* The server was killed before the end of the run was written. */
	CHECK_OK(put(s, "default", 7, 1000, (char *)"{}"));
	CHECK_ERR(get(s, "default", 7, 2000, &receipt), ERR_NOT_FOUND);
}

TEST(answers_are_bounded_for_each_team)
{
	STORE(s, dir);
	auto_free char *large = malloc(MEMO_ANSWER + 2);
	uint64_t receipt;

	memset(large, 'x', MEMO_ANSWER + 1);
	large[MEMO_ANSWER + 1] = 0;
	CHECK_ERR(put(s, "default", 1, 1000, large), ERR_LIMIT);
	large[MEMO_ANSWER] = 0;
	CHECK_OK(ended_run(s, 1));
	CHECK_OK(ended_run(s, 2));
	CHECK_OK(put(s, "default", 1, 1000, large));
	CHECK_OK(put(s, "default", 2, 1001, large));
	CHECK_OK(put(s, "other", 2, 1001, large));
	CHECK_OK(get(s, "default", 1, 5000, &receipt)); /* used later than the second one */
	for (unsigned n = 3; n < 3 + MEMO_TEAM / MEMO_ANSWER - 2; n++)
		CHECK_OK(put(s, "default", n, 2000 + n, large));
	CHECK_OK(get(s, "default", 1, 6000, &receipt));
	CHECK_ERR(get(s, "default", 2, 6000, &receipt), ERR_NOT_FOUND);
	CHECK_OK(get(s, "other", 2, 6000, &receipt));
}

TEST(output_that_is_too_long_is_not_collected)
{
	static char chunk[HERMETIC_OUTPUT];
	struct hermetic_memo m = { .wanted = 1 };

	hermetic_collect(&m, 0, chunk, sizeof(chunk));
	hermetic_collect(&m, 1, "x", 1);
	CHECK(m.wanted);
	hermetic_collect(&m, 0, "x", 1);
	CHECK(!m.wanted);
	hermetic_memo_fini(&m);
}
