/* coordinator_contract.c - what every driver of coordinator.h must do, with a real engine: started by
 * tests/system/coordinator.sh with "postgres CONNECTION-STRING" or "etcd URL". */
#include "coordinator/coordinator.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "coordinator/etcd.h"
#include "coordinator/postgres.h"
#include "coordinator/schema.h"
#include "loop/loop.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct loop loop;
static struct postgres *db;
static struct coordinator *c;
static char run[24]; /* in the names of this run */
static int nodes[2], gateways[2];
static int64_t incarnations[2], serial;

/* ---- one request at a time ---- */

static struct got { /* of the last answer */
	int came;
	enum err_kind kind;
	char why[240];
	struct coordinator_answer a; /* its vectors are gone, except these: */
	struct view_gateway gateways[64];
	struct view_tunnel tunnels[64];
	struct view_node nodes[64];
	struct {
		int node;
		char box[64];
	} names[64];
	char superseded[64][64];
} got;

static unsigned least(unsigned n)
{
	return n < 64 ? n : 64;
}

static void came(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct got *g = user;

	memset(g, 0, sizeof(*g));
	g->came = 1;
	loop_stop(&loop);
	if (e) {
		g->kind = e->kind;
		snprintf(g->why, sizeof(g->why), "%s", e->msg);
		return;
	}
	g->a = *a;
	for (unsigned i = 0; i < least(a->ngateways); i++)
		g->gateways[i] = a->gateways[i];
	for (unsigned i = 0; i < least(a->ntunnels); i++)
		g->tunnels[i] = a->tunnels[i];
	for (unsigned i = 0; i < least(a->nnodes); i++)
		g->nodes[i] = a->nodes[i];
	for (unsigned i = 0; i < least(a->nnames); i++) {
		g->names[i].node = a->names[i].node;
		snprintf(g->names[i].box, 64, "%s", a->names[i].box);
	}
	for (unsigned i = 0; i < least(a->nsuperseded); i++)
		snprintf(g->superseded[i], 64, "%s", a->superseded[i].box);
}

static void ask(struct coordinator_request q)
{
	got.came = 0;
	coordinator_ask(c, &q, came, &got);
	if (got.came)
		snprintf(got.why, sizeof(got.why), "called back before coordinator_ask() returned");
	while (!got.came)
		loop_run(&loop);
	if (got.kind)
		printf("# %s: %s\n", coordinator_op_name(q.op), got.why);
}
#define ASK(...) ask((struct coordinator_request){ __VA_ARGS__ })
#define REFUSED(kind_, ...)                                                                        \
	do {                                                                                       \
		ASK(__VA_ARGS__);                                                                  \
		CHECK_INT(got.kind, kind_);                                                        \
	} while (0)
#define DONE(done_, ...)                                                                           \
	do {                                                                                       \
		ASK(__VA_ARGS__);                                                                  \
		CHECK_INT(got.kind, ERR_NONE);                                                     \
		CHECK_INT(got.a.done, done_);                                                      \
	} while (0)

/* A text that no earlier run has used. Good for eight more calls. */
static const char *fresh(const char *word)
{
	static char texts[8][64];
	static unsigned at;
	char *text = texts[at++ % 8];

	snprintf(text, 64, "%s-%s", word, run);
	return text;
}

static struct coordinator_key name_of(const char *word)
{
	return (struct coordinator_key){ "team", 'n', fresh(word), "" };
}

static int64_t epoch_of(int node)
{
	ASK(.op = COORDINATOR_RENEW, .gateway = gateways[0], .incarnation = incarnations[0]);
	for (unsigned i = 0; i < got.a.nnodes; i++)
		if (got.nodes[i].number == node)
			return got.nodes[i].epoch;
	return -1;
}

