/* build_box.c - creates one box, on a builder thread.
 *
 * In an order that allows cleanup after a kill -9 at any point: first the record, then cgroups,
 * sockets and the process; the pid is written to the record before a client gets the box. If the
 * keeper dies before that, the box ends by itself (its first connection closes). */
#include "keeper/builder.h"
#include "base/cleanup.h"
#include "jail/launch.h"
#include "jail/feature.h"
#include "keeper/disk_service.h"
#include "keeper/netns_pool.h"
#include "keeper/warm_pool.h"
#include "keeper/layer_store.h"
#include "keeper/root_table.h"
#include "wire/sock.h"
#include "zygote/protocol.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(WIRE_OWNER_MAX == JAIL_INIT_ID - 1, "clients cannot give files to the id of init");

#define WARM_UP_MS 10000

/* v2: before the clone, because the process is created inside it. v1: if the loop has not created
 * it. */
static int make_cgroup(const struct host_state *h, const struct keeper_box *b, struct spec *sp,
		       struct err *e)
{
	struct box_limits lim = keeper_box_limits(b);

	if (cgroup_make(&h->cgroups, b->meta.cgroup, &lim, e) < 0)
		return -1;
	if (h->cgroups.version == 1) {
		sp->ntasks = cgroup_tasks(&h->cgroups, b->meta.cgroup, sp->tasks, e);
		if (sp->ntasks < 0)
			return -1;
	} else {
		sp->cgroup = cgroup_dir(&h->cgroups, b->meta.cgroup, e);
		if (sp->cgroup < 0)
			return -1;
	}
	return b->meta.about.tier == WIRE_TIER_MICROVM ? cgroup_permit_vm(&h->cgroups, sp, e) : 0;
}

/* Makes the kernel choose boxes first when the host is out of memory. Only after init has its own
 * memory: before that the child shares the memory of the keeper, whose score would be
 * raised, too. */
static int offer_to_oom(const struct host_state *h, pid_t pid, struct err *e)
{
	auto_fd int fd = -1;
	char path[40];

	if (h->rootless)
		return 0; /* without root the file of init is not writable; the record shows no
			   * memory limit anyway */
	snprintf(path, sizeof(path), "%d/oom_score_adj", (int)pid);
	fd = openat(h->proc, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "500", 3) != 3)
		return err_sys(e, "write 500 to %s", path);
	return 0;
}

/* Queues the START that came with the CREATE in the first connection of init, which executes it
 * without another message: the limits apply before init runs. Not for a box with a warm
 * interpreter, which must be announced first, nor for a guest, which first receives RESUME. */
static int start_waits(struct keeper_box *b, int to_init, struct err *e)
{
	if (!b->start || b->pool_class || tier_has_guest(b->meta.about.tier))
		return 0;
	b->started = 1;
	return keeper_box_start(b, to_init, e);
}

static int build_start_process(const struct host_state *h, struct keeper_box *b, struct spec *sp,
			       struct err *e)
{
	int pair[2] = { -1, -1 };
	struct jailed out = { 0, -1, -1 };
	char path[KEEPER_BOX_SOCKET];
	int done = -1;

	keeper_box_socket(b, path);
	sp->listener = sock_listen_new(path, 64, e);
	if (sp->listener >= 0 && sock_pair(pair, e) == 0 && start_waits(b, pair[0], e) == 0) {
		sp->keeper_conn = pair[1];
		done = jail_launch(sp, &out, e);
	}
	own_close_fd(&sp->listener);
	own_close_fd(&pair[1]);
	if (done < 0) {
		own_close_fd(&pair[0]);
		return -1;
	}
	b->init = pair[0];
	b->death.fd = out.pidfd;
	b->mounts = out.mounts;
	b->meta.about.init_pid = out.pid;
	b->meta.start_time = box_record_start_time(h->proc, out.pid, out.pidfd);
	if (keeper_box_lift(&b->init, e) < 0 || keeper_box_lift(&b->death.fd, e) < 0 ||
	    (b->mounts >= 0 && keeper_box_lift(&b->mounts, e) < 0))
		return -1;
	/* Not the supervisor: it ends the processes of its box. */
	return sp->supervisor < 0 ? offer_to_oom(h, out.pid, e) : 0;
}

/* Runs /bin/true in a box for the pool, so that pages of init, the loader and the first links of
 * the root are cached, and the first real program starts faster. */
