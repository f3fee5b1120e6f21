/* completion.c - see completion.h. */
#include "llm/completion.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "outbound/curl.h"
#include "llm/dialect.h"
#include "llm/sse.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum {
	ERROR_BODY = 64 << 10,
	GRACE_MS = 2000, /* between the last event and the end of the connection */
	BACKOFF_MS = 500,
	BACKOFF_MOST_MS = 8000,
	AFTER_MOST_MS = 60000, /* a longer Retry-After is not waited for */
	CA_MOST = 8 << 20,
};

struct completion {
	/* clang-format off */
	struct asker *asker;
	struct completion_owner *owner;
	json_t *request;
	const struct models_config_model *model;
	char *body, *url;
	CURL *easy;
	struct curl_slist *headers, *addresses;
	struct resolver_request *name;
	struct timer silence, deadline, next; /* next: the next try, or the call of done() */
	struct sse sse;
	struct reply reply;
	struct buf wrong; /* the body of an error */
	size_t raw;
	int sent; /* the last request was sent completely and was not rejected */
	struct ask_headers said;
	struct err broke; /* why reading was stopped */
	int stopped_reading, over;
	struct failure failure;
	struct usage usage;
	struct buf why;
	unsigned tries;
	uint64_t began_ms, ends_ms;
	/* clang-format on */
};

static void *completion_must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* ---- parsing of the answer ---- */

static size_t header_came(char *line, size_t one, size_t n, void *user)
{
	struct completion *a = user;

	ask_header(&a->said, line, one * n);
	return one * n;
}

static int event_came(void *ctx, const char *name, const char *data, size_t len, struct err *e)
{
	struct completion *a = ctx;

	if (a->model->provider->dialect->event(&a->reply, name, data, len, e) < 0)
		return -1;
	return a->reply.failed ? err_set(e, ERR_SYS, "%s", a->reply.error.msg) : 0;
}

