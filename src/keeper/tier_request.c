/* tier_request.c - which isolation tiers this host offers, and whether a request may have one.
 *
 * The facts are collected by the tier service (tier_service.h) when a client first needs them. A
 * request that arrives before the facts are complete waits, and is then handled as if it had just
 * arrived. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper_internal.h"
#include "keeper/host_service.h"
#include "keeper/tier_service.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct tier_waiting { /* a request that needs facts */
	struct tier_waiting *next;
	uint64_t client; /* by number */
	uint64_t round;  /* it needs the facts of this round, or later ones */
	uint32_t len;
	_Alignas(8) char bytes[];
};

/* ---- the files of the engines ---- */

/* The keeper has the host's /usr at /u. 0: the file cannot be found there. */
static int tier_engine_look(const char *path, struct tier_engine *out)
{
	char own[WIRE_PATH + 4];
	struct stat st;

	snprintf(own, sizeof(own), "/u%s", path + strlen("/usr"));
	if (stat(own, &st) < 0)
		return 0;
	*out = (struct tier_engine){ .dev = st.st_dev,
				     .ino = st.st_ino,
				     .size = (uint64_t)st.st_size,
				     .modified = st.st_mtim,
				     .changed = st.st_ctim };
	return 1;
}

/* The file that was examined; before one is installed, the first place that has one now. NULL: there is none. */
static const char *tier_engine_file(const struct tier *t, const struct wire_tier_facts *f)
{
	struct tier_engine found;

	if (!t || !t->places)
		return NULL;
	if (strncmp(f->engine, "/usr/", 5) == 0)
		return f->engine;
	for (const char *const *place = t->places; *place; place++)
		if (tier_engine_look(*place, &found))
			return *place;
	return NULL;
}

static int tier_engine_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* The hash of the file is in the facts, and a proof is about that hash. A file that changed while it was examined is
 * examined again with the next request. */
static void tier_engine_learn(struct keeper *k, const struct wire_tier_facts *new)
{
	const struct wire_tier_facts *old = &k->tiers.facts[new->tier];
	struct tier_engine *file = &k->tiers.engines[new->tier];
	const char *path = tier_engine_file(tier_find(new->tier), new);

	*file = (struct tier_engine){ 0 };
	if (!path)
		return;
	if (old->sha256[0] && strcmp(old->sha256, new->sha256) != 0) {
		k->tiers.changed |= 1u << new->tier;
		tier_pool_end(k, new->tier);
	}
	if (tier_engine_look(path, file) && file->changed.tv_sec >= k->tiers.begun_s)
		*file = (struct tier_engine){ 0 };
}

/* Is the file the one that was examined? The time of its last change cannot be set by a program, in contrast to its size
 * and the time of its modification. */
static int tier_engine_is_same(const struct keeper *k, unsigned tier)
{
	const struct tier_engine *was = &k->tiers.engines[tier];
	const char *path = tier_engine_file(tier_find(tier), &k->tiers.facts[tier]);
	struct tier_engine is;

	if (!path)
		return !was->ino; /* as when it was examined: not installed */
	return tier_engine_look(path, &is) && is.dev == was->dev && is.ino == was->ino &&
	       is.size == was->size && tier_engine_same_time(&is.modified, &was->modified) &&
	       tier_engine_same_time(&is.changed, &was->changed);
}

/* ---- facts ---- */

static int tiers_are_collecting(const struct keeper *k)
{
	return k->tiers.begun > k->tiers.done;
}

/* An engine that is replaced again and again must not keep the tier service busy. */
static int tiers_are_new(const struct keeper *k)
{
	return (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000000) - k->tiers.begun_s < 2;
}

/* At most once a second. */
static void tiers_start_again(struct keeper *k)
{
	static uint64_t started_ns;
	struct err e;

	if (started_ns && now_ns() - started_ns < 1000000000ull)
		return;
	started_ns = now_ns();
	k->host.tier_service = host_service_restart(&k->host, HOST_TIERS, &e);
	k->tiers.src.fd = k->host.tier_service;
	if (k->tiers.src.fd < 0 || keeper_watch(k, &k->tiers.src, &e) < 0)
		fprintf(stderr, "atoll: keeper: tier service: %s\n", e.msg);
}

