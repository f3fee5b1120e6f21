/* request.c - requests of clients to the keeper: one handler per frame type. */
#include "base/id.h"
#include "base/cleanup.h"
#include "jail/launch.h"
#include "jail/feature.h"
#include "keeper/keeper_internal.h"
#include "wire/frame.h"
#include "wire/sock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MEM_MIN (4ull << 20)
#define DISK_MIN 65536ull
#define FILES_MIN 16ull
#define DISK_IMAGE_MIN (16ull << 20)
#define DISK_MAX (1ull << 40)

static void request_refuse(struct keeper *k, struct client *c, const struct frame *f,
			   enum err_kind kind, const char *what)
{
	struct err e;

	err_set(&e, kind, "%s", what);
	client_error(k, c->number, f->ref, &e);
}

/* ---- handing over a box ---- */

/* A box without its own cgroups has no cgroup limits; its record must show that. */
static void own_up(struct keeper_box *b)
{
	struct wire_box *about = &b->meta.about;

	about->limits.mem_bytes = about->limits.cpu_ms = 0;
	about->limits.cpu_milli = about->limits.pids = 0;
	about->layers &=
		~(FEATURE_BIT(FEATURE_MEM) | FEATURE_BIT(FEATURE_TASKS) | FEATURE_BIT(FEATURE_CPU));
}

/* Hands the box over to the client: its own cgroups, its state on disk, its connection. */
static int hand_over(struct keeper *k, struct keeper_box *b, const struct wire_limits *lim,
		     int idle, struct err *e)
{
	const struct cgroups *cs = &k->host.cgroups;
	struct frame keep = sock_head(WIRE_PERSIST, 0), adopt = sock_head(WIRE_JOIN_CGROUPS, 0);
	struct box_limits box_lim;
	int fds[CG_NCTL], n = 0, sent, same;

	same = memcmp(&b->meta.about.limits, lim, sizeof(*lim)) == 0;
	b->meta.about.limits = *lim;
	box_lim = keeper_box_limits(b);
	if (b->meta.cgroup[0]) {
		if (!same && cgroup_limit(cs, b->meta.cgroup, &box_lim, e) < 0)
			return -1;
		if (b->meta.about.state == WIRE_BOX_POOLED)
			cgroup_cache_restart_cpu(k, b);
	} else if (cs->version == 1 && !idle) {
		n = cgroup_cache_take(k, b, fds, e);
		if (n < 0)
			return -1;
	} else {
		own_up(b);
	}
	b->meta.about.state = WIRE_BOX_TAKEN;
	sent = keeper_box_record(&k->host, b, e);
	if (sent == 0 && n > 0)
		sent = sock_send(b->init, &adopt, sizeof(adopt), NULL, 0, fds, (unsigned)n, e);
	/* As in a new container box, a START before PERSIST does not claim the box for its client. */
	if (sent == 0 && tier_has_guest(b->meta.about.tier)) {
		b->started = b->start != NULL;
		sent = keeper_box_start(b, b->init, e);
	}
	if (sent == 0)
		sent = sock_send(b->init, &keep, sizeof(keep), NULL, 0, NULL, 0, e);
	if (sent == 0)
		sent = keeper_box_start(b, b->init, e);
	else if (b->started && e->sys == EPIPE)
		sent = 0; /* the box has already ended, and init has sent the EXIT on that
			   * connection */
	cgroup_cache_given(k, b, fds, n);
	return sent;
}

static void request_give(struct keeper *k, struct keeper_box *b, uint64_t client, uint32_t ref)
{
	struct wire_box out = b->meta.about;

	out.head = sock_head(WIRE_BOX, ref);
	if (b->awaited)
		b->waiters[b->nwaiters++] = (struct waiter){ client, ref };
	teardown_watch_cpu(k, b);
	client_send(k, client, &out, sizeof(out), b->init);
	/* If the client has disconnected, the box is not claimed and ends when this is closed. */
	own_close_fd(&b->init);
}

/* Ends a broken box; the client gets the error. */
static void give_up(struct keeper *k, struct keeper_box *b, uint64_t client, uint32_t ref,
		    struct err *e)
{
	if (e->sys == EPIPE)
		err_set(e, ERR_SYS,
			"the box ended before it was given to its client; repeat the request");
	client_error(k, client, ref, e);
	teardown_kill(k, b);
}

