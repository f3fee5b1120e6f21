/* proof_test.c - stored proofs of isolation tiers, and until when they hold. */
#include "base/cleanup.h"
#include "daemon/prove_runner.h"
#include "fleet/fleet.h"
#include "prove/build_id.h"
#include "prove/proof.h"
#include "prove/prove.h"
#include "store/events.h"
#include "store_dir.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_NS (INT64_C(86400) * 1000000000)
#define NOW_NS (20000 * DAY_NS)

static struct prove_keys keys_of_gvisor(void)
{
	struct prove_keys k;

	prove_keys_here(&k, "gvisor", "generated = container");
	snprintf(k.engine, sizeof(k.engine), "runsc");
	snprintf(k.version, sizeof(k.version), "release-20221219");
	snprintf(k.platform, sizeof(k.platform), "ptrace");
	memset(k.engine_sha256, 'a', 64);
	return k;
}

static struct store_proof proof_of(const struct prove_keys *k, const char *id, int64_t at_ns)
{
	struct store_proof p = { .at_ns = at_ns, .duration_us = 1500000, .passed = 1 };

	snprintf(p.id, sizeof(p.id), "%s", id);
	snprintf(p.tier, sizeof(p.tier), "%s", k->tier);
	snprintf(p.kernel, sizeof(p.kernel), "%s", k->kernel);
	snprintf(p.engine, sizeof(p.engine), "%s", k->engine);
	snprintf(p.version, sizeof(p.version), "%s", k->version);
	snprintf(p.engine_sha256, sizeof(p.engine_sha256), "%s", k->engine_sha256);
	snprintf(p.platform, sizeof(p.platform), "%s", k->platform);
	snprintf(p.build, sizeof(p.build), "%s", k->build);
	snprintf(p.settings, sizeof(p.settings), "%s", k->settings);
	return p;
}

static struct prove_status judged(const struct prove_keys *k, const struct store_proof *p,
				  int64_t now_ns)
{
	struct prove_status s;

	prove_valid(k, p, now_ns, &s);
	return s;
}

TEST(a_proof_holds_for_seven_days)
{
	struct prove_keys k = keys_of_gvisor();
	struct store_proof p = proof_of(&k, "aaaaaaaaaaaa", NOW_NS);
	struct prove_status s = judged(&k, &p, NOW_NS + 7 * DAY_NS);

	CHECK_INT(s.state, PROVE_VALID);
	CHECK_STR(prove_evidence(&s), "aaaaaaaaaaaa");
	s = judged(&k, &p, NOW_NS + 7 * DAY_NS + 1);
	CHECK_INT(s.state, PROVE_STALE);
	CHECK_STR(prove_evidence(&s), "");
	CHECK(strstr(s.why, "older than 7 days"));
	s = judged(&k, &p, NOW_NS - 1);
	CHECK_INT(s.state, PROVE_STALE);
	CHECK(strstr(s.why, "clock"));
}

TEST(a_tier_without_a_proof_names_the_command)
{
	struct prove_keys k = keys_of_gvisor();
	struct prove_status s = judged(&k, NULL, NOW_NS);

	CHECK_INT(s.state, PROVE_NONE);
	CHECK(strstr(s.why, "atoll prove gvisor"));
	CHECK_STR(s.id, "");
}

TEST(one_changed_byte_of_the_engine_ends_its_proof)
{
	struct prove_keys k = keys_of_gvisor();
	struct store_proof p = proof_of(&k, "aaaaaaaaaaaa", NOW_NS);
	struct prove_status s;

	k.engine_sha256[63] = 'b';
	s = judged(&k, &p, NOW_NS);
	CHECK_INT(s.state, PROVE_STALE);
	CHECK(strstr(s.why, "engine file has changed"));
	CHECK_STR(prove_evidence(&s), "");
}

TEST(every_key_counts)
{
	const struct prove_keys k = keys_of_gvisor();
	const struct store_proof p = proof_of(&k, "aaaaaaaaaaaa", NOW_NS);
	struct prove_keys other;

#define CHANGED(field, words)                                                                      \
	other = k;                                                                                 \
	other.field[0] ^= 1;                                                                       \
	CHECK_INT(judged(&other, &p, NOW_NS).state, PROVE_STALE);                                  \
	CHECK(strstr(judged(&other, &p, NOW_NS).why, words))
	CHANGED(tier, "tier");
	CHANGED(kernel, "kernel");
	CHANGED(engine, "engine");
	CHANGED(version, "version");
	CHANGED(engine_sha256, "engine file");
	CHANGED(platform, "platform");
	CHANGED(build, "build of Atoll");
	CHANGED(settings, "settings");
#undef CHANGED
	CHECK_INT(judged(&k, &p, NOW_NS).state, PROVE_VALID);
}

