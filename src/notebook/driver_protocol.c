/* driver_protocol.c - see driver_protocol.h. */
#include "notebook/driver_protocol.h"
#include "base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STRING 1u << JSON_STRING
#define OBJECT 1u << JSON_OBJECT
#define ARRAY 1u << JSON_ARRAY
#define NUMBER 1u << JSON_INTEGER
#define BOOLEAN (1u << JSON_TRUE | 1u << JSON_FALSE)

static const struct says {
	const char *name;
	enum driver_msg_kind kind;
	struct {
		const char *name;
		unsigned types; /* bits of json_type */
		int optional;
	} fields[5];
} table[] = {
	{ "ready", DRIVER_MSG_READY, { { "language", STRING, 0 }, { "version", STRING, 1 } } },
	{ "result",
	  DRIVER_MSG_RESULT,
	  { { "main", BOOLEAN, 0 },
	    { "data", OBJECT, 0 },
	    { "extra", OBJECT, 1 },
	    { "truncated", ARRAY, 1 } } },
	{ "input", DRIVER_MSG_INPUT, { { "prompt", STRING, 0 }, { "password", BOOLEAN, 1 } } },
	{ "error",
	  DRIVER_MSG_ERROR,
	  { { "name", STRING, 0 },
	    { "value", STRING, 0 },
	    { "frames", ARRAY, 0 },
	    { "text", STRING, 0 } } },
	{ "end",
	  DRIVER_MSG_END,
	  { { "status", STRING, 0 }, { "count", NUMBER, 1 }, { "code", NUMBER, 1 } } },
};
static const char *const statuses[] = {
	/* clang-format off */
	[DRIVER_MSG_OK] = "ok", [DRIVER_MSG_FAILED] = "error", [DRIVER_MSG_INTERRUPTED] = "interrupted"
	/* clang-format on */
};

/* The beginning of an untrusted line, for the message. */
static int driver_msg_wrong(struct err *e, const char *why, const char *line, size_t n)
{
	char some[41];
	size_t i;

	for (i = 0; i < n && i < sizeof(some) - 1; i++)
		some[i] = line[i] < 0x20 || line[i] > 0x7e ? '?' : line[i];
	some[i] = 0;
	return err_set(e, ERR_INVALID, "the driver sent an invalid message (%s): '%s%s'", why, some,
		       i < n ? "..." : "");
}

/* Counts values before the parser allocates memory for them. */
static int too_many(const char *line, size_t n)
{
	size_t nodes = 0;
	int in_text = 0;

	for (size_t i = 0; i < n; i++) {
		if (line[i] == '\\' && in_text)
			i++;
		else if (line[i] == '"')
			in_text = !in_text;
		else if (!in_text && strchr(",:[{", line[i]))
			nodes++;
	}
	return nodes > DRIVER_MSG_NODES;
}

static int cell_of(const json_t *doc, uint64_t *out)
{
	const char *id = json_string_value(json_object_get(doc, "id"));
	char *end;

	if (!id || *id < '1' || *id > '9' || strlen(id) > 18)
		return -1;
	*out = strtoull(id, &end, 10);
	return *end ? -1 : 0;
}

static int status_of(const json_t *doc, enum driver_msg_status *out)
{
	const char *said = json_string_value(json_object_get(doc, "status"));

	for (unsigned i = 0; i < ARRAY_LEN(statuses); i++)
		if (!strcmp(said, statuses[i])) {
			*out = (enum driver_msg_status)i;
			return 0;
		}
	return -1;
}

/* Only fields of the table are passed on to clients. */
static json_t *copy_known(const struct says *s, const json_t *doc)
{
	json_t *event = json_pack("{s:s}", "type", s->name);

	for (unsigned i = 0; i < ARRAY_LEN(s->fields) && s->fields[i].name; i++) {
		json_t *v = json_object_get(doc, s->fields[i].name);

		if (v ? !(s->fields[i].types >> json_typeof(v) & 1) : !s->fields[i].optional) {
			json_decref(event);
			return NULL;
		}
		if (v)
			json_object_set(event, s->fields[i].name, v);
	}
	return event;
}

