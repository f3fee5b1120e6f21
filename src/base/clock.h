/* clock.h - time, in nanoseconds, as a number. */
#pragma once
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t now_ns(void) /* never jumps */
{
	return clock_ns(CLOCK_MONOTONIC);
}
