/* host_paths.c - imports with a name. A path is resolved by openat2 below a folder that was open
 * from the beginning: links that lead out of it are rejected by the kernel. Operations on a name open
 * the folder of that name first and then use its last part only. */
#include "wasm/host_files.h"
#include "wasm/host_wasi.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILES_NAME = 4096 };

/* ---- paths ---- */

static uint32_t files_path(uint32_t at, uint32_t n, char out[FILES_NAME])
{
	const char *bytes = host_bytes(at, n);

	if (!bytes)
		return WASI_FAULT;
	if (n >= FILES_NAME)
		return WASI_NAMETOOLONG;
	if (memchr(bytes, 0, n))
		return WASI_INVAL;
	memcpy(out, bytes, n);
	out[n] = 0;
	return WASI_OK;
}

int files_openat2(int folder, const char *path, uint64_t flags, uint64_t mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.mode = mode,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

/* A name as the system calls with a folder need it: the folder is open, name is one part. */
struct files_name {
	int folder;
	char path[FILES_NAME];
	const char *name;
};

static uint32_t files_name(uint32_t fd, uint32_t at, uint32_t n, bool change,
			   struct files_name *out)
{
	const struct files_entry *f = files_at(fd);
	uint32_t error = files_path(at, n, out->path);
	char *slash, *end;

	if (error)
		return error;
	if (!f || f->kind != FILES_FOLDER)
		return f ? WASI_NOTDIR : WASI_BADF;
	if (f->read_only && change)
		return WASI_ROFS;
	if (out->path[0] == '/')
		return WASI_NOTCAPABLE;
	for (end = out->path + strlen(out->path); end > out->path && end[-1] == '/';)
		*--end = 0;
	slash = strrchr(out->path, '/');
	out->name = slash ? slash + 1 : out->path;
	if (!*out->name || !strcmp(out->name, ".") || !strcmp(out->name, ".."))
		return WASI_INVAL;
	if (slash)
		*slash = 0;
	out->folder = files_openat2(f->fd, slash ? out->path : ".", O_PATH | O_DIRECTORY, 0);
	return out->folder < 0 ? wasi_error(errno) : WASI_OK;
}

static uint32_t files_done(struct files_name *n, long rc)
{
	uint32_t error = rc < 0 ? wasi_error(errno) : WASI_OK;

	close(n->folder);
	return error;
}

uint32_t WASI(path_filestat_get)(void *m, uint32_t fd, uint32_t flags, uint32_t at, uint32_t n,
				 uint32_t out)
{
	struct files_entry *f = files_at(fd);
	char path[FILES_NAME];
	uint32_t error = files_path(at, n, path);
	struct stat st;
	int opened, rc;

	(void)m;
	if (error || !f || f->kind != FILES_FOLDER)
		return error ? error : f ? WASI_NOTDIR : WASI_BADF;
	opened = files_openat2(f->fd, path, O_PATH | (flags & 1 ? 0 : O_NOFOLLOW), 0);
	if (opened < 0)
		return wasi_error(errno);
	rc = files_fstat(opened, &st);
	error = wasi_error(errno);
	close(opened);
	return rc < 0 ? error : files_store_stat(&st, out);
}

/* ---- open ---- */

static int files_flags(uint32_t dirflags, uint32_t oflags, uint64_t rights, uint32_t fdflags)
{
	bool reads = rights & (1ull << 1),
	     writes = rights & ((1ull << 6) | (1ull << 8) | (1ull << 22));
	int flags = oflags & 2 ? O_RDONLY : writes ? (reads ? O_RDWR : O_WRONLY) : O_RDONLY;

	return flags | (oflags & 1 ? O_CREAT : 0) | (oflags & 2 ? O_DIRECTORY : 0) |
	       (oflags & 4 ? O_EXCL : 0) | (oflags & 8 ? O_TRUNC : 0) |
	       (fdflags & 1 ? O_APPEND : 0) | (fdflags & 4 ? O_NONBLOCK : 0) |
	       (fdflags & 2 ? O_DSYNC : 0) | (fdflags & 24 ? O_SYNC : 0) |
	       (dirflags & 1 ? 0 : O_NOFOLLOW) | O_NOCTTY;
}

static __attribute__((noinline)) uint32_t files_open(const struct files_entry *f, const char *path,
						     int flags, uint32_t at)
{
	struct files_entry e = { .kind = FILES_OPEN, .read_only = f->read_only };
	struct stat st;
	uint32_t fd;

	if (f->read_only && ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC)))
		return WASI_ROFS;
	e.fd = files_openat2(f->fd, path, (uint64_t)flags, flags & O_CREAT ? 0666 : 0);
	if (e.fd < 0)
		return wasi_error(errno);
	if (files_fstat(e.fd, &st) == 0 && S_ISDIR(st.st_mode))
		e.kind = FILES_FOLDER;
	fd = files_add(e);
	if (fd == UINT32_MAX || !HOST_STORE(uint32_t, at, fd)) {
		close(e.fd);
		if (fd == UINT32_MAX)
			return WASI_NFILE;
		files_at(fd)->kind = FILES_CLOSED;
		return WASI_FAULT;
	}
	return WASI_OK;
}

