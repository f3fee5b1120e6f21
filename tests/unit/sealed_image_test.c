/* sealed_image_test.c - process images in files: what was written is read, and everything else is rejected. */
#include "procimage/sealed_image.h"
#include "base/cleanup.h"
#include "procimage_sample.h"
#include "tap.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t key[SEALED_KEY] = "a key of 32 bytes, for this test";
static const struct sealed_image_about about = { .checkpoint = "aaaabbbbcccc", .team = "blue" };
enum { BIG = (SEALED_FRAME * 5) / 2 };

static uint8_t *big_content(void)
{
	uint8_t *p = malloc(BIG);

	for (unsigned i = 0; i < BIG; i++)
		p[i] = (uint8_t)(i * 2654435761U >> 13);
	return p;
}

static int add_section(struct sealed_image *f, uint32_t kind, const void *bytes, size_t n,
		       struct err *e)
{
	return sealed_image_begin(f, &(struct sealed_image_section){ kind, 7, n }, e) < 0
		       ? -1
		       : sealed_image_add(f, bytes, n, e);
}

/* A file with an image, `big` bytes of pages, and an empty section. */
static int make_file(size_t big, struct err *e)
{
	int fd = memfd_create("image", MFD_CLOEXEC), rc;
	uint8_t *pages = big_content();
	struct sealed_image f = { 0 };
	struct image im;
	char *tables;
	size_t len = 0;

	sample_make(&im);
	tables = sample_encode(&im, &len, e);
	rc = sealed_image_create(&f, fd, &about, key, e) < 0 ||
	     add_section(&f, 1, tables, len, e) < 0 || add_section(&f, 2, pages, big, e) < 0 ||
	     add_section(&f, 3, NULL, 0, e) < 0 || sealed_image_end(&f, e) < 0;
	sealed_image_fini(&f);
	procimage_fini(&im);
	free(tables);
	free(pages);
	lseek(fd, 0, SEEK_SET);
	return rc ? -1 : fd;
}

static int read_all(int fd, const struct sealed_image_about *a, const uint8_t *k, struct err *e)
{
	struct sealed_image_section x;
	struct sealed_image f = { 0 };
	int rc, sections = 0;

	lseek(fd, 0, SEEK_SET);
	rc = sealed_image_open(&f, fd, a, k, e);
	while (rc == 0 && (rc = sealed_image_next(&f, &x, e)) == 1) {
		sections++;
		rc = 0;
	}
	sealed_image_fini(&f);
	return rc < 0 ? -1 : sections;
}

TEST(a_file_is_read_as_it_was_written)
{
	uint8_t *want = big_content(), *got = malloc(BIG);
	struct sealed_image f = { 0 };
	struct sealed_image_section x;
	struct err e = { 0 };
	struct image im;
	auto_fd int fd = make_file(BIG, &e);
	char *tables;

	CHECK(fd >= 0);
	CHECK(sealed_image_open(&f, fd, &about, key, &e) == 0);
	CHECK(sealed_image_next(&f, &x, &e) == 1);
	CHECK(x.kind == 1 && x.index == 7);
	tables = malloc(x.bytes);
	CHECK(sealed_image_read(&f, tables, x.bytes, &e) == 0);
	CHECK(procimage_decode(&im, tables, x.bytes, &e) == 0);
	CHECK(sealed_image_next(&f, &x, &e) == 1);
	CHECK(x.kind == 2 && x.bytes == BIG);
	CHECK(sealed_image_read(&f, got, BIG / 2, &e) == 0);
	CHECK(sealed_image_read(&f, got + BIG / 2, BIG - BIG / 2, &e) == 0);
	CHECK(!memcmp(want, got, BIG));
	CHECK(sealed_image_read(&f, got, 1, &e) < 0);
	CHECK(sealed_image_next(&f, &x, &e) == 1);
	CHECK(x.kind == 3 && x.bytes == 0);
	CHECK(sealed_image_next(&f, &x, &e) == 0);
	sealed_image_fini(&f);
	free(tables);
	free(want);
	free(got);
}

TEST(sections_can_be_left_unread)
{
	struct err e = { 0 };
	auto_fd int fd = make_file(BIG, &e);

	CHECK(fd >= 0);
	CHECK(read_all(fd, &about, key, &e) == 3);
}

TEST(the_content_is_not_readable_in_the_file)
{
	struct err e = { 0 };
	auto_fd int fd = make_file(100, &e);
	struct stat st;
	char *bytes;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	bytes = malloc((size_t)st.st_size);
	CHECK(pread(fd, bytes, (size_t)st.st_size, 0) == st.st_size);
	CHECK(memmem(bytes, (size_t)st.st_size, "/home/user", 10) == NULL);
	CHECK(memmem(bytes, (size_t)st.st_size, "ROCI", 4) == NULL);
	free(bytes);
}

TEST(a_file_that_is_truncated_anywhere_is_rejected)
{
	struct err e = { 0 };
	auto_fd int fd = make_file(300, &e);
	struct stat st;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	CHECK(read_all(fd, &about, key, &e) == 3);
	for (off_t n = st.st_size - 1; n >= 0; n--) {
		CHECK(ftruncate(fd, n) == 0);
		CHECK(read_all(fd, &about, key, &e) < 0);
		CHECK(e.kind == ERR_CONFLICT && strstr(e.msg, "truncated"));
	}
}

