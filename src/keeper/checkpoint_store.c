/* checkpoint_store.c - see checkpoint_store.h. */
#include "keeper/checkpoint_store.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "jail/cgroup.h"
#include "keeper/checkpoint_maps.h"
#include "keeper/checkpoint_process.h"
#include "keeper/checkpoint_stop.h"
#include "keeper/checkpoint_track.h"
#include "keeper/layer_upper.h"
#include "keeper/procimage_file.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	TAKE_RUNNING_MS = 900 * 1000,
	TAKE_STOPPED_MS = 20 * 1000,
	TAKE_EVENTS_MS = 5,
	INDEX_MOST = 1 << 30
};

/* ---- files ---- */

int checkpoint_store_open(const char *state_dir, struct err *e)
{
	auto_fd int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;

	if (state < 0 || (mkdirat(state, "checkpoints", 0700) < 0 && errno != EEXIST))
		return err_sys(e, "checkpoints in %s", state_dir);
	fd = openat(state, "checkpoints", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (mkdirat(fd, "layers", 0700) < 0 && errno != EEXIST) ||
	    (mkdirat(fd, "index", 0700) < 0 && errno != EEXIST))
		return err_sys(e, "checkpoints in %s", state_dir);
	return steal_fd(&fd);
}

void checkpoint_store_name(const char *id, enum wire_checkpoint_what what, char out[64])
{
	if (what == WIRE_CHECKPOINT_LAYER)
		snprintf(out, 64, "layers/%.16s.erofs", id);
	else
		snprintf(out, 64, "index/%.16s", id);
}

static int store_open_file(int dir, const char *id, enum wire_checkpoint_what what, struct err *e)
{
	char name[64];
	int fd;

	checkpoint_store_name(id, what, name);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "there is no checkpoint %s", id);
	return fd < 0 ? err_sys(e, "checkpoint %s", id) : fd;
}

static int store_link(int dir, int fd, const char *id, enum wire_checkpoint_what what,
		      struct err *e)
{
	char name[64];

	checkpoint_store_name(id, what, name);
	if (linkat(fd, "", dir, name, AT_EMPTY_PATH) == 0)
		return 0;
	return errno == EEXIST ? err_set(e, ERR_CONFLICT, "there is a checkpoint %s already", id)
			       : err_sys(e, "name checkpoint %s", id);
}

