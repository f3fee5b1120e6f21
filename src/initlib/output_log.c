/* output_log.c - see output_log.h. */
#include "initlib/output_log.h"
#include "initlib/sys.h"

enum { NOEXEC_SEAL = 0x8 }; /* MFD_NOEXEC_SEAL, Linux 6.3; newer kernels log a warning without it */
enum { CLOEXEC = 0x1 };     /* MFD_CLOEXEC */
enum { PUNCH_LEAST = 1 << 12, PUNCH_MOST = 1 << 16 };

static uint64_t extra, largest; /* bytes above LOG_DEFAULT of all logs; the largest limit so far */

static uint64_t extra_of(const struct log *l)
{
	uint64_t kept = l->tip - l->from;

	return kept > LOG_DEFAULT ? kept - LOG_DEFAULT : 0;
}

int log_crowded(void)
{
	return extra > 2 * largest;
}

void log_init(struct log *l, uint64_t limit)
{
	if (!limit)
		limit = LOG_DEFAULT;
	if (limit < LOG_LEAST)
		limit = LOG_LEAST;
	if (limit > LOG_MOST)
		limit = LOG_MOST;
	if (limit > largest)
		largest = limit;
	*l = (struct log){ .fd = -1, .limit = limit };
}

void log_fini(struct log *l)
{
	extra -= extra_of(l);
	l->from = l->tip;
	sys_close(l->fd);
	l->fd = -1;
}

static int log_open(struct log *l)
{
	if (l->fd < 0)
		l->fd = (int)sys_memfd_create("log", CLOEXEC | NOEXEC_SEAL);
	if (l->fd == -EINVAL)
		l->fd = (int)sys_memfd_create("log", CLOEXEC);
	return l->fd;
}

static void log_set_from(struct log *l, uint64_t from)
{
	extra -= extra_of(l);
	l->from = from;
	extra += extra_of(l);
}

/* Moves the kept bytes to the beginning of the file. Parts overlap, so after an error none of them is
 * known to be right. */
static void log_compact(struct log *l)
{
	static LAZY char part[PUNCH_MOST];
	uint64_t kept = l->tip - l->from, done = 0;

	while (done < kept) {
		uint64_t left = kept - done;
		long n = sys_pread(l->fd, part, left < sizeof(part) ? left : sizeof(part),
				   l->from - l->base + done);

		if (n <= 0 || sys_pwrite(l->fd, part, (size_t)n, done) != n)
			break;
		done += (uint64_t)n;
	}
	if (done < kept)
		log_set_from(l, l->tip);
	l->base = l->from;
	sys_ftruncate(l->fd, l->tip - l->base);
}

static void drop_below(struct log *l, uint64_t from)
{
	long err = l->fd < 0 ? 0
			     : sys_fallocate(l->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					     l->from - l->base, from - l->from);

	log_set_from(l, from);
	if (err < 0 && l->from - l->base >= (l->tip - l->from) / 2)
		log_compact(l);
}

void log_append(struct log *l, const void *bytes, size_t n)
{
	size_t done = 0;

	while (log_open(l) >= 0 && done < n) {
		long w = sys_pwrite(l->fd, (const char *)bytes + done, n - done,
				    l->tip - l->base + done);

		if (w <= 0)
			break;
		done += (size_t)w;
	}
	extra -= extra_of(l);
	l->tip += n;
	extra += extra_of(l);
	if (done < n)
		drop_below(l, l->tip);
}

void log_trim(struct log *l, uint64_t needed)
{
	uint64_t floor = l->tip > l->limit ? l->tip - l->limit : 0;
	uint64_t step = l->limit / 8;

	if (floor > needed)
		floor = needed;
	/* In steps of whole pages, so that a long stream costs one call for many reads. */
	step = step < PUNCH_LEAST ? PUNCH_LEAST : step > PUNCH_MOST ? PUNCH_MOST : step;
	floor &= ~(uint64_t)(PUNCH_LEAST - 1);
	if (floor >= l->from + step)
		drop_below(l, floor);
}

void log_cut(struct log *l, uint64_t needed)
{
	uint64_t floor = l->tip > LOG_DEFAULT ? l->tip - LOG_DEFAULT : 0;

	floor = (floor < needed ? floor : needed) & ~(uint64_t)(PUNCH_LEAST - 1);
	if (floor > l->from)
		drop_below(l, floor);
}

uint64_t log_room_for(const struct log *l)
{
	return log_crowded() && l->limit > LOG_DEFAULT ? LOG_DEFAULT : l->limit;
}

long log_read(const struct log *l, uint64_t at, void *to, size_t n)
{
	return sys_pread(l->fd, to, n, at - l->base);
}
