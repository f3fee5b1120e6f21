/* lease_test.c - the rules of leases one by one, and all of them in a simulation with faults. */
#include "lease_sim.h"
#include "tap.h"

/* ---- a node ---- */

TEST(the_lease_of_a_node_counts_from_the_time_a_heartbeat_was_sent)
{
	struct node_lease l;

	node_lease_init(&l, 0);
	node_lease_opened(&l, 7);
	node_lease_sent(&l, 7, 1, 1000);
	node_lease_acked(&l, 7, 1); /* before the hello */
	CHECK_INT(node_lease_left_ms(&l, 1000), 0);
	CHECK_INT(node_lease_greeted(&l, 7, 3), NODE_GREETING_RETURN);
	node_lease_acked(&l, 7, 1);
	CHECK_INT(node_lease_left_ms(&l, 1000), 0); /* superseded boxes were not destroyed yet */
	node_lease_settled(&l);
	CHECK_INT(node_lease_left_ms(&l, 1000), LEASE_NODE_MS);
	CHECK_INT(node_lease_left_ms(&l, 1000 + LEASE_NODE_MS - 1), 1);
	CHECK_INT(node_lease_left_ms(&l, 1000 + LEASE_NODE_MS), 0);
	node_lease_acked(&l, 7, 9); /* never sent */
	CHECK_INT(node_lease_left_ms(&l, 1000 + LEASE_NODE_MS), 0);
}

TEST(the_latest_end_over_all_tunnels_counts)
{
	struct node_lease l;

	node_lease_init(&l, 3);
	for (int g = 7; g < 9; g++) {
		node_lease_opened(&l, g);
		CHECK_INT(node_lease_greeted(&l, g, 3), NODE_GREETING_SAME);
		node_lease_sent(&l, g, 1, 1000 * (uint64_t)g);
		node_lease_acked(&l, g, 1);
	}
	CHECK_INT(node_lease_left_ms(&l, 8000), LEASE_NODE_MS);
	node_lease_closed(&l, 8); /* a closed tunnel does not end what was promised */
	node_lease_sent(&l, 8, 2, 9000);
	node_lease_acked(&l, 8, 2);
	CHECK_INT(node_lease_left_ms(&l, 9000), LEASE_NODE_MS - 1000);
}

TEST(a_hello_with_a_higher_epoch_ends_the_lease_and_an_older_one_is_stale)
{
	struct node_lease l;

	node_lease_init(&l, 3);
	node_lease_opened(&l, 7);
	node_lease_opened(&l, 8);
	CHECK_INT(node_lease_greeted(&l, 7, 3), NODE_GREETING_SAME);
	node_lease_sent(&l, 7, 1, 1000);
	node_lease_sent(&l, 8, 1, 1000);
	node_lease_acked(&l, 7, 1);
	CHECK(node_lease_left_ms(&l, 1000) > 0);
	CHECK_INT(node_lease_greeted(&l, 8, 4), NODE_GREETING_RETURN);
	node_lease_settled(&l);
	node_lease_acked(&l, 7, 1); /* of the old epoch */
	CHECK_INT(node_lease_left_ms(&l, 1000), 0);
	CHECK_INT(node_lease_greeted(&l, 7, 3), NODE_GREETING_STALE);
	node_lease_acked(&l, 8, 1);
	CHECK(node_lease_left_ms(&l, 1000) > 0);
}

TEST(a_node_remembers_the_last_heartbeats_only)
{
	struct node_lease l;

	node_lease_init(&l, 1);
	node_lease_opened(&l, 7);
	node_lease_greeted(&l, 7, 1);
	for (uint64_t seq = 1; seq <= LEASE_UNDER_WAY + 1; seq++)
		node_lease_sent(&l, 7, seq, 1000 * seq);
	node_lease_acked(&l, 7, 1);
	CHECK_INT(node_lease_left_ms(&l, 1000), 0);
	node_lease_acked(&l, 7, LEASE_UNDER_WAY + 1);
	CHECK(node_lease_left_ms(&l, 1000 * LEASE_UNDER_WAY) > 0);
}

/* ---- a gateway: number 100 ---- */

