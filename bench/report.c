/* report.c - see report.h. A figure that was not measured is "n/a" or null, never 0. */
#include "report.h"

#include "base/cleanup.h"
#include "rate.h"
#include "subject.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- goals ---- */

static double ratio_p50(const char *of, const char *to)
{
	return subject_p50(of) / subject_p50(to);
}

static double pooled_to_fork(struct findings *f)
{
	(void)f;
	return ratio_p50("pooled", "fork");
}

static double exec_to_fork(struct findings *f)
{
	(void)f;
	return ratio_p50("exec", "fork");
}

static double cold_to_bwrap(struct findings *f)
{
	(void)f;
	return ratio_p50("cold", "bwrap");
}

static double cold_to_crun(struct findings *f)
{
	(void)f;
	return ratio_p50("cold", "crun");
}

static double cold_tail(struct findings *f)
{
	struct subject *s = subject_named("cold");

	(void)f;
	return samples_ms(&s->done, 0.99) / samples_ms(&s->done, 0.5);
}

/* The best of its numbers of workers; NAN if none was measured. */
static double best_rate(const char *name)
{
	const struct subject *s = subject_named(name);
	double best = NAN;

	for (int i = 0; i < RATE_STEPS; i++)
		if (s->slices[i])
			best = fmax(best, s->rate[i]); /* fmax prefers a number to NAN */
	return best;
}

static double version_to_fork(struct findings *f)
{
	(void)f;
	return ratio_p50("typed_version", "fork");
}

static double typed_to_bwrap(struct findings *f)
{
	(void)f;
	return ratio_p50("typed_true", "bwrap");
}

static double typed_to_crun(struct findings *f)
{
	(void)f;
	return ratio_p50("typed_true", "crun");
}

static double typed_to_python(struct findings *f)
{
	(void)f;
	return ratio_p50("typed_python", "python");
}

/* With the most workers, which is 8. */
static double typed_rate_to_bwrap(struct findings *f)
{
	const struct subject *s = subject_named("typed_true"), *to = subject_named("bwrap");
	int most = RATE_STEPS - 1;

	(void)f;
	return s->slices[most] && to->slices[most] ? s->rate[most] / to->rate[most] : NAN;
}

static double rate_to_bwrap(struct findings *f)
{
	(void)f;
	return fmax(best_rate("cold"), best_rate("pooled")) / best_rate("bwrap");
}

/* NULL: not measured. */
static const struct density_point *idle_point(const struct findings *f, unsigned boxes)
{
	for (unsigned i = 0; i < f->density->npoints; i++) {
		const struct density_point *p = &f->density->points[i];

		if (p->kind == DENSITY_IDLE && p->boxes == boxes && p->measured)
			return p;
	}
	return NULL;
}

static double idle_kib(struct findings *f, unsigned boxes)
{
	const struct density_point *p = idle_point(f, boxes);

	return p ? fmax(density_used_each(p), density_parts_each(p)) : NAN;
}

static double idle_kib_1000(struct findings *f)
{
	return idle_kib(f, 1000);
}

static double idle_kib_5000(struct findings *f)
{
	return idle_kib(f, 5000);
}

static double rate_kept_at_5000(struct findings *f)
{
	const struct density_point *p = idle_point(f, 5000);

	return p ? p->create_rate / f->density->rate_at_10 : NAN;
}

static const struct goal {
	const char *name, *what, *unit;
	enum { AT_MOST, AT_LEAST } side;
	double bound;
	double (*value)(struct findings *f);
} goals[] = {
	{ "pooled", "pooled create, /bin/true done, p50", "x vfork+exec", AT_MOST, 2.0,
	  pooled_to_fork },
	{ "exec", "exec in a living box, done, p50", "x vfork+exec", AT_MOST, 1.6, exec_to_fork },
	{ "cold_bwrap", "cold create + run + teardown, p50", "x bubblewrap", AT_MOST, 0.55,
	  cold_to_bwrap },
	{ "cold_crun", "cold create + run + teardown, p50", "x crun", AT_MOST, 0.3, cold_to_crun },
	{ "cold_tail", "cold create + run + teardown, p99", "x its p50", AT_MOST, 3.0, cold_tail },
	{ "rate", "sustained create + run + destroy", "x bubblewrap", AT_LEAST, 1.7,
	  rate_to_bwrap },
	{ "typed_version", "typed: atoll --version, p50", "x /bin/true", AT_MOST, 1.5,
	  version_to_fork },
	{ "typed_bwrap", "typed: atoll run -- true, p50", "x bubblewrap", AT_MOST, 0.6,
	  typed_to_bwrap },
	{ "typed_crun", "typed: atoll run -- true, p50", "x crun", AT_MOST, 0.4, typed_to_crun },
	{ "typed_python", "typed: atoll run print1.py, p50", "x python3 print1.py", AT_MOST, 0.35,
	  typed_to_python },
	{ "typed_rate", "typed: atoll run -- true, 8 at once", "x bubblewrap", AT_LEAST, 1.5,
	  typed_rate_to_bwrap },
	{ "idle_1000", "idle box, 1,000 alive, all memory", "KiB", AT_MOST, 400, idle_kib_1000 },
	{ "idle_5000", "idle box, 5,000 alive, all memory", "KiB", AT_MOST, 400, idle_kib_5000 },
	{ "rate_5000", "create rate at 5,000 alive", "of that at 10", AT_LEAST, 0.6,
	  rate_kept_at_5000 },
};

