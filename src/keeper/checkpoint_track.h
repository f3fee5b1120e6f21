/* checkpoint_track.h - change tracking: which inodes of the writable layer of a box may differ from a checkpoint.
 *
 * A mark of fanotify on the file system of the writable layer reports every inode that is opened, written, linked, renamed or
 * changed in its attributes. It does not report what is written through a mapping, and through overlayfs not what splice()
 * writes, while the file is open. Both need a descriptor or a mapping for writing, so the list is:
 *
 *   every inode with an event since the stop of the base, FAN_OPEN among them
 *   every file that a process had open or mapped for writing at the stop of the base
 *
 * The kernel keeps at most 16,384 inodes; more, and everything below that is marked "lost", make the next checkpoint walk the
 * writable layer as without tracking. What was open is not known (lost) if a descriptor is in a message that waits in a socket, or
 * a file has no name although it has links.
 *
 * Owns: nothing between two checkpoints. The keeper holds the descriptor of fanotify and a file with the list. The process that
 * takes a checkpoint invalidates the list first, and writes a new one when the checkpoint has succeeded. */
#pragma once
#include "base/err.h"
#include "layer/delta.h"
#include "layer/index.h"
#include <sys/types.h>

struct track_list {
	struct delta_touched *v; /* in any order, and several times */
	size_t n, room;
	int is_lost;
};

struct checkpoint_track {
	int events, list;     /* -1: not tracked. Borrowed */
	int upper;            /* borrowed */
	unsigned handle;      /* kind of file handles of the file system */
	pid_t ignored;        /* its events do not count: the capture only reads; 0: none */
	const char *prefix;   /* of paths in /proc; NULL: the root of the box */
	unsigned without;     /* tests: TRACK_WRITERS */
	unsigned descriptors; /* that were looked at in this stop */
	struct track_list since_base, since_stop;
};
enum { TRACK_WRITERS = 1 };

/* Both descriptors of a box: an empty list, and events without a mark. -1: not possible here, which is no error of a
 * checkpoint. */
must_check int checkpoint_track_new(int *out_events, int *out_list, struct err *e);

/* Before a checkpoint over `base`. events, list: -1: t is empty, and all calls below do nothing. The first time, sets
 * the mark. */
void checkpoint_track_begin(struct checkpoint_track *t, int events, int list, int upper,
			    const char *base);
void checkpoint_track_read(struct checkpoint_track *t); /* events until now */
/* All programs have stopped; checkpoint_track_writers() follows for each process, and the next list begins here. */
void checkpoint_track_stop(struct checkpoint_track *t);
void checkpoint_track_writers(struct checkpoint_track *t, pid_t pid);
/* The mapped files, as checkpoint_maps_read() has returned them, are open for writing, too. */
void checkpoint_track_mapped(struct checkpoint_track *t, const struct delta_mapped *m);
/* Adds the list to *out. */
void checkpoint_track_fill(const struct checkpoint_track *t, struct delta_mapped *out);
/* The checkpoint `id` exists: the next one over it is tracked; or over `same`, if that is not empty: nothing differed from it. */
void checkpoint_track_save(struct checkpoint_track *t, const char *id, const char *same);
void checkpoint_track_end(struct checkpoint_track *t);
