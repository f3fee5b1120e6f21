/* layer_store.c - see layer_store.h. */
#include "keeper/layer_store.h"
#include "base/cleanup.h"
#include "keeper/image_export.h"
#include "keeper/image_process.h"
#include "keeper/layer_image.h"
#include "keeper/layer_import.h"
#include "keeper/layer_upper.h"
#include "keeper/layer_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAYER_STORE_FD = 3, LAYERS_FD, ROOTS_FD, WRITER_S = 900 };

/* ---- frames with descriptors ---- */

static int send_with(int sock, const void *bytes, size_t n, const int *fds, unsigned nfds)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(nfds * sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { (void *)bytes, n };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		memcpy(CMSG_DATA(&control.head), fds, nfds * sizeof(int));
		m.msg_control = control.room;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

/* fds: space for two, -1 for those that were not sent. */
static ssize_t receive_with(int sock, void *bytes, size_t n, int fds[2])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = { bytes, n };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	ssize_t got = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(&m);

	fds[0] = fds[1] = -1;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return got;
}

/* ---- the writer ---- */

/* Makes the new folder the root of a mount namespace without anything else. */
static int own_root(int dir, struct err *e)
{
	/* Must be done while its mount is in this namespace. */
	auto_fd int tree = open_tree(dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0)
		return err_sys(e, "clone the new layer");
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, "own mounts");
	/* Mounts onto a folder that always exists; everything below is removed with the
	 * old root. */
	if (move_mount(tree, "", AT_FDCWD, "/usr", MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
	    chdir("/usr") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_sys(e, "own root");
	return 0;
}

/* After this the process sees only the new folder, and has no other rights. */
static int enter_cell(int dir, uint32_t uid, struct err *e)
{
	const struct rlimit files = { 32, 32 }, none = { 0, 0 };

	if (own_root(dir, e) < 0)
		return -1;
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_sys(e, "change to the user nobody");
	/* After the ids have changed, because the kernel clears PDEATHSIG then. */
	if (geteuid() != uid || getegid() != uid || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0 ||
	    setrlimit(RLIMIT_CORE, &none) < 0 ||
	    /* No process of this id may remain: the sealer must read files that cannot change any
	     * longer. */
	    setrlimit(RLIMIT_NPROC, &none) < 0)
		return err_sys(e, "drop privileges that are not needed");
	alarm(WRITER_S);
	return 0;
}

/* The three descriptors of the writer. It has neither the folder of layers nor the socket for the
 * answer: only the sealer reads its output, and checks it. */
enum { WRITER_DIR = 3, WRITER_CONN, WRITER_TELL };

static int only_these(int dir, int conn, int tell, struct err *e)
{
	const int from[] = { dir, conn, tell };
	int high[ARRAY_LEN(from)];

	for (unsigned i = 0; i < ARRAY_LEN(from); i++)
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64);
	for (unsigned i = 0; i < ARRAY_LEN(from); i++)
		if (high[i] < 0 || dup3(high[i], WRITER_DIR + (int)i, O_CLOEXEC) < 0)
			return err_sys(e, "descriptors of the writer");
	return close_range(WRITER_TELL + 1, ~0U, 0) < 0 ? err_sys(e, "close the rest") : 0;
}

static _Noreturn void store_writer(const struct layer_store_request *o, int dir, int conn, int tell)
{
	struct layer_tree t = { .bytes_most = o->bytes_most, .files_most = o->files_most };
	struct err e = { 0 };

	signal(SIGALRM, SIG_DFL);
	if (only_these(dir, conn, tell, &e) < 0)
		_exit(1);
	if (enter_cell(WRITER_DIR, o->uid, &e) == 0) {
		/* Opened through the new root: the inherited descriptor leads up to the old one. */
		close(WRITER_DIR);
		t.root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (t.root < 0)
			err_sys(&e, "open the new layer");
		else if (layer_import_tree(WRITER_CONN, o->path, o->place, &t, &e) == 0)
			e.kind = ERR_NONE;
	}
	_exit(write(WRITER_TELL, &e, sizeof(e)) != (ssize_t)sizeof(e));
}

