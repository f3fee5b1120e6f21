/* execs_stdin.c - POST .../execs/{exec}/stdin: input for a running exec, with back-pressure. */
#include "v1run/execs.h"
#include "fleet/box.h"
#include "fleet/exec.h"

const struct field execs_stdin_query[] = {
	{ "close", FIELD_BOOL, 0, 0, 0, "close stdin after these bytes", NULL },
	{ "offset", FIELD_INT, 0, 0, INT64_MAX,
	  "offset of the first byte in the whole input; bytes that the exec already has are skipped",
	  NULL },
	{ 0 },
};

struct stdin_request {
	struct call *call;
	struct exec_input_wait wait;
	struct exec_wait end;
	uint64_t bytes;
	int64_t at; /* position of the next byte in the whole input; -1: append */
	int over;   /* the exec reads no more input */
	int begun, gap;
};

static void stdin_on_window(struct exec_input_wait *w, int closed)
{
	struct stdin_request *f = loop_owner(w, struct stdin_request, wait);

	f->over |= closed;
	if (f->begun)
		http_resume(f->call->req);
	else
		http_want_body(f->call->req, HTTP_BODY_STREAM, 0);
	f->begun = 1;
}

/* Skips bytes that the exec already has: a client sends input again when it did not get
 * the answer. */
static void stdin_skip_known(struct stdin_request *f, const struct exec *r, const char **bytes,
			     size_t *n)
{
	uint64_t has = exec_input_has(r), known;

	if (f->at < 0)
		return;
	f->gap |= (uint64_t)f->at > has;
	known = has > (uint64_t)f->at ? has - (uint64_t)f->at : 0;
	known = known < *n ? known : *n;
	f->at += (int64_t)*n;
	*bytes += known;
	*n -= (size_t)known;
}

static void stdin_on_body(struct http_req *req, const char *bytes, size_t n)
{
	struct call *c = req->user;
	struct stdin_request *f = c->state;
	struct box *b = fleet_find(&c->api->fleet, c->held);
	struct exec *r = b ? execs_living(b, call_param(c, 1)) : NULL;

	if (!r || f->over || !r->stdin_open) {
		f->over = 1;
		return;
	}
	f->bytes += n;
	stdin_skip_known(f, r, &bytes, &n);
	if (!f->gap && exec_stdin(r, bytes, n)) {
		http_pause(req);
		exec_input_await(r, &f->wait);
	}
}

static void stdin_on_body_end(struct http_req *req)
{
	struct call *c = req->user;
	struct stdin_request *f = c->state;
	struct box *b = fleet_find(&c->api->fleet, c->held);
	struct exec *r = b ? execs_living(b, call_param(c, 1)) : NULL;

	if (f->over || !r) {
		call_error(c, 409, "conflict", "the program reads no more input", NULL, NULL);
		return;
	}
	/* An empty body, too: its offset says that the client has sent more before. */
	if (f->gap || (f->at >= 0 && (uint64_t)f->at > exec_input_has(r))) {
		exec_input_doubt(r);
		call_error(c, 409, "gap", "bytes before ?offset= are missing", NULL,
			   "GET the exec: stdin.bytes");
		return;
	}
	if (call_query_flag(c, "close"))
		exec_input_close(r);
	/* Only the first input is an event: a terminal sends one request for each key. */
	if (!r->input_noted)
		call_audit(c, "exec.stdin", r->id, "ok");
	r->input_noted = c->audited = 1;
	call_json(c, 200,
		  json_pack("{s:I, s:I}", "accepted", (json_int_t)f->bytes, "delivered",
			    (json_int_t)exec_input_delivered(r)));
}

static void stdin_drop(struct call *c)
{
	struct stdin_request *f = c->state;

	exec_input_cancel(&f->wait);
}

void execs_stdin(struct call *c)
{
	struct exec *r = execs_running(c);
	struct stdin_request *f;

	if (!r)
		return;
	if (!r->stdin_open) {
		call_error(c, 409, "conflict", "its input is not open", NULL,
			   "start it with open_stdin or pty");
		return;
	}
	f = call_alloc(c, sizeof(*f));
	*f = (struct stdin_request){ .call = c,
				     .wait.low = stdin_on_window,
				     .at = call_query_int(c, "offset", -1) };
	c->state = f;
	c->drop = stdin_drop;
	c->req->on_body = stdin_on_body;
	c->req->on_body_end = stdin_on_body_end;
	exec_input_check(r);
	if (r->input_unknown)
		exec_input_await(r, &f->wait);
	else
		stdin_on_window(&f->wait, 0);
}
