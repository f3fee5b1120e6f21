/* choose_test.c - the choice of an isolation tier. */
#include "tier/choose.h"
#include "base/cleanup.h"
#include "tier/tier.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

#define NEED(n) (UINT64_C(1) << WIRE_NEED_##n)

static struct err err;

#define CHECK_OK(call) CHECK((call) == 0)
#define CHECK_ERR(call, want) CHECK((call) < 0 && err.kind == (want))

/* ---- a table of requests ---- */

enum {
	T_,
	TRUST = CHOOSE_TRUSTED + 1,
	GEN = CHOOSE_GENERATED + 1,
	UNTRUST = CHOOSE_UNTRUSTED + 1,
	HOSTILE = CHOOSE_HOSTILE + 1
};
enum { BARE, GVISOR = 1, KVM = 2, TCG = 4, WASM = 8, UNPROVEN = 16, FAILED = 32 }; /* hosts */

static struct choose_facts host_facts(unsigned host)
{
	enum choose_proof proof = host & UNPROVEN ? CHOOSE_UNPROVEN : CHOOSE_PROVEN;
	struct choose_facts f = {
		.tier = {
			[CHOOSE_PROCESS] = { .state = CHOOSE_OFFERED },
			[CHOOSE_CONTAINER] = { .state = CHOOSE_OFFERED, .unsupported = NEED(GPU) | NEED(MEMORY_SNAPSHOT) },
			[CHOOSE_GVISOR] = { .reason = "not installed (apt install runsc)" },
			[CHOOSE_MICROVM] = { .reason = "no /dev/kvm (run on a host with it)" },
			[CHOOSE_WASM] = { .state = CHOOSE_UNPREPARED },
		},
	};

	if (host & GVISOR)
		f.tier[CHOOSE_GVISOR] = (struct choose_fact){ .state = CHOOSE_OFFERED,
							      .proof = proof,
							      .unsupported = NEED(GPU),
							      .mem_min_bytes = 96 << 20 };
	if (host & (KVM | TCG))
		f.tier[CHOOSE_MICROVM] = (struct choose_fact){
			.state = CHOOSE_OFFERED,
			.proof = proof,
			.emulated = (host & TCG) != 0,
			.reason = host & TCG ? "open /dev/kvm: Permission denied" : NULL,
			.unsupported = NEED(GPU) | NEED(VOLUME_WRITABLE),
			.mem_min_bytes = 128 << 20
		};
	if (host & WASM)
		f.tier[CHOOSE_WASM] =
			(struct choose_fact){ .state = CHOOSE_OFFERED, .proof = proof };
	if (host & FAILED)
		f.tier[CHOOSE_CONTAINER].proof = f.tier[CHOOSE_GVISOR].proof = CHOOSE_WITHDRAWN;
	return f;
}

