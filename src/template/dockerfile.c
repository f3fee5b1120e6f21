/* dockerfile.c - see dockerfile.h. One row of instructions[] for each instruction. */
#include "template/dockerfile.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/suggest.h"
#include "template/dockerfile_internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct dockerfile_stage *dockerfile_stage_now(struct dockerfile *d)
{
	return &d->stages[d->nstages - 1];
}

void dockerfile_note(struct dockerfile *d, const char *fmt, ...)
{
	auto_buf struct buf text = { 0 };
	va_list ap;

	if (json_array_size(d->notes) >= DOCKERFILE_NOTES)
		return;
	if (d->in.line)
		buf_printf(&text, "line %u: ", d->in.line);
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	json_array_append_new(d->notes, json_string(buf_str(&text)));
}

json_t *dockerfile_text_of(struct dockerfile *d, const char *word)
{
	auto_buf struct buf text = { 0 };
	struct err e;

	if (expand_word(&text, word, d->r.escape, &e) < 0) {
		dockerfile_error(d, "%s", e.msg);
		return NULL;
	}
	return json_string(buf_str(&text));
}

json_t *dockerfile_list(const char *p)
{
	json_t *list = *p == '[' ? json_loads(p, 0, NULL) : NULL, *v;
	size_t i;

	json_array_foreach(list, i, v) if (!json_is_string(v))
	{
		json_decref(list);
		return NULL;
	}
	return list;
}

static int dockerfile_check_args(struct dockerfile *d, const json_t *args)
{
	json_t *v;
	size_t i;

	if (json_array_size(args) > DEFINITION_ARGS)
		return dockerfile_error(d, "%zu words, of at most %d", json_array_size(args),
					DEFINITION_ARGS);
	json_array_foreach((json_t *)args, i, v) if (
		json_string_length(v) >
		DEFINITION_TEXT) return dockerfile_error(d, "a text of %zu bytes, of at most %d",
							 json_string_length(v), DEFINITION_TEXT);
	return 0;
}

int dockerfile_add_step(struct dockerfile *d, const char *type, json_t *take_args,
			json_t *take_further)
{
	json_t *step = json_pack("{s:s, s:o, s:I}", "type", type, "args", take_args, "line",
				 (json_int_t)d->in.line);

	if (take_further)
		json_object_update(step, take_further);
	json_decref(take_further);
	json_array_append_new(dockerfile_stage_now(d)->steps, step);
	if (++d->nsteps > DEFINITION_STEPS)
		return dockerfile_error(d, "more than %d steps", DEFINITION_STEPS);
	return dockerfile_check_args(d, take_args);
}

/* ---- flags ---- */

void dockerfile_flags_fini(struct dockerfile_flags *f)
{
	for (unsigned i = 0; i < f->n; i++)
		json_decref(f->v[i].value);
	f->n = 0;
}

static int dockerfile_flag_add(struct dockerfile *d, struct dockerfile_flags *f, const char *word,
			       const char *const *known)
{
	const char *name = word + 2, *eq = strchr(word, '=');
	size_t n = eq ? (size_t)(eq - name) : strlen(name);
	struct dockerfile_flag *flag = &f->v[f->n];
	const char *const *k = known;

	if (f->n == DOCKERFILE_FLAGS)
		return dockerfile_error(d, "more than %d flags", DOCKERFILE_FLAGS);
	snprintf(flag->name, sizeof(flag->name), "%.*s", (int)n, name);
	while (*k && strcmp(*k, flag->name) != 0)
		k++;
	if (!*k || n >= sizeof(flag->name)) {
		const char *near = suggest_nearest(flag->name, known);

		return dockerfile_error(d, "%s does not support --%s%s%s", buf_str(&d->in.name),
					flag->name, near ? "; did you mean --" : "",
					near ? near : "");
	}
	flag->value = NULL;
	if (eq && !(flag->value = dockerfile_text_of(d, eq + 1)))
		return -1;
	f->n++;
	return 0;
}

int dockerfile_flags_read(struct dockerfile *d, struct dockerfile_flags *f,
			  const char *const *known)
{
	auto_buf struct buf word = { 0 };
	const char *p = buf_str(&d->in.rest), *after = p;

	memset(f, 0, sizeof(*f));
	while (dockerfile_reader_word(&d->r, &after, &word) && !strncmp(buf_str(&word), "--", 2)) {
		p = after;
		if (word.len == 2)
			break;
		if (dockerfile_flag_add(d, f, buf_str(&word), known) < 0) {
			dockerfile_flags_fini(f);
			return -1;
		}
	}
	f->rest = p + strspn(p, " \t");
	return 0;
}

