/* host_files.c - see host_files.h: the table of open files, and imports that use one of them. */
#include "wasm/host_files.h"
#include "wasm/host_wasi.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILES_MOST = 512, FILES_IOV = 64 };

static struct files_entry files[FILES_MOST];
static struct {
	const void *bytes;
	size_t n;
} files_start;

/* ---- the table ---- */

uint32_t files_add(struct files_entry e)
{
	for (uint32_t i = 0; i < FILES_MOST; i++) {
		if (files[i].kind != FILES_CLOSED)
			continue;
		files[i] = e;
		return i;
	}
	return UINT32_MAX;
}

struct files_entry *files_at(uint32_t fd)
{
	return fd < FILES_MOST && files[fd].kind != FILES_CLOSED ? &files[fd] : NULL;
}

int host_files_native(uint32_t fd)
{
	const struct files_entry *f = files_at(fd);

	return f ? f->fd : -1;
}

static void files_preopen(const char *folder, const char *name, bool read_only)
{
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	/* A folder that does not exist still has its number, which the state of the module contains. */
	files_add((struct files_entry){
		.kind = FILES_FOLDER, .fd = fd, .preopen = name, .read_only = read_only });
}

/* 0 to 2: standard streams; 3: files of the module; 4: the home; 5: the working folder. */
void host_files_init(const char *folder, const char *home)
{
	char root[4096];

	for (int i = 0; i < 3; i++)
		files_add(
			(struct files_entry){ .kind = FILES_OPEN, .fd = i, .terminal = isatty(i) });
	snprintf(root, sizeof root, "%s/root", folder);
	files_preopen(root, "/usr/local/lib", true);
	files_preopen(home, "/home/user", false);
	files_preopen(".", ".", false);
}

void host_files_start_text(const void *bytes, size_t n)
{
	files_start.bytes = bytes;
	files_start.n = n;
}

/* ---- stat ---- */

struct wasi_filestat {
	uint64_t dev, ino;
	uint8_t type, pad[7];
	uint64_t nlink, size, atime, mtime, ctime;
};
_Static_assert(sizeof(struct wasi_filestat) == 64, "WASI");

static uint8_t files_type(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFBLK:
		return 1;
	case S_IFCHR:
		return 2;
	case S_IFDIR:
		return 3;
	case S_IFREG:
		return 4;
	case S_IFSOCK:
		return 6;
	case S_IFLNK:
		return 7;
	}
	return 0;
}

