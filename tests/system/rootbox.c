/* rootbox.c - roots made of image layers, and boxes with them: tests/system/roots.sh. */
#include "system/rootbox.h"

TEST(a_box_of_an_image_has_the_files_of_its_layers_and_not_those_of_the_host)
{
	char id[2][WIRE_LAYER_ID], root[WIRE_LAYER_ID];
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(image_layer("", id[0]) == 0);
	CHECK(layer("mkdir -p etc srv usr/bin && echo upper >etc/name && mknod srv/gone c 0 0 && "
		    "mknod usr/bin/tty c 0 0 && echo tool >usr/tool && chown 33:42 etc/name && "
		    "mkdir -p opaque && echo b >opaque/b && mkdir tmp && echo t >tmp/t",
		    "opaque", id[1]) == 0);
	CHECK(make_root(k.fd, 0, 2, (const char *[]){ id[1], id[0] }, root) == 0);
	CHECK(box_of(k.fd, root, &m) == 0);
	CHECK_STR(m.about.template, "test");
	CHECK_INT(as_root(&m, "cat /etc/name; stat -c '%u %g' /etc/name; ls /opaque /srv; cat "
			      "/usr/tool; cat /etc/hostname; cat /tmp/t; "
			      "stat -c '%a %U' /tmp /proc /opt/atoll; test -e /usr/bin/tty || echo "
			      "no tty; test -e /usr/bin/env || echo no env; ls /opt/atoll/bin"),
		  0);
	CHECK_STR(
		said,
		"upper\n33 42\n/opaque:\nb\n\n/srv:\nkept\ntool\natoll\nt\n"
		"1777 root\n555 UNKNOWN\n755 root\nno tty\nno env\nboxagent\ncheckpoint\njupyter\n"
		"python\nsudo\n");
	/* Its user writes where the image permits it; the layers stay as they are. */
	CHECK_INT(as_root(&m, "echo mine >/etc/name && rm -r /opaque && echo new >/etc/hosts"), 0);
	CHECK_INT(as_user(&m,
			  "id -u; cat /etc/name; echo x >/tmp/mine; echo y 2>/dev/null >/etc/no "
			  "|| echo denied; test -e /opaque || echo gone"),
		  0);
	CHECK_STR(said, "1000\nmine\ndenied\ngone\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(check_root(k.fd, root), WIRE_ROOT);
	CHECK(box_of(k.fd, root, &m) == 0);
	CHECK_INT(as_user(&m, "cat /etc/name /opaque/b"), 0);
	CHECK_STR(said, "upper\nb\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id[0]), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id[1]), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(a_root_over_base_adds_and_deletes_files_of_usr_and_of_the_skeleton)
{
	char id[2][WIRE_LAYER_ID], root[WIRE_LAYER_ID];
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(layer("mkdir -p usr/local/bin usr/bin etc home/user srv && "
		    "printf '#!/bin/sh\\necho hello\\n' >usr/local/bin/hello && "
		    "chmod 755 usr/local/bin/hello && mknod usr/bin/tac c 0 0 && "
		    "mknod etc/pip.conf c 0 0 && chown 1000:1000 home/user && echo s >srv/s",
		    NULL, id[0]) == 0);
	CHECK(layer("mkdir -p usr/local/bin && echo two >usr/two", NULL, id[1]) == 0);
	CHECK(make_root(k.fd, WIRE_ROOT_BASE, 2, (const char *[]){ id[0], id[1] }, root) == 0);
	CHECK(box_of(k.fd, root, &m) == 0);
	CHECK_INT(as_user(&m, "hello; cat /usr/two /srv/s; ls /usr/bin/env; "
			      "test -e /usr/bin/tac || echo no tac; "
			      "test -e /etc/pip.conf || echo no pip.conf; "
			      "echo x >/home/user/f && touch /usr/x 2>/dev/null || echo ro"),
		  0);
	CHECK_STR(said, "hello\ntwo\ns\n/usr/bin/env\nno tac\nno pip.conf\nro\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id[0]), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id[1]), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(a_root_can_have_64_layers_and_a_box_four_more)
{
	static char id[WIRE_ROOT_LAYERS + 4][WIRE_LAYER_ID];
	const char *of[WIRE_ROOT_LAYERS];
	char root[WIRE_LAYER_ID], script[100];
	struct wire_create w;
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(id); i++) {
		snprintf(script, sizeof(script), "mkdir usr opt && echo %u | tee usr/f%u >opt/f", i,
			 i);
		CHECK(layer(script, NULL, id[i]) == 0);
		if (i < WIRE_ROOT_LAYERS)
			of[i] = id[i];
	}
	CHECK(make_root(k.fd, WIRE_ROOT_BASE, WIRE_ROOT_LAYERS, of, root) == 0);
	w = with_root(root);
	w.nlayers = 4;
	memcpy(w.layer, id[WIRE_ROOT_LAYERS], sizeof(w.layer));
	CHECK(make_as(k.fd, &w, &m) == 0);
	CHECK_INT(as_user(&m, "cat /opt/f; cat /usr/f* | wc -l; ls /usr/bin/env"), 0);
	CHECK_STR(said, "64\n68\n/usr/bin/env\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	for (unsigned i = 0; i < ARRAY_LEN(id); i++)
		CHECK_INT(drop_layer(k.fd, id[i]), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(a_root_and_its_layers_are_kept_while_they_are_used)
{
	char id[WIRE_LAYER_ID], root[WIRE_LAYER_ID], again[WIRE_LAYER_ID];
	struct keeper_sync k;
	struct wire_create w;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(image_layer("", id) == 0);
	CHECK(make_root(k.fd, 0, 1, (const char *[]){ id }, root) == 0);
	CHECK(make_root(k.fd, 0, 1, (const char *[]){ id }, again) == 0);
	CHECK_STR(root, again);
	CHECK(is_error(drop_layer(k.fd, id), ERR_CONFLICT, "part of root"));
	CHECK(box_of(k.fd, root, &m) == 0);
	CHECK(is_error(drop_root(k.fd, root), ERR_CONFLICT, m.id));
	/* The next keeper knows, too. */
	CHECK(end_keeper(&k, SIGKILL) == 0 && next_keeper(&k) == 0);
	CHECK(is_error(drop_root(k.fd, root), ERR_CONFLICT, m.id));
	CHECK(is_error(drop_layer(k.fd, id), ERR_CONFLICT, "part of root"));
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(check_root(k.fd, root), WIRE_ROOT);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK(is_error(drop_root(k.fd, root), ERR_NOT_FOUND, "no root"));
	w = with_root(root);
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_NOT_FOUND, "no root"));
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	CHECK(make_root(k.fd, 0, 1, (const char *[]){ id }, root) < 0);
	CHECK(strstr(GOT(wire_error)->msg, "no layer") != NULL);
	keeper_sync_close(&k);
}

/* Ids after this one, in their order; they are in `bytes`. */
static int list_of(int keeper, unsigned flags, const char *after)
{
	struct wire_layer w = { .head = sock_head(WIRE_LAYER_LIST, 14) };
	int n = 0;

	w.head.flags = (uint16_t)flags;
	snprintf(w.id, sizeof(w.id), "%.71s", after);
	if (ask(keeper, &w, sizeof(w), NULL, 0) != WIRE_LISTED)
		return -1;
	while (bytes[sizeof(struct frame) +
		     (size_t)n * WIRE_LAYER_ID]) /* the frame ends with NUL */
		n++;
	return n;
}

TEST(layers_and_roots_are_listed_by_their_ids)
{
	char id[3][WIRE_LAYER_ID], root[WIRE_LAYER_ID], first[WIRE_LAYER_ID];
	const char *listed = bytes + sizeof(struct frame);
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK_INT(list_of(k.fd, 0, ""), 0);
	for (unsigned i = 0; i < 3; i++) {
		char script[32];

		snprintf(script, sizeof(script), "echo %u >f", i);
		CHECK(layer(script, NULL, id[i]) == 0);
	}
	CHECK(make_root(k.fd, WIRE_ROOT_MERGE, 1, (const char *[]){ id[0] }, root) == 0);
	CHECK_INT(list_of(k.fd, 0, ""), 3);
	CHECK(strcmp(listed, listed + WIRE_LAYER_ID) < 0 &&
	      strcmp(listed + WIRE_LAYER_ID, listed + 2 * WIRE_LAYER_ID) < 0);
	memcpy(first, listed, sizeof(first));
	CHECK_INT(list_of(k.fd, 0, first), 2);
	CHECK_INT(list_of(k.fd, WIRE_LIST_ROOTS, ""), 1);
	CHECK_STR(listed, root);
	CHECK_INT(list_of(k.fd, WIRE_LIST_ROOTS, root), 0);
	CHECK_INT(list_of(k.fd, 0, "../x"), -1);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(drop_layer(k.fd, id[i]), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(invalid_roots_are_rejected)
{
	struct wire_root_make w = { .head = sock_head(WIRE_ROOT_MAKE, 1), .nlayers = 65 };
	struct wire_create c = with_root("../../etc/passwd");
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_INVALID, "a root may have"));
	w.nlayers = 1;
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_INVALID, "hexadecimal"));
	w.head.flags = 1 << 7;
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_INVALID, "no flag"));
	w.head.flags = 0;
	w.nlayers = 2;
	memset(w.layer[0], 'a', TREE_ID);
	memset(w.layer[1], 'a', TREE_ID);
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_INVALID, "twice"));
	CHECK(is_error(ask(k.fd, &c, sizeof(c), NULL, 0), ERR_INVALID, "hexadecimal"));
	memset(c.root, 'a', sizeof(c.root));
	CHECK(is_error(ask(k.fd, &c, sizeof(c), NULL, 0), ERR_INVALID, "hexadecimal"));
	CHECK(is_error(drop_root(k.fd, "new.1"), ERR_INVALID, "hexadecimal"));
	keeper_sync_close(&k);
}

