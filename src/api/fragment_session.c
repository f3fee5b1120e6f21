/* fragment_session.c - see fragment_session.h. */
#include "api/fragment_session.h"
#include "base/cleanup.h"

const json_t *fragment_of_body(const json_t *body, const char **out_path)
{
	static const char *const places[] = { "fragment", "config" };

	for (unsigned i = 0; i < ARRAY_LEN(places); i++) {
		const json_t *v = json_object_get(body, places[i]);

		if (v && !json_is_null(v)) {
			*out_path = places[i];
			return v;
		}
	}
	*out_path = "";
	return body;
}

static const char *fragment_own_text(const json_t *doc, const char *name)
{
	const char *s = json_string_value(json_object_get(doc, name));

	return s && *s ? s : NULL;
}

/* Front ends put some fields next to the fragment, and others into it. */
const char *fragment_text_of(const json_t *fragment, const json_t *body, const char *name)
{
	const char *s = fragment_own_text(fragment, name);

	return s ? s : fragment_own_text(body, name);
}

const char *fragment_session(const json_t *fragment, const json_t *body)
{
	static const char *const names[] = { "session", "sessionId", "sessionID", "userID" };
	const char *s = NULL;

	for (unsigned i = 0; i < ARRAY_LEN(names) && !s; i++)
		s = fragment_text_of(fragment, body, names[i]);
	return s;
}
