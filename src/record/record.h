/* record.h - the record of a run: one JSON object, the same for --report, --json and the API.
 * Borrows all it points to until record_json() has returned. */
#pragma once
#include "base/buf.h"
#include "base/id.h"
#include "record/cause.h"
#include "record/changes.h"
#include <jansson.h>

struct record {
	char id[ID_MAX + 1];
	const char *box, *template;
	const char *tier;               /* name of its isolation tier */
	const json_t *isolation;        /* how it was chosen; NULL: no server chose it */
	uint64_t layers;                /* bits in force ... */
	const char *const *layer_names; /* ... and their names, NULL-terminated */
	const char *const *command;     /* NULL-terminated */
	uint64_t started_ns, ended_ns;  /* CLOCK_REALTIME */
	uint64_t create_us;
	struct exit_info end;
	uint64_t dropped[2];           /* output that was dropped */
	const struct changes *changes; /* NULL: not examined */
	const char *changes_failed;    /* why they could not be listed, or NULL */
	const struct buf *output[2];   /* NULL: not captured */
};

#define RECORD_DIGITS JSON_REAL_PRECISION(9) /* for json_dumpf: microsecond precision */
json_t *record_json(const struct record *r); /* the caller's */
void record_set_output(json_t *doc, const char *name, const struct buf *b);
json_t *json_time(uint64_t ns); /* RFC 3339, milliseconds, UTC */
