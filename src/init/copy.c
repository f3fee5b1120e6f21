/* copy.c - COPY: a file or a whole tree, all of it or nothing; see worker.h.
 * Links are copied as links, permission bits are kept, holes stay holes. The copy is written
 * under a hidden name next to its destination and renamed when it is complete; a failed copy is
 * removed. */
#include "base/err.h"
#include "init/conn.h"
#include "initlib/scratch.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/tree.h"
#include "init/worker.h"
#include <linux/fs.h>

enum { DEPTH_MOST = 4096 };

static LAZY char from_path[PATH_MAX], to_path[PATH_MAX], link_target[PATH_MAX];

struct copy {
	struct tree from, to;
	uint64_t dev, ino; /* of the copy itself: a folder must not be copied into itself */
	int skipped;       /* sockets, pipes, devices */
	int too_deep;
};

static int copy_range(int in, int out, uint64_t at, uint64_t end)
{
	while (at < end) {
		uint64_t want = end - at < CHUNK ? end - at : CHUNK;
		long n = sys_pread(in, scratch, want, at), w = 0;

		if (n <= 0)
			return (int)n; /* it has become shorter: its owner's choice */
		while (w < n) {
			long did = sys_pwrite(out, scratch + w, (size_t)(n - w), at + (uint64_t)w);

			if (did < 0)
				return (int)did;
			w += did;
		}
		at += (uint64_t)n;
	}
	return 0;
}

static int copy_bytes(int in, int out, uint64_t size)
{
	uint64_t at = 0;

	while (at < size) {
		long data = sys_lseek(in, (int64_t)at, SEEK_DATA), end;
		int err;

		if (data == -ENXIO)
			break; /* nothing but a hole is left */
		end = data < 0 ? data : sys_lseek(in, data, SEEK_HOLE);
		if (end < 0)
			return (int)end;
		err = copy_range(in, out, (uint64_t)data,
				 (uint64_t)end < size ? (uint64_t)end : size);
		if (err < 0)
			return err;
		at = (uint64_t)end;
	}
	return (int)sys_ftruncate(out, size);
}

