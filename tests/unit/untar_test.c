/* untar_test.c - archives from a box, valid and hostile. */
#include "cli/untar.h"
#include "base/cleanup.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char top[64];
static int root = -1;

static void begin(void)
{
	strcpy(top, "/tmp/untar.XXXXXX");
	if (!mkdtemp(top))
		abort();
	root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void end(void)
{
	char command[128];

	own_close_fd(&root);
	snprintf(command, sizeof(command), "rm -rf '%s' /tmp/untar-outside", top);
	if (system(command) != 0)
		abort();
}

static void entry(struct buf *tar, char type, const char *name, const char *link, unsigned mode,
		  const char *content)
{
	unsigned char b[512] = { 0 };
	size_t n = strlen(content);
	unsigned sum = 0;

	strncpy((char *)b, name, 100);
	snprintf((char *)b + 100, 8, "%07o", mode & 07777);
	snprintf((char *)b + 124, 12, "%011o", (unsigned)n);
	memset(b + 148, ' ', 8);
	b[156] = (unsigned char)type;
	strncpy((char *)b + 157, link, 99);
	memcpy(b + 257, "ustar", 6);
	for (unsigned i = 0; i < 512; i++)
		sum += b[i];
	snprintf((char *)b + 148, 8, "%06o", sum & 0777777);
	buf_add(tar, b, 512);
	buf_add(tar, content, n);
	while (tar->len % 512)
		buf_putc(tar, 0);
}

/* In pieces of this size; -1 and why. */
static int unpack(struct buf *tar, size_t piece, struct untar *u, struct err *e)
{
	char zeros[1024] = { 0 };
	int rc = 0;

	buf_add(tar, zeros, sizeof(zeros));
	untar_init(u, root);
	for (size_t at = 0; at < tar->len && rc == 0; at += piece)
		rc = untar_take(u, tar->p + at, tar->len - at < piece ? tar->len - at : piece, e);
	if (rc == 0)
		rc = untar_end(u, e);
	untar_fini(u);
	return rc;
}

static const char *content(const char *name)
{
	static char text[128];
	auto_fd int fd = openat(root, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return "(none)";
	text[n] = 0;
	return text;
}

TEST(files_folders_and_links_are_extracted_from_any_parts)
{
	static const size_t pieces[] = { 1, 7, 512, 513, 100000 };

	for (unsigned i = 0; i < ARRAY_LEN(pieces); i++) {
		auto_buf struct buf tar = { 0 };
		struct untar u;
		struct stat st;
		struct err e;

		begin();
		entry(&tar, '5', "./", "", 0755, "");
		entry(&tar, '5', "./d/", "", 0755, "");
		entry(&tar, '0', "./d/a", "", 0754, "hello");
		entry(&tar, '0', "deep/er/b", "", 0644, "");
		entry(&tar, '2', "l", "d/a", 0777, "");
		entry(&tar, '1', "h", "./d/a", 0644, "");
		CHECK_INT(unpack(&tar, pieces[i], &u, &e), 0);
		CHECK_STR(content("d/a"), "hello");
		CHECK_STR(content("deep/er/b"), "");
		CHECK_STR(content("l"), "hello");
		CHECK_STR(content("h"), "hello");
		CHECK(fstatat(root, "d/a", &st, 0) == 0);
		CHECK_INT(st.st_nlink, 1); /* a hard link is a copy */
		CHECK_INT(st.st_mode & 07700, 0700);
		CHECK_INT((int)u.skipped, 0);
		end();
	}
}

TEST(nothing_is_created_outside_the_folder)
{
	static const char *const names[] = { "../x", "a/../../x", "/tmp/untar-outside",
					     "..",   "a/..",      "./../x" };
	auto_buf struct buf tar = { 0 };
	int had = access("/tmp/x", F_OK);
	struct untar u;
	struct err e;

	begin();
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		entry(&tar, '0', names[i], "", 0644, "x");
	entry(&tar, '0', "good", "", 0644, "y");
	CHECK_INT(unpack(&tar, 512, &u, &e), 0);
	CHECK_INT((int)u.skipped, (int)ARRAY_LEN(names));
	CHECK_STR(content("good"), "y");
	CHECK(access("/tmp/untar-outside", F_OK) < 0);
	CHECK_INT(access("/tmp/x", F_OK), had);
	end();
}

TEST(a_pax_record_with_a_wrong_length_is_ignored)
{
	static const char *const records[] = { "1 path=abc\n",
					       "2 path=abc\n",
					       "6 path=abc\n",
					       "7 path=\n",
					       "9 path=abcdef\n",
					       "8 path=a",
					       "99 path=a\n",
					       "-5 path=a\n",
					       "0 path=a\n",
					       "3 =\n",
					       "1 ",
					       "2 ",
					       "10 linkpath=x\n",
					       "18446744073709551615 path=a\n",
					       "path=a\n",
					       "1",
					       "" };

	for (unsigned i = 0; i < ARRAY_LEN(records); i++) {
		auto_buf struct buf tar = { 0 };
		struct untar u;
		struct err e;

		begin();
		entry(&tar, 'x', "pax", "", 0644, records[i]);
		entry(&tar, '0', "good", "", 0644, "y");
		CHECK_INT(unpack(&tar, 512, &u, &e), 0);
		CHECK(u.files + u.skipped == 1);
		end();
	}
}

TEST(a_link_is_not_written_through)
{
	auto_buf struct buf tar = { 0 };
	struct untar u;
	struct err e;

	begin();
	if (mkdir("/tmp/untar-outside", 0700) < 0)
		abort();
	entry(&tar, '2', "way", "/tmp/untar-outside", 0777, "");
	entry(&tar, '0', "way/in", "", 0644, "x");
	CHECK_INT(unpack(&tar, 512, &u, &e), -1);
	CHECK(e.sys == ELOOP || e.sys == ENOTDIR);
	CHECK(access("/tmp/untar-outside/in", F_OK) < 0);
	end();
}

TEST(a_file_replaces_a_link_and_not_its_target)
{
	auto_buf struct buf tar = { 0 };
	struct untar u;
	struct stat st;
	struct err e;

	begin();
	entry(&tar, '0', "victim", "", 0644, "safe");
	entry(&tar, '2', "f", "victim", 0777, "");
	entry(&tar, '0', "f", "", 0644, "new");
	CHECK_INT(unpack(&tar, 512, &u, &e), 0);
	CHECK_STR(content("victim"), "safe");
	CHECK_STR(content("f"), "new");
	CHECK(fstatat(root, "f", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode));
	end();
}

TEST(devices_pipes_and_setuid_bits_are_left_out)
{
	auto_buf struct buf tar = { 0 };
	struct untar u;
	struct stat st;
	struct err e;

	begin();
	entry(&tar, '3', "null", "", 0666, "");
	entry(&tar, '4', "disk", "", 0666, "");
	entry(&tar, '6', "pipe", "", 0666, "");
	entry(&tar, '1', "shadow", "/etc/passwd", 0666, "");
	entry(&tar, '0', "su", "", 06777, "x");
	CHECK_INT(unpack(&tar, 512, &u, &e), 0);
	CHECK_INT((int)u.skipped, 4);
	CHECK(fstatat(root, "su", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07000, 0);
	CHECK(fstatat(root, "null", &st, 0) < 0 && fstatat(root, "shadow", &st, 0) < 0);
	end();
}

TEST(long_names_in_extra_headers_are_read)
{
	auto_buf struct buf tar = { 0 }, pax = { 0 };
	char name[200], longer[200];
	struct untar u;
	struct err e;

	begin();
	memset(name, 'n', 150);
	name[150] = 0;
	memset(longer, 'p', 120);
	longer[120] = 0;
	entry(&tar, 'L', "././@LongLink", "", 0, name);
	entry(&tar, '0', "cut", "", 0644, "gnu");
	buf_printf(&pax, "130 path=%s\n", longer);
	entry(&tar, 'x', "pax", "", 0, buf_str(&pax));
	entry(&tar, '0', "cut", "", 0644, "pax");
	entry(&tar, '0', "short", "", 0644, "s");
	CHECK_INT(unpack(&tar, 512, &u, &e), 0);
	CHECK_STR(content(name), "gnu");
	CHECK_STR(content(longer), "pax");
	CHECK_STR(content("short"), "s");
	CHECK_STR(content("cut"), "(none)");
	end();
}

TEST(an_invalid_archive_is_rejected)
{
	auto_buf struct buf junk = { 0 }, half = { 0 }, huge = { 0 };
	struct untar u;
	struct err e;

	begin();
	for (int i = 0; i < 1000; i++)
		buf_puts(&junk, "junk");
	CHECK_INT(unpack(&junk, 512, &u, &e), -1);
	CHECK_INT(e.kind, ERR_INVALID);
	entry(&half, '0', "half", "", 0644, "0123456789");
	buf_cut(&half, 512 + 5);
	untar_init(&u, root);
	CHECK_INT(untar_take(&u, half.p, half.len, &e), 0);
	CHECK_INT(untar_end(&u, &e), -1);
	untar_fini(&u);
	entry(&huge, 'L', "x", "", 0, "y");
	memcpy(huge.p + 124, "77777777777", 11); /* the checksum is wrong, too */
	CHECK_INT(unpack(&huge, 512, &u, &e), -1);
	end();
}