TEST(a_failed_proof_withdraws_only_while_nothing_has_changed)
{
	struct prove_keys k = keys_of_gvisor();
	struct store_proof p = proof_of(&k, "aaaaaaaaaaaa", NOW_NS);

	p.passed = 0;
	p.failed = 2;
	CHECK_INT(judged(&k, &p, NOW_NS).state, PROVE_FAILED);
	CHECK(strstr(judged(&k, &p, NOW_NS).why, "failed: 2 probes"));
	k.platform[0] = 'x';
	CHECK_INT(judged(&k, &p, NOW_NS).state, PROVE_STALE);
}

TEST(different_settings_have_different_hashes)
{
	struct prove_keys a, b;

	prove_keys_here(&a, "container", "process = false");
	prove_keys_here(&b, "container", "process = true");
	CHECK(strcmp(a.settings, b.settings) != 0);
	CHECK_INT(strlen(a.settings), 64);
	CHECK_STR(a.build, b.build);
	CHECK_STR(a.engine, "");
	CHECK(a.kernel[0] && a.build[0]);
}

TEST(proofs_are_stored_listed_and_the_oldest_removed)
{
	STORE(s, dir);
	struct prove_keys k = keys_of_gvisor();
	struct store_proofs list;
	struct store_cursor none = { 0 };
	struct prove_status status;
	struct store_proof p;

	CHECK_OK(prove_look_up(s, &k, NOW_NS, &status, &err));
	CHECK_INT(status.state, PROVE_NONE);
	for (int i = 0; i < STORE_PROOFS + 3; i++) {
		char id[ID_MAX + 1];

		snprintf(id, sizeof(id), "aaaaaaaaaa%c%c", 'a' + i / 26, 'a' + i % 26);
		p = proof_of(&k, id, NOW_NS + i);
		p.passed = i != STORE_PROOFS + 2;
		p.failed = p.passed ? 0 : 3;
		p.probes = (char *)"[{\"name\": \"identity\"}]";
		CHECK_OK(store_proof_add(s, &p, &err));
	}
	snprintf(k.tier, sizeof(k.tier), "container");
	p = proof_of(&k, "bbbbbbbbbbbb", NOW_NS - 1);
	p.probes = (char *)"[]";
	CHECK_OK(store_proof_add(s, &p, &err));
	CHECK(store_proof_add(s, &p, &err) < 0);
	CHECK_INT(err.kind, ERR_CONFLICT);

	CHECK_OK(store_proof_list(s, "gvisor", &none, 0, &list, &err));
	CHECK_INT(list.n, STORE_PROOFS);
	CHECK_STR(list.v[0].id, "aaaaaaaaaaaw");
	store_proofs_fini(&list);
	CHECK_OK(store_proof_list(s, NULL, &none, 5, &list, &err));
	CHECK_INT(list.n, 5);
	CHECK(list.more);
	store_proofs_fini(&list);

	CHECK_OK(store_proof_get(s, "aaaaaaaaaaaw", &p, &err));
	CHECK_INT(p.failed, 3);
	CHECK_STR(p.probes, "[{\"name\": \"identity\"}]");
	CHECK_STR(p.platform, "ptrace");
	store_proof_fini(&p);
	CHECK(store_proof_get(s, "aaaaaaaaaaaa", &p, &err) < 0);
	CHECK_INT(err.kind, ERR_NOT_FOUND);

	k = keys_of_gvisor();
	CHECK_OK(prove_look_up(s, &k, NOW_NS + 100, &status, &err));
	CHECK_INT(status.state, PROVE_FAILED);
	CHECK_STR(status.id, "aaaaaaaaaaaw");
}

TEST(a_proof_is_packed_for_the_server_and_read_back)
{
	struct prove_keys k = keys_of_gvisor();
	struct store_proof p = proof_of(&k, "aaaaaaaaaaaa", NOW_NS), q;
	auto_free char *text = NULL;
	json_t *doc;

	p.probes = (char *)"[{\"probe\":\"identity\"}]";
	text = prove_pack(&p);
	doc = json_loads(text, 0, NULL);
	CHECK_OK(prove_unpack(doc, &q, &err));
	CHECK_INT(judged(&k, &q, NOW_NS).state, PROVE_VALID);
	CHECK_INT(q.at_ns, p.at_ns);
	CHECK_INT(q.duration_us, p.duration_us);
	CHECK_STR(q.probes, p.probes);
	store_proof_fini(&q);
	/* A proof that passed has no failed probe. */
	json_object_set_new(doc, "failed", json_integer(1));
	CHECK(prove_unpack(doc, &q, &err) < 0);
	json_object_del(doc, "id");
	CHECK(prove_unpack(doc, &q, &err) < 0);
	json_decref(doc);
	CHECK(prove_unpack(NULL, &q, &err) < 0);
}

