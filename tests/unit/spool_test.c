/* spool_test.c - the files of a batch, also after a crash. */
#include "batch/spool.h"
#include "store_dir.h"

#include <fcntl.h>
#include <sys/stat.h>

static int folder;

static void made(struct spool *s, const char *dir)
{
	folder = spool_folder(dir, &err);
	CHECK(folder >= 0);
	CHECK_OK(spool_make(s, folder, "aaaaaaaaaaaa", &err));
}

static void add(struct spool *s, uint32_t item, const char *line)
{
	struct spool_row row = { .item = item, .verdict = 1, .cause = 2 };

	CHECK_OK(spool_result(s, line, strlen(line), row, &err));
}

static void left_like_that(struct spool *s)
{
	spool_fini(s);
	CHECK_OK(spool_open(s, folder, "aaaaaaaaaaaa", &err));
}

static void done_with(struct spool *s, const char *dir)
{
	char path[160];

	spool_fini(s);
	spool_remove(folder, "aaaaaaaaaaaa");
	close(folder);
	snprintf(path, sizeof(path), "%s/batches", dir);
	CHECK_INT(rmdir(path), 0); /* nothing of it is left */
}

TEST(results_are_read_from_any_number)
{
	auto_dir char dir[128];
	struct spool_row rows[3];
	struct spool s;
	char text[32];
	uint64_t at;

	dir_make(dir);
	made(&s, dir);
	add(&s, 7, "one\n");
	add(&s, 5, "three\n");
	left_like_that(&s);
	CHECK_INT(s.results, 2);
	CHECK_INT(s.out_bytes, 10);
	CHECK_INT(spool_rows(&s, 0, rows, 3, &err), 2);
	CHECK_INT(rows[1].item, 5);
	CHECK_INT(rows[1].verdict, 1);
	CHECK_OK(spool_offset(&s, 1, &at, &err));
	CHECK_INT(at, 0);
	CHECK_OK(spool_offset(&s, 2, &at, &err));
	CHECK_INT(at, 4);
	CHECK_OK(spool_offset(&s, 3, &at, &err));
	CHECK_INT(at, 10);
	CHECK_OK(spool_offset(&s, 99, &at, &err));
	CHECK_INT(at, 10);
	CHECK_INT(spool_read(&s, 4, text, sizeof(text), &err), 6);
	CHECK(!memcmp(text, "three\n", 6));
	CHECK_INT(spool_read(&s, 10, text, sizeof(text), &err), 0);
	done_with(&s, dir);
}

TEST(a_result_without_its_index_entry_is_ignored)
{
	auto_dir char dir[128];
	struct spool s;

	dir_make(dir);
	made(&s, dir);
	add(&s, 0, "one\n");
	CHECK_INT(pwrite(s.out, "half a li", 9, 4), 9);
	left_like_that(&s);
	CHECK_INT(s.results, 1);
	CHECK_INT(s.out_bytes, 4);
	add(&s, 1, "two\n");
	left_like_that(&s);
	CHECK_INT(s.results, 2);
	CHECK_INT(s.out_bytes, 8);
	done_with(&s, dir);
}

TEST(an_index_entry_without_its_result_is_ignored)
{
	auto_dir char dir[128];
	struct spool s;

	dir_make(dir);
	made(&s, dir);
	add(&s, 0, "one\n");
	add(&s, 1, "two\n");
	CHECK_INT(ftruncate(s.out, 6), 0);
	left_like_that(&s);
	CHECK_INT(s.results, 1);
	CHECK_INT(s.out_bytes, 4);
	CHECK_INT(ftruncate(s.idx, 7), 0); /* and half a row */
	left_like_that(&s);
	CHECK_INT(s.results, 0);
	CHECK_INT(s.out_bytes, 0);
	done_with(&s, dir);
}

TEST(an_invalid_index_entry_ends_the_valid_results)
{
	auto_dir char dir[128];
	struct spool s;

	dir_make(dir);
	made(&s, dir);
	add(&s, 0, "one\n");
	add(&s, 1, "two\n");
	CHECK_INT(pwrite(s.idx, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 16), 8);
	left_like_that(&s);
	CHECK_INT(s.results, 1);
	done_with(&s, dir);
}

TEST(items_are_appended_and_read_in_parts)
{
	auto_dir char dir[128];
	struct spool s;
	char text[8];

	dir_make(dir);
	made(&s, dir);
	CHECK_OK(spool_add(&s, "{}\n", 3, &err));
	CHECK_OK(spool_add(&s, "{", 1, &err));
	left_like_that(&s);
	CHECK_INT(s.in_bytes, 4);
	CHECK_INT(spool_read_in(&s, 2, text, sizeof(text), &err), 2);
	CHECK(!memcmp(text, "\n{", 2));
	done_with(&s, dir);
}

TEST(a_batch_name_is_unique_and_an_unknown_one_is_an_error)
{
	auto_dir char dir[128];
	struct spool s, other;

	dir_make(dir);
	made(&s, dir);
	CHECK_ERR(spool_make(&other, folder, "aaaaaaaaaaaa", &err), ERR_SYS);
	CHECK_ERR(spool_open(&other, folder, "bbbbbbbbbbbb", &err), ERR_SYS);
	done_with(&s, dir);
}
