/* hints.c - see hints.h. */
#include "v1run/hints.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { HINTS_NAME = 80 };

/* The last occurrence of text; NULL: none. */
static const char *hints_last(const char *said, const char *text)
{
	const char *found = NULL;

	for (const char *at = said; (at = strstr(at, text)) != NULL; at++)
		found = at;
	return found ? found + strlen(text) : NULL;
}

/* A name of a module, package or command, up to a quote or the end of its line. 0: not a name. */
static int hints_name(const char *at, char out[HINTS_NAME])
{
	size_t n = 0;

	while (at[n] && n + 1 < HINTS_NAME &&
	       (isalnum((unsigned char)at[n]) || strchr("._-@/+", at[n])))
		n++;
	if (!n || n + 1 >= HINTS_NAME || (at[n] && !strchr("'\";: \n", at[n])))
		return 0;
	memcpy(out, at, n);
	out[n] = 0;
	return 1;
}

/* ---- a module ---- */

static const struct {
	const char *text;
	enum package_manager manager;
	int top; /* the package has the name before this character; 0: the whole name */
} hints_modules[] = {
	{ "No module named '", PM_PIP, '.' },
	{ "Cannot find module '", PM_NPM, 0 },
	{ "Cannot find package '", PM_NPM, 0 },
	{ "cannot load such file -- ", PM_GEM, '/' },
};

static const char *hints_package(const struct lang *l, const char *module)
{
	for (const struct lang_pair *p = l ? l->packages.names : NULL; p && p->key; p++)
		if (!strcmp(p->key, module))
			return p->value;
	return module;
}

static int hints_module(const struct hints_about *x, struct buf *out)
{
	for (unsigned i = 0; i < sizeof(hints_modules) / sizeof(hints_modules[0]); i++) {
		const char *at = hints_last(x->said, hints_modules[i].text);
		enum package_manager m = hints_modules[i].manager;
		char name[HINTS_NAME], *end;

		if (!at || !hints_name(at, name) || *name == '/' || *name == '.')
			continue; /* a module of the program itself */
		end = hints_modules[i].top ? strchr(name, hints_modules[i].top) : NULL;
		if (end)
			*end = 0;
		buf_printf(
			out,
			"the box does not have '%s': ask for it with \"packages\": {\"%s\": [\"%s\"]}%s",
			name, package_manager_name(m), hints_package(x->lang, name),
			x->own_box ? "" : " when the box is made");
		if (!x->conf->source[m] && !x->conf->mirror)
			buf_printf(
				out,
				"; no source for %s packages is configured yet: %s in the daemon's settings",
				package_manager_name(m), install_setting(m));
		return 1;
	}
	return 0;
}

/* ---- a command ---- */

static int hints_command(const struct hints_about *x, struct buf *out)
{
	const char *at = hints_last(x->said, ": command not found"), *from;
	char name[HINTS_NAME];

	if (x->status != 127 || !at)
		return 0;
	at -= strlen(": command not found");
	for (from = at; from > x->said && from[-1] != ' ' && from[-1] != '\n'; from--)
		;
	if (!hints_name(from, name) || strlen(name) != (size_t)(at - from))
		return 0;
	buf_printf(
		out,
		"the box has the programs of the host's /usr, and '%s' is none of them: install it on the host, or ask for the "
		"Debian package that has it with \"packages\": {\"apt\": [...]}%s",
		name, x->own_box ? "" : " when the box is made");
	return 1;
}

/* ---- the network ---- */

static const char *const hints_no_network[] = {
	/* clang-format off */
	"Temporary failure in name resolution", "Name or service not known", "EAI_AGAIN", "ENOTFOUND",
	"Could not resolve host",               "no such host",              "Network is unreachable", "ENETUNREACH",
	"UnknownHostException",                 "getaddrinfo:",              "Could not resolve '",
	/* clang-format on */
};

static int hints_network(const struct hints_about *x, struct buf *out)
{
	unsigned i = 0, n = sizeof(hints_no_network) / sizeof(hints_no_network[0]);

	while (i < n && !strstr(x->said, hints_no_network[i]))
		i++;
	if (i == n)
		return 0;
	if (x->network)
		buf_puts(
			out,
			"the box reaches the hosts of its \"network\": {\"allow\": [...]} only, and through the proxy of "
			"$HTTPS_PROXY: GET /v1/boxes/{box}/network lists what was refused");
	else
		buf_printf(
			out,
			"the box has no network%s: ask for hosts with \"network\": {\"allow\": [\"HOST\"]} when it is made, each "
			"among egress.allow of the daemon's settings; packages come by \"packages\" without it",
			x->registries ? " but the package registries" : "");
	return 1;
}

static const struct {
	const char *command;
	enum package_manager manager;
} hints_installs[] = {
	/* clang-format off */
	{ "pip install", PM_PIP }, { "pip3 install", PM_PIP }, { "pip download", PM_PIP },
	{ "npm i", PM_NPM },       { "npm ci", PM_NPM },       { "npx ", PM_NPM },
	{ "yarn ", PM_NPM },       { "pnpm ", PM_NPM },        { "gem install", PM_GEM },
	{ "bundle", PM_GEM },      { "cargo ", PM_CARGO },     { "go get", PM_GO },
	{ "go mod", PM_GO },       { "apt-get ", PM_APT },     { "apt install", PM_APT },
	/* clang-format on */
};

/* A package manager that has no registry, or that may not reach it. */
static int hints_registry(const struct hints_about *x, struct buf *out)
{
	unsigned i = 0, n = sizeof(hints_installs) / sizeof(hints_installs[0]);
	enum package_manager m;

	while (i < n && !strstr(x->command, hints_installs[i].command))
		i++;
	if (i == n || x->network)
		return 0;
	m = hints_installs[i].manager;
	if (x->registries && x->conf->source[m])
		return 0;
	if (!x->conf->source[m])
		buf_printf(
			out,
			"no registry for %s packages is configured, and more time will not help: the operator names one with %s "
			"in the daemon's settings",
			package_manager_name(m), install_setting(m));
	else
		buf_printf(
			out,
			"this box may not reach the registry of %s: it needs \"network\": {\"registries\": true} and "
			"packages.in_boxes of the daemon's settings; packages come by \"packages\" without it",
			package_manager_name(m));
	return 1;
}

/* Package managers retry for minutes without output. */
static int hints_download(const struct hints_about *x, struct buf *out)
{
	static const char *const words[] = { "npm i",  "npm ci",      "npx ",         "yarn ",
					     "pnpm ",  "pip install", "pip3 install", "gem install",
					     "cargo ", "go get",      "git clone",    "apt-get ",
					     "curl ",  "wget " };
	unsigned i = 0, n = sizeof(words) / sizeof(words[0]);

	while (i < n && !strstr(x->command, words[i]))
		i++;
	if (i == n)
		return 0;
	buf_printf(
		out,
		"'%.*s' wants a network, and the box has none: more time will not help. Ask for packages with \"packages\", for "
		"hosts with \"network\": {\"allow\": [\"HOST\"]}, each among egress.allow of the daemon's settings",
		(int)strcspn(words[i], " "), words[i]);
	return 1;
}

int hints_find(const struct hints_about *x, struct buf *out)
{
	if (!x->status && !x->timed_out)
		return 0;
	if (x->timed_out)
		return hints_registry(x, out) ||
		       (!x->network && !x->registries &&
			(hints_network(x, out) || hints_download(x, out)));
	return hints_module(x, out) || hints_command(x, out) || hints_registry(x, out) ||
	       hints_network(x, out);
}
