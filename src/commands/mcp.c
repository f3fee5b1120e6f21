/* mcp.c - `atoll mcp`: MCP over stdin and stdout, forwarded to the daemon's /mcp.
 *
 *   stdin: a message a line --> us --fork--> a carrier per message --POST--> daemon
 *   stdout: a line each     <-- us <--pipe--  'M' a message, 'S' a session's id
 *
 * Only this process writes to stdout, whole lines only. A carrier is a process, so that a
 * cancelled call can be dropped at any moment: its connection closes with it, and the daemon
 * notices that. This file parses only ids, methods and names, which the headers need. */
#include "base/base64.h"
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "commands/commands.h"
#include "http/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define META "io.modelcontextprotocol/"

enum { CARRIERS = 32, LINE_MOST = 16 << 20, SESSION = 128, LAST_MS = 10000, HEADERS = 8 };

struct carrier {
	pid_t pid; /* 0: none */
	int fd;
	json_t *id; /* of its request; NULL: a notification */
	int opens;  /* it carries `initialize`: everything else waits */
	struct buf line;
};

struct gateway {
	struct api_client *remote;
	char session[SESSION];
	char version[32];
	json_t *hello; /* the client's `initialize`, for a daemon that no longer has the session */
	struct carrier carriers[CARRIERS];
	struct buf in;
	int eof, broken; /* stdin; stdout */
};

/* ---- the carrier ---- */

struct trip {
	const struct gateway *g;
	const json_t *message;
	int out;
	int events; /* the answer is a stream of messages */
	int status;
	char session[SESSION];
	struct buf body;
};

static void mcp_pass(struct trip *t, char kind, const char *text, size_t n)
{
	auto_buf struct buf line = { 0 };

	buf_putc(&line, kind);
	for (size_t i = 0; i < n; i++)
		if (text[i] != '\n' && text[i] != '\r')
			buf_putc(&line, text[i]);
	if (line.len == 1)
		return;
	buf_putc(&line, '\n');
	if (api_client_write(t->out, line.p, line.len) < 0)
		_exit(1);
}

static int head_came(void *user, const struct http_answer *a)
{
	const char *type = http_answer_header(a, "content-type"),
		   *session = http_answer_header(a, "mcp-session-id");
	struct trip *t = user;

	t->status = a->status;
	t->events = type && !strncmp(type, "text/event-stream", 17);
	if (session && strlen(session) < SESSION) {
		snprintf(t->session, sizeof(t->session), "%s", session);
		mcp_pass(t, 'S', session, strlen(session));
	}
	return 0;
}

/* Each event has one line of data; comments only keep the connection open. */
static void pass_events(struct trip *t)
{
	char *at = t->body.p, *nl;
	size_t left;

	while (at && (nl = memchr(at, '\n', t->body.len - (size_t)(at - t->body.p)))) {
		if (!strncmp(at, "data: ", 6))
			mcp_pass(t, 'M', at + 6, (size_t)(nl - at - 6));
		at = nl + 1;
	}
	left = at ? t->body.len - (size_t)(at - t->body.p) : 0;
	if (at)
		memmove(t->body.p, at, left);
	buf_cut(&t->body, left);
}

static int body_came(void *user, const char *bytes, size_t n)
{
	struct trip *t = user;

	if (t->body.len + n > LINE_MOST)
		return 1;
	buf_add(&t->body, bytes, n);
	if (t->events)
		pass_events(t);
	return 0;
}

static const char *text_in(const json_t *doc, const char *name)
{
	return json_string_value(json_object_get(doc, name));
}

/* A value that a header cannot contain unchanged is encoded. */
static char *header_value(const char *text)
{
	struct buf out = { 0 };
	int plain = *text && text[0] != ' ' && text[strlen(text) - 1] != ' ';

	for (const char *p = text; *p && plain; p++)
		plain = *p >= 0x20 && *p < 0x7f;
	if (plain && strncmp(text, "=?", 2) != 0) {
		buf_puts(&out, text);
	} else {
		buf_puts(&out, "=?base64?");
		base64_encode(&out, text, strlen(text));
		buf_puts(&out, "?=");
	}
	return buf_steal(&out);
}

static unsigned modern_headers(const json_t *message, struct http_header *out)
{
	const json_t *params = json_object_get(message, "params");
	const char *version = text_in(json_object_get(params, "_meta"), META "protocolVersion"),
		   *method = text_in(message, "method"), *name = text_in(params, "name");
	unsigned n = 0;

	if (!name)
		name = text_in(params, "uri");
	if (version)
		out[n++] = (struct http_header){ "mcp-protocol-version", header_value(version) };
	if (method)
		out[n++] = (struct http_header){ "mcp-method", header_value(method) };
	if (name)
		out[n++] = (struct http_header){ "mcp-name", header_value(name) };
	return n;
}

