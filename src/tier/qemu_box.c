/* qemu_box.c - one launch of QEMU (see qemu.h): its descriptors and the memory of templates.
 *
 * The memory of a template is copied into a sealed memory file once per keeper, while its SHA-256 is
 * computed: no process can change it afterwards, and all clones share its pages until they write. QEMU
 * opens memory, kernel and first root by name (/proc/self/fd/N), as the user of the box, so all
 * three are sealed memory files; disks are passed as descriptors. */
#include "base/cleanup.h"
#include "jail/seccomp.h"
#include "tier/qemu.h"
#include "wire/vm_start.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

_Static_assert(JAIL_IMAGES == (int)VM_LAYERS, "every image of a launch has a disk");

enum {
	COPY_BLOCK = 1 << 20,
	KERNEL_CLONE = 64 << 10, /* bytes of the kernel that QEMU wants to see for a clone */
	STATE_MOST = 16 << 20,
};

struct qemu_file { /* a sealed copy; -1: not loaded yet */
	int fd;
	char hash[VM_HEX];
};

static struct {
	pthread_mutex_t lock;
	struct qemu_file kernel, kernel_head, initrd, ram[VM_CLASSES];
	struct seccomp filter;
} loaded = { .lock = PTHREAD_MUTEX_INITIALIZER,
	     .kernel = { .fd = -1 },
	     .kernel_head = { .fd = -1 },
	     .initrd = { .fd = -1 },
	     .ram = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 }, { .fd = -1 } } };

struct qemu_launch { /* jail_engine.own */
	struct qemu_command command;
	int own[JAIL_ENGINE_FDS]; /* descriptors to be closed */
	unsigned nown;
};

/* ---- sealed copies ---- */

