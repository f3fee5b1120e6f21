/* context_driver.c - the interpreter of a context: it starts, ends, and is restarted. */
#include "notebook/context_internal.h"
#include "base/cleanup.h"
#include "lang/driver.h"
#include "lang/lang.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES = 4 << 20 }; /* of each stream, for readers that reconnect */

/* ---- its beginning ---- */

static const char **env_words(const json_t *env, struct buf *pool)
{
	const char **words = calloc(json_object_size(env) + 1, sizeof(*words)), *name;
	size_t n = 0, at = 0;
	json_t *v;

	if (!words)
		abort();
	json_object_foreach((json_t *)env, name, v)
	{
		buf_printf(pool, "%s=%s", name, json_string_value(v));
		buf_add(pool, "", 1);
	}
	for (; n < json_object_size(env); n++, at += strlen(pool->p + at) + 1)
		words[n] = pool->p + at;
	return words;
}

static int start_driver(struct context *c, struct err *e)
{
	const struct driver *d = driver_of(c->row.language);
	json_t *env = c->row.env ? json_loads(c->row.env, 0, NULL) : NULL;
	auto_buf struct buf pool = { 0 };
	auto_free const char **words = env_words(env, &pool);
	const char *argv[DRIVER_WORDS];
	struct exec_spec want = {
		.argv = argv,
		.env = words,
		.cwd = c->row.cwd && *c->row.cwd ? c->row.cwd : NULL,
		.tag = c->row.id,
		.kind = STORE_RUN_EXEC,
		.log_bytes = LOG_BYTES,
		.channel = 1,
		.warm = d->warm,
	};
	struct exec *r;
	int rc;

	json_decref(env);
	driver_words(d, c->row.language, argv);
	exec_reader_init(&c->reader, c->box->fleet, &context_reader_on);
	c->reader.streams = CELL_STREAMS;
	rc = exec_launch(c->box, &want, &c->reader, &r, e);
	if (rc < 0)
		return -1;
	c->tapped = 1;
	r->user = c;
	r->on_told = context_told;
	c->said_before = 0;
	c->skip_number = 0;
	buf_cut(&c->early_stderr, 0);
	c->talk.lost = 0;
	buf_cut(&c->talk.line, 0);
	memset(c->at, 0, sizeof(c->at));
	c->line_at = 0;
	memset(c->row.from, 0, sizeof(c->row.from));
	c->row.said = 0;
	c->born = c->row.cell;
	c->row.began_ns = c->row.deadline_ns = 0; /* no cell of this driver yet */
	memcpy(c->row.run, r->id, sizeof(c->row.run));
	c->row.ref = r->ref;
	context_set_clock(c);
	return 0;
}

/* ---- its end ---- */

void context_hang_up(struct context *c)
{
	struct exec *r = context_run_of(c);

	if (r && r->user == c) {
		r->on_told = NULL;
		r->user = NULL;
	}
	if (c->tapped)
		exec_reader_close(&c->reader);
	c->tapped = 0;
}

void context_kill_driver(struct context *c)
{
	struct exec *r = context_run_of(c);

	if (r)
		exec_send_signal(r, SIGKILL);
}

static char *driver_copy(const char *s)
{
	char *c = s ? strdup(s) : NULL;

	if (s && !c)
		abort();
	return c;
}

static void set_end(struct context *c, const char *cause, const char *why, const char *hint)
{
	snprintf(c->end.cause, sizeof(c->end.cause), "%s", cause ? cause : "");
	free(c->end.why);
	free(c->end.hint);
	c->end.why = driver_copy(why);
	c->end.hint = driver_copy(hint);
}

static json_t *end_json(const struct context *c, const char *status)
{
	return json_pack("{s:s, s:s, s:s?, s:s?}", "status", status, "cause", c->end.cause,
			 "message", c->end.why, "hint", c->end.hint);
}

