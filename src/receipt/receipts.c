/* receipts.c - see receipts.h. */
#include "receipt/receipts.h"
#include "base/hex.h"
#include "base/quote.h"
#include "receipt/canonical.h"
#include "record/record.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- hashes ---- */

static void receipts_sha256(const void *bytes, size_t n, uint8_t out[SHA256_BYTES])
{
	static EVP_MD *sha256; /* fetched once: a fetch takes longer than the hash */

	if (!sha256)
		sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (!sha256 || EVP_Digest(bytes, n, out, NULL, sha256, NULL) != 1)
		abort();
}

void receipts_hash(const struct buf *body, uint8_t out[SHA256_BYTES])
{
	receipts_sha256(buf_str(body), body->len, out);
}

static void receipts_hex(const void *bytes, size_t n, char out[RECEIPT_HASH + 1])
{
	uint8_t hash[SHA256_BYTES];

	receipts_sha256(bytes, n, hash);
	hex_encode(out, hash, sizeof(hash));
}

static void receipts_hex_json(const json_t *value, char out[RECEIPT_HASH + 1])
{
	auto_buf struct buf text = { 0 };

	canonical_write(&text, value);
	receipts_hex(buf_str(&text), text.len, out);
}

void receipts_hash_inputs(const json_t *request, char out[RECEIPT_HASH + 1])
{
	json_t *copy = json_copy((json_t *)request);

	json_object_del(copy, "code");
	receipts_hex_json(copy, out);
	json_decref(copy);
}

json_t *receipts_inputs(const json_t *request)
{
	const json_t *code = json_object_get(request, "code");
	char hex[RECEIPT_HASH + 1];
	json_t *doc = json_object();

	if (json_is_string(code)) {
		receipts_hex(json_string_value(code), json_string_length(code), hex);
		json_object_set_new(doc, "code", json_string(hex));
	}
	receipts_hash_inputs(request, hex);
	json_object_set_new(doc, "all", json_string(hex));
	return doc;
}

/* ---- the body ---- */

/* Members are written in the canonical order: that of their names. */
static void body_key(struct buf *out, const char *name)
{
	buf_puts(out, out->p[out->len - 1] == '{' ? "\"" : ",\"");
	buf_puts(out, name);
	buf_puts(out, "\":");
}

/* Text without quotes and control characters. */
static void body_word(struct buf *out, const char *name, const char *word)
{
	body_key(out, name);
	buf_puts(out, *word ? "\"" : "null");
	buf_puts(out, word);
	if (*word)
		buf_putc(out, '"');
}

static void body_text(struct buf *out, const char *name, const char *text)
{
	body_key(out, name);
	quote_json(out, text, strlen(text));
}

static void body_value(struct buf *out, const char *name, const json_t *value)
{
	body_key(out, name);
	canonical_write(out, value);
}

static void body_number(struct buf *out, const char *name, long long n)
{
	body_key(out, name);
	buf_printf(out, "%lld", n);
}

static void body_time(struct buf *out, const char *name, int64_t ns)
{
	json_t *text = json_time((uint64_t)ns);

	body_value(out, name, text);
	json_decref(text);
}

static void body_command(struct buf *out, const json_t *record)
{
	const json_t *command = json_object_get(record, "command");
	char hex[RECEIPT_HASH + 1] = "";

	if (command)
		receipts_hex_json(command, hex);
	body_word(out, "command", hex);
}

/* A request that was too large to be stored has left its hashes in the record ("inputs"). */
static void body_code(struct buf *out, const json_t *record)
{
	const json_t *code = json_object_get(json_object_get(record, "request"), "code");
	const char *before =
		json_string_value(json_object_get(json_object_get(record, "inputs"), "code"));
	char hex[RECEIPT_HASH + 1] = "";

	if (json_is_string(code))
		receipts_hex(json_string_value(code), json_string_length(code), hex);
	body_word(out, "code", before ? before : hex);
}

static void body_inputs(struct buf *out, const json_t *record)
{
	const json_t *request = json_object_get(record, "request");
	const char *before =
		json_string_value(json_object_get(json_object_get(record, "inputs"), "all"));
	char hex[RECEIPT_HASH + 1] = "";

	if (request)
		receipts_hash_inputs(request, hex);
	body_word(out, "inputs", before ? before : hex);
}

static void body_outputs(struct buf *out, const json_t *record, const struct run_facts *facts)
{
	static const char *const names[2] = { "stderr", "stdout" };
	char hex[RECEIPT_HASH + 1], bytes[16];

	body_key(out, "outputs");
	buf_putc(out, '{');
	for (unsigned i = 0; i < 2; i++) {
		unsigned stream = 1 - i;

		snprintf(bytes, sizeof(bytes), "%s_bytes", names[i]);
		hex[0] = 0;
		if (facts->has_output[stream])
			hex_encode(hex, facts->output[stream], SHA256_BYTES);
		body_word(out, names[i], hex);
		body_value(out, bytes, json_object_get(record, bytes));
	}
	buf_putc(out, '}');
}