static void tiers_collect(struct keeper *k)
{
	struct err e;

	if (tiers_are_collecting(k))
		return;
	k->tiers.begun++;
	k->tiers.begun_s = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000000);
	if (k->tiers.src.fd < 0)
		tiers_start_again(k);
	if (k->tiers.src.fd < 0 || tier_service_ask(k->tiers.src.fd, &e) < 0)
		k->tiers.done =
			k->tiers.begun; /* the service has exited: the facts stay as they are */
}

static void tiers_wait(struct keeper *k, const struct client *c, const struct frame *f,
		       uint64_t round)
{
	struct tier_waiting *w = malloc(sizeof(*w) + c->len), **at = &k->tiers.waiting;

	if (!w)
		abort();
	*w = (struct tier_waiting){ .client = c->number, .round = round, .len = c->len };
	memcpy(w->bytes, f, c->len);
	while (*at)
		at = &(*at)->next;
	*at = w;
	tiers_collect(k);
}

int tiers_init(struct keeper *k, struct err *e)
{
	k->tiers.src = (struct source){ SRC_TIERS, k->host.tier_service };
	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++)
		tier_facts_init(i, &k->host.tier_host, &k->tiers.facts[i]);
	return keeper_watch(k, &k->tiers.src, e);
}

static void tiers_answer(struct keeper *k, uint64_t client, uint32_t ref)
{
	struct {
		struct frame head;
		struct wire_tier_facts facts[WIRE_TIER_COUNT];
	} out = { .head = sock_head(WIRE_TIERS_REPLY, ref) };
	unsigned n = 0;

	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++)
		if (tier_engine_is_same(k, i))
			k->tiers.changed &= ~(1u << i);
	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++)
		if (tier_find(i))
			out.facts[n++] = k->tiers.facts[i];
	client_send(k, client, &out, sizeof(out.head) + n * sizeof(out.facts[0]), -1);
}

/* Handles the requests whose round is done. One of them may add another request. */
static void tiers_done(struct keeper *k)
{
	struct tier_waiting *todo = NULL;

	if (tiers_are_collecting(k))
		return;
	todo = steal(&k->tiers.waiting);
	while (todo) {
		auto_free struct tier_waiting *w = todo;
		struct client *c = client_find(k, w->client);
		int none = -1;

		todo = w->next;
		if (!c)
			continue;
		c->len = w->len;
		if (w->round > k->tiers.done)
			tiers_wait(k, c, (const struct frame *)w->bytes, w->round);
		else
			request_handle(k, c, (const struct frame *)w->bytes, &none);
	}
	if (k->tiers.waiting)
		tiers_done(k);
}

void tier_request(struct keeper *k, struct client *c, const struct frame *f)
{
	uint64_t round = f->flags & WIRE_TIERS_AGAIN ? k->tiers.begun + 1 : 1;
	struct frame later = *f;
	struct err e;

	if (f->flags & ~WIRE_TIERS_AGAIN) {
		err_set(&e, ERR_INVALID, "TIERS has no flag %#x", f->flags);
		client_error(k, c->number, f->ref, &e);
		return;
	}
	if (k->tiers.changed && tiers_are_collecting(k))
		round = k->tiers.begun;
	if (k->tiers.done && !tiers_are_collecting(k) && !tiers_are_new(k))
		for (unsigned i = 0; i < WIRE_TIER_COUNT; i++)
			if (!tier_engine_is_same(k, i))
				round = k->tiers.begun + 1;
	if (k->tiers.done >= round) {
		tiers_answer(k, c->number, f->ref);
		return;
	}
	later.flags = 0; /* when it is handled again, the facts are new */
	tiers_wait(k, c, &later, round);
	tiers_done(k);
}

void tiers_learned(struct keeper *k)
{
	struct wire_tier_facts facts;
	struct err e;
	int last = 0;

	if (tier_service_read(k->tiers.src.fd, &facts, &last, &e) < 0) {
		fprintf(stderr, "atoll: keeper: %s\n", e.msg);
		keeper_unwatch(k, &k->tiers.src);
		k->tiers.done = k->tiers.begun; /* the facts stay as they are */
		tiers_start_again(k);
	} else if (facts.tier < WIRE_TIER_COUNT) {
		tier_engine_learn(k, &facts);
		k->tiers.facts[facts.tier] = facts;
	}
	if (last)
		k->tiers.done++;
	if (!tiers_are_collecting(k))
		tiers_done(k);
}

