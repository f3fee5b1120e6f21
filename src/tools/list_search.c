/* list_search.c - list_files and search_files: the answers of /v1 as lines. */
#include "v1box/files.h"
#include "base/cleanup.h"
#include "tools/tool.h"

#include <string.h>

static const char *text_of(const json_t *doc, const char *name)
{
	const char *v = json_string_value(json_object_get(doc, name));

	return v ? v : "";
}

static void list_listed(struct tool_job *j, int status, json_t *take_doc)
{
	json_t *items = json_object_get(take_doc, "items"), *one;
	auto_buf struct buf text = { 0 };
	size_t i;

	(void)status;
	json_array_foreach(items, i, one)
	{
		const char *type = text_of(one, "type");

		buf_puts(&text, text_of(one, "path"));
		if (!strcmp(type, "folder"))
			buf_putc(&text, '/');
		else if (!strcmp(type, "link"))
			buf_printf(&text, " -> %s", text_of(one, "target"));
		buf_putc(&text, '\n');
	}
	if (json_is_string(json_object_get(take_doc, "next")))
		buf_printf(&text, "[... there are more; continue with after=%s ...]\n",
			   text_of(take_doc, "next"));
	else if (!json_array_size(items))
		buf_puts(&text, "[an empty folder]");
	tool_done(j, take_doc, buf_str(&text), text.len);
}

void tool_list(struct tool_job *j)
{
	j->answered = list_listed;
	boxfiles_list(j->call);
}

static void list_searched(struct tool_job *j, int status, json_t *take_doc)
{
	json_t *items = json_object_get(take_doc, "items"), *one;
	auto_buf struct buf text = { 0 };
	size_t i;

	(void)status;
	json_array_foreach(items, i, one)
	{
		buf_puts(&text, text_of(one, "path"));
		if (json_object_get(one, "line"))
			buf_printf(&text, ":%lld: %s",
				   (long long)json_integer_value(json_object_get(one, "line")),
				   text_of(one, "text"));
		buf_putc(&text, '\n');
	}
	if (!json_array_size(items))
		buf_puts(&text, "[nothing was found]");
	else if (json_is_true(json_object_get(take_doc, "truncated")))
		buf_puts(&text, "[... there are more; narrow it down ...]\n");
	tool_done(j, take_doc, buf_str(&text), text.len);
}

void tool_search(struct tool_job *j)
{
	j->answered = list_searched;
	boxfiles_search(j->call);
}
