/* script.c - see script.h. */
#include "agent/script.h"

#include <stdlib.h>

#ifdef ATOLL_TEST
struct script {
	json_t *replies;
	size_t at;
	struct timer soon;
	script_done_fn *done;
	void *user;
};

static void due(struct timer *t)
{
	struct script *s = loop_owner(t, struct script, soon);
	json_t *reply = json_array_get(s->replies, s->at++), *answer;
	const json_t *error = json_object_get(reply, "error");
	struct err e;

	if (error)
		err_set(&e, ERR_SYS, "%s", json_string_value(error));
	answer = json_is_string(reply) ? json_pack("{s:O}", "text", reply) : json_copy(reply);
	if (!json_object_get(answer, "usage"))
		json_object_set_new(answer, "usage",
				    json_pack("{s:i, s:i, s:i, s:f}", "calls", 1, "in", 100, "out", 10, "cost",
					      0.001));
	s->done(s->user, answer, error ? &e : NULL);
	json_decref(answer);
}

struct script *script_new(struct loop *l, const json_t *replies)
{
	struct script *s;

	if (!json_is_array(replies))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->replies = json_deep_copy(replies);
	timer_init(&s->soon, l, due);
	return s;
}

int script_start(struct script *s, json_t *take_request, script_done_fn *done, void *user, struct err *e)
{
	const json_t *reply = json_array_get(s->replies, s->at);

	json_decref(take_request);
	if (!reply)
		return err_set(e, ERR_NOT_FOUND, "the script is over");
	s->done = done;
	s->user = user;
	if (!json_is_true(json_object_get(reply, "never")))
		timer_set(&s->soon, 0);
	return 0;
}

void script_cancel(struct script *s)
{
	timer_clear(&s->soon);
}

void script_free(struct script *s)
{
	if (!s)
		return;
	timer_fini(&s->soon);
	json_decref(s->replies);
	free(s);
}
#else
struct script *script_new(struct loop *l, const json_t *replies)
{
	(void)l;
	(void)replies;
	return NULL;
}

int script_start(struct script *s, json_t *take_request, script_done_fn *done, void *user, struct err *e)
{
	(void)s;
	(void)done;
	(void)user;
	json_decref(take_request);
	return err_set(e, ERR_INVALID, "there are no scripts in this build");
}

void script_cancel(struct script *s)
{
	(void)s;
}

void script_free(struct script *s)
{
	(void)s;
}
#endif
