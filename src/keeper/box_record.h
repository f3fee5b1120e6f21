/* box_record.h - the record of a box: the data with which a new keeper adopts or removes it.
 * Written (record_file.h) before the resources that it describes are created. */
#pragma once
#include "base/err.h"
#include "wire/wire.h"
#include <stdint.h>

#define BOX_RECORD_MAGIC 0x33786f62 /* "box3" */

struct box_record {
	uint32_t magic;
	uint32_t disk_image;  /* 1: its disk is an image, not memory */
	char cgroup[WIRE_ID]; /* name of its cgroups; empty: it is in the parent cgroup */
	uint64_t start_time;  /* start time of init: distinguishes it from a later process with the
			       * same pid */
	uint64_t boot;        /* hash of the boot id: pids of another boot are invalid */
	struct wire_box about;
	uint32_t nmounts, nlayers;
	struct wire_mount mounts[WIRE_MOUNTS];
	char layer[WIRE_LAYERS][WIRE_LAYER_ID];
	char root[WIRE_LAYER_ID]; /* empty: base. Earlier keepers did not write it */
	/* Earlier keepers did not write these either. */
	uint32_t nchain;
	uint32_t checkpointing; /* 1: it may be frozen for a checkpoint; the next keeper thaws it */
	char chain[WIRE_CHAIN][WIRE_ID];
};

/* 1: a keeper of this version could have written it: names are valid, numbers are in range. */
int box_record_may_be(const struct box_record *m);

/* Keepers up to 0.1 had one file per box, boxes/<id>.box: newer keepers read those, too. Paths are
 * relative to the descriptor of the run folder. */
must_check int box_record_old_read(int run, const char *id, struct box_record *out, struct err *e);
void box_record_old_remove(int run, const char *id);
/* Calls each for every such file; stops when it returns non-zero. */
must_check int box_record_old_each(int run, int (*each)(const char *id, void *arg), void *arg,
				   struct err *e);

/* A value that is unique among the processes of this boot: the inode in pidfs (Linux 6.9), else the
 * start time in ticks. 0: no such process. */
uint64_t box_record_start_time(int proc, int pid, int pidfd);
uint64_t box_record_boot(int proc);
