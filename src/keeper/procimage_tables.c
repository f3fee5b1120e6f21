/* procimage_tables.c - the tables of an image, which come from a capture or from a file and are hostile: private copies, checked,
 * with the limits of boxes. */
#include "jail/rlimits.h"
#include "keeper/procimage_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define IMAGE_FILE_MOST (UINT64_C(256) << 20)

/* Of this process; see struct procimage_order. */
static uint32_t worker_without, worker_spoiled;

void worker_set_test(uint32_t without, uint32_t spoil)
{
	worker_without = without;
	worker_spoiled = spoil;
}

static void worker_limits(struct image *im)
{
	for (unsigned i = 0; i < limits_nrows; i++) {
		uint64_t *l = image_program(im)->limits[limits_rows[i].resource];

		if (limits_rows[i].resource >= IMAGE_LIMITS)
			continue;
		/* Without this step it keeps those of the zygote, because it cannot set more. */
		if (worker_without >> COPY_STEP_limits & 1)
			l[0] = l[1] = UINT64_MAX;
		else if (l[1] > limits_rows[i].hard)
			l[1] = limits_rows[i].hard;
		if (l[0] > l[1])
			l[0] = l[1];
	}
}

int worker_decode_image(struct image *im, char *take_bytes, uint64_t bytes, struct err *e)
{
	if (procimage_decode(im, take_bytes, bytes, e) < 0)
		return -1;
	worker_limits(im);
	return 0;
}

#ifdef ATOLL_TEST
static uint32_t worker_random(void)
{
	worker_spoiled ^= worker_spoiled << 13;
	worker_spoiled ^= worker_spoiled >> 17;
	worker_spoiled ^= worker_spoiled << 5;
	return worker_spoiled;
}
#endif

/* As a hostile capture would have sent it: tests/escape/copies.sh. */
static void worker_spoil(char *bytes, uint64_t len)
{
#ifdef ATOLL_TEST
	for (unsigned n = worker_spoiled && len >= 8 ? 1 + worker_random() % 3 : 0; n; n--) {
		const uint32_t with[] = { 0, ~0U, 1U << worker_random() % 32, worker_random(),
					  4096 };
		uint32_t *at = (uint32_t *)(void *)(bytes + worker_random() % (len / 4) * 4);
		unsigned how = worker_random() % 6;

		*at = how < 5 ? with[how] : *at ^ with[2];
	}
#endif
	(void)bytes;
	(void)len;
}

/* A private copy: the capture could change the file after the check. */
int worker_read_image(struct image *im, char **out, uint64_t *out_len, int file, uint64_t bytes,
		      struct err *e)
{
	uint64_t have = 0;
	ssize_t n = 1;

	if (!bytes || bytes > IMAGE_FILE_MOST)
		return err_set(e, ERR_LIMIT, "an image of %llu bytes", (unsigned long long)bytes);
	*out_len = bytes;
	*out = malloc(bytes);
	if (!*out)
		abort();
	while (have < bytes && (n = pread(file, *out + have, bytes - have, (off_t)have)) > 0)
		have += (uint64_t)n;
	if (have < bytes)
		return err_set(e, ERR_SYS, "the image is shorter than its capture said");
	worker_spoil(*out, bytes);
	return worker_decode_image(im, *out, bytes, e);
}
