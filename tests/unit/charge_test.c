/* charge_test.c - what runs and boxes are charged for, against a fake keeper and a fake init: nothing twice, and a run
 * only together with its end. */
#include "fake_fleet.h"
#include "fleet/charge.h"
#include "store/snapshots.h"
#include "store/volumes.h"

static struct fake_peer init;
static struct err e;

static void price_cpu(void *ctx, struct store_use *use, json_t *record)
{
	(void)ctx;
	use->cost_nano = use->cpu_us;
	memcpy(use->currency, "EUR", 4);
	if (record)
		json_object_set_new(record, "cost", json_integer((json_int_t)use->cost_nano));
}

static struct box *new_box(void)
{
	struct box_spec spec = fake_spec("default");
	struct box *b;

	init.fd = -1;
	if (fake_begin(NULL, NULL) < 0)
		return NULL;
	fake.fleet->accounts.price = price_cpu;
	fake.fleet->alone = 1;
	snprintf(spec.row.key, sizeof(spec.row.key), "key1");
	b = fake_box(&spec, &init);
	if (b)
		snprintf(b->row.template, sizeof(b->row.template), "base");
	return b;
}

static void end_test(void)
{
	own_close_fd(&init.fd);
	fake_end();
}

/* Starts /bin/true with a tag; its id is in out. */
static struct exec *start(struct box *b, const char *tag, char out[ID_MAX + 1])
{
	static const char *const argv[] = { "/bin/true", NULL };
	const struct exec_spec spec = { .argv = argv, .tag = tag };
	struct exec *r;

	if (exec_launch(b, &spec, NULL, &r, &e) < 0 || fake_next(&init) != WIRE_START)
		return NULL;
	memcpy(out, r->id, ID_MAX + 1);
	return r;
}

static int finish(struct box *b, const char *id, uint32_t ref)
{
	return fake_say_exit(&init, ref, WIRE_WHY_EXIT, 0) == 0 &&
	       fake_next(&fake.keeper) == WIRE_COUNTERS &&
	       fake_reply_counters(WIRE_COUNTERS_REPLY) == 0 && FAKE_UNTIL(!exec_lookup(b, id));
}

static struct store_use total_of(const char *subject)
{
	struct store_use use = { 0 };

	run_writer_flush(&fake.fleet->run_writer);
	if (store_usage_total(fake.store, subject, "EUR", &use, &e) < 0)
		use.cpu_us = UINT64_MAX;
	return use;
}

/* Runs and cost of one tag today; cost UINT64_MAX: none. */
static struct store_use tag_of(const char *tag)
{
	int32_t today = store_day(fleet_now_ns());
	struct store_usage_filter f = {
		.team = "default", .from_day = today - 1, .to_day = today, .by = STORE_BY_TAG
	};
	struct store_usage_rows rows = { 0 };
	struct store_use found = { .cost_nano = UINT64_MAX };

	run_writer_flush(&fake.fleet->run_writer);
	if (store_usage_list(fake.store, &f, &rows, &e) < 0)
		return found;
	for (unsigned i = 0; i < rows.n; i++)
		if (!strcmp(rows.v[i].value, tag))
			found = rows.v[i].use;
	store_usage_rows_fini(&rows);
	return found;
}

static struct wire_counters counters(uint64_t cpu_us)
{
	struct wire_counters f = fake_counters(WIRE_COUNTERS_REPLY, 0);

	f.cpu_us = cpu_us;
	return f;
}

TEST(a_run_is_charged_with_its_end_and_its_box_for_the_rest)
{
	struct box *b = new_box();
	struct wire_counters now = counters(1700);
	char id[ID_MAX + 1];
	struct exec *r;

	CHECK(b);
	CHECK((r = start(b, "t", id)));
	charge_box(b, &now); /* the program runs: it is charged when it ends */
	CHECK_INT(total_of(b->row.id).cpu_us, 0);
	CHECK(finish(b, id, r->ref)); /* with 1000 us */
	CHECK_INT(tag_of("t").runs, 1);
	CHECK_INT(tag_of("t").cost_nano, 1000);
	CHECK_INT(tag_of("t").memory_mib_ms, 2 * 5);
	CHECK_INT(fake.fleet->figures.cost_nano, 1000);
	charge_box(b, &now);
	CHECK_INT(tag_of(STORE_TAG_BOX).cpu_us, 700);
	CHECK_INT(total_of(b->row.id).cpu_us, 1700);
	charge_box(b, &now); /* nothing is charged twice */
	charge_box(b, NULL);
	CHECK_INT(total_of(b->row.id).cpu_us, 1700);
	b->way.bytes_out = 500;
	charge_box(b, NULL);
	charge_box(b, NULL);
	CHECK_INT(tag_of(STORE_TAG_BOX).network_bytes, 500);
	end_test();
}

