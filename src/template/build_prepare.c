/* build_prepare.c - builds of templates that come with the server, without a request for one: at the first
 * use of a template, and at the start of the daemon for those of templates.prepare, one after another.
 * See build_internal.h. */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "store/teams.h"
#include "template/shipped.h"
#include "template/templates.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	RETRY_S = 300,     /* after a failure, a use of the template does not begin another build */
	PREPARED_POOL = 2, /* boxes of a prepared template that wait, unless it has a pool */
	NEXT_MS = 1,
};

/* ---- one build ---- */

/* The newest build of the template; 1: there is one. */
static int prepare_newest(struct builds *b, const char *template, struct store_build *out)
{
	struct store_builds rows = { 0 };
	struct err e;

	if (store_build_list(b->fleet->store, NULL, template, 1, &rows, &e) < 0 || rows.n == 0) {
		store_builds_fini(&rows);
		return 0;
	}
	*out = rows.v[0];
	rows.v[0] = (struct store_build){ 0 };
	store_builds_fini(&rows);
	return 1;
}

static int prepare_same(const struct store_build *row, const struct shipped_template *t)
{
	json_t *now = NULL, *then = row->definition ? json_loads(row->definition, 0, NULL) : NULL;
	struct err e;
	int same = then && shipped_template_definition(t, &now, &e) == 0 && json_equal(then, now);

	json_decref(then);
	json_decref(now);
	return same;
}

/* 1: a build of the template waits or runs; out has its id. -1: the last one has just failed. */
static int prepare_running(struct builds *b, const struct store_template *t,
			   char out[STORE_BUILD_ID + 1], struct err *e)
{
	struct store_build row;
	json_t *reason;
	int64_t ago_s;
	int found = 0;

	if (!prepare_newest(b, t->id, &row))
		return 0;
	ago_s = (fleet_now_ns() - row.ended_ns) / 1000000000;
	if (row.state == STORE_BUILD_WAITING || row.state == STORE_BUILD_BUILDING) {
		snprintf(out, STORE_BUILD_ID + 1, "%s", row.id);
		found = 1;
	} else if (row.state == STORE_BUILD_ERROR && ago_s < RETRY_S) {
		reason = row.reason ? json_loads(row.reason, 0, NULL) : NULL;
		found = err_set(e, ERR_CONFLICT,
				"the build of template '%s' failed %lld s ago: %.100s; build it "
				"again: atoll template build %s",
				t->name, (long long)ago_s, build_text(reason, "message"), t->name);
		json_decref(reason);
	}
	store_build_fini(&row);
	return found;
}

static int prepare_possible(const struct builds *b, const struct shipped_template *t, struct err *e)
{
	json_t *missing = shipped_template_missing(t, &b->fleet->conf.packages.install);
	int rc = 0;

	if (json_array_size(missing))
		rc = err_set(e, ERR_CONFLICT, "template '%s' is not built, and cannot be: %.120s",
			     t->name, json_string_value(json_array_get(missing, 0)));
	json_decref(missing);
	return rc;
}

static int prepare_begin(struct builds *b, const struct shipped_template *t, const char *team,
			 char out[STORE_BUILD_ID + 1], struct err *e)
{
	struct build_request want = { .team = team, .name = t->name };
	struct store_build row = { 0 };
	json_t *definition = NULL;
	struct err ignored;
	int rc = -1;

	if (shipped_template_upload(t, b, team, e) == 0 &&
	    shipped_template_definition(t, &definition, e) == 0 &&
	    build_create(b, &want, &row, e) == 0) {
		snprintf(out, STORE_BUILD_ID + 1, "%s", row.id);
		rc = build_begin(b, row.id, definition, NULL, 0, e);
		if (rc < 0)
			(void)!build_cancel(b, row.id, &ignored);
	}
	json_decref(definition);
	store_build_fini(&row);
	return rc;
}

int template_build_shipped(struct builds *b, const struct shipped_template *t, const char *team,
			   char out_build[STORE_BUILD_ID + 1], struct err *e)
{
	struct store_template row = { 0 };
	int running = 0;

	if (store_template_find(b->fleet->store, team, t->name, &row, e) == 0) {
		running = prepare_running(b, &row, out_build, e);
		store_template_fini(&row);
	} else if (e->kind != ERR_NOT_FOUND) {
		return -1;
	}
	if (running)
		return running < 0 ? -1 : 0;
	if (prepare_possible(b, t, e) < 0)
		return -1;
	return prepare_begin(b, t, team, out_build, e);
}

/* 1: the team has built something else under this name. */
static int prepare_is_own(struct builds *b, const char *team, const struct shipped_template *t)
{
	struct store_template row = { 0 };
	struct store_build newest = { 0 };
	struct err e;
	int own = 0;

	if (store_template_find(b->fleet->store, team, t->name, &row, &e) < 0)
		return 0;
	if (!strcmp(row.team, team) && prepare_newest(b, row.id, &newest))
		own = !prepare_same(&newest, t);
	store_build_fini(&newest);
	store_template_fini(&row);
	return own;
}

int template_first_use(struct builds *b, const char *team, const char *reference, struct err *e)
{
	char build[STORE_BUILD_ID + 1];
	const struct shipped_template *t;
	struct template_reference r;
	struct err own;

	if (e->kind != ERR_CONFLICT || template_reference_parse(reference, NULL, &r, &own) < 0)
		return -1;
	t = strcmp(r.tag, TEMPLATE_TAG) == 0 ? shipped_template_find(r.name) : NULL;
	if (!t || prepare_is_own(b, team, t))
		return -1;
	if (template_build_shipped(b, t, team, build, e) < 0)
		return -1;
	err_set(e, ERR_CONFLICT,
		"template '%s' is being built, by build %s: create the box again when it is ready",
		t->name, build);
	e->sys = EINPROGRESS;
	return -1;
}

