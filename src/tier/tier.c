/* tier.c - see tier.h. */
#include "tier/tier.h"
#include "tier/gvisor.h"
#include "base/cleanup.h"
#include "tier/plain.h"
#include "tier/process.h"
#include "jail/feature.h"
#include "tier/qemu.h"
#include "tier/wasm.h"
#include "wire/frame.h"

#include <stdio.h>
#include <string.h>

_Static_assert(JAIL_CONTAINER == 1 << WIRE_TIER_CONTAINER && JAIL_PLAIN == 1 << WIRE_TIER_PLAIN &&
		       JAIL_PROCESS == 1 << WIRE_TIER_PROCESS &&
		       JAIL_GVISOR == 1 << WIRE_TIER_GVISOR &&
		       JAIL_MICROVM == 1 << WIRE_TIER_MICROVM,
	       "the column of the launch table has the bits of enum wire_tier");

#define NEED(n) (UINT64_C(1) << WIRE_NEED_##n)

const struct tier tier_table[WIRE_TIER_COUNT] = {
	[WIRE_TIER_CONTAINER] = {
		.name = "container",
		.rank = 2,
		.unsupported = NEED(MEMORY_SNAPSHOT) | NEED(GPU),
		.mem_times = 1,
		.pids_times = 1,
	},
#ifdef ATOLL_TEST
	[WIRE_TIER_PLAIN] = {
		.name = "plain",
		.rank = 2,
		.unsupported = NEED(MEMORY_SNAPSHOT) | NEED(GPU),
		.mem_extra_bytes = 4 << 20,
		.mem_times = 1,
		.pids_times = 1,
		.pids_extra = 2, /* mux, guest stub */
		.outer_box = plain_outer_box,
	},
#endif
	[WIRE_TIER_PROCESS] = {
		.name = "process",
		.rank = 0,
		.unsupported = NEED(TERMINAL) | NEED(ROOT_USER) | NEED(LAYERS) | NEED(ROOT) | NEED(VOLUME) |
			       NEED(VOLUME_WRITABLE) | NEED(SECRETS) | NEED(HOST_WRITABLE) | NEED(ZYGOTE) |
			       NEED(UPPER) | NEED(CAPTURE) | NEED(LIMIT) | NEED(FREEZE) |
			       NEED(MEMORY_SNAPSHOT) | NEED(GPU),
		.features_off = ~(FEATURE_BIT(FEATURE_MEM) | FEATURE_BIT(FEATURE_TASKS) |
				  FEATURE_BIT(FEATURE_CPU) | FEATURE_BIT(FEATURE_CAPS) |
				  FEATURE_BIT(FEATURE_NNP) | FEATURE_BIT(FEATURE_SECCOMP) |
				  FEATURE_BIT(FEATURE_LANDLOCK)),
		.mem_extra_bytes = 1 << 20,
		.mem_times = 1,
		.pids_times = 1,
		.pids_extra = 1, /* the supervisor */
		.probe = process_probe,
		.outer_box = process_outer_box,
	},
	[WIRE_TIER_GVISOR] = {
		.name = "gvisor",
		.rank = 3,
		.unsupported = NEED(HOST_WRITABLE) | NEED(UPPER) | NEED(CAPTURE) |
			       NEED(MEMORY_SNAPSHOT) | NEED(GPU),
		.mem_extra_bytes = 48 << 20, /* sentry and gofer */
		.mem_min_bytes = 16 << 20,
		.mem_times = 1,
		.pids_times = 4, /* a thread of the sentry and a traced process for each */
		.pids_extra = 64,
		.start_ms = 20000,
		.places = gvisor_places,
		.probe = gvisor_probe,
		.outer_box = gvisor_outer_box,
		.release = gvisor_release,
	},
	[WIRE_TIER_WASM] = {
		.name = "wasm",
		.rank = 3,
		.unsupported = NEED(TERMINAL) | NEED(ROOT_USER) | NEED(LAYERS) | NEED(ROOT) | NEED(VOLUME) |
			       NEED(VOLUME_WRITABLE) | NEED(SECRETS) | NEED(HOST_WRITABLE) | NEED(ZYGOTE) |
			       NEED(CAPTURE) | NEED(MEMORY_SNAPSHOT) | NEED(GPU),
		.mem_times = 1,
		.pids_times = 1,
		.probe = wasm_probe,
	},
	[WIRE_TIER_MICROVM] = {
		.name = "microvm",
		.rank = 4,
		.images = 1,
		.unsupported = NEED(VOLUME) | NEED(VOLUME_WRITABLE) | NEED(HOST_WRITABLE) | NEED(UPPER) |
			       NEED(CAPTURE) | NEED(LIMIT) | NEED(MEMORY_SNAPSHOT) | NEED(GPU),
		/* The first clone that writes to a page which is a hole of the template gets its own
		 * page and is charged for that of the template, too (memory file, private mapping). */
		.mem_times = 2,
		/* kernel of the guest, QEMU, and the code that it translates without KVM */
		.mem_extra_bytes = (2 * VM_SPARE_MIB + 96 + 256) * UINT64_C(1) << 20,
		.mem_min_bytes = 32 << 20,
		.pids_times = 1,
		.pids_extra = 64, /* threads of QEMU */
		.start_ms = 120000,
		.places = qemu_places,
		.probe = qemu_probe,
		.prepare = qemu_prepare,
		.outer_box = qemu_outer_box,
		.release = qemu_release,
	},
};

