/* intercept_test.c - egress opens TLS to the hosts of a placeholder: it is the host for the box, and verifies
 * the host. Both ends are in this process, on the loop of egress. */
#include "base/cleanup.h"
#include "egress/injection.h"
#include "egress/proxy.h"
#include "secret/box_ca.h"
#include "tap.h"
#include "wire/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define BOX_ID "abcdefghijkl"
#define PLACEHOLDER "atoll-placeholder-1111"
#define REQUEST                                                                                    \
	"GET /v1 HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAuthorization: Bearer " PLACEHOLDER "\r\n\r\n"

static struct loop loop;
static struct egress egress;
static struct net_rule operator_rule;
static int server = -1, link_fd = -1;
static unsigned port;
static struct buf box_ca, box_key, host_ca, host_key, no_ca;
static struct injection *host_side; /* signs the certificate of the host */
static struct ssl_ctx_st *box_trust;
static struct err e;

static void turn(void)
{
	struct timespec little = { .tv_nsec = 200000 };

	event_base_loop(loop.base, EVLOOP_NONBLOCK);
	ppoll(NULL, 0, &little, NULL);
}

static void add_part(struct buf *out, char kind, const char *text)
{
	uint32_t n = (uint32_t)strlen(text);

	buf_putc(out, kind);
	buf_add(out, &n, sizeof(n));
	buf_add(out, text, n);
}

static void add_secret(struct buf *out, const struct buf *cert, const struct buf *key,
		       const char *value)
{
	char host[32];

	snprintf(host, sizeof(host), "127.0.0.1:%u", port ? port : 443);
	add_part(out, WIRE_SECRET_CERT, buf_str(cert));
	add_part(out, WIRE_SECRET_KEY, buf_str(key));
	add_part(out, WIRE_SECRET_PLACEHOLDER, PLACEHOLDER);
	add_part(out, WIRE_SECRET_VALUE, value);
	add_part(out, WIRE_SECRET_IN, "header");
	add_part(out, WIRE_SECRET_HOST, host);
}

static int give_secret(const char *value)
{
	auto_buf struct buf parts = { 0 };

	add_secret(&parts, &box_ca, &box_key, value);
	return egress_secrets(&egress, BOX_ID, parts.p, parts.len, &e);
}

static void make_authorities(void)
{
	auto_buf struct buf parts = { 0 };

	if (host_side)
		return;
	if (box_ca_make(&box_ca, &box_key, &e) < 0 || box_ca_make(&host_ca, &host_key, &e) < 0 ||
	    injection_trust(&box_trust, buf_str(&box_ca), &e) < 0)
		abort();
	add_secret(&parts, &host_ca, &host_key, "unused");
	if (injection_parse(&host_side, parts.p, parts.len, &e) < 0)
		abort();
}

static void end_egress(void)
{
	if (!egress.loop)
		return;
	egress_fini(&egress);
	for (int i = 0; i < 20; i++)
		event_base_loop(loop.base, EVLOOP_NONBLOCK);
	own_close_fd(&link_fd);
	own_close_fd(&server);
	loop_fini(&loop);
	egress.loop = NULL;
}

static void listen_somewhere(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);

	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server < 0 || bind(server, (struct sockaddr *)&a, n) < 0 || listen(server, 16) < 0 ||
	    getsockname(server, (struct sockaddr *)&a, &n) < 0)
		abort();
	port = ntohs(a.sin_port);
}

/* trusted: which hosts egress trusts. */
static struct egress_endpoint *begin(const struct buf *trusted)
{
	static const char *const dns[] = { "127.0.0.1:9", NULL };
	struct egress_conf conf = { .rules = &operator_rule, .nrules = 1, .dns = dns };
	struct wire_egress_open ask = { .id = BOX_ID };
	char rule[32];
	int pair[2];

	end_egress();
	signal(SIGPIPE, SIG_IGN);
	make_authorities();
	conf.certificates = buf_str(trusted);
	listen_somewhere();
	snprintf(rule, sizeof(rule), "127.0.0.1:%u", port);
	if (net_rule_parse(&operator_rule, rule, &e) < 0)
		abort();
	operator_rule.internal = 1;
	if (loop_init(&loop, &e) < 0 || egress_init(&egress, &loop, &conf, &e) < 0 ||
	    sock_pair(pair, &e) < 0)
		abort();
	egress_add_server(&egress, pair[0]);
	link_fd = pair[1];
	fcntl(link_fd, F_SETFL, O_NONBLOCK);
	/* The secrets come first. */
	if (give_secret("value-1") < 0 ||
	    egress_open(&egress, &ask, rule, strlen(rule), -1, &e) < 0)
		abort();
	return egress.ways;
}

