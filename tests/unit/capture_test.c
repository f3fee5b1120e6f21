/* capture_test.c - the first bytes of captured connections, DNS messages, and addresses for names. */
#include "base/cleanup.h"
#include "egress/dns_message.h"
#include "egress/name_table.h"
#include "egress/tls_hello.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- TLS ---- */

struct bytes {
	uint8_t v[4096];
	size_t n;
};

static void add(struct bytes *b, const void *p, size_t n)
{
	memcpy(b->v + b->n, p, n);
	b->n += n;
}

static void add_number(struct bytes *b, size_t value, unsigned size)
{
	while (size--)
		b->v[b->n++] = (uint8_t)(value >> (8 * size));
}

static struct bytes server_name(const char *name, size_t n)
{
	struct bytes b = { 0 };

	add_number(&b, 0, 2);
	add_number(&b, n + 5, 2);
	add_number(&b, n + 3, 2);
	add_number(&b, 0, 1);
	add_number(&b, n, 2);
	add(&b, name, n);
	return b;
}

/* A ClientHello with these extensions, in records of at most `piece` bytes. */
static struct bytes hello(const struct bytes *extensions, size_t piece)
{
	struct bytes body = { 0 }, out = { 0 };

	add_number(&body, 1, 1);
	add_number(&body, 2 + 32 + 1 + 32 + 2 + 4 + 2 + 2 + extensions->n, 3);
	add_number(&body, 0x0303, 2);
	add(&body, "................................", 32);
	add_number(&body, 32, 1);
	add(&body, "................................", 32);
	add_number(&body, 4, 2);
	add_number(&body, 0x13011302, 4);
	add_number(&body, 1, 1);
	add_number(&body, 0, 1);
	add_number(&body, extensions->n, 2);
	add(&body, extensions->v, extensions->n);
	for (size_t at = 0; at < body.n; at += piece) {
		size_t n = body.n - at < piece ? body.n - at : piece;

		add_number(&out, 22, 1);
		add_number(&out, 0x0301, 2);
		add_number(&out, n, 2);
		add(&out, body.v + at, n);
	}
	return out;
}

static const char *name_of(const char *name)
{
	static struct tls_hello h;
	struct bytes ext = server_name(name, strlen(name)), all = hello(&ext, 4000);

	return tls_hello_read(all.v, all.n, &h) == TLS_HELLO_OK ? h.name : "bad";
}

TEST(the_server_name_of_a_client_hello_is_read)
{
	CHECK_STR(name_of("host.example"), "host.example");
	CHECK_STR(name_of("Host.EXAMPLE"), "host.example");
	CHECK_STR(name_of("host.example."), "bad");
	CHECK_STR(name_of("192.0.2.1"), "bad");
	CHECK_STR(name_of("host.example:443"), "bad");
	CHECK_STR(name_of("[::1]"), "bad");
	CHECK_STR(name_of(""), "bad");
	CHECK_STR(name_of("a b"), "bad");
}

TEST(a_client_hello_without_extensions_names_no_server)
{
	struct bytes none = { 0 }, all = hello(&none, 4000);
	struct tls_hello h;

	CHECK_INT(tls_hello_read(all.v, all.n, &h), TLS_HELLO_OK);
	CHECK_STR(h.name, "");
	CHECK_INT(h.ech, 0);
}

TEST(a_client_hello_may_be_split_over_records_and_is_incomplete_until_its_last_byte)
{
	struct bytes ext = server_name("host.example", 12);

	for (size_t piece = 1; piece < 200; piece++) {
		struct bytes all = hello(&ext, piece);
		struct tls_hello h;

		for (size_t n = 0; n < all.n; n++)
			CHECK_INT(tls_hello_read(all.v, n, &h), TLS_HELLO_MORE);
		CHECK_INT(tls_hello_read(all.v, all.n, &h), TLS_HELLO_OK);
		CHECK_STR(h.name, "host.example");
		add(&all, "more", 4); /* another record, of early data */
		CHECK_INT(tls_hello_read(all.v, all.n, &h), TLS_HELLO_OK);
	}
}