static const char *verdict(const struct goal *g, double v)
{
	if (isnan(v))
		return "n/a";
	return (g->side == AT_MOST ? v <= g->bound : v >= g->bound) ? "met" : "missed";
}

/* ---- table ---- */

/* A cell: the number, or a dash where there is none. */
static void cell(int width, int digits, double v)
{
	if (isnan(v))
		printf("%*s", width, "-");
	else
		printf("%*.*f", width, digits, v);
}

static void latency_row(const char *label, struct samples *t, unsigned failed)
{
	double p50 = samples_ms(t, 0.5);

	printf("  %-29s%6zu", label, t->n);
	cell(9, 3, p50);
	cell(9, 3, samples_ms(t, 0.9));
	cell(9, 3, samples_ms(t, 0.99));
	cell(9, 3, samples_ms(t, 0));
	cell(9, 2, p50 / subject_p50("fork"));
	cell(9, 3, p50 / subject_p50("bwrap"));
	cell(9, 3, p50 / subject_p50("crun"));
	if (failed)
		printf("  %u failed", failed);
	putchar('\n');
}

static void latency_table(const struct findings *f)
{
	printf("\n/bin/true, from the wish to its exit status; ms; %u rounds by turns\n",
	       f->rounds);
	printf("  %-29s%6s%9s%9s%9s%9s%9s%9s%9s\n", "", "n", "p50", "p90", "p99", "min", "x fork",
	       "x bwrap", "x crun");
	for (unsigned i = 0; i < nsubjects; i++) {
		struct subject *s = &subjects[i];

		if (!s->wanted)
			continue;
		if (*s->missing)
			printf("  %-29s n/a (%s)\n", s->label, s->missing);
		if (s->done.n)
			latency_row(s->label, &s->done, s->failed);
		if (s->done.n && s->after)
			latency_row("  the same + its end", &s->total, 0);
	}
}

static void rates_table(void)
{
	printf("\ncreate + run /bin/true + destroy per second; ratios of the best columns\n  %-29s",
	       "");
	for (int i = 0; i < RATE_STEPS; i++)
		printf("%6d worker%s", rate_workers[i], rate_workers[i] == 1 ? " " : "s");
	printf("%9s%9s\n", "x fork", "x bwrap");
	for (unsigned i = 0; i < nsubjects; i++) {
		struct subject *s = &subjects[i];

		if (!s->wanted || !s->in_rates)
			continue;
		if (*s->missing) {
			printf("  %-29s n/a (%s)\n", s->label, s->missing);
			continue;
		}
		printf("  %-29s", s->label);
		for (int step = 0; step < RATE_STEPS; step++)
			cell(14, 0, s->slices[step] ? s->rate[step] : NAN);
		cell(9, 3, best_rate(s->name) / best_rate("fork"));
		cell(9, 2, best_rate(s->name) / best_rate("bwrap"));
		printf("%s%s%s\n", *s->rate_note ? "  (" : "", s->rate_note,
		       *s->rate_note ? ")" : "");
	}
}

static void density_row(struct density_point *p)
{
	printf("  %5u %-28s", p->boxes, density_kind_name(p->kind));
	if (!p->measured) {
		printf(" n/a (%s)\n", p->missing);
		return;
	}
	cell(9, 0, density_used_each(p));
	cell(9, 0, density_parts_each(p));
	cell(9, 0, (double)(p->before.available - p->at.available) / p->boxes);
	cell(10, 0, p->create_rate);
	cell(10, 0, p->destroy_rate);
	cell(10, 3, samples_ms(&p->exec, 0.5));
	cell(8, 2, samples_ms(&p->exec, 0.5) / samples_ms(&p->fork, 0.5));
	cell(11, 1, (double)(memory_used(&p->back) - memory_used(&p->before)) / 1024);
	printf("%s\n",
	       p->at.settled && p->back.settled ? "" : "  (unsettled: neighbours are busy)");
}

