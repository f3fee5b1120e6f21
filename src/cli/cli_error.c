/* cli_error.c - see cli_error.h. */
#include "cli/cli_error.h"
#include "base/utf8.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CUT = 40 };

struct cli_error *cli_error_what(struct cli_error *t, const char *code, const char *fmt, ...)
{
	va_list ap;

	*t = (struct cli_error){ .code = code };
	va_start(ap, fmt);
	vsnprintf(t->what, sizeof(t->what), fmt, ap);
	va_end(ap);
	return t;
}

void cli_error_why(struct cli_error *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->why, sizeof(t->why), fmt, ap);
	va_end(ap);
}

void cli_error_hint(struct cli_error *t, const char *label, const char *fmt, ...)
{
	va_list ap;

	if (t->nhints == sizeof(t->hints) / sizeof(t->hints[0]))
		return;
	snprintf(t->hints[t->nhints].label, sizeof(t->hints[0].label), "%s", label);
	va_start(ap, fmt);
	vsnprintf(t->hints[t->nhints].text, sizeof(t->hints[0].text), fmt, ap);
	va_end(ap);
	t->nhints++;
}

const char *cli_error_shown(const char *foreign, char out[SHOWN])
{
	size_t n = strnlen(foreign, CUT + 1), cut = n > CUT ? CUT : n;

	cut = utf8_cut(foreign, cut);
	for (size_t i = 0; i < cut; i++)
		out[i] = (unsigned char)foreign[i] < 32 || foreign[i] == 127 ? '?' : foreign[i];
	strcpy(out + cut, n > CUT ? "..." : "");
	return out;
}

/* jansson rejects a document with bytes that are not UTF-8. */
static json_t *error_text(const char *s)
{
	json_t *j = json_string(s);

	return j ? j : json_string("(not UTF-8)");
}

static void say_json(const struct cli_error *t)
{
	json_t *hints = json_array();
	json_t *doc;

	for (unsigned i = 0; i < t->nhints; i++)
		json_array_append_new(hints, json_pack("{s:o, s:o}", "label",
						       error_text(t->hints[i].label), "command",
						       error_text(t->hints[i].text)));
	doc = json_pack("{s:{s:o, s:o, s:o, s:o}}", "error", "code", error_text(t->code), "message",
			error_text(t->what), "why", error_text(t->why), "hints", hints);
	json_dumpf(doc, stderr, JSON_COMPACT);
	fputc('\n', stderr);
	json_decref(doc);
}

/* Messages quote names of files and answers of daemons. On a terminal their control characters
 * would be commands. */
static void say_text(const char *before, const char *s, const char *after)
{
	fputs(before, stderr);
	for (; *s; s++)
		fputc(((unsigned char)*s < 32 && *s != '\n') || *s == 127 ? '?' : *s, stderr);
	fputs(after, stderr);
}

int cli_error_print(const struct cli_error *t, int json, int status)
{
	fflush(stdout);
	if (json) {
		say_json(t);
		return status;
	}
	say_text("atoll: ", t->what, "");
	if (*t->why)
		say_text(" (", t->why, ")");
	fputc('\n', stderr);
	for (unsigned i = 0; i < t->nhints; i++) {
		say_text("  ", t->hints[i].label, ": ");
		say_text("", t->hints[i].text, "\n");
	}
	return status;
}
