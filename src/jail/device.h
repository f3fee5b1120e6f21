/* device.h - the devices that boxes of each tier may open, independent of their device nodes. cgroup v1
 * takes the rows as text (cgroup.c); v2 takes them as a BPF program, made here. */
#pragma once
#include "base/err.h"

struct device_row {
	int major, minor; /* minor -1: all */
	const char *what;
	unsigned tiers; /* bits: JAIL_CONTAINER ... */
};
extern const struct device_row device_rows[];
extern const unsigned device_nrows;

/* v2: attaches the program with the rows of a tier (JAIL_CONTAINER ...) to the directory. It applies to everything below
 * that has no program of its own. */
must_check int device_attach(int cgroup_dir, unsigned tier, struct err *e);
