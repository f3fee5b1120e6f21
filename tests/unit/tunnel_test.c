/* tunnel_test.c - tunnels between a gateway and nodes, in one thread: over TLS on loopback, and with a
 * plain socket as a node that sends what it should not. */
#include "cluster/ca.h"
#include "cluster/tunnel_internal.h"
#include "cluster/tunnel_node.h"
#include "base/log.h"
#include "http/tls.h"
#include "http/upstream.h"
#include "http_rig.h"

#include <jansson.h>
#include <sys/mman.h>
#include <time.h>

static struct err e;

static void must(int rc)
{
	if (rc == 0)
		return;
	printf("# %s\n", e.msg);
	abort();
}

/* ---- the log ---- */

static int log_fd = -1;

static int logged(const char *text)
{
	static char all[1 << 20];
	ssize_t n = pread(log_fd, all, sizeof(all) - 1, 0);

	all[n > 0 ? n : 0] = 0;
	return strstr(all, text) != NULL;
}

static void begin_log(void)
{
	if (log_fd < 0)
		log_fd = memfd_create("log", MFD_CLOEXEC);
	if (ftruncate(log_fd, 0) < 0 || lseek(log_fd, 0, SEEK_SET) < 0)
		abort();
	log_setup(log_fd, LOG_TEXT, LEVEL_DEBUG);
}

/* ---- the gateway ---- */

static struct tunnels *gate;
static char down_why[200];
static unsigned ups, downs, batches;
static int may_ack;

static void gate_up(void *user, struct tunnel_node *n, uint64_t epoch)
{
	(void)user;
	ups++;
	tunnels_greet(gate, n->number, epoch + 1, NULL);
}

static void gate_down(void *user, struct tunnel_node *n, const char *why)
{
	(void)user;
	(void)n;
	downs++;
	snprintf(down_why, sizeof(down_why), "%s", why);
}

static int gate_may_ack(void *user, struct tunnel_node *n)
{
	(void)user;
	(void)n;
	return may_ack;
}

static int gate_rows(void *user, struct tunnel_node *n, const struct json_t *rows, uint64_t last,
		     struct err *why)
{
	(void)user;
	batches++;
	if (json_array_size(rows) > 3)
		return err_set(why, ERR_INVALID, "row of another node");
	if (last < 100)
		tunnels_rows_kept(gate, n->number, last);
	return 0;
}

static int gate_permitted(void *user, uint32_t number)
{
	(void)user;
	return number != 66;
}

static void gate_head(struct http_req *r)
{
	if (strcmp(r->path, "/tunnel") == 0)
		tunnels_accept(gate, r);
	else
		http_reply(r, 404, "text/plain", "no", 2);
}

static void make_gate(void)
{
	static const struct tunnel_hooks hooks = { .up = gate_up,
						   .down = gate_down,
						   .may_acknowledge = gate_may_ack,
						   .rows = gate_rows,
						   .permitted = gate_permitted };

	ups = downs = batches = 0;
	may_ack = 1;
	down_why[0] = 0;
	gate = tunnels_new(&loop, 2, "0.3.0", &hooks);
	gate->tick_ms = 5;
	gate->silence_ms = 10000;
	gate->wait_up_ms = PATIENCE_MS;
	gate->settled_ms = 0;
	timer_set(&gate->tick, 0);
}

/* ---- a cluster ---- */

static struct cluster_ca *authority(struct buf **out_cert)
{
	static struct buf cert, key;
	static struct cluster_ca *ca;

	if (!ca) {
		must(cluster_ca_make(&cert, &key, &e));
		must(cluster_ca_load(&ca, &cert, &key, &e));
	}
	*out_cert = &cert;
	return ca;
}

static struct cluster_identity machine(enum cluster_role role, unsigned number)
{
	struct cluster_identity id = { 0 };
	struct cluster_peer peer = { role, number };
	auto_buf struct buf request = { 0 };
	struct buf *cert;
	struct cluster_ca *ca = authority(&cert);

	buf_add(&id.ca, cert->p, cert->len);
	must(cluster_ca_request(&request, &id.key, &e));
	must(cluster_ca_sign(ca, request.p, request.len, &peer, time(NULL), &id.cert, &e));
	return id;
}

static struct ssl_ctx_st *client_tls(enum cluster_role role, unsigned number)
{
	struct cluster_identity id = machine(role, number);
	struct ssl_ctx_st *ctx = NULL;

	must(cluster_tls_client(&id, &ctx, &e));
	cluster_identity_fini(&id);
	return ctx;
}

