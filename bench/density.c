/* density.c - see density.h.
 *
 * Order matters. Small counts come before large ones, because some kernel memory only grows (every
 * memory cgroup holds 16 bytes per superblock that was ever alive at once), and every reading is
 * compared with the first, because a slab that a former point left half empty would hide what the
 * next one takes. Boxes have no client connection while memory is read: an idle box has none. */
#include "density.h"

#include "base/clock.h"
#include "base/cleanup.h"
#include "mine.h"
#include "subject.h"
#include "wire/sock.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FEW = 10, BATCH = 40, BATCHES = 5, EXECS = 200, FIRST_POINT = 1000 };

struct herd {
	char (*ids)[WIRE_ID];
	unsigned n;
};

const char *density_kind_name(enum density_kind kind)
{
	return kind == DENSITY_IDLE ? "idle" : "own limits, one program run";
}

/* An unclaimed box ends with its first connection; any request to its init claims it. */
static int claim(struct box_handle *b, struct err *e)
{
	static _Alignas(8) char answer[WIRE_MAX];
	struct frame ask = sock_head(WIRE_STAT, 0);
	unsigned nfds = 0;

	if (sock_send(b->init, &ask, sizeof(ask), NULL, 0, NULL, 0, e) < 0)
		return -1;
	if (sock_recv(b->init, answer, NULL, &nfds, e) <= 0)
		return err_set(e, ERR_SYS, "box %s does not answer", b->about.id);
	return 0;
}

static int make_one(enum density_kind kind, char id[WIRE_ID], struct err *e)
{
	const uint16_t idle = WIRE_CREATE_COLD | WIRE_CREATE_IDLE;
	struct box_handle b;
	int done;

	if (mine_create(&b, kind == DENSITY_IDLE ? idle : WIRE_CREATE_COLD, e) < 0)
		return -1;
	memcpy(id, b.about.id, WIRE_ID);
	done = kind == DENSITY_LIMITED ? mine_true(&b, e) : claim(&b, e);
	boxh_close(&b);
	return done;
}

static int grow(struct herd *h, enum density_kind kind, unsigned to, struct err *e)
{
	int tty = isatty(2);

	while (h->n < to) {
		if (stop_asked)
			return err_set(e, ERR_CONFLICT, "interrupted");
		if (make_one(kind, h->ids[h->n], e) < 0)
			return err_in(e, "box %u", h->n + 1);
		h->n++;
		if (tty && h->n % 100 == 0)
			fprintf(stderr, "\rdensity: %u boxes ", h->n);
	}
	if (tty)
		fprintf(stderr, "\r\033[K");
	return 0;
}

