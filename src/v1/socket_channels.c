/* socket_channels.c - the channel types: streams of an exec, events, changes of a folder, usage of
 * a box. */
#include "v1/socket.h"
#include "base/cleanup.h"
#include "record/changes.h"
#include "client/file_client.h"
#include "fleet/exec_reader.h"
#include "store/events.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static uint64_t number_of(const json_t *msg, const char *name, uint64_t otherwise)
{
	const json_t *v = json_object_get(msg, name);

	return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v)
								: otherwise;
}

/* ---- exec, pty: the streams of one exec, each from a byte offset ---- */

struct exec_channel {
	struct channel base;
	struct exec_reader reader;
	char box[ID_MAX + 1], run[ID_MAX + 1];
};

static struct exec *run_of(const struct exec_channel *x)
{
	struct box *b = fleet_find(&channel_api(&x->base)->fleet, x->box);

	return b ? exec_lookup(b, x->run) : NULL;
}

static void exec_reading(struct exec_reader *t, unsigned stream, uint64_t from, uint64_t tip)
{
	struct exec_channel *x = loop_owner(t, struct exec_channel, reader);

	channel_say(&x->base, "reading",
		    json_pack("{s:s, s:I, s:I, s:I}", "stream", stream ? "stderr" : "stdout",
			      "from", (json_int_t)from, "tip", (json_int_t)tip, "dropped",
			      (json_int_t)(from > t->from[stream] ? from - t->from[stream] : 0)));
}

static void exec_output(struct exec_reader *t, unsigned stream, uint64_t offset, const char *bytes,
			size_t n)
{
	struct exec_channel *x = loop_owner(t, struct exec_channel, reader);

	channel_bytes(&x->base, stream, offset, bytes, n);
}

static void exec_over(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct exec_channel *x = loop_owner(t, struct exec_channel, reader);

	if (record)
		channel_say(&x->base, "exit", json_pack("{s:O}", "record", record));
	channel_end(&x->base, record ? NULL : e);
}

/* Finds an exec by id or tag, running or ended. */
static int exec_find(struct exec_channel *x, struct box *b, const char *name, uint32_t *ref,
		     struct err *e)
{
	struct exec *r = exec_lookup(b, name);
	struct store_run row = { 0 };
	int mine;

	r = r ? r : exec_by_tag(b, name);
	if (r) {
		snprintf(x->run, sizeof(x->run), "%s", r->id);
		*ref = r->ref;
		return 0;
	}
	if (!id_valid(name) || store_run_get(channel_api(&x->base)->store, name, &row, e) < 0)
		return err_set(e, ERR_NOT_FOUND, "there is no exec '%.40s' in this box", name);
	mine = !strcmp(row.box, b->row.id);
	snprintf(x->run, sizeof(x->run), "%s", row.id);
	*ref = row.ref;
	store_run_fini(&row);
	return mine ? 0 : err_set(e, ERR_NOT_FOUND, "there is no exec '%.40s' in this box", name);
}

static int exec_open(struct channel *c, const json_t *msg, struct err *e)
{
	static const struct exec_reader_events on = { .reading = exec_reading,
						      .output = exec_output,
						      .over = exec_over };
	struct exec_channel *x = (struct exec_channel *)c;
	const char *name = json_string_value(json_object_get(msg, "exec"));
	uint64_t from[2] = { number_of(msg, "stdout", 0), number_of(msg, "stderr", 0) };
	struct box *b = channel_box(c, msg, e);
	uint32_t ref;

	if (!b)
		return -1;
	if (!name)
		return err_set(e, ERR_INVALID, "exec: which one?");
	if (exec_find(x, b, name, &ref, e) < 0)
		return -1;
	snprintf(x->box, sizeof(x->box), "%s", b->row.id);
	exec_reader_open(&x->reader, &channel_api(c)->fleet, b->row.id, x->run, ref, from, &on);
	for (unsigned s = 0; s < 2; s++)
		x->reader.until[s] =
			number_of(msg, s ? "stderr_credit" : "stdout_credit", UINT64_MAX);
	channel_say(c, "opened", json_pack("{s:s, s:s}", "box", x->box, "exec", x->run));
	return 0;
}

