/* hermetic.h - runs whose result depends on their request alone, and the use of an earlier answer for them.
 * Owns: the output of a run while it is collected for its answer. Answers are rows (store/memo.h).
 *
 * A hermetic run has no network, no secrets and no install step, its interpreter is a new process, and variables fix the
 * start values of random numbers that runtimes read (hermetic_env). Its time is the real one: nothing here fixes a clock.
 * With "reuse" its answer is stored by a hash of everything that goes in, and the next identical request of the team gets
 * that answer. */
#pragma once
#include "base/buf.h"
#include "fleet/box.h"
#include "store/memo.h"
#include <jansson.h>

enum { HERMETIC_OUTPUT = 256 << 10 }; /* stored bytes of each stream */

/* NAME=value, NULL-terminated; variables of the language and of the request replace them. */
extern const char *const hermetic_env[];

struct hermetic_memo {
	int wanted; /* the answer may be stored */
	uint8_t key[SHA256_BYTES];
	struct buf out[2];
};

/* Rejects a request that contradicts itself: reuse without hermetic, hermetic with a network. */
must_check int hermetic_check(const json_t *body, struct err *e);
int hermetic_is(const json_t *body);
int hermetic_reuses(const json_t *body);

/* The hash of all inputs. lang_program: the compiler or interpreter on the host, or NULL. */
void hermetic_key(const json_t *body, const struct box_spec *box, const char *lang_program,
		  uint8_t out[SHA256_BYTES]);
/* The answer of an earlier run, with "reused"; NULL: none. */
json_t *hermetic_find(struct fleet *f, const char *team, const uint8_t key[SHA256_BYTES]);

void hermetic_collect(struct hermetic_memo *m, unsigned stream, const char *bytes, size_t n);
/* Stores the answer of a run that exited, with the output that was collected. */
void hermetic_keep(struct hermetic_memo *m, struct fleet *f, const char *team, const json_t *doc);
void hermetic_memo_fini(struct hermetic_memo *m);
