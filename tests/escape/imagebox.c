/* imagebox.c - hostile roots of images: tests/escape/images.sh. */
#include "system/rootbox.h"

#define MOUNT_POINTS                                                                               \
	"while read a b c d e f; do echo $e; done </proc/self/mountinfo; "                         \
	"for f in /proc /dev /sys /tmp /etc /opt /run /root; do test -L $f && echo link $f; done; "

/* Where something is mounted in a box of this root, and which of its top folders are links. */
static int mount_points(int keeper, const char *root, char out[sizeof(said)])
{
	struct made m;

	if (box_of(keeper, root, &m) < 0)
		return -1;
	if (as_root(&m, MOUNT_POINTS "true") != 0)
		return -1;
	memcpy(out, said, sizeof(said));
	return end(keeper, &m);
}

static int root_with(int keeper, const char *script, const char *base_layer,
		     char out_layer[WIRE_LAYER_ID], char out_root[WIRE_LAYER_ID])
{
	return layer(script, NULL, out_layer) < 0 ||
			       make_root(keeper, 0, 2, (const char *[]){ out_layer, base_layer },
					 out_root) < 0
		       ? -1
		       : 0;
}

TEST(links_files_and_deletions_of_an_image_are_not_mount_points)
{
	/* For each name, which is $n. */
	static const char *const tricks[] = {
		"ln -s / $n",    "ln -s /usr $n",     "ln -s ../../../../.. $n",
		"ln -s srv $n",  "ln -s /nowhere $n", "ln -s $n $n",
		"echo x >$n",    "mkfifo $n",         "mknod $n c 0 0",
		"mkdir -m 0 $n",
	};
	static char plain[sizeof(said)], got[sizeof(said)];
	char below[WIRE_LAYER_ID], id[WIRE_LAYER_ID], root[WIRE_LAYER_ID], script[200];
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && image_layer("", below) == 0);
	CHECK(root_with(k.fd, "mkdir other", below, id, root) == 0);
	CHECK(mount_points(k.fd, root, plain) == 0);
	CHECK(strstr(plain, "/proc\n") != NULL && strstr(plain, "/dev/shm\n") != NULL);
	CHECK(strstr(plain, "link") == NULL && strstr(plain, "/usr") == NULL);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	for (unsigned i = 0; i < ARRAY_LEN(tricks); i++) {
		snprintf(script, sizeof(script),
			 "for n in proc dev sys tmp etc opt run root; do %s; done", tricks[i]);
		CHECK(root_with(k.fd, script, below, id, root) == 0);
		CHECK(mount_points(k.fd, root, got) == 0);
		if (strcmp(got, plain) != 0)
			printf("# %s\n", tricks[i]);
		CHECK_STR(got, plain);
		CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
		CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	}
	CHECK_INT(drop_layer(k.fd, below), WIRE_DONE);
	keeper_sync_close(&k);
}

/* There the layers are above the skeleton: such a box cannot be created. */
TEST(a_root_over_base_with_a_link_as_mount_point_makes_no_box)
{
	static const char *const tricks[] = {
		"ln -s / proc",     "ln -s /etc usr", "ln -s srv dev",   "ln -s ../.. sys",
		"mknod proc c 0 0", "echo x >usr",    "mknod usr c 0 0",
	};
	char id[WIRE_LAYER_ID], root[WIRE_LAYER_ID];
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(tricks); i++) {
		struct wire_create w;

		CHECK(layer(tricks[i], NULL, id) == 0);
		CHECK(make_root(k.fd, WIRE_ROOT_BASE, 1, (const char *[]){ id }, root) == 0);
		w = with_root(root);
		CHECK_INT(ask(k.fd, &w, sizeof(w), NULL, 0), WIRE_ERROR);
		CHECK(strstr(GOT(wire_error)->msg, "mount onto") != NULL);
		CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
		CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	}
	keeper_sync_close(&k);
}

