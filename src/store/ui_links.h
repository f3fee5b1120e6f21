/* ui_links.h - one-time links that open the web UI signed in (v1/ui_login.h). The token of a
 * link is not stored, only its SHA-256. A link is a row, so that every server process accepts
 * it, also after a restart. */
#pragma once
#include "base/sha256.h"
#include "store/keys.h"
#include "store/store.h"

enum { UI_LINKS = 64 }; /* unused ones of one team */

struct store_ui_link {
	uint8_t hash[SHA256_BYTES];
	char team[STORE_NAME + 1];
	char who[STORE_NAME + 1]; /* id of the key that made it; "uid:0" on the unix socket */
	enum store_role role;     /* of the session that it opens */
	int64_t expires_ns;
};

/* The row; expired links of all teams are removed, and the team's oldest above UI_LINKS. */
must_check int store_ui_link_insert(struct store *s, const struct store_ui_link *link,
				    int64_t now_ns, struct err *e);
/* Reads and removes it: of two requests with the same link, the first gets it. ERR_NOT_FOUND:
 * unknown, used or expired. */
must_check int store_ui_link_take(struct store *s, const uint8_t hash[SHA256_BYTES], int64_t now_ns,
				  struct store_ui_link *out, struct err *e);