static const struct {
	unsigned host;
	int trust;             /* 0: not given */
	const char *isolation; /* NULL: not given */
	const char *team, *key, *template;
	uint64_t needs;
	unsigned mib;
	const char *want; /* the tier, or NULL: rejected, and ... */
	const char *line; /* ... a line contains this */
} cases[] = {
	{ BARE, 0, NULL, .want = "container" },
	{ BARE, 0, "auto", .want = "container" },
	{ GVISOR | KVM | WASM, 0, NULL, .want = "container" },
	{ BARE, TRUST, NULL, .want = "container" },
	{ BARE, UNTRUST, NULL, .line = "gvisor: not installed (apt install runsc)" },
	{ BARE, UNTRUST, NULL,
	  .line = "container: rank 2 is too low: code that is untrusted requires 3 (isolation.untrusted)" },
	{ GVISOR, UNTRUST, NULL, .want = "gvisor" },
	{ GVISOR | UNPROVEN, UNTRUST, NULL, .line = "gvisor: not proven (atoll prove gvisor)" },
	{ GVISOR | FAILED, UNTRUST, NULL,
	  .line = "gvisor: withdrawn, because its proof failed (atoll prove gvisor)" },
	{ FAILED, 0, NULL, .line = "container: withdrawn" },
	{ BARE, HOSTILE, NULL, .line = "microvm: no /dev/kvm" },
	{ GVISOR, HOSTILE, NULL,
	  .line = "gvisor: rank 3 is too low: code that is hostile requires 4" },
	{ GVISOR | KVM, HOSTILE, NULL, .want = "microvm" },
	{ GVISOR | KVM, 0, "gvisor", .want = "gvisor" },
	{ GVISOR | KVM, 0, "gvisor+", .want = "gvisor" },
	{ KVM, 0, "gvisor+", .want = "microvm" },
	{ KVM, 0, "gvisor", .line = "microvm: the request names gvisor" },
	{ GVISOR | KVM, HOSTILE, "gvisor", .line = "gvisor: rank 3 is too low" },
	{ BARE, 0, "process", .line = "process: disabled (set isolation.process = true)" },
	{ WASM, 0, "wasm", .line = "wasm: only for runs in a language that is a module" },
	{ BARE, 0, "wasm", .line = "wasm: not prepared (atoll tier prepare wasm)" },
	/* minima */
	{ GVISOR | KVM, 0, NULL, .team = "gvisor", .want = "gvisor" },
	{ GVISOR | KVM, 0, NULL, .team = "gvisor", .key = "microvm", .want = "microvm" },
	{ GVISOR | KVM, 0, NULL, .key = "container", .team = "gvisor", .want = "gvisor" },
	{ GVISOR | KVM, TRUST, "container", .key = "gvisor",
	  .line = "container: rank 2 is too low: the key requires 3 (atoll key new" },
	{ GVISOR | KVM, 0, "container", .team = "gvisor", .line = "the team requires 3" },
	{ GVISOR, 0, NULL, .template = "gvisor", .want = "gvisor" },
	{ BARE, 0, NULL, .template = "gvisor",
	  .line = "container: rank 2 is too low: the template requires 3" },
	{ BARE, 0, "gvisor+", .line = "container: rank 2 is too low: the request requires 3" },
	/* needs */
	{ GVISOR | KVM, 0, "microvm", .needs = NEED(GPU),
	  .line = "microvm: does not support GPUs" },
	{ GVISOR | KVM, 0, "gvisor+", .needs = NEED(GPU), .line = "gvisor: does not support GPUs" },
	{ GVISOR | KVM, HOSTILE, NULL, .needs = NEED(VOLUME_WRITABLE),
	  .line = "microvm: does not support writable volumes" },
	{ GVISOR | KVM, 0, NULL, .needs = NEED(VOLUME_WRITABLE), .want = "container" },
	{ GVISOR, 0, "gvisor", .mib = 95,
	  .line = "gvisor: needs at least 96 MiB of memory, the request has 95" },
	{ GVISOR, 0, "gvisor", .mib = 96, .want = "gvisor" },
	{ GVISOR, 0, NULL, .mib = 8, .want = "container" },
	/* an emulated guest: not without the setting, which these cases leave off */
	{ TCG, 0, "microvm",
	  .line = "microvm: emulated, because open /dev/kvm: Permission denied (for tests: isolation.emulation = true)" },
	{ TCG, HOSTILE, NULL, .line = "microvm: emulated" },
};

static enum choose_tier tier_of(const char *name)
{
	enum choose_tier t = CHOOSE_NONE;

	return !name || choose_tier_parse(name, &t, &err) == 0 ? t : CHOOSE_PROCESS;
}

/* All lines of a rejection, as clients get them. */
static void lines_of(const struct choose_policy *p, const struct choose_facts *f,
		     const struct choose_request *q, char *out, size_t room)
{
	size_t n = 0;

	for (unsigned i = 0; i < CHOOSE_TIERS; i++) {
		char why[CHOOSE_WHY];

		if (!choose_is_listed(f, i))
			continue;
		CHECK(choose_why(p, f, q, i, why));
		CHECK(strlen(why) > 3);
		n += (size_t)snprintf(out + n, room - n, "%s: %s\n", choose_tier_name(i), why);
	}
}

