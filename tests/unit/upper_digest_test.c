/* upper_digest_test.c - the digest of the upper layer of a box, independent of the order. */
#include "buildcache/upper_digest.h"
#include "tap.h"

#include <string.h>
#include <sys/stat.h>

static const char *const own[] = { "/home/user/main.c", NULL }, *const loose[] = { "/tmp/main.out",
										   NULL };

static struct wire_entry file(uint8_t content)
{
	return (struct wire_entry){ .mode = S_IFREG | 0644,
				    .hashed = 1,
				    .uid = 1000,
				    .mtime_ns = 5,
				    .sha256 = { content } };
}

static const struct wire_entry folder = { .mode = S_IFDIR | 0755 };

static void tell(struct upper_digest *u, const struct wire_entry *e, const char *path)
{
	upper_digest_entry(u, e, path, strlen(path));
}

/* Of one entry alone. */
static int alone(const struct wire_entry *e, const char *path, uint8_t out[SHA256_BYTES])
{
	struct upper_digest u = { .own = own, .loose = loose };
	int rc;

	tell(&u, e, path);
	rc = upper_digest_end(&u, out);
	upper_digest_fini(&u);
	return rc;
}

TEST(files_written_by_the_request_itself_do_not_change_the_digest)
{
	struct wire_entry e = file(1), unread = { .mode = S_IFREG | 0644 },
			  link = { .mode = S_IFLNK };
	uint8_t d[SHA256_BYTES];
	struct upper_digest u = { .own = own, .loose = loose };

	tell(&u, &folder, "/home");
	tell(&u, &folder, "/home/user");
	tell(&u, &e, "/home/user/main.c");
	tell(&u, &folder, "/tmp");
	CHECK_INT(upper_digest_end(&u, d), 0);
	CHECK_INT(u.has_loose, 0);
	tell(&u, &folder, "/tmp/main.out");
	CHECK_INT(u.has_loose, 1);
	tell(&u, &unread, "/tmp/main.out/A.class");
	tell(&u, &link, "/tmp/main.out/b");
	CHECK_INT(upper_digest_end(&u, d), 0);
	upper_digest_fini(&u);
	CHECK_INT(alone(&e, "/home/user/main.cc", d), 1);
	CHECK_INT(alone(&e, "/home/user", d), 1); /* no folder */
	CHECK_INT(alone(&folder, "/home/us", d), 1);
	CHECK_INT(alone(&e, "/home/user/main.c/b", d), 1);
	CHECK_INT(alone(&e, "/tmp/main.outer", d), 1);
}

TEST(the_order_of_entries_does_not_change_the_digest)
{
	struct wire_entry a = file(1), b = file(2);
	uint8_t x[SHA256_BYTES], y[SHA256_BYTES];
	struct upper_digest one = { .own = own, .loose = loose },
			    two = { .own = own, .loose = loose };

	tell(&one, &a, "/home/user/a.h");
	tell(&one, &b, "/home/user/b.h");
	tell(&two, &b, "/home/user/b.h");
	tell(&two, &a, "/home/user/a.h");
	CHECK_INT(upper_digest_end(&one, x), 1);
	CHECK_INT(upper_digest_end(&two, y), 1);
	CHECK(memcmp(x, y, sizeof(x)) == 0);
	upper_digest_fini(&one);
	upper_digest_fini(&two);
}

TEST(every_attribute_visible_to_a_compiler_changes_the_digest)
{
	struct wire_entry a = file(1), b;
	uint8_t x[SHA256_BYTES], y[SHA256_BYTES];

	CHECK_INT(alone(&a, "/home/user/a.h", x), 1);
#define DIFFERS(field, value)                                                                      \
	do {                                                                                       \
		b = a;                                                                             \
		b.field = (value);                                                                 \
		CHECK_INT(alone(&b, "/home/user/a.h", y), 1);                                      \
		CHECK(memcmp(x, y, sizeof(x)) != 0);                                               \
	} while (0)
	DIFFERS(sha256[31], 9);
	DIFFERS(mode, S_IFREG | 0600);
	DIFFERS(mode, 0); /* deleted */
	DIFFERS(uid, 0);
	DIFFERS(mtime_ns, 6);
#undef DIFFERS
	CHECK_INT(alone(&a, "/home/user/a.hh", y), 1);
	CHECK(memcmp(x, y, sizeof(x)) != 0);
}

TEST(an_unreadable_entry_prevents_the_digest)
{
	struct wire_entry e = file(1), link = { .mode = S_IFLNK | 0777 };
	uint8_t d[SHA256_BYTES];
	struct upper_digest u = { .own = own, .loose = loose };
	char path[32];

	CHECK_INT(alone(&link, "/home/user/a.h", d), -1);
	e.hashed = 0;
	CHECK_INT(alone(&e, "/home/user/a.h", d), -1);
	upper_digest_missing(&u);
	CHECK_INT(upper_digest_end(&u, d), -1);
	upper_digest_fini(&u);
	u.own = own;
	e.hashed = 1;
	for (unsigned i = 0; i <= UPPER_DIGEST_ENTRIES; i++) {
		snprintf(path, sizeof(path), "/home/user/%u", i);
		if (i == UPPER_DIGEST_ENTRIES)
			CHECK_INT(upper_digest_end(&u, d), 1);
		tell(&u, &e, path);
	}
	CHECK_INT(upper_digest_end(&u, d), -1);
	upper_digest_fini(&u);
}
