/* Pages and filters; audit, events, volumes, idempotency. */
#include "store/history.h"
#include "store/snapshots.h"
#include "store/sql.h"
#include "store_rows.h"

/* Boxes ---- */

static int add_boxes(struct store *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct store_box b = box_of(i);

		b.created_ns = 1000 + i / 3; /* some at the same moment */
		if (store_box_insert(s, &b, &err) < 0)
			return -1;
	}
	return 0;
}

TEST(pages_of_boxes_have_each_box_once_newest_first)
{
	struct store_box_filter f = { .limit = 7 };
	unsigned seen = 0;
	int more = 1;

	STORE(s, dir);
	CHECK_OK(add_boxes(s, 50));
	while (more) {
		struct store_boxes l;

		CHECK_OK(store_box_list(s, &f, &l, &err));
		for (unsigned i = 0; i < l.n; i++)
			CHECK_STR(l.v[i].id, id_of(49 - seen++));
		more = l.more;
		f.after = store_box_cursor(&l.v[l.n - 1]);
		store_boxes_fini(&l);
	}
	CHECK_INT(seen, 50);
}

TEST(the_size_of_a_page_is_limited)
{
	struct store_box_filter f = { 0 };
	struct store_boxes l;

	STORE(s, dir);
	CHECK_OK(store_box_list(s, &f, &l, &err));
	CHECK(l.n == 0 && !l.more);
	store_boxes_fini(&l);
	CHECK_OK(store_begin(s, &err));
	CHECK_OK(add_boxes(s, 1100));
	CHECK_OK(store_commit(s, &err));
	CHECK_OK(store_box_list(s, &f, &l, &err));
	CHECK(l.n == STORE_PAGE && l.more);
	store_boxes_fini(&l);
	f.limit = UINT32_MAX;
	CHECK_OK(store_box_list(s, &f, &l, &err));
	CHECK(l.n == STORE_PAGE_MAX && l.more);
	store_boxes_fini(&l);
	CHECK_OK(store_box_live(s, &l, &err));
	CHECK_INT(l.n, 1100);
	CHECK_STR(l.v[0].id, id_of(0));
	store_boxes_fini(&l);
}

TEST(a_page_of_large_rows_is_short_and_the_next_one_continues)
{
	struct store_box_filter f = { .limit = 100 };
	static char large[100000];
	unsigned seen = 0, pages = 0;
	struct store_boxes l;
	int more = 1;

	STORE(s, dir);
	snprintf(large, sizeof(large), "{\"A\":\"%099000d\"}", 0);
	for (unsigned i = 0; i < 30; i++) {
		struct store_box b = box_of(i);

		b.created_ns = 1000 + i;
		b.env = large;
		CHECK_OK(store_box_insert(s, &b, &err));
	}
	while (more && pages++ < 30) {
		CHECK_OK(store_box_list(s, &f, &l, &err));
		CHECK(l.n >= 1 && l.n <= STORE_PAGE_BYTES / 99000 + 1);
		for (unsigned i = 0; i < l.n; i++)
			CHECK_STR(l.v[i].id, id_of(29 - seen++));
		more = l.more;
		f.after = store_box_cursor(&l.v[l.n - 1]);
		store_boxes_fini(&l);
	}
	CHECK_INT(seen, 30);
	CHECK_OK(store_box_live(s, &l, &err)); /* not a page: all of them */
	CHECK_INT(l.n, 30);
	store_boxes_fini(&l);
}

static int sweep(struct store *s, int64_t now_ns, uint64_t keep_ns, uint64_t team_bytes,
		 struct store_history *out)
{
	int rc = 1;

	*out = (struct store_history){ .now_ns = now_ns,
				       .keep_ns = keep_ns,
				       .team_bytes = team_bytes };
	while (rc > 0)
		rc = store_history_step(s, out, &err);
	return rc;
}

static int listed(struct store *s, struct store_box_filter f)
{
	struct store_boxes l;
	int n;

	if (store_box_list(s, &f, &l, &err) < 0)
		return -1;
	n = (int)l.n;
	store_boxes_fini(&l);
	return n;
}

