/* build.c - see build.h: rows, the queue, waiters, the end of a build. */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fleet/box.h"
#include "record/changes.h"
#include "template/templates.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PUMP_MS = 1 };

static void builds_pump(struct timer *t);

struct build *build_lookup(const struct builds *b, const char *id)
{
	for (struct build *x = b->list; x; x = x->next)
		if (!strcmp(x->row.id, id))
			return x;
	return NULL;
}

/* ---- memory ---- */

static void build_free(struct build *b)
{
	struct build **at = &b->all->list;

	while (*at && *at != b)
		at = &(*at)->next;
	if (*at)
		*at = b->next;
	b->all->running -= b->running ? 1 : 0;
	if (b->tapped)
		exec_reader_close(&b->reader);
	build_box_close(&b->box);
	packages_wait_cancel(&b->packages);
	keeper_client_cancel(&b->all->fleet->keeper, b->asking);
	build_copy_free(b->copy);
	build_trial_free(b->trial);
	build_changes_free(b);
	build_pull_free(b->pull);
	timer_fini(&b->limit);
	own_close_fd(&b->log);
	json_decref(b->definition);
	json_decref(b->progress);
	json_decref(b->secrets);
	json_decref(b->settings);
	json_decref(b->args);
	buf_fini(&b->passwd);
	buf_fini(&b->group);
	buf_fini(&b->release);
	buf_fini(&b->said);
	buf_fini(&b->line[0]);
	buf_fini(&b->line[1]);
	store_build_fini(&b->row);
	timer_set(&b->all->pump, PUMP_MS);
	free(b);
}

static void build_overdue(struct timer *t)
{
	struct build *b = loop_owner(t, struct build, limit);

	build_fail(b, "the build took longer than %llu s (templates.build_timeout)",
		   (unsigned long long)(b->all->conf.total_ms / 1000));
}

static json_t *build_parse(const char *text)
{
	json_t *doc = text ? json_loads(text, 0, NULL) : NULL;

	return doc ? doc : json_object();
}

/* Puts it at the end of the queue. */
static struct build *build_enqueue(struct builds *all, struct store_build *take_row)
{
	struct build *b = calloc(1, sizeof(*b)), **at = &all->list;

	if (!b)
		abort();
	b->all = all;
	b->row = *take_row;
	*take_row = (struct store_build){ 0 };
	b->definition = build_parse(b->row.definition);
	b->progress = build_parse(b->row.progress);
	b->steps = build_count_steps(b->definition);
	b->log = -1;
	b->box.build = b;
	b->reader.own.post.fd = -1;
	timer_init(&b->limit, all->fleet->loop, build_overdue);
	while (*at)
		at = &(*at)->next;
	*at = b;
	timer_set(&all->pump, PUMP_MS);
	return b;
}

static void build_notify_end(struct build *b)
{
	while (b->waiters) {
		struct build_wait *w = b->waiters;

		b->waiters = w->next;
		w->build = NULL;
		w->news(w);
	}
}

/* ---- rows ---- */

static void build_set_text(char **at, const json_t *doc)
{
	free(*at);
	*at = json_dumps(doc, JSON_COMPACT);
	if (!*at)
		abort();
}

int build_save(struct build *b)
{
	struct err e;

	build_set_text(&b->row.progress, b->progress);
	if (store_build_update(b->all->fleet->store, &b->row, &e) == 0)
		return 0;
	build_fail_err(b, &e);
	return -1;
}

static void build_emit(const struct build *b, const char *type)
{
	fleet_emit(b->all->fleet, b->row.team, "", type,
		   json_pack("{s:s, s:s, s:s}", "build", b->row.id, "template", b->row.template,
			     "state", store_build_state_name(b->row.state)));
}

/* After the end is in the store. */
static void build_close(struct build *b)
{
	struct builds *all = b->all;

	build_emit(b, "template.build");
	build_notify_end(b);
	build_free(b);
	builds_collect(all);
}

void build_end(struct build *b, enum store_build_state state)
{
	struct err e;

	b->row.state = state;
	b->row.ended_ns = fleet_now_ns();
	build_forget_auth(&b->row);
	/* A row that is gone: the template was deleted. */
	if (store_build_update(b->all->fleet->store, &b->row, &e) < 0 && e.kind != ERR_NOT_FOUND)
		log_error("cannot store the end of a build", LOG_S("build", b->row.id), LOG_E(&e));
	build_close(b);
}

