/* boxes.c - see boxes.h; boxes_create.c creates boxes. */
#include "v1box/boxes.h"
#include "v1box/automatic.h"
#include "api/network_answer.h"
#include "v1box/secrets.h"
#include "api/charges.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "fleet/bounds.h"
#include "fleet/box_network.h"
#include "v1box/network.h"

#include <stdio.h>
#include <string.h>

static const struct field box_state_values[] = { FIELD_VALUE("running"),  FIELD_VALUE("stopped"),
						 FIELD_VALUE("paused"),   FIELD_VALUE("deleted"),
						 FIELD_VALUE("all"),      FIELD_OLD_VALUE("kept"),
						 FIELD_OLD_VALUE("gone"), { 0 } };
const struct field box_list_query[] = {
	/* clang-format off */
	{ "state", FIELD_CHOICE, 0, 0, 0, "only boxes in this state (default: all except deleted)", box_state_values },
	{ "template", FIELD_TEXT, 0, 0, STORE_TEMPLATE, "only boxes of this template", NULL },
	{ "name", FIELD_TEXT, 0, 0, STORE_NAME, "only boxes whose name starts with this text", NULL },
	{ "metadata", FIELD_TEXT, 0, 0, 1024, "only boxes with key=value; separate several pairs by an encoded &", NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)", NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
	/* clang-format on */
};

/* ---- as JSON ---- */

static json_t *boxes_ms(uint64_t n)
{
	return n == STORE_FOREVER ? json_integer(-1)
	       : n                ? json_integer((json_int_t)n)
				  : json_null();
}

static json_t *boxes_moment(int64_t ns)
{
	return ns ? json_time((uint64_t)ns) : json_null();
}

static json_t *text_json(const char *text, int array)
{
	json_t *v = text ? json_loads(text, 0, NULL) : NULL;

	return v ? v : array ? json_array() : json_object();
}

static json_t *boxes_limit(uint64_t n)
{
	return n ? json_integer((json_int_t)n) : json_null();
}

/* The build of its template, and the port that its start command serves. */
static void box_add_template(json_t *doc, const struct store_box *row)
{
	json_t *root = text_json(row->root, 0);

	if (json_object_get(root, "build"))
		json_object_set(doc, "build", json_object_get(root, "build"));
	if (json_object_get(root, "port"))
		json_object_set(doc, "port", json_object_get(root, "port"));
	json_decref(root);
}

/* names: of its layers. */
static json_t *box_row_json(const struct store_box *row, const char *const *names)
{
	const struct store_limits *l = &row->limits;
	json_t *isolation = isolation_json(row, names);
	json_t *doc = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "id", row->id, "name",
				row->name, "session", row->session, "template", row->template,
				"state", store_box_state_name(row->state), "metadata",
				text_json(row->metadata, 0), "env", text_json(row->env, 0));

	box_add_template(doc, row);
	json_object_set_new(doc, "created", boxes_moment(row->created_ns));
	json_object_set_new(doc, "ends", boxes_moment(row->ends_ns));
	json_object_set_new(doc, "lifetime_ms", boxes_ms(row->lifetime_ms));
	json_object_set_new(doc, "lifetime_from",
			    json_string(box_renews(row) ? "use" : "creation"));
	json_object_set_new(doc, "idle_ms", boxes_ms(row->idle_ms));
	json_object_set_new(doc, "on_timeout", json_string(store_on_timeout_name(row->on_timeout)));
	json_object_set_new(doc, "on_loss", json_string(store_on_loss_name(row->on_loss)));
	json_object_set_new(doc, "generation", json_integer(row->generation));
	json_object_set_new(doc, "checkpoints", checkpoint_policy_json(row));
	json_object_set_new(doc, "retention_ms", boxes_ms(row->retention_ms));
	json_object_set_new(doc, "kept_until", boxes_moment(row->kept_until_ns));
	json_object_set_new(doc, "limits",
			    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "mem",
				      boxes_limit(l->mem_bytes), "disk", boxes_limit(l->disk_bytes),
				      "files", boxes_limit(l->disk_files), "cpu_milli",
				      boxes_limit(l->cpu_milli), "pids", boxes_limit(l->pids),
				      "cpu_ms", boxes_limit(l->cpu_ms)));
	json_object_set_new(doc, "isolation", isolation);
	json_object_set(doc, "tier", json_object_get(isolation, "tier"));
	json_object_set_new(doc, "volumes", text_json(row->volumes, 1));
	json_object_set_new(doc, "secrets", secrets_of_row(row));
	json_object_set_new(doc, "network",
			    box_network_json(row->network, fleet_now_ns() / 1000000000));
	if (row->state == STORE_BOX_DELETED) {
		json_object_set_new(doc, "ended", boxes_moment(row->ended_ns));
		json_object_set_new(doc, "cause", json_string(row->cause));
	}
	return doc;
}

