/* host_state.c - see host_state.h. */
#include "keeper/host_state.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "jail/launch.h"
#include "jail/feature.h"
#include "jail/mnt.h"
#include "jail/user.h"
#include "keeper/box_record.h"
#include "keeper/netns_pool.h"
#include "keeper/layer_store.h"
#include "keeper/root_table.h"
#include "keeper/template.h"
#include "tier/gvisor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOCK_TRIES = 200, LOCK_WAIT_US = 5000, OPEN_MOST = 256, FILES_RESERVED = 1024 };

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif

extern const char init_image[], init_image_end[];       /* init_image.S */
extern const char mux_image[], mux_image_end[];         /* mux_image.S */
extern const char preload_image[], preload_image_end[]; /* preload_image.S */

static char shared_tiers[200]; /* empty: <state>/tiers */
static uint64_t features_off;  /* of test builds */

/* Test builds: ATOLL_TEST_TIERS is a folder with prepared files that many tests share; ATOLL_TEST_FEATURES_OFF has names of
 * features, which the keeper then does not find on this host. */
static void host_read_test_settings(void)
{
#ifdef ATOLL_TEST
	const char *shared = getenv("ATOLL_TEST_TIERS"), *off = getenv("ATOLL_TEST_FEATURES_OFF");

	snprintf(shared_tiers, sizeof(shared_tiers), "%s", shared ? shared : "");
	for (unsigned i = 0; off && i < FEATURE_COUNT; i++)
		if (strstr(off, jail_features[i].name))
			features_off |= FEATURE_BIT(i);
#endif
}

static void host_harden(int rootless)
{
	struct rlimit files;

	/* Boxes would inherit signals that the parent ignored (INT and QUIT in a background job of
	 * a shell). */
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	setsid(); /* so that boxes inherit no terminal; fails only if this process is a session
		   * leader already */
	/* Without root, /proc/PID/uid_map is writable only if the process is dumpable. */
	prctl(PR_SET_DUMPABLE, rootless);
	host_read_test_settings();
	/* Boxes inherit no descriptor and no environment of the parent either. */
	syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
	for (char **v = environ; v && *v; v++)
		memset(*v, 0, strlen(*v));
	clearenv();
	umask(077);
	/* Not 0: then boxes could not have 1, and with 0 a core handler that is a pipe would still
	 * be started. */
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 1, 1 });
	/* Three descriptors per box, and twenty more per box whose files stay open. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

void host_use_reserve(const struct host_state *h, int on)
{
	struct rlimit files = { .rlim_cur = on ? h->files_hard : h->files_most,
				.rlim_max = h->files_hard };

	setrlimit(RLIMIT_NOFILE, &files);
}

static void set_reserve(struct host_state *h)
{
	struct rlimit files = { 0 };
	char text[24] = "";
	auto_fd int fd = openat(h->proc, "sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);

	getrlimit(RLIMIT_NOFILE, &files);
	h->files_hard = files.rlim_max;
	h->files_most = (unsigned)(files.rlim_max < 1u << 30 ? files.rlim_max : 1u << 30);
	h->files_most -= h->files_most / 8 < FILES_RESERVED ? h->files_most / 8 : FILES_RESERVED;
	host_use_reserve(h, 0);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = 0;
	h->pids_most = (unsigned)strtoul(text, NULL, 10);
	if (!h->pids_most)
		h->pids_most = 32768;
}

/* A third of all descriptors at most. */
static unsigned open_most(void)
{
	struct rlimit files = { 0 };

	getrlimit(RLIMIT_NOFILE, &files);
	return files.rlim_cur / 64 < OPEN_MOST ? (unsigned)(files.rlim_cur / 64) : OPEN_MOST;
}

