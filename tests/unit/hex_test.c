/* hex_test.c - bytes as hexadecimal digits. */
#include "base/hex.h"
#include "tap.h"

#include <string.h>

TEST(bytes_become_lower_case_digits_and_a_nul)
{
	char out[9];

	memset(out, 'x', sizeof(out));
	hex_encode(out, "\x00\x7f\xa5\xff", 4);
	CHECK_STR(out, "007fa5ff");
	memset(out, 'x', sizeof(out));
	hex_encode(out, "\xff", 1);
	CHECK_STR(out, "ff");
	CHECK_INT(out[3], 'x'); /* no byte after the NUL is written */
	hex_encode(out, NULL, 0);
	CHECK_STR(out, "");
}

TEST(a_digit_has_the_same_value_in_both_cases)
{
	static const char digits[] = "0123456789abcdef";

	for (int c = -128; c < 128; c++) {
		const char *at = c ? strchr(digits, c >= 'A' && c <= 'Z' ? c + 32 : c) : NULL;

		CHECK_INT(hex_digit((char)c), at ? at - digits : -1);
	}
}
