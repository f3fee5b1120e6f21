/* memory.c - see memory.h. */
#include "checkpoint/memory.h"
#include "base/id.h"
#include "checkpoint/internal.h"
#include "checkpoint/memory_rows.h"
#include "store/process_images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct checkpoint_memory *memory_find(const struct checkpoints *c, const char *id)
{
	struct checkpoint_memory *m = c->memory;

	while (m && strcmp(m->id, id) != 0)
		m = m->next;
	return m;
}

/* Also one that only the disk has; NULL: none. */
static struct checkpoint_memory *memory_get(struct checkpoints *c, const char *id)
{
	struct checkpoint_memory *m = memory_find(c, id);
	char *text = NULL;
	struct err e;

	if (m || store_process_image_get(c->fleet->store, id, &text, &e) < 0)
		return m;
	m = checkpoint_memory_read(text);
	free(text);
	if (!m)
		return NULL;
	snprintf(m->id, sizeof(m->id), "%s", id);
	m->on_disk = 1;
	m->next = c->memory;
	c->memory = m;
	return m;
}

static void memory_forget(struct checkpoints *c, const char *id)
{
	struct checkpoint_memory **at = &c->memory, *m;

	while ((m = *at) && strcmp(m->id, id) != 0)
		at = &m->next;
	if (!m)
		return;
	*at = m->next;
	checkpoint_memory_free_one(m);
}

void checkpoint_memory_free(struct checkpoints *c)
{
	while (c->memory)
		memory_forget(c, c->memory->id);
}

static const struct wire_image_program *memory_program(const struct checkpoint_memory *m,
						       uint32_t ref)
{
	for (uint32_t i = 0; i < m->about.programs; i++)
		if (m->program[i].ref == ref)
			return &m->program[i];
	return NULL;
}

static int memory_read_rows(struct checkpoints *c, struct checkpoint_memory *m,
			    const struct box *source, struct err *e)
{
	struct store *s = c->fleet->store;

	run_writer_flush(&c->fleet->run_writer);
	if (store_run_running(s, source->row.id, &m->runs, e) < 0 ||
	    store_context_list(s, source->row.id, &m->contexts, e) < 0)
		return -1;
	for (uint32_t i = 0; i < m->about.programs; i++) {
		unsigned k = 0;

		while (k < m->runs.n && m->runs.v[k].ref != m->program[i].ref)
			k++;
		if (k == m->runs.n)
			return err_set(e, ERR_CONFLICT,
				       "process %d (%.16s) ended while it was captured; try again",
				       m->program[i].pid, m->program[i].name);
	}
	return 0;
}

int checkpoint_memory_add(struct checkpoints *c, const char *id, const struct box *source,
			  const struct wire_image_about *a, size_t len, struct err *e)
{
	struct checkpoint_memory *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	snprintf(m->id, sizeof(m->id), "%s", id);
	m->about = *a;
	if (m->about.programs > MEMORY_PROGRAMS ||
	    len != sizeof(*a) + m->about.programs * sizeof(m->program[0])) {
		free(m);
		return err_set(e, ERR_SYS, "keeper: an IMAGE of another size");
	}
	memcpy(m->program, a + 1, m->about.programs * sizeof(m->program[0]));
	if (memory_read_rows(c, m, source, e) < 0) {
		checkpoint_memory_free_one(m);
		return -1;
	}
	m->next = c->memory;
	c->memory = m;
	return 0;
}

int checkpoint_memory_keep(struct checkpoints *c, const char *id, uint64_t file_bytes,
			   struct err *e)
{
	struct checkpoint_memory *m = memory_find(c, id);
	char *text = m ? checkpoint_memory_text(m) : NULL;
	int rc;

	if (!m)
		return err_set(e, ERR_NOT_FOUND, "checkpoint %s was deleted meanwhile", id);
	rc = store_process_image_put(c->fleet->store, id, file_bytes, text, e);
	free(text);
	if (rc == 0)
		m->on_disk = 1;
	return rc;
}

static void memory_dropped(void *ctx, const struct frame *f, size_t len, int *fd,
			   const struct err *e)
{
	(void)ctx;
	(void)f;
	(void)len;
	(void)fd;
	(void)e; /* the image ends with the keeper in any case, and its file with the checkpoint */
}