void receipts_body(struct buf *out, const struct receipts *r, const struct store_run *row,
		   const json_t *record, const struct run_facts *facts)
{
	const char *template = json_string_value(json_object_get(record, "template"));
	char previous[RECEIPT_HASH + 1];

	hex_encode(previous, r->previous, sizeof(r->previous));
	buf_putc(out, '{');
	body_word(out, "box", row->box);
	body_text(out, "cause", row->cause);
	body_code(out, record);
	body_command(out, record);
	if (json_object_get(record, "cost"))
		body_value(out, "cost", json_object_get(record, "cost"));
	body_time(out, "ended", row->ended_ns);
	body_inputs(out, record);
	body_value(out, "isolation", json_object_get(record, "layers"));
	body_text(out, "kind", store_run_kind_name(row->kind));
	body_value(out, "layers", facts->layers);
	body_value(out, "limits", json_object_get(record, "limits"));
	body_word(out, "node", r->key.id);
	body_number(out, "number", (long long)r->number);
	body_outputs(out, record, facts);
	body_word(out, "previous", previous);
	body_word(out, "run", row->id);
	body_time(out, "started", row->started_ns);
	body_number(out, "status", row->status);
	body_text(out, "team", row->team);
	body_text(out, "template", template ? template : "");
	body_number(out, "version", RECEIPT_VERSION);
	buf_putc(out, '}');
}

/* ---- the chain ---- */

static int receipts_next(void *ctx, uint64_t *out_number, struct err *e)
{
	struct receipts *r = ctx;

	if (store_receipt_last(r->store, &r->number, r->previous, e) < 0)
		return -1;
	*out_number = ++r->number;
	return 0;
}

static int receipts_add(void *ctx, const struct store_run *row, const json_t *record,
			const struct run_facts *facts, struct err *e)
{
	struct receipts *r = ctx;
	struct store_receipt add = { .number = r->number, .at_ns = row->ended_ns };
	auto_buf struct buf body = { 0 };

	memcpy(add.run, row->id, sizeof(add.run));
	memcpy(add.team, row->team, sizeof(add.team));
	receipts_body(&body, r, row, record, facts);
	receipts_hash(&body, add.hash);
	add.body = body.p;
	return store_receipt_add(r->store, &add, e);
}

void receipts_init(struct receipts *r, struct fleet *f)
{
	r->store = f->store;
	f->receipts =
		(struct fleet_receipts){ .ctx = r, .next = receipts_next, .add = receipts_add };
}

void receipts_fini(struct receipts *r)
{
	node_key_close(&r->key);
}

/* ---- signatures ---- */

void receipts_message(struct buf *out, uint64_t number, const char *previous, const char *hash)
{
	buf_printf(out, "atoll receipt %d\n%llu\n%s\n%s\n", RECEIPT_VERSION,
		   (unsigned long long)number, previous, hash);
}

static int receipts_sign(const struct receipts *r, uint64_t number, const char *previous,
			 const char *hash, char out[2 * NODE_KEY_SIGNATURE + 1], struct err *e)
{
	unsigned char signature[NODE_KEY_SIGNATURE];
	auto_buf struct buf message = { 0 };

	receipts_message(&message, number, previous, hash);
	if (node_key_sign(&r->key, message.p, message.len, signature, e) < 0)
		return -1;
	hex_encode(out, signature, sizeof(signature));
	return 0;
}

/* A body that was changed in the database is not signed. */
static int receipts_check_row(const struct store_receipt *row, const json_t *body, struct err *e)
{
	uint8_t hash[SHA256_BYTES];

	receipts_sha256(row->body, strlen(row->body), hash);
	if (memcmp(hash, row->hash, sizeof(hash)) == 0 && json_object_get(body, "previous") &&
	    (uint64_t)json_integer_value(json_object_get(body, "number")) == row->number)
		return 0;
	return err_set(
		e, ERR_CONFLICT,
		"receipt %llu was changed in the database: its content does not have its hash",
		(unsigned long long)row->number);
}

int receipts_line(const struct receipts *r, const struct store_receipt *row, int withheld,
		  struct buf *out, struct err *e)
{
	json_t *body = json_loads(row->body, 0, NULL);
	const char *previous = json_string_value(json_object_get(body, "previous"));
	char hash[RECEIPT_HASH + 1], signature[2 * NODE_KEY_SIGNATURE + 1];
	int rc = receipts_check_row(row, body, e);

	hex_encode(hash, row->hash, sizeof(row->hash));
	if (rc == 0)
		rc = receipts_sign(r, row->number, previous, hash, signature, e);
	if (rc == 0 && withheld)
		buf_printf(
			out,
			"{\"hash\":\"%s\",\"number\":%llu,\"previous\":\"%s\",\"signature\":\"%s\"}",
			hash, (unsigned long long)row->number, previous, signature);
	else if (rc == 0)
		buf_printf(out, "{\"receipt\":%s,\"signature\":\"%s\"}", row->body, signature);
	json_decref(body);
	return rc;
}
