/* webhook_test.c - deliveries of webhooks with a clock and a receiver of the test. */
#include "base/hex.h"
#include "secret/vault.h"
#include "store/teams.h"
#include "store_dir.h"
#include "webhook/dispatch.h"
#include "base/hmac.h"
#include "webhook/sign.h"

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)

/* ---- pure parts ---- */

TEST(the_mac_is_that_of_rfc_4231)
{
	char hex[2 * SHA256_BYTES + 1], key[131];
	uint8_t mac[SHA256_BYTES];

	hmac_sha256("Jefe", 4, (const void *[]){ "what do ya ", "want for nothing?" },
		    (const size_t[]){ 11, 17 }, 2, mac);
	hex_encode(hex, mac, sizeof(mac));
	CHECK_STR(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	hmac_sha256(key, sizeof(key),
		    (const void *[]){ "Test Using Larger Than Block-Size Key - Hash Key First" },
		    (const size_t[]){ 54 }, 1, mac);
	hex_encode(hex, mac, sizeof(mac));
	CHECK_STR(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(signatures_contain_the_time_and_the_body)
{
	char out[WEBHOOK_SIGNATURE], other[WEBHOOK_SIGNATURE];

	webhook_sign(out, "secret-key", 1700000000, "{\"a\":1}");
	/* printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret-key */
	CHECK_STR(out, "t=1700000000,v1="
		       "7311449d99aa882d3471459eab2f09da94fb15f2c1c678f4367531554cf36a96");
	webhook_sign(other, "secret-key", 1700000001, "{\"a\":1}");
	CHECK(strcmp(out + 13, other + 13) != 0);
	/* printf 'secret-key{"a":1}' | openssl dgst -sha256 -binary | base64 | tr '+/' '-_' | tr -d = */
	webhook_sign_e2b(out, "secret-key", "{\"a\":1}");
	CHECK_STR(out, "joy4JA3h98bxuHcJG3JNHp1RKnqFhLAjm8ApOUAnvcQ");
}

TEST(patterns_match_whole_types)
{
	CHECK(webhook_pattern_matches("box.created", "box.created"));
	CHECK(!webhook_pattern_matches("box.created", "box.create"));
	CHECK(!webhook_pattern_matches("box.create", "box.created"));
	CHECK(webhook_pattern_matches("box.*", "box.created"));
	CHECK(webhook_pattern_matches("*", "anything"));
	CHECK(webhook_pattern_matches("*.ended", "box.ended"));
	CHECK(webhook_pattern_matches("b*x.*d", "box.ended"));
	CHECK(!webhook_pattern_matches("b*x.*d", "box.ending"));
	CHECK(webhook_pattern_matches("*a*b*c*", "xxaxxbxxcxx"));
	CHECK(!webhook_pattern_matches("", "box"));
}

TEST(patterns_urls_and_secrets_are_checked)
{
	static const char *const bad[] = {
		"",    "box created", "box\ncreated",
		"a/b", "\xc3\xa9",    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	};
	struct err e;

	CHECK(webhook_check_pattern("box.*", &e) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(webhook_check_pattern(bad[i], &e) < 0);
	CHECK(webhook_check_url("https://example.org/hook", &e) == 0);
	CHECK(webhook_check_url("smtp://example.org", &e) < 0);
	CHECK(webhook_check_url("file:///etc/passwd", &e) < 0);
	CHECK(webhook_check_secret("12345678", &e) == 0);
	CHECK(webhook_check_secret("1234567", &e) < 0);
}

TEST(attempts_are_repeated_for_a_day)
{
	int64_t now = 0, next;
	unsigned n = 1;

	while ((next = webhook_next_attempt(0, n, now))) {
		CHECK(next > now && next - now <= WEBHOOK_LONGEST_NS);
		now = next;
		CHECK(++n < 200);
	}
	CHECK(now == WEBHOOK_TRIED_NS);
	CHECK(n > 90);
	CHECK(webhook_next_attempt(0, 4000000000u, 0) == WEBHOOK_LONGEST_NS);
}

/* ---- a world with its own clock ---- */

enum { ARRIVALS = 16384, PENDING = 256 };

static struct {
	struct store *store;
	struct vault vault;
	struct dispatch *dispatch;
	int64_t now;
	struct {
		struct outbound_request *request;
		int64_t seq;
		char box[8];
	} pending[PENDING];
	unsigned npending, most_pending;
	struct {
		int64_t seq, at;
		char box[8];
	} arrived[ARRIVALS];
	unsigned narrived, attempts;
	int down;         /* the receiver does not answer */
	int64_t poison;   /* the receiver answers 400 to this event */
	char header[200]; /* the last signature */
} w;

static int64_t world_now(void *ctx)
{
	(void)ctx;
	return w.now;
}

static int world_send(void *ctx, struct outbound_request *r, const struct outbound_message *m,
		      struct err *e)
{
	json_t *doc = json_loads(m->body, 0, NULL);

	(void)ctx;
	if (outbound_message_check(m, e) < 0)
		return -1;
	w.attempts++;
	w.pending[w.npending].request = r;
	w.pending[w.npending].seq = json_integer_value(json_object_get(doc, "seq"));
	snprintf(w.pending[w.npending].box, 8, "%s",
		 json_string_value(json_object_get(doc, "box")));
	snprintf(w.header, sizeof(w.header), "%s", m->headers[2]);
	w.npending++;
	w.most_pending = w.npending > w.most_pending ? w.npending : w.most_pending;
	json_decref(doc);
	return 0;
}

static void world_cancel(void *ctx, struct outbound_request *r)
{
	(void)ctx;
	for (unsigned i = 0; i < w.npending; i++)
		if (w.pending[i].request == r)
			w.pending[i] = w.pending[--w.npending];
}

static void world_finished(void *ctx, int at_once)
{
	(void)ctx;
	(void)at_once;
}

static void world_dispatch(void)
{
	struct dispatch_conf conf = { .store = w.store,
				      .vault = &w.vault,
				      .now_ns = world_now,
				      .send = world_send,
				      .cancel = world_cancel,
				      .finished = world_finished };

	w.dispatch = dispatch_new(&conf);
}

static void world_open(const char *dir, struct store *s)
{
	struct store_team team = { .name = "red" };
	char path[200];

	memset(&w, 0, sizeof(w));
	w.store = s;
	w.now = 1000 * HOUR;
	snprintf(path, sizeof(path), "%s/key", dir);
	vault_open(&w.vault, path);
	w.vault.store = s;
	CHECK_OK(store_team_put(s, &team, &err));
}

static void world_close(void)
{
	dispatch_free(w.dispatch);
	vault_close(&w.vault);
}

static void world_subscribe(const char *id, const char *events)
{
	auto_buf struct buf sealed = { 0 };
	struct store_webhook hook = { .url = "https://receiver.example/hook",
				      .events = (char *)events,
				      .enabled = 1,
				      .format = "atoll",
				      .team = "red" };

	CHECK_OK(vault_seal(&w.vault, id, "a secret of the test", 20, &sealed, &err));
	hook.sealed = sealed.p;
	hook.sealed_n = sealed.len;
	snprintf(hook.id, sizeof(hook.id), "%s", id);
	snprintf(hook.name, sizeof(hook.name), "%s", id);
	CHECK_OK(store_webhook_add(w.store, &hook, WEBHOOKS_TEAM, &err));
	if (w.dispatch)
		dispatch_reload(w.dispatch);
}

static void world_event(const char *box, const char *type)
{
	struct store_event ev = { .at_ns = w.now, .team = "red" };

	snprintf(ev.box, sizeof(ev.box), "%s", box);
	snprintf(ev.type, sizeof(ev.type), "%s", type);
	CHECK_OK(store_event_add(w.store, &ev, &err));
}

static void world_answer(unsigned i)
{
	struct outbound_request *r = w.pending[i].request;
	struct outbound_answer a = { .status = w.pending[i].seq == w.poison ? 400 : 200,
				     .body = "" };
	struct err e;

	if (!w.down && a.status == 200) {
		w.arrived[w.narrived].seq = w.pending[i].seq;
		w.arrived[w.narrived].at = w.now;
		memcpy(w.arrived[w.narrived++].box, w.pending[i].box, 8);
	}
	w.pending[i] = w.pending[--w.npending];
	err_set(&e, ERR_SYS, "connection refused");
	r->done(r, w.down ? NULL : &a, w.down ? &e : NULL);
}

/* Lets `span` pass, from one thing that is due to the next. */
static void world_pass(int64_t span)
{
	int64_t end = w.now + span;

	while (w.now < end) {
		int64_t next = dispatch_work(w.dispatch);

		if (w.npending) {
			world_answer((unsigned)(w.attempts % w.npending)); /* in another order */
			continue;
		}
		w.now = next > end ? end : next > w.now ? next : w.now + 1;
	}
}

/* 1: the numbers of each box arrived in ascending order, without repetition unless again. */
static int world_is_ordered(int again)
{
	for (unsigned i = 0; i < w.narrived; i++)
		for (unsigned k = i + 1; k < w.narrived && k < i + 2000; k++)
			if (strcmp(w.arrived[i].box, w.arrived[k].box) == 0 &&
			    (w.arrived[k].seq < w.arrived[i].seq ||
			     (!again && w.arrived[k].seq == w.arrived[i].seq)))
				return 0;
	return 1;
}

TEST(events_arrive_in_the_order_of_their_box)
{
	static const char *const boxes[] = { "a", "b", "c", "a", "a", "b", "a", "c", "a" };

	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("hook", "[\"box.*\"]");
	world_dispatch();
	for (unsigned i = 0; i < 9; i++)
		world_event(boxes[i], i == 4 ? "exec.ended" : "box.changed");
	world_pass(SECOND);
	CHECK_INT(w.narrived, 8);
	CHECK(world_is_ordered(0));
	CHECK_INT(w.most_pending, 3); /* one of each box */
	CHECK(strncmp(w.header, "Atoll-Signature: t=3600000,v1=", 30) == 0);
	world_close();
}

TEST(a_receiver_that_is_down_for_the_first_hour_gets_everything)
{
	char box[8];

	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("hook", "[\"*\"]");
	world_dispatch();
	w.down = 1;
	for (unsigned i = 0; i < 360; i++) {
		snprintf(box, sizeof(box), "b%u", i % 7);
		world_event(box, "box.changed");
		world_pass(10 * SECOND);
	}
	CHECK_INT(w.narrived, 0);
	CHECK(w.attempts > 10 && w.attempts < 400); /* the receiver is not hammered */
	w.down = 0;
	world_pass(2 * 60 * SECOND);
	CHECK_INT(w.narrived, 360);
	CHECK(world_is_ordered(0));
	world_close();
}

TEST(a_server_that_is_killed_at_any_time_loses_no_event)
{
	char box[8];
	unsigned seed = 1, seen = 0;

	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("hook", "[\"*\"]");
	world_dispatch();
	for (unsigned i = 0; i < 300; i++) {
		snprintf(box, sizeof(box), "b%u", i % 5);
		world_event(box, "box.changed");
		seed = seed * 1103515245 + 12345;
		w.down = (seed >> 16) % 4 == 0;
		dispatch_work(w.dispatch);
		if (w.npending && (seed >> 20) % 2)
			world_answer(0);
		if ((seed >> 18) % 3 == 0) { /* its attempts have no end; perhaps they arrived */
			for (unsigned k = 0; !w.down && k < w.npending; k++) {
				w.arrived[w.narrived].seq = w.pending[k].seq;
				memcpy(w.arrived[w.narrived++].box, w.pending[k].box, 8);
			}
			dispatch_free(w.dispatch);
			world_dispatch();
		}
		w.now += SECOND;
	}
	w.down = 0;
	world_pass(HOUR);
	CHECK(world_is_ordered(1));
	for (int64_t seq = 1; seq <= 300; seq++)
		for (unsigned i = 0; i < w.narrived; i++)
			if (w.arrived[i].seq == seq) {
				seen++;
				break;
			}
	CHECK_INT(seen, 300);
	world_close();
}

TEST(a_delivery_that_failed_for_a_day_can_be_replayed)
{
	struct store_deliveries failed = { 0 };
	struct store_webhook hook = { 0 };
	unsigned n = 0;

	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("hook", "[\"*\"]");
	world_dispatch();
	w.down = 1;
	world_event("a", "box.created");
	world_event("a", "box.ended");
	world_pass(23 * HOUR);
	CHECK_OK(store_delivery_list(s, "hook", 1, 0, 0, &failed, &err));
	CHECK_INT(failed.n, 0);
	world_pass(2 * HOUR);
	CHECK_OK(store_delivery_list(s, "hook", 1, 0, 0, &failed, &err));
	CHECK_INT(failed.n, 2);
	CHECK_STR(failed.v[0].error, "connection refused");
	CHECK(failed.v[0].attempts > 50);
	store_deliveries_fini(&failed);
	CHECK_OK(store_webhook_find(s, "red", "hook", &hook, &err));
	CHECK_STR(hook.error, "connection refused");
	store_webhook_fini(&hook);
	/* They stay there until they are replayed. */
	w.down = 0;
	world_event("a", "box.other");
	world_pass(HOUR);
	CHECK_INT(w.narrived, 1);
	CHECK_OK(store_delivery_replay(s, "hook", 0, w.now, &n, &err));
	CHECK_INT(n, 2);
	dispatch_reload(w.dispatch);
	world_pass(SECOND);
	CHECK_INT(w.narrived, 3);
	CHECK_INT(w.arrived[1].seq, 1);
	CHECK_INT(w.arrived[2].seq, 2);
	world_close();
}

TEST(a_delivery_that_is_rejected_delays_only_its_box)
{
	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("hook", "[\"*\"]");
	world_dispatch();
	w.poison = 1;
	world_event("a", "box.created");
	world_event("b", "box.created");
	world_event("a", "box.ended");
	world_pass(HOUR);
	CHECK_INT(w.narrived, 1);
	CHECK_STR(w.arrived[0].box, "b");
	world_pass(25 * HOUR);
	CHECK_INT(w.narrived, 2);
	CHECK_INT(w.arrived[1].seq, 3);
	world_close();
}

TEST(a_full_queue_stops_reading_and_loses_nothing)
{
	uint64_t waiting, failed;
	char box[8];

	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("hook", "[\"*\"]");
	world_dispatch();
	w.down = 1;
	CHECK_OK(store_begin(s, &err));
	for (unsigned i = 0; i < WEBHOOK_QUEUE + 500; i++) {
		snprintf(box, sizeof(box), "b%u", i % 100);
		world_event(box, "box.changed");
	}
	CHECK_OK(store_commit(s, &err));
	world_pass(60 * SECOND);
	CHECK_OK(store_delivery_count(s, "hook", &waiting, &failed, &err));
	CHECK(waiting >= WEBHOOK_QUEUE && waiting <= WEBHOOK_QUEUE + DISPATCH_PAGE);
	w.down = 0;
	world_pass(HOUR);
	CHECK_INT(w.narrived, WEBHOOK_QUEUE + 500);
	CHECK(world_is_ordered(0));
	world_close();
}

TEST(deleted_events_are_counted_as_lost)
{
	struct store_webhook hook = { 0 };

	STORE(s, dir);
	world_open(dir, s);
	world_event("a", "box.created");
	world_subscribe("hook", "[\"*\"]");
	CHECK_OK(store_webhook_find(s, "red", "hook", &hook, &err));
	hook.seq = 1;
	CHECK_OK(store_webhook_change(s, &hook, &err));
	store_webhook_fini(&hook);
	CHECK_OK(store_begin(s, &err));
	for (unsigned i = 0; i < STORE_EVENTS + 2048; i++)
		world_event("a", "box.changed");
	CHECK_OK(store_commit(s, &err));
	world_dispatch();
	w.down = 1;
	world_pass(SECOND);
	CHECK_OK(store_webhook_find(s, "red", "hook", &hook, &err));
	CHECK(hook.lost > 1000 && hook.lost < 3000);
	store_webhook_fini(&hook);
	world_close();
}

TEST(a_clock_that_is_set_back_delays_no_delivery)
{
	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("hook", "[\"*\"]");
	world_dispatch();
	w.down = 1;
	world_event("a", "box.created");
	world_pass(60 * SECOND);
	w.now -= 365 * 24 * HOUR;
	w.down = 0;
	dispatch_reload(w.dispatch);
	world_pass(WEBHOOK_LONGEST_NS);
	CHECK_INT(w.narrived, 1);
	world_close();
}

TEST(a_webhook_that_is_deleted_or_disabled_gets_nothing_more)
{
	struct store_webhook hook = { 0 };

	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("one", "[\"*\"]");
	world_subscribe("two", "[\"*\"]");
	world_dispatch();
	world_event("a", "box.created");
	dispatch_work(w.dispatch);
	CHECK_INT(w.npending, 2);
	CHECK_OK(store_webhook_remove(s, "red", "one", &err));
	CHECK_OK(store_webhook_find(s, "red", "two", &hook, &err));
	hook.enabled = 0;
	CHECK_OK(store_webhook_change(s, &hook, &err));
	store_webhook_fini(&hook);
	dispatch_reload(w.dispatch);
	world_answer(0);
	world_answer(0);
	w.narrived = 0;
	world_event("a", "box.ended");
	world_pass(HOUR);
	CHECK_INT(w.narrived, 0);
	world_close();
}

TEST(a_team_has_a_bounded_number_of_webhooks)
{
	struct store_webhook hook = { .url = "https://a.example",
				      .events = "[]",
				      .team = "red",
				      .sealed = "x",
				      .sealed_n = 1 };

	STORE(s, dir);
	world_open(dir, s);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(hook.id, sizeof(hook.id), "id%u", i);
		snprintf(hook.name, sizeof(hook.name), "name%u", i);
		CHECK(store_webhook_add(s, &hook, 2, &err) == (i < 2 ? 0 : -1));
	}
	CHECK_INT(err.kind, ERR_LIMIT);
	snprintf(hook.name, sizeof(hook.name), "name0");
	CHECK(store_webhook_add(s, &hook, 5, &err) < 0);
	CHECK_INT(err.kind, ERR_CONFLICT);
	vault_close(&w.vault);
}

/* ---- without the store ---- */

static uint64_t world_waiting(void)
{
	uint64_t waiting, failed;
	struct err e;

	return store_delivery_count(w.store, "hook", &waiting, &failed, &e) < 0 ? UINT64_MAX
										: waiting;
}

static int64_t world_seq(void)
{
	struct store_webhook hook = { .seq = -1 };
	int64_t seq;
	struct err e;

	(void)!store_webhook_find(w.store, "red", "hook", &hook, &e);
	seq = hook.seq;
	store_webhook_fini(&hook);
	return seq;
}

TEST(a_receiver_that_works_costs_no_row)
{
	struct store_webhook hook = { 0 };
	char box[8];

	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("hook", "[\"*\"]");
	world_dispatch();
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(box, sizeof(box), "b%u", i % 90);
		world_event(box, "box.changed");
	}
	world_pass(SECOND / 2);
	CHECK_INT(world_waiting(), 0);
	world_pass(SECOND);
	CHECK_INT(w.narrived, 1000);
	CHECK(world_is_ordered(0));
	CHECK_INT(world_seq(), 1000);
	CHECK_OK(store_webhook_find(s, "red", "hook", &hook, &err));
	CHECK_INT(hook.delivered, 1000);
	store_webhook_fini(&hook);
	world_close();
}

TEST(an_event_follows_when_the_arrival_of_the_one_before_is_stored)
{
	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("hook", "[\"*\"]");
	world_dispatch();
	world_event("a", "box.created");
	world_event("a", "box.ended");
	dispatch_work(w.dispatch);
	CHECK_INT(w.npending, 1);
	world_answer(0);
	CHECK_INT(w.npending, 0); /* a server that is killed here repeats number 1 */
	CHECK_INT(world_seq(), 0);
	dispatch_work(w.dispatch);
	CHECK_INT(world_seq(), 1);
	CHECK_INT(w.npending, 1);
	CHECK_INT(w.pending[0].seq, 2);
	world_close();
}

TEST(a_receiver_that_hangs_leaves_events_to_the_store)
{
	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("hook", "[\"*\"]");
	world_dispatch();
	world_event("a", "box.created");
	world_event("a", "box.ended");
	world_event("b", "box.created");
	dispatch_work(w.dispatch);
	CHECK_INT(w.npending, 2);
	CHECK_INT(world_waiting(), 0);
	w.now += 2 * SECOND;
	dispatch_work(w.dispatch);
	CHECK_INT(world_waiting(), 3);
	CHECK_INT(w.npending, 2);
	world_pass(SECOND);
	CHECK_INT(w.narrived, 3);
	CHECK_INT(world_waiting(), 0);
	/* It works again. */
	world_event("a", "box.other");
	dispatch_work(w.dispatch);
	CHECK_INT(w.npending, 1);
	CHECK_INT(world_waiting(), 0);
	world_pass(SECOND);
	CHECK_INT(w.narrived, 4);
	CHECK(world_is_ordered(0));
	world_close();
}

TEST(what_waits_in_memory_is_stored_before_a_webhook_is_disabled)
{
	STORE(s, dir);
	world_open(dir, s);
	world_subscribe("hook", "[\"*\"]");
	world_dispatch();
	world_event("a", "box.created");
	world_event("a", "box.ended");
	dispatch_work(w.dispatch);
	CHECK_OK(dispatch_settle(w.dispatch, "hook", &err));
	CHECK_OK(dispatch_settle(w.dispatch, "unknown", &err));
	CHECK_INT(world_waiting(), 2);
	world_pass(SECOND);
	CHECK_INT(w.narrived, 2);
	world_close();
}
