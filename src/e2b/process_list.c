/* process_list.c - see process.h: lists programs, sends signals to them and resizes their
 * terminals. */
#include "base/cleanup.h"
#include "e2b/process.h"
#include "notebook/context.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- which one ---- */

int process_named(struct call *c, const json_t *ask, struct process_name *out)
{
	const json_t *by = json_object_get(ask, "process"), *pid = json_object_get(by, "pid"),
		     *tag = json_object_get(by, "tag");

	*out = (struct process_name){ .tag = "" };
	if (json_is_integer(pid) && json_integer_value(pid) > 0 &&
	    json_integer_value(pid) <= INT_MAX) {
		out->pid = (int)json_integer_value(pid);
		return 0;
	}
	if (!pid && json_is_string(tag) && json_string_length(tag)) {
		out->tag = json_string_value(tag);
		return 0;
	}
	connect_fail(c, CONNECT_INVALID, "process: needs a pid or a tag");
	return -1;
}

/* A driver is the interpreter of a context, not a program of the client. */
static int is_driver(const struct box *b, const struct exec *r)
{
	for (const struct context *x = b->contexts; x; x = x->next)
		if (!strcmp(x->row.id, r->tag))
			return 1;
	return 0;
}

struct exec *process_find(const struct box *b, const struct process_name *name)
{
	struct exec *r = b->runs;

	while (r && (r->over || r->pid <= 0 ||
		     (name->pid ? r->pid != name->pid : strcmp(r->tag, name->tag) != 0)))
		r = r->next;
	return r;
}

void process_missing(struct call *c, const struct process_name *name)
{
	if (name->pid)
		connect_fail(c, CONNECT_NOT_FOUND, "process with pid %d not found", name->pid);
	else
		connect_fail(c, CONNECT_NOT_FOUND, "process with tag '%.100s' not found",
			     name->tag);
}

/* ---- a box that was taken over ---- */

struct interpreter_waiting {
	struct exec_input_wait told;
	struct call *call;
	void (*again)(struct call *c);
};

static void processes_told(struct exec_input_wait *w, int closed)
{
	struct interpreter_waiting *x = loop_owner(w, struct interpreter_waiting, told);
	struct call *c = x->call;

	(void)closed;
	c->drop = NULL;
	c->state = NULL;
	x->again(c);
}

static void stop_waiting(struct call *c)
{
	exec_input_cancel(&((struct interpreter_waiting *)c->state)->told);
}

int process_wait(struct call *c, void (*again)(struct call *c))
{
	struct box *b = fleet_find(&c->api->fleet, c->held);
	struct exec *r = b ? b->runs : NULL;
	struct interpreter_waiting *w;

	while (r && (r->over || !r->input_unknown || r->pid > 0))
		r = r->next;
	if (!r)
		return 0;
	w = call_alloc(c, sizeof(*w));
	*w = (struct interpreter_waiting){ .told.low = processes_told, .call = c, .again = again };
	c->state = w;
	c->drop = stop_waiting;
	exec_input_await(r, &w->told);
	return 1;
}

/* ---- List ---- */

/* Values of the request, without those that the box has anyway. */
static json_t *own_env(const struct exec *r)
{
	json_t *all = json_object_get(r->request, "env"), *own = json_object(), *v,
	       *box = r->box->row.env ? json_loads(r->box->row.env, 0, NULL) : NULL;
	const char *name;

	json_object_foreach(all, name, v)
	{
		if (!json_equal(v, json_object_get(box, name)))
			json_object_set(own, name, v);
	}
	json_decref(box);
	return own;
}

static json_t *process_json(const struct exec *r)
{
	const char *cwd = json_string_value(json_object_get(r->request, "cwd"));
	json_t *args = json_array(), *config, *doc;

	for (size_t i = 1; i < json_array_size(r->command); i++)
		json_array_append(args, json_array_get(r->command, i));
	config = json_pack("{s:O, s:o, s:o}", "cmd", json_array_get(r->command, 0), "args", args,
			   "envs", own_env(r));
	cwd = r->cwd ? r->cwd : cwd;
	if (cwd)
		json_object_set_new(config, "cwd", json_text(cwd));
	doc = json_pack("{s:o, s:i}", "config", config, "pid", r->pid);
	if (r->tag[0])
		json_object_set_new(doc, "tag", json_string(r->tag));
	return doc;
}

static void processes_list_all(struct call *c)
{
	struct box *b = fleet_find(&c->api->fleet, c->held);
	json_t *all;

	if (process_wait(c, processes_list_all)) /* a program without a pid would be missing */
		return;
	all = json_array();
	for (const struct exec *r = b ? b->runs : NULL; r; r = r->next)
		if (!r->over && r->pid > 0 && json_array_size(r->command) && !is_driver(b, r) &&
		    !exec_is_helper(r))
			json_array_append_new(all, process_json(r));
	connect_reply(c, json_pack("{s:o}", "processes", all));
}

