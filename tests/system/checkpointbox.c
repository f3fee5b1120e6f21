/* checkpointbox.c - checkpoints of files, and boxes that start from them: tests/system/checkpoint_wire.sh. */
#include "system/rootbox.h"
#include "layer/index.h"

/* The answer to CHECKPOINT; its fields are in GOT(wire_checkpointed). */
static int take(int keeper, const struct made *m, const char *id, const char *base)
{
	struct wire_checkpoint w = { .head = sock_head(WIRE_CHECKPOINT, 31),
				     .bytes_most = 1ull << 40,
				     .files_most = 1 << 20 };

	snprintf(w.box, sizeof(w.box), "%s", m->id);
	snprintf(w.id, sizeof(w.id), "%s", id);
	snprintf(w.base, sizeof(w.base), "%s", base);
	return ask(keeper, &w, sizeof(w), NULL, 0);
}

static struct wire_create from(unsigned n, const char *const *ids)
{
	struct wire_create w = wish(0, 1);

	w.nchain = n;
	for (unsigned i = 0; i < n; i++)
		snprintf(w.chain[i], sizeof(w.chain[i]), "%s", ids[i]);
	return w;
}

static int drop(int keeper, const char *id)
{
	struct wire_id w = { .head = sock_head(WIRE_CHECKPOINT_DROP, 32) };

	snprintf(w.id, sizeof(w.id), "%s", id);
	return ask(keeper, &w, sizeof(w), NULL, 0);
}

#define A "aaaaaaaaaaaa"
#define B "bbbbbbbbbbbb"
#define C "cccccccccccc"
#define M "mmmmmmmmmmmm"

