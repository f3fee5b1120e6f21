/* backup.c - `atoll backup`: everything that an installation needs to continue elsewhere, in one file. The daemon may
 * run meanwhile.
 *
 *   1. the database, as it is at one moment (store/backup.h)
 *   2. files that its rows name: snapshots, results of batches, uploads for templates; checkpoints; volumes; keys
 *
 * The database is first: a file that was created later is only superfluous, and one that was deleted in between belongs to
 * a row that was deleted as well. The archive gets its name when it is complete and on the disk. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "daemon/archive.h"
#include "daemon/commands.h"
#include "daemon/state_dir.h"
#include "record/record.h"
#include "store/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKUP_STATE, BACKUP_CONFIG, BACKUP_NO_KEYS, BACKUP_NFLAGS };

static const struct flag flags[BACKUP_NFLAGS] = {
	[BACKUP_STATE] = { "state", 0, FLAG_TEXT, "DIR", "state folder of the daemon" },
	[BACKUP_CONFIG] = { "config", 0, FLAG_TEXT, "FILE", "configuration file of the daemon" },
	[BACKUP_NO_KEYS] = { "no-keys", 0, FLAG_SWITCH, NULL,
			     "leave out secrets.key and receipts.key: secrets cannot be decrypted without the first" },
};

struct backup {
	const struct cli *cli;
	struct state_dir state;
	char file[1024], part[1100], database[1100], clone[1100]; /* the last three: temporary */
	struct archive_writer to;
	json_t *left_out;
	int schema;
};

static void backup_report(const struct backup *b, const char *name, uint64_t bytes)
{
	char text[UNITS_TEXT];

	if (!b->cli->quiet && !b->cli->json)
		fprintf(stderr, "atoll: %s, %s\n", name, units_size(text, bytes));
}

static void backup_leave_out(struct backup *b, const char *name, const char *why)
{
	json_array_append_new(b->left_out, json_pack("{s:s, s:s}", "path", name, "why", why));
	fprintf(stderr, "atoll: not in the backup: %s: %s\n", name, why);
}

static int backup_add(struct backup *b, const char *name, int from, struct err *e)
{
	struct stat st;

	if (fstat(from, &st) < 0)
		return err_sys(e, "%s", name);
	backup_report(b, name, (uint64_t)st.st_size);
	return archive_add(&b->to, name, from, e);
}

/* ---- parts ---- */

static int backup_add_database(struct backup *b, struct err *e)
{
	auto_fd int fd = -1;

	unlink(b->database);
	if (store_backup(b->state.folder, b->database, &b->schema, e) < 0)
		return -1;
	fd = open(b->database, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "open %.150s", b->database);
	if (backup_add(b, "server/atoll.db", fd, e) < 0)
		return -1;
	unlink(b->database);
	return 0;
}

/* A file that no longer exists was deleted after the database was copied. */
static int backup_add_file(struct backup *b, const char *path, const char *name, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %.150s", path);
	if (fstat(fd, &st) < 0)
		return err_sys(e, "open %.150s", path);
	return S_ISREG(st.st_mode) ? backup_add(b, name, fd, e) : 0;
}

/* All regular files of a folder whose names a backup may have; not those that are still being written (.part). */
static int backup_add_folder(struct backup *b, const char *folder, const char *prefix,
			     int (*add)(struct backup *b, const char *path, const char *name,
					struct err *e),
			     struct err *e)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	int rc = 0;

	if (!d)
		return errno == ENOENT ? 0 : err_sys(e, "open %.150s", folder);
	while (rc == 0 && (entry = readdir(d))) {
		char path[1400], name[300];
		size_t n = strlen(entry->d_name);

		snprintf(path, sizeof(path), "%.1100s/%s", folder, entry->d_name);
		snprintf(name, sizeof(name), "%s/%s", prefix, entry->d_name);
		if (entry->d_name[0] != '.' && archive_name_valid(name) &&
		    !(n > 5 && !strcmp(entry->d_name + n - 5, ".part")))
			rc = add(b, path, name, e);
	}
	closedir(d);
	return rc;
}

