/* program.h - the program of a request: its language, its files and the file to start.
 * Owns:    the list of source files. Borrows the request. */
#pragma once
#include "lang/lang.h"
#include "wire/wire.h"
#include <jansson.h>

struct program {
	int layered; /* the box has layers of packages, which may contain the language */
	const struct lang *lang;    /* NULL: no language, the request has a command */
	const char *pin;            /* the requested version, or "" */
	const char *const *compile; /* the command of the requested compiler; empty: none */
	char source[256], binary[256], unit[LANG_UNIT]; /* in the box */
	const char **sources;
	const char *warm; /* the warm interpreter for this program, or NULL */
};

/* 1: the body has code, entry or files, and no command. */
int program_in(const json_t *body);
/* p->layered must be set: the box may have languages that the host does not have. */
must_check int program_read(struct program *p, const json_t *body, struct err *e);
void program_fini(struct program *p); /* fine on a zeroed one */

/* The command line for this program from a row of the language, in a box with this much memory. The
 * caller frees it. */
const char **program_words(const struct program *p, const char *const *row, const json_t *args,
			   uint64_t memory);
/* Sets limits that the language needs and the request does not have. */
void program_limits(const struct program *p, const struct wire_limits *most, struct wire_limits *l);

const char *program_in_home(const char *path, char out[512]);
