/* box_spec.c - see box_spec.h. */
#include "v1box/box_spec.h"
#include "api/plan_limits.h"
#include "api/quota.h"
#include "template/build.h"
#include "template/build_runtimes.h"
#include "template/templates.h"
#include "v1box/links.h"
#include "v1box/secrets.h"
#include "v1box/volumes.h"
#include "v1box/automatic.h"
#include "fleet/definition.h"
#include "checkpoint/memory.h"
#include "v1box/checkpoints.h"
#include "base/cleanup.h"
#include "fleet/bounds.h"
#include "fleet/box_link.h"
#include "lang/lang.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS_MAX (INT64_C(1) << 53)

const struct field box_limit_fields[] = {
	{ "mem", FIELD_INT, 0, 1, MS_MAX, "memory in bytes", NULL },
	{ "disk", FIELD_INT, 0, 1, MS_MAX, "disk space in bytes", NULL },
	{ "files", FIELD_INT, 0, 1, MS_MAX, "number of files", NULL },
	{ "cpu_milli", FIELD_INT, 0, 1, UINT32_MAX - 1, "thousandths of a CPU", NULL },
	{ "pids", FIELD_INT, 0, 1, UINT32_MAX - 1, "processes and threads", NULL },
	{ "cpu_ms", FIELD_INT, 0, 1, MS_MAX, "CPU time of all programs together, in milliseconds",
	  NULL },
	{ 0 },
};

static const struct field on_timeout_values[] = {
	FIELD_VALUE("kill"), FIELD_VALUE("keep"), FIELD_VALUE("pause"), { 0 }
};
enum { LABELS_MAX = 8 }; /* of a request: PLACE_LABELS of gateways */

static const struct field on_loss_values[] = {
	FIELD_VALUE("keep"), FIELD_VALUE("stop"), FIELD_VALUE("restart"), { 0 }
};
#define TIME_FIELDS                                                                                \
	{ "lifetime_ms",                                                                           \
	  FIELD_INT,                                                                               \
	  0,                                                                                       \
	  0,                                                                                       \
	  MS_MAX,                                                                                  \
	  "time until the box times out; 0: the longest allowed time",                             \
	  NULL },                                                                                  \
		{ "idle_ms", FIELD_INT, 0,                                                         \
		  0,         MS_MAX,    "time without activity until the box times out; 0: never", \
		  NULL },                                                                          \
		{ "on_timeout",                                                                    \
		  FIELD_CHOICE,                                                                    \
		  0,                                                                               \
		  0,                                                                               \
		  0,                                                                               \
		  "at the end of the lifetime: kill the box, keep its files, or pause it",         \
		  on_timeout_values },                                                             \
	{                                                                                          \
		"retention_ms", FIELD_INT, 0, -1, MS_MAX,                                          \
			"how long the files are kept; -1: until the box is deleted", NULL          \
	}

const struct field box_create_fields[] = {
	/* clang-format off */
	{ "name", FIELD_NAME, 0, 0, STORE_NAME, "name of the box, unique in the team", NULL },
	{ "session", FIELD_TEXT, 0, 0, STORE_SESSION, "get the box with this session key; create it if it does not exist", NULL },
	BOX_LIMIT_FIELDS,
	TIME_FIELDS,
	{ "lifetime_from", FIELD_NAME, 0, 0, 16, "start of lifetime_ms: use (the last use; default if lifetime_ms is not given) or creation", NULL },
	{ "metadata", FIELD_MAP, 0, 0, 64, "key-value texts for searching", NULL },
	{ "env", FIELD_MAP, 0, 0, 1000, "environment variables of all programs in the box", NULL },
	{ "volumes", FIELD_ANY, 0, 0, 0, "volumes to mount, at most 4: [{name, path, read_only}]", NULL },
	{ "secrets", FIELD_ANY, 0, 0, 0, "secrets of the team for the box: [{name, as, variable, path, hosts, in}]", NULL },
	{ "warm", FIELD_NAME, 0, 0, 15, "warm interpreter for the box: python, python-data, node", NULL },
	{ "packages", FIELD_ANY, 0, 0, 0, "packages to install before the box is created: {\"pip\": [...], \"npm\": [...]}", NULL },
	{ "network", FIELD_OBJECT, 0, 0, 0, "destinations that the box may reach (default: none)", box_network_fields },
	{ "checkpoint", FIELD_TEXT, 0, 0, ID_MAX, "start with the files of this checkpoint, its template and its packages: id", NULL },
	{ "memory", FIELD_BOOL, 0, 0, 0, "with checkpoint: also continue the programs that it was taken with (memory: true)", NULL },
	{ "checkpoints", FIELD_OBJECT, 0, 0, 0, "automatic checkpoints of the box", automatic_fields },
	{ "snapshot", FIELD_TEXT, 0, 0, 200, "start with the files of this snapshot: id or name[:tag]", NULL },
	{ "on_loss", FIELD_CHOICE, 0, 0, 0, "in a cluster, when the node of the box is lost: its programs continue (keep), stop until the node has a lease again (stop), or the box restarts on another node from its last snapshot (restart)", on_loss_values },
	{ "labels", FIELD_TEXTS, 0, 0, LABELS_MAX, "labels (NAME=VALUE) that the node of the box must have: cluster.labels", NULL },
	{ "cold", FIELD_BOOL, 0, 0, 0, "do not take the box from the pool", NULL },
	{ 0 },
	/* clang-format on */
};

