/* overfit_check.c - see overfit_check.h. */
#include "repair/overfit_check.h"
#include "repair/repair_programs.h"
#include "repair/candidate_search.h"
#include "base/cleanup.h"
#include "lang/lang.h"

#include <stdio.h>
#include <string.h>

enum {
	OVERFIT_MS = 45000,
	TRIED_MOST = 2000, /* of generated edits */
	LIMIT_MS = 500,    /* of each */
	SAID = 64 * 1024,
};

int overfit_check_possible(const char *language)
{
	return program_search(language) != NULL;
}

/* ---- what is asked ---- */

/* All edits of the repaired program; the Python search generates its own. -1: too many. */
static int edits_of(const char *language, const struct buf *text, json_t **out)
{
	const struct lang *l = lang_named(language);
	struct mutations all = { 0 };
	int cut;

	*out = json_array();
	if (l && mutate_knows(l->name))
		mutate_make(&all, l->name, text->p, text->len, TRIED_MOST);
	for (unsigned i = 0; i < all.n; i++)
		json_array_append_new(*out, candidate_search_edit(&all.v[i]));
	cut = all.cut;
	mutations_fini(&all);
	return cut ? -1 : 0;
}

static json_t *ask_of(const struct candidate_box *s, const json_t *examples, const struct edit *x,
		      const struct buf *text, json_t *take_edits)
{
	return json_pack("{s:s, s:s, s:O, s:o, s:[I, I], s:s, s:i, s:i, s:i}", "source",
			 buf_str(text), "name", doc_text(s->artifact, "entry"), "examples",
			 examples, "edits", take_edits, "patch", (json_int_t)x->at,
			 (json_int_t)x->len, "rule", x->rule, "shard", 0, "shards", 1, "limit_ms",
			 LIMIT_MS);
}

/* ---- the report ---- */

/* 1: it was the last line. */
static int read_line(const json_t *line, char out_why[OVERFIT_CHECK_REASON])
{
	if (*doc_text(line, "doubt"))
		snprintf(out_why, OVERFIT_CHECK_REASON, "%s", doc_text(line, "doubt"));
	else if (json_object_get(line, "found") && !*out_why)
		snprintf(out_why, OVERFIT_CHECK_REASON,
			 "the examples pass as well with another change of the same line");
	return json_is_true(json_object_get(line, "over"));
}

void overfit_check_read(const char *said, size_t n, char out_why[OVERFIT_CHECK_REASON])
{
	const char *end;
	int over = 0;

	*out_why = '\0';
	while (!over && n && (end = memchr(said, '\n', n))) {
		json_t *line = json_loadb(said, (size_t)(end - said), 0, NULL);

		over = read_line(line, out_why);
		json_decref(line);
		n -= (size_t)(end - said) + 1;
		said = end + 1;
	}
	if (!over && !*out_why)
		snprintf(out_why, OVERFIT_CHECK_REASON,
			 "not everything that could stand there was tried");
}

static void job_done(struct batch_job *j, const struct batch_job_end *end)
{
	struct overfit_check *d = loop_owner(j, struct overfit_check, job);

	overfit_check_read(j->out[0].p, j->out[0].len, d->why);
	d->flying = 0;
	candidate_box_ended(d->candidate_box, j, end);
	batch_job_fini(j);
	d->done(d, d->why);
}

void overfit_check_start(struct overfit_check *d, const struct candidate_box *s,
			 const json_t *examples, const struct edit *x, const char *source, size_t n)
{
	auto_buf struct buf text = { 0 };
	json_t *edits;
	struct err e;

	d->candidate_box = s;
	d->job = (struct batch_job){ .done = job_done, .fleet = s->fleet };
	edit_apply(x, source, n, &text);
	if (edits_of(doc_text(s->artifact, "language"), &text, &edits) < 0) {
		json_decref(edits);
		snprintf(d->why, sizeof(d->why),
			 "there are more than %d other changes, and not all were tried",
			 TRIED_MOST);
		d->done(d, d->why);
		return;
	}
	d->flying = candidate_box_start(s, &d->job,
					candidate_search_item(s, examples, OVERFIT_MS,
							      ask_of(s, examples, x, &text, edits)),
					SAID, &e) == 0;
	if (d->flying)
		return;
	snprintf(d->why, sizeof(d->why), "not checked: %.200s", e.msg);
	d->done(d, d->why);
}

void overfit_check(struct overfit_check *d, uint64_t now_ms)
{
	if (d->flying)
		batch_job_check(&d->job, now_ms);
}

void overfit_check_fini(struct overfit_check *d)
{
	if (d->flying)
		batch_job_fini(&d->job);
	d->flying = 0;
}