static struct ssl_ctx_st *gate_tls, *node_tls;
static struct http_server node_server;
static struct tunnel_client *client;
static struct timer connect_timer;
static unsigned connects_due, acks, greets;
static uint64_t greeted_epoch;
static int refuse_connects;

/* The sockets come later, from the loop, as in the daemon. */
static void node_connects(struct timer *t)
{
	(void)t;
	for (; connects_due > 0; connects_due--) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (refuse_connects || fd < 0 || connect(fd, (void *)&where, sizeof(where)) < 0) {
			close(fd);
			tunnel_client_failed(client, 0, "connection refused");
		} else {
			tunnel_client_connected(client, 0, fd);
		}
	}
}

static void node_connect(void *user, unsigned gateway)
{
	(void)user;
	(void)gateway;
	connects_due++;
	timer_set(&connect_timer, 0);
}

static void node_figures(void *user, struct control_figures *out)
{
	(void)user;
	*out = (struct control_figures){ .load = 250,
					 .cpus = 2,
					 .memory_total = 1000,
					 .memory_free = 400,
					 .boxes = 3,
					 .arch = "x86_64" };
	out->templates = calloc(1, sizeof(uint64_t));
	out->templates[0] = control_hash("python");
	out->ntemplates = 1;
}

static void node_greeted(void *user, unsigned gateway, uint32_t number, uint64_t epoch,
			 const struct json_t *owned)
{
	(void)user;
	(void)gateway;
	greets += number == 2 && json_array_size(owned) == 0;
	greeted_epoch = epoch;
}

static void node_acked(void *user, unsigned gateway, uint64_t sent_ms)
{
	(void)user;
	(void)gateway;
	acks += sent_ms > 0 && sent_ms <= loop_now_ms();
}

static void node_head(struct http_req *r)
{
	heads += r->trusted_peer;
	http_reply(r, 200, "text/plain", r->path, strlen(r->path));
}

static void make_client(const char *version, struct ssl_ctx_st *tls)
{
	static const struct tunnel_client_hooks hooks = { .connect = node_connect,
							  .figures = node_figures,
							  .greeted = node_greeted,
							  .acknowledged = node_acked };
	struct tunnel_client_conf conf = {
		.number = 7, .name = "seven", .version = version, .gateways = 1, .tls = tls
	};

	acks = greets = 0;
	http_server_init(&node_server, &loop);
	node_server.on_head = node_head;
	client = tunnel_client_new(&loop, &node_server, &conf, &hooks);
}

static void begin_gate(void)
{
	struct cluster_identity id = machine(CLUSTER_GATEWAY, 2);

	begin_log();
	if (!gate_tls)
		must(cluster_tls_server(&id, CLUSTER_CLIENTS_JOINING, &gate_tls, &e));
	cluster_identity_fini(&id);
	if (!node_tls)
		node_tls = client_tls(CLUSTER_NODE, 7);
	if (!begin_server_with(NULL, gate_head, gate_tls))
		abort();
	make_gate();
	refuse_connects = 0;
	connects_due = 0;
	timer_init(&connect_timer, &loop, node_connects);
}

static void end_client(void)
{
	http_server_fini(&node_server);
	tunnel_client_free(client);
	client = NULL;
}

static void end_gate(void)
{
	if (client)
		end_client();
	timer_fini(&connect_timer);
	tunnels_free(gate);
	gate = NULL;
	end_server();
}

static struct tunnel_node *seven(void)
{
	return tunnels_find(gate, 7);
}

static int is_up(unsigned idle)
{
	return seven() && seven()->state == TUNNEL_UP && seven()->heartbeat_ms &&
	       seven()->idle == idle;
}

/* ---- one request over a taken connection ---- */

static struct upstream question;
static char answer[200], answer_why[100];
static int answer_over;

static const char *answer_head(struct upstream *u, const struct http_answer *a)
{
	(void)u;
	return a->status == 200 ? NULL : "not 200";
}

static void answer_body(struct upstream *u, const char *bytes, size_t n)
{
	(void)u;
	snprintf(answer + strlen(answer), sizeof(answer) - strlen(answer), "%.*s", (int)n, bytes);
}

static void answer_drain(struct upstream *u)
{
	(void)u;
}

static void answer_ended(struct upstream *u, const char *why)
{
	struct upstream_link spare = u->spare;

	answer_over = 1;
	snprintf(answer_why, sizeof(answer_why), "%s", why ? why : "");
	u->spare = upstream_link_plain(-1);
	upstream_close(u);
	tunnels_give(gate, 7, spare);
}