static void memory_send_drop(struct checkpoints *c, const char *id, uint16_t flags)
{
	struct wire_image ask = {
		.head = { .version = WIRE_VERSION, .type = WIRE_IMAGE_DROP, .flags = flags }
	};

	snprintf(ask.id, sizeof(ask.id), "%s", id);
	keeper_client_request(&c->fleet->keeper, &ask, sizeof(ask), WIRE_DONE, memory_dropped,
			      NULL);
}

void checkpoint_memory_drop(struct checkpoints *c, const char *id)
{
	struct err e;

	if (!memory_get(c, id))
		return;
	memory_forget(c, id);
	(void)!store_process_image_drop(c->fleet->store, id, &e);
	memory_send_drop(c, id, WIRE_IMAGE_FILE);
}

void checkpoint_memory_release(struct checkpoints *c, const char *id)
{
	memory_send_drop(c, id, 0);
}

json_t *checkpoint_memory_json(struct checkpoints *c, const char *id)
{
	const struct checkpoint_memory *m = memory_get(c, id);
	json_t *programs, *lost;

	if (!m)
		return json_null();
	programs = json_array();
	lost = json_array();
	for (uint32_t i = 0; i < m->about.programs; i++) {
		const struct wire_image_program *p = &m->program[i];

		json_array_append_new(
			programs, json_pack("{s:i, s:s%, s:i, s:i, s:I}", "pid", p->pid, "name",
					    p->name, strnlen(p->name, sizeof(p->name)), "threads",
					    (int)p->threads, "descriptors", (int)p->descriptors,
					    "bytes", (json_int_t)p->bytes));
		if (p->nlost)
			json_array_append_new(lost,
					      json_pack("{s:i, s:s, s:i}", "pid", p->pid, "what",
							"TCP connections", "count", (int)p->nlost));
	}
	return json_pack("{s:o, s:I, s:o, s:b}", "processes", programs, "bytes",
			 (json_int_t)m->about.bytes, "lost", lost, "on_disk", m->on_disk);
}

int checkpoint_memory_check(struct checkpoints *c, const char *id, struct err *e)
{
	if (memory_get(c, id))
		return 0;
	return err_set(e, ERR_NOT_FOUND,
		       "checkpoint %s has no process image: it was taken without memory, or for a "
		       "fork, whose image ends with it",
		       id);
}

/* ---- start ---- */

static const char *memory_new_id(char (*ids)[ID_MAX + 1], const struct store_runs *runs,
				 const char *old)
{
	for (unsigned i = 0; i < runs->n; i++)
		if (!strcmp(runs->v[i].id, old))
			return ids[i];
	return NULL;
}

static int memory_write_contexts(struct store *s, const struct checkpoint_memory *m,
				 const char *box, char (*ids)[ID_MAX + 1], struct err *e)
{
	for (unsigned i = 0; i < m->contexts.n; i++) {
		struct store_context x = m->contexts.v[i];
		const char *run = memory_new_id(ids, &m->runs, x.run);

		if (!run || !run[0])
			continue; /* its driver was not running */
		snprintf(x.run, sizeof(x.run), "%s", run);
		snprintf(x.box, sizeof(x.box), "%s", box);
		if (id_new(x.id, e) < 0 || store_context_insert(s, &x, e) < 0 ||
		    store_context_update(s, &x, e) < 0)
			return -1;
	}
	return 0;
}

/* The execs of the copy have the numbers of the source at init, and ids of their own. */
static int memory_write_rows(struct store *s, const struct checkpoint_memory *m, const char *box,
			     struct err *e)
{
	char(*ids)[ID_MAX + 1] = calloc(m->runs.n + 1, sizeof(*ids));
	int rc = 0;

	if (!ids)
		abort();
	for (unsigned i = 0; rc == 0 && i < m->runs.n; i++) {
		struct store_run x = m->runs.v[i];

		if (!memory_program(m, x.ref))
			continue;
		rc = id_new(ids[i], e);
		memcpy(x.id, ids[i], sizeof(x.id));
		snprintf(x.box, sizeof(x.box), "%s", box);
		if (rc == 0)
			rc = store_run_begin(s, &x, e);
	}
	if (rc == 0)
		rc = memory_write_contexts(s, m, box, ids, e);
	free(ids);
	return rc;
}

