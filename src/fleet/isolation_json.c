/* isolation_json.c - tiers as JSON: of a box, and of the host. See isolation.h. */
#include "fleet/isolation.h"
#include "fleet/fleet.h"
#include "record/record.h"

#include <stdlib.h>
#include <string.h>

static json_t *isolation_names(uint64_t bits, const char *const *names)
{
	json_t *all = json_array();

	for (unsigned i = 0; names && names[i]; i++)
		if (bits >> i & 1)
			json_array_append_new(all, json_string(names[i]));
	return all;
}

/* A box of an earlier version: a container, without a decision. */
static json_t *isolation_of_container(void)
{
	return json_pack("{s:s, s:s, s:i, s:n, s:n, s:n, s:b, s:n, s:n}", "requested", "auto",
			 "tier", choose_tier_name(CHOOSE_CONTAINER), "rank",
			 choose_tier_rank(CHOOSE_CONTAINER), "engine", "version", "platform",
			 "emulated", 0, "chosen_by", "evidence");
}

json_t *isolation_text_json(const char *text, uint64_t features, const char *const *names)
{
	json_t *doc = text && strcmp(text, "{}") != 0 ? json_loads(text, 0, NULL) : NULL;

	if (!doc)
		doc = isolation_of_container();
	json_object_set_new(doc, "features", isolation_names(features, names));
	/* Only boxes with a guest have such steps inside it; an older keeper does not report them. */
	if (!json_object_get(doc, "inner_features"))
		json_object_set_new(doc, "inner_features",
				    json_is_null(json_object_get(doc, "engine")) ? json_array()
										 : json_null());
	return doc;
}

/* By bit of enum packet_feature (mux/packet.h); the first and the last have the names of the same steps outside. */
static const char *const inner_names[] = { "pid-namespace", "init-user", "no-new-privileges",
					   NULL };

void isolation_add_inner(char **text, uint16_t inner)
{
	json_t *doc = inner && *text ? json_loads(*text, 0, NULL) : NULL;

	if (!doc)
		return;
	json_object_set_new(doc, "inner_features", isolation_names(inner, inner_names));
	free(*text);
	*text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!*text)
		abort();
}

json_t *isolation_json(const struct store_box *row, const char *const *names)
{
	return isolation_text_json(row->isolation, row->layers, names);
}

const char *isolation_tier(const struct store_box *row)
{
	json_t *doc = row->isolation ? json_loads(row->isolation, 0, NULL) : NULL;
	const char *name = json_string_value(json_object_get(doc, "tier"));
	enum choose_tier t = CHOOSE_CONTAINER;
	struct err e;

	if (name && choose_tier_parse(name, &t, &e) < 0 &&
	    !strcmp(name, choose_tier_name(CHOOSE_PLAIN)))
		t = CHOOSE_PLAIN;
	json_decref(doc);
	return choose_tier_name(t);
}

int isolation_is_emulated(const struct store_box *row)
{
	json_t *doc = row->isolation ? json_loads(row->isolation, 0, NULL) : NULL;
	int emulated = json_is_true(json_object_get(doc, "emulated"));

	json_decref(doc);
	return emulated;
}

uint64_t isolation_usual_ms(const struct store_box *row, uint64_t ms)
{
	return isolation_is_emulated(row) ? ms * ISOLATION_EMULATED_TIMES : ms;
}

static const char *isolation_state(const struct isolation *x, enum choose_tier t)
{
	const struct choose_fact *c = &x->judged.tier[t];

	if (c->state == CHOOSE_UNAVAILABLE)
		return "unavailable";
	if (c->state == CHOOSE_UNPREPARED)
		return "unprepared";
	return c->proof == CHOOSE_WITHDRAWN ? "withdrawn" : "offered";
}

/* Why a request that names this tier and nothing else would not get it; "": it would. */
static void isolation_reason(const struct isolation *x, enum choose_tier t, char out[CHOOSE_WHY])
{
	struct choose_settings s = x->settings;
	struct choose_policy p = { .settings = &s,
				   .team = CHOOSE_NONE,
				   .key = CHOOSE_NONE,
				   .template = CHOOSE_NONE,
				   .key_process = 1 };
	struct choose_request q = { .how = CHOOSE_NAMED, .tier = t, .modules = 1, .has_trust = 1 };

	s.label[CHOOSE_TRUSTED] = CHOOSE_PROCESS;
	choose_why(&p, &x->judged, &q, t, out);
}

static json_t *isolation_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

static json_t *isolation_tier_json(const struct fleet *f, enum choose_tier t)
{
	const struct isolation *x = &f->isolation;
	const struct wire_tier_facts *w = &x->facts[t];
	const struct isolation_proof *proof = &x->proofs[t];
	char why[CHOOSE_WHY];
	json_t *doc;

	isolation_reason(x, t, why);
	doc = json_pack("{s:s, s:i, s:b, s:s, s:o, s:o, s:o, s:o, s:b, s:I, s:o, s:o, s:o}", "tier",
			choose_tier_name(t), "rank",
			w->emulated ? choose_tier_rank(CHOOSE_CONTAINER) : choose_tier_rank(t),
			"offered", !why[0], "state", isolation_state(x, t), "reason",
			isolation_or_null(why), "engine", isolation_or_null(w->engine), "version",
			isolation_or_null(w->version), "platform", isolation_or_null(w->platform),
			"emulated", w->emulated != 0, "mem_min", (json_int_t)w->mem_min_bytes,
			"evidence", isolation_or_null(proof->id), "proven",
			proof->at_ns ? json_time((uint64_t)proof->at_ns) : json_null(),
			"engine_sha256", isolation_or_null(w->sha256));
	return doc;
}

json_t *isolation_tiers_json(const struct fleet *f)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < CHOOSE_TIERS; i++)
		if (choose_is_listed(&f->isolation.judged, i))
			json_array_append_new(all, isolation_tier_json(f, i));
	return all;
}