TEST(a_tier_is_proven_when_it_is_offered_and_has_no_valid_proof)
{
	struct wire_tier_facts facts[CHOOSE_TIERS] = { 0 };
	struct prove_runner_tier tiers[CHOOSE_TIERS] = { 0 };
	enum { START_MS = 1000000, MINUTE_MS = 60000 };

#define DUE(now, calm) prove_runner_due(facts, tiers, now, calm)
	facts[CHOOSE_CONTAINER] =
		(struct wire_tier_facts){ .tier = WIRE_TIER_CONTAINER, .state = WIRE_TIER_OFFERED };
	facts[CHOOSE_GVISOR] = (struct wire_tier_facts){ .tier = WIRE_TIER_GVISOR,
							 .state = WIRE_TIER_UNAVAILABLE };
	facts[CHOOSE_PLAIN] =
		(struct wire_tier_facts){ .tier = WIRE_TIER_PLAIN, .state = WIRE_TIER_OFFERED };
	/* The container tier waits for calm, and unavailable tiers are not tried. */
	CHECK_INT(DUE(START_MS, 29999), -1);
	CHECK_INT(DUE(START_MS, 30000), CHOOSE_CONTAINER);
	facts[CHOOSE_GVISOR].state = WIRE_TIER_OFFERED;
	CHECK_INT(DUE(START_MS, 0), CHOOSE_GVISOR);
	/* A proof without a result is tried again after ten minutes. */
	tiers[CHOOSE_GVISOR].tried_ms = START_MS;
	CHECK_INT(DUE(START_MS + 9 * MINUTE_MS, 0), -1);
	CHECK_INT(DUE(START_MS + 10 * MINUTE_MS, 0), CHOOSE_GVISOR);
	tiers[CHOOSE_GVISOR].state = PROVE_VALID;
	CHECK_INT(DUE(START_MS + 10 * MINUTE_MS, 0), -1);
	tiers[CHOOSE_GVISOR].state = PROVE_FAILED;
	CHECK_INT(DUE(START_MS + 10 * MINUTE_MS, 0), -1);
	tiers[CHOOSE_GVISOR].state = PROVE_STALE;
	CHECK_INT(DUE(START_MS + 10 * MINUTE_MS, 0), CHOOSE_GVISOR);
#undef DUE
}

/* "tier.proven tier.withdrawn ": the events so far, each with the team default. */
static const char *tier_events(struct store *s)
{
	static char text[200];
	struct store_events list = { 0 };

	text[0] = 0;
	if (store_event_list(s, 0, "default", NULL, 0, &list, &err) < 0)
		return err.msg;
	for (unsigned i = 0; i < list.n; i++) {
		strcat(text, list.v[i].type);
		strcat(text, " ");
	}
	store_events_fini(&list);
	return text;
}

TEST(a_changed_engine_withdraws_its_tier_until_it_is_proven_again)
{
	STORE(s, dir);
	static struct fleet fleet;
	struct prove_runner r = { .fleet = &fleet, .settings = "", .fd = -1, .asked = -1 };
	struct wire_tier_facts facts = { .tier = WIRE_TIER_GVISOR,
					 .state = WIRE_TIER_OFFERED,
					 .engine = "/usr/bin/runsc",
					 .version = "release-20221219",
					 .platform = "ptrace" };
	struct isolation_proof out = { 0 };
	struct prove_keys k;
	struct store_proof p;

	fleet = (struct fleet){ .store = s, .run_writer.fleet = &fleet };
	memset(facts.sha256, 'a', 64);
	prove_runner_judge(&r, CHOOSE_GVISOR, &facts, &out);
	CHECK_INT(out.state, CHOOSE_UNPROVEN);
	CHECK_STR(tier_events(s), "");

	prove_keys_of(&k, "gvisor", "", &facts);
	p = proof_of(&k, "aaaaaaaaaaaa", fleet_now_ns() - 1000000000);
	CHECK_OK(store_proof_add(s, &p, &err));
	prove_runner_judge(&r, CHOOSE_GVISOR, &facts, &out);
	CHECK_INT(out.state, CHOOSE_PROVEN);
	CHECK_STR(out.id, "aaaaaaaaaaaa");
	prove_runner_judge(&r, CHOOSE_GVISOR, &facts, &out);
	CHECK_STR(tier_events(s), "tier.proven ");

	facts.sha256[5] = 'b';
	out = (struct isolation_proof){ 0 };
	prove_runner_judge(&r, CHOOSE_GVISOR, &facts, &out);
	CHECK_INT(out.state, CHOOSE_UNPROVEN);
	CHECK_STR(out.id, "");
	CHECK_INT(r.tiers[CHOOSE_GVISOR].withdrawn, 1);
	CHECK_STR(tier_events(s), "tier.proven tier.withdrawn ");

	/* The new engine fails its proof: it is not an alternative for anything until something changes. */
	prove_keys_of(&k, "gvisor", "", &facts);
	p = proof_of(&k, "bbbbbbbbbbbb", fleet_now_ns() - 1000);
	p.passed = 0;
	p.failed = 1;
	CHECK_OK(store_proof_add(s, &p, &err));
	prove_runner_judge(&r, CHOOSE_GVISOR, &facts, &out);
	CHECK_INT(out.state, CHOOSE_WITHDRAWN);
	CHECK_STR(tier_events(s), "tier.proven tier.withdrawn ");
}
