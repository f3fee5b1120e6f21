/* dockerfile_steps.c - the instructions RUN, COPY and ADD; see dockerfile.h. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "template/dockerfile_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *dockerfile_value(const struct dockerfile_flag *f)
{
	return f->value ? json_string_value(f->value) : "";
}

/* ---- RUN --mount ---- */

struct dockerfile_mount {
	char type[16], id[64], target[256], env[64], source[256], from[64];
	int required;
};

static int dockerfile_mount_key(struct dockerfile *d, struct dockerfile_mount *m, const char *key,
				const char *value)
{
	static const char *const known[] = { "type",        "id",       "target",    "dst",
					     "destination", "env",      "from",      "source",
					     "src",         "required", "mode",      "uid",
					     "gid",         "sharing",  "ro",        "readonly",
					     "rw",          "size",     "readwrite", NULL };
	const struct {
		const char *key;
		char *place;
		size_t room;
	} places[] = {
		{ "type", m->type, sizeof(m->type) },
		{ "id", m->id, sizeof(m->id) },
		{ "target", m->target, sizeof(m->target) },
		{ "dst", m->target, sizeof(m->target) },
		{ "destination", m->target, sizeof(m->target) },
		{ "env", m->env, sizeof(m->env) },
		{ "from", m->from, sizeof(m->from) },
		{ "source", m->source, sizeof(m->source) },
		{ "src", m->source, sizeof(m->source) },
	};
	const char *const *k = known;

	while (*k && strcmp(*k, key) != 0)
		k++;
	if (!*k)
		return dockerfile_error(d, "--mount does not have '%.20s'", key);
	if (!strcmp(key, "required"))
		m->required = !*value || !strcasecmp(value, "true") || !strcmp(value, "1");
	for (unsigned i = 0; i < ARRAY_LEN(places); i++) {
		if (strcmp(key, places[i].key) != 0)
			continue;
		if (strlen(value) >= places[i].room)
			return dockerfile_error(d, "--mount: %s is longer than %zu bytes", key,
						places[i].room - 1);
		strcpy(places[i].place, value);
	}
	return 0;
}

/* type=secret,id=token: pairs with commas between them. */
static int dockerfile_mount_read(struct dockerfile *d, struct dockerfile_mount *m, const char *text)
{
	auto_free char *copy = strdup(text);
	char *rest = copy, *pair;

	*m = (struct dockerfile_mount){ .type = "bind" };
	while ((pair = strsep(&rest, ",")) != NULL) {
		char *eq = strchr(pair, '=');

		if (eq)
			*eq++ = 0;
		if (dockerfile_mount_key(d, m, pair, eq ? eq : "") < 0)
			return -1;
	}
	return 0;
}

static int dockerfile_secret_name(const char *id)
{
	size_t n = 0;

	while (isalnum((unsigned char)id[n]) || (id[n] && strchr("_.-", id[n])))
		n++;
	return n > 0 && !id[n] && *id != '.';
}

static void dockerfile_shell_quote(struct buf *out, const char *word)
{
	auto_buf struct buf quoted = { 0 };
	json_t *words = json_pack("[s]", word);

	dockerfile_shell_words(&quoted, words);
	buf_puts(out, buf_str(&quoted));
	json_decref(words);
}

/* The secret is a file in /run/secrets. Another path is a link to it during the command, a variable is set before it. */
static void dockerfile_secret_setup(struct buf *out, const struct dockerfile_mount *m)
{
	auto_buf struct buf file = { 0 }, target = { 0 };

	buf_printf(&file, "/run/secrets/%s", m->id);
	dockerfile_shell_quote(&target, m->target);
	if (m->required)
		buf_printf(
			out,
			"[ -e %s ] || { echo 'secret %s is required: build with --secret id=%s,src=FILE' >&2; exit 1; }\n",
			buf_str(&file), m->id, m->id);
	if (*m->env)
		buf_printf(out, "[ ! -e %s ] || { %s=$(cat %s); export %s; }\n", buf_str(&file),
			   m->env, buf_str(&file), m->env);
	if (*m->target && strcmp(m->target, buf_str(&file)) != 0)
		buf_printf(
			out,
			"[ ! -e %s ] || { mkdir -p -- \"$(dirname -- %s)\" && ln -sfn %s %s || exit 1; }\n",
			buf_str(&file), buf_str(&target), buf_str(&file), buf_str(&target));
}

