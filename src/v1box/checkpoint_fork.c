/* checkpoint_fork.c - boxes from checkpoints: POST /v1/boxes/{box}/fork, and a file of a checkpoint. */
#include "v1box/checkpoints.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "checkpoint/memory.h"
#include "checkpoint/prepare.h"
#include "v1box/box_spec.h"
#include "v1box/boxes.h"
#include "v1box/download.h"
#include "v1box/volumes.h"

#include <stdio.h>
#include <string.h>

enum { FORKS_MOST = 100, FORKS_AT_ONCE = 8 };

static const struct field fork_volume_values[] = { FIELD_VALUE("read-only"),
						   FIELD_VALUE("drop"),
						   { 0 } };
const struct field checkpoints_fork_fields[] = {
	/* clang-format off */
	{ "count", FIELD_INT, 0, 1, FORKS_MOST, "number of boxes (default 1)", NULL },
	{ "from", FIELD_TEXT, 0, 0, STORE_NAME, "a checkpoint: id, or name in the box (default: the present files)", NULL },
	{ "names", FIELD_TEXTS, 0, 0, FORKS_MOST, "names of the boxes, at most one for each", NULL },
	{ "lifetime_ms", FIELD_INT, 0, 0, INT64_C(1) << 53, "time until the boxes time out (default: as the box)", NULL },
	{ "metadata", FIELD_MAP, 0, 0, 64, "metadata of the boxes (default: as the box)", NULL },
	{ "volumes", FIELD_CHOICE, 0, 0, 0, "if the box has volumes: mount them read-only, or drop them", fork_volume_values },
	{ "memory", FIELD_BOOL, 0, 0, 0, "also the running programs: they continue in each box", NULL },
	{ "on_unsupported", FIELD_CHOICE, 0, 0, 0, "with memory, if a program cannot be captured: fail (default)", checkpoints_unsupported_values },
	{ 0 },
	/* clang-format on */
};

const struct field checkpoints_files_query[] = {
	{ "path", FIELD_TEXT, 1, 0, FILE_REQUEST_PATH, "the file; relative to /home/user", NULL },
	{ 0 },
};

static char *fork_text(struct call *c, const char *text)
{
	return text ? http_strdup(c->req, text, strlen(text)) : NULL;
}

static char *fork_dump(struct call *c, const json_t *doc)
{
	auto_free char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	return fork_text(c, text);
}

void checkpoints_spec(struct call *c, const struct store_checkpoint *x, struct box_spec *out)
{
	json_t *doc = checkpoint_read_spec(x);

	checkpoint_fill_spec(x, doc, out);
	out->row.root = fork_dump(c, json_object_get(doc, "root"));
	out->row.env = fork_dump(c, json_object_get(doc, "env"));
	json_decref(doc);
}

/* ---- fork ---- */

struct checkpoint_forking;
struct checkpoint_copy {
	struct checkpoint_forking *all;
	struct box_wait wait;
	struct checkpoint_start start;
	json_t *said; /* its entry in the answer, once it exists or has failed */
};

struct checkpoint_forking {
	struct call *call;
	struct checkpoint_job *job;
	struct box_spec want; /* texts live as long as the call */
	char box[ID_MAX + 1], from[ID_MAX + 1];
	uint64_t frozen_us, took_us;
	int memory, is_taken; /* the checkpoint was taken for this fork */
	struct checkpoint_prepared prepared;
	int is_prepared;            /* the copies are made of a prepared image */
	const char *why_unprepared; /* "": the box is to have none */
	unsigned count, begun, over;
	int beginning;
	struct checkpoint_copy *v;
};

static void fork_begin_all(struct checkpoint_forking *f);

/* {age_ms}, {why}, or null where the box is to have no prepared image. */
static json_t *fork_prepared_json(const struct checkpoint_forking *f)
{
	if (f->is_prepared)
		return json_pack("{s:I}", "age_ms", (json_int_t)f->prepared.age_ms);
	return f->why_unprepared && *f->why_unprepared
		       ? json_pack("{s:s}", "why", f->why_unprepared)
		       : json_null();
}

static void fork_leave_prepared(struct checkpoint_forking *f)
{
	if (f->is_prepared)
		checkpoint_prepared_leave(f->call->api->checkpoints, f->from);
	f->is_prepared = 0;
}

