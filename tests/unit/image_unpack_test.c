/* image_unpack_test.c - archives of images, among them hostile ones: what they may write, and that
 * nothing outside of the layer changes. Each archive is made here, block by block. */
#include "keeper/image_export.h"
#include "keeper/image_process.h"
#include "keeper/image_tree.h"
#include "keeper/layer_image.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 512, UID_BASE = 1900000000 };

static char top[64];
static struct buf tar;
static struct image_sum sum;
static struct err e;

/* ---- making archives ---- */

struct header {
	char type;
	const char *name, *link;
	unsigned mode, uid, gid;
	long long size, mtime;
	const char *content; /* NULL: size is only declared */
	unsigned major, minor;
};

static void add_zeros(size_t n)
{
	memset(buf_space(&tar, n), 0, n);
	buf_grew(&tar, n);
}

static void add_padded(const void *bytes, size_t n)
{
	buf_add(&tar, bytes, n);
	add_zeros((BLOCK - n % BLOCK) % BLOCK);
}

static void add_header(const struct header *h)
{
	char b[BLOCK] = { 0 };
	unsigned check = 0;

	snprintf(b, 100, "%s", h->name);
	snprintf(b + 100, 8, "%07o", h->mode);
	snprintf(b + 108, 8, "%07o", h->uid);
	snprintf(b + 116, 8, "%07o", h->gid);
	snprintf(b + 124, 12, "%011llo", h->size);
	snprintf(b + 136, 12, "%011llo", h->mtime);
	memset(b + 148, ' ', 8);
	b[156] = h->type;
	snprintf(b + 157, 100, "%s", h->link ? h->link : "");
	memcpy(b + 257, "ustar\00000", 8);
	snprintf(b + 329, 8, "%07o", h->major);
	snprintf(b + 337, 8, "%07o", h->minor);
	for (unsigned i = 0; i < BLOCK; i++)
		check += (unsigned char)b[i];
	snprintf(b + 148, 8, "%06o", check);
	buf_add(&tar, b, BLOCK);
}

static void add(struct header h)
{
	if (!h.mode)
		h.mode = h.type == '5' ? 0755 : 0644;
	if (h.content && !h.size)
		h.size = (long long)strlen(h.content);
	if (!h.mtime)
		h.mtime = 1000;
	add_header(&h);
	if (h.content)
		add_padded(h.content, (size_t)h.size);
}
#define ADD(t, n, ...) add((struct header){ .type = (t), .name = (n), ##__VA_ARGS__ })
static void add_file(const char *name, const char *content)
{
	ADD('0', name, .content = content);
}
static void add_dir(const char *name)
{
	ADD('5', name);
}
static void add_link(const char *name, const char *target)
{
	ADD('2', name, .link = target);
}

/* A record of an extended header, for the next entry. */
static void add_pax(const char *key, const char *value, size_t n)
{
	auto_buf struct buf text = { 0 };
	size_t len = strlen(key) + n + 3, digits = 1;
	char record[64];

	for (size_t all = len + digits, m = 10; all >= m; m *= 10)
		all = len + ++digits;
	buf_printf(&text, "%zu %s=", len + digits, key);
	buf_add(&text, value, n);
	buf_putc(&text, '\n');
	snprintf(record, sizeof(record), "PaxHeaders/x");
	add_header(&(struct header){
		.type = 'x', .name = record, .mode = 0644, .size = (long long)text.len });
	add_padded(text.p, text.len);
}

static void add_end(void)
{
	add_zeros(2 * BLOCK);
}

/* ---- unpacking ---- */

static struct image_limits limits = { 1 << 20, 1000 };

