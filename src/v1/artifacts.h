/* artifacts.h - files that a one-shot run made, given back with its record before its box ends.
 * Owns:         the file worker that lists and reads them, and what was read so far.
 * Does not own: the box, the plan.
 * A file worker speaks for the box: names and bytes are hostile, and both are bounded here. */
#pragma once
#include "v1/run_request_plan.h"
#include "base/buf.h"
#include "client/file_client.h"

enum {
	ARTIFACTS_PATTERNS = 16,
	ARTIFACTS_FILES = 64,      /* given back */
	ARTIFACTS_BYTES = 8 << 20, /* of all of them */
	ARTIFACTS_ESCAPES =
		1024, /* bytes of escapes in a text, beside one for each of its bytes: more is base64 */
	ARTIFACTS_CHANGED = 1000, /* names of changed files that are told */
	ARTIFACTS_SEEN = 20000,   /* entries that are looked at */
	ARTIFACTS_PATH = 512,     /* bytes of a path that can match */
	ARTIFACTS_MS = 20000,     /* for the file worker, altogether */
};

struct glob;
struct artifacts_file;
struct artifacts {
	struct file_client file_client;
	int open;
	struct timer patience;
	const struct run_request_plan *plan;
	uint64_t files_put_ns; /* files of the request were in place then */
	struct glob *globs;
	unsigned nglobs;
	struct artifacts_file *files; /* that match */
	unsigned nfiles, at;
	uint64_t bytes_left;
	struct buf bytes; /* of the one that is read */
	int too_large;    /* it had more than was left */
	json_t *put;      /* path -> sha256 of what the request brought; without those seen again */
	json_t *items, *changed;
	int truncated, changed_truncated;
	struct err failed;                 /* kind ERR_NONE: did not */
	void (*done)(struct artifacts *x); /* once, never from within artifacts_begin() */
};

/* Patterns of a request: "artifacts". */
must_check int artifacts_check(const json_t *patterns, struct err *e);
/* Every program of the box is ended first. x is zeroed but for done and files_put_ns. */
void artifacts_begin(struct artifacts *x, const struct run_request_plan *p, struct init_conn *box,
		     struct loop *l);
void artifacts_lost(struct artifacts *x); /* instead: there is no box any more */
/* artifacts, artifacts_truncated, files_changed, files_truncated, files_error. */
void artifacts_report(const struct artifacts *x, json_t *record);
void artifacts_fini(struct artifacts *x); /* at any time; fine on a zeroed one */
