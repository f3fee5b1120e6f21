/* files.c - see files.h.
 *
 *   client                init                     worker
 *   FILES           --->  socketpair, fork   --->  drops all but its end and the upper layer,
 *   FD + an end     <---                           becomes the user, then serves one request
 *   requests        ------------------------->     after another until its end closes
 *
 * A process like any other of the box, and blocking is fine here: it keeps nobody waiting but its
 * own client. Every request has one answer: DONE, ERROR, or what it asked for. A PUT that fails is
 * answered at once; what still comes of its DATA is swallowed. */
#include "init/files.h"
#include "base/err.h"
#include "base/sha256.h"
#include "init/child.h"
#include "init/conn.h"
#include "init/scratch.h"
#include "init/self.h"
#include "init/sys.h"
#include "init/text.h"
#include "init/tree.h"
#include "wire/frame.h"
#include <linux/fs.h>

enum { SOCK = 3, UPPER = 4 }; /* all the worker has, besides /dev/null three times */
enum { CHUNK = 49152 };       /* bytes per DATA frame */
enum { NAME_SHOWN = 80 };     /* of a path in a message, so that the reason is not pushed out */
enum { PATH_ROOM = WIRE_MAX - sizeof(struct wire_entry) }; /* of an ENTRY's tail */
enum { ANSWERED = 1 }; /* from a handler: there is nothing left to say */

struct job {
	union {
		const struct frame *head;
		const struct wire_put *put;
		const struct wire_get *get;
		const struct wire_changes *changes;
	};
	char *path;   /* the tail, with its NUL */
	char *second; /* for those that take two paths: the one after the first NUL */
	uint32_t tail_len;
};

static LAZY struct upload { /* a PUT that waits for its DATA */
	int file, dir;      /* -1: none */
	uint32_t ref, flags, mode;
	char name[256], temporary[48];
} up;
static LAZY char long_path[PATH_ROOM + 1]; /* of what CHANGES is looking at */

/* ---- speaking ---- */

static void say(const void *body, size_t n, const void *tail, size_t tail_n)
{
	struct iovec iov[2] = { { (void *)body, n }, { (void *)tail, tail_n } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };

	if (sys_sendmsg(SOCK, &m, MSG_NOSIGNAL) < 0)
		sys_exit(0); /* the client is gone, and so is the reason to be here */
}

static void say_head(uint8_t type, uint32_t ref, uint16_t flags)
{
	struct frame f = conn_head(type, ref);

	f.flags = flags;
	say(&f, sizeof(f), NULL, 0);
}

static void say_error(uint32_t ref, const char *verb, const char *path, int err)
{
	struct wire_error e = { .head = conn_head(WIRE_ERROR, ref), .sys = err };
	struct text t = { .to = e.msg, .room = sizeof(e.msg) };

	text_add(&t, verb);
	text_add(&t, " ");
	t.room = t.len + NAME_SHOWN + 1;
	text_add(&t, path);
	t.room = sizeof(e.msg);
	text_add(&t, ": ");
	text_add(&t, text_errno(err, &e.kind));
	say(&e, sizeof(e), NULL, 0);
}

static void say_entry(uint32_t ref, const struct stat *st, const uint8_t *sha256, const char *name,
		      size_t n)
{
	struct wire_entry e = {
		.head = conn_head(WIRE_ENTRY, ref),
		.mode = st->st_mode,
		.hashed = !!sha256,
		.size = (uint64_t)st->st_size,
		.mtime_ns = (uint64_t)st->st_mtime * 1000000000u + (uint64_t)st->st_mtime_nsec,
		.uid = st->st_uid,
		.gid = st->st_gid,
	};

	if (sha256)
		memcpy(e.sha256, sha256, sizeof(e.sha256));
	say(&e, sizeof(e), name, n);
}

/* ---- paths ---- */

static const char *last_part(const char *path)
{
	const char *last = path;

	for (; *path; path++)
		if (*path == '/')
			last = path + 1;
	return last;
}