static int is_modern(const json_t *message)
{
	const json_t *meta = json_object_get(json_object_get(message, "params"), "_meta");
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)meta, name,
			    v) if (!strncmp(name, META, strlen(META))) return 1;
	return 0;
}

static int is_method(const json_t *message, const char *name)
{
	const char *method = text_in(message, "method");

	return method && !strcmp(method, name);
}

/* One POST; -1: there was no answer. */
static int mcp_go(struct trip *t, const json_t *message, const char *session, struct err *e)
{
	auto_free char *text = json_dumps(message, JSON_COMPACT);
	struct http_header headers[HEADERS];
	struct http_call call = { .method = "POST",
				  .target = "/mcp",
				  .headers = headers,
				  .body = text,
				  .body_len = strlen(text),
				  .on_head = head_came,
				  .on_body = body_came,
				  .user = t };
	struct http_answer answer = { 0 };
	struct http_client *client;
	char bearer[80];
	unsigned n = 0;
	int rc;

	headers[n++] = (struct http_header){ "content-type", "application/json" };
	headers[n++] = (struct http_header){ "accept", "application/json, text/event-stream" };
	if (t->g->remote->reach.key[0]) {
		snprintf(bearer, sizeof(bearer), "Bearer %s", t->g->remote->reach.key);
		headers[n++] = (struct http_header){ "authorization", bearer };
	}
	if (is_modern(message))
		n += modern_headers(message, headers + n);
	else if (*session && !is_method(message, "initialize"))
		headers[n++] = (struct http_header){ "mcp-session-id", session };
	call.nheaders = n;
	buf_cut(&t->body, 0);
	if (http_client_new(t->g->remote->reach.where, NULL, &client, e) < 0)
		return -1;
	rc = http_call(client, &call, &answer, e);
	http_answer_fini(&answer);
	http_client_free(client);
	return rc;
}

/* A session that was unused for too long no longer exists; a client on stdin cannot be asked to
 * initialise again. */
static int mcp_again(struct trip *t, struct err *e)
{
	char session[SESSION];

	if (t->status != 404 || !t->g->hello || is_modern(t->message) || !*t->g->session)
		return 0;
	if (mcp_go(t, t->g->hello, "", e) < 0)
		return -1;
	if (t->status != 200)
		return err_set(e, ERR_SYS, "cannot start a session: status %d", t->status);
	snprintf(session, sizeof(session), "%s", t->session);
	return mcp_go(t, t->message, session, e);
}

static void mcp_fail(struct trip *t, const char *why, const char *hint)
{
	json_t *id = json_object_get(t->message, "id"),
	       *doc = json_pack("{s:s, s:O*, s:{s:i, s:o}}", "jsonrpc", "2.0", "id", id, "error",
				"code", -32603, "message",
				json_sprintf("the daemon at %s does not answer: %s%s",
					     t->g->remote->reach.where, why, hint));
	auto_free char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	if (id && text)
		mcp_pass(t, 'M', text, strlen(text));
	json_decref(doc);
}

/* The answer is one message; a request that was rejected before its id was read has none. */
static void pass_answer(struct trip *t)
{
	json_t *doc = t->body.len ? json_loadb(t->body.p, t->body.len, 0, NULL) : NULL,
	       *id = json_object_get(t->message, "id");
	auto_free char *text = NULL;

	if (!id) {
		json_decref(doc);
		return;
	}
	if (!doc || !json_object_get(doc, "jsonrpc")) {
		char why[60];

		snprintf(why, sizeof(why), "its status is %d", t->status);
		mcp_fail(t, why, "");
		json_decref(doc);
		return;
	}
	if (!json_object_get(doc, "id"))
		json_object_set(doc, "id", id);
	text = json_dumps(doc, JSON_COMPACT);
	mcp_pass(t, 'M', text, strlen(text));
	json_decref(doc);
}

static int never_connected(const struct err *e)
{
	return e->sys == ECONNREFUSED || e->sys == ENOENT || e->sys == EHOSTUNREACH ||
	       e->sys == ENETUNREACH;
}

/* A killed server closes its connections, and the next one serves at once. An idempotent request
 * is sent again; a tool may have been started, so its caller decides. */