static int exec_message(struct channel *c, const char *op, const json_t *msg, struct err *e)
{
	struct exec_channel *x = (struct exec_channel *)c;
	struct exec *r = run_of(x);
	int signo = (int)number_of(msg, "signal", 0);

	if (!strcmp(op, "credit")) {
		for (unsigned s = 0; s < 2; s++)
			x->reader.until[s] =
				number_of(msg, s ? "stderr" : "stdout", x->reader.until[s]);
		exec_reader_stop(&x->reader, x->reader.stopped);
		return 0;
	}
	if (channel_who(c)->role < ROLE_EDITOR)
		return err_set(e, ERR_DENIED, "a viewer may only read");
	if (!r)
		return err_set(e, ERR_CONFLICT, "this exec has ended");
	if (!strcmp(op, "eof"))
		exec_input_close(r);
	else if (!strcmp(op, "resize"))
		exec_set_size(r, (uint16_t)number_of(msg, "rows", 24),
			      (uint16_t)number_of(msg, "cols", 80));
	else if (!strcmp(op, "signal") && signo > 0 && signo < NSIG)
		exec_send_signal(r, signo);
	else
		return err_set(e, ERR_INVALID,
			       "'%.20s': credit, eof, resize, signal (a number), close", op);
	return 0;
}

/* Input that arrives faster than the program reads waits in the exec, up to its limit; above it the
 * client gets an error, and nothing of this message is accepted. */
static void exec_bytes(struct channel *c, unsigned stream, const char *bytes, size_t n)
{
	struct exec_channel *x = (struct exec_channel *)c;
	struct exec *r = run_of(x);
	struct err e;

	(void)stream;
	if (r && r->stdin_open && r->input.len - r->input_taken + n <= EXEC_INPUT) {
		exec_stdin(r, bytes, n);
		return;
	}
	err_set(&e, r && r->stdin_open ? ERR_LIMIT : ERR_CONFLICT,
		r && r->stdin_open ? "the program does not read; these bytes were not taken"
				   : "the program reads no more input");
	channel_say(c, "error", call_error_json(NULL, err_kind_name(e.kind), e.msg, NULL, NULL));
}

static void exec_request(struct channel *c, int full)
{
	exec_reader_stop(&((struct exec_channel *)c)->reader, full);
}

static void exec_close(struct channel *c)
{
	exec_reader_close(&((struct exec_channel *)c)->reader);
}

const struct channel_kind channel_exec = {
	/* clang-format off */
	"exec", sizeof(struct exec_channel), exec_open, exec_message, exec_bytes, ROLE_EDITOR, exec_request, exec_close
	/* clang-format on */
};
const struct channel_kind channel_pty = {
	/* clang-format off */
	"pty", sizeof(struct exec_channel), exec_open, exec_message, exec_bytes, ROLE_EDITOR, exec_request, exec_close
	/* clang-format on */
};

/* ---- events ---- */

struct events_channel {
	struct channel base;
	struct fleet_subscriber subscriber;
	char box[ID_MAX + 1]; /* only events of this box; "": of all boxes of the team */
};

static void events_on_event(struct fleet_subscriber *subscriber, const struct store_event *ev,
			    const json_t *data)
{
	struct events_channel *x = loop_owner(subscriber, struct events_channel, subscriber);
	const struct principal *who = channel_who(&x->base);

	if (strcmp(ev->team, who->team) != 0 || (x->box[0] && strcmp(x->box, ev->box) != 0))
		return;
	channel_say(&x->base, "event",
		    json_pack("{s:I, s:s, s:s, s:O?}", "seq", (json_int_t)ev->seq, "box", ev->box,
			      "type", ev->type, "data", data));
}

