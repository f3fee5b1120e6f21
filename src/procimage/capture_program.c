/* capture_program.c - what belongs to the whole program: ids, limits, handlers, timers. */
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/capture.h"
#include "procimage/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* The text of a file of /proc, with a NUL. */
static ssize_t capture_read_proc(pid_t pid, const char *name, char *to, size_t room, struct err *e)
{
	char path[96];
	auto_fd int fd = -1;
	size_t have = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "read %s", path);
	while (have < room - 1 && (n = read(fd, to + have, room - 1 - have)) > 0)
		have += (size_t)n;
	to[have] = 0;
	return (ssize_t)have;
}

static const char *capture_find_field(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? at + strlen(name) : "";
}

/* The last number of a line: the one of the innermost pid namespace. */
static int capture_last_number(const char *line)
{
	int number = 0, n = 0;

	while (sscanf(line, " %d%n", &number, &n) == 1) {
		line += n;
		if (*line == '\n')
			break;
	}
	return number;
}

static int capture_read_stat(struct capture *c, struct err *e)
{
	struct image_program *p = image_program(&c->image);
	uint64_t field[53] = { 0 };
	char text[2048], *at;

	if (capture_read_proc(c->tracee.pid, "stat", text, sizeof(text), e) < 0)
		return -1;
	at = strrchr(text, ')');
	if (!at)
		return err_set(e, ERR_SYS, "cannot read /proc/%d/stat", c->tracee.pid);
	at += 3; /* after the state, which is field 3 */
	for (unsigned i = 4; i < 53; i++)
		field[i] = strtoull(at, &at, 10);
	/* Major number 136 is that of slaves. */
	if ((field[7] >> 8 & 0xfff) == 136) {
		p->terminal = 1 + (uint32_t)((field[7] & 0xff) | (field[7] >> 12 & 0xfff00));
		p->foreground = (int32_t)field[8] > 0 ? (int32_t)field[8] : 0;
	}
	p->code[0] = field[26];
	p->code[1] = field[27];
	p->stack = field[28];
	p->data[0] = field[45];
	p->data[1] = field[46];
	p->brk[0] = field[47];
	p->args[0] = field[48];
	p->args[1] = field[49];
	p->env[0] = field[50];
	p->env[1] = field[51];
	return 0;
}

static int capture_read_status(struct capture *c, const struct capture_options *o, struct err *e)
{
	char text[8192], name[64];
	struct image_program *p = image_program(&c->image);

	for (unsigned i = 0; i < c->tracee.nthreads; i++) {
		struct image_thread *s = &c->tracee.threads[i].state;

		snprintf(name, sizeof(name), "task/%d/status", s->tid);
		if (capture_read_proc(c->tracee.pid, name, text, sizeof(text), e) < 0)
			return -1;
		s->pending = strtoull(capture_find_field(text, "SigPnd:\t"), NULL, 16);
		c->tracee.threads[i].inner_tid =
			capture_last_number(capture_find_field(text, "NSpid:\t"));
		sscanf(text, "Name:\t%15[^\n]", s->name);
		if (atoi(capture_find_field(text, "Seccomp_filters:\t")) > o->filters)
			return keep_refuse(e, KEEP_FILTERS, c->tracee.pid, -1, s->name);
		if (i)
			continue;
		p->pid = c->tracee.threads[i].inner_tid;
		p->group = capture_last_number(capture_find_field(text, "NSpgid:\t"));
		p->session = capture_last_number(capture_find_field(text, "NSsid:\t"));
		p->umask = (uint32_t)strtoul(capture_find_field(text, "Umask:\t"), NULL, 8);
		p->pending = strtoull(capture_find_field(text, "ShdPnd:\t"), NULL, 16);
		memcpy(p->name, s->name, sizeof(p->name));
	}
	return 0;
}

static int capture_refuse_state(struct capture *c, struct err *e)
{
	pid_t pid = c->tracee.pid;
	char text[8192], name[64];

	/* A program alone: see capture_stop() for trees. */
	for (unsigned i = 0; !c->options.objects && i < c->tracee.nthreads; i++) {
		snprintf(name, sizeof(name), "task/%d/children", c->tracee.threads[i].state.tid);
		if (capture_read_proc(pid, name, text, 64, e) < 0)
			return -1;
		if (text[0])
			return keep_refuse(e, KEEP_CHILDREN, pid, -1, "it has child processes");
	}
	return 0;
}

/* ---- timers of timer_create() ---- */

