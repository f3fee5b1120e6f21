/* keep_test.c - results of batches are kept as long as the plan of their team says. */
#include "batch/batch.h"
#include "fake_fleet.h"

static const int64_t second = INT64_C(1000000000);

/* As plan_limits.c for a plan with retention_outputs = "5s" and retention_records = "1h". */
static uint64_t keep_of_plan(void *ctx, const char *team, enum fleet_keep what, uint64_t otherwise)
{
	(void)ctx;
	if (strcmp(team, "small") != 0)
		return otherwise;
	return what == FLEET_KEEP_OUTPUTS ? 5000 : 3600000;
}

static int end_batch(unsigned n, const char *team, int64_t ended_ns)
{
	struct store_batch b = { .state = STORE_BATCH_FINISHED,
				 .created_ns = 1,
				 .ended_ns = ended_ns,
				 .options = "{}" };
	char path[300];
	struct err e;
	int fd;

	snprintf(b.id, sizeof(b.id), "%s", id_of(n));
	snprintf(b.team, sizeof(b.team), "%s", team);
	snprintf(path, sizeof(path), "%s/batches/%s.out", fake.dir, b.id);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	return fd < 0 ? -1 : store_batch_insert(fake.store, &b, &e);
}

static int is_kept(unsigned n)
{
	struct store_batch b = { 0 };
	char path[300];
	struct err e;
	int row = store_batch_get(fake.store, id_of(n), &b, &e) == 0;

	store_batch_fini(&b);
	snprintf(path, sizeof(path), "%s/batches/%s.out", fake.dir, id_of(n));
	return row == (access(path, F_OK) == 0) ? row : -1; /* row and file, or neither */
}

TEST(results_of_a_team_are_removed_as_its_plan_says)
{
	struct store_team small = { .name = "small" };
	struct batch_conf conf = { .keep_ms = 60000 };
	struct batches *a;
	int64_t now;
	struct err e;

	CHECK_INT(fake_begin(NULL, NULL), 0);
	conf.state = fake.dir;
	CHECK_INT(store_team_put(fake.store, &small, &e), 0);
	CHECK_INT(batches_new(&a, fake.fleet, &conf, NULL, &e), 0);
	fake.fleet->accounts.keep_ms = keep_of_plan;
	now = fleet_now_ns();
	CHECK_INT(end_batch(1, "small", now - 10 * second), 0);
	CHECK_INT(end_batch(2, "small", now + 3600 * second), 0); /* not yet */
	CHECK_INT(end_batch(3, "default", now - 10 * second), 0);
	CHECK_INT(end_batch(4, "default", now - 70 * second), 0);
	batches_purge(a);
	CHECK_INT(is_kept(1), 0);
	CHECK_INT(is_kept(2), 1);
	CHECK_INT(is_kept(3), 1);
	CHECK_INT(is_kept(4), 0); /* batch.keep */
	batches_free(a);
	fake_end();
}