static int events_replay(struct events_channel *x, int64_t after, struct err *e)
{
	struct store_events rows = { 0 };
	int more;

	do {
		if (store_event_list(channel_api(&x->base)->store, after,
				     channel_who(&x->base)->team, x->box[0] ? x->box : NULL,
				     STORE_PAGE_MAX, &rows, e) < 0)
			return -1;
		for (unsigned i = 0; i < rows.n; i++) {
			json_t *data = rows.v[i].data ? json_loads(rows.v[i].data, 0, NULL) : NULL;

			events_on_event(&x->subscriber, &rows.v[i], data);
			json_decref(data);
			after = rows.v[i].seq;
		}
		more = rows.more;
		store_events_fini(&rows);
	} while (more);
	return 0;
}

static int events_open(struct channel *c, const json_t *msg, struct err *e)
{
	struct events_channel *x = (struct events_channel *)c;
	const json_t *after = json_object_get(msg, "after");
	struct fleet *f = &channel_api(c)->fleet;
	struct box *b = NULL;

	if (json_object_get(msg, "box") || channel_who(c)->box[0]) {
		b = channel_box(c, msg, e);
		if (!b)
			return -1;
		snprintf(x->box, sizeof(x->box), "%s", b->row.id);
	}
	x->subscriber.on_event = events_on_event;
	channel_say(c, "opened", NULL);
	if (json_is_integer(after) && events_replay(x, json_integer_value(after), e) < 0)
		return -1;
	x->subscriber.next = f->subscribers;
	f->subscribers = &x->subscriber;
	return 0;
}

static void events_close(struct channel *c)
{
	struct events_channel *x = (struct events_channel *)c;
	struct fleet_subscriber **at = &channel_api(c)->fleet.subscribers;

	while (*at && *at != &x->subscriber)
		at = &(*at)->next;
	if (*at)
		*at = x->subscriber.next;
}

const struct channel_kind channel_events = {
	/* clang-format off */
	.name = "events", .size = sizeof(struct events_channel), .open = events_open, .close = events_close
	/* clang-format on */
};

/* ---- fs: what changes below a folder ---- */

struct watch_channel {
	struct channel base;
	struct file_client file_client;
	char path[4096];
	int recursive;
};

static void watch_ready(struct file_client *k)
{
	struct watch_channel *x = loop_owner(k, struct watch_channel, file_client);
	struct frame ask = { .flags = x->recursive ? WIRE_WATCH_DEEP : 0 };

	file_client_ask(k, WIRE_WATCH, &ask, sizeof(ask), x->path, strlen(x->path));
}

static void watch_begun(struct file_client *k, uint16_t flags)
{
	(void)flags;
	channel_say(&loop_owner(k, struct watch_channel, file_client)->base, "opened", NULL);
}

static void watch_event(struct file_client *k, const struct frame *f, size_t len)
{
	struct watch_channel *x = loop_owner(k, struct watch_channel, file_client);
	const struct wire_event *ev = (const struct wire_event *)f;
	const char *name = (const char *)(ev + 1), *end = (const char *)f + len;
	/* client/frame_conn.c adds a NUL after every frame. */
	const char *second = name + strlen(name) + 1;
	json_t *event;

	if (f->type != WIRE_EVENT)
		return;
	event = json_pack("{s:s, s:o, s:b}", "type", file_client_event_name(ev->kind), "path",
			  json_text(name), "folder", ev->is_dir != 0);
	if (second < end)
		json_object_set_new(event, "to", json_text(second));
	channel_say(&x->base, "event", event);
}

static void watch_failed(struct file_client *k, const struct err *e)
{
	channel_end(&loop_owner(k, struct watch_channel, file_client)->base, e);
}

