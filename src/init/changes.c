/* changes.c - lists the changes that the box has made; see worker.h. */
#include "base/sha256.h"
#include "init/conn.h"
#include "initlib/scratch.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/tree.h"
#include "init/worker.h"

enum { PATH_ROOM = WIRE_MAX - sizeof(struct wire_entry) }; /* of an ENTRY's tail */

static LAZY char long_path[PATH_ROOM + 1]; /* of the folder that is being compared */

struct look {
	uint32_t ref, entries_left;
	uint64_t hash_left; /* bytes of files that may still be read */
	int truncated;      /* something is missing from the answer */
	size_t path_len;
};

static const uint8_t *changes_hash(struct look *l, int dir, const char *name, struct stat *st)
{
	static uint8_t sum[SHA256_BYTES];
	struct sha256 s;
	uint64_t left;
	int fd;

	if (!S_ISREG(st->st_mode) || !l->hash_left || (uint64_t)st->st_size > l->hash_left)
		return NULL;
	fd = (int)sys_openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			     0);
	if (fd < 0 || sys_fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
		sys_close(fd);
		return NULL;
	}
	sha256_init(&s);
	for (left = (uint64_t)st->st_size; left;) {
		long n = sys_read(fd, scratch, left < CHUNK ? left : CHUNK);

		if (n <= 0)
			break;
		sha256_add(&s, scratch, (size_t)n);
		left -= (uint64_t)n;
	}
	sys_close(fd);
	sha256_end(&s, sum);
	l->hash_left -= (uint64_t)st->st_size < l->hash_left ? (uint64_t)st->st_size : l->hash_left;
	return left ? NULL : sum;
}

/* Reports one entry; 1 if it is a directory to enter. long_path ends with its name then. */
static int tell_change(struct look *l, int dir, const struct dirent64 *d)
{
	size_t n = strlen(d->d_name);
	const uint8_t *sum;
	struct stat st;

	if (l->path_len + 1 + n > PATH_ROOM ||
	    sys_fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		l->truncated = 1;
		return 0;
	}
	long_path[l->path_len] = '/';
	memcpy(long_path + l->path_len + 1, d->d_name, n + 1);
	/* Overlay's mark for "deleted". */
	if (S_ISCHR(st.st_mode) && !st.st_rdev)
		st = (struct stat){ .st_mtime = st.st_mtime, .st_mtime_nsec = st.st_mtime_nsec };
	sum = changes_hash(l, dir, d->d_name, &st);
	say_entry(l->ref, &st, sum, long_path, l->path_len + 1 + n);
	l->entries_left--;
	if (!S_ISDIR(st.st_mode))
		return 0;
	l->path_len += 1 + n;
	return 1;
}

static void changes_shorten(struct look *l)
{
	while (long_path[--l->path_len] != '/')
		;
}

static int look_around(struct look *l, struct tree *t)
{
	for (;;) {
		const struct dirent64 *d = tree_next(t);

		if (d && !l->entries_left) {
			l->truncated = 1;
			return 0;
		}
		if (d && tell_change(l, t->dir, d) && tree_enter(t, d->d_name) < 0) {
			l->truncated = 1; /* no permission, or removed */
			changes_shorten(l);
		}
		if (d)
			continue;
		l->truncated |= t->err < 0;
		if (!t->depth)
			return 0;
		changes_shorten(l);
		if (tree_leave(t) < 0) {
			l->truncated =
				1; /* the folder was moved meanwhile: its parents are unknown */
			return 0;
		}
	}
}

int changes(const struct job *j)
{
	struct look l = { .ref = j->head->ref,
			  .entries_left = j->changes->max_entries,
			  .hash_left = j->changes->hash_bytes };
	struct tree t;
	int err = (int)sys_openat(UPPER, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (err < 0)
		return err;
	err = tree_init(&t, err);
	if (!err)
		err = look_around(&l, &t);
	tree_fini(&t);
	if (err < 0)
		return err;
	say_head(WIRE_DONE, l.ref, l.truncated ? WIRE_DONE_TRUNCATED : 0);
	return ANSWERED;
}
