/* swerex_idempotency.c - see swerex_idempotency.h. */
#include "swerex/swerex_idempotency.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 64, KEPT_MS = 300000, KEPT_BYTES = 16 << 20 };

enum state { FREE, BUSY, ANSWERED, LOST };

struct again {
	enum state state;
	char *key; /* principal, request, and id */
	uint64_t since_ms;
	int status;
	char *text;
	size_t n;
};

struct swerex_memory {
	struct again v[REQUESTS];
	size_t bytes; /* of all texts */
};

static struct swerex_memory *memory_of(struct api *a)
{
	if (!a->swerex && !(a->swerex = calloc(1, sizeof(*a->swerex))))
		abort();
	return a->swerex;
}

static void swerex_retry_clear(struct again *x)
{
	free(x->key);
	free(x->text);
	*x = (struct again){ .state = FREE };
}

static void swerex_retry_evict(struct swerex_memory *m, struct again *x)
{
	m->bytes -= x->n;
	swerex_retry_clear(x);
}

/* The oldest entry that may be removed, or NULL. */
static struct again *swerex_retry_oldest(struct swerex_memory *m)
{
	struct again *found = NULL;

	for (unsigned i = 0; i < REQUESTS; i++) {
		struct again *x = &m->v[i];

		if (x->state != FREE && x->state != BUSY &&
		    (!found || x->since_ms < found->since_ms))
			found = x;
	}
	return found;
}

static struct again *swerex_retry_room(struct swerex_memory *m)
{
	struct again *x;

	for (unsigned i = 0; i < REQUESTS; i++)
		if (m->v[i].state == FREE)
			return &m->v[i];
	x = swerex_retry_oldest(m);
	if (x)
		swerex_retry_evict(m, x);
	return x;
}

static void forget_old(struct swerex_memory *m)
{
	uint64_t now = loop_now_ms();

	for (unsigned i = 0; i < REQUESTS; i++) {
		struct again *x = &m->v[i];

		if (x->state != FREE && x->state != BUSY && now - x->since_ms > KEPT_MS)
			swerex_retry_evict(m, x);
	}
}

static struct again *swerex_retry_find(struct swerex_memory *m, const char *key)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		if (m->v[i].state != FREE && !strcmp(m->v[i].key, key))
			return &m->v[i];
	return NULL;
}

enum swerex_retry swerex_idempotency_begin(struct call *c, const char *id, struct again **out,
					   int *status, const char **text, size_t *n)
{
	struct swerex_memory *m = memory_of(c->api);
	auto_buf struct buf key = { 0 };
	struct again *x;

	*out = NULL;
	forget_old(m);
	buf_printf(&key, "%s\n%s\n%s", c->who.id, c->req->path, id);
	x = swerex_retry_find(m, key.p);
	if (x && x->state == ANSWERED) {
		*status = x->status;
		*text = x->text;
		*n = x->n;
		return AGAIN_ANSWERED;
	}
	if (x)
		return x->state == BUSY ? AGAIN_BUSY : AGAIN_LOST;
	x = swerex_retry_room(m); /* none: too many requests in progress */
	if (x)
		*x = (struct again){ .state = BUSY,
				     .key = buf_steal(&key),
				     .since_ms = loop_now_ms() };
	*out = x;
	return AGAIN_FIRST;
}

void swerex_idempotency_answer(struct api *a, struct again *x, int status, const json_t *doc)
{
	struct swerex_memory *m = a->swerex;
	struct again *old;

	if (!x)
		return;
	x->text = json_dumps(doc, JSON_COMPACT | RECORD_DIGITS);
	if (!x->text)
		abort();
	x->n = strlen(x->text);
	while (m->bytes + x->n > KEPT_BYTES && (old = swerex_retry_oldest(m)))
		swerex_retry_evict(m, old);
	m->bytes += x->n;
	x->status = status;
	x->state = ANSWERED;
	x->since_ms = loop_now_ms();
}

void swerex_idempotency_forget(struct again *x)
{
	if (x)
		swerex_retry_clear(x);
}

void swerex_idempotency_leave(struct again *x)
{
	if (!x)
		return;
	x->state = LOST;
	x->since_ms = loop_now_ms();
}

void swerex_fini(struct api *a)
{
	for (unsigned i = 0; a->swerex && i < REQUESTS; i++)
		swerex_retry_clear(&a->swerex->v[i]);
	free(a->swerex);
	a->swerex = NULL;
}