static void begin(void)
{
	buf_fini(&tar);
	limits = (struct image_limits){ 1 << 20, 1000 };
	snprintf(top, sizeof(top), "/tmp/image.XXXXXX");
	if (!mkdtemp(top) || chdir(top) < 0 || mkdir("in", 0700) < 0 || mkdir("outside", 0700) < 0)
		abort();
	auto_fd int fd = open("outside/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "kept", 4) != 4)
		abort();
}

static int outside_is_unchanged(void)
{
	auto_fd int fd = open("outside/file", O_RDONLY | O_CLOEXEC);
	char text[8] = "";
	struct stat st, dir;

	return fd >= 0 && read(fd, text, sizeof(text)) == 4 && !memcmp(text, "kept", 4) &&
	       fstat(fd, &st) == 0 && st.st_nlink == 1 && st.st_uid == 0 &&
	       (st.st_mode & 07777) == 0600 && stat("outside", &dir) == 0 && dir.st_nlink == 2 &&
	       (dir.st_mode & 07777) == 0700;
}

static void end(void)
{
	char command[128];

	if (chdir("/") < 0)
		abort();
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	if (system(command) != 0)
		abort();
	buf_fini(&tar);
}

static int unpack_bytes(const void *bytes, size_t n)
{
	auto_fd int archive = memfd_create("archive", MFD_CLOEXEC),
		    dir = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	e = (struct err){ 0 };
	if (archive < 0 || dir < 0 || write(archive, bytes, n) != (ssize_t)n ||
	    lseek(archive, 0, SEEK_SET) < 0)
		abort();
	return image_process_unpack(dir, archive, UID_BASE, &limits, &sum, &e);
}

static int unpack(void)
{
	int done = unpack_bytes(tar.p ? tar.p : "", tar.len);

	if (done < 0 && getenv("VERBOSE"))
		printf("# %s\n", e.msg);
	return done;
}

static struct stat look(const char *path)
{
	struct stat st = { 0 };

	(void)!lstat(path, &st);
	return st;
}

static const char *content(const char *path)
{
	static char text[256];
	auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	text[n < 0 ? 0 : n] = 0;
	return n < 0 ? "(none)" : text;
}

static const char *link_of(const char *path)
{
	static char text[256];
	ssize_t n = readlink(path, text, sizeof(text) - 1);

	text[n < 0 ? 0 : n] = 0;
	return n < 0 ? "(none)" : text;
}

static int is_opaque(const char *path)
{
	char value[4] = "";

	return lgetxattr(path, IMAGE_TREE_OPAQUE, value, sizeof(value)) == 1 && *value == 'y';
}

static int is_whiteout(const char *path)
{
	struct stat st = look(path);

	return layer_image_is_whiteout(&st);
}

static unsigned entries(const char *dir)
{
	char command[128];
	unsigned n = 0;
	FILE *f;

	snprintf(command, sizeof(command), "find '%s' -mindepth 1 | wc -l", dir);
	f = popen(command, "re");
	if (!f || fscanf(f, "%u", &n) != 1)
		abort();
	pclose(f);
	return n;
}

#define NEED_ROOT                                                                                  \
	if (geteuid() != 0)                                                                        \
	SKIP("needs root")
#define CHECK_REJECTED(words)                                                                      \
	do {                                                                                       \
		CHECK_INT(unpack(), -1);                                                           \
		if (!strstr(e.msg, words)) {                                                       \
			printf("# message: %s\n", e.msg);                                          \
			CHECK(!"the message has the words " words);                                \
		}                                                                                  \
		CHECK(outside_is_unchanged());                                                     \
	} while (0)

/* ---- what is kept ---- */

TEST(owners_modes_times_links_and_content_are_kept)
{
	struct stat st;

	NEED_ROOT;
	begin();
	add_dir("./");
	ADD('5', "usr/bin", .mode = 0750, .uid = 7, .gid = 65534, .mtime = 1234);
	ADD('0', "usr/bin/sudo", .mode = 04755, .content = "x", .mtime = 77);
	ADD('0', "usr/bin/wall", .mode = 02755, .gid = 5, .content = "w");
	ADD('1', "usr/bin/edit", .link = "usr/bin/sudo");
	ADD('2', "bin", .link = "usr/bin", .uid = 9);
	ADD('0', "tmp/empty", .mode = 0, .content = "");
	ADD('6', "run/pipe", .mode = 0620, .uid = 3);
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK_INT(sum.files, 8);
	CHECK_INT(sum.bytes, 2);
	st = look("in/usr/bin");
	CHECK_INT(st.st_mode, S_IFDIR | 0750);
	CHECK_INT(st.st_uid, 7);
	CHECK_INT(st.st_gid, 65534);
	CHECK_INT(st.st_mtime, 1234); /* although files were added later */
	st = look("in/usr");
	CHECK_INT(st.st_mode, S_IFDIR | 0755);
	CHECK_INT(st.st_mtime, 0);
	st = look("in/usr/bin/sudo");
	CHECK_INT(st.st_mode, S_IFREG | 04755);
	CHECK_INT(st.st_uid, 0);
	CHECK_INT(st.st_nlink, 2);
	CHECK_INT(st.st_mtime, 77);
	CHECK_INT(look("in/usr/bin/edit").st_ino, st.st_ino);
	CHECK_INT(look("in/usr/bin/wall").st_mode, S_IFREG | 02755);
	CHECK_STR(link_of("in/bin"), "usr/bin");
	CHECK_INT(look("in/bin").st_uid, 9);
	CHECK_INT(look("in/bin").st_mtime, 1000);
	CHECK_INT(look("in/run/pipe").st_mode, S_IFIFO | 0620);
	CHECK(outside_is_unchanged());
	end();
}

TEST(the_diff_id_is_the_hash_of_the_archive_without_compression)
{
	static char packed[1 << 16];
	uLongf n = sizeof(packed);
	z_stream z = { 0 };
	struct sha256 s;
	uint8_t digest[SHA256_BYTES];
	char hex[65];

	NEED_ROOT;
	begin();
	add_file("a", "hello");
	add_end();
	sha256_init(&s);
	sha256_add(&s, tar.p, tar.len);
	sha256_end(&s, digest);
	hex_encode(hex, digest, sizeof(digest));
	CHECK_INT(unpack(), 0);
	CHECK_STR(sum.diff, hex);
	CHECK_INT(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, 0), Z_OK);
	z.next_in = (Bytef *)tar.p;
	z.avail_in = (uInt)tar.len;
	z.next_out = (Bytef *)packed;
	z.avail_out = (uInt)n;
	CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
	n = z.total_out;
	deflateEnd(&z);
	CHECK_INT(unpack_bytes(packed, n), 0);
	CHECK_STR(sum.diff, hex);
	CHECK_STR(content("in/a"), "hello");
	/* Cut anywhere, or continued, it is damaged. */
	for (uLongf cut = 0; cut < n; cut++)
		CHECK_INT(unpack_bytes(packed, cut), -1);
	memcpy(packed + n, "rubbish", 7);
	CHECK_INT(unpack_bytes(packed, n + 7), -1);
	CHECK(strstr(e.msg, "after the end"));
	end();
}

