/* buf.h - text that we build.
 * Owns: its memory. Zero is a valid empty one, and there is always a NUL after the last byte.
 *
 * auto_buf struct buf line = { 0 };
 *
 * buf_printf(&line, "box %s", id);
 * puts(buf_str(&line));
 *
 * Nothing here fails: out of memory aborts. So a size from untrusted input must be checked against
 * a limit before. Streams (a guest's output) do not belong in a buf; they are bounded. */
#pragma once
#include <stdarg.h>
#include <stddef.h>

struct buf {
	char *p; /* NULL until the first byte; use buf_str() where a string is needed */
	size_t len;
	size_t room; /* bytes at p, the NUL included */
};

void buf_add(struct buf *b, const void *bytes, size_t n); /* any bytes, NUL as well */
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* The text alone, to be freed by the caller. */
char *buf_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* n writable bytes after the text, for read(2) and similar calls; buf_grew() sets how many were
 * written. */
char *buf_space(struct buf *b, size_t n);
void buf_grew(struct buf *b, size_t n);

void buf_cut(struct buf *b, size_t len);  /* keep the first len bytes; keeps the memory */
const char *buf_str(const struct buf *b); /* never NULL; good until the next change */
char *buf_steal(struct buf *b); /* the text, to be freed by the caller; b is empty again */
void buf_fini(struct buf *b);   /* b is empty again */

#define auto_buf __attribute__((cleanup(buf_fini)))
