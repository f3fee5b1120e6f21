/* boxes.c - see boxes.h. */
#include "api/boxes.h"
#include "api/idem.h"
#include "api/packages.h"
#include "api/quota.h"
#include "api/snapshots.h"
#include "api/volumes.h"
#include "base/own.h"
#include "box/record.h"
#include "fleet/run.h"
#include "lang/lang.h"

#include <stdio.h>
#include <string.h>

#define MS_MAX (INT64_C(1) << 53)

const struct field box_limit_fields[] = {
	{ "mem", FIELD_INT, 0, 1, MS_MAX, "bytes of memory", NULL },
	{ "disk", FIELD_INT, 0, 1, MS_MAX, "bytes of files", NULL },
	{ "files", FIELD_INT, 0, 1, MS_MAX, "number of files", NULL },
	{ "cpu_milli", FIELD_INT, 0, 1, UINT32_MAX - 1, "thousandths of a CPU", NULL },
	{ "pids", FIELD_INT, 0, 1, UINT32_MAX - 1, "processes and threads", NULL },
	{ "cpu_ms", FIELD_INT, 0, 1, MS_MAX, "CPU time of all programs together", NULL },
	{ 0 },
};

const struct field box_network_fields[] = {
	{ "allow", FIELD_TEXTS, 1, 0, RULES_MAX, "host, host:port or *.host, each among egress.allow", NULL },
	{ 0 },
};

#define TIME_FIELDS                                                                                \
	{ "lifetime_ms", FIELD_INT, 0, 0, MS_MAX, "until the box times out; 0: the longest allowed", NULL }, \
	{ "idle_ms", FIELD_INT, 0, 0, MS_MAX, "without activity until it times out; 0: never", NULL }, \
	{ "on_timeout", FIELD_NAME, 0, 0, 8, "kill, keep the files, or pause", NULL },                    \
	{ "retention_ms", FIELD_INT, 0, -1, MS_MAX, "how long files are kept; -1: until deleted", NULL }

const struct field box_create_fields[] = {
	{ "name", FIELD_NAME, 0, 0, STORE_NAME, "unique among the team's boxes", NULL },
	{ "session", FIELD_TEXT, 0, 0, STORE_SESSION, "get the box with this key, or make it", NULL },
	BOX_LIMIT_FIELDS,
	TIME_FIELDS,
	{ "metadata", FIELD_MAP, 0, 0, 64, "texts to find it by", NULL },
	{ "env", FIELD_MAP, 0, 0, 1000, "variables of every program in it", NULL },
	{ "volumes", FIELD_ANY, 0, 0, 0, "[{name, path, read_only}]: at most 4", NULL },
	{ "warm", FIELD_NAME, 0, 0, 15, "an interpreter that should wait in it: python, python-data, node", NULL },
	{ "packages", FIELD_ANY, 0, 0, 0, "{\"pip\": [...], \"npm\": [...]}, installed before it is made", NULL },
	{ "network", FIELD_OBJECT, 0, 0, 0, "whom it may reach; without it nobody", box_network_fields },
	{ "snapshot", FIELD_TEXT, 0, 0, 200, "begins with the files of this one, by id or name[:tag]", NULL },
	{ "cold", FIELD_BOOL, 0, 0, 0, "not from the pool", NULL },
	{ 0 },
};

const struct field box_patch_fields[] = {
	{ "name", FIELD_NAME, 0, 0, STORE_NAME, "another name", NULL },
	{ "limits", FIELD_OBJECT, 0, 0, 0, "mem, cpu_milli, pids", box_limit_fields },
	TIME_FIELDS,
	{ "metadata", FIELD_MAP, 0, 0, 64, "replaces all of it", NULL },
	{ "env", FIELD_MAP, 0, 0, 1000, "replaces all of it", NULL },
	{ 0 },
};