/* mkdir -p for everything before `end`, which points into path. */
static int make_parents(char *path, const char *end)
{
	char *at;

	for (at = path + 1; at < end; at++) {
		long err;

		if (*at != '/')
			continue;
		*at = '\0';
		err = sys_mkdirat(AT_FDCWD, path, 0755);
		*at = '/';
		/* The last two may stand for "is there already"; if not, the next step tells. */
		if (err < 0 && err != -EEXIST && err != -EROFS && err != -EACCES)
			return (int)err;
	}
	return 0;
}

/* The directory of the path's last part, made if need be. */
static int open_parent(char *path)
{
	const int how = O_PATH | O_DIRECTORY | O_CLOEXEC;
	char *name = path + (last_part(path) - path), first = *name;
	int dir, err;

	if (!*name || (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))))
		return -EISDIR;
	if (strlen(name) > 255)
		return -ENAMETOOLONG;
	*name = '\0';
	dir = (int)sys_openat(AT_FDCWD, *path ? path : ".", how, 0);
	if (dir == -ENOENT) {
		err = make_parents(path, name);
		dir = err < 0 ? err : (int)sys_openat(AT_FDCWD, path, how, 0);
	}
	*name = first;
	return dir;
}

/* ---- requests ---- */

static void put_close(void)
{
	if (up.file >= 0)
		sys_unlinkat(up.dir, up.temporary, 0); /* unless it has its name by now */
	sys_close(up.file);
	sys_close(up.dir);
	up.file = up.dir = -1;
}

