/* checkpoints.c - checkpoints of the files of a box, compared with `cp -a` of the same files in the same run.
 *
 * atoll-bench-checkpoints FOLDER [ROUNDS [KIND]]
 *
 * Trees of 10 files and of 10,000 files of 4 KiB, also with change tracking, and 1 GiB in 16 files, while a program writes them again. Each round: the
 * first checkpoint, one after 10 changes, one without changes, `cp -a` to FOLDER, a box from the first two. bench/checkpoints
 * starts the keeper at ATOLL_RUN. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/id.h"
#include "client/box_handle.h"
#include "sample.h"
#include "wire/sock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct keeper_sync keeper = { .fd = -1 };
static _Alignas(8) char bytes[WIRE_MAX];
static const char *folder;
static int track; /* the present kind */

static int ask(const void *request, size_t len, uint8_t want, struct err *e)
{
	const struct wire_error *told = (const void *)bytes;
	unsigned nfds = 0;

	if (sock_send(keeper.fd, request, len, NULL, 0, NULL, 0, e) < 0)
		return -1;
	if (sock_recv(keeper.fd, bytes, NULL, &nfds, e) <= 0)
		return err_set(e, ERR_SYS, "no answer of the keeper");
	return told->head.type == want ? 0 : err_set(e, ERR_SYS, "%.200s", told->msg);
}

struct kind {
	const char *name, *make, *change;
	const char *meanwhile; /* or NULL */
	uint64_t disk_bytes;
	unsigned rounds;
	double first_goal, changed_goal; /* of cp -a; of the first */
	double frozen_goal_ms;
	int track;
};

struct figures {
	struct samples first, changed, same, copy, frozen, frozen_next, box, base;
	struct samples made, made_tracked; /* files in a box */
};

static int run_in(struct box_handle *b, const char *script, int detached, struct err *e)
{
	const char *const argv[] = { "/bin/sh", "-ec", script, NULL };
	struct box_command c = { .argv = argv,
				 .credit = 1 << 20,
				 .flags = detached ? WIRE_START_DETACHED : 0 };
	struct wire_exit x;
	uint32_t ref;

	if (detached)
		return boxh_start(b, &c, &ref, e);
	if (boxh_run(b, &c, &x, e) < 0)
		return -1;
	return x.why == WIRE_WHY_EXIT && !x.status
		       ? 0
		       : err_set(e, ERR_SYS, "'%.60s' has failed (%u, %d)", script, x.why,
				 x.status);
}

static int take(const struct box_handle *b, const char *base, char out_id[WIRE_ID],
		struct samples *took, struct samples *frozen, struct err *e)
{
	const struct wire_checkpointed *got = (const void *)bytes;
	struct wire_checkpoint w = { .head = sock_head(WIRE_CHECKPOINT, 9),
				     .bytes_most = UINT64_MAX,
				     .files_most = UINT64_MAX };
	uint64_t began;

	w.head.flags = track ? WIRE_CHECKPOINT_TRACK : 0;
	if (id_new(out_id, e) < 0)
		return -1;
	memcpy(w.box, b->about.id, sizeof(w.box));
	memcpy(w.id, out_id, strlen(out_id));
	memcpy(w.base, base, strlen(base));
	began = now_ns();
	if (ask(&w, sizeof(w), WIRE_CHECKPOINTED, e) < 0)
		return -1;
	samples_add(took, now_ns() - began);
	if (frozen)
		samples_add(frozen, got->frozen_us * 1000);
	return 0;
}

static int copy_tree(const struct box_handle *b, unsigned round, struct samples *out, struct err *e)
{
	char command[400];
	uint64_t began;

	snprintf(command, sizeof(command), "exec cp -a /proc/%d/root/home/user/t %s/copy.%u",
		 b->about.init_pid, folder, round);
	began = now_ns();
	if (system(command) != 0)
		return err_set(e, ERR_SYS, "'%.200s' has failed", command);
	samples_add(out, now_ns() - began);
	snprintf(command, sizeof(command), "rm -rf %s/copy.%u", folder, round);
	return system(command) == 0 ? 0 : err_set(e, ERR_SYS, "'%.200s' has failed", command);
}