const struct field box_list_query[] = {
	{ "state", FIELD_TEXT, 0, 0, 16, "running, kept, paused, gone or all; those that are not gone", NULL },
	{ "template", FIELD_TEXT, 0, 0, STORE_TEMPLATE, "only of this one", NULL },
	{ "name", FIELD_TEXT, 0, 0, STORE_NAME, "whose name begins so", NULL },
	{ "metadata", FIELD_TEXT, 0, 0, 1024, "key=value, several with & encoded between them", NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "items per page; 100", NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the page before", NULL },
	{ 0 },
};

/* ---- as JSON ---- */

static json_t *ms(uint64_t n)
{
	return n == STORE_FOREVER ? json_integer(-1) : n ? json_integer((json_int_t)n) : json_null();
}

static json_t *moment(int64_t ns)
{
	return ns ? record_when((uint64_t)ns) : json_null();
}

static json_t *text_json(const char *text, int array)
{
	json_t *v = text ? json_loads(text, 0, NULL) : NULL;

	return v ? v : array ? json_array() : json_object();
}

static json_t *limit(uint64_t n)
{
	return n ? json_integer((json_int_t)n) : json_null();
}

json_t *box_row_json(const struct store_box *row)
{
	const struct store_limits *l = &row->limits;
	json_t *doc = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "id", row->id, "name", row->name, "session",
		row->session, "template", row->template, "state", store_box_state_name(row->state),
		"metadata", text_json(row->metadata, 0), "env", text_json(row->env, 0));

	json_object_set_new(doc, "created", moment(row->created_ns));
	json_object_set_new(doc, "ends", moment(row->ends_ns));
	json_object_set_new(doc, "lifetime_ms", ms(row->lifetime_ms));
	json_object_set_new(doc, "idle_ms", ms(row->idle_ms));
	json_object_set_new(doc, "on_timeout",
			    json_string(store_on_timeout_name(row->on_timeout)));
	json_object_set_new(doc, "retention_ms", ms(row->retention_ms));
	json_object_set_new(doc, "kept_until", moment(row->kept_until_ns));
	json_object_set_new(doc, "limits",
			    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "mem", limit(l->mem_bytes),
				      "disk", limit(l->disk_bytes), "files", limit(l->disk_files),
				      "cpu_milli", limit(l->cpu_milli), "pids", limit(l->pids),
				      "cpu_ms", limit(l->cpu_ms)));
	json_object_set_new(doc, "volumes", text_json(row->volumes, 1));
	json_object_set_new(doc, "network",
			    json_pack("{s:o}", "allow", text_json(row->network, 1)));
	if (row->state == STORE_BOX_GONE) {
		json_object_set_new(doc, "ended", moment(row->ended_ns));
		json_object_set_new(doc, "cause", json_string(row->cause));
	}
	return doc;
}

static json_t *layers_json(const struct berth *b)
{
	const char *const *names = b->fleet->conf.layer_names;
	json_t *all = json_array();

	for (unsigned i = 0; names[i]; i++)
		if (b->row.layers >> i & 1)
			json_array_append_new(all, json_string(names[i]));
	return all;
}

json_t *box_json(const struct berth *b)
{
	json_t *doc = box_row_json(&b->row);

	json_object_set_new(doc, "state", json_string(berth_state_name(b->state)));
	json_object_set_new(doc, "tier", json_string("container"));
	json_object_set_new(doc, "layers", layers_json(b));
	json_object_set_new(doc, "running", json_integer(b->nruns));
	return doc;
}

/* ---- what is wanted ---- */

static void read_limits(const json_t *l, struct wire_limits *out)
{
	struct {
		const char *name;
		uint64_t n;
	} all[] = { { "mem", out->mem_bytes },	     { "disk", out->disk_bytes },
		    { "files", out->disk_files },    { "cpu_milli", out->cpu_milli },
		    { "pids", out->pids },	     { "cpu_ms", out->cpu_ms } };

	/* null is what was not given: 0 would ask for no limit at all. */
	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		if (json_is_integer(json_object_get(l, all[i].name)))
			all[i].n = (uint64_t)json_integer_value(json_object_get(l, all[i].name));
	*out = (struct wire_limits){ .mem_bytes = all[0].n,
				     .disk_bytes = all[1].n,
				     .disk_files = all[2].n,
				     .cpu_milli = (uint32_t)all[3].n,
				     .pids = (uint32_t)all[4].n,
				     .cpu_ms = all[5].n };
}

