/* lang_file.c - see lang_file.h. The keys of a file are a table; one loop reads it. */
#include "lang/lang_file.h"
#include "base/cleanup.h"
#include "base/toml.h"

#include <regex.h>
#include <string.h>

/* ---- memory that lives as long as the row ---- */

struct runtime_store {
	struct toml doc;
	struct chunk {
		struct chunk *next;
		max_align_t bytes[];
	} * chunks;
};

static void *lang_file_room(struct runtime_store *s, size_t n, size_t size)
{
	struct chunk *c = calloc(1, sizeof(*c) + n * size);

	if (!c)
		abort();
	c->next = s->chunks;
	s->chunks = c;
	return c->bytes;
}

/* ---- what a file may say ---- */

enum kind {
	TEXT,     /* const char * */
	TEXTS,    /* const char *const * */
	WORDS,    /* the same, with {placeholders} */
	NUMBER,   /* uint32_t */
	SIZE,     /* uint64_t */
	PAIRS,    /* a table of texts */
	LISTS,    /* a table of TEXTS */
	COMMANDS, /* a table of WORDS */
	TABLE,    /* a struct within */
	TABLES,   /* an array of structs, the last one zeroed */
};

struct lang_file_shape;
struct lang_file_key {
	const char *name;
	enum kind kind;
	size_t at;
	const struct lang_file_shape *of;
};
struct lang_file_shape {
	const struct lang_file_key *keys;
	unsigned nkeys;
	size_t size;
};

#define SHAPE(rows, type)                                                                          \
	{                                                                                          \
		(rows), ARRAY_LEN(rows), sizeof(type)                                              \
	}
#define AT(type, field) offsetof(struct type, field)

static const struct lang_file_key extra_keys[] = {
	{ "name", TEXT, AT(lang_extra, name), NULL },
	{ "file", TEXT, AT(lang_extra, file), NULL },
	{ "apt", TEXT, AT(lang_extra, apt), NULL },
};
static const struct lang_file_key pattern_keys[] = {
	{ "match", TEXT, AT(lang_pattern, match), NULL },
	{ "lines", NUMBER, AT(lang_pattern, lines), NULL },
	{ "file", NUMBER, AT(lang_pattern, file), NULL },
	{ "line", NUMBER, AT(lang_pattern, line), NULL },
	{ "column", NUMBER, AT(lang_pattern, column), NULL },
	{ "caret", NUMBER, AT(lang_pattern, caret), NULL },
	{ "severity", NUMBER, AT(lang_pattern, severity), NULL },
	{ "message", NUMBER, AT(lang_pattern, message), NULL },
	{ "type", NUMBER, AT(lang_pattern, type), NULL },
	{ "at", TEXT, AT(lang_pattern, at), NULL },
	{ "at_file", NUMBER, AT(lang_pattern, at_file), NULL },
	{ "at_line", NUMBER, AT(lang_pattern, at_line), NULL },
	{ "at_last", NUMBER, AT(lang_pattern, at_last), NULL },
};
static const struct lang_file_key unit_keys[] = {
	{ "outer", TEXT, AT(lang_unit, outer), NULL },
	{ "name", TEXT, AT(lang_unit, name), NULL },
	{ "begin", TEXT, AT(lang_unit, begin), NULL },
	{ "forced", TEXT, AT(lang_unit, forced), NULL },
};
static const struct lang_file_key limit_keys[] = {
	{ "memory", SIZE, AT(lang_limits, memory), NULL },
	{ "disk", SIZE, AT(lang_limits, disk), NULL },
	{ "processes", NUMBER, AT(lang_limits, processes), NULL },
};
static const struct lang_file_key time_keys[] = {
	{ "install", NUMBER, AT(lang_times, install), NULL },
	{ "compile", NUMBER, AT(lang_times, compile), NULL },
	{ "run", NUMBER, AT(lang_times, run), NULL },
};
static const struct lang_file_key package_keys[] = {
	{ "manager", TEXT, AT(lang_packages, manager), NULL },
	{ "install", WORDS, AT(lang_packages, install), NULL },
	{ "manifests", TEXTS, AT(lang_packages, manifests), NULL },
	{ "names", PAIRS, AT(lang_packages, names), NULL },
};
static const struct lang_file_shape extra = SHAPE(extra_keys, struct lang_extra),
				    pattern = SHAPE(pattern_keys, struct lang_pattern),
				    unit = SHAPE(unit_keys, struct lang_unit),
				    limits = SHAPE(limit_keys, struct lang_limits),
				    times = SHAPE(time_keys, struct lang_times),
				    packages = SHAPE(package_keys, struct lang_packages);