/* The same files again, in a box that is tracked since its last checkpoint, or in one that is not. */
static int make_again(struct box_handle *b, struct samples *out, struct err *e)
{
	uint64_t began = now_ns();

	if (run_in(b,
		   "mkdir /home/user/u; cd /home/user/u; head -c 1000000 /dev/zero | split -b 500 -a 3",
		   0, e) < 0)
		return -1;
	samples_add(out, now_ns() - began);
	return run_in(b, "rm -r /home/user/u", 0, e);
}

static int compare_making(struct box_handle *tracked, const struct wire_create *w,
			  struct figures *f, struct err *e)
{
	struct box_handle plain = { .init = -1 };
	int done;

	if (boxh_create(&keeper, &plain, w, e) < 0)
		return -1;
	/* Both have made some before; then in turns. */
	done = make_again(&plain, &(struct samples){ 0 }, e) < 0 ||
	       make_again(tracked, &(struct samples){ 0 }, e) < 0;
	for (unsigned i = 0; !done && i < 8; i++)
		done = make_again(&plain, &f->made, e) < 0 ||
		       make_again(tracked, &f->made_tracked, e) < 0;
	boxh_close(&plain);
	return boxh_kill(&keeper, plain.about.id, NULL, e) < 0 || done ? -1 : 0;
}

static int create(const struct wire_create *w, struct samples *out, struct err *e)
{
	struct box_handle b = { .init = -1 };
	uint64_t began = now_ns();

	if (boxh_create(&keeper, &b, w, e) < 0)
		return -1;
	samples_add(out, now_ns() - began);
	boxh_close(&b);
	return boxh_kill(&keeper, b.about.id, NULL, e);
}

static int drop(const char *id, struct err *e)
{
	struct wire_id w = { .head = sock_head(WIRE_CHECKPOINT_DROP, 10) };

	memcpy(w.id, id, strlen(id));
	return ask(&w, sizeof(w), WIRE_DONE, e);
}

static int one_round(const struct kind *k, unsigned round, struct figures *f, struct err *e)
{
	struct wire_create w = { .head = sock_head(WIRE_CREATE, 1),
				 .template = "base",
				 .limits = box_default_limits() };
	char id[3][WIRE_ID] = { "", "", "" };
	struct box_handle b = { .init = -1 };

	w.head.flags = WIRE_CREATE_COLD;
	if (create(&w, &f->base, e) < 0)
		return -1;
	if (k->disk_bytes)
		w.limits.disk_bytes = k->disk_bytes;
	if (boxh_create(&keeper, &b, &w, e) < 0 || run_in(&b, k->make, 0, e) < 0 ||
	    copy_tree(&b, round, &f->copy, e) < 0 ||
	    (k->meanwhile && run_in(&b, k->meanwhile, 1, e) < 0) ||
	    take(&b, "", id[0], &f->first, &f->frozen, e) < 0)
		return -1;
	if (!k->meanwhile &&
	    (run_in(&b, k->change, 0, e) < 0 ||
	     take(&b, id[0], id[1], &f->changed, &f->frozen_next, e) < 0 ||
	     run_in(&b, "sleep 0.02", 0, e) < 0 || take(&b, id[1], id[2], &f->same, NULL, e) < 0))
		return -1;
	if (track && compare_making(&b, &w, f, e) < 0)
		return -1;
	w.limits = box_default_limits();
	w.nchain = k->meanwhile ? 1 : 2;
	memcpy(w.chain[w.nchain - 1], id[0], WIRE_ID);
	if (w.nchain == 2)
		memcpy(w.chain[0], id[1], WIRE_ID);
	/* The first one mounts the layers. */
	if (create(&w, &f->box, e) < 0 || create(&w, &f->box, e) < 0)
		return -1;
	boxh_close(&b);
	if (boxh_kill(&keeper, b.about.id, NULL, e) < 0)
		return -1;
	for (unsigned i = 0; i < 3; i++)
		if (id[i][0] && drop(id[i], e) < 0)
			return -1;
	return 0;
}

static void goal(const char *what, double ratio, double most)
{
	printf("    %-44s %7.3f  at most %.3f  %s\n", what, ratio, most,
	       ratio <= most ? "reached" : "MISSED");
}

