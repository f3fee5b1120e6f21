/* packages.c - see packages.h. */
#include "v1box/packages.h"
#include "api/event_stream.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "record/record.h"
#include "store/packages.h"

#include <stdio.h>
#include <string.h>

const struct field packages_add_fields[] = {
	{ "packages", FIELD_ANY, 1, 0, 0,
	  "packages to install: {\"pip\": [\"numpy\"], \"npm\": [...]}", NULL },
	{ 0 },
};
const struct field packages_list_query[] = {
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "maximum number of items (default 100)", NULL },
	{ 0 },
};

/* ---- requested packages ---- */

static struct packages *set_of(struct package_job *j, enum package_manager m, struct err *e)
{
	for (unsigned i = 0; i < j->n; i++)
		if (j->sets[i].manager == m)
			return &j->sets[i];
	if (j->n == WIRE_LAYERS) {
		err_set(e, ERR_LIMIT, "packages: of %d managers at most", WIRE_LAYERS);
		return NULL;
	}
	j->sets[j->n].manager = m;
	return &j->sets[j->n++];
}

static int read_list(struct package_job *j, const json_t *list, enum package_manager m,
		     struct err *e)
{
	struct packages *set = json_array_size(list) ? set_of(j, m, e) : NULL;
	const json_t *one;
	size_t i;

	if (!json_is_array(list))
		return err_set(e, ERR_INVALID, "packages: %s must be a list of texts",
			       package_manager_name(m));
	json_array_foreach(list, i, one)
	{
		if (!set)
			return -1;
		if (!json_is_string(one))
			return err_set(e, ERR_INVALID, "packages: %s must be a list of texts",
				       package_manager_name(m));
		if (packages_add(set, json_string_value(one), e) < 0)
			return -1;
	}
	return 0;
}

int packages_read(struct package_job *j, const json_t *field, const char *language, struct err *e)
{
	const char *name;
	json_t *list;
	int m;

	if (!field || json_is_false(field))
		return 0;
	if (json_is_array(field)) {
		m = language ? package_manager_of(language) : -1;
		if (m < 0)
			return err_set(e, ERR_INVALID,
				       "packages: a list needs a language with a package manager; "
				       "else write {\"pip\": [...]}");
		return read_list(j, field, (enum package_manager)m, e);
	}
	if (!json_is_object(field))
		return err_set(e, ERR_INVALID, "packages: must be a list or {\"pip\": [...]}");
	json_object_foreach((json_t *)field, name, list)
	{
		m = package_manager_named(name);
		if (m < 0)
			return err_set(e, ERR_INVALID,
				       "packages: '%.20s' is none of pip, npm, gem, cargo, go, apt",
				       name);
		if (read_list(j, list, (enum package_manager)m, e) < 0)
			return -1;
	}
	return 0;
}

/* {"dependencies": {name: range}} */
static int read_package_json(struct packages *set, const char *text, size_t n, struct err *e)
{
	json_t *doc = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL), *range;
	char one[2 * PACKAGE_TEXT];
	const char *name;
	int done = 0;

	if (!json_is_object(doc)) {
		json_decref(doc);
		return err_set(e, ERR_INVALID, "package.json: not a JSON object");
	}
	json_object_foreach(json_object_get(doc, "dependencies"), name, range)
	{
		if (!json_is_string(range) ||
		    strlen(name) + json_string_length(range) > PACKAGE_TEXT) {
			done = err_set(e, ERR_INVALID, "package.json: a version is not a string");
			break;
		}
		snprintf(one, sizeof(one), "%s@%s", name, json_string_value(range));
		done = packages_add(set, one, e);
		if (done < 0) {
			err_in(e, "package.json");
			break;
		}
	}
	json_decref(doc);
	return done;
}

/* Adds the packages that were found if they can be installed here; else adds a warning: the
 * presence of a file alone is not a request. */
static int take_found(struct package_job *j, struct packages *found, const char *where,
		      struct err *e)
{
	struct packages *set;
	int done = 0;