static long status_of(const struct completion *a)
{
	long status = 0;

	if (a->easy)
		curl.easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static size_t bytes_came(char *bytes, size_t one, size_t n, void *user)
{
	struct completion *a = user;

	n *= one;
	timer_set(&a->silence, a->model->provider->silence_ms);
	if (status_of(a) != 200) {
		if (a->wrong.len < ERROR_BODY)
			buf_add(&a->wrong, bytes, n < ERROR_BODY ? n : ERROR_BODY);
		return n;
	}
	a->raw += n;
	if (a->raw > COMPLETION_RAW_MOST)
		err_set(&a->broke, ERR_LIMIT, "an answer of more than %d bytes",
			COMPLETION_RAW_MOST);
	else if (sse_feed(&a->sse, bytes, n, &a->broke) == 0) {
		if (a->reply.complete)
			timer_set(&a->silence, GRACE_MS);
		return n;
	}
	a->stopped_reading = 1;
	return 0;
}

/* ---- health ---- */

static const char *provider_of(const struct completion *a)
{
	return a->model->provider->name;
}

static struct breaker *breaker_of(struct completion *a)
{
	return &a->asker->breakers[a->model->provider - a->asker->book->providers];
}

static int completion_rests(struct completion *a)
{
	const struct breaker *b = breaker_of(a);
	uint64_t ms = breaker_rests(b);

	if (!ms)
		return 0;
	failure_set(&a->failure, provider_of(a), "unavailable", 1,
		    "left alone for %u more ms after failures in a row, the last: %s", (unsigned)ms,
		    b->why);
	a->failure.after_ms = (int64_t)ms;
	return 1;
}

/* ---- what it cost ---- */

static void count_try(struct completion *a)
{
	const struct models_config_price *p = &a->model->price;
	struct usage u = a->reply.usage;

	u.calls = 1;
	/* No usage was reported, or the stream ended before it: estimated by bytes, and marked as
	 * estimated. Never zero. */
	if ((a->raw || a->sent) &&
	    (!a->reply.told_usage || !(u.in + u.out + u.cache_read + u.cache_write))) {
		u.in = strlen(a->body) / 4;
		u.out = a->reply.bytes / 4;
		u.estimated = 1;
	} else if (a->raw && !a->reply.complete && u.out < a->reply.bytes / 4) {
		u.out = a->reply.bytes / 4;
		u.estimated = 1;
	}
	u.cost = ((double)u.in * p->in + (double)u.out * p->out +
		  (double)u.cache_read * p->cache_read + (double)u.cache_write * p->cache_write) /
		 1e6;
	usage_add(&a->usage, &u);
}

/* ---- a try ---- */

static void end_try(struct completion *a)
{
	if (a->easy) {
		curl_off_t bytes = 0;
		long status = status_of(a);

		/* The provider has the complete request and did not reject it: its tokens are used,
		 * with or without an answer. */
		curl.easy_getinfo(a->easy, CURLINFO_SIZE_UPLOAD_T, &bytes);
		a->sent =
			status == 200 || (!status && bytes > 0 && (size_t)bytes >= strlen(a->body));
		curl.multi_remove_handle(a->asker->multi.handle, a->easy);
		curl.easy_cleanup(a->easy);
	}
	a->easy = NULL;
	resolver_cancel(a->name);
	a->name = NULL;
	curl.slist_free_all(a->addresses);
	a->addresses = NULL;
	timer_clear(&a->silence);
}

static void clear_reply(struct completion *a)
{
	sse_fini(&a->sse);
	reply_fini(&a->reply);
	buf_fini(&a->wrong);
}

static void say_retry(struct completion *a, uint64_t wait_ms)
{
	log_info("asking a model again", LOG_S("model", a->model->id), LOG_U("try", a->tries),
		 LOG_U("wait_ms", wait_ms), LOG_S("why", a->failure.err.msg),
		 LOG_S("request_id", a->said.request_id));
	buf_printf(&a->why, "; try %u: %s", a->tries, a->failure.err.msg);
	if (a->owner->said && json_is_true(json_object_get(a->request, "stream")))
		a->owner->said(a->owner,
			       json_pack("{s:s, s:s, s:I}", "type", "retry", "why",
					 a->failure.err.msg, "wait_ms", (json_int_t)wait_ms));
}

static uint64_t completion_backoff(struct completion *a)
{
	uint64_t ms = (uint64_t)BACKOFF_MS << (a->tries - 1);
	struct asker *x = a->asker;

	if (a->failure.after_ms >= 0)
		return (uint64_t)a->failure.after_ms;
	if (ms > BACKOFF_MOST_MS)
		ms = BACKOFF_MOST_MS;
	x->seed = x->seed * 6364136223846793005u + 1442695040888963407u;
	return ms * (750 + (x->seed >> 33) % 250) / 1000;
}

static void tell_later(struct completion *a)
{
	a->over = 1;
	timer_clear(&a->deadline);
	timer_set(&a->next, 0);
}

static void try_failed(struct completion *a)
{
	uint64_t wait = completion_backoff(a), now = loop_now_ms();
	int same;

	if (!a->failure.again && a->failure.status) /* the request is at fault */
		breaker_good(breaker_of(a));
	else
		breaker_failed(breaker_of(a), provider_of(a), a->failure.err.msg);
	/* Some providers answer 500 to an invalid request: the same error twice is final. */
	same = a->failure.status == 500 && a->tries > 1 &&
	       strstr(buf_str(&a->why), a->failure.err.msg);
	if (!a->failure.again || same || a->tries > a->model->provider->retries ||
	    wait > AFTER_MOST_MS || now + wait >= a->ends_ms) {
		if (same)
			a->failure.again = 0;
		tell_later(a);
		return;
	}
	say_retry(a, wait);
	timer_set(&a->next, wait);
}

static void completion_tried(void *owner, int rc)
{
	struct completion *a = owner;
	int status = (int)status_of(a);

	if (rc == CURLE_OK && status == 200 && sse_end(&a->sse, &a->broke) < 0)
		a->stopped_reading = 1;
	end_try(a);
	count_try(a);
	if (!a->reply.failed && status && status != 200)
		reply_fail_body(&a->reply, status, buf_str(&a->wrong), a->wrong.len);
	if (a->reply.failed)
		failure_told(&a->failure, provider_of(a), status, &a->reply.error, &a->said);
	else if (a->stopped_reading)
		failure_set(&a->failure, provider_of(a),
			    a->broke.kind == ERR_LIMIT ? "too_large" : "broken",
			    a->broke.kind != ERR_LIMIT, "%s", a->broke.msg);
	else if (a->reply.complete) {
		breaker_good(breaker_of(a));
		tell_later(a);
		return;
	} else if (rc != CURLE_OK)
		failure_curl(&a->failure, provider_of(a), rc);
	else
		failure_set(&a->failure, provider_of(a), "broken", 1, "%s",
			    a->raw ? "the answer ended too early" : "an empty answer");
	if (!a->failure.status && status)
		a->failure.status = status;
	try_failed(a);
}

static void completion_silent(struct timer *t)
{
	struct completion *a = loop_owner(t, struct completion, silence);

	if (a->reply.complete) { /* the answer is complete; only the connection is still open */
		completion_tried(a, CURLE_OK);
		return;
	}
	end_try(a);
	count_try(a);
	failure_set(&a->failure, provider_of(a), "timeout", 1, "silent for %u ms",
		    a->model->provider->silence_ms);
	try_failed(a);
}

static void too_late(struct timer *t)
{
	struct completion *a = loop_owner(t, struct completion, deadline);

	if (a->easy || a->name) {
		end_try(a);
		count_try(a);
	}
	timer_clear(&a->next);
	failure_set(&a->failure, provider_of(a), "timeout", 1, "no answer within %llu ms",
		    (unsigned long long)(a->ends_ms - a->began_ms));
	breaker_failed(breaker_of(a), provider_of(a), a->failure.err.msg);
	tell_later(a);
}

#define OPT(name, value) curl.easy_setopt(a->easy, CURLOPT_##name, value)

static void set_trust(struct completion *a)
{
	const struct models_config_provider *p = a->model->provider;
	struct curl_blob pem = { .data = p->ca ? p->ca : a->asker->ca,
				 .len = p->ca ? p->ca_len : a->asker->ca_len,
				 .flags = CURL_BLOB_NOCOPY };

	OPT(SSL_VERIFYPEER, 1L);
	OPT(SSL_VERIFYHOST, 2L);
	OPT(CAPATH, NULL);
	if (pem.data)
		OPT(CAINFO_BLOB, &pem);
	OPT(CAINFO, NULL);
}

/* From here on the provider has to answer. */
static int completion_connected(void *user, char *to, char *from, int to_port, int from_port)
{
	struct completion *a = user;

	(void)to;
	(void)from;
	(void)to_port;
	(void)from_port;
	timer_set(&a->silence, a->model->provider->silence_ms);
	return CURL_PREREQFUNC_OK;
}

static void set_request(struct completion *a)
{
	OPT(URL, a->url);
	OPT(PROTOCOLS_STR, "http,https");
	OPT(PROXY, "");
	OPT(NOSIGNAL, 1L);
	OPT(FOLLOWLOCATION, 0L);
	OPT(RESOLVE, a->addresses);
	OPT(HTTPHEADER, a->headers);
	OPT(POSTFIELDS, a->body);
	OPT(POSTFIELDSIZE_LARGE, (curl_off_t)strlen(a->body));
	OPT(CONNECTTIMEOUT_MS, (long)a->model->provider->connect_ms);
	OPT(HTTP09_ALLOWED, 0L);
	OPT(TCP_KEEPALIVE, 1L);
	OPT(WRITEFUNCTION, bytes_came);
	OPT(WRITEDATA, a);
	OPT(HEADERFUNCTION, header_came);
	OPT(HEADERDATA, a);
	OPT(PREREQFUNCTION, completion_connected);
	OPT(PREREQDATA, a);
	OPT(PRIVATE, a);
}

static void piece_came(void *ctx, json_t *take_event)
{
	struct completion *a = ctx;

	a->owner->said(a->owner, take_event);
}

static void fresh_reply(struct completion *a)
{
	int wanted = a->owner->said && json_is_true(json_object_get(a->request, "stream"));

	clear_reply(a);
	a->sse = (struct sse){ .lines = a->model->provider->dialect->lines,
			       .event = event_came,
			       .ctx = a };
	a->reply = (struct reply){ .said = wanted ? piece_came : NULL, .ctx = a };
	a->said = (struct ask_headers){ .should_retry = -1, .after_ms = -1 };
	a->raw = 0;
	a->sent = 0;
	a->stopped_reading = 0;
}

static void name_told(void *ctx, const struct name_address *v, unsigned n, const char *why)
{
	struct completion *a = ctx;

	a->name = NULL;
	if (!n) {
		failure_set(&a->failure, provider_of(a), "network", 1, "%.100s: %s",
			    a->model->provider->host, why);
		try_failed(a);
		return;
	}
	a->addresses = curl_addresses(a->model->provider->host, a->model->provider->port, v, n);
	a->easy = completion_must(curl.easy_init());
	set_request(a);
	set_trust(a);
	timer_set(&a->silence,
		  (uint64_t)a->model->provider->connect_ms + a->model->provider->silence_ms);
	if (curl.multi_add_handle(a->asker->multi.handle, a->easy) != CURLM_OK)
		abort();
}

static void try_now(struct completion *a)
{
	const struct models_config_provider *p = a->model->provider;

	if (completion_rests(a)) {
		tell_later(a);
		return;
	}
	a->tries++;
	fresh_reply(a);
	a->name =
		resolver_request(&a->asker->names, a->asker->loop, p->host, p->port, name_told, a);
}

/* ---- the answer ---- */

/* A schema that was requested as a tool: its arguments are the answer. */
static void unwrap_schema(struct completion *a, json_t *answer)
{
	const char *name =
		json_string_value(json_object_get(json_object_get(a->request, "schema"), "name"));
	const struct reply_call *c = a->reply.calls;

	if (!name || a->model->provider->schema != SCHEMA_TOOL || a->reply.ncalls != 1 ||
	    !c->name || strcmp(c->name, name) != 0)
		return;
	json_object_set_new(answer, "text", json_stringn(buf_str(&c->arguments), c->arguments.len));
	json_object_set_new(answer, "calls", json_array());
	if (a->reply.stop == STOP_TOOLS)
		json_object_set_new(answer, "stop", json_string(stop_name(STOP_END)));
}

static json_t *completion_common(const struct completion *a)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:i, s:I, s:s}", "model", a->model->id, "name",
			 a->model->name, "provider", a->model->provider->name, "usage",
			 usage_json(&a->usage), "tries", (int)a->tries, "ms",
			 (json_int_t)(loop_now_ms() - a->began_ms), "why", buf_str(&a->why));
}

