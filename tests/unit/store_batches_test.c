/* Rows of batches. */
#include "store/batches.h"
#include "store_rows.h"

static struct store_batch row(const char *id, int64_t at)
{
	struct store_batch b = { .team = "blue",
				 .who = "key",
				 .state = STORE_BATCH_RECEIVING,
				 .created_ns = at,
				 .whole = 1,
				 .options = (char *)"{\"jobs\":3}" };

	snprintf(b.id, sizeof(b.id), "%s", id);
	return b;
}

TEST(a_batch_is_read_as_it_was_written)
{
	struct store_batch b = row("aaaaaaaaaaaa", 5), got;

	STORE(s, dir);
	CHECK_OK(store_batch_insert(s, &b, &err));
	b.state = STORE_BATCH_FINISHED;
	b.ended_ns = 9;
	b.items = 10;
	b.passed = 7;
	b.failed = 2;
	b.errors = 1;
	b.bytes = 1234;
	b.whole = 0;
	CHECK_OK(store_batch_update(s, &b, &err));
	CHECK_OK(store_batch_get(s, "aaaaaaaaaaaa", &got, &err));
	CHECK_STR(got.team, "blue");
	CHECK_STR(got.who, "key");
	CHECK_STR(got.options, "{\"jobs\":3}");
	CHECK_INT(got.state, STORE_BATCH_FINISHED);
	CHECK_INT(got.created_ns, 5);
	CHECK_INT(got.ended_ns, 9);
	CHECK_INT(got.items, 10);
	CHECK_INT(got.passed, 7);
	CHECK_INT(got.failed, 2);
	CHECK_INT(got.errors, 1);
	CHECK_INT(got.bytes, 1234);
	CHECK_INT(got.whole, 0);
	store_batch_fini(&got);
	CHECK_OK(store_batch_remove(s, "aaaaaaaaaaaa", &err));
	CHECK_ERR(store_batch_get(s, "aaaaaaaaaaaa", &got, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_batch_update(s, &b, &err), ERR_NOT_FOUND);
}

TEST(batches_are_listed_by_team_newest_first_in_pages)
{
	struct store_batch a = row("aaaaaaaaaaaa", 1), b = row("bbbbbbbbbbbb", 2),
			   c = row("cccccccccccc", 3);
	struct store_cursor after = { .ns = 3, .id = "cccccccccccc" };
	struct store_batches l;

	STORE(s, dir);
	snprintf(b.team, sizeof(b.team), "red");
	CHECK_OK(store_batch_insert(s, &a, &err));
	CHECK_OK(store_batch_insert(s, &b, &err));
	CHECK_OK(store_batch_insert(s, &c, &err));
	CHECK_OK(store_batch_list(s, "blue", NULL, 1, &l, &err));
	CHECK_INT(l.n, 1);
	CHECK(l.more);
	CHECK_STR(l.v[0].id, c.id);
	store_batches_fini(&l);
	CHECK_OK(store_batch_list(s, "blue", &after, 1, &l, &err));
	CHECK_INT(l.n, 1);
	CHECK(!l.more);
	CHECK_STR(l.v[0].id, a.id);
	store_batches_fini(&l);
}

TEST(unfinished_and_old_batches_are_found_and_bytes_summed)
{
	struct store_batch a = row("aaaaaaaaaaaa", 1), b = row("bbbbbbbbbbbb", 2);
	struct store_batches l;
	char team[STORE_NAME + 1];
	uint64_t bytes;

	STORE(s, dir);
	a.bytes = 3;
	b.bytes = 4;
	b.ended_ns = 10;
	b.state = STORE_BATCH_CANCELLED;
	CHECK_OK(store_batch_insert(s, &a, &err));
	CHECK_OK(store_batch_insert(s, &b, &err));
	CHECK_OK(store_batch_live(s, &l, &err));
	CHECK_INT(l.n, 1);
	CHECK_STR(l.v[0].id, a.id);
	store_batches_fini(&l);
	CHECK_OK(store_batch_old(s, "blue", 10, &l, &err));
	CHECK_INT(l.n, 0);
	store_batches_fini(&l);
	CHECK_OK(store_batch_old(s, "blue", 11, &l, &err));
	CHECK_INT(l.n, 1);
	store_batches_fini(&l);
	CHECK_OK(store_batch_old(s, "red", 11, &l, &err));
	CHECK_INT(l.n, 0);
	store_batches_fini(&l);
	CHECK_INT(store_batch_next_team(s, "", team, &err), 1);
	CHECK_STR(team, "blue");
	CHECK_INT(store_batch_next_team(s, team, team, &err), 0);
	CHECK_OK(store_batch_bytes(s, "blue", &bytes, &err));
	CHECK_INT(bytes, 7);
	CHECK_OK(store_batch_bytes(s, "missing", &bytes, &err));
	CHECK_INT(bytes, 0);
}