static struct view_gateway rig_gateways[2] = { { 100, 1, 1 }, { 101, 1, 1 } };
static struct view_tunnel rig_tunnels[4];
static struct view_node rig_nodes[2] = { { 1, 5, 0, 0, "a" }, { 2, 6, 0, 0, "b" } };
static struct view rig_view = { rig_gateways, rig_tunnels, rig_nodes, 2, 0, 0 };

/* The action, and no other one. */
static struct lease_action rig_only(struct gateway_lease *g)
{
	struct lease_action a = gateway_lease_next(g);

	if (gateway_lease_next(g).kind != LEASE_NOTHING)
		a.kind = LEASE_NOTHING;
	return a;
}

static void rig_renew(struct gateway_lease *g, uint64_t asked, uint64_t answered)
{
	rig_gateways[1].renewals++;
	gateway_lease_tick(g, asked);
	while (gateway_lease_next(g).kind != LEASE_NOTHING)
		;
	gateway_lease_renewed(g, answered, LEASE_DONE, &rig_view);
}

/* Registered at 1000, its lease ends at 5000. Only node 1 exists, with a tunnel that was raised at 1000. */
static struct gateway_lease *rig_new(int with_tunnel)
{
	struct gateway_lease *g = gateway_lease_new(100, LEASE_FORGET_MS);
	struct lease_action a;

	gateway_lease_tick(g, 1000);
	if (rig_only(g).kind != LEASE_REGISTER)
		abort();
	gateway_lease_registered(g, 1000, LEASE_DONE, 9);
	a = rig_only(g);
	if (a.kind != LEASE_RENEW || a.incarnation != 9)
		abort();
	rig_view.ntunnels = 0;
	rig_view.nnodes = 0;
	gateway_lease_renewed(g, 1000, LEASE_DONE, &rig_view);
	while (gateway_lease_next(g).kind != LEASE_NOTHING)
		;
	rig_view.nnodes = 1;
	if (!with_tunnel)
		return g;
	gateway_lease_connected(g, 1000, 1);
	a = rig_only(g);
	if (a.kind != LEASE_TUNNEL_UP)
		abort();
	rig_tunnels[0] = (struct view_tunnel){ 1, 100, a.serial };
	rig_view.ntunnels = 1;
	gateway_lease_tunnel_set(g, 1000, 1, a.serial, LEASE_DONE, 5);
	a = rig_only(g);
	if (a.kind != LEASE_GREET || a.epoch != 5)
		abort();
	return g;
}

TEST(a_lease_counts_from_the_time_its_renewal_was_asked_for)
{
	struct gateway_lease *g = rig_new(0);

	CHECK(gateway_lease_valid(g, 5000));
	CHECK(!gateway_lease_valid(g, 5001));
	rig_renew(g, 2000, 3900);
	CHECK(gateway_lease_valid(g, 6000));
	CHECK(!gateway_lease_valid(g, 6001));
	gateway_lease_free(g);
}

TEST(a_heartbeat_is_acknowledged_while_the_gateway_lease_covers_the_node_lease)
{
	struct gateway_lease *g = rig_new(1);

	CHECK(!gateway_lease_may_acknowledge(g, 1000, 2));
	CHECK(gateway_lease_may_acknowledge(g, 5000 - LEASE_NODE_MS, 1));
	CHECK(!gateway_lease_may_acknowledge(g, 5001 - LEASE_NODE_MS, 1));
	gateway_lease_free(g);
}

TEST(nothing_is_acknowledged_before_the_tunnel_is_stored)
{
	struct gateway_lease *g = rig_new(0);
	struct lease_action a;

	gateway_lease_connected(g, 1100, 1);
	a = rig_only(g);
	CHECK_INT(a.kind, LEASE_TUNNEL_UP);
	CHECK(!gateway_lease_may_acknowledge(g, 1100, 1));
	/* Unknown: it may be stored. The connection closes, and "down" is stored later. */
	CHECK(!gateway_lease_tunnel_set(g, 1200, 1, a.serial, LEASE_UNKNOWN, 0));
	CHECK_INT(rig_only(g).kind, LEASE_CLOSE);
	CHECK(!gateway_lease_may_acknowledge(g, 1200, 1));
	gateway_lease_free(g);
}