TEST(boxes_are_filtered_by_team_state_template_and_name)
{
	struct store_box b = box_of(1);
	uint64_t live;
	struct store_history swept;

	STORE(s, dir);
	strcpy(b.name, "a_b%c");
	CHECK_OK(store_box_insert(s, &b, &err));
	b = box_of(2);
	strcpy(b.name, "axbyc");
	strcpy(b.template, "node");
	b.state = STORE_BOX_STOPPED;
	CHECK_OK(store_box_insert(s, &b, &err));
	b = box_of(3);
	strcpy(b.team, "blue");
	CHECK_OK(store_box_insert(s, &b, &err));
	b = box_of(4);
	CHECK_OK(store_box_insert(s, &b, &err));
	CHECK_OK(store_box_set_state(s, b.id, STORE_BOX_DELETED, "wall", 50, &err));

#define LISTED(...) listed(s, (struct store_box_filter){ __VA_ARGS__ })
	CHECK_INT(LISTED(0), 3);
	CHECK_INT(LISTED(.team = "default"), 2);
	CHECK_INT(LISTED(.team = "missing"), 0);
	CHECK_INT(LISTED(.states = 1u << STORE_BOX_DELETED), 1);
	CHECK_INT(LISTED(.states = 1u << STORE_BOX_DELETED | 1u << STORE_BOX_STOPPED), 2);
	CHECK_INT(LISTED(.states = (1u << STORE_BOX_STATES) - 1), 4);
	CHECK_INT(LISTED(.states = 1u << STORE_BOX_STATES), -1);
	CHECK_INT(err.kind, ERR_INVALID);
	CHECK_INT(LISTED(.template = "node"), 1);
	CHECK_INT(LISTED(.name_prefix = "a"), 2);
	CHECK_INT(LISTED(.name_prefix = "a_"), 1);
	CHECK_INT(LISTED(.name_prefix = "a_b%"), 1);
	CHECK_INT(LISTED(.name_prefix = "b"), 0);
	CHECK_INT(LISTED(.name_prefix = ""), 3);
	CHECK_INT(LISTED(.name_prefix = "\xff"), -1);
	CHECK_OK(store_box_count(s, "default", &live, &err));
	CHECK_INT(live, 2);
	CHECK_OK(sweep(s, 1050, 1000, 0, &swept));
	CHECK_INT(swept.boxes, 0);
	CHECK_OK(sweep(s, 1051, 1000, 0, &swept));
	CHECK_INT(swept.boxes, 1);
	CHECK_INT(LISTED(.states = (1u << STORE_BOX_STATES) - 1), 3);
}

TEST(boxes_are_filtered_by_exact_metadata)
{
	static const struct {
		struct store_pair pair[2];
		unsigned n;
		int want;
	} asked[] = {
		{ { { "k", "v" } }, 1, 1 },
		{ { { "k", "V" } }, 1, 0 },
		{ { { "k", "v" }, { "n", "5" } }, 2, 0 }, /* a number is not a string */
		{ { { "k", "v" }, { "q\"'$.[0]", "x" } }, 2, 1 },
		{ { { "q\"'$.[0]", "x" } }, 1, 1 },
		{ { { "k.v", "" } }, 1, 0 },
		{ { { "o", "{\"k\":\"w\"}" } }, 1, 0 },
		{ { { "t", "1" } }, 1, 0 },
		{ { { "", "empty" } }, 1, 1 },
		{ { { "\xc3\xa9", "\xf0\x9f\x90\x9a" } }, 1, 1 },
		{ { { "k", "' OR 1 --" } }, 1, 0 },
	};
	static const struct store_pair many[STORE_PAIRS_MAX + 1];
	struct store_box b = box_of(1);

	STORE(s, dir);
	b.metadata =
		(char *)"{\"k\":\"v\",\"n\":5,\"q\\\"'$.[0]\":\"x\",\"o\":{\"k\":\"w\"},\"t\":true,"
			"\"\":\"empty\",\"\\u00e9\":\"\xf0\x9f\x90\x9a\"}";
	CHECK_OK(store_box_insert(s, &b, &err));
	b = box_of(2);
	CHECK_OK(store_box_insert(s, &b, &err));
	for (unsigned i = 0; i < ARRAY_LEN(asked); i++)
		CHECK_INT(LISTED(.metadata = asked[i].pair, .nmetadata = asked[i].n),
			  asked[i].want);
	CHECK_INT(LISTED(.metadata = many, .nmetadata = STORE_PAIRS_MAX + 1), -1);
	CHECK_INT(err.kind, ERR_LIMIT);
}

