/* lang.c - see lang.h. A new language is a file in share/runtimes/. */
#include "lang/lang.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "lang/lang_file.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
	MOST_LANGS = 64,
	TEXT_LOOKED_AT = 64 * 1024,
	LINE_BYTES = 512,
	LINES_MAX = 4000,
	NAME_BYTES = 120
};
#define HEAP "{heap}"

/* ---- the rows ---- */

static struct lang rows[MOST_LANGS];
static unsigned nrows;

/* A file that does not parse is a defect of this executable, which its unit test finds. */
static void read_rows(void)
{
	struct err e;

	for (const struct runtime_image *i = runtime_images; i < runtime_images_end; i++) {
		if (nrows == MOST_LANGS || runtime_read(&rows[nrows], i->name, i->text,
							(size_t)(i->end - i->text), &e) < 0)
			abort();
		nrows++;
	}
}

unsigned lang_count(void)
{
	if (!nrows)
		read_rows();
	return nrows;
}

const struct lang *lang_at(unsigned i)
{
	return i < lang_count() ? &rows[i] : NULL;
}

/* ---- which one ---- */

static int in_list(const char *const *list, const char *word, size_t len)
{
	for (; *list; list++)
		if (strlen(*list) == len && !memcmp(*list, word, len))
			return 1;
	return 0;
}

const struct lang *lang_named(const char *name)
{
	for (unsigned i = 0; i < lang_count(); i++) {
		if (!strcasecmp(rows[i].name, name))
			return &rows[i];
		for (const char *const *a = rows[i].aliases; *a; a++)
			if (!strcasecmp(*a, name))
				return &rows[i];
	}
	return NULL;
}

/* "#!/usr/bin/env -S python3 -u" and "#!/usr/bin/python3" both name python3. */
static const struct lang *by_first_line(const char *head, size_t len)
{
	const char *end = memchr(head, '\n', len), *at = head + 2;

	end = end ? end : head + len;
	while (at < end) {
		const char *word, *slash;

		while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
			at++;
		word = at;
		while (at < end && *at != ' ' && *at != '\t' && *at != '\r')
			at++;
		if (at == word || *word == '-')
			continue;
		slash = memrchr(word, '/', (size_t)(at - word));
		word = slash ? slash + 1 : word;
		if (at - word == 3 && !memcmp(word, "env", 3))
			continue;
		for (unsigned i = 0; i < lang_count(); i++)
			if (in_list(rows[i].interpreters, word, (size_t)(at - word)))
				return &rows[i];
		return NULL;
	}
	return NULL;
}

static const char *ending_of(const char *file_name)
{
	const char *dot = strrchr(file_name, '.');

	return dot && dot != file_name && !strchr(dot, '/') ? dot : NULL;
}

int lang_has_ending(const struct lang *l, const char *file_name)
{
	const char *dot = ending_of(file_name);

	return dot && in_list(l->endings, dot, strlen(dot));
}

const struct lang *lang_of(const char *file_name, const char *head, size_t head_len)
{
	for (unsigned i = 0; i < lang_count(); i++)
		if (lang_has_ending(&rows[i], file_name))
			return &rows[i];
	if (head_len > 2 && !memcmp(head, "#!", 2))
		return by_first_line(head, head_len);
	return NULL;
}

int lang_is_program(const char *head, size_t head_len)
{
	return (head_len >= 4 && !memcmp(head, "\177ELF", 4)) ||
	       (head_len > 2 && !memcmp(head, "#!", 2));
}

/* ---- is it here ---- */

const char *lang_program(const struct lang *l)
{
	return l->version[0];
}

int lang_present(const struct lang *l)
{
	return access(lang_program(l), X_OK) == 0;
}

void lang_install(const struct lang *l, struct buf *out)
{
	if (!l->apt[0]) {
		buf_puts(out, l->how);
		return;
	}
	buf_puts(out, "sudo apt-get install");
	for (const char *const *p = l->apt; *p; p++)
		buf_printf(out, " %s", *p);
}

/* ---- versions ---- */

const char *lang_pin(const char *wanted, char out_name[LANG_NAME + 1])
{
	const char *at = strchr(wanted, '@');

	snprintf(out_name, LANG_NAME + 1, "%.*s", at ? (int)(at - wanted) : LANG_NAME, wanted);
	return at ? at + 1 : "";
}

static size_t number_length(const char *s, const char *end, int *out_dots)
{
	const char *at = s;

	*out_dots = 0;
	while (at < end && (isdigit((unsigned char)*at) ||
			    (*at == '.' && at + 1 < end && isdigit((unsigned char)at[1])))) {
		*out_dots += *at == '.';
		at++;
	}
	return (size_t)(at - s);
}