TEST(a_tunnel_is_stored_as_down_after_the_last_acknowledgement_has_expired)
{
	struct gateway_lease *g = rig_new(1);
	struct lease_action a;
	uint64_t down = 2000 + LEASE_NODE_MS + LEASE_MARGIN_MS;

	rig_renew(g, 1900, 1900);
	CHECK(gateway_lease_may_acknowledge(g, 2000, 1));
	gateway_lease_disconnected(g, 2100, 1);
	CHECK(!gateway_lease_may_acknowledge(g, 2100, 1));
	rig_renew(g, 3000, 3000);
	gateway_lease_next(g);
	CHECK_INT(gateway_lease_wake_ms(g, down - 100), 0); /* the renewal */
	gateway_lease_tick(g, down - 1);
	while ((a = gateway_lease_next(g)).kind != LEASE_NOTHING)
		CHECK(a.kind != LEASE_TUNNEL_DOWN);
	gateway_lease_tick(g, down);
	a = rig_only(g);
	CHECK_INT(a.kind, LEASE_TUNNEL_DOWN);
	/* The node returns before the answer: the later request has a larger serial. */
	gateway_lease_connected(g, down + 1, 1);
	CHECK(gateway_lease_next(g).serial > a.serial);
	gateway_lease_free(g);
}

TEST(a_gateway_whose_lease_had_lapsed_closes_all_tunnels_when_it_renews)
{
	struct gateway_lease *g = rig_new(1);

	gateway_lease_tick(g, 5500);
	CHECK_INT(rig_only(g).kind,
		  LEASE_RENEW); /* an engine that does not answer closes nothing */
	CHECK(!gateway_lease_may_acknowledge(g, 5500, 1));
	gateway_lease_renewed(g, 5501, LEASE_UNKNOWN, NULL);
	CHECK_INT(gateway_lease_next(g).kind, LEASE_NOTHING);
	/* Also not without rest, where a node connects meanwhile. */
	gateway_lease_connected(g, 5502, 1);
	gateway_lease_tick(g, 9000);
	CHECK_INT(rig_only(g).kind, LEASE_RENEW);
	CHECK(gateway_lease_wake_ms(g, 9000) > 0);
	gateway_lease_connected(g, 9000, 1);
	gateway_lease_renewed(g, 9001, LEASE_DONE, &rig_view);
	CHECK(!gateway_lease_may_acknowledge(g, 9600, 1));
	gateway_lease_free(g);

	g = rig_new(1);
	gateway_lease_tick(g, 5500);
	CHECK_INT(rig_only(g).kind, LEASE_RENEW);
	gateway_lease_renewed(g, 5501, LEASE_DONE, &rig_view);
	CHECK_INT(gateway_lease_next(g).kind, LEASE_CLOSE);
	CHECK(!gateway_lease_may_acknowledge(g, 5600, 1));
	gateway_lease_free(g);
}

TEST(a_tunnel_that_the_engine_does_not_have_or_of_another_epoch_is_closed)
{
	struct gateway_lease *g = rig_new(1);

	rig_view.ntunnels = 0;
	rig_renew(g, 2000, 2001);
	CHECK_INT(gateway_lease_next(g).kind, LEASE_CLOSE);
	gateway_lease_free(g);

	g = rig_new(1);
	rig_nodes[0].epoch = 6;
	rig_renew(g, 2000, 2001);
	rig_nodes[0].epoch = 5;
	CHECK_INT(gateway_lease_next(g).kind, LEASE_CLOSE);
	gateway_lease_free(g);
}

TEST(a_gateway_is_dead_when_its_counter_did_not_change_for_its_lease)
{
	struct gateway_lease *g = rig_new(0);
	struct lease_action a;
	uint64_t t = 1000;

	rig_tunnels[0] = (struct view_tunnel){ 1, 101, 1 };
	rig_view.ntunnels = 1;
	rig_renew(g, 1500, 1500); /* the last change */
	for (t = 2000; t <= 1500 + LEASE_GATEWAY_MS + LEASE_MARGIN_MS; t += 500) {
		rig_gateways[1].renewals--; /* rig_renew() adds one */
		rig_renew(g, t, t);
		while ((a = gateway_lease_next(g)).kind != LEASE_NOTHING)
			CHECK(a.kind != LEASE_DECLARE_LOST);
	}
	rig_gateways[1].renewals--;
	rig_renew(g, t, t);
	a = gateway_lease_next(g);
	CHECK_INT(a.kind, LEASE_DECLARE_LOST);
	CHECK_INT(a.epoch, 5);
	CHECK_INT(a.ndead, 1);
	CHECK_INT(a.dead[0].number, 101);
	CHECK_INT(a.dead[0].renewals, rig_gateways[1].renewals);
	gateway_lease_free(g);
}

