/* stress_test.c - many boxes, and keepers that are killed at any time.
 *
 * Uses the client library of the CLI with its own keepers (a separate run folder, this executable
 * as `keeper`). STRESS_BOXES and STRESS_KILLS set the size; ./check runs it small,
 * tests/soak.sh for as long as you like. Needs root. */
#include "base/clock.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "keeper/keeper.h"
#include "tap.h"
#include "wire/sock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WANTED = 12, WORKERS = 3 };

static char run_dir[64], state_dir[64], parent[32];

/* ---- the environment ---- */

static unsigned from_env(const char *name, unsigned fallback)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : fallback;
}

/* As host_state.c names it: the cgroups of a keeper are found by its run folder. */
static void name_parent(void)
{
	snprintf(parent, sizeof(parent), "atoll-%08x", id_hash(run_dir));
}

/* The library starts a keeper from /proc/self/exe, which is this test. */
__attribute__((constructor)) static void set_up(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "keeper") == 0)
		_exit(keeper_main(argc - 1, argv + 1));
	snprintf(run_dir, sizeof(run_dir), "/dev/shm/atoll-stress.%d", (int)getpid());
	snprintf(state_dir, sizeof(state_dir), "/tmp/atoll-stress.%d", (int)getpid());
	name_parent();
	setenv("ATOLL_RUN", run_dir, 1);
	setenv("ATOLL_STATE", state_dir, 1);
}

static unsigned count_glob(const char *where)
{
	char pattern[128];
	unsigned n = 0;
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s/%s", where, parent);
	if (glob(pattern, GLOB_ONLYDIR, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc; i++) {
			printf("# left: %s\n", g.gl_pathv[i]);
			n++;
		}
		globfree(&g);
	}
	return n;
}

/* Children of a killed keeper are reaped by the init of the host, on some hosts slowly. */
static int is_zombie(const char *pid)
{
	char path[280], text[512], *at;
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.250s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	at = strrchr(text, ')');
	return !at || at[2] == 'Z';
}

static unsigned count_processes(void)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	unsigned n = 0;

	while ((de = readdir(d)) != NULL) {
		char path[280], text[4096];
		auto_fd int fd = -1;
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/%.250s/cgroup", de->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		text[len > 0 ? len : 0] = 0;
		if (strstr(text, parent) && !is_zombie(de->d_name)) {
			printf("# left: process %s\n", de->d_name);
			n++;
		}
	}
	closedir(d);
	return n;
}

static unsigned count_records(void)
{
	char path[80];
	struct dirent *de;
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/boxes", run_dir);
	d = opendir(path);
	while (d && (de = readdir(d)) != NULL)
		if (de->d_name[0] != '.') {
			printf("# left: %s\n", de->d_name);
			n++;
		}
	if (d)
		closedir(d);
	return n;
}

static unsigned leftovers(void)
{
	return count_glob("/sys/fs/cgroup/*") + count_glob("/sys/fs/cgroup") + count_processes() +
	       count_records();
}

/* A zombie counts as ended: the init of the host reaps it later. */
static int end_keeper(int signo)
{
	auto_fd int pidfd = -1;
	struct keeper_sync k;
	struct wire_info about;
	struct err e;
	int known;

	if (keeper_sync_open(&k, 0, &e) < 0)
		return -1;
	known = keeper_sync_info(&k, &about, &e);
	if (known == 0)
		pidfd = (int)syscall(SYS_pidfd_open, about.pid, 0);
	keeper_sync_close(&k);
	if (pidfd < 0)
		return -1;
	syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
	poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, -1);
	return 0;
}

/* ---- boxes ---- */

static struct wire_create wish(unsigned flags)
{
	struct wire_create w = { .head.flags = (uint16_t)flags, .limits = box_default_limits() };

	snprintf(w.template, sizeof(w.template), "base");
	return w;
}

static int create_run_kill(struct keeper_sync *k, unsigned flags, struct err *e)
{
	static const char *const argv[] = { "/bin/true", NULL };
	const struct box_command cmd = { .argv = argv };
	struct wire_create w = wish(flags);
	struct wire_exit x;
	struct box_handle b;
	int done;

	if (boxh_create(k, &b, &w, e) < 0)
		return -1;
	done = boxh_run(&b, &cmd, &x, e);
	boxh_close(&b);
	if (done == 0 && (x.why != WIRE_WHY_EXIT || x.status != 0))
		done = err_set(e, ERR_SYS, "why %u status %d step %s", x.why, x.status, x.step);
	if (boxh_kill(k, b.about.id, NULL, e) < 0)
		return -1;
	return done;
}

