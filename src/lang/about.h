/* about.h - a language as JSON: `atoll lang --json` and GET /v1/languages say the same. */
#pragma once
#include "base/buf.h"
#include "lang/lang.h"
#include <jansson.h>

/* version NULL or "": not known, or not here. */
json_t *about_lang(const struct lang *l, const char *version);
/* {items, next, install}; version(ctx, i) tells that of lang_at(i). */
json_t *about_all(const char *(*version)(void *ctx, unsigned i), void *ctx);
/* The one line that installs what is not here; nothing if all is. */
void about_install(struct buf *out);