/* Sends CONNECT; with early, the first bytes of TLS as well before the answer is read. */
static SSL *dial(struct egress_endpoint *w, int early)
{
	SSL *ssl = injection_connect(box_trust, "127.0.0.1");
	char text[128];
	int pair[2], n;

	if (!ssl || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	proxy_new(w, pair[0], &proxy_http);
	SSL_set_fd(ssl, pair[1]);
	n = snprintf(text, sizeof(text),
		     "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", port, port);
	if (write(pair[1], text, (size_t)n) != n)
		abort();
	if (early)
		SSL_connect(ssl);
	for (int i = 0; i < 10000; i++) {
		static const char said[] = "HTTP/1.1 200 Connection established\r\n\r\n";

		n = (int)recv(pair[1], text, sizeof(said) - 1, 0);
		if (n > 0 && !strncmp(text, said, (size_t)n))
			return ssl;
		turn();
	}
	abort();
}

static void hang_up(SSL *ssl)
{
	close(SSL_get_fd(ssl));
	SSL_free(ssl);
	ERR_clear_error();
}

/* 1: the handshake is done. */
static int shakes(SSL *ssl, int (*step)(SSL *))
{
	for (int i = 0; i < 10000; i++) {
		int rc = step(ssl), why = SSL_get_error(ssl, rc);

		if (rc == 1)
			return 1;
		if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
			break;
		turn();
	}
	ERR_clear_error();
	return 0;
}

static SSL *accept_host(void)
{
	SSL *ssl = injection_accept(host_side, "127.0.0.1");
	int fd = -1;

	for (int i = 0; i < 10000 && fd < 0; i++) {
		fd = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		turn();
	}
	if (!ssl || fd < 0)
		abort();
	SSL_set_fd(ssl, fd);
	return ssl;
}

/* Everything until `text`, or until TLS ends if it is NULL. */
static const char *reads(SSL *ssl, const char *text)
{
	static char all[70000];
	size_t n = 0;

	for (int i = 0; i < 10000; i++) {
		int got = SSL_read(ssl, all + n, (int)(sizeof(all) - 1 - n));

		n += got > 0 ? (size_t)got : 0;
		all[n] = 0;
		if (text && strstr(all, text))
			return all;
		if (got <= 0 && SSL_get_error(ssl, got) != SSL_ERROR_WANT_READ)
			return SSL_get_error(ssl, got) == SSL_ERROR_ZERO_RETURN ? all : "cut";
		turn();
	}
	return "nothing";
}

static void asks(SSL *ssl)
{
	char text[300];
	int n = snprintf(text, sizeof(text), REQUEST, port);

	if (SSL_write(ssl, text, n) != n)
		abort();
}

TEST(a_request_in_tls_arrives_with_its_value_and_its_answer_is_complete)
{
	for (int early = 0; early < 2; early++) {
		struct egress_endpoint *w = begin(&host_ca);
		SSL *box = dial(w, early), *host;
		const char *answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

		CHECK(shakes(box, SSL_connect));
		asks(box);
		host = accept_host();
		CHECK(shakes(host, SSL_accept));
		CHECK(strstr(reads(host, "\r\n\r\n"), "authorization: Bearer value-1\r\n"));
		CHECK(SSL_write(host, answer, (int)strlen(answer)) == (int)strlen(answer));
		CHECK(strstr(reads(box, NULL), "\r\n\r\nhello"));
		hang_up(host);
		hang_up(box);
		for (int i = 0; i < 10000 && w->nproxies; i++)
			turn();
		CHECK_INT(w->nproxies, 0);
	}
	end_egress();
}

TEST(a_host_that_is_not_trusted_gets_no_request)
{
	SSL *box = dial(begin(&no_ca), 0), *host;

	CHECK(shakes(box, SSL_connect));
	asks(box);
	host = accept_host();
	CHECK(!shakes(host, SSL_accept));
	CHECK(strstr(reads(box, NULL), "502"));
	hang_up(host);
	hang_up(box);
	end_egress();
}

TEST(secrets_change_and_endpoints_close_during_a_handshake)
{
	for (int step = 0; step < 6; step++) {
		struct egress_endpoint *w = begin(&host_ca);
		SSL *box = dial(w, step & 1), *host = NULL;

		for (int i = 0; i < step; i++) {
			SSL_do_handshake(box);
			turn();
		}
		if (step >= 4) {
			CHECK(shakes(box, SSL_connect));
			asks(box);
			host = accept_host();
		}
		CHECK(give_secret("value-2") == 0);
		if (step == 5) {
			CHECK(shakes(host, SSL_accept));
			CHECK(strstr(reads(host, "\r\n\r\n"), "Bearer value-"));
		}
		turn();
		egress_close(&egress, BOX_ID);
		ERR_clear_error();
		hang_up(box);
		if (host)
			hang_up(host);
	}
	end_egress();
}

TEST(a_box_that_breaks_off_or_sends_no_tls_is_survived)
{
	struct egress_endpoint *w = begin(&host_ca);
	static const char bad[] = "\x16\x03\x01\xff\xff garbage";
	SSL *box = dial(w, 0);

	SSL_do_handshake(box);
	hang_up(box);
	box = dial(w, 0);
	CHECK(write(SSL_get_fd(box), bad, sizeof(bad)) == sizeof(bad));
	for (int i = 0; i < 10; i++)
		turn();
	hang_up(box);
	for (int i = 0; i < 10000 && w->nproxies; i++)
		turn();
	CHECK_INT(w->nproxies, 0);
	end_egress();
}
