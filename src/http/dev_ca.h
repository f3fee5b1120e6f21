/* dev_ca.h - a certificate for a domain and all names one label below it, signed by an authority
 * that is made for this certificate only.
 * Owns: nothing. The authority's key is discarded before ca_make() returns, and its certificate
 * is limited to this domain: a client that trusts it accepts no other name because of it. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

enum { CA_DAYS = 800 }; /* browsers refuse more than 825 */

struct ca_files { /* as PEM */
	struct buf ca, cert, key;
	int64_t until_s;
	char fingerprint[96]; /* of ca: SHA-256, "AB:CD:..." */
};

/* At least two labels: clients do not accept "*.localhost" for a name below localhost. */
must_check int ca_check_domain(const char *domain, struct err *e);
must_check int ca_make(const char *domain, struct ca_files *out, struct err *e);
void ca_fini(struct ca_files *f); /* the key is wiped */
