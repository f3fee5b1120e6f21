/* item.h - one program of a batch: from a line of JSON to its parameters, or the reason why it
 * is invalid.
 * Owns: the parsed line; all texts point into it.
 *
 * 	{"id": any, "language": "python", "code": "print(1)", "stdin": "...", "expected": "1\n"}
 *
 * Nothing here touches a box. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "batch/output_compare.h"
#include "lang/program.h"
#include "wire/wire.h"
#include <jansson.h>

enum {
	ITEM_BYTES = 1024 * 1024, /* of its line */
	ITEM_STEPS = 2,           /* compile, run */
	ITEM_DEPTH = 16,
	ITEM_FILES = 1000,
	ITEM_WORDS = 1000,       /* arguments; variables */
	ITEM_OUTPUT = 16 * 1024, /* bytes of each stream in a result, unless the item sets more */
	ITEM_OUTPUT_MAX = 1024 * 1024,
	ITEM_RUN_MS = 30000,
	ITEM_COMPILE_MS = 60000,
	ITEM_BEHIND = 16, /* commands after the program */
};

/* The values for every item of a batch that does not set its own. */
struct batch_item_defaults {
	char language[36]; /* "": none */
	uint32_t run_ms;   /* 0: ITEM_RUN_MS */
	uint32_t max_output;
	struct wire_limits limits, most; /* most: bounds.h */
};

struct batch_item_step {
	const char *what; /* "compile", "run" */
	const char **argv;
	uint32_t wall_ms;
	int is_usual; /* neither the item nor the batch names this time */
};

struct batch_item {
	json_t *doc;
	const json_t *id; /* borrowed from doc; NULL: the item has none */
	struct batch_item_step steps[ITEM_STEPS];
	unsigned nsteps;
	const char **env; /* NULL-terminated, with the default variables */
	struct buf env_text;
	const char *cwd;        /* NULL: the home */
	struct program program; /* .lang NULL: a command */
	const char *code;       /* the text of its source; NULL: it is one of files */
	size_t code_len;
	const json_t *files; /* {path: text or {base64}} */
	const char *input;   /* NULL: none */
	size_t input_len;
	struct wire_limits limits;
	uint32_t max_output;
	enum output_compare how;
	const char *want; /* of stdout; NULL: any */
	size_t want_len;
	int want_code, any_code;
	/* Not in the line; set by the caller after batch_item_make(). */
	char layers[WIRE_LAYERS][WIRE_LAYER_ID]; /* below the box's root, the first on top */
	unsigned nlayers;
	/* Layers of a checkpoint, the topmost first: the files with which the box starts. */
	char chain[WIRE_CHAIN][WIRE_ID];
	unsigned nchain;
	uint32_t tail;  /* bytes of each stream's end that are kept besides its beginning */
	uint64_t flood; /* bytes of a stream after which the program is ended; 0: no limit */
	const char
		*behind[ITEM_BEHIND]; /* for the shell, after the program has succeeded; borrowed */
	unsigned nbehind;
};

/* -1: the line is invalid, and e has the reason; x->id may be known nevertheless. Call
 * batch_item_fini() in any case. */
must_check int batch_item_parse(struct batch_item *x, const char *line, size_t n,
				const struct batch_item_defaults *d, struct err *e);
/* The same for a document of any size; the caller has bounded it. */
must_check int batch_item_make(struct batch_item *x, json_t *take_doc,
			       const struct batch_item_defaults *d, struct err *e);
void batch_item_fini(struct batch_item *x); /* fine on a zeroed one */

/* What a tier must have for them: as for boxes of checkpoints. */
#define BATCH_FILES_NEEDS (UINT64_C(1) << WIRE_NEED_LAYERS | UINT64_C(1) << WIRE_NEED_UPPER)
/* The files of a checkpoint: its layers, and those of packages below them. */
struct batch_files {
	char layers[WIRE_LAYERS][WIRE_LAYER_ID];
	unsigned nlayers;
	char chain[WIRE_CHAIN][WIRE_ID];
	unsigned nchain;
};
/* After x->layers was set, whose layers lie above those of the files. -1: too many layers. */
must_check int batch_item_begin_with(struct batch_item *x, const struct batch_files *f,
				     struct err *e);