TEST(an_archive_may_be_compressed_with_zstd)
{
	auto_buf struct buf packed = { 0 };
	uint32_t size, block;

	NEED_ROOT;
	begin();
	add_file("a", "hello");
	add_end();
	/* A frame with one block that is stored as it is. */
	size = (uint32_t)tar.len;
	block = size << 3 | 1;
	buf_add(&packed, "\x28\xb5\x2f\xfd\xa0", 5);
	for (unsigned i = 0; i < 4; i++)
		buf_putc(&packed, (char)(size >> 8 * i));
	for (unsigned i = 0; i < 3; i++)
		buf_putc(&packed, (char)(block >> 8 * i));
	buf_add(&packed, tar.p, tar.len);
	CHECK_INT(unpack_bytes(packed.p, packed.len), 0);
	CHECK_STR(content("in/a"), "hello");
	CHECK_INT(unpack_bytes(packed.p, packed.len - 1), -1);
	CHECK_INT(unpack_bytes(packed.p, 12), -1);
	end();
}

TEST(names_are_bytes)
{
	NEED_ROOT;
	begin();
	add_pax("path", "e\xcc\x81-decomposed", 14);
	add_file("x", "1");
	add_pax("path", "\xc3\xa9-composed", 11);
	add_file("x", "2");
	add_pax("path", "\xff\xfe", 2);
	add_file("x", "3");
	add_file("Case", "4");
	add_file("case", "5");
	add_file("CASE", "6");
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK_STR(content("in/e\xcc\x81-decomposed"), "1");
	CHECK_STR(content("in/\xc3\xa9-composed"), "2");
	CHECK_STR(content("in/\xff\xfe"), "3");
	CHECK_STR(content("in/Case"), "4");
	CHECK_STR(content("in/case"), "5");
	CHECK_STR(content("in/CASE"), "6");
	CHECK_INT(entries("in"), 6);
	end();
}

TEST(user_attributes_are_kept_and_others_are_dropped)
{
	char value[16] = "";

	NEED_ROOT;
	begin();
	add_pax("SCHILY.xattr.user.note", "text", 4);
	add_file("a", "1");
	add_pax("SCHILY.xattr.security.capability", "\1\0\0\2", 4);
	add_file("b", "1");
	add_pax("SCHILY.xattr.trusted.overlay.opaque", "y", 1);
	add_dir("c");
	add_pax("SCHILY.xattr.user.overlay.opaque", "y", 1);
	add_dir("d");
	add_pax("SCHILY.xattr.user.overlay.redirect", "/etc", 4);
	add_dir("f");
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK_INT(lgetxattr("in/a", "user.note", value, sizeof(value)), 4);
	CHECK_STR(value, "text");
	CHECK_INT(llistxattr("in/b", value, 0), 0);
	CHECK_INT(llistxattr("in/c", value, 0), 0);
	CHECK_INT(llistxattr("in/d", value, 0), 0);
	CHECK_INT(llistxattr("in/f", value, 0), 0);
	end();
}