static void ask(struct upstream_link take_link, const char *path, uint32_t head_ms)
{
	static const struct upstream_events on = { answer_head, answer_body, answer_drain,
						   answer_ended };
	char *head = buf_text("GET %s HTTP/1.1\r\nHost: n\r\n\r\n", path);

	answer[0] = answer_over = 0;
	upstream_init(&question, &loop, take_link, head_ms, &on);
	upstream_ask(&question, &(struct upstream_question){ .head = head, .len = strlen(head) });
	upstream_body_end(&question);
	free(head);
}

static struct upstream_link asked_link;
static unsigned dones;

static void ask_done(struct tunnel_ask *a, const struct upstream_link *take_link)
{
	(void)a;
	dones++;
	asked_link = take_link ? *take_link : upstream_link_plain(-1);
}

/* ---- a node and a gateway over TLS ---- */

TEST(a_node_connects_and_keeps_idle_connections)
{
	begin_gate();
	make_client("0.3.0", node_tls);
	CHECK(UNTIL(is_up(TUNNEL_IDLE)));
	CHECK(UNTIL(greets == 1 && acks > 0));
	CHECK_INT(greeted_epoch, 1);
	CHECK_STR(seven()->name, "seven");
	CHECK_STR(seven()->version, "0.3.0");
	CHECK(seven()->figures.load == 250 && seven()->figures.memory_free == 400);
	CHECK(control_has_template(&seven()->figures, control_hash("python")));
	CHECK(UNTIL(seven()->heartbeats >= 2));
	/* Its lists were sent once and are still known. */
	CHECK(control_has_template(&seven()->figures, control_hash("python")));
	CHECK(tunnels_next(gate, NULL) == seven() && !tunnels_next(gate, seven()));
	CHECK_INT(tunnels_figures(gate).up, 1);
	CHECK_INT(tunnel_client_figures(client).connected, 1);
	CHECK_INT(tunnel_client_figures(client).links, TUNNEL_IDLE);
	end_gate();
}

TEST(a_request_uses_a_connection_and_gives_it_back)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link;

	begin_gate();
	make_client("0.4.0", node_tls);
	CHECK(UNTIL(is_up(TUNNEL_IDLE)));
	for (int i = 0; i < 20; i++) {
		CHECK_INT(tunnels_take(gate, 7, &a, &link), 1);
		CHECK_INT(seven()->busy, 1);
		ask(link, "/hello", 5000);
		CHECK(UNTIL(answer_over));
		CHECK_STR(answer_why, "");
		CHECK_STR(answer, "/hello");
		CHECK_INT(seven()->busy, 0);
	}
	CHECK_INT(heads, 20);
	/* A fifth one was opened while one was in use, and no more. */
	CHECK(seven()->idle <= TUNNEL_IDLE + 1);
	end_gate();
}

TEST(more_connections_come_when_all_are_in_use)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link[40];
	unsigned n = 0;

	begin_gate();
	make_client("0.3.0", node_tls);
	CHECK(UNTIL(is_up(TUNNEL_IDLE)));
	while (n < 40) {
		int rc = tunnels_take(gate, 7, &a, &link[n]);

		CHECK(rc >= 0);
		if (rc == 0) {
			dones = 0;
			CHECK(UNTIL(dones == 1));
			CHECK(asked_link.fd >= 0);
			link[n] = asked_link;
		}
		n++;
	}
	CHECK_INT(seven()->busy, 40);
	while (n > 0)
		tunnels_give(gate, 7, link[--n]);
	CHECK_INT(seven()->busy, 0);
	end_gate();
}

TEST(a_control_connection_that_was_closed_returns_and_requests_continue)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link;

	begin_gate();
	make_client("0.3.0", node_tls);
	CHECK(UNTIL(is_up(TUNNEL_IDLE)));
	CHECK_INT(tunnels_take(gate, 7, &a, &link), 1);
	tunnels_close_all(gate, "the lease of this gateway has lapsed");
	CHECK(seven()->state == TUNNEL_UNREACHABLE && downs == 1);
	CHECK_STR(down_why, "the lease of this gateway has lapsed");
	ask(link, "/after", 5000);
	CHECK(UNTIL(answer_over));
	CHECK_STR(answer, "/after");
	CHECK(UNTIL(ups == 2 && seven()->state == TUNNEL_UP));
	CHECK_INT(seven()->reconnects, 1);
	end_gate();
}

TEST(a_gateway_that_drains_serves_on_the_connections_it_has)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link;

	begin_gate();
	make_client("0.3.0", node_tls);
	CHECK(UNTIL(is_up(TUNNEL_IDLE)));
	refuse_connects = 1;
	tunnels_leave(gate);
	CHECK(downs == 1 && seven()->state == TUNNEL_UP);
	CHECK(UNTIL(tunnel_client_figures(client).connected == 0));
	for (int i = 0; i < 8; i++) {
		CHECK_INT(tunnels_take(gate, 7, &a, &link), 1);
		ask(link, "/last", 5000);
		CHECK(UNTIL(answer_over));
		CHECK_STR(answer, "/last");
	}
	end_gate();
}

