/* launch.h - turns a spec into a running box.
 * Owns:         the order of isolation (the step table) and the moments before init runs.
 * Does not own: the box afterwards; the keeper watches its pidfd, names it and ends it. */
#pragma once
#include "base/err.h"
#include <stdint.h>
#include <sys/types.h>

struct seccomp;
struct spec;

#define JAIL_RANGE 65536   /* host ids per box */
#define JAIL_USER 1000     /* the box's user, seen from inside */
#define JAIL_INIT_ID 65533 /* its PID 1: an id that no user code gets */
#define JAIL_FD_HIGH 128   /* a new box closes all from here on: the keeper's long-lived ones */

/* Tier process: a folder of /tmp with a name as long as that of the home folder, so that init can replace one by the
 * other in place. */
#define JAIL_HOME "/home/user"
enum { JAIL_FOLDER = sizeof(JAIL_HOME) };

#define JAIL_IMAGES 5  /* disks with layers of a virtual machine */
#define JAIL_LOWERS 84 /* 16 of checkpoints, four layers of packages, 64 of a root */

/* Folders of the host that boxes see: "usr", read-only unless host_writable, and "var/lib/dpkg", only with it. */
enum { JAIL_HOST_FOLDERS = 2 };
extern const char *const jail_host_folders[JAIL_HOST_FOLDERS]; /* without the first slash */

struct jail_lower {                 /* a read-only tree below the box's root */
	int mount;                  /* detached, ro,nosuid,nodev; its ids are shifted here */
	int has[JAIL_HOST_FOLDERS]; /* it has such a folder, which is no link */
};

/* Tiers to which a row of the launch table applies; the bits of enum wire_tier. */
enum {
	JAIL_CONTAINER = 1 << 0,
	JAIL_PLAIN = 1 << 1,
	JAIL_PROCESS = 1 << 2,
	JAIL_GVISOR = 1 << 3,
	JAIL_MICROVM = 1 << 4,
	JAIL_ALL = (1 << 5) - 1,
};

enum { JAIL_ENGINE_FD = 8, JAIL_ENGINE_FDS = 24, JAIL_ENGINE_ARGS = 96 };

/* The only program of an outer box. mux is started in the place of init, with these additions. */
struct jail_engine {
	unsigned tier; /* one of the bits above */
	const char *const
		*argv; /* command line of the engine, NULL-terminated: mux gets it after "--".
				  * NULL: mux is the engine (plain), or there is none (process) */
	int fds[JAIL_ENGINE_FDS]; /* become JAIL_ENGINE_FD, + 1, ... of mux, which the engine inherits */
	unsigned nfds;
	const struct seccomp *filter; /* NULL: that of a container box */
	unsigned user_namespaces;     /* the engine may make so many; in a container 0 */
	void *own;                    /* of the tier: struct tier.release */
};

struct spec {
	/* clang-format off */
	char id[16];
	const struct jail_engine *engine; /* NULL: a container box */
	uint64_t layers;    /* bits of enum jail_feature to apply; probed before, never guessed */
	uint32_t uid_base;  /* first host id of its range */
	uint64_t disk_bytes, disk_files;
	struct {
		int mount;        /* detached, nosuid,nodev; its ids are shifted here */
		const char *path; /* plain and absolute; checked by the caller */
	} volumes[4];
	unsigned nvolumes;
	int secrets;        /* a tmpfs for files with secrets: /run/secrets */
	struct jail_lower lowers[JAIL_LOWERS]; /* the first on top */
	unsigned nlowers;
	int images[JAIL_IMAGES]; /* for an engine with a kernel of its own: layers as erofs images,
				  * the first on top; never mounted on the host */
	unsigned nimages;
	int images_are_root; /* they are its whole root */
	int image;          /* the lowers are its whole root: only a small skeleton lies above
			     * them, and the host's /usr is not in it */
	int host_writable;  /* the folders of the host can be changed, in the box's own layer; not
			     * with image */
	int disk;           /* detached mount for the box's disk, or -1: a tmpfs of that size */
	int cgroup;         /* cgroup v2: the directory in which it is created; else -1 */
	int tasks[6];       /* cgroup v1: `tasks` files to enter before anything else */
	int ntasks;
	/* If set: called while the namespaces exist and the child waits, to provide the above.
	 * Making cgroups and cloning namespaces take about as long, and can run in parallel. */
	int (*bring_tasks)(struct spec *sp, struct err *e);
	void *bring_arg;
	int net;            /* a network namespace that was made before (net.h), or -1: make one */
	int net_is_clean;     /* it is new, or net_same() has checked it since its last box */
	int want_mounts;    /* the caller is to hold its mount namespace, too */
	int proc;           /* the host's /proc, for maps */
	int keeper;         /* pidfd of the calling process */
	int init_exe;       /* sealed memfd: of init, with an engine that of mux */
	int keeper_conn, listener; /* become descriptors 3 and 4 of init */
	int landlock_abi;
	int warm;         /* an interpreter will be forked into it from outside */
	int supervisor;     /* tier process: sealed memfd, the image that becomes the parent of init; else -1 */
	int at_home;        /* its user will write to the home folder at once */
	int allow_root;     /* execs as the image's root are allowed */
	const struct seccomp *filter;
	uint64_t without;   /* test builds: rows to leave out */
	/* clang-format on */
};

struct jailed {
	pid_t pid;  /* in our pid namespace */
	int pidfd;  /* O_CLOEXEC, the caller's; so is the next */
	int mounts; /* its mount namespace, if requested; else -1 */
};

/* Blocks its thread until init runs. Any failed row ends the start: there is no partly isolated
 * box. Needs the keeper root of mnt.h. Thread-safe as long as each thread has its own spec. */
must_check int jail_launch(struct spec *sp, struct jailed *out, struct err *e);

/* Test builds: the next box gets its namespace without a check. */
int jail_trusts_network(const struct spec *sp);

/* The rows, for `atoll policy` and for tests (`--without NAME`). */
struct jail_step_row {
	const char *name, *why;
	unsigned tiers; /* bits: JAIL_CONTAINER ... */
};
extern const struct jail_step_row *const jail_step_rows;
extern const unsigned jail_nsteps;
