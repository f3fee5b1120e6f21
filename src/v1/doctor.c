/* doctor.c - see doctor.h. */
#include "v1/doctor.h"
#include "base/cleanup.h"

#include <sys/socket.h>

enum { RESULT_MAX = 65536, WAIT_MS = 20000 };

struct doctor_wait {
	struct call *call;
	struct doctor_wait *next;
};

struct doctor {
	struct doctor_wait *waiting;
	struct watch result;
	int fd; /* -1: the supervisor has not answered yet */
	struct timer limit;
};

static void doctor_stop(struct doctor *d)
{
	watch_stop(&d->result);
	own_close_fd(&d->fd);
	timer_clear(&d->limit);
}

/* What a node has found, after what this gateway has. */
static void doctor_merge(json_t *doc, const json_t *other)
{
	json_t *items = json_object_get(doc, "items"), *row;
	size_t i;

	json_array_foreach(json_object_get(other, "items"), i, row) if (json_is_object(row))
	{
		row = json_copy(row);
		json_object_set(row, "node", json_object_get(other, "node"));
		json_array_append_new(items, row);
	}
}

static void doctor_send(struct call *c, const json_t *rows)
{
	json_t *doc = json_pack("{s:o}", "items", json_copy((json_t *)rows)),
	       *node = call_own_node(c);

	if (node)
		json_object_set_new(doc, "node", node);
	c->merged_ms = WAIT_MS;
	call_merged(c, 200, doc, doctor_merge);
}

/* rows: NULL if the check failed. */
static void doctor_answer(struct doctor *d, json_t *rows)
{
	struct doctor_wait *w = d->waiting;

	doctor_stop(d);
	d->waiting = NULL;
	for (struct doctor_wait *next; w; w = next) {
		struct call *c = w->call;

		next = w->next; /* the call owns its memory */
		c->drop = NULL;
		if (rows)
			doctor_send(c, rows);
		else
			call_error(c, 503, "unavailable", "the machine could not be checked",
				   "the supervisor did not answer", "on the machine: atoll doctor");
	}
}

static void doctor_late(struct timer *t)
{
	doctor_answer(loop_owner(t, struct doctor, limit), NULL);
}

static void doctor_ready(struct watch *w, unsigned what)
{
	struct doctor *d = loop_owner(w, struct doctor, result);
	static char text[RESULT_MAX];
	ssize_t n = recv(d->fd, text, sizeof(text), MSG_DONTWAIT);
	json_t *rows = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;

	(void)what;
	doctor_answer(d, json_is_array(rows) ? rows : NULL);
	json_decref(rows);
}

void doctor_connect(struct api *a, int take_fd)
{
	struct doctor *d = a->doctor;

	if (!d || !d->waiting || d->fd >= 0) {
		close(take_fd);
		return;
	}
	d->fd = take_fd;
	watch_init(&d->result, a->loop, d->fd, doctor_ready);
	watch_want(&d->result, LOOP_READ);
}

static void doctor_dropped(struct call *c)
{
	struct doctor *d = c->api->doctor;
	struct doctor_wait **at = &d->waiting;

	while ((*at)->call != c)
		at = &(*at)->next;
	*at = (*at)->next;
	if (!d->waiting)
		doctor_stop(d);
}

static struct doctor *doctor_of(struct api *a)
{
	if (!a->doctor) {
		a->doctor = calloc(1, sizeof(*a->doctor));
		if (!a->doctor)
			abort();
		a->doctor->fd = -1;
		timer_init(&a->doctor->limit, a->loop, doctor_late);
	}
	return a->doctor;
}

void doctor_show(struct call *c)
{
	struct api *a = c->api;
	struct doctor *d = doctor_of(a);
	struct doctor_wait *w;

	if (!principal_is_operator(&c->who)) {
		call_error(c, 403, "denied",
			   "this is about the machine, for owners of team default", c->who.team,
			   NULL);
		return;
	}
	w = call_alloc(c, sizeof(*w));
	*w = (struct doctor_wait){ .call = c, .next = d->waiting };
	c->drop = doctor_dropped;
	d->waiting = w;
	if (w->next)
		return;
	timer_set(&d->limit, WAIT_MS);
	if (a->need_doctor)
		a->need_doctor(a);
	else
		doctor_answer(d, NULL);
}

void doctor_free(struct doctor *d)
{
	if (!d)
		return;
	doctor_stop(d);
	timer_fini(&d->limit);
	free(d);
}