static void fork_answer(struct checkpoint_forking *f)
{
	struct call *c = f->call;
	json_t *items = json_array(), *ids = json_array();

	c->drop = NULL;
	for (unsigned i = 0; i < f->count; i++) {
		const json_t *id = json_object_get(json_object_get(f->v[i].said, "box"), "id");

		if (id)
			json_array_append(ids, (json_t *)id);
		json_array_append_new(items, f->v[i].said);
	}
	fleet_emit(&c->api->fleet, c->who.team, f->box, "box.forked",
		   json_pack("{s:s, s:o}", "checkpoint", f->from, "boxes", ids));
	call_audit(c, "box.fork", f->box, "ok");
	call_json(c, 201,
		  json_pack("{s:s, s:I, s:I, s:o, s:o, s:o}", "checkpoint", f->from, "frozen_us",
			    (json_int_t)f->frozen_us, "took_us", (json_int_t)f->took_us, "memory",
			    f->memory ? checkpoint_memory_json(c->api->checkpoints, f->from)
				      : json_null(),
			    "prepared", fork_prepared_json(f), "items", items));
	fork_leave_prepared(f);
	/* It needs as much memory as the programs; only its files stay. */
	if (f->memory && f->is_taken)
		checkpoint_memory_drop(c->api->checkpoints, f->from);
}

static void fork_over(struct checkpoint_copy *k, json_t *take_said)
{
	k->said = take_said;
	k->all->over++;
	if (!k->all->beginning)
		fork_begin_all(k->all);
}

static void fork_failed(struct checkpoint_copy *k, const struct err *e)
{
	fork_over(k, json_pack("{s:{s:i, s:s, s:s}}", "error", "status", call_status(e), "code",
			       err_kind_name(e->kind), "message", e->msg));
}

/* A box without its programs is not what was requested. */
static void fork_started(struct checkpoint_start *s, const struct err *e)
{
	struct checkpoint_copy *k = loop_owner(s, struct checkpoint_copy, start);
	struct box *b = fleet_find(&k->all->call->api->fleet, s->box);

	if (e && b)
		box_end(b, CAUSE_HOST, NULL);
	if (e)
		fork_failed(k, e);
	else
		fork_over(k, json_pack("{s:o}", "box", box_json(b)));
}

static void fork_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct checkpoint_copy *k = loop_owner(w, struct checkpoint_copy, wait);

	if (e)
		fork_failed(k, e);
	else if (k->all->memory)
		checkpoint_memory_start(&k->start, k->all->call->api->checkpoints, k->all->from, b);
	else
		fork_over(k, json_pack("{s:o}", "box", box_json(b)));
}

static void fork_begin(struct checkpoint_forking *f, unsigned i)
{
	struct call *c = f->call;
	struct checkpoint_copy *k = &f->v[i];
	struct box_spec want = f->want;
	const char *name = json_string_value(json_array_get(call_get(c, "names"), i));
	struct box *b;
	struct err e;

	*k = (struct checkpoint_copy){ .all = f,
				       .wait.done = fork_made,
				       .start.done = fork_started };
	snprintf(want.row.name, sizeof(want.row.name), "%s", name ? name : "");
	if (quota_boxes_left(c->api, c->who.team) == 0) {
		err_set(&e, ERR_LIMIT, "team %s has as many boxes as it may (quota)", c->who.team);
		fork_failed(k, &e);
	} else if (box_create(&c->api->fleet, &want, &k->wait, &b, &e) < 0) {
		fork_failed(k, &e);
	}
}

static void fork_begin_all(struct checkpoint_forking *f)
{
	f->beginning = 1;
	while (f->begun < f->count && f->begun - f->over < FORKS_AT_ONCE)
		fork_begin(f, f->begun++);
	f->beginning = 0;
	if (f->over == f->count)
		fork_answer(f);
}

/* No client will know the ids of the boxes. */
static void fork_left(struct call *c)
{
	struct checkpoint_forking *f = c->state;

	checkpoint_leave(f->job);
	checkpoint_prepared_cancel(&f->prepared);
	fork_leave_prepared(f);
	for (unsigned i = 0; i < f->begun; i++) {
		struct box *b = f->v[i].wait.box;
		const char *id = json_string_value(
			json_object_get(json_object_get(f->v[i].said, "box"), "id"));

		box_wait_cancel(&f->v[i].wait);
		checkpoint_memory_cancel(&f->v[i].start);
		if (!b && f->v[i].start.box[0])
			b = fleet_find(&c->api->fleet, f->v[i].start.box);
		if (!b && id)
			b = fleet_find(&c->api->fleet, id);
		if (b)
			box_end(b, CAUSE_OPERATOR, NULL);
		json_decref(f->v[i].said);
	}
}

static void fork_take_files(struct checkpoint_forking *f, const struct store_checkpoint *x)
{
	char *env = f->want.row.env;

	checkpoints_spec(f->call, x, &f->want);
	f->want.row.env = env; /* of the box, as it is now */
	memcpy(f->from, x->id, sizeof(f->from));
}

