/* sandbox_json.c - see sandbox_json.h. */
#include "e2bcontrol/sandbox_json.h"
#include "base/cleanup.h"
#include "record/changes.h"
#include "record/record.h"
#include "e2bcontrol/sandboxes.h"
#include "e2bcontrol/templates.h"

#include <sched.h>
#include <sys/sysinfo.h>

static void set_domain(const struct call *c, json_t *doc)
{
	char domain[E2B_DOMAIN];

	e2b_domain(c, domain);
	json_object_set_new(doc, "domain", domain[0] ? json_text(domain) : json_null());
}

/* A key that may only read does not get the tokens, which permit more. */
static void set_token(const struct call *c, json_t *doc, const char *name, const char *token)
{
	if (token[0] && c->who.role >= ROLE_EDITOR)
		json_object_set_new(doc, name, json_string(token));
}

json_t *sandbox_json_created(const struct call *c, const struct box *b)
{
	struct e2b_box x;
	const char *template;
	json_t *doc;

	e2b_box_read(b, &x);
	template = templates_of(&x);
	doc = json_pack("{s:s, s:s, s:o, s:s, s:s, s:n}", "sandboxID", b->row.id, "templateID",
			template, "alias", templates_alias_of(b, &x), "clientID", E2B_CLIENT,
			"envdVersion", E2B_ENVD_VERSION, "trafficAccessToken");
	set_token(c, doc, "envdAccessToken", x.token);
	set_token(c, doc, "trafficAccessToken", x.traffic);
	set_domain(c, doc);
	return doc;
}

unsigned sandbox_json_cpus(const struct store_limits *l)
{
	cpu_set_t set;

	if (l->cpu_milli)
		return (l->cpu_milli + 999) / 1000;
	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

uint64_t sandbox_json_memory(const struct store_limits *l)
{
	struct sysinfo s = { .mem_unit = 1 };

	if (l->mem_bytes)
		return l->mem_bytes;
	return sysinfo(&s) == 0 ? (uint64_t)s.totalram * s.mem_unit : 0;
}

/* For a sandbox without an end the answer has a date that every client can parse. */
static json_t *end_at(const struct box *b)
{
	return b->row.ends_ns ? json_time((uint64_t)b->row.ends_ns)
			      : json_string("9999-12-31T23:59:59.000Z");
}

/* As the client gave it. */
static json_t *metadata_json(const char *text)
{
	json_t *v = text ? json_loads(text, 0, NULL) : NULL;

	json_object_del(v, BOX_REGISTRIES);
	return v ? v : json_object();
}

static json_t *mounts_json(const struct box *b)
{
	json_t *all = b->row.volumes ? json_loads(b->row.volumes, 0, NULL) : NULL, *one;
	json_t *out = json_array();
	size_t i;

	json_array_foreach(all, i, one) json_array_append_new(
		out, json_pack("{s:O, s:O}", "name", json_object_get(one, "name"), "path",
			       json_object_get(one, "path")));
	json_decref(all);
	return out;
}

json_t *sandbox_json_listed(const struct box *b)
{
	const struct store_limits *l = &b->row.limits;
	struct e2b_box x;
	const char *template;

	e2b_box_read(b, &x);
	template = templates_of(&x);
	return json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:i, s:i, s:i, s:s, s:s, s:o, s:o}",
			 "sandboxID", b->row.id, "templateID", template, "alias",
			 templates_alias_of(b, &x), "clientID", E2B_CLIENT, "startedAt",
			 json_time((uint64_t)sandboxes_started(b)), "endAt", end_at(b), "cpuCount",
			 (int)sandbox_json_cpus(l), "memoryMB", (int)(sandbox_json_memory(l) >> 20),
			 "diskSizeMB", (int)(l->disk_bytes >> 20), "state", sandboxes_state(b),
			 "envdVersion", E2B_ENVD_VERSION, "metadata",
			 metadata_json(b->row.metadata), "volumeMounts", mounts_json(b));
}

json_t *sandbox_json_detail(const struct call *c, const struct box *b)
{
	json_t *doc, *internet, *network;
	struct e2b_box x;

	e2b_box_read(b, &x);
	doc = sandbox_json_listed(b);
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
	return doc;
}