/* Fills in limits that are not in the request. A small memory limit gives a small disk, which then
 * stays in memory. */
static struct wire_limits request_resolve(const struct keeper *k, const struct wire_limits *want,
					  unsigned tier)
{
	struct wire_limits l = *want, d = k->common;

	l.mem_bytes = l.mem_bytes == WIRE_DEFAULT ? d.mem_bytes : l.mem_bytes;
	l.cpu_milli = l.cpu_milli == (uint32_t)WIRE_DEFAULT ? d.cpu_milli : l.cpu_milli;
	l.cpu_ms = l.cpu_ms == WIRE_DEFAULT ? d.cpu_ms : l.cpu_ms;
	l.pids = l.pids == (uint32_t)WIRE_DEFAULT ? d.pids : l.pids;
	if (tier == WIRE_TIER_PROCESS) /* has none: its folder is on a disk of the host */
		d.disk_bytes = d.disk_files = 0;
	l.disk_files = l.disk_files == WIRE_DEFAULT ? d.disk_files : l.disk_files;
	if (l.disk_bytes == WIRE_DEFAULT)
		l.disk_bytes = l.mem_bytes && l.mem_bytes / 2 < d.disk_bytes ? l.mem_bytes / 2
									     : d.disk_bytes;
	return l;
}

/* A limit is enforced or rejected; and if the host can enforce it, it must be given. */
static int request_enforceable(const struct keeper *k, enum jail_feature layer, const char *what,
			       uint64_t value, struct err *e)
{
	int can = !!(k->host.layers & FEATURE_BIT(layer));

	if (value && !can)
		return err_set(e, ERR_DENIED, "a %s limit cannot be enforced on this host: %.120s",
			       what, k->host.cgroups.why_not);
	if (!value && can)
		return err_set(e, ERR_INVALID, "a box must have a %s limit", what);
	return 0;
}

static int in_range(const char *what, uint64_t value, uint64_t least, uint64_t most, struct err *e)
{
	if (value && (value < least || value > most))
		return err_set(e, ERR_INVALID, "%s of %llu is not between %llu and %llu", what,
			       (unsigned long long)value, (unsigned long long)least,
			       (unsigned long long)most);
	return 0;
}

int request_limits_sane(const struct keeper *k, const struct wire_limits *l, struct err *e)
{
	if (request_enforceable(k, FEATURE_MEM, "memory", l->mem_bytes, e) < 0 ||
	    request_enforceable(k, FEATURE_TASKS, "process", l->pids, e) < 0 ||
	    request_enforceable(k, FEATURE_CPU, "cpu", l->cpu_milli, e) < 0)
		return -1;
	if (l->cpu_ms && !cgroups_can_count_cpu(&k->host.cgroups))
		return err_set(e, ERR_DENIED,
			       "a cpu time limit cannot be enforced on this host: %.120s",
			       k->host.cgroups.version ? "no cgroup controller 'cpuacct'"
						       : k->host.cgroups.why_not);
	if (in_range("memory limit", l->mem_bytes, MEM_MIN, 1ull << 50, e) < 0 ||
	    in_range("process limit", l->pids, 1, 4000000, e) < 0 ||
	    in_range("cpu limit (in thousandths)", l->cpu_milli, 10, 1024000, e) < 0)
		return -1;
	return 0;
}

static int limits_sane(const struct keeper *k, const struct wire_limits *l, unsigned tier,
		       struct err *e)
{
	if (tier == WIRE_TIER_PROCESS) {
		if (l->disk_bytes || l->disk_files)
			return err_set(
				e, ERR_DENIED,
				"a disk limit cannot be enforced in the isolation tier process");
		return request_limits_sane(k, l, e);
	}
	if (request_limits_sane(k, l, e) < 0 ||
	    in_range("disk limit", l->disk_bytes, DISK_MIN, DISK_MAX, e) < 0 ||
	    in_range("limit of files", l->disk_files, FILES_MIN, 1ull << 32, e) < 0)
		return -1;
	if (!l->disk_bytes || !l->disk_files)
		return err_set(e, ERR_INVALID,
			       "a box must have a disk limit, in bytes and in files");
	if (!keeper_box_disk_in_memory(l) && (l->disk_bytes < DISK_IMAGE_MIN || k->host.rootless))
		return err_set(
			e, ERR_DENIED,
			"disk limit of %llu: above half of the memory limit (%llu) it must be a disk "
			"image, which needs root and at least 16M",
			(unsigned long long)l->disk_bytes, (unsigned long long)l->mem_bytes);
	return 0;
}

