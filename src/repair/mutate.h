/* mutate.h - generates edits of one or two tokens, for languages with C-like syntax.
 * Owns: nothing; the edits belong to the caller. It knows tokens but no grammar: names, numbers,
 * strings, operators. Some edits will not compile, which the test shows. */
#pragma once
#include "repair/edit.h"

struct mutations {
	struct edit *v; /* likeliest first */
	unsigned n;
	int cut; /* more edits exist than were requested */
};

int mutate_knows(const char *language); /* by its name in lang.h */
/* At most `most` edits. No inserted text is longer than EDIT_NEW. */
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
/* The next token at or after *at, which is moved after it. Blanks, comments and preprocessor lines
 * are skipped. An unclosed string ends with its line. */
struct token token_next(const char *language, const char *source, size_t n, size_t *at);