static struct view_gateway as_seen(int i)
{
	ASK(.op = COORDINATOR_RENEW, .gateway = gateways[!i], .incarnation = incarnations[!i]);
	for (unsigned k = 0; k < got.a.ngateways; k++)
		if (got.gateways[k].number == gateways[i])
			return got.gateways[k];
	return (struct view_gateway){ 0 };
}

static int is_up(int node, int gateway)
{
	ASK(.op = COORDINATOR_RENEW, .gateway = gateways[0], .incarnation = incarnations[0]);
	for (unsigned i = 0; i < got.a.ntunnels; i++)
		if (got.tunnels[i].node == node && got.tunnels[i].gateway == gateway)
			return 1;
	return 0;
}

static void tunnel(int node, int gateway, int up)
{
	ASK(.op = COORDINATOR_SET_TUNNEL, .node = node, .gateway = gateway, .up = up,
	    .serial = ++serial);
}

/* No tunnel is up, both nodes have been connected. Returns the epoch of nodes[i]. */
static int64_t lose(int i)
{
	int64_t epoch;

	tunnel(nodes[i], gateways[0], 1);
	tunnel(nodes[i], gateways[0], 0);
	epoch = epoch_of(nodes[i]);
	ASK(.op = COORDINATOR_DECLARE_LOST, .node = nodes[i], .epoch = epoch);
	return got.a.done ? epoch + 1 : -1;
}

/* ---- the tests, in this order ---- */

static int begin(void)
{
	struct err e;

	snprintf(run, sizeof(run), "%d", (int)getpid());
	if (loop_init(&loop, &e) < 0 || tap_argc < 3)
		return -1;
	if (!strcmp(tap_argv[1], "postgres")) {
		struct postgres_conf conf = { .database = tap_argv[2],
					      .answer_ms = 20000,
					      .query = schema_query(),
					      .check = schema_check,
					      .setup = schema_setup() };

		if (postgres_new(&db, &loop, &conf, &e) < 0 ||
		    coordinator_postgres_new(&c, &loop, db, &e) < 0) {
			printf("# %s\n", e.msg);
			return -1;
		}
	}
	if (!strcmp(tap_argv[1], "etcd")) {
		struct etcd_conf conf = { .addresses = tap_argv[2], .answer_ms = 20000 };

		if (coordinator_etcd_new(&c, &loop, &conf, &e) < 0) {
			printf("# %s\n", e.msg);
			return -1;
		}
	}
	return c ? 0 : -1;
}

TEST(a_machine_gets_one_number_and_a_name_belongs_to_one_key)
{
	static const char *const words[] = { "a", "b" };

	CHECK_INT(begin(), 0);
	for (int i = 0; i < 2; i++) {
		ASK(.op = COORDINATOR_ASSIGN_NUMBER, .role = "node", .name = fresh(words[i]),
		    .fingerprint = "f1");
		CHECK_INT(got.kind, ERR_NONE);
		nodes[i] = got.a.number;
		ASK(.op = COORDINATOR_ASSIGN_NUMBER, .role = "gateway", .name = fresh(words[i]),
		    .fingerprint = "f1");
		CHECK_INT(got.kind, ERR_NONE);
		gateways[i] = got.a.number;
	}
	CHECK(nodes[0] > 0 && nodes[0] != nodes[1] && nodes[0] != gateways[0]);
	CHECK(gateways[0] > 0 && gateways[0] != gateways[1] && nodes[1] != gateways[1]);
	ASK(.op = COORDINATOR_ASSIGN_NUMBER, .role = "node", .name = fresh("a"),
	    .fingerprint = "f1");
	CHECK_INT(got.a.number, nodes[0]);
	REFUSED(ERR_CONFLICT, .op = COORDINATOR_ASSIGN_NUMBER, .role = "node", .name = fresh("a"),
		.fingerprint = "f2");
}

