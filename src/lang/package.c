/* package.c - see package.h. */
#include "lang/package.h"
#include "base/cleanup.h"
#include "base/edit_distance.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/toml.h"
#include "lang/popular_packages.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

/* ---- managers ---- */

static int pip_canonical(const char *text, struct buf *out, struct err *e);
static int plain_canonical(const char *text, struct buf *out, struct err *e,
			   enum package_manager m);

/* The grammar of a name, of the operators before a version, and of a version. */
static const struct grammar {
	const char *name;
	const char *languages;    /* each followed by a space */
	const char *first, *rest; /* characters of a name */
	const char *between;      /* before a version; canonical is the first of them */
	const char *version_first, *version;
	const char *example;
} grammars[PM_COUNT] = {
	[PM_PIP] = { "pip", "python ", .example = "pandas[excel]>=1.5,<2" },
	[PM_NPM] = { "npm", "node javascript typescript ", LOWER DIGIT, LOWER DIGIT "-._~", "@",
		     LOWER UPPER DIGIT "^~<>=*", LOWER UPPER DIGIT ".-+*^~<>=", "left-pad@^1.3" },
	[PM_GEM] = { "gem", "ruby ", LOWER UPPER DIGIT, LOWER UPPER DIGIT "._-", ":=", DIGIT,
		     LOWER UPPER DIGIT ".", "rack:3.0.8" },
	[PM_CARGO] = { "cargo", "rust ", LOWER UPPER, LOWER UPPER DIGIT "_-", "@", DIGIT "^~=<>",
		       LOWER UPPER DIGIT ".-+^~=<>*", "serde@1.0" },
	[PM_GO] = { "go", "go ", LOWER DIGIT, LOWER UPPER DIGIT "._~/-", "@", LOWER DIGIT,
		    LOWER UPPER DIGIT ".-+", "golang.org/x/text@v0.14.0" },
	[PM_APT] = { "apt", "bash ", LOWER DIGIT, LOWER DIGIT "+.-", "=", LOWER UPPER DIGIT,
		     LOWER UPPER DIGIT ".+~:-", "jq=1.6-2.1" },
};

const char *package_manager_name(enum package_manager m)
{
	return grammars[m].name;
}

int package_manager_named(const char *name)
{
	for (int m = 0; m < PM_COUNT; m++)
		if (strcmp(grammars[m].name, name) == 0)
			return m;
	return -1;
}

int package_manager_of(const char *language)
{
	size_t n = strlen(language);

	for (int m = 0; n && m < PM_COUNT; m++)
		for (const char *at = grammars[m].languages; (at = strstr(at, language)); at += n)
			if ((at == grammars[m].languages || at[-1] == ' ') && at[n] == ' ')
				return m;
	return -1;
}

static int package_refuse(enum package_manager m, const char *text, const char *why, struct err *e)
{
	char shown[64];
	size_t n = 0;

	for (; text[n] && n < sizeof(shown) - 1; n++)
		shown[n] = (unsigned char)text[n] < ' ' || text[n] == 127 ? '?' : text[n];
	shown[n] = 0;
	return err_set(e, ERR_INVALID, "packages: '%s' %s; %s packages are written like %s", shown,
		       why, grammars[m].name, grammars[m].example);
}

/* An error that holds for every manager, or NULL. */
static const char *plainly_wrong(const char *text)
{
	if (!*text)
		return "is empty";
	if (strlen(text) > PACKAGE_TEXT)
		return "is too long";
	if (*text == '-')
		return "would be an option";
	if (*text == '.' || *text == '/' || *text == '~')
		return "would be a path";
	if (strstr(text, "://") || strncmp(text, "git+", 4) == 0)
		return "is a URL: packages come from the configured registry only";
	if (strpbrk(text, ";$`|&(){}\\'\"#%\n\r\t"))
		return "has characters that no package's name has";
	return NULL;
}

/* ---- pip: PEP 508 without URLs and markers ---- */

static void skip_spaces(const char **at)
{
	*at += strspn(*at, " ");
}

