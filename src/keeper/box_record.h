/* box_record.h - the record of a box: what a new keeper must know to adopt or remove it.
 * Written (records.h) before the first thing it describes exists. */
#pragma once
#include "base/err.h"
#include "wire/wire.h"
#include <stdint.h>

#define BOX_RECORD_MAGIC 0x33786f62 /* "box3" */

struct box_record {
	uint32_t magic;
	uint32_t disk_image;  /* 1: its disk is an image, not memory */
	char cgroup[WIRE_ID]; /* name of its cgroups; empty: it waits in the parent's */
	uint64_t start_time;  /* of init: tells it from a later process of the same pid */
	uint64_t boot;        /* hash of the boot id: ids of another boot mean nothing */
	struct wire_box about;
	uint32_t nmounts, nlayers;
	struct wire_mount mounts[WIRE_MOUNTS];
	char layer[WIRE_LAYERS][WIRE_LAYER_ID];
};

/* Could a keeper of this version have written it? Names are names, numbers are in their bounds. */
int box_record_may_be(const struct box_record *m);

/* Keepers up to 0.1 had a file for each box, boxes/<id>.box: the next one reads those, too. All
 * relative to the run folder's descriptor. */
must_check int box_record_old_read(int run, const char *id, struct box_record *out, struct err *e);
void box_record_old_remove(int run, const char *id);
/* Calls each for every such file; stops when it returns non-zero. */
must_check int box_record_old_each(int run, int (*each)(const char *id, void *arg), void *arg,
				   struct err *e);

/* What no other process of this boot has: its number in the kernel's pidfs (Linux 6.9), else the time
 * it was started, in ticks. 0: no such process. */
uint64_t box_record_start_time(int proc, int pid, int pidfd);
uint64_t box_record_boot(int proc);