/* Written into the store by other means: the store itself rejects devices. */
TEST(setuid_programs_capabilities_and_devices_of_an_image_have_no_effect)
{
	char below[WIRE_LAYER_ID], root[WIRE_LAYER_ID], command[900];
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(image_layer(
		      "cp usr/bin/id usr/bin/id0; chmod 6755 usr/bin/id0; chmod 4755 usr/bin/cat; "
		      "echo secret >srv/secret; chmod 600 srv/secret",
		      below) == 0);
	CHECK(make_root(k.fd, 0, 1, (const char *[]){ below }, root) == 0);
	snprintf(
		command, sizeof(command),
		"cd %s/layers/%s/srv && mknod -m 666 null c 1 3 && mknod -m 666 kmsg c 1 11 && "
		"mknod -m 666 mem c 1 1 && "
		"mknod -m 666 disk b $(mountpoint -d / 2>/dev/null | tr : ' ' | grep . || echo 8 0)",
		state_dir, below);
	CHECK_INT(system(command), 0);
	snprintf(command, sizeof(command), "%s/layers/%s/usr/bin/ls", state_dir, below);
	CHECK_INT(setxattr(command, "security.capability",
			   "\1\0\0\2\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\0\0\0\0", 20, 0),
		  0);
	CHECK(box_of(k.fd, root, &m) == 0);
	CHECK_INT(as_user(&m, "id0 -u; id0 -g; cat /srv/secret 2>/dev/null || echo denied; "
			      "ls /root 2>/dev/null || echo denied; "
			      "for d in null kmsg mem disk; do (cat <>/srv/$d) 2>/dev/null && echo "
			      "open $d; done; true"),
		  0);
	CHECK_STR(said, "1000\n1000\ndenied\ndenied\n");
	CHECK_INT(as_root(&m, "for d in null kmsg mem disk; do (cat </srv/$d) 2>/dev/null && echo "
			      "open $d; done; true"),
		  0);
	CHECK_STR(said, "");
	CHECK(end(k.fd, &m) == 0);
	CHECK(is_error(check_root(k.fd, root), ERR_CONFLICT, "usr/bin/ls") ||
	      is_error(WIRE_ERROR, ERR_INVALID, "is a device"));
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, below), WIRE_DONE);
	keeper_sync_close(&k);
}

#define SECRET "/usr/local/share/.atoll-escape-test"

static void remove_secret(void)
{
	unlink(SECRET);
	unlink(SECRET ".2");
}

