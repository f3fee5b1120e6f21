/* edit_distance.c - see edit_distance.h. */
#include "base/edit_distance.h"

#include <string.h>

unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[3][EDIT_DISTANCE_MAX + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > EDIT_DISTANCE_MAX || m > EDIT_DISTANCE_MAX)
		return EDIT_DISTANCE_MAX;
	for (size_t j = 0; j <= m; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned cost = before[j - 1] + (a[i - 1] != b[j - 1]);

			cost = before[j] + 1 < cost ? before[j] + 1 : cost;
			cost = now[j - 1] + 1 < cost ? now[j - 1] + 1 : cost;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    earlier[j - 2] + 1 < cost)
				cost = earlier[j - 2] + 1;
			now[j] = cost;
		}
	}
	return row[n % 3][m];
}
