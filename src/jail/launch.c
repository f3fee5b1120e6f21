/* launch.c - turns a spec into a running box.
 *
 *   launcher thread                            child
 *   becomes the range's first id
 *   clone3(VM|NEW*) ------------------------>  waits for GO
 *   becomes itself again
 *   writes the id maps, shifts
 *   ids, brings cgroups; GO ---------------->  runs inside[], top to bottom
 *   waits for the child's tid                  execve(init), or err and exit
 *   word to become 0 <-----------------------  (the kernel clears it)
 *
 * Identity and network belong to a thread, not to its process: the keeper's other threads are
 * not affected. Launcher and child share one memory, so a failed row writes its error into the
 * shared launch context, and nothing is copied: the keeper's size does not matter. They share
 * the descriptor table until the child's first row. A row that fails ends the launch; what is
 * optional was probed before and is in spec.layers. */
#include "jail/launch.h"
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/clone.h"
#include "jail/landlock.h"
#include "jail/feature.h"
#include "jail/rlimits.h"
#include "jail/mnt.h"
#include "jail/seccomp.h"
#include "jail/steps.h"
#include "jail/user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PIDFD_GET_USER_NAMESPACE
#define PIDFD_GET_MNT_NAMESPACE _IO(0xFF, 3)
#define PIDFD_GET_PID_NAMESPACE _IO(0xFF, 5)
#define PIDFD_GET_USER_NAMESPACE _IO(0xFF, 9)
#endif
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

#define STACK 65536
#define START_TIMEOUT_S 20

struct launch_launch {
	struct launch_ctx ctx; /* first: rows get a pointer to it */
	struct spec *spec;     /* the same as ctx.sp, for resources that are added late */
	struct jailed box;
	_Atomic uint32_t go;  /* 1: maps are written; 2: give up */
	_Atomic uint32_t tid; /* of the child; the kernel clears it at exec and at death */
	_Atomic int execing;  /* the table is through */
	char stack_helper[STACK] __attribute__((aligned(16)));
	char stack_child[STACK] __attribute__((aligned(16)));
};

static long launch_futex(_Atomic uint32_t *word, int op, uint32_t value,
			 const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/* ---- the child's rows ---- */

static int launch_reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	return status;
}

static void raise_to(unsigned *first_unneeded, int fd)
{
	if (fd >= 0 && (unsigned)fd >= *first_unneeded)
		*first_unneeded = (unsigned)fd + 1;
}

/* The first number above all descriptors that the rows below use. JAIL_FD_HIGH, unless the keeper had so many
 * low ones open that the kernel gave this launch a number above it. */
static unsigned first_unneeded_fd(const struct launch_ctx *b)
{
	const struct spec *sp = b->sp;
	unsigned first = JAIL_FD_HIGH;

	for (int i = 0; i < sp->ntasks; i++)
		raise_to(&first, sp->tasks[i]);
	for (unsigned i = 0; i < sp->nvolumes; i++)
		raise_to(&first, sp->volumes[i].mount);
	for (unsigned i = 0; i < sp->nlowers; i++)
		raise_to(&first, sp->lowers[i].mount);
	for (unsigned i = 0; sp->engine && i < sp->engine->nfds; i++)
		raise_to(&first, sp->engine->fds[i]);
	raise_to(&first, sp->disk);
	raise_to(&first, sp->init_exe);
	raise_to(&first, sp->supervisor);
	raise_to(&first, sp->keeper_conn);
	raise_to(&first, sp->listener);
	raise_to(&first, b->layer_root);
	for (unsigned i = 0; i < JAIL_HOST_FOLDERS; i++)
		raise_to(&first, b->host[i]);
	raise_to(&first, b->proc);
	return first;
}

static int own_table(struct launch_ctx *b, struct err *e)
{
	if (syscall(SYS_close_range, first_unneeded_fd(b), ~0U, CLOSE_RANGE_UNSHARE) < 0)
		return err_sys(e, "unshare descriptors");
	return 0;
}

/* Before it has a file or a byte of its own, so that it is limited from the first moment. */
static int own_cgroups(struct launch_ctx *b, struct err *e)
{
	for (int i = 0; i < b->sp->ntasks; i++)
		/* "0": the calling process. A pid here would wait for a grace period of the
		 * kernel. */
		if (write(b->sp->tasks[i], "0", 1) != 1)
			return err_sys(e, "enter cgroup %d", i);
	return 0;
}

/* A cgroup namespace made by the clone would have the launcher's own cgroup as its root, above
 * all boxes. */
