/* isolation.c - see isolation.h. */
#include "fleet/isolation.h"
#include "fleet/fleet.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "store/keys.h"
#include "store/snapshots.h"
#include "store/teams.h"
#include "tier/tier.h"
#include "tier/wasm.h"
#include "wire/sock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { AGAIN_MS = 60000, CHANGED_MS = 2500, CHANGED_TIMES = 2 };

/* ---- facts ---- */

static void isolation_judge(struct fleet *f)
{
	struct isolation *x = &f->isolation;

	for (unsigned i = 0; i < CHOOSE_TIERS; i++) {
		const struct wire_tier_facts *w = &x->facts[i];

		x->proofs[i] = (struct isolation_proof){ 0 };
		if (x->proof && w->state == WIRE_TIER_OFFERED)
			x->proof(f, (enum choose_tier)i, w, &x->proofs[i]);
		if (i != CHOOSE_CONTAINER && i == choose_of_wire(keeper_test_tier_number()))
			x->proofs[i].state = CHOOSE_PROVEN; /* test builds: ATOLL_TIER */
		x->judged.tier[i] = (struct choose_fact){
			.state = w->state == WIRE_TIER_OFFERED      ? CHOOSE_OFFERED
				 : w->state == WIRE_TIER_UNPREPARED ? CHOOSE_UNPREPARED
								    : CHOOSE_UNAVAILABLE,
			.proof = x->proofs[i].state,
			.emulated = w->emulated != 0,
			.unsupported = w->unsupported,
			.mem_min_bytes = w->mem_min_bytes,
			.reason = w->reason,
		};
	}
}

/* What holds before the keeper has answered, and for keepers without tiers. */
static void isolation_assume(struct isolation *x)
{
	static const char *const reasons[CHOOSE_TIERS] = {
		[CHOOSE_PROCESS] = "the keeper has not examined it (atoll doctor)",
		[CHOOSE_PLAIN] = "in test builds only (use container)",
		[CHOOSE_WASM] = "not prepared (atoll tier prepare wasm)",
		[CHOOSE_GVISOR] = "the keeper has not examined it (atoll doctor)",
		[CHOOSE_MICROVM] = "the keeper has not examined it (atoll doctor)",
	};

	for (unsigned i = 0; i < CHOOSE_TIERS; i++) {
		x->facts[i] = (struct wire_tier_facts){ .tier = choose_wire_tier(i),
							.rank = (uint32_t)choose_tier_rank(i),
							.unsupported = ~UINT64_C(0) };
		if (reasons[i])
			snprintf(x->facts[i].reason, sizeof(x->facts[i].reason), "%s", reasons[i]);
	}
	x->facts[CHOOSE_CONTAINER].state = WIRE_TIER_OFFERED;
	x->facts[CHOOSE_CONTAINER].unsupported =
		UINT64_C(1) << WIRE_NEED_MEMORY_SNAPSHOT | UINT64_C(1) << WIRE_NEED_GPU;
}

static void isolation_end_text(char *s, size_t room)
{
	s[room - 1] = 0;
}

static void isolation_take(struct isolation *x, const struct frame *f, size_t len)
{
	const char *at = (const char *)f + sizeof(*f);
	size_t n = (len - sizeof(*f)) / sizeof(struct wire_tier_facts);

	for (size_t i = 0; i < n; i++, at += sizeof(struct wire_tier_facts)) {
		struct wire_tier_facts w;
		enum choose_tier t;

		memcpy(&w, at, sizeof(w));
		t = choose_of_wire(w.tier);
		if (t == CHOOSE_NONE)
			continue; /* of a newer keeper */
		isolation_end_text(w.engine, sizeof(w.engine));
		isolation_end_text(w.version, sizeof(w.version));
		isolation_end_text(w.sha256, sizeof(w.sha256));
		isolation_end_text(w.platform, sizeof(w.platform));
		isolation_end_text(w.reason, sizeof(w.reason));
		x->facts[t] = w;
	}
}

