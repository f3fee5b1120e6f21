/* watch.c - WATCH: reports what changes in a folder, and below it, until the client leaves; see
 * worker.h.
 *
 * The worker does nothing else from then on. Nothing is queued here: while the client does not
 * read, the worker does not either, the kernel's queue overflows, and the client gets an
 * OVERFLOW. Each watched folder knows its name and the folder above, so a folder that is moved
 * keeps what is below it.
 *
 * A rename is two events of the kernel, which may have others between them: the first half waits
 * a moment for its other half. Without one it was a move out of the folder, that is, a removal.
 * A file that is written to all the time is reported every 20 ms, and once more at the end.
 * WATCH_PLAIN is for clients that want the plain events of inotify: each half is reported by
 * itself.
 *
 * A client that sends SYNC gets all events up to that moment: the kernel queues an event before
 * the call that caused it returns. */
#include "base/err.h"
#include "init/conn.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/tree.h"
#include "init/worker.h"
#include <linux/inotify.h>
#include <linux/magic.h>
#include <linux/poll.h>

enum { WATCHES = 4096, NAME = 256, ROOT = 0, NOWHERE = -1 };
/* Not in every kernel's magic.h. */
#define CIFS_MAGIC 0xFF534D42u
#define SMB2_MAGIC 0xFE534D42u
#define FUSE_MAGIC 0x65735546u
#define OTHER_HALF_NS 100000000ull
#define WRITES_NS 20000000ull
enum {
	WANTED = IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
		 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK,
};

struct half {            /* of a rename: the old path */
	uint32_t cookie; /* 0: none waits */
	int folder, is_dir, hidden;
	uint64_t since_ns;
	char name[NAME];
};

static LAZY struct watch {
	uint32_t ref;
	int fd, deep, skipped, plain, entries;
	int parent; /* watch on the parent folder, to notice the end of the watched one */
	struct half half;
	uint32_t upload;   /* plain: cookie of the last rename from a hidden name */
	int written, owed; /* folder of the last reported write; 1: it was written to since */
	uint64_t written_ns;
	char written_name[NAME];
} w;
static LAZY int wds[WATCHES]; /* 0: a free slot; the watched folder itself is slot 0 */
static LAZY struct {
	int above;
	char name[NAME];
} folders[WATCHES];
static LAZY char one[PATH_MAX + NAME], two[PATH_MAX + NAME];
static LAZY char events[16384] __attribute__((aligned(8)));

/* ---- names ---- */

/* Writes the path of `name` in `folder` to the end of a buffer; NULL: too long to be opened. */
static char *path_of(char buffer[PATH_MAX + NAME], int folder, const char *name)
{
	size_t n = strlen(name), at = PATH_MAX + NAME - 1 - n;

	memcpy(buffer + at, name, n + 1);
	for (; folder != ROOT; folder = folders[folder].above) {
		n = strlen(folders[folder].name);
		if (n + 1 > at)
			return NULL;
		if (buffer[at])
			buffer[--at] = '/';
		at -= n;
		memcpy(buffer + at, folders[folder].name, n);
	}
	return buffer + at;
}

static int find_wd(int wd)
{
	int i;

	for (i = 0; i < WATCHES; i++)
		if (wds[i] == wd)
			return i;
	return NOWHERE;
}

static int find_name(int above, const char *name)
{
	int i;

	for (i = ROOT + 1; i < WATCHES; i++)
		if (wds[i] && folders[i].above == above && !text_compare(folders[i].name, name))
			return i;
	return NOWHERE;
}

static void set_name(char to[NAME], const char *name)
{
	struct text t = { .to = to, .room = NAME };

	*to = '\0';
	text_add(&t, name);
}

/* ---- telling ---- */

static void tell_entry(const char *path)
{
	struct stat st;

	if (sys_fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) >= 0)
		say_full(w.ref, &st, AT_FDCWD, path, path);
}