static int own_cgroup_view(struct launch_ctx *b, struct err *e)
{
	(void)b;
	if (unshare(CLONE_NEWCGROUP) < 0)
		return err_sys(e, "new cgroup namespace");
	return 0;
}

static int death_signal(struct launch_ctx *b, struct err *e)
{
	(void)b;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_sys(e, "parent death signal");
	return 0;
}

static int no_folder(struct launch_ctx *b, struct err *e)
{
	(void)b;
	umask(0); /* the modes in the rows below must not be masked; init sets its own mask */
	if (chdir("/") < 0)
		return err_sys(e, "chdir /");
	return 0;
}

/* The keeper has left its session (setsid costs a scheduler group, so it is not called per box):
 * here the child checks that it has no terminal. */
static int no_terminal(struct launch_ctx *b, struct err *e)
{
	auto_fd int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	(void)b;
	if (fd >= 0 || errno != ENXIO)
		return err_set(e, ERR_SYS, "the keeper's terminal would be inherited");
	return 0;
}

static int host_name(struct launch_ctx *b, struct err *e)
{
	(void)b;
	if (sethostname("atoll", 5) < 0)
		return err_sys(e, "sethostname");
	return 0;
}

static int resource_limits(struct launch_ctx *b, struct err *e)
{
	(void)b;
	return limits_apply(e);
}

#define INIT_CAPS (caps_kept_mask() | UINT64_C(1) << CAP_SETPCAP)

static int launch_bounds(struct launch_ctx *b, struct err *e)
{
	(void)b;
	/* SETPCAP stays outside the bounding set: init alone has it, to empty the bounding set
	 * of the programs it starts, and cannot pass it on. */
	return caps_inherit(INIT_CAPS, e) < 0 ? -1 : caps_bound(caps_kept_mask(), e);
}

static int launch_capabilities(struct launch_ctx *b, struct err *e)
{
	(void)b;
	return caps_over_exec(INIT_CAPS, e);
}

static int gvisor_bounds(struct launch_ctx *b, struct err *e)
{
	(void)b;
	return caps_bound(caps_gvisor_mask(), e);
}

/* mux stays root of the box, so that exec gives runsc these capabilities, too; mux drops its own
 * once runsc has been started. */
static int gvisor_capabilities(struct launch_ctx *b, struct err *e)
{
	(void)b;
	return caps_only(caps_gvisor_mask(), e);
}

/* QEMU and mux need none. */
static int microvm_bounds(struct launch_ctx *b, struct err *e)
{
	(void)b;
	return caps_bound(0, e);
}

static int microvm_capabilities(struct launch_ctx *b, struct err *e)
{
	(void)b;
	return caps_only(0, e);
}

static int no_new_privs(struct launch_ctx *b, struct err *e)
{
	(void)b;
	return caps_no_new_privs(e);
}

static int second_wall(struct launch_ctx *b, struct err *e)
{
	return landlock_apply(b->sp->landlock_abi, b->upper, !b->sp->warm, e);
}

/* 0-2 null, 3 first connection, 4 listener, 5 the writable layer, 6 the boot id, 7 the image that
 * is executed (closed by exec), from 8 on those of an engine. */
enum { IMAGE_FD = JAIL_ENGINE_FD - 1 };

/* A source that has one of the target numbers itself would be overwritten. */
static int out_of_the_way(int fd, unsigned ntargets)
{
	return fd >= (int)ntargets ? fd : fcntl(fd, F_DUPFD_CLOEXEC, (int)ntargets);
}

static int launch_descriptors(struct launch_ctx *b, struct err *e)
{
	const struct jail_engine *engine = b->sp->engine;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int from[JAIL_ENGINE_FD + JAIL_ENGINE_FDS] = { null,
						       null,
						       null,
						       b->sp->keeper_conn,
						       b->sp->listener,
						       b->upper < 0 ? null : b->upper,
						       b->boot < 0 ? null : b->boot,
						       b->sp->init_exe };
	unsigned n = JAIL_ENGINE_FD;

	if (null < 0)
		return err_sys(e, "open /dev/null");
	for (unsigned i = 0; engine && i < engine->nfds; i++)
		from[n++] = engine->fds[i];
	for (unsigned i = 0; i < n; i++) {
		from[i] = out_of_the_way(from[i], n);
		if (from[i] < 0)
			return err_sys(e, "hold descriptor for %u", i);
	}
	for (unsigned i = 0; i < n; i++)
		if (dup3(from[i], (int)i, i == IMAGE_FD ? O_CLOEXEC : 0) < 0)
			return err_sys(e, "place descriptor %u", i);
	if (syscall(SYS_close_range, n, ~0U, 0) < 0)
		return err_sys(e, "close the rest");
	return 0;
}