TEST(the_last_process_that_registers_a_gateway_renews_it)
{
	struct view_gateway seen;
	int64_t incarnation;

	REFUSED(ERR_NOT_FOUND, .op = COORDINATOR_REGISTER, .gateway = 32000);
	REFUSED(ERR_NOT_FOUND, .op = COORDINATOR_RENEW, .gateway = 32000);
	for (int i = 0; i < 2; i++) {
		ASK(.op = COORDINATOR_REGISTER, .gateway = gateways[i]);
		CHECK_INT(got.kind, ERR_NONE);
		incarnations[i] = got.a.incarnation;
	}
	REFUSED(ERR_NONE, .op = COORDINATOR_RENEW, .gateway = gateways[0],
		.incarnation = incarnations[0]);
	ASK(.op = COORDINATOR_REGISTER, .gateway = gateways[0], .address = "10.0.0.1:7071",
	    .version = "1.2");
	incarnation = got.a.incarnation;
	CHECK(incarnation > incarnations[0]);
	REFUSED(ERR_CONFLICT, .op = COORDINATOR_RENEW, .gateway = gateways[0],
		.incarnation = incarnations[0]);
	incarnations[0] = incarnation;
	ASK(.op = COORDINATOR_RENEW, .gateway = gateways[0], .incarnation = incarnations[0]);
	CHECK_INT(got.kind, ERR_NONE);
	seen = as_seen(0);
	CHECK_INT(as_seen(0).renewals, seen.renewals);
	ASK(.op = COORDINATOR_RENEW, .gateway = gateways[0], .incarnation = incarnations[0]);
	CHECK(as_seen(0).renewals > seen.renewals);
	CHECK_INT(as_seen(0).incarnation, incarnations[0]);
}

TEST(a_delayed_tunnel_down_does_not_undo_a_later_up)
{
	tunnel(nodes[0], gateways[0], 1);
	CHECK_INT(got.kind, ERR_NONE);
	CHECK(got.a.epoch > 0);
	CHECK(is_up(nodes[0], gateways[0]));
	tunnel(nodes[0], gateways[0], 0);
	CHECK(!is_up(nodes[0], gateways[0]));
	serial += 2;
	tunnel(nodes[0], gateways[0], 1);
	REFUSED(ERR_CONFLICT, .op = COORDINATOR_SET_TUNNEL, .node = nodes[0],
		.gateway = gateways[0], .up = 0, .serial = serial - 1);
	CHECK(is_up(nodes[0], gateways[0]));
	/* The same request twice: the answer of the first one was lost. */
	DONE(1, .op = COORDINATOR_SET_TUNNEL, .node = nodes[0], .gateway = gateways[0], .up = 1,
	     .serial = serial);
	REFUSED(ERR_NOT_FOUND, .op = COORDINATOR_SET_TUNNEL, .node = 32000, .gateway = gateways[0],
		.up = 1, .serial = ++serial);
}

TEST(a_node_is_lost_once_and_only_without_a_tunnel_at_a_gateway_that_is_not_dead)
{
	struct view_gateway dead = as_seen(1);
	int64_t epoch = epoch_of(nodes[0]);

	CHECK(is_up(nodes[0], gateways[0]));
	DONE(0, .op = COORDINATOR_DECLARE_LOST, .node = nodes[0], .epoch = epoch);
	DONE(0, .op = COORDINATOR_DECLARE_LOST, .node = nodes[0], .epoch = epoch, .dead = &dead,
	     .ndead = 1);
	tunnel(nodes[0], gateways[1], 1);
	tunnel(nodes[0], gateways[0], 0);
	DONE(0, .op = COORDINATOR_DECLARE_LOST, .node = nodes[0], .epoch = epoch);
	/* The gateway has renewed its lease since it was seen. */
	dead = as_seen(1);
	ASK(.op = COORDINATOR_RENEW, .gateway = gateways[1], .incarnation = incarnations[1]);
	DONE(0, .op = COORDINATOR_DECLARE_LOST, .node = nodes[0], .epoch = epoch, .dead = &dead,
	     .ndead = 1);
	dead = as_seen(1);
	DONE(0, .op = COORDINATOR_DECLARE_LOST, .node = nodes[0], .epoch = epoch - 1, .dead = &dead,
	     .ndead = 1);
	DONE(1, .op = COORDINATOR_DECLARE_LOST, .node = nodes[0], .epoch = epoch, .dead = &dead,
	     .ndead = 1);
	CHECK_INT(got.a.epoch, epoch + 1);
	DONE(0, .op = COORDINATOR_DECLARE_LOST, .node = nodes[0], .epoch = epoch, .dead = &dead,
	     .ndead = 1);
	DONE(0, .op = COORDINATOR_DECLARE_LOST, .node = nodes[0], .epoch = epoch + 1, .dead = &dead,
	     .ndead = 1);
	CHECK_INT(epoch_of(nodes[0]), epoch + 1);
	tunnel(nodes[0], gateways[1], 0);
}

