/* llm_client.c - see llm.h. */
#include "llm/llm.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "llm/dialect.h"
#include "outbound/json_pipe.h"

#include <stdio.h>
#include <string.h>

enum { AGAIN_MS = 100, LOOK_MS = 1000 };

struct llm_client {
	struct loop *loop;
	struct json_pipe pipe;
	int connected;
	void (*need_line)(void *user);
	void *user;
	json_t *book, *figures;
	struct llm_request *asks; /* the newest first */
	unsigned nasks;
	uint64_t numbers;
	struct timer need, look; /* look: ends requests that wait too long for a connection */
};

/* ---- figures ---- */

static void add_int(json_t *to, const char *name, json_int_t more)
{
	json_int_t now = json_integer_value(json_object_get(to, name));

	json_object_set_new(to, name, json_integer(now + (more > 0 ? more : 0)));
}

static void llm_client_count(struct llm_client *x, const json_t *answer, int failed)
{
	static const char *const counters[] = { "calls", "in", "out", "cache_read", "cache_write" };
	const char *model = json_string_value(json_object_get(answer, "model"));
	const json_t *usage = json_object_get(answer, "usage");
	json_t *row = model ? json_object_get(x->figures, model) : NULL;
	double cost;

	if (!model) /* it reached no model */
		return;
	if (!row) {
		row = json_object();
		json_object_set_new(x->figures, model, row);
	}
	add_int(row, "asked", 1);
	add_int(row, "failed", failed);
	for (unsigned i = 0; i < ARRAY_LEN(counters); i++)
		add_int(row, counters[i], json_integer_value(json_object_get(usage, counters[i])));
	cost = json_number_value(json_object_get(row, "cost")) +
	       json_number_value(json_object_get(usage, "cost"));
	json_object_set_new(row, "cost", json_real(cost));
}

/* ---- answers ---- */

static struct llm_request *llm_client_find(struct llm_client *x, uint64_t number)
{
	struct llm_request *a = x->asks;

	while (a && a->number != number)
		a = a->next;
	return a;
}

static void llm_client_forget(struct llm_request *a)
{
	struct llm_client *x = a->line;
	struct llm_request **at = &x->asks;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	x->nasks--;
	a->line = NULL;
	json_decref(a->request);
	a->request = NULL;
}

static void llm_client_trace(const struct llm_request *a, const json_t *answer, int failed)
{
	const json_t *usage = json_object_get(answer, "usage");
	struct trace_span *s;

	if (!a->trace.is_recorded)
		return;
	s = trace_add(&a->trace, "model call", TRACE_CLIENT, a->trace_ns, trace_now_ns());
	trace_text(s, "gen_ai.request.model", json_string_value(json_object_get(answer, "model")));
	trace_number(s, "gen_ai.usage.input_tokens",
		     json_integer_value(json_object_get(usage, "in")));
	trace_number(s, "gen_ai.usage.output_tokens",
		     json_integer_value(json_object_get(usage, "out")));
	if (failed)
		trace_failed(s);
}

static void llm_client_answered(struct llm_client *x, const json_t *m)
{
	struct llm_request *a =
		llm_client_find(x, (uint64_t)json_integer_value(json_object_get(m, "done")));
	const json_t *answer = json_object_get(m, "answer");
	json_int_t kind = json_integer_value(json_object_get(m, "kind"));
	struct err e = { .kind = kind > ERR_NONE && kind <= ERR_SYS ? (enum err_kind)kind
								    : ERR_SYS };

	snprintf(e.msg, sizeof(e.msg), "%s",
		 json_string_value(json_object_get(m, "message")) ?: "");
	llm_client_count(x, answer, kind != ERR_NONE);
	if (!a) /* cancelled */
		return;
	llm_client_trace(a, answer, kind != ERR_NONE);
	llm_client_forget(a);
	a->done(a, answer, kind ? &e : NULL);
}

static void process_says(struct json_pipe *p, const json_t *m)
{
	struct llm_client *x = loop_owner(p, struct llm_client, pipe);
	json_t *book = json_object_get(m, "book");
	struct llm_request *a;

	if (json_object_get(m, "done")) {
		llm_client_answered(x, m);
	} else if (json_object_get(m, "said")) {
		a = llm_client_find(x, (uint64_t)json_integer_value(json_object_get(m, "said")));
		if (a && a->said)
			a->said(a, json_object_get(m, "event"));
	} else if (json_object_get(m, "taken")) {
		a = llm_client_find(x, (uint64_t)json_integer_value(json_object_get(m, "taken")));
		if (a) {
			json_decref(a->request);
			a->request = NULL;
		}
	} else if (json_is_object(book)) {
		json_decref(x->book);
		x->book = json_incref(book);
	}
}

/* A request that will have no answer: its cost is unknown. */
static void llm_client_fail(struct llm_request *a, const char *why)
{
	struct err e = { .kind = ERR_SYS };
	json_t *answer = json_pack("{s:{s:i, s:i, s:i, s:i, s:i, s:f}, s:i, s:{s:s, s:s, s:b}}",
				   "usage", "calls", 0, "in", 0, "out", 0, "cache_read", 0,
				   "cache_write", 0, "cost", 0.0, "tries", 0, "error", "category",
				   "unavailable", "message", why, "retriable", 1);

	snprintf(e.msg, sizeof(e.msg), "%s", why);
	llm_client_trace(a, answer, 1);
	llm_client_forget(a);
	a->done(a, answer, &e);
	json_decref(answer);
}