static void watch_tell(uint32_t kind, int is_dir, const char *path, const char *now)
{
	struct wire_event e = { .head = conn_head(WIRE_EVENT, w.ref), .kind = kind };

	e.is_dir = (uint32_t)is_dir;
	if (w.entries &&
	    (kind == WIRE_EVENT_CREATE || kind == WIRE_EVENT_WRITE || kind == WIRE_EVENT_CHMOD))
		tell_entry(path);
	if (now)
		say_two(&e, sizeof(e), path, now);
	else
		say(&e, sizeof(e), path, strlen(path));
}

/* The last write is reported before later events. */
static void settle_writes(void)
{
	const char *path = w.owed ? path_of(one, w.written, w.written_name) : NULL;

	w.owed = 0;
	w.written_ns = sys_now_ns();
	if (path)
		watch_tell(WIRE_EVENT_WRITE, 0, path, NULL);
}

static void tell_of(uint32_t kind, int is_dir, int folder, const char *name)
{
	const char *path;

	settle_writes();
	w.written_name[0] = '\0';
	path = path_of(one, folder, name);
	if (path)
		watch_tell(kind, is_dir, path, NULL);
}

static void tell_write(int folder, const char *name)
{
	if (w.written == folder && !text_compare(w.written_name, name)) {
		w.owed = 1;
		if (sys_now_ns() - w.written_ns >= WRITES_NS)
			settle_writes();
		return;
	}
	tell_of(WIRE_EVENT_WRITE, 0, folder, name);
	w.written = folder;
	set_name(w.written_name, name);
}

/* ---- folders ---- */

/* Its slot; -ENFILE: all are taken; or -errno. A folder that is already watched and was moved is
 * found by its inode number. */
static int watch_add(int above, const char *name)
{
	const char *path = path_of(two, above, name);
	int slot = 0, wd;

	if (!path || strlen(path) >= PATH_MAX)
		return -ENFILE;
	while (slot < WATCHES && wds[slot])
		slot++;
	if (slot == WATCHES)
		return -ENFILE;
	wd = (int)sys_inotify_add_watch(w.fd, *path ? path : ".", WANTED);
	if (wd < 0)
		return wd == -ENOSPC ? -ENFILE : wd;
	if (find_wd(wd) != NOWHERE)
		slot = find_wd(wd);
	wds[slot] = wd;
	if (slot != ROOT) {
		folders[slot].above = above;
		set_name(folders[slot].name, name);
	}
	return slot;
}

static int add_below(int above, const char *name, int aloud)
{
	int slot = watch_add(above, name);

	if (slot == -ENFILE && aloud) {
		tell_of(WIRE_EVENT_LIMIT, 1, above, name);
		return NOWHERE;
	}
	w.skipped |= slot < 0;
	return slot == -ENFILE ? slot : slot < 0 ? NOWHERE : slot;
}

static int is_folder(int dir, const struct dirent64 *d)
{
	struct stat st;

	if (d->d_type)
		return d->d_type == DIRENT_DIR;
	return sys_fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISDIR(st.st_mode);
}

/* Watches every folder below this one. aloud: the folder is new, so all its content is reported. */
static int scan_tree(struct tree *t, int slot, int aloud)
{
	for (;;) {
		const struct dirent64 *d = tree_next(t);
		int below, dir;

		if (!d && !t->depth)
			return 0;
		if (!d) {
			if (tree_leave(t) < 0)
				return 0; /* it was moved meanwhile; its events will show that */
			slot = folders[slot].above;
			continue;
		}
		dir = is_folder(t->dir, d);
		if (aloud && !text_starts(d->d_name, TEMPORARY))
			tell_of(WIRE_EVENT_CREATE, dir, slot, d->d_name);
		/* It may have been written to before the watch was added. */
		if (aloud && w.plain && !dir && !text_starts(d->d_name, TEMPORARY))
			tell_of(WIRE_EVENT_WRITE, 0, slot, d->d_name);
		if (!dir)
			continue;
		below = add_below(slot, d->d_name, aloud);
		if (below == -ENFILE)
			return below;
		if (below != NOWHERE && tree_enter(t, d->d_name) >= 0)
			slot = below;
	}
}