static void isolation_answered(struct fleet *f, int ok)
{
	void (*done)(struct fleet *, int) = f->isolation.refreshed;

	isolation_judge(f);
	f->isolation.refreshed = NULL;
	timer_set(&f->isolation.again, f->isolation.outdated ? CHANGED_MS : AGAIN_MS);
	f->isolation.outdated -= f->isolation.outdated > 0;
	if (f->isolation.changed)
		f->isolation.changed(f);
	if (done)
		done(f, ok);
}

/* An old keeper answers with an error: then only containers are known. */
static void isolation_on_facts(void *ctx, const struct frame *f, size_t len, int *fd,
			       const struct err *e)
{
	struct fleet *fl = ctx;

	(void)fd;
	(void)e;
	fl->isolation.asking = NULL;
	isolation_assume(&fl->isolation);
	if (f)
		isolation_take(&fl->isolation, f, len);
	isolation_answered(fl, f != NULL);
}

static void isolation_request(struct fleet *f, uint16_t flags)
{
	struct frame ask = sock_head(WIRE_TIERS, 0);

	ask.flags = flags;
	f->isolation.asked_ms = loop_now_ms();
	f->isolation.asking = keeper_client_request(&f->keeper, &ask, sizeof(ask), WIRE_TIERS_REPLY,
						    isolation_on_facts, f);
}

static void isolation_due(struct timer *t)
{
	struct fleet *f = loop_owner(t, struct fleet, isolation.again);

	if (!f->isolation.asking)
		isolation_request(f, 0);
}

void isolation_init(struct fleet *f, const struct choose_settings *s)
{
	f->isolation.settings = s->nprefer ? *s : choose_defaults;
	timer_init(&f->isolation.again, f->loop, isolation_due);
	isolation_assume(&f->isolation);
	isolation_judge(f);
}

void isolation_fini(struct fleet *f)
{
	timer_fini(&f->isolation.again);
	if (f->isolation.asking)
		keeper_client_cancel(&f->keeper, f->isolation.asking);
	f->isolation.asking = NULL;
}

void isolation_connected(struct fleet *f)
{
	if (!f->isolation.asking)
		isolation_request(f, 0);
}

void isolation_outdated(struct fleet *f)
{
	f->isolation.outdated = CHANGED_TIMES;
	isolation_connected(f);
}

int isolation_refresh(struct fleet *f, void (*done)(struct fleet *f, int ok), struct err *e)
{
	if (f->isolation.refreshed)
		return err_set(e, ERR_CONFLICT,
			       "the tiers are being examined already; repeat the request later");
	if (f->isolation.asking)
		keeper_client_cancel(&f->keeper, f->isolation.asking);
	f->isolation.refreshed = done;
	isolation_request(f, WIRE_TIERS_AGAIN);
	return 0;
}

void isolation_prove(struct fleet *f)
{
	isolation_judge(f);
}

/* ---- a request ---- */

static int isolation_read_object(const json_t *v, struct choose_request *out, struct err *e)
{
	const json_t *least = json_object_get(v, "at_least");
	const char *text = json_string_value(least);

	if (json_object_size(v) != 1 || !text || !*text)
		return err_set(
			e, ERR_INVALID,
			"isolation: must be \"auto\", the name of a tier, or {\"at_least\": the name of a tier}");
	if (choose_tier_parse(text, &out->tier, e) < 0)
		return err_in(e, "isolation.at_least");
	out->how = CHOOSE_AT_LEAST;
	return 0;
}

int isolation_read(const json_t *isolation, const json_t *trust, struct choose_request *out,
		   struct err *e)
{
	if (isolation && json_is_string(isolation)) {
		if (choose_request_parse(json_string_value(isolation), out, e) < 0)
			return err_in(e, "isolation");
	} else if (isolation && !json_is_null(isolation)) {
		if (isolation_read_object(isolation, out, e) < 0)
			return -1;
	}
	if (!trust || json_is_null(trust))
		return 0;
	if (!json_is_string(trust))
		return err_set(e, ERR_INVALID,
			       "trust: must be trusted, generated, untrusted or hostile");
	if (choose_trust_parse(json_string_value(trust), &out->trust, e) < 0)
		return err_in(e, "trust");
	out->has_trust = 1;
	return 0;
}

