/* logs.c - see logs.h. A sandbox that ended is found by its id for as long as its row exists. */
#include "e2bcontrol/logs.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "e2bcontrol/templates.h"
#include "store/events.h"
#include "store/runs.h"

#include <stdio.h>
#include <string.h>

enum { LINES = 1000, EVENTS = 10, EVENTS_MAX = 100, OFFSET_MAX = 10000 };

#define MS_MAX (INT64_C(1) << 43)

const struct field logs_v1_query[] = {
	{ "start", FIELD_INT, 0, 0, MS_MAX, "start time, in milliseconds since 1970", NULL },
	{ "limit", FIELD_INT, 0, 0, LINES, "maximum number of lines (default 1000)", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field logs_v2_query[] = {
	{ "cursor", FIELD_INT, 0, 0, MS_MAX, "start time, in milliseconds since 1970", NULL },
	{ "limit", FIELD_INT, 0, 0, LINES, "maximum number of lines (default 1000)", NULL },
	{ "direction", FIELD_TEXT, 0, 0, 16, "forward or backward (default forward)", NULL },
	{ "level", FIELD_TEXT, 0, 0, 16, "lowest level: debug, info, warn or error", NULL },
	{ "search", FIELD_TEXT, 0, 0, 256, "text in the message", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field logs_events_query[] = {
	{ "offset", FIELD_INT, 0, 0, OFFSET_MAX, "number of events to skip", NULL },
	{ "limit", FIELD_INT, 0, 1, EVENTS_MAX, "maximum number of events (default 10)", NULL },
	{ "orderAsc", FIELD_BOOL, 0, 0, 0, "true: oldest first", NULL },
	{ "types", FIELD_TEXT, 0, 0, 400, "event types, separated by commas (default: all)", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

static const char *const levels[] = { "debug", "info", "warn", "error" };
enum { DEBUG, INFO, WARN, ERROR };

static const struct {
	const char *ours, *theirs, *message;
} kinds[] = {
	{ "box.created", "sandbox.lifecycle.created", "the sandbox was created" },
	{ "box.stopped", "sandbox.lifecycle.paused", "the sandbox was paused, its programs ended" },
	{ "box.paused", "sandbox.lifecycle.paused", "the sandbox was paused" },
	{ "box.woken", "sandbox.lifecycle.resumed", "the sandbox was resumed" },
	{ "box.resumed", "sandbox.lifecycle.resumed", "the sandbox was resumed" },
	{ "box.ended", "sandbox.lifecycle.killed", "the sandbox ended" },
};

static int kind_of(const struct store_event *ev)
{
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(ev->type, kinds[i].ours))
			return (int)i;
	return -1;
}

/* ---- which sandbox ---- */

/* Also finds a box that has ended; 0: an error was answered. */
static int logs_known(struct call *c, const char **out_id)
{
	const char *id = call_param(c, 0);
	struct store_box row = { 0 };
	struct err e;
	int ok = id_valid(id) && store_box_get(c->api->store, id, &row, &e) == 0;

	ok = ok && !strcmp(row.team, c->who.team) && (!c->who.box[0] || !strcmp(c->who.box, id));
	store_box_fini(&row);
	*out_id = id;
	if (!ok)
		call_error(c, 404, "not_found", "there is no such sandbox", id, NULL);
	return ok;
}

/* ---- its log ---- */

struct log_line {
	char message[600];
	int level;
	json_t *fields; /* of strings */
};

static void logs_field(struct log_line *l, const char *name, const json_t *value)
{
	char text[32];

	if (json_is_string(value)) {
		json_object_set(l->fields, name, (json_t *)value);
	} else if (json_is_integer(value)) {
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
		json_object_set_new(l->fields, name, json_string(text));
	}
}

/* The arguments with spaces between them, truncated. */
static void command_text(struct store *s, const char *run, char *out, size_t size)
{
	struct store_run row = { 0 };
	json_t *words, *word;
	size_t i, n = 0;
	struct err e;

	out[0] = 0;
	if (store_run_get(s, run, &row, &e) < 0)
		return;
	words = row.command ? json_loads(row.command, 0, NULL) : NULL;
	json_array_foreach(words, i, word)
	{
		const char *text = json_string_value(word);

		n += (size_t)snprintf(out + n, size - n, "%s%s", i ? " " : "", text ? text : "");
		if (n >= size)
			break;
	}
	json_decref(words);
	store_run_fini(&row);
}

static void program_line(struct call *c, const json_t *data, struct log_line *out)
{
	const char *run = json_string_value(json_object_get(data, "run"));
	const char *cause = json_string_value(json_object_get(data, "cause"));
	long long status = json_integer_value(json_object_get(data, "status"));
	char command[400];

	command_text(c->api->store, run ? run : "", command, sizeof(command));
	out->level = status ? WARN : INFO;
	snprintf(out->message, sizeof(out->message), "program ended (%.40s, status %lld): %s",
		 cause ? cause : "?", status, command);
}

static struct log_line line_of(struct call *c, const struct store_event *ev)
{
	json_t *data = ev->data ? json_loads(ev->data, 0, NULL) : NULL, *value;
	struct log_line out = { .level = INFO, .fields = json_object() };
	int kind = kind_of(ev);
	const char *name;

	if (!strcmp(ev->type, "run.ended"))
		program_line(c, data, &out);
	else
		snprintf(out.message, sizeof(out.message), "%s",
			 kind >= 0 ? kinds[kind].message : ev->type);
	json_object_set_new(out.fields, "event", json_string(ev->type));
	json_object_foreach(data, name, value) logs_field(&out, name, value);
	json_decref(data);
	return out;
}

static json_t *line_json(struct log_line *take_line, const struct store_event *ev)
{
	return json_pack("{s:o, s:s, s:o, s:o}", "timestamp", json_time((uint64_t)ev->at_ns),
			 "level", levels[take_line->level], "message",
			 json_text(take_line->message), "fields", take_line->fields);
}

struct logs_asked {
	int level;
	const char *search;
	unsigned limit;
};

static void add_line(struct call *c, const struct logs_asked *q, const struct store_event *ev,
		     json_t *out)
{
	struct log_line l = line_of(c, ev);

	if (l.level >= q->level && (!q->search || strstr(l.message, q->search)))
		json_array_append_new(out, line_json(&l, ev));
	else
		json_decref(l.fields);
}

/* Reads one page of events; a client that needs more continues after it. */
static json_t *logs_lines(struct call *c, const struct logs_asked *q, struct store_event_filter *f)
{
	struct store_events rows = { 0 };
	json_t *out = json_array();
	struct err e;

	f->limit = STORE_PAGE_MAX;
	if (q->limit && store_event_find(c->api->store, f, &rows, &e) < 0) {
		json_decref(out);
		call_fail(c, &e);
		return NULL;
	}
	for (unsigned i = 0; i < rows.n && json_array_size(out) < q->limit; i++)
		add_line(c, q, &rows.v[i], out);
	store_events_fini(&rows);
	return out;
}

/* E2B's command line parses such a line again, as a log line of a program. */
static json_t *plain_line(json_t *entry)
{
	json_t *doc = json_deep_copy(json_object_get(entry, "fields")), *line;
	auto_free char *text = NULL;

	json_object_set(doc, "level", json_object_get(entry, "level"));
	json_object_set(doc, "message", json_object_get(entry, "message"));
	json_object_set_new(doc, "logger", json_string("atoll"));
	text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(doc);
	line = text ? json_string(text) : json_null();
	return json_pack("{s:O, s:o}", "timestamp", json_object_get(entry, "timestamp"), "line",
			 line);
}

void logs_v1(struct call *c)
{
	struct store_event_filter f = { .team = c->who.team, .oldest_first = 1 };
	struct logs_asked q = { .limit = (unsigned)call_query_int(c, "limit", LINES) };
	json_t *entries, *plain, *one;
	size_t i;

	if (!logs_known(c, &f.box))
		return;
	f.since_ns = call_query_int(c, "start", 0) * 1000000;
	entries = logs_lines(c, &q, &f);
	if (!entries)
		return;
	plain = json_array();
	json_array_foreach(entries, i, one) json_array_append_new(plain, plain_line(one));
	call_json(c, 200, json_pack("{s:o, s:o}", "logs", plain, "logEntries", entries));
}

static int read_asked(struct call *c, struct logs_asked *q, int *out_backward, struct err *e)
{
	const char *level = call_query(c, "level"), *direction = call_query(c, "direction");

	*q = (struct logs_asked){ .search = call_query(c, "search"),
				  .limit = (unsigned)call_query_int(c, "limit", LINES) };
	*out_backward = direction && !strcmp(direction, "backward");
	if (direction && !*out_backward && strcmp(direction, "forward") != 0)
		return err_set(e, ERR_INVALID, "direction: '%.16s' is neither forward nor backward",
			       direction);
	while (level && q->level < (int)ARRAY_LEN(levels) && strcmp(level, levels[q->level]) != 0)
		q->level++;
	if (q->level == ARRAY_LEN(levels))
		return err_set(e, ERR_INVALID, "level: '%.16s' is not debug, info, warn or error",
			       level);
	return 0;
}

void logs_v2(struct call *c)
{
	struct store_event_filter f = { .team = c->who.team };
	int64_t cursor = call_query_int(c, "cursor", 0) * 1000000;
	struct logs_asked q;
	int backward;
	struct err e;
	json_t *out;

	if (read_asked(c, &q, &backward, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (!logs_known(c, &f.box))
		return;
	f.oldest_first = !backward;
	f.since_ns = backward ? 0 : cursor;
	f.until_ns = backward ? cursor : 0;
	out = logs_lines(c, &q, &f);
	if (out)
		call_json(c, 200, json_pack("{s:o}", "logs", out));
}

/* ---- lifecycle events ---- */

/* Adds what a webhook of E2B contains: metadata, and the size and duration of an execution that ended. */
static void event_add_box(json_t *data, const struct store_event *ev, const struct store_box *row)
{
	json_t *metadata = row->metadata ? json_loads(row->metadata, 0, NULL) : NULL;
	const char *type = kinds[kind_of(ev)].theirs;

	json_object_set_new(data, "sandbox_metadata", metadata ? metadata : json_object());
	if (strcmp(type, "sandbox.lifecycle.killed") != 0 &&
	    strcmp(type, "sandbox.lifecycle.paused") != 0)
		return;
	json_object_set_new(data, "execution",
			    json_pack("{s:o, s:I, s:I, s:I}", "started_at",
				      json_time((uint64_t)row->started_ns), "vcpu_count",
				      (json_int_t)((row->limits.cpu_milli + 999) / 1000),
				      "memory_mb", (json_int_t)(row->limits.mem_bytes >> 20),
				      "execution_time",
				      (json_int_t)((ev->at_ns - row->started_ns) / 1000000)));
}

/* A stable name. */
static json_t *event_id(int64_t seq)
{
	char text[40];

	snprintf(text, sizeof(text), "00000000-0000-4000-8000-%012llx",
		 (unsigned long long)seq & 0xffffffffffffULL);
	return json_string(text);
}

json_t *logs_lifecycle_json(struct api *a, const struct store_event *ev)
{
	json_t *data = ev->data ? json_loads(ev->data, 0, NULL) : NULL;
	const char *template = "base";
	struct store_box row = { 0 };
	struct e2b_box x;
	struct err e;

	if (kind_of(ev) < 0) {
		json_decref(data);
		return NULL;
	}
	data = data ? data : json_object();
	if (store_box_get(a->store, ev->box, &row, &e) == 0) {
		e2b_box_read(&(struct box){ .row = row }, &x);
		template = templates_of(&x);
		event_add_box(data, ev, &row);
		store_box_fini(&row);
	}
	return json_pack("{s:s, s:o, s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:o}", "version", "v2",
			 "id", event_id(ev->seq), "type", kinds[kind_of(ev)].theirs, "eventData",
			 data, "sandboxBuildId", "", "sandboxExecutionId", ev->box, "sandboxId",
			 ev->box, "sandboxTeamId", ev->team, "sandboxTemplateId", template,
			 "timestamp", json_time((uint64_t)ev->at_ns));
}

int logs_is_lifecycle(const char *type)
{
	static const char *const others[] = { "sandbox.lifecycle.updated",
					      "sandbox.lifecycle.checkpointed" };

	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(type, kinds[i].theirs) == 0)
			return 1;
	for (unsigned i = 0; i < ARRAY_LEN(others); i++)
		if (strcmp(type, others[i]) == 0)
			return 1;
	return 0;
}

/* Whole words between commas. */
static int is_listed(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == n && !strncmp(p, word, n))
			return 1;
	return 0;
}

static int is_wanted(const struct store_event *ev, const char *types)
{
	int kind = kind_of(ev);

	return kind >= 0 && (!types || !*types || is_listed(types, kinds[kind].theirs));
}

static void send_events(struct call *c, const char *box)
{
	enum { PAGES = 20 }; /* the search stops after this many */
	struct store_event_filter f = { .team = c->who.team, .box = box, .limit = STORE_PAGE_MAX };
	int64_t skip = call_query_int(c, "offset", 0), limit = call_query_int(c, "limit", EVENTS);
	const char *types = call_query(c, "types");
	json_t *out = json_array();
	int more = 1;
	struct err e;

	f.oldest_first = call_query_flag(c, "orderAsc");
	for (int page = 0; page < PAGES && more && (int64_t)json_array_size(out) < limit; page++) {
		struct store_events rows = { 0 };

		if (store_event_find(c->api->store, &f, &rows, &e) < 0) {
			json_decref(out);
			call_fail(c, &e);
			return;
		}
		for (unsigned i = 0; i < rows.n && (int64_t)json_array_size(out) < limit; i++)
			if (is_wanted(&rows.v[i], types) && skip-- <= 0)
				json_array_append_new(out, logs_lifecycle_json(c->api, &rows.v[i]));
		more = rows.more;
		f.behind = rows.n ? rows.v[rows.n - 1].seq : 0;
		store_events_fini(&rows);
	}
	call_json(c, 200, out);
}

void logs_events(struct call *c)
{
	send_events(c, NULL);
}

void logs_events_box(struct call *c)
{
	const char *id;

	if (logs_known(c, &id))
		send_events(c, id);
}