	if (found->n && !packages_configured(&j->api->fleet, found)) {
		if (!j->warnings)
			j->warnings = json_array();
		json_array_append_new(
			j->warnings,
			json_sprintf("%s is not installed: no source for %s packages: set %s",
				     where, package_manager_name(found->manager),
				     install_setting(found->manager)));
		packages_fini(found);
		return 0;
	}
	set = found->n ? set_of(j, found->manager, e) : NULL;
	if (found->n && !set)
		done = -1;
	for (unsigned i = 0; done == 0 && i < found->n; i++)
		done = packages_add(set, found->v[i], e);
	packages_fini(found);
	return done;
}

static int detect_in(struct package_job *j, const char *where, enum package_manager m,
		     const char *text, size_t n,
		     int (*read)(struct packages *, const char *, size_t, struct err *),
		     struct err *e)
{
	struct packages found = { .manager = m };

	if (read(&found, text, n, e) < 0) {
		packages_fini(&found);
		return err_in(e, "%s", where);
	}
	return take_found(j, &found, where, e);
}

int packages_detect(struct package_job *j, const json_t *body, const char *language, struct err *e)
{
	const json_t *files = json_object_get(body, "files"), *code = json_object_get(body, "code"),
		     *text;
	const char *entry = json_string_value(json_object_get(body, "entry"));
	int m = language ? package_manager_of(language) : -1;

	if (!json_is_string(code) && entry)
		code = json_object_get(files, entry);
	if (m == PM_PIP && json_is_string(code) &&
	    detect_in(j, "script", PM_PIP, json_string_value(code), json_string_length(code),
		      packages_add_script, e) < 0)
		return -1;
	text = json_object_get(files, "requirements.txt");
	if (m == PM_PIP && json_is_string(text) &&
	    detect_in(j, "requirements.txt", PM_PIP, json_string_value(text),
		      json_string_length(text), packages_add_lines, e) < 0)
		return -1;
	text = json_object_get(files, "package.json");
	if (m == PM_NPM && json_is_string(text) &&
	    detect_in(j, "package.json", PM_NPM, json_string_value(text), json_string_length(text),
		      read_package_json, e) < 0)
		return -1;
	return 0;
}

/* ---- installation ---- */

static void warn_of_mistakes(struct package_job *j, const struct packages *set)
{
	char name[PACKAGE_TEXT + 1];

	for (unsigned i = 0; i < set->n; i++) {
		const char *meant;

		package_name(set->manager, set->v[i], name);
		meant = package_mistaken(set->manager, name);
		if (!meant)
			continue;
		if (!j->warnings)
			j->warnings = json_array();
		json_array_append_new(
			j->warnings,
			json_sprintf("%s: '%s' is one letter away from '%s', which is very "
				     "common: is it the one you mean?",
				     package_manager_name(set->manager), name, meant));
	}
}

static void need_said(struct packages_wait *w, unsigned stream, const char *bytes, size_t n)
{
	struct package_need *need = loop_owner(w, struct package_need, wait);
	struct package_job *j = need->job;

	if (j->said)
		j->said(j, package_manager_name(j->sets[need - j->needs].manager), stream, bytes,
			n);
}

static void need_done(struct packages_wait *w, const char *layer, uint64_t ms,
		      const struct packages_failure *f)
{
	struct package_need *need = loop_owner(w, struct package_need, wait);
	struct package_job *j = need->job;

	if (f) {
		/* The first failure is reported; the other sets are no longer waited for. */
		for (unsigned i = 0; i < j->n; i++)
			packages_wait_cancel(&j->needs[i].wait);
		j->done(j, f);
		return;
	}
	snprintf(need->layer, sizeof(need->layer), "%s", layer);
	need->ms = ms ? ms : 1;
	need->ready = 1;
	if (--j->missing == 0)
		j->done(j, NULL);
}

int packages_begin(struct package_job *j, struct api *a, const char *team, struct err *e)
{
	j->api = a;
	for (unsigned i = 0; i < j->n; i++) {
		struct package_need *need = &j->needs[i];
		char layer[STORE_HASH + 1];
		int known;

		need->job = j;
		need->wait.said = need_said;
		need->wait.done = need_done;
		warn_of_mistakes(j, &j->sets[i]);
		known = packages_get(&a->fleet, &j->sets[i], team, &need->wait, layer, e);
		if (known < 0)
			return -1;
		if (known)
			snprintf(need->layer, sizeof(need->layer), "%s", layer);
		need->ready = known;
		j->missing += !known;
	}
	return j->missing == 0;
}

