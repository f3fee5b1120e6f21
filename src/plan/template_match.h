/* template_match.h - a task's text, looked at once, and how well each task of the library explains it.
 * Owns: what was found in the text, until look_away(); what a fit found, until fit_fini(). */
#pragma once
#include "plan/task_examples.h"
#include "plan/library.h"

enum { FIT_NEAREST = 3 };

struct look {
	const json_t *task;
	struct shown shown;
	struct words words;
	unsigned char *spoken; /* per word: speaks of the language only */
	unsigned char *prose;  /* per word: says nothing about the task */
	double *strange;       /* per word: how much it weighs where it is not explained */
	unsigned *row;         /* indices of the words that are no marks */
	unsigned nrow;
	const struct lang *lang; /* NULL: nobody said */
	int unknown;             /* somebody did, and there is none of that name */
	json_t *examples;
	char callee[64]; /* what the examples call; "": nothing */
	const char *call;
	int inputs; /* examples give input and want output */
};

void look_at(struct look *k, const json_t *task);
void look_away(struct look *k);
int look_matters(const struct look *k, unsigned word); /* it says what is to be done: no filler, no "list" or "number" */
/* How often a phrase is in the text. seen: one per word, or NULL; set to how where it was, if that is more. */
unsigned look_sees(const struct look *k, const struct phrase *p, unsigned char *seen, int how);
unsigned look_sees_any(const struct look *k, const struct phrases *all, unsigned char *seen,
		       int how);

struct fit {
	const struct library_task *task;
	const struct library_program *program;
	json_t *slots; /* that the text fills */
	unsigned groups, never;
	double explained, strange, score;
	unsigned char *seen; /* per word */
};

void fit_make(const struct look *k, const struct library_task *t, struct fit *out);
void fit_fini(struct fit *f);
double fit_coverage(const struct fit *f); /* how much of the text it explains, by weight: 0 to 1 */
int fit_complete(
	const struct fit *f); /* all that it needs is there, nothing that it must not have */
/* Does it have what is asked for: a program in this language, a function where one is called, one that
 * reads where there is input? */
int fit_has_program(const struct look *k, const struct fit *f);
int fit_claims(const struct look *k, const struct fit *f); /* it is that, as far as it knows */
/* Those that claim the text first, best first; then those that come near. Returns how many. */
unsigned fit_best(const struct look *k, struct fit best[FIT_NEAREST]);