struct choose_request isolation_stored(const json_t *request)
{
	struct choose_request q = { 0 };
	struct err e;

	if (isolation_read(json_object_get(request, "isolation"), json_object_get(request, "trust"),
			   &q, &e) < 0)
		q = (struct choose_request){ .how = CHOOSE_AT_LEAST, .tier = CHOOSE_MICROVM };
	return q;
}

int isolation_read_raise(const char *isolation, const char *trust, struct choose_request *out,
			 struct err *e)
{
	if (isolation && choose_request_parse(isolation, out, e) < 0)
		return err_in(e, "atoll.isolation");
	if (isolation && out->how == CHOOSE_NAMED &&
	    choose_tier_rank(out->tier) < choose_tier_rank(CHOOSE_CONTAINER))
		return err_set(e, ERR_INVALID,
			       "atoll.isolation: '%s' would be weaker; it can only raise the tier",
			       isolation);
	if (isolation && out->how == CHOOSE_NAMED)
		out->how = CHOOSE_AT_LEAST;
	if (!trust)
		return 0;
	if (choose_trust_parse(trust, &out->trust, e) < 0)
		return err_in(e, "atoll.trust");
	if (out->trust < CHOOSE_GENERATED)
		return err_set(
			e, ERR_INVALID,
			"atoll.trust: '%s' would be weaker than generated; it can only raise the tier",
			trust);
	out->has_trust = 1;
	return 0;
}

void isolation_of_snapshot(const struct store_snapshot *s, struct choose_request *out)
{
	struct err e;

	if (!s->tier[0])
		return;
	out->has_snapshot = 1;
	if (choose_tier_parse(s->tier, &out->snapshot, &e) < 0)
		out->snapshot = CHOOSE_CONTAINER; /* `plain` of a test build: files only */
}

struct choose_request isolation_like(const struct store_box *row)
{
	json_t *doc = row->isolation ? json_loads(row->isolation, 0, NULL) : NULL;
	const json_t *by = json_object_get(doc, "chosen_by");
	struct choose_request q = { 0 };
	struct err e;

	if (doc && (isolation_read(json_object_get(doc, "tier"), json_object_get(by, "trust"), &q,
				   &e) < 0))
		q = (struct choose_request){ 0 };
	if (q.tier == CHOOSE_CONTAINER)
		q.how = CHOOSE_AUTO; /* its files can start in any tier */
	json_decref(doc);
	return q;
}

int isolation_check_minimum(const char *text, int of_key, struct err *e)
{
	enum choose_tier t;

	if (!*text)
		return 0;
	if (choose_tier_parse(text, &t, e) < 0)
		return -1;
	if (t == CHOOSE_PROCESS && !of_key)
		return err_set(e, ERR_INVALID,
			       "process is no minimum; write container, gvisor or microvm");
	return 0;
}

int isolation_check_template(const json_t *isolation, const json_t *needs, struct err *e)
{
	uint64_t bits = 0;
	json_t *need;
	size_t i;

	if (json_is_string(isolation) &&
	    isolation_check_minimum(json_string_value(isolation), 0, e) < 0)
		return err_in(e, "isolation");
	json_array_foreach(needs, i, need) if (choose_need_parse(json_string_value(need), &bits,
								 e) < 0) return err_in(e, "needs");
	return 0;
}

/* ---- minima ---- */

static int isolation_below(const char *text, const char *least, const char *what, struct err *e)
{
	enum choose_tier t = CHOOSE_NONE, min = CHOOSE_NONE;

	if (!*text || !*least || choose_tier_parse(text, &t, e) < 0 ||
	    choose_tier_parse(least, &min, e) < 0 || choose_tier_rank(t) >= choose_tier_rank(min))
		return 0;
	return err_set(
		e, ERR_INVALID,
		"isolation: %s is weaker than %s, which %s requires; write %s or a stronger tier",
		text, least, what, least);
}

