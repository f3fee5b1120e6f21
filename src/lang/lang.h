/* lang.h - which runtime runs which program, and how.
 * Owns: the rows, one per file of share/runtimes/, read from our own executable at first use.
 * A row needs only the /usr of this machine. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct lang_pair {
	const char *key, *value;
};

struct lang_list {
	const char *key;
	const char *const *values; /* NULL-terminated */
};

/* An optional program or package of the row. */
struct lang_extra {
	const char *name, *file, *apt;
};

/* Regular expressions (POSIX, extended) for the output of a program; numbers are those of groups,
 * 0: not in the output. See diag.h. */
struct lang_pattern {
	const char *match;
	uint32_t lines; /* the number of lines that it is applied to; 0: 1 */
	uint32_t file, line, column, severity, message, type;
	uint32_t caret; /* the text before a mark: its length is the column */
	const char *at; /* another pattern for file and line, with its own groups: */
	uint32_t at_file, at_line, at_last; /* at_last 1: use the last match */
};

/* Languages whose programs are named in the source and not by the file: the last group of a pattern
 * for one line. */
struct lang_unit {
	const char *outer; /* a package: prepended to the name with a dot */
	const char *name;  /* the last match before the start of the program */
	const char *begin;
	const char *forced; /* the file must have this name */
};

struct lang_packages {
	const char *manager;
	const char *const *install;    /* {packages} is replaced by the packages */
	const char *const *manifests;  /* names of files that list packages */
	const struct lang_pair *names; /* import name -> package name, where they differ */
};

struct lang_limits { /* 0: the default of a box */
	uint64_t memory, disk;
	uint32_t processes;
};

struct lang_times {
	uint32_t install, compile, run; /* ms */
};

struct lang {
	const char *name, *title;
	/* All arrays of texts end with a NULL and are never NULL. */
	const char *const *aliases, *const *endings, *const *interpreters;
	const char *const *apt;     /* the Debian package; empty: see how */
	const char *how;            /* how to install it without a Debian package */
	const char *minimum;        /* the oldest tested version, or NULL */
	const char *file;           /* the file name of a program without a name */
	const char *const *version; /* command that prints the version as its first number */
	/* Words may contain {source}, {stem}, {dir}, {program}, {unit} and {heap}; the word
	 * {sources} is replaced by all sources. Without compile, run reads the source. */
	const char *const *compile, *const *run, *const *test;
	const struct lang_list *compilers; /* other compile commands, by name */
	const struct lang_pair *env;
	const struct lang_pair *support; /* files that its commands need: path -> text */
	const struct lang_extra *extras;
	struct lang_unit unit;
	struct lang_limits limits;
	struct lang_times times;
	struct lang_packages packages;
	const struct lang_pattern *errors, *faults;
	const char *warm;                  /* the matching warm interpreter, or NULL */
	const struct lang_list *warm_when; /* another one, for programs with these imports */
	const char *
		deterministic; /* the variable that makes its runs deterministic; NULL: they cannot be */
	const char *module; /* the WebAssembly module that executes its programs; NULL: none */
	const char *hello, *selftest;

	struct runtime_store *store;
};

unsigned lang_count(void);
const struct lang *lang_at(unsigned i); /* i < lang_count() */
/* By name or alias, case-insensitive. */
const struct lang *lang_named(const char *name);
/* By file extension, else by the first line; NULL: unknown. */
const struct lang *lang_of(const char *file_name, const char *head, size_t head_len);
/* An ELF file or a #! script: it is executed directly. */
int lang_is_program(const char *head, size_t head_len);
int lang_has_ending(const struct lang *l, const char *file_name);

/* The program that the row executes first. A box has the same file at the same path. */
const char *lang_program(const struct lang *l);
int lang_present(const struct lang *l);
/* "sudo apt-get install ...", or other instructions; valid until the next call. */
struct buf;
void lang_install(const struct lang *l, struct buf *out);

/* "python@3.11": the name ends at the @. Returns the version, "" without one. */
#define LANG_NAME 32
const char *lang_pin(const char *wanted, char out_name[LANG_NAME + 1]);
/* The first number with a dot in the output of a version command, else the first number; "" if
 * none. */
#define LANG_VERSION 32
void lang_version_in(const char *said, size_t len, char out[LANG_VERSION + 1]);
/* Does "3.11.2" satisfy "3.11"? The parts of the pin must be equal. */
int lang_pin_fits(const char *pin, const char *version);

/* NULL: the compiler is not one of the row. wanted NULL: the default compiler. */
const char *const *lang_compiler(const struct lang *l, const char *wanted);

/* The inputs of a command. Paths are those of the box. */
struct lang_job {
	const char *source, *program;
	const char *const *sources;  /* all of the project, NULL-terminated; NULL: source alone */
	const char *unit;            /* from lang_unit_of(), or NULL */
	uint64_t memory;             /* of the box; 0: words with {heap} are left out */
	const char *const *packages; /* or NULL */
};
/* The words of the row with all placeholders replaced, followed by args (may be NULL); one
 * allocation, freed by the caller. */
const char **lang_words(const char *const *row, const struct lang_job *job,
			const char *const *args);
/* The name of the program in this text: "com.example.Main"; without one, that of the file. */
#define LANG_UNIT 256
void lang_unit_of(const struct lang *l, const char *file_name, const char *text, size_t len,
		  char out[LANG_UNIT]);
/* The file name of a program without a name. */
void lang_file_of(const struct lang *l, const char *text, size_t len, char out[LANG_UNIT]);

/* The warm interpreter for this program, chosen by its imports; NULL: none. */
const char *lang_warm(const struct lang *l, const char *source, size_t len);
int lang_warm_known(const char *name); /* is it named in any row? */
