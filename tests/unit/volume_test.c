/* volume_test.c - names and places of volumes: a file of the host and a path in a box. */
#include "keeper/volume.h"
#include "tap.h"

static int id_ok(const char *text)
{
	char id[WIRE_VOLUME_ID] = "";

	memcpy(id, text, strlen(text) < sizeof(id) ? strlen(text) : sizeof(id));
	return volume_id_valid(id);
}

TEST(volume_names_are_short_and_plain)
{
	static const char *const good[] = { "a", "data", "my-volume_2", "0",
					    "abcdefghijklmnopqrstuvwxyz01234" };
	static const char *const bad[] = { "",
					   "-a",
					   "_a",
					   "A",
					   "a.b",
					   "a/b",
					   "..",
					   ".",
					   "a b",
					   "\xff",
					   "abcdefghijklmnopqrstuvwxyz012345" };

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(id_ok(good[i]));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!id_ok(bad[i]));
}

static struct wire_mount at(const char *id, const char *path)
{
	struct wire_mount m = { .flags = 0 };

	snprintf(m.id, sizeof(m.id), "%s", id);
	snprintf(m.path, sizeof(m.path), "%s", path);
	return m;
}

static int place_ok(const char *path)
{
	struct wire_mount m = at("v", path);
	struct err e;

	return volume_mounts_sane(&m, 1, &e) == 0;
}

TEST(volumes_are_mounted_only_below_data_folders)
{
	static const char *const good[] = { "/home/user",   "/home/user/data", "/mnt/a/b/c",
					    "/data",        "/workspace",      "/srv/x",
					    "/mnt/.hidden", "/mnt/..." };
	static const char *const bad[] = {
		"",         "/",       "mnt",         "/usr",        "/usr/local",
		"/etc",     "/proc/1", "/home",       "/home/users", "/home/other",
		"/mnt/",    "/mnt//a", "/mnt/../etc", "/mnt/a/..",   "/mnt/.",
		"/mnt/./a", "/tmp/x",  "/dev/shm/x",  "/datax",      "//mnt"
	};
	struct wire_mount long_path = at("v", "/mnt/a");
	struct err e;

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(place_ok(good[i]));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!place_ok(bad[i]));
	memset(long_path.path + 6, 'a', sizeof(long_path.path) - 6); /* no NUL */
	CHECK(volume_mounts_sane(&long_path, 1, &e) < 0);
}

TEST(mount_points_of_one_box_do_not_overlap)
{
	struct wire_mount two[5] = { at("a", "/mnt/a"), at("b", "/mnt/b") };
	struct err e;

	CHECK(volume_mounts_sane(two, 2, &e) == 0);
	two[1] = at("a", "/mnt/b");
	CHECK(volume_mounts_sane(two, 2, &e) < 0);
	two[1] = at("b", "/mnt/a");
	CHECK(volume_mounts_sane(two, 2, &e) < 0);
	two[1] = at("b", "/mnt/a/in");
	CHECK(volume_mounts_sane(two, 2, &e) < 0);
	two[1] = at("b", "/mnt");
	CHECK(volume_mounts_sane(two, 2, &e) < 0);
	two[1] = at("b", "/mnt/ab");
	CHECK(volume_mounts_sane(two, 2, &e) == 0);
	two[1].flags = 2;
	CHECK(volume_mounts_sane(two, 2, &e) < 0);
	CHECK(volume_mounts_sane(two, 5, &e) < 0);
	CHECK(volume_mounts_sane(two, 0xffffffff, &e) < 0);
}