static int own_signals(struct launch_ctx *b, struct err *e)
{
	uint64_t none = 0;

	(void)b;
	/* exec resets handlers, but ignored and blocked signals would be inherited. */
	if (signal(SIGPIPE, SIG_DFL) == SIG_ERR ||
	    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none)) < 0)
		return err_sys(e, "signal mask");
	return 0;
}

static int load_filter(struct launch_ctx *b, struct err *e)
{
	return seccomp_apply(b->sp->filter, e);
}

static int load_engine_filter(struct launch_ctx *b, struct err *e)
{
	return seccomp_apply(b->sp->engine->filter ? b->sp->engine->filter : b->sp->filter, e);
}

static int launch_supervisor(struct launch_ctx *b, struct err *e);

/* Tiers of a row. An outer box has every row of a container, or a row in its place. */
enum {
	INITS = JAIL_CONTAINER | JAIL_PLAIN, /* init and its programs run in the box itself */
	ENGINES = JAIL_GVISOR | JAIL_MICROVM,
	BOXES = INITS | ENGINES,
	NOT_GVISOR = INITS | JAIL_MICROVM,
	EVERY = BOXES | JAIL_PROCESS,
};

static const struct launch_step {
	/* clang-format off */
	struct jail_step_row row;
	int (*run)(struct launch_ctx *b, struct err *e);
	uint64_t layer; /* run only if this feature is requested; 0: always */
} inside[] = {
#define ROW(n, w, t) { n, w, t }
	/* Until now the table is shared with the keeper: an open() would add to it. */
	{ ROW("own descriptors", "the child has its own table before it opens a file", EVERY), own_table, 0 },
	{ ROW("own cgroups", "every limit applies from the first moment", EVERY), own_cgroups, 0 },
	{ ROW("cgroup view", "the box's own cgroup is the root it sees", BOXES), own_cgroup_view,
	  FEATURE_BIT(FEATURE_CGROUP_NS) },
	{ ROW("working folder", "the keeper's folder and mask are not inherited", EVERY), no_folder, 0 },
	{ ROW("keyring", "session keyrings are inherited and not namespaced", EVERY), user_new_keyring, 0 },
	{ ROW("process session", "no terminal of the keeper", JAIL_PROCESS), process_session, 0 },
	{ ROW("process folder", "a new folder of /tmp, in place of the home folder", JAIL_PROCESS), process_folder, 0 },
	/* Until the child becomes root of the new namespace its uid is unmapped: mkdir() returns
	 * EOVERFLOW. */
	{ ROW("box root", "root of the box's own user namespace, no host id", BOXES), user_become_root,
	  FEATURE_BIT(FEATURE_UIDRANGE) },
	/* Before any mount, or the mounts below would appear on the host too. */
	{ ROW("private mounts", "no mount event leaves or enters", BOXES), mnt_private, 0 },
	{ ROW("host name", "the host's name is hidden", BOXES), host_name, FEATURE_BIT(FEATURE_UTS) },
	{ ROW("loopback", "lo up, nothing else: no route, no neighbour", BOXES), net_loopback,
	  FEATURE_BIT(FEATURE_NET) },
	{ ROW("network unused", "one that is used again is verified clean: no earlier box left a trace in it", BOXES), net_unused,
	  FEATURE_BIT(FEATURE_NET) },
	{ ROW("disk", "the box's writable bytes and files, bounded", BOXES), mnt_disk, 0 },
	/* Uses the keeper's mount namespace, so before the switch to the box's own. */
	{ ROW("root filesystem", "template below, the box's disk above", BOXES), mnt_root, 0 },
	{ ROW("volumes", "named disks, nosuid,nodev, owners shifted, where they were asked for; a tmpfs for secrets", BOXES), mnt_volumes, 0 },
	{ ROW("programs", "the host's /usr, read-only, in a template build an overlay of it; none in a root of an image", BOXES), mnt_usr, 0 },
	{ ROW("devices", "six nodes, own terminals, own shared memory; for QEMU /dev/kvm, too", NOT_GVISOR), mnt_dev, 0 },
	{ ROW("no sysfs", "processor counts instead of the kernel's object tree", NOT_GVISOR), mnt_sys, 0 },
	{ ROW("engine files", "mux, init and the configuration of runsc, read-only", JAIL_GVISOR), mnt_gvisor_files, 0 },
	{ ROW("engine root", "the root of the box becomes /box; around it the host's /usr, six nodes, two folders in memory", JAIL_GVISOR), mnt_gvisor_root, 0 },
	{ ROW("processes", "a /proc of the box's own pid namespace", BOXES), mnt_proc, 0 },
	/* Needs /proc/sys writable, which the next row ends; and after every detached mount, for
	 * the kernel counts those as mount namespaces. */
	{ ROW("namespace limits", "no nested namespaces, bounded inotify", INITS), mnt_ns_limits,
	  FEATURE_BIT(FEATURE_USERNS) },
	{ ROW("engine namespace limits", "as many user namespaces as the engine makes itself, none more", JAIL_MICROVM), mnt_engine_ns_limits,
	  FEATURE_BIT(FEATURE_USERNS) },
	{ ROW("runsc namespace limits", "as many namespaces of each kind as runsc makes itself, none more", JAIL_GVISOR), mnt_gvisor_ns_limits,
	  FEATURE_BIT(FEATURE_USERNS) },
	{ ROW("read-only proc", "no sysctl, and no place in the OOM order, can be written", NOT_GVISOR), mnt_proc_readonly, 0 },
	{ ROW("read-only sysctls", "runsc writes the id maps of its processes, and nothing else of /proc", JAIL_GVISOR), mnt_gvisor_sysctls, 0 },
	{ ROW("boot id", "the box's own, not the host's", BOXES), mnt_boot_id, 0 },
	{ ROW("masked proc", "kernel memory, keys, logs and other tenants' traces", BOXES), mnt_proc_masks, 0 },
	{ ROW("root switch", "host paths end here", BOXES), mnt_switch, 0 },
	{ ROW("root verified", "procfs is procfs, nothing propagates, / is the new root", BOXES), mnt_verify,
	  0 },
	{ ROW("no terminal", "no terminal of the host to write into", BOXES), no_terminal, 0 },
	{ ROW("resource limits", "descriptors, cores, locked memory, queues", EVERY), resource_limits, 0 },
	/* Needs CAP_SETPCAP, which the rows after it give up. */
	{ ROW("capability bounds", "what no process of the box can ever hold", INITS), launch_bounds, 0 },
	{ ROW("QEMU capability bounds", "what no process of the outer box can ever hold", JAIL_MICROVM), microvm_bounds, 0 },
	/* Groups, gid, uid, then read back: a failed drop must be noticed. */
	{ ROW("identity", "init's own id, no supplementary groups", NOT_GVISOR), user_become_init,
	  FEATURE_BIT(FEATURE_UIDRANGE) },
	{ ROW("capabilities", "init keeps what starting programs takes", INITS), launch_capabilities, 0 },
	{ ROW("QEMU capabilities", "none: neither QEMU nor mux needs one", JAIL_MICROVM), microvm_capabilities, 0 },
	{ ROW("runsc capability bounds", "what no process of the outer box can ever hold", JAIL_GVISOR), gvisor_bounds, 0 },
	{ ROW("runsc capabilities", "what building its sandbox and serving files takes", JAIL_GVISOR), gvisor_capabilities, 0 },
	{ ROW("process capability bounds", "what no process can ever hold; with root", JAIL_PROCESS), process_bounds, 0 },
	{ ROW("process identity", "with root a uid of its own; else that of the keeper", JAIL_PROCESS), process_identity, 0 },
	{ ROW("process capabilities", "none", JAIL_PROCESS), process_capabilities, 0 },
	/* The rows below run in a child of this process, which becomes init. The supervisor stays outside of the landlock
	 * domain, which cannot signal it. */
	{ ROW("process supervisor", "ends every descendant when init has ended", JAIL_PROCESS), launch_supervisor, 0 },
	{ ROW("process children", "init reads the list of its children, and nothing else of /proc", JAIL_PROCESS), process_children, 0 },
	/* After the ids have changed: the kernel clears it with them. */
	{ ROW("death signal", "ends with the keeper until init is executed", EVERY), death_signal, 0 },
	/* Without it, an unprivileged process may not load a filter at all. */
	{ ROW("no new privileges", "no setuid program can undo any of this", EVERY), no_new_privs, 0 },
	{ ROW("landlock", "a second barrier after the mounts", NOT_GVISOR), second_wall, FEATURE_BIT(FEATURE_LANDLOCK) },
	{ ROW("process landlock", "the only boundary for files: /usr can be read, the folder written, nothing else opened", JAIL_PROCESS), process_landlock, 0 },
	{ ROW("descriptors", "nothing open but null, two sockets, the box's layer, its boot id and what an engine needs", EVERY), launch_descriptors, 0 },
	{ ROW("signals", "nothing blocked or ignored", EVERY), own_signals, 0 },
	/* Last: the filter applies to the child too, and the rows above need calls that it
	 * forbids. */
	{ ROW("system calls", "the allowlist; everything after inherits it", INITS), load_filter, 0 },
	{ ROW("engine system calls", "the allowlist of the engine; everything after inherits it", ENGINES), load_engine_filter, 0 },
	{ ROW("process system calls", "the strict allowlist, without sockets; everything after inherits it", JAIL_PROCESS), load_engine_filter, 0 },
#undef ROW
	/* clang-format on */
};

