/* policy.c - `atoll policy`: the isolation of a box, printed from the tables that build it.
 * No text is repeated here; a row that changes there changes what is printed. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/suggest.h"
#include "init/exec_steps.h"
#include "jail/caps.h"
#include "jail/device.h"
#include "jail/landlock.h"
#include "jail/launch.h"
#include "jail/feature.h"
#include "jail/rlimits.h"
#include "jail/mnt.h"
#include "jail/seccomp.h"
#include "keeper/template.h"
#include "daemon/commands.h"
#include "tier/tier.h"
#include "procimage/copy_steps.h"
#include "zygote/confine_steps.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct policy_page { /* target of the rows: a first pass measures columns, the second prints lines or objects */
	enum { MEASURE, LINES, OBJECTS } as;
	int name_width, what_width;
	json_t *objects;
};

static void policy_widen(int *width, const char *text)
{
	int n = (int)strlen(text);

	*width = n > *width ? n : *width;
}

static void policy_row(struct policy_page *p, const char *name, const char *what, const char *why)
{
	what = what ? what : "";
	why = why ? why : "";
	if (p->as == MEASURE) {
		policy_widen(&p->name_width, name);
		policy_widen(&p->what_width, what);
	} else if (p->as == OBJECTS) {
		json_array_append_new(p->objects, json_pack("{s:s, s:s, s:s}", "name", name, "what",
							    what, "why", why));
	} else if (p->what_width) {
		printf("  %-*s  %-*s  %s\n", p->name_width, name, p->what_width, what, why);
	} else {
		printf("  %-*s  %s\n", p->name_width, name, why);
	}
}

static void policy_layers(struct policy_page *p)
{
	for (unsigned i = 0; i < FEATURE_COUNT; i++)
		policy_row(p, jail_features[i].name, jail_features[i].mandatory ? "mandatory" : "",
			   jail_features[i].why);
}

/* The tiers to which a step applies; empty: to all that are boxes of the launch table. */
static const char *policy_tiers(unsigned tiers, char out[64])
{
	unsigned all = 0;
	size_t n = 0;

	for (unsigned i = 0; i < jail_nsteps; i++)
		all |= jail_step_rows[i].tiers;
	out[0] = 0;
	for (unsigned i = 0; tiers != all && i < WIRE_TIER_COUNT; i++)
		if (tiers & 1u << i && tier_find(i))
			n += (size_t)snprintf(out + n, 64 - n, "%s%s", n ? " " : "", tier_name(i));
	return out;
}

static void policy_steps(struct policy_page *p)
{
	char tiers[64];

	for (unsigned i = 0; i < jail_nsteps; i++)
		policy_row(p, jail_step_rows[i].name, policy_tiers(jail_step_rows[i].tiers, tiers),
			   jail_step_rows[i].why);
}

static void exec_steps(struct policy_page *p)
{
	for (unsigned i = 0; i < NROWS; i++)
		policy_row(p, inside_names[i], NULL, NULL);
}

static void seal_steps(struct policy_page *p)
{
#define ROW(id, name, why) policy_row(p, name, NULL, why);
	SEAL_ROWS(ROW)
#undef ROW
}

static void copy_steps(struct policy_page *p)
{
#define ROW(id, name, why) policy_row(p, name, NULL, why);
	COPY_ROWS(ROW)
#undef ROW
}

static void mount_rows(struct policy_page *p, const struct mnt_row *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		policy_row(p, rows[i].path, rows[i].what, rows[i].why);
}

static void policy_mounts(struct policy_page *p)
{
	mount_rows(p, mnt_rows, mnt_nrows);
}

static void policy_print_masks(struct policy_page *p)
{
	char path[64];

	for (unsigned i = 0; i < mnt_nmasks; i++) {
		snprintf(path, sizeof(path), "/proc/%s", mnt_masks[i].path);
		policy_row(p, path, "hidden", mnt_masks[i].why);
	}
	policy_row(p, "/proc", "read-only",
		   "sysctls and the settings of processes, oom_score_adj among them");
}

