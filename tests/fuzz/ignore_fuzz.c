/* ignore_fuzz.c - the first line is a path, the rest an ignore file: a decision, or an error with the line. */
#include "base/ignore.h"
#include "fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *text = (const char *)bytes, *nl = memchr(text, '\n', len);
	char path[200] = "", below[210];
	struct err e = { 0 };
	struct ignore g;

	if (nl && nl - text < (long)sizeof(path)) {
		memcpy(path, text, (size_t)(nl - text));
		path[nl - text] = 0;
		len -= (size_t)(nl - text) + 1;
		text = nl + 1;
	}
	if (ignore_parse(&g, "f", text, len, &e) < 0) {
		assert(!strncmp(e.msg, "f", 1) && (e.kind == ERR_INVALID || e.kind == ERR_LIMIT));
		return 0;
	}
	assert(g.n <= IGNORE_RULES);
	/* A folder that is left out as a whole has no file that is not. */
	if (*path && ignore_match_all(&g, path)) {
		assert(ignore_match(&g, path));
		snprintf(below, sizeof(below), "%s/x", path);
		assert(ignore_match(&g, below));
	}
	ignore_fini(&g);
	return 0;
}
