/* guest_counts.h - counters of the guest's kernel, which no process of the host can read.
 * Owns: the descriptor of the cgroup (version 2) of the box inside the guest; without one nothing is
 * counted. A kill for memory explains the end of one exec only. */
#pragma once
#include <stdint.h>

struct guest_counts {
	uint64_t kills, refused; /* processes killed for memory; forks refused */
};

void guest_counts_init(int take_dir);
/* All zero without a cgroup. */
void guest_counts_read(struct guest_counts *out);
/* Flags of the EXIT of an exec that was started at `before`; alone: no other exec runs. */
uint16_t guest_counts_flags(const struct guest_counts *before, int failed, int alone);
