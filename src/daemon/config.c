/* config.c - see config.h. Sources are read from the weakest to the strongest, each over the one
 * before; all of them are checked, also where a stronger one overrides them. */
#include "daemon/config.h"
#include "daemon/config_cluster.h"
#include "daemon/config_plans.h"
#include "base/site.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/run_dir.h"
#include "base/toml.h"
#include "base/units.h"
#include "base/suggest.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_ITEMS = 64, LONGEST_TEXT = 4096, LONGEST_NAME = 64 };

static char *config_copy(const char *text)
{
	char *p = strdup(text);

	if (!p)
		abort();
	return p;
}

/* ---- one value ---- */

static void value_fini(struct config_value *v)
{
	for (char **i = v->items; i && *i; i++)
		free(*i);
	free(v->items);
	free(v->text);
	free(v->where);
	*v = (struct config_value){ 0 };
}

static void add_item(struct config_value *v, const char *text, size_t len)
{
	unsigned n = 0;

	while (v->items && v->items[n])
		n++;
	v->items = realloc(v->items, (n + 2) * sizeof(*v->items));
	if (!v->items || !(v->items[n] = strndup(text, len)))
		abort();
	v->items[n + 1] = NULL;
}

static int check_text(const struct config_row *r, const char *text, struct err *e)
{
	if (!*text)
		return err_set(e, ERR_INVALID, "is empty");
	if (strlen(text) > LONGEST_TEXT)
		return err_set(e, ERR_INVALID, "is longer than %d bytes", LONGEST_TEXT);
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			return err_set(e, ERR_INVALID, "has a control character in it");
	if (r->type == CONFIG_PATH && *text != '/')
		return err_set(e, ERR_INVALID, "'%.40s' is not an absolute path", text);
	return r->check ? r->check(text, e) : 0;
}

/* A range as it would be written. */
static const char *config_said(const struct config_row *r, uint64_t n, char out[UNITS_TEXT])
{
	if (r->type == CONFIG_SIZE)
		return units_size(out, n);
	if (r->type == CONFIG_TIME)
		return units_time(out, n * 1000);
	snprintf(out, UNITS_TEXT, "%llu",
		 (unsigned long long)(r->type == CONFIG_CPUS ? n / 1000 : n));
	return out;
}

static int read_number(const struct config_row *r, const char *text, uint64_t *out, struct err *e)
{
	char low[UNITS_TEXT], high[UNITS_TEXT];
	uint32_t small = 0;
	int rc;

	*out = 0;
	if (!r->lowest && (!strcmp(text, "none") || !strcmp(text, "0")))
		return 0;
	if (r->type == CONFIG_SIZE)
		rc = units_parse_size(text, out, e);
	else if (r->type == CONFIG_TIME)
		rc = units_parse_time(text, &small, e);
	else if (r->type == CONFIG_CPUS)
		rc = units_parse_cpus(text, &small, e);
	else
		rc = units_parse_count(text, UINT32_MAX, &small, e);
	if (rc < 0)
		return -1;
	*out = r->type == CONFIG_SIZE ? *out : small;
	if (*out < r->lowest || *out > r->highest)
		return err_set(e, ERR_INVALID, "'%.40s' is out of range: %s to %s", text,
			       config_said(r, r->lowest, low), config_said(r, r->highest, high));
	return 0;
}

static int read_choice(const struct config_row *r, const char *text, uint64_t *out, struct err *e)
{
	auto_buf struct buf all = { 0 };

	for (*out = 0; r->words[*out]; ++*out) {
		if (!strcmp(r->words[*out], text))
			return 0;
		buf_printf(&all, "%s%s", *out ? ", " : "", r->words[*out]);
	}
	return err_set(e, ERR_INVALID, "'%.40s' is not one of %s", text, buf_str(&all));
}

