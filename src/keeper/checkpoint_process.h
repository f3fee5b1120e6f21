/* checkpoint_process.h - the two processes of a checkpoint that read what a box has written.
 *
 *   capture   root of the box's own user namespace with CAP_DAC_READ_SEARCH there, no capability on the host, the
 *             writable layer of the box as its root folder, a system call filter. It reads that folder and writes to
 *             the two files that it was given: layer/delta.h
 *   check     an id of the host that nothing else has, no capability, an empty root folder, a stricter filter. It
 *             reads the finished files again: layer/erofs_check.h, layer/index.h
 *
 * A take-over of the first gives nothing but what the box has. What it writes is not trusted before the second has
 * accepted it, and the second cannot write anything. */
#pragma once
#include "base/err.h"
#include "layer/chain_merge.h"
#include "layer/delta.h"
#include <sys/types.h>

struct checkpoint_message { /* both ways, on a SOCK_SEQPACKET; a list comes with a memfd */
	enum { CHECKPOINT_STOP = 1, CHECKPOINT_LIST, CHECKPOINT_RELEASE, CHECKPOINT_RESULT } what;
	struct err err;
	uint64_t ninodes, ntouched,
		paths_bytes; /* in the memfd: struct delta_mapped, in this order */
	uint32_t is_tracked, pad;
	struct delta_sum sum;    /* RESULT of a capture */
	struct chain_sum merged; /* RESULT of a merge */
};

/* Once, before the process that starts the others is made. */
must_check int checkpoint_process_prepare(struct err *e);

/* Starts a capture that waits for checkpoint_capture_begin(). Returns its pid; *out_sock is its other end. It ends with its
 * parent. */
must_check pid_t checkpoint_capture_start(int *out_sock, struct err *e);
/* d: descriptors and limits. userns: of the box. */
must_check int checkpoint_capture_begin(int sock, const struct delta *d, int userns, struct err *e);
/* Merges layers of a chain into `out`, an empty file, in such a process that can write to it: layer/chain_merge.h. index: -1,
 * or what of them it gets: layer/chain_pick.h. */
must_check int checkpoint_merge_run(const int *layers, unsigned n, int index, int out, uint32_t uid,
				    uint64_t bytes_most, uint64_t files_most, struct chain_sum *sum,
				    struct err *e);
/* Read-only, and with a position of its own. */
must_check int checkpoint_reopen(int fd, struct err *e);
/* Starts a check, which confines itself and waits for files. uid: that of the process. */
must_check pid_t checkpoint_check_start(uint32_t uid, int *out_sock, struct err *e);
/* Waits for the verdict; the process is killed after it. layer, index: -1: none. */
must_check int checkpoint_check_finish(pid_t pid, int take_sock, int layer, int index,
				       uint64_t files_most, struct err *e);