static struct jail_step_row step_rows[ARRAY_LEN(inside)];
const struct jail_step_row *const jail_step_rows = step_rows;
const unsigned jail_nsteps = ARRAY_LEN(inside);

__attribute__((constructor)) static void fill_rows(void)
{
	for (unsigned i = 0; i < ARRAY_LEN(inside); i++)
		step_rows[i] = inside[i].row;
}

static unsigned launch_tier(const struct spec *sp)
{
	return sp->engine ? sp->engine->tier : JAIL_CONTAINER;
}

static int left_out(const struct spec *sp, unsigned i)
{
#ifdef ATOLL_TEST
	return (sp->without >> i) & 1;
#else
	(void)sp;
	(void)i;
	return 0;
#endif
}

static int is_left_out(const struct spec *sp, int (*run)(struct launch_ctx *b, struct err *e))
{
	for (unsigned i = 0; i < ARRAY_LEN(inside); i++)
		if (inside[i].run == run)
			return left_out(sp, i);
	return 0;
}

int jail_trusts_network(const struct spec *sp)
{
	return is_left_out(sp, net_unused);
}

/* From b->row on. */
static int run_rows(struct launch_ctx *b)
{
	for (; b->row < ARRAY_LEN(inside); b->row++) {
		const struct launch_step *s = &inside[b->row];

		if (!(s->row.tiers & launch_tier(b->sp)) ||
		    (s->layer && !(b->sp->layers & s->layer)) || left_out(b->sp, b->row))
			continue;
		if (s->run(b, &b->err) < 0)
			return err_in(&b->err, "%s", s->row.name);
	}
	return 0;
}

