/* budget_test.c - work of a client that has used more than its part of the loop's time runs
 * after that of others. The test checks the order of events, which does not depend on the speed
 * of the machine. */
#include "base/clock.h"
#include "client/frame_conn.h"
#include "http_rig.h"
#include "wire/sock.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

enum { MANY = 12 };

static struct loop_budget greedy, modest;
static char order[64]; /* 'g' and 'm' in the order in which the clients were served */

static void served(char who)
{
	size_t n = strlen(order);

	if (n < sizeof(order) - 1) {
		order[n] = who;
		order[n + 1] = 0;
	}
}

static void exceed(struct loop_budget *b)
{
	*b = (struct loop_budget){ .used_ns = UINT64_C(3600000000000), .at_ns = now_ns() };
}

static int begin_budgets(void)
{
	memset(order, 0, sizeof(order));
	greedy = modest = (struct loop_budget){ 0 };
	return 1;
}

/* ---- the loop ---- */

struct ready { /* a descriptor that can be read */
	struct watch watch;
	int fds[2];
};
static struct ready second; /* of the modest client, during the first greedy work */

static int ready_init(struct ready *x, struct loop_budget *b);

static void take_turn(struct watch *w, unsigned what)
{
	uint64_t end = now_ns() + LOOP_SLICE_NS;

	(void)what;
	served(w->budget == &greedy ? 'g' : 'm');
	if (w->budget == &greedy && !strcmp(order, "mg"))
		CHECK(ready_init(&second, &modest));
	while (w->budget == &greedy && now_ns() < end)
		;
	watch_want(w, 0);
}

static int ready_init(struct ready *x, struct loop_budget *b)
{
	if (pipe2(x->fds, O_CLOEXEC) < 0 || write(x->fds[1], "x", 1) != 1)
		return 0;
	watch_init(&x->watch, &loop, x->fds[0], take_turn);
	x->watch.budget = b;
	watch_want(&x->watch, LOOP_READ);
	return 1;
}

static void ready_fini(struct ready *x)
{
	watch_stop(&x->watch);
	close(x->fds[0]);
	close(x->fds[1]);
}

TEST(descriptors_of_an_exceeded_budget_are_served_after_others)
{
	struct ready all[5];

	CHECK(begin_budgets() && loop_init(&loop, &oops) == 0);
	exceed(&greedy);
	for (unsigned i = 0; i < 5; i++)
		CHECK(ready_init(&all[i], i < 4 ? &greedy : &modest));
	CHECK(UNTIL(strlen(order) == 6));
	CHECK_STR(order, "mgmggg");
	for (unsigned i = 0; i < 5; i++)
		ready_fini(&all[i]);
	ready_fini(&second);
	loop_fini(&loop);
}

TEST(a_budget_is_exceeded_by_work_and_recovers_with_time)
{
	struct loop_budget b = { 0 };

	CHECK(begin_budgets() && loop_init(&loop, &oops) == 0);
	CHECK(!loop_budget_exceeded(&loop, &b) && !loop_budget_exceeded(&loop, NULL));
	loop_work_begin(&loop, NULL);
	loop_work_charge(&loop, &b);
	loop.began_ns -= 2 * LOOP_BURST_NS; /* as if it had needed that long */
	loop_work_end(&loop);
	CHECK(loop_budget_exceeded(&loop, &b));
	b.at_ns -= UINT64_C(16) * LOOP_BURST_NS;
	CHECK(!loop_budget_exceeded(&loop, &b));
	loop_fini(&loop);
}

static void take_frame(struct frame_conn *p, const struct frame *f, size_t len, int *fd)
{
	uint64_t end = now_ns() + LOOP_SLICE_NS;

	(void)p, (void)f, (void)len, (void)fd;
	served('g');
	while (now_ns() < end)
		;
}

