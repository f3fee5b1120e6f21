/* answer.c - E2B's shapes of an error. */
#include "base/own.h"
#include "box/changes.h"
#include "e2b/e2b.h"

#include <stdarg.h>
#include <stdio.h>

static void answer(struct call *c, int status, const char *message)
{
	call_json(c, status,
		  json_pack("{s:i, s:o}", "code", status, "message", changes_text(message)));
}

void e2b_error(struct call *c, int status, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	answer(c, status, text);
}

/* Their clients show one line: what, and the value seen. */
void e2b_manner_error(struct call *c, int status, const char *code, const char *message,
		      const char *why, const char *hint)
{
	char text[600];

	(void)code;
	(void)hint;
	snprintf(text, sizeof(text), "%s%s%s", message, why && *why ? ": " : "", why ? why : "");
	answer(c, status, text);
}

const struct api_manner e2b_manner = { .error = e2b_manner_error };

void e2b_no_box(struct call *c, int status, const char *id, unsigned port, const char *message)
{
	json_t *doc = json_pack("{s:o, s:s, s:i}", "sandboxId", changes_text(id), "message", message,
				"code", status);

	if (port)
		json_object_set_new(doc, "port", json_integer(port));
	call_json(c, status, doc);
}