/* Until its first row the child has the keeper's descriptors, its lock and its listener among
 * them. If the keeper is killed now they must not stay open: the death signal is set here, and
 * then the child checks whether the keeper has ended before. */
static int keeper_is_gone(const struct launch_launch *l)
{
	struct pollfd p = { .fd = l->ctx.sp->keeper, .events = POLLIN };

	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || poll(&p, 1, 0) != 0;
}

/* init's own arguments; mux has the same, and the command line of its engine. uid: memory for a number. */
static void launch_argv(const struct launch_ctx *b, char uid[12],
			const char *out[JAIL_ENGINE_ARGS + 5])
{
	const struct spec *sp = b->sp;
	const char *const *more = sp->engine ? sp->engine->argv : NULL;
	int process = launch_tier(sp) == JAIL_PROCESS;
	unsigned n = 0;

	snprintf(uid, 12, "%u", process ? process_uid(sp) : JAIL_USER);
	out[n++] = sp->engine && !process ? "mux" : "init";
	out[n++] = uid;
	out[n++] = sp->allow_root && !process ? "1" : "0";
	if (process)
		out[n++] = b->folder;
	if (more)
		out[n++] = "--";
	while (more && *more)
		out[n++] = *more++;
	out[n] = NULL;
}

static int launch_exec_init(struct launch_launch *l)
{
	const char *argv[JAIL_ENGINE_ARGS + 5];
	char *env[] = { NULL }, uid[12];

	launch_argv(&l->ctx, uid, argv);
	l->execing = 1;
	syscall(SYS_execveat, IMAGE_FD, "", argv, env, AT_EMPTY_PATH);
	l->execing = 0;
	return err_sys(&l->ctx.err, "exec init");
}

static int launch_init_main(void *arg)
{
	struct launch_launch *l = arg;

	l->ctx.row++;
	if (run_rows(&l->ctx) == 0)
		launch_exec_init(l);
	return 1;
}