TEST(holes_are_kept_and_count)
{
	static const char *const records[] = { "GNU.sparse.major=0", "GNU.sparse.minor=1",
					       "GNU.sparse.size=1048576",
					       "GNU.sparse.map=0,1,1048575,1" };
	auto_buf struct buf text = { 0 };
	struct stat st;

	NEED_ROOT;
	begin();
	for (unsigned i = 0; i < ARRAY_LEN(records); i++)
		buf_printf(&text, "%zu %s\n", strlen(records[i]) + 4, records[i]);
	add_header(&(struct header){
		.type = 'x', .name = "PaxHeaders/x", .mode = 0644, .size = (long long)text.len });
	add_padded(text.p, text.len);
	add_file("sparse", "ab");
	add_end();
	CHECK_INT(unpack(), 0);
	st = look("in/sparse");
	CHECK_INT(st.st_size, 1048576);
	CHECK(st.st_blocks * 512 < 1048576);
	CHECK_INT(sum.bytes, 1048576);
	limits.bytes_most = 1048575;
	CHECK_REJECTED("more than 1048575 bytes");
	end();
}

/* ---- what an entry replaces ---- */

TEST(a_later_entry_replaces_an_earlier_one)
{
	NEED_ROOT;
	begin();
	add_file("a", "old");
	ADD('1', "b", .link = "a");
	add_file("a", "new");
	add_link("c", "outside");
	add_file("c", "file");
	add_dir("d");
	add_file("d/x", "1");
	add_dir("d");
	add_dir("f");
	add_file("f/deep/er", "1");
	add_file("f", "file instead");
	add_file("g", "1");
	add_dir("g");
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK_STR(content("in/a"), "new");
	CHECK_STR(content("in/b"), "old");
	CHECK_STR(content("in/c"), "file");
	CHECK_STR(content("in/d/x"), "1");
	CHECK(!is_opaque("in/d"));
	CHECK_STR(content("in/f"), "file instead");
	CHECK(S_ISDIR(look("in/g").st_mode) && is_opaque("in/g"));
	end();
}

TEST(links_are_followed_within_the_layer_only)
{
	NEED_ROOT;
	begin();
	add_dir("real");
	add_link("lib", "real");
	add_file("lib/a", "1");
	add_link("abs", "/real");
	add_file("abs/b", "2");
	add_link("up", "../../../../../real");
	add_file("up/c", "3");
	add_link("esc", "/proc/self/root/tmp");
	add_file("esc/d", "4");
	add_link("gone", "not/there/yet");
	add_file("gone/e", "5");
	add_link("dots", "real/../real/./");
	add_file("dots/f", "6");
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK_STR(content("in/real/a"), "1");
	CHECK_STR(content("in/real/b"), "2");
	CHECK_STR(content("in/real/c"), "3");
	CHECK_STR(content("in/proc/self/root/tmp/d"), "4");
	CHECK_STR(link_of("in/esc"), "/proc/self/root/tmp");
	CHECK_STR(content("in/not/there/yet/e"), "5");
	CHECK_STR(content("in/real/f"), "6");
	CHECK(outside_is_unchanged());
	end();
}

/* ---- deletions ---- */

TEST(whiteouts_become_deletions_of_an_overlay)
{
	NEED_ROOT;
	begin();
	add_file("etc/.wh.motd", "");
	add_file("opt/.wh..wh..opq", "");
	add_file("opt/kept", "1");
	add_file(".wh.srv", "");
	/* A folder that this layer has hides the one below it, in either order. */
	add_file(".wh.first", "");
	add_file("first/a", "1");
	add_file("second/a", "1");
	add_file(".wh.second", "");
	/* A file does so anyway. */
	add_file("third", "1");
	add_file(".wh.third", "");
	add_file(".wh.fourth", "");
	add_file("fourth", "1");
	add_file(".wh..wh.plnk", "");
	add_file(".wh..wh.aufs", "");
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK(is_whiteout("in/etc/motd"));
	CHECK(is_whiteout("in/srv"));
	CHECK(is_opaque("in/opt") && !strcmp(content("in/opt/kept"), "1"));
	CHECK(is_opaque("in/first") && !strcmp(content("in/first/a"), "1"));
	CHECK(is_opaque("in/second") && !strcmp(content("in/second/a"), "1"));
	CHECK_STR(content("in/third"), "1");
	CHECK_STR(content("in/fourth"), "1");
	CHECK(!is_opaque("in/etc"));
	CHECK_INT(entries("in"), 11);
	end();
}

