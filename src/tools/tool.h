/* tool.h - the tools that a model may use in a box: one table, and the call of a row.
 * Owns: struct tool_job, from tool_begin() until its request has ended.
 * Does not own: the format of the result, which belongs to the surface: /v1, OpenAI, Anthropic,
 * MCP.
 *
 *   arguments -> role -> fields -> box -> the row's function -> result -> surface
 *
 * If a handler of /v1 does the work, the row calls it: its answer or error is returned here by the
 * format of the call. See docs/agents.md. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"
#include "secret/redact.h"
#include "base/head_tail.h"

struct tool_job;

enum tool_mark {
	TOOL_READS = 1 << 0, /* changes nothing */
	TOOL_DESTROYS = 1 << 1,
	TOOL_AGAIN = 1 << 2,   /* idempotent */
	TOOL_OUTSIDE = 1 << 3, /* may reach beyond the box */
	TOOL_BOXES = 1 << 4,   /* manages boxes: on MCP only */
	TOOL_SAVES = 1 << 5,   /* about checkpoints: none is taken before it */
};

struct tool {
	const char *name, *title, *help;
	const struct field *fields;
	void (*run)(struct tool_job *j);
	unsigned marks;
	const char *alias; /* main row of this alias; NULL: none */
};
extern const struct tool tools[];
extern const unsigned ntools;
const struct tool *tool_named(const char *name); /* NULL: there is none */

enum tool_format { TOOLS_ATOLL, TOOLS_OPENAI, TOOLS_RESPONSES, TOOLS_ANTHROPIC, TOOLS_MCP };
/* The table as the `tools` array of a provider. */
json_t *tools_json(enum tool_format f);
int tools_format(const char *name); /* -1: there is none */

/* ---- one call ---- */
struct tool_result {
	int failed;
	struct buf text; /* UTF-8 */
	json_t *data;
	struct buf image; /* a PNG image as base64; empty: none */
};

struct tool_surface {
	/* NULL, or called for output as it arrives, without secrets; any bytes. 1: wait for
	 * on_drain. */
	int (*said)(struct tool_job *j, unsigned stream, const char *bytes, size_t n);
	void (*over)(struct tool_job *j, const struct tool_result *r); /* once */
};

/* The surface data of a tool call. */
struct tool_call {
	struct tool_job *job; /* the last one */
	/* Sends an error before or after the job, in the format of the surface. */
	void (*refuse)(struct call *c, int status, const char *code, const char *message,
		       const char *why, const char *hint);
	/* The answer of a handler of /v1 that ran for the surface itself. */
	void (*answered)(struct call *c, int status, json_t *take_doc);
	void (*left)(struct call *c); /* NULL, or: called once, at the end */
};
void tool_enter(struct call *c, struct tool_call *t); /* sets c->surface and c->leave */
extern const struct api_format tool_format;           /* of tables that accept these calls */
void tool_told_error(struct call *c, int status, const char *code, const char *message,
		     const char *why, const char *hint);
void tool_told_json(struct call *c, int status, json_t *take_doc);

enum { TOOL_OUTPUT_HALF = 16 * 1024 }; /* bytes of the beginning and of the end of an output */

struct tool_job {
	struct call *call;
	const struct tool *tool;
	json_t *args;
	const struct tool_surface *on;
	int over;
	int kill_on_close; /* its program ends when the client disconnects */
	struct tool_job *before;
	/* The answer of a handler of /v1 that ran for this tool. */
	void (*answered)(struct tool_job *j, int status, json_t *take_doc);
	struct redact redact;
	struct head_tail out[2];
	char exec[ID_MAX + 1];
	void *state;                      /* the row's, in memory of the call ... */
	void (*drop)(struct tool_job *j); /* ... and the memory of it that must be freed */
};