const struct field box_patch_fields[] = {
	{ "name", FIELD_NAME, 0, 0, STORE_NAME, "new name", NULL },
	{ "limits", FIELD_OBJECT, 0, 0, 0, "new limits: mem, cpu_milli, pids", box_limit_fields },
	TIME_FIELDS,
	{ "metadata", FIELD_MAP, 0, 0, 64, "new metadata; replaces all existing entries", NULL },
	{ "env", FIELD_MAP, 0, 0, 1000, "new environment variables; replaces all existing ones",
	  NULL },
	{ "network", FIELD_OBJECT, 0, 0, 0,
	  "new network rules, in force at once; members that are not given stay as they are",
	  box_network_fields },
	{ "checkpoints", FIELD_OBJECT, 0, 0, 0,
	  "automatic checkpoints of the box; members that are not given stay as they are",
	  automatic_fields },
	{ 0 },
};

void box_read_limits(const json_t *l, struct wire_limits *out)
{
	struct {
		const char *name;
		uint64_t n;
	} all[] = { { "mem", out->mem_bytes },    { "disk", out->disk_bytes },
		    { "files", out->disk_files }, { "cpu_milli", out->cpu_milli },
		    { "pids", out->pids },        { "cpu_ms", out->cpu_ms } };

	/* null means not given, because 0 would request no limit at all. */
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

int box_read_times(struct call *c, struct store_box *row, struct err *e)
{
	uint64_t most = quota_max_lifetime_ms(c->api, c->who.team),
		 longest = plan_limits_retention_most_ms(c->api, c->who.team);
	const char *then = call_text(c, "on_timeout", NULL);
	int64_t lifetime = call_int(c, "lifetime_ms", -1), keep = call_int(c, "retention_ms", -2);

	if (lifetime == 0)
		row->lifetime_ms = most;
	else if (lifetime > 0)
		row->lifetime_ms = (uint64_t)lifetime;
	else if (most && row->lifetime_ms > most)
		row->lifetime_ms = most; /* a default, which a plan lowers */
	if (most && (row->lifetime_ms > most || row->lifetime_ms == 0))
		return err_set(
			e, ERR_INVALID,
			"lifetime_ms: %llu is more than this daemon allows, which is %llu (%s)",
			(unsigned long long)row->lifetime_ms, (unsigned long long)most,
			most == c->api->fleet.conf.lifetime_max_ms ? "limits.max_lifetime"
								   : "max_lifetime of the plan");
	row->idle_ms = (uint64_t)call_int(c, "idle_ms", (int64_t)row->idle_ms);
	if (keep != -2)
		row->retention_ms = keep < 0 ? STORE_FOREVER : (uint64_t)keep;
	if (row->retention_ms > longest)
		return err_set(
			e, ERR_INVALID,
			"retention_ms: the plan of team %.64s allows at most %llu (retention_boxes)",
			c->who.team, (unsigned long long)longest);
	if (then && store_on_timeout_parse(then, &row->on_timeout) < 0)
		return err_set(e, ERR_INVALID, "on_timeout: '%.20s' is not kill, keep or pause",
			       then);
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

enum { ENV_MOST = 256 << 10 };

static int box_refuse_env(struct err *e, const char *which, size_t bytes, int most)
{
	err_set(e, ERR_LIMIT,
		"env%s%.40s: %zu bytes are too many, at most %d; put them into a file",
		*which ? "." : "", which, bytes, most);
	e->sys = E2BIG;
	return -1;
}

int box_check_env(const json_t *env, struct err *e)
{
	size_t bytes = 0;
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)env, name, v)
	{
		size_t n = strlen(name) + json_string_length(v) + 2; /* "=" and NUL */

		if (!*name || strchr(name, '='))
			return err_set(e, ERR_INVALID, "env: '%.40s' cannot be a variable's name",
				       name);
		if (n > BOX_STRING_MAX)
			return box_refuse_env(e, name, n - 2, BOX_STRING_MAX - 2);
		bytes += n;
	}
	/* Checked here because the variables are copied and written several times before a box
	 * could reject them. */
	return bytes > ENV_MOST ? box_refuse_env(e, "", bytes, ENV_MOST) : 0;
}

