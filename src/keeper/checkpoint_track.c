/* checkpoint_track.c - see checkpoint_track.h. */
#include "keeper/checkpoint_track.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRACK_NAMES (FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO)
#define TRACK_EVENTS                                                                               \
	(TRACK_NAMES | FAN_ATTRIB | FAN_MODIFY | FAN_CLOSE_WRITE | FAN_OPEN | FAN_ONDIR)

enum { TRACK_MOST = 1 << 20, TRACK_BUFFER = 1 << 16, TRACK_DESCRIPTORS = 1 << 16 };
enum { TRACK_UNKNOWN, TRACK_TMPFS, TRACK_EXT4 }; /* kinds of handles */

int checkpoint_track_new(int *out_events, int *out_list, struct err *e)
{
	int events =
		fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_NONBLOCK | FAN_CLOEXEC, 0);
	int list = memfd_create("touched", MFD_CLOEXEC);

	if (events < 0 || list < 0) {
		err_sys(e, "change tracking");
		own_close_fd(&events);
		own_close_fd(&list);
		return -1;
	}
	*out_events = events;
	*out_list = list;
	return 0;
}

/* ---- lists ---- */

static void track_add(struct track_list *l, uint64_t ino, int names)
{
	if (l->n && l->v[l->n - 1].ino == ino) {
		l->v[l->n - 1].names |= (uint64_t)names;
		return;
	}
	if (l->n == TRACK_MOST)
		l->is_lost = 1;
	if (l->is_lost)
		return;
	if (l->n == l->room) {
		l->room = 2 * l->room + 256;
		l->v = realloc(l->v, l->room * sizeof(*l->v));
		if (!l->v)
			abort();
	}
	l->v[l->n++] = (struct delta_touched){ ino, (uint64_t)names };
}

static void track_add_both(struct checkpoint_track *t, uint64_t ino, int names)
{
	track_add(&t->since_base, ino, names);
	track_add(&t->since_stop, ino, names);
}

static void track_lose(struct checkpoint_track *t)
{
	t->since_base.is_lost = t->since_stop.is_lost = 1;
}

