/* network.h - translates E2B's network options of a sandbox into Atoll's list of hosts.
 *
 * Atoll's is a list of hosts, each within what the operator permits (docs/egress.md). E2B's is a
 * filter over addresses and names. The result is the part of E2B's that the operator permits;
 * the rest cannot be reached, and that is no error. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field network_fields[];        /* `network` of a new sandbox */
extern const struct field network_update_fields[]; /* a body of PUT .../network */

struct network {        /* zero is a valid empty one */
	json_t *hosts;  /* for row.network */
	int registries; /* the registries of packages.* may be reached: not all targets are denied */
	json_t *headers; /* [{host, name, value}] that egress sets in requests; for secrets_set_headers() */
	json_t *said; /* as requested, for the answers, without values of headers */
};
void network_fini(struct network *n);
/* from: an object of network_fields or network_update_fields, checked; may be NULL. internet: 0,
 * 1, or -1 where it is not set. */
must_check int network_read(const struct api *a, const json_t *from, int internet,
			    struct network *out, struct err *e);

void network_put(struct call *c);
