/* capture_notify.c - inotify watches of a stopped program.
 *
 * The kernel reports the inode of a watch, not its name. The names of the box are read until each inode has one,
 * those below /usr last. A name counts if the kernel says that its file is watched already. */
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/capture_descriptors.h"
#include "procimage/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NAMES_MOST = 50000, DEPTH_MOST = 64, PATH_MOST = 4095 };

struct watch {
	uint64_t inode;
	struct image_notify about;
	int found;
};

struct search {
	struct capture *c;
	int notify;  /* a duplicate of its descriptor */
	size_t root; /* bytes of "/proc/PID/root" */
	char path[PATH_MOST + 64];
	struct watch v[IMAGE_NOTIFY_MOST];
	unsigned n, found, names;
};

/* Only a file that is watched already is refused with EEXIST. */
static int search_is_watched(const struct search *s)
{
	int number = inotify_add_watch(s->notify, s->path,
				       IN_DELETE_SELF | IN_MASK_CREATE | IN_DONT_FOLLOW);

	if (number < 0)
		return errno == EEXIST;
	inotify_rm_watch(s->notify, number);
	return 0;
}

static void search_compare(struct search *s, uint64_t inode)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct watch *w = &s->v[i];

		if (w->found || w->inode != inode || !search_is_watched(s))
			continue;
		w->found = 1;
		w->about.path = procimage_add_string(&s->c->image,
						     s->path[s->root] ? s->path + s->root : "/");
		s->found++;
		return;
	}
}

static int search_is_left_out(const struct search *s, unsigned depth, const char *name, int last)
{
	static const char *const never[] = { "proc", "sys", "dev" };

	if (depth)
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(never); i++)
		if (!strcmp(name, never[i]))
			return 1;
	(void)s;
	return (strcmp(name, "usr") == 0) != last;
}

static void search_folder(struct search *s, size_t len, unsigned depth, int last)
{
	DIR *d = opendir(s->path);
	struct dirent *de;

	while (d && s->found < s->n && s->names < NAMES_MOST && (de = readdir(d))) {
		size_t n = strlen(de->d_name);
		struct stat st;

		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, "..") ||
		    search_is_left_out(s, depth, de->d_name, last) || len + n > PATH_MOST)
			continue;
		s->names++;
		s->path[len] = '/';
		memcpy(s->path + len + 1, de->d_name, n + 1);
		if (lstat(s->path, &st) < 0)
			continue;
		search_compare(s, st.st_ino);
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MOST)
			search_folder(s, len + 1 + n, depth + 1, last);
	}
	if (d)
		closedir(d);
	s->path[len] = 0;
}

static int search_read_watches(struct search *s, const struct open_descriptor *o, struct err *e)
{
	const char *at = buf_str(&o->info);

	for (; (at = strstr(at, "inotify wd:")); at++) {
		unsigned number, device, mask;
		unsigned long long inode;

		if (sscanf(at, "inotify wd:%x ino:%llx sdev:%x mask:%x", &number, &inode, &device,
			   &mask) != 4)
			return err_set(e, ERR_SYS, "cannot read the watches of descriptor %d",
				       o->number);
		if (s->n == IMAGE_NOTIFY_MOST || number > IMAGE_NOTIFY_MOST)
			return keep_refuse(e, KEEP_TOO_MANY, s->c->tracee.pid, o->number,
					   "more than 4,096 watches of inotify");
		s->v[s->n++] = (struct watch){
			.inode = inode,
			.about = { .descriptor = o->number,
				   .number = (int32_t)number,
				   .mask = mask & (IN_ALL_EVENTS | IN_EXCL_UNLINK | IN_ONESHOT) }
		};
	}
	return 0;
}

/* In order of numbers; the kernel lists the newest first. */
static void search_add(struct search *s)
{
	struct image_notify *to = procimage_add(&s->c->image, TABLE_NOTIFY, s->n);

	for (unsigned i = 0; i < s->n; i++) {
		unsigned at = 0;

		for (unsigned k = 0; k < s->n; k++)
			at += s->v[k].about.number < s->v[i].about.number;
		to[at] = s->v[i].about;
	}
}

int capture_add_notify(struct capture *c, const struct open_descriptor *o, struct err *e)
{
	static struct search s;
	auto_fd int pidfd = (int)syscall(SYS_pidfd_open, c->tracee.pid, 0);
	auto_fd int notify = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, o->number, 0);
	struct stat st;

	s = (struct search){ .c = c, .notify = notify };
	if (notify < 0)
		return err_sys(e, "duplicate descriptor %d of process %d", o->number,
			       c->tracee.pid);
	if (search_read_watches(&s, o, e) < 0)
		return -1;
	s.root = (size_t)snprintf(s.path, sizeof(s.path), "/proc/%d/root", c->tracee.pid);
	for (int last = 0; last < 2 && s.found < s.n; last++) {
		s.path[s.root] = '/';
		s.path[s.root + 1] = 0;
		if (!last && lstat(s.path, &st) == 0)
			search_compare(&s, st.st_ino);
		s.path[s.root] = 0;
		search_folder(&s, s.root, 0, last);
	}
	if (s.found < s.n)
		return keep_refuse(e, KEEP_NOT_FOUND, c->tracee.pid, o->number, "inotify");
	search_add(&s);
	return 0;
}