static int read_network(struct call *c, struct store_box *row, struct err *e)
{
	auto_free char *lines = NULL;

	if (network_read_lines(c, call_get(c, "network"), NULL, &lines, e) < 0)
		return -1;
	row->network = lines ? http_strdup(c->req, lines, strlen(lines)) : NULL;
	return 0;
}

#define OURS "atoll." /* prefix of reserved metadata keys, which mark what a box is used for */

enum { METADATA_MOST = 16 << 10 };

int box_check_metadata(const json_t *given, const json_t *had, struct err *e)
{
	size_t bytes = 0;
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)given, key, v) bytes += strlen(key) + json_string_length(v);
	if (bytes > METADATA_MOST) {
		err_set(e, ERR_LIMIT,
			"metadata: %zu bytes are too many, at most %d: every list shows them",
			bytes, METADATA_MOST);
		e->sys = E2BIG;
		return -1;
	}
	json_object_foreach((json_t *)given, key, v) if (
		!strncmp(key, OURS, strlen(OURS)) &&
		!json_equal(v,
			    json_object_get(
				    had,
				    key))) return err_set(e, ERR_INVALID,
							  "metadata: '%.60s' is not allowed: " OURS
							  "* is reserved",
							  key);
	return 0;
}

void box_take_metadata(struct store_box *row, const json_t *given, const json_t *had)
{
	json_t *all = json_deep_copy(given), *v;
	const char *key;

	json_object_foreach((json_t *)had, key, v) if (!strncmp(key, OURS, strlen(OURS)))
		json_object_set(all, key, v);
	free(row->metadata);
	row->metadata = json_dumps(all, JSON_COMPACT);
	json_decref(all);
}

/* The given metadata, and whether the box may reach the registries. */
static char *read_metadata(struct call *c)
{
	const json_t *wanted = json_object_get(call_get(c, "network"), "registries");
	char *given = dump_field(c, "metadata");
	auto_free char *text = NULL;

	if (!json_is_boolean(wanted))
		return given;
	text = box_metadata_with(given, BOX_REGISTRIES, json_is_true(wanted) ? "1" : "0");
	return http_strdup(c->req, text, strlen(text));
}

/* ---- template ---- */

static void spec_template_limits(const struct store_build *b, struct box_spec *out)
{
	if (b->cpu_milli)
		out->limits.cpu_milli = b->cpu_milli;
	if (b->mem_bytes)
		out->limits.mem_bytes = b->mem_bytes;
	if (b->disk_bytes)
		out->limits.disk_bytes = b->disk_bytes;
}

static char *spec_text(struct call *c, const json_t *doc)
{
	auto_free char *text = json_dumps(doc, JSON_COMPACT);

	return text ? http_strdup(c->req, text, strlen(text)) : NULL;
}

/* What the box must remember of its template, which may be deleted while it runs. */
static json_t *spec_root(const struct template_found *f, const json_t *settings)
{
	static const char *const names[] = { "user",    "uid",      "gid",       "home",
					     "workdir", "start",    "ready",     "port",
					     "base",    "runtimes", "isolation", "needs" };
	json_t *doc = json_pack("{s:s, s:s, s:s}", "id", f->build.root, "build", f->build.id,
				"template", f->row.id);

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (json_object_get(settings, names[i]))
			json_object_set(doc, names[i], json_object_get(settings, names[i]));
	return doc;
}