int request_pool_limits(const struct keeper *k, const struct wire_limits *want,
			struct wire_limits *out, struct err *e)
{
	*out = request_resolve(k, want, WIRE_TIER_CONTAINER);
	return limits_sane(k, out, WIRE_TIER_CONTAINER, e);
}

int request_too_many(struct keeper *k, struct client *c, const struct frame *f)
{
	if (builder_waiting(k->builder) + k->nguests + k->nqueued < WAITING_MOST)
		return 0;
	request_refuse(k, c, f, ERR_LIMIT, "1024 requests wait for the keeper already; try again");
	return 1;
}

/* The START that came with a CREATE. */
struct along {
	void *start; /* or NULL */
	size_t len;
};

static int came_along(const struct client *c, const struct wire_create *w, struct along *out,
		      struct err *e)
{
	const struct frame *f = (const struct frame *)(w + 1);
	size_t len = c->len - sizeof(*w);

	*out = (struct along){ NULL, len };
	if (!len)
		return 0;
	if (frame_check(f, (uint32_t)len) < 0 || f->type != WIRE_START ||
	    f->flags & WIRE_START_MEMFD)
		return err_set(e, ERR_INVALID, "the START in the request is invalid");
	out->start = malloc(len);
	if (!out->start)
		abort();
	memcpy(out->start, f, len);
	return 0;
}

static void request_awaits(struct keeper_box *b, uint16_t create_flags)
{
	b->awaited = !!(create_flags & WIRE_CREATE_AWAIT);
	b->unread = b->awaited && !(create_flags & WIRE_CREATE_FIGURES);
}

static void create_new(struct keeper *k, const struct waiter *who, const struct wire_create *w,
		       struct along *take_along, const struct wire_limits *limits,
		       unsigned pool_class)
{
	struct build_job *j = build_job_new(BUILD_BOX);
	unsigned tier = wire_tier_of(w->head.flags);
	int idle = !tier && w->head.flags & WIRE_CREATE_IDLE;
	struct err e;

	j->client = who->client;
	j->ref = who->ref;
	j->make.start = take_along->start;
	j->make.start_len = take_along->len;
	j->make.flags = w->head.flags;
	j->make.without = w->without;
	j->make.zygote_without = w->zygote_without;
	j->make.facts = tier ? tier_facts_copy(k, tier) : NULL;
	warm_pool_for_job(k, j, pool_class);
	if (pool_begin_with(k, j, limits, k->host.cgroups.version != 0 && !idle, w, &e) < 0) {
		client_error(k, who->client, who->ref, &e);
		free(j->make.facts);
		own_close_fd(&j->make.orders);
		free(j->make.start);
		free(j);
	}
}

/* No warm interpreter could be started in the box. It is best effort, so a plain box is created
 * instead. */
static void create_plain(struct keeper *k, const struct build_job *j)
{
	const struct box_record *m = &j->make.box->meta;
	struct waiter who = { j->client, j->ref };
	struct wire_create w = { .head.flags = j->make.flags,
				 .without = j->make.without,
				 .nmounts = m->nmounts,
				 .nlayers = m->nlayers,
				 .nchain = m->nchain };
	struct along along = { steal(&j->make.box->start), j->make.box->start_len };

	fprintf(stderr, "atoll: keeper: %s; made without it\n", j->err.msg);
	memcpy(w.mounts, m->mounts, sizeof(w.mounts));
	memcpy(w.layer, m->layer, sizeof(w.layer));
	memcpy(w.chain, m->chain, sizeof(w.chain));
	memcpy(w.root, m->root, sizeof(w.root));
	memcpy(w.template, m->about.template, sizeof(w.template));
	create_new(k, &who, &w, &along, &m->about.limits, 0);
}

