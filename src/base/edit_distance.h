/* edit_distance.h - the number of typing errors between two names. */
#pragma once

enum { EDIT_DISTANCE_MAX = 64 };

/* Characters to replace, add, leave out or exchange with their neighbour; EDIT_DISTANCE_MAX if a name is longer
 * than that. */
unsigned edit_distance(const char *a, const char *b);
