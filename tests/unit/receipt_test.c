/* receipt_test.c - canonical JSON, the key of the node, the chain of receipts, and what a verifier finds. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "receipt/canonical.h"
#include "receipt/receipts.h"
#include "receipt/verify.h"
#include "store/history.h"
#include "store_dir.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- canonical JSON ---- */

static const char *canonical(const char *text)
{
	static struct buf out;
	json_t *doc = json_loads(text, JSON_DECODE_ANY, NULL);

	buf_cut(&out, 0);
	canonical_write(&out, doc);
	json_decref(doc);
	return buf_str(&out);
}

TEST(canonical_json_sorts_members_and_has_one_form_of_each_value)
{
	CHECK_STR(canonical("{ \"b\": 2, \"a\": [ true, false, null ], \"\": {} }"),
		  "{\"\":{},\"a\":[true,false,null],\"b\":2}");
	CHECK_STR(canonical("\"\\u00e9\\/\\u0001\\n\\t\\b\\f\\r\\\"\\\\\\u007f\""),
		  "\"\xc3\xa9/\\u0001\\n\\t\\b\\f\\r\\\"\\\\\x7f\"");
	CHECK_STR(canonical("-9223372036854775808"), "-9223372036854775808");
	/* The example of RFC 8785 for the order: U+1F600 (D83D DE00) comes before U+FB33. */
	CHECK_STR(canonical("{\"\\ufb33\":1,\"\\ud83d\\ude00\":2,\"\\u20ac\":3}"),
		  "{\"\xe2\x82\xac\":3,\"\xf0\x9f\x98\x80\":2,\"\xef\xac\xb3\":1}");
}

