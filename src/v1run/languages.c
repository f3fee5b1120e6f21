/* languages.c - see languages.h.
 *
 * The server cannot execute programs, and the versions inside a box are what matters. So one
 * program runs the version commands of all languages in a box, once; requests that arrive in the
 * meantime wait for the same result. */
#include "v1run/languages.h"
#include "base/cleanup.h"
#include "fleet/box.h"
#include "fleet/exec_reader.h"
#include "fleet/isolation.h"
#include "lang/lang_json.h"
#include "store/teams.h"

#include <stdio.h>
#include <string.h>

enum { SURVEY_MS = 60000, SAID_MAX = 64 * 1024 };
#define SURVEY_MEMORY (UINT64_C(1) << 30)

struct survey {
	struct api *api;
	struct box_wait made;
	struct exec_reader reader;
	int tapped, asking;
	int usual_memory; /* this host enforces no memory limits: a box cannot have one of its own */
	char box[ID_MAX + 1];
	struct buf said;
	json_t *answer; /* NULL until the box has answered */
	struct execs_waiting {
		struct execs_waiting *next;
		struct call *call;
	} * waiting;
};

static struct survey *survey_of(struct api *a)
{
	if (a->survey)
		return a->survey;
	a->survey = calloc(1, sizeof(*a->survey));
	if (!a->survey)
		abort();
	a->survey->api = a;
	return a->survey;
}

/* ---- output of the survey ---- */

/* "python\tPython 3.11.2\n": a line per row, in the order of the rows. */
static const char *version_of(void *ctx, unsigned i)
{
	static char version[LANG_VERSION + 1];
	const struct survey *s = ctx;
	const char *name = lang_at(i)->name, *at = buf_str(&s->said), *end;
	size_t n = strlen(name);

	for (; *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, '\n');
		if ((size_t)(end - at) <= n || memcmp(at, name, n) != 0 || at[n] != '\t')
			continue;
		lang_version_in(at + n + 1, (size_t)(end - at) - n - 1, version);
		return version;
	}
	return NULL;
}

/* "kernels\t[...]\n": the kernels that the driver of Jupyter kernels finds in a box. */
static json_t *kernels_of(const struct survey *s)
{
	const char *at = strstr(buf_str(&s->said), "\nkernels\t");
	json_t *list = at ? json_loadb(at + 9, strcspn(at + 9, "\n"), 0, NULL) : NULL;

	if (json_is_array(list))
		return list;
	json_decref(list);
	return json_array();
}

static void languages_tell(struct survey *s, const struct err *e)
{
	struct execs_waiting *all = s->waiting;

	s->waiting = NULL;
	s->asking = 0;
	while (all) {
		struct call *c = all->call;

		all = all->next; /* it is freed with its call */
		c->drop = NULL;
		if (e)
			call_fail(c, e);
		else
			call_json(c, 200, json_incref(s->answer));
	}
}

static void end_box(struct survey *s)
{
	struct box *b = s->box[0] ? fleet_find(&s->api->fleet, s->box) : NULL;

	s->box[0] = 0;
	if (b)
		box_end(b, CAUSE_EXIT, NULL);
}

/* ---- the survey ---- */

static void languages_said(struct exec_reader *t, unsigned stream, uint64_t offset,
			   const char *bytes, size_t n)
{
	struct survey *s = loop_owner(t, struct survey, reader);

	(void)offset;
	if (stream == 0 && s->said.len + n < SAID_MAX)
		buf_add(&s->said, bytes, n);
}

static void survey_on_exit(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct survey *s = loop_owner(t, struct survey, reader);

	(void)record; /* versions that are missing in the output become null */
	s->tapped = 0;
	if (!e)
		s->answer = lang_json_all(version_of, s, kernels_of(s));
	end_box(s);
	languages_tell(s, e);
}

static const struct exec_reader_events reader_on = { .output = languages_said,
						     .over = survey_on_exit };

