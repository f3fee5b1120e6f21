/* args.c - see args.h. */
#include "cli/args.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "base/suggest.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

const struct flag args_common[] = {
	[ARG_HELP - ARG_HELP] = { "help", 'h', FLAG_SWITCH, NULL, "print this help" },
	[ARG_JSON - ARG_HELP] = { "json", 0, FLAG_SWITCH, NULL,
				  "print one JSON document on stdout, errors as JSON on stderr" },
	[ARG_QUIET - ARG_HELP] = { "quiet", 'q', FLAG_SWITCH, NULL,
				   "print only the requested result, no messages" },
	[ARG_VERBOSE - ARG_HELP] = { "verbose", 'v', FLAG_SWITCH, NULL, "print more, on stderr" },
	[ARG_COLOR - ARG_HELP] = { "color", 0, FLAG_TEXT, "WHEN", "always, never or auto" },
	[ARG_HOST - ARG_HELP] = { "host", 'H', FLAG_TEXT, "URL",
				  "the daemon: http://..., https://... or unix:/path" },
};
const unsigned args_ncommon = ARRAY_LEN(args_common);
_Static_assert(ARRAY_LEN(args_common) == ARG_END - ARG_HELP, "a common flag without a row");

enum { MOST_FLAGS = 64 };

static const struct flag *args_row(const struct command *v, unsigned flag)
{
	return flag >= ARG_HELP ? &args_common[flag - ARG_HELP] : &v->flags[flag];
}

static int args_find(const struct command *v, const char *name, size_t len, char letter)
{
	for (unsigned i = 0; i < v->nflags + args_ncommon; i++) {
		unsigned flag = i < v->nflags ? i : ARG_HELP + i - v->nflags;
		const struct flag *f = args_row(v, flag);

		if (letter ? f->letter == letter
			   : strlen(f->name) == len && !memcmp(f->name, name, len))
			return (int)flag;
	}
	return -1;
}

static int args_unknown(const struct command *v, const char *typed, struct cli_error *t)
{
	const char *names[MOST_FLAGS + ARRAY_LEN(args_common) + 1], *close;
	char shown[SHOWN], bare[SHOWN];
	unsigned n = 0;

	for (; n < v->nflags && n < MOST_FLAGS; n++)
		names[n] = v->flags[n].name;
	for (unsigned i = 0; i < args_ncommon; i++)
		names[n++] = args_common[i].name;
	names[n] = NULL;
	cli_error_shown(typed, shown);
	cli_error_what(t, "usage", "%s: unknown flag '%s'", v->name, shown);
	strcpy(bare, shown + strspn(shown, "-"));
	bare[strcspn(bare, "=")] = 0;
	close = suggest_nearest(bare, names);
	if (close)
		cli_error_hint(t, "close", "--%s", close);
	cli_error_hint(t, "list", "atoll %s -h", v->name);
	return -1;
}

/* A name that a shell could use: anything else is a typing error or an attack. */
static int env_ok(const char *text)
{
	const char *c = text;

	if (!isalpha((unsigned char)*c) && *c != '_')
		return 0;
	while (isalnum((unsigned char)*c) || *c == '_')
		c++;
	return *c == '=';
}

static int read_value(const struct flag *f, const char *text, uint64_t *out, struct err *e)
{
	char shown[SHOWN];
	uint32_t small = 0;
	int rc = 0;

	switch (f->type) {
	case FLAG_SIZE:
	case FLAG_SIZE_OR_NONE:
		return units_parse_size(text, out, e);
	case FLAG_TIME:
		rc = units_parse_time(text, &small, e);
		break;
	case FLAG_CPUS:
		rc = units_parse_cpus(text, &small, e);
		break;
	case FLAG_COUNT:
		rc = units_parse_count(text, INT_MAX, &small, e);
		break;
	case FLAG_ENV:
		if (!env_ok(text))
			return err_set(
				e, ERR_INVALID,
				"'%s' is not NAME=VALUE with a name of letters, digits and _",
				cli_error_shown(text, shown));
		break;
	case FLAG_SWITCH:
	case FLAG_TEXT:
	case FLAG_WORDS:
		break;
	}
	*out = small;
	return rc;
}

static void args_forget(struct args *a, unsigned flag)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag != flag)
			a->given[kept++] = a->given[i];
	a->ngiven = kept;
}

static int args_take(struct args *a, unsigned flag, const char *text, struct cli_error *t)
{
	const struct flag *f = args_row(a->command, flag);
	struct given *g;
	struct err e;

	if (f->type == FLAG_SIZE_OR_NONE && !strcmp(text, "none")) {
		args_forget(a, flag);
		return 0;
	}
	if ((a->ngiven & (a->ngiven + 1)) == 0) { /* 0, 1, 3, 7, ...: full */
		a->given = realloc(a->given, 2 * (a->ngiven + 1) * sizeof(*a->given));
		if (!a->given)
			abort();
	}
	g = &a->given[a->ngiven];
	*g = (struct given){ .flag = flag, .text = text };
	if (f->type != FLAG_SWITCH && read_value(f, text, &g->value, &e) < 0) {
		cli_error_what(t, "usage", "--%s: %s", f->name, e.msg);
		cli_error_hint(t, "meaning", "--%s %s: %s", f->name, f->metavar, f->help);
		return -1;
	}
	a->ngiven++;
	return 0;
}

