/* files.c - see files.h.
 *
 *   client                init                     worker
 *   FILES           --->  socketpair, fork   --->  drops all but its end and the upper layer,
 *   FD + an end     <---                           becomes the user, then serves one request
 *   requests        ------------------------->     after another until its end closes
 *
 * The worker is a process like any other of the box, and may block: only its own client waits
 * for it. Every request has one answer: DONE, ERROR, or what it asked for. worker.h lists the
 * files of the worker. */
#include "init/files.h"
#include "base/err.h"
#include "initlib/boot_id.h"
#include "init/child.h"
#include "init/conn.h"
#include "initlib/scratch.h"
#include "init/params.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/tree.h"
#include "init/worker.h"
#include "wire/frame.h"
#include <linux/fs.h>
#include <linux/magic.h>

/* ---- paths ---- */

const char *last_part(const char *path)
{
	const char *last = path;

	for (; *path; path++)
		if (*path == '/')
			last = path + 1;
	return last;
}

/* Changes the owner of files that root created for the user. A worker that runs as the user has
 * created them as such. */
static long hand_over(int dir, const char *path)
{
	return sys_getuid() ? 0
			    : sys_fchownat(dir, path, self.user, self.user, AT_SYMLINK_NOFOLLOW);
}

/* mkdir -p for everything before `end`, which points into path. */
static int make_parents(char *path, const char *end, int users)
{
	char *at;

	for (at = path + 1; at < end; at++) {
		long err;

		if (*at != '/')
			continue;
		*at = '\0';
		err = sys_mkdirat(AT_FDCWD, path, 0755);
		if (!err && users)
			err = hand_over(AT_FDCWD, path);
		*at = '/';
		/* The last two errors may mean that it exists already; if not, the next step
		 * fails. */
		if (err < 0 && err != -EEXIST && err != -EROFS && err != -EACCES)
			return (int)err;
	}
	return 0;
}

/* The directory of the path's last part, created if missing. */
int open_parent(char *path, int users)
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
		err = make_parents(path, name, users);
		dir = err < 0 ? err : (int)sys_openat(AT_FDCWD, path, how, 0);
	}
	*name = first;
	return dir;
}

/* A hidden and unique name. */
void temporary_name(char out[48])
{
	static uint32_t number;
	struct text t = { .to = out, .room = 48 };

	text_add(&t, TEMPORARY);
	text_add_number(&t, (uint64_t)sys_getpid());
	text_add(&t, "-");
	text_add_number(&t, number++);
}

/* ---- requests ---- */

/* Sends at most `left` bytes from `at` on; a file that grows or shrinks meanwhile is not
 * protected. */
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

static int write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		long w = sys_write(fd, bytes, n);

		if (w < 0)
			return (int)w;
		bytes += w;
		n -= (size_t)w;
	}
	return 0;
}

/* The same through a pipe: splices pages, and copies bytes of files that have no pages (e.g. of
 * /proc). A client that does not need the rest closes its end. */
static int pipe_bytes(int fd, int pipe, uint32_t ref, uint64_t at, uint64_t left)
{
	long n = 1, by_hand = 0;

	while (left && n > 0) {
		size_t most = left < PIPE_PART ? left : PIPE_PART;

		n = by_hand ? sys_pread(fd, scratch, most < CHUNK ? most : CHUNK, at)
			    : sys_sendfile(pipe, fd, &(uint64_t){ at }, most);
		if (n == -EINVAL && !by_hand) {
			n = by_hand = 1;
			continue;
		}
		if (n > 0 && by_hand && write_all(pipe, scratch, (size_t)n) < 0)
			break;
		at += n > 0 ? (uint64_t)n : 0;
		left -= n > 0 ? (uint64_t)n : 0;
	}
	if (n < 0 && n != -EPIPE)
		return (int)n;
	say_head(WIRE_DATA, ref, 0);
	return ANSWERED;
}

static int is_made_up(uint32_t magic)
{
	return magic == PROC_SUPER_MAGIC || magic == SYSFS_MAGIC || magic == CGROUP2_SUPER_MAGIC;
}