static int qemu_is_zero(const char *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Pages of zeros stay holes. */
static int qemu_copy(int from, int to, uint64_t most, struct err *e)
{
	auto_free char *block = malloc(COPY_BLOCK);
	uint64_t at = 0;

	if (!block)
		abort();
	while (at < most) {
		uint64_t left;
		ssize_t n;

		at = vm_skip_hole(from, at);
		left = at < most ? most - at : 0;
		n = pread(from, block, left < COPY_BLOCK ? (size_t)left : COPY_BLOCK, (off_t)at);
		if (n < 0)
			return err_sys(e, "read a prepared file");
		if (n == 0)
			break;
		for (ssize_t i = 0; i < n; i += 4096) {
			size_t part = n - i < 4096 ? (size_t)(n - i) : 4096;

			if (!qemu_is_zero(block + i, part) &&
			    pwrite(to, block + i, part, (off_t)at + i) != (ssize_t)part)
				return err_sys(e, "copy a prepared file to memory");
		}
		at += (uint64_t)n;
	}
	return ftruncate(to, (off_t)at) < 0 ? err_sys(e, "size of a prepared file") : 0;
}

/* most: bytes to take; hash: of the whole copy, NULL: not compared. */
static int qemu_seal(int dir, const char *name, uint64_t most, int pages, const char *hash,
		     struct err *e)
{
	auto_fd int from = -1, to = -1;
	char path[64], seen[VM_HEX];

	snprintf(path, sizeof(path), "microvm/%s", name);
	from = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	to = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (from < 0 || to < 0)
		return err_sys(e, "open %s", path);
	if (qemu_copy(from, to, most, e) < 0)
		return err_in(e, "%s", path);
	if (fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_sys(e, "seal %s", path);
	if (hash && vm_hash(to, pages, seen, e) < 0)
		return -1;
	if (hash && strcmp(seen, hash) != 0)
		return err_set(
			e, ERR_INVALID,
			"%s has changed since it was prepared; repeat: atoll tier prepare microvm",
			path);
	return steal_fd(&to);
}

/* With the lock held: the copy of this hash, loaded if it is another one. */
static int qemu_load(struct qemu_file *f, int dir, const char *name, uint64_t most, int pages,
		     const char *hash, int compare, struct err *e)
{
	int fd;

	if (f->fd >= 0 && !strcmp(f->hash, hash))
		return 0;
	fd = qemu_seal(dir, name, most, pages, compare ? hash : NULL, e);
	if (fd < 0)
		return -1;
	/* The launcher of boxes closes low numbers in their place: JAIL_FD_HIGH and above stay. */
	own_close_fd(&f->fd);
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, JAIL_FD_HIGH);
	close(fd);
	if (f->fd < 0)
		return err_sys(e, "keep %s", name);
	memcpy(f->hash, hash, VM_HEX);
	return 0;
}

static int qemu_load_filter(struct err *e)
{
	return loaded.filter.code ? 0 : seccomp_compile(&loaded.filter, SECCOMP_MICROVM, e);
}

/* ---- one launch ---- */

static int qemu_give(struct qemu_launch *l, struct jail_engine *out, int number, int fd)
{
	if (fd < 0)
		return -1;
	l->own[l->nown++] = fd;
	out->fds[number - JAIL_ENGINE_FD] = fd;
	if (out->nfds < (unsigned)(number - JAIL_ENGINE_FD + 1))
		out->nfds = (unsigned)(number - JAIL_ENGINE_FD + 1);
	return 0;
}

/* A socket pair whose far end already holds the bytes that QEMU will read. */
static int qemu_give_filled(struct qemu_launch *l, struct jail_engine *out, int number,
			    const void *bytes, size_t n, struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket of the engine");
	qemu_give(l, out, number, pair[0]);
	qemu_give(l, out, number + 1, pair[1]);
	if (n && send(pair[1], bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n)
		return err_sys(e, "requests to the engine");
	return 0;
}

/* Disks that are not used have the size of the others and no contents. */
static int qemu_give_layers(const struct tier_host *h, struct qemu_launch *l,
			    struct jail_engine *out, const struct spec *sp, struct err *e)
{
	auto_fd int blank = openat(h->dir, "microvm/blank", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (blank < 0)
		return err_sys(e, "open the empty disk");
	for (unsigned i = 0; i < VM_LAYERS; i++)
		if (qemu_give(l, out, QEMU_FD_LAYER + (int)i,
			      fcntl(i < sp->nimages ? sp->images[i] : blank, F_DUPFD_CLOEXEC, 0)) <
		    0)
			return err_sys(e, "disks of the engine");
	return 0;
}

/* QEMU reads it from its start to its end: every clone has a file position of its own. */
static int qemu_give_state(struct qemu_launch *l, struct jail_engine *out, int dir,
			   const struct vm_class *c, struct err *e)
{
	char name[24];
	auto_fd int fd = -1;

	snprintf(name, sizeof(name), "state-%u", c->mib);
	fd = qemu_seal(dir, name, STATE_MOST, 0, c->state, e);
	return fd < 0 ? -1 : qemu_give(l, out, QEMU_FD_STATE, steal_fd(&fd));
}

static int qemu_give_memory(struct qemu_launch *l, struct jail_engine *out, int dir,
			    const struct vm_manifest *m, const struct vm_class *c, struct err *e)
{
	unsigned i = (unsigned)(c - m->classes);
	char name[24];

	snprintf(name, sizeof(name), "ram-%u", c->mib);
	if (qemu_load(&loaded.ram[i], dir, name, UINT64_MAX, 1, c->ram, 1, e) < 0 ||
	    qemu_load(&loaded.kernel_head, dir, "kernel", KERNEL_CLONE, 0, m->kernel, 0, e) < 0)
		return -1;
	/* duplicates: another thread may load newer ones */
	if (qemu_give(l, out, QEMU_FD_KERNEL, fcntl(loaded.kernel_head.fd, F_DUPFD_CLOEXEC, 0)) <
		    0 ||
	    qemu_give(l, out, QEMU_FD_INITRD, fcntl(loaded.ram[i].fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return err_sys(e, "descriptors of the engine");
	return qemu_give_state(l, out, dir, c, e);
}

static int qemu_give_kernel(struct qemu_launch *l, struct jail_engine *out, int dir,
			    const struct vm_manifest *m, struct err *e)
{
	if (qemu_load(&loaded.kernel, dir, "kernel", UINT64_MAX, 0, m->kernel, 1, e) < 0 ||
	    qemu_load(&loaded.initrd, dir, "initrd", UINT64_MAX, 0, m->initrd, 1, e) < 0)
		return -1;
	if (qemu_give(l, out, QEMU_FD_KERNEL, fcntl(loaded.kernel.fd, F_DUPFD_CLOEXEC, 0)) < 0 ||
	    qemu_give(l, out, QEMU_FD_INITRD, fcntl(loaded.initrd.fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return err_sys(e, "descriptors of the engine");
	return 0;
}

static int qemu_give_files(const struct tier_host *h, const struct vm_manifest *m,
			   const struct vm_class *c, struct qemu_launch *l, struct jail_engine *out,
			   struct err *e)
{
	int done;

	if (qemu_give(l, out, QEMU_FD_USR,
		      openat(h->dir, "microvm/usr.erofs", O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return err_sys(e, "open the image of /usr");
	pthread_mutex_lock(&loaded.lock);
	done = qemu_load_filter(e);
	if (done == 0)
		done = c ? qemu_give_memory(l, out, h->dir, m, c, e)
			 : qemu_give_kernel(l, out, h->dir, m, e);
	pthread_mutex_unlock(&loaded.lock);
	return done;
}

int qemu_outer_box(const struct tier_host *h, const struct wire_tier_facts *f,
		   const struct wire_box *about, struct spec *sp, struct jail_engine *out,
		   struct err *e)
{
	const struct wire_limits *lim = &about->limits;
	const struct vm_start start = { .magic = VM_START_MAGIC,
					.pids = lim->pids,
					.mem_bytes = lim->mem_bytes,
					.disk_bytes = sp->disk_bytes,
					.disk_files = sp->disk_files,
					.root = (uint32_t)sp->allow_root,
					.flags = (sp->images_are_root ? VM_WHOLE_ROOT : 0) |
						 (sp->secrets ? VM_SECRETS : 0),
					.layers = sp->nimages };
	unsigned mib = vm_guest_mib(lim->mem_bytes);
	struct qemu_launch *l = calloc(1, sizeof(*l));
	const struct vm_class *c;
	struct vm_manifest m;

	if (!l)
		abort();
	out->own = l;
	if (vm_manifest_read(h->dir, &m, e) < 0)
		return -1;
	if (strcmp(m.engine, f->sha256) != 0)
		return err_set(
			e, ERR_CONFLICT,
			"its files were prepared for another QEMU; repeat: atoll tier prepare microvm");
	c = vm_class_for(&m, lim->mem_bytes);
	qemu_command(f->engine, m.platform, m.vcpus, mib, c ? QEMU_CLONE : QEMU_COLD, &l->command);
	if (qemu_give_filled(l, out, QEMU_FD_QMP, qemu_clone_requests,
			     c ? strlen(qemu_clone_requests) : 0, e) < 0 ||
	    qemu_give_filled(l, out, QEMU_FD_READY, &start, sizeof(start), e) < 0 ||
	    qemu_give_layers(h, l, out, sp, e) < 0 || qemu_give_files(h, &m, c, l, out, e) < 0)
		return -1;
	sp->secrets = 0; /* they are in the guest */
	out->argv = l->command.argv;
	out->filter = &loaded.filter;
	out->user_namespaces = 0;
	return 0;
}

void qemu_release(struct jail_engine *engine)
{
	struct qemu_launch *l = engine->own;

	for (unsigned i = 0; l && i < l->nown; i++)
		close(l->own[i]);
	free(l);
	engine->own = NULL;
}
