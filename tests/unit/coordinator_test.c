/* coordinator_test.c - engines that do not answer, or answer with something else: the result is unknown, and nothing
 * blocks. What drivers do with an engine that works is in tests/system/coordinator_contract.c. */
#include "coordinator/coordinator.h"
#include "coordinator/etcd.h"
#include "coordinator/postgres.h"
#include "loop/loop.h"
#include "tap.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop loop;
static int came;
static struct err last;

static void coordinator_came(void *user, const struct coordinator_answer *a, const struct err *e)
{
	(void)user;
	came++;
	last = e ? *e : (struct err){ 0 };
	if (!e && !a)
		abort();
	loop_stop(&loop);
}

/* ---- an engine that sends this text on each connection; NULL: nothing ---- */

static struct fake {
	struct watch watch;
	const char *text;
	int port, conns[64];
	unsigned n;
} fake;

static void fake_ready(struct watch *w, unsigned what)
{
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC);

	(void)what;
	if (fd < 0)
		return;
	if (fake.text) {
		(void)!send(fd, fake.text, strlen(fake.text), MSG_NOSIGNAL);
		shutdown(fd, SHUT_WR);
	}
	if (fake.n < 64)
		fake.conns[fake.n++] = fd;
	else
		close(fd);
}

static void fake_start(const char *text)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct err e;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (loop_init(&loop, &e) < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(fd, 16) < 0)
		abort();
	getsockname(fd, (struct sockaddr *)&at, &size);
	fake = (struct fake){ .text = text, .port = ntohs(at.sin_port) };
	watch_init(&fake.watch, &loop, fd, fake_ready);
	watch_want(&fake.watch, LOOP_READ);
}

static void fake_end(void)
{
	int fd = fake.watch.fd;

	watch_stop(&fake.watch);
	close(fd);
	for (unsigned i = 0; i < fake.n; i++)
		close(fake.conns[i]);
	loop_fini(&loop);
}

/* One request that writes and one that reads first; both end, with this kind. */
static int ask_both(struct coordinator *c)
{
	struct coordinator_request renew = { .op = COORDINATOR_RENEW, .gateway = 1 };
	struct coordinator_request find = { .op = COORDINATOR_FIND_NAME,
					    .key = { "t", 'n', "name", "" } };
	int kinds;

	came = 0;
	coordinator_ask(c, &renew, coordinator_came, NULL);
	if (came)
		return -1;
	while (came < 1)
		loop_run(&loop);
	kinds = last.kind == ERR_SYS;
	coordinator_ask(c, &find, coordinator_came, NULL);
	while (came < 2)
		loop_run(&loop);
	printf("# %s\n", last.msg);
	return kinds && last.kind == ERR_SYS;
}

static int etcd_yields_unknown(const char *text)
{
	char address[64];
	struct etcd_conf conf = { .addresses = address, .answer_ms = 60, .read_ms = 20 };
	struct coordinator *c;
	struct err e;
	int unknown;

	fake_start(text);
	snprintf(address, sizeof(address), "http://127.0.0.1:%d", fake.port);
	if (coordinator_etcd_new(&c, &loop, &conf, &e) < 0) {
		printf("# %s\n", e.msg);
		return -1;
	}
	unknown = ask_both(c);
	coordinator_free(c);
	fake_end();
	return unknown;
}

static int postgres_yields_unknown(const char *text)
{
	char database[100];
	struct postgres_conf conf = { .database = database, .answer_ms = 60 };
	struct coordinator *c;
	struct postgres *db;
	struct err e;
	int unknown;

	fake_start(text);
	snprintf(database, sizeof(database), "host=127.0.0.1 port=%d user=atoll dbname=x",
		 fake.port);
	if (postgres_new(&db, &loop, &conf, &e) < 0 ||
	    coordinator_postgres_new(&c, &loop, db, &e) < 0) {
		printf("# %s\n", e.msg);
		return -1;
	}
	unknown = ask_both(c);
	coordinator_free(c);
	postgres_free(db);
	fake_end();
	return unknown;
}

TEST(an_etcd_that_does_not_answer_is_unknown)
{
	CHECK_INT(etcd_yields_unknown(NULL), 1);
}

/* With this body and status 200. */
static int etcd_body_yields_unknown(const char *body)
{
	char text[400];

	snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
		 strlen(body), body);
	return etcd_yields_unknown(text);
}

TEST(an_etcd_that_answers_something_else_is_unknown)
{
	static const char *const bodies[] = {
		"hello",
		"{}",
		"[]",
		"{\"error\":\"etcdserver: request timed out\",\"code\":14}",
		/* done, but without the results */
		"{\"header\":{\"revision\":\"7\"},\"succeeded\":true}",
		"{\"header\":{},\"succeeded\":true,\"responses\":[{\"response_put\":{}},{}]}",
		"{\"header\":{},\"succeeded\":true,\"responses\":7}",
	};

	for (unsigned i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		CHECK_INT(etcd_body_yields_unknown(bodies[i]), 1);
	CHECK_INT(etcd_yields_unknown("HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n"), 1);
	CHECK_INT(
		etcd_yields_unknown("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"header\":{"),
		1);
	CHECK_INT(etcd_yields_unknown("not HTTP\n"), 1);
}

TEST(a_database_that_does_not_answer_is_unknown)
{
	CHECK_INT(postgres_yields_unknown(NULL), 1);
}

TEST(a_database_that_answers_something_else_is_unknown)
{
	CHECK_INT(postgres_yields_unknown("HTTP/1.1 200 OK\r\n\r\n"), 1);
	CHECK_INT(postgres_yields_unknown("R"), 1);
}

TEST(addresses_of_etcd_are_checked)
{
	static const char *const bad[] = { "", " , ", "10.0.0.1:2379", "ftp://x", "http://a,b" };
	struct coordinator *c;
	struct err e;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct etcd_conf conf = { .addresses = bad[i] };

		CHECK_INT(loop_init(&loop, &e), 0);
		CHECK_INT(coordinator_etcd_new(&c, &loop, &conf, &e), -1);
		CHECK_INT(e.kind, ERR_INVALID);
		loop_fini(&loop);
	}
}

TEST(operations_have_names)
{
	for (int i = 0; i < COORDINATOR_OPS; i++)
		CHECK_INT(coordinator_op_of(coordinator_op_name((enum coordinator_op)i)), i);
	CHECK_INT(coordinator_op_of("drop_all"), -1);
}