static int watch_scan(int slot, int aloud)
{
	const char *path = path_of(two, slot, "");
	struct tree t;
	int err, fd;

	if (!w.deep || !path)
		return 0;
	fd = (int)sys_openat(AT_FDCWD, *path ? path : ".",
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	err = tree_init(&t, fd);
	t.cross = 1;
	err = err < 0 ? 0 : scan_tree(&t, slot, aloud);
	tree_fini(&t);
	return err;
}

static void new_folder(int above, const char *name, int aloud)
{
	int slot = w.deep ? add_below(above, name, 1) : NOWHERE;

	if (slot >= 0)
		watch_scan(slot, aloud);
}

/* Counted: a folder's slot may have been given to one far below it. */
static int is_below(int slot, int top)
{
	int hops;

	for (hops = 0; slot != top && slot != ROOT && hops < WATCHES; hops++)
		slot = folders[slot].above;
	return slot == top;
}

static void forget_below(int top)
{
	int i;

	for (i = ROOT + 1; i < WATCHES; i++)
		if (wds[i] && i != top && is_below(i, top)) {
			sys_inotify_rm_watch(w.fd, wds[i]);
			wds[i] = -1; /* its name is still part of the paths below it */
		}
	sys_inotify_rm_watch(w.fd, wds[top]);
	wds[top] = -1;
	for (i = ROOT + 1; i < WATCHES; i++)
		wds[i] = wds[i] < 0 ? 0 : wds[i];
}

/* Watches everything again: at the start, and when folders may have been created, removed or
 * moved without an event. */
static int watch_begin(void)
{
	int err;

	sys_close(w.fd);
	memset(wds, 0, sizeof(wds));
	w.fd = (int)sys_inotify_init(O_NONBLOCK | O_CLOEXEC);
	if (w.fd < 0)
		return w.fd;
	err = watch_add(ROOT, "");
	w.parent = (int)sys_inotify_add_watch(w.fd, "..", IN_DELETE | IN_ONLYDIR | IN_MASK_ADD);
	return err < 0 ? err : watch_scan(ROOT, 0);
}

/* ---- renames ---- */

/* The second half did not arrive: it was moved out of the folder. */
static void give_up_half(void)
{
	int slot;

	if (!w.half.cookie)
		return;
	w.half.cookie = 0;
	if (w.half.hidden)
		return;
	tell_of(WIRE_EVENT_REMOVE, w.half.is_dir, w.half.folder, w.half.name);
	slot = w.half.is_dir ? find_name(w.half.folder, w.half.name) : NOWHERE;
	if (slot != NOWHERE)
		forget_below(slot);
}

static void moved_from(int folder, const struct inotify_event *ev)
{
	give_up_half();
	w.half = (struct half){ .cookie = ev->cookie,
				.folder = folder,
				.is_dir = !!(ev->mask & IN_ISDIR),
				.hidden = text_starts(ev->name, TEMPORARY),
				.since_ns = sys_now_ns() };
	set_name(w.half.name, ev->name);
}

static void watch_renamed(int folder, const char *name)
{
	const char *was = path_of(one, w.half.folder, w.half.name),
		   *now = path_of(two, folder, name);
	int slot = w.half.is_dir ? find_name(w.half.folder, w.half.name) : NOWHERE;

	if (was && now)
		watch_tell(WIRE_EVENT_RENAME, w.half.is_dir, was, now);
	if (slot != NOWHERE) {
		folders[slot].above = folder;
		set_name(folders[slot].name, name);
	} else if (w.half.is_dir) {
		new_folder(folder, name, 1);
	}
}

static void watch_appeared(int folder, const char *name, int is_dir, int whole)
{
	tell_of(WIRE_EVENT_CREATE, is_dir, folder, name);
	if (is_dir)
		new_folder(folder, name, 1);
	else if (whole)
		tell_write(folder, name);
}

static void moved_to(int folder, const struct inotify_event *ev)
{
	int ours = w.half.cookie == ev->cookie, hidden = text_starts(ev->name, TEMPORARY);

	if (!ours)
		give_up_half();
	settle_writes();
	w.written_name[0] = '\0';
	/* Uploads of a worker have a hidden name first, and the file that they replace may get
	 * one. */
	if (ours && !w.half.hidden && !hidden)
		watch_renamed(folder, ev->name);
	else if (!hidden)
		watch_appeared(folder, ev->name, !!(ev->mask & IN_ISDIR), 1);
	if (ours)
		w.half.cookie = 0;
}

/* ---- the two halves as they are ---- */

static void plain_from(int folder, const struct inotify_event *ev)
{
	int is_dir = !!(ev->mask & IN_ISDIR), slot;

	if (text_starts(ev->name, TEMPORARY)) {
		w.upload = ev->cookie;
		return;
	}
	tell_of(WIRE_EVENT_RENAME, is_dir, folder, ev->name);
	slot = is_dir ? find_name(folder, ev->name) : NOWHERE;
	if (slot != NOWHERE)
		forget_below(slot);
}

static void plain_to(int folder, const struct inotify_event *ev)
{
	int is_dir = !!(ev->mask & IN_ISDIR);

	if (text_starts(ev->name, TEMPORARY))
		return;
	tell_of(WIRE_EVENT_CREATE, is_dir, folder, ev->name);
	if (is_dir) {
		new_folder(folder, ev->name, 0);
	} else if (ev->cookie == w.upload) { /* made, given to its user, and filled */
		tell_of(WIRE_EVENT_CHMOD, 0, folder, ev->name);
		tell_of(WIRE_EVENT_WRITE, 0, folder, ev->name);
	}
}

/* ---- events ---- */

static void watch_overflow(void)
{
	w.half.cookie = 0;
	w.owed = 0;
	w.written_name[0] = '\0';
	if (watch_begin() < 0)
		sys_exit(0); /* the client sees the end */
	/* Sent when the new watches exist: changes after the client's next listing are reported. */
	watch_tell(WIRE_EVENT_OVERFLOW, 0, "", NULL);
}

/* Is this a file that has no name (O_TMPFILE), as uploads until they are complete? The kernel
 * names it "#" and its number. It does not report writes to such files (IN_EXCL_UNLINK), but
 * changes of their modes. */
static int is_nameless(int folder, const char *name)
{
	const char *path = *name == '#' ? path_of(one, folder, name) : NULL;
	struct stat st;

	return path && sys_fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == -ENOENT;
}

static void watch_inside(int folder, const struct inotify_event *ev)
{
	int is_dir = !!(ev->mask & IN_ISDIR);

	if (w.plain && ev->mask & IN_MOVED_FROM)
		plain_from(folder, ev);
	else if (w.plain && ev->mask & IN_MOVED_TO)
		plain_to(folder, ev);
	else if (ev->mask & IN_MOVED_FROM)
		moved_from(folder, ev);
	else if (ev->mask & IN_MOVED_TO)
		moved_to(folder, ev);
	else if (text_starts(ev->name, TEMPORARY) ||
		 (ev->mask & IN_ATTRIB && is_nameless(folder, ev->name)))
		return;
	else if (ev->mask & IN_CREATE)
		watch_appeared(folder, ev->name, is_dir, 0);
	else if (ev->mask & IN_MODIFY)
		tell_write(folder, ev->name);
	else if (ev->mask & IN_ATTRIB)
		tell_of(WIRE_EVENT_CHMOD, is_dir, folder, ev->name);
	else if (ev->mask & IN_DELETE)
		tell_of(WIRE_EVENT_REMOVE, is_dir, folder, ev->name);
}

static _Noreturn void watch_gone(void)
{
	give_up_half();
	settle_writes();
	watch_tell(WIRE_EVENT_GONE, 1, "", NULL);
	sys_exit(0);
}

/* The working folder of the worker is the one it watches, so a removal does not free its inode
 * and causes no event of its own. Where the folder above may not be watched, the removal is not
 * reported. */
static void look_whether_gone(void)
{
	if (sys_getcwd(one, sizeof(one)) == -ENOENT)
		watch_gone();
}

/* -1: the whole watch was restarted. */
static int watch_happened(const struct inotify_event *ev)
{
	int folder = find_wd(ev->wd);

	if (ev->mask & IN_Q_OVERFLOW) {
		watch_overflow();
		return -1;
	}
	if (ev->wd == w.parent && ev->mask & IN_ISDIR)
		look_whether_gone();
	if (folder == NOWHERE)
		return 0; /* of a watch that was removed */
	if (folder == ROOT && ev->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) {
		watch_gone();
	} else if (ev->mask & IN_IGNORED) {
		wds[folder] = 0;
	} else if (ev->len) {
		watch_inside(folder, ev);
	}
	return 0;
}

/* Bytes of the kernel's queue that were read. */
static long take_events(void)
{
	long at = 0, n = sys_read(w.fd, events, sizeof(events));

	while (at < n) {
		const struct inotify_event *ev = (const void *)(events + at);
		if (watch_happened(ev) < 0)
			return 0; /* the rest belongs to watches that no longer exist */
		at += (long)(sizeof(*ev) + ev->len);
	}
	return n > 0 ? n : 0;
}

/* Reads the events that are in the queue now, and no more: a program that writes without pause
 * must not keep the worker here. */
static void catch_up(uint32_t ref)
{
	int waiting = 0;
	long n = 1;

	if (sys_ioctl(w.fd, FIONREAD, &waiting) < 0)
		waiting = 0;
	for (; waiting > 0 && n > 0; waiting -= (int)n)
		n = take_events();
	settle_writes();
	w.written_name[0] = '\0';
	say_head(WIRE_DONE, ref, 0);
}

static void watch_hear(void)
{
	struct frame f;
	long n = sys_read(SOCK, &f, sizeof(f));

	if (n != sizeof(f) || f.version != WIRE_VERSION || f.type != WIRE_SYNC)
		sys_exit(0); /* disconnected, or it sent a frame that is not allowed now */
	catch_up(f.ref);
}

static long patience_ns(void)
{
	return w.half.cookie ? (long)OTHER_HALF_NS : w.owed ? (long)WRITES_NS : -1;
}

static _Noreturn void watch_on(void)
{
	for (;;) {
		struct pollfd wait[2] = { { .fd = SOCK, .events = POLLIN },
					  { .fd = w.fd, .events = POLLIN } };

		sys_ppoll(wait, 2, patience_ns());
		if (wait[0].revents)
			watch_hear();
		if (wait[1].revents)
			take_events();
		if (w.owed && sys_now_ns() - w.written_ns >= WRITES_NS)
			settle_writes();
		if (w.half.cookie && sys_now_ns() - w.half.since_ns >= OTHER_HALF_NS)
			give_up_half();
	}
}

static int is_remote(int dir)
{
	static const uint32_t magics[] = { NFS_SUPER_MAGIC, CIFS_MAGIC, SMB_SUPER_MAGIC, SMB2_MAGIC,
					   FUSE_MAGIC };
	struct statfs fs;
	unsigned i;

	if (sys_fstatfs(dir, &fs) < 0)
		return 0;
	for (i = 0; i < ARRAY_LEN(magics); i++)
		if ((uint32_t)fs.f_type == magics[i])
			return 1;
	return 0;
}

int watch(const struct job *j)
{
	int err, dir = (int)sys_openat(AT_FDCWD, j->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (dir < 0)
		return dir;
	if (j->head->flags & WIRE_WATCH_LOCAL && is_remote(dir)) {
		sys_close(dir);
		return -EREMOTE;
	}
	/* Watches are added by path: from here on all are relative to the folder. */
	err = (int)sys_fchdir(dir);
	sys_close(dir);
	w = (struct watch){ .ref = j->head->ref, .fd = -1 };
	w.deep = j->head->flags & WIRE_WATCH_DEEP;
	w.plain = j->head->flags & WIRE_WATCH_PLAIN;
	w.entries = j->head->flags & WIRE_WATCH_ENTRY;
	if (err >= 0)
		err = watch_begin();
	if (err == -ENFILE) {
		say_refusal(w.ref, ERR_LIMIT, "watch", j->path, "more than 4096 folders");
		sys_exit(0); /* the watches and the working folder end with the process */
	}
	if (err < 0) {
		say_error(w.ref, "watch", j->path, -err);
		sys_exit(0);
	}
	say_head(WIRE_DONE, w.ref, w.skipped ? WIRE_DONE_SKIPPED : 0);
	watch_on();
}
