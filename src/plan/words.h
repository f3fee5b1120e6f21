/* words.h - splits the text of a task into words: plain words, numbers, quoted strings, files,
 * URLs, punctuation.
 * Owns: a copy of the text that the words point into, until words_fini().
 *
 * "mean of 3, 1 and 2 in data.csv"  ->  mean of 3 , 1 and 2 in data.csv
 *
 * Inflected words have the same stem: "computes" and "computing" have the stem of "compute". */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum {
	WORDS_MOST = 2048, /* maximum of a text; the rest is not read */
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
	WORD_MARK, /* , : [ ] and other single characters; a line end, too */
};

struct word {
	enum word_kind kind;
	const char *p; /* as written; of a string without its quotes */
	size_t n;
	size_t at;            /* its offset in the text */
	char stem[WORD_STEM]; /* PLAIN: its stem; FILE: that of its extension; else "" */
	int glued;            /* no blank before it */
	int whole;            /* a number without a fraction that fits into integer */
	int64_t integer;
	double number; /* NUMBER; also of "ten", which stays PLAIN: spelled is set */
	int spelled;
	unsigned id; /* set by the caller: 0 at first */
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
int word_is(const struct word *w, const char *plain); /* this word, case-insensitive */
int word_is_mark(const struct word *w, char mark);