static int warm_up(const struct keeper_box *b, struct err *e)
{
	static const char tail[] = "/\0/bin/true";
	static _Thread_local _Alignas(8) char bytes[WIRE_MAX];
	struct wire_start st = { .head = sock_head(WIRE_START, 1),
				 .argc = 1,
				 .tail_bytes = sizeof(tail) };
	struct frame forget = sock_head(WIRE_FORGET, 1);
	const struct wire_exit *x = (const void *)bytes;
	unsigned nfds = 0;
	int n;

	if (sock_send(b->init, &st, sizeof(st), tail, sizeof(tail), NULL, 0, e) < 0)
		return -1;
	if (poll(&(struct pollfd){ .fd = b->init, .events = POLLIN }, 1, WARM_UP_MS) <= 0)
		return err_set(e, ERR_SYS, "box %s does not answer", b->meta.about.id);
	n = sock_recv(b->init, bytes, NULL, &nfds, e);
	if (n < 0)
		return -1;
	/* The root of an image may have no such program. */
	if (n == 0 || x->head.type != WIRE_EXIT ||
	    (!b->root && (x->why != WIRE_WHY_EXIT || x->status != 0)))
		return err_set(e, ERR_SYS, "box %s cannot run /bin/true", b->meta.about.id);
	return sock_send(b->init, &forget, sizeof(forget), NULL, 0, NULL, 0, e);
}

int build_start_interpreter(const struct keeper_box *b, const struct warm_start *how, struct err *e)
{
	struct wire_zygote told = { .head = sock_head(WIRE_ZYGOTE, 0) };
	char words[160];
	int n = snprintf(words, sizeof(words), "%s%c", how->program, 0);

	if (how->option)
		n += snprintf(words + n, sizeof(words) - (size_t)n, "%s%c", how->option, 0);
	n += snprintf(words + n, sizeof(words) - (size_t)n, "%s%c%s", how->script, 0,
		      how->mode ? how->mode : "warm");
	snprintf(told.program, sizeof(told.program), "%s", how->program);
	return sock_send(b->init, &told, sizeof(told), words, (size_t)n + 1, NULL, 0, e);
}

/* Test builds: a file of this name in the run folder makes the set-up of the next child
 * fail, once. */
static uint64_t injected_fault(const struct host_state *h)
{
#ifdef ATOLL_TEST
	if (unlinkat(h->run, "zygote-fails", 0) == 0)
		return ZYGOTE_FAULT_REPORTED;
	if (unlinkat(h->run, "zygote-dies", 0) == 0)
		return ZYGOTE_FAULT_SILENT;
#endif
	(void)h;
	return 0;
}

static int build_fork_zygote(const struct host_state *h, const struct make_job *j,
			     const struct spec *sp, struct err *e)
{
	struct zygote_fork_args p = { .orders = j->orders,
				      .program = j->kind->program,
				      .box = j->box,
				      .spec = sp,
				      .waits = j->warm,
				      .without = j->zygote_without | injected_fault(h) };

	return zygote_fork(&p, e);
}

/* ---- the steps of one box ---- */

struct build {
	const struct host_state *h;
	struct make_job *j;
	struct keeper_box *b;
	struct spec sp; /* input of the launch; its descriptors are closed after the launch */
	struct jail_engine engine; /* of its tier */
};

static int build_record(struct build *x, struct err *e)
{
	return keeper_box_record(x->h, x->b, e);
}

static int build_disk(struct build *x, struct err *e)
{
	struct spec *sp = &x->sp;

	if (!x->b->meta.disk_image)
		return 0;
	return disk_make(x->h->disks, sp->disk_bytes, sp->disk_files, sp->uid_base,
			 x->j->disk_promised, &sp->disk, e);
}

static void build_close_disk(struct build *x)
{
	own_close_fd(&x->sp.disk);
}

static int build_volumes(struct build *x, struct err *e)
{
	struct spec *sp = &x->sp;

	for (; sp->nvolumes < x->b->meta.nmounts; sp->nvolumes++) {
		const struct wire_mount *m = &x->b->meta.mounts[sp->nvolumes];

		sp->volumes[sp->nvolumes].path = m->path;
		if (disk_volume_mount(x->h->disks, m->id, m->flags & WIRE_MOUNT_RO,
				      &sp->volumes[sp->nvolumes].mount, e) < 0)
			return -1;
	}
	return 0;
}

static void build_close_volumes(struct build *x)
{
	while (x->sp.nvolumes > 0)
		close(x->sp.volumes[--x->sp.nvolumes].mount);
}

/* Without links: a layer must not choose another folder. */
static int build_has_folder(int layer, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	auto_fd int fd = (int)syscall(SYS_openat2, layer, path, &how, sizeof(how));

	return fd >= 0;
}

static int build_image(struct build *x, const char *name, struct err *e)
{
	struct spec *sp = &x->sp;

	if (sp->nimages == JAIL_IMAGES)
		return err_set(
			e, ERR_LIMIT,
			"a box of the isolation tier %s has at most %d layers: merge those of "
			"the root",
			tier_name(x->b->meta.about.tier), JAIL_IMAGES);
	if (layer_store_image(x->h->layer_store, name, sp->uid_base, &sp->images[sp->nimages], e) <
	    0)
		return -1;
	sp->nimages++;
	return 0;
}

