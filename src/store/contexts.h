/* contexts.h - the contexts: which exec each one is, and where its last cell begins in the
 * output of that exec. A restart needs no more: the output is in init's logs. */
#pragma once
#include "store/store.h"

enum { STORE_CONTEXT_STREAMS = 3 };

struct store_context {
	/* clang-format off */
	char id[ID_MAX + 1];
	char box[ID_MAX + 1];
	char language[STORE_WORD + 1];
	int standing; /* the default context: for cells that name none */
	int64_t created_ns;
	char *cwd; /* "" */
	char *env; /* JSON; NULL is {} */
	char run[ID_MAX + 1]; /* its program */
	uint32_t ref;         /* init's number of that */
	uint64_t cell;        /* the last one that was started; 0: none */
	char status[STORE_WORD + 1]; /* how that ended; "" not yet */
	uint64_t from[STORE_CONTEXT_STREAMS]; /* of each stream, when it began */
	uint64_t answers;     /* answers to input requests that this cell has received */
	uint64_t said;        /* bytes for the program's channel, that cell included */
	int64_t began_ns, deadline_ns; /* 0: none. deadline_ns -1: it has expired, and the cell
				        * was interrupted */
	uint64_t max_output;
	/* clang-format on */
};
void store_context_fini(struct store_context *c);

struct store_contexts {
	struct store_context *v;
	unsigned n;
};
void store_contexts_fini(struct store_contexts *l);

must_check int store_context_insert(struct store *s, const struct store_context *c, struct err *e);
/* By id: updates exec and cell. ERR_NOT_FOUND, too, when the row has a later cell already. */
must_check int store_context_update(struct store *s, const struct store_context *c, struct err *e);
must_check int store_context_delete(struct store *s, const char *id, struct err *e);
must_check int store_context_drop(struct store *s, const char *box,
				  struct err *e); /* all of a box */
must_check int store_context_get(struct store *s, const char *id, struct store_context *out,
				 struct err *e);
/* Oldest first. */
must_check int store_context_list(struct store *s, const char *box, struct store_contexts *out,
				  struct err *e);