static int track_order(const void *a, const void *b)
{
	const struct delta_touched *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* Ascending, each inode once. */
static size_t track_unite(struct delta_touched *v, size_t n)
{
	size_t out = 0;

	if (n > 1)
		qsort(v, n, sizeof(*v), track_order);
	for (size_t i = 0; i < n; i++)
		if (out && v[out - 1].ino == v[i].ino)
			v[out - 1].names |= v[i].names;
		else
			v[out++] = v[i];
	return out;
}

/* ---- the file with the list ---- */

struct track_head {
	char base[2][LAYER_INDEX_ID]; /* the list is that since any of them; empty: none */
	uint32_t is_marked, pad;
	uint64_t n;
};

/* Nothing is valid until track_save(): a killed process may have read events. */
static int track_load(struct checkpoint_track *t, const char *base)
{
	struct track_head h;
	size_t bytes;

	if (pread(t->list, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
		h = (struct track_head){ .n = 0 };
	t->since_base.is_lost = !base[0] || (strncmp(h.base[0], base, sizeof(h.base[0])) != 0 &&
					     strncmp(h.base[1], base, sizeof(h.base[1])) != 0);
	bytes = h.n * sizeof(*t->since_base.v);
	if (!t->since_base.is_lost) {
		t->since_base.v = malloc(bytes + 1);
		if (!t->since_base.v)
			abort();
		t->since_base.n = t->since_base.room = h.n;
		t->since_base.is_lost =
			pread(t->list, t->since_base.v, bytes, sizeof(h)) != (ssize_t)bytes;
	}
	memset(h.base, 0, sizeof(h.base));
	(void)!pwrite(t->list, &h, sizeof(h), 0);
	return (int)h.is_marked;
}

/* ---- events ---- */

/* Inode numbers are in the handles of these file systems; to open a handle would take longer. */
static int track_ino(unsigned kind, const struct file_handle *h, uint64_t *out)
{
	uint32_t v[3];

	if (h->handle_type != 1 || h->handle_bytes != (kind == TRACK_TMPFS ? 12 : 8))
		return -1;
	memcpy(v, h->f_handle, h->handle_bytes);
	*out = kind == TRACK_TMPFS ? v[1] | (uint64_t)v[2] << 32 : v[0];
	return 0;
}

static unsigned track_kind(int upper)
{
	_Alignas(struct file_handle) char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	struct file_handle *h = (void *)room;
	struct statfs fs;
	struct stat st;
	unsigned kind;
	uint64_t ino;
	int mount;

	h->handle_bytes = MAX_HANDLE_SZ;
	if (fstatfs(upper, &fs) < 0 || fstat(upper, &st) < 0 ||
	    name_to_handle_at(upper, "", h, &mount, AT_EMPTY_PATH) < 0)
		return TRACK_UNKNOWN;
	kind = fs.f_type == TMPFS_MAGIC        ? TRACK_TMPFS
	       : fs.f_type == EXT4_SUPER_MAGIC ? TRACK_EXT4
					       : TRACK_UNKNOWN;
	return kind && track_ino(kind, h, &ino) == 0 && ino == st.st_ino ? kind : TRACK_UNKNOWN;
}

static void track_event(struct checkpoint_track *t, const struct fanotify_event_metadata *m)
{
	const struct fanotify_event_info_fid *fid = (const void *)(m + 1);
	uint64_t ino;

	if (m->mask & FAN_Q_OVERFLOW || m->event_len < sizeof(*m) + sizeof(*fid) ||
	    fid->hdr.info_type != FAN_EVENT_INFO_TYPE_FID ||
	    track_ino(t->handle, (const void *)fid->handle, &ino) < 0) {
		track_lose(t);
		return;
	}
	if (!t->ignored || m->pid != t->ignored)
		track_add_both(t, ino, !!(m->mask & TRACK_NAMES));
}

void checkpoint_track_read(struct checkpoint_track *t)
{
	static _Alignas(8) char buf[TRACK_BUFFER];
	ssize_t n;

	while (t->events >= 0 && (n = read(t->events, buf, sizeof(buf))) > 0) {
		const struct fanotify_event_metadata *m = (const void *)buf;

		for (; FAN_EVENT_OK(m, n); m = FAN_EVENT_NEXT(m, n))
			track_event(t, m);
	}
}

void checkpoint_track_begin(struct checkpoint_track *t, int events, int list, int upper,
			    const char *base)
{
	*t = (struct checkpoint_track){ .events = -1, .list = -1, .upper = upper };
	if (events < 0 || list < 0 || !(t->handle = track_kind(upper)))
		return;
	t->list = list;
	t->events = events;
	if (track_load(t, base))
		return;
	t->since_base.is_lost = 1;
	if (fanotify_mark(events, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, TRACK_EVENTS, upper, NULL) <
	    0)
		t->events = t->list = -1;
}

/* ---- files that are open for writing ---- */

static void track_add_path(struct checkpoint_track *t, const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	auto_fd int fd = (int)syscall(SYS_openat2, t->upper, path, &how, sizeof(how));
	struct stat st;

	/* Without it, the file is not in the writable layer. */
	if (fd >= 0 && fstat(fd, &st) == 0)
		track_add_both(t, st.st_ino, 0);
	else if (fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		track_lose(t);
}

/* What fdinfo of a socket says: descriptors wait in it, which no process has open. */
static int track_has_messages(int fds, const char *name)
{
	char path[64], text[1024], *at;
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "../fdinfo/%s", name);
	fd = openat(fds, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return errno != ENOENT;
	text[n] = 0;
	at = strstr(text, "scm_fds:");
	return at && strtoul(at + strlen("scm_fds:"), NULL, 10) > 0;
}

static void track_file(struct checkpoint_track *t, int fds, const char *name, char *path)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(path), prefix = t->prefix ? strlen(t->prefix) : 0;
	struct stat st;

	if (prefix && strncmp(path, t->prefix, prefix) != 0)
		return;
	track_add_path(t, path + prefix + 1);
	if (n < sizeof(deleted) || strcmp(path + n - sizeof(deleted) + 1, deleted) != 0)
		return;
	path[n - sizeof(deleted) + 1] = 0;
	track_add_path(t, path + prefix + 1);
	/* The file may have another name. */
	if (fstatat(fds, name, &st, 0) < 0 || (S_ISREG(st.st_mode) && st.st_nlink))
		track_lose(t);
}

static void track_descriptor(struct checkpoint_track *t, int fds, const char *name)
{
	char path[4096 + 16];
	ssize_t n = readlinkat(fds, name, path, sizeof(path) - 1);
	struct stat st;

	if (n < 0) {
		if (errno != ENOENT)
			track_lose(t);
		return;
	}
	path[n] = 0;
	if (strncmp(path, "socket:", 7) == 0 && track_has_messages(fds, name))
		track_lose(t);
	if (path[0] != '/')
		return;
	if (fstatat(fds, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		track_lose(t);
	else if (st.st_mode & S_IWUSR)
		track_file(t, fds, name, path);
}

static void track_table(struct checkpoint_track *t, const char *path)
{
	DIR *d = opendir(path);
	struct dirent *de;

	if (!d && errno != ENOENT && errno != ESRCH)
		track_lose(t);
	/* The programs are stopped meanwhile: the box decides how many there are. */
	while (d && !t->since_stop.is_lost && (de = readdir(d)) != NULL) {
		if (de->d_name[0] == '.')
			continue;
		if (++t->descriptors > TRACK_DESCRIPTORS)
			track_lose(t);
		else
			track_descriptor(t, dirfd(d), de->d_name);
	}
	if (d)
		closedir(d);
}

void checkpoint_track_writers(struct checkpoint_track *t, pid_t pid)
{
	char path[64];
	DIR *d;
	struct dirent *de;

	if (t->events < 0 || t->without & TRACK_WRITERS || t->since_stop.is_lost)
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	track_table(t, path);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && !t->since_stop.is_lost && (de = readdir(d)) != NULL) {
		int tid = atoi(de->d_name);

		/* Most threads share the table of the first one. */
		if (tid <= 0 || tid == pid || syscall(SYS_kcmp, pid, tid, KCMP_FILES, 0, 0) == 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d/fd", pid, tid);
		track_table(t, path);
	}
	if (d)
		closedir(d);
}

/* A line break is \012 in the list. */
static void track_unescape(char *path)
{
	char *to = path;

	for (; *path; path++)
		if (strncmp(path, "\\012", 4) == 0) {
			*to++ = '\n';
			path += 3;
		} else {
			*to++ = *path;
		}
	*to = 0;
}

/* Its file may have another name, and the inode in the list may be that of a lower file. Shared memory has no name. */
static int track_lost_name(const char *path)
{
	static const char deleted[] = " (deleted)";
	static const char *const memory[] = { "dev/zero", "dev/shm/", "memfd:", "SYSV" };
	size_t n = strlen(path), tail = sizeof(deleted) - 1;

	if (n <= tail || strcmp(path + n - tail, deleted) != 0)
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(memory); i++)
		if (strncmp(path, memory[i], strlen(memory[i])) == 0)
			return 0;
	return 1;
}

void checkpoint_track_mapped(struct checkpoint_track *t, const struct delta_mapped *m)
{
	if (t->events < 0 || t->without & TRACK_WRITERS)
		return;
	for (size_t i = 0; i < m->ninodes; i++)
		track_add_both(t, m->inodes[i], 0);
	for (size_t at = 0; at < m->paths_bytes; at += strlen(m->paths + at) + 1) {
		auto_free char *path = strdup(m->paths + at);

		if (!path)
			abort();
		if (track_lost_name(path))
			track_lose(t);
		track_add_path(t, path);
		track_unescape(path);
		track_add_path(t, path);
	}
}

/* ---- a checkpoint ---- */

void checkpoint_track_stop(struct checkpoint_track *t)
{
	if (t->events < 0)
		return;
	checkpoint_track_read(t);
	t->since_stop.n = 0;
	t->since_stop.is_lost = 0;
	t->descriptors = 0;
}

void checkpoint_track_fill(const struct checkpoint_track *t, struct delta_mapped *out)
{
	const struct track_list *l = &t->since_base;

	out->is_tracked = t->events >= 0 && !l->is_lost;
	if (!out->is_tracked)
		return;
	out->touched = malloc(l->n * sizeof(*l->v) + 1);
	if (!out->touched)
		abort();
	if (l->n)
		memcpy(out->touched, l->v, l->n * sizeof(*l->v));
	out->ntouched = track_unite(out->touched, l->n);
}

void checkpoint_track_save(struct checkpoint_track *t, const char *id, const char *same)
{
	struct track_list *l = &t->since_stop;
	struct track_head h = { .is_marked = 1 };
	size_t bytes;

	if (t->events < 0)
		return;
	checkpoint_track_read(t);
	h.n = track_unite(l->v, l->n);
	bytes = h.n * sizeof(*l->v);
	if (!l->is_lost && (!bytes || pwrite(t->list, l->v, bytes, sizeof(h)) == (ssize_t)bytes)) {
		snprintf(h.base[0], sizeof(h.base[0]), "%s", id);
		snprintf(h.base[1], sizeof(h.base[1]), "%s", same);
	}
	(void)!pwrite(t->list, &h, sizeof(h), 0);
}

void checkpoint_track_end(struct checkpoint_track *t)
{
	free(t->since_base.v);
	free(t->since_stop.v);
}
