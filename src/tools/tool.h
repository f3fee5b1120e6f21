/* tool.h - what a model may do in a box: one table, and one call of one of its rows.
 * Owns:         struct tool_job, from tool_begin() until its request is over.
 * Does not own: how the result is told. That is the surface's: /v1, OpenAI's shapes, Anthropic's, MCP.
 *
 *   arguments -> role -> fields -> box -> the row's function -> result -> surface
 *
 * Where /v1 has a handler that does the work, the row runs that: its answer and its error come back
 * here by the manner of the call. docs/agents.md tells the rest. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"
#include "tools/redact.h"
#include "tools/truncate.h"

struct tool_job;

enum tool_mark {
	TOOL_READS = 1 << 0, /* changes nothing */
	TOOL_DESTROYS = 1 << 1,
	TOOL_AGAIN = 1 << 2,   /* twice is as good as once */
	TOOL_OUTSIDE = 1 << 3, /* may reach beyond the box */
	TOOL_BOXES = 1 << 4,   /* about boxes, not in one: on MCP only */
};

struct tool {
	const char *name, *title, *help;
	const struct field *fields;
	void (*run)(struct tool_job *j);
	unsigned marks;
	const char *alias; /* of this row; NULL: it is one itself */
};
extern const struct tool tools[];
extern const unsigned ntools;
const struct tool *tool_named(const char *name); /* NULL: there is none */

enum tool_format { TOOLS_ATOLL, TOOLS_OPENAI, TOOLS_RESPONSES, TOOLS_ANTHROPIC, TOOLS_MCP };
/* The table as somebody's `tools`: an array. */
json_t *tools_json(enum tool_format f);
int tools_format(const char *name); /* -1: there is none */

/* ---- one call ---- */
struct tool_result {
	int failed;
	struct buf text; /* UTF-8 */
	json_t *data;
};

struct tool_surface {
	/* NULL, or: output as it comes, without secrets; any bytes. 1: wait for on_drain. */
	int (*said)(struct tool_job *j, unsigned stream, const char *bytes, size_t n);
	void (*over)(struct tool_job *j, const struct tool_result *r); /* once */
};

/* What c->door is on every surface. */
struct tool_call {
	struct tool_job *job; /* the last one */
	/* Told in the surface's shape: what happened before there was a job, or behind it. */
	void (*refuse)(struct call *c, int status, const char *code, const char *message,
		       const char *why, const char *hint);
	/* What a handler of /v1 has answered that ran for the surface itself. */
	void (*answered)(struct call *c, int status, json_t *take_doc);
	void (*left)(struct call *c); /* NULL, or: called once, at the end */
};
void tool_enter(struct call *c, struct tool_call *t); /* sets c->door and c->leave */
extern const struct api_format tool_format;           /* of tables whose calls may be entered */
void tool_told_error(struct call *c, int status, const char *code, const char *message,
		     const char *why, const char *hint);
void tool_told_json(struct call *c, int status, json_t *take_doc);

struct tool_job {
	struct call *call;
	const struct tool *tool;
	json_t *args;
	const struct tool_surface *on;
	int over;
	int leash; /* its program ends when the client leaves */
	struct tool_job *before;
	/* What a handler of /v1 has answered that ran for us. */
	void (*answered)(struct tool_job *j, int status, json_t *take_doc);
	struct redact redact;
	struct truncated out[2];
	char exec[ID_LEN + 1];
	void *state;                      /* the row's, in memory of the call ... */
	void (*drop)(struct tool_job *j); /* ... and what must be freed of it */
};

/* Parameter 0 of the call names the box, unless the row is about boxes. args is borrowed. */
void tool_begin(struct call *c, const struct tool *t, json_t *args, const struct tool_surface *on);
struct box *tool_box(struct tool_job *j); /* NULL: it has ended, and that was told */
/* The end, one of: */
void tool_done(struct tool_job *j, json_t *take_data, const char *text, size_t n);
void tool_say(struct tool_job *j, json_t *take_data, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void tool_result(struct tool_job *j, int failed, json_t *take_data, const char *text, size_t n);
void tool_fail(struct tool_job *j, const char *code, const char *message, const char *why,
	       const char *hint);

const char *tool_text(const struct tool_job *j, const char *name, const char *otherwise);
int64_t tool_int(const struct tool_job *j, const char *name, int64_t otherwise);
int tool_flag(const struct tool_job *j, const char *name);
/* UTF-8 whatever the bytes are, and without secrets. */
json_t *tool_string(const struct tool_job *j, const char *bytes, size_t n);

/* ---- the rows' functions ---- */
void tool_read(struct tool_job *j); /* content.c */
void tool_write(struct tool_job *j);
void tool_edit(struct tool_job *j);
void tool_list(struct tool_job *j); /* find.c */
void tool_search(struct tool_job *j);
void tool_command(struct tool_job *j); /* command.c */
/* A program for a row: in the words of run_request_exec_fields. Its result ends the job. */
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
extern const struct field tool_new_box_fields[], tool_boxes_fields[], tool_end_box_fields[];

/* ---- tools that only one provider's models know ---- */
extern const struct tool tool_bash_row, tool_editor_row;

/* ---- doors ---- */
void openai_use(struct call *c); /* provider.c */
void anthropic_use(struct call *c);
extern const struct api_surface tool_surface;   /* /v1/tools and below /v1/boxes/{box}/tools */
extern const struct api_surface mcp_surface;    /* /mcp */
extern const struct api_surface swerex_surface; /* /swerex/{box}: swerex.h */
void mcp_fini(struct api *a);
void swerex_fini(struct api *a);
