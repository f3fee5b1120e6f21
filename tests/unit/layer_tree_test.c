/* layer_tree_test.c - the files of a layer: what may be written, messages of a hostile worker, and that
 * the id of a tree depends on its content only. */
#include "keeper/layer_import.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tap.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[64];
static int root = -1;

static struct layer_tree begin(void)
{
	strcpy(top, "/tmp/tree.XXXXXX");
	if (!mkdtemp(top))
		abort();
	root = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return (struct layer_tree){ .root = root, .bytes_most = 1 << 20, .files_most = 1000 };
}

static void end(void)
{
	char command[128];

	own_close_fd(&root);
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	if (system(command) != 0)
		abort();
}

static int write_file(struct layer_tree *t, const char *path, int executable, const char *text)
{
	auto_fd int fd = -1;
	struct err e;

	if (layer_tree_file(t, path, executable, &fd, &e) < 0)
		return -1;
	return layer_tree_bytes(t, fd, text, strlen(text), &e);
}

/* ---- names ---- */

TEST(layer_paths_are_relative_normal_and_below_allowed_folders)
{
	static const char *const good[] = { "usr",
					    "usr/local/lib/python3.11/dist-packages/a.py",
					    "opt/x",
					    "node_modules/@scope/name",
					    "node_modules/.bin/x",
					    ".cargo/config.toml",
					    "var/lib/gems",
					    "usr/...",
					    "usr/..a" };
	static const char *const bad[] = { "",         "/",      "/usr",
					   "usr/",     "usr//a", ".",
					   "..",       "usr/..", "usr/../etc/passwd",
					   "usr/.",    "etc",    "etc/passwd",
					   "dev/null", "proc",   "home/user",
					   "tmp/x",    "bin",    "usrx",
					   "./usr" };
	char deep[400] = "usr", name[300] = "usr/";

	for (unsigned i = 0; i < ARRAY_LEN(good); i++)
		CHECK(layer_tree_path_ok(good[i]));
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!layer_tree_path_ok(bad[i]));
	for (unsigned i = 1; i < TREE_DEPTH; i++)
		strcat(deep, "/a");
	CHECK(layer_tree_path_ok(deep));
	strcat(deep, "/a");
	CHECK(!layer_tree_path_ok(deep));
	memset(name + 4, 'a', 256);
	CHECK(!layer_tree_path_ok(name));
}

TEST(layer_ids_are_64_hexadecimal_digits)
{
	char id[72];

	memset(id, 'a', sizeof(id));
	CHECK(!layer_tree_id_ok(id));
	id[64] = 0;
	CHECK(layer_tree_id_ok(id));
	id[3] = 'A';
	CHECK(!layer_tree_id_ok(id));
	id[3] = '/';
	CHECK(!layer_tree_id_ok(id));
	id[63] = 0;
	CHECK(!layer_tree_id_ok(id));
	CHECK(!layer_tree_id_ok(""));
	CHECK(!layer_tree_id_ok("../../etc/passwd"));
}

/* ---- the writer ---- */

TEST(nothing_is_written_through_a_link)
{
	struct layer_tree t = begin();
	struct err e;
	int fd;

	CHECK_INT(layer_tree_dir(&t, "usr", &e), 0);
	CHECK_INT(layer_tree_link(&t, "usr/out", "/tmp", &e), 0);
	CHECK_INT(layer_tree_link(&t, "usr/up", "..", &e), 0);
	CHECK_INT(layer_tree_file(&t, "usr/out/tree-escaped", 0, &fd, &e), -1);
	CHECK_INT(e.sys, ELOOP);
	CHECK_INT(layer_tree_dir(&t, "usr/up/opt", &e), -1);
	CHECK_INT(layer_tree_link(&t, "usr/out/l", "x", &e), -1);
	/* A link is not replaced by its target. */
	CHECK_INT(layer_tree_file(&t, "usr/out", 0, &fd, &e), -1);
	CHECK_INT(e.sys, EEXIST);
	CHECK(access("/tmp/tree-escaped", F_OK) < 0);
	end();
}

TEST(a_name_is_written_once_and_never_below_a_file)
{
	struct layer_tree t = begin();
	struct err e;
	int fd;

	CHECK_INT(layer_tree_dir(&t, "opt", &e), 0);
	CHECK_INT(write_file(&t, "opt/a", 0, "1"), 0);
	CHECK_INT(layer_tree_file(&t, "opt/a", 0, &fd, &e), -1);
	CHECK_INT(layer_tree_dir(&t, "opt/a", &e), -1);
	CHECK_INT(layer_tree_file(&t, "opt/a/b", 0, &fd, &e), -1);
	CHECK_INT(layer_tree_file(&t, "opt/none/b", 0, &fd, &e), -1);
	CHECK_INT(layer_tree_dir(&t, "etc", &e), -1);
	CHECK_INT(e.kind, ERR_INVALID);
	CHECK_INT(layer_tree_link(&t, "opt/l", "", &e), -1);
	end();
}