static void add_env(json_t *env, enum package_manager m)
{
	const char *const *var = install_box_env(m);
	char name[64];

	for (unsigned i = 0; i < INSTALL_ENV && var[i]; i++) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(var[i], "="), var[i]);
		if (!json_object_get(env, name))
			json_object_set_new(env, name, json_string(strchr(var[i], '=') + 1));
	}
}

void packages_want(const struct package_job *j, struct http_req *r, struct box_spec *out)
{
	json_t *env = out->row.env ? json_loads(out->row.env, 0, NULL) : json_object();
	auto_free char *dump = NULL;

	for (unsigned i = 0; i < j->n; i++) {
		memcpy(out->layers[i], j->needs[i].layer, sizeof(out->layers[i]));
		add_env(env, j->sets[i].manager);
	}
	out->nlayers = j->n;
	dump = json_object_size(env) ? json_dumps(env, JSON_COMPACT) : NULL;
	if (dump)
		out->row.env = http_strdup(r, dump, strlen(dump));
	json_decref(env);
}

void packages_job_fini(struct package_job *j)
{
	for (unsigned i = 0; i < j->n; i++) {
		packages_wait_cancel(&j->needs[i].wait);
		packages_fini(&j->sets[i]);
	}
	j->n = 0;
	json_decref(j->warnings);
	j->warnings = NULL;
}

static json_t *names_json(const struct packages *set)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < set->n; i++)
		json_array_append_new(all, json_string(set->v[i]));
	return all;
}

json_t *packages_report(const struct package_job *j)
{
	json_t *doc, *sets;
	char key[STORE_HASH + 1];

	if (!j->n && !j->warnings)
		return NULL;
	sets = json_array();
	for (unsigned i = 0; i < j->n; i++) {
		packages_set_key(&j->api->fleet, &j->sets[i], key);
		json_array_append_new(sets, json_pack("{s:s, s:o, s:s, s:s, s:b, s:I}", "manager",
						      package_manager_name(j->sets[i].manager),
						      "packages", names_json(&j->sets[i]), "set",
						      key, "layer", j->needs[i].layer, "installed",
						      j->needs[i].ms != 0, "ms",
						      (json_int_t)j->needs[i].ms));
	}
	doc = json_pack("{s:o}", "sets", sets);
	if (j->warnings)
		json_object_set(doc, "warnings", j->warnings);
	return doc;
}

int packages_lost(struct package_job *j, const struct err *e)
{
	if (!j->n || e->kind != ERR_NOT_FOUND || !strstr(e->msg, "there is no layer"))
		return 0;
	for (unsigned i = 0; i < j->n; i++)
		packages_forget(&j->api->fleet, j->needs[i].layer);
	return 1;
}

/* ---- as JSON ---- */

static json_t *split_versions(const char *text)
{
	json_t *all = json_array();

	while (*text) {
		size_t n = strcspn(text, ", ");

		if (n)
			json_array_append_new(all, json_stringn(text, n));
		text += n;
		text += strspn(text, ", ");
	}
	return all;
}

static void set_utf8(json_t *doc, const char *key, const char *bytes, size_t n)
{
	auto_buf struct buf text = { 0 };
	int bad = 0;

	while (n) {
		size_t good = utf8_complete(bytes, n, &bad);

		buf_add(&text, bytes, good);
		bytes += good;
		n -= good;
		if (n) { /* an invalid byte: replace it and continue after it */
			buf_putc(&text, '?');
			bytes++;
			n--;
		}
	}
	for (size_t i = 0; i < text.len; i++)
		if (!text.p[i])
			text.p[i] = '?';
	json_object_set_new(doc, key, json_string(buf_str(&text)));
}