static int no_value(const struct command *v, const struct flag *f, struct cli_error *t)
{
	cli_error_what(t, "usage", "--%s needs a value: %s", f->name, f->metavar);
	cli_error_hint(t, "meaning", "%s", f->help);
	cli_error_hint(t, "list", "atoll %s -h", v->name);
	return -1;
}

/* --name, --name=value, --name value. *i is moved past the used words. */
static int take_long(struct args *a, int argc, char **argv, int *i, struct cli_error *t)
{
	const char *name = argv[*i] + 2, *equals = strchr(name, '=');
	int flag = args_find(a->command, name, equals ? (size_t)(equals - name) : strlen(name), 0);
	const struct flag *f;

	if (flag < 0)
		return args_unknown(a->command, argv[*i], t);
	f = args_row(a->command, (unsigned)flag);
	if (f->type == FLAG_SWITCH && equals) {
		cli_error_what(t, "usage", "--%s takes no value", f->name);
		cli_error_hint(t, "list", "atoll %s -h", a->command->name);
		return -1;
	}
	if (f->type != FLAG_SWITCH && !equals && *i + 1 >= argc)
		return no_value(a->command, f, t);
	if (f->type == FLAG_SWITCH || equals)
		return args_take(a, (unsigned)flag, equals ? equals + 1 : NULL, t);
	return args_take(a, (unsigned)flag, argv[++*i], t);
}

/* -x, -xy, -xVALUE, -x VALUE. */
static int take_short(struct args *a, int argc, char **argv, int *i, struct cli_error *t)
{
	for (const char *c = argv[*i] + 1; *c; c++) {
		int flag = args_find(a->command, NULL, 0, *c);
		const struct flag *f;

		if (flag < 0)
			return args_unknown(a->command, argv[*i], t);
		f = args_row(a->command, (unsigned)flag);
		if (f->type == FLAG_SWITCH) {
			if (args_take(a, (unsigned)flag, NULL, t) < 0)
				return -1;
			continue;
		}
		if (c[1])
			return args_take(a, (unsigned)flag, c + 1, t);
		if (*i + 1 >= argc)
			return no_value(a->command, f, t);
		return args_take(a, (unsigned)flag, argv[++*i], t);
	}
	return 0;
}

static int too_many(const struct args *a, struct cli_error *t)
{
	char shown[SHOWN];

	cli_error_what(t, "usage", "%s: one word too many: '%s'", a->command->name,
		       cli_error_shown(a->words[a->command->max_words], shown));
	cli_error_hint(t, "usage", "atoll %s %s", a->command->name, a->command->usage);
	return -1;
}

int args_parse(struct args *a, const struct command *command, int argc, char **argv,
	       struct cli_error *t)
{
	*a = (struct args){ .command = command };
	a->words = calloc((size_t)argc + 1, sizeof(*a->words));
	if (!a->words)
		abort();
	for (int i = 1; i < argc; i++) {
		int is_flag = argv[i][0] == '-' && argv[i][1];

		if (a->dashes || !is_flag) {
			a->words[a->nwords++] = argv[i];
			if (!command->own_words || a->nwords < command->own_words)
				continue;
			while (++i < argc)
				a->words[a->nwords++] = argv[i];
			break;
		}
		if (!strcmp(argv[i], "--"))
			a->dashes = 1;
		else if ((argv[i][1] == '-' ? take_long(a, argc, argv, &i, t)
					    : take_short(a, argc, argv, &i, t)) < 0)
			return -1;
	}
	if (!command->own_words && a->nwords > command->max_words)
		return too_many(a, t);
	return 0;
}

void args_fini(struct args *a)
{
	free(a->given);
	free(a->words);
	*a = (struct args){ 0 };
}

static const struct given *args_last(const struct args *a, unsigned flag)
{
	for (unsigned i = a->ngiven; i > 0; i--)
		if (a->given[i - 1].flag == flag)
			return &a->given[i - 1];
	return NULL;
}

int args_has(const struct args *a, unsigned flag)
{
	return args_last(a, flag) != NULL;
}

const char *args_text(const struct args *a, unsigned flag, const char *otherwise)
{
	const struct given *g = args_last(a, flag);

	return g ? g->text : otherwise;
}

uint64_t args_value(const struct args *a, unsigned flag, uint64_t otherwise)
{
	const struct given *g = args_last(a, flag);

	return g ? g->value : otherwise;
}
