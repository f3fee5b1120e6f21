/* auth.h - authentication: checks of Host and Origin, API keys, tokens.
 * Owns: a small cache of keys and tokens; an entry is valid for a second, so a revoked key is
 *       rejected after a second at most. */
#pragma once
#include "api/api.h"

struct auth *auth_new(void);
void auth_free(struct auth *a);
/* Returns 0, or the status to answer with. A subdomain of an accepted name is accepted, too. */
int auth_host(const struct api *a, const struct http_req *r, const char **why);
/* 1: boxes may be reached at this Host. */
int auth_is_preview_host(const struct api *a, const char *host);
int auth_origin(const struct api *a, const struct http_req *r, const char **why);
/* Returns 0, or 401 with the reason. */
int auth_principal(struct api *a, const struct http_req *r, struct principal *out,
		   const char **why);
int auth_still(struct api *a, const struct principal *w); /* 1: the key is still valid */
/* Clears the cache. */
void auth_forget(struct api *a);
/* The same after a change of a key or team on this machine, which other gateways get, too. 0: they may get it late, because
 * the database of the cluster does not answer. */
int auth_changed(struct api *a);
/* 1: the request has a key, valid or not. */
int auth_has_key(const struct http_req *r);
/* Counts a failed attempt of the address of the request. 1: too many attempts; the caller answers
 * 429. */
int auth_failed(struct api *a, const struct http_req *r);
int auth_may_guess(struct api *a,
		   const struct http_req *r); /* 0: the next failure would exceed the limit */