/* The launch has to know which layers have files for folders that are separate mounts. */
static void build_find_folders(struct jail_lower *l)
{
	for (unsigned i = 0; i < JAIL_HOST_FOLDERS; i++)
		l->has[i] = build_has_folder(l->mount, jail_host_folders[i]);
}

static int build_layer(struct build *x, const char *name, struct err *e)
{
	const struct tier *t = tier_find(x->b->meta.about.tier);
	struct jail_lower *l = &x->sp.lowers[x->sp.nlowers];

	if (t && t->images)
		return build_image(x, name, e);
	if (layer_store_mount(x->h->layer_store, name, &l->mount, e) < 0)
		return -1;
	x->sp.nlowers++;
	build_find_folders(l);
	return 0;
}

static int build_chain(struct build *x, struct err *e)
{
	for (uint32_t i = 0; i < x->b->meta.nchain; i++) {
		struct jail_lower *l = &x->sp.lowers[x->sp.nlowers];

		if (layer_store_checkpoint_mount(x->h->layer_store, x->b->meta.chain[i], &l->mount,
						 e) < 0)
			return -1;
		x->sp.nlowers++;
		build_find_folders(l);
	}
	return 0;
}

static int build_layers(struct build *x, struct err *e)
{
	const struct root *r = x->b->root;
	char merged[WIRE_LAYER_ID];

	if (build_chain(x, e) < 0)
		return -1;
	for (uint32_t i = 0; i < x->b->meta.nlayers; i++)
		if (build_layer(x, x->b->meta.layer[i], e) < 0)
			return -1;
	if (!r)
		return 0;
	if (tier_find(x->b->meta.about.tier) && tier_find(x->b->meta.about.tier)->images)
		x->sp.images_are_root = !r->base;
	else
		x->sp.image = !r->base;
	root_merged_name(r->id, merged);
	if (r->merged)
		return build_layer(x, merged, e);
	for (uint32_t i = 0; i < r->nlayers; i++)
		if (build_layer(x, r->layer[i], e) < 0)
			return -1;
	return 0;
}

static void build_close_layers(struct build *x)
{
	while (x->sp.nimages > 0)
		close(x->sp.images[--x->sp.nimages]);
	while (x->sp.nlowers > 0)
		close(x->sp.lowers[--x->sp.nlowers].mount);
}

/* A box being created closes descriptors above JAIL_FD_HIGH. */
static int lower_tasks(const struct make_job *j, struct spec *sp, struct err *e)
{
	for (; sp->ntasks < j->ntasks; sp->ntasks++) {
		int low = fcntl(j->tasks[sp->ntasks], F_DUPFD_CLOEXEC, 3);

		if (low < 0)
			return err_sys(e, "descriptor of a cgroup");
		sp->tasks[sp->ntasks] = low;
	}
	return 0;
}

static int build_cgroup(struct build *x, struct err *e)
{
	if (x->j->ntasks)
		return lower_tasks(x->j, &x->sp, e);
	if (x->b->meta.cgroup[0] && !x->j->cgroup)
		return make_cgroup(x->h, x->b, &x->sp, e);
	return 0;
}

static void build_close_cgroup(struct build *x)
{
	/* late_cgroup_end() closes those that the loop has created. */
	for (int i = 0; !x->j->cgroup && i < x->sp.ntasks; i++)
		close(x->sp.tasks[i]);
	x->sp.ntasks = 0;
	own_close_fd(&x->sp.cgroup);
}

static int build_network(struct build *x, struct err *e)
{
	struct keeper_box *b = x->b;
	struct spec *sp = &x->sp;

	if (!x->h->netns_pool || !(sp->layers & FEATURE_BIT(FEATURE_NET)))
		return 0;
	b->net_unchecked = jail_trusts_network(sp);
	b->net = netns_pool_take(x->h->netns_pool, b->net_unchecked, &sp->net_is_clean, e);
	sp->net = b->net ? net_ns(b->net) : -1;
	return sp->net < 0 ? -1 : 0;
}

static int build_engine(struct build *x, struct err *e)
{
	const struct wire_box *about = &x->b->meta.about;
	const struct tier *t = tier_find(about->tier);

	if (!x->j->facts)
		return 0;
	if (!t || !t->outer_box || x->h->tier_host.mux_exe < 0)
		return err_set(e, ERR_DENIED, "isolation tier %s: not in this build of Atoll",
			       tier_name(about->tier));
	x->engine.tier = 1u << about->tier;
	if (t->outer_box(&x->h->tier_host, x->j->facts, about, &x->sp, &x->engine, e) < 0)
		return err_in(e, "isolation tier %s", t->name);
	x->sp.engine = &x->engine;
	if (tier_has_guest(about->tier))
		x->sp.init_exe = x->h->tier_host.mux_exe;
	return 0;
}

