/* link_test.c - a server that answers requests on connections which its owner has established, and
 * a relay to it: both ends of a tunnel, in one thread. */
#include "http/relay.h"
#include "http_rig.h"
#include "tls_rig.h"

static struct upstream_link idle; /* fd -1: the link is in use */
static struct http_link served;
static char states[64]; /* of the link: b, i, c */
static char peer_facts[64];
static unsigned relays_failed;
static struct http_req *half; /* its reply is not complete */
static int near = -1;
static char large[1 << 20]; /* a reply in pieces of more than a TLS record */

static void link_changed(struct http_link *l, enum http_link_state now)
{
	size_t n = strlen(states);

	(void)l;
	if (n + 1 < sizeof(states))
		states[n] = "bic"[now];
}

/* ---- the node's side ---- */

static void node_body(struct http_req *r, const char *bytes, size_t n)
{
	if (http_write(r, bytes, n))
		http_pause(r);
}

static void node_end(struct http_req *r)
{
	ends++;
	http_end(r);
}

static void node_raw_end(struct http_req *r)
{
	ends++;
	http_write(r, "goodbye", 7); /* after the end of the other direction */
	http_end(r);
}

static void node_drain(struct http_req *r)
{
	http_resume(r);
}

static void node_head(struct http_req *r)
{
	const char *secret = http_header(r, "atoll-identity");

	snprintf(peer_facts, sizeof(peer_facts), "%d%d%d %s", r->trusted_peer, r->unix_peer,
		 http_secure(r), secret ? secret : "-");
	r->on_body = node_body;
	r->on_body_end = node_end;
	r->on_drain = node_drain;
	if (r->tunnel || r->upgrade) {
		r->on_body_end = strcmp(r->path, "/quiet") == 0 ? node_end : node_raw_end;
		http_set(r, "Upgrade", r->tunnel ? "tcp" : "websocket");
		http_switch(r);
	} else if (strcmp(r->path, "/large") == 0) {
		http_stream(r, 200, NULL, sizeof(large));
		for (size_t at = 0; at < sizeof(large); at += sizeof(large) / 16)
			http_write(r, large + at, sizeof(large) / 16);
		http_end(r);
	} else if (strcmp(r->path, "/cut") == 0) {
		http_stream(r, 200, NULL, 99);
		http_write(r, "half", 4);
		half = r;
	} else {
		http_want_body(r, HTTP_BODY_STREAM, 0);
		http_stream(r, 200, NULL, UINT64_MAX);
	}
}

/* ---- the gateway's side ---- */

static void relay_spare(void *user, struct upstream_link take_link)
{
	(void)user;
	idle = take_link;
}

static void relay_failed(void *user, const char *why)
{
	relays_failed++;
	http_reply(user, 502, "text/plain", why, strlen(why));
}

static void relay_switched(void *user)
{
	((struct http_req *)user)->on_eof = NULL;
}

static void gate_body(struct http_req *r, const char *bytes, size_t n)
{
	relay_body(r->user, bytes, n);
}

static void gate_end(struct http_req *r)
{
	relay_body_end(r->user);
}

static void gate_drain(struct http_req *r)
{
	relay_drain(r->user);
}

static void gate_over(struct http_req *r)
{
	relay_free(r->user);
	overs++;
}

static void on_head(struct http_req *r)
{
	const struct relay_rules rules = { .failed = relay_failed,
					   .spare = relay_spare,
					   .switched = relay_switched,
					   .extra = "Atoll-Identity: me\r\n",
					   .passes_tcp = 1,
					   .user = r,
					   .head_ms = 60000 };
	struct upstream_link l = idle;

	heads++;
	if (r->trusted_peer) {
		node_head(r);
		return;
	}
	idle = upstream_link_plain(-1);
	r->on_body = gate_body;
	r->on_body_end = gate_end;
	r->on_drain = gate_drain;
	r->on_eof = http_abort;
	r->on_over = gate_over;
	http_want_body(r, HTTP_BODY_STREAM, 0);
	r->user = relay_new(r, &loop, l, &rules);
}

/* ---- both ---- */

static void begin(int version, const struct http_limits *limits)
{
	struct upstream_link node;

	memset(states, 0, sizeof(states));
	relays_failed = 0;
	peer_facts[0] = 0;
	served = (struct http_link){ .changed = link_changed };
	begin_server(limits, on_head);
	rig_link(version, 1, &idle, &node); /* the gateway accepted it */
	http_serve_link(&server, &served, node.fd, node.tls, NULL, 0);
	near = dial();
}

static void finish(void)
{
	close(near);
	upstream_link_close(&idle);
	end_server();
}