TEST(a_box_continues_from_the_files_of_another)
{
	static const char show[] =
		"cd /home/user; find . -type d -printf '%p %m %U\\n' | sort; find . ! -type d -printf '%p %y %m %U %n %s %t\\n' | sort; cat a d/b link; "
		"readlink link; test -e /etc/pip.conf || echo deleted";
	struct wire_create w;
	struct keeper_sync k;
	struct made m, copy;
	char want[8192];

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make(k.fd, &m) == 0);
	CHECK_INT(
		as_user(&m,
			"cd /home/user; echo one >a; mkdir d; echo b >d/b; ln -s a link; ln d/b d/hard; "
			"mkfifo p; chmod 640 a; truncate -s 1G sparse; head -c 100000 "
			"/dev/zero | tr '\\0' x >large; printf n >\"$(printf 'new\\nline')\""),
		0);
	CHECK_INT(as_root(&m, "rm /etc/pip.conf; echo root >/etc/root-file"), 0);
	CHECK_INT(as_user(&m, show), 0);
	snprintf(want, sizeof(want), "%s", said);
	if (take(k.fd, &m, A, "") != WIRE_CHECKPOINTED)
		printf("# %s\n", GOT(wire_error)->msg);
	CHECK_INT(take(k.fd, &m, A, ""), WIRE_CHECKPOINTED);
	CHECK_STR(GOT(wire_checkpointed)->id, A);
	CHECK_INT(GOT(wire_checkpointed)->same, 0);
	CHECK(GOT(wire_checkpointed)->files >= 10);
	CHECK(GOT(wire_checkpointed)->bytes < 1 << 20);
	CHECK(GOT(wire_checkpointed)->frozen_us > 0);
	printf("# frozen %llu us, took %llu us\n",
	       (unsigned long long)GOT(wire_checkpointed)->frozen_us,
	       (unsigned long long)GOT(wire_checkpointed)->took_us);
	/* Programs continue. */
	CHECK_INT(as_user(&m, "cd /home/user; echo more >>a"), 0);
	w = from(1, (const char *[]){ A });
	CHECK(make_as(k.fd, &w, &copy) == 0);
	CHECK_INT(as_user(&copy, show), 0);
	CHECK_STR(said, want);
	CHECK_INT(as_root(&copy, "cat /etc/root-file; stat -c %U /etc/root-file"), 0);
	CHECK_STR(said, "root\nroot\n");
	CHECK_INT(as_user(&copy, "cd /home/user; echo two >a && rm d/b && cat a"), 0);
	CHECK(end(k.fd, &copy) == 0);
	/* Deleted while a box has it: the box keeps it. */
	CHECK(make_as(k.fd, &w, &copy) == 0);
	CHECK_INT(drop(k.fd, A), WIRE_DONE);
	CHECK_INT(drop(k.fd, A), WIRE_DONE);
	CHECK_INT(as_user(&copy, "cd /home/user; cat a"), 0);
	CHECK_STR(said, "one\n");
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_NOT_FOUND, "no layer"));
	CHECK(end(k.fd, &copy) == 0 && end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(the_second_checkpoint_has_only_what_changed)
{
	struct wire_checkpoint_merge merge = { .head = sock_head(WIRE_CHECKPOINT_MERGE, 33),
					       .id = M,
					       .n = 2,
					       .bytes_most = 1 << 30,
					       .files_most = 1000 };
	struct wire_id list = { .head = sock_head(WIRE_CHECKPOINT_LIST, 34) };
	struct wire_id sync = { .head = sock_head(WIRE_CHECKPOINT_SYNC, 35), .id = C };
	struct wire_checkpoint_file open = { .head = sock_head(WIRE_CHECKPOINT_OPEN, 36), .id = B };
	struct layer_index_reader index;
	struct err e;
	struct keeper_sync k;
	struct wire_create w;
	struct made m, copy;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make(k.fd, &m) == 0);
	CHECK_INT(
		as_user(&m,
			"cd /home/user; mkdir d e; for i in $(seq 100); do echo $i >d/$i; done; echo x "
			">e/x; sleep 0.02"),
		0);
	CHECK_INT(take(k.fd, &m, A, ""), WIRE_CHECKPOINTED);
	CHECK_INT(take(k.fd, &m, B, A), WIRE_CHECKPOINTED);
	CHECK_INT(GOT(wire_checkpointed)->same, 1);
	CHECK_INT(as_user(&m,
			  "cd /home/user; echo new >d/7; rm d/8; rm -r e; mkdir e; echo y >e/y"),
		  0);
	CHECK_INT(take(k.fd, &m, C, B), WIRE_CHECKPOINTED);
	CHECK_INT(GOT(wire_checkpointed)->same, 0);
	CHECK_INT(GOT(wire_checkpointed)->deleted, 1);
	CHECK(GOT(wire_checkpointed)->files < 10);
	/* The same request again has the same answer. */
	CHECK_INT(take(k.fd, &m, C, B), WIRE_CHECKPOINTED);
	CHECK_INT(GOT(wire_checkpointed)->deleted, 1);
	w = from(2, (const char *[]){ C, A });
	CHECK(make_as(k.fd, &w, &copy) == 0);
	CHECK_INT(as_user(&copy, "cd /home/user; cat d/6 d/7; ls d | wc -l; ls e"), 0);
	CHECK_STR(said, "6\nnew\n99\ny\n");
	CHECK(end(k.fd, &copy) == 0);
	memcpy(merge.from[0], C, sizeof(C));
	memcpy(merge.from[1], A, sizeof(A));
	CHECK_INT(ask(k.fd, &merge, sizeof(merge), NULL, 0), WIRE_CHECKPOINTED);
	CHECK_INT(GOT(wire_checkpointed)->deleted, 0);
	CHECK(is_error(ask(k.fd, &merge, sizeof(merge), NULL, 0), ERR_CONFLICT, "already"));
	w = from(1, (const char *[]){ M });
	CHECK(make_as(k.fd, &w, &copy) == 0);
	CHECK_INT(as_user(&copy, "cd /home/user; cat d/6 d/7; ls d | wc -l; ls e"), 0);
	CHECK_STR(said, "6\nnew\n99\ny\n");
	CHECK_INT(ask(k.fd, &list, sizeof(list), NULL, 0), WIRE_LISTED);
	CHECK_STR(((const struct wire_checkpoint_item *)(GOT(frame) + 1))->id, A);
	CHECK_INT(ask(k.fd, &sync, sizeof(sync), NULL, 0), WIRE_DONE);
	CHECK_INT(ask(k.fd, &open, sizeof(open), NULL, 0), WIRE_DONE);
	CHECK(got_fd >= 0 && layer_index_open(&index, got_fd, &e) == 0);
	CHECK_STR(index.head.base, A);
	layer_index_close(&index);
	close(got_fd);
	CHECK(is_error(take(k.fd, &copy, "dddddddddddd", C), ERR_INVALID, "cannot be the base"));
	CHECK(is_error(take(k.fd, &copy, A, ""), ERR_CONFLICT, "already"));
	CHECK(end(k.fd, &copy) == 0 && end(k.fd, &m) == 0);
	CHECK_INT(drop(k.fd, A), WIRE_DONE);
	CHECK_INT(drop(k.fd, B), WIRE_DONE);
	CHECK_INT(drop(k.fd, C), WIRE_DONE);
	CHECK_INT(drop(k.fd, M), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(limits_and_invalid_requests_are_rejected_and_the_box_continues)
{
	struct wire_checkpoint w = { .head = sock_head(WIRE_CHECKPOINT, 31),
				     .id = A,
				     .bytes_most = 1000,
				     .files_most = 1000 };
	struct wire_create c = from(1, (const char *[]){ A });
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make(k.fd, &m) == 0);
	CHECK_INT(as_user(&m, "cd /home/user; head -c 5000 /dev/zero >zeros; echo x >b"), 0);
	memcpy(w.box, m.id, sizeof(m.id));
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_LIMIT, "more than 1000 bytes"));
	w.bytes_most = 100000;
	w.files_most = 2;
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_LIMIT, "more than 2 files"));
	w.head.flags = 2;
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_INVALID, "no flag 0x2"));
	CHECK(is_error(take(k.fd, &m, "../../etc/passw", ""), ERR_INVALID, "letters"));
	CHECK(is_error(take(k.fd, &m, A, B), ERR_NOT_FOUND, "no checkpoint"));
	CHECK(is_error(ask(k.fd, &c, sizeof(c), NULL, 0), ERR_NOT_FOUND, "no layer"));
	c.nchain = 17;
	CHECK(is_error(ask(k.fd, &c, sizeof(c), NULL, 0), ERR_INVALID, "may have"));
	CHECK_INT(as_user(&m, "cd /home/user; cat b"), 0);
	CHECK_STR(said, "x\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK(is_error(take(k.fd, &m, A, ""), ERR_NOT_FOUND, "no such box"));
	keeper_sync_close(&k);
}