json_t *packages_failure_json(const struct packages_failure *f)
{
	const char *hint =
		f->d.fault == INSTALL_NO_PACKAGE && f->nnear ? "a name like it is in `near`"
		: f->d.fault == INSTALL_NO_VERSION && f->d.versions[0]
			? "those that there are: `versions`"
		: f->d.fault == INSTALL_NO_VERSION
			? "the registry has no version that fits: ask for another, or none"
		: f->d.fault == INSTALL_TIMEOUT ? "packages.timeout of the daemon"
						: NULL;
	json_t *doc = call_error_json(NULL, "install", f->message, NULL, hint);
	json_t *error = json_object_get(doc, "error");
	size_t n = f->said ? strlen(f->said) : 0, cut = n > 4000 ? n - 4000 : 0;
	json_t *near = json_array();

	if (!error)
		error = doc;
	json_object_set_new(error, "doc", json_string("/docs/packages.md"));
	set_utf8(error, "why", f->d.line, strlen(f->d.line));
	json_object_set_new(error, "category", json_string(install_fault_name(f->d.fault)));
	if (f->d.package[0])
		json_object_set_new(error, "package", json_string(f->d.package));
	for (unsigned i = 0; i < f->nnear; i++)
		json_array_append_new(near, json_string(f->near[i]));
	json_object_set_new(error, "near", near);
	if (f->d.versions[0])
		json_object_set_new(error, "versions", split_versions(f->d.versions));
	if (n)
		set_utf8(error, "output", f->said + cut, n - cut);
	return doc;
}

json_t *packages_refusal_json(const struct err *e)
{
	struct packages_failure f = { .d.fault = INSTALL_NOT_CONFIGURED };

	if (e->kind != ERR_DENIED)
		return NULL;
	snprintf(f.message, sizeof(f.message), "install: %s", e->msg);
	return packages_failure_json(&f);
}

json_t *packages_said_json(const char *manager, unsigned stream, const char *bytes, size_t n)
{
	json_t *doc = json_pack("{s:s, s:s, s:s}", "type", "install", "manager", manager, "stream",
				stream ? "stderr" : "stdout");

	set_utf8(doc, "text", bytes, n);
	return doc;
}

static json_t *set_json(const struct store_set *s)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "set", s->key,
			 "manager", s->manager, "packages", s->packages ? s->packages : "",
			 "runtime", s->runtime, "layer", s->layer, "bytes", (json_int_t)s->bytes,
			 "files", (json_int_t)s->files, "install_ms", (json_int_t)s->install_ms,
			 "uses", (json_int_t)s->uses, "created", json_time((uint64_t)s->created_ns),
			 "used", json_time((uint64_t)s->used_ns));
}

/* ---- /v1/packages ---- */

static int packages_operates(struct call *c)
{
	if (principal_is_operator(&c->who))
		return 1;
	call_error(c, 403, "denied", "only operators manage package sets", c->who.team,
		   "an owner's key of team default");
	return 0;
}

void packages_list(struct call *c)
{
	struct store_sets rows = { 0 };
	json_t *items = json_array();
	struct err e;

	if (!packages_operates(c)) {
		json_decref(items);
		return;
	}
	if (store_set_list(c->api->store, (unsigned)call_query_int(c, "limit", 0), &rows, &e) < 0) {
		json_decref(items);
		call_fail(c, &e);
		return;
	}
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, set_json(&rows.v[i]));
	store_sets_fini(&rows);
	call_list(c, items, "");
}

struct v1_adding {
	struct package_job job;
	struct call *call;
	struct event_stream event_stream;
	int streaming;
};

static void packages_added(struct package_job *j, const struct packages_failure *f)
{
	struct v1_adding *a = j->user;
	struct call *c = a->call;
	json_t *doc = f ? packages_failure_json(f) : packages_report(j);

	if (a->streaming) {
		json_object_set_new(doc, "type", json_string(f ? "error" : "done"));
		event_stream_event(&a->event_stream, doc);
		event_stream_end(&a->event_stream);
	} else {
		call_json(c, f ? 422 : 200, doc);
	}
}

static void adding_said(struct package_job *j, const char *manager, unsigned stream,
			const char *bytes, size_t n)
{
	struct v1_adding *a = j->user;

	if (a->streaming)
		event_stream_event(&a->event_stream, packages_said_json(manager, stream, bytes, n));
}

