/* checkpoint_compare_test.c - lists of files out of the indexes of checkpoints, and what differs between two. */
#include "checkpoint/compare.h"
#include "base/cleanup.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define A "aaaaaaaaaaaa"
#define B "bbbbbbbbbbbb"
#define FOLDER (S_IFDIR | 0755)
#define PLAIN (S_IFREG | 0644)
#define GONE S_IFCHR
enum { W = LAYER_INDEX_WHITEOUT, O = LAYER_INDEX_OPAQUE, L = LAYER_INDEX_LOWER };

struct item {
	const char *path;
	uint32_t mode;
	uint16_t flags;
	char content; /* 0: none; of a hash */
};

static int add_to(struct checkpoint_files *l, const char *id, const struct item *v, unsigned n)
{
	struct layer_index_head head = { .stop_ns = 7 };
	auto_fd int fd = memfd_create("index", MFD_CLOEXEC);
	struct layer_index_writer w;
	uint64_t bytes;
	struct err e;
	int done = 0;

	snprintf(head.id, sizeof(head.id), "%s", id);
	snprintf(head.box, sizeof(head.box), "%s", id);
	layer_index_begin(&w, fd);
	for (unsigned i = 0; i < n && done == 0; i++) {
		struct layer_index_fixed f = { .path_len = (uint16_t)strlen(v[i].path),
					       .flags = v[i].flags,
					       .mode = v[i].mode,
					       .ino = i + 1,
					       .nlink = 1 };

		snprintf(f.origin, sizeof(f.origin), "%s", id);
		if (v[i].content) {
			f.flags |= LAYER_INDEX_HASHED;
			f.size = 1;
			f.sha256[0] = (uint8_t)v[i].content;
		}
		done = layer_index_add(&w, &f, v[i].path, &e);
	}
	if (done == 0)
		done = layer_index_end(&w, &head, &bytes, &e);
	layer_index_drop(&w);
	if (done == 0)
		done = checkpoint_files_add(l, fd, id, &e);
	if (done < 0)
		printf("# %s\n", e.msg);
	return done;
}

#define ADD(l, id, ...)                                                                            \
	add_to(l, id, (const struct item[]){ { "", FOLDER, 0, 0 }, __VA_ARGS__ },                  \
	       sizeof((const struct item[]){ { "", FOLDER, 0, 0 }, __VA_ARGS__ }) /                \
		       sizeof(struct item))

static char text[2000];

static const char *listed(const struct checkpoint_files *l)
{
	text[0] = 0;
	for (size_t i = 1; i < l->n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s",
			 i > 1 ? " " : "", l->v[i].f.flags & W ? "-" : "", l->text + l->v[i].path);
	return text;
}

static const char *differing(const struct checkpoint_files *a, const struct checkpoint_files *b)
{
	struct checkpoint_differences d;

	checkpoint_compare(a, b, &d);
	text[0] = 0;
	for (size_t i = 0; i < d.n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s %s%s%s",
			 i ? ", " : "", checkpoint_change_name(d.v[i].change),
			 d.v[i].was ? d.v[i].was : "", d.v[i].was ? ">" : "", d.v[i].path);
	checkpoint_differences_fini(&d);
	return text;
}

TEST(an_index_lies_over_the_ones_below_it)
{
	struct checkpoint_files l = { 0 };

	CHECK_INT(ADD(&l, A, { "a", PLAIN, 0, 'a' }, { "d", FOLDER, 0, 0 },
		      { "d/x", PLAIN, 0, 'x' }, { "d/y", FOLDER, 0, 0 }, { "d/y/z", PLAIN, 0, 'z' },
		      { "d-", PLAIN, 0, '-' }, { "f", FOLDER, 0, 0 }, { "f/g", PLAIN, 0, 'g' },
		      { "z", PLAIN, 0, 'z' }),
		  0);
	CHECK_STR(listed(&l), "a d d/x d/y d/y/z d- f f/g z");
	CHECK_INT(ADD(&l, B, { "a", GONE, W, 0 }, { "b", PLAIN, 0, 'b' }, { "d", FOLDER, 0, 0 },
		      { "d/w", PLAIN, 0, 'w' }, { "d/y", FOLDER, O, 0 }, { "d/y/n", PLAIN, 0, 'n' },
		      { "f", PLAIN, 0, 'f' }),
		  0);
	CHECK_STR(listed(&l), "-a b d d/w d/x d/y d/y/n d- f z");
	checkpoint_files_fini(&l);
}

TEST(an_index_of_another_checkpoint_or_a_damaged_one_is_rejected)
{
	struct checkpoint_files l = { 0 };
	auto_fd int fd = memfd_create("index", MFD_CLOEXEC);
	struct err e;

	CHECK_INT(ADD(&l, A, { "a", PLAIN, 0, 'a' }), 0);
	CHECK(write(fd, "AtlIndex", 8) == 8);
	CHECK(checkpoint_files_add(&l, fd, B, &e) < 0);
	CHECK_STR(listed(&l), "a"); /* as before */
	checkpoint_files_fini(&l);
}

TEST(changes_are_named_and_renames_found)
{
	struct checkpoint_files a = { 0 }, b = { 0 };

	CHECK_INT(ADD(&a, A, { "changed", PLAIN, 0, '1' }, { "gone", PLAIN, 0, '2' },
		      { "mode", PLAIN, 0, '3' }, { "old", PLAIN, 0, '4' }, { "p", PLAIN, 0, '6' },
		      { "q", PLAIN, 0, '6' }, { "type", PLAIN, 0, '5' }),
		  0);
	CHECK_INT(ADD(&b, B, { "changed", PLAIN, 0, '9' }, { "mode", S_IFREG | 0600, 0, '3' },
		      { "new", PLAIN, 0, '4' }, { "other", PLAIN, 0, '6' },
		      { "type", S_IFLNK | 0777, 0, '5' }),
		  0);
	/* Two names with one content were deleted: neither is the one that was renamed. */
	CHECK_STR(differing(&a, &b),
		  "changed changed, deleted gone, mode mode, renamed old>new, added other, "
		  "deleted p, deleted q, type type");
	CHECK_STR(differing(&a, &a), "");
	checkpoint_files_fini(&a);
	checkpoint_files_fini(&b);
}

TEST(names_of_the_root_are_known_by_what_was_copied_from_it)
{
	struct checkpoint_files a = { 0 }, b = { 0 };

	CHECK_INT(ADD(&a, A, { "etc", FOLDER, L, 0 }, { "etc/copied", PLAIN, L, '1' },
		      { "etc/hidden", FOLDER, L, 0 }, { "etc/hidden/f", PLAIN, L, '2' },
		      { "etc/new", PLAIN, 0, '3' }, { "etc/removed", GONE, W, 0 },
		      { "var", FOLDER, L, 0 }, { "var/f", PLAIN, L, '4' }, { "var/g", GONE, W, 0 }),
		  0);
	CHECK_INT(ADD(&b, B, { "etc", FOLDER, L, 0 }, { "etc/hidden", GONE, W, 0 },
		      { "var", FOLDER, O, 0 }),
		  0);
	CHECK_STR(differing(&a, &b),
		  "changed etc/copied, deleted etc/hidden, deleted etc/hidden/f, "
		  "deleted etc/new, added etc/removed, deleted var/f");
	CHECK_STR(differing(&b, &a), "changed etc/copied, added etc/hidden, added etc/hidden/f, "
				     "added etc/new, deleted etc/removed, added var/f");
	checkpoint_files_fini(&a);
	checkpoint_files_fini(&b);
}
