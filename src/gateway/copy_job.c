/* copy_job.c - see copy_job.h.
 *
 *   GET -> node `from`    head: its length -> PUT -> node `to`
 *   body of the answer ------------------------------> body of the request
 *
 * The receiver checks the digest at the end of the bytes, so an answer that is cut is never kept. */
#include "gateway/copy_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { COPY_JOB_MS = 30 * 60 * 1000, COPY_HEAD_MS = 60000 };

static void copy_end_release(struct copy_end *x)
{
	struct upstream_link link = { .fd = -1 };

	tunnels_cancel(&x->ask);
	if (!x->has_link)
		return;
	x->has_link = 0;
	if (x->has_ended && x->up.spare.fd >= 0)
		link = x->up.spare;
	x->up.spare = (struct upstream_link){ .fd = -1 };
	upstream_close(&x->up);
	tunnels_give(x->job->tunnels, x->node, link);
}

void copy_job_cancel(struct copy_job *j)
{
	if (!j->is_active)
		return;
	j->is_active = 0;
	copy_end_release(&j->from);
	copy_end_release(&j->to);
	timer_fini(&j->clock);
	timer_fini(&j->put);
	buf_fini(&j->get_head);
	buf_fini(&j->put_head);
	buf_fini(&j->early);
}

static void copy_job_clock(struct timer *t)
{
	struct copy_job *j = loop_owner(t, struct copy_job, clock);
	int is_done = j->to.has_ended && (j->to.status == 201 || j->to.status == 409);
	char why[sizeof(j->why)];

	snprintf(why, sizeof(why), "%s", j->why[0] ? j->why : "it did not arrive in time");
	copy_job_cancel(j);
	j->done(j, is_done ? NULL : why);
}

/* The end: not from within a callback of a connection. */
static void copy_job_end(struct copy_job *j, unsigned node, const char *why)
{
	if (!j->why[0])
		snprintf(j->why, sizeof(j->why), "node %u: %.150s", node, why);
	timer_set(&j->clock, 0);
}

/* ---- the receiver ---- */

static const char *copy_to_head(struct upstream *u, const struct http_answer *a)
{
	loop_owner(u, struct copy_end, up)->status = a->status;
	return NULL;
}

static void copy_to_body(struct upstream *u, const char *bytes, size_t n)
{
	struct copy_end *x = loop_owner(u, struct copy_end, up);

	if (x->status >= 300 && !x->job->why[0])
		snprintf(x->job->why, sizeof(x->job->why), "node %u answers %d: %.*s", x->node,
			 x->status, (int)(n < 140 ? n : 140), bytes);
}

static void copy_to_drain(struct upstream *u)
{
	struct copy_job *j = loop_owner(u, struct copy_end, up)->job;

	if (j->from.has_link && !j->from.has_ended)
		upstream_pause(&j->from.up, 0);
}

static void copy_to_over(struct upstream *u, const char *why)
{
	struct copy_end *x = loop_owner(u, struct copy_end, up);

	x->has_ended = 1;
	if (why)
		x->status = 0;
	copy_job_end(x->job, x->node, why ? why : "the copy was refused");
}

static const struct upstream_events copy_to_events = {
	.head = copy_to_head, .body = copy_to_body, .drain = copy_to_drain, .over = copy_to_over
};

static void copy_to_begin(struct copy_job *j, struct upstream_link take_link)
{
	j->to.has_link = 1;
	upstream_init(&j->to.up, j->loop, take_link, COPY_HEAD_MS, &copy_to_events);
	upstream_ask(&j->to.up,
		     &(struct upstream_question){ .head = j->put_head.p, .len = j->put_head.len });
	if (j->early.len)
		(void)upstream_body(&j->to.up, j->early.p, j->early.len);
	if (j->from.has_ended)
		upstream_body_end(&j->to.up);
	else
		upstream_pause(&j->from.up, 0);
}

static void copy_to_connected(struct tunnel_ask *a, const struct upstream_link *take_link)
{
	struct copy_end *x = loop_owner(a, struct copy_end, ask);

	if (take_link)
		copy_to_begin(x->job, *take_link);
	else
		copy_job_end(x->job, x->node, a->why);
}

/* ---- the sender ---- */