static void mcp_carry(const struct gateway *g, const json_t *message, int out)
{
	struct trip t = { .g = g, .message = message, .out = out };
	int is_call = is_method(message, "tools/call");
	struct err e;
	int rc = mcp_go(&t, message, g->session, &e);

	if (rc < 0 && !t.status && !is_call)
		rc = mcp_go(&t, message, g->session, &e);
	if (rc == 0)
		rc = mcp_again(&t, &e);
	if (rc < 0)
		mcp_fail(&t, e.msg,
			 is_call && !never_connected(&e)
				 ? "; the tool may have run: look before you call it again"
				 : "");
	else if (rc > 0)
		mcp_fail(&t, "its answer is too long", "");
	else if (!t.events)
		pass_answer(&t);
	_exit(0);
}

/* ---- the gateway ---- */

static int mcp_say(struct gateway *g, const char *text, size_t n)
{
	if (!g->broken && api_client_write(1, text, n) < 0)
		g->broken = 1;
	return g->broken;
}

static void refuse_line(struct gateway *g, int code, const char *why)
{
	char text[300];
	int n = snprintf(
		text, sizeof(text),
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":%d,\"message\":\"%s\"}}\n",
		code, why);

	mcp_say(g, text, (size_t)n);
}

static struct carrier *free_carrier(struct gateway *g)
{
	for (unsigned i = 0; i < CARRIERS; i++)
		if (!g->carriers[i].pid)
			return &g->carriers[i];
	return NULL;
}

static void drop_carrier(struct carrier *c)
{
	close(c->fd);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	json_decref(c->id);
	buf_fini(&c->line);
	*c = (struct carrier){ 0 };
}

static int send_off(struct gateway *g, const json_t *message)
{
	struct carrier *c = free_carrier(g);
	int pipes[2];
	pid_t pid;

	if (!c || pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid < 0) {
		close(pipes[0]);
		close(pipes[1]);
		return -1;
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pipes[0]);
		mcp_carry(g, message, pipes[1]);
	}
	close(pipes[1]);
	*c = (struct carrier){ .pid = pid,
			       .fd = pipes[0],
			       .id = json_incref(json_object_get(message, "id")),
			       .opens = is_method(message, "initialize") };
	return 0;
}

/* In the newer protocol disconnecting cancels; in the older one the message itself is sent to
 * the daemon. */
static int mcp_cancels(struct gateway *g, const json_t *message)
{
	const json_t *id = json_object_get(json_object_get(message, "params"), "requestId");

	if (!is_method(message, "notifications/cancelled") || g->session[0])
		return 0;
	for (unsigned i = 0; i < CARRIERS; i++)
		if (g->carriers[i].pid && g->carriers[i].id && json_equal(g->carriers[i].id, id))
			drop_carrier(&g->carriers[i]);
	return 1;
}

static void take_line(struct gateway *g, const char *text, size_t n)
{
	json_t *message;

	if (strspn(text, " \t\r") >= n)
		return;
	message = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	if (!message) {
		refuse_line(g, -32700, "this line is not JSON");
		return;
	}
	if (!json_is_object(message)) {
		refuse_line(g, -32600, "this line is not a message of JSON-RPC");
		json_decref(message);
		return;
	}
	if (is_method(message, "initialize") && !is_modern(message)) {
		json_decref(g->hello);
		g->hello = json_incref(message);
		g->session[0] = 0;
	}
	if (!mcp_cancels(g, message) && send_off(g, message) < 0)
		refuse_line(g, -32603, "there is no process to be had");
	json_decref(message);
}

/* Reads a message only if it can be sent at once: otherwise the pipe fills, and its writer
 * waits. */
static int may_take(const struct gateway *g)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < CARRIERS; i++) {
		busy += g->carriers[i].pid != 0;
		if (g->carriers[i].pid && g->carriers[i].opens)
			return 0;
	}
	return busy < CARRIERS;
}

static void take_lines(struct gateway *g)
{
	size_t from = 0;
	char *nl;

	while (may_take(g) && g->in.len > from &&
	       (nl = memchr(g->in.p + from, '\n', g->in.len - from))) {
		*nl = 0;
		take_line(g, g->in.p + from, (size_t)(nl - g->in.p) - from);
		from = (size_t)(nl - g->in.p) + 1;
	}
	if (from) {
		memmove(g->in.p, g->in.p + from, g->in.len - from);
		buf_cut(&g->in, g->in.len - from);
	}
}

static int has_line(const struct gateway *g)
{
	return g->in.len && memchr(g->in.p, '\n', g->in.len);
}