int isolation_check_key(struct store *s, struct store_key *k, const char *by, int is_operator,
			struct err *e)
{
	struct store_team team = { 0 };
	struct err none;

	if (!k->isolation[0] && strcmp(by, choose_tier_name(CHOOSE_PROCESS)) != 0)
		snprintf(k->isolation, sizeof(k->isolation), "%s", by);
	if (isolation_check_minimum(k->isolation, 1, e) < 0)
		return err_in(e, "isolation");
	if (!is_operator && !strcmp(k->isolation, choose_tier_name(CHOOSE_PROCESS)))
		return err_set(e, ERR_DENIED,
			       "isolation: only operators create keys for the tier %s",
			       k->isolation);
	if (store_team_get(s, k->team, &team, &none) < 0)
		return 0; /* store_key_add() rejects it */
	if (isolation_below(k->isolation, team.isolation, "the team", e) < 0)
		return -1;
	return isolation_below(k->isolation, by, "the key that creates it", e);
}

/* A text that no version of this program has written counts as the strongest tier. */
static enum choose_tier isolation_minimum(const char *text)
{
	enum choose_tier t = CHOOSE_MICROVM;
	struct err e;

	if (!text || !*text)
		return CHOOSE_NONE;
	return choose_tier_parse(text, &t, &e) < 0 ? CHOOSE_MICROVM : t;
}

static int isolation_many_teams(struct fleet *f)
{
	struct store_teams all = { 0 };
	struct err e;
	int many = store_team_list(f->store, "", &all, &e) < 0 || all.n > 1;

	store_teams_fini(&all);
	return many;
}

static void isolation_template(const char *root, struct choose_policy *p, struct choose_request *q)
{
	json_t *doc = root ? json_loads(root, 0, NULL) : NULL, *need;
	struct err e;
	size_t i;

	p->template = isolation_minimum(json_string_value(json_object_get(doc, "isolation")));
	json_array_foreach(
		json_object_get(doc, "needs"), i,
		need) if (choose_need_parse(json_string_value(need) ? json_string_value(need) : "",
					    &q->needs, &e) < 0) q->needs |=
		~UINT64_C(0); /* of a newer version: no tier of this one has it */
	json_decref(doc);
}

/* On the unix socket: root, or the user of the daemon. */
static int isolation_is_operator(const char *key)
{
	char own[24];

	snprintf(own, sizeof(own), "uid:%u", (unsigned)geteuid());
	return key && (!strcmp(key, "uid:0") || !strcmp(key, own));
}

/* A host without containers executes programs of Atoll in the tier process, if the operator allows that tier. */
static void isolation_policy_own(const struct isolation *x, struct choose_policy *p,
				 struct choose_request *q)
{
	static struct choose_settings process;

	if (q->how != CHOOSE_AUTO || !x->settings.process ||
	    x->judged.tier[CHOOSE_CONTAINER].state == CHOOSE_OFFERED)
		return;
	process = choose_defaults;
	process.process = 1;
	process.label[CHOOSE_GENERATED] = CHOOSE_PROCESS;
	p->settings = &process;
	p->key_process = 1;
	q->how = CHOOSE_NAMED;
	q->tier = CHOOSE_PROCESS;
}

/* Principals without a row of a key ("uid:0", tokens of an issuer) have no minimum of their own. */
static void isolation_policy(struct fleet *f, const struct isolation_ask *a,
			     struct choose_policy *p, struct choose_request *q)
{
	struct store_team team;
	struct store_key key;
	struct err e;

