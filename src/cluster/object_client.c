/* object_client.c - see object_client.h. */
#include "cluster/object_client.h"
#include "http/tls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OBJECT_PIECE = 64 << 10 };

static void object_request_stop_waiting(struct object_request *x)
{
	struct object_request **at = &x->client->waiting;

	if (!x->is_waiting)
		return;
	x->is_waiting = 0;
	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
}

void object_request_cancel(struct object_request *x)
{
	if (!x->is_active)
		return;
	x->is_active = 0;
	object_request_stop_waiting(x);
	if (x->has_link)
		upstream_close(&x->up);
	x->has_link = 0;
	watch_stop(&x->watch);
	upstream_link_close(&x->link);
	timer_fini(&x->clock);
	buf_fini(&x->head);
}

static void object_request_end(struct object_request *x, const char *why)
{
	char text[sizeof(x->why)];

	if (!x->is_active)
		return;
	snprintf(text, sizeof(text), "%s", x->why[0] ? x->why : why ? why : "");
	object_request_cancel(x);
	x->done(x, text[0] ? text : NULL);
}

/* ---- the answer ---- */

static const char *object_on_head(struct upstream *u, const struct http_answer *a)
{
	struct object_request *x = loop_owner(u, struct object_request, up);

	x->status = a->status;
	if (a->status == 404 && strcmp(x->method, "DELETE") == 0)
		return NULL;
	if (a->status < 200 || a->status > 299)
		snprintf(x->why, sizeof(x->why), "the object store answers %d", a->status);
	else if (strcmp(x->method, "GET") == 0 && a->length != x->length)
		snprintf(x->why, sizeof(x->why),
			 "the object store has an object of another length");
	x->is_other = x->why[0] && strcmp(x->method, "GET") == 0 &&
		      (a->status == 404 || a->status == 200);
	return x->why[0] ? "refused" : NULL;
}

static void object_on_body(struct upstream *u, const char *bytes, size_t n)
{
	struct object_request *x = loop_owner(u, struct object_request, up);

	x->moved += n;
	if (x->body && !x->why[0] && x->body(x, bytes, n) != 0) {
		snprintf(x->why, sizeof(x->why), "the node does not take the bytes");
		timer_set(&x->clock, 0); /* not from within the callback */
	}
}

static void object_send_more(struct object_request *x)
{
	char piece[OBJECT_PIECE];

	while (x->left > 0) {
		size_t room = x->left < sizeof(piece) ? (size_t)x->left : sizeof(piece);
		ssize_t n = x->read(x, piece, room);

		if (n <= 0) {
			snprintf(x->why, sizeof(x->why), "the file cannot be read");
			timer_set(&x->clock, 0);
			return;
		}
		x->left -= (uint64_t)n;
		x->moved += (uint64_t)n;
		if (upstream_body(&x->up, piece, (size_t)n))
			break;
	}
	if (x->left == 0 && x->is_put) {
		x->is_put = 0;
		upstream_body_end(&x->up);
	}
}

static void object_on_drain(struct upstream *u)
{
	object_send_more(loop_owner(u, struct object_request, up));
}

static void object_on_over(struct upstream *u, const char *why)
{
	struct object_request *x = loop_owner(u, struct object_request, up);

	if (!why && x->is_put)
		why = "the object store has answered before it had all bytes";
	object_request_end(x, why);
}

static const struct upstream_events object_events = { .head = object_on_head,
						      .body = object_on_body,
						      .drain = object_on_drain,
						      .over = object_on_over };

/* ---- the connection ---- */

static void object_ask(struct object_request *x)
{
	struct upstream_link link = x->link;

	watch_stop(&x->watch);
	x->link = (struct upstream_link){ .fd = -1 };
	x->has_link = 1;
	upstream_init(&x->up, x->client->loop, link, OBJECT_SLOW_MS, &object_events);
	upstream_ask(&x->up, &(struct upstream_question){ .head = x->head.p, .len = x->head.len });
	if (x->is_put)
		object_send_more(x);
	else
		upstream_body_end(&x->up);
}

