/* tree.h - walks a directory tree of any depth, made by an attacker.
 * Owns: one descriptor, at any depth, and a list of the directories above it.
 * Goes down by name without following links, up by ".." and then checks that it is in the
 * directory it came from: a directory that was moved meanwhile ends the walk. Crosses into
 * another file system only if requested. */
#pragma once
#include "initlib/sys.h"

struct level { /* a directory above: its identity, and the position in it */
	uint64_t dev, ino;
	int64_t at;
};

struct tree {
	int dir;
	uint64_t dev; /* of the whole walk */
	struct level *above;
	uint32_t depth, room;
	int64_t at;      /* position after the entry last returned */
	long have, next; /* bytes in the buffer, and consumed */
	int err;
	int cross; /* into other file systems, too, but never into procfs */
	int force; /* layer_tree_remove: enters folders independent of their mode */
};

int tree_init(struct tree *t, int take_dir); /* 0 or -errno; closes take_dir in the end, always */
void tree_fini(struct tree *t);
struct dirent64 *tree_next(struct tree *t); /* NULL: the end of the folder, or an error in t->err */
int tree_enter(struct tree *t, const char *name); /* the entry just returned; -errno */
int tree_leave(struct tree *t);                   /* to the entry after the one entered; -errno */
int tree_rewind(struct tree *t);                  /* to the first entry in here; -errno */
int layer_tree_remove(struct tree *t);            /* everything below the first directory; -errno */
