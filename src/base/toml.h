/* toml.h - TOML 1.0: text in, a tree out, or one error with its place.
 * Owns: every node and every byte of text in the tree, until toml_fini().
 *
 *	struct toml doc;
 *
 *	if (toml_parse(&doc, "atoll.toml", text, len, &e) < 0)
 *		...				"atoll.toml:3:7: expected '=' after a key, saw 'x'"
 *	port = toml_get(doc.root, "port");
 *	toml_fini(&doc);
 *
 * Strict where the specification leaves a choice: a number that does not fit is an error, never
 * another number. Everything is bounded, so a hostile file costs some milliseconds. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

enum {
	TOML_MAX_BYTES = 1 << 20,
	TOML_MAX_DEPTH = 64,     /* tables in tables, arrays in arrays, any mixture */
	TOML_MAX_KEYS = 4096,    /* names written, every part of a dotted one */
	TOML_MAX_VALUES = 65536, /* nodes of the tree */
};

enum toml_type {
	TOML_TABLE,
	TOML_ARRAY,
	TOML_STRING,
	TOML_INTEGER,
	TOML_FLOAT,
	TOML_BOOLEAN,
	TOML_DATETIME,       /* with an offset from UTC */
	TOML_LOCAL_DATETIME, /* these four are checked and kept as written */
	TOML_DATE,
	TOML_TIME,
};

struct toml_children {
	struct toml_node *first, *last;
	unsigned count;
	unsigned made, section; /* how a table was created, and what may extend it */
};

struct toml_node {
	enum toml_type type;
	unsigned line;          /* where it was written, from 1 */
	const char *key;        /* its name in its table; NULL in an array, and for the root */
	size_t key_len;         /* there may be a NUL in it, as in any text */
	struct toml_node *next; /* of the same table or array, in the order written */
	union {
		struct toml_children in; /* TABLE, ARRAY */
		struct {                 /* STRING and the four time types; NUL-terminated */
			const char *text;
			size_t len;
		};
		int64_t integer;
		double real;
		int truth;
	};
};

struct toml {
	struct toml_node *root; /* a table */
	struct toml_chunk *chunks;
	unsigned nkeys, nvalues;
};

/* name: the name of the text in errors. On -1 there is nothing to free. */
must_check int toml_parse(struct toml *out, const char *name, const char *text, size_t len,
			  struct err *e);
void toml_fini(struct toml *t); /* fine on a zeroed one */

const struct toml_node *toml_get(const struct toml_node *table, const char *key); /* or NULL */
const char *toml_type_name(enum toml_type type); /* "a string", "an integer", ... */