static int dockerfile_mount_secret(struct dockerfile *d, struct dockerfile_mount *m,
				   json_t *secrets, struct buf *before, struct buf *links)
{
	const char *slash = strrchr(m->target, '/');
	char standard[96];

	if (!*m->id && !*m->env)
		snprintf(m->id, sizeof(m->id), "%.63s", slash ? slash + 1 : m->target);
	else if (!*m->id)
		snprintf(m->id, sizeof(m->id), "%s", m->env);
	if (!dockerfile_secret_name(m->id))
		return dockerfile_error(d, "'%.40s' is not an id of a secret: type id=NAME", m->id);
	if (strchr(m->target, '$'))
		return dockerfile_error(d, "target= of a secret has no variables");
	if (*m->env && !expand_is_name(m->env))
		return dockerfile_error(d, "'%.40s' is not a name of a variable", m->env);
	snprintf(standard, sizeof(standard), "/run/secrets/%s", m->id);
	json_array_append_new(secrets, json_string(m->id));
	dockerfile_secret_setup(before, m);
	if (*m->target && strcmp(m->target, standard) != 0) {
		buf_puts(links, links->len ? " " : "rm -f -- ");
		dockerfile_shell_quote(links, m->target);
	}
	return 0;
}

static int dockerfile_mount(struct dockerfile *d, const char *text, json_t *secrets,
			    struct buf *before, struct buf *links)
{
	struct dockerfile_mount m;

	if (dockerfile_mount_read(d, &m, text) < 0)
		return -1;
	if (!strcmp(m.type, "secret"))
		return dockerfile_mount_secret(d, &m, secrets, before, links);
	if (!strcmp(m.type, "cache") || !strcmp(m.type, "tmpfs")) {
		dockerfile_note(d, "a mount of type %s has no effect: %s is part of the image",
				m.type, *m.target ? m.target : "the folder");
		return 0;
	}
	if (!strcmp(m.type, "bind"))
		return dockerfile_error(d,
					"a mount of type bind is not supported: before RUN, type "
					"COPY %s%s%s%.40s %.40s",
					*m.from ? "--from=" : "", m.from, *m.from ? " " : "",
					*m.source ? m.source : ".", *m.target ? m.target : ".");
	return dockerfile_error(
		d, "a mount of type '%.15s' is not supported, only secret and cache", m.type);
}

/* ---- RUN ---- */

/* A delimiter that is no line of the text. */
static void dockerfile_delimiter(const char *text, char out[32])
{
	for (unsigned i = 0;; i++) {
		snprintf(out, 32, "END_OF_SCRIPT_%u", i);
		if (!strstr(text, out))
			return;
	}
}

/* A heredoc alone is the script; with #! it is a program. Otherwise the shell reads the heredocs itself. */
static void dockerfile_run_heredocs(struct dockerfile *d, const char *p, struct buf *out)
{
	const struct dockerfile_heredoc *h = d->in.heredocs;
	int alone = d->in.nheredocs == 1 && !strncmp(p, "<<", 2) && !p[strcspn(p, " \t")];
	char delimiter[32];

	if (!alone) {
		buf_puts(out, p);
		for (unsigned i = 0; i < d->in.nheredocs; i++)
			buf_printf(out, "\n%s%s", buf_str(&h[i].text), h[i].name);
		if (d->in.nheredocs)
			buf_putc(out, '\n');
	} else if (strncmp(buf_str(&h->text), "#!", 2) != 0) {
		buf_puts(out, buf_str(&h->text));
	} else {
		dockerfile_delimiter(buf_str(&h->text), delimiter);
		buf_printf(
			out,
			"script=$(mktemp) && cat >\"$script\" <<'%s'\n%s%s\n"
			"chmod +x \"$script\" && \"$script\"; status=$?; rm -f \"$script\"; exit $status\n",
			delimiter, buf_str(&h->text), delimiter);
	}
}

struct dockerfile_run_flags {
	json_t *secrets, *further;
	struct buf before, links;
};

static int dockerfile_run_flag(struct dockerfile *d, struct dockerfile_run_flags *x,
			       const struct dockerfile_flag *f)
{
	const char *value = dockerfile_value(f);

	if (!strcmp(f->name, "mount"))
		return dockerfile_mount(d, value, x->secrets, &x->before, &x->links);
	if (!strcmp(f->name, "network")) {
		if (!strcmp(value, "none"))
			json_object_set_new(x->further, "network", json_false());
		else if (strcmp(value, "default") != 0)
			return dockerfile_error(d, "--network can be none or default, not '%.20s'",
						value);
		return 0;
	}
	if (strcmp(value, "sandbox") != 0)
		return dockerfile_error(d, "--security can be sandbox, not '%.20s'", value);
	return 0;
}

