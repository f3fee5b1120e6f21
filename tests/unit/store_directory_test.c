/* Rows for the directory of a cluster: recorded by triggers, in the order of revisions, removed when they are kept. */
#include "store/directory.h"
#include "store/audit.h"
#include "store/events.h"
#include "store/runs.h"
#include "store_rows.h"

static int count(struct store *s, const char *kind)
{
	struct store_directory_rows l = { 0 };
	int n = 0;

	if (store_directory_list(s, 0, 1000, &l, &err) < 0)
		return -1;
	for (unsigned i = 0; i < l.n; i++)
		n += strcmp(l.v[i].kind, kind) == 0;
	store_directory_rows_fini(&l);
	return n;
}

static int64_t newest(struct store *s)
{
	struct store_directory_rows l = { 0 };
	int64_t rev = 0;

	if (store_directory_list(s, 0, 1000, &l, &err) == 0 && l.n)
		rev = l.v[l.n - 1].rev;
	store_directory_rows_fini(&l);
	return rev;
}

static int event(struct store *s)
{
	struct store_event ev = {
		.at_ns = 5, .team = "blue", .box = "aaaaaaaaaaaa", .type = "box.created"
	};

	return store_event_add(s, &ev, &err);
}

TEST(a_machine_without_a_cluster_records_nothing)
{
	struct store_box b = rows_box();

	STORE(s, dir);
	CHECK_OK(store_directory_enable(s, 0, 0, &err));
	CHECK_OK(store_box_insert(s, &b, &err));
	CHECK_INT(count(s, "box"), 0);
	/* What exists already is recorded when the machine joins, once. */
	CHECK_OK(store_directory_enable(s, 1, 1000, &err));
	CHECK_OK(store_directory_enable(s, 1, 1000, &err));
	CHECK_INT(count(s, "box"), 1);
	CHECK(newest(s) > 1000);
	CHECK_OK(store_directory_enable(s, 0, 0, &err));
	CHECK_OK(event(s));
	CHECK_INT(count(s, "event") + count(s, "box"), 0);
}

TEST(a_row_that_changes_again_is_recorded_once_with_a_newer_revision)
{
	struct store_box b = rows_box();
	int64_t first;

	STORE(s, dir);
	CHECK_OK(store_directory_enable(s, 1, 1000, &err));
	CHECK_OK(store_box_insert(s, &b, &err));
	first = newest(s);
	CHECK_OK(store_box_set_times(s, b.id, b.ends_ns, 99, b.kept_until_ns, &err)); /* used */
	CHECK_INT(newest(s), first);
	CHECK_OK(store_box_set_state(s, b.id, STORE_BOX_DELETED, "deleted", 99, &err));
	CHECK_INT(count(s, "box"), 1);
	CHECK(newest(s) > first);
	/* An acknowledgement of the first one keeps the second. */
	CHECK_OK(store_directory_kept(s, first, &err));
	CHECK_INT(count(s, "box"), 1);
	CHECK_OK(store_directory_kept(s, newest(s), &err));
	CHECK_INT(count(s, "box"), 0);
}

TEST(events_and_audit_rows_have_their_content_and_a_rolled_back_one_is_not_recorded)
{
	struct store_audit a = {
		.at_ns = 6, .who = "uid:0", .team = "blue", .action = "box.create", .result = "ok"
	};
	struct store_directory_rows l = { 0 };

	STORE(s, dir);
	CHECK_OK(store_directory_enable(s, 1, 1000, &err));
	CHECK_OK(store_begin(s, &err));
	CHECK_OK(event(s));
	store_rollback(s);
	CHECK_INT(count(s, "event"), 0);
	CHECK_OK(event(s));
	CHECK_OK(store_audit_add(s, &a, &err));
	CHECK_OK(store_directory_list(s, 0, 10, &l, &err));
	CHECK_INT(l.n, 2);
	CHECK(l.v[0].row && strstr(l.v[0].row, "\"type\":\"box.created\""));
	CHECK(l.v[1].row && strstr(l.v[1].row, "\"action\":\"box.create\""));
	store_directory_rows_fini(&l);
}

TEST(revisions_continue_above_the_clock)
{
	int64_t before;

	STORE(s, dir);
	CHECK_OK(store_directory_enable(s, 1, 1000, &err));
	CHECK_OK(event(s));
	before = newest(s);
	CHECK_OK(store_directory_enable(s, 1, before + 1000000, &err));
	CHECK_OK(event(s));
	CHECK(newest(s) > before + 1000000);
	CHECK_OK(store_directory_enable(s, 1, 5, &err)); /* a clock that was set back */
	CHECK_OK(event(s));
	CHECK(newest(s) > before + 1000001);
}
