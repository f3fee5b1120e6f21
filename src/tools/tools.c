/* tools.c - the table of tools, and its formats. */
#include "v1box/file_request.h"
#include "api/fields.h"
#include "base/cleanup.h"
#include "tools/tool.h"

#include <string.h>

enum { TEXT_MAX = 1 << 22, MS_MOST = 3600000 };

static const struct field read_fields[] = {
	FILE_REQUEST_PATH_FIELD(1, "of the file; relative ones are below /home/user"),
	{ "start_line", FIELD_INT, 0, 1, INT32_MAX, "first line to return (default 1)", NULL },
	{ "end_line", FIELD_INT, 0, 1, INT32_MAX, "last line to return", NULL },
	{ 0 },
};
static const struct field write_fields[] = {
	FILE_REQUEST_PATH_FIELD(1, "of the file; relative ones are below /home/user"),
	{ "content", FIELD_TEXT, 1, 0, TEXT_MAX, "the complete text of the file", NULL },
	{ 0 },
};
static const struct field list_fields[] = {
	FILE_REQUEST_PATH_FIELD(0, "of the folder; /home/user"),
	{ "depth", FIELD_INT, 0, 1, 64, "levels of folders (default 1)", NULL },
	{ "limit", FIELD_INT, 0, 1, 10000, "maximum number of entries (default 1000)", NULL },
	{ "after", FIELD_TEXT, 0, 0, 6000, "last name of the previous list", NULL },
	{ 0 },
};
static const struct field edit_fields[] = {
	FILE_REQUEST_PATH_FIELD(1, "of the file"),
	{ "old_str", FIELD_TEXT, 1, 0, TEXT_MAX, "text to replace, exactly as in the file", NULL },
	{ "new_str", FIELD_TEXT, 1, 0, TEXT_MAX, "replacement text", NULL },
	{ "replace_all", FIELD_BOOL, 0, 0, 0, "replace all occurrences", NULL },
	{ 0 },
};
static const struct field search_fields[] = {
	{ "content", FIELD_TEXT, 0, 0, 1023, "literal text that a line must contain", NULL },
	{ "name", FIELD_TEXT, 0, 0, 255, "a glob (*, ?, [a-z]), or a part of the file name", NULL },
	FILE_REQUEST_PATH_FIELD(0, "the folder to search; /home/user"),
	{ "ignore_case", FIELD_BOOL, 0, 0, 0, "ignore upper and lower case", NULL },
	{ "limit", FIELD_INT, 0, 1, 1000, "maximum number of hits (default 1000)", NULL },
	{ 0 },
};
static const struct field command_fields[] = {
	{ "command", FIELD_TEXT, 1, 0, 1 << 20, "a command line for the shell", NULL },
	{ "cwd", FIELD_TEXT, 0, 0, FILE_REQUEST_PATH, "working folder (default /home/user)", NULL },
	{ "env", FIELD_MAP, 0, 0, 1000, "environment variables, added to those of the box", NULL },
	{ "stdin", FIELD_TEXT, 0, 0, TEXT_MAX, "the complete standard input", NULL },
	{ "timeout_ms", FIELD_INT, 0, 1, MS_MOST,
	  "time limit; the command is then killed (default 120000)", NULL },
	{ "background", FIELD_BOOL, 0, 0, 0, "do not wait for the end, for example for a server",
	  NULL },
	{ 0 },
};
static const struct field code_fields[] = {
	{ "code", FIELD_TEXT, 1, 0, TEXT_MAX, "the complete program text", NULL },
	{ "language", FIELD_TEXT, 0, 0, 64,
	  "python, javascript, bash, c, c++, go, rust, java, ... (default python)", NULL },
	{ "stdin", FIELD_TEXT, 0, 0, TEXT_MAX, "the complete standard input", NULL },
	{ "timeout_ms", FIELD_INT, 0, 1, MS_MOST,
	  "time limit; the program is then killed (default 30000)", NULL },
	{ 0 },
};