TEST(a_dead_gateway_between_others_hides_no_tunnel_of_theirs)
{
	/* Number and renewals of gateways[0] do not belong to the tunnel of gateways[1]. */
	struct view_gateway dead[2] = { { 1, 1, 1 }, { 0 } };
	int64_t epoch;

	dead[1] = as_seen(0);
	tunnel(nodes[0], gateways[1], 1);
	epoch = epoch_of(nodes[0]);
	dead[1] = as_seen(0);
	DONE(0, .op = COORDINATOR_DECLARE_LOST, .node = nodes[0], .epoch = epoch, .dead = dead,
	     .ndead = 2);
	tunnel(nodes[0], gateways[1], 0);
	DONE(1, .op = COORDINATOR_DECLARE_LOST, .node = nodes[0], .epoch = epoch);
}

TEST(one_claim_of_a_name_is_done)
{
	struct coordinator_key name = name_of("one"),
			       session = { "team", 's', name.name, "python" };
	int64_t epochs[2];

	tunnel(nodes[0], gateways[0], 1);
	tunnel(nodes[1], gateways[1], 1);
	epochs[0] = epoch_of(nodes[0]);
	epochs[1] = epoch_of(nodes[1]);
	DONE(0, .op = COORDINATOR_FIND_NAME, .key = name);
	DONE(1, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[0], .epoch = epochs[0],
	     .box = "claim1");
	DONE(1, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[0], .epoch = epochs[0],
	     .box = "claim1");
	DONE(0, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[0], .epoch = epochs[0],
	     .box = "claim2");
	CHECK_STR(got.names[0].box, "claim1");
	DONE(0, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[1], .epoch = epochs[1],
	     .box = "claim1");
	CHECK_INT(got.names[0].node, nodes[0]);
	DONE(0, .op = COORDINATOR_CHANGE_NAME, .key = name, .node = nodes[0], .box = "claim2",
	     .new_box = "box2");
	for (int again = 0; again < 2; again++)
		DONE(1, .op = COORDINATOR_CHANGE_NAME, .key = name, .node = nodes[0],
		     .box = "claim1", .new_box = "box1");
	DONE(1, .op = COORDINATOR_FIND_NAME, .key = name);
	CHECK_STR(got.names[0].box, "box1");
	/* A session of the same text is another name. */
	DONE(1, .op = COORDINATOR_CLAIM_NAME, .key = session, .node = nodes[1], .epoch = epochs[1],
	     .box = "box9");
	DONE(0, .op = COORDINATOR_RELEASE_NAME, .key = name, .node = nodes[0], .box = "claim1");
	DONE(1, .op = COORDINATOR_RELEASE_NAME, .key = name, .node = nodes[0], .box = "box1");
	DONE(0, .op = COORDINATOR_FIND_NAME, .key = name);
	DONE(1, .op = COORDINATOR_FIND_NAME, .key = session);
	REFUSED(ERR_CONFLICT, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[0],
		.epoch = epochs[0] - 1, .box = "old");
	REFUSED(ERR_CONFLICT, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[0],
		.epoch = epochs[0] + 1, .box = "new");
	DONE(0, .op = COORDINATOR_FIND_NAME, .key = name);
}

