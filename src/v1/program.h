/* program.h - which program a request is about: its language, its files, the one to begin with.
 * Owns:    the list of its sources. Borrows the request. */
#pragma once
#include "lang/lang.h"
#include "wire/wire.h"
#include <jansson.h>

struct program {
	int layered; /* its box has packages of its own, among them perhaps its language */
	const struct lang *lang;    /* NULL: there is none, the request has a command */
	const char *pin;            /* the version that was asked for, or "" */
	const char *const *compile; /* the row of the compiler that was asked for; empty: none */
	char source[256], binary[256], unit[LANG_UNIT]; /* in the box */
	const char **sources;
	const char *seed; /* the warm interpreter that suits it, or NULL */
};

/* Does it name a program by code, entry or files, and not by a command? */
int program_in(const json_t *body);
/* p->layered set before: the box may have languages that the host has not. */
must_check int program_read(struct program *p, const json_t *body, struct err *e);
void program_fini(struct program *p); /* fine on a zeroed one */

/* The row's words for it, in a box with so much memory. The caller frees them. */
const char **program_words(const struct program *p, const char *const *row, const json_t *args,
			   uint64_t memory);
/* What its language wants where nobody has asked for anything. */
void program_limits(const struct program *p, const struct wire_limits *most, struct wire_limits *l);

const char *program_in_home(const char *path, char out[512]);
