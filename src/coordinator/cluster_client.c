/* cluster_client.c - see cluster_client.h. */
#include "coordinator/cluster_client.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "outbound/json_pipe.h"

#include <stdlib.h>
#include <unistd.h>

enum { CLUSTER_LOOK_MS = 250 };

struct cluster_client {
	struct loop *loop;
	struct json_pipe pipe;
	int connected;
	void (*need_line)(void *user);
	void *user;
	void (*send_first)(void *user);
	void *first_user;
	int sends_first;                  /* a call of it is in progress */
	struct cluster_request *requests; /* the newest first */
	unsigned nrequests;
	uint64_t numbers;
	struct timer look; /* requests a connection, and ends requests without an answer */
};

static void cluster_forget(struct cluster_request *r)
{
	struct cluster_client *x = r->client;
	struct cluster_request **at = &x->requests;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	x->nrequests--;
	r->client = NULL;
	json_decref(r->message);
	r->message = NULL;
}

static void cluster_fail(struct cluster_request *r, enum err_kind kind, const char *why)
{
	struct err e;

	err_set(&e, kind, "%s", why);
	cluster_forget(r);
	r->done(r, NULL, &e);
}

static void cluster_answered(struct json_pipe *p, const json_t *m)
{
	struct cluster_client *x = loop_owner(p, struct cluster_client, pipe);
	uint64_t number = (uint64_t)json_integer_value(json_object_get(m, "done"));
	const char *error = json_string_value(json_object_get(m, "error"));
	json_int_t kind = json_integer_value(json_object_get(m, "kind"));
	struct cluster_request *r = x->requests;
	struct err e;

	while (r && r->number != number)
		r = r->next;
	if (!r) /* cancelled, or too late */
		return;
	cluster_forget(r);
	if (error)
		err_set(&e, kind > ERR_NONE && kind <= ERR_SYS ? (enum err_kind)kind : ERR_SYS,
			"%s", error);
	r->done(r, error ? NULL : m, error ? &e : NULL);
}

/* The oldest request up to that number whose time has ended or, with `sent`, that was sent. */
static struct cluster_request *cluster_overdue(const struct cluster_client *x, uint64_t last,
					       int sent)
{
	struct cluster_request *found = NULL;
	uint64_t now = loop_now_ms();

	for (struct cluster_request *r = x->requests; r; r = r->next)
		if (r->number <= last && (sent ? !r->message : r->until_ms <= now))
			found = r;
	return found;
}

static void cluster_gone(struct json_pipe *p)
{
	struct cluster_client *x = loop_owner(p, struct cluster_client, pipe);
	uint64_t last = x->numbers; /* requests made in done() go to the next process */
	struct cluster_request *r;

	json_pipe_fini(p);
	x->connected = 0;
	log_warn("connection to the cluster process lost", LOG_U("requests", x->nrequests));
	while ((r = cluster_overdue(x, last, 1)))
		cluster_fail(
			r, ERR_SYS,
			"the cluster process ended; it is not known whether the request had an effect");
	timer_set(&x->look, 0);
}

static void cluster_look(struct timer *t)
{
	struct cluster_client *x = loop_owner(t, struct cluster_client, look);
	uint64_t last = x->numbers;
	struct cluster_request *r;

	while ((r = cluster_overdue(x, last, 0)))
		if (!r->until_ms)
			cluster_fail(r, ERR_LIMIT,
				     "too many requests to the cluster process are in progress");
		else
			cluster_fail(r, ERR_SYS,
				     r->message ? "the cluster process does not start"
						: "the cluster process does not answer");
	if (!x->connected)
		x->need_line(x->user);
	if (!x->connected || x->nrequests)
		timer_set(&x->look, CLUSTER_LOOK_MS);
}

int cluster_client_new(struct cluster_client **out, struct loop *l, void (*need_line)(void *user),
		       void *user, struct err *e)
{
	struct cluster_client *x = calloc(1, sizeof(*x));

	if (!x)
		return err_sys(e, "a client of the cluster process");
	*x = (struct cluster_client){
		.loop = l, .pipe.fd = -1, .need_line = need_line, .user = user
	};
	timer_init(&x->look, l, cluster_look);
	timer_set(&x->look, 0);
	*out = x;
	return 0;
}

void cluster_client_free(struct cluster_client *x)
{
	if (!x)
		return;
	while (x->requests)
		cluster_forget(x->requests);
	if (x->connected)
		json_pipe_fini(&x->pipe);
	timer_fini(&x->look);
	free(x);
}

static void cluster_pass(struct cluster_client *x, struct cluster_request *r)
{
	json_object_set_new(r->message, "ask", json_integer((json_int_t)r->number));
	json_pipe_send(&x->pipe, r->message);
	r->message = NULL;
}

void cluster_client_connect(struct cluster_client *x, int take_fd)
{
	if (x->connected) {
		close(take_fd);
		return;
	}
	x->pipe.message = cluster_answered;
	x->pipe.gone = cluster_gone;
	json_pipe_init(&x->pipe, x->loop, take_fd);
	x->connected = 1;
	for (struct cluster_request *r = x->requests; r; r = r->next)
		if (r->message)
			cluster_pass(x, r);
}

void cluster_client_before(struct cluster_client *x, void (*send_first)(void *user), void *user)
{
	x->send_first = send_first;
	x->first_user = user;
}

static void cluster_send_first(struct cluster_client *x)
{
	if (!x->send_first || x->sends_first)
		return;
	x->sends_first = 1;
	x->send_first(x->first_user);
	x->sends_first = 0;
}

void cluster_client_send(struct cluster_client *x, struct cluster_request *r, json_t *take_message)
{
	int full;

	cluster_send_first(x);
	full = x->nrequests >= CLUSTER_REQUESTS;

	r->client = x;
	r->number = ++x->numbers;
	r->message = take_message;
	r->until_ms = full ? 0 : loop_now_ms() + CLUSTER_ANSWER_MS;
	r->next = x->requests;
	x->requests = r;
	x->nrequests++;
	if (x->connected && !full)
		cluster_pass(x, r);
	if (full || !timer_pending(&x->look))
		timer_set(&x->look, full ? 0 : CLUSTER_LOOK_MS);
}

void cluster_client_cancel(struct cluster_request *r)
{
	if (r->client)
		cluster_forget(r);
}
