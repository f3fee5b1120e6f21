/* hermetic.c - see hermetic.h. */
#include "v1run/hermetic.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "lang/compile_cache.h"
#include "receipt/canonical.h"
#include "receipt/receipts.h"
#include "record/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SOURCE_DATE_EPOCH: 1980-01-01, the first day that ZIP archives can have. */
const char *const hermetic_env[] = { "PYTHONHASHSEED=0",
				     "PERL_HASH_SEED=0",
				     "PERL_PERTURB_KEYS=0",
				     "GODEBUG=randautoseed=0",
				     "SOURCE_DATE_EPOCH=315532800",
				     "TZ=UTC",
				     "LC_ALL=C.UTF-8",
				     "TRACEPARENT=", /* another one in each request */
				     NULL };

int hermetic_is(const json_t *body)
{
	return json_is_true(json_object_get(body, "hermetic"));
}

int hermetic_reuses(const json_t *body)
{
	return hermetic_is(body) && json_is_true(json_object_get(body, "reuse"));
}

static int hermetic_has_network(const json_t *network)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)network, name,
			    v) if (json_is_true(v) || json_array_size(v)) return 1;
	return 0;
}

int hermetic_check(const json_t *body, struct err *e)
{
	static const char *const outside[] = { "secrets", "install", "volumes" };

	if (json_is_true(json_object_get(body, "reuse")) && !hermetic_is(body))
		return err_set(
			e, ERR_INVALID,
			"reuse: only an answer of a hermetic run can be used again; add \"hermetic\": true");
	if (!hermetic_is(body))
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(outside); i++)
		if (json_object_get(body, outside[i]))
			return err_set(
				e, ERR_INVALID,
				"hermetic: the run has %s, which its request does not determine",
				outside[i]);
	if (hermetic_has_network(json_object_get(body, "network")))
		return err_set(
			e, ERR_INVALID,
			"hermetic: the run has a network, which its request does not determine");
	return 0;
}

/* ---- the key ---- */

static json_t *hermetic_limits(const struct wire_limits *l)
{
	return json_pack("[I, I, I, I, I, I]", (json_int_t)l->mem_bytes, (json_int_t)l->disk_bytes,
			 (json_int_t)l->disk_files, (json_int_t)l->cpu_milli, (json_int_t)l->pids,
			 (json_int_t)l->cpu_ms);
}

/* Files below /usr of the host are part of boxes of base. */
static json_t *hermetic_host(const char *lang_program)
{
	struct compile_inputs of = { .surface = "memo", .program = lang_program };
	struct compile_cache_key key;
	char hex[2 * SHA256_BYTES + 1];

	compile_cache_key(&of, &key);
	hex_encode(hex, key.bytes, sizeof(key.bytes));
	return json_string(hex);
}

void hermetic_key(const json_t *body, const struct box_spec *box, const char *lang_program,
		  uint8_t out[SHA256_BYTES])
{
	json_t *request = json_copy((json_t *)body), *layers = json_array(), *all;
	auto_buf struct buf text = { 0 };

	json_object_del(request, "tag");
	for (unsigned i = 0; i < box->nlayers; i++)
		json_array_append_new(layers, json_stringn(box->layers[i],
							   strnlen(box->layers[i], WIRE_LAYER_ID)));
	all = json_pack("{s:s, s:o, s:s, s:o, s:o, s:s, s:o}", "version", ATOLL_VERSION, "request",
			request, "root", box->root, "layers", layers, "limits",
			hermetic_limits(&box->limits), "env", box->row.env ? box->row.env : "",
			"host", hermetic_host(lang_program));
	canonical_write(&text, all);
	receipts_hash(&text, out);
	json_decref(all);
}

/* ---- answers ---- */

json_t *hermetic_find(struct fleet *f, const char *team, const uint8_t key[SHA256_BYTES])
{
	int64_t now = fleet_now_ns();
	struct store_memo m = { 0 };
	json_t *doc;
	struct err e;

	run_writer_flush(&f->run_writer); /* the end of the run may not be written yet */
	if (store_memo_get(f->store, team, key, now, &m, &e) < 0)
		return NULL;
	doc = json_loads(m.answer, 0, NULL);
	if (json_is_object(doc))
		json_object_set_new(doc, "reused",
				    json_pack("{s:s, s:I, s:I, s:o}", "run", m.run, "receipt",
					      (json_int_t)m.receipt, "age_ms",
					      (json_int_t)((now - m.created_ns) / 1000000),
					      "created", json_time((uint64_t)m.created_ns)));
	store_memo_fini(&m);
	return doc;
}

void hermetic_collect(struct hermetic_memo *m, unsigned stream, const char *bytes, size_t n)
{
	if (m->wanted && m->out[stream].len + n <= HERMETIC_OUTPUT)
		buf_add(&m->out[stream], bytes, n);
	else
		m->wanted = 0;
}

void hermetic_keep(struct hermetic_memo *m, struct fleet *f, const char *team, const json_t *doc)
{
	const char *cause = json_string_value(json_object_get(doc, "cause")),
		   *run = json_string_value(json_object_get(doc, "id"));
	struct store_memo row = { .created_ns = fleet_now_ns() };
	json_t *answer;
	struct err e;

	if (!m->wanted || !cause || strcmp(cause, "exit") != 0 || !run ||
	    json_is_true(json_object_get(doc, "truncated")))
		return;
	answer = json_copy((json_t *)doc);
	record_set_output(answer, "stdout", &m->out[0]);
	record_set_output(answer, "stderr", &m->out[1]);
	row.answer = json_dumps(answer, JSON_COMPACT | RECORD_DIGITS);
	json_decref(answer);
	if (!row.answer)
		abort();
	snprintf(row.run, sizeof(row.run), "%s", run);
	(void)!store_memo_put(f->store, team, m->key, &row, &e); /* else the next one runs again */
	store_memo_fini(&row);
}

void hermetic_memo_fini(struct hermetic_memo *m)
{
	buf_fini(&m->out[0]);
	buf_fini(&m->out[1]);
}
