/* wasm.h - the tier wasm: programs are WebAssembly modules, compiled ahead of time (wasm/build.h), in a container box.
 * Owns: nothing. The keeper examines the modules; a CREATE for them is one of a container. */
#pragma once
#include "tier/tier.h"

#define WASM_FOLDER "/usr/local/lib/atoll/wasm"

/* Sets state, engine (the folder), version (names of the modules), sha256 (of names, sizes, inodes and times of all their
 * files: one changed byte changes it). */
void wasm_probe_folder(const char *folder, struct wire_tier_facts *out);
int wasm_probe(const struct tier_host *h, struct wire_tier_facts *out,
	       struct err *e); /* of the row of the table */

/* In a box of this tier only modules are executed. ERR_DENIED: this program is none. */
must_check int wasm_check_program(const char *program, struct err *e);