static int files_do_get(const struct job *j)
{
	struct wire_get g = *j->get; /* scratch is about to hold the file */
	uint64_t left = g.bytes ? g.bytes : ~0ull;
	struct statfs fs;
	struct stat st;
	int err, fd = (int)sys_openat(AT_FDCWD, j->path,
				      O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	err = (int)sys_fstat(fd, &st);
	if (err >= 0 && !S_ISREG(st.st_mode))
		err = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	/* A file that the kernel generates has the size that it has when it is read. */
	if (err >= 0 && sys_fstatfs(fd, &fs) >= 0 && is_made_up((uint32_t)fs.f_type))
		st.st_size = 0;
	if (err >= 0) {
		uint64_t rest = g.from < (uint64_t)st.st_size ? (uint64_t)st.st_size - g.from : 0;

		say_entry(g.head.ref, &st, NULL, j->path, strlen(j->path));
		if (!(g.head.flags & WIRE_GET_END) || st.st_size)
			left = rest < left ? rest : left;
		err = j->pipe >= 0 ? pipe_bytes(fd, j->pipe, g.head.ref, g.from, left)
				   : send_bytes(fd, g.head.ref, g.from, left);
	}
	sys_close(fd);
	return err;
}

static int make_directory(const struct job *j)
{
	uint32_t mode = j->put->mode & 07777 ? j->put->mode & 07777 : 0755;
	long err = sys_mkdirat(AT_FDCWD, j->path, mode);
	int users = !!(j->put->flags & WIRE_PUT_USER);
	struct stat st;

	if (err == -ENOENT) {
		err = make_parents(j->path, j->path + strlen(j->path), users);
		if (!err)
			err = sys_mkdirat(AT_FDCWD, j->path, mode);
	}
	if (!err && users)
		err = hand_over(AT_FDCWD, j->path);
	if (err == -EEXIST && !(j->put->flags & WIRE_PUT_NEW) &&
	    sys_fstatat(AT_FDCWD, j->path, &st, 0) >= 0 && S_ISDIR(st.st_mode))
		err = 0;
	return (int)err;
}

int remove_at(int dir, const char *path, enum remove how)
{
	struct tree t;
	int err = (int)sys_unlinkat(dir, path, 0);

	if (err != -EISDIR && err != -EPERM)
		return err;
	err = (int)sys_unlinkat(dir, path, AT_REMOVEDIR);
	if ((err != -ENOTEMPTY && err != -EEXIST) || how == REMOVE_ONE)
		return err == -ENOTDIR ? -EPERM : err;
	if (how == REMOVE_FORCED)
		sys_fchmodat(dir, path, 0700);
	err = (int)sys_openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (err < 0)
		return err;
	err = tree_init(&t, err);
	t.force = how == REMOVE_FORCED;
	if (!err)
		err = layer_tree_remove(&t);
	tree_fini(&t);
	return err < 0 ? err : (int)sys_unlinkat(dir, path, AT_REMOVEDIR);
}

static int remove_path(const struct job *j)
{
	return remove_at(AT_FDCWD, j->path,
			 j->head->flags & WIRE_REMOVE_ONE ? REMOVE_ONE : REMOVE_TREE);
}

static int files_move(const struct job *j)
{
	unsigned how = j->head->flags & WIRE_MOVE_NEW ? RENAME_NOREPLACE : 0;
	struct stat st;
	int dir, err = (int)sys_fstatat(AT_FDCWD, j->path, &st, AT_SYMLINK_NOFOLLOW);

	if (err < 0)
		return err; /* checked before folders are created */
	dir = open_parent(j->part[1], j->head->flags & WIRE_MOVE_USER);
	if (dir < 0)
		return dir;
	err = (int)sys_renameat2(AT_FDCWD, j->path, dir, last_part(j->part[1]), how);
	sys_close(dir);
	return err;
}

static int change_mode(const struct job *j)
{
	if (j->put->mode & ~07777u || j->put->flags)
		return -EINVAL;
	return (int)sys_fchmodat(AT_FDCWD, j->path, j->put->mode);
}

/* Init's own id is rejected: a set-user-id file of it would let a program become init. */
static int change_owner(const struct job *j)
{
	uint32_t uid = j->chown->uid, gid = j->chown->gid;

	if (self.uid != self.user && (uid == self.uid || gid == self.gid))
		return -EINVAL;
	return (int)sys_fchownat(AT_FDCWD, j->path, uid, gid, AT_SYMLINK_NOFOLLOW);
}

static int make_link(const struct job *j)
{
	return (int)sys_symlinkat(j->path, AT_FDCWD, j->part[1]);
}

static int entry_of(const struct job *j)
{
	struct stat st;
	int err = (int)sys_fstatat(AT_FDCWD, j->path, &st, AT_SYMLINK_NOFOLLOW);

	if (err < 0)
		return err;
	if (j->head->flags & WIRE_ENTRY_FULL)
		say_full(j->head->ref, &st, AT_FDCWD, j->path, j->path);
	else
		say_link(j->head->ref, &st, AT_FDCWD, j->path, j->path);
	return ANSWERED;
}

/* ---- the worker ---- */

static const struct request_row {
	int (*run)(const struct job *j); /* 0: send DONE; ANSWERED; or -errno: send ERROR */
	const char *name;
	uint8_t least, most; /* parts of the tail; 0: it is not text */
	uint16_t flags;      /* that it knows */
} request_rows[] = {
	[WIRE_PUT] = { put, "put", 1, 1, WIRE_PIPE },
	[WIRE_GET] = { files_do_get, "get", 1, 1, WIRE_PIPE | WIRE_GET_END },
	[WIRE_MKDIR] = { make_directory, "mkdir", 1, 1, 0 },
	[WIRE_REMOVE] = { remove_path, "remove", 1, 1, WIRE_REMOVE_ONE },
	[WIRE_MOVE] = { files_move, "move", 2, 2, WIRE_MOVE_NEW | WIRE_MOVE_USER },
	[WIRE_LINK] = { make_link, "link", 2, 2, 0 },
	[WIRE_ENTRY_OF] = { entry_of, "stat", 1, 1, WIRE_ENTRY_FULL },
	[WIRE_LIST] = { list, "list", 1, 2, WIRE_ENTRY_FULL },
	[WIRE_CHANGES] = { changes, "changes", 0, 0, 0 },
	[WIRE_CHMOD] = { change_mode, "chmod", 1, 1, 0 },
	[WIRE_CHOWN] = { change_owner, "chown", 1, 1, 0 },
	[WIRE_COPY] = { copy, "copy", 2, 2, WIRE_COPY_NEW },
	[WIRE_WATCH] = { watch, "watch", 1, 1,
			 WIRE_WATCH_DEEP | WIRE_WATCH_PLAIN | WIRE_WATCH_ENTRY | WIRE_WATCH_LOCAL },
	[WIRE_SEARCH] = { search, "search", 1, 3, WIRE_SEARCH_FOLD },
	[WIRE_SOCKETS] = { sockets, "sockets", 0, 0, WIRE_SOCKETS_BRIEF },
	[WIRE_META] = { put_meta, "meta", 0, 0, 0 },
	[WIRE_APPEND] = { put_append, "append", 1, 1, 0 },
	[WIRE_DATA] = { put_data, "data", 0, 0, 0 },
};

/* Splits the tail at its NULs; -errno unless the number of parts is right. A NUL inside a path
 * would make the worker act on another path than the client meant. */
static int find_parts(struct job *j, const struct request_row *v)
{
	static char none[1];
	uint32_t i, seen = 1;

	if (!v->most)
		return 0;
	if (j->tail_len >= 2 * PATH_MAX)
		return -ENAMETOOLONG;
	j->path[j->tail_len] = '\0';
	params_place_home(j->path, j->tail_len);
	j->part[0] = j->path;
	for (i = 1; i < PARTS; i++)
		j->part[i] = none;
	for (i = 0; i + 1 < j->tail_len; i++) { /* one NUL at the very end is welcome */
		if (j->path[i])
			continue;
		if (seen < PARTS)
			j->part[seen] = j->path + i + 1;
		seen++;
	}
	if (seen < v->least || seen > v->most)
		return -EINVAL;
	return *j->path ? 0 : -ENOENT;
}

/* Is a pipe present exactly when the request announces one? */
static int check_pipe(const struct job *j)
{
	int speaks = (j->head->type == WIRE_PUT || j->head->type == WIRE_GET) &&
		     j->head->flags & WIRE_PIPE;

	return speaks == (j->pipe >= 0) ? 0 : -EINVAL;
}

/* Has the path a part that no file system takes? gVisor answers ENOENT for it once the folder was
 * listed: it looks into the names that it has read. */
static int is_name_long(const char *path)
{
	uint32_t n = 0;

	for (; *path; path++) {
		n = *path == '/' ? 0 : n + 1;
		if (n > NAME_MAX)
			return 1;
	}
	return 0;
}

static void files_serve(const struct frame *f, uint32_t len, int pipe)
{
	const struct request_row *v =
		f->type < ARRAY_LEN(request_rows) ? &request_rows[f->type] : NULL;
	struct job j = { .head = f, .path = scratch + frame_body(f->type), .pipe = pipe };
	uint32_t ref = f->ref;
	int err;

	if (!v || !v->run)
		sys_exit(1);
	j.tail_len = len - frame_body(f->type);
	if (f->type != WIRE_DATA && f->type != WIRE_META && f->type != WIRE_APPEND)
		put_close(); /* an upload that the client abandoned */
	full_forget();
	err = find_parts(&j, v);
	if (!err && f->flags & ~v->flags)
		err = -EINVAL;
	if (!err)
		err = check_pipe(&j);
	if (!err)
		err = v->run(&j);
	if (err == -ENOENT && v->most && is_name_long(j.path))
		err = -ENAMETOOLONG;
	if (err < 0)
		say_error(ref, v->name, v->most ? j.path : "", -err);
	else if (err != ANSWERED)
		say_head(WIRE_DONE, ref, 0);
}

/* Receives a frame into scratch, and the one descriptor that may come with it or -1. */
static long files_receive(int *out_fd)
{
	struct {
		struct cmsghdr head;
		int fd;
	} ride = { .fd = -1 };
	struct iovec iov = { scratch, WIRE_MAX };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ride,
			    .msg_controllen = sizeof(ride.head) + sizeof(ride.fd) };
	long n = sys_recvmsg(SOCK, &m, MSG_CMSG_CLOEXEC);

	*out_fd = n > 0 && m.msg_controllen ? ride.fd : -1;
	return n;
}