static void on_create(struct keeper *k, struct client *c, const struct frame *f)
{
	const struct wire_create *w = (const struct wire_create *)f;
	unsigned pool_class = 0, tier = wire_tier_of(f->flags);
	struct wire_limits limits = request_resolve(k, &w->limits, tier);
	struct waiter who = { c->number, f->ref };
	int idle = !!(f->flags & WIRE_CREATE_IDLE), admitted;
	struct along along;
	struct keeper_box *b;
	struct err e;

	if (!w->root[0] && (strnlen(w->template, sizeof(w->template)) == sizeof(w->template) ||
			    strcmp(w->template, "base") != 0)) {
		request_refuse(k, c, f, ERR_NOT_FOUND, "no such template; there is: base");
		return;
	}
	admitted = tier_admit(k, c, w, &limits, &e);
	if (admitted > 0)
		return;
	if (admitted < 0 || limits_sane(k, &limits, tier, &e) < 0 || volume_check(k, w, &e) < 0 ||
	    layer_check(k, w, &e) < 0 || root_check(k, w, &e) < 0 ||
	    checkpoint_check(k, w, &e) < 0 || came_along(c, w, &along, &e) < 0) {
		client_error(k, c->number, f->ref, &e);
		return;
	}
	/* A warm interpreter is preferred, not required; tier_pool.h has those of guests. */
	if (w->warm[0] && !tier)
		pool_class = warm_pool_class(k, w->warm, w->warm_group, w->root, &limits);
	if (pool_class && !warm_pool_wanted(k, pool_class))
		pool_class = 0; /* still loading, or not available */
	if (tier)
		b = tier_pool_take(k, w, &limits);
	else if (f->flags & (WIRE_CREATE_COLD | WIRE_CREATE_SECRETS | WIRE_CREATE_HOST_WRITABLE) ||
		 w->without || w->zygote_without || w->nmounts || w->nlayers || w->nchain)
		b = NULL;
	else if (w->root[0] && !pool_class)
		b = root_pool_take(k, w, &limits);
	else
		b = warm_pool_fits(k, pool_class, &limits) ? pool_take(k, pool_class) : NULL;
	if (!b && request_too_many(k, c, f)) {
		free(along.start);
		return;
	}
	if (!b) {
		k->misses++;
		create_new(k, &who, w, &along, &limits, pool_class);
		return;
	}
	k->hits++;
	if (w->root[0])
		memcpy(b->meta.about.template, w->template, sizeof(w->template));
	b->start = along.start;
	b->start_len = along.len;
	request_awaits(b, f->flags);
	if (hand_over(k, b, &limits, idle, &e) < 0)
		give_up(k, b, c->number, f->ref, &e);
	else
		request_give(k, b, c->number, f->ref);
	pool_refill(k);
}

void request_made(struct keeper *k, struct build_job *take_job)
{
	struct build_job *j = take_job;
	struct keeper_box *b = j->make.box;
	int is_foreign = j->for_pool && !node_number_is_own(b);
	struct err e;

	if (tier_has_guest(b->meta.about.tier) && !j->err.kind && !j->make.guest_reported &&
	    guest_wait_begin(k, j) == 0)
		return;
	if (tier_has_guest(b->meta.about.tier))
		guest_wait_booted(k);
	e = j->err;
	if (j->make.home_of) {
		warm_pool_box_created(k, j);
		return;
	}
	free(steal(&b->root));
	if (j->for_pool && !b->of_root_pool && !b->of_tier_pool) {
		k->pool_classes[j->make.pool_class].making--;
		k->pool_making--;
	}
	request_awaits(b, j->make.flags);
	if (j->make.pool_class && !e.kind)
		warm_pool_worked(k, j);
	if (!e.kind &&
	    (tier_has_guest(b->meta.about.tier) || keeper_watch(k, &b->death, &e) == 0)) {
		b->meta.about.state = j->for_pool ? WIRE_BOX_POOLED : WIRE_BOX_MAKING;
		/* The pid is written to disk before a client gets the box: here, or
		 * in hand_over(). */
		if (!j->for_pool || keeper_box_record(&k->host, b, &e) == 0) {
			if (b->of_root_pool) {
				if (!root_pool_created(k, b))
					teardown_kill(k, b);
			} else if (b->of_tier_pool) {
				tier_pool_created(k, b);
			} else if (j->for_pool) {
				if (!warm_pool_pooled(k, b))
					teardown_kill(k, b);
			} else if (hand_over(k, b, &b->meta.about.limits, !b->meta.cgroup[0], &e) <
				   0) {
				give_up(k, b, j->client, j->ref, &e);
			} else {
				request_give(k, b, j->client, j->ref);
			}
			if (is_foreign) /* the number changed while it was made */
				node_number_drop_others(k);
			free(j);
			return;
		}
	}
	if (j->make.warm_pool_failed && !j->make.zygote_without)
		warm_pool_failed(k, j);
	if (b->of_root_pool)
		root_pool_failed(k, b, &e);
	else if (b->of_tier_pool)
		tier_pool_failed(k, b, &e);
	else if (b->of_warm_pool)
		warm_pool_not_pooled(k, b, &e);
	else if (j->for_pool)
		pool_failed(k, &e);
	else if (j->make.warm_pool_failed && !j->make.zygote_without)
		create_plain(k, j);
	else
		client_error(k, j->client, j->ref, &e);
	teardown_discard(k, b);
	free(j);
}