TEST(keys_are_listed_in_pages)
{
	struct store_cursor after = { 0 };
	struct store_keys l;

	STORE(s, dir);
	for (unsigned i = 0; i < 5; i++) {
		struct store_key k = { .team = "default", .created_ns = 10 + i };

		k.hash[0] = (uint8_t)i;
		CHECK_OK(store_key_add(s, &k, &err));
	}
	CHECK_OK(store_key_list(s, "default", NULL, 3, &l, &err));
	CHECK(l.n == 3 && l.more && l.v[0].created_ns == 14);
	after.ns = l.v[2].created_ns;
	memcpy(after.id, l.v[2].id, sizeof(after.id));
	store_keys_fini(&l);
	CHECK_OK(store_key_list(s, NULL, &after, 3, &l, &err));
	CHECK(l.n == 2 && !l.more && l.v[1].created_ns == 10);
	store_keys_fini(&l);
	CHECK_OK(store_key_list(s, "blue", NULL, 3, &l, &err));
	CHECK_INT(l.n, 0);
	store_keys_fini(&l);
}

/* Runs ---- */

static int add_run(struct store *s, unsigned n, const char *box, const char *cause)
{
	struct store_run r = {
		.started_ns = 100 + n, .ended_ns = 200 + n, .team = "default", .output_bytes = 10
	};

	strcpy(r.id, id_of(n));
	strcpy(r.box, box);
	snprintf(r.tag, sizeof(r.tag), "t%u", n % 2);
	if (store_run_begin(s, &r, &err) < 0 || !cause)
		return cause ? -1 : 0;
	strcpy(r.cause, cause);
	return store_run_end(s, &r, &err);
}

static int runs(struct store *s, struct store_run_filter f)
{
	struct store_runs l;
	int n;

	if (store_run_list(s, &f, &l, &err) < 0)
		return -1;
	n = (int)l.n;
	store_runs_fini(&l);
	return n;
}

TEST(runs_are_filtered_paged_and_removed)
{
	struct store_runs l;
	struct store_history swept;

	STORE(s, dir);
	for (unsigned i = 0; i < 6; i++)
		CHECK_OK(add_run(s, i, i < 3 ? "aaaaaaaaaaaa" : "bbbbbbbbbbbb",
				 i == 5  ? NULL
				 : i % 2 ? "exit"
					 : "memory"));
#define RUNS(...) runs(s, (struct store_run_filter){ __VA_ARGS__ })
	CHECK_INT(RUNS(0), 6);
	CHECK_INT(RUNS(.team = "default"), 6);
	CHECK_INT(RUNS(.team = "blue"), 0);
	CHECK_INT(RUNS(.box = "aaaaaaaaaaaa"), 3);
	CHECK_INT(RUNS(.cause = "exit"), 2);
	CHECK_INT(RUNS(.tag = "t1"), 3);
	CHECK_INT(RUNS(.since_ns = 102), 4);
	CHECK_INT(RUNS(.until_ns = 102), 2);
	CHECK_INT(RUNS(.since_ns = 101, .until_ns = 103, .team = "default"), 2);
	CHECK_INT(RUNS(.running = 1), 1);
	CHECK_INT(RUNS(.running = 1, .box = "aaaaaaaaaaaa"), 0);

	CHECK_OK(store_run_list(s, &(struct store_run_filter){ .limit = 4, .brief = 1 }, &l, &err));
	CHECK(l.n == 4 && l.more && !l.v[0].record && !l.v[0].command);
	CHECK_STR(l.v[0].id, id_of(5));
	CHECK_INT(RUNS(.after = store_run_cursor(&l.v[3])), 2);
	store_runs_fini(&l);
	CHECK_OK(store_run_running(s, "bbbbbbbbbbbb", &l, &err));
	CHECK_INT(l.n, 1);
	CHECK_STR(l.v[0].command, "[]");
	store_runs_fini(&l);
	CHECK_OK(store_run_running(s, NULL, &l, &err));
	CHECK_INT(l.n, 1);
	store_runs_fini(&l);

	CHECK_OK(sweep(s, 1203, 1000, 0, &swept));
	CHECK_INT(swept.runs, 3);
	CHECK_OK(sweep(s, INT64_MAX, 1000, 0, &swept));
	CHECK_INT(swept.runs, 2); /* the running one stays */
	CHECK_INT(RUNS(0), 1);
	CHECK_STR(store_run_kind_name(STORE_RUN_ONCE), "run");
}

/* The query plans of SQLite for the prepared statements about runs, a line each. */
static void plans(struct store *s, struct buf *out)
{
	for (sqlite3_stmt *q = sqlite3_next_stmt(s->db, NULL); q; q = sqlite3_next_stmt(s->db, q)) {
		struct buf text = { 0 };
		sqlite3_stmt *plan;

		if (!strstr(sqlite3_sql(q), "FROM runs") || !strncmp(sqlite3_sql(q), "EXPLAIN", 7))
			continue;
		buf_printf(&text, "EXPLAIN QUERY PLAN %s", sqlite3_sql(q));
		if (sqlite3_prepare_v2(s->db, text.p, -1, &plan, NULL) != SQLITE_OK)
			abort();
		while (sqlite3_step(plan) == SQLITE_ROW)
			buf_printf(out, "%s\n", sqlite3_column_text(plan, 3));
		sqlite3_finalize(plan);
		buf_fini(&text);
	}
}

