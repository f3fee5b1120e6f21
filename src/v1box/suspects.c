/* suspects.c - see suspects.h. */
#include "v1box/suspects.h"
#include "fleet/box.h"
#include "fleet/exec.h"
#include "v1box/usage_sampler.h"

void suspect_add(void *span, const struct usage_sample *s)
{
	struct suspect_span *x = span;

	if (s->cpu_us == UINT64_MAX)
		return;
	if (!x->first_s) {
		x->first_s = s->at_s;
		x->first_us = s->cpu_us;
	}
	x->last_s = s->at_s;
	x->last_us = s->cpu_us;
}

int suspect_is_pinned(const struct suspect_span *x, uint32_t cpu_milli)
{
	uint64_t span_s = x->last_s - x->first_s;

	/* 90 %, and two samples may be missing. */
	return x->last_s > x->first_s && span_s + 3 * USAGE_STEP_S >= SUSPECT_S &&
	       x->last_us > x->first_us &&
	       x->last_us - x->first_us >= span_s * cpu_milli * 1000 / 10 * 9;
}

/* Of its programs that run now; 1: there is one, with hardly any output. */
static int suspect_is_silent(const struct box *b)
{
	uint64_t bytes = 0;
	int runs = 0;

	for (const struct exec *x = b->runs; x; x = x->next)
		if (!x->over) {
			runs = 1;
			bytes += x->digest[0].len + x->digest[1].len;
		}
	return runs && bytes <= SUSPECT_OUTPUT;
}

unsigned suspects_count(const struct api *a)
{
	uint32_t since_s = (uint32_t)(fleet_now_ns() / 1000000000) - SUSPECT_S - USAGE_STEP_S;
	unsigned n = 0;

	for (const struct box *b = fleet_next(&a->fleet, NULL); b; b = fleet_next(&a->fleet, b)) {
		struct suspect_span span = { 0 };

		if (!suspect_is_silent(b))
			continue;
		usage_history(a->gauges, b->row.id, USAGE_STEP_S, since_s, suspect_add, &span);
		n += (unsigned)suspect_is_pinned(&span, b->row.limits.cpu_milli);
	}
	return n;
}
