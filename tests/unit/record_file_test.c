/* record_file_test.c - records of boxes: the next keeper reads them unchanged, or rejects them. */
#include "base/cleanup.h"
#include "keeper/uid_range.h"
#include "keeper/record_file.h"
#include "tap.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT 7

static int run = -1;

/* An empty run folder for every test. */
static int fresh_run(void)
{
	char path[] = "/tmp/records.XXXXXX";

	if (!mkdtemp(path))
		return -1;
	run = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return mkdirat(run, "boxes", 0700);
}

static void end_run(struct record_file *r)
{
	char path[64], at[40];
	ssize_t n;

	own_close_fd(&r->fd);
	unlinkat(run, "records", 0);
	unlinkat(run, "boxes", AT_REMOVEDIR);
	snprintf(at, sizeof(at), "/proc/self/fd/%d", run);
	n = readlink(at, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	rmdir(path);
	own_close_fd(&run);
}

static struct box_record box(const char *id)
{
	struct box_record m = { .magic = BOX_RECORD_MAGIC, .boot = BOOT, .start_time = 5 };

	snprintf(m.about.id, sizeof(m.about.id), "%s", id);
	m.about.uid_base = RANGE_FIRST_UID + RANGE_STRIDE;
	m.about.state = WIRE_BOX_TAKEN;
	m.about.init_pid = 77;
	return m;
}

static struct found {
	/* clang-format off */
	unsigned n, torn;
	uint32_t place;
	struct box_record last;
} found;

static void note(uint32_t place, const struct box_record *m, void *arg)
{
	(void)arg;
	found.place = place;
	if (!m) {
		found.torn++;
		return;
	}
	found.n++;
	found.last = *m;
}

/* As the next keeper does. */
static int again(struct record_file *r, uint64_t boot, struct err *e)
{
	own_close_fd(&r->fd);
	found = (struct found){ 0 };
	if (record_file_open(r, run, boot, e) < 0)
		return -1;
	return record_file_each(r, note, NULL, e) < 0 ? -1 : record_file_begin(r, e);
}

static int begin(struct record_file *r)
{
	struct err e;

	r->fd = -1;
	return fresh_run() < 0 ? -1 : again(r, BOOT, &e);
}

static off_t at_place(uint32_t place)
{
	return (off_t)RECORD_FILE_PLACE * (place + 1);
}

TEST(a_record_is_read_as_it_was_written)
{
	static struct record_file r;
	struct box_record m = box("abcdefghijkl");
	uint32_t place;
	struct err e;

	CHECK(begin(&r) == 0);
	CHECK(record_file_take(&r, &place, &e) == 0);
	CHECK(record_file_write(r.fd, place, &m, &e) == 0);
	CHECK(again(&r, BOOT, &e) == 0);
	CHECK_INT(found.n, 1);
	CHECK_INT(found.place, place);
	CHECK(memcmp(&found.last, &m, sizeof(m)) == 0);
	end_run(&r);
}

TEST(a_deadline_belongs_to_its_box_and_is_kept_by_the_next_keeper)
{
	static struct record_file r;
	struct wire_then d = { .at_ns = 12, .keep_ms = UINT64_MAX, .then = WIRE_THEN_STOP }, got;
	struct box_record m = box("abcdefghijkl");
	uint32_t place;
	struct err e;

	CHECK(begin(&r) == 0);
	CHECK(record_file_take(&r, &place, &e) == 0);
	CHECK(record_file_write(r.fd, place, &m, &e) == 0);
	record_file_read_deadline(r.fd, place, "abcdefghijkl", &got);
	CHECK_INT(got.at_ns, 0); /* none was written */
	CHECK(record_file_write_deadline(r.fd, place, "abcdefghijkl", &d, &e) == 0);
	CHECK(record_file_write(r.fd, place, &m, &e) == 0); /* leaves it alone */
	CHECK(again(&r, BOOT, &e) == 0);
	CHECK_INT(found.n, 1);
	record_file_read_deadline(r.fd, place, "abcdefghijkl", &got);
	CHECK(memcmp(&got, &d, sizeof(d)) == 0);
	record_file_read_deadline(r.fd, place, "abcdefghijkm", &got);
	CHECK_INT(got.at_ns, 0);
	CHECK(pwrite(r.fd, "x", 1, at_place(place + 1) - 10) == 1);
	record_file_read_deadline(r.fd, place, "abcdefghijkl", &got);
	CHECK_INT(got.at_ns, 0); /* not whole */
	end_run(&r);
}

TEST(a_reused_slot_has_no_volumes_or_layers_of_the_previous_box)
{
	static struct record_file r;
	struct box_record with = box("abcdefghijkl"), without = box("bbcdefghijkl");
	uint32_t place;
	struct err e;

	with.nmounts = 1;
	snprintf(with.mounts[0].path, sizeof(with.mounts[0].path), "/data");
	with.nlayers = 2;
	memset(with.layer[1], 'f', 64);
	CHECK(begin(&r) == 0);
	CHECK(record_file_take(&r, &place, &e) == 0);
	CHECK(record_file_write(r.fd, place, &with, &e) == 0);
	CHECK(again(&r, BOOT, &e) == 0);
	CHECK(memcmp(&found.last, &with, sizeof(with)) == 0);
	CHECK(record_file_write(r.fd, place, &without, &e) == 0);
	CHECK(again(&r, BOOT, &e) == 0);
	CHECK(memcmp(&found.last, &without, sizeof(without)) == 0);
	with.nlayers = 0;
	memset(with.layer, 0, sizeof(with.layer));
	CHECK(record_file_write(r.fd, place, &with, &e) == 0);
	CHECK(again(&r, BOOT, &e) == 0);
	CHECK(memcmp(&found.last, &with, sizeof(with)) == 0);
	end_run(&r);
}

TEST(a_dropped_slot_is_free_now_and_for_the_next_keeper)
{
	static struct record_file r;
	struct box_record m = box("abcdefghijkl");
	uint32_t first, second, third;
	struct err e;

	CHECK(begin(&r) == 0);
	CHECK(record_file_take(&r, &first, &e) == 0 && record_file_take(&r, &second, &e) == 0);
	CHECK(first != second);
	CHECK(record_file_write(r.fd, first, &m, &e) == 0 && record_file_write(r.fd, second, &m, &e) == 0);
	record_file_drop(&r, first);
	CHECK(record_file_take(&r, &third, &e) == 0);
	CHECK_INT(third, first);
	record_file_drop(&r, third);
	CHECK(again(&r, BOOT, &e) == 0);
	CHECK_INT(found.n, 1);
	CHECK_INT(found.place, second);
	CHECK(record_file_take(&r, &third, &e) == 0);
	CHECK_INT(third, first);
	end_run(&r);
}

TEST(a_torn_record_is_reported_and_its_slot_not_reused)
{
	static struct record_file r;
	struct box_record m = box("abcdefghijkl");
	struct err e;

	CHECK(begin(&r) == 0);
	/* Every byte changed, one at a time, and the record cut at every position. */
	for (off_t i = 0; i < (off_t)(16 + offsetof(struct box_record, mounts)); i++) {
		/* After the pid are zeroes: without them the record is the same. */
		int cuts = i >= 8 && i <= (off_t)(16 + offsetof(struct box_record, about.init_pid));
		unsigned char was, is;
		uint32_t place;

		CHECK(record_file_write(r.fd, 0, &m, &e) == 0);
		CHECK(pread(r.fd, &was, 1, at_place(0) + i) == 1);
		is = was ^ 0x55;
		CHECK(pwrite(r.fd, &is, 1, at_place(0) + i) == 1);
		CHECK(again(&r, BOOT, &e) == 0);
		CHECK_INT(found.n, 0);
		CHECK_INT(found.torn, 1);
		CHECK(record_file_take(&r, &place, &e) == 0);
		CHECK_INT(place, 1);
		CHECK(record_file_write(r.fd, 0, &m, &e) == 0);
		CHECK(ftruncate(r.fd, at_place(cuts ? 0 : 1) + (cuts ? i : 0)) == 0);
		CHECK(again(&r, BOOT, &e) == 0);
		CHECK_INT(found.torn, cuts);
	}
	end_run(&r);
}

TEST(a_torn_record_of_an_earlier_boot_is_dropped)
{
	static struct record_file r;
	struct box_record m = box("abcdefghijkl");
	uint32_t place;
	struct err e;

	CHECK(begin(&r) == 0);
	CHECK(record_file_write(r.fd, 0, &m, &e) == 0 && record_file_write(r.fd, 1, &m, &e) == 0);
	CHECK(pwrite(r.fd, "x", 1, at_place(0) + 100) == 1);
	CHECK(again(&r, BOOT + 1, &e) == 0);
	CHECK_INT(found.n, 1); /* whose socket is still to be removed */
	CHECK_INT(found.torn, 0);
	CHECK(record_file_take(&r, &place, &e) == 0);
	CHECK_INT(place, 0);
	CHECK(again(&r, BOOT + 1, &e) == 0);
	CHECK_INT(found.n, 1);
	end_run(&r);
}

TEST(a_complete_record_with_impossible_values_is_rejected)
{
	static struct record_file r;
	struct box_record m[8];
	struct err e;

	for (unsigned i = 0; i < ARRAY_LEN(m); i++)
		m[i] = box("abcdefghijkl");
	m[0].magic++;
	snprintf(m[1].about.id, sizeof(m[1].about.id), "../../../../x");
	memset(m[2].about.id, 'a', sizeof(m[2].about.id)); /* without an end */
	snprintf(m[3].cgroup, sizeof(m[3].cgroup), "../..");
	memset(m[4].cgroup, 'a', sizeof(m[4].cgroup));
	m[5].about.uid_base = 1000;
	m[6].about.uid_base = RANGE_FIRST_UID + RANGE_COUNT * RANGE_STRIDE;
	m[7].nmounts = WIRE_MOUNTS + 1;
	CHECK(begin(&r) == 0);
	for (uint32_t i = 0; i < ARRAY_LEN(m); i++)
		CHECK(record_file_write(r.fd, i, &m[i], &e) == 0);
	CHECK(again(&r, BOOT, &e) == 0);
	CHECK_INT(found.n, 0);
	CHECK_INT(found.torn, ARRAY_LEN(m));
	end_run(&r);
}

TEST(a_record_file_of_random_bytes_is_read_safely)
{
	static struct record_file r;
	static unsigned char noise[64 * RECORD_FILE_PLACE];
	unsigned seed = 1;
	struct err e;

	CHECK(begin(&r) == 0);
	for (int round = 0; round < 20; round++) {
		size_t bytes = sizeof(noise) - (size_t)round * 777;

		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 16);
		CHECK(ftruncate(r.fd, 0) == 0);
		CHECK(pwrite(r.fd, noise, bytes, 0) == (ssize_t)bytes);
		CHECK(again(&r, BOOT, &e) == 0);
		CHECK_INT(found.n, 0);
		CHECK(found.torn > 50);
	}
	end_run(&r);
}