/* Parameter 0 of the call names the box, unless the row manages boxes. args is borrowed. */
void tool_begin(struct call *c, const struct tool *t, json_t *args, const struct tool_surface *on);
struct box *tool_box(struct tool_job *j); /* NULL: it has ended, and the error was sent */
/* The end, one of: */
void tool_done(struct tool_job *j, json_t *take_data, const char *text, size_t n);
void tool_say(struct tool_job *j, json_t *take_data, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void tool_result(struct tool_job *j, int failed, json_t *take_data, const char *text, size_t n);
/* With a PNG image. */
void tool_image(struct tool_job *j, json_t *take_data, const char *png, size_t n, const char *fmt,
		...) __attribute__((format(printf, 5, 6)));
void tool_fail(struct tool_job *j, const char *code, const char *message, const char *why,
	       const char *hint);

const char *tool_text(const struct tool_job *j, const char *name, const char *otherwise);
int64_t tool_int(const struct tool_job *j, const char *name, int64_t otherwise);
int tool_flag(const struct tool_job *j, const char *name);
/* Valid UTF-8 for any bytes, and without secrets. */
json_t *tool_string(const struct tool_job *j, const char *bytes, size_t n);

/* ---- the rows' functions ---- */
void tool_read(struct tool_job *j); /* content.c */
void tool_write(struct tool_job *j);
void tool_edit(struct tool_job *j);
void tool_list(struct tool_job *j); /* find.c */
void tool_search(struct tool_job *j);
void tool_command(struct tool_job *j); /* command.c */
/* Runs a program for a row, with fields of run_request_exec_fields. Its result ends the job. */
void tool_program(struct tool_job *j, json_t *take_body);
void tool_code(struct tool_job *j);
void tool_install(struct tool_job *j);
void tool_bash(struct tool_job *j);
void tool_output(struct tool_job *j);  /* log.c */
void tool_port(struct tool_job *j);    /* port.c */
void tool_patch(struct tool_job *j);   /* patcher.c */
void tool_editor(struct tool_job *j);  /* editor.c */
void tool_new_box(struct tool_job *j); /* boxes.c */
void tool_boxes(struct tool_job *j);
void tool_end_box(struct tool_job *j);
void tool_checkpoint(struct tool_job *j); /* checkpoints.c */
void tool_checkpoints(struct tool_job *j);
void tool_diff(struct tool_job *j);
void tool_rollback(struct tool_job *j);
void tool_fork(struct tool_job *j);
void tool_merge(struct tool_job *j);
void tool_race(struct tool_job *j);
extern const struct field tool_checkpoint_fields[], tool_checkpoints_fields[], tool_diff_fields[],
	tool_rollback_fields[], tool_fork_fields[], tool_merge_fields[], tool_race_fields[];
void tool_screenshot(struct tool_job *j); /* desktop.c */
void tool_click(struct tool_job *j);
void tool_double_click(struct tool_job *j);
void tool_move_mouse(struct tool_job *j);
void tool_drag_mouse(struct tool_job *j);
void tool_scroll(struct tool_job *j);
void tool_type_text(struct tool_job *j);
void tool_press_keys(struct tool_job *j);
void tool_open_url(struct tool_job *j);
void tool_computer(struct tool_job *j);
extern const struct field tool_screenshot_fields[], tool_click_fields[], tool_double_click_fields[],
	tool_move_mouse_fields[], tool_drag_mouse_fields[], tool_scroll_fields[],
	tool_type_text_fields[], tool_press_keys_fields[], tool_open_url_fields[],
	tool_computer_fields[];
extern const struct field tool_new_box_fields[], tool_boxes_fields[], tool_end_box_fields[];

/* ---- tools that only one provider's models know ---- */
extern const struct tool tool_bash_row, tool_editor_row, tool_computer_row;

/* ---- surfaces ---- */
void openai_use(struct call *c); /* provider.c */
void anthropic_use(struct call *c);
extern const struct api_surface tool_surface;   /* /v1/tools and below /v1/boxes/{box}/tools */
extern const struct api_surface mcp_surface;    /* /mcp */
extern const struct api_surface swerex_surface; /* /swerex/{box}: swerex.h */
void mcp_fini(struct api *a);
void swerex_fini(struct api *a);
