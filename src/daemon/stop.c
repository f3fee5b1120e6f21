/* stop.c - `atoll stop`: ends the daemon of this machine, and with --all its boxes and its
 * keeper.
 *
 *   stop                     supervisor                 server                 keeper
 *   (--all: ends every box)  ------------------------------------------------>
 *   SIGTERM           --->   SIGTERM              --->  finishes its requests
 *   waits for its pidfd <--- exits when no server is left
 *   (--all: SIGTERM)         ------------------------------------------------> exits
 *
 * Without --all boxes and their programs keep running, and the next `atoll serve` takes them
 * over. */
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "daemon/local_daemon.h"
#include "daemon/pidfile.h"
#include "daemon/commands.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

enum { STOP_ALL, STOP_NFLAGS };
enum { PAGE = 200, DRAIN_MS = 60000, KILL_MS = 5000 };

static const struct flag flags[STOP_NFLAGS] = {
	[STOP_ALL] = { "all", 'a', FLAG_SWITCH, NULL, "also end every box and the keeper" },
};

struct stop_result {
	pid_t daemon, keeper; /* 0: there was none */
	unsigned boxes;       /* ended with --all, else still running */
};

static int stop_open_keeper(struct keeper_sync *k, struct err *e)
{
	if (keeper_sync_open(k, 0, e) == 0)
		return 1;
	return e->sys == ENOENT || e->sys == ECONNREFUSED ? 0 : -1;
}

static int stop_end_boxes(struct keeper_sync *k, unsigned *out_ended, struct err *e)
{
	struct wire_box page[PAGE];
	int n;

	while ((n = keeper_sync_boxes(k, "", page, PAGE, e)) > 0)
		for (int i = 0; i < n; i++) {
			if (boxh_end(k, page[i].id, e) < 0 && e->kind != ERR_NOT_FOUND)
				return -1;
			++*out_ended;
		}
	return n;
}

static int stop_count_boxes(struct keeper_sync *k, unsigned *out_count, struct err *e)
{
	struct wire_box page[PAGE];
	char after[WIRE_ID + 1] = "";
	int n;

	while ((n = keeper_sync_boxes(k, after, page, PAGE, e)) > 0) {
		*out_count += (unsigned)n;
		snprintf(after, sizeof(after), "%s", page[n - 1].id);
	}
	return n;
}

static int stop_boxes(int all, struct stop_result *r, struct err *e)
{
	struct keeper_sync k = { .fd = -1 };
	int rc = stop_open_keeper(&k, e);

	if (rc > 0)
		rc = all ? stop_end_boxes(&k, &r->boxes, e) : stop_count_boxes(&k, &r->boxes, e);
	keeper_sync_close(&k);
	return rc;
}

/* A request in progress may be slow; a second SIGTERM closes its connection. */
static int stop_wait(int pidfd, struct err *e)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	if (poll(&p, 1, DRAIN_MS) > 0)
		return 0;
	syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0);
	if (poll(&p, 1, KILL_MS) > 0)
		return 0;
	return err_set(e, ERR_SYS, "it did not exit within %d s of SIGTERM",
		       (DRAIN_MS + KILL_MS) / 1000);
}

static int stop_daemon(const char *run, struct stop_result *r, struct err *e)
{
	auto_fd int pidfd = -1;
	struct pidfile_record note;

	if (pidfile_find_process(run, &note, &pidfd, e) < 0)
		return e->kind == ERR_NOT_FOUND ? 0 : -1;
	r->daemon = note.supervisor;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0)
		return err_sys(e, "signal the daemon (pid %d)", (int)note.supervisor);
	return stop_wait(pidfd, e) < 0 ? err_in(e, "daemon (pid %d)", (int)note.supervisor) : 0;
}

/* After the daemon, which would start another one. */
static int stop_keeper(struct stop_result *r, struct err *e)
{
	struct keeper_sync k = { .fd = -1 };
	struct wire_info about;
	auto_fd int pidfd = -1;
	int rc = stop_open_keeper(&k, e);

	if (rc > 0)
		rc = keeper_sync_info(&k, &about, e) < 0 ? -1 : 1;
	keeper_sync_close(&k);
	if (rc <= 0)
		return rc;
	r->keeper = (pid_t)about.pid;
	pidfd = (int)syscall(SYS_pidfd_open, r->keeper, 0);
	if (pidfd < 0 || syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0)
		return errno == ESRCH ? 0
				      : err_sys(e, "signal the keeper (pid %d)", (int)r->keeper);
	return stop_wait(pidfd, e) < 0 ? err_in(e, "keeper (pid %d)", (int)r->keeper) : 0;
}

static int stop_run(const struct cli *cli, int all, struct stop_result *r, char run[256],
		    struct err *e)
{
	if (local_daemon_find(cli, "stop", run, e) < 0 || (all && stop_boxes(1, r, e) < 0) ||
	    stop_daemon(run, r, e) < 0)
		return -1;
	/* Again, for boxes that were created while the daemon still served. */
	if (stop_boxes(all, r, e) < 0)
		return -1;
	return all ? stop_keeper(r, e) : 0;
}

static void stop_report(const struct cli *cli, const struct stop_result *r, int all,
			const char *run)
{
	if (cli->json) {
		printf("{\"daemon\":%d,\"keeper\":%d,\"boxes_%s\":%u}\n", (int)r->daemon,
		       (int)r->keeper, all ? "ended" : "running", r->boxes);
		return;
	}
	if (cli->quiet)
		return;
	if (r->daemon)
		printf("stopped the daemon (pid %d)\n", (int)r->daemon);
	else
		printf("no daemon serves from %s\n", run);
	if (all)
		printf("ended %u boxes%s\n", r->boxes, r->keeper ? " and the keeper" : "");
	else if (r->boxes)
		printf("%u boxes keep running; the next `atoll serve` takes them over, `atoll stop --all` ends them\n",
		       r->boxes);
}

static int run_stop(const struct cli *cli, const struct args *a)
{
	struct stop_result r = { 0 };
	int all = args_has(a, STOP_ALL);
	char run[256] = "";
	struct cli_error t;
	struct err e;

	if (stop_run(cli, all, &r, run, &e) < 0) {
		cli_error_what(&t, err_kind_name(e.kind), "%s", e.msg);
		if (e.sys == EPERM || e.sys == EACCES)
			cli_error_hint(&t, "it belongs to another user", "sudo atoll stop");
		return cli_error_print(&t, cli->json, STATUS_FAILED);
	}
	stop_report(cli, &r, all, run);
	return 0;
}

static const struct example examples[] = {
	{ "atoll stop", "stop the daemon; boxes keep running until their lifetime ends" },
	{ "atoll stop --all", "also end every box, for example before uninstalling" },
	{ 0 },
};

const struct command command_stop = {
	.name = "stop",
	.group = "Machine",
	.usage = "[--all]",
	.summary = "stop the daemon of this machine",
	.notes =
		"Requests in progress have up to a minute to finish. The exit status is 0 even if no daemon runs.",
	.flags = flags,
	.nflags = STOP_NFLAGS,
	.max_words = 0,
	.examples = examples,
	.run = run_stop,
};