/* Whole frames are missing at the end, so that no frame is cut. */
TEST(a_file_without_its_last_frame_is_rejected)
{
	struct err e = { 0 };
	auto_fd int fd = make_file(BIG, &e);

	CHECK(fd >= 0);
	CHECK(ftruncate(fd, SEALED_HEAD + SEALED_TAG + 8 + SEALED_FRAME + SEALED_TAG) == 0);
	CHECK(read_all(fd, &about, key, &e) < 0);
	CHECK(strstr(e.msg, "truncated"));
}

TEST(frames_in_another_order_are_rejected)
{
	enum { ONE = 8 + SEALED_FRAME + SEALED_TAG };
	struct err e = { 0 };
	auto_fd int fd = make_file(BIG, &e);
	char *a = malloc(ONE), *b = malloc(ONE);
	off_t at = SEALED_HEAD + SEALED_TAG;

	CHECK(fd >= 0);
	CHECK(pread(fd, a, ONE, at) == ONE && pread(fd, b, ONE, at + ONE) == ONE);
	CHECK(pwrite(fd, b, ONE, at) == ONE && pwrite(fd, a, ONE, at + ONE) == ONE);
	CHECK(read_all(fd, &about, key, &e) < 0);
	CHECK_STR(e.msg, "frame 0 of the process image was changed");
	free(a);
	free(b);
}

TEST(bytes_after_the_end_are_rejected)
{
	struct err e = { 0 };
	auto_fd int fd = make_file(10, &e);

	CHECK(fd >= 0 && lseek(fd, 0, SEEK_END) > 0 && write(fd, "x", 1) == 1);
	CHECK(read_all(fd, &about, key, &e) < 0);
	CHECK_STR(e.msg, "the process image has bytes after its end");
}

TEST(one_changed_bit_anywhere_is_rejected_with_a_reason)
{
	struct err e = { 0 };
	auto_fd int fd = make_file(300, &e);
	struct stat st;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t at = 0; at < st.st_size; at++) {
		uint8_t was, now;

		CHECK(pread(fd, &was, 1, at) == 1);
		now = was ^ (uint8_t)(1U << at % 8); /* another one in each byte */
		CHECK(pwrite(fd, &now, 1, at) == 1);
		e = (struct err){ 0 };
		CHECK(read_all(fd, &about, key, &e) < 0);
		CHECK(e.kind == ERR_CONFLICT && e.msg[0]);
		CHECK(pwrite(fd, &was, 1, at) == 1);
	}
	CHECK(read_all(fd, &about, key, &e) == 3);
}

static const char *read_changed(off_t at, const void *bytes, size_t n)
{
	static struct err e;
	auto_fd int fd = make_file(10, &e);

	if (fd < 0 || pwrite(fd, bytes, n, at) != (ssize_t)n)
		return "no file";
	return read_all(fd, &about, key, &e) < 0 ? e.msg : "accepted";
}

TEST(another_version_and_architecture_are_named)
{
	const uint32_t nine = 9;

	CHECK_STR(read_changed(0, "X", 1), "this is no file of a process image");
	CHECK_STR(read_changed(8, &nine, 4),
		  "file of a process image of version 9, this program reads 1");
	CHECK(strstr(read_changed(12, &nine, 4), "process image of another architecture (9,"));
	CHECK_STR(read_changed(20, &nine, 4), "the head of the process image was changed");
}

TEST(an_image_of_another_team_or_checkpoint_or_key_is_rejected)
{
	static const uint8_t other[SEALED_KEY] = "another key of 32 bytes, as well";
	struct sealed_image_about a = about;
	struct err e = { 0 };
	auto_fd int fd = make_file(10, &e);

	CHECK(fd >= 0);
	a.team = "red";
	CHECK(read_all(fd, &a, key, &e) < 0);
	CHECK_STR(e.msg, "process image of another team");
	a = about;
	a.checkpoint = "ddddbbbbcccc";
	CHECK(read_all(fd, &a, key, &e) < 0);
	CHECK_STR(e.msg, "process image of checkpoint aaaabbbbcccc, not of ddddbbbbcccc");
	CHECK(read_all(fd, &about, other, &e) < 0);
	CHECK(strstr(e.msg, "was encrypted with key") && strstr(e.msg, "checkpoints/key"));
}

TEST(sections_have_the_size_of_their_head)
{
	auto_fd int fd = memfd_create("image", MFD_CLOEXEC);
	struct sealed_image f = { 0 };
	struct err e = { 0 };

	CHECK(sealed_image_create(&f, fd, &about, key, &e) == 0);
	CHECK(sealed_image_begin(&f, &(struct sealed_image_section){ 0, 0, 1 }, &e) < 0);
	CHECK(sealed_image_begin(&f, &(struct sealed_image_section){ 1, 0, SEALED_MOST + 1 }, &e) <
	      0);
	CHECK(sealed_image_begin(&f, &(struct sealed_image_section){ 1, 0, 4 }, &e) == 0);
	CHECK(sealed_image_add(&f, "12345", 5, &e) < 0);
	CHECK(sealed_image_end(&f, &e) < 0);
	CHECK(sealed_image_begin(&f, &(struct sealed_image_section){ 1, 0, 4 }, &e) < 0);
	CHECK(sealed_image_add(&f, "1234", 4, &e) == 0);
	CHECK(sealed_image_end(&f, &e) == 0);
	sealed_image_fini(&f);
}

TEST(a_full_disk_is_reported)
{
	auto_fd int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct sealed_image f = { 0 };
	struct err e = { 0 };

	CHECK(sealed_image_create(&f, fd, &about, key, &e) < 0);
	CHECK(strstr(e.msg, "No space left"));
	sealed_image_fini(&f);
}
