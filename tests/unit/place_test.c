/* Placement: constraints are never broken, templates keep to their nodes, failing nodes are left alone. */
#include "cluster/place.h"
#include "base/cleanup.h"
#include "tap.h"

#include <stdlib.h>

#define GIB (UINT64_C(1) << 30)

static struct err err;

static struct place_figures node_of(uint64_t memory, uint64_t memory_free)
{
	return (struct place_figures){ .memory = memory,
				       .memory_free = memory_free,
				       .arch = "x86_64" };
}

static struct place *fleet_of(unsigned n, enum place_policy policy)
{
	struct place_figures f = node_of(64 * GIB, 64 * GIB);
	struct place *p;

	if (place_new(&p, policy, 1, &err) < 0)
		abort();
	for (unsigned i = 1; i <= n; i++)
		if (place_update(p, i, &f, &err) < 0)
			abort();
	return p;
}

static struct place_request small(const char *template)
{
	return (struct place_request){ .template = template, .memory = GIB, .node = -1 };
}

TEST(without_a_node_the_error_names_that)
{
	struct place *p = fleet_of(0, PLACE_SPREAD);
	struct place_request r = small("");

	CHECK_INT(place_choose(p, &r, 0, &err), -1);
	CHECK_STR(err.msg, "no node is connected");
	CHECK(err.kind == ERR_LIMIT);
	place_free(p);
}

TEST(every_constraint_is_kept)
{
	struct place *p = fleet_of(8, PLACE_SPREAD);
	struct place_figures f = node_of(64 * GIB, 64 * GIB);
	static const char *const want[] = { "gpu", "zone=a", NULL };
	struct place_request r;

	strcpy(f.labels[0], "zone=a");
	strcpy(f.labels[1], "gpu");
	f.nlabels = 2;
	CHECK_INT(place_update(p, 3, &f, &err), 0);
	strcpy(f.arch, "aarch64");
	f.nlabels = 0;
	CHECK_INT(place_update(p, 5, &f, &err), 0);
	for (unsigned i = 0; i < 50; i++) {
		r = small("t");
		r.labels = want;
		CHECK_INT(place_choose(p, &r, 0, &err), 3);
		r = small("t");
		r.arch = "aarch64";
		CHECK_INT(place_choose(p, &r, 0, &err), 5);
		r = small("t");
		r.node = 7;
		CHECK_INT(place_choose(p, &r, 0, &err), 7);
	}
	r = small("t");
	r.arch = "aarch64";
	r.labels = want;
	CHECK_INT(place_choose(p, &r, 0, &err), -1);
	CHECK_STR(err.msg,
		  "none of 8 nodes can take the box: 7 of another architecture, 1 without a label");
	CHECK(err.kind == ERR_INVALID);
	place_free(p);
}

