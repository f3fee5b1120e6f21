/* boxes_create.c - POST /v1/boxes: returns the box of a session, or creates one with its packages
 * and files.
 *
 *   [session] -> [idempotency key] -> packages -> box -> [files of a snapshot, programs of a checkpoint] -> answer
 *
 * See boxes.h. */
#include "v1box/boxes.h"
#include "api/idempotency.h"
#include "v1box/packages.h"
#include "api/quota.h"
#include "v1box/snapshot_source.h"
#include "api/box_row.h"
#include "base/cleanup.h"
#include "checkpoint/memory.h"

#include <stdio.h>
#include <string.h>

/* ---- the box ---- */

struct boxes_making {
	struct box_wait wait;
	struct api *api;
	struct principal who;
	struct call *call; /* NULL: the client has disconnected; the box is created nevertheless */
	struct idem *idem;
	json_t *packages;            /* the packages of the box; NULL: none */
	char checkpoint[ID_MAX + 1]; /* whose programs continue in the box; "": none */
	struct checkpoint_start start;
	char snapshot[ID_MAX + 1]; /* the box starts with the files of this snapshot; "": none, or
				    * already copied */
};

static int will_be(struct box_wait *w, const char *id, struct err *e)
{
	return idempotency_subject(loop_owner(w, struct boxes_making, wait)->idem, id, e);
}

static void say_made(struct call *c, const struct box *b, json_t *take_doc)
{
	http_set(c->req, "Location", "/v1/boxes/%s", b->row.id);
	box_row_set(c, b->row.id);
	call_json(c, 201, take_doc);
}

static json_t *made_json(const struct box *b)
{
	json_t *doc = box_json(b);

	json_object_set_new(doc, "create_us", json_integer((json_int_t)b->create_us));
	return doc;
}

/* The keeper does not have this layer: forget it, so that the next request installs the packages
 * again. */
static void forget_lost(const struct boxes_making *m, const struct err *e)
{
	const json_t *set;
	size_t i;

	if (e->kind != ERR_NOT_FOUND || !strstr(e->msg, "there is no layer"))
		return;
	json_array_foreach(json_object_get(m->packages, "sets"), i, set)
		packages_forget(&m->api->fleet, json_string_value(json_object_get(set, "layer")));
}

static void boxes_told(struct boxes_making *m, struct box *b, const struct err *e)
{
	struct call *c = m->call;
	json_t *doc = NULL;

	if (c)
		c->drop = NULL;
	if (c)
		call_audit(c, "box.create", e ? "" : b->row.id, e ? err_kind_name(e->kind) : "ok");
	else
		api_audit(m->api, &m->who, "box.create", e ? "" : b->row.id,
			  e ? err_kind_name(e->kind) : "ok", NULL);
	if (e) {
		forget_lost(m, e);
		idempotency_drop(m->idem);
	} else {
		doc = made_json(b);
		if (m->packages)
			json_object_set(doc, "packages", m->packages);
		idempotency_answer(m->idem, 201, doc);
	}
	json_decref(m->packages);
	free(m);
	if (!c)
		json_decref(doc);
	else if (e)
		call_fail(c, e);
	else
		say_made(c, b, doc);
}

/* A box that could not get its files is deleted. */
static void boxes_filled(void *ctx, const struct store_snapshot *row, const char *box,
			 const struct err *e)
{
	struct boxes_making *m = ctx;
	struct box *b = fleet_find(&m->api->fleet, box);
	struct err gone;

	(void)row;
	if (!e && (!b || b->state != BOX_RUNNING)) {
		err_set(&gone, ERR_NOT_FOUND, "box %s has ended", box);
		e = &gone;
	}
	if (e && b)
		box_end(b, CAUSE_OPERATOR, NULL);
	boxes_told(m, b, e);
}

static void boxes_continued(struct checkpoint_start *s, const struct err *e)
{
	struct boxes_making *m = loop_owner(s, struct boxes_making, start);

	boxes_filled(m, NULL, s->box, e);
}