/* Waits until the child of this process has executed init, or has ended. Returns only after a failure. */
static int launch_supervisor(struct launch_ctx *b, struct err *e)
{
	struct launch_launch *l = (struct launch_launch *)b;
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)l->stack_helper,
		.stack_size = STACK,
	};
	long pid = clone3_call(&args, sizeof(args), launch_init_main, l);

	if (pid < 0) {
		errno = (int)-pid;
		return err_sys(e, "clone init");
	}
	if (!l->execing) {
		launch_reap((pid_t)pid);
		return -1;
	}
	prctl(PR_SET_PDEATHSIG, 0); /* see child_main() */
	process_supervise(b, (pid_t)pid, e);
	l->execing = 0;
	kill((pid_t)pid, SIGKILL);
	launch_reap((pid_t)pid);
	return -1;
}

static int child_main(void *arg)
{
	struct launch_launch *l = arg;
	struct timespec patience = { .tv_sec = START_TIMEOUT_S };

	if (keeper_is_gone(l))
		return 1;
	while (l->go == 0)
		if (launch_futex(&l->go, FUTEX_WAIT_PRIVATE, 0, &patience) < 0 &&
		    errno == ETIMEDOUT)
			return 1;
	if (l->go != 1)
		return 1;
	if (run_rows(&l->ctx) < 0) {
		if (l->ctx.folder[0])
			rmdir(l->ctx.folder);
		return 1;
	}
	/* From here on the end of its first connection means to init that no client wants this box.
	 * The signal could not mean that: a keeper that exits after it has handed the box out, and
	 * before init was scheduled for the first time, would end a box that its client already
	 * has. If the keeper has exited by now, exec closes the descriptors of the keeper. */
	prctl(PR_SET_PDEATHSIG, 0);
	launch_exec_init(l);
	return 1;
}

/* ---- the launcher ---- */

static const struct {
	uint64_t layer, flag;
} namespaces[] = {
	{ FEATURE_BIT(FEATURE_USERNS), CLONE_NEWUSER },
	{ FEATURE_BIT(FEATURE_MOUNTS), CLONE_NEWNS },
	{ FEATURE_BIT(FEATURE_PIDS_NS), CLONE_NEWPID },
	{ FEATURE_BIT(FEATURE_NET), CLONE_NEWNET },
	{ FEATURE_BIT(FEATURE_IPC), CLONE_NEWIPC },
	{ FEATURE_BIT(FEATURE_UTS), CLONE_NEWUTS },
};

/* It belongs to the host, so it must be entered while the thread has the host's rights. */
static int enter_network(const struct spec *sp, struct err *e)
{
	if (setns(sp->net, CLONE_NEWNET) < 0)
		return err_sys(e, "enter the box's network");
	return 0;
}

/* A launcher that cannot return to its own network would start the next box in this one. */
static void leave_network(int home)
{
	if (setns(home, CLONE_NEWNET) < 0)
		abort();
}

static int clone_child(struct launch_launch *l, int has_network, struct err *e)
{
	const struct spec *sp = l->ctx.sp;
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_FILES | CLONE_PIDFD | CLONE_CHILD_SETTID |
			 CLONE_CHILD_CLEARTID,
		.exit_signal = SIGCHLD,
		.pidfd = (uint64_t)(uintptr_t)&l->box.pidfd,
		.child_tid = (uint64_t)(uintptr_t)&l->tid,
		.stack = (uint64_t)(uintptr_t)l->stack_child,
		.stack_size = STACK,
	};
	long pid;

	for (unsigned i = 0; i < ARRAY_LEN(namespaces); i++)
		if (sp->layers & namespaces[i].layer)
			args.flags |= namespaces[i].flag;
	if (has_network)
		args.flags &= ~(__u64)CLONE_NEWNET;
	if (sp->cgroup >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)sp->cgroup;
	}
	/* The child may run before the clone returns: it must find its own tid here, not 0. */
	l->tid = 1;
	pid = clone3_call(&args, sizeof(args), child_main, l);
	if (pid < 0) {
		errno = (int)-pid;
		return err_sys(e, "clone the box");
	}
	l->box.pid = (pid_t)pid;
	return 0;
}

static int clone_as_creator(struct launch_launch *l, int has_network, struct err *e)
{
	const struct spec *sp = l->ctx.sp;
	struct user_was was;
	int cloned;

	if (!(sp->layers & FEATURE_BIT(FEATURE_UIDRANGE)))
		return clone_child(l, has_network, e);
	if (user_become_creator(sp->uid_base, &was, e) < 0)
		return -1;
	cloned = clone_child(l, has_network, e);
	user_restore(&was);
	return cloned;
}

