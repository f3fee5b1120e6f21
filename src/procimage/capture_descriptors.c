/* capture_descriptors.c - open descriptors of a stopped program, one row of keep.h each. Sockets are in
 * capture_sockets.c. */
#include "procimage/capture_descriptors.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { CONTENT_MOST = 16 << 20 };
enum { TERMINAL_SLAVE = 136, TERMINAL_DEVICES = 5, TERMINAL_MASTER = 2 }; /* major, major, minor */

/* ---- the list ---- */

static int capture_compare_numbers(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int capture_list_numbers(struct capture *c, int *numbers, struct err *e)
{
	char path[64];
	struct dirent *d;
	DIR *dir;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", c->tracee.pid);
	dir = opendir(path);
	if (!dir)
		return err_sys(e, "read %s", path);
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.')
			continue;
		if (n == IMAGE_DESCRIPTORS_MOST) {
			closedir(dir);
			return keep_refuse(e, KEEP_TOO_MANY, c->tracee.pid, -1,
					   "more than 4096 descriptors");
		}
		numbers[n++] = atoi(d->d_name);
	}
	closedir(dir);
	qsort(numbers, (size_t)n, sizeof(*numbers), capture_compare_numbers);
	return n;
}

static int capture_read_info(struct capture *c, struct open_descriptor *o, struct err *e)
{
	char path[64];
	const char *flags;
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", c->tracee.pid, o->number);
	n = readlink(path, o->target, sizeof(o->target) - 1);
	if (n < 0 || stat(path, &o->st) < 0)
		return err_sys(e, "read %s", path);
	o->target[n] = 0;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", c->tracee.pid, o->number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "read %s", path);
	while ((n = read(fd, buf_space(&o->info, 4096), 4096)) > 0)
		buf_grew(&o->info, (size_t)n);
	flags = strstr(buf_str(&o->info), "flags:\t");
	if (!flags)
		return err_set(e, ERR_SYS, "%s has no flags", path);
	o->flags = (uint32_t)strtoul(flags + 7, NULL, 8);
	return 0;
}

/* ---- numbers of one description ---- */

/* Where the description of this number is, or belongs, in the list of those of `in`, which is sorted as the kernel sorts
 * them: thousands of descriptors of one kind have one inode. 1: it is there. */
static int capture_search_same(const struct capture *in, pid_t pid, int number, uint32_t *out_at)
{
	const struct image_descriptor *d = image_descriptors(&in->image);
	uint32_t low = 0, high = in->ndescriptions;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		long order = syscall(SYS_kcmp, in->tracee.pid, pid, KCMP_FILE,
				     d[in->descriptions[middle]].number, number);

		if (order == 1) {
			low = middle + 1;
		} else if (order == 2) {
			high = middle;
		} else {
			*out_at = middle;
			return order == 0;
		}
	}
	*out_at = low;
	return 0;
}

static void capture_add_description(struct capture *c, uint32_t index)
{
	uint32_t at;

	if (image_descriptors(&c->image)[index].kind == DESCRIPTOR_SAME ||
	    capture_search_same(c, c->tracee.pid, image_descriptors(&c->image)[index].number, &at))
		return;
	c->descriptions =
		reallocarray(c->descriptions, c->ndescriptions + 1, sizeof(*c->descriptions));
	if (!c->descriptions)
		abort();
	memmove(c->descriptions + at + 1, c->descriptions + at,
		(c->ndescriptions - at) * sizeof(*c->descriptions));
	c->descriptions[at] = index;
	c->ndescriptions++;
}

/* The descriptor of `in` with the same description, or NULL. */
static struct image_descriptor *capture_find_same(const struct capture *c,
						  const struct open_descriptor *o,
						  const struct capture *in)
{
	struct image_descriptor *d;
	uint32_t at;

	if (!capture_search_same(in, c->tracee.pid, o->number, &at))
		return NULL;
	d = &image_descriptors(&in->image)[in->descriptions[at]];
	return in == c || d->kind != DESCRIPTOR_OBJECT ? d : NULL;
}

/* A description that another process of the tree has, too. 1: found. */
static int capture_find_object(const struct capture *c, struct image_descriptor *d,
			       const struct open_descriptor *o, struct err *e)
{
	for (unsigned k = 0; k < c->options.nbefore; k++) {
		struct image_descriptor *x = capture_find_same(c, o, c->options.before[k]);

		if (!x)
			continue;
		if (!x->object)
			x->object = ++*c->options.objects;
		if (x->object >= IMAGE_OBJECTS_MOST)
			return keep_refuse(e, KEEP_TOO_MANY, c->tracee.pid, o->number,
					   "more than 4,095 shared descriptions");
		d->kind = DESCRIPTOR_OBJECT;
		d->object = x->object;
		return 1;
	}
	return 0;
}