TEST(the_number_of_files_and_bytes_is_limited)
{
	struct layer_tree t = begin();
	struct err e;
	int fd = -1;

	t.files_most = 3;
	t.bytes_most = 10;
	CHECK_INT(layer_tree_dir(&t, "opt", &e), 0);
	CHECK_INT(layer_tree_file(&t, "opt/a", 0, &fd, &e), 0);
	CHECK_INT(layer_tree_bytes(&t, fd, "0123456789", 10, &e), 0);
	CHECK_INT(layer_tree_bytes(&t, fd, "x", 1, &e), -1);
	CHECK_INT(e.kind, ERR_LIMIT);
	close(fd);
	CHECK_INT(layer_tree_link(&t, "opt/b", "a", &e), 0);
	CHECK_INT(layer_tree_link(&t, "opt/c", "a", &e), -1);
	CHECK_INT(e.kind, ERR_LIMIT);
	end();
}

/* ---- the sealer ---- */

static void fill(struct layer_tree *t, int reverse)
{
	static const char *const names[] = { "opt/a", "opt/b", "opt/c" };
	struct err e;

	CHECK_INT(layer_tree_dir(t, "opt", &e), 0);
	for (int i = 0; i < 3; i++) {
		int at = reverse ? 2 - i : i;

		CHECK_INT(write_file(t, names[at], at == 1, names[at]), 0);
	}
	CHECK_INT(layer_tree_dir(t, "opt/d", &e), 0);
	CHECK_INT(layer_tree_link(t, "opt/d/l", "../a", &e), 0);
}

TEST(the_same_content_has_the_same_id_in_any_order)
{
	struct layer_tree_sum one, two;
	struct layer_tree t = begin();
	struct stat st;
	struct err e;

	fill(&t, 0);
	CHECK_INT(layer_tree_finalize(root, &one, &e), 0);
	CHECK(layer_tree_id_ok(one.id));
	CHECK_INT(one.files, 6);
	CHECK_INT(one.bytes, 15);
	CHECK_INT(fstatat(root, "opt/b", &st, 0), 0);
	CHECK_INT(st.st_mode & 07777, 0755);
	CHECK_INT(st.st_mtime, 315532800);
	CHECK_INT(fstatat(root, "opt/a", &st, 0), 0);
	CHECK_INT(st.st_mode & 07777, 0644);
	end();
	t = begin();
	fill(&t, 1);
	CHECK_INT(layer_tree_finalize(root, &two, &e), 0);
	CHECK_STR(one.id, two.id);
	CHECK_INT(layer_tree_check(root, &two, &e), 0);
	CHECK_STR(one.id, two.id);
	end();
}

static int name_after(void (*change)(void), char out[TREE_ID + 1])
{
	struct layer_tree t = begin();
	struct layer_tree_sum sum = { 0 };
	struct err e;
	int done;

	fill(&t, 0);
	if (change)
		change();
	done = layer_tree_finalize(root, &sum, &e);
	memcpy(out, sum.id, TREE_ID + 1);
	end();
	return done;
}

static void other_bytes(void)
{
	auto_fd int fd = openat(root, "opt/a", O_WRONLY);

	if (write(fd, "X", 1) != 1)
		abort();
}
static void other_mode(void)
{
	CHECK_INT(fchmodat(root, "opt/a", 0755, 0), 0);
}
static void other_name(void)
{
	renameat(root, "opt/a", root, "opt/e");
}
static void other_target(void)
{
	unlinkat(root, "opt/d/l", 0);
	CHECK_INT(symlinkat("../b", root, "opt/d/l"), 0);
}
static void other_kind(void)
{
	unlinkat(root, "opt/d/l", 0);
	CHECK_INT(mkdirat(root, "opt/d/l", 0755), 0);
}
static void setuid_bit(void)
{
	CHECK_INT(fchmodat(root, "opt/a", 04644, 0), 0);
}

TEST(different_content_has_a_different_id_and_setuid_bits_are_dropped)
{
	static void (*const changes[])(void) = { other_bytes, other_mode, other_name, other_target,
						 other_kind };
	char plain[TREE_ID + 1], changed[TREE_ID + 1];

	CHECK_INT(name_after(NULL, plain), 0);
	for (unsigned i = 0; i < ARRAY_LEN(changes); i++) {
		CHECK_INT(name_after(changes[i], changed), 0);
		CHECK(strcmp(plain, changed) != 0);
	}
	CHECK_INT(name_after(setuid_bit, changed), 0);
	CHECK_STR(plain, changed);
}