static json_t *layers_json(const struct box *b)
{
	const char *const *names = b->fleet->conf.layer_names;
	json_t *all = json_array();

	for (unsigned i = 0; names[i]; i++)
		if (b->row.layers >> i & 1)
			json_array_append_new(all, json_string(names[i]));
	return all;
}

json_t *box_json(const struct box *b)
{
	json_t *doc = box_row_json(&b->row, b->fleet->conf.layer_names);

	json_object_set_new(doc, "state", json_string(box_state_name(b->state)));
	json_object_set_new(doc, "ends", boxes_moment(box_ends_ns(b)));
	json_object_set_new(doc, "layers", layers_json(b));
	json_object_set_new(doc, "running", json_integer(b->nruns));
	if (json_is_true(json_object_get(json_object_get(doc, "checkpoints"), "prepare")))
		json_object_set_new(json_object_get(doc, "checkpoints"), "prepared",
				    json_boolean(b->is_prepared));
	if (b->state == BOX_PAUSED)
		json_object_set_new(doc, "paused_to",
				    json_string(b->row.image[0] ? "disk" : "memory"));
	return doc;
}

void box_withhold(const struct call *c, json_t *doc)
{
	json_t *env = json_object_get(doc, "env"), *v;
	const char *name;
	void *next;
	size_t i;

	if (c->who.role >= ROLE_EDITOR)
		return;
	json_object_foreach_safe(env, next, name, v) json_object_set_new(env, name, json_null());
	json_array_foreach(json_object_get(doc, "secrets"), i, v)
	{
		const char *secret = json_string_value(json_object_get(v, "name"));

		json_array_set_new(json_object_get(doc, "secrets"), i,
				   json_pack("{s:s}", "name", secret ? secret : ""));
	}
}

/* ---- list, show ---- */

static int read_filter(struct call *c, struct store_box_filter *f, struct store_pair *pairs,
		       struct err *e)
{
	const char *state = call_query(c, "state"), *meta = call_query(c, "metadata"),
		   *after = call_query(c, "after");
	enum store_box_state s;
	char *text, *rest = NULL;

	f->template = call_query(c, "template");
	f->name_prefix = call_query(c, "name");
	f->limit = (unsigned)call_query_int(c, "limit", 0);
	if (state && !strcmp(state, "all"))
		f->states = (1u << STORE_BOX_STATES) - 1;
	else if (state && store_box_state_parse(state, &s) < 0)
		return err_set(e, ERR_INVALID,
			       "?state=%.20s: running, stopped, paused, deleted or all", state);
	else if (state)
		f->states = 1u << s;
	if (f->states && strcmp(state, "all") && strcmp(state, store_box_state_name(s)))
		call_renamed(c, "state", state, store_box_state_name(s));
	if (after && store_cursor_parse(after, &f->after, e) < 0)
		return -1;
	if (!meta)
		return 0;
	text = http_strdup(c->req, meta, strlen(meta));
	for (char *p = strtok_r(text, "&", &rest); p; p = strtok_r(NULL, "&", &rest)) {
		char *eq = strchr(p, '=');

		if (!eq || f->nmetadata == STORE_PAIRS_MAX)
			return err_set(e, ERR_INVALID, "?metadata=: key=value, at most %d of them",
				       STORE_PAIRS_MAX);
		*eq = 0;
		pairs[f->nmetadata++] = (struct store_pair){ p, eq + 1 };
	}
	f->metadata = pairs;
	return 0;
}

json_t *boxes_listed_json(struct api *a, const struct store_box *row)
{
	const struct box *b = fleet_find(&a->fleet, row->id);
	json_t *one;

	if (b && b->is_spare)
		return NULL;
	one = b ? box_json(b) : box_row_json(row, a->fleet.conf.layer_names);
	json_object_set_new(one, "cost", charges_total_json(a, row->id));
	return one;
}

void boxes_list(struct call *c)
{
	struct store_pair pairs[STORE_PAIRS_MAX];
	struct store_box_filter f = { .team = c->who.team };
	struct store_boxes rows = { 0 };
	char next[STORE_CURSOR_TEXT] = "";
	json_t *items = json_array();
	struct err e;

	if (read_filter(c, &f, pairs, &e) < 0 || store_box_list(c->api->store, &f, &rows, &e) < 0) {
		json_decref(items);
		call_fail(c, &e);
		return;
	}
	for (unsigned i = 0; i < rows.n; i++) {
		json_t *one = boxes_listed_json(c->api, &rows.v[i]);

		if (!one)
			continue;
		box_withhold(c, one);
		json_array_append_new(items, one);
	}
	if (rows.more) {
		struct store_cursor at = store_box_cursor(&rows.v[rows.n - 1]);

		store_cursor_text(&at, next);
	}
	store_boxes_fini(&rows);
	call_list(c, items, next);
}