TEST(memory_between_runs_is_charged_from_sample_to_sample)
{
	struct box *b = new_box();
	struct wire_counters now = counters(0); /* 1 MiB */
	uint64_t first;

	CHECK(b);
	charge_box(b, &now); /* the first sample: since when is not known */
	CHECK_INT(total_of(b->row.id).memory_mib_ms, 0);
	b->charged.sampled_ms -= 10000;
	charge_box(b, &now);
	first = total_of(b->row.id).memory_mib_ms;
	CHECK(first >= 10000 && first < 40000);
	b->charged.sampled_ms -= 100000; /* the server did not run */
	charge_box(b, &now);
	CHECK_INT(total_of(b->row.id).memory_mib_ms, first);
	end_test();
}

TEST(the_next_server_continues_with_what_the_store_has)
{
	struct box *b = new_box();
	struct wire_counters now = counters(1500);

	CHECK(b);
	charge_box(b, &now);
	CHECK_INT(total_of(b->row.id).cpu_us, 1500);
	b->charged.known = 0; /* as after a restart */
	b->charged.cpu_us = 0;
	now = counters(1600);
	charge_box(b, &now);
	CHECK_INT(total_of(b->row.id).cpu_us, 1600);
	now = counters(200); /* a counter that begins again */
	charge_box(b, &now);
	CHECK_INT(total_of(b->row.id).cpu_us, 1600);
	end_test();
}

TEST(a_box_is_not_charged_while_two_servers_have_it)
{
	struct box *b = new_box();
	struct wire_counters now = counters(1500);

	CHECK(b);
	fake.fleet->alone = 0;
	charge_box(b, &now);
	CHECK_INT(total_of(b->row.id).cpu_us, 0);
	fake.fleet->alone = 1;
	charge_box(b, &now);
	CHECK_INT(total_of(b->row.id).cpu_us, 1500);
	end_test();
}

TEST(a_run_whose_end_another_server_wrote_is_not_charged_again)
{
	struct box *b = new_box();
	struct store_run end = { .ended_ns = 5, .cause = "exit" };
	char id[ID_MAX + 1];
	struct exec *r;

	CHECK(b);
	CHECK((r = start(b, "t", id)));
	memcpy(end.id, id, sizeof(end.id));
	CHECK_INT(store_run_end(fake.store, &end, &e), 0);
	CHECK(finish(b, id, r->ref));
	CHECK(tag_of("t").cost_nano == UINT64_MAX);
	end_test();
}

TEST(tags_of_clients_are_not_mistaken_for_those_of_the_daemon)
{
	struct box *b = new_box();
	char id[ID_MAX + 1];
	struct exec *r;

	CHECK(b);
	CHECK((r = start(b, "(box)", id)));
	CHECK(finish(b, id, r->ref));
	CHECK(tag_of(STORE_TAG_BOX).cost_nano == UINT64_MAX);
	CHECK_INT(tag_of(STORE_TAG_OTHER).runs, 1);
	end_test();
}

TEST(a_box_that_ends_is_charged_for_its_last_counters)
{
	struct box *b = new_box();
	char id[ID_MAX + 1];

	CHECK(b);
	memcpy(id, b->row.id, sizeof(id));
	box_end(b, CAUSE_OPERATOR, NULL);
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	CHECK_INT(fake_reply_counters(WIRE_DESTROYED), 0);
	CHECK(FAKE_UNTIL(!fleet_find(fake.fleet, id)));
	CHECK_INT(total_of(id).cpu_us, 1000);
	end_test();
}

TEST(disk_of_volumes_is_charged_by_their_size)
{
	static const int64_t hour = INT64_C(3600000000000);
	struct store_volume x = { .team = "default", .name = "data", .quota_bytes = 3 << 20 };
	struct store_snapshot shot = { .team = "default", .template = "base", .bytes = 10 << 20 };
	struct store_disk_uses l;
	int64_t now = 1000 * hour;

	CHECK(new_box());
	snprintf(x.id, sizeof(x.id), "%s", id_of(1));
	snprintf(shot.id, sizeof(shot.id), "%s", id_of(2));
	x.created_ns = shot.created_ns = now;
	CHECK_INT(store_usage_disk(fake.store, now, &l, &e), 0); /* begins to count */
	store_disk_uses_fini(&l);
	CHECK_INT(store_volume_insert(fake.store, &x, &e), 0);
	CHECK_INT(store_snapshot_insert(fake.store, &shot, &e), 0);
	CHECK_INT(store_usage_disk(fake.store, now + hour, &l, &e), 0);
	CHECK_INT(l.n, 1);
	CHECK_INT(l.v[0].mib_s, 13 * 3600);
	store_disk_uses_fini(&l);
	end_test();
}

