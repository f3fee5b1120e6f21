/* client_test.c - the client against the server of this repository in another process, over TCP,
 * TLS and a unix socket, and against servers that misbehave. */
#include "http/client.h"
#include "http/tls.h"
#include "wsclient.h"
#include "tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct err e;
static char dir[200], tcp_url[64], tls_url[64], unix_url[300], cert[256], key[256], other[256];
static struct http_client *client;
static struct http_answer answer;

/* ---- the server ---- */

static void echo(struct http_req *r)
{
	http_set(r, "X-Method", "%s", r->method);
	http_set(r, "X-Peer", "%s", r->peer);
	http_reply(r, 200, "text/plain", r->body.p, r->body.len);
}

static void ws_echo(struct ws *w, const char *text, size_t n)
{
	if (n == 4 && memcmp(text, "quit", 4) == 0)
		ws_close(w, 4001, "as you wish");
	else
		ws_text(w, text, n);
}

static void ws_echo_bytes(struct ws *w, const void *bytes, size_t n)
{
	ws_binary(w, bytes, n);
}

static void stream(struct http_req *r, int whole)
{
	http_stream(r, 200, "text/plain", UINT64_MAX);
	for (int i = 0; i < 100; i++)
		http_write(r, "0123456789", 10);
	if (whole)
		http_end(r);
	else
		http_abort(r);
}

static void serve_head(struct http_req *r)
{
	static const struct ws_events events = { ws_echo, ws_echo_bytes, NULL, NULL };

	if (strcmp(r->path, "/ws") == 0 && r->upgrade) {
		struct ws *w = http_ws(r, "atoll", 1 << 20, &events, NULL);

		ws_text(w, "welcome", 7);
	} else if (strcmp(r->path, "/stream") == 0 || strcmp(r->path, "/half") == 0) {
		stream(r, r->path[1] == 's');
	} else if (strcmp(r->path, "/once") == 0) {
		r->keep_alive = 0;
		http_reply(r, 200, NULL, "once", 4);
	} else if (strcmp(r->path, "/none") == 0) {
		http_reply(r, 204, NULL, NULL, 0);
	} else if (strcmp(r->path, "/small") == 0) {
		r->on_body_end = echo;
		http_want_body(r, HTTP_BODY_WHOLE, 10);
	} else if (strcmp(r->path, "/nowhere") == 0) {
		http_reply(r, 404, "application/json", "{}", 2);
	} else {
		r->on_body_end = echo;
		http_want_body(r, HTTP_BODY_WHOLE, 32 << 20);
	}
}

static int listen_tcp(char url[64], const char *scheme)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (void *)&in, sizeof(in)) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (void *)&in, &len) < 0)
		abort();
	snprintf(url, 64, "%s://127.0.0.1:%u", scheme, ntohs(in.sin_port));
	return fd;
}

static int listen_unix(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%.80s/s", dir);
	snprintf(unix_url, sizeof(unix_url), "unix:%s", un.sun_path);
	if (bind(fd, (void *)&un, sizeof(un)) < 0 || listen(fd, 64) < 0)
		abort();
	return fd;
}

static void serve(int tcp, int tls, int un)
{
	struct http_server s;
	struct ssl_ctx_st *ctx;
	struct loop l;

	if (loop_init(&l, &e) < 0 || tls_server(cert, key, &ctx, &e) < 0)
		abort();
	http_server_init(&s, &l);
	s.on_head = serve_head;
	if (http_listen(&s, tcp, NULL, &e) < 0 || http_listen(&s, tls, ctx, &e) < 0 ||
	    http_listen(&s, un, NULL, &e) < 0)
		abort();
	loop_run(&l);
}

/* ---- a certificate for 127.0.0.1 ---- */

static void make_cert(const char *cert_path, const char *key_path)
{
	EVP_PKEY *pair = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	X509_NAME *name = X509_get_subject_name(x);
	X509_EXTENSION *san = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");
	FILE *f;

	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_set_version(x, 2);
	X509_gmtime_adj(X509_getm_notBefore(x), -60);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, pair);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1,
				   0);
	X509_set_issuer_name(x, name);
	X509_add_ext(x, san, -1);
	X509_sign(x, pair, EVP_sha256());
	f = fopen(cert_path, "w");
	PEM_write_X509(f, x);
	fclose(f);
	f = fopen(key_path, "w");
	PEM_write_PrivateKey(f, pair, NULL, NULL, 0, NULL, NULL);
	fclose(f);
	X509_EXTENSION_free(san);
	X509_free(x);
	EVP_PKEY_free(pair);
}

