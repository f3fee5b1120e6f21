/* uid_range.c - see uid_range.h.
 *
 * A share is a link in SHARES_DIR: its name is the share's number, its target the run folder that
 * has it. The keeper holds a lock on NUMBER.lock as long as it lives. A share remains after the end
 * of its keeper as long as a process with one of its ids exists. */
#include "keeper/uid_range.h"
#include "base/cleanup.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARES_DIR "/run/atoll.ids"

enum { LOCK_TRIES = 200, LOCK_WAIT_US = 5000 };

/* The run folder that has the share; "": none. */
static const char *owner_of(int dir, unsigned share, char out[PATH_MAX])
{
	char name[16];
	ssize_t n;

	snprintf(name, sizeof(name), "%u", share);
	n = readlinkat(dir, name, out, PATH_MAX - 1);
	out[n > 0 ? n : 0] = 0;
	return out;
}

/* Takes the lock of a share: a descriptor, or -1 with errno. */
static int lock_share(int dir, unsigned share)
{
	char name[24];
	auto_fd int fd = -1;

	snprintf(name, sizeof(name), "%u.lock", share);
	fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ? -1 : steal_fd(&fd);
}

/* For keepers of a version without that lock: they have one in the run folder. */
static int keeper_lives_in(const char *run_dir)
{
	char path[PATH_MAX + 16];
	auto_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/keeper.lock", run_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

static int uid_of(int proc, const char *pid, unsigned *out)
{
	char path[64], text[1024];
	const char *at;
	ssize_t n;
	auto_fd int fd = -1;

	snprintf(path, sizeof(path), "%.20s/status", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, "\nUid:");
	return at && sscanf(at, "\nUid: %u", out) == 1 ? 0 : -1;
}

/* 1: a process of this host has one of the ids of the share. An unreadable process counts
 * as one. */
static int has_processes(unsigned share)
{
	unsigned first = RANGE_FIRST_UID + share * RANGE_PER_SHARE * RANGE_STRIDE, uid;
	DIR *proc = opendir("/proc");
	const struct dirent *d;
	int found = 0;

	if (!proc)
		return 1;
	while (!found && (d = readdir(proc)))
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' &&
		    uid_of(dirfd(proc), d->d_name, &uid) == 0)
			found = uid >= first && uid - first < RANGE_PER_SHARE * RANGE_STRIDE;
	closedir(proc);
	return found;
}

/* The lock of a share that was not used since the host was booted, or that is no longer used; or
 * -1. */
static int lock_if_free(int dir, unsigned share, int used)
{
	char owner[PATH_MAX];
	auto_fd int lock = -1;

	owner_of(dir, share, owner);
	if (!owner[0] == !!used)
		return -1;
	lock = lock_share(dir, share);
	if (lock < 0 || (used && (keeper_lives_in(owner) || has_processes(share))))
		return -1;
	return steal_fd(&lock);
}

/* The share of this run folder: its previous keeper may need a moment to exit. */
static int lock_own(int dir, unsigned share, const char *run_dir, struct err *e)
{
	int lock;

	for (int tries = 0; (lock = lock_share(dir, share)) < 0; tries++) {
		if (errno != EWOULDBLOCK)
			return err_sys(e, "lock id share %u", share);
		if (tries == LOCK_TRIES)
			return err_set(e, ERR_CONFLICT, "another keeper runs in %s", run_dir);
		usleep(LOCK_WAIT_US);
	}
	return lock;
}

static int find_share(int dir, const char *run_dir, int *out_lock, struct err *e)
{
	char owner[PATH_MAX];

	for (unsigned i = 0; i < RANGE_SHARES; i++)
		if (strcmp(owner_of(dir, i, owner), run_dir) == 0) {
			*out_lock = lock_own(dir, i, run_dir, e);
			return *out_lock < 0 ? -1 : (int)i;
		}
	for (unsigned i = 0; i < 2 * RANGE_SHARES; i++) {
		*out_lock = lock_if_free(dir, i % RANGE_SHARES, i >= RANGE_SHARES);
		if (*out_lock >= 0)
			return (int)(i % RANGE_SHARES);
	}
	return err_set(
		e, ERR_LIMIT,
		"%u keepers of this host have all user ids (one keeper per run folder): end one of them; ls -l %s",
		RANGE_SHARES, SHARES_DIR);
}

static int write_owner(int dir, int share, const char *run_dir, struct err *e)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", share);
	unlinkat(dir, name, 0);
	return symlinkat(run_dir, dir, name) < 0 ? err_sys(e, "take id share %d", share) : 0;
}

int uid_range_claim(struct uid_ranges *r, const char *run_dir, struct err *e)
{
	auto_fd int dir = -1, lock = -1;
	int share;

	if (mkdir(SHARES_DIR, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make %s", SHARES_DIR);
	dir = open(SHARES_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Locked until this returns: two keepers must not find the same share free. */
	if (dir < 0 || flock(dir, LOCK_EX) < 0)
		return err_sys(e, "lock %s", SHARES_DIR);
	share = find_share(dir, run_dir, &lock, e);
	if (share < 0 || write_owner(dir, share, run_dir, e) < 0)
		return -1;
	r->lock = steal_fd(&lock);
	r->first = r->next = (uint32_t)share * RANGE_PER_SHARE;
	return 0;
}

static uint64_t *range_word(struct uid_ranges *r, uint32_t n, uint64_t *out_bit)
{
	*out_bit = UINT64_C(1) << (n % 64);
	return &r->taken[n / 64];
}

static uint32_t range_number(uint32_t uid_base)
{
	uint32_t n = (uid_base - RANGE_FIRST_UID) / RANGE_STRIDE;

	assert(uid_base >= RANGE_FIRST_UID && n < RANGE_COUNT);
	return n;
}

int uid_range_take(struct uid_ranges *r, uint32_t *out_uid_base, struct err *e)
{
	for (uint32_t i = 0; i < RANGE_PER_SHARE; i++) {
		uint32_t n = r->first + (r->next - r->first + i) % RANGE_PER_SHARE;
		uint64_t bit, *w = range_word(r, n, &bit);

		if (*w & bit)
			continue;
		*w |= bit;
		r->next = n + 1;
		*out_uid_base = RANGE_FIRST_UID + n * RANGE_STRIDE;
		return 0;
	}
	return err_set(e, ERR_LIMIT, "all %u id ranges are in use", RANGE_PER_SHARE);
}

void uid_range_mark(struct uid_ranges *r, uint32_t uid_base)
{
	uint64_t bit, *w = range_word(r, range_number(uid_base), &bit);

	*w |= bit;
}

void uid_range_free(struct uid_ranges *r, uint32_t uid_base)
{
	uint64_t bit, *w = range_word(r, range_number(uid_base), &bit);

	assert(*w & bit);
	*w &= ~bit;
}