TEST(two_server_names_and_an_encrypted_hello_are_noticed)
{
	struct bytes ext = server_name("host.example", 12), second = server_name("b.example", 9),
		     all;
	struct tls_hello h;

	add_number(&ext, 0xfe0d, 2);
	add_number(&ext, 1, 2);
	add_number(&ext, 0, 1);
	all = hello(&ext, 4000);
	CHECK_INT(tls_hello_read(all.v, all.n, &h), TLS_HELLO_OK);
	CHECK_INT(h.ech, 1);
	add(&ext, second.v, second.n);
	all = hello(&ext, 4000);
	CHECK_INT(tls_hello_read(all.v, all.n, &h), TLS_HELLO_BAD);
}

TEST(a_client_hello_with_a_wrong_length_is_rejected)
{
	struct bytes ext = server_name("host.example", 12), good = hello(&ext, 4000);

	/* Each length of the message, one larger and one smaller; and other types. */
	const size_t lengths[] = { 8, 43, 77, 82, 85, 89, 91, 92, 94 };
	struct tls_hello h;

	for (unsigned i = 0; i < ARRAY_LEN(lengths); i++)
		for (int by = -1; by <= 1; by += 2) {
			struct bytes bad = good;

			bad.v[lengths[i]] = (uint8_t)(bad.v[lengths[i]] + by);
			if (tls_hello_read(bad.v, bad.n, &h) == TLS_HELLO_OK)
				printf("# accepted: byte %zu\n", lengths[i]);
			CHECK(tls_hello_read(bad.v, bad.n, &h) != TLS_HELLO_OK);
		}
	for (size_t at = 0; at < 6; at += 5) {
		struct bytes bad = good;

		bad.v[at] = 2;
		CHECK_INT(tls_hello_read(bad.v, bad.n, &h), TLS_HELLO_BAD);
	}
	good.v[3] = good.v[4] = 0; /* an empty record */
	CHECK_INT(tls_hello_read(good.v, good.n, &h), TLS_HELLO_BAD);
}

/* ---- DNS ---- */

#define HEAD "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00"
#define QUESTION                                                                                   \
	"\x04Host\x07"                                                                             \
	"example\x00\x00\x01\x00\x01"

TEST(a_dns_query_is_read_and_answered)
{
	static const char text[] = HEAD "\x00" QUESTION;
	const uint8_t *bytes = (const uint8_t *)text;
	size_t n = sizeof(text) - 1;
	uint32_t address = 0xc6120001;
	uint8_t out[DNS_MESSAGE_MAX];
	struct dns_query q;

	CHECK_INT(dns_query_read(bytes, n, &q), DNS_OK);
	CHECK_STR(q.name, "host.example");
	CHECK_INT(q.type, DNS_A);
	CHECK_INT(q.edns, 0);
	CHECK_INT(dns_answer_write(&q, bytes, DNS_OK, &address, NULL, out), n + 16);
	CHECK(memcmp(out, "\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00", 12) == 0);
	CHECK(memcmp(out + 12, bytes + 12, n - 12) == 0);
	CHECK(memcmp(out + n, "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc6\x12\x00\x01",
		     16) == 0);
	CHECK_INT(dns_answer_write(&q, bytes, DNS_NXDOMAIN, NULL, "no", out), n);
	CHECK_INT(out[3], 0x83);
	for (size_t less = 12; less < n; less++)
		CHECK_INT(dns_query_read(bytes, less, &q), DNS_FORMERR);
	CHECK_INT(dns_query_read(bytes, 11, &q), -1);
}

TEST(the_reason_is_in_the_answer_if_the_query_allows_it)
{
	static const char text[] =
		HEAD "\x01" QUESTION "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00";
	uint8_t out[DNS_MESSAGE_MAX];
	struct dns_query q;
	size_t n;

	CHECK_INT(dns_query_read((const uint8_t *)text, sizeof(text) - 1, &q), DNS_OK);
	CHECK_INT(q.edns, 1);
	n = dns_answer_write(&q, (const uint8_t *)text, DNS_NXDOMAIN, NULL, "not allowed", out);
	CHECK_INT(n, sizeof(text) - 1 + 6 + 11);
	CHECK(memcmp(out + n - 17, "\x00\x0f\x00\x0d\x00\x0fnot allowed", 17) == 0);
}