/* A timeout is honoured or refused, never shortened. */
static int read_times(struct call *c, struct store_box *row, struct err *e)
{
	const struct fleet_conf *conf = &c->api->fleet.conf;
	const char *then = call_text(c, "on_timeout", NULL);
	int64_t lifetime = call_int(c, "lifetime_ms", -1), keep = call_int(c, "retention_ms", -2);

	if (lifetime == 0)
		row->lifetime_ms = conf->lifetime_max_ms;
	else if (lifetime > 0)
		row->lifetime_ms = (uint64_t)lifetime;
	if (conf->lifetime_max_ms &&
	    (row->lifetime_ms > conf->lifetime_max_ms || row->lifetime_ms == 0))
		return err_set(e, ERR_INVALID,
			       "lifetime_ms: %llu is more than this daemon allows, which is %llu "
			       "(limits.max_lifetime)",
			       (unsigned long long)row->lifetime_ms,
			       (unsigned long long)conf->lifetime_max_ms);
	row->idle_ms = (uint64_t)call_int(c, "idle_ms", (int64_t)row->idle_ms);
	if (keep != -2)
		row->retention_ms = keep < 0 ? STORE_FOREVER : (uint64_t)keep;
	if (then && store_on_timeout_parse(then, &row->on_timeout) < 0)
		return err_set(e, ERR_INVALID, "on_timeout: '%.20s' is not kill, keep or pause", then);
	return 0;
}

static char *dump_field(struct call *c, const char *name)
{
	const json_t *v = call_get(c, name);
	char *text = v ? json_dumps(v, JSON_COMPACT) : NULL, *kept;

	if (!text)
		return NULL;
	kept = http_strdup(c->req, text, strlen(text));
	free(text);
	return kept;
}

int box_check_env(const json_t *env, struct err *e)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)env, name, v)
		if (!*name || strchr(name, '='))
			return err_set(e, ERR_INVALID, "env: '%.40s' cannot be a variable's name", name);
	return 0;
}

static int read_host(const struct api_conf *conf, const char *text, struct rule *out, struct err *e)
{
	if (rule_parse(out, text, e) < 0)
		return -1;
	for (unsigned i = 0; i < conf->nrules; i++)
		if (rule_covers(&conf->rules[i], out))
			return 0;
	return err_set(e, ERR_DENIED, "this daemon lets no box reach '%.100s' (egress.allow%s)", text,
		       conf->nrules ? "" : " names nobody");
}

/* As the rules say it, so that what is shown is what is checked. */
static int read_network(struct call *c, struct store_box *row, struct err *e)
{
	const struct api_conf *conf = &c->api->conf;
	const json_t *allow = json_object_get(call_get(c, "network"), "allow");
	json_t *hosts = json_array(), *host;
	char text[RULE_TEXT], *dump;
	struct rule r;
	size_t i;

	json_array_foreach((json_t *)allow, i, host) {
		if (read_host(conf, json_string_value(host), &r, e) < 0) {
			json_decref(hosts);
			return err_in(e, "network.allow[%zu]", i);
		}
		json_array_append_new(hosts, json_string(rule_text(&r, text)));
	}
	if (json_array_size(hosts)) {
		dump = json_dumps(hosts, JSON_COMPACT);
		row->network = http_strdup(c->req, dump, strlen(dump));
		free(dump);
	}
	json_decref(hosts);
	return 0;
}

#define OURS "atoll." /* how the words of metadata begin that say what a box is for */

/* had: what the box has already, or NULL. Who reads it and writes it back means no harm. */
static int check_metadata(const json_t *given, const json_t *had, struct err *e)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)given, key, v)
		if (!strncmp(key, OURS, strlen(OURS)) && !json_equal(v, json_object_get(had, key)))
			return err_set(e, ERR_INVALID, "metadata: '%.60s' is not a key of yours: " OURS
				       "* is reserved", key);
	return 0;
}

