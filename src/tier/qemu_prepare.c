/* qemu_prepare.c - `atoll tier prepare microvm` (see qemu.h): kernel, first root, image of /usr, and one
 * saved guest for each memory class.
 *
 * Everything is made in <dir>/microvm.new, which replaces <dir>/microvm when it is complete. Boxes that
 * run keep the files that they have open. The guest that is saved has seen files of the host and of Atoll
 * only: no tenant, no secret. Whether KVM works is decided by booting it. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "tier/image.h"
#include "tier/qemu.h"
#include "tier/tool.h"
#include "wire/vm_start.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	BOOT_KVM_MS = 20000,
	BOOT_TCG_MS = 120000,
	SAVE_MS = 30000,
	MOST_VCPUS = 4,
};

struct prepare {
	const struct tier_host *h;
	const struct wire_tier_facts *facts;
	char path[300]; /* <dir>/microvm.new */
	int dir;
	struct vm_manifest m;
};

struct prepare_guest { /* a running QEMU */
	pid_t pid;
	int qmp, ready, channel; /* our ends */
	int messages;            /* what QEMU prints */
};

/* ---- files ---- */

static int prepare_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void prepare_remove(const char *path)
{
	nftw(path, prepare_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int prepare_open_new(const struct prepare *p, const char *name, struct err *e)
{
	int fd = openat(p->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);

	return fd < 0 ? err_sys(e, "create %s/%s", p->path, name) : fd;
}

static int prepare_write(const struct prepare *p, const char *name, const void *bytes, size_t n,
			 char *out_hash, struct err *e)
{
	auto_fd int fd = prepare_open_new(p, name, e);

	if (fd < 0)
		return -1;
	for (size_t done = 0; done < n;) {
		ssize_t w = write(fd, (const char *)bytes + done, n - done);

		if (w < 0)
			return err_sys(e, "write %s/%s", p->path, name);
		done += (size_t)w;
	}
	return out_hash ? vm_hash(fd, 0, out_hash, e) : 0;
}

/* ---- kernel and first root ---- */

static int prepare_read_kernel(const struct kernel_image *k, struct buf *out, struct err *e)
{
	auto_fd int fd = open(k->path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_sys(e, "open %s", k->path);
	while ((n = read(fd, buf_space(out, 1 << 20), 1 << 20)) > 0 && out->len < (256u << 20))
		buf_grew(out, (size_t)n);
	if (n < 0)
		return err_sys(e, "read %s", k->path);
	if (kernel_check(buf_str(out), out->len, out->len, QEMU_MACHINE, e) < 0)
		return err_in(e, "%s", k->path);
	return 0;
}

static int prepare_kernel(struct prepare *p, struct err *e)
{
	auto_buf struct buf kernel = { 0 }, initrd = { 0 };
	struct kernel_modules modules;
	struct kernel_image k;
	char unpacked[300];
	int done;

	snprintf(unpacked, sizeof(unpacked), "%s/kernel", p->h->dir_path);
	if (kernel_find(unpacked, &k, e) < 0 && kernel_find("", &k, e) < 0)
		return err_set(
			e, ERR_NOT_FOUND,
			"no kernel for guests; install one: apt install linux-image-cloud-amd64, or "
			"unpack its package: dpkg -x FILE.deb %s",
			unpacked);
	if (vm_hash(p->h->init_exe, 0, p->m.init, e) < 0 ||
	    vm_hash(p->h->mux_exe, 0, p->m.mux, e) < 0)
		return -1;
	if (prepare_read_kernel(&k, &kernel, e) < 0 || kernel_read_modules(&k, &modules, e) < 0)
		return -1;
	done = image_initramfs(p->h, &modules, &initrd, e);
	kernel_modules_fini(&modules);
	if (done < 0)
		return -1;
	snprintf(p->m.release, sizeof(p->m.release), "%s", k.release);
	return prepare_write(p, "kernel", kernel.p, kernel.len, p->m.kernel, e) < 0
		       ? -1
		       : prepare_write(p, "initrd", initrd.p, initrd.len, p->m.initrd, e);
}

static const char *prepare_usr(void)
{
#ifdef ATOLL_TEST /* a small tree: the image of a large /usr takes a minute */
	const char *tree = getenv("ATOLL_TEST_USR");

	if (tree)
		return tree;
#endif
	return "/usr";
}

static int prepare_image(struct prepare *p, struct err *e)
{
	auto_fd int fd = prepare_open_new(p, "usr.erofs", e);
	struct stat st;

	if (fd < 0 || image_usr_key(p->m.usr_key, e) < 0 || image_pack(prepare_usr(), fd, e) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(e, "look at the image of /usr");
	p->m.usr_bytes = (uint64_t)st.st_size;
	return 0;
}

/* The disk of a layer that a box does not have. */
static int prepare_blank(const struct prepare *p, struct err *e)
{
	auto_fd int fd = prepare_open_new(p, "blank", e);

	if (fd < 0)
		return -1;
	return ftruncate(fd, (off_t)VM_LAYER_BYTES) < 0 ? err_sys(e, "an empty disk") : 0;
}

/* ---- a guest ---- */

/* Without privileges; if only root may open /dev/kvm, as root: this guest runs nothing but Atoll. */
static int prepare_drop(int kvm)
{
	struct stat st;
	gid_t group = 0;
	unsigned ngroups = 0;

	if (geteuid() != 0)
		return 0;
	if (kvm && stat("/dev/kvm", &st) == 0 && !(st.st_mode & 0006)) {
		if ((st.st_mode & 0060) != 0060)
			return 0;
		group = st.st_gid;
		ngroups = 1;
	}
	return setgroups(ngroups, &group) < 0 || setresgid(TOOL_UID, TOOL_UID, TOOL_UID) < 0 ||
			       setresuid(TOOL_UID, TOOL_UID, TOOL_UID) < 0
		       ? -1
		       : 0;
}

static _Noreturn void prepare_exec(const struct qemu_command *c, int channel, int messages,
				   const int *fds, unsigned n, int kvm)
{
	char *env[] = { NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), high[JAIL_ENGINE_FDS];

	if (null < 0 || dup2(channel, 0) < 0 || dup2(null, 1) < 0 || dup2(messages, 2) < 0)
		_exit(126);
	for (unsigned i = 0; i < n; i++)
		if ((high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 100)) < 0)
			_exit(126);
	for (unsigned i = 0; i < n; i++)
		if (dup2(high[i], JAIL_ENGINE_FD + (int)i) < 0)
			_exit(126);
	if (close_range(3, JAIL_ENGINE_FD - 1, 0) < 0 ||
	    close_range((unsigned)JAIL_ENGINE_FD + n, ~0u, 0) < 0 || prepare_drop(kvm) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(126);
	execve(c->argv[0], (char *const *)(uintptr_t)c->argv, env);
	_exit(127);
}

static void prepare_end(struct prepare_guest *g)
{
	if (g->pid > 0) {
		kill(g->pid, SIGKILL);
		while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	own_close_fd(&g->qmp);
	own_close_fd(&g->ready);
	own_close_fd(&g->channel);
	own_close_fd(&g->messages);
	g->pid = 0;
}

/* Test builds: another time in the clock of the guest, as if the template were older. */
static void prepare_set_clock(struct qemu_command *c)
{
#ifdef ATOLL_TEST
	const char *base = getenv("ATOLL_TEST_RTC");
	size_t room = sizeof(c->text) - 64;
	unsigned n = 0;

	while (c->argv[n])
		n++;
	if (!base || n + 3 > JAIL_ENGINE_ARGS)
		return;
	snprintf(c->text + room, 64, "base=%.50s", base); /* the command line is much shorter */
	c->argv[n] = "-rtc";
	c->argv[n + 1] = c->text + room;
	c->argv[n + 2] = NULL;
#else
	(void)c;
#endif
}

static int prepare_start(const struct prepare *p, unsigned mib, int ram, struct prepare_guest *g,
			 struct err *e)
{
	auto_fd int usr = openat(p->dir, "usr.erofs", O_RDONLY | O_CLOEXEC);
	auto_fd int kernel = openat(p->dir, "kernel", O_RDONLY | O_CLOEXEC);
	auto_fd int initrd = openat(p->dir, "initrd", O_RDONLY | O_CLOEXEC);
	auto_fd int blank = openat(p->dir, "blank", O_RDONLY | O_CLOEXEC);
	int qmp[2] = { -1, -1 }, ready[2] = { -1, -1 }, channel[2] = { -1, -1 },
	    messages[2] = { -1, -1 };
	struct qemu_command command;
	int failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, qmp) < 0 ||
		     socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ready) < 0 ||
		     socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) < 0 ||
		     pipe2(messages, O_CLOEXEC | O_NONBLOCK) < 0;

	*g = (struct prepare_guest){
		.qmp = qmp[1], .ready = ready[1], .channel = channel[1], .messages = messages[0]
	};
	qemu_command(p->facts->engine, p->m.platform, p->m.vcpus, mib + VM_SPARE_MIB, QEMU_TEMPLATE,
		     &command);
	prepare_set_clock(&command);
	/* The two far ends are only placeholders: this process has its own. */
	const int fds[] = { qmp[0], usr,   ready[0], usr,    usr,    blank, blank,
			    blank,  blank, blank,    kernel, initrd, ram };

	_Static_assert(ARRAY_LEN(fds) == QEMU_FD_END - JAIL_ENGINE_FD, "enum qemu_fd");
	failed |= usr < 0 || kernel < 0 || initrd < 0 || blank < 0;
	if (!failed)
		g->pid = fork();
	if (g->pid == 0 && !failed)
		prepare_exec(&command, channel[0], messages[1], fds, ARRAY_LEN(fds),
			     !strcmp(p->m.platform, "kvm"));
	own_close_fd(&qmp[0]);
	own_close_fd(&ready[0]);
	own_close_fd(&channel[0]);
	own_close_fd(&messages[1]);
	if (g->pid > 0)
		return 0;
	err_sys(e, "start %s", p->facts->engine);
	prepare_end(g);
	return -1;
}

static int prepare_wait_ready(const struct prepare *p, const struct prepare_guest *g, struct err *e)
{
	int kvm = !strcmp(p->m.platform, "kvm"), limit_ms = kvm ? BOOT_KVM_MS : BOOT_TCG_MS;
	uint64_t until = now_ns() + (uint64_t)limit_ms * 1000000;
	char line[200];
	ssize_t n;

	for (;;) {
		struct pollfd at = { .fd = g->ready, .events = POLLIN };
		uint64_t now = now_ns();

		if (now >= until)
			return err_set(e, ERR_LIMIT, "the guest did not boot within %d s (%s)",
				       limit_ms / 1000, p->m.platform);
		if (poll(&at, 1, (int)((until - now) / 1000000) + 1) > 0)
			break;
	}
	n = recv(g->ready, line, sizeof(line) - 1, 0);
	if (n == 1 && line[0] == VM_READY)
		return 0;
	if (n <= 0) /* QEMU has exited */
		n = read(g->messages, line, sizeof(line) - 1);
	line[n > 0 ? n : 0] = 0;
	line[strcspn(line, "\n")] = 0;
	return err_set(e, ERR_SYS, "the guest did not boot (%s): %.120s", p->m.platform,
		       n > 0 ? line : "QEMU has exited");
}

/* ---- QMP: three requests with a descriptor, then the status until it is "postmigrate" ---- */

static int prepare_send(int qmp, const char *text, int fd, struct err *e)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		m.msg_control = room;
		m.msg_controllen = sizeof(room);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	return sendmsg(qmp, &m, MSG_NOSIGNAL) < 0 ? err_sys(e, "request to QEMU") : 0;
}

static int prepare_save(const struct prepare_guest *g, int state, struct err *e)
{
	static const char begin[] =
		"{\"execute\":\"qmp_capabilities\"}\n"
		"{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":"
		"[{\"capability\":\"x-ignore-shared\",\"state\":true}]}}\n";
	uint64_t until = now_ns() + (uint64_t)SAVE_MS * 1000000;
	auto_buf struct buf text = { 0 };

	if (prepare_send(g->qmp, begin, -1, e) < 0 ||
	    prepare_send(g->qmp, "{\"execute\":\"getfd\",\"arguments\":{\"fdname\":\"state\"}}\n",
			 state, e) < 0 ||
	    prepare_send(g->qmp, "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"fd:state\"}}\n",
			 -1, e) < 0)
		return -1;
	while (now_ns() < until) {
		struct pollfd at = { .fd = g->qmp, .events = POLLIN };
		ssize_t n;

		if (prepare_send(g->qmp, "{\"execute\":\"query-status\"}\n", -1, e) < 0)
			return -1;
		poll(&at, 1, 1000);
		n = recv(g->qmp, buf_space(&text, 65536), 65536, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return err_set(e, ERR_SYS, "QEMU has exited while its state was saved");
		buf_grew(&text, n > 0 ? (size_t)n : 0);
		if (strstr(buf_str(&text), "\"error\""))
			return err_set(e, ERR_SYS, "QEMU cannot save its state: %.150s",
				       strstr(buf_str(&text), "\"error\""));
		if (strstr(buf_str(&text), "\"postmigrate\""))
			return 0;
		poll(NULL, 0, 5);
	}
	return err_set(e, ERR_LIMIT, "QEMU did not save its state within %d s", SAVE_MS / 1000);
}

static int prepare_class(struct prepare *p, unsigned mib, struct err *e)
{
	struct vm_class *c = &p->m.classes[p->m.nclasses];
	struct prepare_guest g;
	auto_fd int ram = -1, state = -1;
	char name[24];
	int done;

	snprintf(name, sizeof(name), "ram-%u", mib);
	ram = prepare_open_new(p, name, e);
	if (ram < 0)
		return -1;
	snprintf(name, sizeof(name), "state-%u", mib);
	state = prepare_open_new(p, name, e);
	if (state < 0)
		return -1;
	/* QEMU opens it by name, for writing. */
	if (ftruncate(ram, (off_t)(mib + VM_SPARE_MIB) << 20) < 0 ||
	    (geteuid() == 0 && fchown(ram, TOOL_UID, TOOL_UID) < 0) || fchmod(ram, 0600) < 0)
		return err_sys(e, "file for the memory of a guest");
	if (prepare_start(p, mib, ram, &g, e) < 0)
		return -1;
	done = prepare_wait_ready(p, &g, e);
	if (done == 0)
		done = prepare_save(&g, state, e);
	prepare_end(&g);
	if (done < 0)
		return -1;
	if ((geteuid() == 0 && fchown(ram, 0, 0) < 0) || fchmod(ram, 0400) < 0)
		return err_sys(e, "owner of the memory of a guest");
	c->mib = mib;
	if (vm_hash(ram, 1, c->ram, e) < 0 || vm_hash(state, 0, c->state, e) < 0)
		return -1;
	p->m.nclasses++;
	return 0;
}

/* ---- the whole ---- */

static int prepare_platform(struct prepare *p, const char *platform, struct err *e)
{
	cpu_set_t cpus;
	unsigned n =
		sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 1;

	p->m.nclasses = 0;
	snprintf(p->m.platform, sizeof(p->m.platform), "%s", platform);
	/* Emulated processors disturb each other more than they help. */
	p->m.vcpus = strcmp(platform, "kvm") != 0 ? 1 : n < MOST_VCPUS ? n : MOST_VCPUS;
	for (unsigned i = 0; i < VM_CLASSES; i++) {
		char name[24];

		snprintf(name, sizeof(name), "ram-%u", vm_class_mib[i]);
		unlinkat(p->dir, name, 0); /* of a platform that did not work */
		snprintf(name, sizeof(name), "state-%u", vm_class_mib[i]);
		unlinkat(p->dir, name, 0);
		if (prepare_class(p, vm_class_mib[i], e) < 0)
			return err_in(e, "guest with %u MiB", vm_class_mib[i]);
	}
	return 0;
}

static int prepare_guests(struct prepare *p, struct err *e)
{
	if (qemu_check_kvm(QEMU_KVM, e) == 0 && prepare_platform(p, "kvm", e) == 0)
		return 0;
	return prepare_platform(p, "tcg", e);
}

static int prepare_finish(struct prepare *p, struct err *e)
{
	auto_buf struct buf text = { 0 };
	char now[300], old[300];

	vm_manifest_print(&p->m, &text);
	if (prepare_write(p, "manifest", text.p, text.len, NULL, e) < 0)
		return -1;
	if (syncfs(p->dir) < 0)
		return err_sys(e, "write the prepared files to the disk");
	snprintf(now, sizeof(now), "%s/microvm", p->h->dir_path);
	snprintf(old, sizeof(old), "%s/microvm.old", p->h->dir_path);
	prepare_remove(old);
	if ((rename(now, old) < 0 && errno != ENOENT) || rename(p->path, now) < 0)
		return err_sys(e, "replace %s", now);
	prepare_remove(old);
	return 0;
}

int qemu_prepare(const struct tier_host *h, const struct wire_tier_facts *f, struct err *e)
{
	struct prepare p = { .h = h, .facts = f, .dir = -1 };
	int done;

	if (h->init_exe < 0 || h->mux_exe < 0 || h->skeleton < 0 || h->image_skeleton < 0)
		return err_set(e, ERR_INVALID, "the images of init and mux are missing");
	snprintf(p.path, sizeof(p.path), "%s/microvm.new", h->dir_path);
	snprintf(p.m.engine, sizeof(p.m.engine), "%.64s", f->sha256);
	prepare_remove(p.path);
	if (mkdir(p.path, 0700) < 0 ||
	    (p.dir = open(p.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return err_sys(e, "make %s", p.path);
	done = prepare_kernel(&p, e);
	if (done == 0)
		done = prepare_image(&p, e);
	if (done == 0)
		done = prepare_blank(&p, e);
	/* QEMU runs without privileges and opens kernel and first root by name. */
	if (done == 0 &&
	    (fchmodat(p.dir, "kernel", 0444, 0) < 0 || fchmodat(p.dir, "initrd", 0444, 0) < 0))
		done = err_sys(e, "modes of the prepared files");
	if (done == 0)
		done = prepare_guests(&p, e);
	if (done == 0)
		done = prepare_finish(&p, e);
	if (done < 0) {
		image_explain_full(p.dir, p.path, e);
		prepare_remove(p.path);
	}
	close(p.dir);
	return done;
}
