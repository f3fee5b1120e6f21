/* doctor_tiers.c - see doctor_tiers.h. The reason that the keeper has for a tier ends with what helps, in
 * parentheses. Proofs are not known here: `atoll tier list` asks the daemon. */
#include "daemon/doctor_tiers.h"
#include "cli/table.h"
#include "client/box_handle.h"
#include "wire/frame.h"

#include <stdio.h>
#include <string.h>

enum { DOCTOR_TIERS_MS = 10000 }; /* a probe starts its engine */

static json_t *doctor_tier_row(const struct wire_tier_facts *x)
{
	const char *open = strrchr(x->reason, '(');
	int offered = x->state == WIRE_TIER_OFFERED;
	int cut = open && open > x->reason ? (int)(open - x->reason) - 1 : (int)strlen(x->reason);
	char value[400], fix[240] = "", name[40];

	snprintf(name, sizeof(name), "tier %s", wire_tier_name(x->tier));
	snprintf(value, sizeof(value), "rank %u%s%s%s%s%s%s%.*s", x->rank, *x->engine ? ", " : "",
		 x->engine, *x->version ? " " : "", x->version, x->emulated ? ", emulated" : "",
		 offered ? "" : "; ", offered ? 0 : cut, x->reason);
	if (!offered && open)
		snprintf(fix, sizeof(fix), "%.*s", (int)strcspn(open + 1, ")"), open + 1);
	return json_pack("{s:s, s:s, s:s, s:s}", "name", name, "status", offered ? "ok" : "warn",
			 "value", value, "fix", fix);
}

static void doctor_tier_cells(struct table *t, const struct wire_tier_facts *x)
{
	table_cell(t, "%s", wire_tier_name(x->tier));
	table_cell(t, "%u", x->rank);
	table_cell(t, "%s", x->engine);
	table_cell(t, "%s", x->version);
	table_cell(t, "%s%s", x->platform, x->emulated ? " (emulated)" : "");
	table_cell(t, "%s", x->state == WIRE_TIER_OFFERED ? "offered" : x->reason);
}

void doctor_tiers(json_t *rows, const struct cli *cli)
{
	static const char *const columns[] = { "TIER",     ">RANK", "ENGINE", "VERSION",
					       "PLATFORM", "STATE", NULL };
	struct wire_tier_facts facts[WIRE_TIER_COUNT];
	struct keeper_sync k;
	struct table t;
	struct err e;
	int n = -1;

	if (keeper_sync_open(&k, 0, &e) == 0)
		n = keeper_sync_tiers(&k, facts, WIRE_TIER_COUNT, DOCTOR_TIERS_MS, &e);
	keeper_sync_close(&k);
	if (n < 0)
		return;
	for (int i = 0; i < n; i++)
		json_array_append_new(rows, doctor_tier_row(&facts[i]));
	if (!cli || cli->json || cli->quiet)
		return;
	table_init(&t, columns);
	for (int i = 0; i < n; i++)
		doctor_tier_cells(&t, &facts[i]);
	putchar('\n');
	table_print(&t, 1);
}
