/* sample.h - durations of one thing measured many times, and their percentiles.
 * Owns: the array. Zero is a valid empty one. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct samples {
	uint64_t *ns;
	size_t n, cap;
	int sorted;
};

void samples_add(struct samples *s, uint64_t ns);
/* The smallest duration that at least this share of the samples does not exceed; NAN if empty. */
double samples_ms(struct samples *s, double share);
double samples_mean_ms(const struct samples *s);
void samples_fini(struct samples *s);