/* 0 asks for the mode the file has already, or the usual one. */
static uint32_t put_mode(const struct job *j)
{
	struct stat st;

	if (j->put->mode & 07777)
		return j->put->mode & 07777;
	if (sys_fstatat(up.dir, up.name, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISREG(st.st_mode))
		return st.st_mode & 07777;
	return 0644;
}

static int put(const struct job *j)
{
	static uint32_t number;
	struct text t = { .to = up.temporary, .room = sizeof(up.temporary) };

	up.dir = open_parent(j->path);
	if (up.dir < 0)
		return up.dir;
	up.ref = j->head->ref;
	up.flags = j->put->flags;
	memcpy(up.name, last_part(j->path), strlen(last_part(j->path)) + 1);
	up.mode = put_mode(j);
	text_add(&t, ".put-");
	text_add_number(&t, (uint64_t)sys_getpid());
	text_add(&t, "-");
	text_add_number(&t, number++);
	up.file = (int)sys_openat(up.dir, up.temporary,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (up.file < 0) {
		int err = up.file;

		put_close();
		return err;
	}
	return ANSWERED;
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

/* The mode last, so that a half-written program cannot be run; the name when all is there. */
static long put_finish(void)
{
	unsigned how = up.flags & WIRE_PUT_NEW ? RENAME_NOREPLACE : 0;
	long err = sys_fchmod(up.file, up.mode);

	return err < 0 ? err : sys_renameat2(up.dir, up.temporary, up.dir, up.name, how);
}

static int data(const struct job *j)
{
	long err;

	if (up.file < 0 || j->head->ref != up.ref)
		return ANSWERED; /* of a PUT that has failed */
	err = j->tail_len ? put_write(j->path, j->tail_len) : put_finish();
	/* Closed before it is said: a program that is open for writing cannot be run. */
	if (err < 0 || !j->tail_len)
		put_close();
	if (err < 0)
		say_error(up.ref, "put", up.name, (int)-err);
	else if (!j->tail_len)
		say_head(WIRE_DONE, up.ref, 0);
	return ANSWERED;
}

/* Sends at most `left` bytes from `at` on; a file that grows or shrinks meanwhile is its owner's. */
static int send_bytes(int fd, uint32_t ref, uint64_t at, uint64_t left)
{
	struct frame f = conn_head(WIRE_DATA, ref);

	while (left) {
		long n = sys_pread(fd, scratch, left < CHUNK ? left : CHUNK, at);

		if (n < 0)
			return (int)n;
		if (!n)
			break;
		say(&f, sizeof(f), scratch, (size_t)n);
		at += (uint64_t)n;
		left -= (uint64_t)n;
	}
	say(&f, sizeof(f), NULL, 0);
	return ANSWERED;
}

static int get(const struct job *j)
{
	struct wire_get g = *j->get; /* scratch is about to hold the file */
	uint64_t left = g.bytes ? g.bytes : ~0ull;
	struct stat st;
	int err, fd = (int)sys_openat(AT_FDCWD, j->path,
				      O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	err = (int)sys_fstat(fd, &st);
	if (err >= 0 && !S_ISREG(st.st_mode))
		err = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (err >= 0) {
		uint64_t rest = g.from < (uint64_t)st.st_size ? (uint64_t)st.st_size - g.from : 0;

		say_entry(g.head.ref, &st, NULL, j->path, strlen(j->path));
		err = send_bytes(fd, g.head.ref, g.from, rest < left ? rest : left);
	}
	sys_close(fd);
	return err;
}

static int make_directory(const struct job *j)
{
	uint32_t mode = j->put->mode & 07777 ? j->put->mode & 07777 : 0755;
	long err = sys_mkdirat(AT_FDCWD, j->path, mode);
	struct stat st;

	if (err == -ENOENT) {
		err = make_parents(j->path, j->path + strlen(j->path));
		if (!err)
			err = sys_mkdirat(AT_FDCWD, j->path, mode);
	}
	if (err == -EEXIST && !(j->put->flags & WIRE_PUT_NEW) &&
	    sys_fstatat(AT_FDCWD, j->path, &st, 0) >= 0 && S_ISDIR(st.st_mode))
		err = 0;
	return (int)err;
}

static int remove_all(const struct job *j)
{
	struct tree t;
	int err = (int)sys_unlinkat(AT_FDCWD, j->path, 0);

	if (err != -EISDIR && err != -EPERM)
		return err;
	err = (int)sys_unlinkat(AT_FDCWD, j->path, AT_REMOVEDIR);
	if (err != -ENOTEMPTY && err != -EEXIST)
		return err == -ENOTDIR ? -EPERM : err;
	err = (int)sys_openat(AT_FDCWD, j->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			      0);
	if (err < 0)
		return err;
	err = tree_init(&t, err);
	if (!err)
		err = tree_remove(&t);
	tree_fini(&t);
	return err < 0 ? err : (int)sys_unlinkat(AT_FDCWD, j->path, AT_REMOVEDIR);
}

static int move(const struct job *j)
{
	return (int)sys_renameat2(AT_FDCWD, j->path, AT_FDCWD, j->second, 0);
}

static int make_link(const struct job *j)
{
	return (int)sys_symlinkat(j->path, AT_FDCWD, j->second);
}

static int entry_of(const struct job *j)
{
	struct stat st;
	int err = (int)sys_fstatat(AT_FDCWD, j->path, &st, AT_SYMLINK_NOFOLLOW);

	if (err < 0)
		return err;
	say_entry(j->head->ref, &st, NULL, j->path, strlen(j->path));
	return ANSWERED;
}

static int list(const struct job *j)
{
	struct dirent64 *d;
	struct tree t;
	int err = (int)sys_openat(AT_FDCWD, j->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (err < 0)
		return err;
	err = tree_init(&t, err);
	while (!err && (d = tree_next(&t))) {
		struct stat st;

		if (sys_fstatat(t.dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) >= 0)
			say_entry(j->head->ref, &st, NULL, d->d_name, strlen(d->d_name));
	}
	tree_fini(&t);
	return err < 0 ? err : t.err;
}

/* ---- what has the box changed? ---- */

struct look {
	uint32_t ref, entries_left;
	uint64_t hash_left; /* bytes of files that may still be read */
	int truncated;      /* something is missing from the answer */
	size_t path_len;
};

static const uint8_t *hash(struct look *l, int dir, const char *name, struct stat *st)
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

/* One entry told; 1 if it is a directory to enter. long_path ends with its name then. */
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
	sum = hash(l, dir, d->d_name, &st);
	say_entry(l->ref, &st, sum, long_path, l->path_len + 1 + n);
	l->entries_left--;
	if (!S_ISDIR(st.st_mode))
		return 0;
	l->path_len += 1 + n;
	return 1;
}

static void shorten(struct look *l)
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
			l->truncated = 1; /* not ours to read, or gone */
			shorten(l);
		}
		if (d)
			continue;
		l->truncated |= t->err < 0;
		if (!t->depth)
			return 0;
		shorten(l);
		if (tree_leave(t) < 0) {
			l->truncated = 1; /* moved under our feet: what is above is lost */
			return 0;
		}
	}
}

static int changes(const struct job *j)
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

/* ---- the worker ---- */

static const struct verb {
	int (*run)(const struct job *j); /* 0: say DONE; ANSWERED; or -errno: say ERROR */
	const char *name;
	uint8_t paths; /* in the tail */
} verbs[] = {
	[WIRE_PUT] = { put, "put", 1 },
	[WIRE_GET] = { get, "get", 1 },
	[WIRE_MKDIR] = { make_directory, "mkdir", 1 },
	[WIRE_REMOVE] = { remove_all, "remove", 1 },
	[WIRE_MOVE] = { move, "move", 2 },
	[WIRE_LINK] = { make_link, "link", 2 },
	[WIRE_ENTRY_OF] = { entry_of, "look at", 1 },
	[WIRE_LIST] = { list, "list", 1 },
	[WIRE_CHANGES] = { changes, "changes", 0 },
	[WIRE_DATA] = { data, "data", 0 },
};

/* Ends the last path where the tail ends; -errno unless there are as many as there should be. A
 * NUL inside a path would have us act on another one than was meant. */
static int find_paths(struct job *j, unsigned paths)
{
	uint32_t i, seen = 1;

	if (!paths)
		return 0;
	if (j->tail_len >= 2 * PATH_MAX)
		return -ENAMETOOLONG;
	j->path[j->tail_len] = '\0';
	for (i = 0; i + 1 < j->tail_len; i++) { /* one NUL at the very end is welcome */
		if (j->path[i])
			continue;
		j->second = j->path + i + 1;
		seen++;
	}
	if (seen != paths)
		return -EINVAL;
	return *j->path ? 0 : -ENOENT;
}

static void serve(const struct frame *f, uint32_t len)
{
	const struct verb *v = f->type < ARRAY_LEN(verbs) ? &verbs[f->type] : NULL;
	struct job j = { .head = f, .path = scratch + frame_body(f->type) };
	uint32_t ref = f->ref;
	int err;

	if (!v || !v->run)
		sys_exit(1);
	j.tail_len = len - frame_body(f->type);
	if (f->type != WIRE_DATA)
		put_close(); /* an upload that was given up */
	err = find_paths(&j, v->paths);
	if (!err)
		err = v->run(&j);
	if (err < 0)
		say_error(ref, v->name, v->paths ? j.path : "", -err);
	else if (err != ANSWERED)
		say_head(WIRE_DONE, ref, 0);
}

static _Noreturn void worker(int sock, int root)
{
	struct iovec iov = { scratch, WIRE_MAX };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	long n;

	/* Init's connections and logs are none of the user's business, so they go first. Our end may
	 * have any number, one of the two below included: out of the way with it. */
	sock = (int)sys_fcntl(sock, F_DUPFD_CLOEXEC, UPPER + 1);
	if (sys_dup3(self.upper, UPPER, O_CLOEXEC) < 0 || sys_dup3(sock, SOCK, O_CLOEXEC) < 0 ||
	    sys_close_range(UPPER + 1, ~0u) < 0 || sys_setsid() < 0 || child_become(root) < 0)
		sys_exit(70);
	up.file = up.dir = -1;
	sys_umask(0); /* modes are what the client says */
	if (sys_chdir(HOME) < 0)
		sys_chdir("/");
	for (;;) {
		n = sys_recvmsg(SOCK, &m, 0);
		if (n == -EINTR)
			continue;
		if (n <= 0 || frame_check(scratch, (uint32_t)n) < 0)
			break;
		serve((const struct frame *)(void *)scratch, (uint32_t)n);
	}
	put_close();
	sys_exit(0);
}

int files_start(int root)
{
	int pair[2];
	long pid, err = sys_socketpair(SOCK_SEQPACKET | SOCK_CLOEXEC, pair);

	if (err < 0)
		return (int)err;
	pid = sys_fork();
	if (!pid)
		worker(pair[1], root);
	sys_close(pair[1]);
	if (pid < 0) {
		sys_close(pair[0]);
		return (int)pid;
	}
	return pair[0];
}
