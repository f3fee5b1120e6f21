/* control.c - see control.h. */
#include "cluster/control.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "cluster/role.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTROL_WHOLE_MAX (1ll << 53) /* sequence numbers, revisions, epochs */
#define CONTROL_MEMORY_MAX (1ll << 50)

/* ---- figures ---- */

void control_figures_fini(struct control_figures *f)
{
	free(f->templates);
	free(f->labels);
	memset(f, 0, sizeof(*f));
}

uint64_t control_hash(const char *text)
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 sum;
	uint64_t hash = 0;

	sha256_init(&sum);
	sha256_add(&sum, text, strlen(text));
	sha256_end(&sum, digest);
	for (unsigned i = 0; i < 8; i++)
		hash = hash << 8 | digest[i];
	return hash;
}

static int control_compare_hashes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int control_has_template(const struct control_figures *f, uint64_t hash)
{
	return f->ntemplates && bsearch(&hash, f->templates, f->ntemplates, sizeof(hash),
					control_compare_hashes) != NULL;
}

int control_has_label(const struct control_figures *f, const char *label)
{
	for (unsigned i = 0; i < f->nlabels; i++)
		if (strcmp(f->labels[i], label) == 0)
			return 1;
	return 0;
}

/* ---- fields ---- */

struct control_field {
	const char *name;
	int64_t least, most;
	size_t offset; /* in the figures */
	size_t size;   /* 4 or 8 bytes */
};
#define CONTROL_FIELD(member, low, high)                                                           \
	{                                                                                          \
#member, low, high, offsetof(struct control_figures, member),                      \
			sizeof(((struct control_figures *)0)->member)                              \
	}
static const struct control_field control_fields[] = {
	CONTROL_FIELD(seq, 1, CONTROL_WHOLE_MAX),
	CONTROL_FIELD(load, 0, CONTROL_LOAD_FULL),
	CONTROL_FIELD(cpus, 1, 65536),
	CONTROL_FIELD(memory_total, 1, CONTROL_MEMORY_MAX),
	CONTROL_FIELD(memory_free, 0, CONTROL_MEMORY_MAX),
	CONTROL_FIELD(boxes, 0, 1000000),
	CONTROL_FIELD(boxes_most, 0, 1000000),
	CONTROL_FIELD(pool, 0, 1000000),
	CONTROL_FIELD(refusals, 0, CONTROL_WHOLE_MAX),
	CONTROL_FIELD(copies, 0, UINT32_MAX), /* older nodes do not send it */
};
enum { CONTROL_FIELDS_NEEDED = ARRAY_LEN(control_fields) - 1 };

static int control_whole(const json_t *from, const char *name, int64_t least, int64_t most,
			 int64_t *out, struct err *e)
{
	const json_t *v = json_object_get(from, name);

	if (!v)
		return err_set(e, ERR_INVALID, "%s is missing", name);
	if (!json_is_integer(v))
		return err_set(e, ERR_INVALID, "%s is not a whole number", name);
	if (json_integer_value(v) < least || json_integer_value(v) > most)
		return err_set(e, ERR_INVALID,
			       "%s is %" JSON_INTEGER_FORMAT ", not %" PRId64 " to %" PRId64, name,
			       json_integer_value(v), least, most);
	*out = json_integer_value(v);
	return 0;
}

/* Text for lists and logs: no control characters, not empty. */
static int control_text(const json_t *v, const char *name, char *out, size_t room, struct err *e)
{
	size_t len = json_string_length(v);

	if (!json_is_string(v) || len == 0 || len >= room)
		return err_set(e, ERR_INVALID, "%s is not a text of 1 to %zu bytes", name,
			       room - 1);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)json_string_value(v)[i] < ' ' || json_string_value(v)[i] == 0x7f)
			return err_set(e, ERR_INVALID, "%s contains a control character", name);
	memcpy(out, json_string_value(v), len + 1);
	return 0;
}

static int control_hash_of(const json_t *v, uint64_t *out)
{
	const char *text = json_string_value(v);

	if (!text || json_string_length(v) != 16 || strspn(text, "0123456789abcdef") != 16)
		return -1;
	*out = strtoull(text, NULL, 16);
	return 0;
}

