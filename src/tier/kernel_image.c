/* kernel_image.c - see kernel_image.h. */
#include "tier/kernel_image.h"
#include "base/cleanup.h"
#include "tier/tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MODULE_LARGEST = 16 << 20 };

static uint64_t kernel_number(const unsigned char *p, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes-- > 0)
		v = v << 8 | p[bytes];
	return v;
}

/* Documentation/x86/boot.rst: setup code of (setup_sects + 1) * 512 bytes, then syssize * 16. */
static int kernel_check_x86(const unsigned char *p, uint64_t file_bytes, struct err *e)
{
	uint64_t setup = p[0x1f1] ? p[0x1f1] : 4, whole;

	whole = (setup + 1) * 512 + kernel_number(p + 0x1f4, 4) * 16;
	if (whole > file_bytes)
		return err_set(e, ERR_INVALID,
			       "the kernel is truncated: %llu bytes of %llu; install it again",
			       (unsigned long long)file_bytes, (unsigned long long)whole);
	return 0;
}

int kernel_check(const void *head, size_t n, uint64_t file_bytes, const char *machine,
		 struct err *e)
{
	const unsigned char *p = head;
	int x86, arm;

	if (n < KERNEL_HEAD)
		return err_set(e, ERR_INVALID, "the kernel has only %zu bytes; install it again",
			       n);
	x86 = memcmp(p + 0x202, "HdrS", 4) == 0 && p[0x1fe] == 0x55 && p[0x1ff] == 0xaa;
	arm = memcmp(p + 0x38, "ARM\x64", 4) == 0;
	if (!x86 && !arm)
		return err_set(
			e, ERR_INVALID,
			"the file is no kernel that QEMU boots (x86_64: bzImage, aarch64: Image)");
	if (strcmp(machine, x86 ? "x86_64" : "aarch64") != 0)
		return err_set(e, ERR_INVALID, "the kernel is for %s, this host is %s",
			       x86 ? "x86_64" : "aarch64", machine);
	return x86 ? kernel_check_x86(p, file_bytes, e) : 0;
}

/* ---- the newest one ---- */

static const char prefix[] = "vmlinuz-";

static int kernel_rank(const char *release)
{
	return strstr(release, "cloud") ? 2 : strstr(release, "rescue") ? 0 : 1;
}

static int kernel_is_better(const char *a, const char *than)
{
	int ra = kernel_rank(a), rb = kernel_rank(than);

	return ra != rb ? ra > rb : strverscmp(a, than) > 0;
}

static void kernel_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

int kernel_find(const char *root, struct kernel_image *out, struct err *e)
{
	char boot[200], best[KERNEL_RELEASE] = "";
	__attribute__((cleanup(kernel_closedir))) DIR *d = NULL;
	struct stat st;

	snprintf(boot, sizeof(boot), "%s/boot", root);
	d = opendir(boot);
	for (struct dirent *ent; d && (ent = readdir(d));) {
		const char *release = ent->d_name + sizeof(prefix) - 1;

		if (strncmp(ent->d_name, prefix, sizeof(prefix) - 1) != 0 ||
		    strlen(release) >= sizeof(best))
			continue;
		if (!best[0] || kernel_is_better(release, best))
			snprintf(best, sizeof(best), "%s", release);
	}
	if (!best[0])
		return err_set(e, ERR_NOT_FOUND, "no kernel in %s", boot);
	snprintf(out->release, sizeof(out->release), "%s", best);
	snprintf(out->path, sizeof(out->path), "%.150s/%s%s", boot, prefix, best);
	snprintf(out->modules, sizeof(out->modules), "%.120s/usr/lib/modules/%s", root, best);
	if (stat(out->modules, &st) < 0)
		snprintf(out->modules, sizeof(out->modules), "%.120s/lib/modules/%s", root, best);
	if (stat(out->modules, &st) < 0)
		return err_sys(e, "modules of the kernel %s", best);
	return 0;
}

/* ---- modules ---- */

/* What a guest loads: bus, channel, disks, file systems. */
static const char *const kernel_wanted[] = { "virtio_pci", "virtio_console", "virtio_blk", "erofs",
					     "overlay" };

const char *kernel_module_needs(const char *bytes, size_t n)
{
	static const char key[] = "depends=";
	const char *found;

	if (n < 64 || memcmp(bytes, "\177ELF", 4) != 0)
		return NULL;
	found = memmem(bytes, n, key, sizeof(key) - 1);
	if (!found || !memchr(found, 0, n - (size_t)(found - bytes)))
		return NULL;
	return found + sizeof(key) - 1;
}

