/* suspects.h - boxes that look like miners: all of their CPU for long, and hardly any output. */
#pragma once
#include "api/api.h"

enum { SUSPECT_S = 600, SUSPECT_OUTPUT = 4096 }; /* that long; bytes of the programs that run */

unsigned suspects_count(const struct api *a);

struct usage_sample;
struct suspect_span { /* zeroed at the beginning */
	uint64_t first_us, last_us;
	uint32_t first_s, last_s;
};
void suspect_add(void *span, const struct usage_sample *s);
/* 1: nearly all of this CPU time was used, for SUSPECT_S. */
int suspect_is_pinned(const struct suspect_span *x, uint32_t cpu_milli);
