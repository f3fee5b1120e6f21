/* prove_cmd.c - `atoll prove`: proves isolation tiers of this machine, and stores the proofs for its daemon. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/table.h"
#include "daemon/keeper_connect.h"
#include "daemon/commands.h"
#include "daemon/config.h"
#include "daemon/prove_settings.h"
#include "prove/prove.h"
#include "tier/tier.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PROVE_STATE, PROVE_CONFIG, PROVE_WITHOUT, PROVE_NFLAGS };

static const struct flag flags[PROVE_NFLAGS] = {
	[PROVE_STATE] = { "state", 0, FLAG_TEXT, "DIR",
			  "folder of the daemon that gets the proof (default: serve.state)" },
	[PROVE_CONFIG] = { "config", 0, FLAG_TEXT, "FILE", "configuration file of that daemon" },
	[PROVE_WITHOUT] = { "without", 0, FLAG_WORDS, "ROW",
			    "leave out an isolation step, or the whole box: the proof must fail (test builds)" },
};

struct prove_session {
	const struct cli *cli;
	struct config config;
	char state[512];
	struct buf settings;
	uint64_t without_launch, without_init;
	int without_box;
	json_t *proofs; /* --json */
};

static int prove_prepare(struct prove_session *s, const struct args *a, struct cli_error *t)
{
	struct config_source src = { .file = args_text(a, PROVE_CONFIG, NULL) };
	struct err e;

	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == PROVE_WITHOUT && !strcmp(a->given[i].text, "box"))
			s->without_box = 1;
		else if (a->given[i].flag == PROVE_WITHOUT &&
			 policy_without(a->given[i].text, &s->without_launch, &s->without_init) <
				 0) {
			cli_error_what(t, "usage", "--without: no row named '%s'",
				       a->given[i].text);
			cli_error_hint(t, "type", "atoll policy steps");
			return -1;
		}
	if (config_load(&s->config, &src, &e) < 0) {
		cli_error_what(t, "usage", "%s", e.msg);
		return -1;
	}
	snprintf(s->state, sizeof(s->state), "%s",
		 args_text(a, PROVE_STATE, config_text(&s->config, CONFIG_STATE)));
	prove_settings_text(&s->config, &s->settings);
	keeper_allow_process(config_bool(&s->config, CONFIG_ISOLATION_PROCESS));
	return 0;
}

/* For the daemon, if there is one. -1: e. 1: this machine has none. */
static int prove_store(const struct prove_session *s, const struct store_proof *p, struct err *e)
{
	char folder[600], path[640];
	struct store *store;
	int rc;

	snprintf(folder, sizeof(folder), "%s/server", s->state); /* state_dir.h */
	snprintf(path, sizeof(path), "%s/atoll.db", folder);
	if (s->without_launch || s->without_init || s->without_box || access(path, R_OK) < 0)
		return 1;
	if (store_open(&store, folder, e) < 0)
		return -1;
	rc = store_proof_add(store, p, e);
	store_close(store);
	return rc;
}

static void prove_print_rows(const struct store_proof *p)
{
	static const char *const columns[] = { "VERDICT", "PROBE",    "WAY",
					       "ATTEMPT", "OBSERVED", NULL };
	static const char *const names[] = { "verdict", "probe", "way", "attempt", "observed" };
	json_t *rows = json_loads(p->probes, 0, NULL), *row;
	struct table t;
	size_t i;

	table_init(&t, columns);
	json_array_foreach(rows, i, row) for (unsigned k = 0; k < ARRAY_LEN(names); k++)
		table_cell(&t, "%s", json_string_value(json_object_get(row, names[k])));
	table_print(&t, 1);
	json_decref(rows);
}

static unsigned prove_count(const struct store_proof *p, const char *verdict)
{
	json_t *rows = json_loads(p->probes, 0, NULL), *row;
	unsigned n = 0;
	size_t i;

	json_array_foreach(rows, i, row) n +=
		!strcmp(json_string_value(json_object_get(row, "verdict")), verdict);
	json_decref(rows);
	return n;
}

