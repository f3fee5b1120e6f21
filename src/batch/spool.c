/* spool.c - see spool.h. */
#include "batch/spool.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { ROWS_AT_ONCE = 4096 };

int spool_folder(const char *state, struct err *e)
{
	auto_fd int dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (dir < 0)
		return err_sys(e, "open %.150s", state);
	if (mkdirat(dir, "batches", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make the folder of batches");
	fd = openat(dir, "batches", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "open the folder of batches") : fd;
}

static int open_one(int folder, const char *id, const char *ending, int how, struct err *e)
{
	char name[40];
	int fd;

	snprintf(name, sizeof(name), "%.20s.%s", id, ending);
	fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | how, 0600);
	return fd < 0 ? err_sys(e, "batch %s: open %s", id, name) : fd;
}

static int open_all(struct spool *s, int folder, const char *id, int how, struct err *e)
{
	*s = (struct spool){ .in = -1, .out = -1, .idx = -1 };
	if ((s->in = open_one(folder, id, "in", how, e)) < 0 ||
	    (s->out = open_one(folder, id, "out", how, e)) < 0 ||
	    (s->idx = open_one(folder, id, "idx", how, e)) < 0) {
		spool_fini(s);
		return -1;
	}
	return 0;
}

int spool_make(struct spool *s, int folder, const char *id, struct err *e)
{
	if (open_all(s, folder, id, O_CREAT | O_EXCL, e) == 0)
		return 0;
	if (e->sys != EEXIST) /* else they are another's */
		spool_remove(folder, id);
	return -1;
}

void spool_fini(struct spool *s)
{
	own_close_fd(&s->in);
	own_close_fd(&s->out);
	own_close_fd(&s->idx);
}

void spool_remove(int folder, const char *id)
{
	static const char *const endings[] = { "in", "out", "idx" };
	char name[40];

	for (unsigned i = 0; i < ARRAY_LEN(endings); i++) {
		snprintf(name, sizeof(name), "%.20s.%s", id, endings[i]);
		unlinkat(folder, name, 0);
	}
}

/* ---- after a crash ---- */

/* Keeps rows that are consistent with each other and with the results; the rest is cut off. */
static int spool_recover(struct spool *s, uint64_t out_size, uint64_t idx_size, struct err *e)
{
	auto_free struct spool_row *rows = calloc(ROWS_AT_ONCE, sizeof(*rows));
	uint32_t most = (uint32_t)(idx_size / sizeof(*rows));
	int n = 1;

	if (!rows)
		abort();
	for (s->results = 0; s->results < most && n > 0;) {
		int good = 0;

		n = spool_rows(s, s->results, rows, ROWS_AT_ONCE, e);
		while (good < n && rows[good].end > s->out_bytes && rows[good].end <= out_size)
			s->out_bytes = rows[good++].end;
		s->results += (uint32_t)good;
		if (good < n)
			break;
	}
	if (n < 0)
		return -1;
	if (ftruncate(s->idx, (off_t)(s->results * sizeof(*rows))) < 0 ||
	    ftruncate(s->out, (off_t)s->out_bytes) < 0)
		return err_sys(e, "truncate incomplete rows");
	return 0;
}

int spool_open(struct spool *s, int folder, const char *id, struct err *e)
{
	struct stat in, out, idx;

	if (open_all(s, folder, id, 0, e) < 0)
		return -1;
	if (fstat(s->in, &in) < 0 || fstat(s->out, &out) < 0 || fstat(s->idx, &idx) < 0) {
		err_sys(e, "batch %s", id);
		spool_fini(s);
		return -1;
	}
	s->in_bytes = (uint64_t)in.st_size;
	if (spool_recover(s, (uint64_t)out.st_size, (uint64_t)idx.st_size, e) < 0) {
		spool_fini(s);
		return err_in(e, "batch %s", id);
	}
	return 0;
}

/* ---- writing ---- */

static int write_at(int fd, uint64_t at, const void *bytes, size_t n, struct err *e)
{
	for (size_t done = 0; done < n;) {
		ssize_t w = pwrite(fd, (const char *)bytes + done, n - done, (off_t)(at + done));

		if (w < 0 && errno != EINTR)
			return err_sys(e, "write to a batch");
		done += w > 0 ? (size_t)w : 0;
	}
	return 0;
}

int spool_add(struct spool *s, const void *bytes, size_t n, struct err *e)
{
	if (write_at(s->in, s->in_bytes, bytes, n, e) < 0)
		return -1;
	s->in_bytes += n;
	return 0;
}

int spool_result(struct spool *s, const char *line, size_t n, struct spool_row row, struct err *e)
{
	row.end = s->out_bytes + n;
	if (write_at(s->out, s->out_bytes, line, n, e) < 0 ||
	    write_at(s->idx, s->results * sizeof(row), &row, sizeof(row), e) < 0)
		return -1;
	s->out_bytes = row.end;
	s->results++;
	return 0;
}

/* ---- reading ---- */

static int read_at(int fd, uint64_t at, void *to, size_t n, struct err *e)
{
	ssize_t got;

	do
		got = pread(fd, to, n, (off_t)at);
	while (got < 0 && errno == EINTR);
	return got < 0 ? err_sys(e, "read from a batch") : (int)got;
}

int spool_rows(const struct spool *s, uint32_t first, struct spool_row *out, unsigned max,
	       struct err *e)
{
	int n = read_at(s->idx, (uint64_t)first * sizeof(*out), out, max * sizeof(*out), e);

	return n < 0 ? -1 : n / (int)sizeof(*out);
}

int spool_offset(const struct spool *s, uint32_t seq, uint64_t *out, struct err *e)
{
	struct spool_row before;

	if (seq <= 1) {
		*out = 0;
		return 0;
	}
	if (seq > s->results) {
		*out = s->out_bytes;
		return 0;
	}
	if (spool_rows(s, seq - 2, &before, 1, e) != 1)
		return -1;
	*out = before.end;
	return 0;
}

int spool_read(const struct spool *s, uint64_t at, void *to, size_t n, struct err *e)
{
	if (at >= s->out_bytes)
		return 0;
	return read_at(s->out, at, to, n < s->out_bytes - at ? n : (size_t)(s->out_bytes - at), e);
}

int spool_read_in(const struct spool *s, uint64_t at, void *to, size_t n, struct err *e)
{
	if (at >= s->in_bytes)
		return 0;
	return read_at(s->in, at, to, n < s->in_bytes - at ? n : (size_t)(s->in_bytes - at), e);
}
