/* restore.c - `atoll restore`: puts the state of a backup into the state folder. No daemon may use it meanwhile.
 *
 *   1. the archive is read completely and compared with its manifest: nothing is changed before
 *   2. its files are written to <state>/restore.new
 *   3. what they replace moves to <state>/replaced.TIME; then they get their places, one by one
 *
 * A crash in step 3 leaves parts in both folders: the same command with --force completes it from the beginning. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/archive.h"
#include "daemon/commands.h"
#include "daemon/pidfile.h"
#include "daemon/state_dir.h"
#include "store/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RESTORE_STATE, RESTORE_CONFIG, RESTORE_FORCE, RESTORE_NFLAGS };

static const struct flag flags[RESTORE_NFLAGS] = {
	[RESTORE_STATE] = { "state", 0, FLAG_TEXT, "DIR", "state folder of the daemon" },
	[RESTORE_CONFIG] = { "config", 0, FLAG_TEXT, "FILE", "configuration file of the daemon" },
	[RESTORE_FORCE] = { "force", 'f', FLAG_SWITCH, NULL,
			    "replace the existing state; it is kept in a folder replaced.TIME" },
};

struct restore {
	struct state_dir state;
	char fresh[1100], old[1100]; /* folders of this restore, in the state folder */
	unsigned files;
};

/* ---- what may be replaced ---- */

static int restore_lock(const struct restore *r, struct err *e)
{
	auto_fd int fd = open(r->state.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "open %.150s", r->state.state);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(e, ERR_CONFLICT,
			       "a daemon uses %.120s; end it first: atoll stop --all",
			       r->state.state);
	return steal_fd(&fd);
}

static int restore_is_empty(const struct restore *r)
{
	char path[1300];

	snprintf(path, sizeof(path), "%s/atoll.db", r->state.folder);
	return access(path, F_OK) < 0;
}

/* The images of volumes that boxes have mounted are locked. Boxes live longer than their daemon. */
static int restore_check_volumes(const struct restore *r, struct err *e)
{
	char path[1100];
	struct dirent *entry;
	int rc = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%.1000s/volumes", r->state.state);
	d = opendir(path);
	while (d && rc == 0 && (entry = readdir(d))) {
		auto_fd int fd = openat(dirfd(d), entry->d_name,
					O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		    flock(fd, LOCK_EX | LOCK_NB) < 0)
			rc = err_set(e, ERR_CONFLICT,
				     "a box uses volume %.40s; end it first: atoll stop --all",
				     entry->d_name);
	}
	if (d)
		closedir(d);
	return rc;
}

static int restore_check_state(const struct restore *r, int force, struct err *e)
{
	if (!restore_is_empty(r) && !force)
		return err_set(e, ERR_CONFLICT,
			       "%.120s has the state of a daemon already; --force replaces it",
			       r->state.state);
	return restore_check_volumes(r, e);
}

/* ---- files ---- */

static int restore_open(void *ctx, const char *name, struct err *e)
{
	struct restore *r = ctx;
	char path[1300], *slash;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", r->fresh, name);
	slash = strrchr(path, '/');
	*slash = 0;
	if (state_dir_make(path, 0700, e) < 0)
		return -1;
	*slash = '/';
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "create %.150s", path);
	if (!strncmp(name, "server/", 7) && r->state.uid != (uid_t)-1 &&
	    fchown(fd, r->state.uid, r->state.gid) < 0) {
		close(fd);
		return err_sys(e, "give %.150s to uid %u", path, (unsigned)r->state.uid);
	}
	if (!strcmp(name, "receipts.pub"))
		fchmod(fd, 0644);
	r->files++;
	return fd;
}

/* The parts of a state folder that a restore replaces, as they are named in an archive. Layers of templates and packages
 * are not replaced: they are named by their content, and the rows of either database may name them. */
static const char *const places[] = {
	"server/atoll.db", "server/atoll.db-wal",   "server/atoll.db-shm", "server/snapshots",
	"server/batches",  "server/builds/uploads", "server/made",         "volumes",
	"secrets.key",     "receipts.key",          "receipts.pub"
};

static const char *restore_place(const struct restore *r, const char *name, char out[1400])
{
	if (!strncmp(name, "server/", 7))
		snprintf(out, 1400, "%s/%s", r->state.folder, name + 7);
	else
		snprintf(out, 1400, "%s/%s", r->state.state, name);
	return out;
}

static int restore_move(const char *from, const char *to, struct err *e)
{
	char folder[1400], *slash;

	snprintf(folder, sizeof(folder), "%s", to);
	slash = strrchr(folder, '/');
	*slash = 0;
	if (state_dir_make(folder, 0700, e) < 0)
		return -1;
	return rename(from, to) < 0 && errno != ENOENT
		       ? err_sys(e, "move %.100s to %.100s", from, to)
		       : 0;
}

static int restore_own_folder(const struct restore *r, const char *path, struct err *e)
{
	return r->state.uid != (uid_t)-1 && chown(path, r->state.uid, r->state.gid) < 0 &&
			       errno != ENOENT
		       ? err_sys(e, "give %.150s to uid %u", path, (unsigned)r->state.uid)
		       : 0;
}

/* Keys that a backup does not have stay. */
static int restore_replaces(const struct restore *r, const char *name)
{
	char path[1400];

	snprintf(path, sizeof(path), "%s/%s", r->fresh, name);
	return access(path, F_OK) == 0 || !strstr(name, ".key");
}

