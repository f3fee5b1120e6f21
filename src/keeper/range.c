/* range.c - see range.h.
 *
 * A share is a link in SHARES_DIR: its name is the share's number, its target the run folder that has
 * it. It outlives the keeper as its boxes do. */
#include "keeper/range.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define SHARES_DIR "/run/atoll.ids"

/* Whose it is; "" for nobody's. */
static const char *owner_of(int dir, unsigned share, char out[PATH_MAX])
{
	char name[16];
	ssize_t n;

	snprintf(name, sizeof(name), "%u", share);
	n = readlinkat(dir, name, out, PATH_MAX - 1);
	out[n > 0 ? n : 0] = 0;
	return out;
}

static int is_free(const char *owner)
{
	return !owner[0] || (access(owner, F_OK) < 0 && errno == ENOENT);
}

static int find_share(int dir, const char *run_dir)
{
	char owner[PATH_MAX];

	for (unsigned i = 0; i < RANGE_SHARES; i++)
		if (strcmp(owner_of(dir, i, owner), run_dir) == 0)
			return (int)i;
	for (unsigned i = 0; i < RANGE_SHARES; i++)
		if (is_free(owner_of(dir, i, owner)))
			return (int)i;
	return -1;
}

static int write_owner(int dir, int share, const char *run_dir, struct err *e)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", share);
	unlinkat(dir, name, 0);
	return symlinkat(run_dir, dir, name) < 0 ? err_sys(e, "take id share %d", share) : 0;
}

int range_claim(struct ranges *r, const char *run_dir, struct err *e)
{
	auto_fd int dir = -1;
	int share;

	if (mkdir(SHARES_DIR, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make %s", SHARES_DIR);
	dir = open(SHARES_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Held until we return: two keepers must not find the same share free. */
	if (dir < 0 || flock(dir, LOCK_EX) < 0)
		return err_sys(e, "lock %s", SHARES_DIR);
	share = find_share(dir, run_dir);
	if (share < 0)
		return err_set(e, ERR_LIMIT, "%u keepers of this host have all ids: ls -l %s",
			       RANGE_SHARES, SHARES_DIR);
	if (write_owner(dir, share, run_dir, e) < 0)
		return -1;
	r->first = r->next = (uint32_t)share * RANGE_PER_SHARE;
	return 0;
}

static uint64_t *word(struct ranges *r, uint32_t n, uint64_t *out_bit)
{
	*out_bit = UINT64_C(1) << (n % 64);
	return &r->taken[n / 64];
}

static uint32_t number(uint32_t uid_base)
{
	uint32_t n = (uid_base - RANGE_FIRST_UID) / RANGE_STRIDE;

	assert(uid_base >= RANGE_FIRST_UID && n < RANGE_COUNT);
	return n;
}

int range_take(struct ranges *r, uint32_t *out_uid_base, struct err *e)
{
	for (uint32_t i = 0; i < RANGE_PER_SHARE; i++) {
		uint32_t n = r->first + (r->next - r->first + i) % RANGE_PER_SHARE;
		uint64_t bit, *w = word(r, n, &bit);

		if (*w & bit)
			continue;
		*w |= bit;
		r->next = n + 1;
		*out_uid_base = RANGE_FIRST_UID + n * RANGE_STRIDE;
		return 0;
	}
	return err_set(e, ERR_LIMIT, "all %u id ranges are in use", RANGE_PER_SHARE);
}

void range_mark(struct ranges *r, uint32_t uid_base)
{
	uint64_t bit, *w = word(r, number(uid_base), &bit);

	*w |= bit;
}

void range_free(struct ranges *r, uint32_t uid_base)
{
	uint64_t bit, *w = word(r, number(uid_base), &bit);

	assert(*w & bit);
	*w &= ~bit;
}
