/* history.c - see history.h. */
#include "boxagent/history.h"
#include "base/cleanup.h"
#include "boxagent/short_text.h"

#include <string.h>

enum { TEXT = 8 * 1024, FADED = 400 }; /* bytes of a text, and of an old one */

void agent_history_init(struct agent_history *m, size_t most)
{
	*m = (struct agent_history){ .most = most, .turns = json_array() };
}

static const char *text_of(const json_t *turn, const char *name)
{
	return json_string_value(json_object_get(turn, name));
}

static size_t size_of(const struct agent_history *m)
{
	size_t i, n = 0;
	json_t *turn;

	json_array_foreach(m->turns, i, turn) n +=
		strlen(text_of(turn, "reply")) + strlen(text_of(turn, "result"));
	return n;
}

/* A shortened action stays JSON, because the model uses it as an example. */
static void history_fade(json_t *turn)
{
	json_t *action = json_loads(text_of(turn, "reply"), 0, NULL),
	       *less = short_text_action(action, FADED);
	const char *result = text_of(turn, "result");
	auto_free char *text = json_dumps(less, JSON_COMPACT);

	json_object_set_new(turn, "result", short_text_string(result, strlen(result), FADED));
	if (text)
		json_object_set_new(turn, "reply", json_string(text));
	json_decref(action);
	json_decref(less);
}

void agent_history_add(struct agent_history *m, const json_t *action, const json_t *result)
{
	json_t *less = short_text_action(action, TEXT);
	auto_free char *reply = json_dumps(less, JSON_COMPACT);

	json_decref(less);
	json_array_append_new(m->turns, json_pack("{s:s, s:O}", "reply", reply ? reply : "",
						  "result", json_object_get(result, "text")));
	/* The last turn is not shortened: the next step is based on it. */
	for (size_t i = 0; i + 1 < json_array_size(m->turns) && size_of(m) > m->most; i++)
		history_fade(json_array_get(m->turns, i));
	while (json_array_size(m->turns) > 1 && size_of(m) > m->most) {
		json_array_remove(m->turns, 0);
		m->dropped++;
	}
}

void agent_history_fini(struct agent_history *m)
{
	json_decref(m->turns);
	m->turns = NULL;
}
