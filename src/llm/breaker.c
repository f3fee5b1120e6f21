/* breaker.c - see breaker.h. */
#include "llm/breaker.h"
#include "base/log.h"
#include "loop/loop.h"

#include <stdio.h>

enum { BREAK_AFTER = 5, REST_MS = 10000, REST_MOST_MS = 120000 };

void breaker_good(struct breaker *b)
{
	*b = (struct breaker){ 0 };
}

void breaker_failed(struct breaker *b, const char *provider, const char *why)
{
	snprintf(b->why, sizeof(b->why), "%.119s", why);
	if (++b->failures < BREAK_AFTER)
		return;
	b->rest_ms = b->rest_ms ? b->rest_ms * 2 : REST_MS;
	if (b->rest_ms > REST_MOST_MS)
		b->rest_ms = REST_MOST_MS;
	b->rests_until_ms = loop_now_ms() + b->rest_ms;
	b->failures = BREAK_AFTER - 1; /* after the pause one failure is enough */
	log_warn("requests to a model provider are suspended", LOG_S("provider", provider),
		 LOG_U("ms", b->rest_ms), LOG_S("why", b->why));
}

uint64_t breaker_rests(const struct breaker *b)
{
	uint64_t now = loop_now_ms();

	return b->rests_until_ms > now ? b->rests_until_ms - now : 0;
}