TEST(the_root_can_be_opaque)
{
	NEED_ROOT;
	begin();
	add_file(".wh..wh..opq", "");
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK(is_opaque("in"));
	end();
}

TEST(deletions_need_a_name_and_have_nothing_below)
{
	static const char *const bad[] = { ".wh.", "a/.wh.", ".wh...", ".wh.x/y",
					   "a/.wh..wh..opq/b" };

	NEED_ROOT;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		begin();
		add_file(bad[i], "");
		add_end();
		CHECK_REJECTED("deletion");
		end();
	}
}

/* ---- hostile ones ---- */

TEST(names_that_leave_the_root_are_rejected)
{
	static const char *const bad[] = {
		"../outside/file", "a/../../outside/file", "..",
		"/../x",           "./../outside/file",    "a/b/../../../x"
	};

	NEED_ROOT;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		begin();
		add_file(bad[i], "bad");
		add_end();
		CHECK_REJECTED("leaves the image's root");
		CHECK(strstr(e.msg, bad[i]));
		end();
	}
}

TEST(absolute_names_lie_below_the_root)
{
	NEED_ROOT;
	begin();
	add_file("/etc/passwd", "1");
	add_file("//tmp///x", "2");
	add_file("a/../b/./c", "3");
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK_STR(content("in/etc/passwd"), "1");
	CHECK_STR(content("in/tmp/x"), "2");
	CHECK_STR(content("in/b/c"), "3");
	CHECK_INT(entries("in"), 6);
	end();
}

TEST(links_to_the_outside_reach_nothing)
{
	char inside[128];

	NEED_ROOT;
	begin();
	snprintf(inside, sizeof(inside), "%s/outside", top);
	add_link("abs", inside);
	add_file("abs/file", "bad");
	add_link("rel", "../outside");
	add_file("rel/file", "bad");
	add_link("self", "/proc/self/cwd");
	add_file("self/x", "bad");
	add_link("fd", "/proc/self/fd/3/../../../../../../../tmp");
	add_file("fd/y", "bad");
	add_link("last", "../outside/file");
	add_file("last", "replaces the link");
	add_dir("abs");
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK(outside_is_unchanged());
	CHECK_STR(content("in/outside/file"), "bad");
	CHECK_STR(content("in/last"), "replaces the link");
	CHECK(S_ISDIR(look("in/abs").st_mode));
	end();
}

TEST(hard_links_need_a_file_of_this_layer)
{
	static const char *const bad[] = { "/etc/passwd", "outside/file", "../outside/file",
					   "missing",     "dir",          "",
					   "gone",        "link/passwd" };
	NEED_ROOT;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		begin();
		add_dir("dir");
		add_link("link", "/etc");
		add_file(".wh.gone", "");
		ADD('1', "new", .link = bad[i]);
		add_end();
		CHECK_REJECTED("hard link");
		end();
	}
	begin();
	add_link("link", "/etc/passwd");
	ADD('1', "new", .link = "link"); /* of the link itself */
	ADD('1', "new", .link = "new");
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK_STR(link_of("in/new"), "/etc/passwd");
	CHECK_INT(look("in/new").st_nlink, 2);
	end();
}

TEST(circular_links_are_rejected)
{
	NEED_ROOT;
	begin();
	add_link("a", "b");
	add_link("b", "a");
	add_file("a/x", "1");
	add_end();
	CHECK_REJECTED("circle");
	end();
}

TEST(nothing_lies_below_a_file)
{
	NEED_ROOT;
	begin();
	add_file("a", "1");
	add_file("a/b", "1");
	add_end();
	CHECK_REJECTED("not a folder");
	CHECK(strstr(e.msg, "'a/b'"));
	end();
}

TEST(device_nodes_are_left_out_and_counted)
{
	NEED_ROOT;
	begin();
	ADD('3', "dev/null", .major = 1, .minor = 3);
	ADD('4', "dev/sda", .major = 8);
	ADD('3', "usr/hidden"); /* 0:0: would be a deletion */
	add_file("a", "1");
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK_INT(sum.skipped, 3);
	CHECK_INT(entries("in"), 1);
	end();
}

