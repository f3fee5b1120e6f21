/* layerbox.c - layers: made of a box's folder, mounted in others: tests/system/layers.sh. */
#include "system/wirebox.h"

#include <dirent.h>
#include <sys/mman.h>

static struct wire_layer_make of(const struct made *m, const char *path, const char *place)
{
	struct wire_layer_make w = { .head = sock_head(WIRE_LAYER_MAKE, 9),
				     .bytes_most = 64 << 20,
				     .files_most = 10000 };

	memcpy(w.box, m->id, sizeof(w.box));
	snprintf(w.path, sizeof(w.path), "%s", path);
	snprintf(w.place, sizeof(w.place), "%s", place);
	return w;
}

/* A layer with one program in /usr/local/bin and one file in /opt/packages. */
static int make_layer(int keeper, const char *text, char out_id[WIRE_LAYER_ID])
{
	struct wire_layer_make w;
	char script[400];
	struct made m;

	if (make(keeper, &m) < 0)
		return -1;
	snprintf(script, sizeof(script),
		 "mkdir -p l/usr/local/bin l/opt/packages && "
		 "printf '#!/bin/sh\\necho %s\\n' >l/usr/local/bin/hello && "
		 "chmod 4755 l/usr/local/bin/hello && echo %s >l/opt/packages/f && "
		 "ln -s /opt/packages/f l/opt/packages/link",
		 text, text);
	if (sh(&m, script) != 0)
		return -1;
	w = of(&m, "/home/user/l", "");
	if (ask(keeper, &w, sizeof(w), NULL, 0) != WIRE_LAYER)
		return -1;
	memcpy(out_id, GOT(wire_layer)->id, WIRE_LAYER_ID);
	return end(keeper, &m);
}

static struct wire_create with_layer(const char *id)
{
	struct wire_create w = wish(0, 1);

	w.nlayers = 1;
	snprintf(w.layer[0], sizeof(w.layer[0]), "%s", id);
	return w;
}

static int drop_layer(int keeper, const char *id)
{
	struct wire_layer w = { .head = sock_head(WIRE_LAYER_DROP, 3) };

	snprintf(w.id, sizeof(w.id), "%s", id);
	return ask(keeper, &w, sizeof(w), NULL, 0);
}

TEST(a_layer_made_of_a_folder_is_mounted_in_every_box_that_requests_it)
{
	char id[WIRE_LAYER_ID], again[WIRE_LAYER_ID];
	struct keeper_sync k;
	struct wire_create w;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make_layer(k.fd, "hi", id) == 0);
	CHECK_INT(strlen(id), 64);
	CHECK(make_layer(k.fd, "hi", again) == 0);
	CHECK_STR(id, again); /* the same content is the same layer */
	w = with_layer(id);
	CHECK(make_as(k.fd, &w, &m) == 0);
	CHECK_INT(sh(&m, "hello; cat /opt/packages/link; stat -c '%u %a' /opt/packages/f "
			 "/usr/local/bin/hello; ls /usr/bin/env; id -u"),
		  0);
	CHECK_STR(said, "hi\nhi\n0 644\n0 755\n/usr/bin/env\n1000\n");
	CHECK(end(k.fd, &m) == 0);
	/* And in none that does not. */
	CHECK(make(k.fd, &m) == 0);
	CHECK(sh(&m, "hello 2>/dev/null || ls /opt/packages 2>/dev/null") != 0);
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(a_layer_is_read_only_in_a_box)
{
	char id[WIRE_LAYER_ID];
	struct wire_layer check = { .head = sock_head(WIRE_LAYER_CHECK, 4) };
	struct keeper_sync k;
	struct wire_create w;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && make_layer(k.fd, "ro", id) == 0);
	w = with_layer(id);
	CHECK(make_as(k.fd, &w, &m) == 0);
	CHECK_INT(sh(&m,
		     "for f in /opt/packages/f /usr/local/bin/hello; do"
		     " echo x 2>/dev/null >$f && exit 1; rm -f $f 2>/dev/null; "
		     "mv $f /tmp 2>/dev/null && exit 2; chmod 777 $f 2>/dev/null && exit 3; done;"
		     " touch /opt/packages/new /usr/local/new 2>/dev/null && exit 4;"
		     " grep -c ' /usr .*[ ,]ro' /proc/self/mountinfo"),
		  0);
	CHECK(end(k.fd, &m) == 0);
	memcpy(check.id, id, sizeof(check.id));
	CHECK_INT(ask(k.fd, &check, sizeof(check), NULL, 0), WIRE_LAYER);
	CHECK_STR(GOT(wire_layer)->id, id);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	keeper_sync_close(&k);
}