static int capture_compare_timers(const void *a, const void *b)
{
	return ((const struct image_timer *)a)->number - ((const struct image_timer *)b)->number;
}

static int capture_ask_timer(struct capture *c, struct image_timer *t, struct err *e)
{
	const uint64_t args[6] = { (uint64_t)t->number, c->tracee.results };
	uint64_t words[4];
	long rc;

	if (tracee_call(&c->tracee, &c->tracee.threads[0], SYS_timer_gettime, args, &rc, e) < 0)
		return -1;
	if (rc < 0 || pread(c->tracee.memory, words, 32, (off_t)c->tracee.results) != 32)
		return err_set(e, ERR_SYS, "cannot read timer %d of process %d", t->number,
			       c->tracee.pid);
	memcpy(t->interval, words, 16);
	memcpy(t->left, words + 2, 16);
	return 0;
}

static int capture_read_timer(struct capture *c, const char *text, struct err *e)
{
	struct image_timer t = { 0 }, *to;
	unsigned long long value;
	char how[16], target[8];

	if (sscanf(text, "%d signal: %d/%llx notify: %15[a-z]/%7[a-z].%d ClockID: %d", &t.number,
		   &t.signal, &value, how, target, &t.tid, &t.clock) != 7)
		return err_set(e, ERR_SYS, "cannot read the timers of process %d", c->tracee.pid);
	if (t.number < 0 || t.number >= IMAGE_TIMERS_MOST)
		return keep_refuse(e, KEEP_TOO_MANY, c->tracee.pid, -1, "the number of a timer");
	t.value = value;
	/* "thread" is SIGEV_THREAD, which the kernel treats like a signal. */
	t.notify = !strcmp(target, "tid") ? SIGEV_THREAD_ID
		   : !strcmp(how, "none") ? SIGEV_NONE
					  : SIGEV_SIGNAL;
	if (capture_ask_timer(c, &t, e) < 0)
		return -1;
	to = procimage_add(&c->image, TABLE_TIMERS, 1);
	*to = t;
	return 0;
}

static int capture_read_posix_timers(struct capture *c, struct err *e)
{
	static char text[IMAGE_TIMERS_MOST * 128];
	const char *at = text;

	if (capture_read_proc(c->tracee.pid, "timers", text, sizeof(text), e) < 0)
		return -1;
	if (strlen(text) == sizeof(text) - 1)
		return keep_refuse(e, KEEP_TOO_MANY, c->tracee.pid, -1, "more than 256 timers");
	for (; (at = strstr(at, "ID: ")); at++)
		if ((at == text || at[-1] == '\n') && capture_read_timer(c, at + 4, e) < 0)
			return -1;
	if (c->image.header.count[TABLE_TIMERS])
		qsort(image_timers(&c->image), c->image.header.count[TABLE_TIMERS],
		      sizeof(struct image_timer), capture_compare_timers);
	return 0;
}

static int capture_read_timers(struct capture *c, struct err *e)
{
	struct image_program *p = image_program(&c->image);

	for (unsigned i = 0; i < 3; i++) {
		const uint64_t args[6] = { i, c->tracee.results };
		long rc;

		if (tracee_call(&c->tracee, &c->tracee.threads[0], SYS_getitimer, args, &rc, e) < 0)
			return -1;
		if (rc < 0 ||
		    pread(c->tracee.memory, p->timers[i], 32, (off_t)c->tracee.results) != 32)
			return err_set(e, ERR_SYS, "cannot read timer %u of process %d", i,
				       c->tracee.pid);
	}
	return 0;
}

static int capture_read_links(struct capture *c, struct err *e)
{
	char path[64], target[4096], shared[4200], full[4400];
	const char *exe;
	struct image *im = &c->image;
	struct stat st;
	uint32_t name;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cwd", c->tracee.pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return err_sys(e, "read %s", path);
	target[n] = 0;
	snprintf(full, sizeof(full), "/proc/%d/root%s", c->tracee.pid, target);
	if (access(full, F_OK) < 0)
		return keep_refuse(e, KEEP_FOLDER, c->tracee.pid, -1, target);
	name = procimage_add_string(im, target);
	image_program(im)->folder = name;

	snprintf(path, sizeof(path), "/proc/%d/exe", c->tracee.pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0 || stat(path, &st) < 0)
		return err_sys(e, "read %s", path);
	target[n] = 0;
	exe = capture_find_shared_path(c, target, st.st_dev, st.st_ino, shared, sizeof(shared));
	snprintf(full, sizeof(full), "/proc/%d/root%s", c->tracee.pid, exe);
	if (access(full, F_OK) < 0)
		return keep_refuse(e, KEEP_EXECUTABLE, c->tracee.pid, -1, exe);
	name = procimage_add_string(im, exe);
	image_program(im)->exe = (uint32_t)im->header.count[TABLE_FILES];
	*(struct image_file *)procimage_add(im, TABLE_FILES, 1) = (struct image_file){
		.path = name,
		.place = capture_is_shared_file(c, exe, st.st_dev) ? IMAGE_FILE_SHARED
								   : IMAGE_FILE_BOX,
		.size = (uint64_t)st.st_size,
		.mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec,
		.dev = st.st_dev,
		.ino = st.st_ino
	};
	return 0;
}

