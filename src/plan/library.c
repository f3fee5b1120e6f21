/* library.c - see library.h. A new task is a file in share/tasks. */
#include "plan/library.h"
#include "document/embedded.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "lang/lang.h"

#include <assert.h>
#include <regex.h>
#include <string.h>

/* ---- the vocabulary: every stem that a task speaks of has a number ---- */

enum { VOCABULARY = 1 << 14 }; /* slots; half of them may be used */

static struct {
	char stem[WORD_STEM];
	unsigned id;
} places[VOCABULARY];
static struct {
	unsigned spread;
	const void *last; /* the last counted task */
} known[VOCABULARY / 2];
static unsigned nknown = 1; /* 0: unknown */

static unsigned place_of(const char *stem)
{
	unsigned at = id_hash(stem) % VOCABULARY;

	while (places[at].id && strcmp(places[at].stem, stem) != 0)
		at = (at + 1) % VOCABULARY;
	return at;
}

/* Numbers have no stem; in a phrase ("3n+1") they match exactly. */
static const char *stem_of(const struct word *w, char room[WORD_STEM])
{
	if (*w->stem || w->kind == WORD_MARK || w->kind == WORD_TEXT)
		return w->stem;
	words_stem(w->p, w->n, room);
	return room;
}

unsigned library_word(const struct word *w)
{
	char room[WORD_STEM];
	const char *stem = stem_of(w, room);

	return *stem ? places[place_of(stem)].id : 0;
}

unsigned library_spread(unsigned word)
{
	return known[word].spread;
}

static unsigned library_learn(const char *stem, const void *task)
{
	unsigned at = place_of(stem);

	if (!places[at].id) {
		if (nknown == ARRAY_LEN(known))
			abort(); /* the library is embedded: a test checks it */
		strcpy(places[at].stem, stem);
		places[at].id = nknown++;
	}
	if (task && known[places[at].id].last != task) {
		known[places[at].id].last = task;
		known[places[at].id].spread++;
	}
	return places[at].id;
}

/* ---- reading a file ---- */

struct library_reader {
	const char *id;
	const struct library_task *task; /* its identity only */
	struct err *e;
};

static void *library_space(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		abort();
	return p;
}

static int library_bad(const struct library_reader *r, const struct toml_node *n, const char *what)
{
	return err_set(r->e, ERR_INVALID, "%.60s.toml:%u: %.60s: %s", r->id, n->line,
		       n->key ? n->key : "a value", what);
}

static int is_a(const struct library_reader *r, const struct toml_node *n, enum toml_type type)
{
	if (n->type == type)
		return 0;
	return err_set(r->e, ERR_INVALID, "%.60s.toml:%u: %.60s: must be %s, not %s", r->id,
		       n->line, n->key ? n->key : "a value", toml_type_name(type),
		       toml_type_name(n->type));
}

static int read_text(const struct library_reader *r, const struct toml_node *n, const char **out)
{
	if (is_a(r, n, TOML_STRING) < 0)
		return -1;
	if (strlen(n->text) != n->len)
		return library_bad(r, n, "has a NUL in it");
	*out = n->text;
	return 0;
}

static json_t *as_json(const struct toml_node *n)
{
	json_t *out;

	switch (n->type) {
	case TOML_TABLE:
		out = json_object();
		for (const struct toml_node *c = n->in.first; c; c = c->next)
			json_object_set_new(out, c->key, as_json(c));
		return out;
	case TOML_ARRAY:
		out = json_array();
		for (const struct toml_node *c = n->in.first; c; c = c->next)
			json_array_append_new(out, as_json(c));
		return out;
	case TOML_INTEGER:
		return json_integer(n->integer);
	case TOML_FLOAT:
		return json_real(n->real);
	case TOML_BOOLEAN:
		return json_boolean(n->truth);
	default:
		return json_stringn(n->text, n->len);
	}
}

static int read_phrase(const struct library_reader *r, const struct toml_node *n,
		       struct phrase *out)
{
	auto_words struct words w = { 0 };

	if (read_text(r, n, &out->text) < 0)
		return -1;
	words_read(&w, n->text, n->len);
	for (unsigned i = 0; i < w.n; i++) {
		char number[WORD_STEM];
		const char *stem = stem_of(&w.all[i], number);

		if (!*stem)
			continue;
		if (out->n == PHRASE_WORDS)
			return library_bad(r, n, "has too many words");
		out->ids[out->n++] = library_learn(stem, r->task);
	}
	if (!out->n)
		return library_bad(r, n, "has no word in it");
	return 0;
}

static int read_phrases(const struct library_reader *r, const struct toml_node *n,
			struct phrases *out)
{
	if (is_a(r, n, TOML_ARRAY) < 0)
		return -1;
	out->all = library_space(n->in.count, sizeof(*out->all));
	for (const struct toml_node *c = n->in.first; c; c = c->next)
		if (read_phrase(r, c, &out->all[out->n++]) < 0)
			return -1;
	return 0;
}

