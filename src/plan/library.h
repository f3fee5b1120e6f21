/* library.h - the tasks that the planner knows: share/tasks, embedded in the executable.
 * Owns: all of it, for the life of the process. docs/pipeline.md has the format. */
#pragma once
#include "plan/words.h"
#include "base/err.h"
#include "base/toml.h"
#include <jansson.h>

struct lang;

enum slot_type {
	SLOT_NUMBER,
	SLOT_INTEGER,
	SLOT_TEXT,
	SLOT_WORD,
	SLOT_NUMBERS,
	SLOT_INTEGERS,
	SLOT_TEXTS,
	SLOT_FILE,
	SLOT_URL,
	SLOT_COLUMNS,
	SLOT_DATE,
	SLOT_SIZE,
	SLOT_NTYPES,
};

enum { PHRASE_WORDS = 6 };

/* Consecutive words, as numbers of the vocabulary. */
struct phrase {
	unsigned n, ids[PHRASE_WORDS];
	const char *text;
};

struct phrases {
	struct phrase *all;
	unsigned n;
};

struct library_slot {
	const char *name, *question;
	enum slot_type type;
	json_t *otherwise;   /* its default; NULL: required */
	struct phrases hint; /* words that precede it */
	int only;            /* no other slot is of its type */
	int any;             /* strings, and no other slot has numbers: "[1, 2]" may be strings */
};

struct library_program {
	const struct lang *lang;
	const char *file, *text;
	const char *function; /* the program as a function, for tasks that call one; or NULL */
	const char *takes;    /* the parameter types of that function: "numbers", "text integer" */
	json_t *packages;     /* ["npm:left-pad"] */
};

struct library_example {
	const char *task, *stdout_text, *stdin_text;
	const struct lang *lang;
	json_t *slots, *files;
	json_t *returns; /* the return value of the function for these slots; or NULL */
};

struct library_task {
	const char *id, *says;
	char *output; /* a regular expression for the output, or NULL */
	unsigned version;
	struct phrases *needs; /* nneeds groups */
	unsigned nneeds;
	struct phrases words, never, said; /* said: the words of `says` */
	struct library_slot *slots;
	unsigned nslots;
	struct library_program *programs;
	unsigned nprograms;
	struct library_example *examples;
	unsigned nexamples;
	json_t *files; /* {path: text} for tasks without their own files; or NULL */
	int network;
	int reads;       /* its programs read their input */
	struct toml doc; /* owns all strings */
};

unsigned library_count(void);
const struct library_task *library_at(unsigned i);
const struct library_task *library_named(const char *id); /* "mean-median", or with "@1" */
const struct library_program *library_program(const struct library_task *t, const struct lang *l);

/* The number of a stem in the vocabulary; 0: unknown. */
unsigned library_word(const struct word *w);
/* The number of tasks that contain it. */
unsigned library_spread(unsigned word);

const char *slot_type_name(enum slot_type type);

/* Adds one task, and the words of its text to the vocabulary. On -1 there is nothing to free. */
must_check int library_read(struct library_task *out, const char *id, const char *text, size_t len,
			    struct err *e);

void library_forget(struct library_task *t);