/* ---- templates.prepare ---- */

int build_prepare_check(const struct builds_conf *conf, struct err *e)
{
	auto_buf struct buf names = { 0 };

	for (const char *const *p = conf->prepare; p && *p; p++) {
		if (shipped_template_find(*p))
			continue;
		for (const struct shipped_template *t = shipped_templates;
		     t < shipped_templates_end; t++)
			buf_printf(&names, "%s%s", names.len ? ", " : "", t->name);
		return err_set(
			e, ERR_INVALID,
			"templates.prepare: no template '%.40s' comes with the server; there "
			"are %.150s",
			*p, buf_str(&names));
	}
	return 0;
}

/* 1: team default has a template of this name. */
static int prepare_row(struct builds *b, const char *name, struct store_template *out)
{
	struct err e;

	if (store_template_find(b->fleet->store, TEAM_DEFAULT, name, out, &e) < 0)
		return 0;
	if (strcmp(out->team, TEAM_DEFAULT) == 0)
		return 1;
	store_template_fini(out);
	return 0;
}

/* 1: it was built over the packages that the host has now. */
static int prepare_same_host(const struct store_build *row)
{
	json_t *progress = row->progress ? json_loads(row->progress, 0, NULL) : NULL;
	const json_t *stage;
	char name[12], host[BUILD_HOST];
	int same;

	snprintf(name, sizeof(name), "%d",
		 (int)json_integer_value(json_object_get(progress, "stage")));
	stage = json_object_get(json_object_get(progress, "stages"), name);
	build_host(host);
	same = !json_is_true(json_object_get(stage, "base")) ||
	       !strcmp(build_text(stage, "host"), host);
	json_decref(progress);
	return same;
}

/* 1: `default` names a build of the definition that this server has. */
static int prepare_is_current(struct builds *b, const struct store_template *t,
			      const struct shipped_template *shipped)
{
	struct store_build row;
	struct store_tag tag;
	struct err e;
	int same;

	if (store_tag_get(b->fleet->store, t->id, TEMPLATE_TAG, &tag, &e) < 0 ||
	    store_build_get(b->fleet->store, tag.build, &row, &e) < 0)
		return 0;
	same = prepare_same(&row, shipped) && prepare_same_host(&row);
	store_build_fini(&row);
	return same;
}

/* Its row: every team may use the template, and boxes of it wait. */
static void prepare_share(struct builds *b, const char *name, int built)
{
	struct store_template t = { 0 };
	struct err e;

	if (!prepare_row(b, name, &t))
		return;
	if (!t.public || (built && !t.pool)) {
		t.public = 1;
		t.pool = built && !t.pool ? PREPARED_POOL : t.pool;
		t.updated_ns = fleet_now_ns();
		if (store_template_update(b->fleet->store, &t, &e) < 0)
			log_warn("cannot prepare a template", LOG_S("template", name), LOG_E(&e));
	}
	if (built)
		template_prepare(b, &t);
	store_template_fini(&t);
}

/* 1: the build was begun, or runs already; p->wait waits for it. */
static int prepare_one(struct build_prepare *p, const char *name)
{
	struct builds *b = loop_owner(p, struct builds, prepare);
	const struct shipped_template *shipped = shipped_template_find(name);
	char build[STORE_BUILD_ID + 1];
	struct store_template t = { 0 };
	struct err e;
	int current = 0;

	if (prepare_row(b, name, &t)) {
		current = prepare_is_current(b, &t, shipped);
		store_template_fini(&t);
	}
	if (current) {
		prepare_share(b, name, 1);
		return 0;
	}
	if (template_build_shipped(b, shipped, TEAM_DEFAULT, build, &e) < 0) {
		log_warn("cannot prepare a template", LOG_S("template", name), LOG_E(&e));
		return 0;
	}
	prepare_share(b, name, 0);
	log_info("preparing a template", LOG_S("template", name), LOG_S("build", build));
	return build_await(b, build, &p->wait);
}

static void prepare_next(struct timer *t)
{
	struct build_prepare *p = loop_owner(t, struct build_prepare, next);
	const struct builds *b = loop_owner(p, struct builds, prepare);
	const char *name;

	while (b->conf.prepare && (name = b->conf.prepare[p->at]) != NULL) {
		p->at++;
		if (prepare_one(p, name))
			return;
	}
}

/* Not from here: the build is being freed. */
static void prepare_news(struct build_wait *w)
{
	struct build_prepare *p = loop_owner(w, struct build_prepare, wait);
	struct builds *b = loop_owner(p, struct builds, prepare);

	if (w->build)
		return;
	prepare_share(b, b->conf.prepare[p->at - 1], 1);
	timer_set(&p->next, NEXT_MS);
}

void build_prepare_init(struct builds *b)
{
	b->prepare.wait.news = prepare_news;
	timer_init(&b->prepare.next, b->fleet->loop, prepare_next);
}

void build_prepare_begin(struct builds *b)
{
	b->prepare.at = 0;
	timer_set(&b->prepare.next, NEXT_MS);
}

void build_prepare_fini(struct builds *b)
{
	build_wait_cancel(&b->prepare.wait);
	timer_fini(&b->prepare.next);
}
