/* driver_events.h - output of a kernel as lines of the driver channel (docs/languages.md).
 * Owns: nothing. Every line is accepted by driver_protocol.h: ASCII, at most 16 MiB, a bounded
 * number of values, no NUL, bounded depth. Values over the limits are left out and named. */
#pragma once
#include "base/buf.h"
#include <jansson.h>
#include <stdint.h>

enum {
	TELL_LINE = 15 << 20,  /* bytes of all representations of a result */
	TELL_TEXT = 1 << 20,   /* bytes of text/plain, of an error's text */
	TELL_VALUE = 64 << 10, /* of its value */
	TELL_NAME = 1 << 10,   /* of its name */
	TELL_MARKS = 250000,   /* commas, colons and brackets of a line */
	TELL_KINDS = 64,       /* entries of a result */
	TELL_DEPTH = 90,
};

void driver_event_ready(struct buf *out, const char *language, const char *version);
/* content: of display_data, update_display_data, execute_result. -1: empty. */
int driver_event_result(struct buf *out, const char *cell, int is_main, int is_update,
			const json_t *content);
/* content: of error, or of an execute_reply that is one. */
void driver_event_error(struct buf *out, const char *cell, const json_t *content);
/* The same with text of the driver. */
void driver_event_trouble(struct buf *out, const char *cell, const char *name, const char *value);
void driver_event_input(struct buf *out, const char *cell, const json_t *content);
void driver_event_end(struct buf *out, const char *cell, const char *status, int64_t count);