TEST(owners_that_a_box_has_not_are_rejected)
{
	static const unsigned bad[] = { 65533, 65533, 65536, 65536, 1000000, 2097151 };

	NEED_ROOT;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		begin();
		ADD('0', "a", .content = "1", .uid = i % 2 ? bad[i] : 0, .gid = i % 2 ? 0 : bad[i]);
		add_end();
		CHECK_REJECTED("its owner or group is");
		end();
	}
	begin();
	add_pax("uid", "-1", 2);
	add_file("a", "1");
	add_end();
	CHECK_REJECTED("its owner or group is");
	end();
}

TEST(the_root_stays_a_folder)
{
	NEED_ROOT;
	begin();
	add_link(".", "/tmp");
	add_end();
	CHECK_REJECTED("root must be a folder");
	end();
}

TEST(long_and_deep_names_are_rejected)
{
	static char name[5000];

	NEED_ROOT;
	begin();
	memset(name, 'a', 256);
	add_pax("path", name, 256);
	add_file("x", "1");
	add_end();
	CHECK_REJECTED("more than 255 bytes");
	end();

	begin();
	for (unsigned i = 0; i < 4200; i++)
		name[i] = i % 200 == 199 ? '/' : 'a';
	add_pax("path", name, 4200);
	add_file("x", "1");
	add_end();
	CHECK_REJECTED("more than 4095 bytes");
	end();

	begin();
	for (unsigned i = 0; i < 300; i++)
		name[i] = i % 2 ? '/' : 'd';
	add_pax("path", name, 299);
	add_file("x", "1");
	add_end();
	CHECK_REJECTED("folders deep");
	end();

	/* By links, too: each doubles the depth. */
	begin();
	add_link("l", "d/d/d/d/d/d/d/d/d/d/l2");
	for (unsigned i = 2; i < 9; i++) {
		snprintf(name, 64, "d/d/d/d/d/d/d/d/d/d/l%u", i);
		snprintf(name + 64, 64, "d/d/d/d/d/d/d/d/d/d/l%u", i + 1);
		add_link(name, name + 64);
	}
	add_file("l/x", "1");
	add_end();
	(void)!unpack();
	CHECK(outside_is_unchanged());
	end();
}

TEST(more_entries_or_bytes_than_allowed_are_rejected)
{
	char name[32];

	NEED_ROOT;
	begin();
	limits.files_most = 100;
	for (unsigned i = 0; i < 101; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		add_file(name, "");
	}
	add_end();
	CHECK_REJECTED("more than 100 entries");
	end();

	begin();
	limits.bytes_most = 9;
	add_file("a", "12345");
	add_file("b", "12345");
	add_end();
	CHECK_REJECTED("more than 9 bytes");
	CHECK(strstr(e.msg, "'b'"));
	end();

	/* A size that is only declared. */
	begin();
	ADD('0', "huge", .size = 077777777777);
	CHECK_REJECTED("more than 1048576 bytes");
	end();
}

/* Zeros compress a thousandfold. */
static size_t bomb(char *packed, size_t room, size_t bytes)
{
	static char zeros[1 << 16];
	z_stream z = { 0 };

	if (deflateInit2(&z, 9, Z_DEFLATED, 31, 9, 0) != Z_OK)
		abort();
	z.next_out = (Bytef *)packed;
	z.avail_out = (uInt)room;
	z.next_in = (Bytef *)tar.p;
	z.avail_in = (uInt)tar.len;
	while (deflate(&z, Z_NO_FLUSH) == Z_OK && z.avail_in)
		;
	for (; bytes; bytes -= sizeof(zeros)) {
		z.next_in = (Bytef *)zeros;
		z.avail_in = sizeof(zeros);
		if (deflate(&z, Z_NO_FLUSH) != Z_OK)
			abort();
	}
	if (deflate(&z, Z_FINISH) != Z_STREAM_END)
		abort();
	deflateEnd(&z);
	return room - z.avail_out;
}

TEST(compressed_bombs_are_rejected)
{
	static char packed[1 << 20];
	size_t n;

	NEED_ROOT;
	begin();
	limits = (struct image_limits){ 1 << 20, 10 };
	ADD('0', "bomb", .size = 64 << 20);
	n = bomb(packed, sizeof(packed), 64 << 20);
	CHECK_INT(unpack_bytes(packed, n), -1);
	CHECK(strstr(e.msg, "more than 1048576 bytes"));
	/* After the end of the archive. */
	buf_fini(&tar);
	add_file("a", "1");
	add_end();
	n = bomb(packed, sizeof(packed), 64 << 20);
	CHECK_INT(unpack_bytes(packed, n), -1);
	CHECK(strstr(e.msg, "larger than"));
	/* In what no file has: the body of a folder. */
	buf_fini(&tar);
	add_header(&(struct header){ .type = 'x', .name = "x", .size = 64 << 20 });
	n = bomb(packed, sizeof(packed), 64 << 20);
	CHECK_INT(unpack_bytes(packed, n), -1);
	/* Compressed twice. */
	buf_fini(&tar);
	add_file("a", "1");
	add_end();
	n = bomb(packed, sizeof(packed), 0);
	buf_fini(&tar);
	buf_add(&tar, packed, n);
	n = bomb(packed, sizeof(packed), 0);
	CHECK_INT(unpack_bytes(packed, n), -1);
	CHECK(strstr(e.msg, "more than once"));
	CHECK(outside_is_unchanged());
	end();
}