TEST(a_changed_layer_of_a_root_is_detected)
{
	char id[WIRE_LAYER_ID], root[WIRE_LAYER_ID], command[300];
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(layer("mkdir srv && echo x >srv/f", NULL, id) == 0);
	CHECK(make_root(k.fd, 0, 1, (const char *[]){ id }, root) == 0);
	snprintf(command, sizeof(command), "chmod 4755 %s/layers/%s/srv/f", state_dir, id);
	CHECK_INT(system(command), 0);
	CHECK(is_error(check_root(k.fd, root), ERR_CONFLICT, "has changed"));
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	keeper_sync_close(&k);
}

static int seal(int keeper, const struct made *m, uint64_t bytes_most, uint64_t files_most)
{
	struct wire_layer_make w = { .head = sock_head(WIRE_LAYER_MAKE, 14),
				     .bytes_most = bytes_most,
				     .files_most = files_most };

	w.head.flags = WIRE_LAYER_UPPER;
	memcpy(w.box, m->id, sizeof(w.box));
	return ask(keeper, &w, sizeof(w), NULL, 0);
}

static int seal_as(int keeper, const struct made *m, char out_id[WIRE_LAYER_ID])
{
	if (seal(keeper, m, 64 << 20, 10000) != WIRE_LAYER)
		return -1;
	memcpy(out_id, GOT(wire_layer)->id, WIRE_LAYER_ID);
	return 0;
}