static int copy_file(int from, const char *name, int to, const char *as)
{
	int in = (int)sys_openat(from, name,
				 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	int out = in < 0 ? in
			 : (int)sys_openat(to, as,
					   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
					   0600);
	struct stat st;
	int err = out < 0 ? out : (int)sys_fstat(in, &st);

	if (err >= 0 && !S_ISREG(st.st_mode))
		err = -ESTALE; /* it was one a moment ago */
	if (err >= 0)
		err = copy_bytes(in, out, (uint64_t)st.st_size);
	if (err >= 0)
		err = (int)sys_fchmod(out, st.st_mode & 07777);
	sys_close(in);
	sys_close(out);
	return err;
}

static int copy_link(int from, const char *name, int to, const char *as)
{
	long n = sys_readlinkat(from, name, link_target, sizeof(link_target) - 1);

	if (n < 0)
		return (int)n;
	link_target[n] = '\0';
	return (int)sys_symlinkat(link_target, to, as);
}

static int enter_both(struct copy *c, const char *name, const struct stat *st)
{
	int err;

	if (st->st_dev == c->dev && st->st_ino == c->ino)
		return -EINVAL;
	if (c->from.depth >= DEPTH_MOST) {
		c->too_deep = 1;
		return -ENAMETOOLONG;
	}
	/* The name is in the buffer of `from`, which tree_enter() does not read again. */
	err = tree_enter(&c->from, name);
	if (err >= 0)
		err = (int)sys_mkdirat(c->to.dir, name, 0700);
	return err < 0 ? err : tree_enter(&c->to, name);
}

/* The mode is set after leaving: without the x bit the walk could not return. */
static int leave_both(struct copy *c)
{
	int done = (int)sys_fcntl(c->to.dir, F_DUPFD_CLOEXEC, UPPER + 1), err = done;
	int at_top = !c->from.depth;
	struct stat st;

	if (err >= 0)
		err = (int)sys_fstat(c->from.dir, &st);
	if (err >= 0 && !at_top)
		err = tree_leave(&c->from);
	if (err >= 0 && !at_top)
		err = tree_leave(&c->to);
	if (err >= 0)
		err = (int)sys_fchmod(done, st.st_mode & 07777);
	sys_close(done);
	return err < 0 ? err : at_top;
}

static int copy_entry(struct copy *c, const char *name)
{
	struct stat st;
	int err = (int)sys_fstatat(c->from.dir, name, &st, AT_SYMLINK_NOFOLLOW);

	if (err < 0)
		return err == -ENOENT ? 0 : err;
	if (S_ISDIR(st.st_mode))
		return enter_both(c, name, &st);
	if (S_ISREG(st.st_mode))
		return copy_file(c->from.dir, name, c->to.dir, name);
	if (S_ISLNK(st.st_mode))
		return copy_link(c->from.dir, name, c->to.dir, name);
	c->skipped = 1;
	return 0;
}

static int copy_all(struct copy *c)
{
	for (;;) {
		const struct dirent64 *d = tree_next(&c->from);
		int err = d ? copy_entry(c, d->d_name) : c->from.err;

		if (!d && !err)
			err = leave_both(c);
		if (err)
			return err < 0 ? err : 0;
	}
}

static int open_tree(struct tree *t, int dir, const char *name)
{
	const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = (int)sys_openat(dir, name, how, 0);

	if (fd < 0) {
		*t = (struct tree){ .dir = -1 };
		return fd;
	}
	return tree_init(t, fd);
}

static int copy_folder(struct copy *c, int to, const char *as)
{
	struct stat st;
	int err = (int)sys_mkdirat(to, as, 0700);

	if (err < 0)
		return err;
	err = open_tree(&c->to, to, as);
	if (err >= 0)
		err = (int)sys_fstat(c->to.dir, &st);
	if (err >= 0) {
		c->dev = st.st_dev;
		c->ino = st.st_ino;
		err = open_tree(&c->from, AT_FDCWD, from_path);
		if (err >= 0)
			err = copy_all(c);
		tree_fini(&c->from);
	}
	tree_fini(&c->to);
	return err;
}

/* Makes the copy under a hidden name, then gives it its own. */
static int copy_to(struct copy *c, int dir, const char *name, const struct stat *st, unsigned how)
{
	char temporary[48];
	int err = -EINVAL; /* neither file nor folder nor link */

	temporary_name(temporary);
	if (S_ISDIR(st->st_mode))
		err = copy_folder(c, dir, temporary);
	else if (S_ISREG(st->st_mode))
		err = copy_file(AT_FDCWD, from_path, dir, temporary);
	else if (S_ISLNK(st->st_mode))
		err = copy_link(AT_FDCWD, from_path, dir, temporary);
	if (err >= 0)
		err = (int)sys_renameat2(dir, temporary, dir, name, how);
	if (err < 0)
		remove_at(dir, temporary, REMOVE_FORCED);
	return err;
}

int copy(const struct job *j)
{
	uint32_t ref = j->head->ref;
	unsigned how = j->head->flags & WIRE_COPY_NEW ? RENAME_NOREPLACE : 0;
	struct copy c = { 0 };
	struct stat st;
	int dir, err;

	if (strlen(j->path) >= PATH_MAX || strlen(j->part[1]) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(from_path, j->path, strlen(j->path) + 1); /* scratch is about to hold files */
	memcpy(to_path, j->part[1], strlen(j->part[1]) + 1);
	err = (int)sys_fstatat(AT_FDCWD, from_path, &st, AT_SYMLINK_NOFOLLOW);
	if (err < 0)
		return err;
	dir = open_parent(to_path, 0);
	if (dir < 0)
		return dir;
	err = copy_to(&c, dir, last_part(to_path), &st, how);
	sys_close(dir);
	if (c.too_deep)
		say_refusal(ref, ERR_LIMIT, "copy", from_path, "deeper than 4096 folders");
	else if (err < 0)
		say_error(ref, "copy", from_path, -err);
	else
		say_head(WIRE_DONE, ref, c.skipped ? WIRE_DONE_SKIPPED : 0);
	return ANSWERED;
}
