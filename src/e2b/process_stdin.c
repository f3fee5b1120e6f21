/* process_stdin.c - see process.h: bytes for a program's stdin or terminal.
 * Bytes that a program does not read wait in its exec, up to a limit; above it the client waits. */
#include "base/cleanup.h"
#include "e2b/envelope.h"
#include "e2b/process.h"

#include <string.h>

enum { PIECE_MAX = 4 << 20 }; /* of one envelope of a stream */

static struct box *box_of(const struct call *c)
{
	return fleet_find(&c->api->fleet, c->held);
}

/* {"stdin": b64} or {"pty": b64}. 0: decoded; else the error code, and e has the reason. */
static int read_input(const json_t *input, const struct exec *r, struct buf *out,
		      enum connect_code *code, struct err *e)
{
	const json_t *pty = json_object_get(input, "pty"), *text = json_object_get(input, "stdin");

	*code = CONNECT_INVALID;
	if (!pty == !text || connect_bytes(pty ? pty : text, out) < 0)
		return err_set(e, ERR_INVALID, "input: needs stdin or pty, in base64");
	*code = CONNECT_INTERNAL;
	if (pty && !r->tty)
		return err_set(e, ERR_CONFLICT,
			       "error writing to tty: tty not assigned to process");
	if (text && r->tty)
		return err_set(e, ERR_CONFLICT, "error writing to stdin: the process has a tty");
	if (!r->stdin_open || r->input_end)
		return err_set(e, ERR_CONFLICT,
			       "error writing to stdin: stdin not enabled or closed");
	return 0;
}

static size_t stdin_waits(const struct exec *r)
{
	return r->input.len - r->input_taken;
}

/* ---- SendInput ---- */

struct sending {
	struct call *call;
	struct exec_input_wait low;
	struct buf bytes;
	int given; /* the bytes are in the exec; the answer waits until it has room again */
	char run[ID_MAX + 1];
};

static void drop_sending(struct call *c)
{
	struct sending *s = c->state;

	exec_input_cancel(&s->low);
	buf_fini(&s->bytes);
}

/* At most the bytes of one call at once: a client that sends much is served piece by piece. */
static void stdin_give(struct sending *s)
{
	struct box *b = box_of(s->call);
	struct exec *r = b ? exec_lookup(b, s->run) : NULL;

	if (!r || r->over || !r->stdin_open || (r->input_end && !s->given)) {
		connect_fail(s->call, CONNECT_INTERNAL,
			     "error writing to stdin: the process reads no more");
		return;
	}
	if (!s->given && (r->input_unknown || stdin_waits(r) > EXEC_INPUT)) {
		exec_input_await(r, &s->low);
		return;
	}
	if (!s->given && exec_stdin(r, s->bytes.p, s->bytes.len)) {
		s->given = 1;
		exec_input_await(r, &s->low);
		return;
	}
	call_audit(s->call, "exec.stdin", r->id, "ok");
	connect_reply(s->call, json_object());
}

static void room_again(struct exec_input_wait *w, int closed)
{
	struct sending *s = loop_owner(w, struct sending, low);

	if (closed)
		connect_fail(s->call, CONNECT_INTERNAL,
			     "error writing to stdin: the process reads no more");
	else
		stdin_give(s);
}

static void send_input(struct call *c)
{
	struct box *b = box_of(c);
	struct process_name name;
	enum connect_code code;
	struct sending *s;
	struct exec *r;
	struct err e;

	if (process_named(c, c->body, &name) < 0)
		return;
	r = b ? process_find(b, &name) : NULL;
	if (!r) {
		if (!process_wait(c, send_input))
			process_missing(c, &name);
		return;
	}
	s = call_alloc(c, sizeof(*s));
	*s = (struct sending){ .call = c, .low.low = room_again };
	memcpy(s->run, r->id, sizeof(s->run));
	c->state = s;
	c->drop = drop_sending;
	if (read_input(json_object_get(c->body, "input"), r, &s->bytes, &code, &e) < 0) {
		connect_fail(c, code, "%s", e.msg);
		return;
	}
	exec_input_check(r);
	stdin_give(s);
}

static void asked_to_send(struct call *c, json_t *ask)
{
	(void)ask;
	send_input(c);
}

void process_send_input(struct call *c)
{
	connect_ask(c, 0, asked_to_send);
}

/* ---- StreamInput ---- */

struct streaming {
	struct call *call;
	struct envelope in;
	struct exec_input_wait low;
	char run[ID_MAX + 1]; /* "" before `start` */
	int failed;           /* it was answered; the rest of the body is ignored */
};

static void drop_streaming(struct call *c)
{
	struct streaming *s = c->state;

	exec_input_cancel(&s->low);
	envelope_fini(&s->in);
}

