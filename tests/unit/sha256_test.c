/* sha256_test.c - examples of the standard, and lengths around the padding. */
#include "base/sha256.h"
#include "base/cleanup.h"
#include "tap.h"

static const char *hex(const uint8_t sum[SHA256_BYTES])
{
	static char text[2 * SHA256_BYTES + 1];

	for (unsigned i = 0; i < SHA256_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", sum[i]);
	return text;
}

/* n times c, passed in steps of that many bytes. */
static const char *sum_of(char c, size_t n, size_t step)
{
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;
	char piece[4096];

	memset(piece, c, sizeof(piece));
	sha256_init(&s);
	while (n) {
		size_t now = n < step ? n : step;

		sha256_add(&s, piece, now);
		n -= now;
	}
	sha256_end(&s, sum);
	return hex(sum);
}

TEST(the_sum_of_empty_input_matches_the_standard)
{
	CHECK_STR(sum_of('x', 0, 1),
		  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(the_sum_of_abc_matches_the_standard)
{
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, "abc", 3);
	sha256_end(&s, sum);
	CHECK_STR(hex(sum), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(the_sum_of_a_million_bytes_matches_the_standard)
{
	CHECK_STR(sum_of('a', 1000000, 4096),
		  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(lengths_around_a_block_are_padded_correctly)
{
	static const struct {
		size_t n;
		const char *sum;
	} rows[] = {
		{ 55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072" },
		{ 56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e" },
		{ 63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2" },
		{ 64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c" },
		{ 65, "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9" },
		{ 119, "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c" },
		{ 120, "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_STR(sum_of('x', rows[i].n, 4096), rows[i].sum);
}

TEST(the_sum_does_not_depend_on_the_size_of_the_parts)
{
	char whole[2 * SHA256_BYTES + 1];

	snprintf(whole, sizeof(whole), "%s", sum_of('q', 1000, 1000));
	for (size_t step = 1; step <= 130; step++)
		CHECK_STR(sum_of('q', 1000, step), whole);
}