static pid_t server;

static void end_server(void)
{
	char line[300];

	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	snprintf(line, sizeof(line), "rm -rf '%s'", dir);
	if (system(line) != 0)
		perror(dir);
}

/* Started once, by the first test. The server is a separate process, because this client blocks. */
static int begin(void)
{
	int tcp, tls, un;

	if (server)
		return 1;
	snprintf(dir, sizeof(dir), "%.150s/client.XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(dir))
		return 0;
	snprintf(cert, sizeof(cert), "%s/cert", dir);
	snprintf(key, sizeof(key), "%s/key", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	make_cert(other, key);
	make_cert(cert, key);
	tcp = listen_tcp(tcp_url, "http");
	tls = listen_tcp(tls_url, "https");
	un = listen_unix();
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that crashes leaves no process */
		serve(tcp, tls, un);
		_exit(0);
	}
	close(tcp);
	close(tls);
	close(un);
	atexit(end_server);
	return server > 0;
}

static int open_client(const char *url, const char *ca)
{
	struct http_client_options o = { .ca_file = ca, .stall_ms = 10000 };

	return begin() && http_client_new(url, &o, &client, &e) == 0;
}

static int ask(const char *method, const char *target, const char *body)
{
	struct http_call call = { .method = method,
				  .target = target,
				  .body = body,
				  .body_len = body ? strlen(body) : 0 };

	http_answer_fini(&answer);
	return http_call(client, &call, &answer, &e);
}

static void end_client(void)
{
	http_answer_fini(&answer);
	http_client_free(client);
	client = NULL;
}

/* ---- addresses ---- */

TEST(an_address_is_parsed_or_rejected_with_the_reason)
{
	static const char *const bad[] = {
		"",           "localhost",     "ftp://a",        "http://",      "http://:80",
		"http://a:",  "http://a:0",    "http://a:65536", "http://a:8x",  "http://u@a",
		"http://a b", "http://[::1",   "http://[::1]x",  "http://a/p?q", "http://a#f",
		"unix:",      "unix:relative",
	};
	struct http_client *c;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_INT(http_client_new(bad[i], NULL, &c, &e), -1);
		CHECK(strstr(e.msg, "is not an address"));
	}
	CHECK_INT(http_client_new("http://[::1]:80/a/b/", NULL, &c, &e), 0);
	http_client_free(c);
	CHECK_INT(http_client_new("unix:///run/x", NULL, &c, &e), 0);
	http_client_free(c);
	http_client_free(NULL);
}

TEST(a_failed_connection_reports_address_and_reason)
{
	char url[64];

	close(listen_tcp(url, "http"));
	CHECK(open_client(url, NULL));
	CHECK_INT(ask("GET", "/", NULL), -1);
	CHECK(strstr(e.msg, url + 7) && strstr(e.msg, "Connection refused"));
	end_client();
	CHECK(open_client("unix:/nowhere/at/all", NULL));
	CHECK_INT(ask("GET", "/", NULL), -1);
	CHECK(strstr(e.msg, "/nowhere/at/all") && strstr(e.msg, "No such file"));
	end_client();
}

TEST(connecting_ends_at_its_timeout)
{
	struct http_client_options o = { .connect_ms = 100, .stall_ms = 100 };
	struct http_call call = { .method = "GET", .target = "/" };
	char url[64];
	int fd = listen_tcp(url, "http");

	/* The kernel accepts the connection, but no process answers. */
	CHECK_INT(http_client_new(url, &o, &client, &e), 0);
	CHECK_INT(http_call(client, &call, &answer, &e), -1);
	CHECK(strstr(e.msg, "timed out"));
	end_client();
	close(fd);
}

/* ---- calls ---- */

