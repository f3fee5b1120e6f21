/* swerex_call.h - a request to /swerex: its box, and its answer.
 * Owns: until the answer, its arguments, its form, its idempotency entry.
 * Does not own: the box, and its processes (tool.h). A failure in the box is an exception of its
 * classes, with status 511: a client raises it again. An invalid request has another status and
 * `detail`. */
#pragma once
#include "api/fields.h"
#include "tools/tool.h"

#define OURS "swerex.exceptions."
#define PYTHON "builtins."

enum { CONTROL_MS = 120000 /* for an internal script */ };

struct swerex_form { /* of an upload */
	struct buf file, path, unzip;
	int has_file;
};

struct swerex {
	struct tool_call base; /* first: it is c->surface */
	const struct tool *tool;
	const struct tool_surface *on;
	json_t *asked;            /* while a box is created for it */
	struct again *again;      /* NULL: not stored */
	struct swerex_form *form; /* of an upload, or NULL */
};

extern const struct api_format swerex_format;
struct swerex *swerex_new(struct call *c, const struct tool *t, const struct tool_surface *on);
/* Runs the call in the named box, or in the default box of the key. */
void swerex_begin(struct call *c, const struct tool *t, const struct tool_surface *on);

/* The answer: one of these is called once. */
void swerex_answer(struct call *c, int status, json_t *take_doc);
void swerex_exception(struct call *c, const char *class, const struct buf *message,
		      json_t *take_extra);
__attribute__((format(printf, 3, 4))) void swerex_raise(struct call *c, const char *class,
							const char *fmt, ...);
void swerex_invalid(struct call *c, const char *what);

/* An internal script (swerex.h) with one argument: swerex_run.c. */
void swerex_run_script(struct tool_job *j, const struct buf *script, const char *word, uint32_t ms);
/* Converts the report of a script to an exception; 1: sent, or the script could not run. */
int swerex_script_failed(struct tool_job *j, const struct tool_result *r);
const char *swerex_said(const struct tool_result *r, const char *name); /* "": nothing */

/* The routes and their fields. */
extern const struct field swerex_any[], swerex_start_fields[], swerex_run_fields[],
	swerex_close_fields[], swerex_end_fields[], swerex_execute_fields[], swerex_read_fields[],
	swerex_write_fields[];
void swerex_is_alive(struct call *c);
void swerex_create_session(struct call *c);
void swerex_run_in_session(struct call *c);
void swerex_close_session(struct call *c);
void swerex_close(struct call *c);
void swerex_execute(struct call *c);
void swerex_read_file(struct call *c);
void swerex_write_file(struct call *c);
void swerex_upload(struct call *c);