static int restore_swap(struct restore *r, struct err *e)
{
	char place[1400], other[1400];

	for (unsigned i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(other, sizeof(other), "%s/%s", r->old, places[i]);
		if (restore_replaces(r, places[i]) &&
		    restore_move(restore_place(r, places[i], place), other, e) < 0)
			return -1;
	}
	for (unsigned i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(other, sizeof(other), "%s/%s", r->fresh, places[i]);
		if (access(other, F_OK) < 0)
			continue;
		restore_place(r, places[i], place);
		if (restore_move(other, place, e) < 0 ||
		    (!strncmp(places[i], "server/", 7) && restore_own_folder(r, place, e) < 0))
			return -1;
	}
	snprintf(place, sizeof(place), "%s/builds", r->state.folder);
	return restore_own_folder(r, place, e);
}

/* Files of checkpoints are added to those that exist: their ids are never used again, and a keeper that
 * runs has their folder open. */
static int restore_add_folder(const struct restore *r, const char *name, struct err *e)
{
	char from[1400], to[1400], file[1700], place[1700];
	struct dirent *d;
	DIR *all;
	int rc = 0;

	snprintf(from, sizeof(from), "%s/%s", r->fresh, name);
	snprintf(to, sizeof(to), "%s/%s", r->state.state, name);
	all = opendir(from);
	if (!all)
		return errno == ENOENT ? 0 : err_sys(e, "read %.150s", from);
	if (state_dir_make(to, 0700, e) < 0)
		rc = -1;
	while (rc == 0 && (d = readdir(all))) {
		if (d->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%.255s", from, d->d_name);
		snprintf(place, sizeof(place), "%s/%.255s", to, d->d_name);
		if (access(place, F_OK) < 0)
			rc = restore_move(file, place, e);
	}
	closedir(all);
	return rc;
}

static int restore_remove(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		char below[1700];

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		snprintf(below, sizeof(below), "%.1400s/%s", path, entry->d_name);
		if (unlink(below) < 0)
			restore_remove(below);
	}
	if (d)
		closedir(d);
	return rmdir(path);
}

/* ---- the command ---- */

static int restore_check_archive(int fd, struct err *e)
{
	json_t *manifest;

	if (archive_verify(fd, &manifest, e) < 0)
		return -1;
	json_decref(manifest);
	return 0;
}

static int restore_unpack(struct restore *r, int fd, struct err *e)
{
	char path[1300];
	int schema;

	restore_remove(r->fresh); /* of an attempt that was killed */
	if (archive_extract(fd, restore_open, r, e) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/server/atoll.db", r->fresh);
	return store_examine(path, &schema, e);
}

static int restore_run(struct restore *r, const char *file, int force, struct err *e)
{
	auto_fd int fd = open(file, O_RDONLY | O_CLOEXEC), lock = -1;
	int rc;

	if (fd < 0)
		return err_sys(e, "open %.150s", file);
	if (restore_check_archive(fd, e) < 0)
		return err_in(e, "%.100s", file);
	lock = restore_lock(r, e);
	if (lock < 0 || restore_check_state(r, force, e) < 0)
		return -1;
	snprintf(r->fresh, sizeof(r->fresh), "%.1000s/restore.new", r->state.state);
	snprintf(r->old, sizeof(r->old), "%.1000s/replaced.%llu", r->state.state,
		 (unsigned long long)(clock_ns(CLOCK_REALTIME) / 1000000000));
	rc = restore_unpack(r, fd, e);
	if (rc == 0)
		rc = restore_add_folder(r, "checkpoints/layers", e);
	if (rc == 0)
		rc = restore_add_folder(r, "checkpoints/index", e);
	if (rc == 0)
		rc = restore_swap(r, e);
	restore_remove(r->fresh);
	rmdir(r->old); /* if nothing was replaced */
	return rc;
}

static int restore_failed(const struct cli *cli, const struct err *e)
{
	struct cli_error t;

	cli_error_what(&t, err_kind_name(e->kind), "not restored: %s", e->msg);
	if (e->sys == EACCES || e->sys == EPERM)
		cli_error_hint(&t, "as root", "sudo atoll restore FILE");
	return cli_error_print(&t, cli->json, STATUS_FAILED);
}

static int run_restore(const struct cli *cli, const struct args *a)
{
	struct restore r = { 0 };
	struct cli_error t;
	struct err e;

	if (a->nwords != 1) {
		cli_error_what(&t, "usage", "restore: name the file of a backup");
		cli_error_hint(&t, "type", "atoll restore FILE");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	if (state_dir_find(&r.state, args_text(a, RESTORE_STATE, NULL),
			   args_text(a, RESTORE_CONFIG, NULL), &e) < 0 ||
	    restore_run(&r, a->words[0], args_has(a, RESTORE_FORCE), &e) < 0)
		return restore_failed(cli, &e);
	if (cli->json)
		printf("{\"state\":\"%s\",\"files\":%u}\n", r.state.state, r.files);
	else if (!cli->quiet)
		printf("restored %u files to %s%s%s\n", r.files, r.state.state,
		       access(r.old, F_OK) == 0 ? "; what they replaced is in " : "",
		       access(r.old, F_OK) == 0 ? r.old : "");
	return 0;
}

static const struct example examples[] = {
	{ "atoll restore atoll.tar", "into an empty state folder" },
	{ "atoll stop --all && atoll restore atoll.tar --force && atoll serve",
	  "back to the state of the backup" },
	{ 0 },
};

const struct command command_restore = {
	/* clang-format off */
	.name = "restore",
	.group = "Machine",
	.usage = "FILE [--force]",
	.summary = "put the state of a backup into the state folder",
	.notes = "The archive is checked completely before anything is changed. A running daemon, boxes with volumes, an\n"
		 "archive that was cut or changed, and a database of a newer version are refused.",
	.flags = flags,
	.nflags = RESTORE_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = run_restore,
	/* clang-format on */
};
