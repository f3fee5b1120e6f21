/* pack_test.c - the files of a folder as a tar.gz: what is in it, and what is not. */
#include "cli/pack.h"
#include "base/cleanup.h"

#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct err e;
static char folder[64];

/* Runs a shell in a new folder, which `folder` names. */
static int made(const char *script)
{
	auto_buf struct buf line = { 0 };

	snprintf(folder, sizeof(folder), "/tmp/atoll-pack-XXXXXX");
	if (!mkdtemp(folder))
		return 0;
	buf_printf(&line, "cd %s && umask 022 && %s", folder, script);
	return system(buf_str(&line)) == 0;
}

static void unmade(void)
{
	auto_buf struct buf line = { 0 };

	buf_printf(&line, "rm -rf %s", folder);
	if (system(buf_str(&line)) != 0)
		printf("# %s is left\n", folder);
}

/* The output of a shell that has the archive as $archive and the folder as $packed. */
static const char *archived(const char *script)
{
	static char said[8192];
	auto_buf struct buf line = { 0 };
	char path[] = "/tmp/atoll-pack-tar-XXXXXX", bytes[1000];
	auto_fd int fd = -1;
	struct pack p;
	size_t n = 0;
	ssize_t got = -1;
	FILE *f;

	if (pack_open(&p, folder, &e) < 0 || pack_scan(&p, &e) < 0) {
		pack_fini(&p);
		return e.msg;
	}
	fd = mkostemp(path, O_CLOEXEC);
	while ((got = pack_read(&p, bytes, sizeof(bytes), &e)) > 0)
		if (write(fd, bytes, (size_t)got) != got)
			return "write";
	pack_fini(&p);
	if (got < 0)
		return e.msg;
	buf_printf(&line, "archive=%s; packed=%s; { %s; } 2>&1", path, folder, script);
	f = popen(buf_str(&line), "r");
	if (f) {
		n = fread(said, 1, sizeof(said) - 1, f);
		pclose(f);
	}
	said[n] = 0;
	unlink(path);
	return said;
}

TEST(files_folders_and_links_are_packed)
{
	CHECK(made("mkdir -p a/b && echo one > a/b/f && chmod 755 a/b/f && : > empty && "
		   "ln -s /etc/passwd out && ln -s a/b in && mkfifo pipe"));
	CHECK_STR(archived("tar tzf $archive"), "a/\na/b/\na/b/f\nempty\nin\nout\n");
	CHECK_STR(archived("tar xzOf $archive a/b/f"), "one\n");
	CHECK_STR(archived("tar tzvf $archive | sed -n 's/ .*//p'"),
		  "drwxr-xr-x\ndrwxr-xr-x\n-rwxr-xr-x\n-rw-r--r--\nlrwxrwxrwx\nlrwxrwxrwx\n");
	/* A link is a link: the file that it names is not read. */
	CHECK_STR(archived("tar tzvf $archive | grep -c 'out -> /etc/passwd'"), "1\n");
	unmade();
}

TEST(ignored_files_are_left_out)
{
	CHECK(made(
		"mkdir -p node_modules/x .git src && : > node_modules/x/y && : > .git/config && "
		": > src/a.c && : > src/a.o && printf 'node_modules\\n.git\\n**/*.o\\n' > .dockerignore"));
	CHECK_STR(archived("tar tzf $archive"), ".dockerignore\nsrc/\nsrc/a.c\n");
	unmade();
	CHECK(made(
		"mkdir a b && : > a/x && : > a/y && : > b/z && printf '*\\n!a/x\\n' > .atollignore && "
		"echo nothing > .dockerignore"));
	CHECK_STR(archived("tar tzf $archive"), "a/x\n");
	unmade();
	CHECK(made("printf 'a\\n[b\\n' > .e2bignore"));
	CHECK_STR(archived(""), ".e2bignore:2: '[b' has a [ without its ]");
	unmade();
}