static int read_bool(const char *text, uint64_t *out, struct err *e)
{
	*out = !strcmp(text, "true") || !strcmp(text, "1");
	if (!*out && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
		return err_set(e, ERR_INVALID, "'%.40s' is not true or false", text);
	return 0;
}

/* "a, b" as in an environment variable or after a flag. */
static int read_list(const struct config_row *r, const char *text, struct config_value *v,
		     struct err *e)
{
	while (1) {
		size_t n = strcspn(text, ","), blank = strspn(text, " \t");
		const char *first = text + (blank < n ? blank : n), *last = text + n;

		while (last > first && (last[-1] == ' ' || last[-1] == '\t'))
			last--;
		add_item(v, first, (size_t)(last - first));
		if (!text[n])
			break;
		text += n + 1;
	}
	for (unsigned i = 0; v->items[i]; i++) {
		if (i >= MOST_ITEMS)
			return err_set(e, ERR_LIMIT, "has more than %d entries", MOST_ITEMS);
		if (check_text(r, v->items[i], e) < 0)
			return -1;
	}
	return 0;
}

static int read_text(const struct config_row *r, const char *text, struct config_value *v,
		     struct err *e)
{
	v->text = config_copy(text);
	switch (r->type) {
	case CONFIG_TEXT:
	case CONFIG_PATH:
	case CONFIG_SECRET:
		return check_text(r, text, e);
	case CONFIG_BOOL:
		return read_bool(text, &v->number, e);
	case CONFIG_CHOICE:
		return read_choice(r, text, &v->number, e);
	case CONFIG_LIST:
		return read_list(r, text, v, e);
	case CONFIG_RATE:
		return rates_parse(text, &v->number, e);
	default:
		return read_number(r, text, &v->number, e);
	}
}

/* The setting gets this value, or the error names its place. */
static int config_set(struct config *c, enum config_key key, const char *text,
		      enum config_from from, const char *where, struct err *e)
{
	const struct config_row *r = &config_rows[key];
	struct config_value v = { .from = from, .where = config_copy(where) };

	if (text && read_text(r, text, &v, e) < 0) {
		value_fini(&v);
		return from == FROM_FILE ? err_in(e, "%.150s: %s", where, r->name)
					 : err_in(e, "%s", where);
	}
	if (r->type == CONFIG_LIST && !v.items) {
		v.items = calloc(1, sizeof(*v.items));
		if (!v.items)
			abort();
	}
	value_fini(&c->values[key]);
	c->values[key] = v;
	return 0;
}

/* ---- names ---- */

int config_find(const char *name)
{
	for (unsigned i = 0; i < CONFIG_NKEYS; i++)
		if (!strcmp(config_rows[i].name, name))
			return (int)i;
	return -1;
}

static int is_section(const char *name)
{
	size_t n = strlen(name);

	for (unsigned i = 0; i < CONFIG_NKEYS; i++)
		if (!strncmp(config_rows[i].name, name, n) && config_rows[i].name[n] == '.')
			return 1;
	return 0;
}

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

const char *config_nearest(const char *name)
{
	const char *names[CONFIG_NKEYS + 1] = { 0 }, *close;

	for (unsigned i = 0; i < CONFIG_NKEYS; i++)
		names[i] = config_rows[i].name;
	close = suggest_nearest(name, names);
	/* Right in itself, and under the wrong heading or none. */
	for (unsigned i = 0; !close && i < CONFIG_NKEYS; i++)
		if (!strcmp(last_part(names[i]), last_part(name)))
			close = names[i];
	return close;
}

/* "serv" for a heading: the nearest one, from the names of the rows. */
static const char *nearest_section(const char *name)
{
	static char sections[CONFIG_NKEYS][LONGEST_NAME];
	const char *names[CONFIG_NKEYS + 1] = { 0 };
	unsigned n = 0;

	for (unsigned i = 0; i < CONFIG_NKEYS; i++) {
		size_t len = strcspn(config_rows[i].name, ".");

		if (!config_rows[i].name[len])
			continue;
		memcpy(sections[n], config_rows[i].name, len);
		sections[n][len] = 0;
		names[n] = sections[n];
		n++;
	}
	return suggest_nearest(name, names);
}

/* ---- files ---- */

struct config_file {
	struct config *c;
	const char *path;
	int project; /* an atoll.toml of a project: not trusted, so it may set few values */
	struct err *e;
};

static int config_unknown(const struct config_file *f, const struct toml_node *n, const char *name)
{
	const char *close = n->type == TOML_TABLE ? nearest_section(name) : config_nearest(name);
	char shown[SHOWN];

	return err_set(f->e, ERR_INVALID, "%.150s:%u: no %s named '%s'%s%s%s", f->path, n->line,
		       n->type == TOML_TABLE ? "section" : "setting", cli_error_shown(name, shown),
		       close ? "; did you mean '" : "", close ? close : "", close ? "'?" : "");
}

static int wrong_type(const struct config_file *f, const struct toml_node *n,
		      const struct config_row *r)
{
	static const char *const wanted[] = {
		[CONFIG_TEXT] = "a string",
		[CONFIG_PATH] = "a string with an absolute path",
		[CONFIG_SIZE] = "a size like \"64M\"",
		[CONFIG_TIME] = "a time like \"30s\"",
		[CONFIG_COUNT] = "an integer",
		[CONFIG_CPUS] = "a number like 0.5",
		[CONFIG_RATE] = "a decimal number in quotes, like \"0.000014\"",
		[CONFIG_BOOL] = "true or false",
		[CONFIG_CHOICE] = "a string",
		[CONFIG_LIST] = "an array of strings",
		[CONFIG_SECRET] = "a string",
	};

	return err_set(f->e, ERR_INVALID, "%.150s:%u: %s needs %s, not %s", f->path, n->line,
		       r->name, wanted[r->type],
		       n->type == TOML_ARRAY && r->type == CONFIG_LIST
			       ? "an array of something else"
			       : toml_type_name(n->type));
}

static int type_fits(const struct config_row *r, const struct toml_node *n)
{
	switch (n->type) {
	case TOML_STRING:
		return r->type != CONFIG_BOOL;
	case TOML_INTEGER:
		return r->type == CONFIG_SIZE || r->type == CONFIG_COUNT ||
		       r->type == CONFIG_CPUS || r->type == CONFIG_RATE;
	case TOML_FLOAT:
		return r->type == CONFIG_CPUS;
	case TOML_BOOLEAN:
		return r->type == CONFIG_BOOL;
	case TOML_ARRAY:
		return r->type == CONFIG_LIST;
	default:
		return 0;
	}
}

/* The value as it would be written in the environment. -1: it cannot be. */
static int node_text(const struct config_row *r, const struct toml_node *n, struct buf *out)
{
	if (!type_fits(r, n))
		return -1;
	if (n->type == TOML_STRING) {
		buf_add(out, n->text, n->len);
		return memchr(n->text, 0, n->len) ? -1 : 0;
	}
	if (n->type == TOML_INTEGER)
		buf_printf(out, "%lld", (long long)n->integer);
	else if (n->type == TOML_FLOAT)
		buf_printf(out, "%.3f", n->real);
	else if (n->type == TOML_BOOLEAN)
		buf_puts(out, n->truth ? "true" : "false");
	for (const struct toml_node *i = n->type == TOML_ARRAY ? n->in.first : NULL; i;
	     i = i->next) {
		if (i->type != TOML_STRING || memchr(i->text, 0, i->len) ||
		    memchr(i->text, ',', i->len))
			return -1;
		buf_printf(out, "%s%s", i == n->in.first ? "" : ",", i->text);
	}
	return 0;
}

static int take_node(const struct config_file *f, const struct toml_node *n, enum config_key key)
{
	const struct config_row *r = &config_rows[key];
	auto_buf struct buf text = { 0 }, where = { 0 };

	if (f->project && !r->project)
		return err_set(f->e, ERR_DENIED, "%.150s:%u: %s may not be set by a project's file",
			       f->path, n->line, r->name);
	if (node_text(r, n, &text) < 0)
		return wrong_type(f, n, r);
	buf_printf(&where, "%s:%u", f->path, n->line);
	/* An empty list means: none. */
	return config_set(f->c, key, n->type == TOML_ARRAY && !n->in.count ? NULL : buf_str(&text),
			  FROM_FILE, buf_str(&where), f->e);
}

/* A quoted key may contain any character, also a dot: then it is no known setting. */
static int is_name(const struct toml_node *n)
{
	return n->key_len < LONGEST_NAME / 2 && strlen(n->key) == n->key_len &&
	       strspn(n->key, "abcdefghijklmnopqrstuvwxyz0123456789_") == n->key_len;
}

static int take_table(const struct config_file *f, const struct toml_node *table,
		      const char *prefix)
{
	for (const struct toml_node *n = table->in.first; n; n = n->next) {
		char name[LONGEST_NAME];
		int key, rc;

		if (!is_name(n) || strlen(prefix) + n->key_len + 1 >= sizeof(name))
			return config_unknown(f, n, n->key);
		snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", n->key);
		key = config_find(name);
		if (key >= 0)
			rc = take_node(f, n, (enum config_key)key);
		else if (n->type == TOML_TABLE && !strcmp(name, "plan") && !f->project)
			rc = config_plans_take(f->c, f->path, n, f->e);
		else if (n->type == TOML_TABLE && is_section(name))
			rc = take_table(f, n, name);
		else
			rc = config_unknown(f, n, name);
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* An error quotes a line that is no TOML, and that line may contain the key. */
static void hide_keys(struct err *e)
{
	char *c = e->msg;

	while ((c = strstr(c, "e2b_")))
		for (c += 4; (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'f'); c++)
			*c = '*';
}

static int read_all(int fd, const char *path, struct buf *out, struct err *e)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "%.150s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.150s is not a file", path);
	do {
		n = read(fd, buf_space(out, 65536), 65536);
		if (n < 0)
			return err_sys(e, "read %.150s", path);
		buf_grew(out, (size_t)n);
	} while (n > 0 && out->len <= TOML_MAX_BYTES); /* beyond that toml_parse() refuses */
	return 0;
}

static int take_file(struct config *c, const char *path, int fd, int project, struct err *e)
{
	struct config_file f = { .c = c, .path = path, .project = project, .e = e };
	auto_buf struct buf text = { 0 };
	struct toml doc;
	int rc;

	if (read_all(fd, path, &text, e) < 0)
		return -1;
	if (toml_parse(&doc, path, buf_str(&text), text.len, e) < 0) {
		hide_keys(e);
		return -1;
	}
	assert(c->nfiles < ARRAY_LEN(c->files));
	c->files[c->nfiles++] = config_copy(path);
	rc = take_table(&f, doc.root, "");
	toml_fini(&doc);
	return rc;
}

/* must_be: a missing file is an error. */
static int load_file(struct config *c, const char *path, int must_be, struct err *e)
{
	/* A pipe without a writer must not block this process. */
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && !must_be && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0)
		return err_sys(e, "open %.150s", path);
	return take_file(c, path, fd, 0, e);
}