/* The words of a sentence, each once. */
static void read_said(const struct library_reader *r, const char *text, struct phrases *out)
{
	auto_words struct words w = { 0 };

	words_read(&w, text, strlen(text));
	out->all = library_space(w.n, sizeof(*out->all));
	for (unsigned i = 0; i < w.n; i++)
		if (*w.all[i].stem)
			out->all[out->n++] =
				(struct phrase){ .n = 1,
						 .ids = { library_learn(w.all[i].stem, r->task) },
						 .text = text };
}

static const char *const type_names[] = {
	[SLOT_NUMBER] = "number",   [SLOT_INTEGER] = "integer", [SLOT_TEXT] = "text",
	[SLOT_WORD] = "word",       [SLOT_NUMBERS] = "numbers", [SLOT_INTEGERS] = "integers",
	[SLOT_TEXTS] = "texts",     [SLOT_FILE] = "file",       [SLOT_URL] = "url",
	[SLOT_COLUMNS] = "columns", [SLOT_DATE] = "date",       [SLOT_SIZE] = "size",
};
static_assert(ARRAY_LEN(type_names) == SLOT_NTYPES, "a type without a name");

const char *slot_type_name(enum slot_type type)
{
	return type_names[type];
}

static int all_are(const json_t *list, int (*is)(const json_t *))
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v) if (!is(v)) return 0;
	return json_is_array(list);
}

static int is_number(const json_t *v)
{
	return json_is_number(v);
}

static int is_integer(const json_t *v)
{
	return json_is_integer(v);
}

static int is_string(const json_t *v)
{
	return json_is_string(v);
}

static int library_fits(enum slot_type type, const json_t *v)
{
	switch (type) {
	case SLOT_NUMBER:
		return json_is_number(v);
	case SLOT_INTEGER:
	case SLOT_SIZE:
		return json_is_integer(v);
	case SLOT_NUMBERS:
		return all_are(v, is_number);
	case SLOT_INTEGERS:
		return all_are(v, is_integer);
	case SLOT_TEXTS:
	case SLOT_COLUMNS:
		return all_are(v, is_string);
	default:
		return json_is_string(v);
	}
}

static int read_slot(const struct library_reader *r, const struct toml_node *n,
		     struct library_slot *out)
{
	const struct toml_node *c;
	const char *type = NULL;
	unsigned i;

	if (is_a(r, n, TOML_TABLE) < 0)
		return -1;
	out->name = n->key;
	for (c = n->in.first; c; c = c->next) {
		int rc = 0;

		if (!strcmp(c->key, "type"))
			rc = read_text(r, c, &type);
		else if (!strcmp(c->key, "question"))
			rc = read_text(r, c, &out->question);
		else if (!strcmp(c->key, "hint"))
			rc = read_phrases(r, c, &out->hint);
		else if (!strcmp(c->key, "default"))
			out->otherwise = as_json(c);
		else
			rc = library_bad(r, c, "is not known here");
		if (rc < 0)
			return -1;
	}
	for (i = 0; type && i < SLOT_NTYPES; i++)
		if (!strcmp(type, type_names[i]))
			break;
	if (!type || i == SLOT_NTYPES)
		return library_bad(r, n, "has no type that is known");
	out->type = i;
	if (out->otherwise && !library_fits(out->type, out->otherwise))
		return library_bad(r, n, "its default is of another type");
	if (!out->otherwise && !out->question)
		return library_bad(r, n, "has neither a default nor a question");
	return 0;
}

static int read_program(const struct library_reader *r, const struct toml_node *n,
			struct library_program *out)
{
	if (is_a(r, n, TOML_TABLE) < 0)
		return -1;
	out->lang = lang_named(n->key);
	if (!out->lang)
		return library_bad(r, n, "is not a language");
	out->file = out->lang->file;
	for (const struct toml_node *c = n->in.first; c; c = c->next) {
		int rc = 0;

		if (!strcmp(c->key, "file"))
			rc = read_text(r, c, &out->file);
		else if (!strcmp(c->key, "text"))
			rc = read_text(r, c, &out->text);
		else if (!strcmp(c->key, "function"))
			rc = read_text(r, c, &out->function);
		else if (!strcmp(c->key, "takes"))
			rc = read_text(r, c, &out->takes);
		else if (!strcmp(c->key, "packages") && !is_a(r, c, TOML_ARRAY))
			out->packages = as_json(c);
		else
			rc = library_bad(r, c, "is not known here");
		if (rc < 0)
			return -1;
	}
	if (!out->text && !out->function)
		return library_bad(r, n, "has no text");
	if (out->packages && !all_are(out->packages, is_string))
		return library_bad(r, n, "its packages are not texts");
	return 0;
}

