/* landlock.c - see landlock.h.
 *
 * The mounts decide which files exist; landlock restricts what may be done with them even if a
 * mount were wrong. Every right that the kernel's ABI knows is handled, that is, denied, and the
 * rows allow some of it again. A right that a kernel does not know is left out: it can neither
 * deny nor allow it. */
#include "jail/landlock.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Debian 12's headers stop at ABI 2. The values are the kernel's and final. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#ifndef LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
#endif

#ifndef LANDLOCK_ACCESS_NET_BIND_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP (1ULL << 0)
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)
#endif

struct ruleset { /* struct landlock_ruleset_attr of ABI 6; older kernels take it if its end is 0 */
	uint64_t handled_fs, handled_net, scoped;
};

#define FS(right) LANDLOCK_ACCESS_FS_##right
#define READ (FS(EXECUTE) | FS(READ_FILE) | FS(READ_DIR))
#define WRITE                                                                                      \
	(FS(WRITE_FILE) | FS(TRUNCATE) | FS(REMOVE_DIR) | FS(REMOVE_FILE) | FS(MAKE_DIR) |         \
	 FS(MAKE_REG) | FS(MAKE_SOCK) | FS(MAKE_FIFO) | FS(MAKE_SYM) | FS(REFER))

const struct landlock_row landlock_rows[] = {
	{ "/", READ | WRITE, "read, execute, write, make, remove, rename",
	  "what should be hidden is not mounted; /usr, /dev, /proc/sys are read-only mounts" },
	{ "/", 0, "no device nodes", "no process gets MAKE_CHAR or MAKE_BLOCK" },
	{ "/dev", FS(IOCTL_DEV), "ioctl",
	  "six nodes and the box's own terminals; no other device, wherever its node is" },
	{ NULL, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, "no abstract sockets from outside",
	  "the network namespace separates them; this is a second barrier" },
	{ NULL, LANDLOCK_SCOPE_SIGNAL, "no signals to the outside",
	  "the pid namespace separates them; this is a second barrier" },
};
const unsigned landlock_nrows = ARRAY_LEN(landlock_rows);

/* Tier process: there are no mounts of its own, so these rows are the only boundary for files. */
#define ON_FILE (FS(EXECUTE) | FS(READ_FILE) | FS(WRITE_FILE) | FS(TRUNCATE))
const struct landlock_row landlock_process_rows[] = {
	{ "/usr", READ, "read, execute", "programs and libraries of the host" },
	{ "/etc/alternatives", READ, "read", "links of /usr lead through it" },
	{ "/etc/ld.so.cache", READ &ON_FILE, "read", "the dynamic loader" },
	{ "/etc/localtime", READ &ON_FILE, "read", "the time zone" },
	{ "/etc/passwd", READ &ON_FILE, "read", "names of users" },
	{ "/etc/group", READ &ON_FILE, "read", "names of groups" },
	{ "/etc/nsswitch.conf", READ &ON_FILE, "read", "where names are looked up" },
	{ "/dev/null", READ &ON_FILE, "read", "devices without a state" },
	{ "/dev/null", FS(WRITE_FILE), "write", "devices without a state" },
	{ "/dev/zero", FS(READ_FILE), "read", "devices without a state" },
	{ "/dev/random", FS(READ_FILE), "read", "devices without a state" },
	{ "/dev/urandom", FS(READ_FILE), "read", "devices without a state" },
};
const unsigned landlock_n_process_rows = ARRAY_LEN(landlock_process_rows);

/* Which ABI introduced which rights. On ABI 1 a file cannot be renamed into another directory:
 * that kernel rejects it (EXDEV, and programs copy) in every domain, because it cannot check it. */
static const struct {
	int abi;
	uint64_t fs, scopes;
} history[] = {
	{ 1, FS(MAKE_SYM) * 2 - 1, 0 }, /* bits 0 to 12 */
	{ 2, FS(REFER), 0 },
	{ 3, FS(TRUNCATE), 0 },
	{ 5, FS(IOCTL_DEV), 0 },
	{ 6, 0, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL },
};

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