TEST(a_thousand_boxes_are_created_and_deleted_and_leave_nothing)
{
	unsigned n = from_env("STRESS_BOXES", 1000);
	struct keeper_sync k;
	struct err e;

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK(keeper_sync_open(&k, 1, &e) == 0);
	for (unsigned i = 0; i < n; i++)
		if (create_run_kill(&k, i % 2 ? WIRE_CREATE_COLD : 0, &e) < 0) {
			printf("# box %u: %s\n", i, e.msg);
			CHECK(!"every box comes and goes");
		}
	keeper_sync_close(&k);
	CHECK(end_keeper(SIGTERM) == 0);
	CHECK_INT(leftovers(), 0);
}

/* ---- a box that must not be lost: it prints numbers ---- */

struct wanted {
	char id[WIRE_ID];
	uint32_t ref;
	uint64_t offset;    /* read so far */
	unsigned long next; /* the next expected number */
};

static int start_counting(struct keeper_sync *k, struct wanted *w, struct err *e)
{
	static const char *const argv[] = {
		"/bin/sh", "-c", "i=0; while :; do echo $i; i=$((i+1)); sleep 0.01; done", NULL
	};
	const struct box_command cmd = { .argv = argv };
	struct wire_create c = wish(0);
	struct box_handle b;

	if (boxh_create(k, &b, &c, e) < 0 || boxh_start(&b, &cmd, &w->ref, e) < 0)
		return -1;
	memcpy(w->id, b.about.id, sizeof(w->id));
	boxh_close(&b);
	return 0;
}

/* Numbers in the text, in order and without a gap. The last line may be cut: it is read again. */
static int take_numbers(struct wanted *w, const char *text, size_t n)
{
	const char *line = text, *end;

	while ((end = memchr(line, '\n', n - (size_t)(line - text))) != NULL) {
		if (strtoul(line, NULL, 10) != w->next)
			return -1;
		w->next++;
		w->offset += (uint64_t)(end + 1 - line);
		line = end + 1;
	}
	return 0;
}

/* Attaches at the offset and reads until at least one more number has arrived. */
static int resume(struct keeper_sync *k, struct wanted *w, struct err *e)
{
	static _Alignas(8) char bytes[WIRE_MAX];
	const struct wire_output *o = (const void *)bytes;
	struct wire_output_window ask = { .head = sock_head(WIRE_ATTACH, w->ref),
					  .from = w->offset,
					  .until = UINT64_MAX / 2 };
	unsigned long before = w->next;
	struct box_handle b;
	int n = 0;

	if (boxh_open(k, &b, w->id, e) < 0)
		return -1;
	if (sock_send(b.init, &ask, sizeof(ask), NULL, 0, NULL, 0, e) < 0)
		n = -1;
	while (n >= 0 && w->next == before) {
		unsigned nfds = 0;

		n = sock_recv(b.init, bytes, NULL, &nfds, e);
		if (n == 0)
			n = err_set(e, ERR_SYS, "box %s ended", w->id);
		else if (n > 0 && o->head.type == WIRE_OUTPUT && o->offset == w->offset &&
			 take_numbers(w, bytes + sizeof(*o), (size_t)n - sizeof(*o)) < 0)
			n = err_set(e, ERR_SYS, "box %s: a number is missing after %lu", w->id,
				    w->next);
	}
	boxh_close(&b);
	return n < 0 ? -1 : 0;
}

static int all_counting(struct keeper_sync *k, struct wanted *w, unsigned n, struct err *e)
{
	for (unsigned i = 0; i < n; i++)
		if (resume(k, &w[i], e) < 0)
			return err_in(e, "wanted box %u of %u", i, n);
	return 0;
}

/* ---- load ---- */

