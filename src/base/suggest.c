/* suggest.c - see suggest.h. */
#include "base/suggest.h"
#include "base/edit_distance.h"

#include <string.h>

enum { LONGEST = 40, SLIPS = 2 };

unsigned suggest_distance(const char *a, const char *b)
{
	if (strnlen(a, LONGEST + 1) > LONGEST || strnlen(b, LONGEST + 1) > LONGEST)
		return LONGEST;
	return edit_distance(a, b);
}

const char *suggest_nearest(const char *typed, const char *const *names)
{
	const char *best = NULL;
	unsigned least_slips = SLIPS + 1;

	for (; *names; names++) {
		unsigned slips = suggest_distance(typed, *names);

		/* With two typing errors every two-letter word becomes any other. */
		if (slips < least_slips && slips < strlen(*names)) {
			least_slips = slips;
			best = *names;
		}
	}
	return best;
}
