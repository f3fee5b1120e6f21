/* agent_session.h - an agent in a box of its own: creates the box, starts the boxagent in it, passes its
 * questions to the model, and ends the box. Or in an existing box, which stays.
 * Owns: the box that it has created unless it is to be kept, the exec of the boxagent, the pending model call, the budgets.
 *
 *   box -> files -> boxagent --ask--> model          outcome: done failed budget stuck malformed
 *                     ^◄--answer------┘
 *
 * Budgets are counted here, from the figures of the llm process; the box is not asked. Output of a box is
 * untrusted: lines have a limited length, are JSON or are reported as text, and can only end the session
 * earlier. The result is the model's own reply. The box also ends when this server exits: it has the flag
 * kill on close. */
#pragma once
#include "base/err.h"
#include "fleet/box.h"
#include "fleet/exec.h"
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
	/* {type: "started"|"log"|"model_call"|"stderr", ...}. 1: no more until agent_session_resume(). */
	int (*event)(struct agent_session_owner *o, json_t *take_event);
	void (*done)(struct agent_session_owner *o,
		     json_t *take_report); /* called once, never from within a call */
};

struct agent_session_want {               /* borrowed for the call */
	const struct box_spec *box;       /* of its new box; unused with in_box */
	const char *in_box;               /* an existing box; NULL: a new one */
	const char *key;                  /* charged; NULL: the key of the box */
	const struct exec_before *before; /* in_box: the checkpoint before its programs */
	const json_t *
		order; /* {task, files?, role?, model?, max_steps?, tools?, budget?, ...}, checked */
	int keep;
};
must_check int agent_session_start(struct fleet *f, struct llm_client *models,
				   const struct agent_session_want *want,
				   struct agent_session_owner *o, struct agent_session **out,
				   struct err *e);
void agent_session_resume(struct agent_session *x);
void agent_session_cancel(struct agent_session *x); /* done is not called; the box ends */

/* The bits of the tools with these names; NULL: of all tools. -1: a name is not a tool. */
must_check int agent_session_tools(const json_t *names, unsigned *out, struct err *e);