static const char *copy_from_head(struct upstream *u, const struct http_answer *a)
{
	struct copy_end *x = loop_owner(u, struct copy_end, up);
	struct copy_job *j = x->job;

	x->status = a->status;
	if (a->status != 200 || a->length == UINT64_MAX)
		return a->status == 404 ? "it has no such snapshot"
					: "it does not send the snapshot";
	buf_printf(&j->put_head,
		   "PUT /cluster/copies/%s HTTP/1.1\r\nHost: localhost\r\nAtoll-Identity: %s\r\n"
		   "Content-Type: application/octet-stream\r\nContent-Length: %" PRIu64 "\r\n\r\n",
		   j->snapshot, j->identity, a->length);
	upstream_pause(u, 1);
	timer_set(&j->put, 0);
	return NULL;
}

static void copy_from_body(struct upstream *u, const char *bytes, size_t n)
{
	struct copy_job *j = loop_owner(u, struct copy_end, up)->job;

	if (!j->to.has_link)
		buf_add(&j->early, bytes, n);
	else if (!j->to.has_ended && upstream_body(&j->to.up, bytes, n))
		upstream_pause(u, 1);
}

static void copy_from_over(struct upstream *u, const char *why)
{
	struct copy_end *x = loop_owner(u, struct copy_end, up);

	x->has_ended = 1;
	if (why)
		copy_job_end(x->job, x->node, why);
	else if (x->job->to.has_link && !x->job->to.has_ended)
		upstream_body_end(&x->job->to.up);
}

static void copy_from_drain(struct upstream *u)
{
	(void)u;
}

static const struct upstream_events copy_from_events = { .head = copy_from_head,
							 .body = copy_from_body,
							 .drain = copy_from_drain,
							 .over = copy_from_over };

static void copy_from_begin(struct copy_job *j, struct upstream_link take_link)
{
	j->from.has_link = 1;
	upstream_init(&j->from.up, j->loop, take_link, COPY_HEAD_MS, &copy_from_events);
	upstream_ask(&j->from.up,
		     &(struct upstream_question){ .head = j->get_head.p, .len = j->get_head.len });
	upstream_body_end(&j->from.up);
}

static void copy_from_connected(struct tunnel_ask *a, const struct upstream_link *take_link)
{
	struct copy_end *x = loop_owner(a, struct copy_end, ask);

	if (take_link)
		copy_from_begin(x->job, *take_link);
	else
		copy_job_end(x->job, x->node, a->why);
}

/* ---- the job ---- */

static void copy_job_put(struct timer *t)
{
	struct copy_job *j = loop_owner(t, struct copy_job, put);
	struct upstream_link link = { .fd = -1 };
	int rc = tunnels_take(j->tunnels, j->to.node, &j->to.ask, &link);

	if (rc > 0)
		copy_to_begin(j, link);
	else if (rc < 0)
		copy_job_end(j, j->to.node, j->to.ask.why);
}

void copy_job_begin(struct copy_job *j, const struct copy_job_what *w)
{
	struct upstream_link link = { .fd = -1 };
	int rc;

	j->loop = w->loop;
	j->tunnels = w->tunnels;
	j->is_active = 1;
	j->from = (struct copy_end){ .job = j, .node = w->from, .ask.done = copy_from_connected };
	j->to = (struct copy_end){ .job = j, .node = w->to, .ask.done = copy_to_connected };
	j->from.up.spare.fd = j->to.up.spare.fd = -1;
	snprintf(j->snapshot, sizeof(j->snapshot), "%s", w->snapshot);
	snprintf(j->identity, sizeof(j->identity), "%s", w->identity);
	timer_init(&j->clock, w->loop, copy_job_clock);
	timer_init(&j->put, w->loop, copy_job_put);
	timer_set(&j->clock, COPY_JOB_MS);
	buf_printf(&j->get_head,
		   "GET /cluster/%s/%s HTTP/1.1\r\nHost: localhost\r\nAtoll-Identity: %s\r\n\r\n",
		   w->kind, w->snapshot, w->identity);
	rc = tunnels_take(w->tunnels, w->from, &j->from.ask, &link);
	if (rc > 0)
		copy_from_begin(j, link);
	else if (rc < 0)
		copy_job_end(j, w->from, j->from.ask.why);
}
