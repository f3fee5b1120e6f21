/* choose.c - see choose.h. */
#include "tier/choose.h"
#include "base/cleanup.h"
#include "base/suggest.h"
#include "tier/tier.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

static const struct {
	const char *name;
	int rank;
	unsigned wire;
} rows[] = {
	[CHOOSE_PROCESS] = { "process", 0, WIRE_TIER_PROCESS },
	[CHOOSE_CONTAINER] = { "container", 2, WIRE_TIER_CONTAINER },
	[CHOOSE_PLAIN] = { "plain", 2, WIRE_TIER_PLAIN },
	[CHOOSE_WASM] = { "wasm", 3, WIRE_TIER_CONTAINER },
	[CHOOSE_GVISOR] = { "gvisor", 3, WIRE_TIER_GVISOR },
	[CHOOSE_MICROVM] = { "microvm", 4, WIRE_TIER_MICROVM },
};
static_assert(ARRAY_LEN(rows) == CHOOSE_TIERS, "a tier without a row");

static const char *const names[] = { "process", "container", "wasm", "gvisor", "microvm",
#ifdef ATOLL_TEST
				     "plain",
#endif
				     NULL };

static const char *const trusts[] = { [CHOOSE_TRUSTED] = "trusted",
				      [CHOOSE_GENERATED] = "generated",
				      [CHOOSE_UNTRUSTED] = "untrusted",
				      [CHOOSE_HOSTILE] = "hostile",
				      NULL };
static_assert(ARRAY_LEN(trusts) == CHOOSE_TRUSTS + 1, "a label without a name");

static const char *const sources[] = { [CHOOSE_BY_LABEL] = "label",
				       [CHOOSE_BY_TEAM] = "team",
				       [CHOOSE_BY_KEY] = "key",
				       [CHOOSE_BY_TEMPLATE] = "template",
				       [CHOOSE_BY_REQUEST] = "request" };

const struct choose_settings choose_defaults = {
	.label = { [CHOOSE_TRUSTED] = CHOOSE_CONTAINER,
		   [CHOOSE_GENERATED] = CHOOSE_CONTAINER,
		   [CHOOSE_UNTRUSTED] = CHOOSE_GVISOR,
		   [CHOOSE_HOSTILE] = CHOOSE_MICROVM },
	.prefer = { CHOOSE_CONTAINER, CHOOSE_WASM, CHOOSE_GVISOR, CHOOSE_MICROVM },
	.nprefer = 4,
};

const char *choose_tier_name(enum choose_tier t)
{
	return (unsigned)t < CHOOSE_TIERS ? rows[t].name : "";
}

int choose_tier_rank(enum choose_tier t)
{
	return (unsigned)t < CHOOSE_TIERS ? rows[t].rank : 0;
}

unsigned choose_wire_tier(enum choose_tier t)
{
	return rows[t].wire;
}

enum choose_tier choose_of_wire(unsigned wire_tier)
{
	if (wire_tier == WIRE_TIER_WASM) /* CREATE has the tier container for it */
		return CHOOSE_WASM;
	for (unsigned i = 0; i < CHOOSE_TIERS; i++)
		if (rows[i].wire == wire_tier)
			return (enum choose_tier)i;
	return CHOOSE_NONE;
}

const char *choose_trust_name(enum choose_trust t)
{
	return trusts[t];
}

const char *choose_source_name(enum choose_source s)
{
	return sources[s];
}

static int choose_is_one_of(const char *text, const char *const *all)
{
	while (*all && strcmp(*all, text) != 0)
		all++;
	return *all != NULL;
}

static int choose_unknown(struct err *e, const char *what, const char *text, const char *const *all,
			  const char *list)
{
	const char *near = suggest_nearest(text, all);

	if (near)
		return err_set(e, ERR_INVALID, "there is no %s '%.40s'; did you mean %s?", what,
			       text, near);
	return err_set(e, ERR_INVALID, "there is no %s '%.40s'; there are: %s", what, text, list);
}