TEST(frames_that_take_long_are_read_one_at_a_time)
{
	struct frame f = sock_head(WIRE_FORGET, 1);
	struct frame_conn p;
	struct ready other;
	int fds[2];

	CHECK(begin_budgets() && loop_init(&loop, &oops) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK(send(fds[1], &f, sizeof(f), 0) == sizeof(f));
	frame_conn_init(&p, &loop, fds[0]);
	p.on_frame = take_frame;
	CHECK(ready_init(&other, &modest));
	CHECK(UNTIL(strlen(order) == 5));
	CHECK(strchr(order, 'm') && strchr(order, 'm') <= order + 1);
	frame_conn_fini(&p);
	ready_fini(&other);
	close(fds[1]);
	loop_fini(&loop);
}

/* ---- the server ---- */

static void reply_greedy(struct http_req *r)
{
	uint64_t end = now_ns() + LOOP_SLICE_NS;

	served('g');
	while (now_ns() < end)
		;
	http_reply(r, 200, "text/plain", "greedy\n", 7);
}

static unsigned heads_then; /* when the modest client was served */

static void reply_modest(struct http_req *r)
{
	served('m');
	heads_then = heads;
	http_reply(r, 200, "text/plain", "modest\n", 7);
}

static void over(struct http_req *r)
{
	(void)r;
	overs++;
}

/* The path names the owner of the request, as a key does. */
static void on_head(struct http_req *r)
{
	int is_greedy = strcmp(r->path, "/greedy") == 0;

	heads++;
	r->on_over = over;
	http_charge(r, is_greedy ? &greedy : &modest, is_greedy ? reply_greedy : reply_modest);
}

static int ask(int fd, const char *path)
{
	char text[100];
	int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);

	return send(fd, text, (size_t)n, MSG_NOSIGNAL) == n;
}

/* How many of the others were served before the modest client. */
static size_t before_modest(void)
{
	const char *m = strchr(order, 'm');

	return m ? (size_t)(m - order) : sizeof(order);
}

TEST(requests_on_new_connections_of_an_exceeded_budget_wait_for_others)
{
	int fds[MANY + 1];

	CHECK(begin_budgets() && begin_server(NULL, on_head));
	exceed(&greedy);
	for (unsigned i = 0; i <= MANY; i++) {
		fds[i] = dial();
		CHECK(fds[i] >= 0 && ask(fds[i], i < MANY ? "/greedy" : "/modest"));
	}
	CHECK(UNTIL(overs == MANY + 1));
	CHECK_INT(before_modest(), 0);
	for (unsigned i = 0; i <= MANY; i++)
		close(fds[i]);
	end_server();
}

TEST(kept_connections_of_an_exceeded_budget_are_read_after_others)
{
	int fds[MANY + 1];

	CHECK(begin_budgets() && begin_server(NULL, on_head));
	exceed(&greedy);
	for (unsigned i = 0; i <= MANY; i++) {
		fds[i] = dial();
		CHECK(fds[i] >= 0 && ask(fds[i], i < MANY ? "/greedy" : "/modest"));
	}
	CHECK(UNTIL(overs == MANY + 1));
	exceed(&greedy);
	memset(order, 0, sizeof(order));
	for (unsigned i = 0; i <= MANY; i++)
		CHECK(ask(fds[i], i < MANY ? "/greedy" : "/modest"));
	heads = 0;
	CHECK(UNTIL(overs == 2 * (MANY + 1)));
	CHECK_INT(before_modest(), 0);
	CHECK_INT(heads_then, 1); /* the others were not even read */
	for (unsigned i = 0; i <= MANY; i++)
		close(fds[i]);
	end_server();
}

TEST(many_requests_on_one_connection_do_not_hold_up_others)
{
	int pipelined, other;

	CHECK(begin_budgets() && begin_server(NULL, on_head));
	pipelined = dial();
	other = dial();
	for (unsigned i = 0; i < MANY; i++)
		CHECK(ask(pipelined, "/greedy"));
	CHECK(ask(other, "/modest"));
	CHECK(UNTIL(overs == MANY + 1));
	CHECK(before_modest() <= 2); /* each takes a slice */
	close(pipelined);
	close(other);
	end_server();
}