/* atoll.toml in this folder or the nearest above. A file of another user is ignored: a user that
 * may write to /tmp must not change the settings of commands below it. */
static int load_project(struct config *c, const char *cwd, struct err *e)
{
	char dir[PATH_MAX], path[PATH_MAX + 16];
	struct stat st;

	if (cwd ? snprintf(dir, sizeof(dir), "%s", cwd) >= (int)sizeof(dir)
		: !getcwd(dir, sizeof(dir)))
		return 0; /* a working folder that no longer exists has no file */
	while (*dir == '/') {
		auto_fd int fd = -1;

		snprintf(path, sizeof(path), "%s/atoll.toml", dir[1] ? dir : "");
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0))
			return take_file(c, path, fd, 1, e);
		if (!dir[1])
			break;
		*strrchr(dir, '/') = 0;
		if (!*dir)
			strcpy(dir, "/");
	}
	return 0;
}

static const char *folder_var(const char *name) /* relative ones do not count */
{
	const char *value = getenv(name);

	return value && *value == '/' ? value : NULL;
}

static int load_user(struct config *c, struct err *e)
{
	const char *xdg = folder_var("XDG_CONFIG_HOME"), *state_dir = folder_var("HOME");
	char path[PATH_MAX];

	if (!xdg && !state_dir)
		return 0;
	if (snprintf(path, sizeof(path), "%s%s/atoll/config.toml", xdg ? xdg : state_dir,
		     xdg ? "" : "/.config") >= (int)sizeof(path))
		return 0;
	return load_file(c, path, 0, e);
}