static json_t *good_answer(struct completion *a)
{
	json_t *j = json_pack("{s:o, s:o, s:s}", "text",
			      json_stringn(buf_str(&a->reply.text), a->reply.text.len), "calls",
			      reply_calls(&a->reply), "stop", stop_name(a->reply.stop)),
	       *more = completion_common(a);

	unwrap_schema(a, j);
	json_object_update(j, more);
	json_decref(more);
	return j;
}

static json_t *bad_answer(const struct completion *a)
{
	json_t *j = completion_common(a),
	       *error = json_pack("{s:s, s:s, s:b}", "category", a->failure.category, "message",
				  a->failure.err.msg, "retriable", a->failure.again);

	if (a->failure.status)
		json_object_set_new(error, "status", json_integer(a->failure.status));
	if (a->failure.after_ms >= 0)
		json_object_set_new(error, "retry_after_ms", json_integer(a->failure.after_ms));
	if (a->said.request_id[0])
		json_object_set_new(error, "request_id", json_string(a->said.request_id));
	json_object_set_new(j, "error", error);
	return j;
}

static void free_ask(struct completion *a)
{
	end_try(a);
	clear_reply(a);
	timer_fini(&a->silence);
	timer_fini(&a->deadline);
	timer_fini(&a->next);
	curl.slist_free_all(a->headers);
	buf_fini(&a->why);
	json_decref(a->request);
	free(a->body);
	free(a->url);
	a->asker->under_way--;
	free(a);
}

