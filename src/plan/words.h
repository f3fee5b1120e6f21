/* words.h - the text of a task as words: plain ones, numbers, quoted texts, files, addresses, marks.
 * Owns: a copy of the text that the words point into, until words_fini().
 *
 *	"mean of 3, 1 and 2 in data.csv"  ->  mean of 3 , 1 and 2 in data.csv
 *
 * Words of one family are the same word: "computes" and "computing" have the stem of "compute". */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum {
	WORDS_MOST = 2048, /* of a text; what is behind them is not read */
	WORD_STEM = 32,
};

enum word_kind {
	WORD_PLAIN,
	WORD_NUMBER, /* 3, -1.5, 10th */
	WORD_TEXT,   /* "in quotes" */
	WORD_FILE,   /* data.csv, /etc/hosts */
	WORD_URL,
	WORD_DATE, /* 2024-02-29 */
	WORD_SIZE, /* 10 MB; integer: bytes */
	WORD_MARK, /* , : [ ] and whatever else stands alone; a line's end, too */
};

struct word {
	enum word_kind kind;
	const char *p; /* as written; of a text what is between the quotes */
	size_t n;
	size_t at;            /* where in the text it begins */
	char stem[WORD_STEM]; /* PLAIN: its family; FILE: that of its ending; else "" */
	int glued;            /* no blank before it */
	int whole;            /* a number without a fraction that fits: integer has it */
	int64_t integer;
	double number; /* NUMBER; also of "ten", which stays PLAIN: spelled is set */
	int spelled;
	unsigned id; /* whoever reads may number them: 0 so far */
};

struct words {
	struct word *all;
	unsigned n;
	char *text; /* the copy */
};

void words_read(struct words *out, const char *text, size_t len);
void words_fini(struct words *w);
#define auto_words __attribute__((cleanup(words_fini)))

void words_stem(const char *p, size_t n, char out[WORD_STEM]);
int word_is(const struct word *w, const char *plain); /* this very word, whatever case */
int word_is_mark(const struct word *w, char mark);
