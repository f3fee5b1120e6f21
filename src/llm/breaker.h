/* breaker.h - a provider that fails again and again is left alone for a while.
 * Owns: nothing; a zeroed one is a provider in good health. */
#pragma once
#include <stdint.h>

struct breaker {
	unsigned failures;
	uint64_t rests_until_ms;
	uint32_t rest_ms;
	char why[120];
};

void breaker_good(struct breaker *b);
void breaker_failed(struct breaker *b, const char *provider, const char *why);
uint64_t breaker_rests(const struct breaker *b); /* for so many ms; 0: it may be asked */