TEST(every_list_of_runs_uses_an_index)
{
	auto_buf struct buf said = { 0 };

	STORE(s, dir);
	CHECK_INT(RUNS(.team = "default"), 0);
	CHECK_INT(RUNS(.team = "default", .box = "aaaaaaaaaaaa"), 0);
	CHECK_INT(RUNS(.team = "default", .cause = "memory"), 0);
	CHECK_INT(RUNS(.team = "default", .tag = "t1", .since_ns = 5), 0);
	CHECK_INT(RUNS(.team = "default", .after = { 7, "aaaaaaaaaaaa" }), 0);
	plans(s, &said);
	/* Two ordered streams that are merged, each as far as it is read. */
	CHECK(strstr(said.p, "MERGE (UNION ALL)"));
	for (unsigned i = 0; i < 4; i++) {
		static const char *const used[] = { "runs_team (", "runs_box (", "runs_cause (",
						    "runs_tag (" };

		if (!strstr(said.p, used[i]))
			printf("# no %s in:\n%s\n", used[i], said.p);
		CHECK(strstr(said.p, used[i]));
	}
	for (char *line = strtok(said.p, "\n"); line; line = strtok(NULL, "\n"))
		CHECK(strncmp(line, "SCAN runs", 9) != 0 || strstr(line, "runs_running"));
}

/* Audit ---- */

static int note(struct store *s, int64_t at_ns, const char *action)
{
	struct store_audit a = {
		.at_ns = at_ns, .who = "uid:0", .team = "default", .subject = "x", .result = "ok"
	};

	strcpy(a.action, action);
	return store_audit_add(s, &a, &err);
}

static int notes(struct store *s, struct store_audit_filter f)
{
	struct store_audits l;
	int n;

	if (store_audit_list(s, &f, &l, &err) < 0)
		return -1;
	n = (int)l.n;
	store_audits_fini(&l);
	return n;
}

TEST(audit_rows_are_filtered_and_paged)
{
	struct store_audits l;

	STORE(s, dir);
	CHECK_OK(note(s, 10, "box.create"));
	CHECK_OK(note(s, 20, "box.delete"));
	CHECK_OK(note(s, 30, "key.create"));
#define NOTES(...) notes(s, (struct store_audit_filter){ __VA_ARGS__ })
	CHECK_INT(NOTES(0), 3);
	CHECK_INT(NOTES(.action = "box.create"), 1);
	CHECK_INT(NOTES(.action = "box."), 2);
	CHECK_INT(NOTES(.action = "box"), 0);
	CHECK_INT(NOTES(.team = "blue"), 0);
	CHECK_INT(NOTES(.who = "uid:0", .subject = "x", .team = "default"), 3);
	CHECK_INT(NOTES(.since_ns = 20), 2);
	CHECK_INT(NOTES(.until_ns = 20), 1);
	CHECK_OK(store_audit_list(s, &(struct store_audit_filter){ .limit = 2 }, &l, &err));
	CHECK(l.n == 2 && l.more && l.v[0].at_ns == 30);
	CHECK_STR(l.v[0].detail, "{}");
	CHECK_INT(NOTES(.before = l.v[1].seq), 1);
	store_audits_fini(&l);
}

static int try_sql(struct store *s, const char *text)
{
	auto_sql struct sql q = sql(s, text);

	return sql_run(&q, &err);
}

TEST(audit_rows_can_be_neither_changed_nor_deleted)
{
	STORE(s, dir);
	CHECK_OK(note(s, 10, "box.create"));
	CHECK_ERR(try_sql(s, "UPDATE audit SET who = 'other'"), ERR_DENIED);
	CHECK_ERR(try_sql(s, "DELETE FROM audit"), ERR_DENIED);
	CHECK_ERR(try_sql(s, "DELETE FROM audit_line"), ERR_DENIED);
	CHECK_INT(NOTES(.who = "uid:0"), 1);
}