TEST(the_table_of_requests_gets_these_tiers)
{
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct choose_facts f = host_facts(cases[i].host);
		struct choose_policy p = { .settings = &choose_defaults,
					   .team = tier_of(cases[i].team),
					   .key = tier_of(cases[i].key),
					   .template = tier_of(cases[i].template) };
		struct choose_request q = { .has_trust = cases[i].trust != 0,
					    .trust = cases[i].trust ? cases[i].trust - 1 : 0,
					    .needs = cases[i].needs,
					    .mem_bytes = (uint64_t)cases[i].mib << 20 };
		struct choose_result r;
		char lines[CHOOSE_TIERS * (CHOOSE_WHY + 16)] = "";

		if (cases[i].isolation)
			CHECK_OK(choose_request_parse(cases[i].isolation, &q, &err));
		if (choose(&p, &f, &q, &r) < 0)
			lines_of(&p, &f, &q, lines, sizeof(lines));
		if (cases[i].want)
			CHECK_STR(choose_tier_name(r.tier), cases[i].want);
		else
			CHECK_INT(r.tier, CHOOSE_NONE);
		if (cases[i].line && !strstr(lines, cases[i].line)) {
			printf("# case %u: '%s' is not in:\n%s", i, cases[i].line, lines);
			CHECK(0);
		}
	}
}

TEST(process_needs_the_operator_the_key_a_label_and_its_name)
{
	struct choose_settings s = choose_defaults;
	struct choose_facts f = host_facts(BARE);
	struct choose_policy p = {
		.settings = &s, .team = CHOOSE_NONE, .key = CHOOSE_NONE, .template = CHOOSE_NONE
	};
	struct choose_request q = { .how = CHOOSE_NAMED, .tier = CHOOSE_PROCESS };
	struct choose_result r;
	char why[CHOOSE_WHY];

	s.process = 1;
	CHECK(choose(&p, &f, &q, &r) < 0 && choose_why(&p, &f, &q, CHOOSE_PROCESS, why));
	CHECK(strstr(why, "atoll key new --isolation process"));
	p.key_process = p.many_teams = 1;
	CHECK(choose_why(&p, &f, &q, CHOOSE_PROCESS, why) && strstr(why, "more than one team"));
	p.many_teams = 0;
	CHECK(choose_why(&p, &f, &q, CHOOSE_PROCESS, why) && strstr(why, "isolation.generated"));
	s.label[CHOOSE_TRUSTED] = CHOOSE_PROCESS;
	q.has_trust = 1;
	q.trust = CHOOSE_TRUSTED;
	CHECK_INT(choose(&p, &f, &q, &r), 0);
	CHECK(r.tier == CHOOSE_PROCESS && r.rank == 0);
	q.how = CHOOSE_AT_LEAST;
	CHECK_INT(choose(&p, &f, &q, &r), 0);
	CHECK_INT(r.tier, CHOOSE_CONTAINER);
}

TEST(an_emulated_guest_counts_as_a_container_and_only_with_the_setting)
{
	struct choose_settings s = choose_defaults;
	struct choose_facts f = host_facts(TCG);
	struct choose_policy p = {
		.settings = &s, .team = CHOOSE_NONE, .key = CHOOSE_NONE, .template = CHOOSE_NONE
	};
	struct choose_request q = { .how = CHOOSE_NAMED, .tier = CHOOSE_MICROVM };
	struct choose_result r;
	char why[CHOOSE_WHY];

	s.emulation = 1;
	CHECK_INT(choose(&p, &f, &q, &r), 0);
	CHECK(r.tier == CHOOSE_MICROVM && r.rank == 2);
	q.has_trust = 1;
	q.trust = CHOOSE_UNTRUSTED;
	CHECK(choose(&p, &f, &q, &r) < 0 && choose_why(&p, &f, &q, CHOOSE_MICROVM, why));
	CHECK(strstr(why, "rank 2, because it is emulated, is too low"));
	q.how = CHOOSE_AUTO;
	s.label[CHOOSE_UNTRUSTED] = CHOOSE_CONTAINER;
	s.prefer[0] = CHOOSE_MICROVM;
	s.prefer[1] = CHOOSE_CONTAINER;
	s.nprefer = 2;
	CHECK_INT(choose(&p, &f, &q, &r), 0);
	CHECK_INT(r.tier, CHOOSE_CONTAINER);
	q.trust = CHOOSE_GENERATED;
	CHECK_INT(choose(&p, &f, &q, &r), 0);
	CHECK_INT(r.tier, CHOOSE_MICROVM);
}

