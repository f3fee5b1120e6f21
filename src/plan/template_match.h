/* template_match.h - analyses the text of a task, and scores how well each library task explains
 * it.
 * Owns: the analysis, until task_text_fini(); the match, until template_match_fini(). */
#pragma once
#include "plan/task_examples.h"
#include "plan/library.h"

enum { TEMPLATE_MATCH_NEAREST = 3 };

struct task_text {
	const json_t *task;
	struct task_examples shown;
	struct words words;
	unsigned char *spoken; /* per word: names only the language */
	unsigned char *prose;  /* per word: no information about the task */
	double *strange;       /* per word: its weight if unexplained */
	unsigned *row;         /* indices of words that are not punctuation */
	unsigned nrow;
	const struct lang *lang; /* NULL: not given */
	int unknown;             /* an unknown language was named */
	json_t *examples;
	char callee[64]; /* the function that the examples call; "": none */
	const char *call;
	int inputs; /* examples have input and output */
};

void task_text_read(struct task_text *k, const json_t *task);
void task_text_fini(struct task_text *k);
int task_text_matters(const struct task_text *k,
		      unsigned word); /* it describes the work: no filler, no "list" or "number" */
/* The number of occurrences of a phrase. seen: one per word, or NULL; raised to `how` for its
 * words. */
unsigned task_text_has(const struct task_text *k, const struct phrase *p, unsigned char *seen,
		       int how);
unsigned task_text_has_any(const struct task_text *k, const struct phrases *all,
			   unsigned char *seen, int how);

struct template_match {
	const struct library_task *task;
	const struct library_program *program;
	json_t *slots; /* filled slots */
	unsigned groups, never;
	double explained, strange, score;
	unsigned char *seen; /* per word */
};

void template_match_make(const struct task_text *k, const struct library_task *t,
			 struct template_match *out);
void template_match_fini(struct template_match *f);
double template_match_coverage(
	const struct template_match *f); /* explained share of the weight: 0 to 1 */
int template_match_complete(
	const struct template_match *f); /* all required words are present, and no excluded one */
/* Does it have a program in the language, a function if one is called, and input handling if
 * needed? */
int template_match_has_program(const struct task_text *k, const struct template_match *f);
int template_match_claims(const struct task_text *k,
			  const struct template_match *f); /* it claims the text */
/* First the tasks that claim the text, best first; then similar ones. Returns their number. */
unsigned template_match_best(const struct task_text *k,
			     struct template_match best[TEMPLATE_MATCH_NEAREST]);
