/* driver_events.h - what a kernel said, as lines of our own channel (docs/languages.md, "What a driver says").
 * Owns: nothing. Every line that is written here, talk.h takes: ASCII, at most 16 MiB, no more values
 * than it counts, no NUL, no depth. What does not fit is left out and named. */
#pragma once
#include "base/buf.h"
#include <jansson.h>
#include <stdint.h>

enum {
	TELL_LINE = 15 << 20,  /* bytes of all that a result has */
	TELL_TEXT = 1 << 20,   /* bytes of text/plain, of an error's text */
	TELL_VALUE = 64 << 10, /* of its value */
	TELL_NAME = 1 << 10,   /* of its name */
	TELL_MARKS = 250000,   /* commas, colons and brackets of a line */
	TELL_KINDS = 64,       /* entries of a result */
	TELL_DEPTH = 90,
};

void driver_event_ready(struct buf *out, const char *language, const char *version);
/* content: of display_data, update_display_data, execute_result. -1: there is nothing in it. */
int driver_event_result(struct buf *out, const char *cell, int is_main, int is_update,
			const json_t *content);
/* content: of error, or of an execute_reply that is one. */
void driver_event_error(struct buf *out, const char *cell, const json_t *content);
/* The same in our own words. */
void driver_event_trouble(struct buf *out, const char *cell, const char *name, const char *value);
void driver_event_input(struct buf *out, const char *cell, const json_t *content);
void driver_event_end(struct buf *out, const char *cell, const char *status, int64_t count);
