/* run_shares.h - /v1/runs/{run}/shares: links that show the record of one run without a key.
 *
 * A link contains a token of 256 random bits, of which the server stores the hash. It shows the record and nothing else: not
 * the request, not the box, not another run. It ends by itself, when it is withdrawn, and with the record.
 *
 * Owns: nothing; a share is a row of store/run_shares.h. */
#pragma once
#include "api/api.h"

extern const struct field run_shares_create_fields[];

void run_shares_create(struct call *c);
void run_shares_list(struct call *c);
void run_shares_delete(struct call *c);
void run_shares_open(struct call *c); /* GET /v1/shared/runs/{token}, without a key */
