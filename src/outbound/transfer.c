/* transfer.c - see transfer.h. */
#include "outbound/transfer.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADERS_MOST = 64 << 10, CONNECT_MS = 10000, MAIL_ANSWER_S = 5 };

struct transfer {
	struct transfers *all;
	struct transfer_owner *owner;
	json_t *doc; /* has the texts of message */
	struct outbound_message message;
	struct outbound_target target;
	struct resolver_request *name;
	CURL *easy;
	struct curl_slist *headers, *recipients, *addresses;
	struct timer deadline; /* the end of its time, or the call of done() */
	struct buf answer;
	size_t header_bytes, body_at;
	int cut;
	uint64_t began_ms;
	struct err refused; /* ERR_NONE: no */
};

static void *transfer_must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* libcurl waits for the answer to QUIT when it closes a connection to a mail server, and the whole
 * process with it. A connection that is shut down is closed without QUIT. */
static void transfer_end_mail(struct transfer *t)
{
	curl_socket_t fd = CURL_SOCKET_BAD;

	if (curl.easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK &&
	    fd != CURL_SOCKET_BAD)
		shutdown(fd, SHUT_RDWR);
}

/* A handle takes as long to make as a request on loopback. */
static void transfer_keep_handle(struct transfers *x, CURL *easy)
{
	if (x->nspares == TRANSFER_SPARES) {
		curl.easy_cleanup(easy);
		return;
	}
	curl.easy_reset(easy);
	x->spares[x->nspares++] = easy;
}

static void transfer_free(struct transfer *t)
{
	if (t->easy) {
		if (t->target.mail)
			transfer_end_mail(t);
		curl.multi_remove_handle(t->all->multi.handle, t->easy);
		transfer_keep_handle(t->all, t->easy);
	}
	resolver_cancel(t->name);
	curl.slist_free_all(t->headers);
	curl.slist_free_all(t->recipients);
	curl.slist_free_all(t->addresses);
	timer_fini(&t->deadline);
	buf_fini(&t->answer);
	json_decref(t->doc);
	t->all->under_way--;
	free(t);
}

static void transfer_finish(struct transfer *t, json_t *take_answer)
{
	struct transfer_owner *o = t->owner;

	json_object_set_new(take_answer, "took_ms",
			    json_integer((json_int_t)(loop_now_ms() - t->began_ms)));
	transfer_free(t);
	o->done(o, take_answer);
}

static void transfer_fail(struct transfer *t, const struct err *e)
{
	transfer_finish(t, json_pack("{s:s, s:i}", "error", e->msg, "kind", e->kind));
}

/* From within transfer_start(): done() must be called later. */
static void transfer_refuse(struct transfer *t, const struct err *e)
{
	t->refused = *e;
	timer_set(&t->deadline, 0);
}

static void transfer_due(struct timer *timer)
{
	struct transfer *t = loop_owner(timer, struct transfer, deadline);
	struct err e = t->refused;

	if (e.kind == ERR_NONE)
		err_set(&e, ERR_SYS, "%.150s did not answer within %u ms", t->target.host,
			t->message.timeout_ms);
	transfer_fail(t, &e);
}

/* ---- the answer ---- */

static void transfer_tried(void *owner, int rc)
{
	struct transfer *t = owner;
	auto_buf struct buf text = { 0 };
	long status = 0;
	struct err e;

	curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (rc == CURLE_OK || (rc == CURLE_WRITE_ERROR && t->cut && status)) {
		utf8_scrub(&text, buf_str(&t->answer), t->answer.len);
		transfer_finish(t, json_pack("{s:i, s:s, s:b}", "status", (int)status, "body",
					     buf_str(&text), "cut", t->cut));
		return;
	}
	e = t->refused;
	if (e.kind == ERR_NONE)
		err_set(&e, ERR_SYS, "%.150s: %s", t->target.host,
			curl.easy_strerror((CURLcode)rc));
	transfer_fail(t, &e);
}

static size_t transfer_bytes(char *bytes, size_t one, size_t n, void *user)
{
	struct transfer *t = user;
	size_t room = OUTBOUND_ANSWER - t->answer.len;

	n *= one;
	buf_add(&t->answer, bytes, n < room ? n : room);
	t->cut = n > room;
	return t->cut ? 0 : n;
}

