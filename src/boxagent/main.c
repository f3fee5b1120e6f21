/* main.c - the agent in a box: asks the host what to do, does it, at most so many times.
 *
 *   host                              boxagent                       stdout, the log
 *   {"spec": ...}               -->
 *                               <--   {"ask": {turns, malformed?}}
 *   {"answer": {"text": ...}}   -->   action_parse()
 *                                                                    {"step":1,"tool":...,"args":...}
 *                                     actions_run()
 *                                                                    {"step":1,"result":...}
 *                               <--   {"ask": ...}   and so on
 *                               <--   {"end": {outcome, why}}        {"done":true,...}, {"failed":why}
 *
 * The host is descriptor 3, which no command inherits. No key and no address of a model is here:
 * this process has only the task and the context. A step is logged before it is executed, so it is
 * known even if it kills this process. */
#include "base/cleanup.h"
#include "boxagent/short_text.h"
#include "boxagent/actions.h"
#include "boxagent/ndjson.h"
#include "boxagent/history.h"
#include "boxagent/action.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

enum {
	HOST = 3,
	LOG = 1,
	LOGGED = 4096, /* bytes of a text in the log */
	SAME_MOST = 3, /* times the same action in a row */
	TIMEOUTS_MOST = 3,
	SPEC_MS = 30000,
};

struct boxagent {
	struct ndjson host;
	struct actions actions;
	struct agent_history turns;
	unsigned allowed, max_steps;
	uint64_t answer_ms;
	struct err e;     /* exit status when the host is not connected */
	char why[40];     /* it failed: one word ... */
	char detail[300]; /* ... and more of them */
	json_t *last;     /* action */
	unsigned same;
};

static int boxagent_fail(struct boxagent *p, const char *why, const char *detail)
{
	snprintf(p->why, sizeof(p->why), "%s", why);
	snprintf(p->detail, sizeof(p->detail), "%s", detail);
	return -1;
}

static int put_log(struct boxagent *p, json_t *take_doc)
{
	return ndjson_write(LOG, take_doc, &p->e) < 0 ? boxagent_fail(p, "log", p->e.msg) : 0;
}

/* A text may be cut inside a character, or be long. */
static json_t *boxagent_words(const char *text)
{
	return short_text_string(text, strlen(text), LOGGED);
}

/* ---- asking ---- */

/* complaint: NULL, or the error of the previous reply. */
static int boxagent_ask(struct boxagent *p, const char *reply, const char *complaint,
			json_t **answer)
{
	json_t *ask =
		json_pack("{s:O, s:i}", "turns", p->turns.turns, "dropped", (int)p->turns.dropped);

	if (complaint)
		json_object_set_new(ask, "malformed",
				    json_pack("{s:o, s:o}", "reply", boxagent_words(reply), "why",
					      boxagent_words(complaint)));
	if (ndjson_write(HOST, json_pack("{s:o}", "ask", ask), &p->e) < 0 ||
	    ndjson_read(&p->host, p->answer_ms, answer, &p->e) < 0)
		return boxagent_fail(p, p->e.kind == ERR_LIMIT ? "no_answer" : "host", p->e.msg);
	return 0;
}

/* 1: an action. 0: none, and complaint has the reason. -1: ended. */
static int boxagent_parse_answer(struct boxagent *p, const json_t *answer, struct action *r,
				 struct err *complaint)
{
	const json_t *text = json_object_get(json_object_get(answer, "answer"), "text");
	const char *too = json_string_value(json_object_get(answer, "malformed")),
		   *stop = json_string_value(json_object_get(answer, "stop"));

	if (stop)
		return boxagent_fail(p, "stopped", stop);
	if (too)
		return err_set(complaint, ERR_INVALID, "%s", too), 0;
	if (!json_is_string(text))
		return boxagent_fail(p, "host", "the host's answer has no text");
	return action_parse(json_string_value(text), json_string_length(text), p->allowed, r,
			    complaint) == 0;
}

static int ask_again(struct boxagent *p, unsigned step, const json_t *first, struct err *why,
		     struct action *r)
{
	const char *said =
		json_string_value(json_object_get(json_object_get(first, "answer"), "text"));
	json_t *answer = NULL;
	int rc = -1;

	if (put_log(p, json_pack("{s:i, s:o}", "step", (int)step, "malformed",
				 boxagent_words(why->msg))) == 0 &&
	    boxagent_ask(p, said ? said : "", why->msg, &answer) == 0)
		rc = boxagent_parse_answer(p, answer, r, why);
	json_decref(answer);
	return rc;
}

/* One retry with the complaint; a second malformed reply in a row ends the session. */
static int next_action(struct boxagent *p, unsigned step, struct action *r)
{
	json_t *answer = NULL;
	struct err why;
	int rc;

	rc = boxagent_ask(p, NULL, NULL, &answer) < 0 ? -1
						      : boxagent_parse_answer(p, answer, r, &why);
	if (rc == 0)
		rc = ask_again(p, step, answer, &why, r);
	json_decref(answer);
	return rc > 0 ? 0 : rc < 0 ? -1 : boxagent_fail(p, "malformed_reply", why.msg);
}