static struct ruleset ruleset_for(int abi)
{
	struct ruleset rs = { 0 };
	uint64_t scopes = 0;

	for (unsigned i = 0; i < ARRAY_LEN(history); i++)
		if (abi >= history[i].abi) {
			rs.handled_fs |= history[i].fs;
			scopes |= history[i].scopes;
		}
	for (unsigned i = 0; i < landlock_nrows; i++)
		if (!landlock_rows[i].path)
			rs.scoped |= landlock_rows[i].bits & scopes;
	return rs;
}

uint64_t landlock_handled(int abi)
{
	return ruleset_for(abi).handled_fs;
}

static int add_folder(int ruleset, int fd, uint64_t rights, struct err *e)
{
	struct landlock_path_beneath_attr beneath = { .allowed_access = rights, .parent_fd = fd };

	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0)
		return err_sys(e, "landlock rule");
	return 0;
}

static int add_path(int ruleset, const char *path, uint64_t rights, struct err *e)
{
	auto_fd int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0; /* nothing there needs no right */
	if (fd < 0)
		return err_sys(e, "open %s", path);
	return add_folder(ruleset, fd, rights, e) < 0 ? err_in(e, "%s", path) : 0;
}

int landlock_apply(int abi, int layer, int alone, struct err *e)
{
	struct ruleset rs = ruleset_for(abi);
	auto_fd int fd = -1;

	if (!alone)
		rs.scoped = 0;
	if (abi <= 0)
		return 0;
	fd = (int)syscall(SYS_landlock_create_ruleset, &rs, sizeof(rs), 0);
	if (fd < 0)
		return err_sys(e, "landlock ruleset of ABI %d", abi);
	for (unsigned i = 0; i < landlock_nrows; i++) {
		const struct landlock_row *row = &landlock_rows[i];
		uint64_t rights = row->bits & rs.handled_fs;

		if (row->path && rights && add_path(fd, row->path, rights, e) < 0)
			return -1;
	}
	if (layer >= 0 && add_folder(fd, layer, FS(READ_FILE) | FS(READ_DIR), e) < 0)
		return -1;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return err_sys(e, "enter the landlock domain");
	return 0;
}

int landlock_process(int abi, const char *folder, struct err *e)
{
	struct ruleset rs = ruleset_for(abi);
	auto_fd int fd = -1;

	if (abi <= 0)
		return err_set(
			e, ERR_DENIED,
			"the kernel has no landlock, the only boundary for files in this tier");
	if (abi >= 4)
		rs.handled_net = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP;
	fd = (int)syscall(SYS_landlock_create_ruleset, &rs, sizeof(rs), 0);
	if (fd < 0)
		return err_sys(e, "landlock ruleset of ABI %d", abi);
	for (unsigned i = 0; i < landlock_n_process_rows; i++) {
		const struct landlock_row *row = &landlock_process_rows[i];

		if (add_path(fd, row->path, row->bits & rs.handled_fs, e) < 0)
			return -1;
	}
	if (add_path(fd, folder, (READ | WRITE) & rs.handled_fs, e) < 0)
		return -1;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return err_sys(e, "enter the landlock domain");
	return 0;
}

int landlock_confine(const char *folder, const char *readable, struct err *e)
{
	int abi = landlock_abi();
	const struct ruleset rs = ruleset_for(abi);
	auto_fd int fd = -1;

	if (abi <= 0)
		return 0;
	fd = (int)syscall(SYS_landlock_create_ruleset, &rs, sizeof(rs), 0);
	if (fd < 0)
		return err_sys(e, "landlock ruleset of ABI %d", abi);
	if (folder && add_path(fd, folder, (READ | WRITE) & ~FS(EXECUTE) & rs.handled_fs, e) < 0)
		return -1;
	if (readable && add_path(fd, readable, READ & ~FS(EXECUTE) & rs.handled_fs, e) < 0)
		return -1;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return err_sys(e, "enter the landlock domain");
	return 0;
}