/* A few programs are stopped by ptrace (cgroup v1), many, or one that waits for its vfork child, by the freezer. */
TEST(programs_continue_after_the_stop_however_they_are_stopped)
{
	static const char *const programs[] = {
		"sleep 1000 &",
		"for i in $(seq 200); do sleep 1000 & done",
		/* perl's system() uses vfork where the libc does; the child does not end. */
		"perl -e 'system {\"/bin/sleep\"} \"sleep\", \"1000\"' &",
		"sh -c 'kill -STOP $$; :' & sleep 1000 &",
	};
	static const char count[] =
		"cd /home/user; (trap '' HUP; while :; do echo x >>n; sleep 0.01; done) >/dev/null 2>&1 &\n";
	char script[600];
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	for (unsigned i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		char id[] = "eeeeeeeeeeea";

		id[11] += (char)i;
		CHECK(make(k.fd, &m) == 0);
		snprintf(script, sizeof(script), "%s{ %s\n} >/dev/null 2>&1; sleep 0.1", count,
			 programs[i]);
		CHECK_INT(as_user(&m, script), 0);
		CHECK_INT(take(k.fd, &m, id, ""), WIRE_CHECKPOINTED);
		printf("# %u: frozen %llu us\n", i,
		       (unsigned long long)GOT(wire_checkpointed)->frozen_us);
		CHECK_INT(
			as_user(&m,
				"cd /home/user; a=$(wc -c <n); until [ $(wc -c <n) -gt $a ]; do "
				"sleep 0.01; done; grep -sl '^TracerPid:.[1-9]' /proc/[0-9]*/status; "
				"pgrep -c sleep >c; [ $(cat c) -ge 1 ]"),
			0);
		CHECK_STR(said, "");
		CHECK_INT(drop(k.fd, id), WIRE_DONE);
		CHECK(end(k.fd, &m) == 0);
	}
	keeper_sync_close(&k);
}

TEST(a_box_with_a_chain_survives_its_keeper)
{
	struct keeper_sync k;
	struct wire_create w;
	struct made m, copy;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make(k.fd, &m) == 0);
	CHECK_INT(as_user(&m, "cd /home/user; echo kept >a"), 0);
	CHECK_INT(take(k.fd, &m, A, ""), WIRE_CHECKPOINTED);
	w = from(1, (const char *[]){ A });
	CHECK(make_as(k.fd, &w, &copy) == 0);
	CHECK(end_keeper(&k, SIGKILL) == 0 && next_keeper(&k) == 0);
	CHECK_INT(as_user(&copy, "cd /home/user; cat a; echo more >b"), 0);
	CHECK_STR(said, "kept\n");
	CHECK_INT(take(k.fd, &copy, B, ""), WIRE_CHECKPOINTED);
	CHECK(end(k.fd, &copy) == 0 && end(k.fd, &m) == 0);
	w = from(2, (const char *[]){ B, A });
	CHECK(make_as(k.fd, &w, &copy) == 0);
	CHECK_INT(as_user(&copy, "cd /home/user; cat a b"), 0);
	CHECK_STR(said, "kept\nmore\n");
	CHECK(end(k.fd, &copy) == 0);
	CHECK_INT(drop(k.fd, A), WIRE_DONE);
	CHECK_INT(drop(k.fd, B), WIRE_DONE);
	keeper_sync_close(&k);
}

TEST(no_file_mount_or_process_is_left_after_all_checkpoints)
{
	leave_nothing();
}