/* As the box's root, which may write where it is the owner: into its own copy. */
static int root_sh(const struct made *m, const char *script)
{
	struct wire_start st = { .head = sock_head(WIRE_START, 77),
				 .argc = 3,
				 .grace_ms = 1000,
				 .credit = { UINT64_MAX, UINT64_MAX } };
	char tail[1024];
	struct err e;
	int type;

	st.head.flags = WIRE_START_ROOT;
	st.tail_bytes =
		(uint32_t)snprintf(tail, sizeof(tail), "/%c/bin/sh%c-c%c%s%c", 0, 0, 0, script, 0);
	if (sock_send(m->init, &st, sizeof(st), tail, st.tail_bytes, NULL, 0, &e) < 0)
		return -1;
	while ((type = receive(m->init)) == WIRE_OUTPUT)
		;
	return type == WIRE_EXIT && GOT(wire_exit)->why == WIRE_WHY_EXIT ? GOT(wire_exit)->status
									 : -1;
}

TEST(root_of_a_box_changes_a_layer_only_in_its_own_copy)
{
	char id[WIRE_LAYER_ID];
	struct wire_layer check = { .head = sock_head(WIRE_LAYER_CHECK, 4) };
	struct keeper_sync k;
	struct wire_create w;
	struct made one, two;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && make_layer(k.fd, "all", id) == 0);
	w = with_layer(id);
	CHECK(make_as(k.fd, &w, &one) == 0 && make_as(k.fd, &w, &two) == 0);
	CHECK_INT(root_sh(&one, "echo mine >/opt/packages/f && rm /opt/packages/link && "
				"! echo x 2>/dev/null >/usr/local/bin/hello && "
				"! mount -o remount,rw /usr 2>/dev/null"),
		  0);
	CHECK_INT(sh(&one, "cat /opt/packages/f"), 0);
	CHECK_STR(said, "mine\n");
	CHECK_INT(sh(&two, "cat /opt/packages/link; hello"), 0);
	CHECK_STR(said, "all\nall\n");
	CHECK(end(k.fd, &one) == 0 && end(k.fd, &two) == 0);
	memcpy(check.id, id, sizeof(check.id));
	CHECK_INT(ask(k.fd, &check, sizeof(check), NULL, 0), WIRE_LAYER);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(a_layer_changed_on_the_host_is_detected)
{
	char id[WIRE_LAYER_ID], path[300];
	struct wire_layer check = { .head = sock_head(WIRE_LAYER_CHECK, 4) };
	struct keeper_sync k;
	auto_fd int fd = -1;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && make_layer(k.fd, "mine", id) == 0);
	snprintf(path, sizeof(path), "%s/layers/%s/opt/packages/f", state_dir, id);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK_INT(write(fd, "y", 1), 1);
	memcpy(check.id, id, sizeof(check.id));
	CHECK(is_error(ask(k.fd, &check, sizeof(check), NULL, 0), ERR_CONFLICT, "has changed"));
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(a_layer_in_use_is_kept_and_a_dropped_one_cannot_be_mounted)
{
	char id[WIRE_LAYER_ID];
	struct keeper_sync k;
	struct wire_create w;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && make_layer(k.fd, "used", id) == 0);
	w = with_layer(id);
	CHECK(make_as(k.fd, &w, &m) == 0);
	CHECK(is_error(drop_layer(k.fd, id), ERR_CONFLICT, m.id));
	/* The next keeper knows, too. */
	CHECK(end_keeper(&k, SIGKILL) == 0 && next_keeper(&k) == 0);
	CHECK(is_error(drop_layer(k.fd, id), ERR_CONFLICT, m.id));
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	CHECK(is_error(drop_layer(k.fd, id), ERR_NOT_FOUND, "no layer"));
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_NOT_FOUND, "no layer"));
	keeper_sync_close(&k);
}

