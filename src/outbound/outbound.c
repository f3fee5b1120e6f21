/* outbound.c - see outbound.h. */
#include "outbound/outbound.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "outbound/json_pipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { AGAIN_MS = 100, LOOK_MS = 1000 };

struct outbound {
	struct loop *loop;
	struct json_pipe pipe;
	int connected;
	void (*need_line)(void *user);
	void *user;
	struct outbound_request *requests; /* the newest first */
	unsigned nrequests;
	uint64_t numbers;
	struct timer need, look; /* look: ends requests that wait too long for a connection */
};

static struct outbound_request *outbound_find(struct outbound *x, uint64_t number)
{
	struct outbound_request *r = x->requests;

	while (r && r->number != number)
		r = r->next;
	return r;
}

static void outbound_forget(struct outbound_request *r)
{
	struct outbound *x = r->client;
	struct outbound_request **at = &x->requests;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	x->nrequests--;
	r->client = NULL;
	json_decref(r->message);
	r->message = NULL;
}

static void outbound_fail(struct outbound_request *r, const char *why)
{
	struct err e;

	err_set(&e, ERR_SYS, "%s", why);
	outbound_forget(r);
	r->done(r, NULL, &e);
}

static void outbound_says(struct json_pipe *p, const json_t *m)
{
	struct outbound *x = loop_owner(p, struct outbound, pipe);
	struct outbound_request *r =
		outbound_find(x, (uint64_t)json_integer_value(json_object_get(m, "done")));
	const char *error = json_string_value(json_object_get(m, "error"));
	json_int_t kind = json_integer_value(json_object_get(m, "kind"));
	struct outbound_answer a = {
		.status = (int)json_integer_value(json_object_get(m, "status")),
		.body = json_string_value(json_object_get(m, "body")) ?: "",
		.cut = json_is_true(json_object_get(m, "cut")),
		.took_ms = (uint32_t)json_integer_value(json_object_get(m, "took_ms")),
	};
	struct err e;

	if (!r) /* cancelled */
		return;
	outbound_forget(r);
	if (error)
		err_set(&e, kind > ERR_NONE && kind <= ERR_SYS ? (enum err_kind)kind : ERR_SYS,
			"%s", error);
	r->done(r, error ? NULL : &a, error ? &e : NULL);
}

static struct outbound_request *outbound_sent_before(const struct outbound *x, uint64_t number)
{
	struct outbound_request *r = x->requests;

	while (r && (r->message || r->number > number))
		r = r->next;
	return r;
}

static void outbound_gone(struct json_pipe *p)
{
	struct outbound *x = loop_owner(p, struct outbound, pipe);
	uint64_t last = x->numbers; /* requests made in done() go to the next process */
	struct outbound_request *r;

	json_pipe_fini(p);
	x->connected = 0;
	if (x->nrequests)
		log_warn("connection to the outbound process lost",
			 LOG_U("requests", x->nrequests));
	while ((r = outbound_sent_before(x, last)))
		outbound_fail(r, "the outbound process ended");
}

/* body NULL: it is in the message. */
static void outbound_pass(struct outbound *x, struct outbound_request *r, const char *body,
			  size_t body_len)
{
	json_pipe_send_body(&x->pipe,
			    json_pack("{s:I, s:o}", "send", (json_int_t)r->number, "message",
				      r->message),
			    body, body_len);
	r->message = NULL;
}

static void outbound_need(struct timer *t)
{
	struct outbound *x = loop_owner(t, struct outbound, need);

	if (!x->connected && x->nrequests)
		x->need_line(x->user);
}

static void outbound_look(struct timer *t)
{
	struct outbound *x = loop_owner(t, struct outbound, look);
	uint64_t now = loop_now_ms(), last = x->numbers;
	struct outbound_request *r;

	do {
		r = x->requests;
		while (r &&
		       (!r->message || r->number > last || now - r->since_ms < OUTBOUND_WAIT_MS))
			r = r->next;
		if (r)
			outbound_fail(r, "the outbound process does not start");
	} while (r);
	if (x->nrequests && !x->connected) {
		timer_set(&x->look, LOOK_MS);
		timer_set(&x->need, 0);
	}
}

int outbound_new(struct outbound **out, struct loop *l, void (*need_line)(void *user), void *user,
		 struct err *e)
{
	struct outbound *x = calloc(1, sizeof(*x));

	if (!x)
		return err_sys(e, "a client of the outbound process");
	*x = (struct outbound){ .loop = l, .pipe.fd = -1, .need_line = need_line, .user = user };
	timer_init(&x->need, l, outbound_need);
	timer_init(&x->look, l, outbound_look);
	*out = x;
	return 0;
}

void outbound_free(struct outbound *x)
{
	if (!x)
		return;
	while (x->requests)
		outbound_forget(x->requests);
	if (x->connected)
		json_pipe_fini(&x->pipe);
	timer_fini(&x->need);
	timer_fini(&x->look);
	free(x);
}

void outbound_connect(struct outbound *x, int take_fd)
{
	if (x->connected) {
		close(take_fd);
		return;
	}
	x->pipe.message = outbound_says;
	x->pipe.gone = outbound_gone;
	json_pipe_init(&x->pipe, x->loop, take_fd);
	x->connected = 1;
	for (struct outbound_request *r = x->requests; r; r = r->next)
		if (r->message)
			outbound_pass(x, r, NULL, 0);
}

int outbound_send(struct outbound *x, struct outbound_request *r, const struct outbound_message *m,
		  struct err *e)
{
	if (x->nrequests == OUTBOUND_REQUESTS)
		return err_set(e, ERR_LIMIT, "%d requests to other hosts are in progress already",
			       OUTBOUND_REQUESTS);
	if (outbound_message_check(m, e) < 0)
		return -1;
	r->client = x;
	r->number = ++x->numbers;
	r->message = outbound_message_json(m, !x->connected);
	r->since_ms = loop_now_ms();
	r->next = x->requests;
	x->requests = r;
	x->nrequests++;
	if (x->connected) {
		outbound_pass(x, r, m->body, m->body_len);
	} else if (!timer_pending(&x->need)) {
		timer_set(&x->need, x->numbers == 1 ? 0 : AGAIN_MS);
		timer_set(&x->look, LOOK_MS);
	}
	return 0;
}

void outbound_cancel(struct outbound_request *r)
{
	struct outbound *x = r->client;
	int sent;

	if (!x)
		return;
	sent = !r->message;
	outbound_forget(r);
	if (x->connected && sent)
		json_pipe_send(&x->pipe, json_pack("{s:I}", "cancel", (json_int_t)r->number));
}
