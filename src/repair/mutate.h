/* mutate.h - programs that differ from a given one in one token or two, for languages that look like C.
 * Owns: nothing; the edits are the caller's.
 *
 * It knows tokens and no grammar: names, numbers, texts, operators. Some of what it makes will not
 * compile, and whoever tries it finds out. */
#pragma once
#include "repair/edit.h"

struct mutations {
	struct edit *v; /* likeliest first */
	unsigned n;
	int cut; /* there are more than were asked for */
};

int mutate_knows(const char *language); /* by its name in lang.h */
/* At most `most`. Nothing of what it puts in is longer than EDIT_NEW. */
void mutate_make(struct mutations *out, const char *language, const char *source, size_t n,
		 unsigned most);
void mutations_fini(struct mutations *m); /* fine on a zeroed one */

/* ---- tokens, for the tests ---- */

enum token_kind { TOKEN_NAME, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_OPERATOR, TOKEN_END };
struct token {
	enum token_kind kind;
	const char *p;
	size_t n;
};
/* The next one at or behind *at, which moves behind it. Blanks, comments and lines of a preprocessor are
 * none. A text that does not end is one up to its line's end. */
struct token token_next(const char *language, const char *source, size_t n, size_t *at);