int choose_tier_parse(const char *text, enum choose_tier *out, struct err *e)
{
	for (unsigned i = 0; i < CHOOSE_TIERS; i++)
		if (!strcmp(text, rows[i].name) && choose_is_one_of(text, names)) {
			*out = (enum choose_tier)i;
			return 0;
		}
	return choose_unknown(e, "isolation tier", text, names,
			      "process, container, wasm, gvisor, microvm");
}

int choose_trust_parse(const char *text, enum choose_trust *out, struct err *e)
{
	for (unsigned i = 0; i < CHOOSE_TRUSTS; i++)
		if (!strcmp(text, trusts[i])) {
			*out = (enum choose_trust)i;
			return 0;
		}
	return choose_unknown(e, "trust label", text, trusts,
			      "trusted, generated, untrusted, hostile");
}

int choose_request_parse(const char *text, struct choose_request *out, struct err *e)
{
	size_t n = strlen(text);
	char name[48];

	if (!strcmp(text, "auto")) {
		out->how = CHOOSE_AUTO;
		return 0;
	}
	snprintf(name, sizeof(name), "%.*s", n && text[n - 1] == '+' ? (int)n - 1 : (int)n, text);
	if (choose_tier_parse(name, &out->tier, e) < 0)
		return -1;
	out->how = n && text[n - 1] == '+' ? CHOOSE_AT_LEAST : CHOOSE_NAMED;
	return 0;
}

void choose_request_text(const struct choose_request *q, char out[CHOOSE_TEXT])
{
	snprintf(out, CHOOSE_TEXT, "%s%s",
		 q->how == CHOOSE_AUTO ? "auto" : choose_tier_name(q->tier),
		 q->how == CHOOSE_AT_LEAST ? "+" : "");
}

/* ---- the required rank ---- */

static enum choose_trust choose_label(const struct choose_request *q)
{
	return q->has_trust ? q->trust : CHOOSE_GENERATED;
}

static int choose_required(const struct choose_policy *p, const struct choose_request *q,
			   enum choose_source *out_source)
{
	const enum choose_tier minima[] = {
		[CHOOSE_BY_LABEL] = p->settings->label[choose_label(q)],
		[CHOOSE_BY_TEAM] = p->team,
		[CHOOSE_BY_KEY] = p->key,
		[CHOOSE_BY_TEMPLATE] = p->template,
		[CHOOSE_BY_REQUEST] = q->how == CHOOSE_AT_LEAST ? q->tier : CHOOSE_NONE,
	};
	int required = 0;

	*out_source = CHOOSE_BY_LABEL;
	for (unsigned i = 0; i < ARRAY_LEN(minima); i++)
		if (choose_tier_rank(minima[i]) > required) {
			required = choose_tier_rank(minima[i]);
			*out_source = (enum choose_source)i;
		}
	return required;
}

/* QEMU without KVM is no boundary, so an emulated guest is worth the container around it. */
static int choose_rank(const struct choose_facts *f, enum choose_tier t)
{
	return choose_tier_rank(f->tier[t].emulated ? CHOOSE_CONTAINER : t);
}

/* ---- one tier ---- */

struct choose_look {
	const struct choose_policy *p;
	const struct choose_facts *f;
	const struct choose_request *q;
	enum choose_tier t;
	char *why; /* CHOOSE_WHY bytes; NULL: only the decision is wanted */
};

#define REJECT(look, ...) ((look)->why ? (snprintf((look)->why, CHOOSE_WHY, __VA_ARGS__), 1) : 1)

