/* execs.c - see execs.h. An exec is found by its id or its tag. While it runs it is in the fleet;
 * afterwards its record is in the store, and its output is in the log of init as long as the box
 * exists. */
#include "v1run/execs.h"
#include "api/event_stream.h"
#include "v1box/automatic.h"
#include "v1run/run_request.h"
#include "base/cleanup.h"
#include "fleet/exec_reader.h"
#include "record/record.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

const struct field execs_list_query[] = {
	{ "running", FIELD_BOOL, 0, 0, 0, "only running execs", NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
};
static const struct field raw_stream_values[] = { FIELD_VALUE("stdout"),
						  FIELD_VALUE("stderr"),
						  { 0 } };
const struct field execs_output_query[] = {
	{ "stdout", FIELD_INT, 0, 0, INT64_MAX, "offset of the first byte (default 0)", NULL },
	{ "stderr", FIELD_INT, 0, 0, INT64_MAX, "offset of the first byte (default 0)", NULL },
	{ "raw", FIELD_CHOICE, 0, 0, 0, "return only the raw bytes of this stream",
	  raw_stream_values },
	{ 0 },
};
const struct field execs_wait_query[] = {
	{ "timeout_ms", FIELD_INT, 0, 1, 3600000,
	  "maximum waiting time; the answer is 202 if the exec is still running", NULL },
	{ 0 },
};
const struct field execs_signal_fields[] = {
	{ "signal", FIELD_ANY, 1, 0, 0, "name or number of the signal: INT, TERM, KILL, 10", NULL },
	{ 0 },
};
const struct field execs_resize_fields[] = {
	{ "rows", FIELD_INT, 1, 1, 10000, "height of the terminal", NULL },
	{ "cols", FIELD_INT, 1, 1, 10000, "width of the terminal", NULL },
	{ 0 },
};
const struct field runs_list_query[] = {
	{ "box", FIELD_TEXT, 0, 0, STORE_NAME, "only execs of this box", NULL },
	{ "cause", FIELD_TEXT, 0, 0, STORE_WORD, "only execs that ended with this cause", NULL },
	{ "running", FIELD_BOOL, 0, 0, 0, "only running execs", NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
};

/* ---- lookup ---- */

static void no_exec(struct call *c)
{
	call_error(c, 404, "not_found", "there is no such exec in this box", call_param(c, 1),
		   "list them: GET /v1/boxes/ID/execs");
}

struct exec *execs_living(struct box *b, const char *name)
{
	struct exec *r = exec_lookup(b, name);

	return r || !*name ? r : exec_by_tag(b, name);
}

/* The newest exec with the tag. */
static int recorded_tag(struct call *c, const struct box *b, struct store_run *out)
{
	struct store_run_filter f = {
		.team = c->who.team, .box = b->row.id, .tag = call_param(c, 1), .limit = 1
	};
	struct store_runs rows = { 0 };
	struct err e;

	if (!*call_param(c, 1) || store_run_list(c->api->store, &f, &rows, &e) < 0)
		return 0;
	if (rows.n == 1) {
		*out = rows.v[0];
		rows.v[0] = (struct store_run){ 0 };
		store_runs_fini(&rows);
		return 1;
	}
	store_runs_fini(&rows);
	return 0;
}

/* The row of an exec that has ended, by its id or its tag; 0: this box has none. */
static int execs_recorded(struct call *c, const struct box *b, struct store_run *out)
{
	struct err e;

	if (!id_valid(call_param(c, 1)) ||
	    store_run_get(c->api->store, call_param(c, 1), out, &e) < 0)
		return recorded_tag(c, b, out);
	if (!strcmp(out->box, b->row.id) && !strcmp(out->team, c->who.team))
		return 1;
	store_run_fini(out);
	return 0;
}

struct exec *execs_running(struct call *c)
{
	struct box *b = call_box(c, 0);
	struct exec *r = b ? execs_living(b, call_param(c, 1)) : NULL;
	struct store_run row = { 0 };

	if (!b || r)
		return r;
	if (!execs_recorded(c, b, &row)) {
		no_exec(c);
		return NULL;
	}
	call_error(c, 409, "conflict", "this exec has ended", row.cause, "GET it for its record");
	store_run_fini(&row);
	return NULL;
}

/* ---- start, list, show ---- */

void execs_start(struct call *c)
{
	struct box *b = call_box(c, 0);

	if (b && !automatic_before(c, b, CHECKPOINT_STEP_EXEC, execs_start))
		run_request_exec(c, b);
}

static json_t *row_or_run(struct api *a, const struct store_run *row)
{
	struct box *b = row->ended_ns ? NULL : fleet_find(&a->fleet, row->box);
	struct exec *r = b ? exec_lookup(b, row->id) : NULL;

	return r ? exec_json(r) : exec_row_json(row);
}

/* The record of an exec that ended is stored as the text of an answer; it contains the id of the
 * run. Records of version 0.1 have another word for the state and are translated. */
static int is_whole_record(const struct store_run *row)
{
	char own[ID_MAX + 16];

	snprintf(own, sizeof(own), "\"id\":\"%s\"", row->id);
	return row->ended_ns && row->record && strstr(row->record, own) &&
	       strstr(row->record, "\"state\":\"exited\"");
}

static void add_run(struct api *a, const struct store_run *row, struct buf *out)
{
	json_t *doc;
	char *text;

	if (is_whole_record(row)) {
		buf_puts(out, row->record);
		return;
	}
	doc = row_or_run(a, row);
	text = json_dumps(doc, JSON_COMPACT | RECORD_DIGITS);
	if (!text)
		abort(); /* JSON that the server builds is always valid */
	buf_puts(out, text);
	free(text);
	json_decref(doc);
}

json_t *execs_row_json(struct api *a, const struct store_run *row)
{
	json_t *doc = is_whole_record(row) ? json_loads(row->record, 0, NULL) : NULL;

	if (!doc)
		return row_or_run(a, row);
	json_object_del(doc, "request");
	return doc;
}

static json_t *run_documents(struct api *a, const struct store_runs *rows)
{
	json_t *items = json_array();

	for (unsigned i = 0; i < rows->n; i++)
		json_array_append_new(items, row_or_run(a, &rows->v[i]));
	return items;
}

/* A page that is read in pieces: a hundred runs may have megabytes of requests in their rows, and
 * no other connection is served while they are read. */
struct run_page {
	struct store_run_filter filter; /* selects the rows that are missing */
	unsigned left;
	char box[STORE_NAME + 1];
	struct buf text;
	char next[STORE_CURSOR_TEXT];
};

enum { RUN_PIECE = 8 };

static void free_run_page(struct call *c)
{
	buf_fini(&((struct run_page *)c->state)->text);
}

/* 1: more rows follow; 0: the page is complete; -1: it failed, and e is the reason. */
static int run_page_add(struct call *c, struct run_page *p, struct err *e)
{
	struct store_runs rows = { 0 };
	int more;

	p->filter.limit = p->left < RUN_PIECE ? p->left : RUN_PIECE;
	if (store_run_list(c->api->store, &p->filter, &rows, e) < 0)
		return -1;
	for (unsigned i = 0; i < rows.n; i++) {
		if (p->text.p[p->text.len - 1] != '[')
			buf_putc(&p->text, ',');
		add_run(c->api, &rows.v[i], &p->text);
	}
	p->left -= rows.n;
	more = rows.more;
	if (more) {
		p->filter.after = store_run_cursor(&rows.v[rows.n - 1]);
		store_cursor_text(&p->filter.after, p->next);
	} else {
		p->next[0] = 0;
	}
	store_runs_fini(&rows);
	return more && p->left && p->text.len <= STORE_PAGE_BYTES;
}

static void run_page_go(struct http_req *r)
{
	struct call *c = r->user;
	struct run_page *p = c->state;
	struct err e;
	int more;

	do
		more = run_page_add(c, p, &e);
	while (more > 0 && !loop_work_is_long(c->api->loop));
	if (more > 0) {
		http_continue(r, run_page_go);
		return;
	}
	if (more < 0) {
		call_fail(c, &e);
		return;
	}
	buf_printf(&p->text, *p->next ? "],\"next\":\"%s\"}\n" : "],\"next\":null%s}\n", p->next);
	call_send_text(c, 200, p->text.p, p->text.len);
}

static void send_run_texts(struct call *c, const struct store_run_filter *f)
{
	struct run_page *p = call_alloc(c, sizeof(*p));

	*p = (struct run_page){ .filter = *f, .left = f->limit ? f->limit : STORE_PAGE };
	if (f->box) { /* copied, because the box of the caller may end before the page
		       * is complete */
		snprintf(p->box, sizeof(p->box), "%s", f->box);
		p->filter.box = p->box;
	}
	buf_puts(&p->text, "{\"items\":[");
	c->state = p;
	c->drop = free_run_page;
	run_page_go(c->req);
}

static void send_runs(struct call *c, const struct store_run_filter *f)
{
	struct store_runs rows = { 0 };
	char next[STORE_CURSOR_TEXT] = "";
	struct err e;

	if (!c->format || !c->format->json) {
		send_run_texts(c, f);
		return;
	}
	/* Called by another surface, which needs a document. */
	if (store_run_list(c->api->store, f, &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (rows.more) {
		struct store_cursor at = store_run_cursor(&rows.v[rows.n - 1]);

		store_cursor_text(&at, next);
	}
	call_list(c, run_documents(c->api, &rows), next);
	store_runs_fini(&rows);
}

static int read_page(struct call *c, struct store_run_filter *f)
{
	const char *after = call_query(c, "after");
	struct err e;

	f->team = c->who.team;
	f->running = call_query_flag(c, "running");
	f->limit = (unsigned)call_query_int(c, "limit", 0);
	if (after && store_cursor_parse(after, &f->after, &e) < 0) {
		call_fail(c, &e);
		return 0;
	}
	return 1;
}

void execs_list(struct call *c)
{
	struct box *b = call_box(c, 0);
	struct store_run_filter f = { 0 };

	if (!b || !read_page(c, &f))
		return;
	f.box = b->row.id;
	send_runs(c, &f);
}

void runs_list(struct call *c)
{
	struct store_run_filter f = { .box = call_query(c, "box"),
				      .cause = call_query(c, "cause") };
	struct box *b = f.box ? fleet_named(&c->api->fleet, c->who.team, f.box) : NULL;

	if (b)
		f.box = b->row.id;
	if (read_page(c, &f))
		send_runs(c, &f);
}

void runs_show(struct call *c)
{
	struct store_run row = { 0 };
	struct err e;

	if (!id_valid(call_param(c, 0)) ||
	    store_run_get(c->api->store, call_param(c, 0), &row, &e) < 0 ||
	    strcmp(row.team, c->who.team) != 0)
		call_error(c, 404, "not_found", "there is no such run", call_param(c, 0),
			   "list them: GET /v1/runs");
	else
		call_json(c, 200, row_or_run(c->api, &row));
	store_run_fini(&row);
}

void execs_show(struct call *c)
{
	struct box *b = call_box(c, 0);
	struct exec *r = b ? execs_living(b, call_param(c, 1)) : NULL;
	struct store_run row = { 0 };

	if (!b)
		return;
	if (r) {
		exec_input_refresh(r);
		call_json(c, 200, exec_json(r));
	} else if (execs_recorded(c, b, &row)) {
		call_json(c, 200, exec_row_json(&row));
		store_run_fini(&row);
	} else {
		no_exec(c);
	}
}

/* ---- wait ---- */

struct execs_waiting {
	struct exec_wait wait;
	struct timer timer;
	struct call *call;
};

static void stop_waiting(struct call *c)
{
	struct execs_waiting *w = c->state;

	exec_wait_cancel(&w->wait);
	timer_fini(&w->timer);
}

static void execs_waited(struct exec_wait *x, json_t *record)
{
	struct execs_waiting *w = loop_owner(x, struct execs_waiting, wait);

	call_json(w->call, 200, json_incref(record));
}

static void waited_enough(struct timer *t)
{
	struct execs_waiting *w = loop_owner(t, struct execs_waiting, timer);

	call_json(w->call, 202, exec_json(w->wait.run));
}

void execs_wait(struct call *c)
{
	struct box *b = call_box(c, 0);
	struct exec *r = b ? execs_living(b, call_param(c, 1)) : NULL;
	int64_t ms = call_query_int(c, "timeout_ms", 0);
	struct execs_waiting *w;

	if (!b)
		return;
	if (!r) { /* the exec has ended: the wait is complete */
		struct store_run row = { 0 };

		if (execs_recorded(c, b, &row)) {
			call_json(c, 200, exec_row_json(&row));
			store_run_fini(&row);
		} else {
			no_exec(c);
		}
		return;
	}
	w = call_alloc(c, sizeof(*w));
	*w = (struct execs_waiting){ .call = c, .wait.done = execs_waited };
	timer_init(&w->timer, c->api->loop, waited_enough);
	c->state = w;
	c->drop = stop_waiting;
	exec_await(r, &w->wait);
	if (ms)
		timer_set(&w->timer, (uint64_t)ms);
}

/* ---- output ---- */

struct cells_reading {
	struct exec_reader reader;
	struct event_stream event_stream;
	struct call *call;
	int raw; /* -1: events; else the stream */
	uint64_t asked[2];
};

static void reading_begins(struct exec_reader *t, unsigned stream, uint64_t from, uint64_t tip)
{
	struct cells_reading *r = loop_owner(t, struct cells_reading, reader);

	if (r->raw >= 0)
		return;
	event_stream_event(
		&r->event_stream,
		json_pack("{s:s, s:s, s:I, s:I, s:I}", "type", "reading", "stream",
			  stream ? "stderr" : "stdout", "from", (json_int_t)from, "tip",
			  (json_int_t)tip, "dropped",
			  (json_int_t)(from > r->asked[stream] ? from - r->asked[stream] : 0)));
}

static void reading_on_output(struct exec_reader *t, unsigned stream, uint64_t offset,
			      const char *bytes, size_t n)
{
	static const char *const types[2] = { "stdout", "stderr" };
	struct cells_reading *r = loop_owner(t, struct cells_reading, reader);
	int full = 0;

	if (r->raw < 0)
		full = event_stream_output(&r->event_stream, types[stream], stream, offset, bytes,
					   n);
	else if (r->raw == (int)stream)
		full = http_write(r->call->req, bytes, n);
	if (full)
		exec_reader_stop(t, 1);
}

static void reading_ends(struct exec_reader *t, json_t *record, const struct err *e)
{
	static const char *const types[2] = { "stdout", "stderr" };
	struct cells_reading *r = loop_owner(t, struct cells_reading, reader);
	json_t *doc = record ? json_copy(record)
			     : call_error_json(r->call, err_kind_name(e->kind), e->msg, NULL, NULL);

	if (r->raw < 0) {
		event_stream_flush(&r->event_stream, types);
		json_object_set_new(doc, "type", json_string(record ? "exit" : "error"));
		event_stream_event(&r->event_stream, doc);
	} else {
		json_decref(doc);
		if (e) { /* else the output would look complete */
			http_abort(r->call->req);
			return;
		}
	}
	http_end(r->call->req);
}

static void reading_dropped(struct call *c)
{
	struct cells_reading *r = c->state;

	exec_reader_close(&r->reader);
}

static void reading_drains(struct http_req *req)
{
	struct call *c = req->user;
	struct cells_reading *r = c->state;

	exec_reader_stop(&r->reader, 0);
}

int execs_ref(struct call *c, struct box *b, char id[ID_MAX + 1], uint32_t *ref)
{
	struct exec *r = execs_living(b, call_param(c, 1));
	struct store_run row = { 0 };

	if (r) {
		memcpy(id, r->id, sizeof(r->id));
		*ref = r->ref;
		return 1;
	}
	if (!execs_recorded(c, b, &row))
		return 0;
	memcpy(id, row.id, sizeof(row.id));
	*ref = row.ref;
	store_run_fini(&row);
	return 1;
}

void execs_output(struct call *c)
{
	static const struct exec_reader_events on = { .reading = reading_begins,
						      .output = reading_on_output,
						      .over = reading_ends };
	const char *raw = call_query(c, "raw");
	struct box *b = call_box(c, 0);
	char id[ID_MAX + 1];
	struct cells_reading *r;
	uint32_t ref;

	if (!b)
		return;
	if (raw && strcmp(raw, "stdout") && strcmp(raw, "stderr")) {
		call_error(c, 400, "invalid", "?raw= is stdout or stderr", raw, NULL);
		return;
	}
	if (!execs_ref(c, b, id, &ref)) {
		no_exec(c);
		return;
	}
	if (b->readers >= EXEC_READER_READERS) {
		call_error(c, 429, "limit", "too many readers in this box", b->row.id,
			   "close a stream that is not needed");
		return;
	}
	r = call_alloc(c, sizeof(*r));
	*r = (struct cells_reading){ .call = c, .raw = raw ? !strcmp(raw, "stderr") : -1 };
	r->asked[0] = (uint64_t)call_query_int(c, "stdout", 0);
	r->asked[1] = (uint64_t)call_query_int(c, "stderr", 0);
	c->state = r;
	c->drop = reading_dropped;
	c->req->on_drain = reading_drains;
	if (raw)
		http_stream(c->req, 200, "application/octet-stream", UINT64_MAX);
	else
		event_stream_begin(&r->event_stream, c->req,
				   event_stream_wanted(c) == EVENT_STREAM_SSE
					   ? EVENT_STREAM_SSE
					   : EVENT_STREAM_NDJSON);
	exec_reader_open(&r->reader, &c->api->fleet, b->row.id, id, ref, r->asked, &on);
}

/* ---- signals ---- */

static int signal_number(const json_t *v)
{
	const char *name = json_string_value(v);

	if (json_is_integer(v))
		return json_integer_value(v) > 0 && json_integer_value(v) < 65
			       ? (int)json_integer_value(v)
			       : -1;
	if (!name)
		return -1;
	if (!strncasecmp(name, "SIG", 3))
		name += 3;
	for (int i = 1; i < NSIG; i++)
		if (sigabbrev_np(i) && !strcasecmp(sigabbrev_np(i), name))
			return i;
	return -1;
}

void execs_signal(struct call *c)
{
	int signo = signal_number(call_get(c, "signal"));
	struct exec *r;

	if (signo < 0) {
		call_error(c, 400, "invalid", "signal: not the name or number of one", NULL,
			   "INT, TERM, KILL, ...");
		return;
	}
	r = execs_running(c);
	if (!r)
		return;
	exec_send_signal(r, signo);
	call_audit(c, "exec.signal", r->id, "ok");
	call_empty(c, 204);
}

void execs_resize(struct call *c)
{
	struct exec *r = execs_running(c);

	if (!r)
		return;
	if (!r->tty) {
		call_error(c, 409, "conflict", "it has no terminal", NULL, "start it with pty");
		return;
	}
	exec_set_size(r, (uint16_t)call_int(c, "rows", 24), (uint16_t)call_int(c, "cols", 80));
	call_audit(c, "exec.resize", r->id, "ok");
	call_empty(c, 204);
}

static void execs_killed(struct exec_wait *x, json_t *record)
{
	struct execs_waiting *w = loop_owner(x, struct execs_waiting, wait);

	call_json(w->call, 200, json_incref(record));
}

void execs_kill(struct call *c)
{
	struct exec *r = execs_running(c);
	struct execs_waiting *w;

	if (!r)
		return;
	w = call_alloc(c, sizeof(*w));
	*w = (struct execs_waiting){ .call = c, .wait.done = execs_killed };
	timer_init(&w->timer, c->api->loop, waited_enough);
	c->state = w;
	c->drop = stop_waiting;
	exec_await(r, &w->wait);
	exec_send_signal(r, SIGKILL);
	call_audit(c, "exec.kill", r->id, "ok");
}