/* Where it goes, per box. */
static void parts_row(const struct density_point *p)
{
	const struct memory *a = &p->at, *b = &p->before;
	double n = p->boxes;

	if (!p->measured)
		return;
	printf("        of it: slab %.0f, page tables %.0f, stacks %.0f, per-cpu %.0f, "
	       "anonymous %.0f, tmpfs %.0f\n",
	       (double)(a->slab - b->slab) / n, (double)(a->page_tables - b->page_tables) / n,
	       (double)(a->kernel_stack - b->kernel_stack) / n, (double)(a->percpu - b->percpu) / n,
	       (double)(a->anon - b->anon) / n, (double)(a->shmem - b->shmem) / n);
}

static void density_table(struct density *d)
{
	printf("\nmany boxes at once; KiB per box; create and destroy per second\n");
	printf("  %5s %-28s%9s%9s%9s%10s%10s%10s%8s%11s\n", "boxes", "", "used", "parts", "avail.",
	       "create/s", "destroy/s", "exec ms", "x fork", "left MiB");
	printf("  %5d %-28s%9s%9s%9s", 10, "idle", "-", "-", "-");
	cell(10, 0, d->rate_at_10);
	putchar('\n');
	for (unsigned i = 0; i < d->npoints; i++) {
		density_row(&d->points[i]);
		parts_row(&d->points[i]);
	}
	printf("  used: all that is not free, less page cache; parts: slab + page tables + stacks\n"
	       "  + per-cpu + anonymous + tmpfs; avail.: fall of MemAvailable. The goal takes the\n"
	       "  higher of the first two. left: memory not freed after the last box was deleted.\n");
}

static void goals_table(struct findings *f)
{
	printf("\ngoals\n");
	for (unsigned i = 0; i < ARRAY_LEN(goals); i++) {
		const struct goal *g = &goals[i];
		double v = g->value(f);

		printf("  %-38s", g->what);
		cell(9, g->bound >= 100 ? 0 : 2, v);
		printf(" %-15s goal %s %-5.*f %s\n", g->unit,
		       g->side == AT_MOST ? "<=" : ">=", g->bound >= 100 ? 0 : 2, g->bound,
		       verdict(g, v));
	}
}

static void facts_table(const struct facts *m)
{
	printf("%s, %s, kernel %s, %d of cpu %s, %ld MiB, cgroup %s, load %.1f\n", m->when, m->arch,
	       m->kernel, m->cpus, m->cpu, m->memory_mib, m->cgroup, m->load);
	for (unsigned i = 0; i < nsubjects; i++)
		if (*subjects[i].version)
			printf("  %s\n", subjects[i].version);
}

void report_table(struct findings *f)
{
	facts_table(f->facts);
	if (f->with_latency)
		latency_table(f);
	if (f->with_rates)
		rates_table();
	if (f->with_density)
		density_table(f->density);
	goals_table(f);
}

/* ---- JSON ---- */

static void json_text(FILE *o, const char *key, const char *value)
{
	fprintf(o, "\"%s\":\"", key);
	for (; *value; value++)
		if (*value == '"' || *value == '\\')
			fprintf(o, "\\%c", *value);
		else
			fputc(iscntrl((unsigned char)*value) || !isascii(*value) ? '?' : *value, o);
	fputc('"', o);
}

static void json_number(FILE *o, const char *key, double v)
{
	if (isfinite(v))
		fprintf(o, "\"%s\":%.6g", key, v);
	else
		fprintf(o, "\"%s\":null", key);
}

static void json_comma_number(FILE *o, const char *key, double v)
{
	fputc(',', o);
	json_number(o, key, v);
}

static void json_samples(FILE *o, const char *key, struct samples *t)
{
	double p50 = samples_ms(t, 0.5);

	fprintf(o, ",\"%s\":{\"n\":%zu", key, t->n);
	json_comma_number(o, "p50_ms", p50);
	json_comma_number(o, "p90_ms", samples_ms(t, 0.9));
	json_comma_number(o, "p99_ms", samples_ms(t, 0.99));
	json_comma_number(o, "min_ms", samples_ms(t, 0));
	json_comma_number(o, "mean_ms", samples_mean_ms(t));
	json_comma_number(o, "x_fork", p50 / subject_p50("fork"));
	json_comma_number(o, "x_bwrap", p50 / subject_p50("bwrap"));
	json_comma_number(o, "x_crun", p50 / subject_p50("crun"));
	fputc('}', o);
}

