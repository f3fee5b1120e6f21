/* multipart_test.c - forms are split into parts, independent of the pieces in which they arrive. */
#include "base/cleanup.h"
#include "http/multipart.h"
#include "tap.h"

#include <stdlib.h>

/* The parsed form: "[name|filename]content;" for each part, "$" at the end, "!reason" if it is
 * invalid. */
static void run(const char *type, const char *form, size_t n, size_t piece, struct buf *out)
{
	struct multipart m;
	struct err e;

	if (multipart_init(&m, type, &e) < 0) {
		buf_printf(out, "!%s", e.msg);
		return;
	}
	for (size_t at = 0; at < n; at += piece) {
		size_t len = n - at < piece ? n - at : piece;
		char *copy = malloc(
			len); /* exact size: the sanitizer then reports a read after the end */
		struct multipart_view in = { copy, len }, bytes;
		enum multipart_event what;

		memcpy(copy, form + at, len);
		while ((what = multipart_next(&m, &in, &bytes, &e)) != MULTIPART_MORE) {
			if (what == MULTIPART_PART)
				buf_printf(out, "[%s|%s]",
					   multipart_name(&m) ? multipart_name(&m) : "-",
					   multipart_filename(&m) ? multipart_filename(&m) : "-");
			else if (what == MULTIPART_DATA)
				buf_add(out, bytes.p, bytes.n);
			else if (what == MULTIPART_PART_END)
				buf_putc(out, ';');
			else
				break;
		}
		free(copy);
		if (what == MULTIPART_BAD) {
			buf_printf(out, "!%s", e.msg);
			break;
		}
	}
	if (multipart_ended(&m))
		buf_putc(out, '$');
	multipart_fini(&m);
}

#define TYPE "multipart/form-data; boundary=XY"

/* The same result for every split. */
static const char *every_cut(const char *type, const char *form, size_t n, const char *expected)
{
	static struct buf got;

	for (size_t piece = 1; piece <= n; piece++) {
		buf_fini(&got);
		run(type, form, n, piece, &got);
		if (strcmp(buf_str(&got), expected) != 0)
			return buf_str(&got);
	}
	buf_fini(&got);
	return expected;
}

#define FORM_IS(form, expected)                                                                    \
	CHECK_STR(every_cut(TYPE, form, sizeof(form) - 1, expected), expected)

TEST(a_part_has_a_name_a_filename_and_content)
{
	FORM_IS("--XY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"dir/a.txt\"\r\n"
		"Content-Type: text/plain\r\n\r\ndata\r\n--XY--\r\n",
		"[file|dir/a.txt]data;$");
}

TEST(several_parts_are_parsed_and_may_be_empty)
{
	FORM_IS("--XY\r\ncontent-disposition: form-data; name=a\r\n\r\n\r\n--XY\r\n"
		"Content-Disposition: form-data; name=\"b\"\r\n\r\n2\r\n--XY\r\n\r\nbare\r\n--XY--",
		"[a|-];[b|-]2;[-|-]bare;$");
}

TEST(text_similar_to_a_boundary_is_content)
{
	FORM_IS("--XY\r\n\r\n\r\r\n\r\n-\r\n--\r\n--X\r\n--XZ\r\n\r\n--XY--",
		"[-|-]\r\r\n\r\n-\r\n--\r\n--X\r\n--XZ\r\n;$");
	FORM_IS("--XY\r\n\r\n--X\r\n--XY--", "[-|-]--X;$");
}

TEST(text_before_and_after_the_form_is_ignored)
{
	FORM_IS("hello\r\n--X\r\n--XY\r\n\r\n1\r\n--XY--\r\n--XY\r\n\r\n2", "[-|-]1;$");
}

TEST(a_boundary_may_be_followed_by_spaces_only)
{
	FORM_IS("--XY \t\r\n\r\n1\r\n--XY--", "[-|-]1;$");
	FORM_IS("--XYZ\r\n\r\n1", "!the form's boundary is followed by something else");
	FORM_IS("--XY-Z", "!the form's boundary is followed by something else");
	FORM_IS("--XY\r\r", "!the form's boundary is followed by something else");
}

TEST(a_truncated_form_is_incomplete)
{
	FORM_IS("--XY\r\n\r\n1\r\n--X", "[-|-]1");
	FORM_IS("--XY\r\nContent-Disp", "");
}

TEST(filenames_may_be_quoted_escaped_or_encoded)
{
	FORM_IS("--XY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22; b.txt\"\r\n\r\n\r\n--XY--",
		"[file|a%22; b.txt];$");
	FORM_IS("--XY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\\\"b\\\\c\\d\"\r\n\r\n\r\n--XY--",
		"[file|a\"b\\c\\d];$");
	FORM_IS("--XY\r\nContent-Disposition: form-data; filename*=UTF-8''a%20%C3%B6; name=file\r\n\r\n\r\n--XY--",
		"[file|a ö];$");
	FORM_IS("--XY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"open\r\n\r\n\r\n--XY--",
		"[file|open];$");
	FORM_IS("--XY\r\nContent-Disposition: form-data; name=\"\"; filename=\r\n\r\n\r\n--XY--",
		"[|];$");
}

TEST(a_nul_is_accepted_in_content_and_rejected_in_headers)
{
	static const char form[] = "--XY\r\n\r\n1\0"
				   "2\r\n--XY--",
			  bad[] = "--XY\r\nA\0:";
	auto_buf struct buf got = { 0 };

	run(TYPE, form, sizeof(form) - 1, 3, &got);
	CHECK(got.len == 5 + 3 + 2 && !memcmp(got.p,
					      "[-|-]1\0"
					      "2;$",
					      got.len));
	CHECK_STR(every_cut(TYPE, bad, sizeof(bad) - 1, "!the head of a part has a NUL in it"),
		  "!the head of a part has a NUL in it");
}

TEST(the_headers_of_a_part_are_bounded)
{
	size_t n = MULTIPART_HEAD + 100;
	auto_free char *form = malloc(n);
	auto_buf struct buf got = { 0 };

	memset(form, 'a', n);
	memcpy(form, "--XY\r\n", 6);
	run(TYPE, form, n, 1000, &got);
	CHECK_STR(buf_str(&got), "!the head of a part is longer than 16384 bytes");
}

TEST(a_missing_or_invalid_boundary_is_rejected)
{
	char type[200] = "multipart/form-data; boundary=";
	auto_buf struct buf a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

	run("multipart/form-data", "", 0, 1, &a);
	CHECK_STR(buf_str(&a), "!the content type has no boundary");
	run("multipart/form-data; boundary=\"\"", "", 0, 1, &b);
	CHECK_STR(buf_str(&b), "!the content type has no boundary");
	memset(type + strlen(type), 'b', 71);
	run(type, "", 0, 1, &c);
	CHECK_STR(buf_str(&c), "!the boundary is longer than 70 bytes");
	run("multipart/form-data; x=1; Boundary=\"-- \"", "---- \r\n\r\n1\r\n---- --", 20, 3, &d);
	CHECK_STR(buf_str(&d), "[-|-]1;$");
}
