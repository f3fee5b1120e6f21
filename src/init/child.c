/* child.c - see child.h.
 *
 *   init                                  child
 *   clone(CLONE_VM | CLONE_VFORK)         runs inside[], top to bottom, on a stack of its own
 *     asleep until the child has    <---  execve: its memory is its own from here on
 *     its own memory, or is gone    <---  or a row failed: name and errno are in struct child_args
 *
 * The child shares init's memory, so it costs no page tables, and it can report a failure by
 * writing it into that memory. Credentials, descriptors, signal mask and limits belong to the
 * process, not to the memory: what the rows change, they change for the child alone.
 *
 * Already in force and inherited, since the launcher applied them to init: namespaces, cgroups,
 * limits, landlock, the system call filter. The rows only drop what init has beyond the user.
 * Once the uid is the user's, the user's other processes may signal the child, so a SIGSTOP at
 * that moment makes init wait: a box can freeze itself, and its owner ends it from outside. It
 * cannot be read or traced meanwhile, being non-dumpable until execve. */
#include "init/child.h"
#include "initlib/boot_id.h"
#include "init/exec_steps.h"
#include "init/params.h"
#include "initlib/shrink.h"
#include "initlib/sys.h"
#include "initlib/str.h"

enum { STACK = 16384, PAGE = 4096 };
enum { CHANNEL_FD = 3 };
enum { NEAR = 256 }; /* bytes of a path that fit on the stack's one page */
static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

static LAZY char child_stack[STACK] __attribute__((aligned(PAGE)));
static LAZY char far[PATH_MAX]; /* for longer paths; owned by the child while init sleeps */

long start_clone(unsigned long flags, void *stack_top, void (*run)(void *), void *arg);

/* The capabilities that the image's root may keep, and all that init itself has. */
static const uint8_t kept[] = { CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
				CAP_KILL,  CAP_SETGID,       CAP_SETUID, CAP_NET_BIND_SERVICE };

static uint32_t wanted_uid(const struct child_args *c)
{
	return c->ids ? c->uid : c->root ? 0 : self.user;
}

static uint32_t wanted_gid(const struct child_args *c)
{
	return c->ids ? c->gid : wanted_uid(c);
}

/* The whole box has one uid (rootless, or a test outside any box): there is no other user to
 * become, and no permission to. */
static int is_already(const struct child_args *c)
{
	return wanted_uid(c) == self.uid;
}

static int own_session(const struct child_args *c)
{
	long err;

	/* A new session costs a scheduler group, and without a terminal a process group is
	 * enough: init's own session has no terminal that a program could take. */
	if (!c->tty)
		return (int)sys_setpgid(0, 0);
	err = sys_setsid();
	if (err >= 0)
		err = sys_ioctl(c->stdio[0], TIOCSCTTY, 0);
	return err < 0 ? (int)err : 0;
}

/* After stdin, stdout and stderr, one of which may have this number until then; or it is init's
 * first connection, which the child does not use. */
static int own_channel(const struct child_args *c)
{
	long err = c->channel < 0             ? 0
		   : c->channel == CHANNEL_FD ? sys_fcntl(CHANNEL_FD, F_SETFD, 0)
					      : sys_dup3(c->channel, CHANNEL_FD, 0);

	return err < 0 ? (int)err : 0;
}

static int own_stdio(const struct child_args *c)
{
	int i;

	for (i = 0; i < 3; i++) {
		long err = c->stdio[i] == i ? 0 : sys_dup3(c->stdio[i], i, 0);

		if (err < 0)
			return (int)err;
	}
	return own_channel(c);
}

static int limit_file_size(const struct child_args *c)
{
	if (!c->fsize_bytes)
		return 0;
	return (int)sys_setrlimit(RLIMIT_FSIZE, c->fsize_bytes, c->fsize_bytes);
}

static int no_groups(const struct child_args *c)
{
	return is_already(c) ? 0 : (int)sys_setgroups(0, 0);
}