TEST(every_truncation_of_an_archive_is_an_error)
{
	size_t whole, step;

	NEED_ROOT;
	begin();
	add_dir("d");
	add_pax("mtime", "1.5", 3);
	add_file("d/a", "hello");
	add_link("d/l", "a");
	whole = tar.len;
	add_end();
	step = 97; /* every byte takes a process each; blocks are tried on both sides */
	for (size_t cut = 0; cut < whole; cut += step)
		CHECK_INT(unpack_bytes(tar.p, cut), -1);
	for (size_t cut = BLOCK; cut < whole + 2 * BLOCK; cut += BLOCK) {
		CHECK_INT(unpack_bytes(tar.p, cut - 1), -1);
		CHECK_INT(unpack_bytes(tar.p, cut), -1);
		CHECK_INT(unpack_bytes(tar.p, cut + 1), -1);
	}
	CHECK_INT(unpack_bytes(tar.p, tar.len), 0);
	end();
}

TEST(bytes_after_the_end_are_rejected_and_zeros_are_not)
{
	NEED_ROOT;
	begin();
	add_file("a", "1");
	add_end();
	add_zeros(20 * BLOCK);
	CHECK_INT(unpack(), 0);
	add_file("b", "hidden");
	CHECK_REJECTED("after the end");
	end();
}

TEST(other_formats_are_rejected)
{
	static const char *const bad[] = { "#mtree\n./a type=file\n",
					   "!<arch>\nx",
					   "070701000000000000",
					   "PK\3\4",
					   "BZh91AY&SY",
					   ("\xfd"
					    "7zXZ"),
					   "hello" };

	NEED_ROOT;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		begin();
		buf_puts(&tar, bad[i]);
		CHECK_REJECTED("archive");
		CHECK_INT(entries("in"), 0);
		end();
	}
	begin();
	CHECK_REJECTED("archive");
	end();
}

TEST(an_archive_without_entries_is_an_empty_layer)
{
	NEED_ROOT;
	begin();
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK_INT(entries("in"), 0);
	CHECK_INT(look("in").st_mode, S_IFDIR | 0755);
	end();
}

TEST(damaged_headers_are_rejected)
{
	NEED_ROOT;
	begin();
	add_file("a", "1");
	add_file("b", "2");
	add_end();
	tar.p[2 * BLOCK + 1] ^= 1;
	CHECK_REJECTED("damaged archive");
	end();
}

TEST(a_name_ends_at_a_nul_byte)
{
	NEED_ROOT;
	begin();
	add_pax("path", "a\0/../../../outside/file", 24);
	add_file("x", "1");
	add_end();
	(void)!unpack();
	CHECK(outside_is_unchanged());
	CHECK(entries("in") <= 1);
	end();
}

/* ---- export ---- */

static int export_to(const char *path, struct layer_tree_sum *figures)
{
	auto_fd int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
		    dir = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return image_export(dir, out, figures, &e);
}

static void read_archive(const char *path)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	buf_fini(&tar);
	while ((n = read(fd, buf_space(&tar, 4096), 4096)) > 0)
		buf_grew(&tar, (size_t)n);
}

static int layer_id(struct layer_tree_sum *out)
{
	auto_fd int dir = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return layer_image_check(dir, out, &e);
}

