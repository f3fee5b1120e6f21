/* tls_hello.h - reads the server name from the first bytes of a TLS client.
 * A ClientHello may be split over records; each length must fit exactly. */
#pragma once
#include "egress/net_rule.h"

enum { TLS_HELLO_MAX = 16 << 10 }; /* bytes of a ClientHello */

struct tls_hello {
	char name[RULE_HOST]; /* canonical; "": the client names no server */
	int ech;              /* it has an encrypted ClientHello: name is the outer one */
};

enum tls_hello_state { TLS_HELLO_MORE, TLS_HELLO_OK, TLS_HELLO_BAD };

/* MORE: the bytes are the start of a ClientHello so far. */
enum tls_hello_state tls_hello_read(const uint8_t *bytes, size_t n, struct tls_hello *out);
