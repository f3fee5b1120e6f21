/* exposition.c - see exposition.h.
 *
 * In OpenMetrics a family has the name of a counter without _total, its unit is the end of its name,
 * buckets have exemplars, and the text ends with "# EOF". */
#include "metrics/exposition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Accept ---- */

/* The value of q in thousandths; 1000 without one. The part ends at the next comma. */
static unsigned exposition_quality(const char *part, size_t len)
{
	const char *q = memmem(part, len, "q=", 2);
	double v = q ? strtod(q + 2, NULL) : 1;

	return v > 0 && v <= 1 ? (unsigned)(v * 1000) : v > 1 ? 1000 : 0;
}

enum exposition exposition_of_accept(const char *accept)
{
	static const char om[] = "application/openmetrics-text";
	unsigned open = 0, text = 0;

	while (accept && *accept) {
		size_t len = strcspn(accept, ",");

		accept += strspn(accept, " \t");
		len = strcspn(accept, ",");
		if (len >= sizeof(om) - 1 && !strncasecmp(accept, om, sizeof(om) - 1)) {
			unsigned q = exposition_quality(accept, len);

			open = q > open ? q : open;
		} else if (len >= 10 && !strncasecmp(accept, "text/plain", 10)) {
			unsigned q = exposition_quality(accept, len);

			text = q > text ? q : text;
		}
		accept += len + (accept[len] == ',');
	}
	return open && open >= text ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT;
}

const char *exposition_content_type(enum exposition how)
{
	return how == EXPOSITION_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- parts ---- */

/* The value of a label. The bytes of a name that is not UTF-8 never get here: the store has none. */
static void exposition_escape(struct buf *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			buf_putc(out, '\\');
		if (*value == '\n')
			buf_puts(out, "\\n");
		else
			buf_putc(out, *value);
	}
}

void exposition_series_text(struct buf *out, const struct metric_def *d, const char *const *labels)
{
	buf_printf(out, "atoll_%s", d->name);
	for (unsigned i = 0; i < metric_nlabels(d); i++) {
		buf_printf(out, "%c%s=\"", i ? ',' : '{', d->labels[i].name);
		exposition_escape(out, labels[i]);
		buf_putc(out, '"');
	}
}

void exposition_number(struct buf *out, double v)
{
	char text[32], *at = text + sizeof(text);
	uint64_t n;

	if (isnan(v)) {
		buf_puts(out, "NaN");
	} else if (isinf(v)) {
		buf_puts(out, v > 0 ? "+Inf" : "-Inf");
	} else if (v >= 0 && v < 1e15 && v == (double)(uint64_t)v) {
		n = (uint64_t)v;
		do
			*--at = (char)('0' + n % 10);
		while (n /= 10);
		buf_add(out, at, (size_t)(text + sizeof(text) - at));
	} else {
		buf_printf(out, "%.12g", v);
	}
}

static double exposition_bound(const struct metric_def *d, unsigned bucket)
{
	return !strcmp(d->unit, "bytes") ? (double)fleet_byte_bounds[bucket] : fleet_bounds[bucket];
}

/* The value of le. OpenMetrics writes 1 as 1.0. */
static void exposition_le(struct buf *out, double bound, enum exposition how)
{
	exposition_number(out, bound);
	if (how == EXPOSITION_OPENMETRICS && bound == (double)(uint64_t)bound)
		buf_puts(out, ".0");
}

static size_t exposition_family_len(const struct metric_def *d, enum exposition how)
{
	size_t n = strlen(d->name);

	return how == EXPOSITION_OPENMETRICS && d->type == METRIC_COUNTER ? n - strlen("_total")
									  : n;
}

static void exposition_head(struct buf *out, const struct metric_def *d, enum exposition how)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };
	int n = (int)exposition_family_len(d, how);

	buf_printf(out, "# HELP atoll_%.*s %s\n# TYPE atoll_%.*s %s\n", n, d->name, d->help, n,
		   d->name, types[d->type]);
	if (how == EXPOSITION_OPENMETRICS && d->unit[0])
		buf_printf(out, "# UNIT atoll_%.*s %s\n", n, d->name, d->unit);
}

static void exposition_exemplar(struct buf *out, const struct fleet_exemplar *x)
{
	buf_printf(out, " # {run_id=\"%s\"} %.9g %lld.%03d", x->run, x->value,
		   (long long)(x->at_ns / 1000000000), (int)(x->at_ns / 1000000 % 1000));
}

/* The line `name_suffix{labels`, without the closing brace. */
static void exposition_line(struct buf *out, const struct metrics_series *s, const char *suffix)
{
	size_t name = strlen("atoll_") + strlen(s->def->name);

	buf_add(out, s->text, name);
	buf_puts(out, suffix);
	buf_puts(out, s->text + name);
}

static void exposition_histogram(struct buf *out, const struct metrics_series *s, const double *v,
				 enum exposition how, int64_t created_ns)
{
	const char *brace = s->labels[0] ? "} " : " ";
	double sum = 0;

	for (unsigned i = 0; i <= FLEET_BUCKETS; i++) {
		const struct fleet_exemplar *x = s->examples ? &s->examples[i] : NULL;

		sum += v[i];
		exposition_line(out, s, "_bucket");
		buf_puts(out, s->labels[0] ? ",le=\"" : "{le=\"");
		if (i < FLEET_BUCKETS)
			exposition_le(out, exposition_bound(s->def, i), how);
		else
			buf_puts(out, "+Inf");
		buf_puts(out, "\"} ");
		exposition_number(out, sum);
		if (how == EXPOSITION_OPENMETRICS && x && x->run[0])
			exposition_exemplar(out, x);
		buf_putc(out, '\n');
	}
	exposition_line(out, s, "_count");
	buf_puts(out, brace);
	exposition_number(out, v[METRICS_COUNT_SLOT]);
	buf_putc(out, '\n');
	exposition_line(out, s, "_sum");
	buf_puts(out, brace);
	exposition_number(out, v[METRICS_SUM_SLOT]);
	buf_putc(out, '\n');
	if (how == EXPOSITION_OPENMETRICS) {
		exposition_line(out, s, "_created");
		buf_printf(out, "%s%lld.%03d\n", brace, (long long)(created_ns / 1000000000),
			   (int)(created_ns / 1000000 % 1000));
	}
}

void exposition_print(const struct metrics *m, enum exposition how, int64_t created_ns,
		      struct buf *out)
{
	for (unsigned id = 0; id < METRIC_COUNT; id++) {
		unsigned n, shown = 0;
		struct metrics_series *const *all = metrics_series(m, (enum metric_id)id, &n);

		for (unsigned i = 0; i < n; i++) {
			const struct metrics_series *s = all[i];
			const double *v = metrics_value(m, s);

			if (!metrics_is_current(m, s))
				continue;
			if (!shown++)
				exposition_head(out, s->def, how);
			if (s->def->type == METRIC_HISTOGRAM) {
				exposition_histogram(out, s, v, how, created_ns);
				continue;
			}
			buf_puts(out, s->text);
			buf_puts(out, s->labels[0] ? "} " : " ");
			exposition_number(out, v[0]);
			buf_putc(out, '\n');
		}
	}
	if (how == EXPOSITION_OPENMETRICS)
		buf_puts(out, "# EOF\n");
}
