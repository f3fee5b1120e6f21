/* heap_image_test.c - memory that was moved into a sealed file behaves like other memory and is not
 * shared by forks; and objects that are created after a compaction are adjacent. */
#include "base/cleanup.h"
#include "zygote/heap_image.h"
#include "zygote/heap_compact.h"
#include "tap.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A sanitizer keeps data about memory in places unknown to this test. */
#if defined(__SANITIZE_ADDRESS__)
#define PLAIN 0
#elif defined(__has_feature)
#define PLAIN !__has_feature(address_sanitizer)
#else
#define PLAIN 1
#endif

enum { PAGE = 4096, ARENA = 1 << 20 };
enum { NOT_PERMITTED = 77 };

/* The exit status of a fork that runs it. */
static int apart(int (*run)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(run());
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : -1;
}

#define HOLDS(run)                                                                                 \
	do {                                                                                       \
		int rc_ = PLAIN ? apart(run) : NOT_PERMITTED;                                      \
		if (rc_ == NOT_PERMITTED)                                                          \
			SKIP("needs root, and no sanitizer");                                      \
		CHECK_INT(rc_, 0);                                                                 \
	} while (0)

static int in_file(const char *want)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int found = 0;

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, "/memfd:zygote") && strstr(line, want);
	if (f)
		fclose(f);
	return found;
}

static char *mine, *in_heap; /* of heap_image_room(), of malloc() */
static char data[2 * PAGE] = "data";

static int baked(void)
{
	struct err e;

	mine = heap_image_room(3 * ARENA);
	in_heap = malloc(64);
	if (!mine || !in_heap)
		return 1;
	strcpy(mine + ARENA, "room");
	strcpy(in_heap, "heap");
	if (heap_image_take(&e) < 0)
		return e.sys == EPERM ? NOT_PERMITTED : 1;
	return 0;
}

static int everything_is_there(void)
{
	int rc = baked();

	if (rc)
		return rc;
	return strcmp(mine + ARENA, "room") != 0 || strcmp(in_heap, "heap") != 0 ||
	       strcmp(data, "data") != 0;
}

TEST(the_heap_keeps_its_content_after_it_is_moved_into_the_image)
{
	HOLDS(everything_is_there);
}

static int lies_in_the_file(void)
{
	int rc = baked();

	return rc ? rc : !in_file("rw-p") || !in_file("r-xp");
}

TEST(data_and_code_are_mapped_from_the_sealed_file)
{
	HOLDS(lies_in_the_file);
}

static int leaves_spare_out(void)
{
	struct err e;
	char *all = heap_image_room(3 * ARENA), first[32];

	if (!all)
		return 1;
	memset(all, 'x', 3 * ARENA);
	/* Parts of a page are not moved. */
	heap_image_spare(all + ARENA + 1, all + 2 * ARENA + 1);
	if (heap_image_take(&e) < 0)
		return e.sys == EPERM ? NOT_PERMITTED : 2;
	snprintf(first, sizeof(first), "%lx-%lx ", (unsigned long)all,
		 (unsigned long)all + ARENA + PAGE);
	if (!in_file(first))
		return 3;
	for (size_t i = 0; i < 3 * ARENA; i++)
		if (all[i] != (i >= ARENA + PAGE && i < 2 * ARENA ? 0 : 'x'))
			return 4;
	return 0;
}

TEST(free_memory_is_not_in_the_image_and_reads_as_zero)
{
	HOLDS(leaves_spare_out);
}

static int write_everywhere(void)
{
	strcpy(mine + ARENA, "mine");
	strcpy(in_heap, "mine");
	strcpy(data, "mine");
	return 0;
}

static int sees_no_other(void)
{
	int rc = everything_is_there();

	if (rc)
		return rc;
	if (apart(write_everywhere) != 0)
		return 1;
	return strcmp(mine + ARENA, "room") != 0 || strcmp(in_heap, "heap") != 0 ||
	       strcmp(data, "data") != 0;
}

TEST(writes_of_one_fork_are_not_visible_in_another)
{
	HOLDS(sees_no_other);
}

