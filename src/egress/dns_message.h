/* dns_message.h - one DNS query of a box, and the answer to it.
 * A query has exactly one question, without compression; an OPT record may follow. */
#pragma once
#include "egress/net_rule.h"

enum { DNS_MESSAGE_MAX = 512 + 512 }; /* of a query or an answer */

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };
enum dns_code { DNS_OK, DNS_FORMERR, DNS_SERVFAIL, DNS_NXDOMAIN, DNS_NOTIMP };

struct dns_query {
	uint16_t id, type;
	int recursive;
	int edns;             /* it has an OPT record: the answer may have one */
	char name[RULE_HOST]; /* canonical; "": not a host name */
	size_t question;      /* bytes of the question */
};

/* DNS_OK, or the code of the answer; -1: not a query, no answer. */
must_check int dns_query_read(const uint8_t *bytes, size_t n, struct dns_query *out);
/* Writes the answer: one address, or none. why: for a program that reads extended errors, or NULL.
 * Returns its length. */
size_t dns_answer_write(const struct dns_query *q, const uint8_t *query, enum dns_code code,
			const uint32_t *address, const char *why, uint8_t out[DNS_MESSAGE_MAX]);
