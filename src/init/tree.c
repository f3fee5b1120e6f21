/* tree.c - see tree.h. */
#include "init/tree.h"
#include "initlib/str.h"
#include <linux/magic.h>

enum { DENTS = 4096 }; /* small: after each return from a subfolder the rest of it is read again */
enum { LEVELS_FIRST = 1024, LEVELS_MOST = 1 << 22 };

static LAZY char dents[DENTS] __attribute__((aligned(8)));

int tree_init(struct tree *t, int take_dir)
{
	struct stat st;
	long err = sys_fstat(take_dir, &st);

	*t = (struct tree){ .dir = take_dir, .dev = st.st_dev };
	return err < 0 ? (int)err : 0;
}

void tree_fini(struct tree *t)
{
	sys_close(t->dir);
	sys_unmap(t->above, t->room * sizeof(*t->above));
}

static int is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

struct dirent64 *tree_next(struct tree *t)
{
	struct dirent64 *d;

	do {
		if (t->next >= t->have) {
			t->have = sys_getdents(t->dir, dents, sizeof(dents));
			t->next = 0;
			t->err = t->have < 0 ? (int)t->have : 0;
			if (t->have <= 0)
				return NULL;
		}
		d = (struct dirent64 *)(void *)(dents + t->next);
		t->next += d->d_reclen;
		t->at = d->d_off;
	} while (is_dots(d->d_name));
	return d;
}

/* The list doubles; it is bounded only so that its size cannot overflow. */
static int make_room(struct tree *t)
{
	uint32_t room = t->room ? t->room * 2 : LEVELS_FIRST;
	struct level *more;

	if (t->depth < t->room)
		return 0;
	more = room > LEVELS_MOST ? NULL : sys_map(room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memcpy(more, t->above, t->depth * sizeof(*more));
	sys_unmap(t->above, t->room * sizeof(*more));
	t->above = more;
	t->room = room;
	return 0;
}

static int move_to(struct tree *t, int dir)
{
	sys_close(t->dir);
	t->dir = dir;
	t->have = t->next = 0;
	return 0;
}

/* Opened again: on ext4 a descriptor that lseek() has moved to a directory's end before the
 * first read does not return to the start. */
int tree_rewind(struct tree *t)
{
	int dir = (int)sys_openat(t->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	return dir < 0 ? dir : move_to(t, dir);
}

/* A volume is part of the tree; processes are not. */
static int may_cross(const struct tree *t, int dir)
{
	struct statfs fs;

	return t->cross && sys_fstatfs(dir, &fs) >= 0 && fs.f_type != PROC_SUPER_MAGIC;
}

int tree_enter(struct tree *t, const char *name)
{
	struct stat here, below;
	int err = make_room(t), dir;

	if (err < 0)
		return err;
	dir = (int)sys_openat(t->dir, name,
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	if (dir < 0)
		return dir;
	if (sys_fstat(t->dir, &here) < 0 || sys_fstat(dir, &below) < 0 ||
	    (below.st_dev != t->dev && !may_cross(t, dir))) {
		sys_close(dir);
		return -EXDEV;
	}
	t->above[t->depth++] =
		(struct level){ .dev = here.st_dev, .ino = here.st_ino, .at = t->at };
	return move_to(t, dir);
}

int tree_leave(struct tree *t)
{
	int dir = (int)sys_openat(t->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	const struct level *l = &t->above[--t->depth];
	struct stat st;

	if (dir < 0)
		return dir;
	if (sys_fstat(dir, &st) < 0 || st.st_dev != l->dev || st.st_ino != l->ino) {
		sys_close(dir);
		return -EBUSY;
	}
	sys_lseek(dir, l->at, SEEK_SET);
	return move_to(t, dir);
}

/* 1: removed; 0: a directory that is not empty; -errno */
static int remove_entry(int dir, const struct dirent64 *d)
{
	long err = -EISDIR;

	if (d->d_type != DIRENT_DIR)
		err = sys_unlinkat(dir, d->d_name, 0);
	if (err == -EISDIR || err == -EPERM) {
		long also = sys_unlinkat(dir, d->d_name, AT_REMOVEDIR);

		err = also == -ENOTDIR ? err : also;
	}
	if (err == -ENOTEMPTY || err == -EEXIST)
		return 0;
	return err < 0 && err != -ENOENT ? (int)err : 1;
}

/* A directory is read again until a whole pass finds it empty: some file systems skip entries
 * when others vanish during the read, and a folder that was emptied is removed in the next pass. */
int layer_tree_remove(struct tree *t)
{
	int changed = 0;

	for (;;) {
		const struct dirent64 *d = tree_next(t);
		int err = d ? remove_entry(t->dir, d) : t->err;

		if (err < 0)
			return err;
		if (d && !err) {
			if (t->force)
				sys_fchmodat(t->dir, d->d_name, 0700);
			err = tree_enter(t, d->d_name);
			changed = 0;
		} else if (d) {
			changed = 1;
		} else if (changed) {
			err = tree_rewind(t);
			changed = 0;
		} else if (t->depth) {
			err = tree_leave(t);
			changed = 1;
		} else {
			return 0;
		}
		if (err < 0)
			return err;
	}
}
