/* dialect.h - the four protocols of model providers: one row each.
 * Owns: nothing. A request (docs/pipeline.md) becomes a body; events of the stream become a reply. */
#pragma once
#include "llm/reply.h"

struct models_config_model;

enum { REQUEST_MESSAGES = 512, REQUEST_TOOLS = 128, REQUEST_TOKENS = 4096 };

/* -1: an invalid request; e names the member. */
must_check int request_check(const json_t *request, struct err *e);

struct dialect {
	const char *name;
	const char *path; /* appended to the base URL of the provider */
	const char *key;  /* "Authorization: Bearer %s" */
	const char *more; /* another header, or NULL */
	int lines;        /* one JSON document per line, not server-sent events */
	json_t *(*body)(const json_t *request, const struct models_config_model *m);
	/* Handles one event. -1: it is invalid, or the reply is too large; errors of the provider
	 * are reported by reply_fail(). */
	int (*event)(struct reply *r, const char *name, const char *data, size_t len,
		     struct err *e);
};
extern const struct dialect dialects[];
extern const unsigned ndialects;
const struct dialect *dialect_find(const char *name); /* or NULL */

/* The request body: the same request always gives the same bytes. Freed by the caller. */
char *dialect_body(const json_t *request, const struct models_config_model *m);
