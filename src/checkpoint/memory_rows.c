/* memory_rows.c - see memory_rows.h. */
#include "checkpoint/memory_rows.h"
#include "base/cleanup.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void checkpoint_memory_free_one(struct checkpoint_memory *m)
{
	store_runs_fini(&m->runs);
	store_contexts_fini(&m->contexts);
	free(m);
}

/* ---- write ---- */

static json_t *rows_program(const struct wire_image_program *p)
{
	return json_pack("{s:I, s:i, s:I, s:I, s:I, s:I, s:I, s:s%}", "ref", (json_int_t)p->ref,
			 "pid", p->pid, "threads", (json_int_t)p->threads, "descriptors",
			 (json_int_t)p->descriptors, "bytes", (json_int_t)p->bytes, "lost",
			 (json_int_t)p->lost, "nlost", (json_int_t)p->nlost, "name", p->name,
			 strnlen(p->name, sizeof(p->name)));
}

static json_t *rows_run(const struct store_run *x)
{
	return json_pack("{s:s, s:s, s:I, s:i, s:s, s:I, s:s, s:s, s:s?, s:s?}", "id", x->id,
			 "team", x->team, "ref", (json_int_t)x->ref, "kind", (int)x->kind, "tag",
			 x->tag, "started_ns", (json_int_t)x->started_ns, "key", x->key, "runtime",
			 x->runtime, "command", x->command, "record", x->record);
}

static json_t *rows_context(const struct store_context *x)
{
	return json_pack(
		"{s:s, s:b, s:I, s:s, s:s?, s:s, s:I, s:I, s:s, s:[I, I, I], s:I, s:I, s:I, "
		"s:I, s:I}",
		"language", x->language, "standing", x->standing, "created_ns",
		(json_int_t)x->created_ns, "cwd", x->cwd ? x->cwd : "", "env", x->env, "run",
		x->run, "ref", (json_int_t)x->ref, "cell", (json_int_t)x->cell, "status", x->status,
		"from", (json_int_t)x->from[0], (json_int_t)x->from[1], (json_int_t)x->from[2],
		"answers", (json_int_t)x->answers, "said", (json_int_t)x->said, "began_ns",
		(json_int_t)x->began_ns, "deadline_ns", (json_int_t)x->deadline_ns, "max_output",
		(json_int_t)x->max_output);
}

char *checkpoint_memory_text(const struct checkpoint_memory *m)
{
	json_t *programs = json_array(), *runs = json_array(), *contexts = json_array(), *doc;
	char *text;

	for (uint32_t i = 0; i < m->about.programs; i++)
		json_array_append_new(programs, rows_program(&m->program[i]));
	for (unsigned i = 0; i < m->runs.n; i++)
		json_array_append_new(runs, rows_run(&m->runs.v[i]));
	for (unsigned i = 0; i < m->contexts.n; i++)
		json_array_append_new(contexts, rows_context(&m->contexts.v[i]));
	doc = json_pack("{s:I, s:I, s:I, s:o, s:o, s:o}", "bytes", (json_int_t)m->about.bytes,
			"frozen_us", (json_int_t)m->about.frozen_us, "took_us",
			(json_int_t)m->about.took_us, "programs", programs, "runs", runs,
			"contexts", contexts);
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!text)
		abort();
	return text;
}

/* ---- read ---- */

static uint64_t rows_number(const json_t *doc, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(doc, name));
}

static void rows_text(const json_t *doc, const char *name, char *out, size_t room)
{
	const char *text = json_string_value(json_object_get(doc, name));

	snprintf(out, room, "%s", text ? text : "");
}

static char *rows_dup(const json_t *doc, const char *name)
{
	const char *text = json_string_value(json_object_get(doc, name));
	char *own = text ? strdup(text) : NULL;

	if (text && !own)
		abort();
	return own;
}