/* A deleted box can still be shown for a while, by its id. */
static int show_gone(struct call *c)
{
	struct store_box row = { 0 };
	json_t *doc;
	struct err e;

	if (!id_valid(call_param(c, 0)) ||
	    store_box_get(c->api->store, call_param(c, 0), &row, &e) < 0)
		return 0;
	if (strcmp(row.team, c->who.team) != 0 || row.state != STORE_BOX_DELETED ||
	    (c->who.box[0] && strcmp(c->who.box, row.id) != 0)) {
		store_box_fini(&row);
		return 0;
	}
	doc = box_row_json(&row, c->api->fleet.conf.layer_names);
	json_object_set_new(doc, "cost", charges_total_json(c->api, row.id));
	box_withhold(c, doc);
	call_json(c, 200, doc);
	store_box_fini(&row);
	return 1;
}

void boxes_show(struct call *c)
{
	struct box *b = fleet_named(&c->api->fleet, c->who.team, call_param(c, 0));
	json_t *doc;

	if (!b && show_gone(c))
		return;
	b = call_box_peek(
		c,
		0); /* not counted as use: a page that polls must not prolong the life of boxes */
	if (!b)
		return;
	doc = box_json(b);
	json_object_set_new(doc, "cost", charges_total_json(c->api, b->row.id));
	box_withhold(c, doc);
	if (call_not_modified(c, doc))
		json_decref(doc);
	else
		call_json(c, 200, doc);
}

/* ---- change ---- */

/* The box, if its ETag still is the one that the client has; NULL: answered. */
static struct box *as_known(struct call *c)
{
	struct box *b = call_box_any(c, 0);
	json_t *now = b ? box_json(b) : NULL;
	int same = now && call_if_match(c, now);

	json_decref(now);
	return same ? b : NULL;
}

static void take_registries(struct store_box *row, const json_t *wanted)
{
	char *had = row->metadata;

	if (!json_is_boolean(wanted))
		return;
	row->metadata = box_metadata_with(had, BOX_REGISTRIES, json_is_true(wanted) ? "1" : "0");
	free(had);
}

static int take_patch(struct call *c, struct box *b, struct err *e)
{
	struct store_box *row = &b->row;
	const char *name = call_text(c, "name", NULL);
	struct box *other = name ? fleet_named(&c->api->fleet, c->who.team, name) : NULL;
	json_t *metadata = call_get(c, "metadata"), *had;
	auto_free char *network = NULL, *checkpoints = NULL;
	int rc;

	if (other && other != b)
		return err_set(e, ERR_CONFLICT, "there is a box named '%.64s' already", name);
	if (box_check_env(call_get(c, "env"), e) < 0)
		return -1;
	if (call_get(c, "network") &&
	    network_read_lines(c, call_get(c, "network"), row->network, &network, e) < 0)
		return -1;
	if (call_get(c, "checkpoints") &&
	    automatic_read(call_get(c, "checkpoints"), row->checkpoints, &checkpoints, e) < 0)
		return -1;
	had = row->metadata ? json_loads(row->metadata, 0, NULL) : NULL;
	rc = box_check_metadata(metadata, had, e);
	if (rc == 0 && (rc = box_read_times(c, row, e)) == 0 && metadata)
		box_take_metadata(row, metadata, had);
	json_decref(had);
	if (rc < 0)
		return -1;
	if (name)
		snprintf(row->name, sizeof(row->name), "%s", name);
	if (call_get(c, "env")) {
		free(row->env);
		row->env = json_dumps(call_get(c, "env"), JSON_COMPACT);
	}
	/* Counts from now, not from the creation: a client that extends a lifetime means "this long
	 * from now". */
	if (call_get(c, "lifetime_ms"))
		row->ends_ns =
			row->lifetime_ms ? fleet_now_ns() + (int64_t)row->lifetime_ms * 1000000 : 0;
	if (call_get(c, "network")) {
		free(row->network);
		row->network = steal(&network);
		take_registries(row, json_object_get(call_get(c, "network"), "registries"));
	}
	if (checkpoints) {
		free(row->checkpoints);
		row->checkpoints = steal(&checkpoints);
	}
	if (box_changed(b, e) < 0)
		return -1;
	if (call_get(c, "network")) {
		box_read_marks(b);
		egress_client_change(b);
	}
	return 0;
}

