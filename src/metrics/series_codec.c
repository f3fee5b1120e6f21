/* series_codec.c - see series_codec.h. */
#include "metrics/series_codec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_VERSION = 1 };

/* ---- values ---- */

void series_value_add(struct series_value *to, const struct series_value *more)
{
	to->sum += more->sum;
	to->count += more->count;
	for (unsigned i = 0; i <= FLEET_BUCKETS; i++)
		to->bucket[i] += more->bucket[i];
}

double series_quantile(const struct metric_def *d, const struct series_value *v, double part)
{
	int bytes = !strcmp(d->unit, "bytes");
	double rank = part * (double)v->count, below = 0, least = 0;

	for (unsigned i = 0; i < FLEET_BUCKETS; i++) {
		double bound = bytes ? (double)fleet_byte_bounds[i] : fleet_bounds[i],
		       n = (double)v->bucket[i];

		if (n > 0 && below + n >= rank)
			return least + (bound - least) * (rank - below) / n;
		below += n;
		least = bound;
	}
	return v->count ? least : 0; /* above the last bound */
}

/* ---- sets ---- */

void series_set_fini(struct series_set *s)
{
	free(s->v);
	*s = (struct series_set){ 0 };
}

static int series_is_same(const struct series_entry *a, const struct series_entry *b)
{
	if (a->nlabels != b->nlabels || a->type != b->type || strcmp(a->name, b->name) != 0)
		return 0;
	for (unsigned i = 0; i < a->nlabels; i++)
		if (strcmp(a->labels[i], b->labels[i]) != 0)
			return 0;
	return 1;
}

void series_set_add(struct series_set *s, const struct series_entry *x)
{
	for (unsigned k = 0; k < s->n; k++) {
		unsigned i = (s->next + k) % s->n;

		if (series_is_same(&s->v[i], x)) {
			series_value_add(&s->v[i].v, &x->v);
			s->next = i + 1;
			return;
		}
	}
	if (s->n == s->room) {
		s->room = s->room ? s->room * 2 : 64;
		s->v = realloc(s->v, s->room * sizeof(*s->v));
		if (!s->v)
			abort();
	}
	s->v[s->n++] = *x;
	s->next = 0;
}

/* ---- bytes ---- */

static void series_put_number(struct buf *out, uint64_t n)
{
	while (n >= 0x80) {
		buf_putc(out, (char)(n | 0x80));
		n >>= 7;
	}
	buf_putc(out, (char)n);
}

static void series_put_text(struct buf *out, const char *text)
{
	size_t n = strlen(text);

	series_put_number(out, n);
	buf_add(out, text, n);
}

static void series_put_value(struct buf *out, enum metric_type type, const struct series_value *v)
{
	buf_add(out, &v->sum, sizeof(v->sum));
	if (type != METRIC_COUNTER)
		series_put_number(out, v->count);
	for (unsigned i = 0; type == METRIC_HISTOGRAM && i <= FLEET_BUCKETS; i++)
		series_put_number(out, v->bucket[i]);
}

void series_encode(const struct series_set *s, const char *only, struct buf *out)
{
	auto_buf struct buf body = { 0 };

	buf_putc(out, SERIES_VERSION);
	for (unsigned i = 0; i < s->n;) {
		const struct series_entry *first = &s->v[i];
		unsigned k = i;

		if (only && strcmp(first->name, only) != 0) {
			i++;
			continue;
		}
		buf_cut(&body, 0);
		for (; k < s->n && !strcmp(s->v[k].name, first->name) &&
		       s->v[k].type == first->type && s->v[k].nlabels == first->nlabels;
		     k++) {
			for (unsigned j = 0; j < first->nlabels; j++)
				series_put_text(&body, s->v[k].labels[j]);
			series_put_value(&body, first->type, &s->v[k].v);
		}
		series_put_text(out, first->name);
		buf_putc(out, (char)first->type);
		buf_putc(out, (char)first->nlabels);
		series_put_number(out, body.len);
		buf_add(out, body.p, body.len);
		i = k;
	}
}