static _Noreturn void work_until_ended(unsigned seed)
{
	struct keeper_sync k = { .fd = -1 };
	struct err e;

	for (unsigned i = 0;; i++) {
		if (k.fd < 0 && keeper_sync_open(&k, 1, &e) < 0) {
			k.fd = -1;
			continue;
		}
		/* A failure here means that a keeper was killed: start again with the next one. */
		if (create_run_kill(&k, (i + seed) % 3 ? 0 : WIRE_CREATE_COLD, &e) < 0) {
			keeper_sync_close(&k);
			k.fd = -1;
		}
	}
}

static void end_workers(const pid_t *pids, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	for (unsigned i = 0; i < n; i++)
		waitpid(pids[i], NULL, 0);
}

static int kill_one_at_random(unsigned *seed)
{
	nanosleep(&(struct timespec){ .tv_nsec = (rand_r(seed) % 80) * 1000000L }, NULL);
	return end_keeper(SIGKILL);
}

/* Boxes that a killed worker had claimed have no owner but still run: delete them. */
static int end_all_boxes(struct err *e)
{
	struct wire_box page[64];
	struct keeper_sync k;
	int n;

	if (keeper_sync_open(&k, 1, e) < 0)
		return -1;
	while ((n = keeper_sync_boxes(&k, "", page, ARRAY_LEN(page), e)) > 0)
		for (int i = 0; i < n; i++)
			if (boxh_kill(&k, page[i].id, NULL, e) < 0 && e->kind != ERR_NOT_FOUND)
				n = -1;
	keeper_sync_close(&k);
	return n;
}

static int survive(unsigned kills, struct err *e)
{
	struct wanted wanted[WANTED] = { 0 };
	unsigned seed = (unsigned)getpid();
	pid_t workers[WORKERS];
	struct keeper_sync k;
	int good = 0;

	if (keeper_sync_open(&k, 1, e) < 0)
		return -1;
	for (unsigned i = 0; i < WANTED; i++)
		if (start_counting(&k, &wanted[i], e) < 0)
			return err_in(e, "start %u", i);
	keeper_sync_close(&k);
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = fork();
		if (workers[i] == 0)
			work_until_ended(i);
	}
	for (unsigned i = 0; i < kills && good == 0; i++) {
		(void)kill_one_at_random(&seed); /* none to kill: a worker is about to start one */
		good = keeper_sync_open(&k, 1, e);
		if (good == 0) {
			good = all_counting(&k, wanted, WANTED, e);
			keeper_sync_close(&k);
		}
		if (good < 0)
			err_in(e, "after %u kills", i + 1);
	}
	end_workers(workers, WORKERS);
	return good;
}

TEST(keepers_killed_at_random_under_load_lose_no_box_and_no_output)
{
	struct err e;

	if (geteuid() != 0)
		SKIP("needs root");
	if (survive(from_env("STRESS_KILLS", 20), &e) < 0) {
		printf("# %s\n", e.msg);
		CHECK(!"every wanted box lives and counts on");
	}
	CHECK(end_all_boxes(&e) == 0);
	CHECK(end_keeper(SIGTERM) == 0);
	CHECK_INT(leftovers(), 0);
}

static void check_all_gone(struct keeper_sync *k)
{
	struct wire_info about;
	struct err e;

	do
		CHECK(keeper_sync_info(k, &about, &e) == 0);
	while (about.boxes);
	keeper_sync_close(k);
	CHECK(end_keeper(SIGTERM) == 0);
	CHECK_INT(leftovers(), 0);
}

TEST(a_box_with_kill_on_close_ends_with_its_client)
{
	struct wire_create w = wish(0);
	struct keeper_sync k;
	struct box_handle b;
	struct err e;

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK(keeper_sync_open(&k, 1, &e) == 0);
	CHECK(boxh_create(&k, &b, &w, &e) == 0 && boxh_kill_on_close(&b, &e) == 0);
	boxh_close(&b);
	check_all_gone(&k);
}

TEST(an_unclaimed_box_ends_with_its_connection)
{
	struct wire_create w = wish(0);
	struct keeper_sync k;
	struct box_handle b;
	struct err e;

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK(keeper_sync_open(&k, 1, &e) == 0 && boxh_create(&k, &b, &w, &e) == 0);
	boxh_close(&b);
	check_all_gone(&k);
}

__attribute__((destructor)) static void tear_down(void)
{
	char cmd[160];

	snprintf(cmd, sizeof(cmd), "rm -rf %s %s", run_dir, state_dir);
	(void)!system(cmd);
}