static int become_gid(const struct child_args *c)
{
	return is_already(c) ? 0 : (int)sys_setresgid(wanted_gid(c));
}

static int become_uid(const struct child_args *c)
{
	long err = is_already(c) ? 0 : sys_setresuid(wanted_uid(c));

	/* A change of uid sets the dumpable flag of the memory, which init shares, to
	 * fs.suid_dumpable. */
	return err < 0 ? (int)err : (int)sys_prctl(PR_SET_DUMPABLE, 0, 0);
}

static int read_back(const struct child_args *c)
{
	uint32_t uid[3], gid[3], want = wanted_uid(c);
	uint32_t want_gid = is_already(c) ? self.gid : wanted_gid(c);
	int i;

	if (sys_getresuid(uid) < 0 || sys_getresgid(gid) < 0)
		return -EPERM;
	for (i = 0; i < 3; i++)
		if (uid[i] != want || gid[i] != want_gid)
			return -EPERM;
	return is_already(c) || sys_getgroups(0, 0) == 0 ? 0 : -EPERM;
}

static int no_new_privs(const struct child_args *c)
{
	(void)c;
	return (int)sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
}

static int drop_bounds(const struct child_args *c)
{
	size_t i;

	for (i = 0; !c->root && i < ARRAY_LEN(kept); i++) {
		long err = sys_prctl(PR_CAPBSET_DROP, kept[i], 0);

		/* Outside a box (a test) init lacks the capability for it, and nothing is lost:
		 * with no_new_privs, the row above, the bounding set is never used. */
		if (err == -EPERM && is_already(c))
			return 0;
		if (err < 0)
			return (int)err;
	}
	return 0;
}

static int drop_caps(const struct child_args *c)
{
	struct __user_cap_data_struct have[2], want[2] = { 0 };
	uint32_t mask = 0;
	long ambient;
	size_t i;

	for (i = 0; c->root && i < ARRAY_LEN(kept); i++)
		mask |= 1u << kept[i];
	if (mask && sys_capget(have) < 0)
		return -EPERM;
	want[0].permitted = want[0].effective = mask ? mask & have[0].permitted : 0;
	/* Clears the inheritable set for both, and the ambient set with it: the kernel keeps the
	 * ambient set within the inheritable one. Cleared twice, because a capability left there
	 * survives execve. */
	ambient = sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0);
	if (ambient == -EINVAL) /* gVisor has no such set */
		ambient = 0;
	if (ambient < 0 || sys_capset(want) < 0 || sys_capget(have) < 0)
		return -EPERM;
	return memcmp(have, want, sizeof(have)) ? -EPERM : 0;
}

static int change_directory(const struct child_args *c)
{
	char near[NEAR], *cwd = near;
	long n = sys_chdir(*c->cwd ? c->cwd : self.home);

	if (n < 0)
		return (int)n;
	n = sys_getcwd(near, sizeof(near));
	if (n == -ERANGE) {
		cwd = far;
		n = sys_getcwd(far, sizeof(far));
	}
	if (n < 0)
		return (int)n;
	return *cwd == '/' ? 0 : -EXDEV; /* "(unreachable)..." */
}

static int default_signals(const struct child_args *c)
{
	(void)c;
	return (int)sys_sigmask(0); /* dispositions are the defaults since the start of init */
}

static int close_descriptors(const struct child_args *c)
{
	return (int)sys_close_range(c->channel < 0 ? 3 : CHANNEL_FD + 1, SYS_LAST_FD);
}

