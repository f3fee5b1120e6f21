/* auth.h - who is asking, and may they knock here at all?
 * Owns: a small cache of keys and tokens; an entry is believed for a second, so a revoked key ends
 *       within one. */
#pragma once
#include "api/api.h"

struct auth *auth_new(void);
void auth_free(struct auth *a);
/* 0, or the status that answers it. A name below one of ours is ours, too. */
int auth_host(const struct api *a, const struct http_req *r, const char **why);
int auth_origin(const struct api *a, const struct http_req *r, const char **why);
/* 0, or 401 with the reason. */
int auth_principal(struct api *a, const struct http_req *r, struct principal *out,
		   const char **why);
int auth_still(struct api *a, const struct principal *w); /* 1: the key is as good as it was */
void auth_changed(struct api *a);                         /* forget what is cached */
int auth_has_key(const struct http_req *r);               /* it sends one, right or wrong */
/* Counts a failed attempt of the request's address. 1: it had too many, and this one is answered 429. */
int auth_failed(struct api *a, const struct http_req *r);
int auth_may_guess(struct api *a,
		   const struct http_req *r); /* 0: the next failure would be too many */
