/* json_reader.h - a thread that parses large JSON bodies, so that the loop is not blocked.
 * Owns:         the thread, the queue, the text of each job until it is parsed.
 * Does not own: the request that waits for the document.
 *
 * jansson takes about 30 ms for a megabyte, and all other requests would wait for that long. The
 * thread reads bytes and creates a document; it uses nothing else of the process. Documents that
 * have more members than FIELDS_MEMBERS, or are nested deeper than FIELDS_DEPTH, are rejected
 * before they are parsed, by a scan that takes a nanosecond per byte (fields_scan()). */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>

struct json_reader;
struct loop;

struct json_job {
	/* Called on the loop; take_doc NULL: e is the error. The job is freed after it. Not called
	 * after json_job_cancel(). */
	void (*done)(struct json_job *j, json_t *take_doc, const struct err *e);
	void *user;
	/* private to the reader */
	struct json_reader *reader;
	struct json_job *next;
	int is_cancelled, is_parsed;
	struct buf text;
	json_t *doc;
	struct err why;
};

struct json_reader *json_reader_new(struct loop *l);
void json_reader_free(struct json_reader *x); /* waits for the job in progress; fine on NULL */
/* -1: no thread could be started; take_text is unchanged, and the caller parses it itself. */
must_check int json_reader_read(struct json_reader *x, struct buf *take_text,
				void (*done)(struct json_job *, json_t *, const struct err *),
				void *user, struct json_job **out);
/* The text is not parsed, or its document is freed. */
void json_job_cancel(struct json_job *j);