/* The exec form has no shell that could set up what a flag asks for. */
static int dockerfile_run_exec(struct dockerfile *d, struct dockerfile_run_flags *x, json_t *words)
{
	if (!json_array_size(words) || x->before.len) {
		json_decref(words);
		return x->before.len
			       ? dockerfile_error(d, "target=, env= and required= of a secret need "
						     "the shell form: RUN --mount=... COMMAND")
			       : dockerfile_error(d, "RUN has an empty list: type RUN COMMAND");
	}
	json_object_set_new(x->further, "exec", json_true());
	return dockerfile_add_step(d, "RUN", words, json_incref(x->further));
}

static int dockerfile_run_command(struct dockerfile *d, struct dockerfile_run_flags *x,
				  const char *p)
{
	const struct dockerfile_stage *s = dockerfile_stage_now(d);
	auto_buf struct buf text = { 0 };
	json_t *words;

	if (json_array_size(x->secrets))
		json_object_set(x->further, "secrets", x->secrets);
	if (!*p)
		return dockerfile_error(d, "RUN has no command: type RUN COMMAND");
	words = d->in.nheredocs ? NULL : dockerfile_list(p);
	if (words)
		return dockerfile_run_exec(d, x, words);
	if (x->links.len) {
		buf_puts(&text, "trap ");
		dockerfile_shell_quote(&text, buf_str(&x->links));
		buf_puts(&text, " EXIT\n");
	}
	buf_puts(&text, buf_str(&x->before));
	dockerfile_run_heredocs(d, p, &text);
	if (s->shell)
		json_object_set(x->further, "shell", s->shell);
	return dockerfile_add_step(d, "RUN", json_pack("[s]", buf_str(&text)),
				   json_incref(x->further));
}

int dockerfile_run(struct dockerfile *d)
{
	static const char *const known[] = { "mount", "network", "security", NULL };
	struct dockerfile_run_flags x = { 0 };
	struct dockerfile_flags f;
	int failed = 0;

	if (dockerfile_flags_read(d, &f, known) < 0)
		return -1;
	x.secrets = json_array();
	x.further = json_object();
	for (unsigned i = 0; i < f.n && !failed; i++)
		failed = dockerfile_run_flag(d, &x, &f.v[i]);
	if (!failed)
		failed = dockerfile_run_command(d, &x, f.rest);
	dockerfile_flags_fini(&f);
	json_decref(x.secrets);
	json_decref(x.further);
	buf_fini(&x.before);
	buf_fini(&x.links);
	return failed;
}

/* ---- COPY and ADD ---- */

static int dockerfile_copy_from(struct dockerfile *d, json_t *further, const char *name)
{
	struct dockerfile_stage *now = dockerfile_stage_now(d);

	if (strchr(name, '$'))
		return dockerfile_error(
			d, "--from has no variables: type FROM IMAGE AS NAME, then --from=NAME");
	for (unsigned i = 0; i + 1 < d->nstages; i++)
		if (!strcasecmp(d->stages[i].name, name) ||
		    (isdigit((unsigned char)*name) && !name[strspn(name, "0123456789")] &&
		     strtoul(name, NULL, 10) == i)) {
			now->uses[i] = 1;
			json_object_set_new(further, "from", json_string(d->stages[i].name));
			return 0;
		}
	if (!*name || !name[strspn(name, "0123456789")])
		return dockerfile_error(d, "no stage '%.20s' comes before this one", name);
	json_object_set_new(further, "from", json_string(name));
	return 0;
}

static int dockerfile_copy_mode(struct dockerfile *d, json_t *further, const char *text)
{
	json_t *mode = dockerfile_expanded(d, text, dockerfile_known, dockerfile_stage_now(d));
	const char *value = mode ? json_string_value(mode) : "";
	size_t n = strlen(value);
	int bad = n < 3 || n > 4 || value[strspn(value, "01234567")];

	if (mode && bad)
		dockerfile_error(d, "--chmod is '%.20s': type three or four octal digits, 0755",
				 value);
	if (mode && !bad)
		json_object_set(further, "mode", mode);
	json_decref(mode);
	return bad ? -1 : 0;
}

static int dockerfile_copy_flag(struct dockerfile *d, json_t *further,
				const struct dockerfile_flag *f)
{
	const char *value = dockerfile_value(f);

	if (!strcmp(f->name, "link"))
		return 0; /* every step is a layer of its own */
	if (!*value)
		return dockerfile_error(d, "--%s has no value", f->name);
	if (!strcmp(f->name, "from"))
		return dockerfile_copy_from(d, further, value);
	if (!strcmp(f->name, "chmod"))
		return dockerfile_copy_mode(d, further, value);
	json_object_set_new(further, "owner", json_string(value));
	return 0;
}

