/* suggest.c - see suggest.h. */
#include "cli/suggest.h"

#include <string.h>

enum { LONGEST = 40, SLIPS = 2 };

static unsigned suggest_least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned suggest_distance(const char *a, const char *b)
{
	unsigned cost[LONGEST + 1][LONGEST + 1];
	size_t la = strnlen(a, LONGEST + 1), lb = strnlen(b, LONGEST + 1);

	if (la > LONGEST || lb > LONGEST)
		return LONGEST;
	for (unsigned i = 0; i <= la; i++)
		cost[i][0] = i;
	for (unsigned j = 0; j <= lb; j++)
		cost[0][j] = j;
	for (unsigned i = 1; i <= la; i++) {
		for (unsigned j = 1; j <= lb; j++) {
			unsigned differ = a[i - 1] != b[j - 1];
			unsigned c =
				suggest_least(suggest_least(cost[i - 1][j], cost[i][j - 1]) + 1,
					      cost[i - 1][j - 1] + differ);

			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				c = suggest_least(c, cost[i - 2][j - 2] + 1);
			cost[i][j] = c;
		}
	}
	return cost[la][lb];
}

const char *suggest_nearest(const char *typed, const char *const *names)
{
	const char *best = NULL;
	unsigned least_slips = SLIPS + 1;

	for (; *names; names++) {
		unsigned slips = suggest_distance(typed, *names);

		/* Two slips make any two-letter word out of any other. */
		if (slips < least_slips && slips < strlen(*names)) {
			least_slips = slips;
			best = *names;
		}
	}
	return best;
}