TEST(a_snapshot_of_an_engine_is_restored_in_its_tier_only)
{
	struct choose_facts f = host_facts(GVISOR | KVM);
	struct choose_policy p = { .settings = &choose_defaults,
				   .team = CHOOSE_NONE,
				   .key = CHOOSE_NONE,
				   .template = CHOOSE_NONE };
	struct choose_request q = { .has_snapshot = 1, .snapshot = CHOOSE_GVISOR };
	struct choose_result r;
	char why[CHOOSE_WHY];

	CHECK_INT(choose(&p, &f, &q, &r), 0);
	CHECK_INT(r.tier, CHOOSE_GVISOR);
	q.how = CHOOSE_NAMED;
	q.tier = CHOOSE_MICROVM;
	CHECK(choose(&p, &f, &q, &r) < 0 && choose_why(&p, &f, &q, CHOOSE_MICROVM, why));
	CHECK(strstr(why, "the snapshot was made in gvisor"));
	q.snapshot = CHOOSE_CONTAINER; /* files only */
	CHECK_INT(choose(&p, &f, &q, &r), 0);
	CHECK_INT(r.tier, CHOOSE_MICROVM);
}

TEST(wasm_is_chosen_for_modules_only)
{
	struct choose_facts f = host_facts(WASM | GVISOR);
	struct choose_policy p = { .settings = &choose_defaults,
				   .team = CHOOSE_NONE,
				   .key = CHOOSE_NONE,
				   .template = CHOOSE_NONE };
	struct choose_request q = { .has_trust = 1, .trust = CHOOSE_UNTRUSTED, .modules = 1 };
	struct choose_result r;

	CHECK_INT(choose(&p, &f, &q, &r), 0);
	CHECK_INT(r.tier, CHOOSE_WASM);
	q.modules = 0;
	CHECK_INT(choose(&p, &f, &q, &r), 0);
	CHECK_INT(r.tier, CHOOSE_GVISOR);
}

/* ---- names ---- */

TEST(texts_of_a_request_are_read)
{
	static const char *const bad[] = {
		"",
		"+",
		"Gvisor",
		"gvisor ",
		"gvisor++",
		"1",
		"auto+",
		"at_least",
		"container,gvisor",
		"gvisorgvisorgvisorgvisorgvisorgvisorgvisorgvisorgvisorgvisor+"
	};
	struct choose_request q = { 0 };
	char text[CHOOSE_TEXT];

	choose_request_text(&q, text);
	CHECK_STR(text, "auto");
	CHECK_OK(choose_request_parse("microvm+", &q, &err));
	CHECK(q.how == CHOOSE_AT_LEAST && q.tier == CHOOSE_MICROVM);
	choose_request_text(&q, text);
	CHECK_STR(text, "microvm+");
	CHECK_OK(choose_request_parse("wasm", &q, &err));
	CHECK(q.how == CHOOSE_NAMED && q.tier == CHOOSE_WASM);
	CHECK_OK(choose_request_parse("auto", &q, &err));
	CHECK_INT(q.how, CHOOSE_AUTO);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(choose_request_parse(bad[i], &q, &err), ERR_INVALID);
	CHECK_ERR(choose_request_parse("gvsior", &q, &err), ERR_INVALID);
	CHECK(strstr(err.msg, "did you mean gvisor?"));
	CHECK_ERR(choose_request_parse("firecracker", &q, &err), ERR_INVALID);
	CHECK(strstr(err.msg, "there are: process, container, wasm, gvisor, microvm"));
}