/* ---- commands ---- */

json_t *dockerfile_command(struct dockerfile *d, const char *p)
{
	const json_t *shell = dockerfile_stage_now(d)->shell;
	json_t *words = dockerfile_list(p);

	if (words)
		return json_pack("{s:o, s:b}", "words", words, "shell", 0);
	if (*p == '[' && p[strlen(p) - 1] == ']')
		dockerfile_note(d, "this list is not JSON, so a shell runs it: use double quotes");
	words = shell ? json_deep_copy(shell) : json_pack("[s, s]", "/bin/sh", "-c");
	json_array_append_new(words, json_string(p));
	return json_pack("{s:o, s:b}", "words", words, "shell", 1);
}

static void dockerfile_shell_word(struct buf *out, const char *word)
{
	if (*word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789_@%+:,./-")]) {
		buf_puts(out, word);
		return;
	}
	buf_putc(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *word);
	}
	buf_putc(out, '\'');
}

void dockerfile_shell_words(struct buf *out, const json_t *words)
{
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)words, i, v)
	{
		if (out->len)
			buf_putc(out, ' ');
		dockerfile_shell_word(out, json_string_value(v));
	}
}

/* The text of the shell form as it is, if /bin/sh runs it anyway. */
static void dockerfile_command_text(struct buf *out, const json_t *command)
{
	const json_t *words = json_object_get(command, "words");

	if (!out->len && json_is_true(json_object_get(command, "shell")) &&
	    json_array_size(words) == 3 &&
	    !strcmp(json_string_value(json_array_get(words, 0)), "/bin/sh"))
		buf_puts(out, json_string_value(json_array_get(words, 2)));
	else
		dockerfile_shell_words(out, words);
}

/* A shell or an interpreter without arguments waits for a person; without a terminal it ends at once. */
static int dockerfile_is_interactive(const char *start)
{
	static const char *const names[] = { "sh",   "bash", "ash",    "zsh", "python", "python3",
					     "node", "irb",  "php -a", "R",   "julia",  "lua" };
	const char *slash = strrchr(start, '/'), *name = slash ? slash + 1 : start;

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return 1;
	return 0;
}

/* ENTRYPOINT and CMD as one command. The shell form of ENTRYPOINT ignores CMD. */
static json_t *dockerfile_start(struct dockerfile *d, const struct dockerfile_stage *s)
{
	auto_buf struct buf text = { 0 };

	if (s->entrypoint)
		dockerfile_command_text(&text, s->entrypoint);
	if (s->cmd && !(s->entrypoint && json_is_true(json_object_get(s->entrypoint, "shell"))))
		dockerfile_command_text(&text, s->cmd);
	if (!text.len || !dockerfile_is_interactive(buf_str(&text)))
		return text.len ? json_string(buf_str(&text)) : NULL;
	dockerfile_note(d, "%s is for a person, so boxes start without a command", buf_str(&text));
	return NULL;
}

static int dockerfile_set_command(struct dockerfile *d, json_t **place)
{
	if (!d->in.rest.len)
		return dockerfile_error(d, "%s has no command", buf_str(&d->in.name));
	json_decref(*place);
	*place = dockerfile_command(d, buf_str(&d->in.rest));
	return 0;
}

static int dockerfile_cmd(struct dockerfile *d)
{
	return dockerfile_set_command(d, &dockerfile_stage_now(d)->cmd);
}

static int dockerfile_entrypoint(struct dockerfile *d)
{
	return dockerfile_set_command(d, &dockerfile_stage_now(d)->entrypoint);
}

static int dockerfile_shell(struct dockerfile *d)
{
	struct dockerfile_stage *s = dockerfile_stage_now(d);
	json_t *words = dockerfile_list(buf_str(&d->in.rest));

	if (!words || !json_array_size(words)) {
		json_decref(words);
		return dockerfile_error(d, "SHELL needs a list: SHELL [\"/bin/bash\", \"-c\"]");
	}
	json_decref(s->shell);
	s->shell = words;
	return 0;
}

