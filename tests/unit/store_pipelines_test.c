/* Rows of pipelines, their documents, events and lessons. */
#include "base/cleanup.h"
#include "store/agents.h"
#include "store/pipelines.h"
#include "store_rows.h"

static struct store_pipeline row(const char *id, int64_t at)
{
	struct store_pipeline p = {
		.team = "blue", .who = "key", .created_ns = at, .title = "a task"
	};

	snprintf(p.id, sizeof(p.id), "%s", id);
	return p;
}

TEST(a_pipeline_is_read_as_it_was_written)
{
	struct store_pipeline p = row("aaaaaaaaaaaa", 5), got;
	struct store_pipelines live;

	STORE(s, dir);
	CHECK_OK(store_pipeline_insert(s, &p, &err));
	CHECK_ERR(store_pipeline_insert(s, &p, &err), ERR_CONFLICT);
	CHECK_OK(store_pipeline_live(s, &live, &err));
	CHECK_INT(live.n, 1);
	store_pipelines_fini(&live);
	p.state = STORE_PIPELINE_FINISHED;
	p.ended_ns = 9;
	snprintf(p.outcome, sizeof(p.outcome), "verified");
	snprintf(p.category, sizeof(p.category), "typo");
	p.attempts = 2;
	p.us[STORE_STAGE_DEBUG] = 7;
	p.cost_micro = 11;
	p.overfit = 1;
	CHECK_OK(store_pipeline_update(s, &p, &err));
	CHECK_OK(store_pipeline_get(s, "aaaaaaaaaaaa", &got, &err));
	CHECK_INT(got.state, STORE_PIPELINE_FINISHED);
	CHECK_STR(got.title, "a task");
	CHECK_STR(got.outcome, "verified");
	CHECK_STR(got.category, "typo");
	CHECK_INT(got.attempts, 2);
	CHECK_INT(got.us[STORE_STAGE_DEBUG], 7);
	CHECK_INT(got.cost_micro, 11);
	CHECK_INT(got.overfit, 1);
	CHECK_OK(store_pipeline_live(s, &live, &err));
	CHECK_INT(live.n, 0);
	store_pipelines_fini(&live);
	CHECK_OK(store_pipeline_old(s, "blue", 10, &live, &err));
	CHECK_INT(live.n, 1);
	store_pipelines_fini(&live);
	CHECK_ERR(store_pipeline_get(s, "bbbbbbbbbbbb", &got, &err), ERR_NOT_FOUND);
}

TEST(the_number_of_a_document_is_unique)
{
	struct store_pipeline p = row("aaaaaaaaaaaa", 5);
	struct store_doc one = { .seq = 1, .kind = "task", .json = (char *)"{}" },
			 two = { .seq = 2,
				 .kind = "artifact",
				 .attempt = 1,
				 .json = (char *)"{\"a\":1}" },
			 got;
	struct store_docs all;
	uint32_t last;

	STORE(s, dir);
	CHECK_OK(store_pipeline_insert(s, &p, &err));
	CHECK_OK(store_doc_add(s, p.id, &one, &err));
	CHECK_OK(store_doc_add(s, p.id, &two, &err));
	CHECK_ERR(store_doc_add(s, p.id, &two, &err), ERR_CONFLICT);
	CHECK_OK(store_doc_list(s, p.id, &all, &err));
	CHECK_INT(all.n, 2);
	CHECK_STR(all.v[0].kind, "task");
	CHECK_STR(all.v[1].json, "{\"a\":1}");
	store_docs_fini(&all);
	CHECK_OK(store_doc_last(s, p.id, "artifact", 1, &got, &err));
	CHECK_INT(got.seq, 2);
	store_doc_fini(&got);
	CHECK_ERR(store_doc_last(s, p.id, "artifact", 2, &got, &err), ERR_NOT_FOUND);
	CHECK_OK(store_pipeline_event_add(s, p.id, 1, "{}", &err));
	CHECK_OK(store_pipeline_event_add(s, p.id, 2, "{\"b\":2}", &err));
	CHECK_OK(store_pipeline_event_last(s, p.id, &last, &err));
	CHECK_INT(last, 2);
	CHECK_OK(store_pipeline_events(s, p.id, 1, 10, &all, &err));
	CHECK_INT(all.n, 1);
	CHECK_STR(all.v[0].json, "{\"b\":2}");
	store_docs_fini(&all);
	CHECK_OK(store_pipeline_remove(s, p.id, &err));
	CHECK_OK(store_doc_list(s, p.id, &all, &err));
	CHECK_INT(all.n, 0);
	store_docs_fini(&all);
	CHECK_ERR(store_pipeline_remove(s, p.id, &err), ERR_NOT_FOUND);
}

