/* verify.c - see verify.h. */
#include "receipt/verify.h"
#include "base/hex.h"
#include "receipt/canonical.h"

#include <stdio.h>
#include <string.h>

/* What a line claims, in either of its two forms. */
struct verify_claim {
	uint64_t number;
	const char *previous, *node; /* node NULL: withheld */
	char hash[RECEIPT_HASH + 1];
	unsigned char signature[NODE_KEY_SIGNATURE];
};

static int verify_is_hex(const char *text, size_t n)
{
	return text && strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

static int verify_read_signature(const json_t *line, unsigned char out[NODE_KEY_SIGNATURE],
				 struct err *e)
{
	const char *text = json_string_value(json_object_get(line, "signature"));

	if (!verify_is_hex(text, 2 * NODE_KEY_SIGNATURE))
		return err_set(e, ERR_INVALID, "signature: not %d hexadecimal digits",
			       2 * NODE_KEY_SIGNATURE);
	for (unsigned i = 0; i < NODE_KEY_SIGNATURE; i++)
		out[i] = (unsigned char)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
	return 0;
}

static int verify_read_body(const json_t *body, struct verify_claim *c, struct err *e)
{
	auto_buf struct buf text = { 0 };
	uint8_t hash[SHA256_BYTES];
	json_int_t version = json_integer_value(json_object_get(body, "version"));

	if (version != RECEIPT_VERSION)
		return err_set(e, ERR_INVALID,
			       "version: %lld is not %d, the one that this program knows",
			       (long long)version, RECEIPT_VERSION);
	c->node = json_string_value(json_object_get(body, "node"));
	if (!verify_is_hex(c->node, NODE_KEY_ID))
		return err_set(e, ERR_INVALID, "node: not the id of a key");
	canonical_write(&text, body);
	receipts_hash(&text, hash);
	hex_encode(c->hash, hash, sizeof(hash));
	return 0;
}

static int verify_read_link(const json_t *line, struct verify_claim *c, struct err *e)
{
	const char *hash = json_string_value(json_object_get(line, "hash"));

	if (!verify_is_hex(hash, RECEIPT_HASH))
		return err_set(e, ERR_INVALID, "neither a receipt nor the hash of one");
	memcpy(c->hash, hash, sizeof(c->hash));
	return 0;
}

static int verify_read(const json_t *line, struct verify_claim *c, struct err *e)
{
	const json_t *body = json_object_get(line, "receipt"), *from = body ? body : line,
		     *number = json_object_get(from, "number");

	c->number = json_is_integer(number) && json_integer_value(number) > 0
			    ? (uint64_t)json_integer_value(number)
			    : 0;
	c->previous = json_string_value(json_object_get(from, "previous"));
	if (!c->number)
		return err_set(e, ERR_INVALID, "number: missing, or not above 0");
	if (json_object_size(line) != (body ? 2 : 4))
		err_set(e, ERR_INVALID, "members that a line of receipts does not have");
	else if (!verify_is_hex(c->previous, RECEIPT_HASH))
		err_set(e, ERR_INVALID, "previous: not a hash");
	else if ((body ? verify_read_body(body, c, e) : verify_read_link(line, c, e)) == 0 &&
		 verify_read_signature(line, c->signature, e) == 0)
		return 0;
	return err_in(e, "receipt %llu", (unsigned long long)c->number);
}

static int verify_signature(const struct verify *v, const struct verify_claim *c, struct err *e)
{
	auto_buf struct buf message = { 0 };

	receipts_message(&message, c->number, c->previous, c->hash);
	if (node_key_verify(v->key, message.p, message.len, c->signature))
		return 0;
	if (c->node && strcmp(c->node, v->key->id) != 0)
		return err_set(e, ERR_DENIED,
			       "receipt %llu: signed with key %s, and this key is %s",
			       (unsigned long long)c->number, c->node, v->key->id);
	return err_set(e, ERR_DENIED,
		       "receipt %llu: the signature does not match: its content was changed",
		       (unsigned long long)c->number);
}

static int verify_order(const struct verify *v, const struct verify_claim *c, struct err *e)
{
	unsigned long long number = c->number, last = v->last;

	if (!v->count || (number == last + 1 && !strcmp(c->previous, v->hash)))
		return 0;
	if (number == last)
		return err_set(e, ERR_CONFLICT, "receipt %llu: occurs twice", number);
	if (number < last)
		return err_set(e, ERR_CONFLICT, "receipt %llu: out of order, it follows %llu",
			       number, last);
	if (number == last + 2)
		return err_set(e, ERR_CONFLICT, "receipt %llu is missing: %llu follows %llu",
			       last + 1, number, last);
	if (number > last + 1)
		return err_set(e, ERR_CONFLICT,
			       "receipts %llu to %llu are missing: %llu follows %llu", last + 1,
			       number - 1, number, last);
	return err_set(e, ERR_CONFLICT,
		       "receipt %llu: names another predecessor than receipt %llu of this file",
		       number, last);
}

int verify_line(struct verify *v, const char *line, size_t n, struct err *e)
{
	json_t *doc = n <= VERIFY_LINE ? canonical_parse(line, n, e) : NULL;
	struct verify_claim c = { 0 };
	int rc = 0;

	if (n > VERIFY_LINE)
		return err_set(e, ERR_LIMIT, "a line of %zu bytes; a receipt has at most %d", n,
			       VERIFY_LINE);
	if (!doc)
		return -1;
	rc = verify_read(doc, &c, e) < 0 || verify_signature(v, &c, e) < 0 ||
			     verify_order(v, &c, e) < 0
		     ? -1
		     : 0;
	if (rc == 0) {
		v->first = v->count ? v->first : c.number;
		v->last = c.number;
		v->withheld += !c.node;
		v->count++;
		memcpy(v->hash, c.hash, sizeof(v->hash));
	}
	json_decref(doc);
	return rc;
}