/* Arguments of the table contain no quotes; a unit test checks them all. */
static void languages_script(struct buf *out)
{
	for (unsigned i = 0; i < lang_count(); i++) {
		const struct lang *l = lang_at(i);

		if (!lang_present(l))
			continue;
		/* The shell's error message about a missing command also contains a number. */
		buf_printf(out, "printf '%s\\t'; said=$(", l->name);
		for (const char *const *w = l->version; *w; w++)
			buf_printf(out, "'%s' ", *w);
		buf_puts(
			out,
			"2>&1 </dev/null) && printf '%s\\n' \"$said\" | head -n 3 | tr '\\n' ' '; echo\n");
	}
	buf_puts(out, "printf 'kernels\\t'; /opt/atoll/bin/jupyter --list\n");
}

static void languages_ask(struct survey *s, struct box *b)
{
	auto_buf struct buf text = { 0 };
	const char *argv[] = { "/bin/sh", "-c", NULL, NULL };
	struct exec_spec want = { .argv = argv,
				  .kind = STORE_RUN_ONCE,
				  .wall_ms = (uint32_t)isolation_usual_ms(&b->row, SURVEY_MS),
				  .replay_of = "",
				  .helper = 1 };
	struct exec *r;
	struct err e;

	languages_script(&text);
	argv[2] = buf_str(&text);
	buf_cut(&s->said, 0);
	exec_reader_init(&s->reader, &s->api->fleet, &reader_on);
	if (exec_launch(b, &want, &s->reader, &r, &e) < 0) {
		end_box(s);
		languages_tell(s, &e);
		return;
	}
	s->tapped = 1;
}

static void languages_begin(struct survey *s);

static void box_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct survey *s = loop_owner(w, struct survey, made);

	if (e && e->kind == ERR_DENIED && !s->usual_memory) {
		s->usual_memory = 1;
		languages_begin(s);
		return;
	}
	if (e) {
		languages_tell(s, e);
		return;
	}
	snprintf(s->box, sizeof(s->box), "%s", b->row.id);
	languages_ask(s, b);
}

static void languages_begin(struct survey *s)
{
	struct fleet *f = &s->api->fleet;
	struct box_spec want = { .limits = f->conf.limits,
				 .row = { .lifetime_ms = 2 * ISOLATION_EMULATED_TIMES * SURVEY_MS,
					  .retention_ms = f->conf.retention_ms,
					  .metadata = "{\"" BOX_EPHEMERAL "\":\"1\"}" } };
	struct box *b;
	struct err e;

	snprintf(want.row.team, sizeof(want.row.team), "%s", TEAM_DEFAULT);
	snprintf(want.row.template, sizeof(want.row.template), "%s", "base");
	if (!s->usual_memory)
		want.limits.mem_bytes = SURVEY_MEMORY;
	want.is_own = 1;
	want.continues = 1;
	s->asking = 1;
	s->made.done = box_made;
	if (box_create(f, &want, &s->made, &b, &e) < 0)
		languages_tell(s, &e);
}

/* ---- the route ---- */

static void client_left(struct call *c)
{
	struct survey *s = c->api->survey;
	struct execs_waiting **at = s ? &s->waiting : NULL;

	if (!s) /* the daemon ends */
		return;
	while (*at && (*at)->call != c)
		at = &(*at)->next;
	if (*at)
		*at = (*at)->next;
}

void languages_list(struct call *c)
{
	struct survey *s = survey_of(c->api);
	struct execs_waiting *w;

	if (s->answer) {
		call_json(c, 200, json_incref(s->answer));
		return;
	}
	w = call_alloc(c, sizeof(*w));
	*w = (struct execs_waiting){ .next = s->waiting, .call = c };
	s->waiting = w;
	c->drop = client_left;
	if (!s->asking)
		languages_begin(s);
}

void languages_fini(struct api *a)
{
	struct survey *s = a->survey;

	if (!s)
		return;
	if (s->tapped)
		exec_reader_close(&s->reader);
	box_wait_cancel(&s->made);
	json_decref(s->answer);
	buf_fini(&s->said);
	free(s);
	a->survey = NULL;
}