static int choose_reject_rank(const struct choose_look *k)
{
	static const struct {
		const char *what, *help;
	} by[] = {
		[CHOOSE_BY_TEAM] = { "the team", "PUT /v1/teams/NAME changes it" },
		[CHOOSE_BY_KEY] = { "the key", "atoll key new --isolation makes another" },
		[CHOOSE_BY_TEMPLATE] = { "the template", "isolation in its definition" },
		[CHOOSE_BY_REQUEST] = { "the request", "isolation.at_least" },
	};
	const char *label = trusts[choose_label(k->q)];
	const char *emulated = k->f->tier[k->t].emulated ? ", because it is emulated," : "";
	enum choose_source source;
	int required = choose_required(k->p, k->q, &source), rank = choose_rank(k->f, k->t);

	if (rank >= required)
		return 0;
	if (source == CHOOSE_BY_LABEL)
		return REJECT(k, "rank %d%s is too low: code that is %s requires %d (isolation.%s)",
			      rank, emulated, label, required, label);
	return REJECT(k, "rank %d%s is too low: %s requires %d (%s)", rank, emulated,
		      by[source].what, required, by[source].help);
}

static int choose_reject_process(const struct choose_look *k)
{
	if (k->t != CHOOSE_PROCESS)
		return 0;
	if (!k->p->settings->process)
		return REJECT(k, "disabled (set isolation.process = true)");
	if (!k->p->key_process)
		return REJECT(k, "the key may not use it (atoll key new --isolation process)");
	if (k->p->many_teams)
		return REJECT(k, "this host has more than one team (use a host of its own)");
	if (k->q->how != CHOOSE_NAMED)
		return REJECT(k, "used only by name (isolation: \"process\")");
	return 0;
}

static int choose_reject_emulated(const struct choose_look *k)
{
	const char *reason = k->f->tier[k->t].reason;

	if (!k->f->tier[k->t].emulated)
		return 0;
	if (!k->p->settings->emulation)
		return REJECT(k, "emulated, because %.200s (for tests: isolation.emulation = true)",
			      reason && *reason ? reason : "KVM cannot be used here");
	if (k->q->how != CHOOSE_NAMED && choose_label(k->q) > CHOOSE_GENERATED)
		return REJECT(
			k,
			"emulated, which is no boundary for code that is %s (use a host with /dev/kvm)",
			trusts[choose_label(k->q)]);
	return 0;
}

/* Not offered, or without a proof. */
static int choose_reject_state(const struct choose_look *k)
{
	const struct choose_fact *x = &k->f->tier[k->t];
	const char *name = rows[k->t].name;

	if (x->state == CHOOSE_UNAVAILABLE)
		return REJECT(k, "%s",
			      x->reason && *x->reason ? x->reason
						      : "not examined yet (atoll doctor)");
	if (x->state == CHOOSE_UNPREPARED && x->reason && *x->reason)
		return REJECT(k, "%s", x->reason);
	if (x->state == CHOOSE_UNPREPARED)
		return REJECT(k, "not prepared (atoll tier prepare %s)", name);
	if (x->proof == CHOOSE_WITHDRAWN)
		return REJECT(k, "withdrawn, because its proof failed (atoll prove %s)", name);
	/* A launch of a container verifies its own steps; mux adds none to it. */
	if (x->proof == CHOOSE_UNPROVEN &&
	    choose_tier_rank(k->t) > choose_tier_rank(CHOOSE_CONTAINER))
		return REJECT(k, "not proven (atoll prove %s)", name);
	return 0;
}

static int choose_reject_needs(const struct choose_look *k)
{
	const struct choose_fact *x = &k->f->tier[k->t];
	uint64_t missing = k->q->needs & x->unsupported;

	if (k->t == CHOOSE_WASM && !k->q->modules)
		return REJECT(
			k,
			"only for runs in a language that is a module, such as python-wasm (atoll lang; atoll tier prepare wasm)");
	if (missing)
		return REJECT(k, "does not support %s (leave them out, or request another tier)",
			      tier_need_name((unsigned)__builtin_ctzll(missing)));
	if (k->q->mem_bytes && k->q->mem_bytes < x->mem_min_bytes)
		return REJECT(
			k, "needs at least %llu MiB of memory, the request has %llu (limits.mem)",
			(unsigned long long)(x->mem_min_bytes + (1 << 20) - 1) >> 20,
			(unsigned long long)k->q->mem_bytes >> 20);
	return 0;
}