static _Noreturn void files_worker(int sock, int root)
{
	int fd;
	long n;

	/* The user must not reach init's connections and logs, so they are closed first. The
	 * worker's end may have any number, also one of the two below, so it is moved out of the
	 * way. */
	sock = (int)sys_fcntl(sock, F_DUPFD_CLOEXEC, UPPER + 1);
	if (sys_dup3(self.upper, UPPER, O_CLOEXEC) < 0 || sys_dup3(sock, SOCK, O_CLOEXEC) < 0 ||
	    sys_close_range(UPPER + 1, SYS_LAST_FD) < 0 || sys_setsid() < 0 ||
	    child_become(root) < 0)
		sys_exit(70);
	put_init();
	sys_sigmask(1ull << (SIGPIPE - 1)); /* a pipe without a reader is an error like others */
	sys_umask(0);                       /* modes are those of the client */
	if (sys_chdir(self.home) < 0)
		sys_chdir("/");
	for (;;) {
		n = files_receive(&fd);
		if (n == -EINTR)
			continue;
		if (n <= 0 || frame_check(scratch, (uint32_t)n) < 0)
			break;
		files_serve((const struct frame *)(void *)scratch, (uint32_t)n, fd);
		sys_close(fd);
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
	boot_due();
	pid = sys_fork();
	if (!pid)
		files_worker(pair[1], root);
	sys_close(pair[1]);
	if (pid < 0) {
		sys_close(pair[0]);
		return (int)pid;
	}
	return pair[0];
}
