/* editor_tool.c - the editor that Anthropic's models know: view, create, str_replace, insert. */
#include "v1box/files.h"
#include "base/cleanup.h"
#include "tools/file_ops.h"

#include <stdio.h>
#include <string.h>

enum { ATTACHMENT_MAX = 128 * 1024, VIEW_DEPTH = 2 };

/* ---- view ---- */

static void folder_seen(struct tool_job *j, int status, json_t *take_doc)
{
	auto_buf struct buf text = { 0 };
	json_t *one;
	size_t i;

	(void)status;
	json_array_foreach(json_object_get(take_doc, "items"), i, one)
	{
		const char *path = json_string_value(json_object_get(one, "path")),
			   *type = json_string_value(json_object_get(one, "type"));

		buf_printf(&text, "%s%s\n", path ? path : "",
			   type && !strcmp(type, "folder") ? "/" : "");
	}
	tool_done(j, take_doc, buf_str(&text), text.len);
}

/* [first, last]; 0: invalid, and the error was sent. */
static int range_of(struct tool_job *j, int64_t *first, int64_t *last)
{
	const json_t *v = json_object_get(j->args, "view_range");

	*first = 1;
	*last = INT64_MAX;
	if (!v)
		return 1;
	*first = json_integer_value(json_array_get(v, 0));
	*last = json_integer_value(json_array_get(v, 1));
	if (*last == -1)
		*last = INT64_MAX;
	if (json_array_size(v) == 2 && *first >= 1 && *last >= *first)
		return 1;
	tool_fail(j, "invalid", "view_range: must be [first, last], counted from 1", NULL,
		  "-1 is the last line");
	return 0;
}

static void number_lines(const struct buf *b, int64_t first, int64_t last, struct buf *out)
{
	const char *p = buf_str(b), *end = p + b->len;

	for (int64_t line = 1; p < end && line <= last; line++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((nl ? nl : end) - p);

		if (line >= first) {
			if (out->len + n > ATTACHMENT_MAX) {
				buf_printf(out, "[... the file continues at line %lld ...]\n",
					   (long long)line);
				return;
			}
			buf_printf(out, "%6lld\t%.*s\n", (long long)line, (int)n, p);
		}
		p += n + 1;
	}
}

static void editor_seen(struct file_ops *x)
{
	struct tool_job *j = x->job;
	auto_buf struct buf text = { 0 };
	int64_t first, last;

	file_ops_close(x);
	if (x->folder) {
		json_object_set_new(j->args, "depth", json_integer(VIEW_DEPTH));
		j->answered = folder_seen;
		boxfiles_list(j->call);
		return;
	}
	if (!x->there) {
		tool_fail(j, "not_found", "there is no such file", x->file_req.path, NULL);
		return;
	}
	if (!file_ops_is_text(&x->bytes)) {
		tool_fail(j, "not_text", "the file is not UTF-8 text", x->file_req.path, NULL);
		return;
	}
	if (!range_of(j, &first, &last))
		return;
	number_lines(&x->bytes, first, last, &text);
	tool_done(j, NULL, buf_str(&text), text.len);
}

static void to_view(struct file_ops *x)
{
	x->may_miss = 1;
	file_ops_get(x, x->file_req.path, editor_seen);
}

/* ---- insert ---- */

static void editor_inserted(struct file_ops *x)
{
	file_ops_close(x);
	call_audit(x->job->call, "file.write", x->file_req.path, "ok");
	tool_say(x->job, NULL, "inserted after line %lld of %s",
		 (long long)tool_int(x->job, "insert_line", 0), x->file_req.path);
}

static void to_insert(struct file_ops *x)
{
	const char *text = tool_text(x->job, "insert_text", tool_text(x->job, "new_str", "")),
		   *p = buf_str(&x->bytes), *end = p + x->bytes.len;
	int64_t line = tool_int(x->job, "insert_line", 0);
	auto_buf struct buf after = { 0 };

	for (; line > 0 && p < end; line--) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		p = nl ? nl + 1 : end;
	}
	if (line > 0) {
		file_request_error(&x->file_req, 409, "invalid",
				   "insert_line: the file has fewer lines", x->file_req.path, NULL);
		return;
	}
	buf_add(&after, buf_str(&x->bytes), (size_t)(p - buf_str(&x->bytes)));
	if (after.len && after.p[after.len - 1] != '\n')
		buf_putc(&after, '\n');
	buf_puts(&after, text);
	if (*text && text[strlen(text) - 1] != '\n')
		buf_putc(&after, '\n');
	buf_add(&after, p, (size_t)(end - p));
	file_ops_put(x, x->file_req.path, after.p, after.len, CONTENT_SAME, editor_inserted);
}

static void to_read_and_insert(struct file_ops *x)
{
	file_ops_get(x, x->file_req.path, to_insert);
}

/* ---- the commands ---- */

static void with_file(struct tool_job *j, void (*next)(struct file_ops *x))
{
	struct file_ops *x = call_alloc(j->call, sizeof(*x));

	*x = (struct file_ops){ .file_req.path =
					file_request_path(j->call, tool_text(j, "path", "")) };
	if (x->file_req.path)
		file_ops_open(x, j, next);
}

static void editor_view(struct tool_job *j)
{
	int64_t first, last;

	if (range_of(j, &first, &last))
		with_file(j, to_view);
}

static void editor_create(struct tool_job *j)
{
	json_object_set(j->args, "content", json_object_get(j->args, "file_text"));
	tool_write(j);
}

static void str_replace(struct tool_job *j)
{
	if (!json_object_get(j->args, "new_str"))
		json_object_set_new(j->args, "new_str", json_string(""));
	tool_edit(j);
}

static void editor_insert(struct tool_job *j)
{
	with_file(j, to_read_and_insert);
}

static const struct {
	const char *name, *needs;
	void (*run)(struct tool_job *j);
} commands[] = {
	{ "view", "path", editor_view },
	{ "create", "file_text", editor_create },
	{ "str_replace", "old_str", str_replace },
	{ "insert", "insert_line", editor_insert },
};

void tool_editor(struct tool_job *j)
{
	const char *command = tool_text(j, "command", "");
	char why[60];

	for (unsigned i = 0; i < ARRAY_LEN(commands); i++) {
		if (strcmp(commands[i].name, command) != 0)
			continue;
		if (json_object_get(j->args, commands[i].needs)) {
			commands[i].run(j);
			return;
		}
		snprintf(why, sizeof(why), "%s: is missing", commands[i].needs);
		tool_fail(j, "invalid", why, NULL, NULL);
		return;
	}
	tool_fail(j, "invalid", "command: is none of view, create, str_replace, insert", command,
		  NULL);
}