static void json_facts(FILE *o, const struct facts *m)
{
	fprintf(o, "{\"machine\":{");
	json_text(o, "when", m->when);
	fputc(',', o);
	json_text(o, "kernel", m->kernel);
	fputc(',', o);
	json_text(o, "arch", m->arch);
	fputc(',', o);
	json_text(o, "cpu", m->cpu);
	fputc(',', o);
	json_text(o, "distribution", m->distro);
	fputc(',', o);
	json_text(o, "cgroup", m->cgroup);
	json_comma_number(o, "cpus", m->cpus);
	json_comma_number(o, "memory_mib", (double)m->memory_mib);
	json_comma_number(o, "load", m->load);
	fprintf(o, "}");
}

static void json_subject(FILE *o, struct subject *s)
{
	fputc('{', o);
	json_text(o, "name", s->name);
	fputc(',', o);
	json_text(o, "label", s->label);
	fputc(',', o);
	json_text(o, "version", s->version);
	fputc(',', o);
	json_text(o, "missing", s->missing);
	json_comma_number(o, "failed", s->failed);
	if (s->done.n)
		json_samples(o, "done", &s->done);
	if (s->done.n && s->after)
		json_samples(o, "with_end", &s->total);
	for (int i = 0; i < RATE_STEPS; i++) {
		char key[32];

		if (!s->slices[i])
			continue;
		snprintf(key, sizeof(key), "per_second_%d", rate_workers[i]);
		json_comma_number(o, key, s->rate[i]);
	}
	fputc(',', o);
	json_text(o, "rate_note", s->rate_note);
	fputc('}', o);
}

static void json_point(FILE *o, struct density_point *p)
{
	fprintf(o, "{\"boxes\":%u,", p->boxes);
	json_text(o, "kind", density_kind_name(p->kind));
	fputc(',', o);
	json_text(o, "missing", p->missing);
	json_comma_number(o, "used_kib_each", density_used_each(p));
	json_comma_number(o, "parts_kib_each", density_parts_each(p));
	if (p->measured) {
		json_comma_number(o, "create_per_second", p->create_rate);
		json_comma_number(o, "fill_per_second", p->fill_rate);
		json_comma_number(o, "destroy_per_second", p->destroy_rate);
		json_comma_number(o, "left_kib",
				  (double)(memory_used(&p->back) - memory_used(&p->before)));
		fprintf(o, ",\"settled\":%s", p->at.settled && p->back.settled ? "true" : "false");
		json_samples(o, "exec", &p->exec);
		json_samples(o, "fork", &p->fork);
	}
	fputc('}', o);
}

static void json_density(FILE *o, struct density *d)
{
	fprintf(o, ",\"density\":{");
	json_number(o, "create_per_second_at_10", d->rate_at_10);
	json_comma_number(o, "fork_ms_at_10", d->fork_at_10_ms);
	fprintf(o, ",\"points\":[");
	for (unsigned i = 0; i < d->npoints; i++) {
		fputs(i ? "," : "", o);
		json_point(o, &d->points[i]);
	}
	fprintf(o, "]}");
}

static void json_goals(FILE *o, struct findings *f)
{
	fprintf(o, ",\"goals\":[");
	for (unsigned i = 0; i < ARRAY_LEN(goals); i++) {
		double v = goals[i].value(f);

		fputs(i ? ",{" : "{", o);
		json_text(o, "name", goals[i].name);
		fputc(',', o);
		json_text(o, "what", goals[i].what);
		fputc(',', o);
		json_text(o, "unit", goals[i].unit);
		json_comma_number(o, "value", v);
		fputc(',', o);
		json_text(o, "side", goals[i].side == AT_MOST ? "at most" : "at least");
		json_comma_number(o, "bound", goals[i].bound);
		fputc(',', o);
		json_text(o, "verdict", verdict(&goals[i], v));
		fputc('}', o);
	}
	fputc(']', o);
}

int report_json(struct findings *f, const char *path, struct err *e)
{
	FILE *o = fopen(path, "we");
	int first = 1;

	if (!o)
		return err_sys(e, "write %s", path);
	json_facts(o, f->facts);
	json_comma_number(o, "rounds", f->rounds);
	fprintf(o, ",\"subjects\":[");
	for (unsigned i = 0; i < nsubjects; i++) {
		if (!subjects[i].wanted)
			continue;
		fputs(first ? "" : ",", o);
		json_subject(o, &subjects[i]);
		first = 0;
	}
	fputc(']', o);
	if (f->with_density)
		json_density(o, f->density);
	json_goals(o, f);
	fprintf(o, "}\n");
	if (ferror(o) | fclose(o))
		return err_sys(e, "write %s", path);
	return 0;
}