static size_t transfer_header(char *line, size_t one, size_t n, void *user)
{
	struct transfer *t = user;

	(void)line;
	n *= one;
	t->header_bytes += n;
	if (t->header_bytes <= HEADERS_MOST)
		return n;
	err_set(&t->refused, ERR_SYS, "%.150s answered with more than %d bytes of headers",
		t->target.host, HEADERS_MOST);
	return 0;
}

static size_t transfer_read(char *to, size_t one, size_t n, void *user)
{
	struct transfer *t = user;
	size_t left = t->message.body_len - t->body_at;

	n *= one;
	n = n < left ? n : left;
	memcpy(to, t->message.body + t->body_at, n);
	t->body_at += n;
	return n;
}

/* ---- addresses ---- */

static int transfer_judge(struct transfer *t, const struct sockaddr *to, socklen_t len)
{
	return outbound_target_judge(&t->all->rules, &t->target, to, len, t->message.allow_private,
				     &t->refused);
}

/* What libcurl really connects to, in whatever form the URL names it. */
static curl_socket_t transfer_socket(void *user, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct transfer *t = user;

	(void)purpose;
	t->refused.kind = ERR_NONE;
	if (transfer_judge(t, &to->addr, to->addrlen) < 0)
		return CURL_SOCKET_BAD;
	return socket(to->family, to->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to->protocol);
}

/* A connection that an earlier request opened, perhaps one that was allowed more. */
static int transfer_connected(void *user, char *to, char *from, int to_port, int from_port)
{
	struct transfer *t = user;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)to_port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)to_port) };
	int rc;

	(void)from;
	(void)from_port;
	if (inet_pton(AF_INET, to, &four.sin_addr) == 1)
		rc = transfer_judge(t, (struct sockaddr *)&four, sizeof(four));
	else if (inet_pton(AF_INET6, to, &six.sin6_addr) == 1)
		rc = transfer_judge(t, (struct sockaddr *)&six, sizeof(six));
	else
		rc = err_set(&t->refused, ERR_SYS, "unknown address of %.150s", t->target.host);
	return rc < 0 ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* ---- the request ---- */

#define OPT(name, value) curl.easy_setopt(t->easy, CURLOPT_##name, value)

static void transfer_set_http(struct transfer *t)
{
	const struct outbound_message *m = &t->message;
	const char *method = m->method ? m->method : "POST";

	for (unsigned i = 0; m->headers[i]; i++)
		t->headers = transfer_must(curl.slist_append(t->headers, m->headers[i]));
	t->headers = transfer_must(curl.slist_append(t->headers, "Expect:"));
	OPT(USERAGENT, "atoll/" ATOLL_VERSION);
	OPT(HTTPHEADER, t->headers);
	if (m->body || strcmp(method, "GET") != 0) {
		OPT(POSTFIELDS, m->body ? m->body : "");
		OPT(POSTFIELDSIZE_LARGE, (curl_off_t)m->body_len);
		OPT(CUSTOMREQUEST, method);
	}
}

static void transfer_set_mail(struct transfer *t)
{
	const struct outbound_message *m = &t->message;

	for (unsigned i = 0; m->to[i]; i++)
		t->recipients = transfer_must(curl.slist_append(t->recipients, m->to[i]));
	OPT(MAIL_FROM, m->from);
	OPT(MAIL_RCPT, t->recipients);
	OPT(UPLOAD, 1L);
	OPT(READFUNCTION, transfer_read);
	OPT(READDATA, t);
	OPT(INFILESIZE_LARGE, (curl_off_t)m->body_len);
	/* libcurl blocks while it waits for the answer to the end of the mail: no longer than this. */
	OPT(SERVER_RESPONSE_TIMEOUT, (long)MAIL_ANSWER_S);
	/* A password is not sent without TLS. */
	OPT(USE_SSL, (long)(m->user ? CURLUSESSL_ALL : CURLUSESSL_TRY));
	if (m->user) {
		OPT(USERNAME, m->user);
		OPT(PASSWORD, m->password);
	}
}

/* libcurl copies the authorities, 200 KB, for each request. One of http never uses TLS, because no redirect is followed;
 * one of smtp may. */
static int transfer_may_use_tls(const struct transfer *t)
{
	return t->target.mail || strncmp(t->message.url, "http:", 5) != 0;
}

