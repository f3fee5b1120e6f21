/* runtime.c - see runtime.h. */
#include "cli/runtime.h"
#include "base/buf.h"
#include "base/suggest.h"
#include "cli/versions.h"

enum { MOST_LANGS = 64 };

void runtime_list(struct cli_error *t)
{
	auto_buf struct buf all = { 0 };

	for (unsigned i = 0; i < lang_count(); i++)
		buf_printf(&all, "%s%s", i ? " " : "", lang_at(i)->name);
	cli_error_hint(t, "list", "%s", buf_str(&all));
}

int runtime_unknown(const char *name, struct cli_error *t)
{
	const char *names[MOST_LANGS + 1] = { 0 }, *close;
	char shown[SHOWN];

	for (unsigned i = 0; i < lang_count() && i < MOST_LANGS; i++)
		names[i] = lang_at(i)->name;
	cli_error_what(t, "not_found", "no template named '%s'", cli_error_shown(name, shown));
	close = suggest_nearest(name, names);
	if (close)
		cli_error_hint(t, "close", "%s", close);
	runtime_list(t);
	return STATUS_USAGE;
}

static int cannot_tell(const char *file, struct cli_error *t)
{
	char shown[SHOWN];

	cli_error_what(t, "usage", "cannot find the language of '%s'",
		       cli_error_shown(file, shown));
	cli_error_why(t,
		      "its name has no known extension, it has no #! line and is not executable");
	cli_error_hint(t, "type", "atoll run -t NAME %s", shown);
	runtime_list(t);
	return STATUS_USAGE;
}

static int not_installed(const struct lang *l, struct cli_error *t)
{
	auto_buf struct buf how = { 0 };

	lang_install(l, &how);
	cli_error_what(t, "not_found", "%s is not installed on this machine", l->name);
	cli_error_why(t, "no %s", lang_program(l));
	cli_error_hint(t, "install", "%s", buf_str(&how));
	return STATUS_NO_PROGRAM;
}

static int check_pin(const struct lang *l, const char *pin, struct cli_error *t)
{
	struct versions v;
	char shown[SHOWN];

	versions_ask(&v, l);
	if (lang_pin_fits(pin, versions_of(&v, l)))
		return 0;
	cli_error_what(t, "not_found", "%s %s is not on this machine", l->name,
		       cli_error_shown(pin, shown));
	cli_error_why(t, "there is %s", versions_of(&v, l));
	cli_error_hint(t, "list", "atoll lang");
	cli_error_hint(t, "templates", "atoll template ls");
	return STATUS_NO_PROGRAM;
}

int runtime_choose(const struct lang **out, const char *wanted, const char *file, const char *head,
		   size_t n, struct cli_error *t)
{
	char name[LANG_NAME + 1];
	const char *pin = wanted ? lang_pin(wanted, name) : "";

	*out = wanted ? lang_named(name) : lang_of(file, head, n);
	if (!*out && wanted)
		return runtime_unknown(wanted, t);
	if (!*out)
		return lang_is_program(head, n) ? 0 : cannot_tell(file, t);
	if (!lang_present(*out))
		return not_installed(*out, t);
	return *pin ? check_pin(*out, pin, t) : 0;
}
