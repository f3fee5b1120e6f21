/* exec_row.c - an exec in the store, from its first row to the record; and as JSON. */
#include "fleet/exec_internal.h"
#include "fleet/box_secrets.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "lang/lang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST "request" /* in a stored record: the request ... */
#define INPUTS "inputs"   /* ... or its hashes, if it was too large */

void exec_before_json(const struct exec_before *x, json_t *doc)
{
	if (!x->wanted)
		return;
	json_object_set_new(doc, "checkpoint_before",
			    x->checkpoint[0] ? json_string(x->checkpoint) : json_null());
	if (x->skipped[0])
		json_object_set_new(doc, "checkpoint_skipped", json_text(x->skipped));
}

static void exec_before_read(const json_t *doc, struct exec_before *out)
{
	const json_t *id = json_object_get(doc, "checkpoint_before"),
		     *why = json_object_get(doc, "checkpoint_skipped");

	out->wanted = id != NULL;
	if (json_is_string(id))
		snprintf(out->checkpoint, sizeof(out->checkpoint), "%s", json_string_value(id));
	if (json_is_string(why))
		snprintf(out->skipped, sizeof(out->skipped), "%s", json_string_value(why));
}

/* The record as stored: with the request, which no client receives. */
static json_t *stored_record(const struct exec *r, const json_t *record)
{
	json_t *doc = record ? json_copy((json_t *)record) : json_object();

	if (r->request)
		json_object_set(doc, REQUEST, r->request);
	if (r->inputs)
		json_object_set(doc, INPUTS, r->inputs);
	if (r->replay_of[0])
		json_object_set_new(doc, "replay_of", json_string(r->replay_of));
	exec_before_json(&r->before, doc);
	return doc;
}

static int store_begin_run(struct exec *r, struct err *e)
{
	json_t *doc = stored_record(r, NULL);
	auto_free char *text = json_dumps(r->command, JSON_COMPACT),
		       *record = json_dumps(doc, JSON_COMPACT | RECORD_DIGITS);
	struct store_run row = { .ref = r->ref,
				 .kind = r->kind,
				 .started_ns = r->started_ns,
				 .command = text,
				 .record = record };

	json_decref(doc);
	if (!text || !record)
		abort();
	memcpy(row.id, r->id, sizeof(row.id));
	memcpy(row.tag, r->tag, sizeof(row.tag));
	memcpy(row.key, r->key, sizeof(row.key));
	memcpy(row.runtime, r->runtime, sizeof(row.runtime));
	snprintf(row.box, sizeof(row.box), "%s", r->box->row.id);
	snprintf(row.team, sizeof(row.team), "%s", r->box->row.team);
	return store_run_begin(r->box->fleet->store, &row, e);
}

/* All rows are written in one commit. */
int exec_write_start(struct exec *r, const struct exec_spec *want, struct err *e)
{
	struct store *s = r->box->fleet->store;

	if (!want->note)
		return store_begin_run(r, e);
	if (store_begin(s, e) < 0)
		return -1;
	if (store_begin_run(r, e) < 0)
		return store_rollback(s);
	want->note(r, want->user);
	return store_commit(s, e);
}

int exec_is_helper(const struct exec *r)
{
	return !strcmp(r->tag, STORE_RUN_HELPER);
}

/* The event contains the usage of the exec, for quotas. */
static json_t *news_of(const struct exec *r, const struct store_run *row)
{
	double cpu_s = json_number_value(json_object_get(r->record, "cpu_s"));

	return json_pack("{s:s, s:s, s:i, s:I, s:I, s:s*}", "run", r->id, "cause", row->cause,
			 "status", row->status, "cpu_ms", (json_int_t)(cpu_s * 1000 + 0.5),
			 "output_bytes", (json_int_t)row->output_bytes, "language",
			 r->lang ? r->lang->name : NULL);
}

/* What the program wrote last may be part of the record, as an error or a hint. */
static json_t *end_record(const struct exec *r)
{
	json_t *doc = stored_record(r, r->record), *copy;

	if (!box_secrets_any(r->box))
		return doc;
	copy = json_deep_copy(doc);
	json_decref(doc);
	box_secrets_redact_json(r->box, copy);
	return copy;
}

/* Layers of packages, then those of the template. Those of a box that another server created are not known here. */
static json_t *exec_layers(const struct box *b)
{
	json_t *all = b->is_known ? json_array() : NULL,
	       *root = all && b->row.root ? json_loads(b->row.root, 0, NULL) : NULL;
	const char *id = json_string_value(json_object_get(root, "id"));

	for (unsigned i = 0; all && i < b->nlayers; i++)
		json_array_append_new(all, json_stringn(b->layers[i],
							strnlen(b->layers[i], WIRE_LAYER_ID)));
	if (id)
		json_array_append_new(all, json_string(id));
	json_decref(root);
	return all;
}