static void transfer_set_trust(struct transfer *t)
{
	struct curl_blob pem = { .data = (void *)t->all->authorities,
				 .len = t->all->authorities_len,
				 .flags = CURL_BLOB_NOCOPY };

	OPT(SSL_VERIFYPEER, 1L);
	OPT(SSL_VERIFYHOST, 2L);
	OPT(CAPATH, NULL);
	if (pem.len && transfer_may_use_tls(t))
		OPT(CAINFO_BLOB, &pem);
	OPT(CAINFO, NULL);
}

static void transfer_begin(struct transfer *t)
{
	t->easy = t->all->nspares ? t->all->spares[--t->all->nspares]
				  : transfer_must(curl.easy_init());
	OPT(URL, t->message.url);
	OPT(PROTOCOLS_STR, t->target.mail ? "smtp,smtps" : "http,https");
	OPT(PROXY, "");
	OPT(NOSIGNAL, 1L);
	OPT(FOLLOWLOCATION, 0L);
	OPT(HTTP09_ALLOWED, 0L);
	OPT(RESOLVE, t->addresses);
	OPT(CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	OPT(OPENSOCKETFUNCTION, transfer_socket);
	OPT(OPENSOCKETDATA, t);
	OPT(PREREQFUNCTION, transfer_connected);
	OPT(PREREQDATA, t);
	OPT(WRITEFUNCTION, transfer_bytes);
	OPT(WRITEDATA, t);
	OPT(HEADERFUNCTION, transfer_header);
	OPT(HEADERDATA, t);
	OPT(PRIVATE, t);
	transfer_set_trust(t);
	if (t->target.mail)
		transfer_set_mail(t);
	else
		transfer_set_http(t);
	if (curl.multi_add_handle(t->all->multi.handle, t->easy) != CURLM_OK)
		abort();
}

/* Every address must be allowed: one forbidden address makes the name suspicious. */
static void transfer_resolved(void *ctx, const struct name_address *v, unsigned n, const char *why)
{
	struct transfer *t = ctx;
	struct err e;

	t->name = NULL;
	if (!n) {
		err_set(&e, ERR_SYS, "%.150s: %s", t->target.host, why);
		transfer_fail(t, &e);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		if (transfer_judge(t, (const struct sockaddr *)&v[i].to, v[i].len) < 0) {
			e = t->refused;
			transfer_fail(t, &e);
			return;
		}
	t->addresses = curl_addresses(t->target.host, t->target.port, v, n);
	transfer_begin(t);
}

struct transfer *transfer_start(struct transfers *x, json_t *take_message, struct transfer_owner *o)
{
	struct transfer *t = transfer_must(calloc(1, sizeof(*t)));
	struct err e;

	*t = (struct transfer){
		.all = x, .owner = o, .doc = take_message, .began_ms = loop_now_ms()
	};
	timer_init(&t->deadline, x->loop, transfer_due);
	x->under_way++;
	if (outbound_message_read(&t->message, t->doc, &e) < 0 ||
	    outbound_target_parse(&t->target, t->message.url, &e) < 0) {
		transfer_refuse(t, &e);
		return t;
	}
	if (x->under_way > TRANSFERS) {
		err_set(&e, ERR_LIMIT, "%d requests to other hosts are in progress already",
			TRANSFERS);
		transfer_refuse(t, &e);
		return t;
	}
	if (!t->message.timeout_ms)
		t->message.timeout_ms = OUTBOUND_TIMEOUT_MS;
	timer_set(&t->deadline, t->message.timeout_ms);
	t->name = resolver_request(&x->names, x->loop, t->target.host, t->target.port,
				   transfer_resolved, t);
	return t;
}

void transfer_cancel(struct transfer *t)
{
	transfer_free(t);
}

int transfers_init(struct transfers *x, struct loop *l, const struct outbound_rules *rules,
		   const char *authorities, const char *const *dns, struct err *e)
{
	*x = (struct transfers){ .loop = l,
				 .rules = *rules,
				 .authorities = authorities,
				 .authorities_len = strlen(authorities) };
	if (curl_load(e) < 0 || resolver_init(&x->names, l, dns, e) < 0)
		return -1;
	curl_loop_init(&x->multi, l, transfer_tried);
	return 0;
}