TEST(removing_audit_rows_leaves_a_row_and_cannot_be_undone)
{
	unsigned n;

	STORE(s, dir);
	for (int i = 0; i < 5; i++)
		CHECK_OK(note(s, 10 + i, "box.create"));
	CHECK_OK(note(
		s, 5,
		"box.create")); /* the clock was wrong: the event is kept, otherwise there would be a gap */
	CHECK_OK(store_audit_retire(s, 12, "uid:7", 100, 1000, &n, &err));
	CHECK_INT(n, 2);
	CHECK_INT(NOTES(.action = "box.create"), 4);
	CHECK_INT(NOTES(.action = "audit.retire", .who = "uid:7"), 1);
	CHECK_ERR(try_sql(s, "UPDATE audit_line SET before_ns = 1"), ERR_DENIED);
	CHECK_ERR(try_sql(s, "DELETE FROM audit WHERE at_ns = 13"), ERR_DENIED);
	CHECK_OK(store_audit_retire(s, 11, "uid:7", 101, 1000, &n,
				    &err)); /* nothing: no trace either */
	CHECK_INT(n, 0);
	CHECK_INT(NOTES(0), 5);
	CHECK_OK(store_audit_retire(s, 1000, "uid:7", 2000, 1000, &n, &err));
	CHECK_INT(n, 5);
	CHECK_INT(NOTES(0), 1);
}

/* Events ---- */

TEST(events_are_read_after_a_given_number)
{
	struct store_event ev = {
		.at_ns = 1, .team = "default", .box = "aaaaaaaaaaaa", .type = "t"
	};
	int64_t first, last;
	struct store_events l;

	STORE(s, dir);
	CHECK_OK(store_event_range(s, &first, &last, &err));
	CHECK(first == 0 && last == 0);
	for (unsigned i = 0; i < 5; i++) {
		CHECK_OK(store_event_add(s, &ev, &err));
		CHECK_INT(ev.seq, i + 1);
	}
	strcpy(ev.team, "blue");
	strcpy(ev.box, "bbbbbbbbbbbb");
	CHECK_OK(store_event_add(s, &ev, &err));
	CHECK_OK(store_event_list(s, 1, NULL, NULL, 3, &l, &err));
	CHECK(l.n == 3 && l.more && l.v[0].seq == 2);
	store_events_fini(&l);
	CHECK_OK(store_event_list(s, 0, "blue", NULL, 3, &l, &err));
	CHECK(l.n == 1 && !l.more && l.v[0].seq == 6);
	store_events_fini(&l);
	CHECK_OK(store_event_list(s, 4, "default", "aaaaaaaaaaaa", 0, &l, &err));
	CHECK_INT(l.n, 1);
	CHECK_STR(l.v[0].data, "{}");
	store_events_fini(&l);
	CHECK_OK(store_event_list(s, 0, "blue", "aaaaaaaaaaaa", 0, &l, &err));
	CHECK_INT(l.n, 0);
	store_events_fini(&l);
	CHECK_OK(store_event_range(s, &first, &last, &err));
	CHECK(first == 1 && last == 6);
}

TEST(events_are_found_from_both_ends_and_by_time)
{
	struct store_event ev = { .team = "default", .box = "aaaaaaaaaaaa", .type = "t" };
	struct store_event_filter f = { .team = "default", .limit = 3 };
	struct store_events l;

	STORE(s, dir);
	for (unsigned i = 0; i < 5; i++) {
		ev.at_ns = (i + 1) * 10;
		CHECK_OK(store_event_add(s, &ev, &err));
	}
	CHECK_OK(store_event_find(s, &f, &l, &err));
	CHECK(l.n == 3 && l.more && l.v[0].seq == 5 && l.v[2].seq == 3);
	store_events_fini(&l);
	f.behind = 3;
	CHECK_OK(store_event_find(s, &f, &l, &err));
	CHECK(l.n == 2 && !l.more && l.v[0].seq == 2);
	store_events_fini(&l);
	f = (struct store_event_filter){
		.box = "aaaaaaaaaaaa", .since_ns = 20, .until_ns = 40, .oldest_first = 1
	};
	CHECK_OK(store_event_find(s, &f, &l, &err));
	CHECK(l.n == 3 && l.v[0].seq == 2 && l.v[2].seq == 4);
	store_events_fini(&l);
	f.behind = 3;
	CHECK_OK(store_event_find(s, &f, &l, &err));
	CHECK(l.n == 1 && l.v[0].seq == 4);
	store_events_fini(&l);
	f.team = "blue";
	CHECK_OK(store_event_find(s, &f, &l, &err));
	CHECK_INT(l.n, 0);
	store_events_fini(&l);
}