static void fork_taken(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct checkpoint_forking *f = ctx;

	f->job = NULL;
	if (e) {
		f->call->drop = NULL;
		checkpoints_fail(f->call, e);
		return;
	}
	f->frozen_us = row->frozen_us;
	f->took_us = row->took_us;
	f->is_taken = 1;
	fork_take_files(f, row);
	fork_begin_all(f);
}

/* Volumes are not copied, and only one box may write to one. 0: answered. */
static int fork_volumes(struct call *c, const struct box *b, struct box_spec *out)
{
	json_t *list = b->row.volumes ? json_loads(b->row.volumes, 0, NULL) : NULL, *one;
	const char *how = call_text(c, "volumes", NULL);
	size_t i;
	struct err e;
	int rc = 0, writes = 0;

	json_array_foreach(list, i, one)
	{
		writes |= !json_is_true(json_object_get(one, "read_only"));
		json_object_set_new(one, "read_only", json_true());
	}
	if (writes && !how) {
		json_decref(list);
		call_error(c, 409, "conflict",
			   "the box writes to a volume, and only one box can write to it",
			   b->row.id, "add \"volumes\": \"read-only\" or \"volumes\": \"drop\"");
		return 0;
	}
	if (json_array_size(list) && (!how || strcmp(how, "drop") != 0)) {
		out->row.volumes = fork_dump(c, list);
		rc = volumes_want(c, list, out, &e);
	}
	json_decref(list);
	if (rc < 0)
		call_fail(c, &e);
	return rc == 0;
}

int checkpoints_describe_copy(struct call *c, const struct box *b, struct box_spec *w)
{
	const struct store_limits *l = &b->row.limits;
	struct err e;

	*w = (struct box_spec){ .limits = { .mem_bytes = l->mem_bytes,
					    .disk_bytes = l->disk_bytes,
					    .disk_files = l->disk_files,
					    .cpu_ms = l->cpu_ms,
					    .cpu_milli = l->cpu_milli,
					    .pids = l->pids },
				.isolation = isolation_like(&b->row) };
	w->row = (struct store_box){ .lifetime_ms = b->row.lifetime_ms,
				     .idle_ms = b->row.idle_ms,
				     .retention_ms = b->row.retention_ms,
				     .on_timeout = b->row.on_timeout,
				     .env = fork_text(c, b->row.env),
				     .network = fork_text(c, b->row.network),
				     .secrets = fork_text(c, b->row.secrets),
				     .checkpoints = fork_text(c, b->row.checkpoints) };
	if (box_renews(&b->row) && !call_get(c, "lifetime_ms"))
		w->row.surface = (char *)BOX_RENEWED;
	snprintf(w->row.team, sizeof(w->row.team), "%s", c->who.team);
	snprintf(w->row.key, sizeof(w->row.key), "%s", c->who.id);
	memcpy(w->row.template, b->row.template, sizeof(w->row.template));
	if (box_check_metadata(call_get(c, "metadata"), NULL, &e) < 0 ||
	    box_read_times(c, &w->row, &e) < 0) {
		call_fail(c, &e);
		return 0;
	}
	w->row.metadata = call_get(c, "metadata") ? fork_dump(c, call_get(c, "metadata"))
						  : fork_text(c, b->row.metadata);
	w->flags = box_made_flags(&b->row);
	return fork_volumes(c, b, w);
}

/* Of the present files, and programs. */
static void fork_take(struct checkpoint_forking *f)
{
	struct checkpoint_want want = { .reason = CHECKPOINT_FORK,
					.author = f->call->who.id,
					.memory = f->memory };
	struct box *b = fleet_find(&f->call->api->fleet, f->box);
	struct err e;

	if (!b)
		err_set(&e, ERR_NOT_FOUND, "box %s has ended", f->box);
	if (b &&
	    checkpoint_take(f->call->api->checkpoints, b, &want, fork_taken, f, &f->job, &e) == 0)
		return;
	f->call->drop = NULL;
	call_fail(f->call, &e);
}

static void fork_prepared(struct checkpoint_prepared *x, const char *id, const char *why)
{
	struct checkpoint_forking *f = loop_owner(x, struct checkpoint_forking, prepared);
	struct store_checkpoint row = { 0 };
	struct err e;

	f->why_unprepared = why;
	if (id && store_checkpoint_get(f->call->api->store, f->call->who.team, id, &row, &e) < 0) {
		checkpoint_prepared_leave(f->call->api->checkpoints, id);
		f->why_unprepared = "the checkpoint of the prepared image was deleted";
		id = NULL;
	}
	if (!id) {
		fork_take(f);
		return;
	}
	f->is_prepared = 1;
	fork_take_files(f, &row);
	store_checkpoint_fini(&row);
	fork_begin_all(f);
}

