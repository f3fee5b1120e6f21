/* dns_fuzz.c - any bytes as a DNS query: an answer fits its buffer, and repeats the question. */
#include "egress/dns_message.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t out[DNS_MESSAGE_MAX];
	uint32_t address = 0xc6120001;
	char why[300];
	struct dns_query q;
	int code = dns_query_read(bytes, len, &q);
	size_t n;

	memset(why, 'w', sizeof(why) - 1);
	why[sizeof(why) - 1] = 0;
	if (code < 0)
		return 0;
	n = dns_answer_write(&q, bytes, (enum dns_code)code, code ? NULL : &address, why, out);
	assert(n >= 12 + q.question && n <= sizeof(out));
	assert(memcmp(out + 12, bytes + 12, q.question) == 0);
	assert(out[0] == bytes[0] && out[1] == bytes[1] && out[2] & 0x80);
	assert(strlen(q.name) < sizeof(q.name) && !net_is_literal(q.name));
	return 0;
}