TEST(only_the_newest_events_are_kept)
{
	struct store_event ev = { .team = "default", .type = "t" };
	int64_t first, last;

	STORE(s, dir);
	CHECK_OK(store_begin(s, &err));
	for (unsigned i = 0; i < STORE_EVENTS + 5000; i++)
		CHECK_OK(store_event_add(s, &ev, &err));
	CHECK_OK(store_commit(s, &err));
	CHECK_OK(store_event_range(s, &first, &last, &err));
	CHECK_INT(last, STORE_EVENTS + 5000);
	CHECK(last - first + 1 >= STORE_EVENTS && last - first + 1 <= STORE_EVENTS + 1024);
}

/* Volumes ---- */

static int add_volume(struct store *s, const char *team, const char *name, unsigned n)
{
	struct store_volume v = { .quota_bytes = 100, .created_ns = n };

	strcpy(v.id, id_of(n));
	strcpy(v.team, team);
	strcpy(v.name, name);
	return store_volume_insert(s, &v, &err);
}

TEST(volumes_are_created_found_listed_and_removed)
{
	struct store_volume v;
	struct store_volumes l;

	STORE(s, dir);
	CHECK_OK(add_volume(s, "default", "b", 1));
	CHECK_OK(add_volume(s, "default", "a", 2));
	CHECK_ERR(add_volume(s, "default", "a", 3), ERR_CONFLICT);
	CHECK_ERR(add_volume(s, "default", "c", 2), ERR_CONFLICT);
	CHECK_ERR(add_volume(s, "blue", "a", 3), ERR_NOT_FOUND);
	CHECK_ERR(add_volume(s, "default", "", 3), ERR_INVALID);
	CHECK_OK(store_team_put(s, &(struct store_team){ .name = "blue" }, &err));
	CHECK_OK(add_volume(s, "blue", "a", 3));
	CHECK_OK(store_volume_find(s, "blue", "a", &v, &err));
	CHECK_STR(v.id, id_of(3));
	CHECK(!v.writer[0] && v.readers == 0);
	CHECK_ERR(store_volume_find(s, "blue", "b", &v, &err), ERR_NOT_FOUND);
	CHECK_OK(store_volume_set_quota(s, id_of(3), 7, &err));
	CHECK_ERR(store_volume_set_quota(s, id_of(9), 7, &err), ERR_NOT_FOUND);
	CHECK_OK(store_volume_list(s, "default", NULL, 1, &l, &err));
	CHECK(l.n == 1 && l.more);
	CHECK_STR(l.v[0].name, "a");
	store_volumes_fini(&l);
	CHECK_OK(store_volume_list(s, "default", "a", 1, &l, &err));
	CHECK(l.n == 1 && !l.more);
	store_volumes_fini(&l);
	CHECK_OK(store_volume_list(s, NULL, NULL, 0, &l, &err));
	CHECK_INT(l.n, 3);
	CHECK_INT(l.v[0].quota_bytes, 7);
	store_volumes_fini(&l);
	CHECK_OK(store_volume_remove(s, id_of(3), &err));
	CHECK_ERR(store_volume_remove(s, id_of(3), &err), ERR_NOT_FOUND);
}

static struct store_attachment at(unsigned volume, unsigned box, const char *path, int writable)
{
	struct store_attachment a = { .writable = writable };

	strcpy(a.volume, id_of(volume));
	strcpy(a.box, id_of(box));
	strcpy(a.path, path);
	return a;
}

static struct store_snapshot snapshot(const char *id, const char *name, int64_t at)
{
	struct store_snapshot x = { .tag = "default", .box = "aaaaaaaaaaaa", .template = "base" };

	snprintf(x.id, sizeof(x.id), "%s", id);
	snprintf(x.team, sizeof(x.team), "default");
	snprintf(x.name, sizeof(x.name), "%s", name);
	x.created_ns = at;
	return x;
}