static const int versions[] = { 0, TLS1_3_VERSION, TLS1_2_VERSION };
#define EACH_VERSION                                                                               \
	for (const int *v = versions; v < versions + sizeof(versions) / sizeof(versions[0]);       \
	     finish(), v++)

TEST(one_link_serves_many_requests)
{
	EACH_VERSION
	{
		begin(*v, NULL);
		for (unsigned i = 1; i <= 3; i++) {
			got_len = 0;
			say(near, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
			CHECK(UNTIL(received(near, "5\r\nhello\r\n0\r\n\r\n")));
			CHECK(UNTIL(overs == i && idle.fd >= 0));
		}
		CHECK_STR(peer_facts, "100 me");
		CHECK(UNTIL(strcmp(states, "bibibi") == 0));
		CHECK_INT(relays_failed, 0);
		upstream_link_close(&idle);
		CHECK(UNTIL(strcmp(states, "bibibic") == 0));
		CHECK(!served.conn);
	}
}

TEST(a_large_body_passes_both_ways)
{
	enum { N = 2 << 20 };
	static char sent[N];
	char size[128];
	const char *from;

	for (size_t i = 0; i < N; i++)
		sent[i] = (char)('a' + (i * 2654435761u >> 13) % 26);
	EACH_VERSION
	{
		begin(*v, NULL);
		snprintf(size, sizeof(size),
			 "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", N);
		say(near, size);
		CHECK(say_bytes(near, sent, N));
		CHECK(UNTIL((take(near),
			     got_len > 7 && memcmp(got + got_len - 7, "\r\n0\r\n\r\n", 7) == 0)));
		/* without the sizes of chunks */
		from = strstr(got, "\r\n\r\n") + 2;
		for (size_t at = 0; at < N;) {
			size_t n = strtoul(from + 2, (char **)&from, 16);

			CHECK(n > 0 && n <= N - at && memcmp(from + 2, sent + at, n) == 0);
			from += 2 + n;
			at += n;
		}
		CHECK_INT(relays_failed, 0);
	}
}

TEST(a_reply_in_large_pieces_arrives_unchanged)
{
	const char *body;

	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (char)('a' + (i * 2654435761u >> 13) % 26);
	EACH_VERSION
	{
		begin(*v, NULL);
		say(near, "GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
		CHECK(UNTIL((take(near), got_len > sizeof(large))));
		CHECK(UNTIL(
			(take(near), (body = strstr(got, "\r\n\r\n")) &&
					     got_len == (size_t)(body + 4 - got) + sizeof(large))));
		CHECK(memcmp(body + 4, large, sizeof(large)) == 0);
	}
}

#define UPGRADE                                                                                    \
	"GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"             \
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define QUIET "GET /quiet HTTP/1.1\r\nHost: h\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\n"
#define TCP "GET /tcp HTTP/1.1\r\nHost: h\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\n"

TEST(an_upgraded_connection_passes_bytes_and_the_end_of_one_direction)
{
	static const char *const requests[] = { UPGRADE, TCP };

	for (unsigned i = 0; i < 2; i++)
		EACH_VERSION
		{
			begin(*v, NULL);
			say(near, requests[i]);
			CHECK(UNTIL(received(near, "101 ")));
			CHECK(received(near, i ? "Upgrade: tcp\r\n" : "Upgrade: websocket\r\n"));
			say(near, "ping");
			CHECK(UNTIL(received(near, "\r\n\r\nping")));
			shutdown(near, SHUT_WR);
			CHECK(UNTIL(ended(near)));
			CHECK_INT(got_end, 1);
			CHECK(received(near, "\r\n\r\npinggoodbye"));
			CHECK(UNTIL(strcmp(states, "bc") == 0));
			CHECK_INT(idle.fd, -1);
		}
}

TEST(a_client_that_leaves_an_upgraded_connection_ends_the_link)
{
	EACH_VERSION
	{
		begin(*v, NULL);
		say(near, TCP);
		CHECK(UNTIL(received(near, "101 ")));
		setsockopt(near, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
			   sizeof(struct linger));
		close(near);
		near = -1;
		CHECK(UNTIL(strcmp(states, "bc") == 0));
	}
}

TEST(an_answer_that_the_node_cuts_is_cut_for_the_client)
{
	EACH_VERSION
	{
		begin(*v, NULL);
		say(near, "GET /cut HTTP/1.1\r\nHost: h\r\n\r\n");
		CHECK(UNTIL(received(near, "half")));
		http_abort(half);
		CHECK(UNTIL(ended(near)));
		CHECK(!received(near, "0\r\n\r\n"));
		CHECK_INT(idle.fd, -1);
		CHECK(UNTIL(strcmp(states, "bc") == 0));
	}
}

TEST(a_link_may_be_idle_for_long_and_counts_for_no_limit)
{
	const struct http_limits limits = {
		.idle_ms = 60, .head_ms = 60, .connections = 1, .per_address = 1
	};

	EACH_VERSION
	{
		begin(*v, &limits);
		/* the client's connection is accepted, and the sweep closes it */
		CHECK(UNTIL(ended(near)));
		CHECK_INT(server.open, 1);
		CHECK_STR(states, "");
		close(near);
		near = dial();
		say(near, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
		CHECK(UNTIL(received(near, "5\r\nhello\r\n0\r\n\r\n")));
		CHECK(UNTIL(ended(near))); /* idle for too long; the link was idle as long */
		CHECK_STR(states, "bi");
		CHECK(idle.fd >= 0 && upstream_link_is_silent(&idle));
	}
}

TEST(draining_closes_idle_links_and_finishes_busy_ones)
{
	EACH_VERSION
	{
		begin(*v, NULL);
		close(near);
		near = -1;
		http_drain(&server);
		CHECK(UNTIL(http_drained(&server)));
		CHECK_STR(states, "c");
		CHECK(!upstream_link_is_silent(&idle));
		finish();

		begin(*v, NULL);
		say(near, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe");
		CHECK(UNTIL(strcmp(states, "b") == 0));
		http_drain(&server);
		say(near, "llo");
		CHECK(UNTIL(received(near, "\r\n0\r\n\r\n")));
		close(near);
		near = -1;
		CHECK(UNTIL(idle.fd < 0 || !upstream_link_is_silent(&idle)));
		upstream_link_close(&idle); /* the head of the reply did not announce the end yet */
		CHECK(UNTIL(http_drained(&server)));
		CHECK_STR(states, "bc");
	}
}

TEST(a_link_can_be_cut_by_its_owner)
{
	EACH_VERSION
	{
		begin(*v, NULL);
		http_link_cut(&served);
		CHECK(UNTIL(strcmp(states, "c") == 0));
		http_link_cut(&served); /* allowed */
		CHECK(!upstream_link_is_silent(&idle));
	}
}

/* 1: an epoll descriptor of this process has it, also if it was closed here. */
static int is_watched(int fd)
{
	char path[64], line[128], entry[32];
	int found = 0;

	snprintf(entry, sizeof(entry), "tfd: %8d ", fd);
	for (int i = 0; i < 256; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", i);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			found |= strncmp(line, entry, strlen(entry)) == 0;
		if (f)
			fclose(f);
	}
	return found;
}

/* The process that has opened the tunnel may close its copy later. */
TEST(a_closed_link_does_not_wake_the_loop_if_its_descriptor_has_a_copy)
{
	EACH_VERSION
	{
		struct http_link second = { .changed = link_changed };
		struct upstream_link gate, node;
		size_t n;
		int copy;

		begin(*v, NULL);
		rig_link(*v, 1, &gate, &node);
		copy = dup(node.fd);
		http_serve_link(&server, &second, node.fd, node.tls, NULL, 0);
		CHECK_INT(upstream_link_write(
				  &gate, &(struct iovec){ (void *)QUIET, strlen(QUIET) }, 1, &n),
			  LINK_OK);
		CHECK(UNTIL(strcmp(states, "b") == 0));
		CHECK(is_watched(node.fd));
		CHECK_INT(upstream_link_shut(&gate), LINK_OK);
		CHECK(UNTIL(strcmp(states, "bc") == 0));
		CHECK(!is_watched(node.fd));
		close(copy);
		upstream_link_close(&gate);
	}
}

/* The first request may arrive together with the end of what came before it. */
TEST(bytes_that_were_read_before_are_served)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

	EACH_VERSION
	{
		struct http_link second = { .changed = link_changed };
		struct upstream_link gate, node;
		char first[8];
		size_t n;

		begin(*v, NULL);
		rig_link(*v, 1, &gate, &node);
		upstream_link_init(&node);
		CHECK_INT(upstream_link_write(&gate, &(struct iovec){ (void *)text, strlen(text) },
					      1, &n),
			  LINK_OK);
		n = 0;
		CHECK(UNTIL(n > 0 || (upstream_link_read(&node, first, sizeof(first), &n), n > 0)));
		http_serve_link(&server, &second, node.fd, node.tls, first, n);
		CHECK(UNTIL(strcmp(states, "bi") == 0));
		CHECK_STR(peer_facts, *v ? "101 -" : "100 -");
		upstream_link_close(&gate);
		CHECK(UNTIL(strcmp(states, "bic") == 0));
	}
}
