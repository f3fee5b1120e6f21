/* store_dir.h - a folder for a store, and rows to put into it. */
#pragma once
#include "base/cleanup.h"
#include "store/boxes.h"
#include "store/store.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

__attribute__((unused)) static struct err err;

static void dir_remove(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

__attribute__((unused)) static void dir_done(char (*dir)[128])
{
	dir_remove(*dir);
}

/* auto_dir char dir[128]; dir_make(dir): an empty folder, removed at the end of the scope. */
#define auto_dir __attribute__((cleanup(dir_done)))

static void dir_make(char dir[128])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, 128, "%.90s/store-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir)) {
		perror(dir);
		exit(1);
	}
}

__attribute__((unused)) static void store_done(struct store **s)
{
	store_close(*s);
}
#define auto_store __attribute__((cleanup(store_done)))

/* An open store in a new folder, and its name: the first two lines of most tests. */
#define STORE(s, dir)                                                                              \
	auto_dir char dir[128];                                                                    \
	dir_make(dir);                                                                             \
	auto_store struct store *s = NULL;                                                         \
	CHECK_OK(store_open(&s, dir, &err))

#define CHECK_OK(call)                                                                             \
	do {                                                                                       \
		err = (struct err){ 0 };                                                           \
		if ((call) < 0) {                                                                  \
			printf("# %s:%d: %s: %s\n", __FILE__, __LINE__, #call, err.msg);           \
			tap_now = TAP_NOT_OK;                                                      \
			return;                                                                    \
		}                                                                                  \
	} while (0)

#define CHECK_ERR(call, want)                                                                      \
	do {                                                                                       \
		err = (struct err){ 0 };                                                           \
		if ((call) != -1 || err.kind != (want)) {                                          \
			printf("# %s:%d: %s: %s (%s), not %s\n", __FILE__, __LINE__, #call,        \
			       err_kind_name(err.kind), err.msg, err_kind_name(want));             \
			tap_now = TAP_NOT_OK;                                                      \
			return;                                                                    \
		}                                                                                  \
	} while (0)

/* "aaaaaaaaaa" and a number in letters: an id that sorts by n. */
__attribute__((unused)) static const char *id_of(unsigned n)
{
	static char ids[8][ID_MAX + 1];
	static unsigned turn;
	char *id = ids[turn++ % 8];

	for (int i = ID_LEN - 1; i >= 0; i--, n /= 26)
		id[i] = (char)('a' + n % 26);
	id[ID_LEN] = 0;
	return id;
}

__attribute__((unused)) static struct store_box box_of(unsigned n)
{
	struct store_box b = { .created_ns = 1000 + n, .team = "default", .template = "base" };

	snprintf(b.id, sizeof(b.id), "%s", id_of(n));
	return b;
}