TEST(tokens_of_a_model_are_charged)
{
	json_t *usage = json_pack("{s:i, s:i, s:i}", "in", 40, "out", 10, "cache_read", 60),
	       *bad = json_pack("{s:i, s:s}", "in", -5, "out", "many");
	struct store_usage_filter f = { .team = "default", .by = STORE_BY_TAG };
	struct store_usage_rows rows = { 0 };

	CHECK(new_box());
	charge_tokens(fake.fleet, "default", "k", "", usage);
	charge_tokens(fake.fleet, "default", "k", "", bad);
	charge_tokens(fake.fleet, "default", "k", "", NULL);
	run_writer_flush(&fake.fleet->run_writer);
	f.from_day = f.to_day = store_day(fleet_now_ns());
	CHECK_INT(store_usage_list(fake.store, &f, &rows, &e), 0);
	CHECK_INT(rows.n, 1);
	CHECK_STR(rows.v[0].value, STORE_TAG_MODEL);
	CHECK_INT(rows.v[0].use.tokens_in, 40);
	CHECK_INT(rows.v[0].use.tokens_out, 10);
	CHECK_INT(rows.v[0].use.runs, 0);
	store_usage_rows_fini(&rows);
	json_decref(usage);
	json_decref(bad);
	end_test();
}

TEST(disk_of_snapshots_is_charged_once_for_each_hour)
{
	static const int64_t hour = INT64_C(3600000000000);
	struct store_snapshot x = { .team = "default", .template = "base", .bytes = 10 << 20 };
	struct store_disk_uses l;
	int64_t now = 1000 * hour;

	CHECK(new_box());
	snprintf(x.id, sizeof(x.id), "%s", id_of(1));
	x.created_ns = now;
	CHECK_INT(store_snapshot_insert(fake.store, &x, &e), 0);
	CHECK_INT(store_usage_disk(fake.store, now, &l, &e),
		  0); /* the first time: begins to count */
	CHECK_INT(l.n, 0);
	store_disk_uses_fini(&l);
	CHECK_INT(store_usage_disk(fake.store, now + hour - 1, &l, &e), 0);
	CHECK_INT(l.n, 0);
	store_disk_uses_fini(&l);
	snprintf(x.id, sizeof(x.id), "%s", id_of(2));
	x.created_ns = now + hour / 2; /* for half of the time */
	CHECK_INT(store_snapshot_insert(fake.store, &x, &e), 0);
	CHECK_INT(store_usage_disk(fake.store, now + hour, &l, &e), 0);
	CHECK_INT(l.n, 1);
	CHECK_STR(l.v[0].team, "default");
	CHECK_INT(l.v[0].mib_s, 10 * 3600 + 10 * 1800);
	store_disk_uses_fini(&l);
	CHECK_INT(store_usage_disk(fake.store, now + hour, &l, &e), 0); /* not again */
	CHECK_INT(l.n, 0);
	store_disk_uses_fini(&l);
	/* A clock that is set forward by a year is charged as a day, one that is set back not at all. */
	CHECK_INT(store_usage_disk(fake.store, now + 8760 * hour, &l, &e), 0);
	CHECK_INT(l.v[0].mib_s, 2 * 10 * 86400);
	store_disk_uses_fini(&l);
	CHECK_INT(store_usage_disk(fake.store, now, &l, &e), 0);
	CHECK_INT(l.n, 0);
	store_disk_uses_fini(&l);
	CHECK_INT(store_usage_disk(fake.store, now + 2 * hour, &l, &e), 0);
	CHECK_INT(l.n, 1);
	store_disk_uses_fini(&l);
	end_test();
}

/* ---- disks of stopped and paused boxes ---- */

static const int64_t an_hour = INT64_C(3600000000000);

static int insert_stored(unsigned n, enum store_box_state state, int64_t stored_ns)
{
	struct store_box x = box_of(n);

	x.state = state;
	x.stored_ns = stored_ns;
	x.limits.disk_bytes = (uint64_t)n << 20;
	snprintf(x.key, sizeof(x.key), "key1");
	return store_box_insert(fake.store, &x, &e);
}

/* The hours of store_usage_disk() begin at this time. */
static int count_from(int64_t at_ns)
{
	struct store_disk_uses l;
	int rc = store_usage_disk(fake.store, at_ns, &l, &e);

	store_disk_uses_fini(&l);
	return rc;
}

