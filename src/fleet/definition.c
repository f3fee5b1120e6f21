/* definition.c - see definition.h. */
#include "fleet/definition.h"
#include "base/cleanup.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct store_box, field)
#define TEXT(field)                                                                                \
	{                                                                                          \
#field, AT(field), sizeof(((struct store_box *)0)->field)                          \
	}
static const struct {
	const char *name;
	size_t at, size;
} definition_texts[] = {
	TEXT(id), TEXT(team), TEXT(name), TEXT(session), TEXT(template), TEXT(key)
};

static const struct {
	const char *name;
	size_t at;
	int is_small; /* 32 bits */
} definition_numbers[] = {
	{ "created_ns", AT(created_ns), 0 },
	{ "lifetime_ms", AT(lifetime_ms), 0 },
	{ "idle_ms", AT(idle_ms), 0 },
	{ "retention_ms", AT(retention_ms), 0 },
	{ "mem_bytes", AT(limits.mem_bytes), 0 },
	{ "disk_bytes", AT(limits.disk_bytes), 0 },
	{ "disk_files", AT(limits.disk_files), 0 },
	{ "cpu_ms", AT(limits.cpu_ms), 0 },
	{ "cpu_milli", AT(limits.cpu_milli), 1 },
	{ "pids", AT(limits.pids), 1 },
};

static const struct {
	const char *name;
	size_t at;
} definition_documents[] = {
	{ "metadata", AT(metadata) },   { "env", AT(env) },
	{ "network", AT(network) },     { "surface", AT(surface) },
	{ "isolation", AT(isolation) }, { "checkpoints", AT(checkpoints) },
};

const char *box_definition_obstacle(const struct box_spec *want)
{
	if (want->nmounts)
		return "its volumes are on one node";
	if (want->root[0] || want->row.root)
		return "its template is not base, and may be on one node only";
	if (want->nlayers)
		return "its packages are on one node";
	if (want->nchain)
		return "its checkpoint is on one node";
	if (want->flags & WIRE_CREATE_SECRETS)
		return "its secrets are on one node";
	return NULL;
}

json_t *box_definition(const struct store_box *row)
{
	const char *base = (const char *)row, *text;
	json_t *doc = json_pack("{s:i, s:s}", "format", 1, "on_timeout",
				store_on_timeout_name(row->on_timeout));

	for (unsigned i = 0; i < ARRAY_LEN(definition_texts); i++)
		json_object_set_new(doc, definition_texts[i].name,
				    json_string(base + definition_texts[i].at));
	for (unsigned i = 0; i < ARRAY_LEN(definition_numbers); i++) {
		const char *at = base + definition_numbers[i].at;
		uint64_t n = definition_numbers[i].is_small ? *(const uint32_t *)at
							    : *(const uint64_t *)at;

		json_object_set_new(doc, definition_numbers[i].name, json_integer((json_int_t)n));
	}
	for (unsigned i = 0; i < ARRAY_LEN(definition_documents); i++) {
		memcpy(&text, base + definition_documents[i].at, sizeof(text));
		if (text)
			json_object_set_new(doc, definition_documents[i].name, json_string(text));
	}
	json_object_set_new(doc, "flags", json_integer(box_made_flags(row)));
	return doc;
}

/* ---- reading ---- */

static int definition_wrong(struct err *e, const char *field)
{
	return err_set(e, ERR_INVALID, "the definition of a box: '%s' is missing or invalid",
		       field);
}

static int definition_read_texts(const json_t *doc, struct store_box *row, struct err *e)
{
	char *base = (char *)row;

	for (unsigned i = 0; i < ARRAY_LEN(definition_texts); i++) {
		const json_t *v = json_object_get(doc, definition_texts[i].name);

		if (!json_is_string(v) || json_string_length(v) >= definition_texts[i].size)
			return definition_wrong(e, definition_texts[i].name);
		memcpy(base + definition_texts[i].at, json_string_value(v),
		       json_string_length(v) + 1);
	}
	return id_valid(row->id) ? 0 : definition_wrong(e, "id");
}

static int definition_read_numbers(const json_t *doc, struct store_box *row, struct err *e)
{
	char *base = (char *)row;

	for (unsigned i = 0; i < ARRAY_LEN(definition_numbers); i++) {
		const json_t *v = json_object_get(doc, definition_numbers[i].name);
		json_int_t n = json_integer_value(v);
		uint64_t all = (uint64_t)n;
		uint32_t small = (uint32_t)n;
		char *at = base + definition_numbers[i].at;

		/* STORE_FOREVER is -1. */
		if (!json_is_integer(v) || n < -1 ||
		    (definition_numbers[i].is_small && (n < 0 || n > UINT32_MAX)))
			return definition_wrong(e, definition_numbers[i].name);
		if (definition_numbers[i].is_small)
			memcpy(at, &small, sizeof(small));
		else
			memcpy(at, &all, sizeof(all));
	}
	return 0;
}

/* Each is the text of a JSON document, as in the row. */
static int definition_read_documents(const json_t *doc, struct store_box *row, struct err *e)
{
	char *base = (char *)row;

	for (unsigned i = 0; i < ARRAY_LEN(definition_documents); i++) {
		const json_t *v = json_object_get(doc, definition_documents[i].name);
		const char *text = json_string_value(v);
		json_t *value = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
		int is_valid = !v || (value && (json_is_object(value) || json_is_array(value)));

		json_decref(value);
		if (!is_valid)
			return definition_wrong(e, definition_documents[i].name);
		memcpy(base + definition_documents[i].at, &text, sizeof(text));
	}
	return 0;
}

int box_definition_read(const json_t *doc, struct box_definition *out, struct err *e)
{
	struct box_definition d = { 0 };
	struct store_box *row = &d.want.row;
	char *marks;
	const struct store_limits *l = &row->limits;
	const char *timeout = json_string_value(json_object_get(doc, "on_timeout"));

	if (json_integer_value(json_object_get(doc, "format")) != 1)
		return definition_wrong(e, "format");
	if (definition_read_texts(doc, row, e) < 0 || definition_read_numbers(doc, row, e) < 0 ||
	    definition_read_documents(doc, row, e) < 0)
		return -1;
	if (!timeout || store_on_timeout_parse(timeout, &row->on_timeout) < 0)
		return definition_wrong(e, "on_timeout");
	row->on_loss = STORE_LOSS_RESTART;
	memcpy(d.id, row->id, sizeof(d.id));
	d.want.isolation = isolation_like(row);
	d.want.limits = (struct wire_limits){ .mem_bytes = l->mem_bytes,
					      .disk_bytes = l->disk_bytes,
					      .disk_files = l->disk_files,
					      .cpu_ms = l->cpu_ms,
					      .cpu_milli = l->cpu_milli,
					      .pids = l->pids };
	d.want.flags = (uint16_t)(json_integer_value(json_object_get(doc, "flags")) &
				  WIRE_CREATE_HOST_WRITABLE);
	d.want.continues = 1;
	marks = box_metadata_without(row->metadata, BOX_LEAVING);
	d.metadata = box_metadata_with(marks, BOX_RESTART, "1");
	free(marks);
	row->metadata = d.metadata;
	*out = d;
	return 0;
}

void box_definition_fini(struct box_definition *d)
{
	free(d->metadata);
	d->metadata = NULL;
}