static __attribute__((noinline)) uint32_t files_open_start(uint32_t at)
{
	uint32_t fd = files_add((struct files_entry){ .kind = FILES_START, .fd = -1 });

	if (fd == UINT32_MAX)
		return WASI_NFILE;
	return HOST_STORE(uint32_t, at, fd) ? WASI_OK : WASI_FAULT;
}

/* What is on the stack here may be saved, and restored in another process: no address of that process, such as
 * that of errno, may be kept across host_image_point(). */
uint32_t WASI(path_open)(void *m, uint32_t fd, uint32_t dirflags, uint32_t at, uint32_t n,
			 uint32_t oflags, uint64_t rights, uint64_t inheriting, uint32_t fdflags,
			 uint32_t out)
{
	const struct files_entry *f = files_at(fd);
	char path[FILES_NAME];
	uint32_t error = files_path(at, n, path);

	(void)m;
	(void)inheriting;
	if (error || !f || f->kind != FILES_FOLDER)
		return error ? error : f ? WASI_NOTDIR : WASI_BADF;
	if (f->preopen && f->read_only && !strcmp(path, HOST_START_FILE)) {
		host_image_point();
		return files_open_start(out);
	}
	return files_open(f, path, files_flags(dirflags, oflags, rights, fdflags), out);
}

/* ---- names ---- */

uint32_t WASI(path_create_directory)(void *m, uint32_t fd, uint32_t at, uint32_t n)
{
	struct files_name name;
	uint32_t error = files_name(fd, at, n, true, &name);

	(void)m;
	return error ? error : files_done(&name, mkdirat(name.folder, name.name, 0777));
}

uint32_t WASI(path_remove_directory)(void *m, uint32_t fd, uint32_t at, uint32_t n)
{
	struct files_name name;
	uint32_t error = files_name(fd, at, n, true, &name);

	(void)m;
	return error ? error : files_done(&name, unlinkat(name.folder, name.name, AT_REMOVEDIR));
}

uint32_t WASI(path_unlink_file)(void *m, uint32_t fd, uint32_t at, uint32_t n)
{
	struct files_name name;
	uint32_t error = files_name(fd, at, n, true, &name);

	(void)m;
	return error ? error : files_done(&name, unlinkat(name.folder, name.name, 0));
}

static uint32_t files_two(uint32_t fd, uint32_t at, uint32_t n, struct files_name *a,
			  uint32_t to_fd, uint32_t to_at, uint32_t to_n, struct files_name *b)
{
	uint32_t error = files_name(fd, at, n, true, a);

	if (error)
		return error;
	error = files_name(to_fd, to_at, to_n, true, b);
	if (error)
		close(a->folder);
	return error;
}

uint32_t WASI(path_rename)(void *m, uint32_t fd, uint32_t at, uint32_t n, uint32_t to_fd,
			   uint32_t to_at, uint32_t to_n)
{
	struct files_name a, b;
	uint32_t error = files_two(fd, at, n, &a, to_fd, to_at, to_n, &b);

	(void)m;
	if (error)
		return error;
	error = files_done(&b, syscall(SYS_renameat2, a.folder, a.name, b.folder, b.name, 0));
	close(a.folder);
	return error;
}

uint32_t WASI(path_link)(void *m, uint32_t fd, uint32_t flags, uint32_t at, uint32_t n,
			 uint32_t to_fd, uint32_t to_at, uint32_t to_n)
{
	struct files_name a, b;
	uint32_t error = files_two(fd, at, n, &a, to_fd, to_at, to_n, &b);

	(void)m;
	(void)flags; /* the link itself, never what it leads to */
	if (error)
		return error;
	error = files_done(&b, linkat(a.folder, a.name, b.folder, b.name, 0));
	close(a.folder);
	return error;
}

/* The text of a link is not resolved now; when it is, it cannot lead out of the folder. */
uint32_t WASI(path_symlink)(void *m, uint32_t text_at, uint32_t text_n, uint32_t fd, uint32_t at,
			    uint32_t n)
{
	char text[FILES_NAME];
	struct files_name name;
	uint32_t error = files_path(text_at, text_n, text);

	(void)m;
	if (!error && text[0] == '/')
		error = WASI_NOTCAPABLE;
	if (!error)
		error = files_name(fd, at, n, true, &name);
	return error ? error : files_done(&name, symlinkat(text, name.folder, name.name));
}

uint32_t WASI(path_readlink)(void *m, uint32_t fd, uint32_t at, uint32_t n, uint32_t to,
			     uint32_t room, uint32_t out)
{
	struct files_name name;
	char *bytes = host_bytes(to, room);
	uint32_t error = bytes ? files_name(fd, at, n, false, &name) : WASI_FAULT;
	ssize_t len;

	(void)m;
	if (error)
		return error;
	len = readlinkat(name.folder, name.name, bytes, room);
	error = files_done(&name, len);
	return error ? error : files_counted(len, out);
}

uint32_t WASI(path_filestat_set_times)(void *m, uint32_t fd, uint32_t flags, uint32_t at,
				       uint32_t n, uint64_t atime, uint64_t mtime, uint32_t times)
{
	struct files_name name;
	struct timespec t[2];
	uint32_t error = files_name(fd, at, n, true, &name);

	(void)m;
	(void)flags; /* the link itself, never what it leads to */
	files_times(atime, mtime, times, t);
	return error ? error
		     : files_done(&name, utimensat(name.folder, name.name, t, AT_SYMLINK_NOFOLLOW));
}