static void hard_link(void)
{
	CHECK_INT(linkat(root, "opt/a", root, "opt/hard", 0), 0);
}
static void a_pipe(void)
{
	CHECK_INT(mkfifoat(root, "opt/pipe", 0600), 0);
}
static void bad_top(void)
{
	CHECK_INT(mkdirat(root, "etc", 0755), 0);
}
static void link_on_top(void)
{
	CHECK_INT(symlinkat("/etc", root, "usr"), 0);
}
static void file_on_top(void)
{
	auto_fd int fd = openat(root, "usr", O_WRONLY | O_CREAT, 0644);

	CHECK(fd >= 0);
}

TEST(a_tree_with_forbidden_files_is_not_finalized)
{
	static void (*const changes[])(void) = { hard_link, a_pipe, bad_top, link_on_top,
						 file_on_top };
	char id[TREE_ID + 1];

	for (unsigned i = 0; i < ARRAY_LEN(changes); i++)
		CHECK_INT(name_after(changes[i], id), -1);
}

TEST(a_changed_tree_is_detected)
{
	struct layer_tree t = begin();
	struct layer_tree_sum sum, now;
	struct err e;

	fill(&t, 0);
	CHECK_INT(layer_tree_finalize(root, &sum, &e), 0);
	other_bytes();
	CHECK_INT(layer_tree_check(root, &now, &e), 0);
	CHECK(strcmp(sum.id, now.id) != 0);
	CHECK_INT(layer_tree_finalize(root, &now, &e), 0);
	CHECK_INT(fchmodat(root, "opt/a", 04755, 0), 0);
	CHECK_INT(layer_tree_check(root, &now, &e), -1);
	end();
}

