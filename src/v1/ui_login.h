/* ui_login.h - how a browser signs in without a typed key.
 *
 *   atoll ui, ./up  -- POST /v1/ui/links ----->  a token, good once and for five minutes
 *   browser opens  http://HOST/#k=TOKEN           what follows '#' is never sent, hence in no log
 *   page            -- POST /v1/ui/sessions -->  a key of its own, good for a day, kept by the tab
 *
 * Owns: nothing; links and keys are rows (store/ui_links.h, store/keys.h). */
#pragma once
#include "api/api.h"

enum {
	UI_TOKEN_BYTES = 24,
	UI_TOKEN_TEXT = 2 * UI_TOKEN_BYTES, /* hexadecimal digits */
	UI_LINK_MS = 5 * 60 * 1000,
	UI_SESSION_HOURS = 24,
	UI_ORIGIN = 400,
};
#define UI_SESSION_PREFIX "ui-" /* of the names of keys that sessions have */

extern const struct field ui_login_link_fields[], ui_login_session_fields[];
/* Scheme, host and port of this server as the caller's browser would write them. A client on the unix
 * socket does not name a host: then it is that of the first TCP listener, with the name in the
 * certificate if there is one. 0: no TCP listener, and out is "". */
int ui_login_origin(const struct call *c, char out[UI_ORIGIN]);
/* The address of a page of the UI, with "#k=" and the token. JSON null: no TCP listener. */
json_t *ui_login_url(const struct call *c, const char *page, const char *token);
void ui_login_create_link(struct call *c);
void ui_login_open_session(struct call *c);