/* The disk in memory and on a disk image: two kinds of file system. */
static const uint64_t disks[] = { 64ull << 20, 600ull << 20 };

TEST(the_writable_layer_of_a_box_becomes_an_image_layer)
{
	char id[2][WIRE_LAYER_ID], root[2][WIRE_LAYER_ID];
	struct keeper_sync k;
	struct wire_create w;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(image_layer("", id[0]) == 0);
	CHECK(make_root(k.fd, 0, 1, (const char *[]){ id[0] }, root[0]) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(disks); i++) {
		w = with_root(root[0]);
		w.limits.disk_bytes = disks[i];
		CHECK(make_as(k.fd, &w, &m) == 0);
		CHECK_INT(
			as_root(&m,
				"mkdir /d && echo one >/d/a && ln /d/a /d/b && chown 33:42 /d/a && "
				"chmod 4750 /d/a && ln -s ../etc /d/l && rm /srv/gone && "
				"rm -r /opaque && mkdir /opaque && echo n >/opaque/n && "
				"touch -d @1000000000 /d && echo mine >/etc/name && "
				"chmod 1770 /srv && mkdir -p /run/x /tmp/t && "
				"echo y >/opt/atoll/python/y && (sleep 1000 &)"),
			0);
		CHECK_INT(as_user(&m, "echo u >/tmp/u"), 0);
		CHECK(seal_as(k.fd, &m, id[1]) == 0);
		/* Its programs have ended; the box can still be used. */
		CHECK_INT(as_root(&m, "cat /proc/[0-9]*/comm; cat /d/b"), 0);
		CHECK(strstr(said, "sleep") == NULL && strstr(said, "one\n") != NULL);
		CHECK(end(k.fd, &m) == 0);
		CHECK(make_root(k.fd, 0, 2, (const char *[]){ id[1], id[0] }, root[1]) == 0);
		CHECK(box_of(k.fd, root[1], &m) == 0);
		CHECK_INT(as_root(&m,
				  "cat /d/b /etc/name /tmp/u; stat -c '%u %g %a %h' /d/a /d/b; "
				  "stat -c %a /srv; stat -c '%a %Y' /d; ls /opaque /srv; "
				  "stat -c %u /tmp/u; test -e /opt/atoll/python/y || echo no y"),
			  0);
		CHECK_STR(said, "one\nmine\nu\n33 42 4750 2\n33 42 4750 2\n1770\n"
				"755 1000000000\n/opaque:\nn\n\n/srv:\nkept\n1000\nno y\n");
		CHECK(end(k.fd, &m) == 0);
		CHECK_INT(check_root(k.fd, root[1]), WIRE_ROOT);
		CHECK_INT(drop_root(k.fd, root[1]), WIRE_DONE);
		CHECK_INT(drop_layer(k.fd, id[1]), WIRE_DONE);
	}
	CHECK_INT(drop_root(k.fd, root[0]), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id[0]), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(the_writable_layer_of_a_base_box_lies_over_base_again)
{
	char id[WIRE_LAYER_ID], root[WIRE_LAYER_ID];
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && make(k.fd, &m) == 0);
	CHECK_INT(as_root(&m, "echo r >/etc/extra && rm /etc/pip.conf && mkdir /data"), 0);
	CHECK_INT(as_user(&m, "echo u >/home/user/f && mkfifo /home/user/p"), 0);
	CHECK(seal_as(k.fd, &m, id) == 0);
	CHECK(end(k.fd, &m) == 0);
	CHECK(make_root(k.fd, WIRE_ROOT_BASE, 1, (const char *[]){ id }, root) == 0);
	CHECK(box_of(k.fd, root, &m) == 0);
	CHECK_INT(as_user(&m,
			  "cat /etc/extra /home/user/f; ls /etc/pip.conf 2>/dev/null; "
			  "stat -c '%U %F' /home/user/p /data /home/user; echo x >/home/user/g; "
			  "ls /usr/bin/env"),
		  0);
	CHECK_STR(said, "r\nu\nuser fifo\nroot directory\nuser directory\n/usr/bin/env\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	keeper_sync_close(&k);
}

static struct wire_create build_box(const char *root)
{
	struct wire_create w = root ? with_root(root) : wish(0, 1);

	w.head.flags |= WIRE_CREATE_HOST_WRITABLE;
	return w;
}

TEST(what_a_build_box_changes_in_usr_is_in_boxes_of_its_root)
{
	static const char changes[] =
		"mkdir /usr/local/lib/made && echo one >/usr/local/lib/made/a && rm /usr/bin/yes && "
		"cp /usr/bin/env /usr/bin/env2 && chown 33:42 /usr/bin/env2 && "
		"test ! -e /var/lib/dpkg/status || echo '# mine' >>/var/lib/dpkg/status";
	char id[2][WIRE_LAYER_ID], root[WIRE_LAYER_ID];
	struct keeper_sync k;
	struct wire_create w;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(disks); i++)
		for (unsigned merged = 0; merged < 2; merged++) {
			w = build_box(NULL);
			w.limits.disk_bytes = disks[i];
			CHECK(make_as(k.fd, &w, &m) == 0);
			CHECK_INT(as_root(&m, changes), 0);
			CHECK(seal_as(k.fd, &m, id[0]) == 0);
			CHECK(end(k.fd, &m) == 0);
			CHECK(make_root(k.fd, WIRE_ROOT_BASE | (merged ? WIRE_ROOT_MERGE : 0), 1,
					(const char *[]){ id[0] }, root) == 0);
			CHECK(box_of(k.fd, root, &m) == 0);
			CHECK_INT(as_user(&m,
					  "cat /usr/local/lib/made/a; ls /usr/bin/yes 2>&1 | "
					  "wc -l; stat -c %u:%g /usr/bin/env2; ls /usr/bin/sort; "
					  "grep -c '^# mine' /var/lib/dpkg/status; "
					  "touch /usr/x 2>/dev/null || echo read-only"),
				  0);
			CHECK_STR(said, "one\n1\n33:42\n/usr/bin/sort\n1\nread-only\n");
			CHECK(end(k.fd, &m) == 0);
			/* The next step sees the changes, and has what it does not change from the host. */
			w = build_box(root);
			w.limits.disk_bytes = disks[i];
			CHECK(make_as(k.fd, &w, &m) == 0);
			CHECK_INT(
				as_root(&m,
					"cat /usr/local/lib/made/a; test -e /usr/bin/yes || echo gone; "
					"ls /usr/bin/sort; grep -c '^# mine' /var/lib/dpkg/status; "
					"ls /var/lib/dpkg/info | head -1 | wc -l; "
					"rm -r /usr/local/lib/made"),
				0);
			CHECK_STR(said, "one\ngone\n/usr/bin/sort\n1\n1\n");
			CHECK(seal_as(k.fd, &m, id[1]) == 0);
			CHECK(end(k.fd, &m) == 0);
			CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
			CHECK_INT(drop_layer(k.fd, id[0]), WIRE_DONE);
			CHECK_INT(drop_layer(k.fd, id[1]), WIRE_DONE);
		}
	keeper_sync_close(&k);
}