/* ---- doing ---- */

static int is_stuck(struct boxagent *p, const json_t *action)
{
	p->same = p->last && json_equal(p->last, (json_t *)action) ? p->same + 1 : 1;
	json_decref(p->last);
	p->last = json_incref((json_t *)action);
	return p->same >= SAME_MOST;
}

static json_t *log_result(const json_t *result)
{
	json_t *less = json_copy((json_t *)result), *text = json_object_get(less, "text");

	json_object_set_new(less, "text",
			    short_text_string(json_string_value(text), json_string_length(text),
					      LOGGED));
	return less;
}

static int take_step(struct boxagent *p, unsigned step, const struct action *r)
{
	json_t *less = short_text_action(r->doc, LOGGED), *entry, *result;
	int rc;

	entry = json_pack("{s:i, s:O, s:O}", "step", (int)step, "tool",
			  json_object_get(less, "tool"), "args", json_object_get(less, "args"));
	json_decref(less);
	if (put_log(p, entry) < 0)
		return -1;
	if (is_stuck(p, r->doc))
		return boxagent_fail(p, "stuck", "the same action three times in a row");
	result = actions_run(&p->actions, r);
	agent_history_add(&p->turns, r->doc, result);
	rc = put_log(p, json_pack("{s:i, s:o}", "step", (int)step, "result", log_result(result)));
	json_decref(result);
	if (rc == 0 && p->actions.timeouts >= TIMEOUTS_MOST)
		return boxagent_fail(p, "timeouts", "three commands in a row took too long");
	return rc;
}

/* 0: done. */
static int boxagent_drive(struct boxagent *p)
{
	for (unsigned step = 1; step <= p->max_steps; step++) {
		struct action r;
		int done, rc;

		if (next_action(p, step, &r) < 0)
			return -1;
		done = r.done;
		rc = done ? put_log(p, json_pack("{s:b, s:i, s:O}", "done", 1, "step", (int)step,
						 "result", r.result))
			  : take_step(p, step, &r);
		action_fini(&r);
		if (done || rc < 0)
			return rc;
	}
	return boxagent_fail(p, "max_steps", "the agent used all its steps without finishing");
}

/* ---- beginning and end ---- */

static uint64_t boxagent_number(const json_t *spec, const char *name, uint64_t otherwise)
{
	const json_t *v = json_object_get(spec, name);

	return json_is_integer(v) && json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v)
							       : otherwise;
}

static void read_spec(struct boxagent *p, const json_t *spec)
{
	const json_t *tool;
	size_t i;

	p->max_steps = (unsigned)boxagent_number(spec, "max_steps", 5);
	p->answer_ms = boxagent_number(spec, "answer_ms", 120000);
	p->actions.command_ms = boxagent_number(spec, "command_ms", 30000);
	p->actions.result_bytes = boxagent_number(spec, "result_bytes", 16384);
	json_array_foreach(json_object_get(spec, "tools"), i, tool)
	{
		int kind = json_is_string(tool) ? agent_tool_named(json_string_value(tool)) : -1;

		p->allowed |= kind < 0 ? 0 : 1u << kind;
	}
	agent_history_init(&p->turns, boxagent_number(spec, "context_bytes", 65536));
}

static int driver_event_end(struct boxagent *p, int failed)
{
	json_t *end = failed ? json_pack("{s:s, s:s, s:o}", "outcome", "failed", "why", p->why,
					 "detail", boxagent_words(p->detail))
			     : json_pack("{s:s}", "outcome", "done");

	if (failed)
		(void)!ndjson_write(LOG,
				    json_pack("{s:s, s:o}", "failed", p->why, "detail",
					      boxagent_words(p->detail)),
				    &p->e);
	return ndjson_write(HOST, json_pack("{s:o}", "end", end), &p->e);
}

int main(void)
{
	struct boxagent p = { .host.fd = HOST, .actions.workspace = -1 };
	json_t *first = NULL;
	int rc;

	/* Commands have the same user: without this they could write to the log, or trace this
	 * process. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	if (fcntl(HOST, F_SETFD, FD_CLOEXEC) < 0) {
		fputs("boxagent: the server starts this program; it cannot be started by hand\n",
		      stderr);
		return 2;
	}
	if (ndjson_read(&p.host, SPEC_MS, &first, &p.e) < 0)
		return 2;
	read_spec(&p, json_object_get(first, "spec"));
	rc = actions_init(&p.actions, ACTIONS_WORKSPACE, &p.e) < 0
		     ? boxagent_fail(&p, "workspace", p.e.msg)
		     : boxagent_drive(&p);
	if (driver_event_end(&p, rc < 0) < 0)
		return 2;
	json_decref(first);
	json_decref(p.last);
	agent_history_fini(&p.turns);
	actions_fini(&p.actions);
	buf_fini(&p.host.bytes);
	return rc < 0;
}