static int run_writer(const struct layer_store_request *o, int dir, int conn, struct err *e)
{
	int status = 0, pair[2];
	struct err told;
	ssize_t n;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe to the writer");
	signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (pid == 0)
		store_writer(o, dir, conn, pair[1]);
	close(pair[1]);
	n = pid < 0 ? -1 : read(pair[0], &told, sizeof(told));
	close(pair[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || n != (ssize_t)sizeof(told) || status != 0)
		return err_set(e, ERR_SYS, "the writer of the layer ended (status %#x)",
			       (unsigned)status);
	told.msg[sizeof(told.msg) - 1] = 0;
	*e = told;
	return told.kind ? -1 : 0;
}

/* ---- the sealer ---- */

static int open_new(int layers, uint32_t uid, char name[32], struct err *e)
{
	auto_fd int fd = -1;

	snprintf(name, 32, "new.%d", (int)getpid());
	if (mkdirat(layers, name, 0700) < 0)
		return err_sys(e, "make %s", name);
	fd = openat(layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fchown(fd, uid, uid) < 0)
		return err_sys(e, "open %s", name);
	return steal_fd(&fd);
}

/* Everything is on the disk before the rename. A layer that exists already has the same content. */
static int give_name(int layers, int fd, const char *name, const char *id, struct err *e)
{
	if (syncfs(fd) < 0)
		return err_sys(e, "write the layer");
	if (renameat2(layers, name, layers, id, RENAME_NOREPLACE) < 0) {
		if (errno != EEXIST)
			return err_sys(e, "name the layer");
		return layer_tree_remove(layers, name, e);
	}
	return fsync(layers) < 0 ? err_sys(e, "name the layer") : 0;
}

static int store_make(int layers, const struct layer_store_request *o, int conn,
		      struct layer_tree_sum *out, struct err *e)
{
	char name[32];
	auto_fd int fd = open_new(layers, o->uid, name, e);
	struct err ignored;

	if (fd < 0)
		return -1;
	if (run_writer(o, fd, conn, e) == 0 && layer_tree_finalize(fd, out, e) == 0 &&
	    give_name(layers, fd, name, out->id, e) == 0)
		return 0;
	(void)!layer_tree_remove(layers, name, &ignored);
	return -1;
}

/* ---- the writable layer of a box ---- */

static int store_upper(int layers, const struct layer_store_request *o, int conn,
		       struct layer_tree_sum *out, struct err *e)
{
	const struct layer_upper u = { .uid_base = o->uid,
				       .base = o->base,
				       .bytes_most = o->bytes_most,
				       .files_most = o->files_most };
	auto_fd int from = layer_upper_open(conn, &u, e);
	auto_fd int fd = -1;
	struct err ignored;
	char name[32];

	if (from < 0)
		return -1;
	fd = open_new(layers, 0, name, e);
	if (fd < 0)
		return -1;
	if (layer_upper_copy(from, fd, &u, e) == 0 && layer_image_finalize(fd, out, e) == 0 &&
	    give_name(layers, fd, name, out->id, e) == 0)
		return 0;
	(void)!layer_tree_remove(layers, name, &ignored);
	return -1;
}

/* ---- archives ---- */

static int store_do_unpack(int layers, const struct layer_store_request *o, int archive, int dir,
			   const char *name, struct layer_store_reply *out)
{
	const struct image_limits limits = { o->bytes_most, o->files_most };
	struct image_sum unpacked;

	if (image_process_unpack(dir, archive, o->uid, &limits, &unpacked, &out->err) < 0)
		return -1;
	if (o->diff[0] && strcmp(o->diff, unpacked.diff) != 0)
		return err_set(&out->err, ERR_CONFLICT,
			       "the archive is sha256:%.64s, not sha256:%.64s", unpacked.diff,
			       o->diff);
	out->skipped = unpacked.skipped;
	if (layer_image_finalize(dir, &out->sum, &out->err) < 0)
		return -1;
	return give_name(layers, dir, name, out->sum.id, &out->err);
}

static int store_unpack(int layers, const struct layer_store_request *o, int archive,
			struct layer_store_reply *out)
{
	char name[32];
	auto_fd int dir = open_new(layers, 0, name, &out->err);
	struct err ignored;

	if (dir < 0)
		return -1;
	if (store_do_unpack(layers, o, archive, dir, name, out) == 0)
		return 0;
	(void)!layer_tree_remove(layers, name, &ignored);
	return -1;
}

static int store_export(int layers, const struct layer_store_request *o, int archive,
			struct layer_store_reply *out)
{
	auto_fd int fd = openat(layers, o->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(&out->err, ERR_NOT_FOUND, "there is no layer %.12s", o->id);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, SIG_DFL);
	alarm(WRITER_S);
	if (image_export(fd, archive, &out->sum, &out->err) < 0)
		return err_in(&out->err, "layer %.12s", o->id);
	memcpy(out->sum.id, o->id, sizeof(out->sum.id));
	return 0;
}

/* ---- requests ---- */

static int mount_layer(int layers, const char *id, struct err *e)
{
	auto_fd int fd =
		open_tree(layers, id, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV };

	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "there is no layer %.12s", id);
	if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(e, "mount layer %.12s", id);
	return steal_fd(&fd);
}