static int store_unnamed(int dir, const char *folder, struct err *e)
{
	int fd = openat(dir, folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? err_sys(e, "make a file for a checkpoint") : fd;
}

int checkpoint_store_sync(int dir, const char *id, struct err *e)
{
	auto_fd int index = store_open_file(dir, id, WIRE_CHECKPOINT_INDEX, e), layer = -1;
	auto_fd int layers = openat(dir, "layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fd int indexes = openat(dir, "index", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	layer = store_open_file(dir, id, WIRE_CHECKPOINT_LAYER, e);
	if (index < 0 && layer < 0)
		return -1;
	if ((layer >= 0 && (fsync(layer) < 0 || fsync(layers) < 0)) ||
	    (index >= 0 && (fsync(index) < 0 || fsync(indexes) < 0)))
		return err_sys(e, "write checkpoint %s to the disk", id);
	return procimage_file_sync(dir, id, e);
}

static void store_figures(const struct layer_index_head *h, uint64_t index_bytes,
			  struct wire_checkpointed *out)
{
	memcpy(out->id, h->id, sizeof(out->id));
	out->bytes = h->layer_bytes;
	out->index_bytes = index_bytes;
	out->content_bytes = h->content_bytes;
	out->files = h->files;
	out->deleted = h->deleted;
	out->entries = h->entries;
	out->frozen_us = h->frozen_us;
	out->took_us = h->took_us;
	out->same = h->same;
	out->passes = h->passes;
	out->tracked = h->tracked;
}

int checkpoint_store_figures(int dir, const char *id, const char *box,
			     struct wire_checkpointed *out, struct err *e)
{
	auto_fd int fd = store_open_file(dir, id, WIRE_CHECKPOINT_INDEX, e);
	struct layer_index_reader r;
	int done;

	if (fd < 0)
		return e->kind == ERR_NOT_FOUND ? 0 : -1;
	done = layer_index_open(&r, fd, e);
	if (done == 0 && strcmp(r.head.box, box) != 0)
		done = err_set(e, ERR_CONFLICT, "there is a checkpoint %s already, of box %s", id,
			       r.head.box);
	if (done == 0)
		store_figures(&r.head, r.size, out);
	layer_index_close(&r);
	return done < 0 ? -1 : 1;
}

/* ---- stop and release ---- */

struct take {
	const struct checkpoint_request *q;
	struct cgroups cgroups;
	struct checkpoint_worker *w;
	struct checkpoint_stop stop;
	struct checkpoint_track track;
	int stopped, traced; /* by ptrace, not by the freezer */
	uint64_t stopped_ns, frozen_ns;
};

static void take_release(struct take *t)
{
	struct err ignored;

	if (!t->stopped)
		return;
	if (t->traced)
		checkpoint_stop_release(&t->stop);
	else if (!t->q->is_frozen)
		(void)!cgroup_thaw(&t->cgroups, t->q->cgroup, &ignored);
	if (!t->q->is_frozen)
		t->frozen_ns += now_ns() - t->stopped_ns;
	t->stopped = t->traced = 0;
}

/* With cgroup v1, the first freezing takes many milliseconds: all processes must enter another hierarchy. */
static int take_stop(struct take *t, struct err *e)
{
	if (t->stopped)
		return err_set(e, ERR_INVALID, "the capture wants to stop the box twice");
	t->stopped_ns = now_ns();
	if (!t->q->is_frozen && t->cgroups.version == 1)
		t->traced = checkpoint_stop_all(&t->stop, &t->cgroups, t->q->cgroup);
	if (!t->q->is_frozen && !t->traced) {
		if (t->cgroups.version == 1) /* some were stopped by the attempt */
			t->frozen_ns += now_ns() - t->stopped_ns;
		if (cgroup_freeze_prepare(&t->cgroups, t->q->cgroup, e) < 0)
			return -1;
		t->stopped_ns = now_ns();
	}
	t->stopped = 1;
	if (t->q->is_frozen || t->traced || cgroup_freeze(&t->cgroups, t->q->cgroup, e) == 0)
		return 0;
	take_release(t);
	return -1;
}

static int take_track_process(int pid, void *arg)
{
	checkpoint_track_writers(arg, pid);
	return 1;
}

/* Events that came before are read while programs run. */
static int take_list(struct take *t, unsigned what, struct delta_mapped *out, struct err *e)
{
	checkpoint_track_read(&t->track);
	if (what == CHECKPOINT_STOP && take_stop(t, e) < 0)
		return -1;
	if (checkpoint_maps_read(&t->cgroups, t->q->cgroup, out, e) < 0)
		return -1;
	if (t->track.events < 0)
		return 0;
	if (what == CHECKPOINT_STOP) {
		checkpoint_track_stop(&t->track);
		cgroup_each_process(&t->cgroups, t->q->cgroup, take_track_process, &t->track);
		checkpoint_track_mapped(&t->track, out);
	} else {
		checkpoint_track_read(&t->track);
	}
	checkpoint_track_fill(&t->track, out);
	return 0;
}

/* A file with the lists; -1 with ERR_NONE: they are empty. */
static int take_list_file(const struct delta_mapped *l, struct err *e)
{
	const struct iovec parts[] = { { l->inodes, l->ninodes * sizeof(*l->inodes) },
				       { l->touched, l->ntouched * sizeof(*l->touched) },
				       { l->paths, l->paths_bytes } };
	size_t bytes = parts[0].iov_len + parts[1].iov_len + parts[2].iov_len;
	auto_fd int fd = -1;

	e->kind = ERR_NONE;
	if (!bytes)
		return -1;
	fd = memfd_create("mapped", MFD_CLOEXEC);
	if (fd < 0 || writev(fd, parts, ARRAY_LEN(parts)) != (ssize_t)bytes)
		return err_sys(e, "list of mapped files");
	return steal_fd(&fd);
}

/* Answers STOP and LIST with the mapped and the touched files. */
static int take_answer(struct take *t, unsigned what)
{
	struct checkpoint_message m = { .what = what };
	struct delta_mapped mapped = { 0 };
	auto_fd int fd = -1;
	int done = take_list(t, what, &mapped, &m.err);

	if (done == 0) {
		m.ninodes = mapped.ninodes;
		m.paths_bytes = mapped.paths_bytes;
		m.ntouched = mapped.ntouched;
		m.is_tracked = (uint32_t)mapped.is_tracked;
		fd = take_list_file(&mapped, &m.err);
		done = m.err.kind ? -1 : 0;
	}
	delta_mapped_fini(&mapped);
	if (done < 0)
		take_release(t);
	return sock_send_message(t->w->capture_sock, &m, sizeof(m), &fd, fd >= 0);
}

/* As poll(). The capture opens each file that it copies, and the queue of events has an end. */
static int take_wait(struct take *t, struct pollfd *p, int most_ms)
{
	int ready = 0;

	if (t->track.events < 0)
		return poll(p, 1, most_ms);
	for (int waited = 0; !ready && waited < most_ms; waited += TAKE_EVENTS_MS) {
		ready = poll(p, 1, TAKE_EVENTS_MS);
		checkpoint_track_read(&t->track);
	}
	return ready;
}

/* Until the capture has sent its result, or has ended. */
static int take_serve(struct take *t, struct delta_sum *out, struct err *e)
{
	struct checkpoint_message m;

	for (;;) {
		struct pollfd p = { .fd = t->w->capture_sock, .events = POLLIN };
		int most_ms = t->stopped ? TAKE_STOPPED_MS : TAKE_RUNNING_MS;
		int ready = take_wait(t, &p, most_ms);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready == 0)
			return err_set(
				e, ERR_LIMIT, "the capture took longer than %d s%s", most_ms / 1000,
				t->stopped ? " while the programs of the box were stopped" : "");
		if (recv(t->w->capture_sock, &m, sizeof(m), 0) != (ssize_t)sizeof(m))
			return err_set(e, ERR_SYS, "the capture has ended early");
		if (m.what == CHECKPOINT_RELEASE) {
			take_release(t);
		} else if (m.what == CHECKPOINT_RESULT) {
			*out = m.sum;
			m.err.msg[sizeof(m.err.msg) - 1] = 0;
			*e = m.err;
			return m.err.kind ? -1 : 0;
		} else if ((m.what != CHECKPOINT_STOP && m.what != CHECKPOINT_LIST) ||
			   take_answer(t, m.what) < 0) {
			return err_set(e, ERR_SYS, "the capture sent an invalid message");
		}
	}
}

static int take_run(struct take *t, const struct delta *d, int userns, struct delta_sum *out,
		    struct err *e)
{
	int done = checkpoint_capture_begin(t->w->capture_sock, d, userns, e), status;

	if (done == 0)
		done = take_serve(t, out, e);
	take_release(t);
	checkpoint_track_read(&t->track);
	kill(t->w->capture, SIGKILL); /* no process may write to the files from here on */
	while (waitpid(t->w->capture, &status, 0) < 0 && errno == EINTR)
		;
	return done;
}

int checkpoint_worker_start(struct checkpoint_worker *w, int dir, uint32_t check_uid, struct err *e)
{
	*w = (struct checkpoint_worker){ .layer = -1, .index = -1 };
	/* It waits for tens of microseconds until the programs have stopped; the kernel would add 50. */
	(void)!prctl(PR_SET_TIMERSLACK, 1000);
	w->capture = checkpoint_capture_start(&w->capture_sock, e);
	if (w->capture < 0)
		return -1;
	w->check = checkpoint_check_start(check_uid, &w->check_sock, e);
	if (w->check < 0)
		return -1;
	w->layer = store_unnamed(dir, "layers", e);
	w->index = store_unnamed(dir, "index", e);
	return w->layer < 0 || w->index < 0 ? -1 : 0;
}

/* ---- one checkpoint ---- */

static int take_open_upper(const struct checkpoint_request *q, int proc, struct err *e)
{
	/* Descriptor 5 of init: src/init/main.c. */
	auto_fd int fd = openat(proc, "fd/5", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT || errno == ESRCH
			       ? err_set(e, ERR_NOT_FOUND, "box %s has ended meanwhile", q->box)
			       : err_sys(e, "open the writable layer of box %s", q->box);
	return layer_upper_check(fd, q->uid_base, e) < 0 ? -1 : steal_fd(&fd);
}

static uint64_t take_used(int upper)
{
	struct statfs fs;

	return fstatfs(upper, &fs) < 0
		       ? UINT64_MAX
		       : (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

static struct cgroups take_cgroups(const struct checkpoint_request *q,
				   const struct checkpoint_fds *fds)
{
	struct cgroups cs = { .version = (int)q->cgroup_version };

	for (unsigned i = 0; i < CG_NCTL; i++)
		cs.dir[i] = cs.root[i] = -1;
	if (cs.version == 1) {
		cs.dir[CG_PIDS] = fds->lister;
		cs.dir[CG_FREEZER] = fds->freezer;
	} else {
		cs.dir[CG_MEMORY] = fds->freezer;
	}
	return cs;
}

static int take_link(int dir, const struct checkpoint_worker *w, const struct delta *d,
		     const struct delta_sum *sum, struct err *e)
{
	struct stat st;

	if (sum->layer_bytes &&
	    (fstat(d->layer, &st) < 0 || (uint64_t)st.st_size != sum->layer_bytes))
		return err_set(e, ERR_INVALID, "the layer has %llu bytes, not %llu",
			       (unsigned long long)st.st_size,
			       (unsigned long long)sum->layer_bytes);
	/* Folders that lead to others, and "files" that were counted, are names of the layer. */
	if (checkpoint_check_finish(w->check, w->check_sock, sum->layer_bytes ? d->layer : -1,
				    d->index, UINT64_MAX, e) < 0)
		return err_in(e, "check of checkpoint %s", d->id);
	if (sum->layer_bytes && store_link(dir, d->layer, d->id, WIRE_CHECKPOINT_LAYER, e) < 0)
		return -1;
	return store_link(dir, d->index, d->id, WIRE_CHECKPOINT_INDEX, e);
}

static int take_finish(int dir, const struct checkpoint_worker *w, const struct delta *d,
		       const struct delta_sum *sum, uint64_t frozen_ns, uint64_t began_ns,
		       struct wire_checkpointed *out, struct err *e)
{
	struct layer_index_head head;
	struct stat st;

	if (delta_write_head(d, sum, (uint32_t)(frozen_ns / 1000),
			     (uint32_t)((now_ns() - began_ns) / 1000), e) < 0)
		return -1;
	if (take_link(dir, w, d, sum, e) < 0)
		return -1;
	if (pread(w->index, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    fstat(w->index, &st) < 0)
		return err_sys(e, "read the index again");
	store_figures(&head, (uint64_t)st.st_size, out);
	out->took_us = (now_ns() - began_ns) / 1000;
	return 0;
}

int checkpoint_store_finish(int dir, struct checkpoint_worker *w, const struct delta *d,
			    const struct delta_sum *sum, uint64_t began_ns,
			    struct wire_checkpointed *out, struct err *e)
{
	return take_finish(dir, w, d, sum, 0, began_ns, out, e);
}

int checkpoint_store_take(int dir, struct checkpoint_worker *w, const struct checkpoint_request *q,
			  const struct checkpoint_fds *fds, struct wire_checkpointed *out,
			  struct err *e)
{
	auto_fd int upper = take_open_upper(q, fds->proc, e), userns = -1;
	auto_fd int base = -1;
	struct delta d = { .rules = DELTA_RULES & ~q->without,
			   .bytes_most = q->bytes_most,
			   .files_most = q->files_most };
	struct take t = { .q = q, .w = w, .cgroups = take_cgroups(q, fds) };
	struct delta_sum sum;
	uint64_t began = now_ns();
	int done;

	if (upper < 0)
		return -1;
	userns = openat(fds->proc, "ns/user", O_RDONLY | O_CLOEXEC);
	if (userns < 0)
		return err_sys(e, "user namespace of box %s", q->box);
	if (q->base[0] && (base = store_open_file(dir, q->base, WIRE_CHECKPOINT_INDEX, e)) < 0)
		return -1;
	d.upper = upper;
	d.layer = w->layer;
	d.index = w->index;
	d.base = base;
	d.used_bytes = take_used(upper);
	memcpy(d.id, q->id, sizeof(d.id));
	memcpy(d.box, q->box, sizeof(d.box));
	memcpy(d.base_id, q->base, sizeof(d.base_id));
	checkpoint_track_begin(&t.track, fds->events, fds->touched, upper, q->base);
	t.track.ignored = w->capture;
	done = take_run(&t, &d, userns, &sum, e);
	if (done == 0)
		done = take_finish(dir, w, &d, &sum, t.frozen_ns, began, out, e);
	if (done == 0)
		checkpoint_track_save(&t.track, q->id, sum.layer_bytes ? "" : q->base);
	checkpoint_track_end(&t.track);
	return done;
}

/* A copy, because the client can still change its file. */
static int store_copy_index(int from, int to, struct err *e)
{
	static char block[1 << 16];
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(from, block, sizeof(block), at);

		if (n == 0)
			return 0;
		if (n < 0 || at > (off_t)INDEX_MOST)
			return n < 0 ? err_sys(e, "read the index of a merge")
				     : err_set(e, ERR_LIMIT, "the index of a merge is too large");
		if (pwrite(to, block, (size_t)n, at) != n)
			return err_sys(e, "write the index of a merge");
		at += n;
	}
}

/* The check has accepted it: it is that of this checkpoint, and gets the figures of the layer. */
static int store_index_head(const struct checkpoint_request *q, int index,
			    const struct chain_sum *sum, uint64_t began,
			    struct wire_checkpointed *out, struct err *e)
{
	struct layer_index_head h;
	struct stat st;

	if (pread(index, &h, sizeof(h), 0) != (ssize_t)sizeof(h) || fstat(index, &st) < 0)
		return err_sys(e, "read the index of a merge");
	if (strcmp(h.id, q->id) != 0 || h.base[0] || h.same)
		return err_set(e, ERR_INVALID, "the index of a merge is that of checkpoint %s",
			       h.id);
	h.layer_bytes = sum->stored_bytes;
	h.content_bytes = sum->content_bytes;
	h.files = sum->files;
	h.deleted = sum->deleted;
	h.took_us = (uint32_t)((now_ns() - began) / 1000);
	if (pwrite(index, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
		return err_sys(e, "write the index of a merge");
	store_figures(&h, (uint64_t)st.st_size, out);
	return 0;
}

/* index: -1: none. */
static int store_merge_files(int dir, const struct checkpoint_request *q, int *layers, int index,
			     int out, struct chain_sum *sum, struct err *e)
{
	auto_fd int reading = index < 0 ? -1 : checkpoint_reopen(index, e);
	pid_t check;
	int sock;

	if (index >= 0 && reading < 0)
		return -1;
	for (unsigned i = 0; i < q->nfrom; i++)
		if ((layers[i] = store_open_file(dir, q->from[i], WIRE_CHECKPOINT_LAYER, e)) < 0)
			return -1;
	if (checkpoint_merge_run(layers, q->nfrom, reading, out, q->check_uid, q->bytes_most,
				 q->files_most, sum, e) < 0)
		return err_in(e, "merge into %s", q->id);
	check = checkpoint_check_start(q->check_uid, &sock, e);
	if (check < 0 || checkpoint_check_finish(check, sock, out, index, UINT64_MAX, e) < 0)
		return err_in(e, "check of %s", q->id);
	/* It replaces files that may have been written to the disk. */
	return fsync(out) < 0 ? err_sys(e, "write %s to the disk", q->id) : 0;
}

int checkpoint_store_combined(int dir, const struct checkpoint_request *q, struct err *e)
{
	int layers[WIRE_CHAIN], done;
	struct chain_sum sum;
	auto_fd int out = -1;

	if (q->nfrom == 1)
		return store_open_file(dir, q->from[0], WIRE_CHECKPOINT_LAYER, e);
	out = store_unnamed(dir, "layers", e);
	if (out < 0)
		return -1;
	for (unsigned i = 0; i < WIRE_CHAIN; i++)
		layers[i] = -1;
	done = store_merge_files(dir, q, layers, -1, out, &sum, e);
	for (unsigned i = 0; i < WIRE_CHAIN; i++)
		own_close_fd(&layers[i]);
	return done < 0 ? -1 : steal_fd(&out);
}

int checkpoint_store_merge(int dir, const struct checkpoint_request *q, int given,
			   struct wire_checkpointed *out, struct err *e)
{
	auto_fd int layer = store_unnamed(dir, "layers", e), index = -1;
	uint64_t began = now_ns();
	struct chain_sum sum = { 0 };
	int layers[WIRE_CHAIN], done;

	if (layer < 0)
		return -1;
	if (given >= 0 &&
	    ((index = store_unnamed(dir, "index", e)) < 0 || store_copy_index(given, index, e) < 0))
		return -1;
	for (unsigned i = 0; i < WIRE_CHAIN; i++)
		layers[i] = -1;
	done = store_merge_files(dir, q, layers, index, layer, &sum, e);
	for (unsigned i = 0; i < WIRE_CHAIN; i++)
		own_close_fd(&layers[i]);
	if (done == 0 && index >= 0)
		done = store_index_head(q, index, &sum, began, out, e);
	if (done == 0)
		done = store_link(dir, layer, q->id, WIRE_CHECKPOINT_LAYER, e);
	if (done == 0 && index >= 0)
		done = store_link(dir, index, q->id, WIRE_CHECKPOINT_INDEX, e);
	memcpy(out->id, q->id, sizeof(out->id));
	out->bytes = sum.stored_bytes;
	out->content_bytes = sum.content_bytes;
	out->files = sum.files;
	out->deleted = sum.deleted;
	out->took_us = (now_ns() - began) / 1000;
	return done;
}