static int read_example(const struct library_reader *r, const struct toml_node *n,
			struct library_example *out)
{
	const char *language = NULL;

	if (is_a(r, n, TOML_TABLE) < 0)
		return -1;
	for (const struct toml_node *c = n->in.first; c; c = c->next) {
		int rc = 0;

		if (!strcmp(c->key, "task"))
			rc = read_text(r, c, &out->task);
		else if (!strcmp(c->key, "language"))
			rc = read_text(r, c, &language);
		else if (!strcmp(c->key, "stdout"))
			rc = read_text(r, c, &out->stdout_text);
		else if (!strcmp(c->key, "stdin"))
			rc = read_text(r, c, &out->stdin_text);
		else if (!strcmp(c->key, "slots") && !is_a(r, c, TOML_TABLE))
			out->slots = as_json(c);
		else if (!strcmp(c->key, "files") && !is_a(r, c, TOML_TABLE))
			out->files = as_json(c);
		else if (!strcmp(c->key, "returns"))
			out->returns = as_json(c);
		else
			rc = library_bad(r, c, "is not known here");
		if (rc < 0)
			return -1;
	}
	out->lang = language ? lang_named(language) : NULL;
	if (!out->task || !out->lang)
		return library_bad(r, n, "an example has a task and a language");
	return 0;
}

static int read_needs(const struct library_reader *r, const struct toml_node *n,
		      struct library_task *t)
{
	if (is_a(r, n, TOML_ARRAY) < 0)
		return -1;
	t->needs = library_space(n->in.count, sizeof(*t->needs));
	for (const struct toml_node *c = n->in.first; c; c = c->next)
		if (read_phrases(r, c, &t->needs[t->nneeds++]) < 0)
			return -1;
	return 0;
}

static int takes_numbers(enum slot_type type)
{
	return type == SLOT_NUMBER || type == SLOT_INTEGER || type == SLOT_NUMBERS ||
	       type == SLOT_INTEGERS;
}

static int read_slots(const struct library_reader *r, const struct toml_node *n,
		      struct library_task *t)
{
	if (is_a(r, n, TOML_TABLE) < 0)
		return -1;
	t->slots = library_space(n->in.count, sizeof(*t->slots));
	for (const struct toml_node *c = n->in.first; c; c = c->next)
		if (read_slot(r, c, &t->slots[t->nslots++]) < 0)
			return -1;
	for (unsigned i = 0; i < t->nslots; i++) {
		struct library_slot *s = &t->slots[i];

		s->only = s->any = 1;
		for (unsigned k = 0; k < t->nslots; k++) {
			s->only &= k == i || t->slots[k].type != s->type;
			s->any &= k == i || !takes_numbers(t->slots[k].type);
		}
	}
	return 0;
}

static int read_programs(const struct library_reader *r, const struct toml_node *n,
			 struct library_task *t)
{
	if (is_a(r, n, TOML_TABLE) < 0)
		return -1;
	t->programs = library_space(n->in.count, sizeof(*t->programs));
	for (const struct toml_node *c = n->in.first; c; c = c->next)
		if (read_program(r, c, &t->programs[t->nprograms++]) < 0)
			return -1;
	return 0;
}

static int read_examples(const struct library_reader *r, const struct toml_node *n,
			 struct library_task *t)
{
	if (is_a(r, n, TOML_ARRAY) < 0)
		return -1;
	t->examples = library_space(n->in.count, sizeof(*t->examples));
	for (const struct toml_node *c = n->in.first; c; c = c->next)
		if (read_example(r, c, &t->examples[t->nexamples++]) < 0)
			return -1;
	return 0;
}

/* A pattern is written in one line: \n and \t are replaced, which regcomp() does not do. */
static int read_output(const struct library_reader *r, const struct toml_node *n,
		       struct library_task *t)
{
	const char *p;
	char *to;
	regex_t re;

	if (read_text(r, n, &p) < 0)
		return -1;
	t->output = to = library_space(n->len + 1, 1);
	for (; *p; p++) {
		if (*p == '\\' && (p[1] == 'n' || p[1] == 't'))
			*to++ = *++p == 'n' ? '\n' : '\t';
		else if (*p == '\\' && p[1])
			*to++ = *p++, *to++ = *p;
		else
			*to++ = *p;
	}
	if (regcomp(&re, t->output, REG_EXTENDED | REG_NOSUB) != 0)
		return library_bad(r, n, "is not a regular expression");
	regfree(&re);
	return 0;
}

static int read_version(const struct library_reader *r, const struct toml_node *n,
			struct library_task *t)
{
	if (is_a(r, n, TOML_INTEGER) < 0)
		return -1;
	if (n->integer < 1 || n->integer > 1000000)
		return library_bad(r, n, "is out of range");
	t->version = (unsigned)n->integer;
	return 0;
}