int box_want(struct call *c, struct berth_want *out, struct err *e)
{
	const struct fleet_conf *conf = &c->api->fleet.conf;
	const char *template = call_text(c, "template", "base");

	*out = (struct berth_want){ .limits = conf->limits };
	if (strcmp(template, "base") != 0)
		return err_set(e, ERR_NOT_FOUND, "there is no template '%.32s'; there is: base",
			       template);
	out->row = (struct store_box){ .lifetime_ms = conf->lifetime_ms,
				       .idle_ms = conf->idle_ms,
				       .retention_ms = conf->retention_ms };
	snprintf(out->row.team, sizeof(out->row.team), "%s", c->who.team);
	snprintf(out->row.name, sizeof(out->row.name), "%s", call_text(c, "name", ""));
	snprintf(out->row.session, sizeof(out->row.session), "%s", call_text(c, "session", ""));
	snprintf(out->row.template, sizeof(out->row.template), "%s", template);
	read_limits(call_get(c, "limits"), &out->limits);
	if (box_check_env(call_get(c, "env"), e) < 0 ||
	    check_metadata(call_get(c, "metadata"), NULL, e) < 0)
		return -1;
	out->row.metadata = dump_field(c, "metadata");
	out->row.env = dump_field(c, "env");
	out->row.volumes = dump_field(c, "volumes");
	if (read_network(c, &out->row, e) < 0)
		return -1;
	out->flags = call_flag(c, "cold", 0) ? WIRE_CREATE_COLD : 0;
	out->seed = call_text(c, "warm", NULL);
	if (out->seed && !lang_seed_known(out->seed))
		return err_set(e, ERR_INVALID, "warm: nothing is called '%.15s'; there are: python, python-data, node",
			       out->seed);
	if (volumes_want(c, call_get(c, "volumes"), out, e) < 0)
		return -1;
	return read_times(c, &out->row, e);
}

/* ---- make ---- */

struct making {
	struct berth_wait wait;
	struct api *api;
	struct who who;
	struct call *call; /* NULL: the client has left; the box is made all the same */
	struct idem *idem;
	json_t *packages; /* what it has of them; NULL: none */
	char snapshot[ID_LEN + 1]; /* it begins with these files; "": none, or it has them */
};

static int will_be(struct berth_wait *w, const char *id, struct err *e)
{
	return idem_subject(loop_owner(w, struct making, wait)->idem, id, e);
}

static void say_made(struct call *c, const struct berth *b, json_t *take_doc)
{
	http_set(c->req, "Location", "/v1/boxes/%s", b->row.id);
	call_json(c, 201, take_doc);
}

static json_t *made_json(const struct berth *b)
{
	json_t *doc = box_json(b);

	json_object_set_new(doc, "create_us", json_integer((json_int_t)b->create_us));
	return doc;
}

/* The keeper has no such layer: whoever asks again gets it installed. */
static void forget_lost(const struct making *m, const struct err *e)
{
	const json_t *set;
	size_t i;

	if (e->kind != ERR_NOT_FOUND || !strstr(e->msg, "there is no layer"))
		return;
	json_array_foreach(json_object_get(m->packages, "sets"), i, set)
		packages_forget(&m->api->fleet,
				json_string_value(json_object_get(set, "layer")));
}