static void everything(const char *url, const char *ca)
{
	CHECK(open_client(url, ca));
	for (int i = 0; i < 3; i++) {
		CHECK_INT(ask("POST", "/echo", "hello"), 0);
		CHECK_INT(answer.status, 200);
		CHECK_STR(buf_str(&answer.body), "hello");
		CHECK_STR(http_answer_header(&answer, "x-method"), "POST");
		CHECK(!http_answer_header(&answer, "x-none"));
	}
	CHECK_INT(ask("GET", "/none", NULL), 0);
	CHECK_INT(answer.status, 204);
	CHECK_INT(ask("HEAD", "/stream", NULL), 0);
	CHECK_INT(answer.body.len, 0);
	CHECK_INT(ask("GET", "/stream", NULL), 0);
	CHECK_INT(answer.body.len, 1000);
	CHECK_INT(ask("GET", "/once", NULL), 0);
	CHECK_STR(buf_str(&answer.body), "once");
	CHECK_INT(ask("GET", "/nowhere", NULL), 0);
	CHECK_INT(answer.status, 404);
	CHECK_INT(ask("GET", "/half", NULL), -1);
	CHECK_INT(ask("PUT", "/echo", ""), 0);
	CHECK_INT(answer.body.len, 0);
	end_client();
}

TEST(requests_work_over_tcp)
{
	CHECK(begin());
	everything(tcp_url, NULL);
}

TEST(requests_work_over_a_unix_socket)
{
	CHECK(begin());
	everything(unix_url, NULL);
}

TEST(requests_work_over_tls)
{
	CHECK(begin());
	everything(tls_url, cert);
}

TEST(a_connection_is_reused)
{
	char first[64];

	CHECK(open_client(tcp_url, NULL));
	CHECK_INT(ask("GET", "/", NULL), 0);
	snprintf(first, sizeof(first), "%s", http_answer_header(&answer, "x-peer"));
	CHECK_INT(ask("GET", "/", NULL), 0);
	CHECK_STR(http_answer_header(&answer, "x-peer"), first);
	CHECK_INT(ask("GET", "/once", NULL), 0);
	CHECK_INT(ask("GET", "/", NULL), 0);
	CHECK(strcmp(http_answer_header(&answer, "x-peer"), first) != 0);
	end_client();
}

static size_t produced;

static ssize_t produce(void *user, void *out, size_t room, struct err *err)
{
	size_t n = room < 3000000 - produced ? room : 3000000 - produced;

	(void)user;
	(void)err;
	memset(out, 'x', n);
	produced += n;
	return (ssize_t)n;
}

static void send_bodies(const char *url)
{
	struct http_call call = { .method = "POST", .target = "/echo", .more = produce };
	char path[256];
	int fd;

	produced = 0;
	CHECK(open_client(url, cert));
	CHECK_INT(http_call(client, &call, &answer, &e), 0);
	CHECK_INT(answer.body.len, 3000000);
	http_answer_fini(&answer);

	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(ftruncate(fd, 200000) == 0 && lseek(fd, 50000, SEEK_SET) == 50000);
	call = (struct http_call){ .method = "POST", .target = "/echo", .body_fd = &fd };
	CHECK_INT(http_call(client, &call, &answer, &e), 0);
	CHECK_INT(answer.body.len, 150000);
	close(fd);
	end_client();
}

TEST(a_body_may_be_read_from_a_function_or_a_file)
{
	CHECK(begin());
	send_bodies(tcp_url);
	send_bodies(unix_url);
	send_bodies(tls_url);
}

TEST(an_error_answer_during_an_upload_is_returned)
{
	struct http_call call = { .method = "POST", .target = "/small", .more = produce };

	CHECK(begin());
	for (unsigned i = 0; i < 3; i++) {
		produced = 0;
		CHECK(open_client(i == 0 ? tcp_url : i == 1 ? unix_url : tls_url, cert));
		CHECK_INT(http_call(client, &call, &answer, &e), 0);
		CHECK_INT(answer.status, 413);
		CHECK(strstr(buf_str(&answer.body), "body_too_large"));
		end_client();
	}
}

static size_t received;

static int receive(void *user, const char *bytes, size_t n)
{
	(void)user;
	(void)bytes;
	received += n;
	return received > 300;
}

TEST(a_streamed_answer_is_passed_on_at_once_and_can_be_aborted)
{
	struct http_call call = { .method = "GET", .target = "/stream", .on_body = receive };

	received = 0;
	CHECK(open_client(tcp_url, NULL));
	CHECK_INT(http_call(client, &call, &answer, &e), 1);
	CHECK(received > 300);
	CHECK_INT(ask("GET", "/", NULL), 0); /* over a new connection */
	end_client();
}

