/* qemu.c - see qemu.h. The file of QEMU, its version, its command line. */
#include "tier/qemu.h"
#include "base/cleanup.h"
#include "tier/image.h"
#include "tier/tool.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define STR_(x) #x
#define STR(x) STR_(x)
#define INSTALL "(apt install " QEMU_PACKAGE ")" /* what helps, where doctor finds it */
#define FD_STATE 20                              /* QEMU_FD_STATE, in texts */

_Static_assert(FD_STATE == QEMU_FD_STATE && QEMU_FD_END - JAIL_ENGINE_FD <= JAIL_ENGINE_FDS,
	       "descriptors of the engine");

/* x-ignore-shared: the memory is not part of the state, it is the file that both have. `-incoming
 * defer` waits for these requests. A guest that was running when it was saved runs afterwards. */
const char qemu_clone_requests[] =
	"{\"execute\":\"qmp_capabilities\"}\n"
	"{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":"
	"[{\"capability\":\"x-ignore-shared\",\"state\":true}]}}\n"
	"{\"execute\":\"migrate-incoming\",\"arguments\":{\"uri\":\"fd:" STR(FD_STATE) "\"}}\n";

/* ---- the command line ---- */

struct qemu_builder {
	struct qemu_command *to;
	unsigned n;
	size_t used;
};

static void qemu_arg(struct qemu_builder *b, const char *s)
{
	if (b->n + 1 >= JAIL_ENGINE_ARGS)
		abort(); /* the longest command line is known */
	b->to->argv[b->n++] = s;
	b->to->argv[b->n] = NULL;
}

