/* procimage_file.c - see procimage_file.h. */
#include "keeper/procimage_file.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_TEXT = 2 * PROCIMAGE_KEY };

static void file_name(const char *id, char out[64])
{
	snprintf(out, 64, "images/%.16s", id);
}

int procimage_file_new(int dir, struct err *e)
{
	int fd;

	if (mkdirat(dir, "images", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "the folder for process images");
	fd = openat(dir, "images", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd < 0 ? err_sys(e, "make a file for a process image") : fd;
}

int procimage_file_link(int dir, int fd, const char *id, struct err *e)
{
	char name[64];

	file_name(id, name);
	if (linkat(fd, "", dir, name, AT_EMPTY_PATH) == 0)
		return 0;
	return errno == EEXIST ? err_set(e, ERR_CONFLICT,
					 "checkpoint %s has a file with its process image "
					 "already",
					 id)
			       : err_sys(e, "name the process image of checkpoint %s", id);
}

int procimage_file_open(int dir, const char *id, struct err *e)
{
	char name[64];
	int fd;

	file_name(id, name);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "checkpoint %s has no process image on the disk",
			       id);
	return fd < 0 ? err_sys(e, "the process image of checkpoint %s", id) : fd;
}

int procimage_file_sync(int dir, const char *id, struct err *e)
{
	auto_fd int folder = openat(dir, "images", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fd int fd = procimage_file_open(dir, id, e);

	if (fd < 0)
		return e->kind == ERR_NOT_FOUND ? 0 : -1;
	if (fsync(fd) < 0 || fsync(folder) < 0 || fsync(dir) < 0)
		return err_sys(e, "write the process image of checkpoint %s to the disk", id);
	return 0;
}

int procimage_file_drop(int dir, const char *id, struct err *e)
{
	char name[64];

	file_name(id, name);
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT
		       ? err_sys(e, "delete the process image of checkpoint %s", id)
		       : 0;
}

/* ---- the key ---- */

static int key_write(int fd, uint8_t key[PROCIMAGE_KEY], struct err *e)
{
	char text[KEY_TEXT + 2];
	int rc = 0;

	if (id_random(key, PROCIMAGE_KEY, e) < 0)
		return -1;
	hex_encode(text, key, PROCIMAGE_KEY);
	text[KEY_TEXT] = '\n';
	if (pwrite(fd, text, KEY_TEXT + 1, 0) != KEY_TEXT + 1 || fsync(fd) < 0)
		rc = err_sys(e, "write the key of process images (checkpoints/key)");
	explicit_bzero(text, sizeof(text));
	if (rc < 0)
		(void)!ftruncate(fd, 0); /* a part of a key must not be mistaken for one */
	return rc;
}

static int key_parse(const char *text, ssize_t n, uint8_t key[PROCIMAGE_KEY], struct err *e)
{
	for (ssize_t i = 0; i < KEY_TEXT; i++) {
		int digit = i < n ? hex_digit(text[i]) : -1;

		if (digit < 0)
			return err_set(e, ERR_CONFLICT,
				       "the key of process images (checkpoints/key in the state "
				       "folder) is not %d hexadecimal digits: restore it from a "
				       "backup",
				       KEY_TEXT);
		key[i / 2] = (uint8_t)(i & 1 ? key[i / 2] | digit : digit << 4);
	}
	return 0;
}

int procimage_file_key(int dir, int create, uint8_t key[PROCIMAGE_KEY], struct err *e)
{
	auto_fd int fd = openat(
		dir, "key", (create ? O_RDWR | O_CREAT : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC, 0600);
	char text[KEY_TEXT + 1] = "";
	struct stat st;
	ssize_t n;
	int rc;

	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_CONFLICT,
			       "the key of process images (checkpoints/key in the state folder) is "
			       "missing: restore it from a backup");
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "the key of process images (checkpoints/key)");
	if (!S_ISREG(st.st_mode) || st.st_mode & 077)
		return err_set(e, ERR_CONFLICT,
			       "other users can read the key of process images (mode %03o); type: "
			       "chmod 600 STATE/checkpoints/key",
			       (unsigned)st.st_mode & 0777);
	n = pread(fd, text, sizeof(text), 0);
	if (n < 0)
		return err_sys(e, "the key of process images (checkpoints/key)");
	rc = n == 0 && create ? key_write(fd, key, e) : key_parse(text, n, key, e);
	explicit_bzero(text, sizeof(text));
	return rc;
}