TEST(malformed_dns_queries_are_rejected)
{
	const struct {
		const char *bytes;
		size_t n;
		int code;
	} rows[] = {
#define ROW(text, code) { text, sizeof(text) - 1, code }
		ROW("\x12\x34\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00" QUESTION,
		    -1), /* an answer */
		ROW("\x12\x34\x09\x00\x00\x01\x00\x00\x00\x00\x00\x00" QUESTION, DNS_NOTIMP),
		ROW("\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00" QUESTION QUESTION,
		    DNS_FORMERR),
		ROW("\x12\x34\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00", DNS_FORMERR),
		ROW("\x12\x34\x01\x00\x00\x01\x00\x01\x00\x00\x00\x00" QUESTION, DNS_FORMERR),
		ROW(HEAD "\x00\xc0\x0c\x00\x01\x00\x01", DNS_FORMERR), /* a pointer */
		ROW(HEAD "\x00" QUESTION "x", DNS_FORMERR),            /* more bytes */
		ROW(HEAD "\x01" QUESTION, DNS_FORMERR),                /* no OPT */
		ROW(HEAD "\x00\x01"
			 "a\x00\x00\x01\x00\x03",
		    DNS_NOTIMP), /* another class */
#undef ROW
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct dns_query q;
		int code = dns_query_read((const uint8_t *)rows[i].bytes, rows[i].n, &q);

		if (code != rows[i].code)
			printf("# row %u\n", i);
		CHECK_INT(code, rows[i].code);
	}
}

TEST(a_name_that_is_not_a_host_name_is_empty)
{
	const struct {
		const char *bytes;
		size_t n;
	} rows[] = {
		{ HEAD "\x00\x03"
		       "a.b\x04test\x00\x00\x01\x00\x01",
		  12 + 10 + 4 },
		{ HEAD "\x00\x01\x00\x04test\x00\x00\x01\x00\x01", 12 + 8 + 4 },
		{ HEAD "\x00\x01"
		       "1\x01"
		       "2\x01"
		       "3\x01"
		       "4\x00\x00\x01\x00\x01",
		  12 + 9 + 4 },
		{ HEAD "\x00\x00\x00\x01\x00\x01", 12 + 1 + 4 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct dns_query q;

		CHECK_INT(dns_query_read((const uint8_t *)rows[i].bytes, rows[i].n, &q), DNS_OK);
		CHECK_STR(q.name, "");
	}
}

/* ---- names ---- */

TEST(a_name_keeps_its_address_and_an_address_its_name)
{
	struct name_table t = { 0 };
	uint32_t a = name_table_address(&t, "a.example"), b = name_table_address(&t, "b.example");

	CHECK(a != b && name_table_has(a) && name_table_has(b));
	CHECK(!name_table_has(0xc6110001) && !name_table_has(0xc6140001));
	CHECK_INT(name_table_address(&t, "a.example"), a);
	CHECK_STR(name_table_find(&t, b), "b.example");
	CHECK(!name_table_find(&t, b + 1));
	name_table_fini(&t);
}

TEST(the_table_of_names_is_bounded_and_addresses_are_not_reused_soon)
{
	struct name_table t = { 0 };
	uint32_t first = name_table_address(&t, "first.example"), old = 0;
	char name[32];

	for (unsigned i = 0; i < 3 * NAME_TABLE_MAX; i++) {
		uint32_t now;

		snprintf(name, sizeof(name), "n%u.example", i);
		now = name_table_address(&t, name);
		CHECK(now > old); /* 131070 addresses */
		old = now;
		CHECK_STR(name_table_find(&t, first), "first.example"); /* used: it stays */
	}
	CHECK_INT(t.n, NAME_TABLE_MAX);
	CHECK(!name_table_find(&t, first + 1));
	name_table_fini(&t);
}