static uint64_t tier_needs(const struct wire_create *w)
{
	uint64_t needs = 0;

	for (uint32_t i = 0; i < w->nmounts && i < WIRE_MOUNTS; i++)
		needs |= UINT64_C(1)
			 << (w->mounts[i].flags & WIRE_MOUNT_RO ? WIRE_NEED_VOLUME
								: WIRE_NEED_VOLUME_WRITABLE);
	if (w->nlayers)
		needs |= UINT64_C(1) << WIRE_NEED_LAYERS;
	if (w->root[0])
		needs |= UINT64_C(1) << WIRE_NEED_ROOT;
	if (w->head.flags & WIRE_CREATE_SECRETS)
		needs |= UINT64_C(1) << WIRE_NEED_SECRETS;
	if (w->head.flags & WIRE_CREATE_HOST_WRITABLE)
		needs |= UINT64_C(1) << WIRE_NEED_HOST_WRITABLE;
	return needs;
}

/* A client has chosen the tier by facts, and perhaps by a proof, about another file. */
static int tier_reject_changed(struct keeper *k, unsigned tier, struct err *e)
{
	const struct wire_tier_facts *f = &k->tiers.facts[tier];

	if (!tiers_are_collecting(k) && !tier_engine_is_same(k, tier)) {
		k->tiers.changed |= 1u << tier;
		tier_pool_end(k, tier);
		if (!tiers_are_new(k))
			tiers_collect(k);
	}
	if (!(k->tiers.changed >> tier & 1))
		return 0;
	return err_set(
		e, ERR_CONFLICT,
		"isolation tier %s: %.100s has changed and is examined again; repeat the request, "
		"or type: atoll prove %s",
		tier_name(tier), f->engine[0] ? f->engine : "its engine", tier_name(tier));
}

int tier_admit(struct keeper *k, struct client *c, const struct wire_create *w,
	       const struct wire_limits *limits, struct err *e)
{
	unsigned number = wire_tier_of(w->head.flags);
	const struct tier *t = tier_find(number);
	const struct wire_tier_facts *f;

	if (!t)
		return err_set(e, ERR_DENIED, "isolation tier %s (%u): not in this build of Atoll",
			       tier_name(number), number);
	if (number && !t->outer_box)
		return err_set(e, ERR_INVALID, "isolation tier %s: its boxes are containers",
			       t->name);
	f = &k->tiers.facts[number];
	if (t->probe && !k->tiers.done) {
		tiers_wait(k, c, &w->head, 1);
		tiers_done(k);
		return 1;
	}
	if (f->state != WIRE_TIER_OFFERED)
		return err_set(e, ERR_DENIED, "isolation tier %s: %s", t->name, f->reason);
	if (tier_reject_changed(k, number, e) < 0 || tier_supports(f, tier_needs(w), e) < 0)
		return -1;
	if (limits->mem_bytes && limits->mem_bytes < f->mem_min_bytes)
		return err_set(
			e, ERR_INVALID,
			"memory limit of %llu: a box of the isolation tier %s has at least %llu",
			(unsigned long long)limits->mem_bytes, t->name,
			(unsigned long long)f->mem_min_bytes);
	return 0;
}

int tier_box_supports(const struct keeper *k, const struct keeper_box *b, enum wire_need need,
		      struct err *e)
{
	unsigned tier = b->meta.about.tier;

	if (!tier)
		return 0;
	if (tier >= WIRE_TIER_COUNT)
		return err_set(e, ERR_DENIED, "box %s has an isolation tier of a newer keeper: %u",
			       b->meta.about.id, tier);
	return tier_supports(&k->tiers.facts[tier], UINT64_C(1) << need, e);
}

struct wire_tier_facts *tier_facts_copy(const struct keeper *k, unsigned tier)
{
	struct wire_tier_facts *f = malloc(sizeof(*f));

	if (!f)
		abort();
	*f = k->tiers.facts[tier];
	return f;
}
