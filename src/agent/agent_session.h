/* agent_session.h - an agent in a box of its own: the box, the pilot in it, the model's words for it, the end.
 * Owns: the box unless it is to be kept, the pilot's run, the question under way, the budgets.
 *
 *   box -> files -> pilot --ask--> model          outcome: done failed budget stuck malformed
 *                     ^◄--answer---┘
 *
 * Budgets are counted here, from what the model's line says; the box is not asked. What a box says is a
 * stranger's: lines are bounded, are JSON or are told as text, and decide nothing but how soon it ends. The
 * result is the model's own reply. Whatever becomes of us, the box ends: it is on our leash. */
#pragma once
#include "base/err.h"
#include "fleet/box.h"
#include "llm/llm.h"
#include <jansson.h>

enum {
	ERRAND_STEPS = 5,
	ERRAND_STEPS_MOST = 100,
	ERRAND_COMMAND_MS = 30000,
	ERRAND_CONTEXT = 64 * 1024,
	ERRAND_WALL_MS = 600000,
	ERRAND_TOKENS = 200000,
	ERRAND_REPLY_TOKENS = 8192, /* of one reply */
};

#define ERRAND_REPORT "atoll.agent-report/1"

struct errand;
struct errand_owner {
	/* {type: "started"|"log"|"model_call"|"stderr", ...}. 1: no more until errand_go_on(). */
	int (*event)(struct errand_owner *o, json_t *take_event);
	void (*done)(struct errand_owner *o, json_t *take_report); /* once, never from within */
};

struct errand_want { /* borrowed for the call */
	const struct box_spec *box;
	const json_t *
		order; /* {task, files?, role?, model?, max_steps?, tools?, budget?, ...}, checked */
	int keep;
};
must_check int errand_start(struct fleet *f, struct model_line *models,
			    const struct errand_want *want, struct errand_owner *o,
			    struct errand **out, struct err *e);
void errand_go_on(struct errand *x);
void errand_cancel(struct errand *x); /* done is not called; the box ends */

/* Verbs by the names of `tools`; -1: one of them is none. NULL: all. */
must_check int errand_tools(const json_t *names, unsigned *out, struct err *e);