TEST(newlines_in_headers_and_targets_are_rejected)
{
	struct http_header evil = { "X", "a\r\nY: b" };
	struct http_call call = { .method = "GET", .target = "/", .headers = &evil, .nheaders = 1 };

	CHECK(open_client(tcp_url, NULL));
	CHECK_INT(http_call(client, &call, &answer, &e), -1);
	CHECK_INT(ask("GET", "/a b", NULL), -1);
	CHECK_INT(ask("GET", "a", NULL), -1);
	CHECK_INT(ask("GET", "/a\r\nX: y", NULL), -1);
	CHECK_INT(e.kind, ERR_INVALID);
	end_client();
}

/* ---- certificates ---- */

TEST(an_untrusted_certificate_is_rejected)
{
	char wrong_host[64];

	CHECK(open_client(tls_url, NULL));
	CHECK_INT(ask("GET", "/", NULL), -1);
	CHECK(strstr(e.msg, "certificate"));
	end_client();
	CHECK(open_client(tls_url, other));
	CHECK_INT(ask("GET", "/", NULL), -1);
	end_client();
	snprintf(wrong_host, sizeof(wrong_host), "https://127.0.0.2:%s", strrchr(tls_url, ':') + 1);
	CHECK(open_client(wrong_host, cert));
	CHECK_INT(ask("GET", "/", NULL), -1);
	end_client();
}

TEST(http_to_a_tls_port_and_the_reverse_fail_with_a_message)
{
	char mixed[80];

	CHECK(begin());
	snprintf(mixed, sizeof(mixed), "https%s", tcp_url + 4);
	CHECK(open_client(mixed, cert));
	CHECK_INT(ask("GET", "/", NULL), -1);
	CHECK(strstr(e.msg, "127.0.0.1") && strstr(e.msg, "TLS"));
	end_client();
	snprintf(mixed, sizeof(mixed), "http%s", tls_url + 5);
	CHECK(open_client(mixed, NULL));
	CHECK_INT(ask("GET", "/", NULL), -1);
	end_client();
}

TEST(an_invalid_certificate_file_is_named)
{
	struct ssl_ctx_st *ctx;

	CHECK(begin());
	CHECK_INT(tls_server("/nowhere/cert", key, &ctx, &e), -1);
	CHECK(strstr(e.msg, "/nowhere/cert") && strstr(e.msg, "No such file"));
	CHECK_INT(tls_server(cert, "/nowhere/key", &ctx, &e), -1);
	CHECK(strstr(e.msg, "/nowhere/key"));
	CHECK_INT(tls_server(key, key, &ctx, &e), -1);
	CHECK(strstr(e.msg, "certificate") && strstr(e.msg, key));
	CHECK_INT(tls_server(cert, cert, &ctx, &e), -1);
	CHECK(strstr(e.msg, "key"));
	CHECK_INT(tls_server(other, key, &ctx, &e), -1);
	CHECK(strstr(e.msg, "mismatch") || strstr(e.msg, "does not belong"));
	CHECK_INT(tls_client(key, &ctx, &e), -1);
	CHECK(strstr(e.msg, key));
}

/* ---- servers that misbehave ---- */

/* Completes the handshake, reads the head of the request, and disconnects. */
static void hang_up_after_head(int fd)
{
	struct ssl_ctx_st *ctx;
	char sink[4096];
	SSL *ssl;
	int c = accept(fd, NULL, NULL);

	if (tls_server(cert, key, &ctx, &e) < 0)
		abort();
	ssl = SSL_new(ctx);
	SSL_set_fd(ssl, c);
	if (SSL_accept(ssl) == 1)
		SSL_read(ssl, sink, sizeof(sink));
	_exit(0);
}

static ssize_t produce_late(void *user, void *out, size_t room, struct err *err)
{
	pid_t *child = user;

	if (*child)
		waitpid(*child, NULL,
			0); /* now the peer has closed, and every further write fails */
	*child = 0;
	return produce(NULL, out, room, err);
}

TEST(writing_to_a_closed_tls_peer_is_an_error_and_no_signal)
{
	pid_t child;
	struct http_call call = {
		.method = "POST", .target = "/", .more = produce_late, .user = &child
	};
	char url[64];
	int fd;

	CHECK(begin());
	fd = listen_tcp(url, "https");
	child = fork();
	if (child == 0)
		hang_up_after_head(fd);
	close(fd);
	produced = 0;
	CHECK(open_client(url, cert));
	CHECK_INT(http_call(client, &call, &answer, &e), -1);
	CHECK(strstr(e.msg, "write to 127.0.0.1") && strstr(e.msg, "Broken pipe"));
	end_client();
}