TEST(a_waiting_request_is_dropped_when_its_client_disconnects)
{
	int fd;

	CHECK(begin_budgets() && begin_server(NULL, on_head));
	fd = dial();
	exceed(&greedy);
	CHECK(ask(fd, "/greedy"));
	UNTIL(heads == 1);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
		   sizeof(struct linger));
	close(fd); /* a reset */
	CHECK(UNTIL(overs == 1 && server.open == 0));
	end_server();
}

/* ---- the server over TLS ---- */

/* A context with a new key and certificate. */
static SSL_CTX *tls_context(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();

	if (!ctx || !key || !cert || !X509_set_version(cert, X509_VERSION_3) ||
	    !X509_gmtime_adj(X509_getm_notBefore(cert), -60) ||
	    !X509_gmtime_adj(X509_getm_notAfter(cert), 3600) || !X509_set_pubkey(cert, key) ||
	    !X509_sign(cert, key, EVP_sha256()) || SSL_CTX_use_certificate(ctx, cert) != 1 ||
	    SSL_CTX_use_PrivateKey(ctx, key) != 1)
		abort();
	EVP_PKEY_free(key);
	X509_free(cert);
	return ctx;
}

struct tls_client {
	SSL *ssl;
	const char *request;
	unsigned to_send, answers;
};

static int tls_dial(struct tls_client *c, SSL_CTX *ctx, const char *request, unsigned times)
{
	int fd = dial();

	*c = (struct tls_client){ SSL_new(ctx), request, times, 0 };
	if (fd < 0 || !c->ssl || SSL_set_fd(c->ssl, fd) != 1)
		return 0;
	SSL_set_connect_state(c->ssl);
	return UNTIL(SSL_do_handshake(c->ssl) == 1);
}

/* Sends as much as possible and counts the answers that have arrived. */
static void tls_step(struct tls_client *c)
{
	char in[4096];
	int n;

	while (c->to_send > 0 && SSL_write(c->ssl, c->request, (int)strlen(c->request)) > 0)
		c->to_send--;
	while ((n = SSL_read(c->ssl, in, sizeof(in))) > 0)
		for (int i = 0; i < n; i++)
			c->answers += in[i] == '\n' && i > 0 && in[i - 1] != '\r';
}

static void tls_close(struct tls_client *c)
{
	close(SSL_get_fd(c->ssl));
	SSL_free(c->ssl);
}

TEST(a_flood_of_requests_over_tls_is_answered_whole_and_delays_no_other_client)
{
	enum { EACH = 60 };
	SSL_CTX *server_ctx = tls_context(), *client_ctx = SSL_CTX_new(TLS_client_method());
	struct tls_client all[MANY], other;
	unsigned answers = 0, heads_before;
	uint64_t end;

	CHECK(begin_budgets() && begin_server_with(NULL, on_head, server_ctx));
	for (unsigned i = 0; i < MANY; i++)
		CHECK(tls_dial(&all[i], client_ctx, "GET /greedy HTTP/1.1\r\nHost: x\r\n\r\n",
			       EACH));
	CHECK(tls_dial(&other, client_ctx, "GET /modest HTTP/1.1\r\nHost: x\r\n\r\n", 1));
	for (unsigned i = 0; i < MANY; i++)
		tls_step(&all[i]);
	CHECK(UNTIL(heads >= 2 * MANY)); /* the flood is in progress and its budget exceeded */
	CHECK(loop_budget_exceeded(&loop, &greedy));
	heads_before = heads;
	tls_step(&other);
	end = loop_now_ms() + PATIENCE_MS;
	while (answers < MANY * EACH && loop_now_ms() < end) {
		turn();
		tls_step(&other);
		answers = 0;
		for (unsigned i = 0; i < MANY; i++) {
			tls_step(&all[i]);
			answers += all[i].answers;
		}
	}
	CHECK_INT(answers, MANY * EACH);
	CHECK_INT(other.answers, 1);
	CHECK(heads_then - heads_before <=
	      4); /* its own time, and that of the bytes already read */
	for (unsigned i = 0; i < MANY; i++)
		tls_close(&all[i]);
	tls_close(&other);
	end_server();
	SSL_CTX_free(server_ctx);
	SSL_CTX_free(client_ctx);
}