static void rows_read_program(const json_t *doc, struct wire_image_program *p)
{
	char name[sizeof(p->name) + 1];

	rows_text(doc, "name", name, sizeof(name));
	memcpy(p->name, name, sizeof(p->name));
	p->ref = (uint32_t)rows_number(doc, "ref");
	p->pid = (int32_t)rows_number(doc, "pid");
	p->threads = (uint32_t)rows_number(doc, "threads");
	p->descriptors = (uint32_t)rows_number(doc, "descriptors");
	p->bytes = rows_number(doc, "bytes");
	p->lost = (uint32_t)rows_number(doc, "lost");
	p->nlost = (uint32_t)rows_number(doc, "nlost");
}

static void rows_read_run(const json_t *doc, struct store_run *x)
{
	rows_text(doc, "id", x->id, sizeof(x->id));
	rows_text(doc, "team", x->team, sizeof(x->team));
	x->ref = (uint32_t)rows_number(doc, "ref");
	x->kind = (enum store_run_kind)(rows_number(doc, "kind") % STORE_RUN_KINDS);
	rows_text(doc, "tag", x->tag, sizeof(x->tag));
	x->started_ns = (int64_t)rows_number(doc, "started_ns");
	rows_text(doc, "key", x->key, sizeof(x->key));
	rows_text(doc, "runtime", x->runtime, sizeof(x->runtime));
	x->command = rows_dup(doc, "command");
	x->record = rows_dup(doc, "record");
}

static void rows_read_context(const json_t *doc, struct store_context *x)
{
	rows_text(doc, "language", x->language, sizeof(x->language));
	x->standing = json_is_true(json_object_get(doc, "standing"));
	x->created_ns = (int64_t)rows_number(doc, "created_ns");
	x->cwd = rows_dup(doc, "cwd");
	x->env = rows_dup(doc, "env");
	rows_text(doc, "run", x->run, sizeof(x->run));
	x->ref = (uint32_t)rows_number(doc, "ref");
	x->cell = rows_number(doc, "cell");
	rows_text(doc, "status", x->status, sizeof(x->status));
	for (unsigned i = 0; i < STORE_CONTEXT_STREAMS; i++)
		x->from[i] = (uint64_t)json_integer_value(
			json_array_get(json_object_get(doc, "from"), i));
	x->answers = rows_number(doc, "answers");
	x->said = rows_number(doc, "said");
	x->began_ns = (int64_t)rows_number(doc, "began_ns");
	x->deadline_ns = (int64_t)rows_number(doc, "deadline_ns");
	x->max_output = rows_number(doc, "max_output");
}

struct checkpoint_memory *checkpoint_memory_read(const char *text)
{
	json_t *doc = json_loads(text, 0, NULL), *one;
	const json_t *programs = json_object_get(doc, "programs"),
		     *runs = json_object_get(doc, "runs"),
		     *contexts = json_object_get(doc, "contexts");
	struct checkpoint_memory *m;
	size_t i;

	if (json_array_size(programs) > MEMORY_PROGRAMS || !json_is_array(runs)) {
		json_decref(doc);
		return NULL;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		abort();
	m->about.bytes = rows_number(doc, "bytes");
	m->about.frozen_us = rows_number(doc, "frozen_us");
	m->about.took_us = rows_number(doc, "took_us");
	m->about.programs = (uint32_t)json_array_size(programs);
	m->runs.v = calloc(json_array_size(runs) + 1, sizeof(*m->runs.v));
	m->contexts.v = calloc(json_array_size(contexts) + 1, sizeof(*m->contexts.v));
	if (!m->runs.v || !m->contexts.v)
		abort();
	json_array_foreach(programs, i, one) rows_read_program(one, &m->program[i]);
	json_array_foreach(runs, i, one) rows_read_run(one, &m->runs.v[m->runs.n++]);
	json_array_foreach(contexts, i, one)
		rows_read_context(one, &m->contexts.v[m->contexts.n++]);
	json_decref(doc);
	return m;
}
