/* names.h - which node owns a name or a session of a box: questions to the coordinator, each with an answer within a second.
 * Owns: the questions in progress, the names that were found in the last second. */
#pragma once
#include "coordinator/coordinator.h"
#include "loop/loop.h"

enum { NAMES_ANSWER_MS = 800, NAMES_CACHE_MS = 1000, NAMES_TEXT = 200 };
#define NAMES_CLAIM "-" /* in place of the id of a box that is being created */

struct gateway_names;
struct gateway_names *gateway_names_new(struct loop *l, struct coordinator *c);
void gateway_names_free(struct gateway_names *n); /* allowed on NULL; after coordinator_free() */

struct names_key {
	char kind; /* 'n': a name, 's': a session; 0: none */
	char team[NAMES_TEXT], name[NAMES_TEXT], template[NAMES_TEXT];
};
/* 0: a text is too long; a node rejects the request. */
int names_key_set(struct names_key *k, char kind, const char *team, const char *name,
		  const char *template);

struct names_answer {
	int done;      /* the claim is the node's; the release was carried out */
	int has_owner; /* the name belongs to a node */
	unsigned node;
	char box[NAMES_TEXT];
};
struct names_ask { /* memory of the caller, zeroed; until done() or names_cancel() */
	/* Called once, from the loop. e: NULL; ERR_SYS: the engine does not answer; else refused. */
	void (*done)(struct names_ask *a, const struct names_answer *x, const struct err *e);
	struct names_question *question; /* NULL: not in progress */
};
/* COORDINATOR_CLAIM_NAME with NAMES_CLAIM, COORDINATOR_RELEASE_NAME, COORDINATOR_FIND_NAME. */
void names_begin(struct gateway_names *n, struct names_ask *a, enum coordinator_op op,
		 const struct names_key *k, unsigned node, int64_t epoch, const char *box);
void names_cancel(struct names_ask *a); /* done() is not called; fine on a zeroed or finished one */
/* The box exists: its id replaces NAMES_CLAIM. Nothing waits for it. */
void names_made(struct gateway_names *n, const struct names_key *k, unsigned node, const char *box);
/* The claim has no box. Nothing waits for it. */
void names_release(struct gateway_names *n, const struct names_key *k, unsigned node,
		   const char *box);
/* The node of a name that was found a moment ago; -1: not known. */
int names_cached(const struct gateway_names *n, const struct names_key *k);
