/* checkpoints.c - checkpoint, list_checkpoints, diff_checkpoints, rollback, fork_box, merge_box, race: those of /v1. */
#include "base/cleanup.h"
#include "tools/tool.h"
#include "v1box/checkpoints.h"
#include "v1box/file_request.h"
#include "v1run/race.h"

#include <stdio.h>
#include <string.h>

const struct field tool_checkpoint_fields[] = {
	{ "name", FIELD_NAME, 0, 0, STORE_NAME, "name of the checkpoint, unique in its box", NULL },
	{ "note", FIELD_TEXT, 0, 0, STORE_NOTE, "what the state is", NULL },
	{ 0 },
};
const struct field tool_checkpoints_fields[] = {
	{ "limit", FIELD_INT, 0, 1, 100, "maximum number of checkpoints (default 100)", NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
};
const struct field tool_rollback_fields[] = {
	{ "to", FIELD_TEXT, 0, 0, STORE_NAME,
	  "id or name of the checkpoint (default: the last one of the box)", NULL },
	{ 0 },
};
const struct field tool_diff_fields[] = {
	{ "from", FIELD_TEXT, 1, 0, STORE_NAME, "id or name of the first checkpoint", NULL },
	{ "to", FIELD_TEXT, 0, 0, STORE_NAME,
	  "id or name of the second one (default: the present files)", NULL },
	{ "path", FIELD_TEXT, 0, 0, FILE_REQUEST_PATH, "only this file or folder", NULL },
	{ "limit", FIELD_INT, 0, 1, 1000, "maximum number of files (default 1000)", NULL },
	{ 0 },
};
const struct field tool_fork_fields[] = {
	{ "count", FIELD_INT, 0, 1, 100, "number of boxes (default 1)", NULL },
	{ "from", FIELD_TEXT, 0, 0, STORE_NAME,
	  "a checkpoint: id or name (default: the present files)", NULL },
	{ 0 },
};
static const struct field tool_merge_values[] = {
	FIELD_VALUE("fail"), FIELD_VALUE("ours"), FIELD_VALUE("theirs"), { 0 }
};
const struct field tool_merge_fields[] = {
	{ "from", FIELD_TEXT, 1, 0, STORE_NAME, "the other box (id or name), or a checkpoint (id)",
	  NULL },
	{ "on_conflict", FIELD_CHOICE, 0, 0, 0,
	  "paths that both have changed: fail (default; nothing is changed), ours, theirs",
	  tool_merge_values },
	{ 0 },
};
const struct field tool_race_fields[] = {
	{ "attempts", FIELD_TEXTS, 1, 0, RACE_ATTEMPTS,
	  "command lines for the shell, each run in a copy of the box", NULL },
	{ "check", FIELD_TEXT, 1, 0, 1 << 20,
	  "command line that runs after each of them in its copy; exit code 0: passed", NULL },
	{ "best", FIELD_BOOL, 0, 0, 0,
	  "run all, and keep the one whose check prints the highest number as its last line "
	  "(default: the first that passes)",
	  NULL },
	{ "timeout_ms", FIELD_INT, 0, 1, 3600000, "time limit of the whole race (default 300000)",
	  NULL },
	{ 0 },
};

static const char *checkpoints_text(const json_t *doc, const char *name)
{
	const char *v = json_string_value(json_object_get(doc, name));

	return v ? v : "";
}

static void checkpoints_took(struct tool_job *j, int status, json_t *take_doc)
{
	(void)status;
	tool_say(j, take_doc, "checkpoint %s; go back to it with rollback",
		 checkpoints_text(take_doc, "id"));
}

void tool_checkpoint(struct tool_job *j)
{
	j->answered = checkpoints_took;
	checkpoints_create(j->call);
}

static void checkpoints_listed(struct tool_job *j, int status, json_t *take_doc)
{
	auto_buf struct buf text = { 0 };
	json_t *one;
	size_t i;

	(void)status;
	json_array_foreach(json_object_get(take_doc, "items"), i, one)
		buf_printf(&text, "%s %s %s %s\n", checkpoints_text(one, "id"),
			   checkpoints_text(one, "created"), checkpoints_text(one, "reason"),
			   checkpoints_text(one, "name"));
	if (!text.len)
		buf_puts(&text, "[there are none]");
	tool_done(j, take_doc, buf_str(&text), text.len);
}

void tool_checkpoints(struct tool_job *j)
{
	j->answered = checkpoints_listed;
	checkpoints_list(j->call);
}

static void checkpoints_compared(struct tool_job *j, int status, json_t *take_doc)
{
	auto_buf struct buf text = { 0 };
	json_int_t more = json_integer_value(json_object_get(take_doc, "left_out"));
	json_t *one;
	size_t i;

	(void)status;
	json_array_foreach(json_object_get(take_doc, "items"), i, one) buf_printf(
		&text, "%s %s%s%s\n", checkpoints_text(one, "change"), checkpoints_text(one, "was"),
		*checkpoints_text(one, "was") ? " -> " : "", checkpoints_text(one, "path"));
	if (more)
		buf_printf(&text, "[%lld more]\n", (long long)more);
	if (!text.len)
		buf_puts(&text, "[no difference]");
	tool_done(j, take_doc, buf_str(&text), text.len);
}

void tool_diff(struct tool_job *j)
{
	struct box *b = call_box_peek(j->call, 0);

	j->answered = checkpoints_compared;
	if (b)
		checkpoints_diff_from(j->call, b, call_text(j->call, "from", ""));
}

static void checkpoints_went_back(struct tool_job *j, int status, json_t *take_doc)
{
	json_t *doc = json_pack("{s:s, s:s}", "box", checkpoints_text(take_doc, "id"), "safety",
				checkpoints_text(take_doc, "safety"));

	(void)status;
	json_decref(take_doc);
	tool_say(j, doc,
		 "the box has the files of the checkpoint; its programs have ended. Undo: "
		 "rollback to %s",
		 checkpoints_text(doc, "safety"));
}

/* The fields have no `save`: the present files are always saved first. */
void tool_rollback(struct tool_job *j)
{
	j->answered = checkpoints_went_back;
	checkpoints_rollback(j->call);
}

static void checkpoints_merged(struct tool_job *j, int status, json_t *take_doc)
{
	const json_t *sum = json_object_get(take_doc, "merge");
	json_int_t changed = json_integer_value(json_object_get(sum, "changed")),
		   deleted = json_integer_value(json_object_get(sum, "deleted"));
	json_t *doc = json_pack("{s:s, s:s, s:I, s:I}", "box", checkpoints_text(take_doc, "id"),
				"safety", checkpoints_text(take_doc, "safety"), "changed", changed,
				"deleted", deleted);

	(void)status;
	json_decref(take_doc);
	tool_say(j, doc, "%lld changed, %lld deleted; undo: rollback to %s", (long long)changed,
		 (long long)deleted, checkpoints_text(doc, "safety"));
}

void tool_merge(struct tool_job *j)
{
	j->answered = checkpoints_merged;
	checkpoints_merge(j->call);
}

static void checkpoints_forked(struct tool_job *j, int status, json_t *take_doc)
{
	auto_buf struct buf text = { 0 };
	json_t *boxes = json_array(), *one;
	size_t i;

	(void)status;
	json_array_foreach(json_object_get(take_doc, "items"), i, one)
	{
		const json_t *box = json_object_get(one, "box");

		if (box)
			json_array_append(boxes, json_object_get(box, "id"));
		buf_printf(&text, "%s\n",
			   box ? checkpoints_text(box, "id")
			       : checkpoints_text(json_object_get(one, "error"), "message"));
	}
	json_decref(take_doc);
	tool_done(j, json_pack("{s:o}", "boxes", boxes), buf_str(&text), text.len);
}

void tool_fork(struct tool_job *j)
{
	j->answered = checkpoints_forked;
	checkpoints_fork(j->call);
}

static void race_line(struct buf *text, const json_t *one)
{
	const json_t *check = json_object_get(one, "check");
	const char *why = json_string_value(json_object_get(one, "message"));

	buf_printf(text, "attempt %d: %s%s%s\n",
		   (int)json_integer_value(json_object_get(one, "attempt")),
		   checkpoints_text(one, "state"), why ? ": " : "", why ? why : "");
	if (json_is_object(check))
		buf_printf(text, "%.2000s%.2000s\n", checkpoints_text(check, "stdout"),
			   checkpoints_text(check, "stderr"));
}

static void race_ended(struct tool_job *j, int status, json_t *take_doc)
{
	const json_t *promoted = json_object_get(take_doc, "promoted"),
		     *winner = json_object_get(take_doc, "winner");
	auto_buf struct buf text = { 0 };
	json_t *one;
	size_t i;

	(void)status;
	if (json_is_integer(winner))
		buf_printf(
			&text,
			"attempt %d has won; the box has its files, and its programs have ended. "
			"Undo: rollback to %s\n",
			(int)json_integer_value(winner), checkpoints_text(promoted, "safety"));
	else
		buf_puts(&text, "no attempt has passed; the box is as it was\n");
	json_array_foreach(json_object_get(take_doc, "results"), i, one) race_line(&text, one);
	tool_done(j, take_doc, buf_str(&text), text.len);
}

/* Attempts and check of a tool are command lines. */
void tool_race(struct tool_job *j)
{
	json_t *body = json_object(), *programs = json_array(), *one,
	       *ms = json_object_get(j->args, "timeout_ms");
	size_t i;

	json_array_foreach(json_object_get(j->args, "attempts"), i, one)
		json_array_append_new(programs, json_pack("{s:O}", "command", one));
	json_object_set_new(body, "attempts", programs);
	json_object_set_new(body, "check",
			    json_pack("{s:O}", "command", json_object_get(j->args, "check")));
	json_object_set_new(body, "keep", json_string(tool_flag(j, "best") ? "best" : "first"));
	if (ms)
		json_object_set_new(body, "budget", json_pack("{s:O}", "wall_ms", ms));
	json_decref(j->call->body);
	j->call->body = body;
	j->answered = race_ended;
	race_start(j->call);
}