static void policy_counters(struct policy_page *p)
{
	mount_rows(p, mnt_ns_rows, mnt_n_ns_rows);
}

static void policy_etc(struct policy_page *p)
{
	for (unsigned i = 0; i < template_netc; i++)
		policy_row(p, template_etc[i].path, NULL, template_etc[i].why);
}

static void policy_capabilities(struct policy_page *p)
{
	for (unsigned i = 0; i < caps_nkept; i++)
		policy_row(p, caps_kept[i].name, "root only", caps_kept[i].why);
}

static void limit_text(char out[24], unsigned long long n)
{
	snprintf(out, 24, n == ~0ull ? "no limit" : "%llu", n);
}

static void policy_limits(struct policy_page *p)
{
	char soft[24], hard[24], both[56];

	for (unsigned i = 0; i < limits_nrows; i++) {
		limit_text(soft, limits_rows[i].soft);
		limit_text(hard, limits_rows[i].hard);
		snprintf(both, sizeof(both), "%s / %s", soft, hard);
		policy_row(p, limits_rows[i].name, both, limits_rows[i].why);
	}
}

static void policy_devices(struct policy_page *p)
{
	char numbers[32];

	for (unsigned i = 0; i < device_nrows; i++) {
		snprintf(numbers, sizeof(numbers), device_rows[i].minor < 0 ? "%d:*" : "%d:%d",
			 device_rows[i].major, device_rows[i].minor);
		policy_row(p, numbers, device_rows[i].what,
			   device_rows[i].tiers == JAIL_ALL ? NULL : "microvm only");
	}
}

static void policy_landlock(struct policy_page *p)
{
	for (unsigned i = 0; i < landlock_nrows; i++)
		policy_row(p, landlock_rows[i].path ? landlock_rows[i].path : "(scope)",
			   landlock_rows[i].rights, landlock_rows[i].why);
}

static void policy_calls(struct policy_page *p, const struct seccomp_row *rows, unsigned n)
{
	static const char *const verdicts[] = {
		[SECCOMP_ALLOWED] = "allowed",   [SECCOMP_BY_ARGUMENT] = "by argument",
		[SECCOMP_NOOP] = "does nothing", [SECCOMP_ENOSYS] = "not there",
		[SECCOMP_REFUSED] = "refused",   [SECCOMP_NO_PROTOCOL] = "not there",
	};

	for (unsigned i = 0; i < n; i++)
		policy_row(p, rows[i].call, verdicts[rows[i].verdict], rows[i].why);
}

static void policy_seccomp(struct policy_page *p)
{
	policy_calls(p, seccomp_rows, seccomp_nrows);
}

static void policy_gvisor(struct policy_page *p)
{
	policy_calls(p, seccomp_gvisor_rows, seccomp_n_gvisor_rows);
	for (unsigned i = 0; i < caps_ngvisor; i++)
		policy_row(p, caps_gvisor[i].name, "capability", caps_gvisor[i].why);
	mount_rows(p, mnt_gvisor_ns_rows, mnt_n_gvisor_ns_rows);
}

static const struct section {
	/* clang-format off */
	const char *name, *title;
	void (*rows)(struct policy_page *p);
} sections[] = {
	{ "layers", "isolation features; no box starts without the mandatory ones", policy_layers },
	{ "steps", "steps of the launcher in the box before init runs, in this order; with the tiers, if not for all", policy_steps },
	{ "exec", "steps of init in a child before the program runs, in this order", exec_steps },
	{ "seal", "steps of a warm interpreter after the fork into the box, before it receives a program", seal_steps },
	{ "copy", "steps of a copy of a running program, before it does what its image says", copy_steps },
	{ "mounts", "mounts of a box", policy_mounts },
	{ "masks", "paths of /proc that are hidden or read-only", policy_print_masks },
	{ "namespaces", "limits of the user namespace, set once", policy_counters },
	{ "etc", "files of the host's /etc that are copied into the template", policy_etc },
	{ "capabilities", "capabilities of the box's root; its user has none", policy_capabilities },
	{ "limits", "resource limits of every process, soft / hard", policy_limits },
	{ "devices", "devices that may be opened", policy_devices },
	{ "landlock", "landlock rules, in addition to the mounts", policy_landlock },
	{ "seccomp", "system calls; unlisted ones are rejected", policy_seccomp },
	{ "gvisor", "outer box of runsc: system calls in addition to section seccomp, capabilities, limits of namespaces", policy_gvisor },
	/* clang-format on */
};