enum { LIMIT_NAME = 26 }; /* columns of a name in /proc/PID/limits */

static uint64_t capture_limit(const char *text)
{
	return *text == 'u' ? UINT64_MAX : strtoull(text, NULL, 10);
}

static int capture_read_limits(struct capture *c, struct err *e)
{
	struct image_program *p = image_program(&c->image);
	char text[IMAGE_AUXV_MOST * 8 + 1], limits[4096], *line;
	ssize_t n;

	if (capture_read_proc(c->tracee.pid, "limits", limits, sizeof(limits), e) < 0)
		return -1;
	/* The rows are in the order of the numbers; prlimit() needs a capability that a capture has not. */
	line = strchr(limits, '\n');
	for (int i = 0; i < IMAGE_LIMITS; i++, line = strchr(line + 1, '\n')) {
		char soft[24], hard[24];

		if (!line || strcspn(line + 1, "\n") < LIMIT_NAME ||
		    sscanf(line + 1 + LIMIT_NAME, "%23s %23s", soft, hard) != 2)
			return err_set(e, ERR_SYS, "cannot read /proc/%d/limits", c->tracee.pid);
		p->limits[i][0] = capture_limit(soft);
		p->limits[i][1] = capture_limit(hard);
	}
	n = capture_read_proc(c->tracee.pid, "auxv", text, sizeof(text), e);
	if (n < 0)
		return -1;
	memcpy(p->auxv, text, (size_t)n);
	p->nauxv = (uint64_t)n / 8;
	return 0;
}

int capture_read_program(struct capture *c, const struct capture_options *o, struct err *e)
{
	procimage_add(&c->image, TABLE_PROGRAM, 1);
	if (capture_read_status(c, o, e) < 0 || capture_refuse_state(c, e) < 0 ||
	    capture_read_stat(c, e) < 0 || capture_read_limits(c, e) < 0 ||
	    capture_read_links(c, e) < 0)
		return -1;
	image_program(&c->image)->call_at = c->tracee.code.call;
	image_program(&c->image)->stopped = c->tracee.stopped != 0;
	return capture_read_timers(c, e) < 0 ? -1 : capture_read_posix_timers(c, e);
}

/* Handlers and the end of the heap are the same in the child. */
int capture_ask_child(struct capture *c, struct err *e)
{
	struct tracee_thread *th = c->options.direct ? &c->tracee.threads[0] : &c->tracee.child;
	struct image_program *p = image_program(&c->image);
	const uint64_t none[6] = { 0 }, dumpable[6] = { PR_GET_DUMPABLE };
	char path[64];
	auto_fd int memory = -1;
	long rc;

	snprintf(path, sizeof(path), "/proc/%d/mem", capture_memory_pid(c));
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return err_sys(e, "open the memory of the snapshot child");
	for (unsigned i = 0; i < IMAGE_SIGNALS; i++) {
		const uint64_t args[6] = { i + 1, 0, c->tracee.results, 8 };
		uint64_t words[4];

		if (tracee_call(&c->tracee, th, SYS_rt_sigaction, args, &rc, e) < 0)
			return -1;
		if (rc < 0 || pread(memory, words, 32, (off_t)c->tracee.results) != 32)
			return err_set(e, ERR_SYS, "cannot read the handler of signal %u", i + 1);
		p->actions[i] = (struct image_action){ words[0], words[1], words[2], words[3] };
	}
	if (tracee_call(&c->tracee, th, SYS_brk, none, &rc, e) < 0)
		return -1;
	p->brk[1] = (uint64_t)rc;
	if (tracee_call(&c->tracee, th, SYS_prctl, dumpable, &rc, e) < 0)
		return -1;
	p->dumpable = rc > 0 ? (uint32_t)rc : 0;
	return 0;
}
