/* lang_json.h - a language as JSON: `atoll lang --json` and GET /v1/languages say the same. */
#pragma once
#include "base/buf.h"
#include "lang/lang.h"
#include <jansson.h>

/* version NULL or "": not known, or not here. */
json_t *lang_json_lang(const struct lang *l, const char *version);
/* Jupyter kernels of this machine, as languages of contexts: [{name, title, language}]. */
json_t *lang_json_kernels(void);
/* {items, next, install, kernels}; version(ctx, i) tells that of lang_at(i), kernels are as above. */
json_t *lang_json_all(const char *(*version)(void *ctx, unsigned i), void *ctx,
		      json_t *take_kernels);
/* The one line that installs what is not here; nothing if all is. */
void lang_json_install(struct buf *out);