TEST(idle_connections_of_a_node_that_stays_away_are_closed)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link;

	begin_gate();
	make_client("0.3.0", node_tls);
	CHECK(UNTIL(is_up(TUNNEL_IDLE)));
	refuse_connects = 1;
	tunnels_close_all(gate, "the machine is cut off");
	CHECK_INT(seven()->idle, TUNNEL_IDLE);
	gate->silence_ms = 300;
	CHECK(UNTIL(seven()->idle == 0));
	CHECK(loop_now_ms() - seven()->since_ms >= 300);
	CHECK_INT(tunnels_take(gate, 7, &a, &link), -1);
	CHECK_INT(a.refusal, TUNNEL_AWAY);
	end_gate();
}

TEST(callers_wait_while_a_node_restarts)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link;
	uint64_t begin;

	begin_gate();
	make_client("0.3.0", node_tls);
	CHECK(UNTIL(is_up(TUNNEL_IDLE)));
	end_client();
	CHECK(UNTIL(seven()->state == TUNNEL_UNREACHABLE && seven()->idle == 0));
	/* Longer than for a node whose machine or link has failed. */
	gate->wait_ms = gate->silence_ms = 1;
	begin = loop_now_ms();
	CHECK(UNTIL(loop_now_ms() > begin + 50));
	dones = 0;
	CHECK_INT(tunnels_take(gate, 7, &a, &link), 0);
	begin = loop_now_ms();
	CHECK(UNTIL(loop_now_ms() > begin + 50));
	CHECK_INT(dones, 0);
	gate->silence_ms = 10000;
	make_client("0.3.0", node_tls);
	CHECK(UNTIL(dones == 1));
	CHECK(asked_link.fd >= 0);
	ask(asked_link, "/again", 5000);
	CHECK(UNTIL(answer_over));
	CHECK_STR(answer, "/again");
	end_gate();
}

TEST(callers_wait_for_nodes_while_a_gateway_starts)
{
	static struct tunnel_ask many[TUNNEL_EXPECTED + 1];
	struct tunnel_ask a = { .done = ask_done }, absent = { .done = ask_done };
	struct upstream_link link;
	unsigned waiting = 0;

	begin_gate();
	gate->settled_ms = loop_now_ms() + PATIENCE_MS;
	gate->wait_ms = PATIENCE_MS;
	dones = 0;
	CHECK_INT(tunnels_take(gate, 7, &a, &link), 0);
	CHECK(!seven());
	CHECK_INT(tunnels_take(gate, 0, &absent, &link), -1);
	CHECK_INT(tunnels_take(gate, 32768, &absent, &link), -1);
	make_client("0.3.0", node_tls);
	CHECK(UNTIL(dones == 1));
	CHECK(asked_link.fd >= 0);
	ask(asked_link, "/first", 5000);
	CHECK(UNTIL(answer_over));
	CHECK_STR(answer, "/first");
	/* A node that never connects. */
	gate->wait_ms = 20;
	CHECK_INT(tunnels_take(gate, 8, &absent, &link), 0);
	CHECK(UNTIL(dones == 2));
	CHECK(absent.refusal == TUNNEL_UNKNOWN && asked_link.fd == -1);
	CHECK(UNTIL(gate->count == 1));
	/* Their number is limited. */
	gate->wait_ms = PATIENCE_MS;
	for (unsigned i = 0; i <= TUNNEL_EXPECTED; i++) {
		many[i].done = ask_done;
		waiting += tunnels_take(gate, 1000 + i, &many[i], &link) == 0;
	}
	CHECK_INT(waiting, TUNNEL_EXPECTED - 1);
	end_gate();
}

TEST(a_node_tries_again_until_the_gateway_answers)
{
	begin_gate();
	refuse_connects = 1;
	make_client("0.3.0", node_tls);
	CHECK(UNTIL(tunnel_client_figures(client).failures >= 2));
	CHECK(logged("connection refused"));
	refuse_connects = 0;
	CHECK(UNTIL(is_up(TUNNEL_IDLE)));
	end_gate();
}

TEST(a_stopped_node_closes_its_tunnel)
{
	begin_gate();
	make_client("0.3.0", node_tls);
	CHECK(UNTIL(is_up(TUNNEL_IDLE)));
	tunnel_client_stop(client);
	http_drain(&node_server);
	CHECK(UNTIL(seven()->state == TUNNEL_UNREACHABLE && seven()->idle == 0));
	CHECK(UNTIL(http_drained(&node_server)));
	end_gate();
}