static json_t *build_reason(const struct build *b, const char *message)
{
	json_t *doc = json_pack("{s:s}", "message", message);
	char text[400], step[48];

	if (!b->step)
		return doc;
	snprintf(step, sizeof(step), "%u/%u", b->number, b->steps);
	definition_step_text(b->step, text, sizeof(text));
	json_object_set_new(doc, "step", json_string(step));
	json_object_set_new(doc, "command", json_string(text));
	if (json_object_get(b->step, "line"))
		json_object_set(doc, "line", json_object_get(b->step, "line"));
	json_object_set_new(doc, "output", json_text(buf_str(&b->said)));
	return doc;
}

void build_fail(struct build *b, const char *fmt, ...)
{
	auto_buf struct buf message = { 0 };
	json_t *reason;
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&message, fmt, ap);
	va_end(ap);
	build_log_flush(b);
	reason = build_reason(b, buf_str(&message));
	build_set_text(&b->row.reason, reason);
	if (b->step && json_object_get(reason, "line"))
		build_log(b, "error", "step %s, line %d: %s: %s", build_text(reason, "step"),
			  (int)json_integer_value(json_object_get(reason, "line")),
			  build_text(reason, "command"), buf_str(&message));
	else
		build_log(b, "error", "%s%s%s", build_text(reason, "command"), b->step ? ": " : "",
			  buf_str(&message));
	json_decref(reason);
	build_end(b, STORE_BUILD_ERROR);
}

void build_fail_err(struct build *b, const struct err *e)
{
	build_fail(b, "%s", e->msg);
}

/* Points the tags to this build, unless one that was started later has them. */
static int build_set_tags(struct build *b, struct err *e)
{
	struct store *s = b->all->fleet->store;
	json_t *tags = json_loads(b->row.tags, 0, NULL), *one;
	struct store_build other;
	struct store_tag tag;
	size_t i;
	int rc = 0;

	json_array_foreach(tags, i, one)
	{
		int later = 0;

		if (store_tag_get(s, b->row.template, json_string_value(one), &tag, e) == 0 &&
		    store_build_get(s, tag.build, &other, e) == 0) {
			later = other.created_ns > b->row.created_ns;
			store_build_fini(&other);
		}
		tag = (struct store_tag){ .created_ns = fleet_now_ns() };
		snprintf(tag.tag, sizeof(tag.tag), "%s", json_string_value(one));
		snprintf(tag.build, sizeof(tag.build), "%s", b->row.id);
		if (rc == 0 && !later)
			rc = store_tag_put(s, b->row.template, &tag, e);
	}
	json_decref(tags);
	return rc;
}

