/* prepare_play.c - `atoll tier prepare play`: the interpreters of /play/ (docs/tiers.md).
 *
 *   1. npm installs the packages into <state>/server/play/new
 *   2. each file of the table is compared with its hash and written, also compressed
 *   3. the complete folder gets its name, which the server looks for */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "daemon/prepare.h"
#include "v1/play_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PREPARE_FILE_MAX = 64 << 20 };

static int prepare_play_read(const char *path, struct buf *out, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_sys(e, "open %.180s", path);
	while ((n = read(fd, buf_space(out, 1 << 20), 1 << 20)) > 0) {
		buf_grew(out, (size_t)n);
		if (out->len > PREPARE_FILE_MAX)
			return err_set(e, ERR_LIMIT, "%.150s is larger than %d MiB", path,
				       PREPARE_FILE_MAX >> 20);
	}
	return n < 0 ? err_sys(e, "read %.180s", path) : 0;
}

static int prepare_play_check(const struct play_file *f, const struct buf *bytes, struct err *e)
{
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, bytes->p, bytes->len);
	sha256_end(&s, digest);
	hex_encode(hex, digest, sizeof digest);
	if (strcmp(hex, f->sha256) != 0)
		return err_set(
			e, ERR_INVALID,
			"%s is not the file that Atoll knows: its SHA-256 is %.16s..., not %.16s...",
			f->source, hex, f->sha256);
	return 0;
}

static void prepare_play_rewrite(struct buf *bytes)
{
	auto_buf struct buf out = { 0 };
	const char *at = bytes->p, *found;

	while ((found = memmem(at, (size_t)(bytes->p + bytes->len - at), PLAY_IMPORT,
			       strlen(PLAY_IMPORT)))) {
		buf_add(&out, at, (size_t)(found - at));
		buf_puts(&out, PLAY_IMPORT_FILE);
		at = found + strlen(PLAY_IMPORT);
	}
	buf_add(&out, at, (size_t)(bytes->p + bytes->len - at));
	buf_cut(bytes, 0);
	buf_add(bytes, out.p, out.len);
}

static int prepare_play_write(const char *path, const void *bytes, size_t n,
			      const struct state_dir *dir, struct err *e)
{
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	for (size_t at = 0; fd >= 0 && at < n;) {
		ssize_t k = write(fd, (const char *)bytes + at, n - at);

		if (k < 0)
			return err_sys(e, "write %.180s", path);
		at += (size_t)k;
	}
	if (fd < 0 || (dir->uid != (uid_t)-1 && fchown(fd, dir->uid, dir->gid) < 0))
		return err_sys(e, "write %.180s", path);
	return 0;
}

/* Where compression saves less than a tenth only the plain file is written. */
static int prepare_play_gzip(const char *path, const struct buf *bytes, const struct state_dir *dir,
			     struct err *e)
{
	z_stream z = { .next_in = (Bytef *)bytes->p, .avail_in = (uInt)bytes->len };
	auto_buf struct buf out = { 0 };
	auto_free char *name = buf_text("%s.gz", path);
	int done;

	if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(e, ERR_SYS, "no memory to compress %.150s", path);
	z.avail_out = (uInt)deflateBound(&z, bytes->len);
	z.next_out = (Bytef *)buf_space(&out, z.avail_out);
	done = deflate(&z, Z_FINISH);
	buf_grew(&out, z.total_out);
	deflateEnd(&z);
	if (done != Z_STREAM_END)
		return err_set(e, ERR_SYS, "compressing %.150s failed (%d)", path, done);
	if (out.len > bytes->len / 10 * 9)
		return 0;
	return prepare_play_write(name, out.p, out.len, dir, e);
}

static int prepare_play_file(const struct play_file *f, const char *modules, const char *to,
			     const struct state_dir *dir, struct err *e)
{
	auto_free char *source = buf_text("%s/%s", modules, f->source),
		       *path = buf_text("%s/%s", to, f->name);
	auto_buf struct buf bytes = { 0 };

	if (prepare_play_read(source, &bytes, e) < 0 || prepare_play_check(f, &bytes, e) < 0)
		return -1;
	if (strstr(f->type, "javascript"))
		prepare_play_rewrite(&bytes);
	if (prepare_play_write(path, bytes.p, bytes.len, dir, e) < 0)
		return -1;
	return prepare_play_gzip(path, &bytes, dir, e);
}

static int prepare_play_fill(const struct state_dir *dir, const char *fresh, const char *modules,
			     struct err *e)
{
	auto_free char *set = buf_text("%s/set", fresh);

	if (state_dir_make(set, 0755, e) < 0)
		return -1;
	for (unsigned i = 0; i < play_nfiles; i++)
		if (prepare_play_file(&play_files[i], modules, set, dir, e) < 0)
			return -1;
	if (dir->uid != (uid_t)-1 && chown(set, dir->uid, dir->gid) < 0)
		return err_sys(e, "give %.150s to the server", set);
	return 0;
}

static int prepare_play(const struct state_dir *dir, const struct prepare_how *how, struct err *e)
{
	auto_free char *all = buf_text("%s/" PLAY_FOLDER, dir->folder),
		       *fresh = buf_text("%s/new", all), *set = buf_text("%s/set", fresh),
		       *place = buf_text("%s/%s", all, play_set()),
		       *modules =
			       how->from ? strdup(how->from) : buf_text("%s/node_modules", fresh);

	if (!how->force && access(place, F_OK) == 0) {
		if (!how->quiet)
			fprintf(stderr, "already installed: %s\n", place);
		return 0;
	}
	if (prepare_remove(fresh, e) < 0 || state_dir_make(fresh, 0755, e) < 0)
		return -1;
	if ((!how->from && prepare_npm(fresh, play_packages, how, e) < 0) ||
	    prepare_play_fill(dir, fresh, modules, e) < 0 || prepare_remove(place, e) < 0) {
		struct err ignored;

		(void)!prepare_remove(fresh, &ignored);
		return -1;
	}
	if (rename(set, place) < 0)
		return err_sys(e, "rename %.150s", set);
	if (!how->quiet)
		fprintf(stderr, "installed: %s\n", place);
	return prepare_remove(fresh, e);
}

const struct preparation preparation_play = {
	.name = "play",
	.summary =
		"interpreters for programs in the browser (/play/): Pyodide and QuickJS, from npm",
	.run = prepare_play,
};
