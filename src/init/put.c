/* put.c - PUT and its DATA: writes files that a client uploads; see worker.h.
 * A file gets its name when all of it has arrived; until then it has none (O_TMPFILE), so that a
 * worker that is killed leaves nothing behind. On file systems without such files it has a
 * hidden name. A PUT that fails is answered at once; its remaining DATA is dropped. Where the
 * bytes come through a pipe the end of the pipe is not the end of the file: that is the empty
 * DATA, which a client that gave up does not send. */
#include "init/conn.h"
#include "initlib/scratch.h"
#include "init/params.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/worker.h"
#include <linux/fs.h>

static LAZY struct upload { /* a PUT that waits for its DATA */
	int file, dir;      /* -1: none */
	int named;          /* 1: it is in the folder as `temporary` */
	uint32_t ref, flags, mode;
	uint64_t if_mtime_ns, if_size;
	char name[256], temporary[48];
} up;

void put_init(void)
{
	up.file = up.dir = -1;
}

void put_close(void)
{
	if (up.named)
		sys_unlinkat(up.dir, up.temporary,
			     0); /* the file of this request, or the one that it has replaced */
	sys_close(up.file);
	sys_close(up.dir);
	up.file = up.dir = -1;
	up.named = 0;
}

/* 0: the mode that the file already has, or the default. */
static uint32_t put_mode(const struct job *j)
{
	struct stat st;

	if (j->put->mode & 07777)
		return j->put->mode & 07777;
	if (sys_fstatat(up.dir, up.name, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISREG(st.st_mode))
		return st.st_mode & 07777;
	return 0644;
}

/* Does this name in the folder still belong to the file that the client has seen? */
static int is_expected(const char *name)
{
	struct stat st;

	return sys_fstatat(up.dir, name, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISREG(st.st_mode) &&
	       mtime_ns(&st) == up.if_mtime_ns && (uint64_t)st.st_size == up.if_size;
}

static long put_write(const char *bytes, uint32_t n)
{
	while (n) {
		long w = sys_write(up.file, bytes, n);

		if (w < 0)
			return w;
		bytes += w;
		n -= (uint32_t)w;
	}
	return 0;
}

/* Closed before the answer: a program that is open for writing cannot be run. */
static void put_over(long err)
{
	put_close();
	if (err < 0)
		say_error(up.ref, "put", up.name, (int)-err);
	else
		say_head(WIRE_DONE, up.ref, 0);
}

/* The worker itself copies: so the pages are charged to the box's memory. */
static void put_from(int pipe)
{
	long n = 1, err = 0;

	while (n > 0 && !err) {
		n = sys_read(pipe, scratch, WIRE_MAX);
		err = n > 0 ? put_write(scratch, (uint32_t)n) : n;
	}
	if (err < 0)
		put_over(err);
}

/* The path of the file that a link leads to; 0, or -errno: it cannot be written to. */
static int put_follow(char *path)
{
	int err, fd = (int)sys_openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
	struct stat st, link;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = (int)sys_fstat(fd, &st);
	if (err >= 0 && !S_ISREG(st.st_mode))
		err = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (err >= 0)
		err = (int)sys_fstatat(AT_FDCWD, path, &link, AT_SYMLINK_NOFOLLOW);
	if (err >= 0 && S_ISLNK(link.st_mode))
		err = real_path(fd, path, PATH_MAX);
	sys_close(fd);
	return err < 0 ? err : 0;
}

/* The empty file; -errno. */
static int open_file(void)
{
	int fd = (int)sys_openat(up.dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	/* Not every file system has O_TMPFILE; any other error is returned by this call. */
	fd = (int)sys_openat(up.dir, up.temporary,
			     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	up.named = fd >= 0;
	return fd;
}

/* Its first name is hidden: a rename can replace an existing name, a link cannot. */
static long give_name(void)
{
	char path[48];
	struct text t = { .to = path, .room = sizeof(path) };
	long err;

	if (up.named)
		return 0;
	err = sys_linkat(up.file, "", up.dir, up.temporary, AT_EMPTY_PATH);
	if (err == -ENOENT) { /* before Linux 6.10 that takes a capability */
		text_add(&t, "/proc/self/fd/");
		text_add_number(&t, (uint64_t)up.file);
		err = sys_linkat(AT_FDCWD, path, up.dir, up.temporary, AT_SYMLINK_FOLLOW);
	}
	up.named = err >= 0;
	return err;
}

int put(const struct job *j)
{
	int err = j->put->flags & WIRE_PUT_FOLLOW ? put_follow(j->path) : 0;

	if (err < 0)
		return err;
	if (j->put->flags & ~(WIRE_PUT_NEW | WIRE_PUT_IF | WIRE_PUT_USER | WIRE_PUT_FOLLOW |
			      WIRE_PUT_TIME) ||
	    (j->put->flags & WIRE_PUT_IF && j->put->flags & (WIRE_PUT_NEW | WIRE_PUT_TIME)))
		return -EINVAL;
	up.dir = open_parent(j->path, !!(j->put->flags & WIRE_PUT_USER));
	if (up.dir < 0)
		return up.dir;
	up.ref = j->head->ref;
	up.flags = j->put->flags;
	memcpy(up.name, last_part(j->path), strlen(last_part(j->path)) + 1);
	up.mode = put_mode(j);
	up.if_mtime_ns = j->put->if_mtime_ns;
	up.if_size = j->put->if_size;
	if (up.flags & WIRE_PUT_IF && !is_expected(up.name)) {
		put_close();
		return -ESTALE;
	}
	temporary_name(up.temporary);
	up.file = open_file();
	if (up.file < 0) {
		err = up.file;
		put_close();
		return err;
	}
	if (j->pipe >= 0)
		put_from(j->pipe);
	return ANSWERED;
}

enum { LOCK_EXCLUSIVE = 2 }; /* of flock() */

/* gVisor exchanges no names. The workers of this box lock the folder instead; a program of the box could still change
 * the file between the check and the new name. */
static long put_instead_locked(void)
{
	int fd = (int)sys_openat(up.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	long err = fd < 0 ? fd : SYS(flock, fd, LOCK_EXCLUSIVE);

	if (err >= 0)
		err = is_expected(up.name) ? sys_renameat2(up.dir, up.temporary, up.dir, up.name, 0)
					   : -ESTALE;
	sys_close(fd);
	return err;
}

/* Replaces only the file that the client has seen. Two clients may get here at the same time, so
 * a check before would not be enough: the two names are exchanged, and the second client finds
 * the file of the first. */
static long put_instead(void)
{
	long err = sys_renameat2(up.dir, up.temporary, up.dir, up.name, RENAME_EXCHANGE);

	if (err == -EINVAL)
		return put_instead_locked();
	if (err < 0)
		return err == -ENOENT ? -ESTALE : err;
	if (is_expected(up.temporary))
		return 0;
	sys_renameat2(up.dir, up.temporary, up.dir, up.name, RENAME_EXCHANGE);
	return -ESTALE;
}

/* The mode last, so that an incomplete program cannot be run; the name when all has arrived. */
static long put_finish(void)
{
	unsigned how = up.flags & WIRE_PUT_NEW ? RENAME_NOREPLACE : 0;
	long err = up.flags & WIRE_PUT_USER && !sys_getuid() ? sys_fchown(up.file, self.user) : 0;

	if (err >= 0)
		err = sys_fchmod(up.file, up.mode);
	if (err >= 0 && up.flags & WIRE_PUT_TIME)
		err = sys_futimens(up.file, up.if_mtime_ns);
	if (err >= 0)
		err = give_name();
	if (err < 0)
		return err;
	if (up.flags & WIRE_PUT_IF)
		return put_instead();
	return sys_renameat2(up.dir, up.temporary, up.dir, up.name, how);
}

/* Sets one attribute. A disk without attributes is no reason to reject the file. */
static long put_attribute(const char *key, const char *value)
{
	char name[256];
	struct text t = { .to = name, .room = sizeof(name) };
	long err;

	if (!*key || strlen(ATTRIBUTE) + strlen(key) >= sizeof(name))
		return -EINVAL;
	text_add(&t, ATTRIBUTE);
	text_add(&t, key);
	err = sys_fsetxattr(up.file, name, value, strlen(value));
	return err == -EOPNOTSUPP ? 0 : err;
}

int put_meta(const struct job *j)
{
	const char *at = j->path, *end = at + j->tail_len;
	long err = 0;

	if (up.file < 0 || j->head->ref != up.ref)
		return ANSWERED; /* of a PUT that has failed */
	if (at < end && end[-1])
		err = -EINVAL;
	while (!err && at < end) {
		const char *value = at + strlen(at) + 1;

		err = value < end ? put_attribute(at, value) : -EINVAL;
		at = value < end ? value + strlen(value) + 1 : end;
	}
	if (err < 0)
		put_over(err);
	return ANSWERED;
}

static long put_all_of(int from)
{
	struct stat st;
	uint64_t at = 0;
	long n = sys_fstat(from, &st);

	if (n >= 0 && !S_ISREG(st.st_mode))
		n = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	while (n >= 0 && (n = sys_sendfile(up.file, from, &at, PIPE_PART)) > 0)
		;
	return n;
}

/* Reported as an error of that path: the path of the PUT is valid. */
int put_append(const struct job *j)
{
	int from;
	long err;

	if (up.file < 0 || j->head->ref != up.ref)
		return ANSWERED; /* of a PUT that has failed */
	from = (int)sys_openat(AT_FDCWD, j->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	err = from < 0 ? from : put_all_of(from);
	sys_close(from);
	if (err >= 0)
		return ANSWERED;
	put_close();
	return (int)err;
}

int put_data(const struct job *j)
{
	long err;

	if (up.file < 0 || j->head->ref != up.ref)
		return ANSWERED; /* of a PUT that has failed */
	err = j->tail_len ? put_write(j->path, j->tail_len) : put_finish();
	if (err < 0 || !j->tail_len)
		put_over(err);
	return ANSWERED;
}