static const struct field patch_fields[] = {
	{ "patch", FIELD_TEXT, 1, 0, TEXT_MAX, "the patch, from *** Begin Patch to *** End Patch",
	  NULL },
	{ 0 },
};
static const struct field output_fields[] = {
	{ "exec", FIELD_TEXT, 1, 1, STORE_NAME,
	  "id of the exec, from the result of the tool that started it", NULL },
	{ "stream", FIELD_TEXT, 0, 0, 6, "stdout or stderr (default stdout)", NULL },
	{ "offset", FIELD_INT, 0, 0, INT64_MAX, "offset of the first byte (default 0)", NULL },
	{ "limit", FIELD_INT, 0, 1, 1 << 18, "maximum number of bytes (default 16384)", NULL },
	{ 0 },
};
static const struct field install_fields[] = {
	{ "packages", FIELD_TEXTS, 1, 0, 100, "package names, with versions if needed", NULL },
	{ "manager", FIELD_TEXT, 0, 0, 16, "pip, npm, gem or go (default pip)", NULL },
	{ "timeout_ms", FIELD_INT, 0, 1, MS_MOST,
	  "time limit; the installation is then killed (default 300000)", NULL },
	{ 0 },
};
static const struct field port_fields[] = {
	{ "port", FIELD_INT, 1, 1, 65535, "port on which a server in the box listens", NULL },
	{ 0 },
};
static const struct field bash_fields[] = {
	{ "command", FIELD_TEXT, 0, 0, 1 << 20, "a command line for the shell", NULL },
	{ "restart", FIELD_BOOL, 0, 0, 0, "start a new shell", NULL },
	{ "timeout_ms", FIELD_INT, 0, 1, MS_MOST,
	  "time limit; the command is then killed (default 120000)", NULL },
	{ 0 },
};
static const struct field editor_fields[] = {
	{ "command", FIELD_TEXT, 1, 0, 32, "view, create, str_replace or insert", NULL },
	FILE_REQUEST_PATH_FIELD(1, "of the file or folder"),
	{ "view_range", FIELD_ANY, 0, 0, 0,
	  "[first line, last line]; -1 means the last line of the file", NULL },
	{ "file_text", FIELD_TEXT, 0, 0, TEXT_MAX, "text of the file, for create", NULL },
	{ "old_str", FIELD_TEXT, 0, 0, TEXT_MAX, "text to replace, for str_replace", NULL },
	{ "new_str", FIELD_TEXT, 0, 0, TEXT_MAX, "replacement text, for str_replace", NULL },
	{ "insert_line", FIELD_INT, 0, 0, INT32_MAX, "line after which to insert, for insert",
	  NULL },
	{ "insert_text", FIELD_TEXT, 0, 0, TEXT_MAX, "text to insert, for insert", NULL },
	{ 0 },
};

#define PATCH_HELP                                                                                       \
	"Change several files at once. Between '*** Begin Patch' and '*** End Patch': "                  \
	"'*** Add File: path' with lines that begin with '+'; '*** Delete File: path'; or "              \
	"'*** Update File: path', optionally '*** Move to: path', and hunks: '@@' with a line above "    \
	"the change, then lines that begin with ' ' (unchanged), '-' (removed) or '+' (added). No line " \
	"numbers. The whole patch is applied, or nothing."
#define READ_HELP                                                                                  \
	"Read a text file of the box. Long files are returned in parts; the end of a part states how to read the next one."
#define WRITE_HELP                                                                                 \
	"Write a complete text file in the box. An existing file is replaced, parent folders are created."
#define COMMAND_HELP                                                                                 \
	"Run a shell command in the box and wait for its end. Returns output, exit code and how it " \
	"ended. Every call is a new shell. Long output is cut in the middle."

#define DESKTOP_HELP "For a box with a desktop (template desktop). "

