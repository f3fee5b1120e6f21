/* interpreter.c - see interpreter.h. */
#include "e2b/interpreter.h"
#include "api/auth.h"
#include "v1run/contexts.h"
#include "api/fields.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "notebook/context.h"
#include "lang/driver.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define HOME "/home/user"

/* ---- names ---- */

/* The first E2B name of a language is the one that answers contain. */
static const struct {
	const char *theirs, *ours;
	int listed; /* has a default context from the beginning */
} languages[] = {
	{ "python", "python", 1 },         { "javascript", "node", 1 }, { "js", "node", 0 },
	{ "typescript", "typescript", 0 }, { "ts", "typescript", 0 },   { "java", "jshell", 0 },
};

static const char *theirs_of(const char *language)
{
	for (unsigned i = 0; i < ARRAY_LEN(languages); i++)
		if (!strcmp(languages[i].ours, language))
			return languages[i].theirs;
	return language;
}

const char *interpreter_language(struct call *c, const char *theirs)
{
	const char *end;
	char *name;

	while (isspace((unsigned char)*theirs))
		theirs++;
	for (end = theirs + strlen(theirs); end > theirs && isspace((unsigned char)end[-1]); end--)
		;
	name = http_strdup(c->req, theirs, (size_t)(end - theirs));
	for (char *p = name; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	for (unsigned i = 0; i < ARRAY_LEN(languages); i++)
		if (!strcmp(languages[i].theirs, name))
			return languages[i].ours;
	return *name ? contexts_language(name) : "python";
}

static const char *id_of(const struct context *x)
{
	return x->row.standing ? theirs_of(x->row.language) : x->row.id;
}

struct context *interpreter_find(struct call *c, const char *id, const char **out_language)
{
	struct box *b = e2b_find_box(c);
	struct context *x = context_find(b, id);
	const char *language = interpreter_language(c, id);
	char message[260];

	*out_language = "";
	if (x)
		return x;
	if (!strcmp(theirs_of(language), id) && driver_of(language)) {
		*out_language = language;
		return context_standing(b, language);
	}
	snprintf(message, sizeof(message), "Context %.200s not found", id);
	call_error(c, 404, "not_found", message, NULL, NULL);
	return NULL;
}

int interpreter_alive(struct call *c, struct context *x)
{
	struct err e;

	if (x->state != CONTEXT_DEAD || context_restart(x, &e) == 0)
		return 1;
	call_error(c, 500, "failed", e.msg, NULL, NULL);
	return 0;
}

struct context *interpreter_default(struct call *c, const char *language)
{
	struct context_want want = { .language = language, .standing = 1 };
	struct context *x = context_standing(e2b_find_box(c), language);
	struct err e;

	if (!x && context_new(e2b_find_box(c), &want, &x, &e) < 0) {
		call_fail(c, &e);
		return NULL;
	}
	return x;
}

/* ---- contexts ---- */

static json_t *row_json(const char *id, const char *language, const char *cwd)
{
	return json_pack("{s:s, s:s, s:s}", "id", id, "language", theirs_of(language), "cwd",
			 cwd && *cwd ? cwd : HOME);
}

static json_t *json_of(const struct context *x)
{
	return row_json(id_of(x), x->row.language, x->row.cwd);
}

struct interpreter_waiting {
	struct context_wait wait;
	struct call *call;
	void (*answer)(struct call *c, const struct context *x);
};

static void stop_waiting(struct call *c)
{
	context_wait_cancel(&((struct interpreter_waiting *)c->state)->wait);
}

static void is_ready(struct context_wait *w, struct context *x)
{
	struct interpreter_waiting *m = loop_owner(w, struct interpreter_waiting, wait);

	m->call->drop = NULL;
	if (x->state == CONTEXT_DEAD)
		call_error(m->call, 500, "failed", x->end.why ? x->end.why : x->end.cause, NULL,
			   NULL);
	else
		m->answer(m->call, x);
}

static void answer_when_ready(struct call *c, struct context *x,
			      void (*answer)(struct call *c, const struct context *x))
{
	struct interpreter_waiting *m = call_alloc(c, sizeof(*m));

	*m = (struct interpreter_waiting){ .wait.done = is_ready, .call = c, .answer = answer };
	c->state = m;
	c->drop = stop_waiting;
	context_await(x, &m->wait);
}

static const struct field create_fields[] = {
	{ "language", FIELD_TEXT, 0, 0, 64, "language (default python)", NULL },
	{ "cwd", FIELD_TEXT, 0, 0, 4000, "working folder (default " HOME ")", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

static void interpreter_show(struct call *c, const struct context *x)
{
	call_json(c, 200, json_of(x));
}

static void interpreter_done(struct call *c, const struct context *x)
{
	(void)x;
	http_reply(c->req, 200, "application/json", "null", 4);
}

static void interpreter_create(struct call *c)
{
	const char *cwd = call_text(c, "cwd", "");
	struct context_want want = { .language = interpreter_language(c, call_text(c, "language",
										   "")) };
	struct box *b = e2b_find_box(c);
	struct context *x;
	char folder[4096];
	struct err e;

	snprintf(folder, sizeof(folder), "%s%s", *cwd && *cwd != '/' ? HOME "/" : "", cwd);
	want.cwd = *folder ? folder : NULL;
	if (!quota_run(c))
		return;
	box_wake(b);
	if (context_new(b, &want, &x, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_audit(c, "context.create", x->row.id, "ok");
	answer_when_ready(c, x, interpreter_show);
}

/* First the default contexts, then the others, oldest first. */
static void interpreter_list(struct call *c)
{
	const struct box *b = e2b_find_box(c);
	json_t *all = json_array();

	for (unsigned i = 0; i < ARRAY_LEN(languages); i++)
		if (languages[i].listed)
			json_array_append_new(all,
					      row_json(languages[i].theirs, languages[i].ours, ""));
	for (const struct context *x = b->contexts; x; x = x->next) {
		int shown = 0;

		for (unsigned i = 0; i < ARRAY_LEN(languages); i++)
			shown |= languages[i].listed && x->row.standing &&
				 !strcmp(x->row.language, languages[i].ours);
		if (!shown)
			json_array_append_new(all, json_of(x));
	}
	call_json(c, 200, all);
}

static void remove_one(struct call *c)
{
	const char *language;
	struct context *x = interpreter_find(c, call_param(c, 0), &language);

	if (!x && !*language)
		return;
	if (x) {
		call_audit(c, "context.delete", x->row.id, "ok");
		context_end(x);
	}
	interpreter_done(c, NULL);
}

static void interpreter_restart(struct call *c)
{
	const char *language;
	struct context *x = interpreter_find(c, call_param(c, 0), &language);
	struct err e;

	if (!x && *language)
		interpreter_done(c, NULL); /* it has no state yet */
	if (!x || !quota_run(c))
		return;
	box_wake(x->box);
	if (context_restart(x, &e) < 0) {
		call_error(c, 500, "failed", e.msg, NULL, NULL);
		return;
	}
	call_audit(c, "context.restart", x->row.id, "ok");
	answer_when_ready(c, x, interpreter_done);
}

/* ---- the table ---- */

static void interpreter_health(struct call *c)
{
	http_reply(c->req, 200, "application/json", "\"OK\"", 4);
}

static const struct api_route rows[] = {
	/* clang-format off */
	{ "GET", "/health", NEED_NOTHING, interpreter_health, "check that the server is running", .query = e2b_any_query },
	{ "POST", "/execute", NEED_NOTHING, execute, "run code in a context", execute_fields, .query = e2b_any_query },
	{ "POST", "/contexts", NEED_NOTHING, interpreter_create, "create a context", create_fields, .query = e2b_any_query },
	{ "GET", "/contexts", NEED_NOTHING, interpreter_list, "list contexts", .query = e2b_any_query },
	{ "DELETE", "/contexts/{context}", NEED_NOTHING, remove_one, "delete a context", .query = e2b_any_query },
	{ "POST", "/contexts/{context}/restart", NEED_NOTHING, interpreter_restart, "restart the interpreter of a context", .query = e2b_any_query },
	/* clang-format on */
};

/* E2B's SDKs send the traffic token with every request to this port, if the sandbox has one, and
 * the access token with /execute. Either is enough. */
static int interpreter_admit(struct call *c)
{
	const char *access = http_header(c->req, "x-access-token"),
		   *traffic = http_header(c->req, "e2b-traffic-access-token");
	struct e2b_box x;

	e2b_box_read(e2b_find_box(c), &x);
	if (c->api->conf.e2b_insecure || (!x.token[0] && !x.traffic[0]) ||
	    (c->row && c->row->run == interpreter_health))
		return 1;
	if ((access && e2b_same(access, x.token)) || (traffic && e2b_same(traffic, x.traffic)))
		return 1;
	/* A sandbox from before traffic tokens were introduced. */
	if (!x.traffic[0] && c->row && c->row->run != execute)
		return 1;
	if ((access || traffic) && auth_failed(c->api, c->req)) {
		call_fail_throttled(c);
		return 0;
	}
	call_error(c, 401, "unauthorized", "missing or invalid access token of the sandbox",
		   "send envdAccessToken as X-Access-Token, or trafficAccessToken as "
		   "E2B-Traffic-Access-Token",
		   NULL);
	return 0;
}

/* Plain text: the output is the body. */
static void interpreter_say(struct call *c, int status, const char *code, const char *message,
			    const char *why, const char *hint)
{
	auto_buf struct buf text = { 0 };

	(void)code;
	(void)hint;
	buf_puts(&text, message);
	if (why)
		buf_printf(&text, ": %s", why);
	http_reply(c->req, status, "text/plain; charset=utf-8", text.p, text.len);
}

static const struct api_format format = { .error = interpreter_say, .admit = interpreter_admit };
struct api_table e2b_interpreter = { .rows = rows, .n = ARRAY_LEN(rows), .format = &format };
