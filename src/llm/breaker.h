/* breaker.h - a provider that fails repeatedly is not called for a while.
 * Owns: nothing; a zeroed breaker is a healthy provider. */
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
uint64_t breaker_rests(const struct breaker *b); /* remaining pause in ms; 0: it may be called */
