/* compile_cache_test.c - the compile cache: an entry is found by the same inputs only. */
#include "lang/compile_cache.h"
#include "lang/lang.h"
#include "store_dir.h"

static const char *const argv[] = { "/usr/bin/gcc", "-O2", "main.c", NULL },
			 *const other_argv[] = { "/usr/bin/gcc", "-O3", "main.c", NULL },
			 *const env[] = { "LANG=C", NULL },
			 *const more_env[] = { "LANG=C", "A=1", NULL };

static struct compile_inputs usual(void)
{
	return (struct compile_inputs){ .surface = "job",
					.team = "red",
					.argv = argv,
					.env = env,
					.source = "main.c",
					.code = "int main;",
					.code_len = 9,
					.program = "/bin/sh" };
}

static int same_key(const struct compile_inputs *a, const struct compile_inputs *b)
{
	struct compile_cache_key x, y;

	compile_cache_key(a, &x);
	compile_cache_key(b, &y);
	return memcmp(&x, &y, sizeof(x)) == 0;
}

static void opened(struct compile_caches *a, char dir[128])
{
	dir_make(dir);
	CHECK_OK(compile_caches_open(a, dir, &err));
}

static void done_with(struct compile_caches *a, const char *dir)
{
	char path[200];

	compile_caches_close(a);
	snprintf(path, sizeof(path), "%s/made", dir);
	dir_remove(path);
}

static void place_of(const struct compile_cache_key *key, const char *dir, char path[200])
{
	snprintf(path, 200, "%s/made/%03x", dir,
		 (key->bytes[0] | (unsigned)key->bytes[1] << 8) % COMPILE_CACHE_PLACES);
}

TEST(a_stored_program_is_found_by_its_key_only)
{
	struct compile_inputs of = usual();
	struct compile_cache_key key, other;
	auto_buf struct buf out = { 0 };
	struct compile_caches a;
	auto_dir char dir[128];

	opened(&a, dir);
	compile_cache_key(&of, &key);
	of.code = "int mail;";
	compile_cache_key(&of, &other);
	CHECK_INT(compile_cache_get(&a, &key, &out), 0);
	compile_cache_put(&a, &key, "program\0x", 9);
	CHECK_INT(compile_cache_get(&a, &key, &out), 1);
	CHECK_INT(out.len, 9);
	CHECK(memcmp(out.p, "program\0x", 9) == 0);
	CHECK_INT(compile_cache_get(&a, &other, &out), 0);
	CHECK_INT(out.len, 0);
	done_with(&a, dir);
}

TEST(the_key_covers_everything_that_the_compiler_sees)
{
	json_t *files = json_pack("{s:s}", "a.h", "#define A 1"),
	       *changed = json_pack("{s:s}", "a.h", "#define A 2"),
	       *coded = json_pack("{s:{s:s}}", "a.h", "base64", "#define A 1");
	static const uint8_t state[SHA256_BYTES] = { 0 }, other_state[SHA256_BYTES] = { 1 };
	static const struct lang_pair support[] = { { "/tmp/a", "b" }, { 0 } };
	struct compile_inputs of = usual(), x;

	CHECK(same_key(&of, &of));
#define DIFFERS(field, value)                                                                      \
	do {                                                                                       \
		x = usual();                                                                       \
		x.field = (value);                                                                 \
		CHECK(!same_key(&of, &x));                                                         \
	} while (0)
	DIFFERS(team, "blue");
	DIFFERS(surface, "flow");
	DIFFERS(argv, other_argv);
	DIFFERS(env, more_env);
	DIFFERS(cwd, "/tmp");
	DIFFERS(source, "mail.c");
	DIFFERS(code_len, 8);
	DIFFERS(program, "/bin/ls");
	DIFFERS(files, files);
	DIFFERS(box, "k3v7");
	DIFFERS(box_env, "{\"A\":\"1\"}");
	DIFFERS(state, state);
	DIFFERS(support, support);
#undef DIFFERS
	of.state = state;
	x = of;
	x.state = other_state;
	CHECK(!same_key(&of, &x));
	of.files = files;
	x = of;
	x.files = changed;
	CHECK(!same_key(&of, &x));
	x.files = coded;
	CHECK(!same_key(&of, &x));
	json_decref(files);
	json_decref(changed);
	json_decref(coded);
}