static int load_files(struct config *c, const struct config_source *src, struct err *e)
{
	if (src->file)
		return load_file(c, src->file, 1, e);
	if (load_file(c, src->system_file ? src->system_file : "/etc/atoll/config.toml", 0, e) <
		    0 ||
	    load_user(c, e) < 0)
		return -1;
	return src->client ? load_project(c, src->cwd, e) : 0;
}

/* ---- the other sources ---- */

static int load_env(struct config *c, struct err *e)
{
	for (unsigned i = 0; i < CONFIG_NKEYS; i++) {
		const char *text = getenv(config_rows[i].env);

		/* An empty variable means: not set. */
		if (text && *text &&
		    config_set(c, (enum config_key)i, text, FROM_ENV, config_rows[i].env, e) < 0)
			return -1;
	}
	return 0;
}

/* A path in a flag is relative to the working folder, as for any command; a file has no such
 * folder. */
static int add_folder(struct buf *out, const char *path, struct err *e)
{
	char here[PATH_MAX];

	if (!*path || *path == '/')
		return 0;
	if (!getcwd(here, sizeof(here)))
		return err_sys(
			e, "'%.40s' is not an absolute path, and the working folder cannot be read",
			path);
	buf_printf(out, "%s/", strcmp(here, "/") == 0 ? "" : here);
	return 0;
}