static void read_in(struct gateway *g)
{
	ssize_t n;

	if (g->in.len > LINE_MOST) {
		refuse_line(g, -32600, "this line is too long");
		g->eof = 1;
		return;
	}
	n = read(0, buf_space(&g->in, 65536), 65536);
	if (n > 0)
		buf_grew(&g->in, (size_t)n);
	else if (n == 0 || errno != EINTR)
		g->eof = 1;
}

static void mcp_told(struct gateway *g, const char *line, size_t n)
{
	if (line[0] == 'S' && n < SESSION)
		snprintf(g->session, sizeof(g->session), "%.*s", (int)n - 1, line + 1);
	else if (line[0] == 'M' && mcp_say(g, line + 1, n - 1) == 0)
		mcp_say(g, "\n", 1);
}

static void read_carrier(struct gateway *g, struct carrier *c)
{
	ssize_t n = read(c->fd, buf_space(&c->line, 65536), 65536);
	size_t from = 0;
	char *nl;

	if (n <= 0) {
		if (n == 0 || errno != EINTR)
			drop_carrier(c);
		return;
	}
	buf_grew(&c->line, (size_t)n);
	while (c->line.len > from && (nl = memchr(c->line.p + from, '\n', c->line.len - from))) {
		mcp_told(g, c->line.p + from, (size_t)(nl - c->line.p) - from);
		from = (size_t)(nl - c->line.p) + 1;
	}
	memmove(c->line.p, c->line.p + from, c->line.len - from);
	buf_cut(&c->line, c->line.len - from);
}

static unsigned mcp_busy(const struct gateway *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CARRIERS; i++)
		n += g->carriers[i].pid != 0;
	return n;
}

/* 0: no message arrived for too long after the end of the input. */
static int mcp_turn(struct gateway *g)
{
	struct pollfd fds[CARRIERS + 1];
	int n;

	/* The input is polled only when one of its messages could be sent. */
	fds[CARRIERS] = (struct pollfd){ .fd = g->eof || !may_take(g) ? -1 : 0, .events = POLLIN };
	for (unsigned i = 0; i < CARRIERS; i++)
		fds[i] = (struct pollfd){ .fd = g->carriers[i].pid ? g->carriers[i].fd : -1,
					  .events = POLLIN };
	n = poll(fds, CARRIERS + 1, g->eof ? LAST_MS : -1);
	if (n == 0)
		return 0;
	for (unsigned i = 0; n > 0 && i < CARRIERS; i++)
		if (fds[i].revents && g->carriers[i].pid)
			read_carrier(g, &g->carriers[i]);
	if (n > 0 && fds[CARRIERS].revents)
		read_in(g);
	return 1;
}

static void end_session(struct gateway *g)
{
	struct http_header headers[] = { { "mcp-session-id", g->session },
					 { "authorization", NULL } };
	struct http_call call = {
		.method = "DELETE", .target = "/mcp", .headers = headers, .nheaders = 1
	};
	struct http_answer answer = { 0 };
	char bearer[80];
	struct err e;

	if (!g->session[0])
		return;
	if (g->remote->reach.key[0]) {
		snprintf(bearer, sizeof(bearer), "Bearer %s", g->remote->reach.key);
		headers[call.nheaders++].value = bearer;
	}
	(void)!http_call(g->remote->client, &call, &answer, &e); /* it would also exit by itself */
	http_answer_fini(&answer);
}

static int mcp_do_run(struct api_client *r, const struct args *a)
{
	struct gateway g = { .remote = r };

	(void)a;
	signal(SIGPIPE, SIG_IGN);
	while (!g.broken && (!g.eof || mcp_busy(&g) || has_line(&g))) {
		take_lines(&g);
		if ((!g.eof || mcp_busy(&g)) && !mcp_turn(&g))
			break;
	}
	for (unsigned i = 0; i < CARRIERS; i++)
		if (g.carriers[i].pid)
			drop_carrier(&g.carriers[i]);
	end_session(&g);
	json_decref(g.hello);
	buf_fini(&g.in);
	return 0;
}

static int mcp_command(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, mcp_do_run);
}

static const struct example examples[] = {
	{ "atoll mcp", "for MCP clients that start a command" },
	{ "ATOLL_KEY=... atoll -H https://host:7070 mcp", "use the daemon of another machine" },
	{ 0 },
};

const struct command command_mcp = {
	.name = "mcp",
	.group = "Machine",
	.usage = "",
	.summary = "speak MCP on stdin and stdout, for agents",
	.notes =
		"Forwards messages of the Model Context Protocol, one per line, to /mcp of the daemon. Exits at the end of\n"
		"its input.",
	.examples = examples,
	.run = mcp_command,
};