TEST(hostile_content_of_a_writable_layer_reaches_no_file_of_the_host)
{
	static const struct {
		const char *script;
		uint64_t bytes_most, files_most;
		const char *words; /* of the error; NULL: it becomes a layer */
	} tricks[] = {
		{ "cd /home/user; ln -s /etc/shadow s; ln -s / r; ln -s /proc/1/root p; mkfifo f; "
		  "mkdir -p a/b; ln -s ../../../../../../etc a/b/c",
		  1 << 20, 1000, NULL },
		{ "chmod 0 /home/user; mkdir -p /x/y && echo z >/x/y/z && chmod 0 /x /x/y /x/y/z",
		  1 << 20, 1000, NULL },
		{ "chown 65534:65534 /home/user", 1 << 20, 1000, NULL },
		{ "truncate -s 1T /home/user/sparse", 1 << 20, 1000, "more than 1048576 bytes" },
		{ "head -c 2M /dev/zero >/home/user/b", 1 << 20, 1000, "more than 1048576 bytes" },
		{ "cd /home/user; seq 1 1100 | xargs touch", 1 << 20, 1000,
		  "more than 1000 files" },
		{ "cd /home/user; head -c 700K /dev/zero >a; ln a b; ln a c", 1 << 20, 1000, NULL },
		{ "d=/home/user; for i in $(seq 300); do mkdir $d/d; cd $d/d; d=.; done", 1 << 20,
		  1000, "more than 256 deep" },
		{ "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); "
		  "s.bind(\"/home/user/s\")'",
		  1 << 20, 1000, NULL },
	};
	struct stat before, after;
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK_INT(stat("/etc/shadow", &before), 0);
	for (unsigned i = 0; i < ARRAY_LEN(tricks); i++) {
		int type;

		CHECK(make(k.fd, &m) == 0);
		CHECK_INT(as_root(&m, tricks[i].script), 0);
		type = seal(k.fd, &m, tricks[i].bytes_most, tricks[i].files_most);
		CHECK_INT(type, tricks[i].words ? WIRE_ERROR : WIRE_LAYER);
		if (tricks[i].words)
			CHECK(strstr(GOT(wire_error)->msg, tricks[i].words) != NULL);
		else
			CHECK_INT(drop_layer(k.fd, GOT(wire_layer)->id), WIRE_DONE);
		CHECK(end(k.fd, &m) == 0);
	}
	CHECK_INT(stat("/etc/shadow", &after), 0);
	CHECK(before.st_uid == after.st_uid && before.st_mode == after.st_mode &&
	      before.st_ctim.tv_nsec == after.st_ctim.tv_nsec);
	keeper_sync_close(&k);
}

/* What a box of a merged root shows: names, kinds, facts, content. The size of a folder is a matter of
 * the file system. */