static int watch_open(struct channel *c, const json_t *msg, struct err *e)
{
	static const struct file_client_events on = { .ready = watch_ready,
						      .done = watch_begun,
						      .other = watch_event,
						      .failed = watch_failed };
	struct watch_channel *x = (struct watch_channel *)c;
	const char *path = json_string_value(json_object_get(msg, "path"));
	struct box *b = channel_box(c, msg, e);

	if (!b)
		return -1;
	path = path ? path : "";
	if (strlen(path) > 4000)
		return err_set(e, ERR_INVALID, "path: more than 4000 bytes");
	snprintf(x->path, sizeof(x->path), "%s%s%s", *path == '/' ? "" : BOX_HOME,
		 *path && *path != '/' ? "/" : "", path);
	x->recursive = !json_is_false(json_object_get(msg, "recursive"));
	file_client_open(&x->file_client, &b->line, 0, &on);
	return 0;
}

static void watch_request(struct channel *c, int full)
{
	file_client_pause(&((struct watch_channel *)c)->file_client, full);
}

static void watch_close(struct channel *c)
{
	file_client_close(&((struct watch_channel *)c)->file_client);
}

const struct channel_kind channel_watch = {
	/* clang-format off */
	.name = "fs", .size = sizeof(struct watch_channel), .open = watch_open,
	.request = watch_request, .close = watch_close
	/* clang-format on */
};

/* ---- stats: usage of a box, once a second ---- */

struct stats_channel {
	struct channel base;
	struct timer timer;
	struct keeper_call *asking;
	char box[ID_MAX + 1];
};

static json_t *channel_figure(uint64_t n)
{
	return n == UINT64_MAX ? json_null() : json_integer((json_int_t)n);
}

static void stats_counted(void *ctx, const struct frame *f, size_t len, int *fd,
			  const struct err *e)
{
	struct stats_channel *x = ctx;
	const struct wire_counters *n = (const struct wire_counters *)f;
	const struct box *b = fleet_find(&channel_api(&x->base)->fleet, x->box);

	(void)len;
	(void)fd;
	x->asking = NULL;
	if (!f) {
		channel_end(&x->base, e);
		return;
	}
	channel_say(&x->base, "stats",
		    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "mem",
			      channel_figure(n->mem_now), "mem_peak", channel_figure(n->mem_peak),
			      "cpu_us", channel_figure(n->cpu_us), "pids",
			      channel_figure(n->pids_now), "oom_kills",
			      channel_figure(n->oom_kills), "pids_hits",
			      channel_figure(n->pids_hits), "throttled_us",
			      channel_figure(n->throttled_us), "bytes_in",
			      b ? (json_int_t)b->way.bytes_in : 0, "bytes_out",
			      b ? (json_int_t)b->way.bytes_out : 0));
	timer_set(&x->timer, 1000);
}

static void stats_due(struct timer *t)
{
	struct stats_channel *x = loop_owner(t, struct stats_channel, timer);

	x->asking =
		keeper_client_request_box(&channel_api(&x->base)->fleet.keeper, WIRE_COUNTERS, 0,
					  fleet_keeper_id(&channel_api(&x->base)->fleet, x->box),
					  WIRE_COUNTERS_REPLY, stats_counted, x);
}

static int stats_open(struct channel *c, const json_t *msg, struct err *e)
{
	struct stats_channel *x = (struct stats_channel *)c;
	struct box *b = channel_box(c, msg, e);

	if (!b)
		return -1;
	snprintf(x->box, sizeof(x->box), "%s", b->row.id);
	timer_init(&x->timer, channel_api(c)->loop, stats_due);
	timer_set(&x->timer, 0);
	channel_say(c, "opened", NULL);
	return 0;
}

static void stats_close(struct channel *c)
{
	struct stats_channel *x = (struct stats_channel *)c;

	keeper_client_cancel(&channel_api(c)->fleet.keeper, x->asking);
	timer_fini(&x->timer);
}

const struct channel_kind channel_stats = {
	/* clang-format off */
	.name = "stats", .size = sizeof(struct stats_channel), .open = stats_open, .close = stats_close
	/* clang-format on */
};
