/* artifacts.h - files that a one-shot run has created, returned with its record before its box
 * ends.
 * Owns:         the file worker that lists and reads them, and what was read so far.
 * Does not own: the box, the plan. A file worker runs inside the box: its names and bytes are
 * untrusted, and this module limits both. */
#pragma once
#include "v1run/run_request_plan.h"
#include "base/buf.h"
#include "client/file_client.h"

enum {
	ARTIFACTS_PATTERNS = 16,
	ARTIFACTS_FILES = 64,      /* files that are returned */
	ARTIFACTS_BYTES = 8 << 20, /* of all of them */
	ARTIFACTS_ESCAPES =
		1024, /* bytes of escapes in a text, in addition to one per byte of text; with more
		       * the content is sent as base64 */
	ARTIFACTS_CHANGED = 1000, /* names of changed files that are returned */
	ARTIFACTS_SEEN = 20000,   /* entries that are examined */
	ARTIFACTS_PATH = 512,     /* bytes of a path that can match */
	ARTIFACTS_MS = 20000,     /* for all requests to the file worker together */
};

struct glob;
struct artifacts_file;
struct artifacts {
	struct file_client file_client;
	int open;
	struct timer patience;
	const struct run_request_plan *plan;
	uint64_t files_put_ns; /* time when the files of the request were written */
	struct glob *globs;
	unsigned nglobs;
	struct artifacts_file *files; /* files that match a pattern */
	unsigned nfiles, at;
	uint64_t bytes_left;
	struct buf bytes; /* content of the file that is being read */
	int too_large;    /* the file has more bytes than are left of ARTIFACTS_BYTES */
	json_t *put;      /* path -> sha256 of the files of the request, without those found
			   * so far */
	json_t *items, *changed;
	int truncated, changed_truncated;
	struct err failed;                 /* kind ERR_NONE: no error */
	void (*done)(struct artifacts *x); /* once, never from within artifacts_begin() */
};

/* Patterns of a request: "artifacts". */
must_check int artifacts_check(const json_t *patterns, struct err *e);
/* First kills every program of the box. x is zeroed except for done and files_put_ns. */
void artifacts_begin(struct artifacts *x, const struct run_request_plan *p, struct init_conn *box,
		     struct loop *l);
void artifacts_lost(struct artifacts *x); /* instead of artifacts_begin(), if the box no longer
					   * exists */
/* artifacts, artifacts_truncated, files_changed, files_truncated, files_error. */
void artifacts_report(const struct artifacts *x, json_t *record);
void artifacts_fini(struct artifacts *x); /* at any time; fine on a zeroed one */