static int memory_adopt(struct checkpoints *c, const char *id, struct box *b, struct err *e)
{
	const struct checkpoint_memory *m = memory_find(c, id);
	struct store *s = c->fleet->store;

	if (!m)
		return err_set(e, ERR_NOT_FOUND, "checkpoint %s was deleted meanwhile", id);
	if (store_begin(s, e) < 0)
		return -1;
	if (memory_write_rows(s, m, b->row.id, e) < 0)
		return store_rollback(s);
	if (store_commit(s, e) < 0)
		return -1;
	box_adopt_execs(b);
	return 0;
}

static void memory_ask_start(struct checkpoint_start *s, const struct box *b);

static void memory_failed(struct checkpoint_start *s, const struct err *e)
{
	/* The file is missing: a checkpoint of a backup, for example. */
	if (e->kind == ERR_NOT_FOUND)
		memory_forget(s->all, s->id);
	s->done(s, e);
}

static void memory_loaded(void *ctx, const struct frame *f, size_t len, int *fd,
			  const struct err *e)
{
	struct checkpoint_start *s = ctx;
	struct box *b = fleet_find(s->all->fleet, s->box);
	struct err own;

	(void)len;
	(void)fd;
	s->asking = NULL;
	if (!b)
		e = (err_set(&own, ERR_CONFLICT, "box %s has ended", s->box), &own);
	if (!f || !b)
		memory_failed(s, e);
	else
		memory_ask_start(s, b);
}

/* The keeper was restarted, or has needed the memory: there is still the file. */
static void memory_ask_load(struct checkpoint_start *s, const struct box *b)
{
	struct wire_image_file ask = { .head.version = WIRE_VERSION, .head.type = WIRE_IMAGE_LOAD };

	s->loaded = 1;
	snprintf(ask.id, sizeof(ask.id), "%s", s->id);
	snprintf(ask.team, sizeof(ask.team), "%s", b->row.team);
	s->asking = keeper_client_request(&s->all->fleet->keeper, &ask, sizeof(ask), WIRE_IMAGE,
					  memory_loaded, s);
}

static void memory_started(void *ctx, const struct frame *f, size_t len, int *fd,
			   const struct err *e)
{
	struct checkpoint_start *s = ctx;
	struct box *b = fleet_find(s->all->fleet, s->box);
	struct checkpoint_memory *m = memory_get(s->all, s->id);
	struct err own;

	(void)len;
	(void)fd;
	s->asking = NULL;
	if (!f && e->kind == ERR_NOT_FOUND && b && m && m->on_disk && !s->loaded) {
		memory_ask_load(s, b);
		return;
	}
	if (f && !b)
		e = (err_set(&own, ERR_CONFLICT, "box %s has ended", s->box), &own);
	else if (f && memory_adopt(s->all, s->id, b, &own) < 0)
		e = &own;
	if (e)
		memory_failed(s, e);
	else
		s->done(s, NULL);
}

static void memory_ask_start(struct checkpoint_start *s, const struct box *b)
{
	struct wire_image ask = { .head.version = WIRE_VERSION, .head.type = WIRE_IMAGE_START };

	snprintf(ask.id, sizeof(ask.id), "%s", s->id);
	snprintf(ask.box, sizeof(ask.box), "%s", box_keeper_id(b));
	s->asking = keeper_client_request(&s->all->fleet->keeper, &ask, sizeof(ask), WIRE_IMAGE,
					  memory_started, s);
}

void checkpoint_memory_start(struct checkpoint_start *s, struct checkpoints *c, const char *id,
			     struct box *b)
{
	s->all = c;
	s->loaded = 0;
	memcpy(s->box, b->row.id, sizeof(s->box));
	snprintf(s->id, sizeof(s->id), "%s", id);
	memory_ask_start(s, b);
}

void checkpoint_memory_cancel(struct checkpoint_start *s)
{
	if (s->asking)
		keeper_client_cancel(&s->all->fleet->keeper, s->asking);
	s->asking = NULL;
}