/* PEP 503: lower case, and any run of -_. is one dash. Stops after the name. */
static int pip_name(const char **at, struct buf *out)
{
	size_t n = strspn(*at, LOWER UPPER DIGIT "-_.");
	int dash = 0;

	if (n == 0 || strchr("-_.", (*at)[0]) || strchr("-_.", (*at)[n - 1]))
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (strchr("-_.", (*at)[i])) {
			dash = 1;
			continue;
		}
		if (dash)
			buf_putc(out, '-');
		dash = 0;
		buf_putc(out, (char)tolower((unsigned char)(*at)[i]));
	}
	*at += n;
	return 0;
}

enum { PARTS_MOST = 16 };
struct package_parts { /* of a list with commas, which is sorted */
	struct buf v[PARTS_MOST];
	unsigned n;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(buf_str(a), buf_str(b));
}

static void parts_join(struct package_parts *p, struct buf *out)
{
	qsort(p->v, p->n, sizeof(p->v[0]), by_text);
	for (unsigned i = 0; i < p->n; i++) {
		if (i && strcmp(buf_str(&p->v[i]), buf_str(&p->v[i - 1])) == 0)
			continue;
		buf_printf(out, "%s%s", i ? "," : "", buf_str(&p->v[i]));
	}
}

static void parts_fini(struct package_parts *p)
{
	for (unsigned i = 0; i < PARTS_MOST; i++)
		buf_fini(&p->v[i]);
}
#define auto_parts __attribute__((cleanup(parts_fini)))

static const char *pip_extras(const char **at, struct buf *out)
{
	auto_parts struct package_parts p = { 0 };

	if (**at != '[')
		return NULL;
	do {
		++*at;
		skip_spaces(at);
		if (p.n == PARTS_MOST || pip_name(at, &p.v[p.n++]) < 0)
			return "has extras that are not names";
		skip_spaces(at);
	} while (**at == ',');
	if (**at != ']')
		return "has a [ without ]";
	++*at;
	buf_putc(out, '[');
	parts_join(&p, out);
	buf_putc(out, ']');
	return NULL;
}

static const char *pip_versions(const char **at, struct buf *out)
{
	static const char *const operators[] = { "===", "~=", "==", "!=", "<=", ">=", "<", ">" };
	auto_parts struct package_parts p = { 0 };

	for (; **at; skip_spaces(at)) {
		unsigned op = 0;
		size_t n;

		while (op < ARRAY_LEN(operators) &&
		       strncmp(*at, operators[op], strlen(operators[op])) != 0)
			op++;
		if (op == ARRAY_LEN(operators))
			return "has text after its name that is not a version";
		*at += strlen(operators[op]);
		skip_spaces(at);
		n = strspn(*at, LOWER UPPER DIGIT ".+!*-_");
		if (n == 0 || p.n == PARTS_MOST)
			return "has a comparison without a version";
		buf_printf(&p.v[p.n++], "%s%.*s", operators[op], (int)n, *at);
		*at += n;
		skip_spaces(at);
		if (!**at)
			break;
		if (**at != ',' || !(*at)[1])
			return "has text after its version";
		++*at;
	}
	parts_join(&p, out);
	return NULL;
}

static int pip_canonical(const char *text, struct buf *out, struct err *e)
{
	const char *at = text, *why;

	if (pip_name(&at, out) < 0)
		return package_refuse(PM_PIP, text, "is not a package name", e);
	skip_spaces(&at);
	why = pip_extras(&at, out);
	skip_spaces(&at);
	if (!why)
		why = pip_versions(&at, out);
	return why ? package_refuse(PM_PIP, text, why, e) : 0;
}

/* ---- the others: a name, perhaps a version ---- */

/* The bytes of a name, or 0. */
static size_t name_length(enum package_manager m, const char *text)
{
	const struct grammar *g = &grammars[m];
	size_t scope = 0, n;

	if (m == PM_NPM && text[0] == '@') {
		scope = 1 + strspn(text + 1, LOWER DIGIT "-_");
		if (scope < 2 || text[scope++] != '/')
			return 0;
	}
	n = strspn(text + scope, g->rest);
	if (n == 0 || !strchr(g->first, text[scope]))
		return 0;
	return scope + n;
}