/* Its command becomes the ready command: both succeed when the service answers. */
static int dockerfile_healthcheck(struct dockerfile *d)
{
	static const char *const known[] = { "interval",       "timeout", "start-period",
					     "start-interval", "retries", NULL };
	struct dockerfile_stage *s = dockerfile_stage_now(d);
	auto_buf struct buf word = { 0 }, text = { 0 };
	struct dockerfile_flags f;
	const char *p;
	json_t *command;

	if (dockerfile_flags_read(d, &f, known) < 0)
		return -1;
	dockerfile_flags_fini(&f);
	p = f.rest;
	dockerfile_reader_word(&d->r, &p, &word);
	p += strspn(p, " \t");
	json_decref(s->ready);
	s->ready = NULL;
	if (!strcasecmp(buf_str(&word), "NONE") && !*p)
		return 0;
	if (strcasecmp(buf_str(&word), "CMD") != 0 || !*p)
		return dockerfile_error(d, "type HEALTHCHECK CMD COMMAND, or HEALTHCHECK NONE");
	command = dockerfile_command(d, p);
	dockerfile_command_text(&text, command);
	json_decref(command);
	s->ready = json_string(buf_str(&text));
	return 0;
}

/* ---- stages ---- */

static int dockerfile_stage_find(const struct dockerfile *d, const char *name)
{
	for (unsigned i = d->nstages; i-- > 0;)
		if (!strcasecmp(d->stages[i].name, name))
			return (int)i;
	return -1;
}

static void dockerfile_stage_fini(struct dockerfile_stage *s)
{
	json_t *all[] = { s->from, s->steps,      s->shell, s->env,    s->arg,
			  s->cmd,  s->entrypoint, s->port,  s->labels, s->ready };

	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		json_decref(all[i]);
}

static const char *dockerfile_arch_name(const char *arch)
{
	return !strcmp(arch, "x86_64") ? "amd64" : !strcmp(arch, "aarch64") ? "arm64" : arch;
}

/* linux/ARCH[/VARIANT] must be this machine's. */
static int dockerfile_platform(struct dockerfile *d, const json_t *text)
{
	struct dockerfile_scope scope = { .d = d };
	json_t *value = dockerfile_expanded(d, text ? json_string_value(text) : "",
					    dockerfile_global, &scope);
	char arch[32];
	int same;

	if (!value)
		return -1;
	same = sscanf(json_string_value(value), "linux/%31[a-z0-9_]", arch) == 1 &&
	       !strcmp(dockerfile_arch_name(arch), d->arch);
	if (!same)
		dockerfile_error(d, "platform '%.40s' is not this machine's: linux/%s",
				 json_string_value(value), d->arch);
	json_decref(value);
	return same ? 0 : -1;
}

static int dockerfile_stage_name(struct dockerfile *d, struct dockerfile_stage *s, const char *name)
{
	size_t n = strlen(name);
	int bad = n >= sizeof(s->name) || !isalpha((unsigned char)*name);

	for (size_t i = 0; i < n && !bad; i++) {
		s->name[i] = (char)tolower((unsigned char)name[i]);
		bad = !isalnum((unsigned char)name[i]) && !strchr("-_.", name[i]);
	}
	if (bad || !strcasecmp(name, "scratch"))
		return dockerfile_error(
			d, "'%.40s' is not a name of a stage: a letter, then letters, digits, -_.",
			name);
	s->name[n] = 0;
	if (dockerfile_stage_find(d, s->name) >= 0)
		return dockerfile_error(d, "there is a stage named %s already", s->name);
	return 0;
}

/* A stage that continues another has its settings. */
static void dockerfile_stage_inherit(struct dockerfile_stage *s, const struct dockerfile_stage *of)
{
	json_object_update(s->env, of->env);
	json_object_update(s->labels, of->labels);
	s->cmd = json_incref(of->cmd);
	s->entrypoint = json_incref(of->entrypoint);
	s->port = json_incref(of->port);
	s->ready = json_incref(of->ready);
	s->shell = json_incref(of->shell);
}