/* Modules have - and _ for the same letter in names. */
static int kernel_same_module(const char *file, const char *name)
{
	size_t i = 0;

	for (; name[i]; i++)
		if (file[i] != name[i] && !(file[i] == '-' && name[i] == '_'))
			return 0;
	return strcmp(file + i, ".ko") == 0 || strcmp(file + i, ".ko.xz") == 0 ||
	       strcmp(file + i, ".ko.zst") == 0;
}

static _Thread_local const char *kernel_looking_for;
static _Thread_local char kernel_found[512];

static int kernel_look(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	if (type != FTW_F || !kernel_same_module(path + at->base, kernel_looking_for))
		return 0;
	snprintf(kernel_found, sizeof(kernel_found), "%s", path);
	return 1;
}

static int kernel_is_builtin(const struct kernel_image *k, const char *name)
{
	char path[300], line[256];
	FILE *f;
	int found = 0;

	snprintf(path, sizeof(path), "%s/modules.builtin", k->modules);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		char *slash = strrchr(line, '/');

		line[strcspn(line, "\n")] = 0;
		found = slash && kernel_same_module(slash + 1, name);
	}
	if (f)
		fclose(f);
	return found;
}

static int kernel_read_file(const char *path, struct buf *out, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open %.150s", path);
	if (st.st_size > MODULE_LARGEST)
		return err_set(e, ERR_LIMIT, "%.150s has %lld bytes", path, (long long)st.st_size);
	while ((n = read(fd, buf_space(out, 65536), 65536)) > 0)
		buf_grew(out, (size_t)n);
	return n < 0 ? err_sys(e, "read %.150s", path) : 0;
}

static int kernel_unpack(const char *path, struct buf *out, struct err *e)
{
	const char *end = strrchr(path, '.');
	const char *const xz[] = { "/usr/bin/xz", "-dc", path, NULL };
	const char *const zstd[] = { "/usr/bin/zstd", "-dcq", path, NULL };

	if (strcmp(end, ".ko") == 0)
		return kernel_read_file(path, out, e);
	return host_tool_output(strcmp(end, ".xz") == 0 ? xz : zstd, out, MODULE_LARGEST, e);
}

static int kernel_add_module(const struct kernel_image *k, const char *name, unsigned depth,
			     struct kernel_modules *out, struct err *e)
{
	auto_buf struct buf bytes = { 0 };
	const char *needs;
	char one[64];

	for (unsigned i = 0; i < out->n; i++)
		if (strcmp(out->at[i].name, name) == 0)
			return 0;
	if (kernel_is_builtin(k, name))
		return 0;
	kernel_looking_for = name;
	kernel_found[0] = 0;
	if (nftw(k->modules, kernel_look, 16, FTW_PHYS) < 0 || !kernel_found[0])
		return err_set(
			e, ERR_NOT_FOUND,
			"the kernel %s has no module %s; install another kernel: apt install "
			"linux-image-cloud-amd64",
			k->release, name);
	if (kernel_unpack(kernel_found, &bytes, e) < 0)
		return -1;
	needs = kernel_module_needs(bytes.p ? bytes.p : "", bytes.len);
	if (!needs)
		return err_set(e, ERR_INVALID, "%.150s is no module of a kernel", kernel_found);
	if (depth > 8)
		return err_set(e, ERR_INVALID, "module %s depends on itself", name);
	while (*needs) {
		size_t n = strcspn(needs, ",");

		if (n >= sizeof(one))
			return err_set(e, ERR_INVALID, "module %s needs '%.80s'", name, needs);
		memcpy(one, needs, n);
		one[n] = 0;
		if (n && kernel_add_module(k, one, depth + 1, out, e) < 0)
			return -1;
		needs += n + (needs[n] == ',');
	}
	if (out->n == KERNEL_MODULES)
		return err_set(e, ERR_LIMIT, "guests would load more than %d modules",
			       KERNEL_MODULES);
	snprintf(out->at[out->n].name, sizeof(out->at[0].name), "%s", name);
	out->at[out->n++].bytes = (struct buf){ bytes.p, bytes.len, bytes.room };
	bytes = (struct buf){ 0 };
	return 0;
}

int kernel_read_modules(const struct kernel_image *k, struct kernel_modules *out, struct err *e)
{
	*out = (struct kernel_modules){ .n = 0 };
	for (unsigned i = 0; i < ARRAY_LEN(kernel_wanted); i++)
		if (kernel_add_module(k, kernel_wanted[i], 0, out, e) < 0) {
			kernel_modules_fini(out);
			return -1;
		}
	return 0;
}

void kernel_modules_fini(struct kernel_modules *m)
{
	for (unsigned i = 0; i < m->n; i++)
		buf_fini(&m->at[i].bytes);
	m->n = 0;
}
