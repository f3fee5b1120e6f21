/* place.c - see place.h. */
#include "cluster/place.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PLACE_LOOK = 3, /* nodes that are compared */
	PLACE_DRAWS =
		24, /* random nodes looked at until PLACE_LOOK fit; then all are looked at in turn */
	PLACE_HALVE =
		16384, /* requests after which all counts are halved: the share follows the load */
	PLACE_OWN_LEAST = 8,
};
#define PLACE_MEMORY (UINT64_C(1) << 50) /* more counts as an error of the node */

struct place_node {
	unsigned number;
	struct place_figures f;
	uint64_t placed; /* bytes, by this gateway since the last heartbeat */
	unsigned failures;
	uint64_t failed_ms;    /* the first of these failures */
	uint64_t suspended_ms; /* until then; 0: it is not */
};

struct place_template {
	uint64_t hash; /* 0: free */
	uint32_t count;
	unsigned k, nodes_version; /* for which own was computed */
	unsigned own[PLACE_NODES / 4];
};

struct place {
	enum place_policy policy;
	uint64_t random;
	struct place_node *nodes; /* no order */
	unsigned n, room;
	uint16_t at[PLACE_NUMBERS]; /* by number: its index in nodes plus 1; 0: not connected */
	unsigned version;           /* changes with the set of nodes */
	uint32_t total;             /* sum of all counts */
	struct place_template *templates[PLACE_TEMPLATES];
};

/* ---- hashes and randomness ---- */

static uint64_t place_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t place_hash(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	h = place_mix(h);
	return h ? h : 1;
}

static uint64_t place_random(struct place *p)
{
	p->random += UINT64_C(0x9e3779b97f4a7c15);
	return place_mix(p->random);
}

/* ---- nodes ---- */

int place_new(struct place **out, enum place_policy policy, uint64_t seed, struct err *e)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return err_set(e, ERR_LIMIT, "out of memory");
	(*out)->policy = policy;
	(*out)->random = seed;
	return 0;
}

void place_free(struct place *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < PLACE_TEMPLATES; i++)
		free(p->templates[i]);
	free(p->nodes);
	free(p);
}

static struct place_node *place_find(const struct place *p, unsigned number)
{
	return number < PLACE_NUMBERS && p->at[number] ? &p->nodes[p->at[number] - 1] : NULL;
}

static struct place_node *place_add(struct place *p, unsigned number, struct err *e)
{
	struct place_node *more;
	unsigned room = p->room ? p->room * 2 : 16;

	if (number >= PLACE_NUMBERS) {
		err_set(e, ERR_INVALID, "node %u: the highest number is %d", number,
			PLACE_NUMBERS - 1);
		return NULL;
	}
	if (p->n == PLACE_NODES) {
		err_set(e, ERR_LIMIT, "more than %d nodes", PLACE_NODES);
		return NULL;
	}
	if (p->n == p->room) {
		more = realloc(p->nodes, room * sizeof(*more));
		if (!more) {
			err_set(e, ERR_LIMIT, "out of memory");
			return NULL;
		}
		p->nodes = more;
		p->room = room;
	}
	p->version++;
	p->nodes[p->n] = (struct place_node){ .number = number };
	p->at[number] = (uint16_t)(p->n + 1);
	return &p->nodes[p->n++];
}

int place_update(struct place *p, unsigned number, const struct place_figures *f, struct err *e)
{
	struct place_node *x = place_find(p, number);

	if (!x && !(x = place_add(p, number, e)))
		return -1;
	x->f = *f;
	x->placed = 0;
	if (f->memory > PLACE_MEMORY || f->memory_free > f->memory)
		x->f.memory = x->f.memory_free = 0;
	if (f->nlabels > PLACE_LABELS)
		x->f.nlabels = 0;
	return 0;
}

void place_remove(struct place *p, unsigned number)
{
	struct place_node *x = place_find(p, number);

	if (!x)
		return;
	p->at[number] = 0;
	*x = p->nodes[--p->n];
	if (x->number != number)
		p->at[x->number] = (uint16_t)(x - p->nodes + 1);
	p->version++;
}

unsigned place_count(const struct place *p)
{
	return p->n;
}

static uint64_t place_free_memory(const struct place_node *x)
{
	return x->f.memory_free > x->placed ? x->f.memory_free - x->placed : 0;
}

/* In 1/10000. */
static unsigned place_load(const struct place_node *x)
{
	uint64_t used = x->f.memory - place_free_memory(x);

	return x->f.memory ? (unsigned)(used / (x->f.memory / 10000 + 1)) : 10000;
}