static int shrink(struct herd *h, unsigned to, struct err *e)
{
	while (h->n > to) {
		if (boxh_kill(mine_link(), h->ids[h->n - 1], NULL, e) < 0)
			return err_in(e, "kill box %u", h->n);
		h->n--;
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The rate of creating further boxes: the median of a few batches, each removed again. */
static int create_rate(struct herd *h, enum density_kind kind, double *out, struct err *e)
{
	double rates[BATCHES];
	unsigned living = h->n;

	for (int i = 0; i < BATCHES; i++) {
		uint64_t from = now_ns();

		if (grow(h, kind, living + BATCH, e) < 0)
			return -1;
		rates[i] = BATCH * 1e9 / (double)(now_ns() - from);
		if (shrink(h, living, e) < 0)
			return -1;
	}
	qsort(rates, BATCHES, sizeof(*rates), by_value);
	*out = rates[BATCHES / 2];
	return 0;
}

/* Execs in randomly chosen boxes, with plain processes in between; connecting is not measured. */
static int exec_samples(const struct herd *h, struct samples *exec, struct samples *fork,
			struct err *e)
{
	struct subject *plain = subject_named("fork");

	for (int i = 0; i < EXECS && !stop_asked; i++) {
		uint64_t from, fork_ns;
		struct box_handle b;
		int ran;

		if (boxh_open(mine_link(), &b, h->ids[(unsigned)random() % h->n], e) < 0)
			return -1;
		from = now_ns();
		ran = mine_true(&b, e);
		samples_add(exec, now_ns() - from);
		boxh_close(&b);
		if (ran < 0 || subject_run(plain, &fork_ns, NULL, e) < 0)
			return -1;
		samples_add(fork, fork_ns);
	}
	return 0;
}

static int measure(struct density_point *p, struct herd *h, struct err *e)
{
	uint64_t from = now_ns();

	if (grow(h, p->kind, p->boxes, e) < 0)
		return -1;
	p->fill_rate = p->boxes * 1e9 / (double)(now_ns() - from);
	p->at = memory_settle();
	/* Before the execs: a box in which something ran uses more memory. */
	if (create_rate(h, p->kind, &p->create_rate, e) < 0 ||
	    exec_samples(h, &p->exec, &p->fork, e) < 0)
		return -1;
	from = now_ns();
	if (shrink(h, 0, e) < 0)
		return -1;
	p->destroy_rate = p->boxes * 1e9 / (double)(now_ns() - from);
	p->back = memory_settle();
	p->measured = 1;
	return 0;
}

static int rate_at_few(struct density *d, struct herd *h, struct err *e)
{
	struct samples exec = { 0 }, fork = { 0 };
	int failed = grow(h, DENSITY_IDLE, FEW, e) < 0 ||
		     create_rate(h, DENSITY_IDLE, &d->rate_at_10, e) < 0 ||
		     exec_samples(h, &exec, &fork, e) < 0 || shrink(h, 0, e) < 0;

	d->fork_at_10_ms = samples_ms(&fork, 0.5);
	samples_fini(&exec);
	samples_fini(&fork);
	return failed ? -1 : 0;
}

static void plan(struct density *d, unsigned most)
{
	unsigned first = most < FIRST_POINT ? most : FIRST_POINT;

	d->points[d->npoints++] = (struct density_point){ .kind = DENSITY_IDLE, .boxes = first };
	if (most > first)
		d->points[d->npoints++] =
			(struct density_point){ .kind = DENSITY_IDLE, .boxes = most };
	/* Last: the kernel frees memory cgroups after minutes, and all points need the same
	 * start. */
	d->points[d->npoints++] = (struct density_point){ .kind = DENSITY_LIMITED, .boxes = first };
}

void density_measure(struct density *d, unsigned most)
{
	struct herd h = { .ids = calloc(most + BATCH + FEW, WIRE_ID) };
	struct wire_info about;
	struct memory before;
	struct err e;
	int broken;

	if (!h.ids)
		abort();
	d->rate_at_10 = d->fork_at_10_ms = NAN;
	plan(d, most);
	/* Without a pool: its boxes would be created and deleted during the measurement. */
	broken = keeper_sync_set_pool(mine_link(), 0, &about, &e) < 0 || rate_at_few(d, &h, &e) < 0;
	before = memory_settle();
	for (unsigned i = 0; i < d->npoints; i++) {
		d->points[i].before = before;
		/* After a failure the number of boxes is unknown: later points would be wrong. */
		if (broken || measure(&d->points[i], &h, &e) < 0) {
			snprintf(d->points[i].missing, sizeof(d->points[i].missing), "%.190s",
				 e.msg);
			broken = 1;
		}
	}
	free(h.ids);
}

static double each(const struct density_point *p, long (*of)(const struct memory *))
{
	return p->measured ? (double)(of(&p->at) - of(&p->before)) / p->boxes : NAN;
}

double density_used_each(const struct density_point *p)
{
	return each(p, memory_used);
}

double density_parts_each(const struct density_point *p)
{
	return each(p, memory_parts);
}

void density_fini(struct density *d)
{
	for (unsigned i = 0; i < d->npoints; i++) {
		samples_fini(&d->points[i].exec);
		samples_fini(&d->points[i].fork);
	}
}