TEST(labels_and_needs_are_read)
{
	enum choose_trust t;
	uint64_t bits = 0;

	for (unsigned i = 0; i < CHOOSE_TRUSTS; i++) {
		CHECK_OK(choose_trust_parse(choose_trust_name(i), &t, &err));
		CHECK_INT(t, i);
	}
	CHECK_ERR(choose_trust_parse("", &t, &err), ERR_INVALID);
	CHECK_ERR(choose_trust_parse("hostil", &t, &err), ERR_INVALID);
	CHECK(strstr(err.msg, "did you mean hostile?"));
	CHECK_OK(choose_need_parse("gpu", &bits, &err));
	CHECK_OK(choose_need_parse("terminal", &bits, &err));
	CHECK(bits == (NEED(GPU) | NEED(TERMINAL)));
	CHECK_ERR(choose_need_parse("gpus", &bits, &err), ERR_INVALID);
}

TEST(names_and_ranks_are_those_of_the_table_of_tiers)
{
	for (unsigned i = 0; i < CHOOSE_TIERS; i++) {
		unsigned wire = choose_wire_tier(i);

		if (i == CHOOSE_WASM) { /* a container for the keeper */
			CHECK_INT(wire, WIRE_TIER_CONTAINER);
			CHECK_INT(choose_of_wire(WIRE_TIER_WASM), i);
			CHECK_INT(choose_tier_rank(i), (int)tier_find(WIRE_TIER_WASM)->rank);
			continue;
		}
		CHECK_STR(choose_tier_name(i), tier_name(wire));
		CHECK_INT(choose_of_wire(wire), i);
		if (tier_find(wire))
			CHECK_INT(choose_tier_rank(i), (int)tier_find(wire)->rank);
	}
	CHECK_INT(choose_of_wire(WIRE_TIER_COUNT), CHOOSE_NONE);
	CHECK_STR(choose_tier_name(CHOOSE_NONE), "");
}

/* ---- never weaker than required ---- */

static uint64_t seed = 88172645463325252u;

static unsigned random_below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 32) % n;
}

static enum choose_tier random_tier(void)
{
	return (enum choose_tier)random_below(CHOOSE_TIERS);
}

/* Mostly none, so that many requests succeed. */
static enum choose_tier random_minimum(void)
{
	return random_below(3) ? CHOOSE_NONE : random_tier();
}

static void random_settings(struct choose_settings *s)
{
	*s = (struct choose_settings){ .process = (int)random_below(2),
				       .emulation = (int)random_below(2) };
	for (unsigned i = 0; i < CHOOSE_TRUSTS; i++)
		s->label[i] = random_tier();
	s->nprefer = random_below(CHOOSE_TIERS + 1);
	for (unsigned i = 0; i < s->nprefer; i++)
		s->prefer[i] =
			random_tier(); /* process and repetitions too, which settings reject */
}

static void random_facts(struct choose_facts *f)
{
	*f = (struct choose_facts){ 0 };
	for (unsigned i = 0; i < CHOOSE_TIERS; i++)
		f->tier[i] = (struct choose_fact){
			.state = random_below(4) ? CHOOSE_OFFERED : random_below(2),
			.proof = random_below(3) ? CHOOSE_PROVEN : random_below(3),
			.emulated = i == CHOOSE_MICROVM && random_below(2),
			.unsupported = random_below(2) ? 0 : random_below(1u << 15),
			.mem_min_bytes = random_below(200) << 20,
			.reason = random_below(2) ? "not installed (apt install x)" : NULL
		};
}

