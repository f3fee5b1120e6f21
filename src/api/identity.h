/* identity.h - the principal of a request, as a gateway names it to a node: the header Atoll-Identity.
 * Owns: nothing. Pure functions; a node reads the header only of requests that came over a tunnel.
 *
 *   Atoll-Identity: TEAM ROLE KEY BOX EXPIRY KEY_TIER TEAM_TIER
 *
 * KEY is the id of the key, BOX the only box that it may use, EXPIRY is in ns since 1970 (0: never), and the
 * last two are the minimum tiers of key and team. "-" stands for none. */
#pragma once
#include "api/api.h"

#define IDENTITY_HEADER "atoll-identity"
enum { IDENTITY_TEXT = 2 * STORE_NAME + 2 * STORE_WORD + 80 };

struct identity {
	struct principal principal;
	char team_isolation[STORE_WORD + 1]; /* "": none */
};

void identity_text(const struct identity *x, char out[IDENTITY_TEXT]);
must_check int identity_parse(const char *text, struct identity *out, struct err *e);