static void build_release_engine(struct build *x)
{
	const struct tier *t = x->engine.tier ? tier_find(x->b->meta.about.tier) : NULL;

	if (t && t->release)
		t->release(&x->engine);
}

static int build_launch(struct build *x, struct err *e)
{
	struct spec *sp = &x->sp;

	sp->want_mounts = !x->h->rootless && sp->supervisor < 0 && sp->disk < 0 && !sp->nvolumes &&
			  !sp->nlowers && !sp->secrets && !sp->host_writable;
	return build_start_process(x->h, x->b, sp, e);
}

static int build_warm_up(struct build *x, struct err *e)
{
	return x->j->warm && !x->j->pool_class && !x->sp.engine ? warm_up(x->b, e) : 0;
}

static int build_interpreter(struct build *x, struct err *e)
{
	struct make_job *j = x->j;
	int made = 0;

	if (j->starts)
		made = build_start_interpreter(x->b, j->starts, e);
	else if (j->orders >= 0)
		made = build_fork_zygote(x->h, j, &x->sp, e);
	j->warm_pool_failed = made < 0;
	return made;
}

static int build_zygote(struct build *x, struct err *e)
{
	struct make_job *j = x->j;

	if (!j->home_of)
		return 0;
	return zygote_start(x->h, x->b, j->home_of->program, j->home_of->name, &j->zygote, e);
}

/* From top to bottom; a row that has nothing to do returns 0. undo releases what the row has opened for
 * the launch only: in reverse order, after success and after a failure. What belongs to the box
 * (record, cgroup, network, processes) is released by teardown.c, also after a failure. */
static const struct build_step {
	const char *name;
	int (*run)(struct build *x, struct err *e);
	void (*undo)(struct build *x); /* NULL: the row opens nothing that is not the box's */
} build_steps[] = {
	/* First: the next keeper finds all later resources by the record. */
	{ "record", build_record, NULL },
	{ "disk", build_disk, build_close_disk },
	{ "volumes", build_volumes, build_close_volumes },
	{ "layers", build_layers, build_close_layers },
	/* Before the launch: with v2 the process is created inside its cgroup. */
	{ "cgroup", build_cgroup, build_close_cgroup },
	{ "network", build_network, NULL },
	{ "engine", build_engine, build_release_engine },
	{ "launch", build_launch, NULL },
	/* After the launch: these rows talk to init. */
	{ "warm-up", build_warm_up, NULL },
	{ "interpreter", build_interpreter, NULL },
	{ "zygote", build_zygote, NULL },
};

/* Test builds: a file "build-fails-NAME" in the run folder makes this step fail, once. */
static int build_fault(const struct host_state *h, const struct build_step *step, struct err *e)
{
#ifdef ATOLL_TEST
	char name[64];

	snprintf(name, sizeof(name), "build-fails-%s", step->name);
	if (unlinkat(h->run, name, 0) == 0)
		return err_set(e, ERR_SYS, "fault in step '%s'", step->name);
#endif
	(void)h;
	(void)step;
	(void)e;
	return 0;
}

int build_box(const struct host_state *h, struct build_job *job, struct err *e)
{
	struct make_job *j = &job->make;
	struct keeper_box *b = j->box;
	struct build x = { .h = h,
			   .j = j,
			   .b = b,
			   .sp = {
				   .layers = b->meta.about.layers,
				   .uid_base = b->meta.about.uid_base,
				   .disk_bytes = b->meta.about.limits.disk_bytes,
				   .disk_files = b->meta.about.limits.disk_files,
				   .disk = -1,
				   .supervisor = -1,
				   .cgroup = -1,
				   .net = -1,
				   .proc = h->proc,
				   .keeper = h->self,
				   .init_exe = h->init_exe,
				   .listener = -1,
				   .landlock_abi = h->probe.landlock_abi,
				   .warm = b->pool_class != 0,
				   .at_home = b->pool_class || b->start,
				   .allow_root = !h->rootless,
				   .filter = &h->filter,
				   .without = j->without,
				   .secrets = !!(j->flags & WIRE_CREATE_SECRETS),
				   .host_writable = !!(j->flags & WIRE_CREATE_HOST_WRITABLE),
				   .bring_tasks = j->cgroup ? late_cgroup_wait : NULL,
				   .bring_arg = j->cgroup,
			   } };
	unsigned n = 0;
	int made = 0;

	memcpy(x.sp.id, b->meta.about.id, sizeof(x.sp.id));
	for (; made == 0 && n < ARRAY_LEN(build_steps); n++) {
		made = build_steps[n].run(&x, e);
		if (made == 0)
			made = build_fault(h, &build_steps[n], e);
	}
	while (n > 0)
		if (build_steps[--n].undo)
			build_steps[n].undo(&x);
	return made;
}