static uint64_t files_ns(const struct timespec *t)
{
	return host.deterministic ? 0 : (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

int files_fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

uint32_t files_store_stat(const struct stat *st, uint32_t at)
{
	struct wasi_filestat s = { .dev = host.deterministic ? 1 : st->st_dev,
				   .ino = host.deterministic ? 1 : st->st_ino,
				   .type = files_type(st->st_mode),
				   .nlink = st->st_nlink,
				   .size = (uint64_t)st->st_size,
				   .atime = files_ns(&st->st_atim),
				   .mtime = files_ns(&st->st_mtim),
				   .ctime = files_ns(&st->st_ctim) };

	return HOST_STORE(struct wasi_filestat, at, s) ? WASI_OK : WASI_FAULT;
}

uint32_t WASI(fd_filestat_get)(void *m, uint32_t fd, uint32_t at)
{
	struct files_entry *f = files_at(fd);
	struct stat st = { 0 };

	(void)m;
	if (!f)
		return WASI_BADF;
	if (f->kind == FILES_START) {
		st.st_mode = S_IFREG;
		st.st_size = (off_t)files_start.n;
	} else if (files_fstat(f->fd, &st) < 0) {
		return wasi_error(errno);
	}
	return files_store_stat(&st, at);
}

struct wasi_fdstat {
	uint8_t type, pad;
	uint16_t flags;
	uint32_t pad2;
	uint64_t rights, inheriting;
};

uint32_t WASI(fd_fdstat_get)(void *m, uint32_t fd, uint32_t at)
{
	struct files_entry *f = files_at(fd);
	struct wasi_fdstat s = { .rights = ~0ull, .inheriting = ~0ull, .type = 4 };
	struct stat st;
	int flags;

	(void)m;
	if (!f)
		return WASI_BADF;
	if (f->kind == FILES_FOLDER) {
		s.type = 3;
	} else if (f->kind == FILES_OPEN) {
		flags = fcntl(f->fd, F_GETFL);
		if (flags < 0 || files_fstat(f->fd, &st) < 0)
			return wasi_error(errno);
		s.type = files_type(st.st_mode);
		s.flags = (uint16_t)((flags & O_APPEND ? 1 : 0) | (flags & O_NONBLOCK ? 4 : 0));
		if (f->terminal) /* it has no position: this is how programs find out */
			s.rights = ~((1ull << 2) | (1ull << 5));
	}
	return HOST_STORE(struct wasi_fdstat, at, s) ? WASI_OK : WASI_FAULT;
}

uint32_t WASI(fd_fdstat_set_flags)(void *m, uint32_t fd, uint32_t flags)
{
	struct files_entry *f = files_at(fd);

	(void)m;
	if (!f || f->kind != FILES_OPEN)
		return WASI_BADF;
	if (fd < 3) /* another process may share the description */
		return flags & 4 ? WASI_NOTSUP : WASI_OK;
	return fcntl(f->fd, F_SETFL, (flags & 1 ? O_APPEND : 0) | (flags & 4 ? O_NONBLOCK : 0)) < 0
		       ? wasi_error(errno)
		       : WASI_OK;
}

/* ---- open and close ---- */

uint32_t WASI(fd_prestat_get)(void *m, uint32_t fd, uint32_t at)
{
	struct files_entry *f = files_at(fd);

	(void)m;
	if (!f || !f->preopen)
		return WASI_BADF;
	return HOST_STORE(uint32_t, at, 0) && HOST_STORE(uint32_t, at + 4, strlen(f->preopen))
		       ? WASI_OK
		       : WASI_FAULT;
}

uint32_t WASI(fd_prestat_dir_name)(void *m, uint32_t fd, uint32_t at, uint32_t n)
{
	struct files_entry *f = files_at(fd);
	char *to = host_bytes(at, n);

	(void)m;
	if (!f || !f->preopen)
		return WASI_BADF;
	if (!to)
		return WASI_FAULT;
	if (n < strlen(f->preopen))
		return WASI_NAMETOOLONG;
	memcpy(to, f->preopen, strlen(f->preopen));
	return WASI_OK;
}

uint32_t WASI(fd_close)(void *m, uint32_t fd)
{
	struct files_entry *f = files_at(fd);

	(void)m;
	if (!f)
		return WASI_BADF;
	if (f->fd > 2)
		close(f->fd);
	*f = (struct files_entry){ 0 };
	return WASI_OK;
}

uint32_t WASI(fd_renumber)(void *m, uint32_t from, uint32_t to)
{
	struct files_entry *a = files_at(from), *b = files_at(to);

	if (!a || !b || a->preopen || b->preopen)
		return WASI_BADF;
	if (from == to)
		return WASI_OK;
	WASI(fd_close)(m, to);
	*b = *a;
	*a = (struct files_entry){ 0 };
	return WASI_OK;
}

/* ---- read and write ---- */

/* -1: a pointer beyond the memory, or too many of them. */
static int files_iov(uint32_t at, uint32_t n, struct iovec out[FILES_IOV])
{
	const uint32_t *v = host_bytes(at, (uint64_t)n * 8);

	if (!v)
		return -1;
	n = n < FILES_IOV ? n : FILES_IOV; /* fewer bytes than asked for is a valid result */
	for (uint32_t i = 0; i < n; i++) {
		uint32_t pair[2];

		memcpy(pair, v + 2 * i, sizeof pair);
		out[i] = (struct iovec){ host_bytes(pair[0], pair[1]), pair[1] };
		if (!out[i].iov_base)
			return -1;
	}
	return (int)n;
}

uint32_t files_counted(ssize_t n, uint32_t at)
{
	if (n < 0)
		return wasi_error(errno);
	return HOST_STORE(uint32_t, at, n) ? WASI_OK : WASI_FAULT;
}

static ssize_t files_read_start(struct files_entry *f, const struct iovec *v, int n)
{
	ssize_t done = 0;

	for (int i = 0; i < n; i++) {
		size_t k = files_start.n - f->position;

		k = k < v[i].iov_len ? k : v[i].iov_len;
		memcpy(v[i].iov_base, (const char *)files_start.bytes + f->position, k);
		f->position += k;
		done += (ssize_t)k;
	}
	return done;
}

uint32_t WASI(fd_read)(void *m, uint32_t fd, uint32_t at, uint32_t count, uint32_t out)
{
	struct files_entry *f = files_at(fd);
	struct iovec v[FILES_IOV];
	int n = files_iov(at, count, v);

	(void)m;
	if (!f || n < 0)
		return f ? WASI_FAULT : WASI_BADF;
	return files_counted(
		f->kind == FILES_START ? files_read_start(f, v, n) : readv(f->fd, v, n), out);
}

uint32_t WASI(fd_write)(void *m, uint32_t fd, uint32_t at, uint32_t count, uint32_t out)
{
	struct files_entry *f = files_at(fd);
	struct iovec v[FILES_IOV];
	int n = files_iov(at, count, v);

	(void)m;
	if (!f || n < 0)
		return f ? WASI_FAULT : WASI_BADF;
	return files_counted(writev(f->fd, v, n), out);
}

uint32_t WASI(fd_pread)(void *m, uint32_t fd, uint32_t at, uint32_t count, uint64_t offset,
			uint32_t out)
{
	struct files_entry *f = files_at(fd);
	struct iovec v[FILES_IOV];
	int n = files_iov(at, count, v);

	(void)m;
	if (!f || n < 0)
		return f ? WASI_FAULT : WASI_BADF;
	return files_counted(preadv(f->fd, v, n, (off_t)offset), out);
}

uint32_t WASI(fd_pwrite)(void *m, uint32_t fd, uint32_t at, uint32_t count, uint64_t offset,
			 uint32_t out)
{
	struct files_entry *f = files_at(fd);
	struct iovec v[FILES_IOV];
	int n = files_iov(at, count, v);

	(void)m;
	if (!f || n < 0)
		return f ? WASI_FAULT : WASI_BADF;
	return files_counted(pwritev(f->fd, v, n, (off_t)offset), out);
}

uint32_t WASI(fd_seek)(void *m, uint32_t fd, uint64_t offset, uint32_t whence, uint32_t out)
{
	struct files_entry *f = files_at(fd);
	off_t at;

	(void)m;
	if (!f || whence > 2)
		return f ? WASI_INVAL : WASI_BADF;
	at = lseek(f->fd, (off_t)offset, (int)whence);
	if (at < 0)
		return wasi_error(errno);
	return HOST_STORE(uint64_t, out, at) ? WASI_OK : WASI_FAULT;
}

uint32_t WASI(fd_tell)(void *m, uint32_t fd, uint32_t out)
{
	return WASI(fd_seek)(m, fd, 0, SEEK_CUR, out);
}

uint32_t WASI(fd_sync)(void *m, uint32_t fd)
{
	struct files_entry *f = files_at(fd);

	(void)m;
	return !f ? WASI_BADF : fsync(f->fd) < 0 ? wasi_error(errno) : WASI_OK;
}

uint32_t WASI(fd_datasync)(void *m, uint32_t fd)
{
	return WASI(fd_sync)(m, fd);
}

uint32_t WASI(fd_advise)(void *m, uint32_t fd, uint64_t offset, uint64_t n, uint32_t advice)
{
	(void)m, (void)offset, (void)n, (void)advice;
	return files_at(fd) ? WASI_OK : WASI_BADF;
}

uint32_t WASI(fd_allocate)(void *m, uint32_t fd, uint64_t offset, uint64_t n)
{
	struct files_entry *f = files_at(fd);

	(void)m;
	return !f                                                 ? WASI_BADF
	       : fallocate(f->fd, 0, (off_t)offset, (off_t)n) < 0 ? wasi_error(errno)
								  : WASI_OK;
}

uint32_t WASI(fd_filestat_set_size)(void *m, uint32_t fd, uint64_t n)
{
	struct files_entry *f = files_at(fd);

	(void)m;
	return !f ? WASI_BADF : ftruncate(f->fd, (off_t)n) < 0 ? wasi_error(errno) : WASI_OK;
}

void files_times(uint64_t atime, uint64_t mtime, uint32_t flags, struct timespec out[2])
{
	const uint64_t ns[2] = { atime, mtime };

	for (int i = 0; i < 2; i++, flags >>= 2)
		out[i] = flags & 2   ? (struct timespec){ 0, UTIME_NOW }
			 : flags & 1 ? (struct timespec){ (time_t)(ns[i] / 1000000000u),
							  (long)(ns[i] % 1000000000u) }
				     : (struct timespec){ 0, UTIME_OMIT };
}

uint32_t WASI(fd_filestat_set_times)(void *m, uint32_t fd, uint64_t atime, uint64_t mtime,
				     uint32_t flags)
{
	struct files_entry *f = files_at(fd);
	struct timespec t[2];

	(void)m;
	if (!f || f->kind != FILES_OPEN)
		return WASI_BADF;
	files_times(atime, mtime, flags, t);
	return syscall(SYS_utimensat, f->fd, NULL, t, 0) < 0 ? wasi_error(errno) : WASI_OK;
}

/* ---- folders ---- */

struct files_dirent { /* of getdents64 */
	uint64_t ino;
	int64_t next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};
struct wasi_dirent {
	uint64_t next, ino;
	uint32_t name_bytes;
	uint8_t type, pad[3];
};

static uint8_t files_dirent_type(uint8_t type)
{
	switch (type) {
	case DT_BLK:
		return 1;
	case DT_CHR:
		return 2;
	case DT_DIR:
		return 3;
	case DT_REG:
		return 4;
	case DT_SOCK:
		return 6;
	case DT_LNK:
		return 7;
	}
	return 0;
}

/* A descriptor for reading: those of folders that are open from the beginning cannot be read. */
static int files_readable(struct files_entry *f)
{
	if (f->preopen && f->fd >= 0 && fcntl(f->fd, F_GETFL) & O_PATH) {
		int fd = files_openat2(f->fd, ".", O_RDONLY | O_DIRECTORY, 0);

		if (fd < 0)
			return -1;
		close(f->fd);
		f->fd = fd;
	}
	return f->fd;
}

/* Positions are those of the kernel: a folder of any size needs one buffer. */
uint32_t WASI(fd_readdir)(void *m, uint32_t fd, uint32_t at, uint32_t room, uint64_t cookie,
			  uint32_t out)
{
	struct files_entry *f = files_at(fd);
	uint8_t *to = host_bytes(at, room);
	_Alignas(8) uint8_t bytes[16384];
	uint32_t used = 0;
	int native;

	(void)m;
	if (!f || f->kind != FILES_FOLDER)
		return f ? WASI_NOTDIR : WASI_BADF;
	if (!to)
		return WASI_FAULT;
	native = files_readable(f);
	if (native < 0 || lseek(native, (off_t)cookie, SEEK_SET) < 0)
		return wasi_error(errno);
	while (used < room) {
		long n = syscall(SYS_getdents64, native, bytes, sizeof bytes);

		if (n < 0)
			return wasi_error(errno);
		if (n == 0)
			break;
		for (long i = 0; i < n && used < room;) {
			const struct files_dirent *d = (const void *)(bytes + i);
			uint32_t len = (uint32_t)strlen(d->name), part;
			struct wasi_dirent e = { (uint64_t)d->next,
						 host.deterministic ? 1 : d->ino,
						 len,
						 files_dirent_type(d->type),
						 { 0 } };

			part = room - used < sizeof e ? room - used : sizeof e;
			memcpy(to + used, &e, part);
			used += part;
			part = room - used < len ? room - used : len;
			memcpy(to + used, d->name, part);
			used += part;
			i += d->bytes;
		}
	}
	return HOST_STORE(uint32_t, out, used) ? WASI_OK : WASI_FAULT;
}