static int fork_check_names(struct call *c)
{
	const json_t *names = call_get(c, "names"), *one;
	size_t i, k;

	if (json_array_size(names) > (size_t)call_int(c, "count", 1)) {
		call_error(c, 400, "invalid", "names: more names than boxes", NULL,
			   "count is the number of boxes");
		return 0;
	}
	json_array_foreach(names, i, one)
	{
		const char *name = json_string_value(one);

		for (k = 0; k < i; k++)
			if (!strcmp(name, json_string_value(json_array_get(names, k))))
				break;
		if (k < i || fleet_named(&c->api->fleet, c->who.team, name)) {
			call_error(c, 409, "conflict", "names: there is a box with this name", name,
				   "use another name");
			return 0;
		}
	}
	return 1;
}

void checkpoints_fork(struct call *c)
{
	struct checkpoint_forking *f = call_alloc(c, sizeof(*f));
	const char *from = call_text(c, "from", NULL);
	struct box *b = call_box(c, 0);
	struct store_checkpoint x;
	struct err e;

	if (!b || !fork_check_names(c))
		return;
	if (c->who.box[0]) {
		call_error(c, 403, "denied",
			   "this key is bound to one box, and cannot create others", c->who.box,
			   "an editor of the team can: POST /v1/boxes/BOX/fork");
		return;
	}
	if (!quota_box(c))
		return;
	*f = (struct checkpoint_forking){ .call = c, .count = (unsigned)call_int(c, "count", 1) };
	f->v = call_alloc(c, f->count * sizeof(*f->v));
	memset(f->v, 0, f->count * sizeof(*f->v));
	memcpy(f->box, b->row.id, sizeof(f->box));
	f->memory = call_flag(c, "memory", 0);
	f->prepared.done = fork_prepared;
	if (!checkpoints_describe_copy(c, b, &f->want))
		return;
	f->want.continues_programs = f->memory;
	if (from) {
		if (!checkpoints_find(c, b, from, &x))
			return;
		fork_take_files(f, &x);
		store_checkpoint_fini(&x);
		if (f->memory && checkpoint_memory_check(c->api->checkpoints, f->from, &e) < 0) {
			call_fail(c, &e);
			return;
		}
		c->state = f;
		c->drop = fork_left;
		fork_begin_all(f);
		return;
	}
	c->state = f;
	c->drop = fork_left;
	if (!f->memory ||
	    !checkpoint_prepared_find(&f->prepared, c->api->checkpoints, b, &f->why_unprepared))
		fork_take(f);
}

/* ---- a file of a checkpoint ---- */

/* The box that reads it ends with the call. */
struct checkpoint_reading {
	struct box_wait wait;
	struct call *call;
	const char *path;
	char box[ID_MAX + 1];
};

static void files_end_box(struct call *c)
{
	struct checkpoint_reading *r = c->surface;
	struct box *b = r->box[0] ? fleet_find(&c->api->fleet, r->box) : r->wait.box;

	box_wait_cancel(&r->wait);
	if (b)
		box_end(b, CAUSE_EXIT, NULL);
}

static void files_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct checkpoint_reading *r = loop_owner(w, struct checkpoint_reading, wait);
	struct download_want want = { .path = r->path, .box = b };

	if (e) {
		call_fail(r->call, e);
		return;
	}
	memcpy(r->box, b->row.id, sizeof(r->box));
	download_begin(r->call, &want);
}

void checkpoints_files(struct call *c)
{
	struct checkpoint_reading *r = call_alloc(c, sizeof(*r));
	const char *path = file_request_path(c, call_query(c, "path"));
	struct box_spec want = { .limits = c->api->fleet.conf.limits };
	struct store_checkpoint x;
	struct box *b;
	struct err e;

	if (!path || !checkpoints_find(c, NULL, call_param(c, 0), &x))
		return;
	*r = (struct checkpoint_reading){ .wait.done = files_made, .call = c, .path = path };
	checkpoints_spec(c, &x, &want);
	store_checkpoint_fini(&x);
	snprintf(want.row.team, sizeof(want.row.team), "%s", c->who.team);
	snprintf(want.row.key, sizeof(want.row.key), "%s", c->who.id);
	want.row.metadata = fork_text(c, "{\"" BOX_EPHEMERAL "\":\"1\"}");
	want.row.lifetime_ms = 600000;
	if (!quota_box(c))
		return;
	c->surface = r;
	c->leave = files_end_box;
	if (box_create(&c->api->fleet, &want, &r->wait, &b, &e) < 0)
		call_fail(c, &e);
}