static const struct section *policy_find(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(sections); i++)
		if (!strcmp(sections[i].name, name))
			return &sections[i];
	return NULL;
}

static int policy_unknown(const struct cli *cli, const char *typed)
{
	const char *names[ARRAY_LEN(sections) + 1] = { 0 }, *close;
	auto_buf struct buf all = { 0 };
	char shown[SHOWN];
	struct cli_error t;

	for (unsigned i = 0; i < ARRAY_LEN(sections); i++) {
		names[i] = sections[i].name;
		buf_printf(&all, "%s%s", i ? " " : "", names[i]);
	}
	cli_error_what(&t, "usage", "policy has no section '%s'", cli_error_shown(typed, shown));
	close = suggest_nearest(typed, names);
	if (close)
		cli_error_hint(&t, "close", "atoll policy %s", close);
	cli_error_hint(&t, "list", "%s", buf_str(&all));
	return cli_error_print(&t, cli->json, STATUS_USAGE);
}

static void policy_print(const struct section *s, json_t *doc)
{
	struct policy_page p = { .as = MEASURE };

	s->rows(&p);
	p.as = doc ? OBJECTS : LINES;
	p.objects = doc ? json_array() : NULL;
	if (!doc)
		printf("%s - %s\n", s->name, s->title);
	s->rows(&p);
	if (doc)
		json_object_set_new(doc, s->name, p.objects);
}

static int policy_policy(const struct cli *cli, const struct args *a)
{
	json_t *doc = cli->json ? json_object() : NULL;
	int status = 0;

	for (unsigned i = 0; !a->nwords && i < ARRAY_LEN(sections); i++) {
		if (i && !doc)
			putchar('\n');
		policy_print(&sections[i], doc);
	}
	for (unsigned i = 0; i < a->nwords && !status; i++) {
		if (policy_find(a->words[i]))
			policy_print(policy_find(a->words[i]), doc);
		else
			status = policy_unknown(cli, a->words[i]);
	}
	if (doc && !status) {
		json_dumpf(doc, stdout, JSON_COMPACT);
		putchar('\n');
	}
	json_decref(doc);
	return status;
}

int policy_without(const char *name, uint64_t *launch, uint64_t *init)
{
	int found = -1;

	/* Some rows are in both tables, because both depend on them; such a feature is off only
	 * if both are. */
	for (unsigned i = 0; i < jail_nsteps; i++) {
		if (!strcmp(jail_step_rows[i].name, name)) {
			*launch |= UINT64_C(1) << i;
			found = 0;
		}
	}
	for (unsigned i = 0; i < NROWS; i++) {
		if (!strcmp(inside_names[i], name)) {
			*init |= UINT64_C(1) << i;
			found = 0;
		}
	}
	return found;
}

static const struct example examples[] = {
	{ "atoll policy", "print all sections" },
	{ "atoll policy seccomp", "print every system call with verdict and reason" },
	{ "atoll policy steps exec", "print the isolation steps in order" },
	{ 0 },
};

const struct command command_policy = {
	.name = "policy",
	.group = "Machine",
	.usage = "[SECTION...]",
	.summary = "print the isolation rules of a box with their reasons",
	.notes =
		"Sections: layers steps exec seal mounts masks namespaces etc capabilities limits\n"
		"devices landlock seccomp.",
	.words = "layers steps exec seal mounts masks namespaces etc capabilities limits devices "
		 "landlock seccomp",
	.max_words = ARRAY_LEN(sections),
	.examples = examples,
	.run = policy_policy,
};