TEST(another_version_is_refused_with_the_reason)
{
	begin_gate();
	make_client("0.5.0", node_tls);
	CHECK(UNTIL(logged("the gateway refuses the tunnel: version 0.5.0 does not work with "
			   "version 0.3.0")));
	CHECK(!seven() && tunnels_figures(gate).rejected > 0);
	end_gate();
}

TEST(the_certificate_decides_which_machine_may_connect)
{
	struct ssl_ctx_st *tls = client_tls(CLUSTER_GATEWAY, 7);

	/* A machine that is gateway and node. */
	begin_gate();
	make_client("0.3.0", tls);
	CHECK(UNTIL(is_up(TUNNEL_IDLE)));
	end_gate();
	tls_free(tls);
	tls = client_tls(CLUSTER_NODE, 66);
	begin_gate();
	make_client("0.3.0", tls);
	CHECK(UNTIL(logged("node 66 is not a member of the cluster")));
	end_gate();
	tls_free(tls);
	/* The hello says 7, the certificate 8. */
	tls = client_tls(CLUSTER_NODE, 8);
	begin_gate();
	make_client("0.3.0", tls);
	CHECK(UNTIL(logged("the hello has the number 7, the certificate 8")));
	CHECK(!seven() && tunnels_find(gate, 8)->state == TUNNEL_UNREACHABLE);
	end_gate();
	tls_free(tls);
}

TEST(a_request_connection_needs_a_control_connection)
{
	struct upstream_link link = { .fd = -1 };

	begin_gate();
	CHECK_INT(tunnels_connected(gate, 7, "", "test", 0, link, &e), -1);
	CHECK_STR(e.msg, "node 7 has no control connection to this gateway");
	end_gate();
}

/* ---- a node that sends what it should not ---- */

static int far = -1; /* the node's end */

static int add_plain(unsigned number, int control)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		abort();
	must(tunnels_connected(gate, number, "one", "test", control, upstream_link_plain(pair[0]),
			       &e));
	got_len = 0;
	got_end = 0;
	return pair[1];
}

static void begin_plain(void)
{
	begin_log();
	if (loop_init(&loop, &e) < 0)
		abort();
	make_gate();
	far = add_plain(7, 1);
}

static void end_plain(void)
{
	close(far);
	tunnels_free(gate);
	gate = NULL;
	loop_fini(&loop);
}

#define HELLO "{\"hello\":{\"number\":7,\"name\":\"bad\",\"version\":\"0.3.9\",\"epoch\":0}}\n"
#define BEAT(seq)                                                                                  \
	"{\"heartbeat\":{\"seq\":" seq ",\"load\":1,\"cpus\":4,\"memory_total\":1000,"             \
	"\"memory_free\":1,\"boxes\":2,\"boxes_most\":9,\"pool\":1,\"refusals\":0,"                \
	"\"draining\":false,\"arch\":\"x86_64\"}}\n"

