/* candidate_search.c - see candidate_search.h. */
#include "repair/candidate_search.h"
#include "repair/repair_programs.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

enum {
	SEARCH_MS = 30000,
	CANDIDATES = 3000, /* for a search that generates its own edits */
	LIMIT_MS = 500,    /* of a candidate */
};

void candidate_search_stop(struct candidate_search *s)
{
	if (s->flying)
		batch_job_fini(&s->job);
	s->flying = 0;
	buf_fini(&s->line);
}

/* ---- what it says ---- */

/* Does the message name an edit that was not given, or its own edit although some were given? */
static int is_unknown(const struct candidate_search *s, struct search_msg *x)
{
	unsigned given = s->what->given->n;

	if (x->kind != SEARCH_MSG_FOUND || (x->has_edit ? !given : x->n < given))
		return 0;
	edit_fini(&x->edit);
	return 1;
}

static void candidate_hear(struct candidate_search *s, const char *line, size_t n)
{
	const struct candidate_search_spec *what = s->what;
	struct search_msg x;
	struct err e;

	if (search_msg_parse(&x, line, n, what->source, what->source_len, &e) < 0 ||
	    is_unknown(s, &x)) {
		s->mute = 1;
		what->lied(s);
		return;
	}
	s->tried = x.tried ? x.tried : s->tried;
	if (x.kind == SEARCH_MSG_CANDIDATES) {
		s->candidates = x.n > s->candidates ? x.n : s->candidates;
	} else if (x.kind == SEARCH_MSG_AT) {
		s->at = x.n;
	} else if (x.kind == SEARCH_MSG_OVER) {
		s->over = 1;
		s->complete = !x.cut;
	} else if (x.kind == SEARCH_MSG_FOUND) {
		what->found(s, x.n, x.acts, x.has_edit ? &x.edit : NULL);
	}
}

static void candidate_said(struct batch_job *j, const char *what, unsigned stream,
			   const char *bytes, size_t n)
{
	struct candidate_search *s = loop_owner(j, struct candidate_search, job);
	size_t from = 0;
	char *end;

	(void)what;
	if (stream != 0 || s->mute)
		return;
	buf_add(&s->line, bytes, n);
	while (!s->mute && (end = memchr(s->line.p + from, '\n', s->line.len - from))) {
		candidate_hear(s, s->line.p + from, (size_t)(end - s->line.p) - from);
		from = (size_t)(end - s->line.p) + 1;
	}
	memmove(s->line.p, s->line.p + from, s->line.len - from);
	buf_cut(&s->line, s->line.len - from);
	if (s->line.len > SEARCH_MSG_LINE)
		s->mute = 1;
	s->what->on_progress(s);
}

static void candidate_done(struct batch_job *j, const struct batch_job_end *end)
{
	struct candidate_search *s = loop_owner(j, struct candidate_search, job);
	char why[160] = "";

	if (end->verdict == VERDICT_ERROR)
		snprintf(why, sizeof(why), "a search: %.120s", end->e.msg);
	else if (!s->over)
		snprintf(why, sizeof(why),
			 "no change was found, and not all were tried: a search ended (%s)",
			 why_name(end->why));
	candidate_box_ended(s->what->candidate_box, j, end);
	candidate_search_stop(s);
	s->what->ended(s, why);
}

/* ---- what it is asked ---- */

json_t *candidate_search_edit(const struct edit *x)
{
	return json_pack("[I, I, s%]", (json_int_t)x->at, (json_int_t)x->cut, x->text, x->len);
}

static json_t *ask_of(const struct candidate_search_spec *what, unsigned shard)
{
	json_t *edits = json_array();

	for (unsigned i = 0; i < what->given->n; i++)
		json_array_append_new(edits, candidate_search_edit(&what->given->v[i]));
	return json_pack("{s:s, s:s, s:O, s:o, s:i, s:i, s:i, s:i}", "source", what->source, "name",
			 doc_text(what->candidate_box->artifact, "entry"), "examples", what->shown,
			 "edits", edits, "shard", (int)shard, "shards", (int)what->shards, "most",
			 CANDIDATES, "limit_ms", LIMIT_MS);
}

json_t *candidate_search_item(const struct candidate_box *s, const json_t *examples, uint32_t ms,
			      json_t *take_ask)
{
	json_t *item = candidate_box_item(s, ms), *files = json_object_get(item, "files"), *one;
	const char *language = doc_text(s->artifact, "language");
	auto_free char *text = json_dumps(take_ask, JSON_COMPACT);
	size_t i;

	json_array_foreach(examples, i, one)
	{
		if (*doc_text(one, "path"))
			json_object_set(files, doc_text(one, "path"),
					json_object_get(one, "content"));
	}
	json_decref(take_ask);
	json_object_set_new(item, "language", json_string(program_runner(language)));
	json_object_set_new(item, "code", json_string(program_search(language)));
	json_object_set_new(item, "entry", json_string(".search"));
	json_object_set_new(item, "stdin", json_string(text ? text : ""));
	return item;
}

int candidate_search_start(struct candidate_search *s, const struct candidate_search_spec *what,
			   unsigned shard, struct err *e)
{
	json_t *item = candidate_search_item(what->candidate_box, what->shown, SEARCH_MS,
					     ask_of(what, shard));

	*s = (struct candidate_search){ .what = what,
					.job = { .done = candidate_done,
						 .said = candidate_said,
						 .fleet = what->candidate_box->fleet } };
	s->flying = candidate_box_start(what->candidate_box, &s->job, item, 0, e) == 0;
	return s->flying ? 0 : -1;
}