struct limiting {
	struct call *call;
	struct keeper_call *ask;
	char box[ID_MAX + 1];
};

static void finish_patch(struct call *c, struct box *b)
{
	struct err e;

	if (take_patch(c, b, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_audit(c, "box.change", b->row.id, "ok");
	network_answer(c, b, 200, box_json(b));
}

static void boxes_limited(void *ctx, const struct frame *f, size_t len, int *fd,
			  const struct err *e)
{
	struct limiting *m = ctx;
	struct call *c = m->call;
	struct box *b = fleet_find(&c->api->fleet, m->box);

	(void)len;
	(void)fd;
	c->drop = NULL;
	if (e || !b) {
		struct err gone;

		err_set(&gone, ERR_NOT_FOUND, "the box ended");
		call_fail(c, e ? e : &gone);
		return;
	}
	b->about.limits = ((const struct wire_box *)f)->limits;
	b->row.limits.mem_bytes = b->about.limits.mem_bytes;
	b->row.limits.cpu_milli = b->about.limits.cpu_milli;
	b->row.limits.pids = b->about.limits.pids;
	finish_patch(c, b);
}

static void limiting_dropped(struct call *c)
{
	struct limiting *m = c->state;

	keeper_client_cancel(&c->api->fleet.keeper, m->ask);
}

static void ask_limits(struct call *c, struct box *b)
{
	struct wire_limit ask = { .limits = { .mem_bytes = WIRE_DEFAULT,
					      .disk_bytes = WIRE_DEFAULT,
					      .disk_files = WIRE_DEFAULT,
					      .cpu_ms = WIRE_DEFAULT,
					      .cpu_milli = (uint32_t)WIRE_DEFAULT,
					      .pids = (uint32_t)WIRE_DEFAULT } };
	struct limiting *m = call_alloc(c, sizeof(*m));
	struct err e;

	*m = (struct limiting){ .call = c };
	snprintf(m->box, sizeof(m->box), "%s", b->row.id);
	ask.head.type = WIRE_LIMIT;
	snprintf(ask.id, sizeof(ask.id), "%s", box_keeper_id(b));
	box_read_limits(call_get(c, "limits"), &ask.limits);
	if (bounds_check(&c->api->fleet.conf.most, &ask.limits, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	c->state = m;
	c->drop = limiting_dropped;
	m->ask = keeper_client_request(&c->api->fleet.keeper, &ask, sizeof(ask), WIRE_BOX,
				       boxes_limited, m);
}

void boxes_patch(struct call *c)
{
	struct box *b = as_known(c);

	if (!b)
		return;
	if ((call_get(c, "limits") || call_get(c, "network")) && c->who.box[0])
		call_error(c, 403, "denied",
			   call_get(c, "limits")
				   ? "this key is bound to one box, and cannot change its limits"
				   : "this key is bound to one box, and cannot change its network",
			   c->who.box, "an editor of the team can: PATCH /v1/boxes/BOX");
	else if (call_get(c, "limits"))
		ask_limits(c, b);
	else
		finish_patch(c, b);
}

/* ---- delete ---- */

struct leaving {
	struct box_wait wait;
	struct call *call;
};

static void gave_up(struct call *c)
{
	box_wait_cancel(&((struct leaving *)c->state)->wait);
}

static void boxes_ended(struct box_wait *w, struct box *b, const struct err *e)
{
	struct call *c = loop_owner(w, struct leaving, wait)->call;

	(void)e;
	c->drop = NULL;
	call_audit(c, "box.delete", b->row.id, "ok");
	call_empty(c, 204);
}

/* A box that another request is deleting: its processes may still run, so this request
 * waits, too. */
static struct box *ending_box(struct call *c)
{
	struct box *b = fleet_named(&c->api->fleet, c->who.team, call_param(c, 0));

	return b && b->state == BOX_ENDING && (!c->who.box[0] || !strcmp(c->who.box, b->row.id))
		       ? b
		       : NULL;
}

void boxes_delete(struct call *c)
{
	struct box *b = ending_box(c);
	struct leaving *m;

	if (!b)
		b = as_known(c);
	if (!b || !call_may_end(c, b))
		return;
	m = call_alloc(c, sizeof(*m));
	*m = (struct leaving){ .wait.done = boxes_ended, .call = c };
	c->state = m;
	c->drop = gave_up;
	box_end(b, CAUSE_OPERATOR, &m->wait);
}
