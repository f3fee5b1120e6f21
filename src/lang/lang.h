/* lang.h - which runtime runs which program, and how.
 * Owns: the rows, one per file of share/runtimes/, read from our own executable at first use.
 * A row needs no more than this machine's own /usr. */
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

/* Something that makes the row better and that it can do without. */
struct lang_extra {
	const char *name, *file, *apt;
};

/* Regular expressions (POSIX, extended) over what a program said; numbers are those of groups, 0:
 * it does not tell. See diag.h. */
struct lang_pattern {
	const char *match;
	uint32_t lines; /* how many lines it looks at; 0: 1 */
	uint32_t file, line, column, severity, message, type;
	uint32_t caret; /* the text in front of a mark: its length tells the column */
	const char *at; /* where else the place is told, with groups of its own: */
	uint32_t at_file, at_line, at_last; /* at_last 1: the last one of these */
};

/* Where the name of a program is written in its text, and not in its file's name: in the last group
 * of a pattern over one line. */
struct lang_unit {
	const char *outer; /* stands in front of the name, with a dot: a package */
	const char *name;  /* the last one, up to where the program begins */
	const char *begin;
	const char *forced; /* the file must have this name */
};

struct lang_packages {
	const char *manager;
	const char *const *install;   /* {packages} are its arguments */
	const char *const *manifests; /* names of files that list packages */
	const struct lang_pair
		*names; /* what is imported -> what is installed, where they differ */
};

struct lang_limits { /* 0: what any box has */
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
	const char *const *apt;     /* what brings it on Debian; empty: see how */
	const char *how;            /* to get it where no package brings it */
	const char *minimum;        /* the first version that was tried with this row, or NULL */
	const char *file;           /* what to call a program that came without a name */
	const char *const *version; /* the command; the first number in its output is the version */
	/* Words may have {source}, {stem}, {dir}, {program}, {unit} and {heap} in them; a word
	 * {sources} becomes all of them. No compile: run reads the source. */
	const char *const *compile, *const *run, *const *test;
	const struct lang_list *compilers; /* other ways to compile, by name */
	const struct lang_pair *env;
	const struct lang_pair *support; /* files that its commands want: path -> text */
	const struct lang_extra *extras;
	struct lang_unit unit;
	struct lang_limits limits;
	struct lang_times times;
	struct lang_packages packages;
	const struct lang_pattern *errors, *faults;
	const char *seed;                  /* a warm interpreter that suits, or NULL */
	const struct lang_list *seed_when; /* a better one, for programs that import one of these */
	const char *hello, *selftest;

	struct runtime_store *store;
};

unsigned lang_count(void);
const struct lang *lang_at(unsigned i); /* i < lang_count() */
/* By name or alias, whatever case. */
const struct lang *lang_named(const char *name);
/* By the ending of its name, else by its first line; NULL if neither says anything. */
const struct lang *lang_of(const char *file_name, const char *head, size_t head_len);
/* An ELF file or a #! script: it is run as it is. */
int lang_is_program(const char *head, size_t head_len);
int lang_has_ending(const struct lang *l, const char *file_name);

/* What the row runs first. A box shows the same file at the same place. */
const char *lang_program(const struct lang *l);
int lang_present(const struct lang *l);
/* "sudo apt-get install ...", or how else; good for one message. */
struct buf;
void lang_install(const struct lang *l, struct buf *out);

/* "python@3.11": the name ends at the @. Returns the version, "" if there is none. */
#define LANG_NAME 32
const char *lang_pin(const char *wanted, char out_name[LANG_NAME + 1]);
/* The first number with a dot in what a version command said, else the first number; "" if none. */
#define LANG_VERSION 32
void lang_version_in(const char *said, size_t len, char out[LANG_VERSION + 1]);
/* Does "3.11.2" satisfy "3.11"? Parts must be equal as far as the pin goes. */
int lang_pin_fits(const char *pin, const char *version);

/* NULL: the compiler is not one of the row's. wanted NULL: the usual one. */
const char *const *lang_compiler(const struct lang *l, const char *wanted);

/* What a command is about. Paths are those of the box. */
struct lang_job {
	const char *source, *program;
	const char *const *sources;  /* all of the project, NULL-terminated; NULL: source alone */
	const char *unit;            /* from lang_unit_of(), or NULL */
	uint64_t memory;             /* of the box; 0: words with {heap} are left out */
	const char *const *packages; /* or NULL */
};
/* The row's words with everything filled in and args (may be NULL) behind; one allocation, to be
 * freed by the caller. */
const char **lang_words(const char *const *row, const struct lang_job *job,
			const char *const *args);
/* The name of the program in this text: "com.example.Main"; without any it is the file's. */
#define LANG_UNIT 256
void lang_unit_of(const struct lang *l, const char *file_name, const char *text, size_t len,
		  char out[LANG_UNIT]);
/* What to call a program that came without a name. */
void lang_file_of(const struct lang *l, const char *text, size_t len, char out[LANG_UNIT]);

/* Which warm interpreter suits this program, by a look at what it imports; NULL: none. */
const char *lang_seed(const struct lang *l, const char *source, size_t len);
int lang_seed_known(const char *name); /* does any row speak of it? */