/* Appendix B of RFC 8785, and edges of the forms. */
TEST(numbers_have_the_form_of_rfc_8785)
{
	static const char *const rows[][2] = {
		{ "0.0", "0" },
		{ "-0.0", "0" },
		{ "5e-324", "5e-324" },
		{ "-5e-324", "-5e-324" },
		{ "1.7976931348623157e308", "1.7976931348623157e+308" },
		{ "9007199254740992.0", "9007199254740992" },
		{ "295147905179352825856.0", "295147905179352830000" },
		{ "9.999999999999997e22", "9.999999999999997e+22" },
		{ "1e23", "1e+23" },
		{ "1.0000000000000001e23", "1.0000000000000001e+23" },
		{ "999999999999999700000.0", "999999999999999700000" },
		{ "1e21", "1e+21" },
		{ "9.999999999999997e-7", "9.999999999999997e-7" },
		{ "0.000001", "0.000001" },
		{ "333333333.33333329", "333333333.3333333" },
		{ "1424953923781206.2", "1424953923781206.2" },
		{ "4.50", "4.5" },
		{ "2e-3", "0.002" },
		{ "1E30", "1e+30" },
		{ "10.0", "10" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_STR(canonical(rows[i][0]), rows[i][1]);
}

static const char *parse_refusal(const char *text)
{
	json_t *doc = canonical_parse(text, strlen(text), &err);

	if (!doc)
		return err.msg;
	json_decref(doc);
	return "accepted";
}

TEST(other_forms_are_rejected)
{
	CHECK_STR(parse_refusal("{\"a\":1,\"b\":[\"\\n\"]}"), "accepted");
	CHECK(strstr(parse_refusal("{\"a\":1,\"a\":1}"), "duplicate"));
	CHECK(strstr(parse_refusal("{\"a\":1,\"\\u0061\":2}"), "duplicate"));
	CHECK(strstr(parse_refusal("{\"b\":1,\"a\":1}"), "canonical"));
	CHECK(strstr(parse_refusal("{\"a\": 1}"), "byte 6"));
	CHECK(strstr(parse_refusal("{\"a\":1.0}"), "canonical"));
	CHECK(strstr(parse_refusal("{\"a\":1e0}"), "canonical"));
	CHECK(strstr(parse_refusal("{\"a\":\"\\u0041\"}"), "canonical"));
	CHECK(strstr(parse_refusal("{\"a\":\"\\/\"}"), "canonical"));
	CHECK(strstr(parse_refusal("{\"a\":-0}"), "canonical"));
	CHECK(strstr(parse_refusal("{\"a\":1} "), "canonical"));
	CHECK(strstr(parse_refusal("{\"a\":1e999}"), "not JSON"));
	CHECK(strstr(parse_refusal("{\"a\":1"), "not JSON"));
	CHECK(strstr(parse_refusal("\xff"), "not JSON"));
	CHECK(strstr(parse_refusal(""), "not JSON"));
}

/* ---- the key ---- */

TEST(the_key_is_created_once_and_only_its_public_part_is_readable)
{
	auto_dir char dir[128];
	struct node_key a, b, public;
	unsigned char signature[NODE_KEY_SIGNATURE];
	char path[200];
	struct stat st;

	dir_make(dir);
	node_key_open(&a, dir);
	CHECK(a.key);
	node_key_open(&b, dir);
	CHECK_STR(b.id, a.id);
	snprintf(path, sizeof(path), "%s/receipts.key", dir);
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	snprintf(path, sizeof(path), "%s/receipts.pub", dir);
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0644);
	CHECK_OK(node_key_parse(&public, a.pem, strlen(a.pem), &err));
	CHECK_STR(public.id, a.id);
	CHECK_OK(node_key_sign(&b, "text", 4, signature, &err));
	CHECK(node_key_verify(&public, "text", 4, signature));
	CHECK(!node_key_verify(&public, "texT", 4, signature));
	signature[63] ^= 1;
	CHECK(!node_key_verify(&public, "text", 4, signature));
	CHECK_ERR(node_key_sign(&public, "text", 4, signature, &err),
		  ERR_SYS); /* has no private part */
	node_key_close(&a);
	node_key_close(&b);
	node_key_close(&public);
}

static const char *key_trouble(const char *dir, const char *text, mode_t mode)
{
	static struct node_key k;
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/receipts.key", dir);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
	if (fd < 0 || fchmod(fd, mode) < 0 || write(fd, text, strlen(text)) < 0)
		abort();
	close(fd);
	node_key_open(&k, dir);
	if (k.key)
		abort();
	return k.trouble.msg;
}

TEST(a_key_file_that_is_cut_readable_by_others_or_of_another_kind_is_not_used)
{
	static const char rsa[] = "-----BEGIN PRIVATE KEY-----\nMAo=\n-----END PRIVATE KEY-----\n";
	auto_dir char dir[128];
	struct node_key k;
	unsigned char signature[NODE_KEY_SIGNATURE];

	dir_make(dir);
	CHECK(strstr(key_trouble(dir, "", 0600), "restore the file"));
	CHECK(strstr(key_trouble(dir, rsa, 0600), "not an Ed25519 key"));
	CHECK(strstr(key_trouble(dir, rsa, 0640), "chmod 600"));
	node_key_open(&k, "/does/not/exist");
	CHECK(!k.key && k.trouble.kind == ERR_SYS);
	CHECK_ERR(node_key_sign(&k, "x", 1, signature, &err), ERR_SYS);
	CHECK_ERR(node_key_parse(&k, rsa, strlen(rsa), &err), ERR_INVALID);
	CHECK_ERR(node_key_parse(&k, "", 0, &err), ERR_INVALID);
}

/* ---- the chain ---- */

static struct receipts all;
static struct fleet fleet;

static void chain_init(struct store *s, const char *dir)
{
	fleet = (struct fleet){ .store = s };
	all = (struct receipts){ 0 };
	node_key_open(&all.key, dir);
	receipts_init(&all, &fleet);
}

static struct store_run run_of(unsigned n)
{
	struct store_run r = { .kind = STORE_RUN_ONCE,
			       .team = "default",
			       .box = "aaaaaaaaaaaa",
			       .cause = "exit",
			       .started_ns = 1700000000123000000 + n,
			       .ended_ns = 1700000001456000000 + n };

	snprintf(r.id, sizeof(r.id), "%s", id_of(n));
	return r;
}

static json_t *record_of(void)
{
	return json_loads(
		"{\"template\":\"base\",\"layers\":[\"userns\",\"seccomp\"],\"command\":[\"python3\",\"-\"],"
		"\"limits\":{\"mem\":1,\"cpu_ms\":null},\"stdout_bytes\":3,\"stderr_bytes\":0,"
		"\"request\":{\"language\":\"python\",\"code\":\"print(1)\",\"args\":[\"\xc3\xa9\"]}}",
		0, NULL);
}

static int end_run(unsigned n)
{
	struct store_run r = run_of(n);
	struct run_facts facts = { .layers = json_array(), .has_output = { 1, 0 } };
	json_t *record = record_of();
	int rc = store_run_begin(fleet.store, &r, &err) < 0
			 ? -1
			 : run_end_write(&fleet, &r, record, &facts, &err);

	json_decref(record);
	run_facts_fini(&facts);
	return rc;
}

TEST(the_body_of_a_receipt_is_canonical_and_complete)
{
	auto_buf struct buf body = { 0 };
	struct store_run r = run_of(1);
	struct run_facts facts = { .layers = json_pack("[s]", "abc"), .has_output = { 1, 0 } };
	json_t *record = record_of(), *doc;
	char hex[65];

	all = (struct receipts){ .number = 7 };
	snprintf(all.key.id, sizeof(all.key.id), "0123456789abcdef");
	memset(facts.output[0], 0xab, SHA256_BYTES);
	receipts_body(&body, &all, &r, record, &facts);
	doc = canonical_parse(body.p, body.len, &err);
	CHECK(doc);
	CHECK_INT(json_object_size(doc), 20);
	CHECK_STR(json_string_value(json_object_get(doc, "ended")), "2023-11-14T22:13:21.456Z");
	CHECK_STR(json_string_value(json_object_get(doc, "code")),
		  "d287bb7f9d15abdc5b6e98536263815744b6ef21c8f3c839fc434ca70d8efe99");
	receipts_hash_inputs(json_object_get(record, "request"), hex);
	CHECK_STR(json_string_value(json_object_get(doc, "inputs")), hex);
	CHECK(!strncmp(
		json_string_value(json_object_get(json_object_get(doc, "outputs"), "stdout")),
		"abab", 4));
	CHECK(json_is_null(json_object_get(json_object_get(doc, "outputs"), "stderr")));
	json_decref(doc);
	/* Nothing is known of a run whose box was lost. */
	buf_cut(&body, 0);
	receipts_body(&body, &all, &r, NULL, &(struct run_facts){ 0 });
	doc = canonical_parse(body.p, body.len, &err);
	CHECK(doc && json_is_null(json_object_get(doc, "code")) &&
	      json_is_null(json_object_get(doc, "layers")));
	json_decref(doc);
	json_decref(record);
	run_facts_fini(&facts);
}

/* The export of receipts from..to, a line each. */
static void export_lines(struct buf *out, uint64_t from, int withhold)
{
	struct store_receipts rows = { 0 };

	buf_cut(out, 0);
	if (store_receipt_list(fleet.store, from, 100, &rows, &err) < 0)
		abort();
	for (unsigned i = 0; i < rows.n; i++) {
		if (receipts_line(&all, &rows.v[i], withhold && rows.v[i].number % 2 == 0, out,
				  &err) < 0)
			abort();
		buf_putc(out, '\n');
	}
	store_receipts_fini(&rows);
}

/* The message of the first defect; "" if there is none. */
static const char *verify_text(const char *text)
{
	static struct err why;
	struct node_key public;
	struct verify v = { .key = &public };
	int rc = 0;

	if (node_key_parse(&public, all.key.pem, strlen(all.key.pem), &err) < 0)
		abort();
	why.msg[0] = 0;
	while (rc == 0 && *text) {
		size_t n = strcspn(text, "\n");

		rc = verify_line(&v, text, n, &why);
		text += n + (text[n] == '\n');
	}
	node_key_close(&public);
	return why.msg;
}

/* The lines of text with these indices, from 0. */
static const char *lines_of(const char *text, const char *indices)
{
	static struct buf out;

	buf_cut(&out, 0);
	for (; *indices; indices++) {
		const char *at = text;

		for (int i = *indices - '0'; i; i--)
			at = strchr(at, '\n') + 1;
		buf_add(&out, at, strcspn(at, "\n") + 1);
	}
	return buf_str(&out);
}

static const char *replaced(const char *text, const char *old, const char *new)
{
	static struct buf out;
	const char *at = strstr(text, old);

	if (!at)
		abort();
	buf_cut(&out, 0);
	buf_add(&out, text, (size_t)(at - text));
	buf_puts(&out, new);
	buf_puts(&out, at + strlen(old));
	return buf_str(&out);
}

TEST(a_chain_is_verified_with_the_public_key_alone_and_every_change_is_found)
{
	STORE(s, dir);
	auto_buf struct buf text = { 0 };
	const char *three;

	chain_init(s, dir);
	for (unsigned n = 1; n <= 6; n++)
		CHECK_OK(end_run(n));
	export_lines(&text, 1, 0);
	CHECK_STR(verify_text(text.p), "");
	CHECK_STR(verify_text(lines_of(text.p, "345")), ""); /* a part of it */
	CHECK_STR(verify_text(lines_of(text.p, "4")), "");
	CHECK_STR(verify_text(lines_of(text.p, "0134")), "receipt 3 is missing: 4 follows 2");
	CHECK_STR(verify_text(lines_of(text.p, "045")), "receipts 2 to 4 are missing: 5 follows 1");
	CHECK_STR(verify_text(lines_of(text.p, "0213")), "receipt 2 is missing: 3 follows 1");
	CHECK_STR(verify_text(lines_of(text.p, "10")), "receipt 1: out of order, it follows 2");
	CHECK_STR(verify_text(lines_of(text.p, "011")), "receipt 2: occurs twice");
	three = lines_of(text.p, "2");
	CHECK_STR(verify_text(replaced(three, "\"status\":0", "\"status\":1")),
		  "receipt 3: the signature does not match: its content was changed");
	CHECK_STR(verify_text(replaced(three, "\"number\":3", "\"number\":4")),
		  "receipt 4: the signature does not match: its content was changed");
	CHECK(strstr(verify_text(replaced(three, "\"status\":0", "\"status\":0,\"status\":1")),
		     "duplicate"));
	CHECK(strstr(verify_text(replaced(three, "\"status\":0", "\"status\": 0")),
		     "not canonical"));
	CHECK(strstr(verify_text(replaced(three, "\"version\":1", "\"version\":2")),
		     "receipt 3: version: 2"));
	CHECK(strstr(verify_text(replaced(three, "\"signature\":\"", "\"signature\":\"0")),
		     "signature: not 128"));
	CHECK(strstr(verify_text("{}\n"), "number"));
	CHECK(strstr(verify_text("[1]\n"), "number"));
	CHECK(strstr(verify_text("[]\n{\n"), "number"));
	CHECK(strstr(verify_text("nonsense\n"), "not JSON"));
	receipts_fini(&all);
}

TEST(a_receipt_of_another_team_is_a_link_without_content)
{
	STORE(s, dir);
	auto_buf struct buf text = { 0 };

	chain_init(s, dir);
	for (unsigned n = 1; n <= 5; n++)
		CHECK_OK(end_run(n));
	export_lines(&text, 1, 1);
	CHECK_STR(verify_text(text.p), "");
	CHECK(!strstr(lines_of(text.p, "13"), "default") &&
	      !strstr(lines_of(text.p, "13"), "receipt"));
	CHECK_STR(verify_text(lines_of(text.p, "024")), "receipt 2 is missing: 3 follows 1");
	CHECK(strstr(verify_text(replaced(lines_of(text.p, "1"), "\"number\":2", "\"number\":1")),
		     "was changed"));
	receipts_fini(&all);
}

TEST(receipts_of_another_node_are_not_accepted)
{
	STORE(s, dir);
	auto_dir char other[128];
	auto_buf struct buf text = { 0 };

	chain_init(s, dir);
	CHECK_OK(end_run(1));
	export_lines(&text, 1, 0);
	node_key_close(&all.key);
	dir_make(other);
	node_key_open(&all.key, other);
	CHECK(strstr(verify_text(text.p), "receipt 1: signed with key"));
	receipts_fini(&all);
}

TEST(a_row_that_was_changed_in_the_database_is_not_signed)
{
	STORE(s, dir);
	struct store_receipt row;
	auto_buf struct buf out = { 0 };

	chain_init(s, dir);
	CHECK_OK(end_run(1));
	CHECK_OK(store_receipt_of_run(s, id_of(1), &row, &err));
	CHECK_OK(receipts_line(&all, &row, 0, &out, &err));
	*strstr(row.body, "exit") = 'E';
	CHECK_ERR(receipts_line(&all, &row, 0, &out, &err), ERR_CONFLICT);
	store_receipt_fini(&row);
	receipts_fini(&all);
}

TEST(a_second_end_and_a_rollback_leave_no_receipt_and_no_gap)
{
	STORE(s, dir);
	struct store_run r = run_of(1), helper = run_of(9);
	struct store_receipts rows;

	chain_init(s, dir);
	CHECK_OK(end_run(1));
	CHECK_ERR(run_end_write(&fleet, &r, NULL, &(struct run_facts){ 0 }, &err), ERR_CONFLICT);
	CHECK_OK(store_begin(s, &err));
	CHECK_OK(end_run(2));
	CHECK_OK(end_run(3));
	store_rollback(s);
	snprintf(helper.tag, sizeof(helper.tag), "%s", STORE_RUN_HELPER);
	CHECK_OK(store_run_begin(s, &helper, &err));
	CHECK_OK(run_end_write(&fleet, &helper, NULL, &(struct run_facts){ 0 }, &err));
	CHECK_OK(end_run(4));
	CHECK_OK(store_receipt_list(s, 1, 10, &rows, &err));
	CHECK_INT(rows.n, 2);
	CHECK_INT(rows.v[1].number, 2);
	CHECK_STR(rows.v[1].run, id_of(4));
	store_receipts_fini(&rows);
	receipts_fini(&all);
}

TEST(old_receipts_are_removed_from_the_beginning_and_numbers_are_not_used_again)
{
	STORE(s, dir);
	auto_buf struct buf text = { 0 };
	struct store_receipt row;
	unsigned n;

	chain_init(s, dir);
	for (unsigned i = 1; i <= 6; i++)
		CHECK_OK(end_run(i));
	CHECK_OK(store_receipt_purge(s, 0, 0, 100, &n, &err));
	CHECK_INT(n, 0);
	CHECK_OK(store_receipt_purge(s, 1700000001456000003, 0, 100, &n, &err));
	CHECK_INT(n, 2);
	CHECK_OK(store_receipt_purge(s, 0, 3, 100, &n, &err));
	CHECK_INT(n, 1);
	export_lines(&text, 1, 0);
	CHECK_STR(verify_text(text.p), "");
	CHECK_ERR(store_receipt_of_run(s, id_of(1), &row, &err), ERR_NOT_FOUND);
	CHECK_OK(store_receipt_purge(s, INT64_MAX, 1, 100, &n, &err));
	CHECK_INT(n, 2);
	CHECK_OK(end_run(7));
	CHECK_OK(store_receipt_of_run(s, id_of(7), &row, &err));
	CHECK_INT(row.number, 7);
	store_receipt_fini(&row);
	receipts_fini(&all);
}

TEST(a_sweep_of_the_history_removes_old_receipts)
{
	STORE(s, dir);
	struct store_history h = { .now_ns = 1700000001456000000 + 3600 * INT64_C(1000000000),
				   .keep_ns = 60 * UINT64_C(1000000000) };
	struct store_receipts rows;
	int rc;

	chain_init(s, dir);
	for (unsigned i = 1; i <= 200; i++)
		CHECK_OK(end_run(i));
	while ((rc = store_history_step(s, &h, &err)) > 0)
		;
	CHECK_INT(rc, 0);
	CHECK_INT(h.receipts, 199);
	CHECK_OK(store_receipt_list(s, 1, 10, &rows, &err));
	CHECK_INT(rows.n, 1);
	CHECK_INT(rows.v[0].number, 200);
	store_receipts_fini(&rows);
	receipts_fini(&all);
}

/* Ends runs in groups until it is killed. */
static void end_runs_forever(const char *dir, unsigned from)
{
	struct store *s;

	if (store_open(&s, dir, &err) < 0)
		_exit(1);
	chain_init(s, dir);
	for (unsigned n = from;;) {
		if (store_begin(s, &err) < 0)
			_exit(1);
		for (unsigned i = 0; i < 5; i++)
			if (end_run(n++) < 0)
				_exit(1);
		if (store_commit(s, &err) < 0)
			_exit(1);
	}
}

TEST(processes_killed_while_they_write_leave_neither_a_gap_nor_a_number_twice)
{
	auto_dir char dir[128];
	auto_buf struct buf text = { 0 };
	struct store_receipts rows = { 0 };
	uint64_t from = 1;
	unsigned n;

	dir_make(dir);
	for (unsigned round = 0; round < 6; round++) {
		pid_t pids[2];

		/* Two at once, as during a reload. */
		for (unsigned i = 0; i < 2; i++) {
			pids[i] = fork();
			if (pids[i] == 0)
				end_runs_forever(dir, 1000000 * (2 * round + i + 1));
		}
		usleep(60000 + 7000 * round);
		for (unsigned i = 0; i < 2; i++) {
			kill(pids[i], SIGKILL);
			waitpid(pids[i], NULL, 0);
		}
	}
	auto_store struct store *s = NULL;
	CHECK_OK(store_open(&s, dir, &err));
	chain_init(s, dir);
	CHECK_OK(end_run(1));
	do {
		CHECK_OK(store_receipt_list(s, from, 100, &rows, &err));
		n = rows.n;
		for (unsigned i = 0; i < n; i++)
			CHECK_INT(rows.v[i].number, from + i);
		store_receipts_fini(&rows);
		export_lines(&text, from, 0);
		CHECK_STR(verify_text(buf_str(&text)), "");
		from += n;
	} while (n);
	CHECK(from > 1);
	receipts_fini(&all);
}
