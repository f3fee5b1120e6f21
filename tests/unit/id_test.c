/* id_test.c - ids that cannot be guessed. */
#include "base/id.h"
#include "tap.h"

TEST(a_new_id_is_valid)
{
	char id[ID_MAX + 1];
	struct err e;

	CHECK(id_new(id, &e) == 0);
	CHECK_INT(strlen(id), ID_LEN);
	CHECK(id_valid(id));
}

TEST(ten_thousand_consecutive_ids_differ)
{
	char id[ID_MAX + 1], last[ID_MAX + 1] = "";
	struct err e;

	for (int i = 0; i < 10000; i++) {
		CHECK(id_new(id, &e) == 0);
		CHECK(strcmp(id, last) != 0);
		memcpy(last, id, sizeof(last));
	}
}

TEST(every_letter_is_used_and_no_other)
{
	unsigned seen[256] = { 0 };
	unsigned kinds = 0;
	char id[ID_MAX + 1];
	struct err e;

	for (int i = 0; i < 1000; i++) {
		CHECK(id_new(id, &e) == 0);
		for (int k = 0; k < ID_LEN; k++)
			seen[(unsigned char)id[k]]++;
	}
	for (unsigned c = 0; c < 256; c++)
		kinds += seen[c] > 0;
	CHECK_INT(kinds, 32); /* 12,000 draws of 32 letters: a missing one is not chance */
}

TEST(an_id_of_another_length_is_not_one)
{
	CHECK(!id_valid(""));
	CHECK(!id_valid("abcdefghijk"));
	CHECK(!id_valid("abcdefghijklm"));
	CHECK(!id_valid("abcdefghijklmn"));
	CHECK(!id_valid("abcdefghijklmnop"));
}

TEST(ids_of_a_node_begin_with_its_number)
{
	static const struct {
		uint32_t number;
		const char *prefix;
	} rows[] = { { 0, "aaa" },  { 1, "aab" },    { 7, "aah" },    { 31, "aa7" },
		     { 32, "aba" }, { 1023, "a77" }, { 1024, "baa" }, { ID_NODES - 1, "777" } };
	char id[ID_MAX + 1], other[ID_MAX + 1];
	struct err e;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		id_set_node(rows[i].number);
		CHECK_INT(id_own_node(), rows[i].number);
		CHECK(id_new(id, &e) == 0 && id_new(other, &e) == 0);
		CHECK_INT(strlen(id), ID_MAX);
		CHECK(id_valid(id) && strcmp(id, other) != 0);
		CHECK(strncmp(id, rows[i].prefix, 3) == 0);
		CHECK_INT(id_node(id), rows[i].number);
	}
	id_set_node(ID_NODES);
	CHECK_INT(id_own_node(), ID_NODES);
	CHECK(id_new(id, &e) == 0);
	CHECK_INT(strlen(id), ID_LEN);
	for (unsigned i = ID_LEN; i <= ID_MAX; i++) /* records contain the whole array */
		CHECK_INT(id[i], 0);
}

TEST(an_id_without_a_number_has_no_node)
{
	CHECK_INT(id_node("abcdefghijkl"), -1);
	CHECK_INT(id_node("abcdefghijklm"), -1);
	CHECK_INT(id_node(""), -1);
	CHECK_INT(id_node("aahabcdefghijk1"), -1);
	CHECK_INT(id_node("aahabcdefghijkl"), 7);
	CHECK_INT(id_node("aahabcdefghijklm"), -1);
}

TEST(an_id_that_could_be_a_path_or_an_option_is_not_one)
{
	CHECK(!id_valid("../../../etc"));
	CHECK(!id_valid("abcdef/hijkl"));
	CHECK(!id_valid("-bcdefghijkl"));
	CHECK(!id_valid("abcdefghijk\n"));
}

TEST(ambiguous_letters_are_not_used_in_ids)
{
	CHECK(!id_valid("abcdefghijk0"));
	CHECK(!id_valid("abcdefghijk1"));
	CHECK(!id_valid("ABCDEFGHIJKL"));
	CHECK(!id_valid("abcdefghij\xc3\xa9"));
}

TEST(random_bytes_fill_the_whole_request)
{
	unsigned char bytes[64] = { 0 };
	unsigned zeros = 0;
	struct err e;

	CHECK(id_random(bytes, sizeof(bytes), &e) == 0);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		zeros += bytes[i] == 0;
	CHECK(zeros < 16);
}