TEST(an_invalid_message_closes_the_tunnel_and_nothing_else)
{
	static const struct {
		const char *sent, *why;
	} rows[] = {
		{ "GET / HTTP/1.1\r\n\r\n", "invalid JSON" },
		{ "\n", "invalid JSON" },
		{ "{}\n", "not an object with one field" },
		{ BEAT("1"), "the first message is not a hello" },
		{ "{\"hello\":{\"number\":8,\"name\":\"x\",\"version\":\"0.3.0\",\"epoch\":0}}\n",
		  "the hello has the number 8, the certificate 7" },
		{ "{\"hello\":{\"number\":7,\"name\":\"x\",\"version\":\"9.3.0\",\"epoch\":0}}\n",
		  "version 9.3.0 does not work" },
		{ HELLO HELLO, "a second hello" },
		{ HELLO "{\"heartbeat\":{\"seq\":1e30}}\n", "seq is not a whole number" },
		{ HELLO BEAT("-4"), "seq is -4" },
		{ HELLO BEAT("5") BEAT("5"), "heartbeat 5 came after heartbeat 5" },
		{ HELLO BEAT("5") BEAT("4"), "heartbeat 4 came after heartbeat 5" },
		{ HELLO "{\"ack\":{\"seq\":1}}\n", "'ack' is not a message of a node" },
		{ HELLO "{\"rows\":{\"last\":1,\"rows\":[{},{},{},{}]}}\n", "row of another node" },
		{ HELLO "{\"rows\":{\"last\":1,\"rows\":7}}\n", "rows is not a list" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int other;

		begin_plain();
		other = add_plain(9, 1);
		CHECK(say(other, "{\"hello\":{\"number\":9,\"name\":\"good\",\"version\":\"0.3.0\","
				 "\"epoch\":0}}\n"));
		CHECK(say(far, rows[i].sent));
		if (!UNTIL(ended(far) && logged(rows[i].why)))
			printf("# %s\n", rows[i].sent);
		CHECK(logged(rows[i].why) && logged("tunnel of a node closed"));
		CHECK(seven()->state == TUNNEL_UNREACHABLE);
		CHECK_INT(tunnels_figures(gate).closed_for_error, 1);
		CHECK(UNTIL(tunnels_find(gate, 9)->state == TUNNEL_UP));
		close(other);
		end_plain();
	}
}

TEST(a_line_without_end_closes_the_tunnel)
{
	static char much[CONTROL_LINE_NODE + 2];

	begin_plain();
	memset(much, 'x', sizeof(much));
	say_bytes(far, much, sizeof(much)); /* the end may be closed before the last byte is sent */
	CHECK(UNTIL(ended(far)));
	CHECK(logged("a line is longer than 65536 bytes"));
	end_plain();
}

TEST(half_a_message_is_no_message)
{
	begin_plain();
	CHECK(say(far, HELLO "{\"heartbeat\":{\"seq\":1"));
	CHECK(UNTIL(ups == 1));
	close(far);
	far = -1;
	CHECK(UNTIL(downs == 1));
	CHECK_STR(down_why, "the connection ended within a message");
	CHECK_INT(seven()->heartbeats, 0);
	end_plain();
}

TEST(rows_without_end_close_the_tunnel)
{
	begin_plain();
	CHECK(say(far, HELLO));
	CHECK(UNTIL(received(far, "{\"hello\":")));
	for (int i = 0; i < 50; i++)
		CHECK(say(far, "{\"rows\":{\"last\":7,\"rows\":[{}]}}\n"));
	CHECK(UNTIL(batches == 50 && received(far, "{\"rows_kept\":{\"last\":7}}")));
	/* These are not acknowledged. */
	for (int i = 0; i < 100000 && say(far, "{\"rows\":{\"last\":100,\"rows\":[{}]}}\n"); i++)
		;
	CHECK(UNTIL(ended(far)));
	CHECK(logged("more than 8 messages with rows before an answer"));
	CHECK_INT(batches, 50 + TUNNEL_ROWS_AHEAD);
	end_plain();
}

TEST(a_connection_without_hello_or_heartbeats_is_closed)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link;
	int idle;

	begin_plain();
	gate->silence_ms = 100;
	CHECK(UNTIL(ended(far)));
	CHECK(logged("no hello came"));
	end_plain();
	begin_plain();
	CHECK(say(far, HELLO BEAT("1")));
	CHECK(UNTIL(seven()->heartbeats == 1));
	idle = add_plain(7, 0);
	CHECK_INT(tunnels_take(gate, 7, &a, &link), 1);
	gate->wait_ms = PATIENCE_MS;
	dones = 0;
	CHECK_INT(tunnels_take(gate, 7, &a, &asked_link), 0);
	gate->silence_ms = 50;
	CHECK(UNTIL(dones == 1));
	CHECK(logged("no heartbeat came"));
	CHECK(a.refusal == TUNNEL_AWAY && a.since_unix_ms > 0);
	CHECK(strncmp(a.why, "node 7 (bad) has been unreachable for 0.", 40) == 0);
	/* From now on at once. */
	CHECK_INT(tunnels_take(gate, 7, &a, &link), -1);
	CHECK(a.refusal == TUNNEL_AWAY);
	upstream_link_close(&link);
	tunnels_give(gate, 7, link);
	close(idle);
	end_plain();
}

TEST(a_node_that_reads_nothing_is_closed)
{
	json_t *order = json_pack("{so}", "destroy", json_array());

	begin_plain();
	for (int i = 0; i < 2000; i++)
		json_array_append_new(json_object_get(order, "destroy"),
				      json_string("abcdefghijklmno"));
	CHECK(say(far, HELLO));
	CHECK(UNTIL(ups == 1));
	gate->silence_ms = 300;
	for (int i = 0; i < 100 && tunnels_order(gate, 7, order, &e) == 0; i++)
		;
	CHECK_INT(tunnels_order(gate, 7, order, &e), -1);
	/* It still sends heartbeats, which are not acknowledged: memory does not grow. */
	uint64_t end = loop_now_ms() + PATIENCE_MS;
	for (int i = 1; seven()->state == TUNNEL_UP && loop_now_ms() < end; i++) {
		char *beat = buf_text("{\"heartbeat\":{\"seq\":%d,\"load\":1,\"cpus\":4,"
				      "\"memory_total\":1000,\"memory_free\":1,\"boxes\":2,"
				      "\"boxes_most\":9,\"pool\":1,\"refusals\":0,"
				      "\"draining\":false,\"arch\":\"x86_64\"}}\n",
				      i);

		if (send(far, beat, strlen(beat), MSG_NOSIGNAL) < 0)
			turn();
		free(beat);
		turn();
	}
	CHECK(logged("the node has read nothing"));
	CHECK_INT(seven()->acknowledged, 0);
	json_decref(order);
	end_plain();
}

