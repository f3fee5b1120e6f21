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
	AGENT_SESSION_STEPS = 5,
	AGENT_SESSION_STEPS_MOST = 100,
	AGENT_SESSION_COMMAND_MS = 30000,
	AGENT_SESSION_CONTEXT = 64 * 1024,
	AGENT_SESSION_WALL_MS = 600000,
	AGENT_SESSION_TOKENS = 200000,
	AGENT_SESSION_REPLY_TOKENS = 8192, /* of one reply */
};

#define AGENT_SESSION_REPORT "atoll.agent-report/1"

struct agent_session;
struct agent_session_owner {
	/* {type: "started"|"log"|"model_call"|"stderr", ...}. 1: no more until agent_session_go_on(). */
	int (*event)(struct agent_session_owner *o, json_t *take_event);
	void (*done)(struct agent_session_owner *o,
		     json_t *take_report); /* called once, never from within a call */
};

struct agent_session_want { /* borrowed for the call */
	const struct box_spec *box;
	const json_t *
		order; /* {task, files?, role?, model?, max_steps?, tools?, budget?, ...}, checked */
	int keep;
};
must_check int agent_session_start(struct fleet *f, struct llm_client *models,
				   const struct agent_session_want *want,
				   struct agent_session_owner *o, struct agent_session **out,
				   struct err *e);
void agent_session_go_on(struct agent_session *x);
void agent_session_cancel(struct agent_session *x); /* done is not called; the box ends */

/* Verbs by the names of `tools`; -1: one of them is none. NULL: all. */
must_check int agent_session_tools(const json_t *names, unsigned *out, struct err *e);
