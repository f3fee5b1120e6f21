/* str.h - bytes and short texts without a C library.
 * The compiler itself calls the mem functions, so they exist under their usual names. */
#pragma once
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int text_compare(const char *a, const char *b); /* bytewise */
int text_starts(const char *s, const char *with);

struct text { /* a message being built; text that does not fit is cut, the NUL always fits */
	char *to;
	size_t room, len;
};
void text_add(struct text *t, const char *s);
void text_add_number(struct text *t, uint64_t n);

/* A decimal number and nothing else; -1 if it is not one or above max. */
int64_t text_number(const char *s, uint64_t max);

/* The text and the kind (enum err_kind) for the errno of a system call. */
const char *text_errno(int err, uint32_t *out_kind);
