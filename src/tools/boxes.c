/* boxes.c - create_box, list_boxes, delete_box: those of /v1. */
#include "v1box/box_spec.h"
#include "v1box/boxes.h"
#include "base/cleanup.h"
#include "tools/tool.h"

#include <string.h>

const struct field tool_new_box_fields[] = {
	{ "name", FIELD_NAME, 0, 0, STORE_NAME, "name of the box, unique in the team", NULL },
	{ "template", FIELD_TEXT, 0, 0, STORE_TEMPLATE,
	  "template of the box, for example desktop (default base)", NULL },
	{ "lifetime_ms", FIELD_INT, 0, 0, INT64_C(1) << 53, "time until the box times out", NULL },
	{ "env", FIELD_MAP, 0, 0, 1000, "environment variables of all programs in the box", NULL },
	{ "network", FIELD_OBJECT, 0, 0, 0, "hosts that the box may reach (default: none)",
	  box_network_fields },
	ISOLATION_QUERY,
	{ 0 },
};
const struct field tool_boxes_fields[] = {
	{ "limit", FIELD_INT, 0, 1, 100, "maximum number of boxes (default 100)", NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
};
const struct field tool_end_box_fields[] = {
	{ "box", FIELD_TEXT, 1, 1, 255, "id or name of the box", NULL },
	{ 0 },
};

static const char *text_of(const json_t *doc, const char *name)
{
	const char *v = json_string_value(json_object_get(doc, name));

	return v ? v : "";
}

/* A model must not read these variables again. */
static json_t *boxes_brief(json_t *box)
{
	static const char *const told[] = { "id", "name", "state", "created", "ends", "running" };
	json_t *doc = json_object();

	for (unsigned i = 0; i < ARRAY_LEN(told); i++)
		if (json_object_get(box, told[i]))
			json_object_set(doc, told[i], json_object_get(box, told[i]));
	return doc;
}

static void boxes_made(struct tool_job *j, int status, json_t *take_doc)
{
	json_t *doc = boxes_brief(take_doc);

	(void)status;
	json_decref(take_doc);
	tool_say(j, doc, "box %s is there; give it to other tools as `box`", text_of(doc, "id"));
}

void tool_new_box(struct tool_job *j)
{
	j->answered = boxes_made;
	boxes_create(j->call);
}

static void boxes_listed(struct tool_job *j, int status, json_t *take_doc)
{
	json_t *items = json_array(), *one;
	auto_buf struct buf text = { 0 };
	size_t i;

	(void)status;
	json_array_foreach(json_object_get(take_doc, "items"), i, one)
	{
		json_array_append_new(items, boxes_brief(one));
		buf_printf(&text, "%s %s %s\n", text_of(one, "id"), text_of(one, "state"),
			   text_of(one, "name"));
	}
	if (!json_array_size(items))
		buf_puts(&text, "[there are none]");
	json_object_set_new(take_doc, "items", items);
	tool_done(j, take_doc, buf_str(&text), text.len);
}

void tool_boxes(struct tool_job *j)
{
	j->answered = boxes_listed;
	boxes_list(j->call);
}

static void boxes_ended(struct tool_job *j, int status, json_t *take_doc)
{
	(void)status;
	json_decref(take_doc);
	tool_say(j, NULL, "box %s has ended", call_param(j->call, 0));
}

void tool_end_box(struct tool_job *j)
{
	struct call *c = j->call;

	snprintf(c->match.params[0], sizeof(c->match.params[0]), "%s", tool_text(j, "box", ""));
	c->match.nparams = 1;
	j->answered = boxes_ended;
	boxes_delete(c);
}