__attribute__((format(printf, 2, 3))) static void qemu_argf(struct qemu_builder *b, const char *fmt,
							    ...)
{
	size_t room = sizeof(b->to->text) - b->used;
	char *at = b->to->text + b->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(at, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		abort();
	b->used += (size_t)n + 1;
	qemu_arg(b, at);
}

static void qemu_args(struct qemu_builder *b, const char *const *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		qemu_arg(b, list[i]);
}

#if defined(__x86_64__)
/* Machine microvm would boot in half the time, but without KVM it has no timer against which the
 * kernel can calibrate its clock on a loaded host; q35 has. It gets no device that is not used. */
#define MACHINE "q35,vmport=off,sata=off,smbus=off,usb=off,i8042=off,memory-backend=ram"
#define TCG_CPU "max"
#else
#define MACHINE "virt,gic-version=3,memory-backend=ram"
#define TCG_CPU "cortex-a72"
#endif

static void qemu_memory(struct qemu_builder *b, unsigned mib, enum qemu_start how)
{
	qemu_arg(b, "-m");
	qemu_argf(b, "%uM", mib);
	qemu_arg(b, "-object");
	if (how == QEMU_COLD)
		qemu_argf(b, "memory-backend-ram,id=ram,size=%uM", mib);
	else
		qemu_argf(b,
			  "memory-backend-file,id=ram,size=%uM,mem-path=/proc/self/fd/%d,share=%s",
			  mib, how == QEMU_CLONE ? QEMU_FD_INITRD : QEMU_FD_STATE,
			  how == QEMU_TEMPLATE ? "on" : "off");
}

/* Read-only, by descriptor: set 1 is /usr, the others are layers. */
static void qemu_disk(struct qemu_builder *b, unsigned set, int fd)
{
	qemu_arg(b, "-add-fd");
	qemu_argf(b, "fd=%d,set=%u", fd, set);
	qemu_arg(b, "-blockdev");
	qemu_argf(b, "driver=file,filename=/dev/fdset/%u,node-name=disk%u,read-only=on,aio=threads",
		  set, set);
	qemu_arg(b, "-device");
	qemu_argf(b, "virtio-blk-pci,drive=disk%u", set);
}

void qemu_command(const char *engine, const char *platform, unsigned vcpus, unsigned mib,
		  enum qemu_start how, struct qemu_command *out)
{
	static const char *const first[] = { "-nodefaults", "-no-user-config",
					     "-display",    "none",
					     "-no-reboot",  "-M",
					     MACHINE,       "-smp" };
	static const char *const boot[] = {
		"-append",
		"rdinit=/mux quiet loglevel=0 panic=-1 -- vm",
	};
	/* Ports: 1 is the channel, 2 carries VM_READY and struct vm_start. */
	static const char *const devices[] = {
		"-device",  "virtio-serial-pci,max_ports=4",
		"-chardev", "socket,id=channel,fd=0",
		"-device",  "virtserialport,chardev=channel,name=atoll,nr=1",
		"-device",  "virtserialport,chardev=ready,name=ready,nr=2",
		"-mon",     "chardev=qmp,mode=control",
	};
	static const char *const sandbox[] = {
		"-sandbox",
		"on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
	};
	struct qemu_builder b = { .to = out };
	int kvm = strcmp(platform, "kvm") == 0;

	if (how != QEMU_TEMPLATE)
		qemu_arg(&b, "@vm"); /* mux then loads its list of system calls for QEMU (mux.h) */
	qemu_arg(&b, engine);
	qemu_args(&b, first, ARRAY_LEN(first));
	qemu_argf(&b, "%u", vcpus);
	qemu_arg(&b, "-accel");
	qemu_arg(&b, kvm ? "kvm" : "tcg,tb-size=256"); /* 32 MB would be 4 to 7 times slower */
	qemu_arg(&b, "-cpu");
	qemu_arg(&b, kvm ? "host" : TCG_CPU);
	qemu_memory(&b, mib, how);
	/* A clone has the kernel in its memory; QEMU only wants the header of one. */
	qemu_arg(&b, "-kernel");
	qemu_argf(&b, "/proc/self/fd/%d", QEMU_FD_KERNEL);
	if (how != QEMU_CLONE) {
		qemu_arg(&b, "-initrd");
		qemu_argf(&b, "/proc/self/fd/%d", QEMU_FD_INITRD);
	}
	qemu_args(&b, boot, ARRAY_LEN(boot));
	for (unsigned i = 0; i <= VM_LAYERS; i++)
		qemu_disk(&b, i + 1, i ? QEMU_FD_LAYER + (int)i - 1 : QEMU_FD_USR);
	qemu_arg(&b, "-chardev");
	qemu_argf(&b, "socket,id=ready,fd=%d", QEMU_FD_READY);
	qemu_arg(&b, "-chardev");
	qemu_argf(&b, "socket,id=qmp,fd=%d", QEMU_FD_QMP);
	qemu_args(&b, devices, ARRAY_LEN(devices));
	if (how == QEMU_CLONE) {
		qemu_arg(&b, "-incoming");
		qemu_arg(&b, "defer");
	}
	qemu_args(&b, sandbox, ARRAY_LEN(sandbox));
}

/* ---- the probe ---- */

int qemu_parse_version(const char *text, char out_version[40], struct err *e)
{
	static const char start[] = "QEMU emulator version ";
	unsigned major, minor;
	size_t n;

	if (strncmp(text, start, sizeof(start) - 1) != 0)
		return err_set(e, ERR_INVALID,
			       "--version does not print a version of QEMU but '%.40s'", text);
	text += sizeof(start) - 1;
	n = strspn(text, "0123456789.");
	if (n == 0 || n >= 40 || sscanf(text, "%u.%u", &major, &minor) != 2 || major > 99 ||
	    minor > 99)
		return err_set(e, ERR_INVALID, "the version of QEMU is '%.40s'", text);
	if (major * 100 + minor < QEMU_OLDEST)
		return err_set(e, ERR_INVALID, "QEMU %.*s is too old: 7.2 is the oldest that works",
			       (int)n, text);
	memcpy(out_version, text, n);
	out_version[n] = 0;
	return 0;
}

int qemu_check_kvm(const char *path, struct err *e)
{
	auto_fd int kvm = open(path, O_RDWR | O_CLOEXEC), vm = -1;

	if (kvm < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "there is no %.100s", path);
	if (kvm < 0)
		return err_sys(e, "open %.100s", path);
	if (ioctl(kvm, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
		return err_set(e, ERR_INVALID, "%.100s is not KVM", path);
	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	return vm < 0 ? err_sys(e, "%.100s: make a virtual machine", path) : 0;
}

/* Why the guests of this host are emulated. */
static void qemu_tell_emulated(struct wire_tier_facts *out)
{
	struct err e;

	if (qemu_check_kvm(QEMU_KVM, &e) == 0)
		err_set(&e, ERR_INVALID,
			"no guest booted with " QEMU_KVM " when the tier was prepared");
	snprintf(out->reason, sizeof(out->reason), "%s", e.msg);
}

/* Another program in the place of QEMU would run in the outer box all the same, but a file that others
 * can change must not be hashed, proven, and changed then. */
static int qemu_probe_file(const char *path, struct wire_tier_facts *out, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *const version[] = { path, "--version", NULL };
	auto_buf struct buf text = { 0 };
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "QEMU is not installed " INSTALL);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open %.120s", path);
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return err_set(e, ERR_INVALID, "%.120s is no executable file " INSTALL, path);
	if (st.st_mode & 022 || (st.st_uid != 0 && st.st_uid != geteuid()))
		return err_set(e, ERR_DENIED, "%.120s can be changed by others than root " INSTALL,
			       path);
	if (host_tool_output(version, &text, 4096, e) < 0 ||
	    qemu_parse_version(buf_str(&text), out->version, e) < 0)
		return err_in(e, "%.120s", path);
	snprintf(out->engine, sizeof(out->engine), "%s", path);
	return vm_hash(fd, 0, out->sha256, e);
}

static int qemu_check_hash(int dir, const char *name, const char *want, struct err *e)
{
	char path[64], seen[VM_HEX];
	auto_fd int fd = -1;

	snprintf(path, sizeof(path), "microvm/%s", name);
	fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "open %s; repeat: atoll tier prepare microvm", path);
	if (vm_hash(fd, 0, seen, e) < 0)
		return err_in(e, "%s", path);
	if (strcmp(seen, want) != 0)
		return err_set(
			e, ERR_INVALID,
			"%s has changed since it was prepared; repeat: atoll tier prepare microvm",
			path);
	return 0;
}

static int qemu_check_usr(int dir, const struct vm_manifest *m, struct err *e)
{
	auto_fd int fd = openat(dir, "microvm/usr.erofs", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char head[2048];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || (n = read(fd, head, sizeof(head))) < 0)
		return err_sys(e, "open microvm/usr.erofs; repeat: atoll tier prepare microvm");
	if ((uint64_t)st.st_size != m->usr_bytes)
		return err_set(
			e, ERR_INVALID,
			"the image of /usr has %lld bytes, %llu were prepared; repeat: atoll "
			"tier prepare microvm",
			(long long)st.st_size, (unsigned long long)m->usr_bytes);
	return image_check(head, (size_t)n, (uint64_t)st.st_size, e);
}

/* Its contents are compared when it is loaded (qemu_box.c): some hundred megabytes take seconds. */
static int qemu_check_size(int dir, const char *name, uint64_t want, struct err *e)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "microvm/%s", name);
	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "open %s; repeat: atoll tier prepare microvm", path);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != want)
		return err_set(e, ERR_INVALID,
			       "%s has %lld bytes, not %llu; repeat: atoll tier prepare microvm",
			       path, (long long)st.st_size, (unsigned long long)want);
	return 0;
}