static struct llm_request *sent_before(const struct llm_client *x, uint64_t number)
{
	struct llm_request *a = x->asks;

	while (a && (a->request || a->number > number))
		a = a->next;
	return a;
}

static void process_gone(struct json_pipe *p)
{
	struct llm_client *x = loop_owner(p, struct llm_client, pipe);
	uint64_t last = x->numbers; /* requests made in done() go to the next process */
	struct llm_request *a;

	json_pipe_fini(p);
	x->connected = 0;
	log_warn("connection to the llm process lost", LOG_U("questions", x->nasks));
	timer_set(&x->need, AGAIN_MS);
	while ((a = sent_before(x, last)))
		llm_client_fail(a, "the llm process ended");
}

/* ---- the line ---- */

static void send_ask(struct llm_client *x, struct llm_request *a)
{
	json_pipe_send(&x->pipe, json_pack("{s:I, s:o}", "ask", (json_int_t)a->number, "request",
					   json_incref(a->request)));
}

static void llm_client_need(struct timer *t)
{
	struct llm_client *x = loop_owner(t, struct llm_client, need);

	x->need_line(x->user);
}

static void llm_client_look(struct timer *t)
{
	struct llm_client *x = loop_owner(t, struct llm_client, look);
	uint64_t now = loop_now_ms(), last = x->numbers;
	struct llm_request *a;

	do {
		a = x->asks;
		while (a && (!a->request || a->number > last || now - a->since_ms < LLM_WAIT_MS))
			a = a->next;
		if (a)
			llm_client_fail(a, "the llm process does not start");
	} while (a);
	if (x->nasks && !x->connected)
		timer_set(&x->look, LOOK_MS);
}

int llm_client_new(struct llm_client **out, struct loop *l, void (*need_line)(void *user),
		   void *user, struct err *e)
{
	struct llm_client *x = calloc(1, sizeof(*x));

	if (!x)
		return err_sys(e, "a line to models");
	*x = (struct llm_client){ .loop = l,
				  .pipe.fd = -1,
				  .need_line = need_line,
				  .user = user,
				  .figures = json_object() };
	timer_init(&x->need, l, llm_client_need);
	timer_init(&x->look, l, llm_client_look);
	timer_set(&x->need, 0);
	*out = x;
	return 0;
}

void llm_client_free(struct llm_client *x)
{
	if (!x)
		return;
	while (x->asks)
		llm_client_forget(x->asks);
	if (x->connected)
		json_pipe_fini(&x->pipe);
	timer_fini(&x->need);
	timer_fini(&x->look);
	json_decref(x->book);
	json_decref(x->figures);
	free(x);
}

void llm_client_connect(struct llm_client *x, int take_fd)
{
	if (x->connected) { /* one call is enough; requests made in it would be lost */
		close(take_fd);
		return;
	}
	x->pipe.message = process_says;
	x->pipe.gone = process_gone;
	json_pipe_init(&x->pipe, x->loop, take_fd);
	x->connected = 1;
	for (struct llm_request *a = x->asks; a; a = a->next)
		if (a->request)
			send_ask(x, a);
}

struct loop *llm_loop(const struct llm_client *x)
{
	return x ? x->loop : NULL;
}

const json_t *llm_models(const struct llm_client *x)
{
	return x ? x->book : NULL;
}

const json_t *llm_roles(const struct llm_client *x)
{
	return x ? json_object_get(x->book, "roles") : NULL;
}

const json_t *llm_figures(const struct llm_client *x)
{
	return x ? x->figures : NULL;
}

/* ---- questions ---- */

int llm_start(struct llm_client *x, struct llm_request *a, json_t *take_request, struct err *e)
{
	int rc = 0;

	if (!x)
		rc = err_set(e, ERR_NOT_FOUND, "no model is configured");
	else if (x->nasks == LLM_REQUESTS)
		rc = err_set(e, ERR_LIMIT, "%d requests to models are in progress already",
			     LLM_REQUESTS);
	else
		rc = request_check(take_request, e);
	if (rc < 0) {
		json_decref(take_request);
		return -1;
	}
	if (a->said)
		json_object_set_new(take_request, "stream", json_true());
	a->line = x;
	a->number = ++x->numbers;
	a->request = take_request;
	a->since_ms = loop_now_ms();
	trace_child(&a->trace, trace_current());
	if (a->trace.is_recorded)
		a->trace_ns = trace_now_ns();
	a->next = x->asks;
	x->asks = a;
	x->nasks++;
	if (x->connected)
		send_ask(x, a);
	else
		timer_set(&x->look, LOOK_MS);
	return 0;
}

void llm_cancel(struct llm_request *a)
{
	struct llm_client *x = a->line;
	uint64_t number = a->number;

	if (!x)
		return;
	llm_client_forget(a);
	if (x->connected) /* also if the process never accepted it: then it is ignored there */
		json_pipe_send(&x->pipe, json_pack("{s:I}", "cancel", (json_int_t)number));
}