static int clone_box(struct launch_launch *l, struct err *e)
{
	static _Thread_local int home = -1;
	const struct spec *sp = l->ctx.sp;
	int cloned;

	if (sp->net < 0 || is_left_out(sp, net_loopback))
		return clone_as_creator(l, 0, e);
	if (home < 0)
		home = openat(sp->proc, "thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0)
		return err_sys(e, "open the network namespace of the keeper");
	if (enter_network(sp, e) < 0)
		return -1;
	cloned = clone_as_creator(l, 1, e);
	leave_network(home);
	return cloned;
}

/* A namespace of the box: from its pidfd (Linux 6.11), else by way of /proc. */
static int open_ns(const struct launch_launch *l, unsigned long from_pidfd, const char *name,
		   struct err *e)
{
	int fd = ioctl(l->box.pidfd, from_pidfd, 0);
	char path[40];

	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "%d/ns/%s", (int)l->box.pid, name);
	fd = openat(l->ctx.sp->proc, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "open the box's %s namespace", name) : fd;
}

static int shift_layers(struct launch_launch *l, struct err *e)
{
	const struct spec *sp = l->ctx.sp;
	auto_fd int userns = -1;

	if (!(sp->layers & FEATURE_BIT(FEATURE_IDMAP)))
		return sp->nvolumes || sp->nlowers || sp->image
			       ? err_set(e, ERR_SYS, "volumes and layers need shifted ids")
			       : 0;
	userns = open_ns(l, PIDFD_GET_USER_NAMESPACE, "user", e);
	if (userns < 0)
		return -1;
	for (unsigned i = 0; i < sp->nvolumes; i++)
		if (mnt_shift(sp->volumes[i].mount, userns, e) < 0)
			return err_in(e, "volume at %s", sp->volumes[i].path);
	for (unsigned i = 0; i < sp->nlowers; i++)
		if (mnt_shift(sp->lowers[i].mount, userns, e) < 0)
			return err_in(e, "layer %u", i);
	/* The ids of the skeleton only, which belongs to Atoll. /usr keeps its owners, none of
	 * which is mapped in the box: else the box's user would be the host's uid 1000, and its
	 * root the host's, for files that they alone may read. mnt_host.c prevents that in another
	 * way. */
	if (sp->host_writable && !sp->image && mnt_host_open(userns, l->ctx.host, e) < 0)
		return -1;
	return mnt_layer(sp->image ? "/i" : "/t", userns, &l->ctx.layer_root, e);
}

/* A procfs shows the pid namespace of the process that mounts it, and inside the box the kernel
 * allows the mount only while the host's own /proc is visible. So the launcher makes it. Linux
 * 6.17 takes the namespace as an option; before, a process with the launcher's rights is cloned
 * into it, leaves the detached mount in the shared descriptor table, and exits. */
static int proc_main(void *arg)
{
	struct launch_launch *l = arg;

	l->ctx.proc = mnt_new_proc(-1, &l->ctx.err);
	return 0;
}

static int make_proc_from_inside(struct launch_launch *l, struct err *e)
{
	static _Thread_local int home = -1;
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_FILES,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)l->stack_helper,
		.stack_size = STACK,
	};
	long pid;

	if (home < 0)
		home = openat(l->ctx.sp->proc, "thread-self/ns/pid_for_children",
			      O_RDONLY | O_CLOEXEC);
	if (home < 0 || setns(l->box.pidfd, CLONE_NEWPID) < 0)
		return err_sys(e, "step into the box's pid namespace");
	pid = clone3_call(&args, sizeof(args), proc_main, l);
	if (setns(home, CLONE_NEWPID) < 0)
		abort(); /* the next box would be created inside this one */
	if (pid < 0) {
		errno = (int)-pid;
		return err_sys(e, "clone into the box's pid namespace");
	}
	launch_reap((pid_t)pid);
	if (l->ctx.proc < 0)
		*e = l->ctx.err;
	return l->ctx.proc < 0 ? -1 : 0;
}

static int make_proc(struct launch_launch *l, struct err *e)
{
	static _Atomic int no_option;
	auto_fd int ns = -1;

	if (!(l->ctx.sp->layers & FEATURE_BIT(FEATURE_UIDRANGE)))
		return 0;
	if (!no_option) {
		ns = open_ns(l, PIDFD_GET_PID_NAMESPACE, "pid", e);
		l->ctx.proc = ns < 0 ? -1 : mnt_new_proc(ns, e);
		if (l->ctx.proc >= 0)
			return 0;
		no_option = 1;
	}
	return make_proc_from_inside(l, e);
}

