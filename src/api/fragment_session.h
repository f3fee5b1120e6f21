/* fragment_session.h - the session that the body of POST /api/sandbox names. Pure.
 * A gateway chooses the node of a session by it, and the node the box (v1run/fragment.h): both must read the same text. */
#pragma once
#include <jansson.h>

/* The fragment itself: the body, or the object in it that front ends put it into; *out_path is the name of that, or "". */
const json_t *fragment_of_body(const json_t *body, const char **out_path);
/* A text of the fragment, or else of the body around it; NULL: neither has one. */
const char *fragment_text_of(const json_t *fragment, const json_t *body, const char *name);
/* The same of its session, which has several names. */
const char *fragment_session(const json_t *fragment, const json_t *body);