void lang_version_in(const char *said, size_t len, char out[LANG_VERSION + 1])
{
	const char *end = said + len;
	int dots;

	out[0] = 0;
	for (const char *at = said; at < end; at++) {
		size_t n = isdigit((unsigned char)*at) ? number_length(at, end, &dots) : 0;

		if (n && (dots || !out[0]))
			snprintf(out, LANG_VERSION + 1, "%.*s",
				 (int)(n < LANG_VERSION ? n : LANG_VERSION), at);
		if (n && dots)
			return;
		at += n ? n - 1 : 0;
	}
}

int lang_pin_fits(const char *pin, const char *version)
{
	size_t n = strlen(pin);

	return !strncmp(pin, version, n) && (!version[n] || version[n] == '.');
}

/* ---- commands ---- */

const char *const *lang_compiler(const struct lang *l, const char *wanted)
{
	if (!wanted)
		return l->compile;
	for (const struct lang_list *c = l->compilers; c->key; c++)
		if (!strcasecmp(c->key, wanted))
			return c->values;
	return NULL;
}

/* Adds the value of the {placeholder} that starts here; returns its length in the word, 0: none. */
static size_t put_place(struct buf *out, const char *at, const struct lang_job *job)
{
	const char *slash = strrchr(job->source, '/'), *dot = ending_of(job->source);
	size_t all = strlen(job->source);
	const struct {
		const char *name, *value;
		size_t len;
	} places[] = {
		{ "{source}", job->source, all },
		{ "{stem}", job->source, dot ? (size_t)(dot - job->source) : all },
		{ "{dir}", slash ? job->source : ".",
		  slash > job->source ? (size_t)(slash - job->source) : 1 },
		{ "{program}", job->program, strlen(job->program) },
		{ "{unit}", job->unit, job->unit ? strlen(job->unit) : 0 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(places); i++) {
		if (strncmp(at, places[i].name, strlen(places[i].name)) != 0)
			continue;
		buf_add(out, places[i].value, places[i].len);
		return strlen(places[i].name);
	}
	if (strncmp(at, HEAP, strlen(HEAP)) != 0)
		return 0;
	/* The rest is for code, stacks and files, which use memory of the box, too. */
	buf_printf(out, "%llu", (unsigned long long)(job->memory * 6 / 10 >> 20));
	return strlen(HEAP);
}

static void put_word(struct buf *out, const char *word, const struct lang_job *job)
{
	while (*word) {
		size_t n = *word == '{' ? put_place(out, word, job) : 0;

		if (!n) {
			n = strcspn(word + 1, "{") + 1;
			buf_add(out, word, n);
		}
		word += n;
	}
	buf_putc(out, 0);
}

static unsigned put_all(struct buf *out, const char *const *words)
{
	unsigned n = 0;

	for (; words && words[n]; n++)
		buf_add(out, words[n], strlen(words[n]) + 1);
	return n;
}

static unsigned put_words(struct buf *out, const char *const *row, const struct lang_job *job)
{
	const char *const alone[] = { job->source, NULL };
	unsigned n = 0;

	for (; *row; row++) {
		if (!strcmp(*row, "{sources}"))
			n += put_all(out, job->sources ? job->sources : alone);
		else if (!strcmp(*row, "{packages}"))
			n += put_all(out, job->packages);
		else if (job->memory || !strstr(*row, HEAP))
			put_word(out, *row, job), n++;
	}
	return n;
}

const char **lang_words(const char *const *row, const struct lang_job *job, const char *const *args)
{
	auto_buf struct buf text = { 0 };
	unsigned n = put_words(&text, row, job);
	const char **argv;
	char *at;

	n += put_all(&text, args);
	argv = calloc(1, (n + 1) * sizeof(*argv) + text.len);
	if (!argv)
		abort();
	at = (char *)(argv + n + 1);
	memcpy(at, buf_str(&text), text.len);
	for (unsigned i = 0; i < n; i++, at += strlen(at) + 1)
		argv[i] = at;
	return argv;
}

/* ---- names that are in the text ---- */

/* Patterns are applied to truncated lines: their cost grows with the length of a text, in the worst
 * case with its square, and this text is untrusted. */
struct lang_line {
	char text[LINE_BYTES + 1];
	const char *next;
};

/* 0: no more lines. */
static int next_line(struct lang_line *l, const char *end)
{
	const char *stop;
	size_t n;

	if (l->next >= end)
		return 0;
	stop = memchr(l->next, '\n', (size_t)(end - l->next));
	stop = stop ? stop : end;
	n = (size_t)(stop - l->next) < LINE_BYTES ? (size_t)(stop - l->next) : LINE_BYTES;
	memcpy(l->text, l->next, n);
	l->text[n] = 0;
	l->next = stop + 1;
	return 1;
}

/* The last group of the pattern, if it matches; 0: no match. */
static int name_in(const regex_t *re, const char *line, char out[LANG_UNIT])
{
	regmatch_t m[10];
	size_t g = re->re_nsub;
	int n;

	if (g >= ARRAY_LEN(m) || regexec(re, line, ARRAY_LEN(m), m, 0) != 0 || m[g].rm_so < 0)
		return 0;
	n = m[g].rm_eo - m[g].rm_so;
	snprintf(out, LANG_UNIT, "%.*s", n < NAME_BYTES ? n : NAME_BYTES, line + m[g].rm_so);
	return 1;
}

/* The first name, or the last one before the line that matches `until`; 0: none. */
static int find_name(const char *pattern, const char *until, const char *text, size_t len,
		     char out[LANG_UNIT])
{
	const char *end = text + (len < TEXT_LOOKED_AT ? len : TEXT_LOOKED_AT);
	struct lang_line line = { .next = text };
	regex_t re, stop;
	int found = 0, done = 0, left = LINES_MAX;

	if (!pattern || regcomp(&re, pattern, REG_EXTENDED) != 0)
		return 0;
	if (until && regcomp(&stop, until, REG_EXTENDED | REG_NOSUB) != 0)
		until = NULL;
	while (!done && left && next_line(&line, end)) {
		if (!line.text[0])
			continue;
		left--;
		found |= name_in(&re, line.text, out);
		done = until ? regexec(&stop, line.text, 0, NULL, 0) == 0 : found;
	}
	if (until)
		regfree(&stop);
	regfree(&re);
	return found;
}

void lang_unit_of(const struct lang *l, const char *file_name, const char *text, size_t len,
		  char out[LANG_UNIT])
{
	const struct lang_unit *u = &l->unit;
	const char *slash = strrchr(file_name, '/'), *base = slash ? slash + 1 : file_name,
		   *dot = ending_of(base);
	char outer[LANG_UNIT], name[LANG_UNIT];
	int inside = find_name(u->outer, NULL, text, len, outer);

	if (!find_name(u->name, u->begin, text, len, name))
		snprintf(name, sizeof(name), "%.*s", dot ? (int)(dot - base) : NAME_BYTES, base);
	snprintf(out, LANG_UNIT, "%.*s%s%.*s", NAME_BYTES, inside ? outer : "", inside ? "." : "",
		 NAME_BYTES, name);
}

void lang_file_of(const struct lang *l, const char *text, size_t len, char out[LANG_UNIT])
{
	char name[LANG_UNIT];

	if (find_name(l->unit.forced, NULL, text, len, name))
		snprintf(out, LANG_UNIT, "%.*s%s", NAME_BYTES, name, l->endings[0]);
	else
		snprintf(out, LANG_UNIT, "%s", l->file);
}

/* ---- warm interpreters ---- */

static int is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Does this line import one of them? "import a.b, c as d" and "from a import b" do. */
static int lang_imports(const char *line, const char *end, const char *const *names)
{
	int from;

	while (line < end && (*line == ' ' || *line == '\t'))
		line++;
	from = end - line > 5 && !memcmp(line, "from ", 5);
	if (!from && (end - line <= 7 || memcmp(line, "import ", 7) != 0))
		return 0;
	line += from ? 5 : 7;
	while (line < end) {
		const char *word;

		while (line < end && !is_word(*line))
			line++;
		for (word = line; line < end && is_word(*line);)
			line++;
		if (line > word && in_list(names, word, (size_t)(line - word)))
			return 1;
		if (from)
			return 0;
		while (line < end && *line != ',' && *line != ';')
			line++;
	}
	return 0;
}

const char *lang_warm(const struct lang *l, const char *source, size_t len)
{
	const char *end = source + (len < TEXT_LOOKED_AT ? len : TEXT_LOOKED_AT);

	for (const struct lang_list *s = l->warm_when; s->key; s++) {
		const char *at = source;

		while (at < end) {
			const char *stop = memchr(at, '\n', (size_t)(end - at));

			stop = stop ? stop : end;
			if (lang_imports(at, stop, s->values))
				return s->key;
			at = stop + 1;
		}
	}
	return l->warm;
}

int lang_warm_known(const char *name)
{
	for (unsigned i = 0; i < lang_count(); i++) {
		const struct lang *l = lang_at(i);

		if (l->warm && !strcmp(l->warm, name))
			return 1;
		for (const struct lang_list *w = l->warm_when; w && w->key; w++)
			if (!strcmp(w->key, name))
				return 1;
	}
	return 0;
}