static void next_due(struct timer *t)
{
	struct completion *a = loop_owner(t, struct completion, next);
	struct completion_owner *o = a->owner;
	struct err e = a->failure.err;
	int good = !a->failure.category;
	json_t *answer;

	if (!a->over) {
		a->failure = (struct failure){ 0 };
		try_now(a);
		return;
	}
	if (!good)
		log_warn("a model did not answer", LOG_S("model", a->model->id), LOG_E(&e),
			 LOG_U("tries", a->tries),
			 LOG_S("request_id", a->said.request_id[0] ? a->said.request_id : NULL));
	answer = good ? good_answer(a) : bad_answer(a);
	free_ask(a);
	o->done(o, answer, good ? NULL : &e);
}

/* ---- life of a question ---- */

static void add_header(struct completion *a, const char *fmt, const char *value)
{
	auto_buf struct buf line = { 0 };

	buf_printf(&line, "%.*s", (int)strcspn(fmt, "%"), fmt);
	if (strchr(fmt, '%'))
		buf_puts(&line, value);
	a->headers = completion_must(curl.slist_append(a->headers, buf_str(&line)));
	if (line.p)
		explicit_bzero(line.p, line.room);
}

static char *url_of(const struct models_config_provider *p)
{
	const char *path = p->dialect->path;
	size_t n = strlen(p->base);
	struct buf url = { 0 };

	/* "https://host/v1" is the usual base, also where the path of the dialect contains /v1. */
	if (strncmp(path, "/v1/", 4) == 0 && n > 3 && strcmp(p->base + n - 3, "/v1") == 0)
		path += 3;
	buf_printf(&url, "%s%s", p->base, path);
	return buf_steal(&url);
}

