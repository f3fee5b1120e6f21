/* entry_test.c - paths, modes and signatures in E2B format. */
#include "base/cleanup.h"
#include "e2b/entry.h"
#include "e2b/signature.h"
#include "tap.h"

#include <stdlib.h>

static const char *path(const char *given, int root)
{
	static struct buf out;
	struct err e;

	buf_cut(&out, 0);
	return entry_path(given, root ? "/root" : "/home/user", root ? "/root" : "/home/user", &out,
			  &e) < 0
		       ? "refused"
		       : buf_str(&out);
}

TEST(relative_paths_are_below_the_users_home)
{
	CHECK_STR(path("a.txt", 0), "/home/user/a.txt");
	CHECK_STR(path("a.txt", 1), "/root/a.txt");
	CHECK_STR(path("", 0), "/home/user");
	CHECK_STR(path(".", 0), "/home/user");
	CHECK_STR(path("~", 0), "/home/user");
	CHECK_STR(path("~/x", 1), "/root/x");
	CHECK_STR(path("./a//b/", 0), "/home/user/a/b");
	CHECK_STR(path("../../../x", 0), "/x");
	CHECK_STR(path("../..", 0), "/");
	CHECK_STR(path("a/../b", 0), "/home/user/b");
}

TEST(absolute_paths_are_not_changed)
{
	CHECK_STR(path("/", 0), "/");
	CHECK_STR(path("//tmp/./x/", 0), "/tmp/x");
	CHECK_STR(path("/link/../x", 0), "/link/../x");
	CHECK_STR(path("/a/~", 0), "/a/~");
}

TEST(homes_of_other_users_and_overlong_paths_are_rejected)
{
	char longest[5000];

	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	CHECK_STR(path("~root/x", 0), "refused");
	CHECK_STR(path(longest, 0), "refused");
}

static const char *letters(uint32_t mode)
{
	static char out[ENTRY_PERMISSIONS];

	entry_permissions(mode, out);
	return out;
}

TEST(permissions_are_formatted_like_in_go)
{
	CHECK_STR(letters(0100644), "-rw-r--r--");
	CHECK_STR(letters(0040755), "drwxr-xr-x");
	CHECK_STR(letters(0120777), "Lrwxrwxrwx");
	CHECK_STR(letters(0041777), "dtrwxrwxrwx");
	CHECK_STR(letters(0104755), "urwxr-xr-x");
	CHECK_STR(letters(0102755), "grwxr-xr-x");
	CHECK_STR(letters(0010600), "prw-------");
	CHECK_STR(letters(0140755), "Srwxr-xr-x");
	CHECK_STR(letters(0020666), "Dcrw-rw-rw-");
	CHECK_STR(letters(0060660), "Drw-rw----");
	CHECK_STR(letters(0107777), "ugtrwxrwxrwx");
}

/* An entry as the file worker sends it. */
static json_t *entry(uint32_t mode, uint32_t target, const char *tail, size_t n)
{
	struct wire_entry e = {
		.mode = mode, .target_mode = target, .size = 5, .mtime_ns = 1767323045123456789u
	};
	struct entry_shape shape = { .below = "/tmp" };

	return entry_json(&shape, &e, tail, n);
}

static const char *text(json_t *take_doc)
{
	static char *kept;

	free(kept);
	kept = json_dumps(take_doc, JSON_COMPACT);
	json_decref(take_doc);
	return kept ? kept : "none";
}

#define TAIL(s) s, sizeof(s)

TEST(an_entry_has_exactly_the_fields_of_entry_info)
{
	CHECK_STR(
		text(entry(0100644, 0, TAIL("d/a\0\0user\0user\0k\0v"))),
		"{\"name\":\"a\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"/tmp/d/a\",\"size\":\"5\","
		"\"mode\":420,\"permissions\":\"-rw-r--r--\",\"owner\":\"user\",\"group\":\"user\","
		"\"modifiedTime\":\"2026-01-02T03:04:05.123456789Z\",\"metadata\":{\"k\":\"v\"}}");
}

TEST(a_link_has_the_type_and_mode_of_its_target)
{
	CHECK_STR(
		text(entry(0120777, 0040700,
			   TAIL("l\0/real\0root\0"
				"99"))),
		"{\"name\":\"l\",\"type\":\"FILE_TYPE_DIRECTORY\",\"path\":\"/tmp/l\",\"size\":\"5\","
		"\"mode\":448,\"permissions\":\"Lrwxrwxrwx\",\"owner\":\"root\",\"group\":\"99\","
		"\"modifiedTime\":\"2026-01-02T03:04:05.123456789Z\",\"symlinkTarget\":\"/real\"}");
}

TEST(a_dangling_link_has_no_type_and_itself_as_target)
{
	json_t *doc = entry(0120777, 0, TAIL("l\0\0u\0g"));

	CHECK_STR(json_string_value(json_object_get(doc, "type")), "FILE_TYPE_UNSPECIFIED");
	CHECK_STR(json_string_value(json_object_get(doc, "symlinkTarget")), "/tmp/l");
	CHECK(json_integer_value(json_object_get(doc, "mode")) == 0);
	json_decref(doc);
}

TEST(an_invalid_entry_document_is_rejected)
{
	CHECK(!entry(0100644, 0, "", 0));
	CHECK(!entry(0100644, 0, TAIL("")));
	CHECK(!entry(0100644, 0, TAIL("a\0\0user")));
	CHECK(!entry(0100644, 0, "a\0\0user\0user", 12)); /* its NUL is missing */
}

TEST(attributes_that_are_not_utf8_are_left_out)
{
	json_t *doc = entry_metadata(TAIL("a\0\0u\0g\0bad\0\xff\0good\0x\0odd"));

	CHECK_STR(text(doc), "{\"good\":\"x\"}");
}

TEST(a_signature_equals_that_of_e2b_clients)
{
	struct signature_of s = { .path = "hello.txt",
				  .operation = "read",
				  .user = "user",
				  .token = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0" };
	char out[SIGNATURE], later[SIGNATURE];

	signature_make(&s, out);
	CHECK_STR(out, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
	s.expiration = "1794705112";
	signature_make(&s, later);
	CHECK(strlen(later) == strlen(out) && strcmp(later, out) != 0);
}
