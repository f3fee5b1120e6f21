/* layer_writer.c - see layer_writer.h. */
#include "keeper/layer_writer.h"
#include "base/cleanup.h"
#include "keeper/layer_import.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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
		return err_sys(e, "set uid and gid to %u", uid);
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

static _Noreturn void layer_writer(const struct layer_store_request *o, int dir, int conn, int tell)
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

int layer_writer_run(const struct layer_store_request *o, int dir, int conn, struct err *e)
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
		layer_writer(o, dir, conn, pair[1]);
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