/* FROM IMAGE [AS NAME]: what follows the flags. */
static int dockerfile_stage_begin(struct dockerfile *d, struct dockerfile_stage *s, const char *p)
{
	auto_buf struct buf image = { 0 }, as = { 0 }, name = { 0 }, more = { 0 };
	struct dockerfile_scope scope = { .d = d };
	json_t *text;

	if (!dockerfile_reader_word(&d->r, &p, &image))
		return dockerfile_error(d, "type FROM IMAGE or FROM IMAGE AS NAME");
	snprintf(s->name, sizeof(s->name), "%u", d->nstages);
	if (dockerfile_reader_word(&d->r, &p, &as) &&
	    (strcasecmp(buf_str(&as), "as") != 0 || !dockerfile_reader_word(&d->r, &p, &name) ||
	     dockerfile_reader_word(&d->r, &p, &more)))
		return dockerfile_error(d, "type FROM IMAGE or FROM IMAGE AS NAME");
	if (name.len && dockerfile_stage_name(d, s, buf_str(&name)) < 0)
		return -1;
	text = dockerfile_text_of(d, buf_str(&image));
	if (!text)
		return -1;
	s->from = dockerfile_expanded(d, json_string_value(text), dockerfile_global, &scope);
	json_decref(text);
	if (!s->from)
		return -1;
	if (!json_string_length(s->from))
		return dockerfile_error(
			d, "'%.40s' is empty: type ARG NAME=IMAGE before FROM, or --build-arg",
			buf_str(&image));
	return 0;
}

/* Proxies given as build args are set for every RUN, without an ARG. */
static int dockerfile_proxy_args(struct dockerfile *d)
{
	static const char *const names[] = { "HTTP_PROXY",  "http_proxy", "HTTPS_PROXY",
					     "https_proxy", "FTP_PROXY",  "ftp_proxy",
					     "NO_PROXY",    "no_proxy",   "ALL_PROXY",
					     "all_proxy" };
	json_t *pairs = json_array();

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		const char *given = json_string_value(json_object_get(d->o->args, names[i]));

		if (!given)
			continue;
		json_object_set_new(d->consumed, names[i], json_true());
		json_array_append_new(pairs, json_string(names[i]));
		json_array_append_new(pairs, dockerfile_quoted(given));
	}
	if (json_array_size(pairs))
		return dockerfile_add_step(d, "ARG", pairs, NULL);
	json_decref(pairs);
	return 0;
}

static int dockerfile_from(struct dockerfile *d)
{
	static const char *const known[] = { "platform", NULL };
	struct dockerfile_stage *s = &d->stages[d->nstages];
	struct dockerfile_flags f;
	int failed = 0;

	if (d->nstages == DEFINITION_STAGES)
		return dockerfile_error(d, "more than %d stages", DEFINITION_STAGES);
	if (dockerfile_flags_read(d, &f, known) < 0)
		return -1;
	for (unsigned i = 0; i < f.n && !failed; i++)
		failed = dockerfile_platform(d, f.v[i].value);
	dockerfile_flags_fini(&f);
	if (failed || dockerfile_stage_begin(d, s, f.rest) < 0) {
		json_decref(s->from);
		s->from = NULL;
		return -1;
	}
	s->parent = dockerfile_stage_find(d, json_string_value(s->from));
	s->steps = json_array();
	s->env = json_object();
	s->arg = json_object();
	s->labels = json_object();
	if (s->parent >= 0) {
		json_decref(s->from);
		s->from = json_string(d->stages[s->parent].name);
		dockerfile_stage_inherit(s, &d->stages[s->parent]);
	}
	d->nstages++;
	return dockerfile_proxy_args(d);
}

/* ---- the rest ---- */

static int dockerfile_one_word(struct dockerfile *d)
{
	json_t *text = dockerfile_text_of(d, buf_str(&d->in.rest));

	if (!text)
		return -1;
	if (!json_string_length(text)) {
		json_decref(text);
		return dockerfile_error(d, "type %s %s", buf_str(&d->in.name),
					buf_str(&d->in.name)[0] == 'U' ? "NAME" : "/FOLDER");
	}
	return dockerfile_add_step(d, buf_str(&d->in.name), json_pack("[o]", text), NULL);
}

static int dockerfile_port_of(struct dockerfile *d, const char *word, long *out)
{
	char *end;
	long port = strtol(word, &end, 10);

	if (end == word || port < 1 || port > 65535 || (*end && *end != '/' && *end != '-'))
		return dockerfile_error(d, "'%.40s' is not a port: type EXPOSE 8080", word);
	*out = !strcasecmp(end + strcspn(end, "/"), "/udp") ? 0 : port;
	return 0;
}