TEST(invalid_layer_ids_and_too_many_layers_are_rejected)
{
	static const char *const bad[] = {
		"",    "..",    "../../../etc",
		"abc", "new.1", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg"
	};
	struct keeper_sync k;
	struct wire_create w;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		w = with_layer(bad[i]);
		CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_INVALID, "hexadecimal"));
		CHECK(is_error(drop_layer(k.fd, bad[i]), ERR_INVALID, "hexadecimal"));
	}
	w.nlayers = 5;
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_INVALID, "a box may have"));
	memset(&w.layer, 'a', sizeof(w.layer));
	w.nlayers = 4;
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_INVALID, "hexadecimal"));
	keeper_sync_close(&k);
}

TEST(a_hostile_folder_is_rejected_and_leaves_no_layer)
{
	static const struct {
		const char *script, *words;
	} tricks[] = {
		{ "mkdir -p l/etc && echo x >l/etc/passwd", "is not allowed" },
		{ "mkdir l; ln -s /etc l/usr", "must be a folder" },
		{ "mkdir -p l/opt && mkfifo l/opt/p", "neither file" },
		{ "mkdir -p l/opt/locked && touch l/opt/locked/f && chmod 0 l/opt/locked",
		  "cannot be read" },
		{ "mkdir -p l/opt && touch l/opt/f && chmod 0 l/opt/f", "ermission" },
		{ "mkdir -p l/opt; head -c 70M /dev/zero >l/opt/big", "more than" },
		{ "mkdir -p l/opt; truncate -s 1T l/opt/sparse", "more than" },
		{ "mkdir -p l/opt; cd l/opt; seq 1 11000 | xargs touch", "more than" },
		{ "d=l/opt; mkdir -p $d; for i in $(seq 80); do d=$d/d; mkdir $d; done", "deep" },
		{ "true", "" },
	};
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(tricks); i++) {
		struct wire_layer_make w;

		CHECK(make(k.fd, &m) == 0);
		CHECK_INT(sh(&m, tricks[i].script), 0);
		w = of(&m, "/home/user/l", "");
		CHECK_INT(ask(k.fd, &w, sizeof(w), NULL, 0), WIRE_ERROR);
		CHECK(strstr(GOT(wire_error)->msg, tricks[i].words) != NULL);
		CHECK(end(k.fd, &m) == 0);
	}
	keeper_sync_close(&k);
}

/* A recursive change of owner does not follow links. */
TEST(links_in_a_layer_do_not_reach_host_files)
{
	struct keeper_sync k;
	struct wire_layer_make w;
	struct wire_create c;
	char id[WIRE_LAYER_ID];
	struct stat before, after;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && make(k.fd, &m) == 0);
	CHECK_INT(stat("/etc/shadow", &before), 0);
	CHECK_INT(
		sh(&m,
		   "mkdir -p l/opt/p; ln -s /etc/shadow l/opt/p/s; ln -s ../../../../../../etc l/opt/p/e;"
		   " ln -s /etc/shadow l/opt/p/h"),
		0);
	w = of(&m, "/home/user/l/opt", "opt");
	CHECK_INT(ask(k.fd, &w, sizeof(w), NULL, 0), WIRE_LAYER);
	memcpy(id, GOT(wire_layer)->id, sizeof(id));
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(stat("/etc/shadow", &after), 0);
	CHECK(before.st_uid == after.st_uid && before.st_mode == after.st_mode &&
	      before.st_mtim.tv_sec == after.st_mtim.tv_sec);
	c = with_layer(id);
	CHECK(make_as(k.fd, &c, &m) == 0);
	CHECK_INT(sh(&m, "readlink /opt/p/e; test -e /opt/p/s || echo nothing"), 0);
	CHECK_STR(said, "../../../../../../etc\nnothing\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	keeper_sync_close(&k);
}