/* A box of a template build is root over what looks like the host's /usr. */
TEST(root_of_a_build_box_changes_no_file_of_the_host_and_reads_none_that_is_not_for_all)
{
	struct wire_create w = wish(WIRE_CREATE_HOST_WRITABLE, 1);
	struct stat before, after;
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	atexit(remove_secret);
	CHECK_INT(system("umask 077; mkdir -p -m 755 /usr/local/share && echo secret >" SECRET
			 " && echo secret >" SECRET ".2 && chown 65534:65534 " SECRET ".2"),
		  0);
	CHECK_INT(stat("/usr/bin/id", &before), 0);
	CHECK(make_as(k.fd, &w, &m) == 0);
	CHECK_INT(as_root(&m,
			  "stat -c %u:%g /usr /usr/bin/id " SECRET "; "
			  "cat " SECRET " " SECRET ".2 2>/dev/null || echo denied; "
			  "(chmod 644 " SECRET "; chown 1000 " SECRET "; ln " SECRET
			  " /usr/s; mv " SECRET " /usr/t; echo more >>" SECRET
			  ") 2>/dev/null; cat " SECRET " /usr/s /usr/t 2>/dev/null || echo denied; "
			  "mknod /usr/null c 1 3 2>/dev/null || echo no device; "
			  "chmod 6755 /usr/bin/id && echo changed >/usr/bin/env && "
			  "rm -f " SECRET " /usr/bin/yes && cat /usr/bin/env"),
		  0);
	CHECK_STR(said, "0:0\n0:0\n0:0\ndenied\ndenied\nno device\nchanged\n");
	/* Setuid has no effect, for a program of the host as for one of the box. */
	CHECK_INT(as_user(&m, "id -u; id -g; touch /usr/x 2>/dev/null || echo denied"), 0);
	CHECK_STR(said, "1000\n1000\ndenied\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(stat("/usr/bin/id", &after), 0);
	CHECK(after.st_ino == before.st_ino && after.st_mode == before.st_mode &&
	      after.st_ctim.tv_sec == before.st_ctim.tv_sec);
	CHECK_INT(system("test \"$(cat " SECRET
			 ")\" = secret -a ! -e /usr/s -a ! -e /usr/t -a ! -e "
			 "/usr/null -a -x /usr/bin/yes && /usr/bin/env true"),
		  0);
	/* Other boxes have the host's /usr read-only, and not its database of packages. */
	CHECK(make(k.fd, &m) == 0);
	CHECK_INT(
		as_root(&m,
			"cat " SECRET " 2>/dev/null || echo denied; "
			"touch /usr/x 2>/dev/null || echo denied; ls /var/lib/dpkg 2>/dev/null | wc -l"),
		0);
	CHECK_STR(said, "denied\ndenied\n0\n");
	CHECK(end(k.fd, &m) == 0);
	remove_secret();
	keeper_sync_close(&k);
}

TEST(a_list_of_users_that_is_a_fifo_or_a_link_does_not_block_file_requests)
{
	static const char *const tricks[] = { "mkfifo", "ln -s /dev/tty", "ln -s /proc/1/mem",
					      "ln -s / ", "mkdir" };
	char id[WIRE_LAYER_ID], root[WIRE_LAYER_ID], script[200];
	struct wire_list w = { .head = sock_head(WIRE_LIST, 9) };
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	w.head.flags = WIRE_ENTRY_FULL;
	for (unsigned i = 0; i < ARRAY_LEN(tricks); i++) {
		auto_fd int files = -1;
		unsigned seen = 0;
		int type;

		snprintf(script, sizeof(script),
			 "rm etc/passwd; %s etc/passwd; %s etc/group; echo x >srv/owned", tricks[i],
			 tricks[i]);
		CHECK(image_layer(script, id) == 0);
		CHECK(make_root(k.fd, 0, 1, (const char *[]){ id }, root) == 0);
		CHECK(box_of(k.fd, root, &m) == 0);
		files = worker(&m);
		CHECK(files >= 0);
		type = ask(files, &w, sizeof(w), "/srv", 5);
		for (; type == WIRE_ENTRY; type = receive(files))
			seen++;
		CHECK_INT(type, WIRE_DONE);
		CHECK(seen >= 3);
		CHECK(end(k.fd, &m) == 0);
		CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
		CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	}
	keeper_sync_close(&k);
}

TEST(an_image_cannot_replace_programs_and_files_of_atoll)
{
	char id[WIRE_LAYER_ID], root[WIRE_LAYER_ID];
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(image_layer("mkdir -p opt/atoll/bin; echo bad >opt/atoll/bin/sudo; mknod "
			  "opt/atoll/bin/jupyter c 0 0; echo bad >etc/hosts; ln -s /srv/x "
			  "etc/resolv.conf; mknod etc/hostname c 0 0",
			  id) == 0);
	CHECK(make_root(k.fd, 0, 1, (const char *[]){ id }, root) == 0);
	CHECK(box_of(k.fd, root, &m) == 0);
	CHECK_INT(as_user(&m, "cat /etc/hosts /etc/resolv.conf /etc/hostname; "
			      "read a </opt/atoll/bin/sudo; echo $a; ls /opt/atoll/bin/jupyter"),
		  0);
	CHECK_STR(said, "127.0.0.1 localhost atoll\n::1 localhost\nnameserver 127.0.0.53\natoll\n"
			"#!/bin/sh\n/opt/atoll/bin/jupyter\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(nothing_is_left_after_the_tests_of_images)
{
	leave_nothing();
}