static void boxes_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct boxes_making *m = loop_owner(w, struct boxes_making, wait);
	struct snapshot *snap; /* continues without the client, as the creation does */
	struct err own;

	if (!e && m->checkpoint[0])
		checkpoint_memory_start(&m->start, m->api->checkpoints, m->checkpoint, b);
	else if (e || !m->snapshot[0])
		boxes_told(m, b, e);
	else if (snapshot_source_fill(m->api, b, m->snapshot, boxes_filled, m, &snap, &own) < 0)
		boxes_filled(m, NULL, b->row.id, &own);
}

static void builder_left(struct call *c)
{
	((struct boxes_making *)c->state)->call = NULL;
}

static void boxes_make(struct call *c, struct box_spec *want, struct idem *take_idem,
		       json_t *take_packages)
{
	const char *snapshot = call_text(c, "snapshot", NULL);
	struct boxes_making *m = calloc(1, sizeof(*m));
	struct store_snapshot files = { 0 };
	struct box *b;
	struct err e;
	int ready = 0;

	if (!m)
		abort();
	*m = (struct boxes_making){ .wait = { .done = boxes_made, .named = will_be },
				    .start.done = boxes_continued,
				    .api = c->api,
				    .who = c->who,
				    .call = c,
				    .idem = take_idem,
				    .packages = take_packages };
	c->state = m;
	c->drop = builder_left;
	if (snapshot && (snapshot_source_find(c->api, c->who.team, snapshot, &files, &e) < 0 ||
			 (ready = snapshots_spec(c, &files, want, &e)) < 0)) {
		boxes_told(m, NULL, &e);
		return;
	}
	if (ready) /* the variables of the request override those of the box */
		want->row.env = box_spec_env(c, want->row.env, call_get(c, "env"));
	else
		memcpy(m->snapshot, files.id, sizeof(m->snapshot));
	if (want->continues_programs)
		memcpy(m->checkpoint, want->row.origin, sizeof(m->checkpoint));
	isolation_of_snapshot(&files, &want->isolation);
	if (box_create(&c->api->fleet, want, &m->wait, &b, &e) == 0)
		return;
	c->drop = NULL;
	idempotency_drop(take_idem);
	json_decref(take_packages);
	free(m);
	call_fail(c, &e);
}

/* ---- packages ---- */

struct furnishing {
	struct package_job job;
	struct call *call;
	struct box_spec want;
	struct idem *idem;
};

static void boxes_furnished(struct package_job *j, const struct packages_failure *f)
{
	struct furnishing *u = j->user;
	struct call *c = u->call;
	json_t *report;

	c->drop = NULL;
	if (f) {
		json_t *error = packages_failure_json(f);

		idempotency_drop(u->idem);
		packages_job_fini(j);
		call_json(c, 422, error);
		return;
	}
	packages_want(j, c->req, &u->want);
	report = packages_report(j);
	packages_job_fini(j);
	boxes_make(c, &u->want, u->idem, report);
}

/* The installation continues; the box is not created. */
static void furnisher_left(struct call *c)
{
	struct furnishing *u = c->state;

	packages_job_fini(&u->job);
	idempotency_drop(u->idem);
}

static void boxes_furnish(struct call *c, const struct box_spec *want, struct idem *take_idem)
{
	struct furnishing *u = call_alloc(c, sizeof(*u));
	struct err e;
	int there;

	*u = (struct furnishing){ .call = c,
				  .want = *want,
				  .idem = take_idem,
				  .job = { .api = c->api, .done = boxes_furnished } };
	u->job.user = u;
	if (packages_read(&u->job, call_get(c, "packages"), NULL, &e) < 0) {
		there = -1;
	} else if (u->job.n && !box_spec_packages(c, want)) {
		packages_job_fini(&u->job);
		idempotency_drop(take_idem);
		return;
	} else {
		there = packages_begin(&u->job, c->api, c->who.team, &e);
	}
	if (there > 0) {
		boxes_furnished(&u->job, NULL);
	} else if (there < 0) {
		json_t *refusal = packages_refusal_json(&e);

		packages_job_fini(&u->job);
		idempotency_drop(take_idem);
		if (refusal)
			call_json(c, 422, refusal);
		else
			call_fail(c, &e);
	} else {
		c->state = u;
		c->drop = furnisher_left;
	}
}