static int control_read_templates(const json_t *list, struct control_message *m, struct err *e)
{
	size_t n = json_array_size(list);

	if (!list)
		return 0;
	if (!json_is_array(list) || n > CONTROL_TEMPLATES)
		return err_set(e, ERR_INVALID, "templates is not a list of at most %d hashes",
			       CONTROL_TEMPLATES);
	m->has_templates = 1;
	m->figures.templates = calloc(n + 1, sizeof(uint64_t));
	if (!m->figures.templates)
		abort();
	for (size_t i = 0; i < n; i++)
		if (control_hash_of(json_array_get(list, i), &m->figures.templates[i]) < 0)
			return err_set(e, ERR_INVALID, "templates[%zu] is not 16 hex digits", i);
	m->figures.ntemplates = (unsigned)n;
	qsort(m->figures.templates, n, sizeof(uint64_t), control_compare_hashes);
	return 0;
}

static int control_read_labels(const json_t *list, struct control_message *m, struct err *e)
{
	size_t n = json_array_size(list);

	if (!list)
		return 0;
	if (!json_is_array(list) || n > CONTROL_LABELS)
		return err_set(e, ERR_INVALID, "labels is not a list of at most %d texts",
			       CONTROL_LABELS);
	m->has_labels = 1;
	m->figures.labels = calloc(n + 1, CONTROL_LABEL);
	if (!m->figures.labels)
		abort();
	for (size_t i = 0; i < n; i++)
		if (control_text(json_array_get(list, i), "a label", m->figures.labels[i],
				 CONTROL_LABEL, e) < 0)
			return -1;
	m->figures.nlabels = (unsigned)n;
	return 0;
}

/* ---- messages ---- */

static int control_read_heartbeat(const json_t *v, struct control_message *m, struct err *e)
{
	const json_t *draining = json_object_get(v, "draining"), *arch = json_object_get(v, "arch");

	for (size_t i = 0; i < ARRAY_LEN(control_fields); i++) {
		const struct control_field *f = &control_fields[i];
		int64_t n = 0;

		if (i >= CONTROL_FIELDS_NEEDED && !json_object_get(v, f->name))
			continue;
		if (control_whole(v, f->name, f->least, f->most, &n, e) < 0)
			return -1;
		if (f->size == sizeof(uint64_t))
			*(uint64_t *)((char *)&m->figures + f->offset) = (uint64_t)n;
		else
			*(uint32_t *)((char *)&m->figures + f->offset) = (uint32_t)n;
	}
	if (m->figures.memory_free > m->figures.memory_total)
		return err_set(e, ERR_INVALID,
			       "memory_free is %" PRIu64 ", more than memory_total %" PRIu64,
			       m->figures.memory_free, m->figures.memory_total);
	if (!json_is_boolean(draining))
		return err_set(e, ERR_INVALID, "draining is not true or false");
	m->figures.draining = json_is_true(draining);
	m->seq = m->figures.seq;
	if (control_text(arch, "arch", m->figures.arch, sizeof(m->figures.arch), e) < 0 ||
	    control_read_templates(json_object_get(v, "templates"), m, e) < 0)
		return -1;
	return control_read_labels(json_object_get(v, "labels"), m, e);
}

static int control_read_hello(const json_t *v, struct control_message *m, struct err *e)
{
	int64_t number = 0, epoch = 0;

	if (control_whole(v, "number", 1, CLUSTER_NUMBER_MAX, &number, e) < 0 ||
	    control_whole(v, "epoch", 0, CONTROL_WHOLE_MAX, &epoch, e) < 0)
		return -1;
	m->number = (uint32_t)number;
	m->epoch = (uint64_t)epoch;
	return control_text(json_object_get(v, "version"), "version", m->version,
			    sizeof(m->version), e);
}

static int control_read_node_hello(const json_t *v, struct control_message *m, struct err *e)
{
	if (control_read_hello(v, m, e) < 0)
		return -1;
	return control_text(json_object_get(v, "name"), "name", m->name, sizeof(m->name), e);
}

static int control_read_gateway_hello(const json_t *v, struct control_message *m, struct err *e)
{
	json_t *owned = json_object_get(v, "owned");

	if (control_read_hello(v, m, e) < 0)
		return -1;
	if (!json_is_array(owned))
		return err_set(e, ERR_INVALID, "owned is not a list");
	m->body = json_incref(owned);
	return 0;
}

static int control_read_seq(const json_t *v, const char *name, struct control_message *m,
			    struct err *e)
{
	int64_t n = 0;