/* A list's flag may be repeated; of others the last one counts. */
static int load_given(struct config *c, const struct config_source *src, struct err *e)
{
	for (unsigned i = 0; i < src->ngiven; i++) {
		enum config_key key = src->given[i].key;
		const struct config_value *old = &c->values[key];
		auto_buf struct buf text = { 0 };
		char where[64];

		if (config_rows[key].type == CONFIG_LIST && old->from == FROM_FLAG)
			buf_printf(&text, "%s,", old->text);
		if (config_rows[key].type == CONFIG_PATH &&
		    add_folder(&text, src->given[i].text, e) < 0)
			return err_in(e, "--%s", config_rows[key].flag);
		buf_puts(&text, src->given[i].text);
		snprintf(where, sizeof(where), "--%s", config_rows[key].flag);
		if (config_set(c, key, buf_str(&text), FROM_FLAG, where, e) < 0)
			return -1;
	}
	return 0;
}

static int load_defaults(struct config *c, struct err *e)
{
	for (unsigned i = 0; i < CONFIG_NKEYS; i++) {
		const char *text = config_rows[i].otherwise;

		if (config_set(c, (enum config_key)i, text && *text != '$' ? text : NULL,
			       FROM_DEFAULT, "default", e) < 0)
			return -1;
	}
	return 0;
}

/* Where this user keeps such things; NULL: nowhere. */
static const char *config_folder(const char *system, const char *var, const char *below_state_dir,
				 char *out, size_t size)
{
	const char *user = folder_var(var),
		   *state_dir = below_state_dir ? folder_var("HOME") : NULL;
	int n;

	if (geteuid() == 0)
		n = snprintf(out, size, "%s", system);
	else if (user)
		n = snprintf(out, size, "%s/atoll", user);
	else if (state_dir)
		n = snprintf(out, size, "%s/%s/atoll", state_dir, below_state_dir);
	else
		return NULL;
	return n < (int)size ? out : NULL;
}

/* Defaults that depend on the user and on other settings. */
static int fill_folders(struct config *c, struct err *e)
{
	char dir[PATH_MAX];

	if (!c->values[CONFIG_RUN].text &&
	    (run_dir_find(dir, sizeof(dir), e) < 0 ||
	     config_set(c, CONFIG_RUN, dir, FROM_DEFAULT, "default", e) < 0))
		return -1;
	if (!c->values[CONFIG_STATE].text &&
	    config_set(c, CONFIG_STATE,
		       config_folder("/var/lib/atoll", "XDG_STATE_HOME", ".local/state", dir,
				     sizeof(dir)),
		       FROM_DEFAULT, "default", e) < 0)
		return -1;
	if (!c->values[CONFIG_CLUSTER_SECRETS].text &&
	    config_folder("/etc/atoll", "XDG_CONFIG_HOME", ".config", dir, sizeof(dir) - 8) &&
	    config_set(c, CONFIG_CLUSTER_SECRETS, strcat(dir, "/cluster"), FROM_DEFAULT, "default",
		       e) < 0)
		return -1;
	if (c->values[CONFIG_SOCKET].text || !c->values[CONFIG_RUN].text ||
	    snprintf(dir, sizeof(dir), "%s/atoll.sock", c->values[CONFIG_RUN].text) >=
		    (int)sizeof(dir))
		return 0;
	return config_set(c, CONFIG_SOCKET, dir, FROM_DEFAULT, "default", e);
}

/* ---- what must hold between settings ---- */

static int config_clash(const struct config *c, enum config_key a, enum config_key b,
			const char *why, struct err *e)
{
	return err_set(e, ERR_INVALID, "%s (%.70s) and %s (%.70s): %s", config_rows[a].name,
		       c->values[a].where, config_rows[b].name, c->values[b].where, why);
}

/* A page of a box must not be of the same site as the web UI. */
static int config_check_sites(const struct config *c, struct err *e)
{
	for (const char *const *d = config_list(c, CONFIG_DOMAIN); *d; d++)
		for (const char *const *p = config_list(c, CONFIG_PREVIEW_DOMAIN); *p; p++) {
			const char *host = strncmp(*d, "*.", 2) == 0 ? *d + 2 : *d;

			if (site_is_shared(host, strlen(host), *p))
				return config_clash(
					c, CONFIG_DOMAIN, CONFIG_PREVIEW_DOMAIN,
					"browsers treat both as one site; pages of boxes need a "
					"registered domain of their own",
					e);
		}
	return 0;
}