/* Every file that a guest starts from. */
static int qemu_check_files(int dir, const struct vm_manifest *m, struct err *e)
{
	char name[24];

	if (qemu_check_hash(dir, "kernel", m->kernel, e) < 0 ||
	    qemu_check_hash(dir, "initrd", m->initrd, e) < 0 || qemu_check_usr(dir, m, e) < 0 ||
	    qemu_check_size(dir, "blank", VM_LAYER_BYTES, e) < 0)
		return -1;
	for (unsigned i = 0; i < m->nclasses; i++) {
		snprintf(name, sizeof(name), "ram-%u", m->classes[i].mib);
		if (qemu_check_size(dir, name, (uint64_t)(m->classes[i].mib + VM_SPARE_MIB) << 20,
				    e) < 0)
			return -1;
		snprintf(name, sizeof(name), "state-%u", m->classes[i].mib);
		if (qemu_check_hash(dir, name, m->classes[i].state, e) < 0)
			return -1;
	}
	return 0;
}

/* What was prepared for something that has changed since; NULL: all is the same. */
static const char *qemu_changed(const struct tier_host *h, const struct vm_manifest *m,
				const struct wire_tier_facts *f, struct err *e)
{
	char init[VM_HEX], mux[VM_HEX], key[VM_HEX];

	if (strcmp(m->engine, f->sha256) != 0)
		return "QEMU";
	if (image_usr_key(key, e) < 0 || strcmp(m->usr_key, key) != 0)
		return "the list of installed packages";
	if (vm_hash(h->init_exe, 0, init, e) < 0 || vm_hash(h->mux_exe, 0, mux, e) < 0 ||
	    strcmp(m->init, init) != 0 || strcmp(m->mux, mux) != 0)
		return "Atoll";
	return NULL;
}

const char *const qemu_places[] = { QEMU_PATH, NULL };

int qemu_probe_path(const char *path, const struct tier_host *h, struct wire_tier_facts *out,
		    struct err *e)
{
	const char *changed;
	struct vm_manifest m;

	if (h->rootless)
		return err_set(e, ERR_DENIED, "needs a daemon that was started by root");
	if (qemu_probe_file(path, out, e) < 0)
		return -1;
	/* Known before the preparation: whether it could be more than emulated. */
	snprintf(out->platform, sizeof(out->platform), "%s",
		 qemu_check_kvm(QEMU_KVM, e) == 0 ? "kvm" : "tcg");
	out->state = WIRE_TIER_UNPREPARED;
	if (vm_manifest_read(h->dir, &m, e) < 0) {
		snprintf(out->reason, sizeof(out->reason), "%s", e->msg);
		return e->kind == ERR_NOT_FOUND ? 0 : -1;
	}
	changed = qemu_changed(h, &m, out, e);
	if (changed) {
		snprintf(out->reason, sizeof(out->reason),
			 "%s has changed since the preparation; repeat: atoll tier prepare microvm",
			 changed);
		return 0;
	}
	if (!strcmp(m.platform, "kvm") && qemu_check_kvm(QEMU_KVM, e) < 0)
		return err_in(e,
			      "KVM can no longer be used; enable it, or repeat: atoll tier prepare "
			      "microvm");
	if (qemu_check_files(h->dir, &m, e) < 0)
		return -1;
	snprintf(out->platform, sizeof(out->platform), "%s", m.platform);
	out->emulated = !strcmp(m.platform, "tcg");
	if (out->emulated) {
		out->rank = 2; /* QEMU's authors do not call emulation a boundary */
		qemu_tell_emulated(out);
	}
	out->state = WIRE_TIER_OFFERED;
	return 0;
}

int qemu_probe(const struct tier_host *h, struct wire_tier_facts *out, struct err *e)
{
	return qemu_probe_path(QEMU_PATH, h, out, e);
}