static int read_member(const struct library_reader *r, const struct toml_node *c,
		       struct library_task *t)
{
	if (!strcmp(c->key, "version"))
		return read_version(r, c, t);
	if (!strcmp(c->key, "says"))
		return read_text(r, c, &t->says);
	if (!strcmp(c->key, "output"))
		return read_output(r, c, t);
	if (!strcmp(c->key, "needs"))
		return read_needs(r, c, t);
	if (!strcmp(c->key, "words"))
		return read_phrases(r, c, &t->words);
	if (!strcmp(c->key, "never"))
		return read_phrases(r, c, &t->never);
	if (!strcmp(c->key, "slots"))
		return read_slots(r, c, t);
	if (!strcmp(c->key, "code"))
		return read_programs(r, c, t);
	if (!strcmp(c->key, "examples"))
		return read_examples(r, c, t);
	if (!strcmp(c->key, "files") && !is_a(r, c, TOML_TABLE)) {
		t->files = as_json(c);
		return 0;
	}
	if (!strcmp(c->key, "network") && !is_a(r, c, TOML_BOOLEAN)) {
		t->network = c->truth;
		return 0;
	}
	if (!strcmp(c->key, "reads") && !is_a(r, c, TOML_BOOLEAN)) {
		t->reads = c->truth;
		return 0;
	}
	return library_bad(r, c, "is not known here");
}

static int read_task(struct library_task *out, struct library_reader *r)
{
	for (const struct toml_node *c = out->doc.root->in.first; c; c = c->next)
		if (read_member(r, c, out) < 0)
			return -1;
	if (!out->version || !out->says || !out->nneeds || !out->nprograms)
		return err_set(r->e, ERR_INVALID,
			       "%.60s.toml: version, says, needs and code are required", r->id);
	read_said(r, out->says, &out->said);
	return 0;
}

int library_read(struct library_task *out, const char *id, const char *text, size_t len,
		 struct err *e)
{
	struct library_reader r = { .id = id, .task = out, .e = e };

	*out = (struct library_task){ .id = id };
	if (toml_parse(&out->doc, id, text, len, e) < 0)
		return -1;
	if (read_task(out, &r) == 0)
		return 0;
	library_forget(out);
	return -1;
}

void library_forget(struct library_task *t)
{
	for (unsigned i = 0; i < t->nneeds; i++)
		free(t->needs[i].all);
	for (unsigned i = 0; i < t->nslots; i++) {
		free(t->slots[i].hint.all);
		json_decref(t->slots[i].otherwise);
	}
	for (unsigned i = 0; i < t->nprograms; i++)
		json_decref(t->programs[i].packages);
	for (unsigned i = 0; i < t->nexamples; i++) {
		json_decref(t->examples[i].slots);
		json_decref(t->examples[i].returns);
		json_decref(t->examples[i].files);
	}
	free(t->needs);
	free(t->words.all);
	free(t->never.all);
	free(t->said.all);
	free(t->slots);
	free(t->programs);
	free(t->examples);
	free(t->output);
	json_decref(t->files);
	toml_fini(&t->doc);
	*t = (struct library_task){ 0 };
}

/* ---- all of them ---- */

static struct library_task *tasks;
static unsigned ntasks;

/* The file name without extension; never freed. */
static const char *id_of(const struct image *i)
{
	char *id = strndup(i->name, strcspn(i->name, "."));

	if (!id)
		abort();
	return id;
}

/* A file that does not parse is a defect of this executable, which its unit test finds. */
static void read_all(void)
{
	size_t n = 0;
	struct err e;

	while (task_images[n].text)
		n++;
	tasks = library_space(n, sizeof(*tasks));
	for (const struct image *i = task_images; i->text; i++)
		if (library_read(&tasks[ntasks], id_of(i), i->text, (size_t)(i->end - i->text),
				 &e) == 0)
			ntasks++;
		else
			image_bad(i->name, NULL, e.msg);
}

unsigned library_count(void)
{
	if (!tasks)
		read_all();
	return ntasks;
}

const struct library_task *library_at(unsigned i)
{
	return i < library_count() ? &tasks[i] : NULL;
}

const struct library_task *library_named(const char *id)
{
	size_t n = strcspn(id, "@");

	for (unsigned i = 0; i < library_count(); i++)
		if (strlen(tasks[i].id) == n && !memcmp(tasks[i].id, id, n))
			return &tasks[i];
	return NULL;
}

const struct library_program *library_program(const struct library_task *t, const struct lang *l)
{
	for (unsigned i = 0; i < t->nprograms; i++)
		if (t->programs[i].lang == l)
			return &t->programs[i];
	return NULL;
}