static int prepare_child(struct launch_launch *l, struct err *e)
{
	const struct spec *sp = l->ctx.sp;

	if (sp->layers & FEATURE_BIT(FEATURE_USERNS) &&
	    user_write_maps(sp->proc, l->box.pid, sp->uid_base, e) < 0)
		return err_in(e, "id maps");
	if (shift_layers(l, e) < 0)
		return err_in(e, "template");
	if (make_proc(l, e) < 0)
		return err_in(e, "processes");
	if (sp->want_mounts) {
		l->box.mounts = open_ns(l, PIDFD_GET_MNT_NAMESPACE, "mnt", e);
		if (l->box.mounts < 0)
			return -1;
	}
	if (l->spec->bring_tasks && l->spec->bring_tasks(l->spec, e) < 0)
		return err_in(e, "own cgroups");
	return 0;
}

/* Waits until the child has executed init or has ended. */
static int await_exec(struct launch_launch *l, struct err *e)
{
	struct timespec patience = { .tv_sec = START_TIMEOUT_S };
	uint32_t tid;

	while ((tid = l->tid) != 0)
		if (launch_futex(&l->tid, FUTEX_WAIT, tid, &patience) < 0 && errno == ETIMEDOUT)
			return err_set(e, ERR_SYS, "start took more than %d s", START_TIMEOUT_S);
	if (l->execing)
		return 0;
	*e = l->ctx.err;
	return e->kind ? -1 : err_set(e, ERR_SYS, "the box exited during its set-up");
}

static void launch_abandon(struct launch_launch *l)
{
	syscall(SYS_pidfd_send_signal, l->box.pidfd, SIGKILL, NULL, 0);
	launch_reap(l->box.pid);
	own_close_fd(&l->box.pidfd);
	own_close_fd(&l->box.mounts);
}

static int launch_launch(struct launch_launch *l, struct err *e)
{
	int ready;

	if (clone_box(l, e) < 0)
		return -1;
	ready = prepare_child(l, e);
	l->go = ready == 0 ? 1 : 2;
	launch_futex(&l->go, FUTEX_WAKE_PRIVATE, 1, NULL);
	if (ready == 0)
		ready = await_exec(l, e);
	if (ready < 0)
		launch_abandon(l);
	return ready;
}

static int launch_engine_fits(const struct jail_engine *engine, struct err *e)
{
	unsigned n = 0;

	while (engine->argv && engine->argv[n] && n <= JAIL_ENGINE_ARGS)
		n++;
	if (n > JAIL_ENGINE_ARGS || engine->nfds > JAIL_ENGINE_FDS)
		return err_set(e, ERR_INVALID,
			       "an engine may have %d arguments and %d descriptors, not %u and %u",
			       JAIL_ENGINE_ARGS, JAIL_ENGINE_FDS, n, engine->nfds);
	return 0;
}

int jail_launch(struct spec *sp, struct jailed *out, struct err *e)
{
	static _Thread_local struct launch_launch
		*l; /* the stacks are kept: mapping them costs page faults */
	int done;

#ifndef ATOLL_TEST
	if (sp->without)
		return err_set(e, ERR_INVALID, "rows can be left out in test builds only");
#endif
	if (sp->engine && launch_engine_fits(sp->engine, e) < 0)
		return -1;
	/* Its mandatory features cannot be left out: without them a box would be a process of the host. */
	if (launch_tier(sp) != JAIL_PROCESS && !(sp->layers & FEATURE_BIT(FEATURE_USERNS)))
		return err_set(e, ERR_DENIED, "box %s: this host offers no user namespaces",
			       sp->id);
	if (!l) {
		l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
		if (l == MAP_FAILED) {
			l = NULL;
			return err_sys(e, "memory for a launch");
		}
	}
	l->spec = sp;
	l->ctx = (struct launch_ctx){
		.sp = sp, .layer_root = -1, .proc = -1, .root = -1, .upper = -1, .boot = -1
	};
	for (unsigned i = 0; i < JAIL_HOST_FOLDERS; i++)
		l->ctx.host[i] = -1;
	l->box = (struct jailed){ .pid = 0, .pidfd = -1, .mounts = -1 };
	l->go = l->tid = 0;
	l->execing = 0;
	done = launch_launch(l, e);
	own_close_fd(&l->ctx.layer_root);
	for (unsigned i = 0; i < JAIL_HOST_FOLDERS; i++)
		own_close_fd(&l->ctx.host[i]);
	own_close_fd(&l->ctx.proc);
	if (done < 0)
		return err_in(e, "box %s", sp->id);
	*out = l->box;
	return 0;
}
