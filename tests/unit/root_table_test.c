/* root_table_test.c - roots: their text, their id, and which files are read. */
#include "keeper/root_table.h"
#include "base/cleanup.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static char top[64];

static void begin(void)
{
	strcpy(top, "/tmp/roots.XXXXXX");
	if (!mkdtemp(top))
		abort();
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	if (system(command) != 0)
		abort();
}

TEST(the_text_of_a_root_is_parsed_as_it_was_written)
{
	static const char *const good[] = { "", "base\n", A "\n", "merged\n" A "\n" B "\nbase\n" };
	static const char *const bad[] = {
		"base",
		"\n",
		A,
		"base\n" A "\n",
		"x\n",
		A "\n\n",
		"merged\nmerged\n",
		A "\nmerged\n",
		"base\nbase\n",
		"../../etc\n",
	};
	char text[ROOT_TEXT];
	struct root r;

	for (unsigned i = 0; i < ARRAY_LEN(good); i++) {
		CHECK_INT(root_parse(good[i], strlen(good[i]), &r), 0);
		CHECK_INT(root_format(&r, text), strlen(good[i]));
		CHECK_STR(text, good[i]);
		CHECK(layer_tree_id_ok(r.id));
	}
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(root_parse(bad[i], strlen(bad[i]), &r), -1);
	CHECK_INT(root_parse("base\0\n", 6, &r), -1);
}

TEST(a_root_has_at_most_64_layers)
{
	char text[ROOT_TEXT + TREE_ID + 1];
	struct root r = { .merged = 1, .base = 1, .nlayers = WIRE_ROOT_LAYERS };
	size_t n;

	for (unsigned i = 0; i < WIRE_ROOT_LAYERS; i++)
		snprintf(r.layer[i], sizeof(r.layer[i]), "%064x", i);
	n = root_format(&r, text);
	CHECK_INT(n, 7 + 64 * 65 + 5);
	CHECK_INT(root_parse(text, n, &r), 0);
	CHECK_INT(r.nlayers, 64);
	snprintf(text + n - 5, sizeof(text) - n + 5, A "\nbase\n");
	CHECK_INT(root_parse(text, strlen(text), &r), -1);
}

TEST(roots_are_written_found_and_read_again)
{
	auto_fd int dir = -1;
	struct root_table t = { 0 }, again;
	struct root r, other;
	char path[512];
	struct err e;

	begin();
	dir = root_table_open(top, &e);
	CHECK(dir >= 0);
	CHECK_INT(root_parse(A "\n" B "\n", 2 * TREE_ID + 2, &r), 0);
	CHECK_INT(root_parse("base\n", 5, &other), 0);
	CHECK_INT(root_write(dir, &r, &e), 0);
	CHECK_INT(root_write(dir, &other, &e), 0);
	CHECK_INT(root_write(dir, &r, &e), 0);
	/* What a crash leaves, a file that was changed, and a link. */
	snprintf(path, sizeof(path),
		 "cd %s/roots && echo >new.7 && echo " A " >" B " && ln -s %s " A, top, r.id);
	CHECK_INT(system(path), 0);
	CHECK_INT(root_table_load(&again, dir, &e), 0);
	CHECK(root_table_find(&again, r.id) != NULL && root_table_find(&again, other.id) != NULL);
	CHECK(root_table_find(&again, A) == NULL && root_table_find(&again, B) == NULL);
	CHECK_INT(faccessat(dir, "new.7", F_OK, 0), -1);
	CHECK_STR(root_table_user(&again, B)->id, r.id);
	root_table_remove(&again, r.id);
	CHECK(root_table_user(&again, B) == NULL && root_table_find(&again, other.id) != NULL);
	root_table_fini(&again);
	root_table_fini(&t);
	end();
}