static int dockerfile_expose(struct dockerfile *d)
{
	struct dockerfile_stage *s = dockerfile_stage_now(d);
	auto_buf struct buf word = { 0 };
	const char *p = buf_str(&d->in.rest);

	if (!*p)
		return dockerfile_error(d, "type EXPOSE 8080");
	while (dockerfile_reader_word(&d->r, &p, &word)) {
		json_t *text = dockerfile_text_of(d, buf_str(&word)), *value = NULL;
		long port = 0;
		int failed;

		if (text)
			value = dockerfile_expanded(d, json_string_value(text), dockerfile_known,
						    s);
		failed = !value || dockerfile_port_of(d, json_string_value(value), &port) < 0;
		json_decref(text);
		json_decref(value);
		if (failed)
			return -1;
		if (port && !s->port)
			s->port = json_integer(port);
	}
	return 0;
}

static int dockerfile_without_effect(struct dockerfile *d)
{
	if (!d->in.rest.len)
		return dockerfile_error(d, "%s has no value", buf_str(&d->in.name));
	dockerfile_note(d, "%s has no effect", buf_str(&d->in.name));
	return 0;
}

static int dockerfile_onbuild(struct dockerfile *d)
{
	return dockerfile_error(d,
				"ONBUILD is not supported: write the instruction in the file that "
				"starts FROM this template");
}

static const struct dockerfile_row {
	const char *name;
	int (*run)(struct dockerfile *d);
} instructions[] = {
	{ "FROM", dockerfile_from },
	{ "RUN", dockerfile_run },
	{ "COPY", dockerfile_copy },
	{ "ADD", dockerfile_copy },
	{ "ENV", dockerfile_env },
	{ "ARG", dockerfile_arg },
	{ "WORKDIR", dockerfile_one_word },
	{ "USER", dockerfile_one_word },
	{ "CMD", dockerfile_cmd },
	{ "ENTRYPOINT", dockerfile_entrypoint },
	{ "EXPOSE", dockerfile_expose },
	{ "LABEL", dockerfile_label },
	{ "SHELL", dockerfile_shell },
	{ "HEALTHCHECK", dockerfile_healthcheck },
	{ "STOPSIGNAL", dockerfile_without_effect },
	{ "VOLUME", dockerfile_without_effect },
	{ "MAINTAINER", dockerfile_maintainer },
	{ "ONBUILD", dockerfile_onbuild },
};

static int dockerfile_unknown(struct dockerfile *d)
{
	const char *names[ARRAY_LEN(instructions) + 1] = { 0 }, *near;

	for (unsigned i = 0; i < ARRAY_LEN(instructions); i++)
		names[i] = instructions[i].name;
	near = suggest_nearest(buf_str(&d->in.name), names);
	if (near)
		return dockerfile_error(d, "unknown instruction %.30s; did you mean %s?",
					buf_str(&d->in.name), near);
	return dockerfile_error(d,
				"unknown instruction %.30s; a line that continues the one before "
				"needs a %c at that one's end",
				buf_str(&d->in.name), d->r.escape);
}

static int dockerfile_instruction(struct dockerfile *d)
{
	const char *name = buf_str(&d->in.name);

	for (unsigned i = 0; i < ARRAY_LEN(instructions); i++) {
		if (strcmp(name, instructions[i].name) != 0)
			continue;
		if (!d->nstages && strcmp(name, "FROM") != 0 && strcmp(name, "ARG") != 0)
			return dockerfile_error(
				d, "FROM must come before %s: type FROM base or FROM IMAGE", name);
		return instructions[i].run(d);
	}
	return dockerfile_unknown(d);
}

/* ---- the definition ---- */

static int dockerfile_target(struct dockerfile *d)
{
	int target;

	if (!d->o->target || !*d->o->target)
		return (int)d->nstages - 1;
	target = dockerfile_stage_find(d, d->o->target);
	if (target < 0)
		return err_set(d->e, ERR_INVALID, "%.60s: no stage named '%.40s'; the last is '%s'",
			       d->r.file, d->o->target, dockerfile_stage_now(d)->name);
	return target;
}

