/* dialect.h - the four ways in which models are spoken with: one row each.
 * Owns: nothing. A request (docs/pipeline.md) becomes a body; events of the stream become a reply. */
#pragma once
#include "llm/reply.h"

struct models_config_model;

enum { REQUEST_MESSAGES = 512, REQUEST_TOOLS = 128, REQUEST_TOKENS = 4096 };

/* -1: it is no request; e names the member. */
must_check int request_check(const json_t *request, struct err *e);

struct dialect {
	const char *name;
	const char *path; /* behind the provider's base */
	const char *key;  /* "Authorization: Bearer %s" */
	const char *more; /* another header, or NULL */
	int lines;        /* a line each, not server-sent events */
	json_t *(*body)(const json_t *request, const struct models_config_model *m);
	/* One event. -1: it is not to be understood, or too much; what they say is wrong is reply_fail(). */
	int (*event)(struct reply *r, const char *name, const char *data, size_t len,
		     struct err *e);
};
extern const struct dialect dialects[];
extern const unsigned ndialects;
const struct dialect *dialect_find(const char *name); /* or NULL */

/* The body as it is sent: the same request gives the same bytes. To be freed. */
char *dialect_body(const json_t *request, const struct models_config_model *m);