TEST(lessons_are_found_by_words_and_belong_to_a_team)
{
	struct store_lessons got;

	STORE(s, dir);
	CHECK_OK(store_lesson_add(s, "blue", "r", "sort a table of names", "typo", "line 3 changed",
				  &err));
	CHECK_OK(store_lesson_add(s, "red", "r", "sort a table of names", "typo", "of others",
				  &err));
	CHECK_OK(store_lesson_find(s, "blue", "how to sort NAMES \" OR team:red * (", 5, &got,
				   &err));
	CHECK_INT(got.n, 1);
	CHECK_STR(got.v[0].fix, "line 3 changed");
	CHECK_STR(got.v[0].category, "typo");
	store_lessons_fini(&got);
	CHECK_OK(store_lesson_find(s, "blue", "nothing alike", 5, &got, &err));
	CHECK_INT(got.n, 0);
	store_lessons_fini(&got);
	CHECK_OK(store_lesson_find(s, "blue", "\"*(", 5, &got, &err));
	CHECK_INT(got.n, 0);
	CHECK_OK(store_lesson_forget(s, "blue", &err));
	CHECK_OK(store_lesson_find(s, "blue", "sort names", 5, &got, &err));
	CHECK_INT(got.n, 0);
	CHECK_OK(store_lesson_find(s, "red", "sort names", 5, &got, &err));
	CHECK_INT(got.n, 1);
	store_lessons_fini(&got);
}

TEST(a_team_without_settings_has_no_policy)
{
	struct store_team team = { .name = "blue" };
	struct store_policy p = { .scan = "warn", .forgetful = 1 };

	STORE(s, dir);
	CHECK_OK(store_policy_get(s, "blue", &p, &err));
	CHECK_STR(p.scan, "");
	CHECK_INT(p.forgetful, 0);
	CHECK(store_policy_put(s, "blue", &p, &err) < 0); /* there is no such team */
	CHECK_OK(store_team_put(s, &team, &err));
	for (int i = 0; i < 2; i++) {
		snprintf(p.scan, sizeof(p.scan), "%s", i ? "off" : "warn");
		p.forgetful = i;
		CHECK_OK(store_policy_put(s, "blue", &p, &err));
		CHECK_OK(store_policy_get(s, "blue", &p, &err));
		CHECK_STR(p.scan, i ? "off" : "warn");
		CHECK_INT(p.forgetful, i);
	}
	snprintf(p.scan, sizeof(p.scan), "loud");
	CHECK(store_policy_put(s, "blue", &p, &err) < 0);
	CHECK_OK(store_team_remove(s, "blue", &err));
	CHECK_OK(store_policy_get(s, "blue", &p, &err));
	CHECK_STR(p.scan, "");
}

TEST(only_a_team_over_its_limit_loses_its_oldest_pipelines)
{
	struct store_pipelines found;

	STORE(s, dir);
	for (int i = 0; i < 9; i++) {
		char id[] = "aaaaaaaaaaa0";
		struct store_pipeline p;

		id[11] = (char)('a' + i);
		p = row(id, i + 1);
		snprintf(p.team, sizeof(p.team), "%s", i % 3 ? "blue" : "red"); /* six and three */
		CHECK_OK(store_pipeline_insert(s, &p, &err));
		p.state = STORE_PIPELINE_FINISHED;
		p.ended_ns = 20;
		if (i != 1) /* the oldest of blue still runs */
			CHECK_OK(store_pipeline_update(s, &p, &err));
	}
	CHECK_OK(store_pipeline_surplus(s, 6, &found, &err));
	CHECK_INT(found.n, 0);
	store_pipelines_fini(&found);
	CHECK_OK(store_pipeline_surplus(s, 3, &found, &err));
	CHECK_INT(found.n, 2);
	CHECK_STR(found.v[0].id, "aaaaaaaaaaac");
	CHECK_STR(found.v[1].id, "aaaaaaaaaaae");
	store_pipelines_fini(&found);
}

