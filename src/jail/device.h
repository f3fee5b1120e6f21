/* device.h - the devices that any box may open, independent of its device nodes. cgroup v1 takes
 * the rows as text (cgroup.c); v2 takes them as a BPF program, made here. */
#pragma once
#include "base/err.h"

struct device_row {
	int major, minor; /* minor -1: all */
	const char *what;
};
extern const struct device_row device_rows[];
extern const unsigned device_nrows;

/* v2: attaches the program to the directory; it applies to everything below. */
must_check int device_attach(int cgroup_dir, struct err *e);