/* The words as texts: from the list in brackets, or separated by blanks. NULL: the error is set. */
static json_t *dockerfile_copy_words(struct dockerfile *d, const char *p)
{
	json_t *words = json_array(), *list = dockerfile_list(p), *text;
	auto_buf struct buf word = { 0 };
	size_t i = 0;

	for (;;) {
		if (list ? i >= json_array_size(list) : !dockerfile_reader_word(&d->r, &p, &word))
			break;
		text = dockerfile_text_of(d, list ? json_string_value(json_array_get(list, i++))
						  : buf_str(&word));
		if (!text) {
			json_decref(words);
			words = NULL;
			break;
		}
		json_array_append_new(words, text);
	}
	json_decref(list);
	return words;
}

static int dockerfile_is_url(const char *source)
{
	return !strncasecmp(source, "http://", 7) || !strncasecmp(source, "https://", 8) ||
	       !strncasecmp(source, "git@", 4) || !strncasecmp(source, "git://", 6) ||
	       !strncasecmp(source, "ssh://", 6);
}

/* Its sources that are files. Heredocs are removed from the words. */
static int dockerfile_copy_files(struct dockerfile *d, const json_t *words, json_t *files)
{
	size_t last = json_array_size(words) - 1;

	for (size_t i = 0; i < last; i++) {
		const char *source = json_string_value(json_array_get(words, i));

		if (d->in.nheredocs && !strncmp(source + strspn(source, "0123456789"), "<<", 2))
			continue;
		if (dockerfile_is_url(source))
			return dockerfile_error(
				d, "the source is a URL: type RUN curl -fsSL -o %.40s URL",
				json_string_value(json_array_get(words, last)));
		json_array_append(files, json_array_get(words, i));
	}
	return 0;
}

/* A step for each heredoc: its name, the destination, its text. */
static int dockerfile_copy_heredocs(struct dockerfile *d, const json_t *further, const char *to)
{
	for (unsigned i = 0; i < d->in.nheredocs; i++) {
		const struct dockerfile_heredoc *h = &d->in.heredocs[i];
		auto_buf struct buf text = { 0 };
		json_t *with = json_deep_copy(further);

		if (h->quoted)
			expand_quote(&text, buf_str(&h->text));
		else
			buf_puts(&text, buf_str(&h->text));
		json_object_set_new(with, "content", json_string(buf_str(&text)));
		if (dockerfile_add_step(d, buf_str(&d->in.name), json_pack("[s, s]", h->name, to),
					with) < 0)
			return -1;
	}
	return 0;
}

static int dockerfile_copy_steps(struct dockerfile *d, const json_t *further, const json_t *words)
{
	json_t *files = json_array();
	const char *name = buf_str(&d->in.name), *to;
	size_t n = json_array_size(words);

	if (n < 2) {
		json_decref(files);
		return dockerfile_error(d, "type %s SOURCE... DESTINATION", name);
	}
	to = json_string_value(json_array_get(words, n - 1));
	if (n > 2 && (!*to || to[strlen(to) - 1] != '/') && strcmp(to, ".") != 0 &&
	    !strchr(to, '$')) {
		json_decref(files);
		return dockerfile_error(
			d, "with several sources the destination is a folder: type %.40s/", to);
	}
	if (dockerfile_copy_files(d, words, files) < 0) {
		json_decref(files);
		return -1;
	}
	if (json_array_size(files)) {
		json_array_append_new(files, json_string(to));
		if (dockerfile_add_step(d, name, files, json_deep_copy(further)) < 0)
			return -1;
	} else {
		json_decref(files);
	}
	return dockerfile_copy_heredocs(d, further, to);
}

int dockerfile_copy(struct dockerfile *d)
{
	static const char *const known_copy[] = { "from", "chown", "chmod", "link", NULL };
	static const char *const known_add[] = { "chown", "chmod", "link", NULL };
	json_t *further, *words;
	struct dockerfile_flags f;
	int failed = 0;

	if (dockerfile_flags_read(d, &f, *buf_str(&d->in.name) == 'A' ? known_add : known_copy) < 0)
		return -1;
	further = json_object();
	for (unsigned i = 0; i < f.n && !failed; i++)
		failed = dockerfile_copy_flag(d, further, &f.v[i]);
	words = failed ? NULL : dockerfile_copy_words(d, f.rest);
	failed = !words || dockerfile_copy_steps(d, further, words) < 0;
	dockerfile_flags_fini(&f);
	json_decref(further);
	json_decref(words);
	return failed ? -1 : 0;
}
