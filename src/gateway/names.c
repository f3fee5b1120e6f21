/* names.c - see names.h. */
#include "gateway/names.h"
#include "base/log.h"
#include "cluster/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_CACHE = 1024 };

struct names_question {
	struct names_question *next, **link;
	struct gateway_names *names;
	struct names_ask *ask; /* NULL: nothing waits for it */
	enum coordinator_op op;
	struct names_key key;
	struct timer late;
};

struct gateway_names {
	struct loop *loop;
	struct coordinator *coordinator;
	struct names_question *questions;
	struct {
		uint64_t hash, until_ms;
		struct names_key key;
		unsigned node;
	} cache[NAMES_CACHE];
};

int names_key_set(struct names_key *k, char kind, const char *team, const char *name,
		  const char *template)
{
	if (strlen(team) >= NAMES_TEXT || strlen(name) >= NAMES_TEXT ||
	    strlen(template) >= NAMES_TEXT)
		return 0;
	k->kind = kind;
	snprintf(k->team, sizeof(k->team), "%s", team);
	snprintf(k->name, sizeof(k->name), "%s", name);
	snprintf(k->template, sizeof(k->template), "%s", template);
	return 1;
}

static struct coordinator_key names_coordinator_key(const struct names_key *k)
{
	return (struct coordinator_key){ k->team, k->kind, k->name, k->template };
}

/* ---- names that were found ---- */

static uint64_t names_hash(const struct names_key *k)
{
	return control_hash(k->team) * 31 + control_hash(k->name) * 7 + control_hash(k->template) +
	       (uint64_t)k->kind;
}

static int names_same(const struct names_key *a, const struct names_key *b)
{
	return a->kind == b->kind && !strcmp(a->team, b->team) && !strcmp(a->name, b->name) &&
	       !strcmp(a->template, b->template);
}

int names_cached(const struct gateway_names *n, const struct names_key *k)
{
	uint64_t hash = names_hash(k);
	unsigned at = (unsigned)(hash % NAMES_CACHE);

	if (n->cache[at].hash != hash || n->cache[at].until_ms < loop_now_ms() ||
	    !names_same(&n->cache[at].key, k))
		return -1;
	return (int)n->cache[at].node;
}

static void names_remember(struct gateway_names *n, const struct names_key *k, unsigned node)
{
	uint64_t hash = names_hash(k);
	unsigned at = (unsigned)(hash % NAMES_CACHE);

	n->cache[at].hash = hash;
	n->cache[at].until_ms = loop_now_ms() + NAMES_CACHE_MS;
	n->cache[at].key = *k;
	n->cache[at].node = node;
}

/* ---- questions ---- */

static void names_drop(struct names_question *q)
{
	*q->link = q->next;
	if (q->next)
		q->next->link = q->link;
	timer_fini(&q->late);
	free(q);
}

static void names_give(struct names_question *q, const struct names_answer *x, const struct err *e)
{
	struct names_ask *a = q->ask;

	q->ask = NULL;
	if (!a)
		return;
	a->question = NULL;
	a->done(a, x, e);
}

/* The request is still in progress; its answer is ignored. */
static void names_late(struct timer *t)
{
	struct names_question *q = loop_owner(t, struct names_question, late);
	const char *trouble = coordinator_trouble(q->names->coordinator);
	struct err e;

	err_set(&e, ERR_SYS, "the database of the cluster does not answer%s%.160s",
		*trouble ? ": " : "", trouble);
	names_give(q, NULL, &e);
}

static void names_answered(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct names_question *q = user;
	struct names_answer x = { 0 };

	if (a) {
		x.done = a->done;
		x.has_owner = a->nnames > 0;
		if (a->nnames) {
			x.node = (unsigned)a->names[0].node;
			snprintf(x.box, sizeof(x.box), "%s", a->names[0].box);
		}
	}
	if (x.has_owner && q->op == COORDINATOR_FIND_NAME)
		names_remember(q->names, &q->key, x.node);
	if (!q->ask && q->op == COORDINATOR_CHANGE_NAME && a && !a->done)
		log_warn("the name of a new box was given away meanwhile",
			 LOG_S("name", q->key.name), LOG_S("team", q->key.team));
	names_give(q, a ? &x : NULL, e);
	names_drop(q);
}

static struct names_question *names_ask_coordinator(struct gateway_names *n, struct names_ask *a,
						    const struct names_key *k,
						    const struct coordinator_request *q)
{
	struct names_question *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	*x = (struct names_question){ .next = n->questions,
				      .link = &n->questions,
				      .names = n,
				      .ask = a,
				      .op = q->op,
				      .key = *k };
	if (n->questions)
		n->questions->link = &x->next;
	n->questions = x;
	timer_init(&x->late, n->loop, names_late);
	timer_set(&x->late, NAMES_ANSWER_MS);
	coordinator_ask(n->coordinator, q, names_answered, x);
	return x;
}

void names_begin(struct gateway_names *n, struct names_ask *a, enum coordinator_op op,
		 const struct names_key *k, unsigned node, int64_t epoch, const char *box)
{
	const struct coordinator_request q = { .op = op,
					       .key = names_coordinator_key(k),
					       .node = (int)node,
					       .epoch = epoch,
					       .box = box };

	a->question = names_ask_coordinator(n, a, k, &q);
}

void names_cancel(struct names_ask *a)
{
	if (a->question)
		a->question->ask = NULL;
	a->question = NULL;
}

void names_made(struct gateway_names *n, const struct names_key *k, unsigned node, const char *box)
{
	const struct coordinator_request q = { .op = COORDINATOR_CHANGE_NAME,
					       .key = names_coordinator_key(k),
					       .node = (int)node,
					       .box = NAMES_CLAIM,
					       .new_box = box };

	(void)names_ask_coordinator(n, NULL, k, &q);
}

void names_release(struct gateway_names *n, const struct names_key *k, unsigned node,
		   const char *box)
{
	const struct coordinator_request q = { .op = COORDINATOR_RELEASE_NAME,
					       .key = names_coordinator_key(k),
					       .node = (int)node,
					       .box = box };

	(void)names_ask_coordinator(n, NULL, k, &q);
}

/* ---- life ---- */

struct gateway_names *gateway_names_new(struct loop *l, struct coordinator *c)
{
	struct gateway_names *n = calloc(1, sizeof(*n));

	if (!n)
		abort();
	n->loop = l;
	n->coordinator = c;
	return n;
}

void gateway_names_free(struct gateway_names *n)
{
	if (!n)
		return;
	while (n->questions)
		names_drop(n->questions);
	free(n);
}
