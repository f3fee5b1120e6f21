/* tier.h - the table of isolation tiers: how each one is examined, prepared and started.
 * Owns:         the table; gvisor.c, qemu.c ... define the functions of its rows.
 * Does not own: the outer box (jail/launch.h), the choice of a tier (choose.h).
 *
 * probe() runs in a process of its own, in the mounts of the host, with a time limit and in a pid
 * namespace that ends with it. outer_box() runs on a builder thread of the keeper, whose mounts are
 * not those of the host: it opens files below tier_host.dir only. */
#pragma once
#include "base/err.h"
#include "jail/launch.h"
#include "wire/wire.h"
#include <stdint.h>

struct tier_host {
	int dir;            /* <state>/tiers: what prepare() has made; -1: the folder is missing */
	char dir_path[256]; /* its name in the mounts of the host: for probe() and prepare() */
	int init_exe;       /* sealed image of init; -1 outside the keeper */
	int mux_exe;        /* sealed image of mux and guest stub; -1 outside the keeper */
	int skeleton;       /* for prepare(): folder with the root of a box without /usr; else -1 */
	int image_skeleton; /* for prepare(): folder that lies above the root of an image; else -1 */
	int rootless;       /* the keeper has no root */
	int process;        /* the operator allows the tier process */
	char no_namespaces[120]; /* why the keeper starts no containers; "": it does */
	uint64_t features; /* bits of enum jail_feature that a container box gets on this host */
};

struct tier {
	const char *name; /* "gvisor" */
	uint32_t rank;
	uint64_t unsupported;  /* bits of enum wire_need: rejected by name, never ignored */
	uint64_t features_off; /* bits of enum jail_feature that its outer box does not have */
	int images; /* 1: its boxes get layers and roots as erofs images (spec.images), not as mounts */
	/* Limits of the outer box: mem_bytes * mem_times + mem_extra (tier_outer_memory());
	 * pids * pids_times + pids_extra. */
	uint32_t mem_times;
	uint64_t mem_extra_bytes;
	uint64_t mem_min_bytes; /* smallest memory limit of a request; 0: that of every box */
	uint32_t pids_times, pids_extra;
	uint32_t start_ms; /* from the launch to HELLO of the guest stub; 0: 10 s */
	/* Where probe() looks for its engine, NULL-terminated: the keeper examines the tier again when the first of these
	 * that exists is another file. NULL: it has no engine. */
	const char *const *places;
	/* Sets state, engine, version, sha256, platform, emulated; unsupported may get more bits. -1:
	 * unavailable, the message is the reason with the command that helps. NULL: offered. */
	int (*probe)(const struct tier_host *h, struct wire_tier_facts *out, struct err *e);
	/* Images and templates; `atoll tier prepare`, never during a request. NULL: nothing to do. */
	int (*prepare)(const struct tier_host *h, const struct wire_tier_facts *f, struct err *e);
	/* Command line, descriptors, filter and namespace limits of the engine; sp is complete but for
	 * the engine, and may be changed. Everything that out names must exist until release(). */
	int (*outer_box)(const struct tier_host *h, const struct wire_tier_facts *f,
			 const struct wire_box *about, struct spec *sp, struct jail_engine *out,
			 struct err *e);
	/* After the launch, also after a failed one: closes and frees what outer_box() has opened.
	 * NULL: nothing to do. */
	void (*release)(struct jail_engine *engine);
};

extern const struct tier tier_table[WIRE_TIER_COUNT]; /* by enum wire_tier; without a name: not in
						       * this build */

/* NULL: no such tier in this build. */
const struct tier *tier_find(unsigned tier);
const struct tier *tier_named(const char *name);
/* Bytes of memory of an outer box with this limit. */
uint64_t tier_outer_memory(const struct tier *t, uint64_t mem_bytes);
const char *tier_name(unsigned tier); /* "?" if it is unknown: a record of a newer keeper */
unsigned tier_number(const struct tier *t);
/* mux and a guest stub are between the keeper and init; else the keeper starts init itself. */
int tier_has_guest(unsigned tier);
const char *tier_need_name(unsigned need); /* enum wire_need: "layers" */

/* What is known without a probe: numbers of the table; state: offered if there is no probe. */
void tier_facts_init(unsigned tier, const struct tier_host *h, struct wire_tier_facts *out);
/* Probes one tier; a failure is in `reason`. */
void tier_probe(unsigned tier, const struct tier_host *h, struct wire_tier_facts *out);
/* Rejects the first need that the tier does not support, by name. */
must_check int tier_supports(const struct wire_tier_facts *f, uint64_t needs, struct err *e);