static const struct lang_file_key row_keys[] = {
	{ "name", TEXT, AT(lang, name), NULL },
	{ "title", TEXT, AT(lang, title), NULL },
	{ "aliases", TEXTS, AT(lang, aliases), NULL },
	{ "endings", TEXTS, AT(lang, endings), NULL },
	{ "interpreters", TEXTS, AT(lang, interpreters), NULL },
	{ "apt", TEXTS, AT(lang, apt), NULL },
	{ "how", TEXT, AT(lang, how), NULL },
	{ "minimum", TEXT, AT(lang, minimum), NULL },
	{ "file", TEXT, AT(lang, file), NULL },
	{ "version", TEXTS, AT(lang, version), NULL },
	{ "compile", WORDS, AT(lang, compile), NULL },
	{ "run", WORDS, AT(lang, run), NULL },
	{ "test", WORDS, AT(lang, test), NULL },
	{ "compilers", COMMANDS, AT(lang, compilers), NULL },
	{ "env", PAIRS, AT(lang, env), NULL },
	{ "support", PAIRS, AT(lang, support), NULL },
	{ "extras", TABLES, AT(lang, extras), &extra },
	{ "unit", TABLE, AT(lang, unit), &unit },
	{ "limits", TABLE, AT(lang, limits), &limits },
	{ "timeouts_ms", TABLE, AT(lang, times), &times },
	{ "packages", TABLE, AT(lang, packages), &packages },
	{ "errors", TABLES, AT(lang, errors), &pattern },
	{ "faults", TABLES, AT(lang, faults), &pattern },
	{ "warm", TEXT, AT(lang, warm), NULL },
	{ "warm_when", LISTS, AT(lang, warm_when), NULL },
	{ "deterministic", TEXT, AT(lang, deterministic), NULL },
	{ "module", TEXT, AT(lang, module), NULL },
	{ "hello", TEXT, AT(lang, hello), NULL },
	{ "selftest", TEXT, AT(lang, selftest), NULL },
};
static const struct lang_file_shape row = SHAPE(row_keys, struct lang);

/* ---- reading it ---- */

struct lang_file_reader {
	struct runtime_store *store;
	const char *name;
	struct err *e;
};

static int lang_file_bad(struct lang_file_reader *r, const struct toml_node *n, const char *what)
{
	return err_set(r->e, ERR_INVALID, "%.40s:%u: %.60s: %s", r->name, n->line,
		       n->key ? n->key : "a value", what);
}

static int is_a(struct lang_file_reader *r, const struct toml_node *n, enum toml_type type)
{
	if (n->type == type)
		return 0;
	return err_set(r->e, ERR_INVALID, "%.40s:%u: %.60s: must be %s, not %s", r->name, n->line,
		       n->key ? n->key : "a value", toml_type_name(type), toml_type_name(n->type));
}

static int read_text(struct lang_file_reader *r, const struct toml_node *n, const char **out)
{
	if (is_a(r, n, TOML_STRING) < 0)
		return -1;
	if (strlen(n->text) != n->len)
		return lang_file_bad(r, n, "has a NUL in it");
	*out = n->text;
	return 0;
}

/* "{unti}" is a typing error; "${x}" and "{}" belong to the program that gets the word. */
static int check_places(struct lang_file_reader *r, const struct toml_node *n)
{
	static const char *const places[] = { "source", "stem", "dir",     "program",
					      "unit",   "heap", "sources", "packages" };
	const char *at = n->text;

	while ((at = strchr(at, '{')) != NULL) {
		size_t len = strspn(++at, "abcdefghijklmnopqrstuvwxyz");
		int known = 0;

		if (!len || at[len] != '}')
			continue;
		for (unsigned i = 0; i < ARRAY_LEN(places); i++)
			known |= strlen(places[i]) == len && !memcmp(places[i], at, len);
		if (!known)
			return lang_file_bad(r, n, "has a {place} that there is not");
	}
	return 0;
}

static int read_texts(struct lang_file_reader *r, const struct toml_node *n, int places,
		      const char *const **out)
{
	const char **all;
	unsigned i = 0;

	if (is_a(r, n, TOML_ARRAY) < 0)
		return -1;
	all = lang_file_room(r->store, n->in.count + 1, sizeof(*all));
	for (const struct toml_node *c = n->in.first; c; c = c->next)
		if (read_text(r, c, &all[i++]) < 0 || (places && check_places(r, c) < 0))
			return -1;
	*out = all;
	return 0;
}