TEST(a_replaced_compiler_changes_the_key)
{
	struct compile_inputs of = usual();
	struct compile_cache_key before, after;
	auto_dir char dir[128];
	char path[200], next[200];

	dir_make(dir);
	snprintf(path, sizeof(path), "%s/cc", dir);
	snprintf(next, sizeof(next), "%s/cc.new", dir);
	of.program = path;
	close(open(path, O_WRONLY | O_CREAT, 0700));
	compile_cache_key(&of, &before);
	compile_cache_key(&of, &after);
	CHECK(memcmp(&before, &after, sizeof(before)) == 0);
	close(open(next, O_WRONLY | O_CREAT, 0700)); /* as a package is unpacked */
	CHECK_INT(rename(next, path), 0);
	compile_cache_key(&of, &after);
	CHECK(memcmp(&before, &after, sizeof(before)) != 0);
	unlink(path);
	compile_cache_key(&of, &before);
	CHECK(memcmp(&before, &after, sizeof(before)) != 0);
}

TEST(a_program_that_uses_the_compile_time_has_no_key)
{
	json_t *files = json_pack("{s:s, s:s}", "a.h", "#define A", "b.h",
				  "#define B __TIMESTAMP__"),
	       *coded = json_pack("{s:{s:s}}", "a.c", "base64", "X19USU1FX187"); /* __TIME__; */
	struct compile_inputs of = usual();

	CHECK_INT(compile_cache_uses_time(&of), 0);
	of.files = files;
	CHECK_INT(compile_cache_uses_time(&of), 1);
	of.files = coded;
	CHECK_INT(compile_cache_uses_time(&of), 1);
	CHECK_INT(compile_cache_mentions(&of, "__TIME__;"), 1);
	CHECK_INT(compile_cache_mentions(&of, "X19USU1FX187"), 0);
	of.files = NULL;
	of.code = "char *t = __TIME__;";
	of.code_len = strlen(of.code);
	CHECK_INT(compile_cache_uses_time(&of), 1);
	of.code_len = 12; /* bytes after its length do not count */
	CHECK_INT(compile_cache_uses_time(&of), 0);
	json_decref(coded);
	json_decref(files);
}

TEST(compiler_output_is_stored_with_the_program)
{
	auto_buf struct buf kept = { 0 }, given = { 0 };
	struct buf said[2] = { { 0 } };
	struct compile_output made;

	buf_puts(&said[1], "a.c:1: warning");
	buf_add(&given, "fELF\0x", 6);
	compile_cache_write(&kept, said, &given);
	CHECK_INT(compile_cache_read(&kept, &made), 0);
	CHECK_INT(made.said_len[0], 0);
	CHECK_INT(made.said_len[1], said[1].len);
	CHECK(memcmp(made.said[1], said[1].p, said[1].len) == 0);
	CHECK_INT(made.is_file, 1);
	CHECK_INT(made.n, 5);
	CHECK(memcmp(made.bytes, "ELF\0x", 5) == 0);
	buf_fini(&said[1]);
}