static int build_write_success(struct build *b, struct err *e)
{
	struct store *s = b->all->fleet->store;

	build_forget_auth(&b->row);
	if (store_begin(s, e) < 0)
		return -1;
	if (store_build_update(s, &b->row, e) < 0 || build_set_tags(b, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

/* A definition with `pool` sets that of its template. */
static void build_set_pool(struct build *b)
{
	const json_t *pool = json_object_get(b->definition, "pool");
	struct store_template t = { 0 };
	struct err e;

	if (store_template_find(b->all->fleet->store, b->row.team, b->row.template, &t, &e) < 0)
		return;
	if (json_is_integer(pool) && t.pool != (uint32_t)json_integer_value(pool)) {
		t.pool = (uint32_t)json_integer_value(pool);
		t.updated_ns = fleet_now_ns();
		if (store_template_update(b->all->fleet->store, &t, &e) < 0)
			log_warn("cannot set the pool of a template", LOG_E(&e));
	}
	template_prepare(b->all, &t);
	store_template_fini(&t);
}

void build_succeed(struct build *b)
{
	struct err e;

	build_set_text(&b->row.progress, b->progress);
	build_set_text(&b->row.settings, b->settings);
	b->row.state = STORE_BUILD_READY;
	b->row.ended_ns = fleet_now_ns();
	build_log(b, "info", "ready after %.1f s",
		  (double)(b->row.ended_ns - b->row.started_ns) / 1e9);
	if (build_write_success(b, &e) == 0) {
		build_expire(b->all, b->row.template);
		build_set_pool(b);
		build_close(b);
		return;
	}
	b->row.state = STORE_BUILD_BUILDING;
	build_fail_err(b, &e);
}

/* ---- the queue ---- */

/* What the source has and the build does not do. */
static void build_log_notes(struct build *b)
{
	json_t *note;
	size_t i;

	json_array_foreach(json_object_get(b->definition, "notes"), i, note)
		build_log(b, "warn", "note: %s", json_string_value(note));
}

static void build_start(struct build *b)
{
	int resumed = b->row.state == STORE_BUILD_BUILDING;
	struct err e;

	b->running = 1;
	b->all->running++;
	b->began_ms = loop_now_ms();
	b->row.state = STORE_BUILD_BUILDING;
	if (!b->row.started_ns)
		b->row.started_ns = fleet_now_ns();
	if (build_log_open(b, &e) < 0) {
		build_fail_err(b, &e);
		return;
	}
	timer_set(&b->limit, b->all->conf.total_ms);
	if (resumed)
		build_log(b, "info", "continued after a restart of the server");
	else
		build_log_notes(b);
	if (build_save(b) < 0)
		return;
	build_emit(b, "template.build");
	build_continue(b);
}

static void builds_pump(struct timer *t)
{
	struct builds *all = loop_owner(t, struct builds, pump);

	for (struct build *b = all->list, *next; b && all->running < all->conf.at_once; b = next) {
		next = b->next;
		if (b->running)
			continue;
		build_start(b);
		timer_set(&all->pump, PUMP_MS); /* the list may have changed */
		return;
	}
}

/* ---- asked from outside ---- */

static int build_template(struct builds *b, const struct build_request *want,
			  const struct template_reference *r, struct store_template *out,
			  struct err *e)
{
	struct store_template t = { .created_ns = fleet_now_ns() };

	if (!strcmp(r->name, TEMPLATE_BASE))
		return err_set(e, ERR_INVALID, "'%s' is part of the server; choose another name",
			       r->name);
	if (store_template_find(b->fleet->store, want->team, r->name, out, e) == 0) {
		if (!strcmp(out->team, want->team))
			return 0;
		store_template_fini(out); /* a public one of another team */
	} else if (e->kind != ERR_NOT_FOUND) {
		return -1;
	}
	if (template_id_new(t.id, e) < 0)
		return -1;
	t.updated_ns = t.created_ns;
	snprintf(t.team, sizeof(t.team), "%s", want->team);
	snprintf(t.name, sizeof(t.name), "%s", r->name);
	if (store_template_insert(b->fleet->store, &t, e) < 0)
		return -1;
	*out = t;
	return 0;
}

/* The tags as JSON, checked; NULL: e. */
static json_t *build_tags(const struct build_request *want, const struct template_reference *r,
			  struct err *e)
{
	json_t *all = json_array();
	const json_t *one;
	size_t i;

	if (r->tagged)
		json_array_append_new(all, json_string(r->tag));
	json_array_foreach(want->tags, i, one)
	{
		struct template_reference parsed;
		char text[STORE_TAG + 8];

		snprintf(text, sizeof(text), "t:%s", json_string_value(one));
		if (template_reference_parse(text, NULL, &parsed, e) < 0) {
			json_decref(all);
			return NULL;
		}
		json_array_append_new(all, json_string(parsed.tag));
	}
	if (!json_array_size(all))
		json_array_append_new(all, json_string(TEMPLATE_TAG));
	return all;
}

int build_create(struct builds *b, const struct build_request *want, struct store_build *out,
		 struct err *e)
{
	struct store_build row = { .state = STORE_BUILD_WAITING,
				   .created_ns = fleet_now_ns(),
				   .cpu_milli = want->cpu_milli,
				   .mem_bytes = want->mem_bytes,
				   .disk_bytes = want->disk_bytes };
	struct template_reference r;
	struct store_template t = { 0 };
	json_t *tags;
	int rc = -1;

	if (template_reference_parse(want->name, want->team, &r, e) < 0)
		return -1;
	tags = build_tags(want, &r, e);
	if (!tags)
		return -1;
	build_set_text(&row.tags, tags);
	json_decref(tags);
	if (template_uuid_new(row.id, e) == 0 && store_begin(b->fleet->store, e) == 0) {
		snprintf(row.team, sizeof(row.team), "%s", want->team);
		rc = build_template(b, want, &r, &t, e);
		if (rc == 0) {
			memcpy(row.template, t.id, sizeof(row.template));
			rc = store_build_insert(b->fleet->store, &row, e);
		}
		rc = rc < 0 ? store_rollback(b->fleet->store) : store_commit(b->fleet->store, e);
	}
	store_template_fini(&t);
	if (rc < 0)
		store_build_fini(&row);
	else
		*out = row;
	return rc;
}

static void build_take_sizes(struct store_build *row, const json_t *definition)
{
	if (!row->cpu_milli)
		row->cpu_milli = (uint32_t)json_integer_value(json_object_get(definition, "cpu"));
	if (!row->mem_bytes)
		row->mem_bytes =
			(uint64_t)json_integer_value(json_object_get(definition, "memory"));
	if (!row->disk_bytes)
		row->disk_bytes = (uint64_t)json_integer_value(json_object_get(definition, "disk"));
}

/* Credentials of registries are kept in memory only, as secrets are. */
static json_t *build_without_auth(const json_t *definition)
{
	json_t *copy = json_deep_copy(definition), *stage;
	size_t i;

	json_array_foreach(json_object_get(copy, "stages"), i, stage)
		json_object_del(stage, "auth");
	return copy;
}

int build_begin(struct builds *b, const char *id, const json_t *definition, const json_t *secrets,
		int force, struct err *e)
{
	struct store_build row;
	struct build *x;
	json_t *stored;

	if (definition_check(definition, e) < 0 ||
	    store_build_get(b->fleet->store, id, &row, e) < 0)
		return -1;
	if (row.state != STORE_BUILD_WAITING || strcmp(row.definition, "{}") != 0) {
		err_set(e, ERR_CONFLICT, "build %s has been started already: its state is %s", id,
			store_build_state_name(row.state));
		store_build_fini(&row);
		return -1;
	}
	stored = build_without_auth(definition);
	build_set_text(&row.definition, stored);
	json_decref(stored);
	build_take_sizes(&row, definition);
	if (store_build_update(b->fleet->store, &row, e) < 0) {
		store_build_fini(&row);
		return -1;
	}
	x = build_enqueue(b, &row);
	json_decref(x->definition);
	x->definition = json_deep_copy(definition);
	x->secrets = json_deep_copy(secrets);
	x->force = force;
	return 0;
}

int build_cancel(struct builds *b, const char *id, struct err *e)
{
	struct build *x = build_lookup(b, id);
	struct store_build row;
	int rc;

	if (x) {
		if (x->log < 0)
			(void)!build_log_open(x, e);
		build_log(x, "warn", "cancelled");
		build_end(x, STORE_BUILD_CANCELLED);
		return 0;
	}
	if (store_build_get(b->fleet->store, id, &row, e) < 0)
		return -1;
	if (row.state == STORE_BUILD_WAITING || row.state == STORE_BUILD_BUILDING) {
		row.state = STORE_BUILD_CANCELLED;
		row.ended_ns = fleet_now_ns();
		build_forget_auth(&row);
		rc = store_build_update(b->fleet->store, &row, e);
	} else {
		rc = err_set(e, ERR_CONFLICT, "build %s has ended already: its state is %s", id,
			     store_build_state_name(row.state));
	}
	store_build_fini(&row);
	return rc;
}

/* ---- the engine ---- */

int builds_new(struct builds **out, struct fleet *f, const struct builds_conf *conf, struct err *e)
{
	struct builds *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	b->fleet = f;
	b->conf = *conf;
	build_prepare_init(b);
	b->folder = b->uploads = -1;
	timer_init(&b->pump, f->loop, builds_pump);
	build_collect_begin(b);
	if (build_prepare_check(conf, e) < 0 || build_folders(b, e) < 0) {
		builds_free(b);
		return -1;
	}
	*out = b;
	return 0;
}

static void builds_end_boxes(struct builds *b)
{
	struct box *next;

	for (struct box *x = fleet_next(b->fleet, NULL); x; x = next) {
		next = fleet_next(b->fleet, x);
		if (box_is_marked(&x->row, BOX_BUILD))
			box_end(x, CAUSE_HOST, NULL);
	}
}

void builds_restore(struct builds *b)
{
	struct store_builds rows = { 0 };
	struct err e;

	if (b->restored || !b->fleet->alone)
		return;
	b->restored = 1;
	builds_end_boxes(b);
	build_sweep_files(b);
	if (store_build_unfinished(b->fleet->store, &rows, &e) < 0) {
		log_error("cannot read the unfinished builds", LOG_E(&e));
		return;
	}
	for (unsigned i = 0; i < rows.n; i++)
		if (!build_lookup(b, rows.v[i].id))
			build_enqueue(b, &rows.v[i]);
	store_builds_fini(&rows);
	builds_find_layers(b);
	build_prepare_begin(b);
}

void builds_free(struct builds *b)
{
	if (!b)
		return;
	build_prepare_fini(b);
	while (b->list) {
		struct build *x = b->list;

		while (x->waiters)
			build_wait_cancel(x->waiters);
		build_free(x);
	}
	build_collect_end(b);
	build_pools_free(b);
	timer_fini(&b->pump);
	own_close_fd(&b->folder);
	own_close_fd(&b->uploads);
	free(b);
}