static int open_run_dir(struct host_state *h, const char *run_dir, struct err *e)
{
	static const char *const below[] = { "boxes", "stage" };

	if (mkdir(run_dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make run folder %s", run_dir);
	h->run = open(run_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (h->run < 0)
		return err_sys(e, "open run folder %s", run_dir);
	for (unsigned i = 0; i < ARRAY_LEN(below); i++)
		if (mkdirat(h->run, below[i], 0700) < 0 && errno != EEXIST)
			return err_sys(e, "make %s/%s", run_dir, below[i]);
	h->lock = openat(h->run, "keeper.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (h->lock < 0)
		return err_sys(e, "open %s/keeper.lock", run_dir);
	/* A child of a killed keeper may hold the lock until it has noticed. */
	for (int tries = 0; flock(h->lock, LOCK_EX | LOCK_NB) < 0; tries++) {
		if (tries == LOCK_TRIES)
			return err_set(e, ERR_CONFLICT, "another keeper runs in %s", run_dir);
		usleep(LOCK_WAIT_US);
	}
	return 0;
}

/* Boxes run only these executables of Atoll; they are sealed, so that no box can change them for
 * others. */
static int host_seal_image(const char *name, const char *image, size_t size, int *out_fd,
			   struct err *e)
{
	int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	auto_fd int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	if (fd < 0 && errno == EINVAL) /* before 6.3 */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || write(fd, image, size) != (ssize_t)size)
		return err_sys(e, "write the image of %s", name);
	/* Execute-only: a process that may not read its own image is never dumpable. */
	if (fchmod(fd, 0111) < 0)
		return err_sys(e, "mode of the image of %s", name);
	if (fcntl(fd, F_ADD_SEALS, seals | F_SEAL_EXEC) < 0 && fcntl(fd, F_ADD_SEALS, seals) < 0)
		return err_sys(e, "seal the image of %s", name);
	*out_fd = steal_fd(&fd);
	return 0;
}

int host_seal_images(int *out_init, int *out_mux, struct err *e)
{
	if (host_seal_image("init", init_image, (size_t)(init_image_end - init_image), out_init,
			    e) < 0)
		return -1;
	return host_seal_image("mux", mux_image, (size_t)(mux_image_end - mux_image), out_mux, e);
}

/* Before the keeper leaves the host's mounts, where the engines are. */
static int host_start_tiers(struct host_state *h, const char *state_dir, struct err *e)
{
	struct tier_host *t = &h->tier_host;

	snprintf(t->dir_path, sizeof(t->dir_path), "%s%s",
		 shared_tiers[0] ? shared_tiers : state_dir, shared_tiers[0] ? "" : "/tiers");
	if (mkdir(t->dir_path, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make %s", t->dir_path);
	t->dir = open(t->dir_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->dir < 0)
		return err_sys(e, "open %s", t->dir_path);
	t->init_exe = h->init_exe;
	t->rootless = h->rootless;
	t->features = h->layers;
	h->tier_service = host_service_start(h, HOST_TIERS, e);
	return h->tier_service < 0 ? -1 : 0;
}

/* A host without namespaces: this keeper starts no containers, only boxes of the tier process, if the operator allows
 * that. */
static int host_without_namespaces(struct host_state *h, const char *feature, struct err *e)
{
	const char *why = h->probe.why_not[0]     ? h->probe.why_not
			  : h->cgroups.why_not[0] ? h->cgroups.why_not
						  : "not permitted";

	if (!h->tier_host.process)
		return err_set(
			e, ERR_DENIED,
			"this host offers no %s (%.100s); see: atoll doctor, or allow the weaker tier "
			"process: isolation.process = true",
			feature, why);
	snprintf(h->tier_host.no_namespaces, sizeof(h->tier_host.no_namespaces),
		 "this host offers no %s (atoll doctor names the setting)", feature);
	return 0;
}

static int check_layers(struct host_state *h, struct err *e)
{
	h->layers = (h->probe.layers | h->cgroups.layers) & ~features_off;
	if (!h->probe.merged_usr)
		return err_set(e, ERR_DENIED,
			       "/bin is not a link into /usr: boxes need a merged /usr");
	for (unsigned i = 0; i < FEATURE_COUNT && !h->tier_host.no_namespaces[0]; i++)
		if (jail_features[i].mandatory && !(h->layers & FEATURE_BIT(i)) &&
		    host_without_namespaces(h, jail_features[i].name, e) < 0)
			return -1;
	if (h->tier_host.no_namespaces[0])
		h->layers &= ~tier_find(WIRE_TIER_PROCESS)->features_off;
	return 0;
}

static int build_keeper_root(const struct host_state *h, const char *run_dir, struct err *e)
{
	auto_fd int root = -1, skeleton = -1, image = -1, engine = -1;
	int rootless = h->rootless;
	char at[4096];

	snprintf(at, sizeof(at), "%s/stage", run_dir);
	umask(022); /* boxes read the skeleton; everything else is created private */
	if (keeper_root_begin(at, rootless, &root, e) < 0)
		return err_in(e, "keeper root");
	skeleton = openat(root, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	image = openat(root, "i", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	engine = openat(root, "e", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (skeleton < 0 || image < 0 || engine < 0)
		return err_sys(e, "open the skeleton");
	if (template_base(skeleton, rootless, e) < 0 || template_image(image, rootless, e) < 0)
		return -1;
	if (gvisor_write_files(engine, !!(h->layers & FEATURE_BIT(FEATURE_OVERLAY)),
			       h->tier_host.mux_exe, h->init_exe, e) < 0 ||
	    gvisor_write_preload(engine, preload_image, (size_t)(preload_image_end - preload_image),
				 e) < 0)
		return err_in(e, "files of engines");
	umask(077);
	return keeper_root_end(root, e);
}

/* Two keepers of one host have two run folders, and must not use each other's cgroups. */
static void cgroup_name(const char *run_dir, char *out, size_t size)
{
	if (strcmp(run_dir, "/run/atoll") == 0)
		snprintf(out, size, "atoll");
	else
		snprintf(out, size, "atoll-%08x", id_hash(run_dir));
}

/* Without root, the keeper needs a user namespace for itself. */
static int host_own_namespace(struct host_state *h, struct err *e)
{
	struct err why;

	if (user_own_namespace(&why) == 0)
		return 0;
	snprintf(h->probe.why_not, sizeof(h->probe.why_not), "%.150s", why.msg);
	return host_without_namespaces(h, jail_features[FEATURE_USERNS].name, e);
}

static int host_start_layers(struct host_state *h, struct err *e)
{
	h->roots_dir = root_table_open(h->state_dir, e);
	if (h->roots_dir < 0)
		return -1;
	h->checkpoints_dir = checkpoint_store_open(h->state_dir, e);
	if (h->checkpoints_dir < 0)
		return -1;
	h->layers_dir = layer_store_open(h->state_dir, e);
	if (h->layers_dir < 0)
		return -1;
	h->layer_store = host_service_start(h, HOST_LAYERS, e);
	return h->layer_store < 0 ? -1 : 0;
}

/* The mounts of the host stay reachable for services that must be started again. */
static int host_leave_mounts(struct host_state *h, const char *run_dir, struct err *e)
{
	if (!h->rootless) {
		h->host_mounts = openat(h->proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
		if (h->host_mounts < 0)
			return err_sys(e, "mount namespace of the host");
	}
	return build_keeper_root(h, run_dir, e);
}

int host_init(struct host_state *h, const char *run_dir, const char *state_dir, int process,
	      struct err *e)
{
	char name[24];

	*h = (struct host_state){ .run = -1,
				  .records = -1,
				  .proc = -1,
				  .init_exe = -1,
				  .disks = -1,
				  .lock = -1,
				  .host_mounts = -1,
				  .layer_store = -1,
				  .procimages = -1,
				  .layers_dir = -1,
				  .roots_dir = -1,
				  .checkpoints_dir = -1,
				  .tier_service = -1,
				  .tier_host = { .dir = -1,
						 .init_exe = -1,
						 .mux_exe = -1,
						 .skeleton = -1,
						 .process = process } };
	h->rootless = geteuid() != 0;
	host_harden(h->rootless);
	h->open_most = open_most();
	if (h->rootless && host_own_namespace(h, e) < 0)
		return -1;
	if (open_run_dir(h, run_dir, e) < 0)
		return -1;
	h->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (h->proc < 0)
		return err_sys(e, "open /proc");
	set_reserve(h);
	h->self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (h->self < 0)
		return err_sys(e, "open a pidfd of this process");
	h->boot = box_record_boot(h->proc);
	h->state_dir = strdup(state_dir);
	if (!h->state_dir)
		abort();
	h->disks = host_service_start(h, HOST_DISKS, e);
	if (h->disks < 0 || (!h->rootless && host_start_layers(h, e) < 0))
		return -1;
	probe_host(&h->probe, !h->rootless);
	cgroup_name(run_dir, name, sizeof(name));
	if (cgroups_init(&h->cgroups, name, e) < 0 || check_layers(h, e) < 0)
		return -1;
	if (seccomp_compile(&h->filter, h->probe.core_piped ? SECCOMP_NO_CORE : 0, e) < 0 ||
	    host_seal_images(&h->init_exe, &h->tier_host.mux_exe, e) < 0 ||
	    host_start_tiers(h, state_dir, e) < 0)
		return -1;
	if (!h->rootless && !h->tier_host.no_namespaces[0]) {
		h->procimages = host_service_start(h, HOST_IMAGES, e);
		if (h->procimages < 0)
			return -1;
	}
	if (!h->tier_host.no_namespaces[0] && host_leave_mounts(h, run_dir, e) < 0)
		return -1;
	if (!h->rootless && !h->tier_host.no_namespaces[0])
		h->netns_pool = netns_pool_new(h->proc, h->open_most);
	if (fchdir(h->run) < 0)
		return err_sys(e, "enter the run folder");
	return 0;
}