int place_is_suspended(const struct place *p, unsigned number, uint64_t now_ms)
{
	const struct place_node *x = place_find(p, number);

	return x && x->suspended_ms > now_ms;
}

void place_answered(struct place *p, unsigned number, int ok, uint64_t now_ms)
{
	struct place_node *x = place_find(p, number);

	if (!x)
		return;
	if (ok) {
		x->failures = 0;
		return;
	}
	if (!x->failures || now_ms - x->failed_ms > PLACE_FAILURES_MS) {
		x->failures = 0;
		x->failed_ms = now_ms;
	}
	if (++x->failures < PLACE_FAILURES)
		return;
	x->failures = 0;
	x->suspended_ms = now_ms + PLACE_SUSPENDED_MS;
}

/* ---- what a request demands ---- */

enum place_reason {
	PLACE_FITS,
	/* Never, on this node: */
	PLACE_OTHER_NODE,
	PLACE_OTHER_ARCH,
	PLACE_NO_LABEL,
	PLACE_TOO_SMALL,
	/* Now: */
	PLACE_REFUSED,
	PLACE_DRAINING,
	PLACE_SUSPENDED,
	PLACE_NO_MEMORY,
	PLACE_REASONS
};
static const char *const place_reasons[PLACE_REASONS] = {
	[PLACE_OTHER_NODE] = "without the volume",
	[PLACE_OTHER_ARCH] = "of another architecture",
	[PLACE_NO_LABEL] = "without a label",
	[PLACE_TOO_SMALL] = "too small",
	[PLACE_REFUSED] = "refused",
	[PLACE_DRAINING] = "draining",
	[PLACE_SUSPENDED] = "suspended",
	[PLACE_NO_MEMORY] = "full",
};

static int place_has_labels(const struct place_node *x, const char *const *labels)
{
	for (; labels && *labels; labels++) {
		unsigned i = 0;

		while (i < x->f.nlabels && strcmp(x->f.labels[i], *labels) != 0)
			i++;
		if (i == x->f.nlabels)
			return 0;
	}
	return 1;
}

static enum place_reason place_judge(const struct place_node *x, const struct place_request *r,
				     uint64_t now_ms)
{
	if (r->node >= 0 && x->number != (unsigned)r->node)
		return PLACE_OTHER_NODE;
	if (r->arch && strcmp(r->arch, x->f.arch) != 0)
		return PLACE_OTHER_ARCH;
	if (!place_has_labels(x, r->labels))
		return PLACE_NO_LABEL;
	if (r->memory > x->f.memory)
		return PLACE_TOO_SMALL;
	for (unsigned i = 0; i < r->ntried; i++)
		if (r->tried[i] == x->number)
			return PLACE_REFUSED;
	if (x->f.is_draining)
		return PLACE_DRAINING;
	if (x->suspended_ms > now_ms)
		return PLACE_SUSPENDED;
	return r->memory > place_free_memory(x) ? PLACE_NO_MEMORY : PLACE_FITS;
}

/* ---- a template's own nodes ---- */

static void place_halve(struct place *p)
{
	p->total = 0;
	for (unsigned i = 0; i < PLACE_TEMPLATES; i++)
		if (p->templates[i])
			p->total += p->templates[i]->count /= 2;
}

/* Its entry, with the request counted; NULL: there is no memory for one. */
static struct place_template *place_note(struct place *p, const char *name)
{
	uint64_t hash = place_hash(name);
	struct place_template **at = NULL, *t;

	for (unsigned i = 0; i < PLACE_TEMPLATES; i++) {
		struct place_template **x = &p->templates[(hash + i) % PLACE_TEMPLATES];

		if (!*x || (*x)->hash == hash) {
			at = x;
			break;
		}
		if (!at || (*x)->count < (*at)->count)
			at = x;
	}
	if (!*at)
		*at = calloc(1, sizeof(**at));
	t = *at;
	if (!t)
		return NULL;
	if (t->hash != hash) {
		p->total -= t->count;
		memset(t, 0, sizeof(*t));
		t->hash = hash;
	}
	t->count++;
	if (++p->total >= PLACE_HALVE)
		place_halve(p);
	return t;
}

struct place_rank {
	uint64_t score;
	unsigned index;
};

static int place_compare(const void *a, const void *b)
{
	const struct place_rank *x = a, *y = b;

	return x->score < y->score ? 1 : x->score > y->score ? -1 : 0;
}