static void touch(unsigned which)
{
	mine[ARENA] = 'R';
	if (which % 2)
		mine[2 * ARENA] = 1;
	if (which == 1)
		mine[ARENA / 4] = 1;
}

static int is_own(const void *at)
{
	FILE *f = fopen("/proc/self/pagemap", "re");
	uint64_t entry = 0;

	if (!f)
		return -1;
	if (fseek(f, (long)((uintptr_t)at / PAGE * 8), SEEK_SET) < 0 || fread(&entry, 8, 1, f) != 1)
		entry = 0;
	fclose(f);
	return entry >> 63 && !(entry >> 61 & 1);
}

static int has_its_copies(void)
{
	heap_image_warm();
	return is_own(mine + ARENA) != 1 || is_own(mine + 2 * ARENA) != 1 ||
	       is_own(mine + ARENA / 4) != 0 || is_own(mine + ARENA / 2) != 0;
}

static int learns(void)
{
	struct err e;
	int rc = baked();

	if (rc)
		return rc;
	return heap_image_learn(touch, &e) < 0 || apart(has_its_copies) != 0;
}

TEST(a_child_copies_only_pages_that_half_of_the_trials_wrote)
{
	HOLDS(learns);
}

/* ---- holes ---- */

static struct {
	char arenas[2][ARENA];
	size_t used;      /* of both */
	void *gaps[8192]; /* freed objects of other sizes count, too: there is one size here */
	unsigned ngaps;
	struct heap_compact_arena newest;
} pool;

static void *take(size_t size)
{
	if (pool.ngaps)
		return pool.gaps[--pool.ngaps];
	if (pool.used % ARENA + size > ARENA)
		pool.used = ARENA;
	if (pool.used == ARENA)
		pool.newest.at = pool.arenas[1];
	pool.used += size;
	return pool.used > sizeof(pool.arenas) ? NULL : &pool.arenas[0][0] + pool.used - size;
}

static void give(void *at)
{
	if (pool.ngaps < ARRAY_LEN(pool.gaps))
		pool.gaps[pool.ngaps++] = at;
}

static int together(void)
{
	const struct heap_compact_small small = { take, give };
	static void *made[2000];
	uintptr_t last;

	pool.newest = (struct heap_compact_arena){ pool.arenas[0], ARENA };
	for (unsigned i = 0; i < ARRAY_LEN(made); i++)
		made[i] = malloc(40 + i % 50 * 100);
	for (unsigned i = 0; i < ARRAY_LEN(made); i += 2)
		free(made[i]);
	heap_compact_close(&small, &pool.newest);
	if ((char *)take(64) < pool.arenas[1])
		return 1;
	/* No gap is left among them: new objects are after the last one. */
	last = (uintptr_t)made[ARRAY_LEN(made) - 1];
	for (unsigned i = 0; i < 50; i++)
		if ((uintptr_t)malloc(40 + i * 100) < last)
			return 2;
	return 0;
}

static int in_the_rest(void)
{
	const struct heap_compact_small small = { take, give };
	struct heap_compact_rest rest[HOLES_RESTS];
	int rc = together();
	char *at, *of_heap;

	if (rc)
		return rc;
	give(take(512)); /* after the mark, and written to */
	heap_compact_leave(&small, &pool.newest, rest);
	at = take(512);
	of_heap = malloc(16 * 1024);
	return !at || rest[0].from > rest[0].to || rest[0].to != pool.arenas[1] + ARENA      ? 3
	       : rest[0].from < pool.arenas[1]                                               ? 4
	       : !of_heap || of_heap + 64 < rest[1].from || of_heap + 16 * 1024 > rest[1].to ? 5
											     : 0;
}

TEST(allocations_use_the_rest_of_the_heap_when_the_free_list_is_empty)
{
	if (!PLAIN)
		SKIP("a sanitizer has a heap of its own");
	CHECK_INT(apart(in_the_rest), 0);
}

TEST(allocations_after_compaction_are_placed_after_the_old_heap)
{
	if (!PLAIN)
		SKIP("a sanitizer has a heap of its own");
	CHECK_INT(apart(together), 0);
}
