/* image.c - see image.h. */
#include "tier/image.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "tier/cpio.h"
#include "tier/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

enum {
	IMAGE_PROGRAM = 8 << 20, /* most bytes of mux or init */
	IMAGE_EXCLUDES = 4096,   /* files that only root can read */
	IMAGE_PACK_S = 1800,
	EROFS_AT = 1024, /* the superblock */
	EROFS_MAGIC = 0xe0f5e1e2,
	FULL_BELOW = 4 << 20, /* bytes of a file system that count as full */
};

/* ---- the first root ---- */

static int image_add_program(struct cpio *c, const char *name, int fd, struct err *e)
{
	auto_buf struct buf bytes = { 0 };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "the image of %s", name);
	if (st.st_size > IMAGE_PROGRAM)
		return err_set(e, ERR_LIMIT, "the image of %s has %lld bytes", name,
			       (long long)st.st_size);
	while (bytes.len < (size_t)st.st_size) {
		ssize_t n = pread(fd, buf_space(&bytes, 65536), 65536, (off_t)bytes.len);

		if (n <= 0)
			return err_sys(e, "read the image of %s", name);
		buf_grew(&bytes, (size_t)n);
	}
	return cpio_add(c, name, S_IFREG | 0755, 0, bytes.p, bytes.len, e);
}

static int image_fill(struct cpio *c, const struct tier_host *h, const struct kernel_modules *m,
		      struct err *e)
{
	/* "." is the root of the guest: its mode decides whether uid 1000 may enter it. */
	static const char *const dirs[] = { ".",    "dev", "proc", "sys",   "modules",
					    "disk", "box", "host", "layers" };
	char name[32];

	for (unsigned i = 0; i < ARRAY_LEN(dirs); i++)
		if (cpio_add(c, dirs[i], S_IFDIR | 0755, 0, NULL, 0, e) < 0)
			return -1;
	for (unsigned i = 0; i < m->n; i++) {
		snprintf(name, sizeof(name), "modules/%02u.ko", i);
		if (cpio_add(c, name, S_IFREG | 0644, 0, m->at[i].bytes.p, m->at[i].bytes.len, e) <
		    0)
			return -1;
	}
	if (image_add_program(c, "mux", h->mux_exe, e) < 0 ||
	    image_add_program(c, "init", h->init_exe, e) < 0 ||
	    cpio_add_tree(c, "skeleton", h->skeleton, e) < 0)
		return -1;
	return cpio_add_tree(c, "image", h->image_skeleton, e);
}

int image_initramfs(const struct tier_host *h, const struct kernel_modules *m, struct buf *out,
		    struct err *e)
{
	struct cpio c = { 0 };

	if (image_fill(&c, h, m, e) < 0) {
		cpio_fini(&c);
		return err_in(e, "first root of guests");
	}
	cpio_end(&c);
	*out = c.out;
	return 0;
}

/* ---- the image of /usr ---- */

static _Thread_local int image_walk_out;
static _Thread_local size_t image_walk_prefix;

/* Prints what this process cannot read, relative to the tree: mkfs.erofs would fail there. */
static int image_walk(const char *path, const struct stat *st, int type, struct FTW *at)
{
	int hidden = type == FTW_DNR || type == FTW_NS ||
		     (type == FTW_F && S_ISREG(st->st_mode) && access(path, R_OK) < 0);

	(void)at;
	if (hidden)
		dprintf(image_walk_out, "%s%c", path + image_walk_prefix, 0);
	return 0;
}

static _Noreturn void image_list_process(const char *tree, int out)
{
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) < 0 || setresgid(TOOL_UID, TOOL_UID, TOOL_UID) < 0 ||
	     setresuid(TOOL_UID, TOOL_UID, TOOL_UID) < 0))
		_exit(1);
	image_walk_out = out;
	image_walk_prefix = strlen(tree) + 1;
	_exit(nftw(tree, image_walk, 64, FTW_PHYS | FTW_MOUNT) != 0);
}