TEST(records_are_read_without_the_head_of_the_file)
{
	static struct record_file r;
	struct box_record m = box("abcdefghijkl");
	char zero[64] = { 0 };
	struct err e;

	CHECK(begin(&r) == 0);
	CHECK(record_file_write(r.fd, 3, &m, &e) == 0);
	CHECK(pwrite(r.fd, zero, sizeof(zero), 0) == (ssize_t)sizeof(zero));
	CHECK(again(&r, BOOT, &e) == 0);
	CHECK_INT(found.n, 1);
	CHECK_INT(found.place, 3);
	end_run(&r);
}

/* The head as it is in the file; a change of it needs a change here, and a new version. */
struct head {
	uint64_t sum, magic, boot;
	uint32_t version, place;
	/* clang-format on */
};

static uint64_t sum_of(const struct head *h)
{
	const uint64_t *w = &h->magic;
	uint64_t hash = 0xcbf29ce484222325u;

	for (int i = 0; i < 3; i++) {
		hash = (hash ^ w[i]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return hash;
}

TEST(a_file_of_another_version_is_rejected_while_its_boxes_may_run)
{
	static struct record_file r;
	struct box_record m = box("abcdefghijkl");
	struct head h;
	struct err e;

	CHECK(begin(&r) == 0);
	CHECK(record_file_write(r.fd, 0, &m, &e) == 0);
	CHECK(pread(r.fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h));
	CHECK(h.sum == sum_of(&h));
	CHECK_INT(h.version, RECORD_FILE_VERSION);
	h.version++;
	h.sum = sum_of(&h);
	CHECK(pwrite(r.fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h));
	CHECK(again(&r, BOOT, &e) < 0);
	CHECK_INT(e.kind, ERR_CONFLICT);
	CHECK(strstr(e.msg, "version 2"));
	/* After a reboot of the host no box runs. */
	CHECK(again(&r, BOOT + 1, &e) == 0);
	CHECK_INT(found.n + found.torn, 0);
	end_run(&r);
}

TEST(a_file_of_another_version_without_boxes_is_replaced)
{
	static struct record_file r;
	struct box_record m = box("abcdefghijkl");
	struct head h;
	struct err e;

	CHECK(begin(&r) == 0);
	CHECK(record_file_write(r.fd, 2, &m, &e) == 0);
	record_file_drop(&r, 2);
	CHECK(pread(r.fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h));
	h.version++;
	h.sum = sum_of(&h);
	CHECK(pwrite(r.fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h));
	CHECK(again(&r, BOOT, &e) == 0);
	CHECK(pread(r.fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h));
	CHECK_INT(h.version, RECORD_FILE_VERSION);
	end_run(&r);
}

TEST(slots_are_bounded_and_reused)
{
	static struct record_file r;
	uint32_t place;
	struct err e;

	CHECK(begin(&r) == 0);
	for (uint32_t i = 0; i < RECORD_FILE_MOST; i++) {
		CHECK(record_file_take(&r, &place, &e) == 0);
		CHECK_INT(place, i);
	}
	CHECK(record_file_take(&r, &place, &e) < 0);
	CHECK_INT(e.kind, ERR_LIMIT);
	record_file_drop(&r, 4711);
	CHECK(record_file_take(&r, &place, &e) == 0);
	CHECK_INT(place, 4711);
	CHECK(record_file_take(&r, &place, &e) < 0);
	end_run(&r);
}

TEST(the_file_ends_after_its_last_record)
{
	static struct record_file r;
	struct box_record m = box("abcdefghijkl");
	struct stat st;
	struct err e;

	CHECK(begin(&r) == 0);
	for (uint32_t i = 0; i < 100; i++)
		CHECK(record_file_write(r.fd, i, &m, &e) == 0);
	for (uint32_t i = 5; i < 100; i++)
		record_file_drop(&r, i);
	CHECK(again(&r, BOOT, &e) == 0);
	CHECK(fstat(r.fd, &st) == 0);
	CHECK_INT(st.st_size, at_place(5));
	CHECK_INT(st.st_mode & 0777, 0600);
	end_run(&r);
}

TEST(the_file_is_removed_with_the_last_box)
{
	static struct record_file r;
	uint32_t place;
	struct err e;

	CHECK(begin(&r) == 0);
	CHECK(record_file_take(&r, &place, &e) == 0);
	record_file_end(&r, run);
	CHECK(faccessat(run, "records", F_OK, 0) == 0);
	record_file_drop(&r, place);
	record_file_end(&r, run);
	CHECK(faccessat(run, "records", F_OK, 0) < 0);
	end_run(&r);
}

TEST(a_link_or_a_folder_instead_of_the_file_is_rejected)
{
	static struct record_file r;
	struct err e;

	CHECK(begin(&r) == 0);
	CHECK(unlinkat(run, "records", 0) == 0 && symlinkat("/dev/null", run, "records") == 0);
	CHECK(again(&r, BOOT, &e) < 0);
	CHECK(unlinkat(run, "records", 0) == 0 && mkfifoat(run, "records", 0600) == 0);
	CHECK(again(&r, BOOT, &e) < 0);
	end_run(&r);
}

static int write_old(const char *id, const void *bytes, size_t n)
{
	char path[48];
	auto_fd int fd = -1;

	snprintf(path, sizeof(path), "boxes/%s.box", id);
	fd = openat(run, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd >= 0 && write(fd, bytes, n) == (ssize_t)n ? 0 : -1;
}

static int count_old(const char *id, void *arg)
{
	(void)id;
	(*(int *)arg)++;
	return 0;
}

TEST(record_files_of_older_keepers_are_read_if_complete)
{
	static struct record_file r;
	const size_t old = offsetof(struct box_record, root);
	struct box_record m = box("abcdefghijkl"), got;
	struct err e;
	int n = 0;

	CHECK(begin(&r) == 0);
	CHECK(write_old("abcdefghijkl", &m, old) == 0);
	CHECK(write_old("bbcdefghijkl", &m, old) == 0); /* another's */
	CHECK(write_old("cbcdefghijkl", &m, old - 1) == 0);
	CHECK(write_old("dbcdefghijkl", "", 0) == 0);
	CHECK(box_record_old_each(run, count_old, &n, &e) == 0);
	CHECK_INT(n, 4);
	CHECK(box_record_old_read(run, "abcdefghijkl", &got, &e) == 0);
	CHECK(memcmp(&got, &m, sizeof(m)) == 0);
	CHECK(box_record_old_read(run, "bbcdefghijkl", &got, &e) < 0);
	CHECK_INT(e.kind, ERR_INVALID);
	CHECK(box_record_old_read(run, "cbcdefghijkl", &got, &e) < 0);
	CHECK_INT(e.kind, ERR_INVALID);
	CHECK(box_record_old_read(run, "dbcdefghijkl", &got, &e) < 0);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	box_record_old_remove(run, "abcdefghijkl");
	box_record_old_remove(run, "bbcdefghijkl");
	box_record_old_remove(run, "cbcdefghijkl");
	box_record_old_remove(run, "dbcdefghijkl");
	n = 0;
	CHECK(box_record_old_each(run, count_old, &n, &e) == 0);
	CHECK_INT(n, 0);
	end_run(&r);
}

TEST(full_host_file_system_is_not_reported_as_the_disk_of_a_box)
{
	struct box_record m = box("abcdefghijkl");
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct err e;

	CHECK(full >= 0);
	CHECK(record_file_write(full, 0, &m, &e) < 0);
	CHECK_INT(e.sys, 0); /* ENOSPC would make the command line recommend --disk */
	CHECK(strstr(e.msg, "host's file system") != NULL);
	close(full);
}
