/* repairbox.c - repairs artifacts in real boxes: an artifact per line of stdin, {found, artifact}
 * per line of stdout, in the same order. Starts its own keeper (this executable as `keeper`); needs
 * root.
 *
 * repairbox [BOXES [SIDE_BY_SIDE]]	BOXES 0: only {passed: a bit per example} */
#include "repair/repair.h"
#include "repair/candidate_test.h"
#include "base/cleanup.h"
#include "buildcache/compile_reuse.h"
#include "client/box_handle.h"
#include "keeper/keeper.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1024 };

struct work {
	struct repair_owner owner;
	struct candidate_box stall;
	struct candidate_test trial;
	json_t *artifact, *answer;
};

static struct fleet fleet;
static struct loop loop;
static struct work works[MOST];
static unsigned nworks, nstarted, nprinted, nflying, boxes = 2, side_by_side = 1;

__attribute__((constructor)) static void set_up(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "keeper") == 0)
		_exit(keeper_main(argc - 1, argv + 1));
}

static void need_keeper(struct fleet *f)
{
	struct keeper_sync k;
	struct err e;

	if (keeper_sync_open(&k, 1, &e) < 0) {
		fprintf(stderr, "no keeper: %s\n", e.msg);
		exit(1);
	}
	fcntl(k.fd, F_SETFL, fcntl(k.fd, F_GETFL) | O_NONBLOCK);
	fleet_keeper(f, k.fd);
}

static void repairbox_next(void);

static void tried(struct candidate_test *t, uint64_t passed, int lost)
{
	struct work *w = loop_owner(t, struct work, trial);

	w->answer = json_pack("{s:I, s:b}", "passed", (json_int_t)passed, "lost", lost);
	nflying--;
	repairbox_next();
}

static void repaired(struct repair_owner *o, json_t *take_artifact, json_t *take_found)
{
	struct work *w = loop_owner(o, struct work, owner);

	w->answer = json_pack("{s:o, s:o}", "found", take_found, "artifact",
			      take_artifact ? take_artifact : json_null());
	nflying--;
	repairbox_next();
}

static void try_it(struct work *w)
{
	struct err e;

	if (candidate_box_init(&w->stall, &fleet, "test", w->artifact, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		exit(1);
	}
	candidate_test_start(&w->trial, &w->stall, json_object_get(w->artifact, "examples"),
			     strdup(doc_text(json_object_get(w->artifact, "files"),
					     doc_text(w->artifact, "entry"))));
}

static void repairbox_next(void)
{
	for (; nprinted < nworks && works[nprinted].answer; nprinted++) {
		json_dumpf(works[nprinted].answer, stdout, JSON_COMPACT);
		putchar('\n');
		fflush(stdout);
	}
	for (; nstarted < nworks && nflying < side_by_side; nflying++) {
		struct work *w = &works[nstarted++];

		w->owner.done = repaired;
		w->trial.done = tried;
		if (boxes == 0)
			try_it(w);
		else
			repair_start(&fleet, "test", w->artifact, NULL, boxes, &w->owner);
	}
	if (nprinted == nworks)
		loop_stop(&loop);
}

static void read_works(void)
{
	auto_free char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while (nworks < MOST && (n = getline(&line, &room, stdin)) > 0) {
		works[nworks].artifact = json_loadb(line, (size_t)n, 0, NULL);
		if (!works[nworks].artifact) {
			fprintf(stderr, "line %u is not JSON\n", nworks + 1);
			exit(2);
		}
		nworks++;
	}
}

/* For the charges of its programs; removed by remove_store(). */
static struct store *make_store(char folder[200])
{
	const char *tmp = getenv("TMPDIR");
	struct store *s;
	struct err e;

	snprintf(folder, 200, "%.150s/repairbox.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder) || store_open(&s, folder, &e) < 0) {
		fprintf(stderr, "no store in %s\n", folder);
		exit(1);
	}
	return s;
}

static void remove_store(struct store *s, const char *folder)
{
	static const char *const files[] = { "atoll.db", "atoll.db-wal", "atoll.db-shm" };
	char path[240];

	store_close(s);
	for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		unlink(path);
	}
	rmdir(folder);
}

int main(int argc, char **argv)
{
	static const struct box_hooks *const hooks[] = { &compile_reuse_hooks, NULL };
	struct fleet_conf conf = { .limits = box_default_limits(), .hooks = hooks };
	struct store *store;
	char folder[200];
	struct err e;

	boxes = argc > 1 ? (unsigned)atoi(argv[1]) : boxes;
	side_by_side = argc > 2 ? (unsigned)atoi(argv[2]) : side_by_side;
	read_works();
	if (loop_init(&loop, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	store = make_store(folder);
	fleet_init(&fleet, &loop, store, &conf, "test");
	fleet.need_keeper = need_keeper;
	need_keeper(&fleet);
	repairbox_next();
	if (nprinted < nworks)
		loop_run(&loop);
	keeper_client_fini(&fleet.keeper);
	run_writer_fini(&fleet.run_writer);
	remove_store(store, folder);
	loop_fini(&loop);
	for (unsigned i = 0; i < nworks; i++) {
		json_decref(works[i].artifact);
		json_decref(works[i].answer);
	}
	return 0;
}