/* A hash of output with the value of a secret in it would help to guess the value. */
static struct run_facts exec_facts(struct exec *r)
{
	struct run_facts x = { .layers = exec_layers(r->box) };

	for (unsigned i = 0; i < 2; i++)
		x.has_output[i] = r->exited && !box_secrets_any(r->box) &&
				  output_digest_end(&r->digest[i], r->exit.bytes[i], x.output[i]);
	return x;
}

void exec_write_end(struct exec *r, const struct exit_info *end, int64_t ended_ns,
		    const struct store_charge *charge)
{
	const struct box *b = r->box;
	struct run_facts facts = exec_facts(r);
	struct store_run row = {
		.kind = r->kind,
		.started_ns = r->started_ns,
		.ended_ns = ended_ns,
		.status = cause_status(end),
		.output_bytes = r->exited ? r->exit.bytes[0] + r->exit.bytes[1] : 0,
	};

	memcpy(row.id, r->id, sizeof(row.id));
	memcpy(row.tag, r->tag, sizeof(row.tag));
	snprintf(row.box, sizeof(row.box), "%s", b->row.id);
	snprintf(row.team, sizeof(row.team), "%s", b->row.team);
	snprintf(row.cause, sizeof(row.cause), "%s", cause_name(cause_of(end)));
	run_writer_add(&b->fleet->run_writer, &row, end_record(r), &facts, cause_of(end),
		       end->run_us, news_of(r, &row), charge);
	if (b->state != BOX_RUNNING)
		run_writer_flush(&b->fleet->run_writer); /* the store will have the only copy */
}

void exec_restore_request(struct exec *r, const struct store_run *row)
{
	json_t *doc = row->record ? json_loads(row->record, 0, NULL) : NULL;
	const char *of = json_string_value(json_object_get(doc, "replay_of"));

	r->request = json_incref(json_object_get(doc, REQUEST));
	r->inputs = json_incref(json_object_get(doc, INPUTS));
	r->wall_ms = (uint64_t)json_integer_value(json_object_get(r->request, "timeout_ms"));
	snprintf(r->replay_of, sizeof(r->replay_of), "%s", of ? of : "");
	exec_before_read(doc, &r->before);
	json_decref(doc);
}

json_t *exec_json(const struct exec *r)
{
	json_t *doc =
		json_pack("{s:s, s:s, s:s, s:s, s:O, s:i, s:b, s:s}", "id", r->id, "box",
			  r->box->row.id, "state", "running", "kind", store_run_kind_name(r->kind),
			  "command", r->command, "pid", r->pid, "pty", r->tty, "tag", r->tag);

	json_object_set_new(doc, "started", json_time((uint64_t)r->started_ns));
	json_object_set_new(doc, "stdin",
			    json_pack("{s:b, s:o}", "open", r->stdin_open && !r->input_end, "bytes",
				      r->input_unknown
					      ? json_null()
					      : json_integer((json_int_t)exec_input_has(r))));
	if (r->replay_of[0])
		json_object_set_new(doc, "replay_of", json_string(r->replay_of));
	exec_before_json(&r->before, doc);
	return doc;
}

json_t *exec_row_request(const struct store_run *row)
{
	json_t *doc = row->record ? json_loads(row->record, 0, NULL) : NULL;
	json_t *request = json_incref(json_object_get(doc, REQUEST));

	json_decref(doc);
	return request;
}

void exec_json_set_cached(json_t *doc)
{
	json_object_set_new(doc, "cached", json_true());
	json_object_set_new(doc, "compiled_before", json_true()); /* its name in version 0.1 */
}

/* Renames fields in a record that version 0.1 has stored. */
static void exec_row_translate(json_t *doc)
{
	const char *state = json_string_value(json_object_get(doc, "state"));

	if (state && !strcmp(state, "over"))
		json_object_set_new(doc, "state", json_string("exited"));
	if (json_is_true(json_object_get(doc, "compiled_before")))
		exec_json_set_cached(doc);
}

json_t *exec_row_json(const struct store_run *row)
{
	json_t *doc = row->record ? json_loads(row->record, 0, NULL) : NULL;

	json_object_del(doc, REQUEST);
	if (json_object_get(doc, "id")) {
		exec_row_translate(doc);
		return doc;
	}
	json_decref(doc);
	doc = json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", row->id, "box", row->box, "state",
			row->ended_ns ? "exited" : "running", "kind",
			store_run_kind_name(row->kind), "tag", row->tag);
	if (row->command)
		json_object_set_new(doc, "command", json_loads(row->command, 0, NULL));
	json_object_set_new(doc, "started", json_time((uint64_t)row->started_ns));
	if (row->ended_ns) {
		json_object_set_new(doc, "ended", json_time((uint64_t)row->ended_ns));
		json_object_set_new(doc, "cause", json_string(row->cause));
		json_object_set_new(doc, "status", json_integer(row->status));
	}
	return doc;
}