TEST(own_placements_count_until_the_next_heartbeat)
{
	struct place *p = fleet_of(2, PLACE_SPREAD);
	struct place_figures f = node_of(64 * GIB, 2 * GIB);
	struct place_request r = small("");

	CHECK_INT(place_update(p, 1, &f, &err), 0);
	CHECK_INT(place_update(p, 2, &f, &err), 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK(place_choose(p, &r, 0, &err) > 0);
	CHECK_INT(place_choose(p, &r, 0, &err), -1);
	CHECK_STR(err.msg, "none of 2 nodes can take the box: 2 full");
	CHECK(err.kind == ERR_LIMIT);
	CHECK_INT(place_update(p, 2, &f, &err), 0);
	CHECK_INT(place_choose(p, &r, 0, &err), 2);
	place_free(p);
}

TEST(a_node_that_refused_is_not_asked_again_for_the_same_box)
{
	struct place *p = fleet_of(3, PLACE_SPREAD);
	unsigned tried[3] = { 1, 3 };
	struct place_request r = small("");

	r.tried = tried;
	r.ntried = 2;
	for (unsigned i = 0; i < 20; i++)
		CHECK_INT(place_choose(p, &r, 0, &err), 2);
	tried[2] = 2;
	r.ntried = 3;
	CHECK_INT(place_choose(p, &r, 0, &err), -1);
	CHECK_STR(err.msg, "none of 3 nodes can take the box: 3 refused");
	place_free(p);
}

TEST(three_failures_in_ten_seconds_suspend_a_node_for_thirty)
{
	struct place *p = fleet_of(2, PLACE_SPREAD);
	struct place_request r = small("");

	place_answered(p, 1, 0, 1000);
	place_answered(p, 1, 0, 2000);
	place_answered(p, 1, 1, 3000); /* a success between them */
	place_answered(p, 1, 0, 4000);
	place_answered(p, 1, 0, 5000);
	CHECK(!place_is_suspended(p, 1, 5000));
	place_answered(p, 1, 0, 15001); /* the first of these three is too old */
	CHECK(!place_is_suspended(p, 1, 15001));
	place_answered(p, 1, 0, 16000);
	place_answered(p, 1, 0, 17000);
	CHECK(place_is_suspended(p, 1, 17000));
	for (unsigned i = 0; i < 20; i++)
		CHECK_INT(place_choose(p, &r, 17000, &err), 2);
	CHECK(place_is_suspended(p, 1, 46999));
	CHECK(!place_is_suspended(p, 1, 47000));
	place_free(p);
}

TEST(a_draining_node_gets_no_box)
{
	struct place *p = fleet_of(2, PLACE_SPREAD);
	struct place_figures f = node_of(64 * GIB, 64 * GIB);
	struct place_request r = small("");

	f.is_draining = 1;
	CHECK_INT(place_update(p, 2, &f, &err), 0);
	for (unsigned i = 0; i < 20; i++)
		CHECK_INT(place_choose(p, &r, 0, &err), 1);
	place_remove(p, 1);
	CHECK_INT(place_choose(p, &r, 0, &err), -1);
	CHECK_STR(err.msg, "none of 1 nodes can take the box: 1 draining");
	place_free(p);
}

TEST(a_template_keeps_to_a_few_nodes_that_every_gateway_knows)
{
	struct place *p = fleet_of(100, PLACE_SPREAD), *q = fleet_of(100, PLACE_SPREAD);
	uint8_t in_p[101] = { 0 }, in_q[101] = { 0 };
	unsigned n = 0, same = 0;
	char name[16];

	for (unsigned i = 0; i < 4000; i++) { /* 1 of 40 templates: 2.5 % */
		struct place_request r;

		snprintf(name, sizeof(name), "t%u", i % 40);
		r = small(name);
		r.memory = GIB / 64;
		if (i % 40 == 7 && i > 2000) {
			in_p[place_choose(p, &r, 0, &err)] = 1;
			in_q[place_choose(q, &r, 0, &err)] = 1;
		} else {
			CHECK(place_choose(p, &r, 0, &err) > 0);
			CHECK(place_choose(q, &r, 0, &err) > 0);
		}
	}
	for (unsigned i = 1; i <= 100; i++) {
		n += in_p[i];
		same += in_p[i] && in_q[i];
	}
	CHECK(n >= 8 && n <= 24);
	CHECK(same + 6 >= n);
	place_free(p);
	place_free(q);
}

TEST(pack_fills_one_node_after_the_other)
{
	struct place *p = fleet_of(3, PLACE_PACK);
	struct place_request r = small("");
	unsigned n[4] = { 0 };

	for (unsigned i = 0; i < 40; i++)
		n[place_choose(p, &r, 0, &err)]++;
	CHECK(n[1] >= 20 || n[2] >= 20 || n[3] >= 20);
	place_free(p);
}

TEST(false_figures_of_a_node_count_as_full)
{
	static const struct {
		uint64_t memory, memory_free;
	} bad[] = { { UINT64_MAX, UINT64_MAX }, { GIB, 2 * GIB }, { 0, GIB }, { 0, 0 } };
	struct place *p = fleet_of(1, PLACE_SPREAD);
	struct place_request r = small("");
	struct place_figures f;

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		f = node_of(bad[i].memory, bad[i].memory_free);
		f.nlabels = 1000000;
		CHECK_INT(place_update(p, 1, &f, &err), 0);
		CHECK_INT(place_choose(p, &r, 0, &err), -1);
	}
	CHECK_INT(place_update(p, 40000, &f, &err), -1);
	CHECK_STR(err.msg, "node 40000: the highest number is 32767");
	place_remove(p, 40000);
	place_answered(p, 40000, 0, 0);
	place_free(p);
}

TEST(nodes_come_and_go_without_losing_others)
{
	struct place *p = fleet_of(64, PLACE_SPREAD);
	struct place_request r = small("x");

	for (unsigned i = 2; i <= 64; i += 2)
		place_remove(p, i);
	for (unsigned i = 0; i < 400; i++)
		CHECK_INT(place_choose(p, &r, 0, &err) % 2, 1);
	for (unsigned i = 1; i <= 63; i += 2) {
		r.node = (int)i;
		CHECK_INT(place_choose(p, &r, 0, &err), (int)i);
	}
	place_free(p);
}