TEST(an_unfinished_agent_session_is_marked_lost_and_old_ones_removed)
{
	struct store_agent x = { .id = "aaaaaaaaaaaa",
				 .team = "blue",
				 .who = "key",
				 .title = "fetch",
				 .created_ns = 5 },
			   got;
	auto_free char *report = NULL, *none = NULL;
	struct store_agents all;

	STORE(s, dir);
	for (char c = 'a'; c < 'e'; c++) {
		x.id[0] = c;
		x.created_ns++;
		CHECK_OK(store_agent_insert(s, &x, &err));
		if (c != 'd')
			CHECK_OK(store_agent_end(s, x.id, 10 + c - 'a', "done", "{\"a\":1}", &err));
	}
	CHECK_OK(store_agent_get(s, "blue", "baaaaaaaaaaa", &got, &report, &err));
	CHECK_STR(report, "{\"a\":1}");
	CHECK_STR(got.outcome, "done");
	CHECK_ERR(store_agent_get(s, "red", "baaaaaaaaaaa", &got, &none, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_agent_end(s, "zaaaaaaaaaaa", 1, "done", NULL, &err), ERR_NOT_FOUND);
	CHECK_OK(store_agent_purge(s, 11, 1, 100,
				   &err)); /* a ended before 11; d had not started before 1 */
	CHECK_OK(store_agent_list(s, "blue", NULL, 0, &all, &err));
	CHECK_INT(all.n, 3);
	CHECK_STR(all.v[0].id, "daaaaaaaaaaa");
	CHECK_STR(all.v[0].outcome, "");
	store_agents_fini(&all);
	CHECK_OK(store_agent_purge(s, 0, 100, 2, &err));
	CHECK_OK(store_agent_list(s, "blue", NULL, 0, &all, &err));
	CHECK_INT(all.n, 2);
	CHECK_STR(all.v[0].outcome, "lost");
	CHECK_STR(all.v[1].id, "caaaaaaaaaaa");
	store_agents_fini(&all);
}

TEST(sums_include_only_finished_pipelines)
{
	struct store_pipeline a = row("aaaaaaaaaaaa", 1), b = row("bbbbbbbbbbbb", 2),
			      c = row("cccccccccccc", 3);
	struct store_pipeline_sums sums;
	struct store_tally tally[4];

	STORE(s, dir);
	a.ended_ns = b.ended_ns = 9;
	a.state = b.state = STORE_PIPELINE_FINISHED;
	snprintf(a.outcome, sizeof(a.outcome), "verified");
	a.attempts = 3;
	a.cost_micro = 5;
	snprintf(b.outcome, sizeof(b.outcome), "failed");
	snprintf(b.category, sizeof(b.category), "syntax");
	CHECK_OK(store_pipeline_insert(s, &a, &err));
	CHECK_OK(store_pipeline_insert(s, &b, &err));
	CHECK_OK(store_pipeline_insert(s, &c, &err));
	CHECK_OK(store_pipeline_sums(s, "blue", &sums, &err));
	CHECK_INT(sums.runs, 2);
	CHECK_INT(sums.success, 1);
	CHECK_INT(sums.success_attempts, 3);
	CHECK_INT(sums.success_cost_micro, 5);
	CHECK_OK(store_pipeline_sums(s, "red", &sums, &err));
	CHECK_INT(sums.runs, 0);
	CHECK_OK(store_pipeline_sums(s, NULL, &sums, &err));
	CHECK_INT(sums.runs, 2);
	CHECK_INT(store_pipeline_tally(s, "blue", "category", tally, 4, &err), 1);
	CHECK_STR(tally[0].name, "syntax");
	CHECK_INT(store_pipeline_tally(s, "blue", "outcome", tally, 4, &err), 2);
}