/* A box writes to the volume: its image is never consistent, except in a copy that the file system makes at once. */
static int backup_add_used_volume(struct backup *b, int from, const char *name, struct err *e)
{
	auto_fd int copy =
		open(b->clone, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (copy < 0)
		return err_sys(e, "create %.150s", b->clone);
	unlink(b->clone);
	sync(); /* what the box has written is in the image */
	if (ioctl(copy, FICLONE, from) == 0)
		return backup_add(b, name, copy, e);
	backup_leave_out(
		b, name,
		"a running box may write to this volume; pause or stop the box and back up again");
	return 0;
}

/* The keeper locks the image of a mounted volume: exclusively, if a box may write to it. */
static int backup_add_volume(struct backup *b, const char *path, const char *name, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %.150s", path);
	return flock(fd, LOCK_SH | LOCK_NB) == 0 ? backup_add(b, name, fd, e)
						 : backup_add_used_volume(b, fd, name, e);
}

static int backup_add_keys(struct backup *b, struct err *e)
{
	static const char *const keys[] = { "secrets.key", "receipts.key", "receipts.pub" };
	char path[1100];

	for (unsigned i = 0; i < ARRAY_LEN(keys); i++) {
		snprintf(path, sizeof(path), "%.1000s/%s", b->state.state, keys[i]);
		if (backup_add_file(b, path, keys[i], e) < 0)
			return -1;
	}
	return 0;
}

static int backup_add_all(struct backup *b, int keys, struct err *e)
{
	static const char *const folders[] = { "snapshots", "batches", "builds/uploads" };
	static const char *const checkpoints[] = { "checkpoints/layers", "checkpoints/index" };
	char path[1200], prefix[64];

	if (backup_add_database(b, e) < 0)
		return -1;
	for (unsigned i = 0; i < ARRAY_LEN(folders); i++) {
		snprintf(path, sizeof(path), "%.1100s/%s", b->state.folder, folders[i]);
		snprintf(prefix, sizeof(prefix), "server/%s", folders[i]);
		if (backup_add_folder(b, path, prefix, backup_add_file, e) < 0)
			return -1;
	}
	for (unsigned i = 0; i < ARRAY_LEN(checkpoints); i++) {
		snprintf(path, sizeof(path), "%.1000s/%s", b->state.state, checkpoints[i]);
		if (backup_add_folder(b, path, checkpoints[i], backup_add_file, e) < 0)
			return -1;
	}
	snprintf(path, sizeof(path), "%.1000s/volumes", b->state.state);
	if (backup_add_folder(b, path, "volumes", backup_add_volume, e) < 0)
		return -1;
	return keys ? backup_add_keys(b, e) : 0;
}

/* ---- the file ---- */

static int backup_sync_folder(const char *file, struct err *e)
{
	char copy[1100];
	auto_fd int fd = -1;

	snprintf(copy, sizeof(copy), "%s", file);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || fsync(fd) < 0 ? err_sys(e, "sync the folder of %.150s", file) : 0;
}

static int backup_write(struct backup *b, int keys, struct err *e)
{
	auto_fd int fd = open(b->part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	json_t *about;

	if (fd < 0)
		return err_sys(e, "create %.150s", b->part);
	b->to = (struct archive_writer){ .fd = fd };
	if (backup_add_all(b, keys, e) < 0)
		return -1;
	about = json_pack("{s:s, s:i, s:o, s:O}", "version", ATOLL_VERSION, "schema", b->schema,
			  "created", json_time(clock_ns(CLOCK_REALTIME)), "left_out", b->left_out);
	if (archive_finish(&b->to, about, e) < 0)
		return -1;
	if (fsync(fd) < 0 || rename(b->part, b->file) < 0)
		return err_sys(e, "write %.150s", b->file);
	return backup_sync_folder(b->file, e);
}

static int backup_prepare(struct backup *b, const struct args *a, struct err *e)
{
	if (state_dir_find(&b->state, args_text(a, BACKUP_STATE, NULL),
			   args_text(a, BACKUP_CONFIG, NULL), e) < 0)
		return -1;
	if (strlen(a->words[0]) >= sizeof(b->file))
		return err_set(e, ERR_INVALID, "the name of the file is too long");
	snprintf(b->file, sizeof(b->file), "%s", a->words[0]);
	snprintf(b->part, sizeof(b->part), "%s.part", b->file);
	snprintf(b->database, sizeof(b->database), "%s.part-db", b->file);
	snprintf(b->clone, sizeof(b->clone), "%.1000s/volumes/.backup", b->state.state);
	return 0;
}

static int backup_failed(const struct cli *cli, const struct err *e)
{
	struct cli_error t;

	cli_error_what(&t, err_kind_name(e->kind), "no backup was written: %s", e->msg);
	if (e->sys == EACCES || e->sys == EPERM)
		cli_error_hint(&t, "as root", "sudo atoll backup FILE");
	if (e->sys == ENOSPC)
		cli_error_hint(&t, "the disk is full",
			       "write to another disk: atoll backup /mnt/FILE");
	return cli_error_print(&t, cli->json, STATUS_FAILED);
}

static int run_backup(const struct cli *cli, const struct args *a)
{
	struct backup b = { .cli = cli, .left_out = json_array() };
	char text[UNITS_TEXT];
	struct cli_error t;
	struct err e;
	int rc;

	if (a->nwords != 1) {
		json_decref(b.left_out);
		cli_error_what(&t, "usage", "backup: name the file to write");
		cli_error_hint(&t, "type", "atoll backup FILE");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	rc = backup_prepare(&b, a, &e);
	if (rc == 0) {
		rc = backup_write(&b, !args_has(a, BACKUP_NO_KEYS), &e);
		if (rc < 0) {
			unlink(b.part);
			unlink(b.database);
		}
	}
	archive_writer_fini(&b.to);
	if (rc == 0 && cli->json)
		printf("{\"file\":\"%s\",\"bytes\":%llu,\"schema\":%d,\"left_out\":%zu}\n", b.file,
		       (unsigned long long)b.to.bytes, b.schema, json_array_size(b.left_out));
	else if (rc == 0 && !cli->quiet)
		printf("%s: %s\n", b.file, units_size(text, b.to.bytes));
	json_decref(b.left_out);
	return rc < 0 ? backup_failed(cli, &e) : 0;
}

static const struct example examples[] = {
	{ "atoll backup /var/backups/atoll.tar", "while the daemon runs" },
	{ "atoll restore /var/backups/atoll.tar",
	  "on a machine without state, before the daemon starts" },
	{ 0 },
};

const struct command command_backup = {
	/* clang-format off */
	.name = "backup",
	.group = "Machine",
	.usage = "FILE",
	.summary = "write the state of the daemon to one file, while it runs",
	.notes = "The file has the database, snapshots, checkpoints, volumes, results of batches and keys, and is readable by its owner\n"
		 "only. It is a tar archive with checksums, complete or not there at all.",
	.flags = flags,
	.nflags = BACKUP_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = run_backup,
	/* clang-format on */
};