/* ---- an existing box ---- */

static int is_there(const struct box *b)
{
	return b && (b->state == BOX_RUNNING || b->state == BOX_STOPPED || b->state == BOX_PAUSED);
}

struct joining {
	struct box_wait wait;
	struct call *call;
};

static void boxes_joined(struct box_wait *w, struct box *b, const struct err *e)
{
	struct call *c = loop_owner(w, struct joining, wait)->call;

	c->drop = NULL;
	if (e)
		call_fail(c, e);
	else
		call_json(c, 200, box_json(b));
}

static void joiner_left(struct call *c)
{
	box_wait_cancel(&((struct joining *)c->state)->wait);
}

/* Another request is creating the box: wait for it. */
static void boxes_join(struct call *c, struct box *b)
{
	struct joining *j = call_alloc(c, sizeof(*j));

	*j = (struct joining){ .wait.done = boxes_joined, .call = c };
	c->state = j;
	c->drop = joiner_left;
	box_await(b, &j->wait);
}

/* Looks for the box of a session. 1: answered, or the box is being adopted. */
static int of_session(struct call *c, const char *session, const struct box_spec *want)
{
	const char *template = want->row.template;
	struct box *b = fleet_session(&c->api->fleet, c->who.team, session, template);
	struct isolation_ask ask = box_isolation(want);
	struct store_box row = { 0 };
	struct err e;

	if (b && isolation_accepts(&c->api->fleet, &ask, &b->row, &e) < 0)
		return (call_fail(c, &e), 1);
	if (b && b->state == BOX_PAUSED)
		return (call_fail_paused(c, b), 1);
	if (is_there(b)) {
		box_wake(b);
		call_audit(c, "box.create", b->row.id, "found");
		call_json(c, 200, box_json(b));
		return 1;
	}
	if (b && b->state == BOX_MAKING && !b->late) {
		boxes_join(c, b);
		return 1;
	}
	return store_box_by_session(c->api->store, c->who.team, session, template, &row, &e) == 0 &&
	       call_adopt(c, &row);
}

/* A lifetime in the request counts from the creation; the default lifetime must not end a box that
 * is in use. */
static int read_lifetime_from(struct call *c, struct store_box *row, struct err *e)
{
	const char *from =
		call_text(c, "lifetime_from", call_get(c, "lifetime_ms") ? "creation" : "use");

	if (!strcmp(from, "use"))
		row->surface = BOX_RENEWED;
	else if (strcmp(from, "creation") != 0)
		return err_set(e, ERR_INVALID, "lifetime_from: '%.20s' is neither use nor creation",
			       from);
	return 0;
}

void boxes_create(struct call *c)
{
	const char *session = call_text(c, "session", "");
	char before[ID_MAX + 1];
	struct box_spec want;
	struct idem *idem;
	enum idempotency_result go;
	struct box *b;
	struct err e;

	if (call_flag(c, "memory", 0) && !call_get(c, "checkpoint")) {
		call_error(c, 400, "invalid", "memory: the programs of which checkpoint?", NULL,
			   "add \"checkpoint\": ID");
		return;
	}
	if (box_spec_read(c, &want, &e) < 0 || read_lifetime_from(c, &want.row, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (*session && of_session(c, session, &want))
		return;
	go = idempotency_begin(c, &idem, before);
	if (go == IDEM_ANSWERED)
		return;
	b = go == IDEM_MADE ? fleet_find(&c->api->fleet, before) : NULL;
	if (is_there(b)) {
		json_t *doc = made_json(b);

		idempotency_answer(idem, 201, doc);
		say_made(c, b, doc);
	} else if (b && (b->late || b->restoring)) { /* the box exists, but its state cannot be
						      * reported yet */
		idempotency_leave(idem);
		http_set(c->req, "Retry-After", "1");
		call_error(c, 503, "busy", "the box does not answer at the moment", before, NULL);
	} else if (!quota_box(c)) {
		idempotency_drop(idem);
	} else {
		boxes_furnish(c, &want, idem);
	}
}