TEST(a_snapshot_is_listed_when_it_is_complete)
{
	struct store_snapshot a = snapshot("aaaaaaaaaaab", "n", 10),
			      b = snapshot("aaaaaaaaaaac", "n", 20), out;
	struct store_snapshot_filter f = { .team = "default", .limit = 1 };
	struct store_snapshots rows;
	char id[ID_MAX + 1];
	uint64_t bytes;
	struct err e;

	STORE(s, dir);
	strcpy(b.tier, "gvisor");
	CHECK(store_snapshot_insert(s, &a, &e) == 0 && store_snapshot_insert(s, &b, &e) == 0);
	CHECK(store_snapshot_get(s, "default", a.id, &out, &e) < 0 && e.kind == ERR_NOT_FOUND);
	CHECK(store_snapshot_named(s, "default", "n", "default", &out, &e) < 0);
	CHECK(store_snapshot_finish(s, a.id, 7, &e) == 0);
	CHECK(store_snapshot_named(s, "default", "n", "default", &out, &e) == 0);
	CHECK_STR(out.id, a.id);
	CHECK(store_snapshot_stale(s, 20, id, &e) < 0 && e.kind == ERR_NOT_FOUND);
	CHECK(store_snapshot_stale(s, 21, id, &e) == 0);
	CHECK_STR(id, b.id);
	CHECK(store_snapshot_finish(s, b.id, 8, &e) == 0);
	CHECK(store_snapshot_named(s, "default", "n", "default", &out, &e) == 0);
	CHECK_STR(out.id, b.id);
	CHECK_STR(out.tier, "gvisor");
	CHECK(store_snapshot_get(s, "other", b.id, &out, &e) < 0 && e.kind == ERR_NOT_FOUND);
	CHECK(store_snapshot_bytes(s, "default", &bytes, &e) == 0 && bytes == 15);
	CHECK(store_snapshot_list(s, &f, &rows, &e) == 0 && rows.n == 1 && rows.more);
	CHECK_STR(rows.v[0].id, b.id);
	f.after = store_snapshot_cursor(&rows.v[0]);
	store_snapshots_fini(&rows);
	CHECK(store_snapshot_list(s, &f, &rows, &e) == 0 && rows.n == 1 && !rows.more);
	CHECK_STR(rows.v[0].id, a.id);
	store_snapshots_fini(&rows);
	CHECK(store_snapshot_remove(s, a.id, &e) == 0);
	CHECK(store_snapshot_remove(s, a.id, &e) < 0 && e.kind == ERR_NOT_FOUND);
	b.team[0] = 'x';
	snprintf(b.id, sizeof(b.id), "aaaaaaaaaaad");
	CHECK(store_snapshot_insert(s, &b, &e) < 0 && e.kind == ERR_NOT_FOUND);
}

TEST(a_volume_has_one_writer_and_many_readers)
{
	struct store_attachment a = at(1, 100, "/data", 1);
	struct store_volume v;
	struct store_attachments l;

	STORE(s, dir);
	CHECK_OK(add_volume(s, "default", "one", 1));
	CHECK_OK(add_volume(s, "default", "two", 2));
	CHECK_OK(store_volume_attach(s, &a, 1, &err));
	CHECK_ERR(store_volume_attach(s, &a, 1, &err), ERR_CONFLICT);
	a = at(1, 101, "/data", 1);
	CHECK_ERR(store_volume_attach(s, &a, 1, &err), ERR_CONFLICT);
	CHECK(strstr(err.msg, id_of(100)));
	for (unsigned i = 101; i < 104; i++) {
		a = at(1, i, "/data", 0);
		CHECK_OK(store_volume_attach(s, &a, 1, &err));
	}
	a = at(2, 101, "/data", 0);
	CHECK_ERR(store_volume_attach(s, &a, 1, &err), ERR_CONFLICT);
	CHECK(strstr(err.msg, "'/data'"));
	CHECK_OK(store_volume_find(s, "default", "one", &v, &err));
	CHECK_STR(v.writer, id_of(100));
	CHECK_INT(v.readers, 3);
	CHECK_ERR(store_volume_remove(s, id_of(1), &err), ERR_CONFLICT);
	CHECK_OK(store_volume_attached(s, id_of(1), NULL, &l, &err));
	CHECK_INT(l.n, 4);
	store_attachments_fini(&l);
	CHECK_OK(store_volume_detach(s, id_of(100), &err));
	CHECK_OK(store_volume_detach(s, id_of(100), &err)); /* detaching nothing is not an error */
	a = at(1, 105, "/data", 1);
	CHECK_OK(store_volume_attach(s, &a, 1, &err));
	CHECK_OK(store_volume_attached(s, NULL, id_of(105), &l, &err));
	CHECK(l.n == 1 && l.v[0].writable);
	CHECK_STR(l.v[0].path, "/data");
	store_attachments_fini(&l);
}

TEST(all_volumes_of_a_box_are_attached_or_none)
{
	struct store_attachment both[2] = { at(1, 100, "/a", 1), at(7, 100, "/b", 0) };
	struct store_attachments l;

	STORE(s, dir);
	CHECK_OK(add_volume(s, "default", "one", 1));
	CHECK_ERR(store_volume_attach(s, both, 2, &err), ERR_NOT_FOUND);
	CHECK_OK(store_volume_attached(s, NULL, NULL, &l, &err));
	CHECK_INT(l.n, 0);
	store_attachments_fini(&l);
	CHECK_OK(store_volume_attach(s, both, 1, &err));
	CHECK_OK(store_volume_attach(s, both, 0, &err));
}