/* It runs no more cells. */
void context_die(struct context *c, const char *cause, const char *why, const char *hint)
{
	const char *status = c->killing ? "killed" : "died";
	int never_ready = c->state == CONTEXT_STARTING;

	set_end(c, c->killing ? c->killing : cause, why, hint);
	context_hang_up(c);
	timer_clear(&c->clock);
	if (c->state != CONTEXT_DEAD)
		context_become(c, CONTEXT_DEAD);
	/* A cell that had ended before a restart stays ended, even if its driver has ended
	 * since. */
	if (c->current)
		context_end_cell(c, c->row.status[0] ? json_pack("{s:s}", "status", c->row.status)
						     : end_json(c, status));
	c->killing = NULL;
	context_end_queue(c, c->end.cause,
			  never_ready && c->end.why ? c->end.why
						    : "its context died before its turn came");
	context_tell_waiters(c);
}

/* ---- made, made anew, removed ---- */

void context_start_again(struct context *c)
{
	struct err e;

	c->restarting = 0;
	if (start_driver(c, &e) < 0) {
		context_die(c, "host", e.msg, NULL);
		return;
	}
	context_write_row(c);
}

/* A box has the host's programs; packages of its own may add more, which the start of the driver
 * will show. */
static int is_installed(const struct box *b, const char *language, struct err *e)
{
	const struct lang *l = lang_named(!strcmp(language, "jshell") ? "java" : language);
	auto_buf struct buf how = { 0 };

	if (!l || b->nlayers || lang_present(l))
		return 1;
	lang_install(l, &how);
	err_set(e, ERR_NOT_FOUND, "language: %s is not installed on this host: %s", l->name,
		buf_str(&how));
	return 0;
}

int context_new(struct box *b, const struct context_want *want, struct context **out, struct err *e)
{
	struct context *c;

	if (!driver_of(want->language))
		return err_set(e, ERR_INVALID,
			       "language: there is no interpreter of '%.40s' that keeps its state",
			       want->language);
	if (!is_installed(b, want->language, e))
		return -1;
	if (b->ncontexts >= CONTEXT_MAX)
		return err_set(e, ERR_LIMIT, "box %s already has %d contexts, the maximum",
			       b->row.id, CONTEXT_MAX);
	c = context_add(b);
	if (id_new(c->row.id, e) < 0) {
		context_free(c);
		return -1;
	}
	memcpy(c->row.box, b->row.id, sizeof(c->row.box));
	snprintf(c->row.language, sizeof(c->row.language), "%s", want->language);
	c->row.standing = want->standing;
	c->row.created_ns = fleet_now_ns();
	c->row.cwd = driver_copy(want->cwd ? want->cwd : "");
	c->row.env = want->env ? json_dumps(want->env, JSON_COMPACT) : NULL;
	if (start_driver(c, e) < 0 || store_context_insert(b->fleet->store, &c->row, e) < 0) {
		context_kill_driver(c);
		context_free(c);
		return -1;
	}
	*out = c;
	return 0;
}

int context_restart(struct context *c, struct err *e)
{
	if (c->box->state != BOX_RUNNING)
		return err_set(e, ERR_CONFLICT, "box %s is %s", c->row.box,
			       box_state_name(c->box->state));
	set_end(c, "restart", "its context was restarted", NULL);
	if (c->current)
		context_end_cell(c, end_json(c, "killed"));
	context_end_queue(c, "restart", "its context was restarted before its turn came");
	if (c->state != CONTEXT_STARTING)
		context_become(c, CONTEXT_STARTING);
	context_set_clock(c);
	c->killing = NULL;
	if (c->tapped && context_run_of(c)) {
		c->restarting = 1;
		context_kill_driver(c);
		return 0;
	}
	context_hang_up(c);
	context_start_again(c);
	if (c->state == CONTEXT_DEAD)
		return err_set(e, ERR_CONFLICT, "%s", c->end.why ? c->end.why : "it did not start");
	return 0;
}

void context_end(struct context *c)
{
	struct err e;

	context_kill_driver(c);
	c->killing = "removed";
	c->restarting = 0;
	context_die(c, "removed", "its context was removed", NULL);
	(void)!store_context_delete(c->box->fleet->store, c->row.id, &e);
	context_free(c);
}
