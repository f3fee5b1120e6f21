/* answer.c - see answer.h. */
#include "coordinator/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Grows by doubling: a vector has room for the next power of two of its length. */
static void *answer_grow(void *v, unsigned n, size_t size)
{
	if (n & (n - 1) || (n == 0 && v))
		return v;
	v = reallocarray(v, n ? n * 2 : 1, size);
	if (!v)
		abort();
	return v;
}

#define ANSWER_ADD(vector, n, ...)                                                                 \
	do {                                                                                       \
		(vector) = answer_grow(vector, n, sizeof(*(vector)));                              \
		(vector)[(n)++] = (__typeof__(*(vector)))__VA_ARGS__;                              \
	} while (0)

const char *answer_text(struct answer *a, const char *text)
{
	char *copy;

	if (!text)
		return NULL;
	copy = strdup(text);
	if (!copy)
		abort();
	a->texts = answer_grow(a->texts, a->ntexts, sizeof(*a->texts));
	a->texts[a->ntexts++] = copy;
	return copy;
}

static struct coordinator_key answer_key(struct answer *a, const struct coordinator_key *k)
{
	return (struct coordinator_key){ answer_text(a, k->team ? k->team : ""), k->kind,
					 answer_text(a, k->name),
					 answer_text(a, k->template ? k->template : "") };
}

void answer_init(struct answer *a, const struct coordinator_request *q, coordinator_done *done,
		 void *user)
{
	*a = (struct answer){ .q = *q, .done = done, .user = user };
	a->q.key = answer_key(a, &q->key);
	a->q.box = answer_text(a, q->box);
	a->q.new_box = answer_text(a, q->new_box);
	a->q.role = answer_text(a, q->role);
	a->q.name = answer_text(a, q->name);
	a->q.fingerprint = answer_text(a, q->fingerprint);
	a->q.address = answer_text(a, q->address);
	a->q.version = answer_text(a, q->version);
	if (q->ndead) {
		a->dead = reallocarray(NULL, q->ndead, sizeof(*a->dead));
		if (!a->dead)
			abort();
		memcpy(a->dead, q->dead, q->ndead * sizeof(*a->dead));
	}
	a->q.dead = a->dead;
}

void answer_fini(struct answer *a)
{
	free(a->answer.gateways);
	free(a->answer.tunnels);
	free(a->answer.nodes);
	free(a->answer.names);
	free(a->answer.superseded);
	free(a->dead);
	for (unsigned i = 0; i < a->ntexts; i++)
		free(a->texts[i]);
	free(a->texts);
	*a = (struct answer){ 0 };
}

void answer_give(struct answer *a, const struct err *e)
{
	a->done(a->user, e ? NULL : &a->answer, e);
}

void answer_add_gateway(struct answer *a, int number, int64_t renewals, int64_t incarnation)
{
	ANSWER_ADD(a->answer.gateways, a->answer.ngateways, { number, renewals, incarnation });
}

void answer_add_tunnel(struct answer *a, int node, int gateway, int64_t serial)
{
	ANSWER_ADD(a->answer.tunnels, a->answer.ntunnels, { node, gateway, serial });
}

void answer_add_node(struct answer *a, int number, int64_t epoch, int64_t forgotten, int lost,
		     const char *name)
{
	ANSWER_ADD(a->answer.nodes, a->answer.nnodes,
		   { .number = number, .epoch = epoch, .forgotten = forgotten, .lost = lost });
	snprintf(a->answer.nodes[a->answer.nnodes - 1].name, VIEW_NAME, "%s", name);
}

void answer_add_name(struct answer *a, const struct coordinator_name *n)
{
	struct coordinator_key key = answer_key(a, &n->key);
	const char *box = answer_text(a, n->box);

	ANSWER_ADD(a->answer.names, a->answer.nnames, { key, n->node, n->epoch, box });
}

void answer_add_superseded(struct answer *a, const char *box, int64_t epoch)
{
	const char *copy = answer_text(a, box);

	ANSWER_ADD(a->answer.superseded, a->answer.nsuperseded, { copy, epoch });
}

int answer_has_claim(const struct answer *a)
{
	return a->answer.nnames && a->answer.names[0].node == a->q.node &&
	       !strcmp(a->answer.names[0].box, a->q.box);
}