static int fate(const char *reply)
{
	char url[64];
	int fd = listen_tcp(url, "http"), got;
	pid_t child = fork();

	if (child == 0) {
		char sink[4096];
		int c = accept(fd, NULL, NULL);

		if (read(c, sink, sizeof(sink)) > 0 && write(c, reply, strlen(reply)) >= 0)
			shutdown(c, SHUT_WR);
		while (read(c, sink, sizeof(sink)) > 0)
			;
		_exit(0);
	}
	close(fd);
	if (!open_client(url, NULL))
		return -9;
	got = ask("GET", "/", NULL);
	end_client();
	waitpid(child, NULL, 0);
	return got;
}

TEST(an_invalid_answer_is_an_error)
{
	CHECK_INT(fate(""), -1);
	CHECK(strstr(e.msg, "closed the connection"));
	CHECK_INT(fate("SSH-2.0-hello\r\n"), -1);
	CHECK_INT(fate("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"), -1);
	CHECK(strstr(e.msg, "middle"));
	CHECK_INT(fate("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), -1);
	CHECK_INT(fate("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), -1);
	CHECK_INT(fate("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nab"), -1);
	CHECK_INT(fate("HTTP/1.1 200 OK\r\n\r\nup to the end"), 0);
	CHECK_INT(
		fate("HTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
		0);
}

/* ---- WebSocket ---- */

static char said[1 << 17];
static size_t said_len;
static unsigned messages;

static void hear_text(void *user, const char *text, size_t n)
{
	(void)user;
	messages++;
	said_len = n;
	memcpy(said, text, n);
	said[n] = 0;
}

static void hear_bytes(void *user, const void *bytes, size_t n)
{
	hear_text(user, bytes, n);
}

static const struct wsclient_events hearing = { hear_text, hear_bytes };

/* 1: the message arrived. 0: the connection was closed. -1. */
static int wait_message(struct wsclient *w, unsigned count)
{
	struct pollfd p = { .fd = wsclient_fd(w), .events = POLLIN };
	int open = 1;

	while (open == 1 && messages < count) {
		open = wsclient_take(w, &e);
		if (open == 1 && messages < count && poll(&p, 1, 10000) != 1)
			return -2;
	}
	return messages >= count ? 1 : open;
}

static void converse(const char *url, const char *ca)
{
	struct http_client_options o = { .ca_file = ca };
	static char large[100000];
	struct wsclient *w;
	struct buf body = { 0 };
	int status;

	messages = 0;
	CHECK_INT(wsclient_open(url, &o, "/ws", NULL, 0, "atoll", 1 << 20, &hearing, NULL, &w,
				&status, &body, &e),
		  0);
	CHECK_INT(status, 101);
	CHECK_INT(wait_message(w, 1), 1);
	CHECK_STR(said, "welcome");
	CHECK_INT(wsclient_text(w, "h\xc3\xa9", 3, &e), 0);
	CHECK_INT(wait_message(w, 2), 1);
	CHECK_STR(said, "h\xc3\xa9");
	memset(large, 'l', sizeof(large));
	CHECK_INT(wsclient_binary(w, large, sizeof(large), &e), 0);
	CHECK_INT(wait_message(w, 3), 1);
	CHECK_INT(said_len, sizeof(large));
	CHECK(memcmp(said, large, sizeof(large)) == 0);
	CHECK_INT(wsclient_text(w, "quit", 4, &e), 0);
	CHECK_INT(wait_message(w, 4), 0);
	CHECK_INT(wsclient_code(w), 4001);
	wsclient_close(w, 1000);
}

TEST(a_websocket_carries_messages_both_ways)
{
	CHECK(begin());
	converse(tcp_url, NULL);
	converse(unix_url, NULL);
	converse(tls_url, cert);
}

TEST(a_rejected_websocket_reports_the_status)
{
	struct wsclient *w;
	struct buf body = { 0 };
	int status;

	CHECK(begin());
	CHECK_INT(wsclient_open(tcp_url, NULL, "/nowhere", NULL, 0, NULL, 100, &hearing, NULL, &w,
				&status, &body, &e),
		  1);
	CHECK_INT(status, 404);
	CHECK_STR(buf_str(&body), "{}");
	buf_fini(&body);
	CHECK_INT(wsclient_open(tcp_url, NULL, "/ws", NULL, 0, "other", 100, &hearing, NULL, &w,
				&status, &body, &e),
		  -1);
	CHECK(strstr(e.msg, "atoll"));
	wsclient_close(NULL, 1000);
}