static const char listing[] =
	"cd /; for d in etc srv opaque d home usr/bin; do for f in $d $d/* $d/*/*; do "
	"test -e $f -o -L $f || continue; test -d $f -a ! -L $f && size=- || size=%s; "
	"stat -c \"%n %F %u %g %a $size %Y\" $f; done; done; cat etc/name srv/kept d/*/f";

TEST(a_merged_root_shows_what_its_layers_show_and_shares_their_files)
{
	static char plain[sizeof(said)];
	char id[3][WIRE_LAYER_ID], root[2][WIRE_LAYER_ID], command[600];
	const char *const of[] = { id[2], id[1], id[0] };
	struct wire_root sum;
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(image_layer("mkdir -p d/x d/y d/z; echo 1 >d/x/f; echo 1 >d/y/f; echo 1 >d/z/f",
			  id[0]) == 0);
	CHECK(layer("mkdir -p d/x opaque srv usr/bin; echo 2 >d/x/f; echo b >opaque/b; "
		    "mknod srv/gone c 0 0; mknod usr/bin/tty c 0 0; mknod d/y c 0 0; ln d/x/f d/x/g; "
		    "echo file >d/z; chmod 2755 d; mkfifo srv/p; ln -s x srv/l",
		    "opaque", id[1]) == 0);
	CHECK(layer("mkdir -p d/y etc opaque; echo 3 >d/y/new; echo three >etc/name; "
		    "chown 7:8 etc/name d; chmod 700 opaque; rm -r opaque; mkdir -m 700 opaque",
		    NULL, id[2]) == 0);
	CHECK(make_root(k.fd, 0, 3, of, root[0]) == 0);
	CHECK(box_of(k.fd, root[0], &m) == 0);
	CHECK_INT(as_root(&m, listing), 0);
	memcpy(plain, said, sizeof(said));
	CHECK(strstr(plain, "three") != NULL && strstr(plain, "opaque/b") != NULL);
	CHECK(strstr(plain, "opaque/a") == NULL && strstr(plain, "d/y/f") == NULL);
	CHECK(end(k.fd, &m) == 0);
	CHECK(make_root(k.fd, WIRE_ROOT_MERGE, 3, of, root[1]) == 0);
	CHECK(strcmp(root[0], root[1]) != 0);
	sum = *GOT(wire_root);
	CHECK(box_of(k.fd, root[1], &m) == 0);
	CHECK_INT(as_root(&m, listing), 0);
	CHECK_STR(said, plain);
	CHECK_INT(as_root(&m, "echo x >/etc/name; rm /d/x/f; ls -R /d >/dev/null"), 0);
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(check_root(k.fd, root[1]), WIRE_ROOT);
	CHECK(GOT(wire_root)->bytes == sum.bytes && GOT(wire_root)->files == sum.files);
	/* No second copy, and no deletion is left in it. */
	snprintf(command, sizeof(command),
		 "cd %s/layers && test merged.%s/d/x/f -ef %s/d/x/f && "
		 "test -z \"$(find merged.%s -type c)\"",
		 state_dir, root[1], id[1], root[1]);
	CHECK_INT(system(command), 0);
	/* Making it again is the same; the layers belong to it. */
	CHECK(make_root(k.fd, WIRE_ROOT_MERGE, 3, of, root[1]) == 0);
	CHECK_INT(drop_root(k.fd, root[0]), WIRE_DONE);
	CHECK(is_error(drop_layer(k.fd, id[0]), ERR_CONFLICT, "part of root"));
	/* Changes of the tree are found, also those that a link shares with no layer. */
	snprintf(command, sizeof(command),
		 "cd %s/layers/merged.%s && cp -p etc/name n && echo 4 >>n && "
		 "touch -r etc/name n && mv n etc/name",
		 state_dir, root[1]);
	CHECK_INT(system(command), 0);
	CHECK(is_error(check_root(k.fd, root[1]), ERR_CONFLICT, "'etc/name' has changed"));
	CHECK_INT(drop_root(k.fd, root[1]), WIRE_DONE);
	snprintf(command, sizeof(command), "! ls %s/layers | grep -E 'merged|new|drop'", state_dir);
	CHECK_INT(system(command), 0);
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(drop_layer(k.fd, id[i]), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(a_merged_root_over_base_keeps_its_deletions)
{
	char id[2][WIRE_LAYER_ID], root[WIRE_LAYER_ID];
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(layer("mkdir -p etc usr/bin etc/perl; mknod etc/pip.conf c 0 0; "
		    "mknod usr/bin/tac c 0 0; echo only >etc/perl/mine",
		    NULL, id[0]) == 0);
	CHECK(layer("mkdir -p etc; mknod etc/perl c 0 0; echo h >etc/h", NULL, id[1]) == 0);
	CHECK(make_root(k.fd, WIRE_ROOT_MERGE | WIRE_ROOT_BASE, 2, (const char *[]){ id[0], id[1] },
			root) == 0);
	CHECK(box_of(k.fd, root, &m) == 0);
	CHECK_INT(as_user(&m,
			  "cat /etc/h; ls /etc/perl; ls /etc/pip.conf /usr/bin/tac 2>/dev/null; "
			  "ls /usr/bin/env"),
		  0);
	CHECK_STR(said, "h\nmine\n/usr/bin/env\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(check_root(k.fd, root), WIRE_ROOT);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id[0]), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id[1]), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(a_layer_is_deleted_also_while_an_earlier_one_of_its_name_is_being_removed)
{
	char id[WIRE_LAYER_ID], root[WIRE_LAYER_ID], command[500];
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(layer("mkdir srv && echo x >srv/f", NULL, id) == 0);
	CHECK(make_root(k.fd, WIRE_ROOT_MERGE, 1, (const char *[]){ id }, root) == 0);
	snprintf(command, sizeof(command), "cd %s/layers && mkdir -p drop.%s/x drop.%s/x",
		 state_dir, id, root);
	CHECK_INT(system(command), 0);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	snprintf(command, sizeof(command), "cd %s/layers && rm -r drop.%s drop.%s", state_dir, id,
		 root);
	CHECK_INT(system(command), 0);
	keeper_sync_close(&k);
}

/* More requests at once than the store serves: those that are rejected have changed nothing. */
TEST(a_rejected_deletion_leaves_the_layer)
{
	enum { N = 40 };
	static char id[N][WIRE_LAYER_ID];
	unsigned done = 0, refused = 0;
	struct keeper_sync k;
	char script[64];
	struct err e;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	for (unsigned i = 0; i < N; i++) {
		snprintf(script, sizeof(script), "mkdir srv && echo %u >srv/f", i);
		CHECK(layer(script, NULL, id[i]) == 0);
	}
	for (unsigned i = 0; i < N; i++) {
		struct wire_layer w = { .head = sock_head(WIRE_LAYER_DROP, i) };

		memcpy(w.id, id[i], sizeof(w.id));
		CHECK(sock_send(k.fd, &w, sizeof(w), NULL, 0, NULL, 0, &e) == 0);
	}
	for (unsigned i = 0; i < N; i++)
		if (receive(k.fd) == WIRE_DONE) {
			id[GOT(frame)->ref][0] = 0;
			done++;
		} else {
			CHECK(is_error(GOT(frame)->type, ERR_LIMIT, "already"));
			refused++;
		}
	CHECK_INT(done + refused, N);
	for (unsigned i = 0; i < N; i++)
		if (id[i][0])
			CHECK_INT(drop_layer(k.fd, id[i]), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(a_merged_tree_without_its_root_is_removed_by_the_next_keeper)
{
	char id[WIRE_LAYER_ID], root[WIRE_LAYER_ID], command[400], path[300];
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(layer("mkdir srv && echo x >srv/f", NULL, id) == 0);
	CHECK(make_root(k.fd, WIRE_ROOT_MERGE, 1, (const char *[]){ id }, root) == 0);
	CHECK(end_keeper(&k, SIGKILL) == 0);
	snprintf(command, sizeof(command),
		 "cd %s && mv layers/merged.%s layers/merged.%064d && cp -al layers/merged.%064d "
		 "layers/merged.%s && echo x >roots/new.3",
		 state_dir, root, 0, 0, root);
	CHECK_INT(system(command), 0);
	CHECK(next_keeper(&k) == 0);
	snprintf(path, sizeof(path), "%s/layers/merged.%064d", state_dir, 0);
	for (int i = 0; i < 2000 && access(path, F_OK) == 0; i++)
		usleep(10000);
	CHECK_INT(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/roots/new.3", state_dir);
	CHECK_INT(access(path, F_OK), -1);
	CHECK_INT(check_root(k.fd, root), WIRE_ROOT);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(programs_run_with_the_ids_of_users_of_the_image)
{
	static const struct {
		unsigned uid, gid, flags;
		enum err_kind kind;
	} bad[] = {
		{ 65533, 5, WIRE_START_IDS, ERR_INVALID },
		{ 5, 65533, WIRE_START_IDS, ERR_INVALID },
		{ 65535, 5, WIRE_START_IDS, ERR_INVALID },
		{ 5, 65535, WIRE_START_IDS, ERR_INVALID },
		{ 5, 5, WIRE_START_IDS | WIRE_START_ROOT, ERR_INVALID },
		{ 5, 5, WIRE_START_IDS | WIRE_START_WARM, ERR_INVALID },
	};
	static const char what[] =
		"id -u; id -g; id -G; cat /proc/self/status | while read a b; do "
		"case $a in CapEff:|CapBnd:|CapAmb:|NoNewPrivs:) echo $a $b;; esac; "
		"done";
	char id[WIRE_LAYER_ID], root[WIRE_LAYER_ID];
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(image_layer("mkdir -m 700 data && chown 70:71 data", id) == 0);
	CHECK(make_root(k.fd, 0, 1, (const char *[]){ id }, root) == 0);
	CHECK(box_of(k.fd, root, &m) == 0);
	CHECK_INT(run_with(&m, WIRE_START_IDS, 70, 71, what), 0);
	CHECK_STR(said, "70\n71\n71\nCapEff: 0000000000000000\nCapBnd: 0000000000000000\n"
			"CapAmb: 0000000000000000\nNoNewPrivs: 1\n");
	CHECK_INT(run_with(&m, WIRE_START_IDS, 70, 71,
			   "echo x >/data/x && stat -c '%u %g' /data/x"),
		  0);
	CHECK_STR(said, "70 71\n");
	CHECK(run_with(&m, WIRE_START_IDS, 71, 71, "ls /data 2>/dev/null") != 0);
	CHECK(as_user(&m, "ls /data 2>/dev/null") != 0);
	CHECK_INT(run_with(&m, WIRE_START_IDS, 65534, 65534, "id -u; id -g"), 0);
	CHECK_STR(said, "65534\n65534\n");
	/* Uid 0 is root, as with START_ROOT. */
	CHECK_INT(run_with(&m, WIRE_START_IDS, 0, 42, "id -u; id -g; ls /data"), 0);
	CHECK_STR(said, "0\n42\nx\n");
	CHECK_INT(run_with(&m, WIRE_START_IDS | WIRE_START_PTY, 70, 71, "stat -c %u $(tty)"), 0);
	CHECK(strncmp(said, "70", 2) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_INT(run_with(&m, bad[i].flags, bad[i].uid, bad[i].gid, "id"), -1);
		CHECK_INT(GOT(frame)->type, WIRE_ERROR);
		CHECK_INT(GOT(wire_error)->kind, bad[i].kind);
	}
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(drop_root(k.fd, root), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	keeper_sync_close(&k);
}

static int pool_root(int keeper, const char *root, unsigned depth)
{
	struct wire_pool_root w = { .head = sock_head(WIRE_POOL_ROOT, 15),
				    .limits = box_default_limits(),
				    .depth = depth };

	snprintf(w.root, sizeof(w.root), "%.71s", root);
	return ask(keeper, &w, sizeof(w), NULL, 0);
}

static struct wire_info about_keeper(int keeper)
{
	struct frame info = sock_head(WIRE_INFO, 7);
	struct wire_info none = { .pid = 0 };

	return ask(keeper, &info, sizeof(info), NULL, 0) == WIRE_INFO_REPLY ? *GOT(wire_info)
									    : none;
}

/* Until that many boxes wait in the pool of the root; the plain pool has `plain`. */
static int pooled_becomes(int keeper, unsigned plain, unsigned of_roots)
{
	for (int i = 0; i < 4000; i++) {
		struct wire_info a = about_keeper(keeper);

		if (a.pooled == plain + of_roots && !a.making)
			return 1;
		usleep(5000);
	}
	return 0;
}

TEST(boxes_of_a_root_are_created_in_advance_and_given_only_to_it)
{
	char id[2][WIRE_LAYER_ID], root[2][WIRE_LAYER_ID];
	struct wire_pool_size fill = { .head = sock_head(WIRE_POOL_SIZE, 16), .depth = 4 };
	struct wire_create w;
	struct keeper_sync k;
	struct made m, other;
	uint64_t hits;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(image_layer("", id[0]) == 0);
	CHECK(layer("mkdir srv; echo two >srv/two", NULL, id[1]) == 0);
	CHECK(make_root(k.fd, WIRE_ROOT_MERGE, 1, (const char *[]){ id[0] }, root[0]) == 0);
	CHECK(make_root(k.fd, WIRE_ROOT_MERGE, 2, (const char *[]){ id[1], id[0] }, root[1]) == 0);
	CHECK_INT(ask(k.fd, &fill, sizeof(fill), NULL, 0), WIRE_INFO_REPLY);
	CHECK_INT(pool_root(k.fd, root[0], 3), WIRE_DONE);
	CHECK(pooled_becomes(k.fd, 4, 3));
	hits = about_keeper(k.fd).hits;
	CHECK(box_of(k.fd, root[0], &m) == 0);
	CHECK_STR(m.about.template, "test");
	CHECK_INT(about_keeper(k.fd).hits, hits + 1);
	CHECK_INT(as_user(&m, "cat /etc/name; id -u; ls /srv/two 2>/dev/null"), 2);
	CHECK_STR(said, "below\n1000\n");
	/* Another root, another disk, a plain box: not from this pool. */
	CHECK(box_of(k.fd, root[1], &other) == 0);
	CHECK_INT(about_keeper(k.fd).hits, hits + 1);
	CHECK_INT(as_user(&other, "cat /srv/two"), 0);
	CHECK(end(k.fd, &other) == 0);
	CHECK(pooled_becomes(k.fd, 4, 3));
	CHECK(box_of(k.fd, root[1], &other) == 0);
	CHECK(end(k.fd, &other) == 0);
	w = with_root(root[0]);
	w.limits.disk_bytes = 32 << 20;
	CHECK(make_as(k.fd, &w, &other) == 0);
	CHECK_INT(about_keeper(k.fd).hits, hits + 1);
	CHECK(end(k.fd, &other) == 0);
	CHECK(make(k.fd, &other) == 0);
	CHECK_INT(as_user(&other, "ls /usr/bin/env"), 0);
	CHECK(end(k.fd, &other) == 0);
	/* Two boxes of the second root wait now, because it was requested twice. */
	CHECK(pooled_becomes(k.fd, 4, 3 + 2));
	CHECK_INT(pool_root(k.fd, root[1], 0), WIRE_DONE);
	CHECK(pooled_becomes(k.fd, 4, 3));
	/* Pooled boxes do not keep the root, a client's box does. */
	CHECK(is_error(drop_root(k.fd, root[0]), ERR_CONFLICT, m.id));
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(drop_root(k.fd, root[0]), WIRE_DONE);
	CHECK(pooled_becomes(k.fd, 4, 0));
	CHECK(is_error(pool_root(k.fd, root[0], 1), ERR_NOT_FOUND, "no root"));
	CHECK(is_error(pool_root(k.fd, root[1], 65), ERR_INVALID, "at most"));
	/* Deleted while its boxes are being created. */
	CHECK(make_root(k.fd, WIRE_ROOT_MERGE, 1, (const char *[]){ id[0] }, root[0]) == 0);
	for (int i = 0; i < 5; i++) {
		struct wire_pool_root p = { .head = sock_head(WIRE_POOL_ROOT, 17),
					    .limits = box_default_limits(),
					    .depth = 8 };
		struct err e;

		memcpy(p.root, root[0], sizeof(p.root));
		CHECK(sock_send(k.fd, &p, sizeof(p), NULL, 0, NULL, 0, &e) == 0);
		CHECK(drop_root(k.fd, root[0]) != 0);
		CHECK(receive(k.fd) != 0); /* the other of the two answers */
		CHECK(pooled_becomes(k.fd, 4, 0));
		CHECK(make_root(k.fd, WIRE_ROOT_MERGE, 1, (const char *[]){ id[0] }, root[0]) == 0);
	}
	CHECK_INT(drop_root(k.fd, root[0]), WIRE_DONE);
	CHECK_INT(drop_root(k.fd, root[1]), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id[0]), WIRE_DONE);
	CHECK_INT(drop_layer(k.fd, id[1]), WIRE_DONE);
	keeper_sync_close(&k);
}

/* Kills a process and its children; it is stopped first, so that it can start no other. */
static void kill_with_children(int pid)
{
	char path[64];
	FILE *f;
	int child;

	kill(pid, SIGSTOP);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &child) == 1)
		kill_with_children(child);
	if (f)
		fclose(f);
	kill(pid, SIGKILL);
}

/* How many names in a folder of the store match. */
static int count_of(const char *where, const char *pattern)
{
	char command[300];
	int n = -1;
	FILE *f;

	snprintf(command, sizeof(command), "ls %s/%s | grep -cE '%s'", state_dir, where, pattern);
	f = popen(command, "re");
	if (f && fscanf(f, "%d", &n) != 1)
		n = -1;
	if (f)
		pclose(f);
	return n;
}

/* Everything that has a name is complete. */
static int all_is_whole(int keeper, const char *where, uint8_t check, uint8_t answer)
{
	char command[200], id[100];
	FILE *f;
	int whole = 1;

	snprintf(command, sizeof(command), "ls %s/%s | grep -E '^[0-9a-f]{64}$'", state_dir, where);
	f = popen(command, "re");
	while (f && fscanf(f, "%99s", id) == 1)
		whole &= (check == WIRE_ROOT_CHECK ? about_root(keeper, check, id)
						   : about_layer(keeper, check, id)) == answer;
	if (f)
		pclose(f);
	return whole;
}

TEST(a_kill_of_all_processes_leaves_no_incomplete_layer_or_root)
{
	char id[WIRE_LAYER_ID], root[WIRE_LAYER_ID];
	struct wire_root_make merge = { .head = sock_head(WIRE_ROOT_MAKE, 18), .nlayers = 1 };
	struct wire_layer_make upper = { .head = sock_head(WIRE_LAYER_MAKE, 19),
					 .bytes_most = 64 << 20,
					 .files_most = 10000 };
	struct keeper_sync k;
	struct made m;
	struct err e;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(image_layer("mkdir d; cd d; seq 2000 | xargs touch; cd ..", id) == 0);
	CHECK(make_root(k.fd, 0, 1, (const char *[]){ id }, root) == 0);
	memcpy(merge.layer[0], id, sizeof(id));
	upper.head.flags = WIRE_LAYER_UPPER;
	for (unsigned i = 0; i < 8; i++) {
		auto_fd int pidfd = -1;
		int keeper = (int)about_keeper(k.fd).pid;

		merge.head.flags = WIRE_ROOT_MERGE | (i & 2 ? WIRE_ROOT_BASE : 0);
		CHECK(box_of(k.fd, root, &m) == 0);
		CHECK_INT(as_root(&m,
				  "i=0; while test $i -lt 500; do echo $i >/srv/$i; i=$((i+1)); "
				  "done"),
			  0);
		memcpy(upper.box, m.id, sizeof(upper.box));
		CHECK(sock_send(k.fd, i & 1 ? (void *)&merge : (void *)&upper,
				i & 1 ? sizeof(merge) : sizeof(upper), NULL, 0, NULL, 0, &e) == 0);
		usleep(i * 4000);
		pidfd = (int)syscall(SYS_pidfd_open, keeper, 0);
		kill_with_children(keeper);
		CHECK(poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, 60000) == 1);
		keeper_sync_close(&k);
		own_close_fd(&m.init);
		CHECK(next_keeper(&k) == 0);
		/* The layer store removes them while the keeper already answers. */
		for (int n = 0;
		     n < 2000 && (count_of("layers", "^(new|drop)") != 0 ||
				  count_of("layers", "^merged") != count_of("roots", ".") - 1);
		     n++)
			usleep(10000);
		CHECK_INT(count_of("layers", "^(new|drop)"), 0);
		CHECK_INT(count_of("roots", "new"), 0);
		CHECK_INT(count_of("layers", "^merged"), count_of("roots", ".") - 1);
		CHECK(all_is_whole(k.fd, "layers", WIRE_LAYER_CHECK, WIRE_LAYER));
		CHECK(all_is_whole(k.fd, "roots", WIRE_ROOT_CHECK, WIRE_ROOT));
		CHECK(end_what_is_left(&k) >= 0);
	}
	keeper_sync_close(&k);
}

TEST(no_file_or_mount_is_left_after_all_root_tests)
{
	leave_nothing();
}