static const struct child_step {
	int (*run)(const struct child_args *c);
} inside[NROWS] = {
	/* Signals to the group must reach this exec alone, and a terminal needs a session. */
	[ROW_SESSION] = { own_session },
	[ROW_STDIO] = { own_stdio },
	[ROW_FILE_SIZE] = { limit_file_size },
	/* The launcher has set this already; the next row depends on it, so it is set here, too. */
	[ROW_NO_NEW_PRIVS] = { no_new_privs },
	/* Before the uid: where init is root (inside gVisor), a change of the uid takes the permission. */
	[ROW_BOUNDS] = { drop_bounds },
	/* Groups before gid before uid: each step gives up the permission for the one before. */
	[ROW_GROUPS] = { no_groups },
	[ROW_GID] = { become_gid },
	[ROW_UID] = { become_uid },
	/* A drop not verified is a hope. */
	[ROW_READ_BACK] = { read_back },
	[ROW_CAPS] = { drop_caps },
	/* As the user and without CAP_DAC_OVERRIDE, or a program could start in a directory that
	 * its user may not enter. */
	[ROW_DIRECTORY] = { change_directory },
	/* Late: from here on a signal may end the child, and the parent must be able to notice. */
	[ROW_SIGNALS] = { default_signals },
	/* All are close-on-exec; this closes one that by mistake is not. */
	[ROW_DESCRIPTORS] = { close_descriptors },
};

static int child_skipped(const struct child_args *c, int row)
{
#ifdef ATOLL_TEST
	return (int)(c->without >> row & 1);
#else
	(void)c;
	(void)row;
	return 0;
#endif
}

/* Runs rows first..last; on failure stores which one. */
static int run_rows(struct child_args *c, int first, int last)
{
	int row;

	for (row = first; row <= last; row++) {
		int err = child_skipped(c, row) ? 0 : inside[row].run(c);

		if (err < 0) {
			c->failed = inside_names[row];
			c->err = -err;
			return err;
		}
	}
	return 0;
}

/* execve of dir[0..n) and the name. */
static int execute_in(const char *dir, size_t n, char *const *argv, char *const *env)
{
	size_t room = n + 1 + strlen(argv[0]) + 1;
	char near[NEAR];
	struct text t = { .to = room <= NEAR ? near : far, .room = room, .len = n };

	if (room > sizeof(far))
		return -ENOENT; /* too long to exist */
	memcpy(t.to, dir, n);
	text_add(&t, n ? "/" : ""); /* an empty element is the current directory */
	text_add(&t, argv[0]);
	return (int)sys_execve(t.to, argv, env);
}

static const char *search_path(char *const *env)
{
	for (; *env; env++)
		if (text_starts(*env, "PATH="))
			return *env + 5;
	return default_path;
}

/* The rules of execvp: continue while a directory has no such file, and if all failed,
 * "permission denied" is reported before "not found". No shell is started for ENOEXEC. */
static int child_execute(char *const *argv, char *const *env)
{
	const char *name = argv[0], *dirs = search_path(env);
	int err = -ENOENT;
	size_t i;

	if (!*name)
		return -ENOENT;
	for (i = 0; name[i]; i++)
		if (name[i] == '/')
			return (int)sys_execve(name, argv, env);
	for (;;) {
		size_t n = 0;
		int now;

		while (dirs[n] && dirs[n] != ':')
			n++;
		now = execute_in(dirs, n, argv, env);
		if (now == -EACCES)
			err = now;
		else if (now != -ENOENT && now != -ENOTDIR)
			return now;
		if (!dirs[n])
			return err;
		dirs += n + 1;
	}
}

static void child_main(void *arg)
{
	struct child_args *c = arg;

	if (!run_rows(c, 0, NROWS - 1)) {
		c->err = -child_execute(c->argv, c->env);
		c->failed = "program";
	}
	sys_exit(127);
}

void child_drop_stack(void)
{
	slim_forget(child_stack, sizeof(child_stack));
}

int child_start(struct child_args *c)
{
	c->failed = NULL;
	c->err = 0;
	boot_due();
	return (int)start_clone(CLONE_VM | CLONE_VFORK | SIGCHLD, child_stack + STACK, child_main,
				c);
}

int child_become(int root)
{
	struct child_args c = { .root = root, .channel = -1 };

	return run_rows(&c, ROW_NO_NEW_PRIVS, ROW_CAPS);
}
