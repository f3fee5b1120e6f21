/* swerex_call.h - a request to /swerex on its way: the box that it gets, and its one answer.
 * Owns:         what a call has until then: its arguments, its form, its place among what was sent twice.
 * Does not own: the box, and what runs in it (tool.h).
 *
 * What fails in the box is an exception of its classes, with status 511: a client raises it again.
 * What is wrong with the request itself has another status and `detail`. */
#pragma once
#include "api/fields.h"
#include "tools/tool.h"

#define OURS "swerex.exceptions."
#define PYTHON "builtins."

enum { CONTROL_MS = 120000 /* for a script of ours */ };

struct rex_form { /* of an upload */
	struct buf file, path, unzip;
	int has_file;
};

struct rex {
	struct tool_call base; /* first: it is c->door */
	const struct tool *tool;
	const struct tool_surface *on;
	json_t *asked;         /* while a box is made for it */
	struct again *again;   /* NULL: it is not remembered */
	struct rex_form *form; /* of an upload, or NULL */
};

extern const struct api_format rex_manner;
struct rex *rex_new(struct call *c, const struct tool *t, const struct tool_surface *on);
/* Does it in the box that is named, or in the key's own: t, and on it the answer. */
void rex_begin(struct call *c, const struct tool *t, const struct tool_surface *on);

/* The answer: one of these, once. */
void rex_answer(struct call *c, int status, json_t *take_doc);
void rex_exception(struct call *c, const char *class, const struct buf *message,
		   json_t *take_extra);
__attribute__((format(printf, 3, 4))) void rex_raise(struct call *c, const char *class,
						     const char *fmt, ...);
void rex_invalid(struct call *c, const char *what);

/* A script of ours (swerex.h) with one word: swerex_run.c. */
void rex_run_script(struct tool_job *j, const struct buf *script, const char *word, uint32_t ms);
/* What our scripts say, as an exception; 1: they did, or there was no way to run one. */
int rex_script_failed(struct tool_job *j, const struct tool_result *r);
const char *rex_said(const struct tool_result *r, const char *name); /* "": nothing */

/* The routes, and what they take. */
extern const struct field rex_any[], rex_start_fields[], rex_run_fields[], rex_close_fields[],
	rex_end_fields[], rex_execute_fields[], rex_read_fields[], rex_write_fields[];
void rex_is_alive(struct call *c);
void rex_create_session(struct call *c);
void rex_run_in_session(struct call *c);
void rex_close_session(struct call *c);
void rex_close(struct call *c);
void rex_execute(struct call *c);
void rex_read_file(struct call *c);
void rex_write_file(struct call *c);
void rex_upload(struct call *c);