static int driver_msg_judge(const json_t *doc, struct driver_msg_event *out, const char **why)
{
	const char *ev = json_string_value(json_object_get(doc, "ev"));
	const struct says *s = NULL;
	struct driver_msg_event found;

	for (unsigned i = 0; ev && i < ARRAY_LEN(table); i++)
		if (!strcmp(ev, table[i].name))
			s = &table[i];
	*why = s ? "a field is wrong" : "no such event";
	if (!s)
		return -1;
	found = (struct driver_msg_event){ .kind = s->kind, .doc = copy_known(s, doc) };
	if (!found.doc || (s->kind != DRIVER_MSG_READY && cell_of(doc, &found.cell) < 0) ||
	    (s->kind == DRIVER_MSG_END && status_of(doc, &found.status) < 0)) {
		json_decref(found.doc);
		return -1;
	}
	*out = found;
	return 0;
}

static int read_line(const char *line, size_t n, struct driver_msg_event *out, struct err *e)
{
	const char *why = "too many values";
	json_t *doc;
	int rc;

	if (too_many(line, n))
		return driver_msg_wrong(e, why, line, n);
	doc = json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (!doc)
		return driver_msg_wrong(e, "not JSON", line, n);
	rc = driver_msg_judge(doc, out, &why);
	json_decref(doc);
	return rc < 0 ? driver_msg_wrong(e, why, line, n) : 1;
}

int driver_msg_take(struct driver_msg *t, const char **bytes, size_t *n,
		    struct driver_msg_event *out, struct err *e)
{
	const char *from = *bytes, *end = memchr(from, '\n', *n);
	size_t take = end ? (size_t)(end - from) : *n;
	int rc = 0;

	*bytes += take + (end != NULL);
	*n -= take + (end != NULL);
	if (t->lost) {
		t->lost = !end;
		return 0;
	}
	if (t->line.len + take > DRIVER_MSG_LINE)
		return driver_msg_wrong(e, "a line without an end", t->line.len ? t->line.p : from,
					t->line.len ? t->line.len : take);
	if (!end || t->line.len) {
		buf_add(&t->line, from, take);
		from = t->line.p;
		take = t->line.len;
	}
	if (end && take)
		rc = read_line(from, take, out, e);
	if (end && t->line.room > 65536)
		buf_fini(&t->line); /* long lines are rare; the buffer of a megabyte is not kept
				    * for the next one */
	else if (end)
		buf_cut(&t->line, 0);
	return rc;
}

void driver_msg_gap(struct driver_msg *t)
{
	buf_cut(&t->line, 0);
	t->lost = 1;
}

void driver_msg_fini(struct driver_msg *t)
{
	buf_fini(&t->line);
}

/* ---- to the driver ---- */

static void driver_msg_send(struct buf *out, json_t *take_doc)
{
	auto_free char *text = json_dumps(take_doc, JSON_COMPACT | JSON_ENSURE_ASCII);

	json_decref(take_doc);
	if (!text)
		abort();
	buf_puts(out, text);
	buf_putc(out, '\n');
}

static void id_text(uint64_t cell, char out[24])
{
	snprintf(out, 24, "%" PRIu64, cell);
}

void driver_msg_run(struct buf *out, uint64_t cell, const char *code, size_t n, const json_t *env)
{
	json_t *vars = env ? json_incref((json_t *)env) : json_object();
	char id[24];

	id_text(cell, id);
	driver_msg_send(out, json_pack("{s:s, s:s, s:s%, s:o}", "op", "run", "id", id, "code", code,
				       n, "env", vars));
}

void driver_msg_input(struct buf *out, uint64_t cell, const char *text, size_t n)
{
	json_t *line = text ? json_stringn(text, n) : json_null();
	char id[24];

	id_text(cell, id);
	driver_msg_send(out, json_pack("{s:s, s:s, s:o}", "op", "input", "id", id, "text", line));
}