/* ---- running boxes ---- */

struct keeper_box *request_named(struct keeper *k, struct client *c, const struct frame *f)
{
	const struct wire_id *w = (const struct wire_id *)f;
	struct keeper_box *b = NULL;

	if (strnlen(w->id, sizeof(w->id)) < sizeof(w->id) && id_valid(w->id))
		b = keeper_box_find(&k->boxes, w->id);
	if (b && (b->meta.about.state == WIRE_BOX_TAKEN || b->meta.about.state == WIRE_BOX_DYING))
		return b;
	request_refuse(k, c, f, ERR_NOT_FOUND, "no such box");
	return NULL;
}

static void on_open(struct keeper *k, struct client *c, const struct frame *f)
{
	struct keeper_box *b = request_named(k, c, f);
	struct wire_box out;
	auto_fd int fd = -1;
	struct err e;
	char path[KEEPER_BOX_SOCKET];

	if (!b)
		return;
	keeper_box_socket(b, path);
	/* A box can stop its own init; that must not block the keeper. */
	host_use_reserve(&k->host, 1);
	fd = sock_connect_now(path, &e);
	host_use_reserve(&k->host, 0);
	if (fd < 0) {
		client_error(k, c->number, f->ref, &e);
		return;
	}
	out = b->meta.about;
	out.head = sock_head(WIRE_BOX, f->ref);
	client_send(k, c->number, &out, sizeof(out), fd);
}

/* The counters of a box that has ended are kept for a while. */
static int late_answer(struct keeper *k, struct client *c, const struct frame *f, uint8_t type)
{
	const struct wire_id *w = (const struct wire_id *)f;
	const struct wire_counters *late;
	struct wire_counters out;

	if (strnlen(w->id, sizeof(w->id)) == sizeof(w->id) || !id_valid(w->id) ||
	    keeper_box_find(&k->boxes, w->id))
		return 0;
	late = teardown_counters(k, w->id);
	if (!late)
		return 0;
	out = *late;
	out.head = sock_head(type, f->ref);
	client_send(k, c->number, &out, sizeof(out), -1);
	return 1;
}

static void on_kill(struct keeper *k, struct client *c, const struct frame *f)
{
	struct keeper_box *b = late_answer(k, c, f, WIRE_DESTROYED) ? NULL : request_named(k, c, f);

	if (!b)
		return;
	if (b->nwaiters == KEEPER_BOX_WAITERS) {
		request_refuse(k, c, f, ERR_LIMIT, "too many clients wait for the end of this box");
		return;
	}
	b->waiters[b->nwaiters++] = (struct waiter){ c->number, f->ref };
	if (b->meta.about.state == WIRE_BOX_DYING)
		return;
	b->unread = !(f->flags & WIRE_KILL_FIGURES);
	b->by_operator = !!(f->flags & WIRE_KILL_OPERATOR);
	teardown_kill(k, b);
}

static void on_counters(struct keeper *k, struct client *c, const struct frame *f)
{
	struct keeper_box *b =
		late_answer(k, c, f, WIRE_COUNTERS_REPLY) ? NULL : request_named(k, c, f);
	struct wire_counters out;

	if (!b)
		return;
	teardown_count(k, b, &out);
	memcpy(out.id, b->meta.about.id, sizeof(out.id));
	out.head = sock_head(WIRE_COUNTERS_REPLY, f->ref);
	client_send(k, c->number, &out, sizeof(out), -1);
}