static void processes_list(struct call *c, json_t *ask)
{
	(void)ask;
	processes_list_all(c);
}

void process_list(struct call *c)
{
	connect_ask(c, 0, processes_list);
}

/* ---- things done to one ---- */

/* The part of the row that this surface stores. */
typedef void (*act)(struct call *c, struct exec *r);

static void with_run(struct call *c, act what, void (*again)(struct call *c))
{
	struct box *b = fleet_find(&c->api->fleet, c->held);
	struct process_name name;
	struct exec *r;

	if (process_named(c, c->body, &name) < 0)
		return;
	r = b ? process_find(b, &name) : NULL;
	if (r)
		what(c, r);
	else if (!process_wait(c, again))
		process_missing(c, &name);
}

static int signal_of(const json_t *v)
{
	const char *name = json_string_value(v);

	if (json_is_integer(v))
		return (int)json_integer_value(v);
	if (name && !strcmp(name, "SIGNAL_SIGKILL"))
		return SIGKILL;
	return name && !strcmp(name, "SIGNAL_SIGTERM") ? SIGTERM : 0;
}

/* A client that kills a program may check at once whether it has exited. Other processes that
 * hold its output open do not count. */
#define END_MS 1000

struct killing {
	struct exec_wait wait;
	struct timer limit;
	struct call *call;
};

static void killing_fini(struct killing *k)
{
	exec_wait_cancel(&k->wait);
	timer_fini(&k->limit);
	k->call->drop = NULL;
}

static void processes_killed(struct exec_wait *w, json_t *record)
{
	struct killing *k = loop_owner(w, struct killing, wait);

	(void)record;
	killing_fini(k);
	connect_reply(k->call, json_object());
}

static void kill_late(struct timer *t)
{
	struct killing *k = loop_owner(t, struct killing, limit);

	killing_fini(k);
	connect_reply(k->call, json_object());
}

static void leave_kill(struct call *c)
{
	killing_fini(c->state);
}

static void await_end(struct call *c, struct exec *r)
{
	struct killing *k = call_alloc(c, sizeof(*k));

	*k = (struct killing){ .wait = { .done = processes_killed }, .call = c };
	c->state = k;
	c->drop = leave_kill;
	timer_init(&k->limit, c->api->loop, kill_late);
	timer_set(&k->limit, END_MS);
	exec_await(r, &k->wait);
}

static void send_signal(struct call *c, struct exec *r)
{
	int signo = signal_of(json_object_get(c->body, "signal"));

	if (signo != SIGKILL && signo != SIGTERM) {
		connect_fail(c, CONNECT_UNIMPLEMENTED, "signal: only SIGKILL and SIGTERM are sent");
		return;
	}
	exec_send_signal(r, signo);
	call_audit(c, "exec.signal", r->id, "ok");
	if (signo == SIGKILL && !r->over)
		await_end(c, r);
	else
		connect_reply(c, json_object());
}

static void signal_again(struct call *c)
{
	with_run(c, send_signal, signal_again);
}

static int processes_side(const json_t *size, const char *name)
{
	const json_t *v = json_object_get(size, name);

	return json_is_integer(v) && json_integer_value(v) > 0 && json_integer_value(v) <= 10000
		       ? (int)json_integer_value(v)
		       : -1;
}

static void processes_update(struct call *c, struct exec *r)
{
	const json_t *pty = json_object_get(c->body, "pty"), *size = json_object_get(pty, "size");
	int rows = processes_side(size, "rows"), cols = processes_side(size, "cols");

	if (!json_is_object(pty)) { /* nothing else can be changed */
		connect_reply(c, json_object());
		return;
	}
	if (rows < 0 || cols < 0) {
		connect_fail(c, CONNECT_INVALID,
			     "pty.size: rows and cols are numbers from 1 to 10000");
		return;
	}
	if (!r->tty) {
		connect_fail(c, CONNECT_INTERNAL, "tty not assigned to process");
		return;
	}
	exec_set_size(r, (uint16_t)rows, (uint16_t)cols);
	call_audit(c, "exec.resize", r->id, "ok");
	connect_reply(c, json_object());
}

static void update_again(struct call *c)
{
	with_run(c, processes_update, update_again);
}

static void asked_to_signal(struct call *c, json_t *ask)
{
	(void)ask;
	signal_again(c);
}

static void asked_to_update(struct call *c, json_t *ask)
{
	(void)ask;
	update_again(c);
}

void process_signal(struct call *c)
{
	connect_ask(c, 0, asked_to_signal);
}

void process_update(struct call *c)
{
	connect_ask(c, 0, asked_to_update);
}