TEST(a_heartbeat_is_acknowledged_only_when_the_lease_permits)
{
	begin_plain();
	may_ack = 0;
	CHECK(say(far, HELLO BEAT("1")));
	CHECK(UNTIL(seven() && seven()->heartbeats == 1));
	may_ack = 1;
	CHECK(say(far, BEAT("2")));
	CHECK(UNTIL(received(far, "{\"ack\":{\"seq\":2}}\n")));
	CHECK(!received(far, "{\"ack\":{\"seq\":1}}"));
	CHECK_INT(seven()->acknowledged, 1);
	end_plain();
}

TEST(a_response_without_a_request_closes_the_connection)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link;
	int idle;

	begin_plain();
	CHECK(say(far, HELLO));
	CHECK(UNTIL(ups == 1));
	idle = add_plain(7, 0);
	CHECK_INT(seven()->idle, 1);
	CHECK(say(idle, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
	CHECK(UNTIL(seven()->idle == 0));
	CHECK(logged("it sent a response without a request"));
	close(idle);
	/* The bytes and the take at the same time. */
	idle = add_plain(7, 0);
	if (send(idle, "x", 1, 0) != 1)
		abort();
	dones = 0;
	CHECK_INT(tunnels_take(gate, 7, &a, &link), 0);
	CHECK_INT(seven()->idle, 0);
	tunnels_cancel(&a);
	CHECK_INT(seven()->waiting, 0);
	close(idle);
	end_plain();
}

TEST(two_responses_end_a_connection)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link;
	int idle;

	begin_plain();
	CHECK(say(far, HELLO));
	CHECK(UNTIL(ups == 1));
	idle = add_plain(7, 0);
	CHECK_INT(tunnels_take(gate, 7, &a, &link), 1);
	ask(link, "/x", 5000);
	CHECK(say(idle, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"
			"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb"));
	CHECK(UNTIL(answer_over));
	CHECK_STR(answer, "a");
	CHECK(seven()->idle == 0 && seven()->busy == 0);
	close(idle);
	end_plain();
}

TEST(no_response_ends_a_connection)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link;
	int idle;

	begin_plain();
	CHECK(say(far, HELLO));
	CHECK(UNTIL(ups == 1));
	idle = add_plain(7, 0);
	CHECK_INT(tunnels_take(gate, 7, &a, &link), 1);
	ask(link, "/x", 20);
	CHECK(UNTIL(answer_over));
	CHECK_STR(answer_why, "it did not answer in time");
	CHECK(seven()->idle == 0 && seven()->busy == 0);
	close(idle);
	end_plain();
}

TEST(callers_that_wait_have_a_limit)
{
	static struct tunnel_ask all[TUNNEL_WAITING + 1];
	struct upstream_link link;

	begin_plain();
	CHECK(say(far, HELLO));
	CHECK(UNTIL(ups == 1));
	gate->wait_ms = PATIENCE_MS;
	dones = 0;
	for (int i = 0; i < TUNNEL_WAITING; i++) {
		all[i].done = ask_done;
		CHECK_INT(tunnels_take(gate, 7, &all[i], &link), 0);
	}
	all[TUNNEL_WAITING].done = ask_done;
	CHECK_INT(tunnels_take(gate, 7, &all[TUNNEL_WAITING], &link), -1);
	CHECK(all[TUNNEL_WAITING].refusal == TUNNEL_BUSY);
	CHECK_STR(all[TUNNEL_WAITING].why,
		  "node 7 (bad) has no free connection: 0 are in use and 2048 requests wait");
	tunnels_cancel(&all[0]);
	tunnels_cancel(&all[0]);
	tunnels_cancel(&all[TUNNEL_WAITING - 1]);
	CHECK_INT(seven()->waiting, TUNNEL_WAITING - 2);
	/* A node that is removed refuses them. */
	tunnels_forget(gate, 7);
	CHECK_INT(dones, TUNNEL_WAITING - 2);
	CHECK(!seven());
	CHECK_INT(tunnels_take(gate, 7, &all[0], &link), -1);
	CHECK(all[0].refusal == TUNNEL_UNKNOWN);
	CHECK_STR(all[0].why, "node 7 is not connected to this gateway");
	CHECK(UNTIL(gate->count == 0));
	end_plain();
}