	*p = (struct choose_policy){ .settings =
					     a->is_own ? &choose_defaults : &f->isolation.settings,
				     .team = CHOOSE_NONE,
				     .key = CHOOSE_NONE,
				     .template = CHOOSE_NONE };
	*q = a->request;
	if (a->is_own) {
		isolation_policy_own(&f->isolation, p, q);
		return;
	}
	if (a->team && *a->team && store_team_get(f->store, a->team, &team, &e) == 0)
		p->team = isolation_minimum(team.isolation);
	if (a->key && *a->key && store_key_get(f->store, a->key, &key, &e) == 0) {
		p->key = isolation_minimum(key.isolation);
		p->key_process = p->key == CHOOSE_PROCESS;
	} else {
		p->key_process = isolation_is_operator(a->key);
	}
	if (q->how == CHOOSE_NAMED && q->tier == CHOOSE_PROCESS)
		p->many_teams = isolation_many_teams(f);
	isolation_template(a->root, p, q);
}

/* ---- the choice ---- */

static json_t *isolation_requested(const struct choose_request *q)
{
	if (q->how == CHOOSE_AT_LEAST)
		return json_pack("{s:s}", "at_least", choose_tier_name(q->tier));
	return json_string(q->how == CHOOSE_NAMED ? choose_tier_name(q->tier) : "auto");
}

static json_t *isolation_text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

static json_t *isolation_chosen_by(const struct choose_policy *p, const struct choose_request *q,
				   const struct choose_result *r)
{
	const struct choose_settings *s = p->settings;

	return json_pack("{s:s, s:i, s:s, s:s, s:o, s:o, s:o, s:o}", "source",
			 choose_source_name(r->source), "required_rank", r->required, "trust",
			 choose_trust_name(r->trust), "label", choose_tier_name(s->label[r->trust]),
			 "team", isolation_text_or_null(choose_tier_name(p->team)), "key",
			 isolation_text_or_null(choose_tier_name(p->key)), "template",
			 isolation_text_or_null(choose_tier_name(p->template)), "request",
			 q->how == CHOOSE_AUTO ? json_null()
					       : json_string(choose_tier_name(q->tier)));
}

static char *isolation_describe(const struct fleet *f, const struct choose_policy *p,
				const struct choose_request *q, const struct choose_result *r)
{
	const struct wire_tier_facts *w = &f->isolation.facts[r->tier];
	json_t *doc = json_pack("{s:o, s:s, s:i, s:o, s:o, s:o, s:b, s:o, s:o}", "requested",
				isolation_requested(q), "tier", choose_tier_name(r->tier), "rank",
				r->rank, "engine", isolation_text_or_null(w->engine), "version",
				isolation_text_or_null(w->version), "platform",
				isolation_text_or_null(w->platform), "emulated", w->emulated != 0,
				"chosen_by", isolation_chosen_by(p, q, r), "evidence",
				isolation_text_or_null(f->isolation.proofs[r->tier].id));
	char *text = json_dumps(doc, JSON_COMPACT);

	json_decref(doc);
	if (!text)
		abort();
	return text;
}

/* What the rejection names may have been installed since the facts were requested: the next request must not wait for a minute. */
static void isolation_rejected(struct fleet *f)
{
	struct isolation *x = &f->isolation;

	if (x->asked_ms && !x->asking && loop_now_ms() - x->asked_ms > CHANGED_MS)
		timer_set(&x->again, 0);
}

/* The message has as many whole lines as fit. */
static int isolation_reject(struct fleet *f, const struct choose_policy *p,
			    const struct choose_request *q, const struct choose_result *r,
			    struct err *e)
{
	struct isolation *x = &f->isolation;
	char why[CHOOSE_WHY];
	size_t n = 0, m;

	err_set(e, ERR_CONFLICT, "no isolation tier fits: rank %d is required by the %s",
		r->required, choose_source_name(r->source));
	m = strlen(e->msg);
	for (unsigned i = CHOOSE_TIERS;
	     i-- > 0;) { /* the strongest first: it is what the request lacks */
		if (!choose_is_listed(&x->judged, i) || !choose_why(p, &x->judged, q, i, why))
			continue;
		n += (size_t)snprintf(x->rejected.lines + n, sizeof(x->rejected.lines) - n,
				      "%s%s: %s", n ? "\n" : "", choose_tier_name(i), why);
		if (m + strlen(choose_tier_name(i)) + strlen(why) + 4 < sizeof(e->msg))
			m += (size_t)snprintf(e->msg + m, sizeof(e->msg) - m, "; %s: %s",
					      choose_tier_name(i), why);
	}
	isolation_rejected(f);
	e->sys = ENOTSUP;
	snprintf(x->rejected.message, sizeof(x->rejected.message), "%s", e->msg);
	return -1;
}