static void adding_dropped(struct call *c)
{
	packages_job_fini(&((struct v1_adding *)c->state)->job);
}

void packages_add_set(struct call *c)
{
	struct v1_adding *a = call_alloc(c, sizeof(*a));
	enum event_stream_kind kind = event_stream_wanted(c);
	struct err e;
	int known;

	*a = (struct v1_adding){
		.call = c, .job = { .api = c->api, .done = packages_added, .said = adding_said }
	};
	a->job.user = a;
	c->state = a;
	c->drop = adding_dropped;
	if (packages_read(&a->job, call_get(c, "packages"), NULL, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (!quota_box(c))
		return;
	known = packages_begin(&a->job, c->api, c->who.team, &e);
	if (known < 0) {
		json_t *refusal = packages_refusal_json(&e);

		if (refusal)
			call_json(c, 422, refusal);
		else
			call_fail(c, &e);
		return;
	}
	if (kind != EVENT_STREAM_NONE) {
		event_stream_begin(&a->event_stream, c->req, kind);
		a->streaming = 1;
	}
	if (known)
		packages_added(&a->job, NULL);
}

static int packages_find(struct call *c, struct store_set *out)
{
	struct err e;

	if (!packages_operates(c))
		return 0;
	if (store_set_get(c->api->store, call_param(c, 0), out, &e) == 0)
		return 1;
	call_error(c, 404, "not_found", "there is no such set of packages", call_param(c, 0),
		   "list them: GET /v1/packages");
	return 0;
}

void packages_show(struct call *c)
{
	struct store_set s;

	if (!packages_find(c, &s))
		return;
	call_json(c, 200, set_json(&s));
	store_set_fini(&s);
}

struct packages_check { /* a request to the keeper about a layer */
	struct api *api;
	struct call *call; /* NULL: the client has disconnected */
	char layer[STORE_HASH + 1];
	int drops;
};

static void asker_left(struct call *c)
{
	((struct packages_check *)c->state)->call = NULL;
}

static void packages_answered(void *ctx, const struct frame *f, size_t len, int *fd,
			      const struct err *e)
{
	struct packages_check *a = ctx;
	struct call *c = a->call;
	const struct wire_layer *l = (const struct wire_layer *)f;

	(void)len;
	(void)fd;
	if (c) {
		c->drop = NULL;
		c->state = NULL;
	}
	/* The layer was deleted, is missing or has changed: no box may get it. */
	if (a->drops ? (f || e->kind == ERR_NOT_FOUND)
		     : (!f && (e->kind == ERR_NOT_FOUND || e->kind == ERR_CONFLICT)))
		packages_forget(&a->api->fleet, a->layer);
	if (c && a->drops && (f || e->kind == ERR_NOT_FOUND))
		call_empty(c, 204);
	else if (c && e)
		call_fail(c, e);
	else if (c)
		call_json(c, 200,
			  json_pack("{s:s, s:I, s:I, s:b}", "layer", a->layer, "bytes",
				    (json_int_t)l->bytes, "files", (json_int_t)l->files, "good",
				    1));
	free(a);
}

static void packages_ask(struct call *c, uint8_t type, uint8_t want)
{
	struct wire_layer f = { .head.type = type };
	struct packages_check *a;
	struct store_set s;

	if (!packages_find(c, &s))
		return;
	a = calloc(1, sizeof(*a));
	if (!a)
		abort();
	*a = (struct packages_check){ .api = c->api, .call = c, .drops = type == WIRE_LAYER_DROP };
	memcpy(a->layer, s.layer, sizeof(a->layer));
	snprintf(f.id, sizeof(f.id), "%s", s.layer);
	store_set_fini(&s);
	c->state = a;
	c->drop = asker_left;
	keeper_client_request(&c->api->fleet.keeper, &f, sizeof(f), want, packages_answered, a);
}

void packages_delete(struct call *c)
{
	packages_ask(c, WIRE_LAYER_DROP, WIRE_DONE);
}

void packages_check(struct call *c)
{
	packages_ask(c, WIRE_LAYER_CHECK, WIRE_LAYER);
}