TEST(a_caller_waits_for_a_limited_time)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link;

	begin_plain();
	CHECK(say(far, HELLO));
	CHECK(UNTIL(ups == 1));
	gate->wait_ms = PATIENCE_MS;
	gate->wait_up_ms = 20;
	dones = 0;
	CHECK_INT(tunnels_take(gate, 7, &a, &link), 0);
	CHECK(UNTIL(dones == 1));
	CHECK(a.refusal == TUNNEL_BUSY && asked_link.fd == -1);
	end_plain();
}

TEST(a_caller_waits_longer_for_a_node_that_is_connected)
{
	struct tunnel_ask a = { .done = ask_done };
	struct upstream_link link;
	uint64_t begin;
	int idle;

	begin_plain();
	CHECK(say(far, HELLO));
	CHECK(UNTIL(ups == 1));
	gate->wait_ms = 1;
	dones = 0;
	CHECK_INT(tunnels_take(gate, 7, &a, &link), 0);
	begin = loop_now_ms();
	CHECK(UNTIL(loop_now_ms() > begin + 100));
	CHECK_INT(dones, 0);
	idle = add_plain(7, 0);
	CHECK(UNTIL(dones == 1));
	CHECK(asked_link.fd >= 0);
	upstream_link_close(&asked_link);
	close(idle);
	end_plain();
}

TEST(connections_of_a_node_have_a_limit)
{
	int pair[2];

	begin_plain();
	CHECK(say(far, HELLO));
	CHECK(UNTIL(ups == 1));
	((struct tunnel_peer *)seven())->node.busy = TUNNEL_LINKS;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	CHECK_INT(tunnels_connected(gate, 7, "", "test", 0, upstream_link_plain(pair[0]), &e), -1);
	CHECK_STR(e.msg, "node 7 has 4096 connections to this gateway, the maximum");
	close(pair[1]);
	end_plain();
}

TEST(a_second_control_connection_replaces_the_first)
{
	int second;

	begin_plain();
	CHECK(say(far, HELLO BEAT("9")));
	CHECK(UNTIL(seven()->heartbeats == 1));
	second = add_plain(7, 1);
	CHECK(ended(far) || UNTIL(ended(far)));
	CHECK(downs == 1 && logged("tunnel of a node replaced"));
	got_end = 0;
	CHECK(say(second, HELLO BEAT("1")));
	CHECK(UNTIL(seven()->state == TUNNEL_UP && seven()->heartbeats == 2));
	CHECK_INT(seven()->reconnects, 1);
	close(second);
	CHECK(UNTIL(seven()->state == TUNNEL_UNREACHABLE));
	end_plain();
}

TEST(a_copy_of_the_state_folder_of_a_connected_node_is_refused)
{
	int pair[2];

	begin_plain();
	CHECK(say(far, HELLO BEAT("9")));
	CHECK(UNTIL(seven()->heartbeats == 1));
	for (int control = 0; control < 2; control++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
			abort();
		CHECK_INT(tunnels_connected(gate, 7, "other", "elsewhere", control,
					    upstream_link_plain(pair[0]), &e),
			  -1);
		CHECK(strstr(e.msg, "another machine (test) is connected as node 7") != NULL);
		close(pair[1]);
	}
	CHECK(!ended(far) && seven()->state == TUNNEL_UP);
	/* It serves when the other one is gone, and may have been this one before a reboot. */
	close(far);
	CHECK(UNTIL(seven()->state == TUNNEL_UNREACHABLE));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		abort();
	far = pair[1];
	must(tunnels_connected(gate, 7, "other", "elsewhere", 1, upstream_link_plain(pair[0]), &e));
	CHECK(say(far, HELLO));
	CHECK(UNTIL(seven()->state == TUNNEL_UP));
	end_plain();
}

TEST(nodes_are_listed_by_number)
{
	static const unsigned numbers[] = { 300, 5, 32767, 1, 42 };
	int fds[5];
	unsigned n = 0, last = 0;

	begin_plain();
	for (int i = 0; i < 5; i++)
		fds[i] = add_plain(numbers[i], 1);
	for (struct tunnel_node *x = tunnels_next(gate, NULL); x; x = tunnels_next(gate, x)) {
		CHECK(x->number > last);
		last = x->number;
		n++;
	}
	CHECK_INT(n, 6);
	CHECK(tunnels_find(gate, 42)->number == 42 && !tunnels_find(gate, 41));
	for (int i = 0; i < 5; i++)
		close(fds[i]);
	end_plain();
}