int box_spec_template(struct call *c, const char *reference, struct box_spec *out, struct err *e)
{
	const struct fleet_conf *conf = &c->api->fleet.conf;
	struct template_found f;
	json_t *settings, *root;

	if (template_resolve(c->api->store, c->who.team, reference, &f, e) < 0)
		return template_first_use(c->api->builds, c->who.team, reference, e);
	snprintf(out->row.template, sizeof(out->row.template), "%s", f.name);
	if (f.builtin) {
		template_found_fini(&f);
		return 0;
	}
	settings = json_loads(f.build.settings, 0, NULL);
	root = spec_root(&f, settings);
	snprintf(out->root, sizeof(out->root), "%s", f.build.root);
	out->row.root = spec_text(c, root);
	if (json_object_size(json_object_get(settings, "env")))
		out->row.env = spec_text(c, json_object_get(settings, "env"));
	spec_template_limits(&f.build, out);
	bounds_lower(&conf->most, &out->limits);
	template_spawned(c->api->builds, f.row.id);
	json_decref(root);
	json_decref(settings);
	template_found_fini(&f);
	return 0;
}

char *box_spec_env(struct call *c, const char *template_env, const json_t *env)
{
	json_t *all = template_env ? json_loads(template_env, 0, NULL) : NULL;
	char *text;

	if (!all)
		return env ? spec_text(c, env) : NULL;
	json_object_update(all, (json_t *)env);
	text = spec_text(c, all);
	json_decref(all);
	return text;
}

const char *box_spec_warm(const struct box_spec *want, const char *name, const json_t *env)
{
	json_t *root = want->root[0] ? json_loads(want->row.root, 0, NULL) : NULL;
	/* Another PATH may lead to another interpreter. */
	const char *found =
		root && json_object_get(env, "PATH") ? NULL : build_runtimes_warm(root, name);

	json_decref(root);
	return found;
}

int box_spec_has_base(const struct box_spec *want)
{
	return !want->root[0] || strstr(want->row.root, "\"base\":true");
}

int box_spec_packages(struct call *c, const struct box_spec *want)
{
	if (box_spec_has_base(want))
		return 1;
	call_error(c, 422, "invalid", "packages are for templates that start from base",
		   want->row.template,
		   "install them in the template with RUN, or in the box with a command");
	return 0;
}

/* A box can be stopped when the lease of this node ends, if there is one. */
static int spec_on_loss(struct call *c, struct store_box *row, struct err *e)
{
	const struct fleet_lease *l = &c->api->fleet.lease;
	const char *text = call_text(c, "on_loss", "keep");

	if (store_on_loss_parse(text, &row->on_loss) < 0)
		return err_set(e, ERR_INVALID, "on_loss: '%.20s' is not keep, stop or restart",
			       text);
	row->epoch = l->epoch;
	if (row->on_loss == STORE_LOSS_KEEP)
		return 0;
	if (!l->is_node)
		return err_set(e, ERR_INVALID,
			       "on_loss: this daemon is not a node of a cluster (cluster.role)");
	if (fleet_lease_left_ms(&c->api->fleet) == 0) {
		err_set(e, ERR_SYS,
			"on_loss: this node has no lease of a gateway at the moment; try again");
		e->sys = EBUSY;
		return -1;
	}
	return 0;
}

/* Everything that the box needs must exist on other nodes, too. */
static int spec_restart(const struct call *c, const struct box_spec *want, struct err *e)
{
	const char *why = box_definition_obstacle(want);
	const json_t *packages = call_get(c, "packages");

	if (want->row.on_loss != STORE_LOSS_RESTART)
		return 0;
	if (!why && (json_array_size(packages) || json_object_size(packages)))
		why = "its packages are on one node";
	return why ? err_set(e, ERR_INVALID,
			     "on_loss: this box cannot restart on another node: %s; use stop or "
			     "keep",
			     why)
		   : 0;
}

static int spec_has_label(const struct api *a, const char *label)
{
	for (const char *const *own = a->labels; own && *own; own++)
		if (strcmp(*own, label) == 0)
			return 1;
	return 0;
}