const struct tool tools[] = {
	/* clang-format off */
	{ "read_file", "Read a file", READ_HELP, read_fields, tool_read, TOOL_READS | TOOL_AGAIN, NULL },
	{ "write_file", "Write a file", WRITE_HELP, write_fields, tool_write, TOOL_DESTROYS | TOOL_AGAIN, NULL },
	{ "list_files", "List a folder", "List the entries of a folder of the box; folders end with a slash.",
	  list_fields, tool_list, TOOL_READS | TOOL_AGAIN, NULL },
	{ "edit_file", "Edit a file", "Replace a piece of text in a file. The text must occur exactly once, "
	  "unless replace_all is set.", edit_fields, tool_edit, TOOL_DESTROYS, NULL },
	{ "apply_patch", "Apply a patch", PATCH_HELP, patch_fields, tool_patch, TOOL_DESTROYS, NULL },
	{ "search_files", "Search files", "Find files of the box by name, by content, or both.",
	  search_fields, tool_search, TOOL_READS | TOOL_AGAIN, NULL },
	{ "run_command", "Run a command", COMMAND_HELP, command_fields, tool_command,
	  TOOL_DESTROYS | TOOL_OUTSIDE, NULL },
	{ "run_code", "Run a program", "Run a program given as text; it is compiled first if its language needs that. "
	  "Print what you want to see.", code_fields, tool_code, TOOL_DESTROYS | TOOL_OUTSIDE, NULL },
	{ "read_output", "Read output", "Read a part of the output of a program that an answer omitted.",
	  output_fields, tool_output, TOOL_READS | TOOL_AGAIN, NULL },
	{ "install_packages", "Install packages", "Install packages into the box with pip, npm, gem or go, from "
	  "the registry that the operator has configured.", install_fields, tool_install, TOOL_OUTSIDE | TOOL_AGAIN, NULL },
	{ "open_port", "Open a port", "Check whether a server in the box listens on a port, open it as a private "
	  "preview, and get its URL.", port_fields, tool_port, TOOL_AGAIN, NULL },
	{ "screenshot", "Take a screenshot", DESKTOP_HELP "Returns an image of the whole screen.", tool_screenshot_fields, tool_screenshot,
	  TOOL_READS | TOOL_AGAIN, NULL },
	{ "click", "Click", DESKTOP_HELP "Clicks a mouse button.", tool_click_fields, tool_click, TOOL_DESTROYS | TOOL_OUTSIDE, NULL },
	{ "double_click", "Double click", DESKTOP_HELP "Clicks the left mouse button twice.", tool_double_click_fields,
	  tool_double_click, TOOL_DESTROYS | TOOL_OUTSIDE, NULL },
	{ "move_mouse", "Move the mouse", DESKTOP_HELP "Moves the mouse pointer.", tool_move_mouse_fields, tool_move_mouse,
	  TOOL_AGAIN, NULL },
	{ "drag_mouse", "Drag with the mouse", DESKTOP_HELP "Presses the left mouse button at one place and releases it at another.",
	  tool_drag_mouse_fields, tool_drag_mouse, TOOL_DESTROYS | TOOL_OUTSIDE, NULL },
	{ "scroll", "Scroll", DESKTOP_HELP "Turns the mouse wheel.", tool_scroll_fields, tool_scroll, 0, NULL },
	{ "type_text", "Type text", DESKTOP_HELP "Types text as a keyboard does.", tool_type_text_fields, tool_type_text,
	  TOOL_DESTROYS | TOOL_OUTSIDE, NULL },
	{ "press_keys", "Press keys", DESKTOP_HELP "Presses keys or combinations of keys.", tool_press_keys_fields, tool_press_keys,
	  TOOL_DESTROYS | TOOL_OUTSIDE, NULL },
	{ "open_url", "Open a page", DESKTOP_HELP "Opens an address in the browser and waits for its window.", tool_open_url_fields,
	  tool_open_url, TOOL_OUTSIDE, NULL },
	{ "checkpoint", "Take a checkpoint", "Save the files of the box at this moment; its programs continue. Take one before a risky step.",
	  tool_checkpoint_fields, tool_checkpoint, TOOL_SAVES, NULL },
	{ "list_checkpoints", "List checkpoints", "List the checkpoints of the box, newest first: id, time, reason, name.",
	  tool_checkpoints_fields, tool_checkpoints, TOOL_READS | TOOL_AGAIN, NULL },
	{ "diff_checkpoints", "Compare checkpoints", "List the files that differ between two checkpoints of the box, or between one and now.",
	  tool_diff_fields, tool_diff, TOOL_SAVES, NULL },
	{ "rollback", "Go back to a checkpoint", "Replace the files of the box by those of a checkpoint. Its programs end. "
	  "The present files are saved as a checkpoint first.", tool_rollback_fields, tool_rollback, TOOL_DESTROYS | TOOL_SAVES, NULL },
	{ "fork_box", "Fork the box", "Create boxes with the files of the box, or of one of its checkpoints; programs are not copied. "
	  "The answer has their ids.", tool_fork_fields, tool_fork, TOOL_SAVES, NULL },
	{ "merge_box", "Merge a fork", "Add to the files of the box what a fork of it, or a checkpoint, has changed since both had the same files. "
	  "Programs of the box end; the present files are saved as a checkpoint first.", tool_merge_fields, tool_merge, TOOL_DESTROYS | TOOL_SAVES, NULL },
	{ "race", "Race of attempts", "Run several commands, each in its own copy of the box, and a check after each. The box gets the files "
	  "of the winner; its programs end. Without a winner nothing changes.", tool_race_fields, tool_race, TOOL_DESTROYS | TOOL_OUTSIDE | TOOL_SAVES, NULL },
	{ "create_box", "Create a box", "Create a new, empty box (a sandbox). Tools without a box argument use the box of your key.",
	  tool_new_box_fields, tool_new_box, TOOL_BOXES, NULL },
	{ "list_boxes", "List boxes", "List all boxes: id, state, name.", tool_boxes_fields, tool_boxes,
	  TOOL_BOXES | TOOL_READS | TOOL_AGAIN, NULL },
	{ "delete_box", "End a box", "End a box: its programs are killed and its files are deleted.", tool_end_box_fields,
	  tool_end_box, TOOL_BOXES | TOOL_DESTROYS, NULL },
	{ "ReadFile", "Read a file", READ_HELP, read_fields, tool_read, TOOL_READS | TOOL_AGAIN, "read_file" },
	{ "WriteFile", "Write a file", WRITE_HELP, write_fields, tool_write, TOOL_DESTROYS | TOOL_AGAIN, "write_file" },
	{ "RunTerminalCommand", "Run a command", COMMAND_HELP, command_fields, tool_command,
	  TOOL_DESTROYS | TOOL_OUTSIDE, "run_command" },
	/* clang-format on */
};
const unsigned ntools = ARRAY_LEN(tools);

