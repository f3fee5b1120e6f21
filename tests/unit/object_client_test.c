/* object_client_test.c - requests to an object store: with TLS and without, and stores that do something else. */
#include "cluster/object_client.h"
#include "base/cleanup.h"
#include "http/cert_make.h"
#include "http/http.h"
#include "http/tls.h"
#include "tap.h"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OBJECT = 300000 };

static struct err oops;
static struct loop loop;
static struct http_server server;
static struct object_client client;
static struct object_request request;
static struct ssl_ctx_st *server_tls, *client_tls;
static char object[OBJECT], got[2 * OBJECT], url[200];
static size_t got_len, sent;
static int done, port, connects, refuse;
static char why_done[200];

/* ---- the store ---- */

static void store_has_body(struct http_req *r)
{
	got_len = r->body.len < sizeof(got) ? r->body.len : sizeof(got);
	memcpy(got, r->body.p, got_len);
	http_reply(r, 200, NULL, NULL, 0);
}

static void store_answer(struct http_req *r)
{
	if (strcmp(r->method, "PUT") == 0) {
		r->on_body_end = store_has_body;
		http_want_body(r, HTTP_BODY_WHOLE, 1 << 20);
	} else if (strcmp(r->path, "/b/half") == 0) {
		http_stream(r, 200, NULL, OBJECT);
		http_write(r, object, OBJECT / 2);
		http_abort(r);
	} else if (strcmp(r->path, "/b/longer") == 0) {
		http_stream(r, 200, NULL, OBJECT + 1);
		http_write(r, object, 1000);
	} else if (strcmp(r->path, "/b/none") == 0) {
		http_reply(r, 404, NULL, NULL, 0);
	} else if (strcmp(r->path, "/b/busy") == 0) {
		http_reply(r, 503, NULL, "later", 5);
	} else if (strcmp(r->method, "DELETE") == 0) {
		http_reply(r, 204, NULL, NULL, 0);
	} else {
		http_reply(r, 200, NULL, object, OBJECT);
	}
}

static int store_listen(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (bind(fd, (void *)&in, sizeof(in)) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (void *)&in, &len) < 0)
		abort();
	port = ntohs(in.sin_port);
	return fd;
}

static void write_text(const char *name, const struct buf *text)
{
	FILE *f = fopen(name, "w");

	if (!f || fwrite(text->p, text->len, 1, f) != 1 || fclose(f) != 0)
		abort();
}

/* name: of the certificate, which the client trusts. */
static void make_tls(const char *name)
{
	const struct cert_extension x[] = { { NID_subject_alt_name, name },
					    { NID_basic_constraints, "critical,CA:TRUE" } };
	auto_buf struct buf cert = { 0 }, secret = { 0 };
	auto_key EVP_PKEY *key = EVP_EC_gen("P-256");
	auto_cert X509 *c = cert_make_new(key, time(NULL), 2);
	char folder[] = "/tmp/object_client.XXXXXX", at[64], key_at[64];

	if (!mkdtemp(folder) || !cert_make_name(X509_get_subject_name(c), "CN", "store") ||
	    !cert_make_sign(c, c, key, x, 2) || !cert_make_text(c, &cert) ||
	    !cert_make_key_text(key, &secret))
		abort();
	snprintf(at, sizeof(at), "%s/cert", folder);
	snprintf(key_at, sizeof(key_at), "%s/key", folder);
	write_text(at, &cert);
	write_text(key_at, &secret);
	if (tls_server(at, key_at, &server_tls, &oops) < 0 ||
	    tls_client(at, &client_tls, &oops) < 0)
		abort();
	unlink(at);
	unlink(key_at);
	rmdir(folder);
}

/* ---- the node ---- */

static void socket_wanted(void *user)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr = { htonl(INADDR_LOOPBACK) },
				  .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)user;
	connects++;
	if (refuse) {
		close(fd);
		return;
	}
	if (connect(fd, (void *)&in, sizeof(in)) < 0)
		abort();
	object_client_connected(&client, fd);
}

static void request_ended(struct object_request *x, const char *why)
{
	(void)x;
	done++;
	snprintf(why_done, sizeof(why_done), "%s", why ? why : "");
	loop_stop(&loop);
}

static int request_body(struct object_request *x, const char *bytes, size_t n)
{
	(void)x;
	if (got_len + n > sizeof(got))
		return 1;
	memcpy(got + got_len, bytes, n);
	got_len += n;
	return 0;
}

static ssize_t request_read(struct object_request *x, char *piece, size_t room)
{
	size_t n = OBJECT - sent < room ? OBJECT - sent : room;

	(void)x;
	memcpy(piece, object + sent, n);
	sent += n;
	return (ssize_t)n;
}

