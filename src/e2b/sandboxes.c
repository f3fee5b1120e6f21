/* sandboxes.c - see sandboxes.h. */
#include "e2b/sandboxes.h"
#include "base/own.h"
#include "box/cause.h"
#include "box/record.h"
#include "e2b/pause.h"
#include "e2b/templates.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#define SECONDS_MAX (INT64_C(1) << 31)
enum { CONNECT_S = 300, RESUME_S = 15, REFRESH_S = 15, REFRESH_MAX_S = 3600 };

const struct field sandboxes_timeout_fields[] = {
	{ "timeout", FIELD_INT, 1, 0, SECONDS_MAX, "seconds from now; 0: it is over", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field sandboxes_refresh_fields[] = {
	{ "duration", FIELD_INT, 0, 0, REFRESH_MAX_S, "seconds from now, at least", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field sandboxes_connect_fields[] = {
	{ "timeout", FIELD_INT, 0, 0, SECONDS_MAX, "seconds from now, at least", NULL },
	{ "memory", FIELD_BOOL, 0, 0, 0, "with the programs it had", NULL },
	{ "autoPause", FIELD_BOOL, 0, 0, 0, "when its time is over", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

/* ---- finding one ---- */

int sandboxes_paused(const struct berth *b)
{
	return pausing_is_paused(b);
}

const char *sandboxes_state(const struct berth *b)
{
	return sandboxes_paused(b) ? "paused" : "running";
}

struct berth *sandboxes_find(struct call *c)
{
	const char *id = call_param(c, 0);
	struct berth *b = id_valid(id) ? fleet_find(&c->api->fleet, id) : NULL;

	if (b && (strcmp(b->row.team, c->who.team) != 0 || b->nobodys ||
		  (c->who.box[0] && strcmp(c->who.box, b->row.id) != 0)))
		b = NULL;
	if (b && (b->state == BERTH_RUNNING || sandboxes_paused(b)))
		return b;
	if (b && b->late) {
		http_set(c->req, "Retry-After", "1");
		call_error(c, 503, "busy", "the sandbox does not answer right now", id, NULL);
		return NULL;
	}
	call_error(c, 404, "not_found", "there is no such sandbox", id, NULL);
	return NULL;
}

static struct berth *find_running(struct call *c)
{
	struct berth *b = sandboxes_find(c);

	if (!b || !sandboxes_paused(b))
		return b;
	call_error(c, 404, "not_found", "this sandbox is not running: it is paused", b->row.id, NULL);
	return NULL;
}

/* ---- as JSON ---- */

static void set_domain(const struct call *c, json_t *doc)
{
	char domain[E2B_DOMAIN];

	e2b_domain(c, domain);
	json_object_set_new(doc, "domain", domain[0] ? changes_text(domain) : json_null());
}

/* Who may only look does not get what lets one act. */
static void set_token(const struct call *c, json_t *doc, const char *name, const char *token)
{
	if (token[0] && c->who.role >= ROLE_EDITOR)
		json_object_set_new(doc, name, json_string(token));
}

json_t *sandboxes_json(struct call *c, const struct berth *b)
{
	struct e2b_box x;
	const char *template;
	json_t *doc;

	e2b_box_read(b, &x);
	template = templates_of(&x);
	doc = json_pack("{s:s, s:s, s:s, s:s, s:s, s:n}", "sandboxID", b->row.id, "templateID",
			template, "alias", template, "clientID", "atoll", "envdVersion",
			E2B_ENVD_VERSION, "trafficAccessToken");
	set_token(c, doc, "envdAccessToken", x.token);
	set_token(c, doc, "trafficAccessToken", x.traffic);
	set_domain(c, doc);
	return doc;
}

unsigned sandboxes_cpus(const struct store_limits *l)
{
	cpu_set_t set;

	if (l->cpu_milli)
		return (l->cpu_milli + 999) / 1000;
	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

uint64_t sandboxes_memory(const struct store_limits *l)
{
	struct sysinfo s = { .mem_unit = 1 };

	if (l->mem_bytes)
		return l->mem_bytes;
	return sysinfo(&s) == 0 ? (uint64_t)s.totalram * s.mem_unit : 0;
}

/* One that never ends has an end that everybody can read. */
static json_t *end_at(const struct berth *b)
{
	return b->row.ends_ns ? record_when((uint64_t)b->row.ends_ns) :
				json_string("9999-12-31T23:59:59.000Z");
}

static json_t *text_json(const char *text)
{
	json_t *v = text ? json_loads(text, 0, NULL) : NULL;

	return v ? v : json_object();
}

static json_t *mounts_json(const struct berth *b)
{
	json_t *all = b->row.volumes ? json_loads(b->row.volumes, 0, NULL) : NULL, *one;
	json_t *out = json_array();
	size_t i;

	json_array_foreach(all, i, one)
		json_array_append_new(out, json_pack("{s:O, s:O}", "name", json_object_get(one, "name"),
						     "path", json_object_get(one, "path")));
	json_decref(all);
	return out;
}

json_t *sandboxes_listed(const struct berth *b)
{
	const struct store_limits *l = &b->row.limits;
	struct e2b_box x;
	const char *template;

	e2b_box_read(b, &x);
	template = templates_of(&x);
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:i, s:i, s:i, s:s, s:s, s:o, s:o}",
			 "sandboxID", b->row.id, "templateID", template, "alias", template,
			 "clientID", "atoll", "startedAt", record_when((uint64_t)b->row.started_ns),
			 "endAt", end_at(b), "cpuCount", (int)sandboxes_cpus(l), "memoryMB",
			 (int)(sandboxes_memory(l) >> 20), "diskSizeMB", (int)(l->disk_bytes >> 20),
			 "state", sandboxes_state(b), "envdVersion", E2B_ENVD_VERSION, "metadata",
			 text_json(b->row.metadata), "volumeMounts", mounts_json(b));
}

void sandboxes_show(struct call *c)
{
	struct berth *b = sandboxes_find(c);
	json_t *doc, *internet, *network;
	struct e2b_box x;

	if (!b)
		return;
	e2b_box_read(b, &x);
	doc = sandboxes_listed(b);
	set_token(c, doc, "envdAccessToken", x.token);
	set_domain(c, doc);
	internet = e2b_box_more(b, "internet");
	network = e2b_box_more(b, "network");
	json_object_set_new(doc, "allowInternetAccess", internet ? internet : json_null());
	if (json_object_size(network))
		json_object_set(doc, "network", network);
	json_decref(network);
	json_object_set_new(doc, "lifecycle",
			    json_pack("{s:b, s:s}", "autoResume", x.auto_resume, "onTimeout",
				      b->row.on_timeout == STORE_TIMEOUT_KILL ? "kill" : "pause"));
	call_json(c, 200, doc);
}

void sandboxes_health(struct call *c)
{
	call_empty(c, 204);
}

/* ---- its time ---- */

int sandboxes_timeout_ms(struct call *c, const char *name, int64_t otherwise_s, uint64_t *out_ms,
			 struct err *e)
{
	uint64_t most = c->api->fleet.conf.lifetime_max_ms;
	uint64_t ms = (uint64_t)call_int(c, name, otherwise_s) * 1000;

	if (most && ms > most && call_get(c, name))
		return err_set(e, ERR_INVALID, "%s: %llu s are more than this server allows, which is %llu s",
			       name, (unsigned long long)ms / 1000, (unsigned long long)most / 1000);
	*out_ms = most && ms > most ? most : ms;
	return 0;
}

static int set_end(struct berth *b, uint64_t ms, struct err *e)
{
	int64_t ends = b->row.ends_ns;
	uint64_t lifetime = b->row.lifetime_ms;

	b->row.ends_ns = fleet_now_ns() + (int64_t)ms * 1000000;
	b->row.lifetime_ms = ms;
	if (berth_changed(b, e) == 0)
		return 0;
	b->row.ends_ns = ends;
	b->row.lifetime_ms = lifetime;
	return -1;
}

/* What is further away, or never, stays as it is, to the nanosecond. */
static int extend(struct berth *b, uint64_t ms, struct err *e)
{
	if (!b->row.ends_ns || b->row.ends_ns >= fleet_now_ns() + (int64_t)ms * 1000000)
		return 0;
	return set_end(b, ms, e);
}

void sandboxes_timeout(struct call *c)
{
	struct berth *b = find_running(c);
	uint64_t ms;
	struct err e;

	if (!b)
		return;
	if (sandboxes_timeout_ms(c, "timeout", 0, &ms, &e) < 0 || (ms && set_end(b, ms, &e) < 0)) {
		call_fail(c, &e);
		return;
	}
	if (!ms)
		berth_time_out(b, CAUSE_LIFETIME, b->row.lifetime_ms);
	call_empty(c, 204);
}

void sandboxes_refresh(struct call *c)
{
	struct berth *b = find_running(c);
	uint64_t ms;
	struct err e;

	if (!b)
		return;
	if (sandboxes_timeout_ms(c, "duration", REFRESH_S, &ms, &e) < 0 || extend(b, ms, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}

/* ---- coming back to it ---- */

int sandboxes_wake(struct berth *b, const struct sandboxes_how *how, struct berth_wait *w,
		   struct err *e)
{
	uint64_t before = b->row.lifetime_ms;

	b->row.lifetime_ms = how->timeout_ms; /* its time begins again, with this */
	if (b->state == BERTH_KEPT) {
		berth_wake(b);
		return 1;
	}
	if (berth_resume(b, !how->memory, w, e) == 0)
		return 0;
	b->row.lifetime_ms = before;
	return -1;
}

int sandboxes_token(char out[E2B_TOKEN + 1], struct err *e)
{
	uint8_t bytes[E2B_TOKEN / 2];

	if (id_random(bytes, sizeof(bytes), e) < 0)
		return -1;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* A box from another door gets what this one needs when it is first asked for here. */
static int adopt(struct berth *b, struct err *e)
{
	struct e2b_box x;
	char *before = b->row.door;

	e2b_box_read(b, &x);
	if (x.ours)
		return 0;
	if (sandboxes_token(x.token, e) < 0)
		return -1;
	b->row.door = e2b_box_text_on(before, &x);
	if (berth_changed(b, e) == 0) {
		free(before);
		return 0;
	}
	free(b->row.door);
	b->row.door = before;
	return -1;
}

struct waiting {
	struct berth_wait wait;
	struct call *call;
};

static void leave(struct call *c)
{
	berth_wait_cancel(&((struct waiting *)c->state)->wait);
}

static struct berth_wait *wait_with(struct call *c,
				    void (*done)(struct berth_wait *, struct berth *,
						 const struct err *))
{
	struct waiting *w = call_alloc(c, sizeof(*w));

	*w = (struct waiting){ .wait = { .done = done }, .call = c };
	c->state = w;
	c->drop = leave;
	return &w->wait;
}

static void awake(struct berth_wait *w, struct berth *b, const struct err *e)
{
	struct call *c = loop_owner(w, struct waiting, wait)->call;

	c->drop = NULL;
	if (e)
		call_fail(c, e);
	else
		call_json(c, 201, sandboxes_json(c, b));
}

static void wake(struct call *c, struct berth *b, int64_t otherwise_s)
{
	struct sandboxes_how how = { .memory = call_flag(c, "memory", 1) };
	struct berth_wait *w = wait_with(c, awake);
	struct err e;
	int there = sandboxes_timeout_ms(c, "timeout", otherwise_s, &how.timeout_ms, &e);

	if (there == 0)
		there = sandboxes_wake(b, &how, w, &e);
	if (there)
		awake(w, b, there < 0 ? &e : NULL);
}

void sandboxes_connect(struct call *c)
{
	struct berth *b = sandboxes_find(c);
	uint64_t ms;
	struct err e;

	if (!b)
		return;
	call_hold(c, b);
	if (adopt(b, &e) < 0) {
		call_fail(c, &e);
	} else if (sandboxes_paused(b)) {
		wake(c, b, CONNECT_S);
	} else if (sandboxes_timeout_ms(c, "timeout", CONNECT_S, &ms, &e) < 0 ||
		   extend(b, ms, &e) < 0) {
		call_fail(c, &e);
	} else {
		call_json(c, 200, sandboxes_json(c, b));
	}
}

void sandboxes_resume(struct call *c)
{
	struct berth *b = sandboxes_find(c);
	struct err e;

	if (!b)
		return;
	call_hold(c, b);
	if (!sandboxes_paused(b)) {
		call_error(c, 409, "conflict", "this sandbox is running already", b->row.id, NULL);
	} else if (adopt(b, &e) < 0) {
		call_fail(c, &e);
	} else {
		if (call_get(c, "autoPause"))
			b->row.on_timeout = call_flag(c, "autoPause", 0) ? STORE_TIMEOUT_KEEP :
									   STORE_TIMEOUT_KILL;
		wake(c, b, RESUME_S);
	}
}

/* ---- ending it ---- */

static void ended(struct berth_wait *w, struct berth *b, const struct err *e)
{
	struct call *c = loop_owner(w, struct waiting, wait)->call;

	(void)b;
	(void)e;
	c->drop = NULL;
	call_empty(c, 204);
}

void sandboxes_delete(struct call *c)
{
	struct berth *b = sandboxes_find(c);

	if (b)
		berth_end(b, CAUSE_OPERATOR, wait_with(c, ended));
}