static int read_number(struct lang_file_reader *r, const struct toml_node *n, uint64_t max,
		       uint64_t *out)
{
	if (is_a(r, n, TOML_INTEGER) < 0)
		return -1;
	if (n->integer < 1 || (uint64_t)n->integer > max)
		return lang_file_bad(r, n, "is out of range");
	*out = (uint64_t)n->integer;
	return 0;
}

static int read_pairs(struct lang_file_reader *r, const struct toml_node *n,
		      const struct lang_pair **out)
{
	struct lang_pair *all;
	unsigned i = 0;

	if (is_a(r, n, TOML_TABLE) < 0)
		return -1;
	all = lang_file_room(r->store, n->in.count + 1, sizeof(*all));
	for (const struct toml_node *c = n->in.first; c; c = c->next, i++) {
		all[i].key = c->key;
		if (read_text(r, c, &all[i].value) < 0)
			return -1;
	}
	*out = all;
	return 0;
}

static int read_lists(struct lang_file_reader *r, const struct toml_node *n, int places,
		      const struct lang_list **out)
{
	struct lang_list *all;
	unsigned i = 0;

	if (is_a(r, n, TOML_TABLE) < 0)
		return -1;
	all = lang_file_room(r->store, n->in.count + 1, sizeof(*all));
	for (const struct toml_node *c = n->in.first; c; c = c->next, i++) {
		all[i].key = c->key;
		if (read_texts(r, c, places, &all[i].values) < 0)
			return -1;
	}
	*out = all;
	return 0;
}

static int read_table(struct lang_file_reader *r, const struct toml_node *n,
		      const struct lang_file_shape *of, void *out);

static int read_tables(struct lang_file_reader *r, const struct toml_node *n,
		       const struct lang_file_shape *of, void **out)
{
	char *all;
	unsigned i = 0;

	if (is_a(r, n, TOML_ARRAY) < 0)
		return -1;
	all = lang_file_room(r->store, n->in.count + 1, of->size);
	for (const struct toml_node *c = n->in.first; c; c = c->next)
		if (read_table(r, c, of, all + of->size * i++) < 0)
			return -1;
	*out = all;
	return 0;
}

static int read_value(struct lang_file_reader *r, const struct toml_node *n,
		      const struct lang_file_key *k, char *to)
{
	uint64_t value = 0;

	switch (k->kind) {
	case TEXT:
		return read_text(r, n, (const char **)to);
	case TEXTS:
	case WORDS:
		return read_texts(r, n, k->kind == WORDS, (const char *const **)to);
	case NUMBER:
		if (read_number(r, n, UINT32_MAX, &value) < 0)
			return -1;
		*(uint32_t *)to = (uint32_t)value;
		return 0;
	case SIZE:
		return read_number(r, n, INT64_MAX, (uint64_t *)to);
	case PAIRS:
		return read_pairs(r, n, (const struct lang_pair **)to);
	case LISTS:
	case COMMANDS:
		return read_lists(r, n, k->kind == COMMANDS, (const struct lang_list **)to);
	case TABLE:
		return read_table(r, n, k->of, to);
	case TABLES:
		return read_tables(r, n, k->of, (void **)to);
	}
	abort();
}

static int read_table(struct lang_file_reader *r, const struct toml_node *n,
		      const struct lang_file_shape *of, void *out)
{
	if (is_a(r, n, TOML_TABLE) < 0)
		return -1;
	for (const struct toml_node *c = n->in.first; c; c = c->next) {
		const struct lang_file_key *k = of->keys, *end = of->keys + of->nkeys;

		while (k < end && strcmp(k->name, c->key) != 0)
			k++;
		if (k == end)
			return lang_file_bad(r, c, "is not known");
		if (read_value(r, c, k, (char *)out + k->at) < 0)
			return -1;
	}
	return 0;
}

/* ---- a row that can be used without asking ---- */