const struct tool tool_bash_row = { "bash",      "Bash",    "",
				    bash_fields, tool_bash, TOOL_DESTROYS | TOOL_OUTSIDE,
				    NULL };
const struct tool tool_editor_row = {
	"str_replace_based_edit_tool", "Editor", "", editor_fields, tool_editor, TOOL_DESTROYS, NULL
};

const struct tool tool_computer_row = { "computer",
					"Computer",
					"",
					tool_computer_fields,
					tool_computer,
					TOOL_DESTROYS | TOOL_OUTSIDE,
					NULL };

const struct tool *tool_named(const char *name)
{
	for (unsigned i = 0; i < ntools; i++)
		if (!strcmp(tools[i].name, name))
			return &tools[i];
	return NULL;
}

/* ---- shapes ---- */

/* Limits are not in the schema: models do not need them, and OpenAI's strict mode rejects them. */
static void tools_strip(json_t *schema)
{
	static const char *const limits[] = { "minimum", "maximum", "maxLength" };
	json_t *one;
	const char *name;

	json_object_foreach(json_object_get(schema, "properties"), name,
			    one) for (unsigned i = 0; i < ARRAY_LEN(limits); i++)
		json_object_del(one, limits[i]);
}

static void tools_nullable(json_t *property)
{
	json_t *type = json_object_get(property, "type");

	if (json_is_string(type))
		json_object_set_new(property, "type", json_pack("[O, s]", type, "null"));
}