static int store_do_check(int layers, const char *id, struct layer_tree_sum *out, struct err *e)
{
	auto_fd int fd = openat(layers, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	struct err of_packages;
	int done;

	if (fd < 0)
		return err_set(e, ERR_NOT_FOUND, "there is no layer %.12s", id);
	done = layer_tree_check(fd, out, &of_packages);
	if (done == 0 && strcmp(out->id, id) == 0)
		return 0;
	/* The name does not tell the kind. The rules for image layers are less strict: what they
	 * reject is no layer of packages either. */
	if (layer_image_check(fd, out, e) < 0)
		return err_in(e, "layer %.12s", id);
	if (strcmp(out->id, id) == 0)
		return 0;
	if (done < 0 && of_packages.kind == ERR_CONFLICT) {
		*e = of_packages;
		return err_in(e, "layer %.12s", id);
	}
	return err_set(e, ERR_CONFLICT, "layer %.12s has changed: its content is now %.12s", id,
		       out->id);
}

/* ---- roots ---- */

static int store_count(int layers, const char *id, struct layer_tree_sum *out, struct err *e)
{
	auto_fd int fd = openat(layers, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, ERR_NOT_FOUND, "there is no layer %.12s", id);
	return layer_walk_count(fd, &out->bytes, &out->files, e);
}

static int store_root(int layers, const struct root *r, struct layer_tree_sum *out, struct err *e)
{
	for (uint32_t i = 0; i < r->nlayers; i++)
		if (store_count(layers, r->layer[i], out, e) < 0)
			return -1;
	memcpy(out->id, r->id, sizeof(out->id));
	return root_write(ROOTS_FD, r, e);
}

static int store_root_check(int layers, const struct root *r, struct layer_tree_sum *out,
			    struct err *e)
{
	struct layer_tree_sum one;

	for (uint32_t i = 0; i < r->nlayers; i++) {
		if (store_do_check(layers, r->layer[i], &one, e) < 0)
			return -1;
		out->bytes += one.bytes;
		out->files += one.files;
	}
	memcpy(out->id, r->id, sizeof(out->id));
	return 0;
}

/* Runs in a process of its own. */
static _Noreturn void store_serve(int layers, const struct layer_store_request *o, int answer_to,
				  int conn)
{
	struct layer_store_reply a = { 0 };
	int done = -1;

	if (o->what == LAYER_STORE_MAKE)
		done = store_make(layers, o, conn, &a.sum, &a.err);
	else if (o->what == LAYER_STORE_UPPER)
		done = store_upper(layers, o, conn, &a.sum, &a.err);
	else if (o->what == LAYER_STORE_CHECK)
		done = store_do_check(layers, o->id, &a.sum, &a.err);
	else if (o->what == LAYER_STORE_ROOT)
		done = store_root(layers, &o->root, &a.sum, &a.err);
	else if (o->what == LAYER_STORE_ROOT_CHECK)
		done = store_root_check(layers, &o->root, &a.sum, &a.err);
	else if (o->what == LAYER_STORE_UNPACK)
		done = store_unpack(layers, o, conn, &a);
	else if (o->what == LAYER_STORE_EXPORT)
		done = store_export(layers, o, conn, &a);
	else
		done = layer_tree_remove(layers, o->id, &a.err);
	if (done == 0)
		a.err.kind = ERR_NONE;
	(void)!send_with(answer_to, &a, sizeof(a), NULL, 0);
	_exit(0);
}

static void take_order(int layers, const struct layer_store_request *o, int answer_to, int conn)
{
	struct layer_store_reply a = { 0 };

	if (o->what == LAYER_STORE_MOUNT) {
		auto_fd int fd = mount_layer(layers, o->id, &a.err);

		(void)!send_with(answer_to, &a, sizeof(a), &fd, fd >= 0);
		return;
	}
	switch (fork()) {
	case 0:
		close(LAYER_STORE_FD); /* only the keeper may hold the other end */
		store_serve(layers, o, answer_to, conn);
	case -1:
		err_sys(&a.err, "start a process for a layer");
		(void)!send_with(answer_to, &a, sizeof(a), NULL, 0);
	}
}

/* Removes files that a crash has left, unless another process still uses them. */
static void store_sweep(int layers)
{
	int fd = openat(layers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	struct err e;

	while (d && (de = readdir(d)) != NULL) {
		auto_fd int one = -1;

		if (strncmp(de->d_name, "new.", 4) != 0 && strncmp(de->d_name, "drop.", 5) != 0)
			continue;
		one = openat(layers, de->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (one >= 0 && flock(one, LOCK_EX | LOCK_NB) == 0 &&
		    layer_tree_remove(layers, de->d_name, &e) < 0)
			fprintf(stderr, "atoll: keeper: layers: %s\n", e.msg);
	}
	if (d)
		closedir(d);
}

static _Noreturn void layer_store_process(int sock, int layers, int roots)
{
	int high = fcntl(sock, F_DUPFD_CLOEXEC, 64), dir = fcntl(layers, F_DUPFD_CLOEXEC, 64);
	int lists = fcntl(roots, F_DUPFD_CLOEXEC, 64);
	struct layer_store_request o;
	int fds[2];

	/* Closes all other descriptors, also the lock of the keeper: it must be free when the
	 * keeper has ended. */
	if (high < 0 || dir < 0 || lists < 0 || dup3(high, LAYER_STORE_FD, O_CLOEXEC) < 0 ||
	    dup3(dir, LAYERS_FD, O_CLOEXEC) < 0 || dup3(lists, ROOTS_FD, O_CLOEXEC) < 0 ||
	    close_range(ROOTS_FD + 1, ~0U, 0) < 0)
		_exit(1);
	signal(SIGTERM, SIG_IGN); /* this process ends when the keeper's end of the socket
				   * is closed */
	signal(SIGINT, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	store_sweep(LAYERS_FD);
	while (receive_with(LAYER_STORE_FD, &o, sizeof(o), fds) == (ssize_t)sizeof(o)) {
		take_order(LAYERS_FD, &o, fds[0], fds[1]);
		own_close_fd(&fds[0]);
		own_close_fd(&fds[1]);
	}
	_exit(0);
}

/* ---- in the keeper ---- */

static int open_layers(const char *state_dir, struct err *e)
{
	auto_fd int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (state < 0 || (mkdirat(state, "layers", 0700) < 0 && errno != EEXIST))
		return err_sys(e, "layers in %s", state_dir);
	fd = openat(state, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "layers in %s", state_dir) : fd;
}

int layer_store_start(const char *state_dir, int roots, int *out_dir, struct err *e)
{
	auto_fd int dir = open_layers(state_dir, e);
	int pair[2];
	pid_t pid;

	if (dir < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to the layer store");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		layer_store_process(pair[1], dir, roots);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "start the layer store");
	}
	*out_dir = steal_fd(&dir);
	return pair[0];
}

int layer_store_ask(int process, const struct layer_store_request *o, int conn, struct err *e)
{
	int pair[2], fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket for an answer");
	fds[0] = pair[1];
	fds[1] = conn;
	if (send_with(process, o, sizeof(*o), fds, conn >= 0 ? 2 : 1) < 0) {
		close(pair[0]);
		close(pair[1]);
		return err_set(e, ERR_SYS, "the layer store has exited");
	}
	close(pair[1]);
	return pair[0];
}

int layer_store_reply(int sock, struct layer_store_reply *out, int *out_mount, struct err *e)
{
	int fds[2];
	ssize_t n = receive_with(sock, out, sizeof(*out), fds);

	own_close_fd(&fds[1]);
	if (n != (ssize_t)sizeof(*out)) {
		own_close_fd(&fds[0]);
		return err_set(e, ERR_SYS, "the layer store gave no answer");
	}
	if (out->err.kind) {
		own_close_fd(&fds[0]);
		*e = out->err;
		return -1;
	}
	if (out_mount)
		*out_mount = fds[0];
	else
		own_close_fd(&fds[0]);
	return 0;
}

int layer_store_mount(int process, const char *id, int *out_mount, struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_MOUNT };
	struct layer_store_reply a;
	auto_fd int sock = -1;

	snprintf(o.id, sizeof(o.id), "%s", id);
	sock = layer_store_ask(process, &o, -1, e);
	if (sock < 0 || layer_store_reply(sock, &a, out_mount, e) < 0)
		return -1;
	return *out_mount < 0 ? err_set(e, ERR_SYS, "layer %.12s: no mount came", id) : 0;
}