static void lang_file_fill(struct lang *l)
{
	static const char *const none[] = { NULL };
	static const struct lang_times usual = { 30000, 60000, 30000 };
	const char *const **texts[] = {
		&l->aliases,          &l->endings,           &l->interpreters, &l->apt,
		&l->version,          &l->compile,           &l->run,          &l->test,
		&l->packages.install, &l->packages.manifests
	};
	const struct lang_pair **pairs[] = { &l->env, &l->support, &l->packages.names };
	static const struct lang_pair no_pair[1];
	static const struct lang_list no_list[1];
	static const struct lang_extra no_extra[1];
	static const struct lang_pattern no_pattern[1];

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		*texts[i] = *texts[i] ? *texts[i] : none;
	for (unsigned i = 0; i < ARRAY_LEN(pairs); i++)
		*pairs[i] = *pairs[i] ? *pairs[i] : no_pair;
	l->compilers = l->compilers ? l->compilers : no_list;
	l->warm_when = l->warm_when ? l->warm_when : no_list;
	l->extras = l->extras ? l->extras : no_extra;
	l->errors = l->errors ? l->errors : no_pattern;
	l->faults = l->faults ? l->faults : no_pattern;
	l->times.install = l->times.install ? l->times.install : usual.install;
	l->times.compile = l->times.compile ? l->times.compile : usual.compile;
	l->times.run = l->times.run ? l->times.run : usual.run;
}

static int lang_file_lacks(const char *name, const char *what, struct err *e)
{
	return err_set(e, ERR_INVALID, "%.40s: %s is missing", name, what);
}

static int lang_file_check(const struct lang *l, const char *name, struct err *e)
{
	if (!l->name || !l->title)
		return lang_file_lacks(name, "name or title", e);
	if (strlen(l->name) > LANG_NAME)
		return err_set(e, ERR_INVALID, "%.40s: the name is too long", name);
	if (!l->file || !l->endings[0])
		return lang_file_lacks(name, "file or endings", e);
	if (!l->run[0] || !l->version[0])
		return lang_file_lacks(name, "run or version", e);
	if (!l->apt[0] && !l->how)
		return lang_file_lacks(name, "apt or how", e);
	if (!l->hello || !l->selftest)
		return lang_file_lacks(name, "hello or selftest", e);
	for (const struct lang_pattern *p = l->errors; p->match; p++)
		if (!p->message)
			return lang_file_lacks(name, "the message of an error's pattern", e);
	for (const struct lang_pattern *p = l->faults; p->match; p++)
		if (!p->message && !p->type)
			return lang_file_lacks(
				name, "the text that belongs to the pattern of a fault", e);
	return 0;
}

int runtime_read(struct lang *out, const char *name, const char *text, size_t len, struct err *e)
{
	struct runtime_store *s = calloc(1, sizeof(*s));
	struct lang_file_reader r = { .store = s, .name = name, .e = e };
	struct lang l = { .store = s };

	if (!s)
		abort();
	if (toml_parse(&s->doc, name, text, len, e) < 0) {
		free(s);
		return -1;
	}
	if (read_table(&r, s->doc.root, &row, &l) < 0) {
		runtime_fini(&l);
		return -1;
	}
	lang_file_fill(&l);
	if (lang_file_check(&l, name, e) < 0) {
		runtime_fini(&l);
		return -1;
	}
	*out = l;
	return 0;
}

static int lang_file_compiles(const struct lang *l, const char *text, struct err *e)
{
	char why[100];
	regex_t re;
	int rc = text ? regcomp(&re, text, REG_EXTENDED | REG_NEWLINE) : 0;

	if (rc) {
		regerror(rc, &re, why, sizeof(why));
		return err_set(e, ERR_INVALID, "%s: '%.80s': %s", l->name, text, why);
	}
	if (text)
		regfree(&re);
	return 0;
}

static int all_compile(const struct lang *l, const struct lang_pattern *p, struct err *e)
{
	for (; p->match; p++)
		if (lang_file_compiles(l, p->match, e) < 0 || lang_file_compiles(l, p->at, e) < 0)
			return -1;
	return 0;
}

int runtime_check(const struct lang *l, struct err *e)
{
	const struct lang_unit *u = &l->unit;

	if (all_compile(l, l->errors, e) < 0 || all_compile(l, l->faults, e) < 0 ||
	    lang_file_compiles(l, u->outer, e) < 0 || lang_file_compiles(l, u->name, e) < 0 ||
	    lang_file_compiles(l, u->begin, e) < 0 || lang_file_compiles(l, u->forced, e) < 0)
		return -1;
	return 0;
}

void runtime_fini(struct lang *l)
{
	struct runtime_store *s = l->store;

	if (!s)
		return;
	while (s->chunks) {
		struct chunk *c = s->chunks;

		s->chunks = c->next;
		free(c);
	}
	toml_fini(&s->doc);
	free(s);
	l->store = NULL;
}