TEST(an_entry_of_another_format_is_not_used)
{
	struct compile_messages head = { { 4, UINT32_MAX } };
	auto_buf struct buf kept = { 0 };
	struct compile_output made;

	CHECK_INT(compile_cache_read(&kept, &made), -1); /* nothing at all */
	buf_add(&kept, &head, 3);
	CHECK_INT(compile_cache_read(&kept, &made), -1); /* not even its beginning */
	buf_cut(&kept, 0);
	buf_add(&kept, &head, sizeof(head));
	buf_puts(&kept, "saidtx");
	CHECK_INT(compile_cache_read(&kept, &made), -1); /* says more than there is */
	head.bytes[1] = 0;
	memcpy(kept.p, &head, sizeof(head));
	CHECK_INT(compile_cache_read(&kept, &made), 0);
	CHECK_INT(made.is_file, 0);
	CHECK_INT(made.n, 1);
	buf_cut(&kept, kept.len - 1);
	CHECK_INT(compile_cache_read(&kept, &made), -1); /* no program */
	buf_cut(&kept, kept.len - 1);
	buf_puts(&kept, "zz");
	CHECK_INT(compile_cache_read(&kept, &made), -1); /* neither form */
}

TEST(a_changed_entry_is_rejected_and_removed)
{
	struct compile_inputs of = usual();
	auto_buf struct buf out = { 0 };
	struct compile_cache_key key;
	struct compile_caches a;
	char path[200];
	auto_dir char dir[128];
	int fd;

	opened(&a, dir);
	compile_cache_key(&of, &key);
	place_of(&key, dir, path);
	for (int how = 0; how < 3; how++) {
		compile_cache_put(&a, &key, "0123456789", 10);
		CHECK_INT(compile_cache_get(&a, &key, &out), 1);
		fd = open(path, O_RDWR);
		CHECK(fd >= 0);
		if (how == 0)
			CHECK(pwrite(fd, "X", 1, lseek(fd, 0, SEEK_END) - 3) == 1); /* its bytes */
		else if (how == 1)
			CHECK_INT(ftruncate(fd, lseek(fd, 0, SEEK_END) - 1), 0); /* its end */
		else
			CHECK(pwrite(fd, "X", 1, 0) == 1); /* what it is */
		close(fd);
		CHECK_INT(compile_cache_get(&a, &key, &out), 0);
		CHECK_INT(access(path, F_OK), -1);
	}
	done_with(&a, dir);
}

TEST(the_number_of_entries_is_bounded)
{
	struct compile_inputs of = usual();
	struct compile_caches a;
	char code[32];
	unsigned files = 0;
	struct compile_cache_key key;
	auto_dir char dir[128];

	opened(&a, dir);
	for (unsigned i = 0; i < 2 * COMPILE_CACHE_PLACES; i++) {
		snprintf(code, sizeof(code), "%u", i);
		of.code = code;
		of.code_len = strlen(code);
		compile_cache_key(&of, &key);
		compile_cache_put(&a, &key, "x", 1);
	}
	for (unsigned i = 0; i < 2 * COMPILE_CACHE_PLACES; i++) {
		char path[200];

		snprintf(path, sizeof(path), "%s/made/%03x", dir, i);
		files += access(path, F_OK) == 0;
		snprintf(path, sizeof(path), "%s/made/%03x.new", dir, i);
		CHECK_INT(access(path, F_OK), -1);
	}
	CHECK(files > COMPILE_CACHE_PLACES / 2 && files <= COMPILE_CACHE_PLACES);
	done_with(&a, dir);
}

TEST(a_program_that_is_empty_or_too_large_is_not_stored)
{
	auto_free char *large = calloc(1, COMPILE_CACHE_MOST + 1);
	struct compile_inputs of = usual();
	auto_buf struct buf out = { 0 };
	struct compile_cache_key key;
	struct compile_caches a;
	auto_dir char dir[128];

	opened(&a, dir);
	compile_cache_key(&of, &key);
	compile_cache_put(&a, &key, large, COMPILE_CACHE_MOST + 1);
	CHECK_INT(compile_cache_get(&a, &key, &out), 0);
	compile_cache_put(&a, &key, large, 0);
	CHECK_INT(compile_cache_get(&a, &key, &out), 0);
	compile_cache_put(&a, &key, large, COMPILE_CACHE_MOST);
	CHECK_INT(compile_cache_get(&a, &key, &out), 1);
	done_with(&a, dir);
}
