/* dialect_util.h - helpers of the dialects: encoding requests and parsing replies.
 * Owns: nothing. */
#pragma once
#include "llm/models_config.h"
#include "llm/dialect.h"

const char *part_text(const json_t *j, const char *name); /* NULL: there is none */
uint64_t part_count(const json_t *j, const char *name);

/* ---- hearing ---- */
json_t *hear_json(const char *data, size_t len, struct err *e); /* an object, or NULL */
struct hear_row {
	const char *type;
	int (*take)(struct reply *r, const json_t *event, struct err *e);
};
/* By the type in the data; the name of the event is the same, or missing. Other events are
 * ignored. */
int hear_typed(const struct hear_row *rows, unsigned n, struct reply *r, const char *data,
	       size_t len, struct err *e);
int hear_text(struct reply *r, const json_t *j, struct err *e);
int hear_arguments(struct reply *r, struct reply_call *c, const json_t *j, struct err *e);
/* An object in place of text. */
int hear_object(struct reply *r, struct reply_call *c, const json_t *j, struct err *e);
struct hear_reason { /* why a reply ended */
	const char *theirs;
	enum stop stop;
};
enum stop hear_reason(const struct hear_reason *rows, unsigned n, const char *theirs);
void hear_stop(struct reply *r, enum stop s);
/* total: including cached tokens. */
void hear_usage(struct reply *r, uint64_t total, uint64_t cache_read, uint64_t cache_write,
		uint64_t out);

/* ---- saying ---- */
void say(json_t *to, const char *name, const json_t *value); /* NULL: not given */
void say_new(json_t *to, const char *name, json_t *take_value);
json_t *say_dumped(const json_t *j);       /* as text */
json_t *say_system(const json_t *request); /* all of it as one text; NULL: none */
json_int_t say_tokens(const json_t *request, const struct models_config_model *m);
int say_schema(const json_t *request,
	       const struct models_config_model *m); /* in the notation of the dialect */
/* The schema as a tool that must be called: its arguments are the answer. NULL: not used. */
const json_t *say_schema_tool(const json_t *request, const struct models_config_model *m);
typedef json_t *tool_shape(const char *name, const char *description, json_t *parameters,
			   const json_t *strict);
json_t *say_tools(const json_t *request, const struct models_config_model *m, tool_shape *shape);

/* ---- the four: body and event of each row ---- */
json_t *chat_body(const json_t *request, const struct models_config_model *m);
json_t *ollama_body(const json_t *request, const struct models_config_model *m);
json_t *responses_body(const json_t *request, const struct models_config_model *m);
json_t *messages_body(const json_t *request, const struct models_config_model *m);
int chat_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e);
int ollama_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e);
int responses_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e);
int messages_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e);
