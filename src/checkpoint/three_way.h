/* three_way.h - a merge of the files of two checkpoints that have a common ancestor: from lists of their entries, without
 * their contents.
 *
 * What `theirs` has changed since the ancestor is added to `ours`, path by path. A conflict is a path that both have changed
 * and that differs, or one below which the other has removed or replaced the folder. Times do not count.
 * Owns: the plan; its texts and entries are those of the lists, which must live as long. */
#pragma once
#include "checkpoint/files.h"

enum checkpoint_conflicts { MERGE_FAILS, MERGE_OURS, MERGE_THEIRS };

struct checkpoint_plan {
	struct checkpoint_plan_item {
		const char *path;
		const struct layer_index_fixed *entry; /* of theirs; NULL: the name is removed */
		int replaces; /* a folder that hides what was below its name */
	} * v;                /* sorted */
	size_t n, room;
	size_t changed, deleted;
	const char **conflicts; /* sorted; as they were resolved, if not MERGE_FAILS */
	size_t nconflicts, conflicts_room;
};

void checkpoint_plan_make(const struct checkpoint_files *ancestor,
			  const struct checkpoint_files *ours,
			  const struct checkpoint_files *theirs, enum checkpoint_conflicts how,
			  struct checkpoint_plan *out);
void checkpoint_plan_fini(struct checkpoint_plan *p);

/* Writes the index of a checkpoint over `ours`: the entries of the plan and the folders above them. head: id and box. */
must_check int checkpoint_plan_write(const struct checkpoint_plan *p,
				     const struct checkpoint_files *ours,
				     const struct checkpoint_files *theirs,
				     const struct layer_index_head *head, int fd, struct err *e);
