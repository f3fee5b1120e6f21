/* template_match.h - a task's text, looked at once, and how well each task of the library explains it.
 * Owns: what was found in the text, until task_text_fini(); what a fit found, until template_match_fini(). */
#pragma once
#include "plan/task_examples.h"
#include "plan/library.h"

enum { TEMPLATE_MATCH_NEAREST = 3 };

struct task_text {
	const json_t *task;
	struct task_examples shown;
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

void task_text_read(struct task_text *k, const json_t *task);
void task_text_fini(struct task_text *k);
int task_text_matters(
	const struct task_text *k,
	unsigned word); /* it says what is to be done: no filler, no "list" or "number" */
/* How often a phrase is in the text. seen: one per word, or NULL; set to how where it was, if that is more. */
unsigned task_text_has(const struct task_text *k, const struct phrase *p, unsigned char *seen,
		       int how);
unsigned task_text_has_any(const struct task_text *k, const struct phrases *all,
			   unsigned char *seen, int how);

struct template_match {
	const struct library_task *task;
	const struct library_program *program;
	json_t *slots; /* that the text fills */
	unsigned groups, never;
	double explained, strange, score;
	unsigned char *seen; /* per word */
};

void template_match_make(const struct task_text *k, const struct library_task *t,
			 struct template_match *out);
void template_match_fini(struct template_match *f);
double template_match_coverage(
	const struct template_match *f); /* how much of the text it explains, by weight: 0 to 1 */
int template_match_complete(
	const struct template_match
		*f); /* all that it needs is there, nothing that it must not have */
/* Does it have what is asked for: a program in this language, a function where one is called, one that
 * reads where there is input? */
int template_match_has_program(const struct task_text *k, const struct template_match *f);
int template_match_claims(const struct task_text *k,
			  const struct template_match *f); /* it is that, as far as it knows */
/* Those that claim the text first, best first; then those that come near. Returns how many. */
unsigned template_match_best(const struct task_text *k,
			     struct template_match best[TEMPLATE_MATCH_NEAREST]);