/* ---- kinds ---- */

static uint64_t capture_info_number(const struct open_descriptor *o, const char *name, int base)
{
	const char *at = strstr(buf_str(&o->info), name);

	return at ? strtoull(at + strlen(name), NULL, base) : 0;
}

static int capture_open_again(struct capture *c, const struct open_descriptor *o, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", c->tracee.pid, o->number);
	return open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int capture_add_content(struct capture *c, struct image_descriptor *d,
			       const struct open_descriptor *o, struct err *e)
{
	auto_fd int fd = capture_open_again(c, o, O_RDONLY);
	auto_buf struct buf content = { 0 };
	ssize_t n;

	if (fd < 0)
		return err_sys(e, "read the content of descriptor %d", o->number);
	if (o->st.st_size > CONTENT_MOST)
		return keep_refuse(e, KEEP_DELETED, c->tracee.pid, o->number, "more than 16 MiB");
	while ((n = pread(fd, buf_space(&content, 65536), 65536, (off_t)content.len)) > 0)
		buf_grew(&content, (size_t)n);
	if (n < 0)
		return err_sys(e, "read the content of descriptor %d", o->number);
	d->data_bytes = (uint32_t)content.len;
	d->data = procimage_add_bytes(&c->image, content.p, content.len);
	return 0;
}

static int capture_add_file(struct capture *c, struct image_descriptor *d,
			    const struct open_descriptor *o, struct err *e)
{
	char path[4300];
	struct stat st;

	d->offset = capture_info_number(o, "pos:\t", 10);
	if (!o->st.st_nlink || !strncmp(o->target, "/memfd:", 7)) {
		d->kind = DESCRIPTOR_MEMORY;
		return capture_add_content(c, d, o, e);
	}
	snprintf(path, sizeof(path), "/proc/%d/root%s", c->tracee.pid, o->target);
	if (stat(path, &st) < 0 || st.st_ino != o->st.st_ino)
		return keep_refuse(e, KEEP_OTHER, c->tracee.pid, o->number,
				   "a file without a name");
	d->kind = DESCRIPTOR_FILE;
	d->path = procimage_add_string(&c->image, o->target);
	return 0;
}

static int capture_add_master(struct capture *c, struct image_descriptor *d,
			      const struct open_descriptor *o, struct err *e)
{
	d->kind = DESCRIPTOR_TERMINAL;
	d->offset = capture_info_number(o, "tty-index:\t", 10);
	if (c->options.nbefore)
		d->object = ++*c->options.objects;
	return capture_add_terminal(c, o, (uint32_t)d->offset, e);
}

static int capture_add_device(struct capture *c, struct image_descriptor *d,
			      const struct open_descriptor *o, struct err *e)
{
	unsigned minor_number = minor(o->st.st_rdev);

	if (major(o->st.st_rdev) == TERMINAL_SLAVE)
		return capture_add_terminal(c, o, minor_number, e) < 0
			       ? -1
			       : capture_add_file(c, d, o, e);
	if (major(o->st.st_rdev) == TERMINAL_DEVICES && minor_number == TERMINAL_MASTER)
		return capture_add_master(c, d, o, e);
	/* /dev/tty: a copy opens it after it has its terminal. */
	if (major(o->st.st_rdev) == TERMINAL_DEVICES && minor_number == 0)
		return capture_add_file(c, d, o, e);
	if (major(o->st.st_rdev) == 1 &&
	    (minor_number == 3 || minor_number == 5 || minor_number == 7 || minor_number == 8 ||
	     minor_number == 9))
		return capture_add_file(c, d, o, e);
	return keep_refuse(e, KEEP_DEVICE, c->tracee.pid, o->number, o->target);
}

/* The bytes are duplicated, not taken. */
static int capture_add_pipe_bytes(struct capture *c, struct image_descriptor *d,
				  const struct open_descriptor *o, struct err *e)
{
	auto_fd int from = capture_open_again(c, o, O_RDONLY);
	auto_buf struct buf content = { 0 };
	int copy[2];
	ssize_t n, got;

	if (from < 0 || pipe2(copy, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, "read the pipe of descriptor %d", o->number);
	fcntl(copy[1], F_SETPIPE_SZ, fcntl(from, F_GETPIPE_SZ));
	n = tee(from, copy[1], 1 << 30, SPLICE_F_NONBLOCK);
	close(copy[1]);
	while (n > 0 && (got = read(copy[0], buf_space(&content, 65536), 65536)) > 0)
		buf_grew(&content, (size_t)got);
	close(copy[0]);
	if (n < 0 && errno != EAGAIN)
		return err_sys(e, "read the pipe of descriptor %d", o->number);
	d->data_bytes = (uint32_t)content.len;
	d->data = procimage_add_bytes(&c->image, content.p, content.len);
	return 0;
}

static int capture_add_pipe(struct capture *c, struct image_descriptor *d,
			    const struct open_descriptor *o, struct err *e)
{
	d->kind = DESCRIPTOR_PIPE;
	if (o->target[0] == '/')
		return keep_refuse(e, KEEP_OTHER_PIPE, c->tracee.pid, o->number, o->target);
	return (o->flags & O_ACCMODE) == O_WRONLY ? 0 : capture_add_pipe_bytes(c, d, o, e);
}

static void capture_add_timer(struct capture *c, struct image_descriptor *d,
			      const struct open_descriptor *o)
{
	unsigned long long words[4] = { 0 };
	const char *value = strstr(buf_str(&o->info), "it_value: (");
	const char *interval = strstr(buf_str(&o->info), "it_interval: (");

	if (interval)
		sscanf(interval, "it_interval: (%llu, %llu)", &words[0], &words[1]);
	if (value)
		sscanf(value, "it_value: (%llu, %llu)", &words[2], &words[3]);
	if (capture_info_number(o, "ticks: ", 10))
		words[2] = 0, words[3] = 1; /* has expired and was not read: expires at once */
	d->kind = DESCRIPTOR_TIMER;
	d->type = (uint32_t)capture_info_number(o, "clockid: ", 10);
	d->data_bytes = sizeof(words);
	d->data = procimage_add_bytes(&c->image, words, sizeof(words));
}

static void capture_add_watches(struct capture *c, const struct open_descriptor *o)
{
	const char *line = buf_str(&o->info);
	int number;
	unsigned events;
	unsigned long long data;

	for (; (line = strstr(line, "tfd:")); line += 4)
		if (sscanf(line, "tfd: %d events: %x data: %llx", &number, &events, &data) == 3)
			*(struct image_watch *)procimage_add(&c->image, TABLE_WATCHES, 1) =
				(struct image_watch){ o->number, number, events, 0, data };
}

static int capture_add_anonymous(struct capture *c, struct image_descriptor *d,
				 const struct open_descriptor *o, struct err *e)
{
	static const struct {
		const char *part;
		enum keep row;
	} refused[] = { { "io_uring", KEEP_IO_URING },
			{ "userfaultfd", KEEP_USERFAULTFD },
			{ "perf", KEEP_PERF },
			{ "bpf", KEEP_PERF },
			{ "fanotify", KEEP_FANOTIFY } };

	if (strstr(o->target, "[eventfd]")) {
		d->kind = DESCRIPTOR_EVENT;
		d->offset = capture_info_number(o, "eventfd-count:", 16);
		d->type = (uint32_t)capture_info_number(o, "eventfd-semaphore:", 10);
	} else if (strstr(o->target, "[timerfd]")) {
		capture_add_timer(c, d, o);
	} else if (strstr(o->target, "[eventpoll]")) {
		d->kind = DESCRIPTOR_EPOLL;
		capture_add_watches(c, o);
	} else if (strstr(o->target, "[signalfd]")) {
		d->kind = DESCRIPTOR_SIGNAL;
		d->offset = capture_info_number(o, "sigmask:\t", 16);
	} else if (!strcmp(o->target, "anon_inode:inotify")) {
		d->kind = DESCRIPTOR_NOTIFY;
		return capture_add_notify(c, o, e);
	} else {
		for (unsigned i = 0; i < ARRAY_LEN(refused); i++)
			if (strstr(o->target, refused[i].part))
				return keep_refuse(e, refused[i].row, c->tracee.pid, o->number,
						   o->target);
		return keep_refuse(e, KEEP_OTHER, c->tracee.pid, o->number, o->target);
	}
	return 0;
}

/* Index in the list of the caller, or -1. */
static int capture_find_outside(struct capture *c, const struct capture_options *opt,
				const struct open_descriptor *o)
{
	uint64_t peer = 0;

	if (!S_ISFIFO(o->st.st_mode) && !S_ISSOCK(o->st.st_mode) && !S_ISCHR(o->st.st_mode))
		return -1;
	for (unsigned i = 0; i < opt->noutside; i++)
		if (opt->outside[i].inode == o->st.st_ino)
			return (int)i;
	if (!S_ISSOCK(o->st.st_mode) || !opt->noutside)
		return -1;
	if (!capture_is_connected_unix(c, o->number))
		return -1;
	peer = capture_unix_peer(c, o->st.st_ino);
	for (unsigned i = 0; peer && i < opt->noutside; i++)
		if (opt->outside[i].inode == peer)
			return (int)i;
	return peer ? -1 : (int)opt->foreign - 1;
}

static int capture_add_outside(struct capture *c, struct image_descriptor *d,
			       const struct open_descriptor *o, int index, struct err *e)
{
	d->kind = DESCRIPTOR_OUTSIDE;
	d->offset = (uint64_t)index;
	if (c->options.nbefore)
		d->object = ++*c->options.objects;
	if (S_ISSOCK(o->st.st_mode))
		return capture_add_waiting(c, d, o, e);
	if (S_ISFIFO(o->st.st_mode) && (o->flags & O_ACCMODE) != O_WRONLY)
		return capture_add_pipe_bytes(c, d, o, e);
	return 0;
}

static int capture_describe(struct capture *c, struct image_descriptor *d,
			    const struct open_descriptor *o, const struct capture_options *opt,
			    struct err *e)
{
	int index;

	const struct image_descriptor *same = capture_find_same(c, o, c);

	if (same) {
		d->kind = DESCRIPTOR_SAME;
		d->peer = same->number;
		return 0;
	}
	index = capture_find_object(c, d, o, e);
	if (index)
		return index < 0 ? -1 : 0;
	index = capture_find_outside(c, opt, o);
	if (index >= 0)
		return capture_add_outside(c, d, o, index, e);
	if (S_ISFIFO(o->st.st_mode))
		return capture_add_pipe(c, d, o, e);
	if (S_ISSOCK(o->st.st_mode))
		return capture_add_socket(c, d, o, e);
	if (S_ISCHR(o->st.st_mode))
		return capture_add_device(c, d, o, e);
	if (S_ISREG(o->st.st_mode) || S_ISDIR(o->st.st_mode))
		return capture_add_file(c, d, o, e);
	return capture_add_anonymous(c, d, o, e);
}

/* ---- relations ---- */

static int capture_number_exists(const struct capture *c, int number)
{
	const struct image_descriptor *d = image_descriptors(&c->image);

	for (uint64_t i = 0; i < c->image.header.count[TABLE_DESCRIPTORS]; i++)
		if (d[i].number == number)
			return 1;
	return 0;
}

static int capture_check_watches(struct capture *c, struct err *e)
{
	const struct image_watch *w = image_watches(&c->image);

	for (uint64_t i = 0; i < c->image.header.count[TABLE_WATCHES]; i++)
		if (!capture_number_exists(c, w[i].number))
			return keep_refuse(e, KEEP_OTHER, c->tracee.pid, w[i].epoll,
					   "an epoll that watches a descriptor without a number");
	return 0;
}

/* Of the other end of a terminal that was opened through its master, fdinfo shows the flag of that call. */
static int capture_ask_cloexec(struct capture *c, struct image_descriptor *d,
			       const struct open_descriptor *o, struct err *e)
{
	const uint64_t args[6] = { (uint64_t)o->number, F_GETFD };
	long flags;

	if (!d->cloexec || !S_ISCHR(o->st.st_mode) || major(o->st.st_rdev) != TERMINAL_SLAVE)
		return 0;
	if (tracee_call(&c->tracee, &c->tracee.threads[0], SYS_fcntl, args, &flags, e) < 0)
		return -1;
	d->cloexec = flags & FD_CLOEXEC;
	return 0;
}

int capture_read_descriptors(struct capture *c, const struct capture_options *opt, struct err *e)
{
	static int numbers[IMAGE_DESCRIPTORS_MOST];
	int n = capture_list_numbers(c, numbers, e);

	if (n < 0)
		return -1;
	for (int i = 0; i < n; i++) {
		struct open_descriptor o = { .number = numbers[i] };
		struct image_descriptor d = { .number = numbers[i], .peer = -1 };
		int rc = capture_read_info(c, &o, e);

		if (rc == 0) {
			d.flags = o.flags & ~(uint32_t)O_CLOEXEC;
			d.cloexec = o.flags & O_CLOEXEC ? 1 : 0;
			d.inode = o.st.st_ino;
			rc = capture_ask_cloexec(c, &d, &o, e);
			if (rc == 0)
				rc = capture_describe(c, &d, &o, opt, e);
		}
		buf_fini(&o.info);
		if (rc < 0)
			return -1;
		*(struct image_descriptor *)procimage_add(&c->image, TABLE_DESCRIPTORS, 1) = d;
		capture_add_description(c, (uint32_t)i);
	}
	return capture_check_watches(c, e);
}