TEST(an_exported_layer_is_the_same_layer_when_it_is_unpacked)
{
	static char name[300], link[200];
	struct layer_tree_sum before, after, figures;
	auto_buf struct buf first = { 0 };

	NEED_ROOT;
	begin();
	memset(name, 'n', sizeof(name) - 1);
	name[100] = name[200] = '/';
	memset(link, 'l', sizeof(link) - 1);
	ADD('5', "./", .mode = 0711, .uid = 5, .mtime = 99);
	add_pax("path", name, strlen(name));
	add_pax("mtime", "1234.000000007", 14);
	ADD('0', "x", .content = "short", .mode = 06711, .uid = 65534, .gid = 3);
	add_pax("mtime", "-1.25", 5);
	add_file("old", "1");
	add_pax("mtime", "99999999999", 11);
	add_file("future", "1");
	add_pax("linkpath", link, strlen(link));
	add_link("long-link", "x");
	ADD('1', "hard", .link = "old");
	add_pax("SCHILY.xattr.user.b", "two", 3);
	add_file("attributes", "1");
	add_pax("SCHILY.xattr.user.a", "1\n\0=", 4);
	add_dir("attributes.d");
	add_file("etc/.wh.gone", "");
	add_file("opt/.wh..wh..opq", "");
	ADD('6', "pipe");
	add_pax("path", "e\xcc\x81\xff", 4);
	add_file("x", "1");
	add_end();
	CHECK_INT(unpack(), 0);
	CHECK_INT(layer_id(&before), 0);
	CHECK_INT(export_to("one.tar", &figures), 0);
	CHECK_INT(figures.bytes, before.bytes);
	CHECK_INT(figures.files, before.files + 1); /* "opaque" is an entry */
	CHECK_INT(system("rm -rf in && mkdir in"), 0);
	read_archive("one.tar");
	buf_add(&first, tar.p, tar.len);
	CHECK_INT(unpack(), 0);
	CHECK_INT(layer_id(&after), 0);
	CHECK_STR(after.id, before.id);
	CHECK_INT(export_to("two.tar", &figures), 0);
	read_archive("two.tar");
	CHECK(tar.len == first.len && !memcmp(tar.p, first.p, tar.len));
	end();
}

/* ---- the process ---- */

/* The only child of a process; 0: it has none yet. */
static int child_of(int pid)
{
	char path[64];
	int child = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &child) != 1)
		child = 0;
	if (f)
		fclose(f);
	return child;
}

static void read_status(int pid, char *out, size_t size)
{
	char path[64];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	n = f ? fread(out, 1, size - 1, f) : 0;
	out[n] = 0;
	if (f)
		fclose(f);
}

static int shares_namespace(int pid, const char *name)
{
	char path[64], own[64] = "", theirs[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	if (readlink(path, theirs, sizeof(theirs) - 1) < 0)
		return 1;
	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	if (readlink(path, own, sizeof(own) - 1) < 0)
		return 1;
	return !strcmp(own, theirs);
}

TEST(the_process_that_unpacks_has_nothing_but_the_layer)
{
	static const char *const namespaces[] = { "user", "mnt", "net",   "pid",
						  "ipc",  "uts", "cgroup" };
	char status[4096] = "", path[64], word[64];
	int pair[2], pid, at = 0, result = -1;

	NEED_ROOT;
	begin();
	add_file("a", "1");
	add_end();
	CHECK_INT(pipe2(pair, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		int dir = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		close(pair[1]);
		_exit(image_process_unpack(dir, pair[0], UID_BASE, &limits, &sum, &e) < 0);
	}
	close(pair[0]);
	/* It has confined itself, and waits for the archive. */
	for (unsigned i = 0; i < 3000 && !strstr(status, "Seccomp:\t2"); i++) {
		usleep(10000);
		at = child_of(pid);
		if (at)
			read_status(at, status, sizeof(status));
	}
	CHECK(strstr(status, "Seccomp:\t2"));
	CHECK(strstr(status, "NoNewPrivs:\t1"));
	CHECK(strstr(status, "CapEff:\t000000000000001b"));
	CHECK(strstr(status, "CapPrm:\t000000000000001b"));
	CHECK(strstr(status, "CapBnd:\t000000000000001b"));
	CHECK(strstr(status, "CapInh:\t0000000000000000"));
	CHECK(strstr(status, "CapAmb:\t0000000000000000"));
	snprintf(word, sizeof(word), "Uid:\t%u\t%u\t%u\t%u", UID_BASE, UID_BASE, UID_BASE,
		 UID_BASE);
	CHECK(strstr(status, word));
	for (unsigned i = 0; i < ARRAY_LEN(namespaces); i++)
		CHECK(!shares_namespace(at, namespaces[i]));
	snprintf(path, sizeof(path), "/proc/%d/root/", at);
	CHECK_INT(entries(path), 0);
	CHECK_INT(write(pair[1], tar.p, tar.len), (ssize_t)tar.len);
	close(pair[1]);
	CHECK_INT(waitpid(pid, &result, 0), pid);
	CHECK_INT(result, 0);
	CHECK_STR(content("in/a"), "1");
	end();
}
