/* checkpoints.c - checkpoint, list_checkpoints, rollback, fork_box: those of /v1. */
#include "base/cleanup.h"
#include "tools/tool.h"
#include "v1box/checkpoints.h"

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
const struct field tool_fork_fields[] = {
	{ "count", FIELD_INT, 0, 1, 100, "number of boxes (default 1)", NULL },
	{ "from", FIELD_TEXT, 0, 0, STORE_NAME,
	  "a checkpoint: id or name (default: the present files)", NULL },
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
