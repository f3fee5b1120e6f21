/* race_internal.h - shared by race.c and race_attempt.c only. */
#pragma once
#include "api/internal_call.h"
#include "checkpoint/rollback.h"
#include "v1run/race.h"

enum race_state {
	RACE_WAITING,  /* not begun */
	RACE_STARTING, /* its box is being created */
	RACE_RUNNING,
	RACE_CHECKING,
	/* It has ended: */
	RACE_PASSED,
	RACE_FAILED,    /* its check has failed */
	RACE_ERROR,     /* it could not run: message */
	RACE_CANCELLED, /* another one has won, or the time was over */
};

struct race;
struct race_attempt {
	struct race *race;
	enum race_state state;
	struct box_wait made;
	char box[ID_MAX + 1]; /* "": none, or no longer */
	char path[sizeof("/v1/boxes//execs") + ID_MAX];
	struct internal_call *calling;
	uint64_t began_ms, took_ms;
	json_t *program, *check; /* what was run, as in the answer; NULL: not run */
	double score;
	char message[240];
};

enum race_keep { RACE_KEEP_FIRST, RACE_KEEP_BEST, RACE_KEEP_NONE };
struct race {
	struct call *call;
	char box[ID_MAX + 1];
	struct box_spec want; /* of the copies; texts live as long as the call */
	char checkpoint[ID_MAX + 1], kept[ID_MAX + 1]; /* of the box before; of the winner */
	const json_t *programs, *check;                /* of the body */
	enum race_keep keep;
	struct checkpoint_job *job;
	struct rollback *rollback;
	struct timer budget;
	uint64_t began_ms, ends_ms;
	unsigned n, begun, over;
	int winner; /* -1: none yet */
	int beginning, deciding, is_spent;
	struct race_attempt v[];
};

/* Creates its box, runs its program and its check. race_attempt_over() is called when it has ended, perhaps at once. */
void race_attempt_begin(struct race_attempt *a);
/* Ends what it does, and its box; the state becomes RACE_CANCELLED unless it has ended. */
void race_attempt_stop(struct race_attempt *a);
void race_attempt_end_box(struct race_attempt *a);
int race_attempt_has_ended(const struct race_attempt *a);
json_t *race_attempt_json(const struct race_attempt *a);
void race_attempt_fini(struct race_attempt *a);

/* race.c */
void race_attempt_over(struct race_attempt *a);
