/* keeper_client.c - see keeper_client.h. */
#include "client/keeper_client.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>

struct office_ask {
	struct office_ask *next;
	uint32_t ref;
	uint8_t want;
	office_done *done; /* NULL: forgotten */
	void *ctx;
	size_t len;
	char bytes[]; /* the question, to be asked again of the next keeper */
};

static struct office_ask *take(struct office *o, uint32_t ref)
{
	for (struct office_ask **at = &o->asks; *at; at = &(*at)->next) {
		struct office_ask *a = *at;

		if (a->ref != ref)
			continue;
		*at = a->next;
		if (!*at)
			o->last = at;
		o->waiting--;
		return a;
	}
	return NULL;
}

static void answer(struct office_ask *a, const struct frame *f, size_t len, int *fd)
{
	struct err e;

	if (!a->done)
		return;
	if (f->type == a->want) {
		a->done(a->ctx, f, len, fd, NULL);
		return;
	}
	if (f->type == WIRE_ERROR)
		box_said_error((const struct wire_error *)f, &e);
	else
		err_set(&e, ERR_INVALID, "keeper: unexpected frame (type %u)", f->type);
	a->done(a->ctx, NULL, 0, fd, &e);
}

static void on_frame(struct post *p, const struct frame *f, size_t len, int *fd)
{
	struct office *o = loop_owner(p, struct office, post);
	struct office_ask *a = take(o, f->ref);

	if (!a)
		return;
	answer(a, f, len, fd);
	free(a);
}

static void on_gone(struct post *p, const struct err *why)
{
	struct office *o = loop_owner(p, struct office, post);

	(void)why;
	o->on_lost(o);
}

void office_init(struct office *o, struct loop *l, void (*on_lost)(struct office *))
{
	*o = (struct office){ .loop = l, .post.fd = -1, .next_ref = 1, .on_lost = on_lost };
	o->last = &o->asks;
}

int office_connected(const struct office *o)
{
	return o->post.fd >= 0;
}

void office_connect(struct office *o, int take_fd)
{
	post_fini(&o->post);
	post_init(&o->post, o->loop, take_fd);
	o->post.on_frame = on_frame;
	o->post.on_gone = on_gone;
	for (struct office_ask *a = o->asks; a; a = a->next)
		post_send(&o->post, a->bytes, a->len, NULL, 0, -1);
}

void office_fini(struct office *o)
{
	post_fini(&o->post);
	while (o->asks) {
		struct office_ask *a = o->asks;

		o->asks = a->next;
		free(a);
	}
	o->last = &o->asks;
}

struct office_ask *office_ask(struct office *o, const void *ask, size_t len, uint8_t want,
			      office_done *done, void *ctx)
{
	struct office_ask *a = calloc(1, sizeof(*a) + len);
	struct frame *head;

	if (!a)
		abort();
	*a = (struct office_ask){
		.ref = o->next_ref++, .want = want, .done = done, .ctx = ctx, .len = len
	};
	memcpy(a->bytes, ask, len);
	head = (struct frame *)a->bytes;
	head->version = WIRE_VERSION;
	head->ref = a->ref;
	*o->last = a;
	o->last = &a->next;
	o->waiting++;
	/* Without a connection it waits for the next one. */
	(void)post_send(&o->post, a->bytes, len, NULL, 0, -1);
	return a;
}

void office_forget(struct office *o, struct office_ask *a)
{
	(void)o;
	if (a)
		a->done = NULL;
}

struct office_ask *office_ask_box(struct office *o, uint8_t type, uint16_t flags, const char *id,
				  uint8_t want, office_done *done, void *ctx)
{
	struct wire_id ask = { .head = sock_head(type, 0) };

	ask.head.flags = flags;
	snprintf(ask.id, sizeof(ask.id), "%s", id);
	return office_ask(o, &ask, sizeof(ask), want, done, ctx);
}
