/* checkpoint_archive.c - see checkpoint_archive.h. */
#include "keeper/checkpoint_archive.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "jail/mnt.h"
#include "jail/user.h"
#include "keeper/checkpoint_mount.h"
#include "keeper/checkpoint_process.h"
#include "keeper/image_export.h"
#include "keeper/image_process.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARCHIVE_S = 1800 };

/* ---- export ---- */

int checkpoint_archive_export(int dir, const struct checkpoint_request *q, int archive,
			      struct wire_checkpointed *out, struct err *e)
{
	struct layer_tree_sum sum;
	auto_fd int layer = checkpoint_store_combined(dir, q, e), tree = -1;

	if (layer < 0)
		return -1;
	tree = checkpoint_mount_image(layer, CHECKPOINT_FILE, e);
	if (tree < 0)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, SIG_DFL);
	alarm(ARCHIVE_S);
	if (image_export(tree, archive, &sum, e) < 0)
		return -1;
	out->content_bytes = sum.bytes;
	out->files = sum.files;
	return 0;
}

/* ---- import ---- */

/* A user namespace of these ids; it exists as long as the descriptor. */
static int import_namespace(uint32_t uid_base, struct err *e)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	auto_fd int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	const pid_t parent = getpid();
	char name[32];
	int done;
	pid_t pid;

	if (proc < 0)
		return err_sys(e, "open /proc");
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args)); /* no stack: as fork() */
	if (pid == 0) {
		/* A layer store that is killed now, or was before this line, leaves no process. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
			_exit(1);
		for (;;)
			pause();
	}
	if (pid < 0)
		return err_sys(e, "make a user namespace");
	done = user_write_maps(proc, pid, uid_base, e);
	snprintf(name, sizeof(name), "%d/ns/user", (int)pid);
	if (done == 0 && (fd = openat(proc, name, O_RDONLY | O_CLOEXEC)) < 0)
		done = err_sys(e, "open a user namespace");
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return done < 0 ? -1 : steal_fd(&fd);
}

/* The folder with the ids of the namespace. */
static int import_mount(int folder, int userns, struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
	auto_fd int tree =
		open_tree(folder, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(e, "mount the unpacked files");
	return mnt_shift(tree, userns, e) < 0 ? -1 : steal_fd(&tree);
}

/* Nothing changes the files: there is nothing to stop, and no file is mapped. */
static int import_serve(int sock, struct delta_sum *out, struct err *e)
{
	struct checkpoint_message m;

	for (;;) {
		if (recv(sock, &m, sizeof(m), 0) != (ssize_t)sizeof(m))
			return err_set(e, ERR_SYS, "the capture has ended early");
		if (m.what == CHECKPOINT_RESULT) {
			m.err.msg[sizeof(m.err.msg) - 1] = 0;
			*out = m.sum;
			*e = m.err;
			return m.err.kind ? -1 : 0;
		}
		if (m.what == CHECKPOINT_RELEASE)
			continue;
		m = (struct checkpoint_message){ .what = m.what };
		if (sock_send_message(sock, &m, sizeof(m), NULL, 0) < 0)
			return err_set(e, ERR_SYS, "the capture has ended early");
	}
}

static int import_capture(int dir, const struct checkpoint_request *q, int tree, int userns,
			  uint64_t began, struct wire_checkpointed *out, struct err *e)
{
	struct delta d = { .upper = tree,
			   .base = -1,
			   .rules = DELTA_RULES,
			   .bytes_most = q->bytes_most,
			   .files_most = q->files_most,
			   .used_bytes = UINT64_MAX };
	struct checkpoint_worker w;
	struct delta_sum sum;
	int done;

	if (checkpoint_worker_start(&w, dir, q->check_uid, e) < 0)
		return -1;
	d.layer = w.layer;
	d.index = w.index;
	memcpy(d.id, q->id, sizeof(d.id));
	memcpy(d.box, q->box, sizeof(d.box));
	done = checkpoint_capture_begin(w.capture_sock, &d, userns, e);
	if (done == 0)
		done = import_serve(w.capture_sock, &sum, e);
	kill(w.capture, SIGKILL); /* no process may write to the files from here on */
	while (waitpid(w.capture, NULL, 0) < 0 && errno == EINTR)
		;
	return done < 0 ? -1 : checkpoint_store_finish(dir, &w, &d, &sum, began, out, e);
}

int checkpoint_archive_import(int dir, const struct checkpoint_request *q, int archive, int folder,
			      uint32_t uid_base, struct wire_checkpointed *out, struct err *e)
{
	const struct image_limits limits = { q->bytes_most, q->files_most };
	uint64_t began = now_ns();
	struct image_sum unpacked;
	auto_fd int userns = -1, tree = -1, top = -1;

	if (image_process_unpack(folder, archive, uid_base, &limits, &unpacked, e) < 0)
		return -1;
	if (unpacked.skipped)
		return err_set(e, ERR_INVALID, "the archive has %llu device nodes",
			       (unsigned long long)unpacked.skipped);
	userns = import_namespace(uid_base, e);
	if (userns < 0 || (tree = import_mount(folder, userns, e)) < 0)
		return -1;
	top = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return err_sys(e, "open the unpacked files");
	return import_capture(dir, q, top, userns, began, out, e);
}
