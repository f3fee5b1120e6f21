/* dialect.c - see dialect.h. The four APIs are documented by their providers; unexpected behaviour
 * has a test in tests/unit/llm_dialect_test.c. */
#include "llm/dialect_util.h"
#include "base/cleanup.h"

#include <string.h>

const struct dialect dialects[] = {
	{ "chat", "/chat/completions", "Authorization: Bearer %s", NULL, 0, chat_body, chat_event },
	{ "responses", "/responses", "Authorization: Bearer %s", NULL, 0, responses_body,
	  responses_event },
	{ "messages", "/v1/messages", "x-api-key: %s", "anthropic-version: 2023-06-01", 0,
	  messages_body, messages_event },
	{ "ollama", "/api/chat", "Authorization: Bearer %s", NULL, 1, ollama_body, ollama_event },
};
const unsigned ndialects = ARRAY_LEN(dialects);

const struct dialect *dialect_find(const char *name)
{
	for (unsigned i = 0; i < ndialects; i++)
		if (strcmp(dialects[i].name, name) == 0)
			return &dialects[i];
	return NULL;
}

char *dialect_body(const json_t *request, const struct models_config_model *m)
{
	json_t *b = m->provider->dialect->body(request, m);
	char *text = json_dumps(b, JSON_COMPACT);

	json_decref(b);
	return text;
}