static void set_headers(struct completion *a)
{
	const struct models_config_provider *p = a->model->provider;

	add_header(a, "Content-Type: application/json", NULL);
	add_header(a,
		   p->dialect->lines ? "Accept: application/x-ndjson" : "Accept: text/event-stream",
		   NULL);
	add_header(a, "User-Agent: atoll/" ATOLL_VERSION, NULL);
	add_header(a, "Expect:", NULL); /* no OPTIONS or 100-continue before the request */
	if (p->key)
		add_header(a, p->dialect->key, p->key);
	if (p->dialect->more)
		add_header(a, p->dialect->more, NULL);
}

static uint64_t deadline_of(const struct completion *a)
{
	json_int_t ms = json_integer_value(json_object_get(a->request, "deadline_ms"));
	uint32_t most = a->model->provider->deadline_ms;

	return ms > 0 && ms < most ? (uint64_t)ms : most;
}

static void say_route(struct completion *a)
{
	const char *role = json_string_value(json_object_get(a->request, "role"));
	json_int_t level = json_integer_value(json_object_get(a->request, "level"));

	if (json_object_get(a->request, "model"))
		buf_printf(&a->why, "model %s was asked for by name", a->model->id);
	else
		buf_printf(&a->why, "role %s, level %lld: %s", role, (long long)level,
			   a->model->id);
	buf_printf(&a->why, " (%s of %s)", a->model->name, a->model->provider->name);
}

struct completion *completion_start(struct asker *x, json_t *take_request,
				    struct completion_owner *o, struct err *e)
{
	const struct models_config_model *m = NULL;
	struct completion *a;

	if (request_check(take_request, e) == 0) {
		json_int_t level = json_integer_value(json_object_get(take_request, "level"));

		m = models_config_find(
			x->book, json_string_value(json_object_get(take_request, "model")),
			json_string_value(json_object_get(take_request, "role")),
			level < MODELS_CONFIG_LEVELS ? (unsigned)level : MODELS_CONFIG_LEVELS - 1,
			e);
	}
	if (m && x->under_way == COMPLETIONS_AT_ONCE) {
		err_set(e, ERR_LIMIT, "%d requests to models are in progress already",
			COMPLETIONS_AT_ONCE);
		m = NULL;
	}
	if (!m) {
		json_decref(take_request);
		return NULL;
	}
	a = completion_must(calloc(1, sizeof(*a)));
	*a = (struct completion){ .asker = x,
				  .owner = o,
				  .request = take_request,
				  .model = m,
				  .began_ms = loop_now_ms() };
	a->body = completion_must(dialect_body(take_request, m));
	a->url = url_of(m->provider);
	a->ends_ms = a->began_ms + deadline_of(a);
	set_headers(a);
	say_route(a);
	timer_init(&a->silence, x->loop, completion_silent);
	timer_init(&a->deadline, x->loop, too_late);
	timer_init(&a->next, x->loop, next_due);
	timer_set(&a->deadline, deadline_of(a));
	x->under_way++;
	timer_set(&a->next, 0);
	return a;
}

json_t *completion_cancel(struct completion *a)
{
	json_t *answer;

	if (a->easy || a->name) {
		end_try(a);
		count_try(a);
	}
	if (!a->failure.category)
		failure_set(&a->failure, provider_of(a), "cancelled", 0, "cancelled");
	answer = bad_answer(a);
	free_ask(a);
	return answer;
}

/* ---- life of all ---- */

static void read_ca(struct asker *x)
{
	static const char *const files[] = { "/etc/ssl/certs/ca-certificates.crt",
					     "/etc/pki/tls/certs/ca-bundle.crt",
					     "/etc/ssl/cert.pem" };
	struct buf pem = { 0 };

	for (unsigned i = 0; i < ARRAY_LEN(files) && !pem.len; i++) {
		auto_fd int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		ssize_t n;

		while (fd >= 0 && pem.len < CA_MOST &&
		       (n = read(fd, buf_space(&pem, 65536), 65536)) > 0)
			buf_grew(&pem, (size_t)n);
	}
	x->ca_len = pem.len;
	x->ca = pem.len ? buf_steal(&pem) : NULL;
	if (!x->ca)
		log_warn(
			"no authorities for TLS were found: install ca-certificates, or set ca_file");
	buf_fini(&pem);
}

int asker_init(struct asker *x, struct loop *l, const struct models_config *b, struct err *e)
{
	*x = (struct asker){ .loop = l, .book = b };
	if (curl_load(e) < 0 || resolver_init(&x->names, l, NULL, e) < 0 ||
	    id_random(&x->seed, sizeof(x->seed), e) < 0)
		return -1;
	read_ca(x);
	curl_loop_init(&x->multi, l, completion_tried);
	return 0;
}