static void on_boxes(struct keeper *k, struct client *c, const struct frame *f)
{
	enum { PER_FRAME = 200 };
	const struct wire_id *w = (const struct wire_id *)f;
	struct {
		struct frame head;
		struct wire_box box[PER_FRAME];
	} out = { .head = sock_head(WIRE_LISTED, f->ref) };
	unsigned n = 0;
	struct keeper_box *b;

	if (strnlen(w->id, sizeof(w->id)) == sizeof(w->id)) {
		request_refuse(k, c, f, ERR_INVALID, "not an id");
		return;
	}
	for (b = keeper_box_after(&k->boxes, w->id); b && n < PER_FRAME;
	     b = keeper_box_after(&k->boxes, b->meta.about.id))
		if (b->meta.about.state == WIRE_BOX_TAKEN)
			out.box[n++] = b->meta.about;
	client_send(k, c->number, &out, sizeof(out.head) + n * sizeof(out.box[0]), -1);
}

static void on_info(struct keeper *k, struct client *c, const struct frame *f)
{
	struct wire_info a;

	pool_about(k, f->ref, &a);
	client_send(k, c->number, &a, sizeof(a), -1);
}

static void on_fill(struct keeper *k, struct client *c, const struct frame *f)
{
	const struct wire_pool_size *w = (const struct wire_pool_size *)f;
	struct err e;

	if (w->depth > POOL_MOST) {
		err_set(&e, ERR_INVALID, "a pool of %u boxes: at most %u (keeper.pool)", w->depth,
			POOL_MOST);
		client_error(k, c->number, f->ref, &e);
		return;
	}
	pool_set_depth(k, w->depth);
	k->quiet_ns = 0;
	k->filler = (struct waiter){ c->number, f->ref };
	pool_refill(k);
	pool_filled(k);
}

void request_handle(struct keeper *k, struct client *c, const struct frame *f, int *fd)
{
	static void (*const handlers[])(struct keeper *, struct client *, const struct frame *) = {
		[WIRE_CREATE] = on_create,
		[WIRE_OPEN] = on_open,
		[WIRE_KILL] = on_kill,
		[WIRE_COUNTERS] = on_counters,
		[WIRE_BOXES] = on_boxes,
		[WIRE_INFO] = on_info,
		[WIRE_POOL_SIZE] = on_fill,
		[WIRE_LIMIT] = limit_request,
		[WIRE_VOLUME_MAKE] = volume_request,
		[WIRE_VOLUME_DROP] = volume_request,
		[WIRE_LAYER_MAKE] = layer_request,
		[WIRE_LAYER_CHECK] = layer_request,
		[WIRE_LAYER_DROP] = layer_request,
		[WIRE_FREEZE] = freeze_request,
		[WIRE_ROOT_MAKE] = root_request,
		[WIRE_ROOT_DROP] = root_request,
		[WIRE_ROOT_CHECK] = root_request,
		[WIRE_POOL_ROOT] = root_pool_request,
		[WIRE_LAYER_LIST] = layer_list_request,
		[WIRE_DEADLINE] = deadline_request,
		[WIRE_CAPTURE] = capture_request,
		[WIRE_TIERS] = tier_request,
		[WIRE_NODE_NUMBER] = node_number_request,
		[WIRE_IMAGE_TAKE] = procimage_request,
		[WIRE_IMAGE_WAIT] = procimage_request,
		[WIRE_IMAGE_START] = procimage_request,
		[WIRE_IMAGE_DROP] = procimage_request,
		[WIRE_IMAGE_SAVE] = procimage_request,
		[WIRE_IMAGE_LOAD] = procimage_request,
		[WIRE_CHECKPOINT] = checkpoint_request,
		[WIRE_CHECKPOINT_OPEN] = checkpoint_request,
		[WIRE_CHECKPOINT_SYNC] = checkpoint_request,
		[WIRE_CHECKPOINT_DROP] = checkpoint_request,
		[WIRE_CHECKPOINT_LIST] = checkpoint_request,
	};

	if (f->type == WIRE_LAYER_UNPACK || f->type == WIRE_LAYER_EXPORT) {
		layer_archive_request(k, c, f, *fd);
		return;
	}
	if (f->type == WIRE_CHECKPOINT_EXPORT || f->type == WIRE_CHECKPOINT_IMPORT) {
		checkpoint_archive_request(k, c, f, *fd);
		return;
	}
	if (f->type == WIRE_CHECKPOINT_MERGE) {
		checkpoint_merge_request(k, c, f, *fd);
		return;
	}
	if (f->type >= ARRAY_LEN(handlers) || !handlers[f->type]) {
		request_refuse(k, c, f, ERR_INVALID, "not a request to a keeper");
		return;
	}
	handlers[f->type](k, c, f);
}
