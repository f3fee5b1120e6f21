/* trace.c - see trace.h. */
#include "trace/trace.h"
#include "base/clock.h"
#include "base/log.h"
#include "loop/loop.h"
#include "outbound/outbound.h"
#include "trace/otlp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRACE_EVERY_MS = 1000, TRACE_PAUSE_MS = 30000, TRACE_TIMEOUT_MS = 5000 };

static struct tracer {
	int running;
	struct trace_conf conf;
	char url[1024], host[256];
	uint64_t threshold; /* a random number below it: the trace is recorded */
	struct outbound *outbound;
	struct outbound_request request;
	unsigned sending;  /* spans of the request in progress */
	uint64_t pause_ms; /* after failures, until the next attempt */
	struct timer timer;
	struct trace_span *ring; /* TRACE_SPANS */
	unsigned first, n;
	struct trace_figures figures;
	int was_dead; /* the failure was logged */
} tracer;

int64_t trace_now_ns(void)
{
	return (int64_t)clock_ns(CLOCK_REALTIME);
}

/* ---- the collector ---- */

/* Sends what is in the queue: after a pause if the collector has failed, at once if there is a whole
 * batch, else within a second. */
static void trace_wait(void)
{
	int full = tracer.n >= TRACE_BATCH && !tracer.pause_ms;

	if (tracer.sending || !tracer.n)
		return;
	if (full && tracer.n % TRACE_BATCH == 0)
		timer_set(&tracer.timer, 0);
	else if (!timer_pending(&tracer.timer))
		timer_set(&tracer.timer, tracer.pause_ms ? tracer.pause_ms
					 : full          ? 0
							 : TRACE_EVERY_MS);
}

static void trace_lost(const char *why)
{
	tracer.figures.failed += tracer.sending;
	tracer.pause_ms = tracer.pause_ms ? tracer.pause_ms * 2 : TRACE_EVERY_MS * 2;
	if (tracer.pause_ms > TRACE_PAUSE_MS)
		tracer.pause_ms = TRACE_PAUSE_MS;
	if (!tracer.was_dead)
		log_warn("the collector of traces does not accept spans", LOG_S("why", why));
	tracer.was_dead = 1;
}

static void trace_answered(struct outbound_request *r, const struct outbound_answer *a,
			   const struct err *e)
{
	char status[32];
	unsigned rejected;

	(void)r;
	if (a && a->status / 100 == 2) {
		rejected = otlp_rejected(a->body, tracer.sending);
		tracer.figures.failed += rejected;
		tracer.figures.sent += tracer.sending - rejected;
		tracer.pause_ms = 0;
		tracer.was_dead = 0;
	} else {
		snprintf(status, sizeof(status), "status %d", a ? a->status : 0);
		trace_lost(a ? status : e->msg);
	}
	tracer.sending = 0;
	trace_wait();
}

static void trace_send(struct timer *t)
{
	struct outbound_message m = { .url = tracer.url,
				      .timeout_ms = TRACE_TIMEOUT_MS,
				      .allow_private = 1 };
	struct otlp_resource resource = { .version = ATOLL_VERSION, .host = tracer.host };
	unsigned n = tracer.n < TRACE_BATCH ? tracer.n : TRACE_BATCH, nheaders = 0;
	auto_buf struct buf body = { 0 };
	struct err e;

	(void)t;
	if (!n || tracer.sending)
		return;
	otlp_request(&body, &resource, tracer.ring, TRACE_SPANS, tracer.first, n);
	m.headers[nheaders++] = "Content-Type: application/json";
	for (const char *const *h = tracer.conf.headers; h && *h && nheaders < OUTBOUND_HEADERS;
	     h++)
		m.headers[nheaders++] = *h;
	m.body = body.p;
	m.body_len = body.len;
	tracer.first = (tracer.first + n) % TRACE_SPANS;
	tracer.n -= n;
	tracer.sending = n;
	tracer.request = (struct outbound_request){ .done = trace_answered };
	if (outbound_send(tracer.outbound, &tracer.request, &m, &e) < 0) {
		trace_lost(e.msg);
		tracer.sending = 0;
		trace_wait();
	}
}

/* ---- spans ---- */

void trace_request(struct trace_context *out, const char *traceparent)
{
	uint64_t chance;

	*out = (struct trace_context){ 0 };
	if (traceparent)
		(void)trace_parse(traceparent, out);
	if (!tracer.running)
		return;
	if (out->is_valid) {
		out->is_recorded = out->flags & 1;
		trace_child(out, out);
		return;
	}
	trace_new_id((uint8_t *)&chance, sizeof(chance));
	if (chance >= tracer.threshold)
		return;
	trace_new_id(out->trace, sizeof(out->trace));
	trace_new_id(out->span, sizeof(out->span));
	out->is_valid = out->is_recorded = out->flags = 1;
}

struct trace_span *trace_add(const struct trace_context *at, const char *name, enum trace_kind kind,
			     int64_t start_ns, int64_t end_ns)
{
	struct trace_span *s;

	if (!at->is_recorded || !tracer.running)
		return NULL;
	if (tracer.n == TRACE_SPANS) {
		tracer.figures.dropped++;
		return NULL;
	}
	s = &tracer.ring[(tracer.first + tracer.n++) % TRACE_SPANS];
	s->at = *at;
	s->kind = kind;
	s->start_ns = start_ns;
	s->end_ns = end_ns > start_ns ? end_ns : start_ns; /* the clock may have been set back */
	s->failed = 0;
	s->n = 0;
	snprintf(s->name, sizeof(s->name), "%s", name);
	trace_wait();
	return s;
}

void trace_text(struct trace_span *s, const char *key, const char *value)
{
	if (!s || !value || s->n == TRACE_ATTRIBUTES)
		return;
	s->v[s->n].key = key;
	s->v[s->n].is_number = 0;
	snprintf(s->v[s->n].text, sizeof(s->v[s->n].text), "%s", value);
	s->n++;
}

void trace_number(struct trace_span *s, const char *key, int64_t value)
{
	if (!s || s->n == TRACE_ATTRIBUTES)
		return;
	s->v[s->n].key = key;
	s->v[s->n].is_number = 1;
	s->v[s->n].number = value;
	s->n++;
}

void trace_failed(struct trace_span *s)
{
	if (s)
		s->failed = 1;
}

struct trace_figures trace_figures(void)
{
	return tracer.figures;
}

/* ---- life ---- */

int trace_start(const struct trace_conf *conf, struct loop *l, struct outbound *o, struct err *e)
{
	tracer = (struct tracer){ .conf = *conf, .outbound = o };
	if (otlp_url(conf->endpoint, tracer.url, sizeof(tracer.url)) < 0)
		return err_set(e, ERR_INVALID, "trace.endpoint has more than %zu bytes",
			       sizeof(tracer.url) - 16);
	if (gethostname(tracer.host, sizeof(tracer.host) - 1) < 0)
		tracer.host[0] = 0;
	tracer.threshold =
		conf->sample >= 1 ? UINT64_MAX : (uint64_t)(conf->sample * 18446744073709551615.0);
	tracer.ring = calloc(TRACE_SPANS, sizeof(*tracer.ring));
	if (!tracer.ring)
		return err_sys(e, "a queue of spans");
	timer_init_late(&tracer.timer, l, trace_send);
	tracer.running = 1;
	return 0;
}

void trace_stop(void)
{
	if (!tracer.running)
		return;
	outbound_cancel(&tracer.request);
	timer_fini(&tracer.timer);
	free(tracer.ring);
	tracer = (struct tracer){ 0 };
}
