/* program.h - one program: its language, its files in the box, and the commands that compile, test and
 * run it. The API, batches and `atoll run` plan their programs here.
 *
 *   language, compiler, entry, code, files  ->  source, sources, binary, steps
 *
 * Owns: the paths in the box. The description is borrowed for the call. */
#pragma once
#include "lang/lang.h"
#include <jansson.h>

struct program_file {
	const char *path; /* below the home of the box, or absolute */
	const char *text; /* NULL: not known */
	size_t len;
};

struct program_spec {
	const char *language; /* "python", or "python@3.11"; NULL: found by entry */
	const char *compiler; /* NULL: the default of the language */
	const char *entry;    /* the file to start; NULL: code, or the likely one of files */
	const char *code;     /* the text of entry; NULL: it is one of files */
	size_t code_len;
	const struct program_file *files; /* ends with a NULL path; NULL: none */
	int any_entry; /* entry may be unknown: for a command that needs its folder only */
	int layered;   /* the box has layers, which may contain a language the host does not have */
	int binary_beside; /* the compiler writes SOURCE.out; else /tmp/NAME.out, which is not among the
			    * files of the program */
};

struct program {
	const struct lang *lang; /* NULL: no language, it is executed as it is */
	const char *pin;         /* the requested version, or ""; borrowed from the description */
	const char *const *compile; /* the command of the requested compiler; empty: none */
	char *source, *binary;      /* in the box */
	char unit[LANG_UNIT];       /* lang_unit_of() */
	const char **sources; /* source, then the other files of the language; NULL-terminated */
	unsigned nsources;
	const char *warm; /* the warm interpreter for this program, or NULL */
};

/* Finds the language and the entry, and does what program_place() does. ERR_NOT_FOUND: the language or
 * the compiler is not installed. Call program_fini() in any case. */
must_check int program_plan(struct program *p, const struct program_spec *s, struct err *e);
/* For a caller that has set p->lang: paths of source and binary, unit, warm interpreter. */
void program_place(struct program *p, const char *entry, const char *text, size_t len,
		   int binary_beside);
/* Another file of the program; ignored if it is the source, or not of the language. */
void program_add_source(struct program *p, const char *path);
void program_fini(struct program *p); /* fine on a zeroed one */

/* The commands in their order. */
#define PROGRAM_VERSION "version" /* prints the version of the language, if one was requested */
enum { PROGRAM_STEPS = 3 };
struct program_step {
	const char *what;       /* PROGRAM_VERSION, "compile", "run" or "test" */
	const char *const *row; /* for program_words() */
};
/* Returns their number; -1: the language has no command for tests. */
must_check int program_steps(const struct program *p, int test,
			     struct program_step out[PROGRAM_STEPS], struct err *e);
/* The words of a row for this program, followed by args (may be NULL), in a box with this much memory
 * (0: unknown). The caller frees it. */
const char **program_words(const struct program *p, const char *const *row, const char *const *args,
			   uint64_t memory);

/* A path of a description as it is in the box. */
const char *program_path(const char *path, char out[512]);
/* From JSON; the caller frees the array. Texts are borrowed. */
struct program_file *program_files(const json_t *files); /* {path: text or another value} */
const char **program_args(const json_t *list);           /* a list of texts */
/* A text for the shell, or a list of texts. */
const char **program_command(const json_t *command);
