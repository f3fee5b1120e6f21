/* layer_image_test.c - image layers: the id depends on every fact of a tree, and content that a
 * layer must not have is rejected. */
#include "keeper/layer_image.h"
#include "base/cleanup.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static char top[64];

#define NEED_ROOT()                                                                                \
	do {                                                                                       \
		if (geteuid() != 0)                                                                \
			SKIP("needs root");                                                        \
	} while (0)

static int sh(const char *script)
{
	char command[2048];

	snprintf(command, sizeof(command), "cd '%s' && umask 022 && %s", top, script);
	return system(command);
}

/* A tree with one of each kind, the same each time. */
static void begin(void)
{
	strcpy(top, "/var/tmp/image.XXXXXX");
	if (!mkdtemp(top))
		abort();
	if (sh("chmod 755 . && mkdir -p bin etc/x srv && echo one >bin/a && ln bin/a bin/b && chmod "
	       "4755 bin/a && "
	       "ln -s /etc etc/link && mkfifo srv/p && mknod etc/gone c 0 0 && "
	       "chown 33:42 etc/x && echo two >etc/x/f && "
	       "find . -depth -exec touch -h -d '2001-02-03 04:05:06.789' {} +") != 0)
		abort();
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	if (system(command) != 0)
		abort();
}

static int sum_of(struct layer_tree_sum *out, int finalize, struct err *e)
{
	auto_fd int root = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return finalize ? layer_image_finalize(root, out, e) : layer_image_check(root, out, e);
}

struct attribute {
	const char *path, *name, *value;
	size_t len;
};

static void set_attribute(const struct attribute *a)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", top, a->path);
	if (setxattr(path, a->name, a->value, a->len, 0) < 0)
		abort();
}

/* The id of the tree after a change; "" if it is rejected. */
static const char *id_with(const char *script, const struct attribute *a)
{
	static struct layer_tree_sum sum;
	struct err e;

	begin();
	if (script && sh(script) != 0)
		abort();
	if (a)
		set_attribute(a);
	if (sum_of(&sum, 1, &e) < 0)
		snprintf(sum.id, sizeof(sum.id), "%s", "");
	end();
	return sum.id;
}

static const char *id_after(const char *script)
{
	return id_with(script, NULL);
}

TEST(the_id_of_an_image_layer_depends_on_every_fact)
{
	static const char *const changes[] = {
		"echo One >bin/a && touch -d '2001-02-03 04:05:06.789' bin/a",
		"chmod 755 bin/a",
		"chown 1:0 etc/x",
		"chown 33:43 etc/x",
		"chown -h 5:5 etc/link",
		"touch etc/x",
		"touch -d '2001-02-03 04:05:06.790' etc/x/f",
		"touch -h etc/link",
		"rm etc/gone && touch -d '2001-02-03 04:05:06.789' etc",
		"ln -sfn /etd etc/link && touch -h -d '2001-02-03 04:05:06.789' etc/link etc",
		"cp -a bin/b bin/c && mv bin/c bin/b && touch -d '2001-02-03 04:05:06.789' bin",
		"chmod 1755 .",
		"mv srv/p srv/q && touch -d '2001-02-03 04:05:06.789' srv",
	};
	static const struct attribute attributes[] = {
		{ "bin/a", "user.a", "b", 1 },
		{ "srv", "user.overlay.opaque", "y", 1 },
	};
	char same[TREE_ID + 1];

	NEED_ROOT();
	snprintf(same, sizeof(same), "%s", id_after("true"));
	CHECK_INT(strlen(same), TREE_ID);
	CHECK_STR(id_after("true"), same);
	for (unsigned i = 0; i < ARRAY_LEN(changes); i++) {
		const char *id = id_after(changes[i]);

		if (strcmp(id, same) == 0 || strlen(id) != TREE_ID)
			printf("# %s\n", changes[i]);
		CHECK(strcmp(id, same) != 0);
		CHECK_INT(strlen(id), TREE_ID);
	}
	for (unsigned i = 0; i < ARRAY_LEN(attributes); i++) {
		const char *id = id_with(NULL, &attributes[i]);

		CHECK(strcmp(id, same) != 0);
		CHECK_INT(strlen(id), TREE_ID);
	}
}

TEST(devices_and_ids_that_no_box_has_are_rejected)
{
	static const char *const changes[] = {
		"mknod etc/null c 1 3",    "mknod etc/disk b 8 0", "mknod etc/b b 0 0",
		"chown 65533 bin/a",       "chown :65533 etc/x",   "chown 65536 bin",
		"chown -h 70000 etc/link", "chown :70000 srv/p",
	};

	NEED_ROOT();
	for (unsigned i = 0; i < ARRAY_LEN(changes); i++) {
		const char *id = id_after(changes[i]);

		if (id[0])
			printf("# %s\n", changes[i]);
		CHECK_STR(id, "");
	}
}

/* Privileges, lists of access rights, and what would redirect a lookup of overlayfs. */
TEST(other_attributes_are_removed_and_detected_later)
{
	static const struct attribute changes[] = {
		{ "bin/a", "trusted.a", "b", 1 },
		{ "bin/a", "security.capability", "\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20 },
		{ "etc/x", "user.overlay.redirect", "/etc", 4 },
		{ "bin/a", "user.overlay.metacopy", "", 0 },
		{ "etc/x", "user.overlay.opaque", "x", 1 },
		{ "bin/a", "user.overlay.opaque", "y", 1 },
	};
	char same[TREE_ID + 1];
	struct layer_tree_sum sum;
	struct err e;

	NEED_ROOT();
	snprintf(same, sizeof(same), "%s", id_after("true"));
	for (unsigned i = 0; i < ARRAY_LEN(changes); i++) {
		begin();
		set_attribute(&changes[i]);
		CHECK_INT(sum_of(&sum, 0, &e), -1);
		CHECK(strstr(e.msg, "has an attribute") != NULL);
		CHECK_INT(sum_of(&sum, 1, &e), 0);
		CHECK_STR(sum.id, same);
		CHECK_INT(sum_of(&sum, 0, &e), 0);
		CHECK_STR(sum.id, same);
		end();
	}
}

TEST(bytes_of_hard_links_count_once)
{
	struct layer_tree_sum sum;
	struct err e;

	NEED_ROOT();
	begin();
	CHECK_INT(sum_of(&sum, 1, &e), 0);
	CHECK_INT(sum.bytes, 8);  /* one, two, with their newlines */
	CHECK_INT(sum.files, 11); /* the top folder, four folders, and six names */
	end();
}

TEST(a_tree_that_is_too_deep_is_rejected)
{
	NEED_ROOT();
	CHECK_STR(id_after("d=srv; for i in $(seq 1 260); do d=$d/d; done; mkdir -p $d"), "");
	CHECK_INT(strlen(id_after("d=srv; for i in $(seq 1 200); do d=$d/d; done; mkdir -p $d")),
		  TREE_ID);
}