static int claims_done, claims_came;
static void claim_came(void *user, const struct coordinator_answer *a, const struct err *e)
{
	(void)user;
	claims_came++;
	claims_done += !e && a->done;
	loop_stop(&loop);
}

TEST(of_many_claims_at_the_same_time_one_is_done)
{
	struct coordinator_key name = name_of("many");
	int64_t epochs[2] = { epoch_of(nodes[0]), epoch_of(nodes[1]) };

	claims_done = claims_came = 0;
	for (int i = 0; i < 64; i++) {
		char box[16];
		struct coordinator_request q = { .op = COORDINATOR_CLAIM_NAME,
						 .key = name,
						 .node = nodes[i % 2],
						 .epoch = epochs[i % 2],
						 .box = box };

		snprintf(box, sizeof(box), "box%d", i);
		coordinator_ask(c, &q, claim_came, NULL);
	}
	while (claims_came < 64)
		loop_run(&loop);
	CHECK_INT(claims_done, 1);
}

TEST(names_of_a_lost_node_are_kept_until_it_is_forgotten)
{
	struct coordinator_key name = name_of("kept");
	int64_t epoch = epoch_of(nodes[0]), other = epoch_of(nodes[1]);

	DONE(1, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[0], .epoch = epoch,
	     .box = "box1");
	epoch = lose(0);
	CHECK(epoch > 0);
	REFUSED(ERR_CONFLICT, .op = COORDINATOR_CLAIM_NAME, .key = name_of("late"),
		.node = nodes[0], .epoch = epoch, .box = "box2");
	DONE(0, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[1], .epoch = other,
	     .box = "box3");
	/* It returns, and still has the name. */
	tunnel(nodes[0], gateways[0], 1);
	CHECK_INT(got.a.epoch, epoch);
	CHECK(got.a.nnames >= 1);
	DONE(0, .op = COORDINATOR_FORGET_NODE, .node = nodes[0], .epoch = epoch);
	DONE(1, .op = COORDINATOR_FIND_NAME, .key = name);
	/* It is lost again and forgotten: the name is free, and not the node's when it returns. */
	epoch = lose(0);
	DONE(0, .op = COORDINATOR_FORGET_NODE, .node = nodes[0], .epoch = epoch - 1);
	for (int again = 0; again < 2; again++)
		DONE(1, .op = COORDINATOR_FORGET_NODE, .node = nodes[0], .epoch = epoch);
	DONE(0, .op = COORDINATOR_FIND_NAME, .key = name);
	DONE(1, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[1], .epoch = other,
	     .box = "box3");
	tunnel(nodes[0], gateways[0], 1);
	CHECK_INT(got.kind, ERR_NONE);
	CHECK_INT(got.a.nnames, 0);
	DONE(1, .op = COORDINATOR_CLAIM_NAME, .key = name_of("later"), .node = nodes[0],
	     .epoch = epoch, .box = "box4");
}

