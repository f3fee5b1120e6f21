/* direct.c - see direct.h. */
#include "webhook/direct.h"
#include "base/id.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int direct_has_older(const struct direct *q, unsigned before, const struct direct_item *it)
{
	for (unsigned i = 0; i < before; i++)
		if (q->v[i]->box == it->box && strcmp(q->v[i]->d.box, it->d.box) == 0)
			return 1;
	return 0;
}

void direct_add(struct direct *q, struct store_delivery *take)
{
	struct direct_item *it = calloc(1, sizeof(*it));

	if (!it)
		abort();
	assert(q->n < DIRECT_MOST);
	it->d = *take;
	take->body = NULL;
	it->box = id_hash(it->d.box);
	it->is_blocked = direct_has_older(q, q->n, it);
	q->v[q->n++] = it;
}

struct direct_item *direct_next(const struct direct *q)
{
	for (unsigned i = 0; i < q->n; i++)
		if (q->v[i]->state == DIRECT_WAITING && !q->v[i]->is_blocked)
			return q->v[i];
	return NULL;
}

struct direct_item *direct_find(const struct direct *q, int64_t seq)
{
	for (unsigned i = 0; i < q->n; i++)
		if (q->v[i]->d.seq == seq)
			return q->v[i];
	return NULL;
}

void direct_arrived(struct direct *q, struct direct_item *it)
{
	it->state = DIRECT_ARRIVED;
	q->arrived++;
}

int64_t direct_until(const struct direct *q, int64_t seen)
{
	for (unsigned i = 0; i < q->n; i++)
		if (q->v[i]->state != DIRECT_ARRIVED)
			return q->v[i]->d.seq - 1;
	return seen;
}

static void direct_free(struct direct_item *it)
{
	free(it->d.body);
	free(it);
}

void direct_stored(struct direct *q, int64_t until)
{
	unsigned gone = 0;

	q->arrived = 0;
	for (; gone < q->n && q->v[gone]->d.seq <= until; gone++)
		direct_free(q->v[gone]);
	q->n -= gone;
	memmove(q->v, q->v + gone, q->n * sizeof(*q->v));
	for (unsigned i = 0; gone && i < q->n; i++)
		if (q->v[i]->is_blocked)
			q->v[i]->is_blocked = direct_has_older(q, i, q->v[i]);
}

void direct_fini(struct direct *q)
{
	for (unsigned i = 0; i < q->n; i++)
		direct_free(q->v[i]);
	q->n = q->arrived = 0;
}