TEST(removing_follows_no_link)
{
	struct layer_tree t = begin();
	auto_fd int outside = -1;
	char kept[80];
	struct err e;

	snprintf(kept, sizeof(kept), "%s.kept", top);
	CHECK_INT(mkdir(kept, 0755), 0);
	outside = open(kept, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(mkdirat(outside, "there", 0755), 0);
	fill(&t, 0);
	CHECK_INT(layer_tree_link(&t, "opt/out", kept, &e), 0);
	CHECK_INT(layer_tree_remove(root, "opt", &e), 0);
	CHECK_INT(faccessat(outside, "there", F_OK, 0), 0);
	CHECK(faccessat(root, "opt", F_OK, 0) < 0);
	unlinkat(outside, "there", AT_REMOVEDIR);
	rmdir(kept);
	end();
}

/* ---- a worker that lies ---- */

struct words { /* the reply of the worker to any request */
	struct buf bytes;
	size_t len[64];
	unsigned n;
};

static void say(struct words *w, const void *body, size_t n, const void *tail, size_t tail_n)
{
	buf_add(&w->bytes, body, n);
	buf_add(&w->bytes, tail, tail_n);
	w->len[w->n++] = n + tail_n;
}

static void say_entry(struct words *w, uint32_t mode, const char *tail, size_t n)
{
	struct wire_entry entry = { .head = sock_head(WIRE_ENTRY, 1), .mode = mode };

	say(w, &entry, sizeof(entry), tail, n);
}

static void say_head(struct words *w, uint8_t type, uint32_t ref, uint16_t flags, const char *text)
{
	struct frame f = sock_head(type, ref);

	f.flags = flags;
	say(w, &f, sizeof(f), text, strlen(text));
}

/* All replies are sent in advance; the requests of the fetcher are not read. */
static int fetch(struct words *w, const char *place, struct err *e)
{
	struct layer_tree t = begin();
	int pair[2], done;
	size_t at = 0;

	if (sock_pair(pair, e) < 0)
		abort();
	for (unsigned i = 0; i < w->n; at += w->len[i++])
		if (sock_send(pair[1], w->bytes.p + at, w->len[i], NULL, 0, NULL, 0, e) < 0)
			abort();
	shutdown(pair[1], SHUT_WR);
	done = layer_import_from_worker(pair[0], "/home/user/x", place, &t, e);
	close(pair[0]);
	close(pair[1]);
	buf_fini(&w->bytes);
	return done;
}

TEST(a_tree_is_copied_from_a_correct_worker)
{
	struct words w = { 0 };
	struct layer_tree_sum sum;
	char text[8] = "";
	struct err e;
	auto_fd int fd = -1;

	say_entry(&w, S_IFDIR | 0700, "a", 1);
	say_entry(&w, S_IFREG | 04755, "a/f", 3);
	say_entry(&w, S_IFLNK | 0777, "a/l\0f", 5);
	say_head(&w, WIRE_DONE, 1, 0, "");
	say_entry(&w, S_IFREG | 0755, "a/f", 3);
	say_head(&w, WIRE_DATA, 1, 0, "hel");
	say_head(&w, WIRE_DATA, 1, 0, "lo");
	say_head(&w, WIRE_DATA, 1, 0, "");
	CHECK_INT(fetch(&w, "opt/packages/x", &e), 0);
	fd = openat(root, "opt/packages/x/a/l", O_RDONLY);
	CHECK_INT(read(fd, text, sizeof(text)), 5);
	CHECK_STR(text, "hello");
	CHECK_INT(layer_tree_finalize(root, &sum, &e), 0);
	CHECK_INT(sum.files, 6);
	end();
}

TEST(a_worker_with_inconsistent_answers_is_rejected)
{
	static const struct {
		const char *why, *name;
		size_t n;
		uint32_t mode;
	} lies[] = {
		{ "up and out", "../x", 4, S_IFDIR | 0755 },
		{ "up inside", "a/../../x", 9, S_IFDIR | 0755 },
		{ "absolute", "/tmp/x", 6, S_IFDIR | 0755 },
		{ "empty", "", 0, S_IFDIR | 0755 },
		{ "a NUL in a name", "a\0b\0c", 5, S_IFDIR | 0755 },
		{ "through a link", "l/x", 3, S_IFDIR | 0755 },
		{ "twice", "d", 1, S_IFDIR | 0755 },
		{ "a device", "dev", 3, S_IFBLK | 0600 },
		{ "a socket", "s", 1, S_IFSOCK | 0600 },
		{ "a link to nowhere", "n\0", 2, S_IFLNK | 0777 },
		{ "no kind at all", "k", 1, 0 },
	};

	int had = access("/tmp/x", F_OK);

	for (unsigned i = 0; i < ARRAY_LEN(lies); i++) {
		struct words w = { 0 };
		struct err e;

		say_entry(&w, S_IFDIR | 0755, "d", 1);
		say_entry(&w, S_IFLNK | 0777, "l\0/tmp", 6);
		say_entry(&w, lies[i].mode, lies[i].name, lies[i].n);
		say_head(&w, WIRE_DONE, 1, 0, "");
		if (fetch(&w, "opt/p", &e) == 0)
			printf("# %s\n", lies[i].why);
		CHECK(e.kind != ERR_NONE);
		CHECK_INT(access("/tmp/x", F_OK), had);
		end();
	}
}

TEST(wrong_bytes_truncated_streams_and_worker_errors_are_errors)
{
	struct words w = { 0 };
	struct wire_error bad = { .head = sock_head(WIRE_ERROR, 1),
				  .kind = ERR_DENIED,
				  .msg = "no" };
	struct err e;

	say_entry(&w, S_IFREG | 0644, "f", 1);
	say_head(&w, WIRE_DONE, 1, 0, "");
	say_entry(&w, S_IFREG | 0644, "f", 1);
	say_head(&w, WIRE_DATA, 7, 0, "x");
	CHECK_INT(fetch(&w, "opt/p", &e), -1);
	end();
	w = (struct words){ 0 };
	say_entry(&w, S_IFREG | 0644, "f", 1);
	say_head(&w, WIRE_DONE, 1, 0, "");
	say_entry(&w, S_IFREG | 0644, "f", 1);
	say_head(&w, WIRE_DATA, 0, 0, "x");
	CHECK_INT(fetch(&w, "opt/p", &e), -1);
	end();
	w = (struct words){ 0 };
	say_head(&w, WIRE_DONE, 1, WIRE_DONE_SKIPPED, "");
	CHECK_INT(fetch(&w, "opt/p", &e), -1);
	CHECK_INT(e.kind, ERR_DENIED);
	end();
	w = (struct words){ 0 };
	say(&w, &bad, sizeof(bad), NULL, 0);
	CHECK_INT(fetch(&w, "opt/p", &e), -1);
	CHECK(strstr(e.msg, "no") != NULL);
	end();
}

TEST(a_layer_at_the_root_must_contain_an_allowed_folder)
{
	struct words w = { 0 };
	struct err e;

	say_entry(&w, S_IFDIR | 0755, "usr", 3);
	say_entry(&w, S_IFDIR | 0755, "usr/local", 9);
	say_head(&w, WIRE_DONE, 1, 0, "");
	CHECK_INT(fetch(&w, "", &e), 0);
	end();
	w = (struct words){ 0 };
	say_entry(&w, S_IFDIR | 0755, "etc", 3);
	say_head(&w, WIRE_DONE, 1, 0, "");
	CHECK_INT(fetch(&w, "", &e), -1);
	end();
}