/* Computed again when the set of nodes or k has changed: k moves in steps of an eighth, so that this is rare.
 * 0: the template uses all nodes. */
static unsigned place_own(struct place *p, struct place_template *t)
{
	unsigned wanted = (unsigned)(UINT64_C(3) * t->count * p->n / (p->total ? p->total : 1)) +
			  PLACE_OWN_LEAST;
	struct place_rank *all;

	if (t->nodes_version == p->version && t->k >= wanted && t->k <= wanted + wanted / 4 + 2)
		return t->k;
	t->k = wanted + wanted / 8 + 1;
	if (t->k >= p->n || t->k > ARRAY_LEN(t->own))
		return t->k = 0;
	all = calloc(p->n, sizeof(*all));
	if (!all)
		return t->k = 0;
	for (unsigned i = 0; i < p->n; i++)
		all[i] = (struct place_rank){
			place_mix(t->hash ^ p->nodes[i].number * UINT64_C(0x9e3779b97f4a7c15)), i
		};
	qsort(all, p->n, sizeof(*all), place_compare);
	for (unsigned i = 0; i < t->k; i++)
		t->own[i] = all[i].index;
	t->nodes_version = p->version;
	free(all);
	return t->k;
}

/* ---- the choice ---- */

struct place_search {
	struct place *p;
	const struct place_request *r;
	uint64_t now_ms;
	const unsigned *own; /* NULL: all nodes */
	unsigned n, most_load;
};

static struct place_node *place_at(const struct place_search *s, unsigned i)
{
	return &s->p->nodes[s->own ? s->own[i] : i];
}

static int place_suits(const struct place_search *s, const struct place_node *x)
{
	return place_judge(x, s->r, s->now_ms) == PLACE_FITS && place_load(x) < s->most_load;
}

static int place_is_better(const struct place *p, const struct place_node *a,
			   const struct place_node *b)
{
	return p->policy == PLACE_PACK ? place_load(a) > place_load(b)
				       : place_load(a) < place_load(b);
}

/* The best of PLACE_LOOK random nodes that fit. If few fit, random draws miss them: then the first ones that
 * fit, from a random start on. */
static struct place_node *place_search(const struct place_search *s)
{
	struct place_node *best = NULL;
	unsigned found = 0, start;

	if (!s->n)
		return NULL;
	for (unsigned i = 0; i < PLACE_DRAWS && found < PLACE_LOOK; i++) {
		struct place_node *x = place_at(s, (unsigned)(place_random(s->p) % s->n));

		if (!place_suits(s, x))
			continue;
		found++;
		if (!best || place_is_better(s->p, x, best))
			best = x;
	}
	start = (unsigned)(place_random(s->p) % s->n);
	for (unsigned i = 0; !best && i < s->n; i++) {
		struct place_node *x = place_at(s, (start + i) % s->n);

		if (place_suits(s, x))
			best = x;
	}
	return best;
}

static int place_explain(const struct place *p, const struct place_request *r, uint64_t now_ms,
			 struct err *e)
{
	unsigned n[PLACE_REASONS] = { 0 };
	char text[256] = "";
	int later = 0;

	if (!p->n)
		return err_set(e, ERR_LIMIT, "no node is connected");
	for (unsigned i = 0; i < p->n; i++) {
		enum place_reason why = place_judge(&p->nodes[i], r, now_ms);

		n[why]++;
		later |= why >= PLACE_REFUSED;
	}
	for (unsigned i = PLACE_FITS + 1; i < PLACE_REASONS; i++) {
		size_t at = strlen(text);

		if (n[i])
			snprintf(text + at, sizeof(text) - at, "%s%u %s", at ? ", " : "", n[i],
				 place_reasons[i]);
	}
	return err_set(e, later ? ERR_LIMIT : ERR_INVALID, "none of %u nodes can take the box: %s",
		       p->n, text);
}

int place_choose(struct place *p, const struct place_request *r, uint64_t now_ms, struct err *e)
{
	struct place_template *t = r->ntried ? NULL : place_note(p, r->template);
	struct place_search s = { .p = p, .r = r, .now_ms = now_ms };
	struct place_node *x = NULL;

	if (t) {
		s.own = t->own;
		s.n = place_own(p, t);
		s.most_load = PLACE_FULL;
		x = place_search(&s);
	}
	if (!x) {
		s.own = NULL;
		s.n = p->n;
		s.most_load = UINT32_MAX;
		x = place_search(&s);
	}
	if (!x)
		return place_explain(p, r, now_ms, e);
	x->placed += r->memory;
	return (int)x->number;
}
