/* tls_hello_fuzz.c - any bytes as the start of a TLS connection. More bytes never change an accepted
 * hello, and a hello that is complete is never incomplete with more bytes. */
#include "egress/tls_hello.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct tls_hello all, part;
	enum tls_hello_state is = tls_hello_read(bytes, len, &all);

	if (is == TLS_HELLO_OK)
		assert(strlen(all.name) < sizeof(all.name) && !net_is_literal(all.name));
	for (size_t n = 0; n < len; n += n < 64 ? 1 : 97) {
		enum tls_hello_state was = tls_hello_read(bytes, n, &part);

		assert(was == TLS_HELLO_MORE || was == is);
		if (was == TLS_HELLO_OK)
			assert(strcmp(part.name, all.name) == 0 && part.ech == all.ech);
	}
	return 0;
}