static int image_list_hidden(const char *tree, struct buf *out, struct err *e)
{
	int pipes[2], status = 0;
	pid_t pid;
	ssize_t n;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid == 0)
		image_list_process(tree, pipes[1]);
	close(pipes[1]);
	while (pid > 0 && (n = read(pipes[0], buf_space(out, 4096), 4096)) != 0 &&
	       (n > 0 || errno == EINTR))
		if (n > 0)
			buf_grew(out, (size_t)n);
	close(pipes[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return err_sys(e, "list %s", tree);
	return status ? err_set(e, ERR_SYS, "%s could not be listed", tree) : 0;
}

int image_pack(const char *tree, int fd, struct err *e)
{
	/* Times are kept: Python compares those of sources with those in compiled files. */
	static const char *const fixed[] = {
		"/usr/bin/mkfs.erofs", "--quiet",          "-x-1",
		"--all-root",          "--preserve-mtime", "-U00000000-0000-0000-0000-000000000000"
	};
	auto_buf struct buf hidden = { 0 }, options = { 0 };
	auto_free const char **argv = NULL;
	unsigned n = 0;

	if (image_list_hidden(tree, &hidden, e) < 0)
		return -1;
	argv = calloc(ARRAY_LEN(fixed) + IMAGE_EXCLUDES + 3, sizeof(*argv));
	if (!argv)
		abort();
	for (; n < ARRAY_LEN(fixed); n++)
		argv[n] = fixed[n];
	for (size_t at = 0; at < hidden.len; at += strlen(hidden.p + at) + 1) {
		buf_printf(&options, "--exclude-path=%s", hidden.p + at);
		buf_putc(&options, 0);
	}
	for (size_t at = 0; at < options.len; at += strlen(options.p + at) + 1) {
		if (n == ARRAY_LEN(fixed) + IMAGE_EXCLUDES)
			return err_set(e, ERR_LIMIT,
				       "more than %d files below %s can be read by root only",
				       IMAGE_EXCLUDES, tree);
		argv[n++] = options.p + at;
	}
	argv[n++] = "/proc/self/fd/3";
	argv[n++] = tree;
	if ((geteuid() == 0 && fchown(fd, TOOL_UID, TOOL_UID) < 0) || fchmod(fd, 0600) < 0)
		return err_sys(e, "owner of the image");
	if (host_tool_run_as(argv, TOOL_UID, fd, IMAGE_PACK_S, e) < 0)
		return e->kind == ERR_NOT_FOUND
			       ? err_set(e, ERR_NOT_FOUND,
					 "mkfs.erofs is not installed: apt install erofs-utils")
			       : err_in(e, "image of %s", tree);
	if ((geteuid() == 0 && fchown(fd, 0, 0) < 0) || fchmod(fd, 0400) < 0)
		return err_sys(e, "owner of the image");
	return 0;
}

static uint64_t image_number(const unsigned char *p, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes-- > 0)
		v = v << 8 | p[bytes];
	return v;
}

/* struct erofs_super_block: magic at 0, block bits at 12, number of blocks at 36. */
int image_check(const void *head, size_t n, uint64_t file_bytes, struct err *e)
{
	const unsigned char *p = (const unsigned char *)head + EROFS_AT;
	uint64_t whole;

	if (n < EROFS_AT + 128 || image_number(p, 4) != EROFS_MAGIC || p[12] < 9 || p[12] > 16)
		return err_set(e, ERR_INVALID, "the image of /usr is no erofs image");
	whole = image_number(p + 36, 4) << p[12];
	if (whole > file_bytes)
		return err_set(e, ERR_INVALID, "the image of /usr is truncated: %llu bytes of %llu",
			       (unsigned long long)file_bytes, (unsigned long long)whole);
	return 0;
}

int image_usr_key(char out_hex[65], struct err *e)
{
	static const char database[] = "/var/lib/dpkg/status";
	auto_fd int fd = open(database, O_RDONLY | O_CLOEXEC);
	uint8_t sum[SHA256_BYTES];
	char bytes[16384];
	struct sha256 s;
	struct stat st;
	ssize_t n = 0;

	sha256_init(&s);
	if (fd < 0 && errno == ENOENT) { /* no dpkg: any change of /usr/bin counts */
		if (stat("/usr/bin", &st) < 0)
			return err_sys(e, "look at /usr/bin");
		sha256_add(&s, &st.st_mtim, sizeof(st.st_mtim));
	} else if (fd < 0) {
		return err_sys(e, "open %s", database);
	} else {
		while ((n = read(fd, bytes, sizeof(bytes))) > 0)
			sha256_add(&s, bytes, (size_t)n);
	}
	if (n < 0)
		return err_sys(e, "read %s", database);
	sha256_end(&s, sum);
	hex_encode(out_hex, sum, sizeof(sum));
	return 0;
}

void image_explain_full(int dir, const char *path, struct err *e)
{
	struct statvfs fs;

	if (fstatvfs(dir, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < FULL_BELOW)
		err_in(e, "no space is left in %s", path);
}