static void prove_report(struct prove_session *s, const struct store_proof *p, int stored)
{
	unsigned nabsent = prove_count(p, "absent");
	char absent[24] = "";

	if (s->cli->json) {
		json_array_append_new(s->proofs, prove_json(p, 1));
		return;
	}
	if (!s->cli->quiet)
		prove_print_rows(p);
	if (nabsent)
		snprintf(absent, sizeof(absent), ", %u absent", nabsent);
	printf("%s: %s: %u passed, %u failed, %u skipped%s in %.2f s%s%s\n", p->tier,
	       p->passed ? "proven" : "NOT PROVEN", prove_count(p, "passed"), p->failed,
	       prove_count(p, "skipped"), absent, (double)p->duration_us / 1e6,
	       stored ? "; proof " : "; not stored", stored ? p->id : "");
}

/* 0: passed; 1: failed. -1: there is no result. */
static int prove_tier(struct prove_session *s, unsigned tier, struct err *e)
{
	struct prove_want w = { .settings = buf_str(&s->settings),
				.start_keeper = 1,
				.without_launch = s->without_launch,
				.without_init = s->without_init,
				.on_host = s->without_box };
	struct store_proof p;
	int stored, failed;

	prove_want_tier(&w, tier);
	if (prove_run(&w, &p, e) < 0)
		return -1;
	stored = prove_store(s, &p, e);
	failed = !p.passed;
	if (stored >= 0)
		prove_report(s, &p, stored == 0);
	store_proof_fini(&p);
	return stored < 0 ? -1 : failed;
}

/* All that are offered. */
static int prove_tiers(struct prove_session *s, struct err *e)
{
	int failed = 0;

	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++) {
		int rc;

		if (!tier_find(i) || i == WIRE_TIER_PLAIN || i == WIRE_TIER_PROCESS)
			continue;
		rc = prove_tier(s, i, e);
		if (rc < 0 && e->kind != ERR_NOT_FOUND)
			return -1;
		if (rc < 0 && !s->cli->json)
			printf("%s\n", e->msg);
		failed |= rc > 0;
	}
	return failed;
}

static int run_prove(const struct cli *cli, const struct args *a)
{
	struct prove_session s = { .cli = cli };
	const char *name = a->nwords ? a->words[0] : NULL;
	const struct tier *tier = name ? tier_named(name) : NULL;
	struct cli_error t;
	struct err e = { 0 };
	int rc;

	if (name && !tier) {
		cli_error_what(&t, "usage", "prove: no tier named '%s'", name);
		cli_error_hint(&t, "type", "atoll prove container");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	if (prove_prepare(&s, a, &t) < 0)
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	s.proofs = json_array();
	rc = tier ? prove_tier(&s, tier_number(tier), &e) : prove_tiers(&s, &e);
	if (rc >= 0 && cli->json) {
		json_dumpf(s.proofs, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(s.proofs);
	buf_fini(&s.settings);
	config_fini(&s.config);
	if (rc >= 0)
		return rc;
	cli_error_what(&t, "failed", "prove: %s", e.msg);
	return cli_error_print(&t, cli->json, STATUS_OURS);
}

static const struct example examples[] = {
	{ "sudo atoll prove", "prove every tier that this machine offers" },
	{ "sudo atoll prove gvisor --json | jq '.[0].passed'", "one tier, for a script" },
	{ 0 },
};

const struct command command_prove = {
	/* clang-format off */
	.name = "prove",
	.group = "Machine",
	.usage = "[TIER] [--state DIR] [--config FILE]",
	.summary = "prove that an isolation tier holds: attack it from inside, look from outside",
	.notes = "Starts a probe program in boxes of the tier. It tries to reach files, processes, sockets and other boxes;\n"
		 "a probe passes if nothing of this was observed outside of the box. The proof is stored for the daemon of this\n"
		 "machine, is valid for 7 days while kernel, engine, build and settings are the same, and is shown by\n"
		 "GET /v1/proofs. Needs root. Exit status: 0 all passed, 1 a probe failed.",
	.flags = flags,
	.nflags = PROVE_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = run_prove,
	/* clang-format on */
};