TEST(disks_of_boxes_are_charged_while_they_are_stored)
{
	struct store_disk_uses l;
	int64_t now = 1000 * an_hour;
	uint64_t rest;

	CHECK(new_box());
	CHECK_INT(count_from(now), 0);
	CHECK_INT(insert_stored(2, STORE_BOX_PAUSED, now - an_hour),
		  0); /* not for the hour before */
	CHECK_INT(insert_stored(3, STORE_BOX_STOPPED, now + an_hour / 2), 0);
	CHECK_INT(insert_stored(4, STORE_BOX_RUNNING, now - an_hour), 0);
	CHECK_INT(insert_stored(5, STORE_BOX_DELETED, now - an_hour), 0);
	CHECK_INT(insert_stored(0, STORE_BOX_PAUSED, now), 0); /* has no disk of a known size */
	CHECK_INT(store_usage_disk_rest(fake.store, 2 << 20, now - an_hour, now + an_hour / 2,
					&rest, &e),
		  0);
	CHECK_INT(rest, 2 * 1800);
	CHECK_INT(store_usage_disk(fake.store, now + an_hour, &l, &e), 0);
	CHECK_INT(l.n, 2);
	CHECK_STR(l.v[0].box, id_of(2));
	CHECK_STR(l.v[0].team, "default");
	CHECK_STR(l.v[0].key, "key1");
	CHECK_STR(l.v[0].template, "base");
	CHECK_INT(l.v[0].mib_s, 2 * 3600);
	CHECK_STR(l.v[1].box, id_of(3));
	CHECK_INT(l.v[1].mib_s, 3 * 1800);
	store_disk_uses_fini(&l);
	CHECK_INT(store_usage_disk_rest(fake.store, 2 << 20, now, now + an_hour, &rest, &e), 0);
	CHECK_INT(rest, 0); /* not again */
	/* A clock that is set forward by a year is charged as a day, one that is set back not at all. */
	CHECK_INT(store_usage_disk_rest(fake.store, 1 << 20, now, now + 8760 * an_hour, &rest, &e),
		  0);
	CHECK_INT(rest, 86400);
	CHECK_INT(store_usage_disk_rest(fake.store, 1 << 20, now, now - an_hour, &rest, &e), 0);
	CHECK_INT(rest, 0);
	end_test();
}

static int answer_freeze(struct fake_wait *w)
{
	return fake_next(&fake.keeper) == WIRE_FREEZE && fake_reply(&fake.keeper, WIRE_DONE) == 0 &&
	       FAKE_UNTIL(w->calls);
}

/* Pauses it, as if that had been `ago_ns` ago. */
static int pause_for(struct box *b, int64_t ago_ns)
{
	struct fake_wait w;

	b->row.limits.disk_bytes = 4 << 20;
	if (count_from(fleet_now_ns() - 2 * ago_ns) < 0 ||
	    box_pause(b, 1, fake_waiter(&w), &e) < 0 || !answer_freeze(&w))
		return -1;
	b->row.stored_ns -= ago_ns;
	return 0;
}

static int charged_mib_s(const char *id, uint64_t least)
{
	uint64_t n = total_of(id).disk_mib_s;

	return n >= least && n < least + least / 10; /* a slow machine needs time, too */
}

TEST(a_resumed_box_is_charged_for_its_disk_once)
{
	struct box *b = new_box();
	struct fake_wait w;

	CHECK(b);
	CHECK_INT(pause_for(b, an_hour / 3), 0);
	CHECK_INT(total_of(b->row.id).disk_mib_s, 0);
	CHECK_INT(box_resume(b, 0, fake_waiter(&w), &e), 0);
	CHECK(answer_freeze(&w));
	CHECK(charged_mib_s(b->row.id, 4 * 1200));
	CHECK(tag_of(STORE_TAG_BOX).disk_mib_s == total_of(b->row.id).disk_mib_s);
	CHECK_INT(box_pause(b, 1, fake_waiter(&w), &e), 0);
	CHECK(answer_freeze(&w));
	CHECK_INT(box_resume(b, 0, fake_waiter(&w), &e), 0);
	CHECK(answer_freeze(&w));
	CHECK(charged_mib_s(b->row.id, 4 * 1200));
	end_test();
}

TEST(a_box_that_is_deleted_while_it_is_paused_is_charged_for_its_disk)
{
	struct box *b = new_box();
	char id[ID_MAX + 1];

	CHECK(b);
	memcpy(id, b->row.id, sizeof(id));
	CHECK_INT(pause_for(b, an_hour / 3), 0);
	box_end(b, CAUSE_OPERATOR, NULL);
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	CHECK_INT(fake_reply_counters(WIRE_DESTROYED), 0);
	CHECK(FAKE_UNTIL(!fleet_find(fake.fleet, id)));
	CHECK(charged_mib_s(id, 4 * 1200));
	end_test();
}
