/* procimage_test.c - process images as data, and the lists that are made of them. */
#include "procimage/arch.h"
#include "procimage/image.h"
#include "procimage/keep.h"
#include "procimage/plan.h"
#include "procimage/restorer.h"
#include "procimage/zygote_memory.h"
#include "procimage_sample.h"
#include "tap.h"

#include <sys/syscall.h>

static int decode_changed(void (*change)(struct image *im))
{
	struct image im, read;
	struct err e = { 0 };
	size_t len;
	char *bytes;
	int rc;

	sample_make(&im);
	bytes = sample_encode(&im, &len, &e);
	if (!bytes || procimage_decode(&read, bytes, len, &e) < 0)
		return -2;
	change(&read);
	rc = procimage_check(&read, &e);
	free(bytes);
	procimage_fini(&im);
	return rc;
}

TEST(an_image_is_read_as_it_was_written)
{
	struct image im, read;
	struct err e = { 0 };
	size_t len;
	char *bytes;

	sample_make(&im);
	bytes = sample_encode(&im, &len, &e);
	CHECK(bytes != NULL);
	CHECK(procimage_decode(&read, bytes, len, &e) == 0);
	for (unsigned i = 0; i < IMAGE_TABLES; i++)
		CHECK(read.header.count[i] == im.header.count[i]);
	CHECK(!memcmp(image_descriptors(&read), image_descriptors(&im),
		      6 * sizeof(struct image_descriptor)));
	CHECK(procimage_memory_bytes(&read) == 4 * 4096);
	CHECK_STR(image_string(&read, image_program(&read)->folder), "/home/user");
	free(bytes);
	procimage_fini(&im);
}

TEST(a_shortened_or_lengthened_image_is_rejected)
{
	struct image im, read;
	struct err e = { 0 };
	size_t len;
	char *bytes;

	sample_make(&im);
	bytes = sample_encode(&im, &len, &e);
	CHECK(bytes != NULL);
	for (size_t n = 0; n < len; n += 7)
		CHECK(procimage_decode(&read, bytes, n, &e) < 0);
	bytes = realloc(bytes, len + 8);
	memset(bytes + len, 0, 8);
	CHECK(procimage_decode(&read, bytes, len + 8, &e) < 0);
	free(bytes);
	procimage_fini(&im);
}

static void too_long_auxv(struct image *im)
{
	image_program(im)->nauxv = IMAGE_AUXV_MOST + 1;
}
static void areas_overlap(struct image *im)
{
	image_areas(im)[1].start = 0x401000;
}
static void area_in_the_kernel(struct image *im)
{
	image_areas(im)[2].end = UINT64_C(0xffff800000000000);
}
static void area_not_of_pages(struct image *im)
{
	image_areas(im)[1].end += 1;
}
static void area_without_file(struct image *im)
{
	image_areas(im)[0].file = 1;
}
static void run_outside(struct image *im)
{
	image_runs(im)[1].pages = 100;
}
static void run_into_a_file_of_the_copy(struct image *im)
{
	image_runs(im)[1].start = 0x600000;
}
static void runs_in_wrong_order(struct image *im)
{
	image_runs(im)[1].start = 0x500000;
}
static void thread_twice(struct image *im)
{
	image_threads(im)[1].tid = 100;
}
static void vectors_outside(struct image *im)
{
	image_threads(im)[1].vector_at = 1 << 20;
}
static void descriptor_refers_to_itself(struct image *im)
{
	image_descriptors(im)[2].peer = 2;
}
static void descriptors_in_wrong_order(struct image *im)
{
	image_descriptors(im)[2].number = 1;
}
static void data_outside(struct image *im)
{
	image_descriptors(im)[3].data_bytes = 1 << 30;
}
static void relative_path(struct image *im)
{
	image_program(im)->folder++;
}
static void unknown_kind(struct image *im)
{
	image_descriptors(im)[0].kind = DESCRIPTOR_KINDS;
}

TEST(every_record_outside_the_format_is_rejected)
{
	void (*const changes[])(struct image *) = {
		too_long_auxv,
		areas_overlap,
		area_in_the_kernel,
		area_not_of_pages,
		area_without_file,
		run_outside,
		run_into_a_file_of_the_copy,
		runs_in_wrong_order,
		thread_twice,
		vectors_outside,
		descriptor_refers_to_itself,
		descriptors_in_wrong_order,
		data_outside,
		relative_path,
		unknown_kind,
	};

	for (unsigned i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		CHECK(decode_changed(changes[i]) == -1);
}

TEST(an_image_of_another_version_is_rejected_with_both_versions)
{
	struct image im, read;
	struct err e = { 0 };
	size_t len;
	char *bytes;

	sample_make(&im);
	im.header.version = 7;
	bytes = sample_encode(&im, &len, &e);
	CHECK(bytes != NULL);
	CHECK(procimage_decode(&read, bytes, len, &e) < 0);
	CHECK_STR(e.msg, "process image of version 7, this program reads 3");
	free(bytes);
	procimage_fini(&im);
}

TEST(a_plan_makes_descriptors_in_order_and_fits_its_bound)
{
	struct image im;
	struct call_list l = { 0 };
	struct call_data d = { .at = 0x10000 };
	unsigned placed = 0;

	sample_make(&im);
	d.most = zygote_memory_bound(&im);
	const struct image *one = &im;
	struct plan_tree t = plan_tree_of(&one, 1, 0);

	plan_add_objects(&t, &l, &d);
	plan_add_program(&t, &im, &l, &d);
	for (uint64_t i = 0; i < l.count; i++)
		if (l.calls[i].number == RESTORER_MOVE || l.calls[i].number == SYS_dup3)
			placed++;
	CHECK(placed == 6);
	CHECK(plan_count_outside(&one, 1) == 1);
	CHECK(t.high > 7);
	call_list_fini(&l);
	free(d.bytes);
	procimage_fini(&im);
}

TEST(the_code_of_zygotes_begins_with_its_mark_and_is_small)
{
	uint64_t mark;

	memcpy(&mark, restorer_image, 8);
	CHECK(mark == RESTORER_MAGIC);
	CHECK(restorer_image_end - restorer_image > RESTORER_ENTRY);
	CHECK(restorer_image_end - restorer_image < 16384);
}

TEST(every_step_and_every_row_has_a_text)
{
	for (unsigned i = 0; i < RESTORER_STEPS; i++)
		CHECK(restorer_step_name(i) && *restorer_step_name(i));
	CHECK_STR(restorer_step_name(RESTORER_STEPS), "unknown step");
	for (unsigned i = 0; i < KEEP_COUNT; i++)
		CHECK(*keep_rows[i].thing && *keep_rows[i].text);
}