static int check_together(const struct config *c, struct err *e)
{
	if (config_check_sites(c, e) < 0 || config_check_cluster(c, e) < 0)
		return -1;
	if (!config_text(c, CONFIG_TLS_CERT) != !config_text(c, CONFIG_TLS_KEY))
		return config_clash(c, CONFIG_TLS_CERT, CONFIG_TLS_KEY,
				    "one does not work without the other", e);
	if (config_number(c, CONFIG_DEFAULT_LIFETIME) > config_number(c, CONFIG_MAX_LIFETIME))
		return config_clash(c, CONFIG_DEFAULT_LIFETIME, CONFIG_MAX_LIFETIME,
				    "the default is above the maximum", e);
	/* A valid signature is not enough: a token that was issued for another service must not
	 * be accepted. */
	if (config_text(c, CONFIG_OIDC_ISSUER) && !config_text(c, CONFIG_OIDC_JWKS))
		return config_clash(c, CONFIG_OIDC_ISSUER, CONFIG_OIDC_JWKS,
				    "tokens need the public keys of the issuer", e);
	if (config_text(c, CONFIG_OIDC_JWKS) && !config_text(c, CONFIG_OIDC_ISSUER))
		return config_clash(
			c, CONFIG_OIDC_JWKS, CONFIG_OIDC_ISSUER,
			"the issuer of accepted tokens must be set, because one set of keys may sign for several issuers",
			e);
	if (config_text(c, CONFIG_OIDC_ISSUER) && !config_text(c, CONFIG_OIDC_AUDIENCE))
		return config_clash(
			c, CONFIG_OIDC_ISSUER, CONFIG_OIDC_AUDIENCE,
			"the audience must be set, so that tokens for other services are rejected",
			e);
	return 0;
}

int config_load(struct config *c, const struct config_source *src, struct err *e)
{
	*c = (struct config){ 0 };
	if (load_defaults(c, e) < 0 || load_files(c, src, e) < 0 ||
	    (!src->no_env && load_env(c, e) < 0) || load_given(c, src, e) < 0 ||
	    fill_folders(c, e) < 0 || check_together(c, e) < 0) {
		config_fini(c);
		return -1;
	}
	return 0;
}

void config_fini(struct config *c)
{
	for (unsigned i = 0; i < CONFIG_NKEYS; i++)
		value_fini(&c->values[i]);
	while (c->nfiles)
		free(c->files[--c->nfiles]);
	free(c->plans);
	*c = (struct config){ 0 };
}

/* ---- asking ---- */

const char *config_text(const struct config *c, enum config_key key)
{
	return c->values[key].text;
}

uint64_t config_number(const struct config *c, enum config_key key)
{
	enum config_type type = config_rows[key].type;

	assert(type == CONFIG_SIZE || type == CONFIG_TIME || type == CONFIG_COUNT ||
	       type == CONFIG_CPUS || type == CONFIG_RATE || type == CONFIG_CHOICE);
	return c->values[key].number;
}

int config_bool(const struct config *c, enum config_key key)
{
	assert(config_rows[key].type == CONFIG_BOOL);
	return c->values[key].number != 0;
}

const char *const *config_list(const struct config *c, enum config_key key)
{
	assert(config_rows[key].type == CONFIG_LIST);
	return (const char *const *)c->values[key].items;
}

const char *config_shown(const struct config *c, enum config_key key, char out[CONFIG_SHOWN])
{
	const char *text = c->values[key].text;

	if (!text)
		return strcpy(out, "");
	if (config_rows[key].type == CONFIG_SECRET)
		snprintf(out, CONFIG_SHOWN, "%.8s…", text);
	else
		snprintf(out, CONFIG_SHOWN, "%.*s", CONFIG_SHOWN - 1, text);
	return out;
}

unsigned config_from_args(const struct args *a, struct config_given *out, unsigned room)
{
	unsigned n = 0;

	for (unsigned i = 0; i < a->ngiven && n < room; i++)
		if (a->given[i].flag < CONFIG_NFLAGS)
			out[n++] = (struct config_given){ (enum config_key)a->given[i].flag,
							  a->given[i].text };
	return n;
}