TEST(after_a_gap_of_its_own_reads_a_gateway_finds_none_dead)
{
	struct gateway_lease *g = rig_new(0);
	struct lease_action a;

	rig_tunnels[0] = (struct view_tunnel){ 1, 101, 1 };
	rig_view.ntunnels = 1;
	rig_renew(g, 1500, 1500);
	rig_gateways[1].renewals--;
	rig_renew(g, 60000, 60000);
	while ((a = gateway_lease_next(g)).kind != LEASE_NOTHING)
		CHECK(a.kind != LEASE_DECLARE_LOST);
	gateway_lease_free(g);
}

TEST(a_restart_waits_for_the_grace_and_is_repeated)
{
	struct gateway_lease *g = rig_new(0);
	unsigned restarts = 0;
	uint64_t first = 0;

	rig_renew(g, 1500, 1500); /* no tunnel at all: lost at once */
	CHECK_INT(gateway_lease_next(g).kind, LEASE_DECLARE_LOST);
	gateway_lease_declared(g, 1501, 1, 1);
	rig_nodes[0] = (struct view_node){ 1, 6, 0, 1, "a" };
	for (uint64_t t = 2000; t < 12000; t += 500) {
		struct lease_action a;

		rig_renew(g, t, t);
		while ((a = gateway_lease_next(g)).kind != LEASE_NOTHING)
			if (a.kind == LEASE_RESTART && !restarts++)
				first = t;
	}
	rig_nodes[0] = (struct view_node){ 1, 5, 0, 0, "a" };
	CHECK_INT(first, 2000 + LEASE_GRACE_MS);
	CHECK(restarts > 1);
	gateway_lease_free(g);
}

/* From the end of a connection to "lost" and to the restart no period of renewals is waited for. */
TEST(a_loss_is_seen_as_soon_as_each_of_its_steps_is_stored)
{
	struct gateway_lease *g = rig_new(1);
	uint64_t t = 2000, down = t + LEASE_NODE_MS + LEASE_MARGIN_MS;
	struct lease_action a;

	rig_renew(g, 1500, 1500);
	CHECK(gateway_lease_may_acknowledge(g, t, 1));
	gateway_lease_disconnected(g, t, 1);
	for (; t < down; t += 100)
		rig_renew(g, t, t);
	gateway_lease_tick(g, down);
	while ((a = gateway_lease_next(g)).kind != LEASE_TUNNEL_DOWN)
		CHECK(a.kind != LEASE_NOTHING);
	rig_renew(g, down, down);
	rig_view.ntunnels = 0;
	gateway_lease_tunnel_set(g, down + 1, 1, a.serial, LEASE_DONE, 0);
	CHECK_INT(gateway_lease_wake_ms(g, down + 1), 0);
	gateway_lease_tick(g, down + 1);
	CHECK_INT(gateway_lease_next(g).kind, LEASE_RENEW);
	gateway_lease_renewed(g, down + 2, LEASE_DONE, &rig_view);
	CHECK_INT(gateway_lease_next(g).kind, LEASE_DECLARE_LOST);
	gateway_lease_declared(g, down + 3, 1, 1);
	CHECK_INT(gateway_lease_wake_ms(g, down + 3), 0);
	rig_nodes[0] = (struct view_node){ 1, 6, 0, 1, "a" };
	gateway_lease_tick(g, down + 3);
	CHECK_INT(gateway_lease_next(g).kind, LEASE_RENEW);
	gateway_lease_renewed(g, down + 4, LEASE_DONE, &rig_view);
	for (t = down + 4; t < down + 4 + LEASE_GRACE_MS; t += 499) {
		gateway_lease_tick(g, t);
		while ((a = gateway_lease_next(g)).kind != LEASE_NOTHING) {
			CHECK_INT(a.kind, LEASE_RENEW);
			gateway_lease_renewed(g, t, LEASE_DONE, &rig_view);
		}
	}
	t = down + 4 + LEASE_GRACE_MS;
	gateway_lease_tick(g, t);
	CHECK_INT(gateway_lease_next(g).kind, LEASE_RENEW);
	gateway_lease_renewed(g, t, LEASE_DONE, &rig_view);
	CHECK_INT(gateway_lease_next(g).kind, LEASE_RESTART);
	rig_nodes[0] = (struct view_node){ 1, 5, 0, 0, "a" };
	gateway_lease_free(g);
}

