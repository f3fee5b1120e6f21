/* The address of a bucket, and the URLs that a node may use. */
#include "http/object_store.h"
#include "tap.h"

static struct err err;

static struct object_store store_of(const char *url)
{
	struct object_store s;

	if (object_store_parse(&s, url, &err) < 0)
		s = (struct object_store){ 0 };
	return s;
}

TEST(an_address_has_scheme_host_port_and_bucket)
{
	struct object_store s = store_of("https://objects.example.org/boxes");

	CHECK_INT(s.is_tls, 1);
	CHECK_INT(s.port, 443);
	CHECK_STR(s.host, "objects.example.org");
	CHECK_STR(s.authority, "objects.example.org");
	CHECK_STR(s.bucket, "boxes");
	s = store_of("http://[::1]:8080/boxes/");
	CHECK_INT(s.port, 8080);
	CHECK_STR(s.host, "::1");
	CHECK_STR(s.authority, "[::1]:8080");
	CHECK_STR(s.bucket, "boxes");
	CHECK_STR(store_of("https://boxes.s3.amazonaws.com").bucket, "");
	CHECK_STR(store_of("http://example.org:80/b").authority, "example.org");
}

TEST(other_addresses_are_rejected)
{
	static const char *const wrong[] = { "",
					     "ftp://h/b",
					     "https://",
					     "https:///b",
					     "https://h:0/b",
					     "https://h:65536/b",
					     "https://h:x/b",
					     "https://key:secret@h/b",
					     "https://h/b/c",
					     "https://h/b?x=1",
					     "https://h/b c",
					     "https://[::1/b" };
	struct object_store s;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_INT(object_store_parse(&s, wrong[i], &err), -1);
}

TEST(only_urls_of_the_bucket_are_used)
{
	struct object_store s = store_of("https://h/b"), named = store_of("http://b.h:81");

	CHECK_STR(object_store_target(&s, "https://h/b/snapshots/x?X-Amz-Date=1&y=%2F"),
		  "/b/snapshots/x?X-Amz-Date=1&y=%2F");
	CHECK_STR(object_store_target(&named, "http://b.h:81/snapshots/x"), "/snapshots/x");
	CHECK(!object_store_target(&s, "http://h/b/x"));
	CHECK(!object_store_target(&s, "https://h/bb/x"));
	CHECK(!object_store_target(&s, "https://h.example/b/x"));
	CHECK(!object_store_target(&s, "https://h/b/../c/x"));
	CHECK(!object_store_target(&s, "https://h/b/x HTTP/1.1"));
	CHECK(!object_store_target(&s, "https://h/b/x\r\nHost: other"));
	CHECK(!object_store_target(&named, "http://b.h:8100/snapshots/x"));
}