static int entries(const char *name)
{
	struct dirent *de;
	char path[300];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/layers", state_dir);
	d = opendir(path);
	while (d && (de = readdir(d)) != NULL)
		n += strncmp(de->d_name, name, strlen(name)) == 0;
	if (d)
		closedir(d);
	return n;
}

TEST(files_left_by_a_crash_are_removed_by_the_next_keeper)
{
	struct keeper_sync k;
	char command[400];

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK_INT(entries("new."), 0);
	CHECK(end_keeper(&k, SIGKILL) == 0);
	snprintf(command, sizeof(command),
		 "cd %s/layers && mkdir -p new.77/usr/x drop.99/opt && touch new.77/usr/x/y && "
		 "ln -s / new.77/usr/root",
		 state_dir);
	CHECK_INT(system(command), 0);
	CHECK(next_keeper(&k) == 0);
	for (int i = 0; i < 500 && entries("new.") + entries("drop."); i++)
		usleep(10000);
	CHECK_INT(entries("new.") + entries("drop."), 0);
	keeper_sync_close(&k);
}

/* ---- archives ---- */

static int ask_with(int keeper, const void *body, size_t n, int fd)
{
	struct err e;

	return sock_send(keeper, body, n, NULL, 0, &fd, fd >= 0, &e) < 0 ? 0 : receive(keeper);
}

static struct wire_layer_unpack unpacking(void)
{
	return (struct wire_layer_unpack){ .head = sock_head(WIRE_LAYER_UNPACK, 11),
					   .bytes_most = 1 << 20,
					   .files_most = 100 };
}