static void random_request(struct choose_request *q)
{
	*q = (struct choose_request){ .has_trust = (int)random_below(2),
				      .trust = (enum choose_trust)random_below(CHOOSE_TRUSTS),
				      .how = (enum choose_how)random_below(3),
				      .tier = random_tier(),
				      .needs = random_below(3) ? 0 : random_below(1u << 15),
				      .mem_bytes = random_below(2)
							   ? 0
							   : (uint64_t)random_below(300) << 20,
				      .modules = (int)random_below(2),
				      .has_snapshot = !random_below(5),
				      .snapshot = random_tier() };
}

static int largest(const int *v, unsigned n)
{
	int m = v[0];

	for (unsigned i = 1; i < n; i++)
		m = v[i] > m ? v[i] : m;
	return m;
}

/* Written anew from docs/tiers.md, without a look at choose.c. */
static void check_choice(const struct choose_policy *p, const struct choose_facts *f,
			 const struct choose_request *q, const struct choose_result *r)
{
	enum choose_trust label = q->has_trust ? q->trust : CHOOSE_GENERATED;
	const struct choose_fact *x = &f->tier[r->tier];
	int real = x->emulated ? 2 : choose_tier_rank(r->tier);
	int minima[] = { choose_tier_rank(p->settings->label[label]), choose_tier_rank(p->team),
			 choose_tier_rank(p->key), choose_tier_rank(p->template),
			 q->how == CHOOSE_AT_LEAST ? choose_tier_rank(q->tier) : 0 };

	CHECK(r->tier < CHOOSE_TIERS);
	CHECK_INT(r->rank, real);
	CHECK_INT(r->required, largest(minima, ARRAY_LEN(minima)));
	CHECK(real >= r->required);
	CHECK(x->state == CHOOSE_OFFERED && x->proof != CHOOSE_WITHDRAWN);
	CHECK(choose_tier_rank(r->tier) <= 2 || x->proof == CHOOSE_PROVEN);
	CHECK(!(x->unsupported & q->needs));
	CHECK(!q->mem_bytes || q->mem_bytes >= x->mem_min_bytes);
	CHECK(q->how != CHOOSE_NAMED || r->tier == q->tier);
	CHECK(!x->emulated || p->settings->emulation);
	CHECK(!x->emulated || q->how == CHOOSE_NAMED || label <= CHOOSE_GENERATED);
	CHECK(r->tier != CHOOSE_PROCESS ||
	      (q->how == CHOOSE_NAMED && p->settings->process && p->key_process && !p->many_teams));
	CHECK(r->tier != CHOOSE_WASM || q->modules);
	CHECK(!q->has_snapshot || choose_tier_rank(q->snapshot) <= 2 || r->tier == q->snapshot);
}

static void check_rejection(const struct choose_policy *p, const struct choose_facts *f,
			    const struct choose_request *q)
{
	for (unsigned i = 0; i < CHOOSE_TIERS; i++) {
		char why[CHOOSE_WHY];

		/* Each line has a reason and, in parentheses, what helps. */
		CHECK(choose_why(p, f, q, i, why));
		CHECK(strchr(why, '(') && strchr(why, ')'));
		CHECK(strlen(why) < CHOOSE_WHY - 1);
	}
}

TEST(no_choice_is_weaker_than_required_and_a_rejection_names_every_tier)
{
	unsigned chosen = 0, rejected = 0;

	for (unsigned i = 0; i < 10000; i++) {
		struct choose_settings s;
		struct choose_facts f;
		struct choose_request q;
		struct choose_policy p = { .settings = &s,
					   .team = random_minimum(),
					   .key = random_minimum(),
					   .template = random_minimum(),
					   .key_process = (int)random_below(2),
					   .many_teams = (int)random_below(2) };
		struct choose_result r;

		random_settings(&s);
		random_facts(&f);
		random_request(&q);
		if (choose(&p, &f, &q, &r) == 0) {
			chosen++;
			check_choice(&p, &f, &q, &r);
		} else {
			rejected++;
			check_rejection(&p, &f, &q);
		}
	}
	CHECK(chosen > 1000 && rejected > 1000);
}