/* All members are required, optional ones may be null; maps are not supported. */
static json_t *tools_strict(const struct field *f)
{
	json_t *schema = fields_schema(f), *all = json_array(),
	       *properties = json_object_get(schema, "properties");

	tools_strip(schema);
	for (; f->name; f++) {
		if (f->type == FIELD_MAP) {
			json_object_del(properties, f->name);
			continue;
		}
		json_array_append_new(all, json_string(f->name));
		if (!f->required)
			tools_nullable(json_object_get(properties, f->name));
	}
	json_object_set_new(schema, "required", all);
	return schema;
}

static json_t *tools_plain(const struct field *f)
{
	json_t *schema = fields_schema(f);

	tools_strip(schema);
	return schema;
}

/* The box parameter of every MCP tool that works in a box. */
static json_t *with_box(const struct tool *t)
{
	json_t *schema = fields_schema(t->fields);

	if (!(t->marks & TOOL_BOXES))
		json_object_set_new(json_object_get(schema, "properties"), "box",
				    json_pack("{s:s, s:s}", "type", "string", "description",
					      "id or name of the box; without it your own"));
	return schema;
}

static json_t *as_mcp(const struct tool *t)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:{s:b, s:b, s:b, s:b}}", "name", t->name, "title",
			 t->title, "description", t->help, "inputSchema", with_box(t),
			 "annotations", "readOnlyHint", (t->marks & TOOL_READS) != 0,
			 "destructiveHint", (t->marks & TOOL_DESTROYS) != 0, "idempotentHint",
			 (t->marks & TOOL_AGAIN) != 0, "openWorldHint",
			 (t->marks & TOOL_OUTSIDE) != 0);
}

static json_t *as_atoll(const struct tool *t)
{
	return json_pack("{s:s, s:s?, s:s, s:s, s:o, s:b}", "name", t->name, "alias_of", t->alias,
			 "title", t->title, "description", t->help, "schema",
			 fields_schema(t->fields), "read_only", (t->marks & TOOL_READS) != 0);
}

static json_t *as_openai(const struct tool *t)
{
	return json_pack("{s:s, s:{s:s, s:s, s:o, s:b}}", "type", "function", "function", "name",
			 t->name, "description", t->help, "parameters", tools_strict(t->fields),
			 "strict", 1);
}

static json_t *as_responses(const struct tool *t)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:b}", "type", "function", "name", t->name,
			 "description", t->help, "parameters", tools_strict(t->fields), "strict",
			 1);
}

static json_t *as_anthropic(const struct tool *t)
{
	return json_pack("{s:s, s:s, s:o}", "name", t->name, "description", t->help, "input_schema",
			 tools_plain(t->fields));
}

static const struct {
	const char *name;
	json_t *(*one)(const struct tool *t);
	int aliases; /* are separate rows */
	int boxes;
} formats[] = {
	[TOOLS_ATOLL] = { "atoll", as_atoll, 1, 0 },
	[TOOLS_OPENAI] = { "openai", as_openai, 0, 0 },
	[TOOLS_RESPONSES] = { "openai-responses", as_responses, 0, 0 },
	[TOOLS_ANTHROPIC] = { "anthropic", as_anthropic, 0, 0 },
	[TOOLS_MCP] = { "mcp", as_mcp, 0, 1 },
};

int tools_format(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(formats[i].name, name))
			return (int)i;
	return -1;
}

json_t *tools_json(enum tool_format f)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < ntools; i++)
		if ((!tools[i].alias || formats[f].aliases) &&
		    (!(tools[i].marks & TOOL_BOXES) || formats[f].boxes))
			json_array_append_new(all, formats[f].one(&tools[i]));
	return all;
}
