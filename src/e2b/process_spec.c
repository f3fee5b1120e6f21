/* process_spec.c - see process_spec.h. */
#include "e2b/process_spec.h"
#include "e2b/e2b.h"
#include "v1box/boxes.h"
#include "v1run/replay.h"
#include "client/box_handle.h"
#include "record/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT_HOME "/root"

/* ---- reading it ---- */

static int is_text(const json_t *v)
{
	return json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v);
}

static int read_command(struct process_spec *p, const json_t *config, struct err *e)
{
	const json_t *cmd = json_object_get(config, "cmd"), *args = json_object_get(config, "args");
	size_t n = json_array_size(args);

	if (!json_is_object(config))
		return err_set(e, ERR_INVALID, "process: is missing");
	if (!is_text(cmd) || !*json_string_value(cmd))
		return err_set(e, ERR_INVALID, "process.cmd: is missing");
	if (args && !json_is_null(args) && !json_is_array(args))
		return err_set(e, ERR_INVALID, "process.args: must be a list of texts");
	p->argv = calloc(n + 2, sizeof(*p->argv));
	if (!p->argv)
		abort();
	p->argv[0] = json_string_value(cmd);
	for (size_t i = 0; i < n; i++) {
		if (!is_text(json_array_get(args, i)))
			return err_set(e, ERR_INVALID, "process.args: must be a list of texts");
		p->argv[i + 1] = json_string_value(json_array_get(args, i));
	}
	return 0;
}

static int read_env(struct process_spec *p, const json_t *config, struct err *e)
{
	json_t *env = json_object_get(config, "envs"), *v;
	const char *name;

	if (!env || json_is_null(env))
		return 0;
	if (!json_is_object(env))
		return err_set(e, ERR_INVALID, "process.envs: must be an object of texts");
	json_object_foreach(env, name, v)
	{
		if (!is_text(v))
			return err_set(e, ERR_INVALID, "process.envs: '%.40s' must be a text",
				       name);
	}
	p->env = env;
	return box_check_env(env, e);
}

/* "~" is the home folder; relative paths start in the working folder. */
static int read_cwd(struct process_spec *p, const struct box *b, const json_t *config,
		    struct err *e)
{
	const json_t *cwd = json_object_get(config, "cwd");
	const char *home = e2b_home(b, p->root), *start = e2b_workdir(b, p->root),
		   *text = json_string_value(cwd);
	int n;

	if (cwd && !json_is_null(cwd) && !is_text(cwd))
		return err_set(e, ERR_INVALID, "process.cwd: must be a text");
	if (!text || !*text)
		n = snprintf(p->cwd, sizeof(p->cwd), "%s", start);
	else if (!strcmp(text, "~"))
		n = snprintf(p->cwd, sizeof(p->cwd), "%s", home);
	else if (*text == '/')
		n = snprintf(p->cwd, sizeof(p->cwd), "%s", text);
	else
		n = snprintf(p->cwd, sizeof(p->cwd), "%s/%s",
			     !strncmp(text, "~/", 2) ? home : start,
			     !strncmp(text, "~/", 2) ? text + 2 : text);
	return n < (int)sizeof(p->cwd) ? 0 : err_set(e, ERR_INVALID, "process.cwd: is too long");
}

static int read_side(const json_t *size, const char *name, uint16_t *out, struct err *e)
{
	const json_t *v = json_object_get(size, name);

	*out = 0;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > 10000)
		return err_set(e, ERR_INVALID, "pty.size.%s: must be a number up to 10000", name);
	*out = (uint16_t)json_integer_value(v);
	return 0;
}

static int read_rest(struct process_spec *p, const json_t *ask, struct err *e)
{
	const json_t *pty = json_object_get(ask, "pty"), *in = json_object_get(ask, "stdin"),
		     *tag = json_object_get(ask, "tag"), *size = json_object_get(pty, "size");

	p->pty = json_is_object(pty);
	p->stdin_open = !json_is_false(in);
	p->tag = json_string_value(tag);
	if (tag && !json_is_null(tag) && (!is_text(tag) || strlen(p->tag) > STORE_NAME))
		return err_set(e, ERR_INVALID, "tag: must be a text of up to %d bytes", STORE_NAME);
	if (in && !json_is_null(in) && !json_is_boolean(in))
		return err_set(e, ERR_INVALID, "stdin: must be true or false");
	if (read_side(size, "rows", &p->rows, e) < 0)
		return -1;
	return read_side(size, "cols", &p->cols, e);
}

int process_spec_read(struct process_spec *p, const struct box *b, const json_t *ask, struct err *e)
{
	const json_t *config = json_object_get(ask, "process");

	if (read_command(p, config, e) < 0 || read_env(p, config, e) < 0 ||
	    read_cwd(p, b, config, e) < 0)
		return -1;
	return read_rest(p, ask, e);
}

void process_spec_fini(struct process_spec *p)
{
	free(p->argv);
	p->argv = NULL;
}

/* ---- in our words ---- */

static const char *const root_env[] = {
	"PATH=" ROOT_HOME "/.local/bin:" BOX_PATH,
	"HOME=" ROOT_HOME,
	"USER=root",
	"LOGNAME=root",
	"SHELL=/bin/bash",
	"LANG=C.UTF-8",
	"NPM_CONFIG_PREFIX=" ROOT_HOME "/.local",
	BOX_NO_REGISTRY_ENV,
	NULL,
};

const char *const *process_spec_default_env(const struct process_spec *p)
{
	return p->root ? root_env : NULL;
}

const char **process_spec_env(const struct process_spec *p, struct buf *pool)
{
	size_t n = json_object_size(p->env), at = 0;
	const char **words = calloc(n + 1, sizeof(*words)), *name;
	json_t *v;

	if (!words)
		abort();
	json_object_foreach(p->env, name, v)
	{
		buf_printf(pool, "%s=%s", name, json_string_value(v));
		buf_add(pool, "", 1);
	}
	for (size_t i = 0; i < n; i++, at += strlen(pool->p + at) + 1)
		words[i] = pool->p + at;
	return words;
}

json_t *process_spec_request(const struct process_spec *p, const struct box *b)
{
	json_t *body = json_object(), *command = json_array(), *request;

	for (const char *const *word = p->argv; *word; word++)
		json_array_append_new(command, json_string(*word));
	json_object_set_new(body, "command", command);
	json_object_set_new(body, "cwd", json_text(p->cwd));
	if (p->env)
		json_object_set(body, "env", p->env);
	if (p->root)
		json_object_set_new(body, "user", json_string("root"));
	if (p->wall_ms)
		json_object_set_new(body, "timeout_ms", json_integer((json_int_t)p->wall_ms));
	if (p->pty || p->stdin_open)
		json_object_set_new(body, "open_stdin", json_true());
	request = replay_request(body, b, NULL);
	json_decref(body);
	return request;
}
