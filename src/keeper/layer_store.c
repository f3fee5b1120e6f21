/* layer_store.c - see layer_store.h. */
#include "keeper/layer_store.h"
#include "base/cleanup.h"
#include "keeper/checkpoint_mount.h"
#include "keeper/checkpoint_process.h"
#include "keeper/checkpoint_spare.h"
#include "keeper/checkpoint_archive.h"
#include "keeper/image_export.h"
#include "keeper/image_process.h"
#include "keeper/layer_erofs.h"
#include "keeper/layer_image.h"
#include "keeper/layer_merge.h"
#include "keeper/layer_upper.h"
#include "keeper/layer_walk.h"
#include "keeper/layer_writer.h"
#include "wire/sock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STORE_TRIES = 200, STORE_TRY_US = 10000 };
enum { LAYER_STORE_FD = 3, LAYERS_FD, ROOTS_FD, CHECKPOINTS_FD };

static pid_t store_pid; /* of the layer store, in its own processes */

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
	if (layer_writer_run(o, fd, conn, e) == 0 && layer_tree_finalize(fd, out, e) == 0 &&
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

/* The next keeper may give the ids of the unpacking process to a box. */
static int store_end_with_parent(struct err *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_sys(e, "end with the layer store");
	/* It may have ended before. */
	return getppid() == store_pid ? 0 : err_set(e, ERR_SYS, "the layer store has ended");
}

static int store_unpack(int layers, const struct layer_store_request *o, int archive,
			struct layer_store_reply *out)
{
	char name[32];
	auto_fd int dir = -1;
	struct err ignored;

	if (store_end_with_parent(&out->err) < 0)
		return -1;
	dir = open_new(layers, 0, name, &out->err);
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

static int open_layer(int layers, const char *id, struct err *e)
{
	int fd = openat(layers, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_set(e, ERR_NOT_FOUND, "there is no layer %.12s", id) : fd;
}

static int store_do_check(int layers, const char *id, struct layer_tree_sum *out, struct err *e)
{
	auto_fd int fd = open_layer(layers, id, e);
	struct err of_packages;
	int done;

	if (fd < 0)
		return -1;
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

static void merge_close(struct layer_merge *m)
{
	while (m->n > 0)
		close(m->layer[--m->n]);
}
#define auto_merge __attribute__((cleanup(merge_close))) struct layer_merge

static int merge_open(int layers, const struct root *r, struct layer_merge *m, struct err *e)
{
	m->base = r->base;
	for (; m->n < r->nlayers; m->n++) {
		m->layer[m->n] = open_layer(layers, r->layer[m->n], e);
		if (m->layer[m->n] < 0)
			return -1;
	}
	return 0;
}

/* Returns the tree of a merged root, which is locked: the next keeper does not remove it before the
 * root is written. */
static int store_merge(int layers, const struct root *r, const struct layer_merge *m, struct err *e)
{
	char name[32], merged[WIRE_LAYER_ID];
	auto_fd int fd = -1;
	struct err ignored;

	root_merged_name(r->id, merged);
	fd = openat(layers, merged, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return steal_fd(&fd);
	fd = open_new(layers, 0, name, e);
	if (fd < 0)
		return -1;
	if (layer_merge_make(m, fd, e) == 0 && give_name(layers, fd, name, merged, e) == 0)
		return steal_fd(&fd);
	(void)!layer_tree_remove(layers, name, &ignored);
	return -1;
}

static int store_root(int layers, const struct root *r, struct layer_tree_sum *out, struct err *e)
{
	auto_merge m = { .n = 0 };
	auto_fd int tree = -1;

	if (merge_open(layers, r, &m, e) < 0)
		return -1;
	if (r->merged) {
		tree = store_merge(layers, r, &m, e);
		if (tree < 0 || layer_walk_count(tree, &out->bytes, &out->files, e) < 0)
			return -1;
	}
	for (unsigned i = 0; i < m.n && !r->merged; i++)
		if (layer_walk_count(m.layer[i], &out->bytes, &out->files, e) < 0)
			return -1;
	memcpy(out->id, r->id, sizeof(out->id));
	return root_write(ROOTS_FD, r, e);
}

static int store_check_merged(int layers, const struct root *r, struct layer_tree_sum *out,
			      struct err *e)
{
	auto_merge m = { .n = 0 };
	auto_fd int tree = -1;
	char merged[WIRE_LAYER_ID];

	root_merged_name(r->id, merged);
	tree = open_layer(layers, merged, e);
	if (tree < 0 || merge_open(layers, r, &m, e) < 0 || layer_merge_check(&m, tree, e) < 0)
		return -1;
	out->bytes = out->files = 0;
	return layer_walk_count(tree, &out->bytes, &out->files, e);
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
	return r->merged ? store_check_merged(layers, r, out, e) : 0;
}

/* ---- checkpoints ---- */

static int store_import(int layers, const struct layer_store_request *o, int archive,
			struct layer_store_reply *out)
{
	struct err ignored;
	auto_fd int dir = -1;
	char name[32];
	int done;

	dir = open_new(layers, 0, name, &out->err);
	if (dir < 0)
		return -1;
	done = checkpoint_archive_import(CHECKPOINTS_FD, &o->checkpoint, archive, dir, o->uid,
					 &out->checkpointed, &out->err);
	(void)!layer_tree_remove(layers, name, &ignored);
	return done;
}

/* w: NULL: not started yet. */
static int store_checkpoint(int layers, const struct layer_store_request *o,
			    struct checkpoint_worker *w, const int *fds,
			    struct layer_store_reply *out)
{
	const struct checkpoint_request *q = &o->checkpoint;
	const struct checkpoint_fds given = { fds[0], fds[1], fds[2], fds[3], fds[4] };
	struct checkpoint_worker own;

	signal(SIGCHLD, SIG_DFL);
	if (store_end_with_parent(&out->err) < 0)
		return -1;
	if (o->what == LAYER_STORE_CHECKPOINT_SYNC)
		return checkpoint_store_sync(CHECKPOINTS_FD, q->id, &out->err);
	if (o->what == LAYER_STORE_CHECKPOINT_MERGE)
		return checkpoint_store_merge(CHECKPOINTS_FD, q, fds[0], &out->checkpointed,
					      &out->err);
	if (o->what == LAYER_STORE_CHECKPOINT_EXPORT)
		return checkpoint_archive_export(CHECKPOINTS_FD, q, fds[0], &out->checkpointed,
						 &out->err);
	if (o->what == LAYER_STORE_CHECKPOINT_IMPORT)
		return store_import(layers, o, fds[0], out);
	if (!w && checkpoint_worker_start(w = &own, CHECKPOINTS_FD, q->check_uid, &out->err) < 0)
		return -1;
	return checkpoint_store_take(CHECKPOINTS_FD, w, q, &given, &out->checkpointed, &out->err);
}

/* The process that waits for the next checkpoint: checkpoint_spare.h. */
static void store_spare(struct checkpoint_worker *w, int sock)
{
	struct layer_store_reply a = { 0 };
	struct layer_store_request o;
	int fds[LAYER_STORE_FDS];

	close(LAYER_STORE_FD);
	if (sock_recv_message(sock, &o, sizeof(o), fds, LAYER_STORE_FDS) != (ssize_t)sizeof(o))
		_exit(0);
	if (store_checkpoint(-1, &o, w, fds + 1, &a) == 0)
		a.err.kind = ERR_NONE;
	(void)!sock_send_message(fds[0], &a, sizeof(a), NULL, 0);
	_exit(0);
}

/* Runs in a process of its own. */
static _Noreturn void store_serve(int layers, const struct layer_store_request *o, int answer_to,
				  const int *fds)
{
	int conn = fds[0];
	struct layer_store_reply a = { 0 };
	int done = -1, file = -1;

	if (o->what >= LAYER_STORE_CHECKPOINT)
		done = store_checkpoint(layers, o, NULL, fds, &a);
	else if (o->what == LAYER_STORE_IMAGE)
		done = file = layer_erofs_open(layers, o->id, o->uid, &a.err);
	else if (o->what == LAYER_STORE_MAKE)
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
	if (done >= 0)
		a.err.kind = ERR_NONE;
	(void)!sock_send_message(answer_to, &a, sizeof(a), &file, file >= 0);
	_exit(0);
}

/* What is answered by this process itself: it keeps the mounts. */
static int take_order_here(int layers, const struct layer_store_request *o, int answer_to)
{
	struct layer_store_reply a = { 0 };
	auto_fd int fd = -1;

	if (o->what == LAYER_STORE_MOUNT)
		fd = mount_layer(layers, o->id, &a.err);
	else if (o->what == LAYER_STORE_CHECKPOINT_MOUNT)
		fd = checkpoint_mount_get(CHECKPOINTS_FD, o->checkpoint.id, &a.err);
	else if (o->what == LAYER_STORE_CHECKPOINT_RELEASE)
		(o->checkpoint.is_deleted ? checkpoint_mount_forget
					  : checkpoint_mount_release)(o->checkpoint.id);
	else if ((o->what != LAYER_STORE_CHECKPOINT ||
		  checkpoint_mount_possible(CHECKPOINTS_FD, "layers", &a.err) == 0) &&
		 (o->what < LAYER_STORE_CHECKPOINT || checkpoint_process_prepare(&a.err) == 0))
		return 0;
	(void)!sock_send_message(answer_to, &a, sizeof(a), &fd, fd >= 0);
	return 1;
}

static void take_order(int layers, const struct layer_store_request *o, int answer_to,
		       const int *fds)
{
	const int all[LAYER_STORE_FDS] = { answer_to, fds[0], fds[1], fds[2], fds[3], fds[4] };
	struct layer_store_reply a = { 0 };

	if (take_order_here(layers, o, answer_to))
		return;
	if (o->what == LAYER_STORE_CHECKPOINT &&
	    checkpoint_spare_give(o->checkpoint.check_uid, o, sizeof(*o), all, LAYER_STORE_FDS))
		return;
	switch (fork()) {
	case 0:
		close(LAYER_STORE_FD); /* only the keeper may hold the other end */
		store_serve(layers, o, answer_to, fds);
	case -1:
		err_sys(&a.err, "start a process for a layer");
		(void)!sock_send_message(answer_to, &a, sizeof(a), NULL, 0);
	}
}

/* The id of the merged root that this tree belongs to; NULL: it is of another kind. */
static const char *store_root_of_tree(const char *name)
{
	return strncmp(name, "merged.", 7) == 0 ? name + 7 : NULL;
}

/* The tree of a merged root that was not written, or was deleted. */
static int store_is_left_over(const char *name, const struct root_table *known)
{
	const char *root = store_root_of_tree(name);

	if (root)
		return !root_table_find(known, root);
	return strncmp(name, "new.", 4) == 0 || strncmp(name, "drop.", 5) == 0;
}

/* Left-over files that a process of the last keeper, which is just ending, still had locked. */
enum { STORE_BUSY = 32, STORE_AGAIN_MS = 100 };
static struct {
	char names[STORE_BUSY][256];
	unsigned n;
} store_busy;

/* 0: removed, or an error that was reported; 1: another process uses it. */
static int store_remove_left_over(int layers, const char *name)
{
	auto_fd int one = openat(layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *root = store_root_of_tree(name);
	struct err e;

	if (one >= 0 && flock(one, LOCK_EX | LOCK_NB) < 0)
		return 1;
	/* The process that had locked it has written its root before it ended. */
	if (root && faccessat(ROOTS_FD, root, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (one >= 0 && layer_tree_remove(layers, name, &e) < 0)
		fprintf(stderr, "atoll: keeper: layers: %s\n", e.msg);
	return 0;
}

/* Only names of before: processes of this store make folders and lock them after that. */
static void store_sweep_again(int layers)
{
	unsigned n = 0;

	for (unsigned i = 0; i < store_busy.n; i++)
		if (store_remove_left_over(layers, store_busy.names[i]))
			memmove(store_busy.names[n++], store_busy.names[i],
				sizeof(store_busy.names[i]));
	store_busy.n = n;
}

static int store_sooner(int a_ms, int b_ms)
{
	return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static void store_sweep_while_idle(void)
{
	struct pollfd request = { .fd = LAYER_STORE_FD, .events = POLLIN };
	int due;

	while (store_busy.n && poll(&request, 1, STORE_AGAIN_MS) == 0)
		store_sweep_again(LAYERS_FD);
	do
		due = store_sooner(checkpoint_mount_expire(),
				   checkpoint_spare_refresh(CHECKPOINTS_FD, store_spare));
	while (poll(&request, 1, due) == 0);
}

/* Removes files that a crash has left, unless another process still uses them. */
static void store_sweep(int layers, int roots)
{
	struct root_table known;
	int fd = openat(layers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	struct err e;

	if (root_table_load(&known, roots, &e) < 0) {
		fprintf(stderr, "atoll: keeper: %s\n", e.msg);
		if (d)
			closedir(d);
		return;
	}
	while (d && (de = readdir(d)) != NULL) {
		if (strncmp(de->d_name, LAYER_EROFS_PREFIX, strlen(LAYER_EROFS_PREFIX)) == 0)
			layer_erofs_sweep(layers, de->d_name);
		if (!store_is_left_over(de->d_name, &known))
			continue;
		if (store_remove_left_over(layers, de->d_name) && store_busy.n < STORE_BUSY)
			snprintf(store_busy.names[store_busy.n++], sizeof(store_busy.names[0]),
				 "%s", de->d_name);
	}
	root_table_fini(&known);
	if (d)
		closedir(d);
}

static _Noreturn void layer_store_process(int sock, int layers, int roots, int checkpoints)
{
	int high = fcntl(sock, F_DUPFD_CLOEXEC, 64), dir = fcntl(layers, F_DUPFD_CLOEXEC, 64);
	int lists = fcntl(roots, F_DUPFD_CLOEXEC, 64);
	int saved = fcntl(checkpoints, F_DUPFD_CLOEXEC, 64);
	struct layer_store_request o;
	int fds[LAYER_STORE_FDS];

	/* Closes all other descriptors, also the lock of the keeper: it must be free when the
	 * keeper has ended. */
	if (high < 0 || dir < 0 || lists < 0 || saved < 0 ||
	    dup3(high, LAYER_STORE_FD, O_CLOEXEC) < 0 || dup3(dir, LAYERS_FD, O_CLOEXEC) < 0 ||
	    dup3(lists, ROOTS_FD, O_CLOEXEC) < 0 || dup3(saved, CHECKPOINTS_FD, O_CLOEXEC) < 0 ||
	    close_range(CHECKPOINTS_FD + 1, ~0U, 0) < 0)
		_exit(1);
	signal(SIGTERM, SIG_IGN); /* this process ends when the keeper's end of the socket
				   * is closed */
	signal(SIGINT, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	store_pid = getpid();
	store_sweep(LAYERS_FD, ROOTS_FD);
	while (store_sweep_while_idle(), sock_recv_message(LAYER_STORE_FD, &o, sizeof(o), fds,
							   LAYER_STORE_FDS) == (ssize_t)sizeof(o)) {
		take_order(LAYERS_FD, &o, fds[0], fds + 1);
		for (unsigned i = 0; i < LAYER_STORE_FDS; i++)
			own_close_fd(&fds[i]);
	}
	_exit(0);
}

/* ---- in the keeper ---- */

int layer_store_open(const char *state_dir, struct err *e)
{
	auto_fd int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (state < 0 || (mkdirat(state, "layers", 0700) < 0 && errno != EEXIST))
		return err_sys(e, "layers in %s", state_dir);
	fd = openat(state, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "layers in %s", state_dir) : fd;
}

int layer_store_start(int layers, int roots, int checkpoints, pid_t *out_pid, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to the layer store");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		layer_store_process(pair[1], layers, roots, checkpoints);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "start the layer store");
	}
	*out_pid = pid;
	return pair[0];
}

int layer_store_ask_with(int process, const struct layer_store_request *o, const int *more,
			 unsigned n, struct err *e)
{
	int pair[2], fds[LAYER_STORE_FDS];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket for an answer");
	fds[0] = pair[1];
	for (unsigned i = 0; i < n; i++)
		fds[1 + i] = more[i];
	if (sock_send_message(process, o, sizeof(*o), fds, 1 + n) < 0) {
		close(pair[0]);
		close(pair[1]);
		err_set(e, ERR_SYS, "the layer store has exited");
		e->sys = EPIPE;
		return -1;
	}
	close(pair[1]);
	return pair[0];
}

int layer_store_ask(int process, const struct layer_store_request *o, int conn, struct err *e)
{
	return layer_store_ask_with(process, o, &conn, conn >= 0, e);
}

int layer_store_reply(int sock, struct layer_store_reply *out, int *out_mount, struct err *e)
{
	int fds[LAYER_STORE_FDS];
	ssize_t n = sock_recv_message(sock, out, sizeof(*out), fds, LAYER_STORE_FDS);

	for (unsigned i = 1; i < LAYER_STORE_FDS; i++)
		own_close_fd(&fds[i]);
	if (n != (ssize_t)sizeof(*out)) {
		own_close_fd(&fds[0]);
		err_set(e, ERR_SYS, "the layer store gave no answer");
		e->sys = EPIPE;
		return -1;
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

static int store_try_file(int process, const struct layer_store_request *o, int *out, struct err *e)
{
	struct layer_store_reply a;
	auto_fd int sock = layer_store_ask(process, o, -1, e);

	return sock < 0 ? -1 : layer_store_reply(sock, &a, out, e);
}

/* On a builder thread. The loop starts a layer store that was killed again, and these requests can be repeated. */
static int store_ask_file(int process, const struct layer_store_request *o, int *out, struct err *e)
{
	int done = store_try_file(process, o, out, e);

	for (unsigned i = 0; i < STORE_TRIES && done < 0 && e->sys == EPIPE; i++) {
		usleep(STORE_TRY_US);
		done = store_try_file(process, o, out, e);
	}
	if (done < 0)
		return -1;
	return *out < 0 ? err_set(e, ERR_SYS, "layer %.12s: no descriptor came",
				  o->id[0] ? o->id : o->checkpoint.id)
			: 0;
}

int layer_store_mount(int process, const char *id, int *out_mount, struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_MOUNT };

	snprintf(o.id, sizeof(o.id), "%s", id);
	return store_ask_file(process, &o, out_mount, e);
}

int layer_store_checkpoint_mount(int process, const char *id, int *out_mount, struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_CHECKPOINT_MOUNT };

	snprintf(o.checkpoint.id, sizeof(o.checkpoint.id), "%s", id);
	return store_ask_file(process, &o, out_mount, e);
}

void layer_store_checkpoint_release(int process, const char *id, int is_deleted)
{
	struct layer_store_request o = { .what = LAYER_STORE_CHECKPOINT_RELEASE,
					 .checkpoint.is_deleted = (uint32_t)is_deleted };
	struct err ignored;
	auto_fd int sock = -1;

	snprintf(o.checkpoint.id, sizeof(o.checkpoint.id), "%s", id);
	sock = layer_store_ask(process, &o, -1, &ignored); /* no answer is needed */
}

int layer_store_image(int process, const char *id, uint32_t uid_base, int *out_file, struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_IMAGE, .uid = uid_base };

	snprintf(o.id, sizeof(o.id), "%s", id);
	return store_ask_file(process, &o, out_file, e);
}