static void stdin_refuse(struct streaming *s, enum connect_code code, const char *why)
{
	s->failed = 1;
	connect_fail(s->call, code, "%s", why);
}

static void stream_room(struct exec_input_wait *w, int closed)
{
	struct streaming *s = loop_owner(w, struct streaming, low);

	(void)closed; /* the next request reports the error */
	http_resume(s->call->req);
}

static void stream_start(struct streaming *s, const json_t *start)
{
	struct box *b = box_of(s->call);
	struct process_name name;
	struct exec *r;

	if (s->run[0]) {
		stdin_refuse(s, CONNECT_INVALID, "start: received twice");
		return;
	}
	s->failed = process_named(s->call, start, &name) < 0;
	if (s->failed)
		return;
	r = b ? process_find(b, &name) : NULL;
	if (!r) {
		s->failed = 1;
		process_missing(s->call, &name);
		return;
	}
	memcpy(s->run, r->id, sizeof(s->run));
	exec_input_check(r);
}

static void stream_data(struct streaming *s, const json_t *data)
{
	struct box *b = box_of(s->call);
	struct exec *r = b && s->run[0] ? exec_lookup(b, s->run) : NULL;
	auto_buf struct buf bytes = { 0 };
	enum connect_code code;
	struct err e;

	if (!s->run[0])
		stdin_refuse(s, CONNECT_INVALID, "data: received before start");
	else if (!r || r->over)
		stdin_refuse(s, CONNECT_NOT_FOUND, "the process has exited");
	else if (read_input(json_object_get(data, "input"), r, &bytes, &code, &e) < 0)
		stdin_refuse(s, code, e.msg);
	else if ((exec_stdin(r, bytes.p, bytes.len) || r->input_unknown) && !s->low.run) {
		http_pause(s->call->req);
		exec_input_await(r, &s->low);
	}
}

static void stream_event(struct streaming *s)
{
	const struct buf *text = &s->in.body;
	json_error_t why;
	json_t *doc = json_loadb(text->p ? text->p : "", text->len, JSON_REJECT_DUPLICATES, &why);
	const json_t *start = json_object_get(doc, "start"), *data = json_object_get(doc, "data");

	if (start)
		stream_start(s, start);
	else if (data)
		stream_data(s, data);
	else if (!json_object_get(doc, "keepalive"))
		stdin_refuse(s, CONNECT_INVALID, "an event is start, data or keepalive");
	json_decref(doc);
}

static void stream_bytes(struct http_req *req, const char *bytes, size_t n)
{
	struct streaming *s = ((struct call *)req->user)->state;
	const char *why;
	int rc = 1;

	while (!s->failed && rc > 0) {
		rc = envelope_take(&s->in, &bytes, &n, PIECE_MAX, &why);
		if (rc < 0)
			stdin_refuse(s, CONNECT_INVALID, why);
		else if (rc > 0)
			stream_event(s);
	}
}

static void stream_end(struct http_req *req)
{
	struct call *c = req->user;
	struct streaming *s = c->state;

	if (s->failed)
		return;
	if (envelope_is_open(&s->in)) {
		connect_fail(c, CONNECT_INVALID, "the envelope is longer than the body");
		return;
	}
	call_audit(c, "exec.stdin", s->run, "ok");
	connect_stream_reply(c, "{}");
}

void process_stream_input(struct call *c)
{
	struct streaming *s = call_alloc(c, sizeof(*s));

	if (!connect_speaks(c, 1))
		return;
	*s = (struct streaming){ .call = c, .low.low = stream_room };
	c->state = s;
	c->drop = drop_streaming;
	c->req->on_body = stream_bytes;
	c->req->on_body_end = stream_end;
	http_want_body(c->req, HTTP_BODY_STREAM, 0);
}

/* ---- CloseStdin ---- */

static void close_stdin(struct call *c)
{
	struct box *b = box_of(c);
	struct process_name name;
	struct exec *r;

	if (process_named(c, c->body, &name) < 0)
		return;
	r = b ? process_find(b, &name) : NULL;
	if (!r) {
		if (!process_wait(c, close_stdin))
			process_missing(c, &name);
		return;
	}
	if (r->tty) {
		connect_fail(c, CONNECT_UNKNOWN,
			     "cannot close stdin for PTY process - send Ctrl+D (0x04) instead");
		return;
	}
	exec_input_check(r);
	exec_input_close(r);
	call_audit(c, "exec.stdin", r->id, "ok");
	connect_reply(c, json_object());
}

static void asked_to_close(struct call *c, json_t *ask)
{
	(void)ask;
	close_stdin(c);
}

void process_close_stdin(struct call *c)
{
	connect_ask(c, 0, asked_to_close);
}
