/* lang_json.h - a language as JSON: `atoll lang --json` and GET /v1/languages print the same. */
#pragma once
#include "base/buf.h"
#include "lang/lang.h"
#include <jansson.h>

/* version NULL or "": unknown, or not installed. */
json_t *lang_json_lang(const struct lang *l, const char *version);
/* Jupyter kernels of this machine, as languages of contexts: [{name, title, language}]. */
json_t *lang_json_kernels(void);
/* {items, next, install, kernels}; version(ctx, i) returns that of lang_at(i), kernels as above. */
json_t *lang_json_all(const char *(*version)(void *ctx, unsigned i), void *ctx,
		      json_t *take_kernels);
/* The command that installs all missing languages; nothing if none is missing. */
void lang_json_install(struct buf *out);