/* An engine's snapshot is restored where it was made; the files of a container start anywhere. */
static int choose_reject_snapshot(const struct choose_look *k)
{
	enum choose_tier from = k->q->snapshot;

	if (!k->q->has_snapshot || from == k->t ||
	    choose_tier_rank(from) <= choose_tier_rank(CHOOSE_CONTAINER))
		return 0;
	return REJECT(k, "the snapshot was made in %s (isolation: \"%s\")", choose_tier_name(from),
		      choose_tier_name(from));
}

static int choose_reject_other(const struct choose_look *k)
{
	const struct choose_settings *s = k->p->settings;

	if (k->q->how == CHOOSE_NAMED && k->q->tier != k->t)
		return REJECT(k, "the request names %s (isolation: \"%s+\" allows stronger ones)",
			      choose_tier_name(k->q->tier), choose_tier_name(k->q->tier));
	if (k->q->how == CHOOSE_NAMED)
		return 0;
	for (unsigned i = 0; i < s->nprefer; i++)
		if (s->prefer[i] == k->t)
			return 0;
	return REJECT(k, "not in isolation.prefer (add it, or request it by name)");
}

/* In the order in which a reader wants to know: what the host lacks, then what the request asks for. */
static int (*const rejects[])(const struct choose_look *) = {
	choose_reject_process, choose_reject_state,    choose_reject_emulated, choose_reject_rank,
	choose_reject_needs,   choose_reject_snapshot, choose_reject_other,
};

static int choose_rejects(const struct choose_look *k)
{
	for (unsigned i = 0; i < ARRAY_LEN(rejects); i++)
		if (rejects[i](k))
			return 1;
	return 0;
}

int choose_why(const struct choose_policy *p, const struct choose_facts *f,
	       const struct choose_request *q, enum choose_tier t, char out[CHOOSE_WHY])
{
	out[0] = 0;
	return choose_rejects(&(struct choose_look){ p, f, q, t, out });
}

int choose_is_listed(const struct choose_facts *f, enum choose_tier t)
{
	return t != CHOOSE_PLAIN || f->tier[t].state == CHOOSE_OFFERED;
}

int choose(const struct choose_policy *p, const struct choose_facts *f,
	   const struct choose_request *q, struct choose_result *out)
{
	const struct choose_settings *s = p->settings;
	const enum choose_tier *order = q->how == CHOOSE_NAMED ? &q->tier : s->prefer;
	unsigned n = q->how == CHOOSE_NAMED ? 1 : s->nprefer;

	*out = (struct choose_result){ .tier = CHOOSE_NONE, .trust = choose_label(q) };
	out->required = choose_required(p, q, &out->source);
	for (unsigned i = 0; i < n; i++)
		if (!choose_rejects(&(struct choose_look){ p, f, q, order[i], NULL })) {
			out->tier = order[i];
			out->rank = choose_rank(f, order[i]);
			return 0;
		}
	return -1;
}

/* ---- needs of templates ---- */

int choose_need_parse(const char *text, uint64_t *out_bits, struct err *e)
{
	static const char *const words[] = { "gpu", "root", "terminal", "volume", NULL };
	static const unsigned bits[] = { WIRE_NEED_GPU, WIRE_NEED_ROOT_USER, WIRE_NEED_TERMINAL,
					 WIRE_NEED_VOLUME_WRITABLE };

	for (unsigned i = 0; words[i]; i++)
		if (!strcmp(text, words[i])) {
			*out_bits |= UINT64_C(1) << bits[i];
			return 0;
		}
	return choose_unknown(e, "need", text, words, "gpu, root, terminal, volume");
}