/* The first part of a module is a host, the others are plain path segments. */
static int go_name_ok(const char *text, size_t n)
{
	size_t host = strcspn(text, "/");

	return host < n && memchr(text, '.', host) && text[n - 1] != '/' && !strstr(text, "//") &&
	       !strstr(text, "..") && !strstr(text, "/.");
}

static int plain_canonical(const char *text, struct buf *out, struct err *e, enum package_manager m)
{
	const struct grammar *g = &grammars[m];
	size_t n = name_length(m, text), v;
	const char *version;

	if (n == 0 || (m == PM_GO && !go_name_ok(text, n)) || strstr(text, ".."))
		return package_refuse(m, text, "is not a package name", e);
	buf_add(out, text, n);
	if (!text[n])
		return 0;
	version = text + n + (m == PM_APT ? 1 : strspn(text + n, g->between));
	v = strspn(version, g->version);
	if (!strchr(g->between, text[n]) || v == 0 || version[v] ||
	    !strchr(g->version_first, version[0]))
		return package_refuse(m, text, "has text after its name that is not a version", e);
	buf_printf(out, "%c%s", g->between[0], version);
	return 0;
}

/* ---- sets ---- */

void packages_fini(struct packages *p)
{
	for (unsigned i = 0; i < p->n; i++)
		free(p->v[i]);
	free(p->v);
	p->v = NULL;
	p->n = 0;
}

/* Keeps the order and adds no duplicate. */
static void package_insert(struct packages *p, char *take_text)
{
	unsigned at = 0;

	while (at < p->n && strcmp(p->v[at], take_text) < 0)
		at++;
	if (at < p->n && strcmp(p->v[at], take_text) == 0) {
		free(take_text);
		return;
	}
	p->v = realloc(p->v, (p->n + 1) * sizeof(*p->v));
	if (!p->v)
		abort();
	memmove(p->v + at + 1, p->v + at, (p->n - at) * sizeof(*p->v));
	p->v[at] = take_text;
	p->n++;
}

int packages_add(struct packages *p, const char *text, struct err *e)
{
	auto_buf struct buf out = { 0 };
	const char *why = plainly_wrong(text);
	int done;

	if (why)
		return package_refuse(p->manager, text, why, e);
	if (p->n == PACKAGES_MOST)
		return err_set(e, ERR_LIMIT, "packages: more than %d", PACKAGES_MOST);
	done = p->manager == PM_PIP ? pip_canonical(text, &out, e)
				    : plain_canonical(text, &out, e, p->manager);
	if (done < 0)
		return -1;
	package_insert(p, buf_steal(&out));
	return 0;
}

static int add_line(struct packages *p, const char *line, size_t n, unsigned number, struct err *e)
{
	char text[PACKAGE_TEXT + 2];
	const char *comment = memchr(line, '#', n);

	/* A comment starts the line or follows a space. */
	if (comment && (comment == line || comment[-1] == ' ' || comment[-1] == '\t'))
		n = (size_t)(comment - line);
	while (n && isspace((unsigned char)line[n - 1]))
		n--;
	for (; n && isspace((unsigned char)*line); line++)
		n--;
	if (!n)
		return 0;
	snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text) - 1), line);
	if (memchr(line, 0, n) || packages_add(p, text, e) < 0) {
		if (memchr(line, 0, n))
			err_set(e, ERR_INVALID, "packages: a NUL");
		return err_in(e, "line %u", number);
	}
	return 0;
}

int packages_add_lines(struct packages *p, const char *text, size_t n, struct err *e)
{
	unsigned number = 1;

	for (const char *end = text + n; text < end; number++) {
		const char *line = text, *stop = memchr(text, '\n', (size_t)(end - text));

		text = stop ? stop + 1 : end;
		if (add_line(p, line, (size_t)((stop ? stop : end) - line), number, e) < 0)
			return -1;
	}
	return 0;
}