TEST(long_names_and_odd_sizes_survive)
{
	CHECK(made(
		"d=$(printf 'x%.0s' $(seq 120)); mkdir $d && ln -s /$d/$d l && head -c 511 /dev/zero > $d/a && "
		"head -c 512 /dev/zero > $d/b && head -c 100001 /dev/urandom > $d/$d"));
	CHECK_STR(archived("tar tzf $archive | wc -l"), "5\n");
	CHECK_STR(archived("out=$(mktemp -d) && tar xzf $archive -C $out && "
			   "diff -r --no-dereference $out $packed && echo same; rm -rf $out"),
		  "same\n");
	unmade();
}

TEST(the_hash_is_that_of_the_content)
{
	char first[PACK_HASH + 1], second[PACK_HASH + 1], third[PACK_HASH + 1];
	json_t *manifest;
	struct pack p;

	CHECK(made("echo one > a && touch -d @1000 a && ln -s a b"));
	CHECK_INT(pack_open(&p, folder, &e), 0);
	CHECK_INT(pack_scan(&p, &e), 0);
	CHECK_INT(pack_hash(&p, first, &e), 0);
	CHECK_INT(pack_hash(&p, second, &e), 0);
	CHECK_STR(first, second);
	CHECK_INT(p.bytes, 4);
	manifest = pack_manifest(&p);
	CHECK_STR(json_string_value(json_object_get(manifest, "a")),
		  "f0644 2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806");
	CHECK_STR(json_string_value(json_object_get(manifest, "b")), "link a");
	json_decref(manifest);
	pack_fini(&p);
	unmade();
	CHECK(made("echo one > a && touch -d @2000 a && ln -s a b"));
	CHECK_INT(pack_open(&p, folder, &e), 0);
	CHECK_INT(pack_scan(&p, &e), 0);
	CHECK_INT(pack_hash(&p, second, &e), 0);
	CHECK_STR(first, second); /* the time does not count */
	pack_fini(&p);
	unmade();
	CHECK(made("echo two > a && touch -d @1000 a"));
	CHECK_INT(pack_open(&p, folder, &e), 0);
	CHECK_INT(pack_scan(&p, &e), 0);
	CHECK_INT(pack_hash(&p, third, &e), 0);
	CHECK(strcmp(first, third) != 0);
	pack_fini(&p);
	unmade();
}

TEST(a_file_that_changes_meanwhile_is_an_error)
{
	char hash[PACK_HASH + 1], bytes[4096];
	auto_buf struct buf line = { 0 };
	struct pack p;

	CHECK(made("echo one > a && : > b"));
	CHECK_INT(pack_open(&p, folder, &e), 0);
	CHECK_INT(pack_scan(&p, &e), 0);
	buf_printf(&line, "echo longer > %s/a", folder);
	CHECK_INT(system(buf_str(&line)), 0);
	CHECK_INT(pack_read(&p, bytes, sizeof(bytes), &e), -1);
	CHECK_STR(e.msg, "a has changed while it was packed");
	buf_cut(&line, 0);
	buf_printf(&line, "rm %s/a && ln -s /etc/passwd %s/a", folder, folder);
	CHECK_INT(system(buf_str(&line)), 0);
	CHECK_INT(pack_hash(&p, hash, &e), -1);
	CHECK(strstr(e.msg, "read a: "));
	pack_fini(&p);
	unmade();
}

TEST(the_largest_parts_are_named)
{
	auto_buf struct buf out = { 0 };
	struct pack p;

	CHECK(made("mkdir a b && truncate -s 2M a/1 && truncate -s 3M a/2 && truncate -s 4M b/3 && "
		   "truncate -s 1M c && truncate -s 1k d"));
	CHECK_INT(pack_open(&p, folder, &e), 0);
	CHECK_INT(pack_scan(&p, &e), 0);
	pack_largest(&p, &out);
	CHECK_STR(buf_str(&out), "a 5 MiB, b 4 MiB, c 1 MiB");
	pack_fini(&p);
	unmade();
}