/* Stages come after all that they use, so one pass from the target down is enough. */
static void dockerfile_mark_needed(const struct dockerfile *d, unsigned char *needed, int target)
{
	needed[target] = 1;
	for (int i = target; i >= 0; i--) {
		const struct dockerfile_stage *s = &d->stages[i];

		if (!needed[i])
			continue;
		if (s->parent >= 0)
			needed[s->parent] = 1;
		for (int k = 0; k < i; k++)
			needed[k] |= s->uses[k];
	}
}

static void dockerfile_note_unused(struct dockerfile *d)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)d->o->args, name, v) if (!json_object_get(d->consumed, name))
		dockerfile_note(d, "build arg %.60s: no ARG in the file has this name", name);
}

static json_t *dockerfile_definition(struct dockerfile *d, int target)
{
	unsigned char needed[DEFINITION_STAGES] = { 0 };
	const struct dockerfile_stage *last = &d->stages[target];
	json_t *stages = json_array(), *doc, *start;

	d->in.line = 0; /* from here on, notes are about the file */
	start = dockerfile_start(d, last);
	dockerfile_mark_needed(d, needed, target);
	for (int i = 0; i <= target; i++) {
		const struct dockerfile_stage *s = &d->stages[i];

		if (needed[i])
			json_array_append_new(stages,
					      json_pack("{s:s, s:O, s:O}", "name", s->name, "from",
							s->from, "steps", s->steps));
	}
	doc = json_pack("{s:o, s:I}", "stages", stages, "target",
			(json_int_t)json_array_size(stages) - 1);
	if (start)
		json_object_set_new(doc, "start", start);
	/* The image that the stage starts from may have an ENTRYPOINT, for which these are the arguments. */
	if (start && last->cmd && !last->entrypoint)
		json_object_set(doc, "cmd", json_object_get(last->cmd, "words"));
	if (last->ready)
		json_object_set(doc, "ready", last->ready);
	if (last->port)
		json_object_set(doc, "port", last->port);
	if (json_object_size(last->labels))
		json_object_set(doc, "labels", last->labels);
	dockerfile_note_unused(d);
	if (json_array_size(d->notes))
		json_object_set(doc, "notes", d->notes);
	return doc;
}

static int dockerfile_read(struct dockerfile *d, json_t **out)
{
	const char *syntax = d->r.syntax, *known = strstr(syntax, "docker/dockerfile");
	int got, target;

	if (*syntax && (!known || (known > syntax && known[-1] != '/')))
		return err_set(d->e, ERR_INVALID,
			       "%.60s: syntax '%.60s' is not supported, only docker/dockerfile",
			       d->r.file, syntax);
	while ((got = dockerfile_reader_next(&d->r, &d->in, d->e)) > 0)
		if (dockerfile_instruction(d) < 0)
			return -1;
	if (got < 0)
		return -1;
	if (!d->nstages)
		return err_set(d->e, ERR_INVALID,
			       "%.60s: no FROM: the first line is FROM base or FROM IMAGE",
			       d->r.file);
	target = dockerfile_target(d);
	if (target < 0)
		return -1;
	*out = dockerfile_definition(d, target);
	return 0;
}

int dockerfile_parse(const char *text, size_t len, const struct dockerfile_options *o,
		     json_t **out_definition, struct err *e)
{
	const char *file = o->file ? o->file : "Dockerfile";
	auto_free struct dockerfile *d = NULL;
	int failed;

	if (len > DOCKERFILE_BYTES)
		return err_set(e, ERR_LIMIT, "%.60s has %zu bytes, of at most %d", file, len,
			       DOCKERFILE_BYTES);
	d = calloc(1, sizeof(*d));
	if (!d)
		abort();
	d->o = o;
	d->e = e;
	d->arch = o->arch ? o->arch :
#ifdef __aarch64__
			  "arm64";
#else
			  "amd64";
#endif
	d->globals = json_object();
	d->consumed = json_object();
	d->notes = json_array();
	failed = dockerfile_reader_init(&d->r, file, text, len, e) < 0 ||
		 dockerfile_read(d, out_definition) < 0;
	dockerfile_instruction_fini(&d->in);
	for (unsigned i = 0; i < d->nstages; i++)
		dockerfile_stage_fini(&d->stages[i]);
	json_decref(d->globals);
	json_decref(d->consumed);
	json_decref(d->notes);
	return failed ? -1 : 0;
}
