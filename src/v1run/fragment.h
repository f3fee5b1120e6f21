/* fragment.h - translates the request of a chat front end into fields of /v1. Pure: JSON in, JSON
 * out. */
#pragma once
#include "api/api.h"

#define FRAGMENT_START "start" /* tag of the start command of a template: fleet/box_create.c */
#define FRAGMENT_APP "app"     /* tag of the server that a fragment with a port starts */

extern const struct field fragment_fields[], fragment_request_fields[];

/* What a fragment uses of its template. The texts are valid as long as the call. */
struct fragment_template {
	const char *name;      /* as front ends write it */
	const char *reference; /* the template of its boxes: the same, or base if it is not built */
	const char *language;  /* of code whose file name does not show it */
	const char *file;      /* for code without a file name, if `start` serves it; or NULL */
	const char *start; /* command that serves the port; NULL: the program itself serves it */
	const char *start_any; /* the same for any port, in $PORT; NULL: `start` */
	unsigned port;         /* of `start`; 0: the one in $PORT */
	int cells;             /* code is executed as a cell */
	int reloads;           /* the server reads changed files by itself */
};
/* Finds a template by name. -1: there is none, or it cannot be used; e has the reason. */
typedef int fragment_lookup(void *ctx, const char *name, struct fragment_template *out,
			    struct err *e);
/* Those that every daemon has (template/builtin.h), all of base. ctx is not used. */
must_check int fragment_builtin(void *ctx, const char *name, struct fragment_template *out,
				struct err *e);

/* body: checked against fragment_request_fields. The result has the fields of POST /v1/boxes and of
 * POST .../execs together, and belongs to the caller; NULL: e names the invalid field. */
json_t *fragment_translate(const json_t *body, fragment_lookup *find, void *ctx, struct err *e);