/* Test builds: boxes that would be containers have the tier of ATOLL_TIER, if it supports their needs. */
static void isolation_use_test_tier(const struct choose_request *q, struct choose_result *r)
{
	const struct tier *t = tier_find(keeper_test_tier_number());

	if (r->tier != CHOOSE_CONTAINER || !t || t->unsupported & q->needs)
		return;
	r->tier = choose_of_wire(tier_number(t));
	r->rank = choose_tier_rank(r->tier);
}

int isolation_choose(struct fleet *f, const struct isolation_ask *a, int want_text,
		     struct isolation_choice *out, struct err *e)
{
	struct choose_policy p;
	struct choose_request q;
	struct choose_result r;

	isolation_policy(f, a, &p, &q);
	if (choose(&p, &f->isolation.judged, &q, &r) < 0)
		return isolation_reject(f, &p, &q, &r, e);
	isolation_use_test_tier(&q, &r);
	*out = (struct isolation_choice){
		.tier = r.tier,
		.flags = wire_tier_flags(choose_wire_tier(r.tier)),
		.no_zygote = f->isolation.facts[r.tier].unsupported >> WIRE_NEED_ZYGOTE & 1,
		.emulated = f->isolation.facts[r.tier].emulated != 0,
	};
	if (want_text)
		out->text = isolation_describe(f, &p, &q, &r);
	return 0;
}

int isolation_accepts(struct fleet *f, const struct isolation_ask *a, const struct store_box *row,
		      struct err *e)
{
	json_t *has = row->isolation ? json_loads(row->isolation, 0, NULL) : NULL;
	const char *tier = isolation_tier(row);
	int rank = json_object_get(has, "rank")
			   ? (int)json_integer_value(json_object_get(has, "rank"))
			   : choose_tier_rank(CHOOSE_CONTAINER);
	struct choose_policy p;
	struct choose_request q;
	struct choose_result r;

	json_decref(has);
	isolation_policy(f, a, &p, &q);
	(void)!choose(&p, &f->isolation.judged, &q, &r);
	if (rank >= r.required &&
	    (q.how != CHOOSE_NAMED || !strcmp(tier, choose_tier_name(q.tier))))
		return 0;
	err_set(e, ERR_CONFLICT,
		"box %s exists and its isolation tier is %s (rank %d); %s%s is required. Delete it first, or use another "
		"session or name",
		row->id, tier, rank, q.how == CHOOSE_NAMED ? "tier " : "a higher rank",
		q.how == CHOOSE_NAMED ? choose_tier_name(q.tier) : "");
	e->sys = ENOTSUP;
	return -1;
}

int isolation_check_program(const struct store_box *row, const char *program, struct err *e)
{
	if (!row->isolation || strcmp(isolation_tier(row), choose_tier_name(CHOOSE_WASM)) != 0)
		return 0;
	return wasm_check_program(program, e);
}

const char *isolation_lines(const struct fleet *f, const struct err *e)
{
	return isolation_is_rejection(e) && !strcmp(f->isolation.rejected.message, e->msg)
		       ? f->isolation.rejected.lines
		       : NULL;
}

int isolation_is_rejection(const struct err *e)
{
	return e->kind == ERR_CONFLICT && e->sys == ENOTSUP;
}

int isolation_can_stop_all(uint16_t tier)
{
	return tier != WIRE_TIER_PROCESS;
}

int isolation_has_checkpoints(const struct store_box *row)
{
	return !strcmp(isolation_tier(row), choose_tier_name(CHOOSE_CONTAINER));
}