	if (control_whole(v, name, 0, CONTROL_WHOLE_MAX, &n, e) < 0)
		return -1;
	m->seq = (uint64_t)n;
	return 0;
}

static int control_read_rows(const json_t *v, struct control_message *m, struct err *e)
{
	json_t *rows = json_object_get(v, "rows"), *row;
	size_t i;

	if (control_read_seq(v, "last", m, e) < 0)
		return -1;
	if (!json_is_array(rows) || json_array_size(rows) > CONTROL_ROWS)
		return err_set(e, ERR_INVALID, "rows is not a list of at most %d rows",
			       CONTROL_ROWS);
	json_array_foreach(rows, i, row)
	{
		if (!json_is_object(row))
			return err_set(e, ERR_INVALID, "rows[%zu] is not an object", i);
	}
	m->body = json_incref(rows);
	return 0;
}

static int control_read_ack(const json_t *v, struct control_message *m, struct err *e)
{
	return control_read_seq(v, "seq", m, e);
}

static int control_read_rows_kept(const json_t *v, struct control_message *m, struct err *e)
{
	return control_read_seq(v, "last", m, e);
}

static int control_read_open(const json_t *v, struct control_message *m, struct err *e)
{
	if (!json_is_integer(v) || json_integer_value(v) < 1 ||
	    json_integer_value(v) > CONTROL_OPEN)
		return err_set(e, ERR_INVALID, "not a number of connections, 1 to %d",
			       CONTROL_OPEN);
	m->count = (unsigned)json_integer_value(v);
	return 0;
}

static int control_read_text_body(json_t *text, size_t most, struct control_message *m,
				  struct err *e)
{
	if (!json_is_string(text) || !json_string_length(text) || json_string_length(text) > most)
		return err_set(e, ERR_INVALID, "not a text of 1 to %zu bytes", most);
	m->body = json_incref(text);
	return 0;
}

static int control_read_renew(const json_t *v, struct control_message *m, struct err *e)
{
	return control_read_text_body(json_object_get(v, "request"), CONTROL_REQUEST, m, e);
}

static int control_read_certificate(const json_t *v, struct control_message *m, struct err *e)
{
	json_t *why = json_object_get(v, "error");

	m->is_refused = why != NULL;
	return control_read_text_body(why ? why : json_object_get(v, "certificate"),
				      4 * CONTROL_REQUEST, m, e);
}

static int control_read_order(const json_t *v, struct control_message *m, struct err *e)
{
	if (!json_is_object(v))
		return err_set(e, ERR_INVALID, "not an object");
	m->body = json_incref((json_t *)v);
	return 0;
}

static const struct {
	const char *name;
	int from_node;
	enum control_kind kind;
	int (*read)(const json_t *v, struct control_message *m, struct err *e);
} control_kinds[] = {
	{ "hello", 1, CONTROL_HELLO, control_read_node_hello },
	{ "heartbeat", 1, CONTROL_HEARTBEAT, control_read_heartbeat },
	{ "rows", 1, CONTROL_ROWS_SENT, control_read_rows },
	{ "renew", 1, CONTROL_RENEW, control_read_renew },
	{ "hello", 0, CONTROL_HELLO, control_read_gateway_hello },
	{ "certificate", 0, CONTROL_CERTIFICATE, control_read_certificate },
	{ "ack", 0, CONTROL_ACK, control_read_ack },
	{ "rows_kept", 0, CONTROL_ROWS_KEPT, control_read_rows_kept },
	{ "open", 0, CONTROL_OPEN_MORE, control_read_open },
	{ "order", 0, CONTROL_ORDER, control_read_order },
};

static int control_read(const json_t *all, int from_node, struct control_message *m, struct err *e)
{
	const char *name;

	if (!json_is_object(all) || json_object_size(all) != 1)
		return err_set(e, ERR_INVALID, "not an object with one field");
	name = json_object_iter_key(json_object_iter((json_t *)all));
	for (size_t i = 0; i < ARRAY_LEN(control_kinds); i++) {
		if (control_kinds[i].from_node != from_node ||
		    strcmp(control_kinds[i].name, name) != 0)
			continue;
		m->kind = control_kinds[i].kind;
		if (control_kinds[i].read(json_object_get(all, name), m, e) < 0)
			return err_in(e, "%s", name);
		return 0;
	}
	return err_set(e, ERR_INVALID, "'%.40s' is not a message of a %s", name,
		       from_node ? "node" : "gateway");
}

