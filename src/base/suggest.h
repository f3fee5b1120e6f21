/* suggest.h - the name closest to a mistyped one. */
#pragma once

/* Letters to insert, drop, replace or swap with their neighbour. */
unsigned suggest_distance(const char *a, const char *b);
/* The closest of the names (NULL-terminated) within two typing errors, or NULL. */
const char *suggest_nearest(const char *typed, const char *const *names);