TEST(two_processes_with_one_number_both_stop)
{
	struct gateway_lease *g = rig_new(1);
	int stopped = 0;

	for (uint64_t t = 2000; t < 60000 && !stopped; t += 500) {
		struct lease_action a;

		gateway_lease_tick(g, t);
		while ((a = gateway_lease_next(g)).kind != LEASE_NOTHING) {
			if (a.kind == LEASE_REGISTER)
				gateway_lease_registered(g, t, LEASE_DONE, 20);
			if (a.kind == LEASE_RENEW)
				gateway_lease_renewed(g, t, LEASE_REFUSED, NULL);
			stopped |= a.kind == LEASE_REPLACED;
		}
		CHECK(!gateway_lease_may_acknowledge(g, t, 1));
	}
	CHECK(stopped);
	gateway_lease_free(g);
}

/* ---- simulation ---- */

static int sim_print(const char *what, uint64_t seed, const struct sim_result *r)
{
	printf("# %s, seed %llu: %u faults, %u lost, %u moved, %u claimed, %llu events; on two nodes: %u boxes, %u names "
	       "(first at %llu ms); without owner: %u boxes, %u names\n",
	       what, (unsigned long long)seed, r->faults, r->lost, r->moved, r->claimed,
	       (unsigned long long)r->events, r->double_boxes, r->double_names,
	       (unsigned long long)r->first_ms, r->orphan_boxes, r->orphan_names);
	return 0;
}

TEST(no_box_and_no_name_is_on_two_nodes_whatever_fails)
{
	struct sim_result all = { 0 };
	unsigned seeds = getenv("LEASE_SEEDS") ? (unsigned)atoi(getenv("LEASE_SEEDS")) : 20;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct sim_result r = sim_run(seed, 100, 0);

		all.faults += r.faults;
		all.lost += r.lost;
		all.moved += r.moved;
		all.claimed += r.claimed;
		all.events += r.events;
		if (r.double_boxes || r.double_names || r.orphan_boxes || r.orphan_names)
			sim_print("all rules", seed, &r);
		CHECK_INT(r.double_boxes, 0);
		CHECK_INT(r.double_names, 0);
		CHECK_INT(r.orphan_boxes, 0);
		CHECK_INT(r.orphan_names, 0);
	}
	sim_print("all rules", 0, &all);
	CHECK(all.lost > all.faults / 20);
	CHECK(all.moved > all.lost);
}

static unsigned violations_without(unsigned rule)
{
	unsigned found = 0;
	uint64_t seed = 1;
	struct sim_result r = { 0 };

	for (; seed <= 40 && !found; seed++) {
		r = sim_run(seed, 100, rule);
		found = r.double_boxes + r.double_names;
	}
	sim_print("one rule less", seed - 1, &r);
	return found;
}

TEST(without_rule_2_the_simulation_finds_two_owners)
{
	CHECK(violations_without(LEASE_RULE_2) > 0);
}

TEST(without_rule_4_the_simulation_finds_two_owners)
{
	CHECK(violations_without(LEASE_RULE_4) > 0);
}

TEST(without_rule_5_the_simulation_finds_two_owners)
{
	CHECK(violations_without(LEASE_RULE_5) > 0);
}

TEST(without_rule_8_the_simulation_finds_two_owners)
{
	CHECK(violations_without(LEASE_RULE_8) > 0);
}