static void object_shake(struct watch *w, unsigned what)
{
	struct object_request *x = loop_owner(w, struct object_request, watch);
	char text[160];
	long verify;
	int rc, kind;

	(void)what;
	ERR_clear_error();
	rc = x->link.tls ? SSL_do_handshake(x->link.tls) : 1;
	if (rc == 1) {
		object_ask(x);
		return;
	}
	kind = SSL_get_error(x->link.tls, rc);
	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
		watch_want(&x->watch, kind == SSL_ERROR_WANT_READ ? LOOP_READ : LOOP_WRITE);
		return;
	}
	verify = SSL_get_verify_result(x->link.tls);
	snprintf(text, sizeof(text), "TLS handshake with the object store: %.100s",
		 verify != X509_V_OK         ? X509_verify_cert_error_string(verify)
		 : kind == SSL_ERROR_SYSCALL ? "the connection ended"
					     : tls_why());
	object_request_end(x, text);
}

/* The certificate must be one of the host of the settings. */
static void object_open_tls(struct object_request *x)
{
	const char *host = x->client->store.host;
	unsigned char ip[16];
	SSL *tls = SSL_new(x->client->tls);

	if (!tls || SSL_set_fd(tls, x->link.fd) != 1)
		abort();
	x->link.tls = tls;
	SSL_set_connect_state(tls);
	if (inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1) {
		if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host) != 1)
			abort();
	} else if (SSL_set_tlsext_host_name(tls, host) != 1 || SSL_set1_host(tls, host) != 1) {
		abort();
	}
	upstream_link_init(&x->link);
}

void object_client_connected(struct object_client *c, int take_fd)
{
	struct object_request *x = c->waiting;
	int one = 1;

	if (!x) { /* it has ended meanwhile */
		close(take_fd);
		return;
	}
	object_request_stop_waiting(x);
	(void)setsockopt(take_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)fcntl(take_fd, F_SETFL, fcntl(take_fd, F_GETFL) | O_NONBLOCK);
	x->link.fd = take_fd;
	if (c->tls)
		object_open_tls(x);
	watch_init(&x->watch, c->loop, take_fd, object_shake);
	watch_want(&x->watch, LOOP_WRITE); /* the first step comes from the loop */
}

void object_client_failed(struct object_client *c, const char *why)
{
	struct object_request *x = c->waiting;
	char text[160];

	if (!x)
		return;
	snprintf(text, sizeof(text), "no connection to the object store: %.100s", why);
	object_request_end(x, text);
}

void object_client_fail_all(struct object_client *c, const char *why)
{
	while (c->waiting)
		object_client_failed(c, why);
}

/* ---- requests ---- */

static void object_clock(struct timer *t)
{
	struct object_request *x = loop_owner(t, struct object_request, clock);

	if (!x->why[0] && x->moved - x->counted >= OBJECT_SLOW_BYTES) {
		x->counted = x->moved;
		timer_set(&x->clock, OBJECT_SLOW_MS);
		return;
	}
	object_request_end(x, "the object store is too slow");
}

void object_client_init(struct object_client *c, struct loop *l, const struct object_store *s,
			struct ssl_ctx_st *tls, void (*connect)(void *user), void *user)
{
	*c = (struct object_client){
		.loop = l, .store = *s, .tls = tls, .connect = connect, .user = user
	};
}

int object_client_begin(struct object_client *c, struct object_request *x, const char *method,
			const char *url, struct err *e)
{
	const char *target = object_store_target(&c->store, url);
	struct object_request **at = &c->waiting;

	if (!target)
		return err_set(e, ERR_INVALID,
			       "the URL is not one of cluster.objects of this node");
	if (x->length > OBJECT_MOST_BYTES)
		return err_set(e, ERR_LIMIT, "a file of this length is not stored as an object");
	x->is_put = strcmp(method, "PUT") == 0;
	x->method = method;
	x->client = c;
	x->is_active = x->is_waiting = 1;
	x->left = x->is_put ? x->length : 0;
	x->link = (struct upstream_link){ .fd = -1 };
	buf_printf(&x->head, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, c->store.authority);
	if (x->is_put)
		buf_printf(&x->head, "Content-Length: %" PRIu64 "\r\n", x->length);
	buf_puts(&x->head, "\r\n");
	timer_init(&x->clock, c->loop, object_clock);
	timer_set(&x->clock, OBJECT_SLOW_MS);
	while (*at)
		at = &(*at)->next;
	x->next = NULL;
	*at = x;
	c->connect(c->user);
	return 0;
}