static void told(struct making *m, struct berth *b, const struct err *e)
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
		idem_drop(m->idem);
	} else {
		doc = made_json(b);
		if (m->packages)
			json_object_set(doc, "packages", m->packages);
		idem_answer(m->idem, 201, doc);
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

/* A box without the files it was to have is none. */
static void filled(void *ctx, const struct store_snapshot *row, const char *box, const struct err *e)
{
	struct making *m = ctx;
	struct berth *b = fleet_find(&m->api->fleet, box);
	struct err gone;

	(void)row;
	if (!e && (!b || b->state != BERTH_RUNNING)) {
		err_set(&gone, ERR_NOT_FOUND, "box %s has ended", box);
		e = &gone;
	}
	if (e && b)
		berth_end(b, CAUSE_OPERATOR, NULL);
	told(m, b, e);
}

static void made(struct berth_wait *w, struct berth *b, const struct err *e)
{
	struct making *m = loop_owner(w, struct making, wait);
	struct snap *snap; /* goes on without the client, as the making does */
	struct err own;

	if (e || !m->snapshot[0])
		told(m, b, e);
	else if (snap_fill(&m->api->fleet, b, m->snapshot, filled, m, &snap, &own) < 0)
		filled(m, NULL, b->row.id, &own);
}

static void maker_left(struct call *c)
{
	((struct making *)c->state)->call = NULL;
}

static void make(struct call *c, const struct berth_want *want, struct idem *take_idem,
		 json_t *take_packages)
{
	const char *snapshot = call_text(c, "snapshot", NULL);
	struct making *m = calloc(1, sizeof(*m));
	struct store_snapshot files = { 0 };
	struct berth *b;
	struct err e;

	if (!m)
		abort();
	*m = (struct making){ .wait = { .done = made, .named = will_be },
			      .api = c->api,
			      .who = c->who,
			      .call = c,
			      .idem = take_idem,
			      .packages = take_packages };
	c->state = m;
	c->drop = maker_left;
	if (snapshot && snapshots_find(c->api, c->who.team, snapshot, &files, &e) < 0) {
		told(m, NULL, &e);
		return;
	}
	memcpy(m->snapshot, files.id, sizeof(m->snapshot));
	if (berth_create(&c->api->fleet, want, &m->wait, &b, &e) == 0)
		return;
	c->drop = NULL;
	idem_drop(take_idem);
	json_decref(take_packages);
	free(m);
	call_fail(c, &e);
}

/* ---- its packages first ---- */

struct furnishing {
	struct package_job job;
	struct call *call;
	struct berth_want want;
	struct idem *idem;
};

static void furnished(struct package_job *j, const struct packages_failure *f)
{
	struct furnishing *u = j->user;
	struct call *c = u->call;
	json_t *report;

	c->drop = NULL;
	if (f) {
		json_t *error = packages_failure_json(f);

		idem_drop(u->idem);
		packages_job_fini(j);
		call_json(c, 422, error);
		return;
	}
	packages_want(j, c->req, &u->want);
	report = packages_report(j);
	packages_job_fini(j);
	make(c, &u->want, u->idem, report);
}

/* The install goes on; the box is not made. */
static void furnisher_left(struct call *c)
{
	struct furnishing *u = c->state;

	packages_job_fini(&u->job);
	idem_drop(u->idem);
}

static void furnish(struct call *c, const struct berth_want *want, struct idem *take_idem)
{
	struct furnishing *u = call_alloc(c, sizeof(*u));
	struct err e;
	int there;

	*u = (struct furnishing){ .call = c, .want = *want, .idem = take_idem,
				  .job = { .api = c->api, .done = furnished } };
	u->job.user = u;
	if (packages_read(&u->job, call_get(c, "packages"), NULL, &e) < 0)
		there = -1;
	else
		there = packages_begin(&u->job, c->api, c->who.team, &e);
	if (there > 0) {
		furnished(&u->job, NULL);
	} else if (there < 0) {
		json_t *refusal = packages_refusal_json(&e);

		packages_job_fini(&u->job);
		idem_drop(take_idem);
		if (refusal)
			call_json(c, 422, refusal);
		else
			call_fail(c, &e);
	} else {
		c->state = u;
		c->drop = furnisher_left;
	}
}

static int is_there(const struct berth *b)
{
	return b && (b->state == BERTH_RUNNING || b->state == BERTH_KEPT || b->state == BERTH_PAUSED);
}

struct joining {
	struct berth_wait wait;
	struct call *call;
};

static void joined(struct berth_wait *w, struct berth *b, const struct err *e)
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
	berth_wait_cancel(&((struct joining *)c->state)->wait);
}

/* Somebody else has just asked for it. */
static void join(struct call *c, struct berth *b)
{
	struct joining *j = call_alloc(c, sizeof(*j));

	*j = (struct joining){ .wait.done = joined, .call = c };
	c->state = j;
	c->drop = joiner_left;
	berth_await(b, &j->wait);
}