/* Idempotency ---- */

TEST(a_repeated_request_gets_the_answer_of_the_first)
{
	uint8_t hash[SHA256_BYTES] = { 1 }, other[SHA256_BYTES] = { 2 };
	struct store_idem i;

	STORE(s, dir);
	CHECK_OK(store_idem_begin(s, "default", "k", hash, 100, &i, &err));
	CHECK_INT(i.state, IDEM_NEW);
	CHECK_OK(store_idem_begin(s, "default", "k", hash, 101, &i, &err));
	CHECK(i.state == IDEM_BUSY && i.created_ns == 100 && !i.subject[0]);
	store_idem_fini(&i);
	CHECK_OK(store_idem_subject(s, "default", "k", "aaaaaaaaaaaa", &err));
	CHECK_OK(store_idem_begin(s, "default", "k", hash, 101, &i, &err));
	CHECK_STR(i.subject, "aaaaaaaaaaaa");
	store_idem_fini(&i);
	CHECK_ERR(store_idem_begin(s, "default", "k", other, 101, &i, &err), ERR_CONFLICT);
	CHECK_OK(store_idem_begin(s, "blue", "k", other, 101, &i, &err)); /* another team's key */
	CHECK_INT(i.state, IDEM_NEW);
	CHECK_OK(
		store_idem_finish(s, "default", "k", 201, "application/json", "\0\xff{}", 4, &err));
	CHECK_OK(store_idem_begin(s, "default", "k", hash, 102, &i, &err));
	CHECK(i.state == IDEM_DONE && i.status == 201 && i.len == 4);
	CHECK(memcmp(i.body, "\0\xff{}", 5) == 0);
	CHECK_STR(i.type, "application/json");
	store_idem_fini(&i);
}

TEST(a_stored_answer_is_removed_on_request_or_after_a_day)
{
	uint8_t hash[SHA256_BYTES] = { 1 }, other[SHA256_BYTES] = { 2 };
	struct store_idem i;
	struct store_history swept;

	STORE(s, dir);
	CHECK_OK(store_idem_begin(s, "default", "k", hash, 100, &i, &err));
	CHECK_OK(store_idem_forget(s, "default", "k", &err));
	CHECK_ERR(store_idem_forget(s, "default", "k", &err), ERR_NOT_FOUND);
	CHECK_ERR(store_idem_finish(s, "default", "k", 200, "", NULL, 0, &err), ERR_NOT_FOUND);
	CHECK_OK(store_idem_begin(s, "default", "k", other, 100, &i, &err));
	CHECK_INT(i.state, IDEM_NEW);
	CHECK_ERR(store_idem_finish(s, "default", "k", 0, "", NULL, 0, &err), ERR_INVALID);
	CHECK_OK(store_idem_finish(s, "default", "k", 204, "", NULL, 0, &err));
	CHECK_OK(store_idem_begin(s, "default", "k", other, 100 + IDEM_KEEP_NS, &i, &err));
	CHECK(i.state == IDEM_DONE && i.len == 0 && i.body);
	store_idem_fini(&i);
	CHECK_OK(store_idem_begin(s, "default", "k", hash, 101 + IDEM_KEEP_NS, &i, &err));
	CHECK_INT(i.state, IDEM_NEW);
	CHECK_OK(sweep(s, 101 + 2 * IDEM_KEEP_NS, 0, 0, &swept));
	CHECK_INT(swept.keys, 0);
	CHECK_OK(sweep(s, 102 + 2 * IDEM_KEEP_NS, 0, 0, &swept));
	CHECK_INT(swept.keys, 1);
}

TEST(the_length_of_an_idempotency_key_is_limited)
{
	uint8_t hash[SHA256_BYTES] = { 1 };
	char key[IDEM_KEY + 2];
	struct store_idem i;

	STORE(s, dir);
	memset(key, 'k', sizeof(key));
	key[IDEM_KEY + 1] = 0;
	CHECK_ERR(store_idem_begin(s, "default", key, hash, 1, &i, &err), ERR_INVALID);
	CHECK_ERR(store_idem_begin(s, "default", "", hash, 1, &i, &err), ERR_INVALID);
	key[IDEM_KEY] = 0;
	CHECK_OK(store_idem_begin(s, "default", key, hash, 1, &i, &err));
}