/* A gateway has chosen a node with all of these labels, unless the box must be created where its template or volume is. */
static int spec_labels(struct call *c, struct err *e)
{
	const json_t *one;
	size_t i;

	json_array_foreach(call_get(c, "labels"), i, one) if (
		!spec_has_label(
			c->api,
			json_string_value(
				one))) return err_set(e, ERR_CONFLICT,
						      "labels: this machine does not have the label '%.63s' "
						      "(cluster.labels)",
						      json_string_value(one));
	return 0;
}

/* Files, template and packages of the checkpoint belong together. */
static int spec_checkpoint(struct call *c, struct box_spec *out, struct err *e)
{
	static const char *const others[] = { "template", "snapshot", "packages", "warm" };
	const char *id = call_text(c, "checkpoint", "");
	struct store_checkpoint x;

	for (unsigned i = 0; i < ARRAY_LEN(others); i++)
		if (call_get(c, others[i]))
			return err_set(e, ERR_INVALID,
				       "checkpoint: cannot be used together with %s, which the "
				       "checkpoint has of its own",
				       others[i]);
	if (!id_valid(id) || store_checkpoint_get(c->api->store, c->who.team, id, &x, e) < 0)
		return err_set(e, ERR_NOT_FOUND,
			       "there is no checkpoint '%.15s'; list them: GET "
			       "/v1/boxes/{box}/checkpoints",
			       id);
	checkpoints_spec(c, &x, out);
	store_checkpoint_fini(&x);
	out->continues_programs = call_flag(c, "memory", 0);
	return out->continues_programs ? checkpoint_memory_check(c->api->checkpoints, id, e) : 0;
}

static int spec_checkpoints(struct call *c, struct box_spec *out, struct err *e)
{
	auto_free char *text = NULL;

	if (!call_get(c, "checkpoints"))
		return 0;
	if (automatic_read(call_get(c, "checkpoints"), NULL, &text, e) < 0)
		return -1;
	out->row.checkpoints = http_strdup(c->req, text, strlen(text));
	return 0;
}

int box_spec_read(struct call *c, struct box_spec *out, struct err *e)
{
	const struct fleet_conf *conf = &c->api->fleet.conf;

	*out = (struct box_spec){ .limits = conf->limits };
	out->row =
		(struct store_box){ .lifetime_ms = conf->lifetime_ms,
				    .idle_ms = conf->idle_ms,
				    .retention_ms = plan_limits_retention_ms(c->api, c->who.team) };
	snprintf(out->row.team, sizeof(out->row.team), "%s", c->who.team);
	snprintf(out->row.key, sizeof(out->row.key), "%s", c->who.id);
	snprintf(out->row.name, sizeof(out->row.name), "%s", call_text(c, "name", ""));
	snprintf(out->row.session, sizeof(out->row.session), "%s", call_text(c, "session", ""));
	if (call_text(c, "checkpoint", NULL)
		    ? spec_checkpoint(c, out, e) < 0
		    : box_spec_template(c, call_text(c, "template", TEMPLATE_BASE), out, e) < 0)
		return -1;
	box_read_limits(call_get(c, "limits"), &out->limits);
	if (bounds_check(&conf->most, &out->limits, e) < 0 ||
	    isolation_of_call(c, &out->isolation, e) < 0)
		return -1;
	if (box_check_env(call_get(c, "env"), e) < 0 ||
	    box_check_metadata(call_get(c, "metadata"), NULL, e) < 0)
		return -1;
	out->row.metadata = read_metadata(c);
	out->row.env = box_spec_env(c, out->row.env, call_get(c, "env"));
	out->row.volumes = dump_field(c, "volumes");
	out->flags = call_flag(c, "cold", 0) ? WIRE_CREATE_COLD : 0;
	if (spec_checkpoints(c, out, e) < 0 || spec_on_loss(c, &out->row, e) < 0 ||
	    spec_labels(c, e) < 0 || read_network(c, &out->row, e) < 0 ||
	    secrets_want(c, call_get(c, "secrets"), out, e) < 0)
		return -1;
	out->warm = call_text(c, "warm", NULL);
	if (out->warm && !lang_warm_known(out->warm))
		return err_set(
			e, ERR_INVALID,
			"warm: nothing is called '%.15s'; there are: python, python-data, node",
			out->warm);
	out->warm = box_spec_warm(out, out->warm, call_get(c, "env"));
	if (volumes_want(c, call_get(c, "volumes"), out, e) < 0 || spec_restart(c, out, e) < 0)
		return -1;
	return box_read_times(c, &out->row, e);
}