static const char *const need_names[WIRE_NEED_COUNT] = {
	[WIRE_NEED_TERMINAL] = "terminals",
	[WIRE_NEED_ROOT_USER] = "programs as root",
	[WIRE_NEED_LAYERS] = "layers of packages",
	[WIRE_NEED_ROOT] = "templates with a root of their own",
	[WIRE_NEED_VOLUME] = "volumes",
	[WIRE_NEED_VOLUME_WRITABLE] = "writable volumes",
	[WIRE_NEED_SECRETS] = "files with secrets",
	[WIRE_NEED_HOST_WRITABLE] = "changes of the host's /usr (template builds)",
	[WIRE_NEED_ZYGOTE] = "warm interpreters",
	[WIRE_NEED_UPPER] = "reading its writable layer from outside",
	[WIRE_NEED_CAPTURE] = "captured connections",
	[WIRE_NEED_LIMIT] = "changes of its limits",
	[WIRE_NEED_FREEZE] = "freezing",
	[WIRE_NEED_MEMORY_SNAPSHOT] = "snapshots of memory",
	[WIRE_NEED_GPU] = "GPUs",
};

const struct tier *tier_find(unsigned tier)
{
	return tier < WIRE_TIER_COUNT && tier_table[tier].name ? &tier_table[tier] : NULL;
}

const struct tier *tier_named(const char *name)
{
	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++)
		if (tier_table[i].name && strcmp(tier_table[i].name, name) == 0)
			return &tier_table[i];
	return NULL;
}

const char *tier_name(unsigned tier)
{
	return wire_tier_name(tier);
}

int tier_has_guest(unsigned tier)
{
	return tier != WIRE_TIER_CONTAINER && tier != WIRE_TIER_PROCESS && tier != WIRE_TIER_WASM;
}

unsigned tier_number(const struct tier *t)
{
	return (unsigned)(t - tier_table);
}

uint64_t tier_outer_memory(const struct tier *t, uint64_t mem_bytes)
{
	return mem_bytes * t->mem_times + t->mem_extra_bytes;
}

const char *tier_need_name(unsigned need)
{
	return need < WIRE_NEED_COUNT ? need_names[need] : "?";
}

void tier_facts_init(unsigned tier, const struct tier_host *h, struct wire_tier_facts *out)
{
	const struct tier *t = tier_find(tier);

	*out = (struct wire_tier_facts){ .tier = tier, .unsupported = ~UINT64_C(0) };
	if (!t) {
		snprintf(out->reason, sizeof(out->reason), "not in this build of Atoll");
		return;
	}
	out->rank = t->rank;
	out->unsupported = t->unsupported;
	out->mem_min_bytes = t->mem_min_bytes;
	out->features = h->features & ~t->features_off;
	out->state = t->probe ? WIRE_TIER_UNAVAILABLE : WIRE_TIER_OFFERED;
	/* Every other tier is built on a container. */
	if (h->no_namespaces[0] && tier != WIRE_TIER_PROCESS) {
		out->state = WIRE_TIER_UNAVAILABLE;
		snprintf(out->reason, sizeof(out->reason), "%s", h->no_namespaces);
	} else if (t->probe)
		snprintf(out->reason, sizeof(out->reason), "not examined yet; repeat the request");
}

void tier_probe(unsigned tier, const struct tier_host *h, struct wire_tier_facts *out)
{
	const struct tier *t = tier_find(tier);
	struct err e = { 0 };

	tier_facts_init(tier, h, out);
	if (!t || !t->probe || (h->no_namespaces[0] && tier != WIRE_TIER_PROCESS))
		return;
	out->reason[0] = 0;
	if (t->probe(h, out, &e) == 0)
		return;
	out->state = WIRE_TIER_UNAVAILABLE;
	snprintf(out->reason, sizeof(out->reason), "%s", e.msg);
}

int tier_supports(const struct wire_tier_facts *f, uint64_t needs, struct err *e)
{
	uint64_t missing = needs & f->unsupported;

	if (!missing)
		return 0;
	return err_set(e, ERR_DENIED, "the isolation tier %s does not support %s",
		       tier_name(f->tier), tier_need_name((unsigned)__builtin_ctzll(missing)));
}