static int measure(const struct kind *k, struct err *e)
{
	struct figures f = { 0 };
	double first, copy;

	track = k->track;

	for (unsigned i = 0; i < k->rounds; i++)
		if (one_round(k, i, &f, e) < 0)
			return err_in(e, "%s, round %u", k->name, i);
	first = samples_ms(&f.first, 0.5);
	copy = samples_ms(&f.copy, 0.5);
	printf("%s (%u rounds, p50 in ms)\n", k->name, k->rounds);
	printf("    first %.2f, frozen %.2f; cp -a %.2f; box from it %.2f, of base %.2f\n", first,
	       samples_ms(&f.frozen, 0.5), copy, samples_ms(&f.box, 0.5), samples_ms(&f.base, 0.5));
	goal("first / cp -a", first / copy, k->first_goal);
	goal("box from a checkpoint / box of base",
	     samples_ms(&f.box, 0.5) / samples_ms(&f.base, 0.5), 1.2);
	if (k->meanwhile) {
		goal("frozen, ms", samples_ms(&f.frozen, 0.5), k->frozen_goal_ms);
	} else {
		printf("    10 changes %.2f, frozen %.2f; no change %.2f\n",
		       samples_ms(&f.changed, 0.5), samples_ms(&f.frozen_next, 0.5),
		       samples_ms(&f.same, 0.5));
		goal("10 changes / first", samples_ms(&f.changed, 0.5) / first, k->changed_goal);
		goal("no change / 10 changes",
		     samples_ms(&f.same, 0.5) / samples_ms(&f.changed, 0.5), 0.7);
		goal("frozen, ms", samples_ms(&f.frozen_next, 0.5), k->frozen_goal_ms);
	}
	if (track)
		goal("making 2,000 files / without tracking",
		     samples_ms(&f.made_tracked, 0.5) / samples_ms(&f.made, 0.5), 1.5);
	return 0;
}

int main(int argc, char **argv)
{
	static struct kind kinds[] = {
		{ "10 files",
		  "mkdir /home/user/t; cd /home/user/t; for i in 0 1 2 3 4 5 6 7 8 9; do head -c 4096 "
		  "/dev/urandom >$i; done; sleep 0.02",
		  "cd /home/user/t; for i in 0 1 2 3 4 5 6 7 8 9; do echo x >$i; done; sleep 0.02",
		  NULL, 0, 20, 0.15, 1.5, 1, 0 },
		{ "10,000 files",
		  "mkdir /home/user/t; cd /home/user/t; head -c 40960000 /dev/urandom | split -b 4096 "
		  "-a 4; sleep 0.02",
		  "cd /home/user/t; for i in xaaaa xaaab xaaac xaaad xaaae xaaaf xaaag xaaah xaaai "
		  "xaaaj; do echo x >$i; done; sleep 0.02",
		  NULL, 0, 4, 0.15, 0.4, 25, 0 },
		{ "10,000 files, tracked",
		  "mkdir /home/user/t; cd /home/user/t; head -c 40960000 /dev/urandom | split -b 4096 "
		  "-a 4; sleep 0.02",
		  "cd /home/user/t; for i in xaaaa xaaab xaaac xaaad xaaae xaaaf xaaag xaaah xaaai "
		  "xaaaj; do echo x >$i; done; sleep 0.02",
		  NULL, 0, 4, 0.15, 0.1, 3, 1 },
		{ "1 GiB, while it is written",
		  "mkdir /home/user/t; cd /home/user/t; for i in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do "
		  "head -c 67108864 /dev/zero | tr '\\0' x >$i; done",
		  NULL,
		  "cd /home/user/t; for i in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do head -c 67108864 "
		  "/dev/zero >$i; done",
		  3ull << 30, 2, 2.5, 0, 20, 0 },
	};
	struct err e = { 0 };

	if (argc < 2) {
		fprintf(stderr, "usage: atoll-bench-checkpoints FOLDER [ROUNDS [KIND]]\n");
		return 2;
	}
	folder = argv[1];
	if (keeper_sync_open(&keeper, 0, &e) < 0)
		goto failed;
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		if (argc > 3 && strcmp(argv[3], kinds[i].name) != 0)
			continue;
		if (argc > 2 && atoi(argv[2]) > 0 && (unsigned)atoi(argv[2]) < kinds[i].rounds)
			kinds[i].rounds = (unsigned)atoi(argv[2]);
		if (measure(&kinds[i], &e) < 0)
			goto failed;
	}
	return 0;
failed:
	fprintf(stderr, "atoll-bench-checkpoints: %s\n", e.msg);
	return 1;
}