int control_parse(const char *line, size_t len, int from_node, struct control_message *out,
		  struct err *e)
{
	struct control_message m = { 0 };
	json_error_t why;
	json_t *all = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
	int rc;

	if (!all)
		return err_set(e, ERR_INVALID, "invalid JSON at byte %d: %.100s", why.position,
			       why.text);
	rc = control_read(all, from_node, &m, e);
	json_decref(all);
	if (rc < 0)
		control_message_fini(&m);
	else
		*out = m;
	return rc;
}

void control_message_fini(struct control_message *m)
{
	control_figures_fini(&m->figures);
	json_decref(m->body);
	m->body = NULL;
}

/* ---- writing ---- */

static void control_put(struct buf *out, const char *name, json_t *take_value)
{
	json_t *all = json_pack("{so}", name, take_value);
	char *text = json_dumps(all, JSON_COMPACT);

	if (!text)
		abort();
	buf_puts(out, text);
	buf_putc(out, '\n');
	free(text);
	json_decref(all);
}

void control_put_node_hello(struct buf *out, uint32_t number, const char *name, const char *version,
			    uint64_t epoch)
{
	control_put(out, "hello",
		    json_pack("{sIsssssI}", "number", (json_int_t)number, "name", name, "version",
			      version, "epoch", (json_int_t)epoch));
}

void control_put_heartbeat(struct buf *out, const struct control_figures *f, int with_lists)
{
	json_t *all = json_object(), *templates, *labels;
	char hash[24];

	for (size_t i = 0; i < ARRAY_LEN(control_fields); i++) {
		const char *at = (const char *)f + control_fields[i].offset;
		uint64_t n = control_fields[i].size == sizeof(uint64_t) ? *(const uint64_t *)at
									: *(const uint32_t *)at;

		json_object_set_new(all, control_fields[i].name, json_integer((json_int_t)n));
	}
	json_object_set_new(all, "draining", json_boolean(f->draining));
	json_object_set_new(all, "arch", json_string(f->arch));
	if (with_lists) {
		templates = json_array();
		labels = json_array();
		for (unsigned i = 0; i < f->ntemplates; i++) {
			snprintf(hash, sizeof(hash), "%016" PRIx64, f->templates[i]);
			json_array_append_new(templates, json_string(hash));
		}
		for (unsigned i = 0; i < f->nlabels; i++)
			json_array_append_new(labels, json_string(f->labels[i]));
		json_object_set_new(all, "templates", templates);
		json_object_set_new(all, "labels", labels);
	}
	control_put(out, "heartbeat", all);
}

void control_put_rows(struct buf *out, uint64_t last, const struct json_t *rows)
{
	control_put(out, "rows", json_pack("{sIsO}", "last", (json_int_t)last, "rows", rows));
}

void control_put_gateway_hello(struct buf *out, uint32_t number, const char *version,
			       uint64_t epoch, const struct json_t *owned)
{
	control_put(out, "hello",
		    json_pack("{sIsssIso}", "number", (json_int_t)number, "version", version,
			      "epoch", (json_int_t)epoch, "owned",
			      owned ? json_incref((json_t *)owned) : json_array()));
}

void control_put_ack(struct buf *out, uint64_t seq)
{
	buf_printf(out, "{\"ack\":{\"seq\":%" PRIu64 "}}\n", seq);
}

void control_put_rows_kept(struct buf *out, uint64_t last)
{
	buf_printf(out, "{\"rows_kept\":{\"last\":%" PRIu64 "}}\n", last);
}

void control_put_open(struct buf *out, unsigned count)
{
	buf_printf(out, "{\"open\":%u}\n", count < CONTROL_OPEN ? count : CONTROL_OPEN);
}

void control_put_order(struct buf *out, const struct json_t *order)
{
	control_put(out, "order", json_incref((json_t *)order));
}

void control_put_renew(struct buf *out, const char *request)
{
	control_put(out, "renew", json_pack("{ss}", "request", request));
}

void control_put_certificate(struct buf *out, const char *cert, const char *why)
{
	control_put(out, "certificate",
		    json_pack("{ss}", cert ? "certificate" : "error", cert ? cert : why));
}
