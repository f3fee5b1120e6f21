/* sample.c - see sample.h. */
#include "sample.h"

#include <math.h>
#include <stdlib.h>

void samples_add(struct samples *s, uint64_t ns)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 256;
		s->ns = realloc(s->ns, s->cap * sizeof(*s->ns));
		if (!s->ns)
			abort();
	}
	s->ns[s->n++] = ns;
	s->sorted = 0;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double samples_ms(struct samples *s, double share)
{
	size_t rank;

	if (!s->n)
		return NAN;
	if (!s->sorted)
		qsort(s->ns, s->n, sizeof(*s->ns), by_size);
	s->sorted = 1;
	rank = (size_t)ceil(share * (double)s->n);
	return (double)s->ns[rank ? rank - 1 : 0] / 1e6;
}

double samples_mean_ms(const struct samples *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += (double)s->ns[i];
	return s->n ? sum / (double)s->n / 1e6 : NAN;
}

void samples_fini(struct samples *s)
{
	free(s->ns);
	*s = (struct samples){ 0 };
}