/* The block's lines without their "# ", or nothing. */
static int script_block(const char *code, size_t n, struct buf *out)
{
	static const char begin[] = "# /// script", stop[] = "# ///";
	int inside = 0;

	for (const char *end = code + n, *next; code < end; code = next) {
		const char *lf = memchr(code, '\n', (size_t)(end - code));
		size_t len = (size_t)((lf ? lf : end) - code);

		next = lf ? lf + 1 : end;
		while (len && isspace((unsigned char)code[len - 1]))
			len--;
		if (!inside) {
			inside = len == sizeof(begin) - 1 && memcmp(code, begin, len) == 0;
			continue;
		}
		if (len == sizeof(stop) - 1 && memcmp(code, stop, len) == 0)
			return 1;
		if (!len || code[0] != '#' || (len > 1 && code[1] != ' '))
			return 0;
		buf_add(out, code + (len > 1 ? 2 : 1), len - (len > 1 ? 2 : 1));
		buf_putc(out, '\n');
	}
	return 0;
}

static int add_list(struct packages *p, const struct toml_node *list, struct err *e)
{
	if (list->type != TOML_ARRAY)
		return err_set(e, ERR_INVALID, "script: dependencies must be a list");
	for (const struct toml_node *v = list->in.first; v; v = v->next) {
		if (v->type != TOML_STRING || strlen(v->text) != v->len)
			return err_set(e, ERR_INVALID, "script: dependencies must be texts");
		if (packages_add(p, v->text, e) < 0)
			return err_in(e, "script");
	}
	return 0;
}

int packages_add_script(struct packages *p, const char *code, size_t n, struct err *e)
{
	auto_buf struct buf block = { 0 };
	const struct toml_node *list;
	struct toml doc;
	int done = 0;

	if (!script_block(code, n, &block))
		return 0;
	if (toml_parse(&doc, "script", buf_str(&block), block.len, e) < 0)
		return -1;
	list = toml_get(doc.root, "dependencies");
	if (list)
		done = add_list(p, list, e);
	toml_fini(&doc);
	return done;
}

#if defined(__aarch64__)
#define ARCH "aarch64"
#else
#define ARCH "x86_64"
#endif

void packages_key(const struct packages *p, const char *runtime, char out[PACKAGES_KEY + 1])
{
	auto_buf struct buf text = { 0 };
	uint8_t digest[SHA256_BYTES];
	struct sha256 s;

	buf_printf(&text, "atoll set 1\n%s\n%s\n" ARCH "\n", grammars[p->manager].name, runtime);
	for (unsigned i = 0; i < p->n; i++)
		buf_printf(&text, "%s\n", p->v[i]);
	sha256_init(&s);
	sha256_add(&s, text.p, text.len);
	sha256_end(&s, digest);
	hex_encode(out, digest, sizeof(digest));
}

void packages_text(const struct packages *p, struct buf *out)
{
	for (unsigned i = 0; i < p->n; i++)
		buf_printf(out, "%s%s", i ? " " : "", p->v[i]);
}

/* ---- names like it ---- */

void package_name(enum package_manager m, const char *spec, char out[PACKAGE_TEXT + 1])
{
	size_t n = m == PM_PIP ? strspn(spec, LOWER UPPER DIGIT "-_.") : name_length(m, spec);

	snprintf(out, PACKAGE_TEXT + 1, "%.*s", (int)(n < PACKAGE_TEXT ? n : PACKAGE_TEXT), spec);
}

unsigned package_near(enum package_manager m, const char *name, const char *out[], unsigned most)
{
	unsigned n = 0;

	for (unsigned far = 1; far <= 2; far++)
		for (const char *const *c = common_names[m]; c && *c && n < most; c++)
			if (edit_distance(name, *c) == far && strlen(*c) > far + 1)
				out[n++] = *c;
	/* A package with this text in its name, if none is similar. */
	for (const char *const *c = common_names[m]; c && *c && n == 0 && strlen(name) > 3; c++)
		if (strstr(*c, name) || (strlen(*c) > 3 && strstr(name, *c)))
			out[n++] = *c;
	return n;
}

const char *package_mistaken(enum package_manager m, const char *name)
{
	const char *meant = NULL;

	for (const char *const *c = common_names[m]; c && *c; c++) {
		unsigned far = edit_distance(name, *c);

		if (far == 0)
			return NULL;
		if (far == 1 && strlen(*c) > 3)
			meant = *c;
	}
	return meant;
}