TEST(a_box_of_a_lost_node_moves_once_and_with_its_name)
{
	struct coordinator_key name = name_of("move"), session = name;
	const char *box = fresh("movedbox");
	int64_t epoch = epoch_of(nodes[0]), other = epoch_of(nodes[1]);
	struct coordinator_request move = { .op = COORDINATOR_MOVE_BOX,
					    .key = name,
					    .box = box,
					    .from = nodes[0],
					    .node = nodes[1],
					    .epoch = other };

	session.kind = 's';
	DONE(1, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[0], .epoch = epoch,
	     .box = box);
	DONE(1, .op = COORDINATOR_CLAIM_NAME, .key = session, .node = nodes[0], .epoch = epoch,
	     .box = box);
	move.from_epoch = epoch;
	ask(move);
	CHECK_INT(got.a.done, 0); /* the node is up */
	move.from_epoch = lose(0);
	move.epoch = other + 1;
	ask(move);
	CHECK_INT(got.a.done, 0); /* nodes[1] has another epoch */
	move.epoch = other;
	for (int again = 0; again < 2; again++) {
		ask(move);
		CHECK_INT(got.kind, ERR_NONE);
		CHECK_INT(got.a.done, 1);
	}
	DONE(1, .op = COORDINATOR_FIND_NAME, .key = name);
	CHECK_INT(got.names[0].node, nodes[1]);
	CHECK_STR(got.names[0].box, box);
	/* Its session follows with a second request. */
	move.key = session;
	ask(move);
	CHECK_INT(got.a.done, 1);
	DONE(1, .op = COORDINATOR_FIND_NAME, .key = session);
	CHECK_INT(got.names[0].node, nodes[1]);
	DONE(1, .op = COORDINATOR_FIND_BOX, .box = box);
	CHECK_INT(got.a.number, nodes[1]);
	CHECK_INT(got.a.epoch, other);
	DONE(0, .op = COORDINATOR_FIND_BOX, .box = fresh("nevermoved"));
	/* Without a name; and after the return it is too late for others. */
	move.key = (struct coordinator_key){ 0 };
	move.box = fresh("unnamed");
	ask(move);
	CHECK_INT(got.a.done, 1);
	tunnel(nodes[0], gateways[0], 1);
	CHECK_INT(got.a.nsuperseded, 2);
	CHECK(!strcmp(got.superseded[0], box) || !strcmp(got.superseded[1], box));
	move.box = fresh("toolate");
	ask(move);
	CHECK_INT(got.kind, ERR_NONE);
	CHECK_INT(got.a.done, 0);
	DONE(1, .op = COORDINATOR_SETTLE_BOX, .node = nodes[0], .box = box);
	tunnel(nodes[0], gateways[0], 1);
	CHECK_INT(got.a.nsuperseded, 1);
}

TEST(a_moved_box_moves_again_when_its_next_node_is_lost)
{
	const char *box = fresh("movedbox");
	int64_t lost, epoch;

	tunnel(nodes[1], gateways[1], 0);
	lost = lose(1);
	CHECK(lost > 0);
	epoch = epoch_of(nodes[0]);
	DONE(1, .op = COORDINATOR_MOVE_BOX, .box = box, .from = nodes[1], .from_epoch = lost,
	     .node = nodes[0], .epoch = epoch);
	DONE(0, .op = COORDINATOR_MOVE_BOX, .box = box, .from = nodes[1], .from_epoch = lost,
	     .node = nodes[0], .epoch = epoch - 1);
	tunnel(nodes[1], gateways[1], 1);
	CHECK_INT(got.a.nsuperseded, 1);
	CHECK_STR(got.superseded[0], box);
}