/* tls: the name in the certificate of the store; NULL: without TLS. */
static void begin(const char *tls)
{
	char address[64];
	struct object_store s;

	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < OBJECT; i++)
		object[i] = (char)(i * 7 + i / 251);
	if (loop_init(&loop, &oops) < 0)
		abort();
	if (tls)
		make_tls(tls);
	http_server_init(&server, &loop);
	server.on_head = store_answer;
	if (http_listen(&server, store_listen(), tls ? server_tls : NULL, &oops) < 0)
		abort();
	snprintf(address, sizeof(address), "%s://127.0.0.1:%d/b", tls ? "https" : "http", port);
	if (object_store_parse(&s, address, &oops) < 0)
		abort();
	object_client_init(&client, &loop, &s, tls ? client_tls : NULL, socket_wanted, NULL);
	connects = refuse = done = 0;
}

static void end(void)
{
	http_server_fini(&server);
	loop_fini(&loop);
	tls_free(server_tls);
	tls_free(client_tls);
	server_tls = client_tls = NULL;
}

static void begin_request(const char *method, const char *path)
{
	request = (struct object_request){
		.done = request_ended, .body = request_body, .read = request_read, .length = OBJECT
	};
	got_len = sent = 0;
	done = 0;
	snprintf(url, sizeof(url), "%s://127.0.0.1:%d/b/%s", client.tls ? "https" : "http", port,
		 path);
	if (object_client_begin(&client, &request, method, url, &oops) < 0)
		abort();
}

static const char *ask(const char *method, const char *path)
{
	begin_request(method, path);
	loop_run(&loop);
	return done == 1 ? why_done : "done() was not called once";
}

static void check_round(void)
{
	CHECK_STR(ask("PUT", "x"), "");
	CHECK_INT(got_len, OBJECT);
	CHECK_INT(memcmp(got, object, OBJECT), 0);
	CHECK_STR(ask("GET", "x"), "");
	CHECK_INT(got_len, OBJECT);
	CHECK_INT(memcmp(got, object, OBJECT), 0);
	CHECK_STR(ask("DELETE", "x"), "");
	CHECK_STR(ask("DELETE", "none"), "");
}

TEST(an_object_is_written_read_and_deleted)
{
	begin(NULL);
	check_round();
	end();
}

TEST(the_same_with_tls)
{
	begin("IP:127.0.0.1");
	check_round();
	end();
}

TEST(a_certificate_of_another_host_is_refused)
{
	begin("IP:127.0.0.2");
	CHECK(strstr(ask("GET", "x"), "mismatch") != NULL);
	CHECK_INT(got_len, 0);
	end();
}

TEST(a_certificate_of_an_unknown_authority_is_refused)
{
	begin("IP:127.0.0.1");
	tls_free(client_tls);
	if (tls_client("/etc/ssl/certs/ca-certificates.crt", &client_tls, &oops) < 0 &&
	    tls_client(NULL, &client_tls, &oops) < 0)
		abort();
	client.tls = client_tls;
	CHECK(strstr(ask("GET", "x"), "certificate") != NULL);
	end();
}

TEST(other_answers_are_not_the_object)
{
	begin(NULL);
	CHECK_STR(ask("GET", "busy"), "the object store answers 503");
	CHECK_INT(request.is_other, 0);
	CHECK_STR(ask("GET", "none"), "the object store answers 404");
	CHECK_INT(request.is_other, 1);
	CHECK_STR(ask("GET", "longer"), "the object store has an object of another length");
	CHECK_INT(request.is_other, 1);
	CHECK_INT(got_len, 0);
	CHECK(*ask("GET", "half"));
	CHECK_INT(request.is_other, 0);
	CHECK(got_len <= OBJECT / 2);
	end();
}

TEST(a_connection_that_fails_is_reported_in_order)
{
	begin(NULL);
	refuse = 1;
	begin_request("GET", "x");
	object_client_failed(&client, "refused");
	CHECK_INT(done, 1);
	CHECK_STR(why_done, "no connection to the object store: refused");
	object_client_failed(&client, "late"); /* for no request */
	CHECK_INT(done, 1);
	begin_request("GET", "x");
	object_request_cancel(&request);
	object_request_cancel(&request);
	CHECK_INT(done, 0);
	CHECK(client.waiting == NULL);
	begin_request("PUT", "x");
	object_client_fail_all(&client, "ended");
	CHECK_INT(done, 1);
	end();
}

TEST(a_url_of_another_host_is_not_used)
{
	begin(NULL);
	request = (struct object_request){ .done = request_ended, .length = 1 };
	CHECK_INT(object_client_begin(&client, &request, "GET", "http://127.0.0.2/b/x", &oops), -1);
	CHECK_INT(connects, 0);
	end();
}