struct series_reader {
	const uint8_t *at, *end;
	int bad;
};

static uint64_t series_get_number(struct series_reader *r)
{
	uint64_t n = 0;

	for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
		uint8_t byte = *r->at++;

		n |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return n;
	}
	r->bad = 1;
	return 0;
}

static uint8_t series_get_byte(struct series_reader *r)
{
	if (r->at < r->end)
		return *r->at++;
	r->bad = 1;
	return 0;
}

static const void *series_get_bytes(struct series_reader *r, uint64_t n)
{
	const void *p = r->at;

	if (r->bad || n > (uint64_t)(r->end - r->at)) {
		r->bad = 1;
		return NULL;
	}
	r->at += n;
	return p;
}

static void series_get_text(struct series_reader *r, char *out, size_t size)
{
	uint64_t n = series_get_number(r);
	const char *p = series_get_bytes(r, n);

	out[0] = 0;
	if (!p || n >= size || memchr(p, 0, n)) {
		r->bad = 1;
		return;
	}
	memcpy(out, p, n);
	out[n] = 0;
}

static void series_get_value(struct series_reader *r, struct series_entry *x)
{
	const void *sum = series_get_bytes(r, sizeof(double));

	x->v = (struct series_value){ 0 };
	if (sum)
		memcpy(&x->v.sum, sum, sizeof(double));
	r->bad |= !isfinite(x->v.sum);
	if (x->type != METRIC_COUNTER)
		x->v.count = series_get_number(r);
	for (unsigned i = 0; x->type == METRIC_HISTOGRAM && i <= FLEET_BUCKETS; i++)
		x->v.bucket[i] = series_get_number(r);
}

int series_decode(const void *data, size_t n, const char *only,
		  void (*each)(void *ctx, const struct series_entry *x), void *ctx)
{
	struct series_reader r = { .at = data, .end = (const uint8_t *)data + n };
	struct series_entry x;

	r.bad = series_get_byte(&r) != SERIES_VERSION;
	while (!r.bad && r.at < r.end) {
		struct series_reader body;
		uint64_t len;

		series_get_text(&r, x.name, sizeof(x.name));
		x.type = (enum metric_type)series_get_byte(&r);
		x.nlabels = series_get_byte(&r);
		len = series_get_number(&r);
		body.at = series_get_bytes(&r, len);
		body.bad = r.bad || x.type > METRIC_HISTOGRAM || x.nlabels > METRIC_LABELS;
		body.end = r.bad ? body.at : body.at + len;
		while (!body.bad && (!only || !strcmp(only, x.name)) && body.at < body.end) {
			for (unsigned i = 0; i < x.nlabels; i++)
				series_get_text(&body, x.labels[i], sizeof(x.labels[i]));
			series_get_value(&body, &x);
			if (!body.bad)
				each(ctx, &x);
		}
		r.bad |= body.bad;
	}
	return r.bad ? -1 : 0;
}

/* ---- rows of days ---- */

void series_put_hour(struct buf *out, unsigned hour, const void *data, size_t n)
{
	buf_putc(out, (char)hour);
	series_put_number(out, n);
	buf_add(out, data, n);
}

int series_next_hour(const void *data, size_t n, size_t *at, unsigned *out_hour,
		     const void **out_data, size_t *out_n)
{
	struct series_reader r = { .at = (const uint8_t *)data + *at,
				   .end = (const uint8_t *)data + n };

	if (r.at >= r.end)
		return 0;
	*out_hour = series_get_byte(&r);
	*out_n = series_get_number(&r);
	*out_data = series_get_bytes(&r, *out_n);
	if (r.bad || *out_hour > 23)
		return -1;
	*at = (size_t)(r.at - (const uint8_t *)data);
	return 1;
}