TEST(a_box_of_a_node_that_drains_moves_there_and_back_and_is_not_superseded)
{
	struct coordinator_key name = name_of("leave");
	const char *box = fresh("leavingbox");
	int64_t epoch = epoch_of(nodes[0]), other = epoch_of(nodes[1]);
	struct coordinator_request move = { .op = COORDINATOR_MOVE_BOX, .key = name, .box = box };

	DONE(1, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[0], .epoch = epoch,
	     .box = box);
	for (int back = 0; back < 2; back++) {
		move.from = nodes[back];
		move.from_epoch = back ? other : epoch;
		move.node = nodes[!back];
		move.epoch = back ? epoch : other;
		move.up = 0;
		ask(move);
		CHECK_INT(got.a.done, 0); /* it is not lost */
		move.up = 1;
		move.from_epoch--;
		ask(move);
		CHECK_INT(got.a.done, 0); /* it has another epoch */
		move.from_epoch++;
		for (int again = 0; again < 2; again++) {
			ask(move);
			CHECK_INT(got.kind, ERR_NONE);
			CHECK_INT(got.a.done, 1);
		}
		DONE(1, .op = COORDINATOR_FIND_NAME, .key = name);
		CHECK_INT(got.names[0].node, nodes[!back]);
		DONE(1, .op = COORDINATOR_FIND_BOX, .box = box);
		CHECK_INT(got.a.number, nodes[!back]);
	}
	move.box = fresh("stays"); /* to the node on which it is */
	move.node = move.from;
	move.epoch = move.from_epoch;
	ask(move);
	CHECK_INT(got.a.done, 0);
	for (int i = 0; i < 2; i++) {
		tunnel(nodes[i], gateways[i], 1);
		for (unsigned k = 0; k < got.a.nsuperseded; k++)
			CHECK(strcmp(got.superseded[k], box) != 0);
	}
	/* A lost node has stopped nothing. */
	tunnel(nodes[0], gateways[0], 0);
	move.from = nodes[0];
	move.from_epoch = lose(0);
	move.node = nodes[1];
	move.epoch = other;
	ask(move);
	CHECK_INT(got.a.done, 0);
	tunnel(nodes[0], gateways[0], 1);
}

TEST(a_removed_node_is_refused_and_its_names_are_free)
{
	struct coordinator_key name = name_of("removed");
	int64_t epoch = epoch_of(nodes[1]), other = epoch_of(nodes[0]);

	DONE(1, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[1], .epoch = epoch,
	     .box = "box1");
	DONE(1, .op = COORDINATOR_REMOVE_NODE, .node = nodes[1]);
	DONE(0, .op = COORDINATOR_REMOVE_NODE, .node = nodes[1]);
	CHECK_INT(epoch_of(nodes[1]), -1);
	CHECK(!is_up(nodes[1], gateways[1]));
	REFUSED(ERR_NOT_FOUND, .op = COORDINATOR_SET_TUNNEL, .node = nodes[1],
		.gateway = gateways[1], .up = 1, .serial = ++serial);
	DONE(1, .op = COORDINATOR_CLAIM_NAME, .key = name, .node = nodes[0], .epoch = other,
	     .box = "box2");
	/* Its name can be used again, with another number. */
	ASK(.op = COORDINATOR_ASSIGN_NUMBER, .role = "node", .name = fresh("b"),
	    .fingerprint = "f2");
	CHECK_INT(got.kind, ERR_NONE);
	CHECK(got.a.number != nodes[1]);
}

TEST(invalid_requests_are_refused_on_the_loop)
{
	static struct view_gateway many[1000];
	char text[400];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	REFUSED(ERR_INVALID, .op = COORDINATOR_RENEW, .gateway = -1);
	REFUSED(ERR_INVALID, .op = COORDINATOR_SET_TUNNEL, .gateway = 1, .node = 40000);
	REFUSED(ERR_INVALID, .op = COORDINATOR_FIND_NAME);
	REFUSED(ERR_INVALID, .op = COORDINATOR_FIND_NAME, .key = { "t", 'x', "n", "" });
	REFUSED(ERR_INVALID, .op = COORDINATOR_FIND_NAME, .key = { "t", 'n', "a\nb", "" });
	REFUSED(ERR_INVALID, .op = COORDINATOR_FIND_NAME, .key = { "t", 'n', text, "" });
	REFUSED(ERR_INVALID, .op = COORDINATOR_ASSIGN_NUMBER, .role = "king", .name = "a",
		.fingerprint = "f");
	REFUSED(ERR_LIMIT, .op = COORDINATOR_DECLARE_LOST, .node = 1, .ndead = 1000, .dead = many);
	/* Texts that mean something to an engine are texts. */
	DONE(0, .op = COORDINATOR_FIND_NAME,
	     .key = { "'; drop table atoll.names --", 'n', "a/b%2f\"\\$1{}", "/" });
	coordinator_free(c);
	postgres_free(db);
	loop_fini(&loop);
}