/* The box of a session: 1: answered, or on its way to us. */
static int of_session(struct call *c, const char *session, const char *template)
{
	struct berth *b = fleet_session(&c->api->fleet, c->who.team, session, template);
	struct store_box row = { 0 };
	struct err e;

	if (b && b->state == BERTH_PAUSED)
		return (call_is_paused(c, b), 1);
	if (is_there(b)) {
		berth_wake(b);
		call_audit(c, "box.create", b->row.id, "found");
		call_json(c, 200, box_json(b));
		return 1;
	}
	if (b && b->state == BERTH_MAKING && !b->late) {
		join(c, b);
		return 1;
	}
	return store_box_by_session(c->api->store, c->who.team, session, template, &row, &e) == 0 &&
	       call_fetch(c, &row);
}

void boxes_create(struct call *c)
{
	const char *session = call_text(c, "session", "");
	char before[ID_LEN + 1];
	struct berth_want want;
	struct idem *idem;
	enum idem_go go;
	struct berth *b;
	struct err e;

	if (box_want(c, &want, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (*session && of_session(c, session, want.row.template))
		return;
	go = idem_begin(c, &idem, before);
	if (go == IDEM_ANSWERED)
		return;
	b = go == IDEM_MADE ? fleet_find(&c->api->fleet, before) : NULL;
	if (is_there(b)) {
		json_t *doc = made_json(b);

		idem_answer(idem, 201, doc);
		say_made(c, b, doc);
	} else if (b && b->late) { /* it is there, and cannot be told about */
		idem_leave(idem);
		http_set(c->req, "Retry-After", "1");
		call_error(c, 503, "busy", "the box does not answer right now", before, NULL);
	} else if (!quota_box(c)) {
		idem_drop(idem);
	} else {
		furnish(c, &want, idem);
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
		return err_set(e, ERR_INVALID, "?state=%.20s: running, kept, paused, gone or all", state);
	else if (state)
		f->states = 1u << s;
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
		const struct berth *b = fleet_find(&c->api->fleet, rows.v[i].id);

		json_array_append_new(items, b ? box_json(b) : box_row_json(&rows.v[i]));
	}
	if (rows.more) {
		struct store_cursor at = store_box_cursor(&rows.v[rows.n - 1]);

		store_cursor_text(&at, next);
	}
	store_boxes_fini(&rows);
	call_list(c, items, next);
}

/* One that is gone is still known for a while, by its id. */
static int show_gone(struct call *c)
{
	struct store_box row = { 0 };
	struct err e;

	if (!id_valid(call_param(c, 0)) ||
	    store_box_get(c->api->store, call_param(c, 0), &row, &e) < 0)
		return 0;
	if (strcmp(row.team, c->who.team) != 0 || row.state != STORE_BOX_GONE ||
	    (c->who.box[0] && strcmp(c->who.box, row.id) != 0)) {
		store_box_fini(&row);
		return 0;
	}
	call_json(c, 200, box_row_json(&row));
	store_box_fini(&row);
	return 1;
}

void boxes_show(struct call *c)
{
	struct berth *b = fleet_named(&c->api->fleet, c->who.team, call_param(c, 0));
	json_t *doc;

	if (!b && show_gone(c))
		return;
	b = call_any(c, 0);
	if (!b)
		return;
	doc = box_json(b);
	if (call_fresh(c, doc))
		json_decref(doc);
	else
		call_json(c, 200, doc);
}

void boxes_network(struct call *c)
{
	struct berth *b = call_look(c, 0);

	if (b)
		call_json(c, 200, gate_json(b));
}

/* ---- change ---- */

/* All of it is replaced, except for our own words. */
static void take_metadata(struct store_box *row, const json_t *given, const json_t *had)
{
	json_t *all = json_deep_copy(given), *v;
	const char *key;

	json_object_foreach((json_t *)had, key, v)
		if (!strncmp(key, OURS, strlen(OURS)))
			json_object_set(all, key, v);
	free(row->metadata);
	row->metadata = json_dumps(all, JSON_COMPACT);
	json_decref(all);
}

static int take_patch(struct call *c, struct berth *b, struct err *e)
{
	struct store_box *row = &b->row;
	const char *name = call_text(c, "name", NULL);
	struct berth *other = name ? fleet_named(&c->api->fleet, c->who.team, name) : NULL;
	json_t *metadata = call_get(c, "metadata"), *had;
	int rc;

	if (other && other != b)
		return err_set(e, ERR_CONFLICT, "there is a box named '%.64s' already", name);
	had = row->metadata ? json_loads(row->metadata, 0, NULL) : NULL;
	rc = check_metadata(metadata, had, e);
	if (rc == 0 && (rc = read_times(c, row, e)) == 0 && metadata)
		take_metadata(row, metadata, had);
	json_decref(had);
	if (rc < 0 || box_check_env(call_get(c, "env"), e) < 0)
		return -1;
	if (name)
		snprintf(row->name, sizeof(row->name), "%s", name);
	if (call_get(c, "env")) {
		free(row->env);
		row->env = json_dumps(call_get(c, "env"), JSON_COMPACT);
	}
	/* From now, not from its creation: who extends means "this long, still". */
	if (call_get(c, "lifetime_ms"))
		row->ends_ns = row->lifetime_ms ?
				       fleet_now_ns() + (int64_t)row->lifetime_ms * 1000000 :
				       0;
	return berth_changed(b, e);
}

struct limiting {
	struct call *call;
	struct office_ask *ask;
	char box[ID_LEN + 1];
};

static void finish_patch(struct call *c, struct berth *b)
{
	struct err e;

	if (take_patch(c, b, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_audit(c, "box.change", b->row.id, "ok");
	call_json(c, 200, box_json(b));
}

static void limited(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct limiting *m = ctx;
	struct call *c = m->call;
	struct berth *b = fleet_find(&c->api->fleet, m->box);

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

	office_forget(&c->api->fleet.office, m->ask);
}

static void ask_limits(struct call *c, struct berth *b)
{
	struct wire_limit ask = { .limits = { .mem_bytes = WIRE_DEFAULT,
					      .disk_bytes = WIRE_DEFAULT,
					      .disk_files = WIRE_DEFAULT,
					      .cpu_ms = WIRE_DEFAULT,
					      .cpu_milli = (uint32_t)WIRE_DEFAULT,
					      .pids = (uint32_t)WIRE_DEFAULT } };
	struct limiting *m = call_alloc(c, sizeof(*m));

	*m = (struct limiting){ .call = c };
	snprintf(m->box, sizeof(m->box), "%s", b->row.id);
	ask.head.type = WIRE_LIMIT;
	snprintf(ask.id, sizeof(ask.id), "%s", b->row.id);
	read_limits(call_get(c, "limits"), &ask.limits);
	c->state = m;
	c->drop = limiting_dropped;
	m->ask = office_ask(&c->api->fleet.office, &ask, sizeof(ask), WIRE_BOX, limited, m);
}

void boxes_patch(struct call *c)
{
	struct berth *b = call_any(c, 0);
	json_t *now;
	int same;

	if (!b)
		return;
	now = box_json(b);
	same = call_matches(c, now);
	json_decref(now);
	if (!same)
		return;
	if (call_get(c, "limits"))
		ask_limits(c, b);
	else
		finish_patch(c, b);
}

/* ---- end ---- */

struct leaving {
	struct berth_wait wait;
	struct call *call;
};

static void gave_up(struct call *c)
{
	berth_wait_cancel(&((struct leaving *)c->state)->wait);
}

static void ended(struct berth_wait *w, struct berth *b, const struct err *e)
{
	struct call *c = loop_owner(w, struct leaving, wait)->call;

	(void)e;
	c->drop = NULL;
	call_audit(c, "box.delete", b->row.id, "ok");
	call_empty(c, 204);
}

void boxes_delete(struct call *c)
{
	struct berth *b = call_any(c, 0);
	struct leaving *m;
	json_t *now;
	int same;

	if (!b)
		return;
	now = box_json(b);
	same = call_matches(c, now);
	json_decref(now);
	if (!same)
		return;
	m = call_alloc(c, sizeof(*m));
	*m = (struct leaving){ .wait.done = ended, .call = c };
	c->state = m;
	c->drop = gave_up;
	berth_end(b, CAUSE_OPERATOR, &m->wait);
}
