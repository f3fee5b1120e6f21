/* id.h - ids that cannot be guessed and are easy to read aloud. */
#pragma once
#include "base/err.h"
#include <stdint.h>

#define ID_LEN 12

/* ID_LEN characters of a-z and 2-7 (60 random bits) and a NUL. */
must_check int id_new(char out_id[ID_LEN + 1], struct err *e);
int id_valid(const char *id);       /* exactly that charset and length */
uint32_t id_hash(const char *text); /* FNV-1a: for tables and short names, not for security */
must_check int id_random(void *out, unsigned len, struct err *e);