/* An archive in the state folder; returns its descriptor. */
static int archive_of(const char *script)
{
	char command[600], path[128];

	snprintf(path, sizeof(path), "%s/test.tar", state_dir);
	snprintf(
		command, sizeof(command),
		"cd $(mktemp -d) && { %s; } && tar --format=pax --mtime=@7 -cf %s . && rm -rf \"$PWD\"",
		script, path);
	return system(command) == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

TEST(an_archive_is_unpacked_as_an_image_layer_and_exported_again)
{
	struct wire_layer_unpack w = unpacking();
	struct wire_layer x = { .head = sock_head(WIRE_LAYER_EXPORT, 12) };
	auto_fd int archive = -1, out = -1;
	char id[WIRE_LAYER_ID];
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	archive = archive_of("mkdir etc && echo text >etc/file && chown 7:8 etc/file && "
			     "chmod 4755 etc/file && ln etc/file etc/same && >etc/.wh.gone");
	CHECK(archive >= 0);
	CHECK_INT(ask_with(k.fd, &w, sizeof(w), archive), WIRE_LAYER);
	memcpy(id, GOT(wire_layer)->id, sizeof(id));
	CHECK_INT(GOT(wire_layer)->bytes, 5);
	CHECK_INT(GOT(wire_layer)->files, 5);
	CHECK_INT(GOT(wire_layer)->skipped, 0);
	memcpy(x.id, id, sizeof(id));
	out = memfd_create("export", MFD_CLOEXEC);
	CHECK_INT(ask_with(k.fd, &x, sizeof(x), out), WIRE_LAYER);
	CHECK_STR(GOT(wire_layer)->id, id);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	/* From the export the same layer. */
	CHECK_INT(lseek(out, 0, SEEK_SET), 0);
	CHECK_INT(ask_with(k.fd, &w, sizeof(w), out), WIRE_LAYER);
	CHECK_STR(GOT(wire_layer)->id, id);
	x.head = sock_head(WIRE_LAYER_CHECK, 13);
	CHECK_INT(ask(k.fd, &x, sizeof(x), NULL, 0), WIRE_LAYER);
	CHECK_INT(drop_layer(k.fd, id), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(archives_that_do_not_fit_are_rejected_and_leave_nothing)
{
	struct wire_layer_unpack w = unpacking();
	struct wire_layer x = { .head = sock_head(WIRE_LAYER_EXPORT, 12) };
	auto_fd int archive = -1, broken = -1;
	struct keeper_sync k;
	int pair[2];

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	archive = archive_of("echo text >a; echo more >b");
	CHECK(is_error(ask_with(k.fd, &w, sizeof(w), -1), ERR_INVALID, "no descriptor"));
	w.files_most = 2;
	CHECK(is_error(ask_with(k.fd, &w, sizeof(w), archive), ERR_LIMIT, "more than 2 entries"));
	CHECK_INT(lseek(archive, 0, SEEK_SET), 0);
	w = unpacking();
	w.bytes_most = 6;
	CHECK(is_error(ask_with(k.fd, &w, sizeof(w), archive), ERR_LIMIT, "more than 6 bytes"));
	CHECK_INT(lseek(archive, 0, SEEK_SET), 0);
	w = unpacking();
	memset(w.diff, 'a', 64);
	CHECK(is_error(ask_with(k.fd, &w, sizeof(w), archive), ERR_CONFLICT, "not sha256:aaaa"));
	memset(w.diff, 'x', 64);
	CHECK(is_error(ask_with(k.fd, &w, sizeof(w), archive), ERR_INVALID, "hexadecimal"));
	w = unpacking();
	broken = open("/dev/zero", O_WRONLY | O_CLOEXEC); /* cannot be read */
	CHECK_INT(ask_with(k.fd, &w, sizeof(w), broken), WIRE_ERROR);
	/* The receiver of an export closes its end. */
	memset(x.id, 'a', 64);
	CHECK_INT(pipe2(pair, O_CLOEXEC), 0);
	CHECK(is_error(ask_with(k.fd, &x, sizeof(x), pair[1]), ERR_NOT_FOUND, "no layer"));
	CHECK_INT(lseek(archive, 0, SEEK_SET), 0);
	CHECK_INT(ask_with(k.fd, &w, sizeof(w), archive), WIRE_LAYER);
	memcpy(x.id, GOT(wire_layer)->id, sizeof(x.id));
	close(pair[0]);
	CHECK(is_error(ask_with(k.fd, &x, sizeof(x), pair[1]), ERR_SYS, "write the archive"));
	close(pair[1]);
	CHECK_INT(drop_layer(k.fd, x.id), WIRE_DONE);
	CHECK_INT(entries("new.") + entries("drop."), 0);
	keeper_sync_close(&k);
}

TEST(an_unpacking_ends_with_its_keeper)
{
	struct wire_layer_unpack w = unpacking();
	struct keeper_sync k;
	struct err e;
	int pair[2];

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK_INT(pipe2(pair, O_CLOEXEC), 0);
	CHECK(sock_send(k.fd, &w, sizeof(w), NULL, 0, &pair[0], 1, &e) == 0);
	close(pair[0]);
	for (int i = 0; i < 3000 && !entries("new."); i++)
		usleep(10000);
	CHECK_INT(entries("new."), 1); /* it waits for the archive */
	CHECK(end_keeper(&k, SIGKILL) == 0);
	/* Its process held the only other end of the pipe. */
	CHECK_INT(poll(&(struct pollfd){ .fd = pair[1] }, 1, 60000), 1);
	close(pair[1]);
	CHECK(next_keeper(&k) == 0);
	for (int i = 0; i < 3000 && entries("new."); i++)
		usleep(10000);
	CHECK_INT(entries("new."), 0);
	keeper_sync_close(&k);
}

TEST(a_box_can_mount_four_layers)
{
	char id[3][WIRE_LAYER_ID];
	struct keeper_sync k;
	struct wire_create w = wish(0, 1);
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make_layer(k.fd, "a", id[0]) == 0 && make_layer(k.fd, "b", id[1]) == 0 &&
	      make_layer(k.fd, "c", id[2]) == 0);
	w.nlayers = 3;
	for (unsigned i = 0; i < 3; i++)
		memcpy(w.layer[i], id[i], sizeof(id[i]));
	CHECK(make_as(k.fd, &w, &m) == 0);
	CHECK_INT(sh(&m, "hello; cat /opt/packages/f"), 0);
	CHECK_STR(said, "a\na\n");
	CHECK(end(k.fd, &m) == 0);
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(drop_layer(k.fd, id[i]), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(no_file_or_mount_is_left_after_all_layer_tests)
{
	leave_nothing();
}
