/* create.c - see create.h.
 *
 *   body -> template, env, network, volumes, times -> quota -> the keeper -> 201
 *
 * Each step rejects invalid values before anything is created. */
#include "e2bcontrol/create.h"
#include "api/box_row.h"
#include "v1box/boxes.h"
#include "api/quota.h"
#include "v1box/secrets.h"
#include "v1box/volumes.h"
#include "base/cleanup.h"
#include "checkpoint/memory.h"
#include "record/cause.h"
#include "e2bcontrol/volume_box.h"
#include "e2bcontrol/network.h"
#include "e2bcontrol/pause.h"
#include "e2bcontrol/ready.h"
#include "e2bcontrol/sandboxes.h"
#include "e2bcontrol/sandbox_json.h"
#include "e2bcontrol/snapshots.h"
#include "e2bcontrol/template_find.h"
#include "e2bcontrol/templates.h"
#include "v1box/box_spec.h"

#include <stdio.h>
#include <string.h>

#define SECONDS_MAX (INT64_C(1) << 31)
#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-[]${}"
enum { V1_S = 15, V2_S = 300 };

static const struct field resume_fields[] = {
	{ "enabled", FIELD_BOOL, 0, 0, 0, "resume on traffic to a port of the sandbox", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

const struct field create_fields[] = {
	{ "templateID", FIELD_TEXT, 1, 0, 200, "the template", NULL },
	{ "timeout", FIELD_INT, 0, 1, SECONDS_MAX, "lifetime in seconds", NULL },
	{ "metadata", FIELD_MAP, 0, 0, 64, "key-value texts for searching", NULL },
	{ "envVars", FIELD_MAP, 0, 0, 1000, "environment variables of all programs in the box",
	  NULL },
	{ "secure", FIELD_BOOL, 0, 0, 0, "create an access token for the sandbox", NULL },
	{ "allow_internet_access", FIELD_BOOL, 0, 0, 0,
	  "may reach all hosts that the server permits", NULL },
	{ "network", FIELD_OBJECT, 0, 0, 0, "outbound hosts and inbound access", network_fields },
	{ "autoPause", FIELD_BOOL, 0, 0, 0,
	  "pause the sandbox at the end of its lifetime instead of ending it", NULL },
	{ "autoPauseMemory", FIELD_BOOL, 0, 0, 0, "pause with the memory of its programs", NULL },
	{ "autoResume", FIELD_OBJECT, 0, 0, 0, "resume the sandbox on demand", resume_fields },
	{ "volumeMounts", FIELD_ANY, 0, 0, 0, "volumes to mount: [{name, path}]", NULL },
	{ "mcp", FIELD_ANY, 0, 0, 0, "ignored; for the client's own use", NULL },
	{ "iam", FIELD_ANY, 0, 0, 0, "not supported", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

struct create_making {
	struct box_wait wait;
	struct box_wait leaving; /* a box that is ending, and has one of these volumes until then */
	struct box_spec want;
	struct api *api;
	struct call *call; /* NULL: the client has disconnected */
	struct e2b_box box;
	struct network network;
	json_t *mounts, *env;
	char *surface, *metadata, *hosts, *volumes, *secrets; /* of the requested row */
	char snapshot[ID_MAX + 1]; /* the snapshot whose files it starts with; "": none */
	char image[ID_MAX + 1];    /* the checkpoint whose programs continue in it; "": none */
	char id[ID_MAX + 1];       /* of the sandbox, when it exists */
	struct checkpoint_start start;
};

static void making_free(struct create_making *m)
{
	network_fini(&m->network);
	json_decref(m->mounts);
	json_decref(m->env);
	free(m->surface);
	free(m->metadata);
	free(m->hosts);
	free(m->volumes);
	free(m->secrets);
	free(m);
}

/* ---- what is wanted ---- */

/* The id of a template that was built; "": it is part of the server. */
static void create_template_id(const struct box_spec *want, const char *name, char *out,
			       size_t size)
{
	json_t *root = want->row.root ? json_loads(want->row.root, 0, NULL) : NULL;
	const char *id = json_string_value(json_object_get(root, "template"));

	snprintf(out, size, "%.63s", id ? id : name);
	json_decref(root);
}

/* `team/name`: the template must belong to that team. */
static int create_find_template(struct call *c, const char *reference, struct box_spec *want,
				struct err *e)
{
	struct template_found f;

	if (strchr(reference, '/')) {
		if (template_find_named(c, reference, &f, e) < 0)
			return -1;
		template_found_fini(&f);
	}
	if (box_spec_template(c, reference, want, e) == 0)
		return 0;
	if (e->kind == ERR_CONFLICT) /* E2B's clients expect this for a tag without a build */
		e->kind = ERR_NOT_FOUND;
	return -1;
}

/* A snapshot with memory continues its programs, unless the metadata asks for its files. */
static void create_find_image(struct call *c, struct create_making *m, const char *checkpoint)
{
	const char *what =
		json_string_value(json_object_get(call_get(c, "metadata"), PAUSING_FORK_KEY));
	struct err e;

	if ((!what || strcmp(what, "files") != 0) &&
	    checkpoint_memory_check(c->api->checkpoints, checkpoint, &e) == 0)
		snprintf(m->image, sizeof(m->image), "%s", checkpoint);
}

static int read_template(struct call *c, struct create_making *m, struct box_spec *want,
			 struct err *e)
{
	const char *asked = call_text(c, "templateID", "");
	struct store_snapshot files;
	int ready;

	if (create_find_template(c, asked, want, e) == 0) {
		create_template_id(want, want->row.template, m->box.template,
				   sizeof(m->box.template));
		if (!want->root[0])
			snprintf(want->row.template, sizeof(want->row.template), TEMPLATE_BASE);
		return 0;
	}
	if (!e2b_snapshot_want(c, asked, &files))
		return -1;
	isolation_of_snapshot(&files, &want->isolation);
	snprintf(m->box.template, sizeof(m->box.template), "%s", asked);
	ready = snapshots_spec(c, &files, want, e);
	if (ready > 0)
		create_find_image(c, m, files.checkpoint);
	if (ready)
		return ready < 0 ? -1 : 0;
	memcpy(m->snapshot, files.id, sizeof(m->snapshot));
	snprintf(want->row.template, sizeof(want->row.template), TEMPLATE_BASE);
	return 0;
}

#define ISOLATION_KEY "atoll.isolation"
#define TRUST_KEY "atoll.trust"

/* Some keys of the metadata are reserved: they state what a box is for. Two of them can raise its isolation tier, one
 * decides where its pauses go, and one what its copies have. */
static int read_metadata(struct call *c, struct create_making *m, struct box_spec *want,
			 struct err *e)
{
	json_t *all = call_get(c, "metadata"), *isolation = json_object_get(all, ISOLATION_KEY),
	       *trust = json_object_get(all, TRUST_KEY), *pause = json_object_get(all, PAUSING_KEY),
	       *fork = json_object_get(all, PAUSING_FORK_KEY),
	       *ours = json_pack("{s:O*, s:O*, s:O*, s:O*}", ISOLATION_KEY, isolation, TRUST_KEY,
				 trust, PAUSING_KEY, pause, PAUSING_FORK_KEY, fork);
	int rc = box_check_metadata(all, ours, e);

	json_decref(ours);
	if (rc < 0 || pausing_check(json_string_value(pause), e) < 0 ||
	    pausing_check_fork(json_string_value(fork), e) < 0 ||
	    isolation_read_raise(json_string_value(isolation), json_string_value(trust),
				 &want->isolation, e) < 0)
		return -1;
	m->metadata = all ? json_dumps(all, JSON_COMPACT) : NULL;
	m->env = want->row.env ? json_loads(want->row.env, 0, NULL) : json_object();
	json_object_update(m->env, call_get(c, "envVars"));
	return box_check_env(call_get(c, "envVars"), e);
}

static int read_tokens(struct call *c, struct create_making *m, int secure, struct err *e)
{
	const json_t *public = json_object_get(call_get(c, "network"), "allowPublicTraffic");
	const char *mask =
		json_string_value(json_object_get(call_get(c, "network"), "maskRequestHost"));

	if (json_is_false(public) && !secure)
		return err_set(
			e, ERR_INVALID,
			"network.allowPublicTraffic: false needs a sandbox with \"secure\": true");
	if (mask && strspn(mask, HOST_CHARS) != strlen(mask))
		return err_set(e, ERR_INVALID, "network.maskRequestHost: not a valid Host header");
	snprintf(m->box.mask, sizeof(m->box.mask), "%s", mask ? mask : "");
	if (!secure)
		return 0;
	m->box.public_ports = !json_is_false(public);
	return sandboxes_tokens(&m->box, e);
}

static int read_network(struct call *c, struct create_making *m, struct err *e)
{
	int said = call_get(c, "allow_internet_access") != NULL;
	int internet = said ? call_flag(c, "allow_internet_access", 0) : -1;

	if (network_read(c->api, call_get(c, "network"), internet, &m->network, e) < 0)
		return -1;
	if (!m->network.registries) {
		auto_free char *given = m->metadata;

		m->metadata = box_metadata_with(given, BOX_REGISTRIES, "0");
	}
	if (json_array_size(m->network.hosts))
		m->hosts = json_dumps(m->network.hosts, JSON_COMPACT);
	if (json_array_size(m->network.headers))
		return secrets_set_headers(c, NULL, m->network.headers, &m->secrets, e);
	return 0;
}

static int read_lifecycle(struct call *c, struct create_making *m, struct err *e)
{
	const json_t *enabled = json_object_get(call_get(c, "autoResume"), "enabled");

	m->box.auto_pause = call_flag(c, "autoPause", 0);
	m->box.pause_memory = call_flag(c, "autoPauseMemory", 1);
	m->box.auto_resume = json_is_true(enabled);
	if (!m->box.pause_memory && !m->box.auto_pause)
		return err_set(e, ERR_INVALID, "autoPauseMemory: false is for \"autoPause\": true");
	if (!m->box.pause_memory && m->box.auto_resume)
		return err_set(e, ERR_INVALID,
			       "autoPauseMemory: false cannot be combined with autoResume");
	if (json_object_size(call_get(c, "iam")))
		return err_set(e, ERR_INVALID, "iam: this server issues no tokens for others");
	return 0;
}

static int read_mounts(struct call *c, struct create_making *m, struct box_spec *want,
		       struct err *e)
{
	const json_t *list = call_get(c, "volumeMounts"), *one;
	size_t i;

	m->mounts = json_array();
	if (list && !json_is_array(list))
		return err_set(e, ERR_INVALID, "volumeMounts: must be an array");
	json_array_foreach(list, i, one) json_array_append_new(
		m->mounts, json_pack("{s:O*, s:O*}", "name", json_object_get(one, "name"), "path",
				     json_object_get(one, "path")));
	if (volumes_want(c, m->mounts, want, e) < 0) {
		if (e->kind == ERR_NOT_FOUND)
			e->kind = ERR_INVALID; /* the request is invalid, not the template */
		return -1;
	}
	m->volumes = json_array_size(m->mounts) ? json_dumps(m->mounts, JSON_COMPACT) : NULL;
	return 0;
}

static void write_surface(struct call *c, struct create_making *m)
{
	auto_free char *known = e2b_box_text(&m->box), *more = NULL;
	json_t *internet = call_get(c, "allow_internet_access");

	more = e2b_box_text_with(known, "internet", internet ? json_incref(internet) : json_null());
	m->surface = e2b_box_text_with(more, "network", json_incref(m->network.said));
}

static int read_want(struct call *c, struct create_making *m, int secure, int64_t otherwise_s,
		     struct box_spec *want, struct err *e)
{
	struct store_box *row = &want->row;

	*want = (struct box_spec){ .limits = c->api->fleet.conf.limits };
	if (read_template(c, m, want, e) < 0 || read_metadata(c, m, want, e) < 0 ||
	    read_lifecycle(c, m, e) < 0 || read_tokens(c, m, secure, e) < 0 ||
	    read_network(c, m, e) < 0 || read_mounts(c, m, want, e) < 0 ||
	    sandboxes_timeout_ms(c, "timeout", otherwise_s, &row->lifetime_ms, e) < 0)
		return -1;
	if (strncmp(m->box.template, "code-interpreter", 16) == 0)
		want->warm = "python-data"; /* so that runCode() starts at once */
	want->continues_programs = m->image[0] != 0;
	write_surface(c, m);
	row->surface = m->surface;
	row->metadata = m->metadata;
	row->network = m->hosts;
	row->volumes = m->volumes;
	row->secrets = m->secrets;
	if (m->secrets)
		want->flags |= WIRE_CREATE_SECRETS;
	/* An E2B sandbox runs until its timeout has expired, used or not: no idle_ms. */
	pausing_want(row, &m->box);
	snprintf(row->team, sizeof(row->team), "%s", c->who.team);
	snprintf(row->key, sizeof(row->key), "%s", c->who.id);
	return 0;
}

/* ---- making it ---- */

/* The id of the box is one of its variables and is known only now; the box is not in the store
 * yet. */
static int create_named(struct box_wait *w, const char *id, struct err *e)
{
	struct create_making *m = loop_owner(w, struct create_making, wait);
	struct store_box *row = &w->box->row;

	(void)e;
	if (m->call)
		call_audit(m->call, "box.create", id, "ok");
	json_object_set_new(m->env, "E2B_SANDBOX", json_string("true"));
	json_object_set_new(m->env, "E2B_SANDBOX_ID", json_string(id));
	json_object_set_new(m->env, "E2B_TEMPLATE_ID", json_string(m->box.template));
	free(row->env);
	row->env = json_dumps(m->env, JSON_COMPACT);
	return 0;
}

static void create_answer(struct call *c, struct box *b, const struct err *e)
{
	if (e) {
		c->audited = 0;            /* if a box was created, it was deleted again */
		if (call_status(e) == 429) /* too many creates are waiting: clients must retry */
			http_set(c->req, "Retry-After", "1");
		call_fail(c, e);
		return;
	}
	/* E2B's clients close the connection when they give up, and read until then. If the
	 * answer is not read, no client knows the id of the sandbox. */
	if (http_peer_ended(c->req)) {
		box_end(b, CAUSE_OPERATOR, NULL);
		http_abort(c->req);
		return;
	}
	box_row_set(c, b->row.id);
	call_json(c, 201, sandbox_json_created(c, b));
}

/* A sandbox without its programs is not what was requested. */
static void create_continued(struct checkpoint_start *s, const struct err *e)
{
	struct create_making *m = loop_owner(s, struct create_making, start);
	struct call *c = m->call;
	struct box *b = fleet_find(&m->api->fleet, m->id);
	struct err own;

	if (!b && !e)
		e = (err_set(&own, ERR_CONFLICT, "sandbox %s has ended", m->id), &own);
	if (e) {
		own = *e;
		if (own.kind == ERR_NOT_FOUND) /* of the image: the template exists */
			own.kind = ERR_CONFLICT;
		err_in(&own,
		       "the programs of the snapshot cannot continue (metadata " PAUSING_FORK_KEY
		       ": files starts without them)");
	}
	if (b && (e || !c))
		box_end(b, CAUSE_OPERATOR, NULL);
	making_free(m);
	if (!c)
		return;
	c->drop = NULL;
	create_answer(c, e ? NULL : b, e ? &own : NULL);
}

static void create_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct create_making *m = loop_owner(w, struct create_making, wait);
	struct call *c = m->call;
	char snapshot[ID_MAX + 1];

	if (!e && c && m->image[0]) {
		templates_spawned(m->box.template);
		memcpy(m->id, b->row.id, sizeof(m->id));
		checkpoint_memory_start(&m->start, c->api->checkpoints, m->image, b);
		return;
	}

	memcpy(snapshot, m->snapshot, sizeof(snapshot));
	if (!e)
		templates_spawned(m->box.template);
	making_free(m);
	if (!c) { /* no client knows its id, so no request names it */
		if (!e)
			box_end(b, CAUSE_OPERATOR, NULL);
		return;
	}
	c->drop = NULL;
	if (e)
		create_answer(c, b, e);
	else if (!snapshot[0])
		ready_await(c, b, create_answer);
	else
		snapshots_fill(c, b, snapshot, create_answer);
}

static void create_left(struct call *c)
{
	((struct create_making *)c->state)->call = NULL;
}

static void create_ask(struct create_making *m)
{
	struct call *c = m->call;
	struct box *b;
	struct err e;

	if (box_create(&c->api->fleet, &m->want, &m->wait, &b, &e) == 0)
		return;
	c->drop = NULL;
	making_free(m);
	call_fail(c, &e);
}

static void has_left(struct box_wait *w, struct box *b, const struct err *e)
{
	struct create_making *m = loop_owner(w, struct create_making, leaving);

	(void)b;
	(void)e;
	if (m->call)
		create_ask(m);
	else
		making_free(m);
}

static void create_create(struct call *c, int secure, int64_t otherwise_s)
{
	struct create_making *m = calloc(1, sizeof(*m));
	struct err e;

	if (!m)
		abort();
	*m = (struct create_making){ .wait = { .done = create_made, .named = create_named },
				     .leaving.done = has_left,
				     .start.done = create_continued,
				     .api = c->api,
				     .call = c };
	if (read_want(c, m, secure, otherwise_s, &m->want, &e) < 0) {
		making_free(m);
		call_fail(c, &e);
		return;
	}
	if (!quota_box(c)) {
		making_free(m);
		return;
	}
	c->state = m;
	c->drop = create_left;
	if (!volume_box_released(c->api, m->want.mounts, m->want.nmounts, &m->leaving))
		create_ask(m);
}

void create_v1(struct call *c)
{
	/* A sandbox without a token is open to every client that knows its id, and the id is part of
	 * every preview address. E2B's SDKs send the token of the answer whether they asked for one
	 * or not. */
	create_create(c, !c->api->conf.e2b_insecure || call_flag(c, "secure", 0), V1_S);
}

void create_v2(struct call *c)
{
	create_create(c, 1, V2_S);
}
