/* host_service.c - see host_service.h. */
#include "keeper/host_service.h"
#include "base/cleanup.h"
#include "keeper/disk_service.h"
#include "keeper/host_state.h"
#include "keeper/layer_store.h"
#include "keeper/procimage_process.h"
#include "keeper/tier_service.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

const char *host_service_name(enum host_service which)
{
	static const char *const names[] = { [HOST_DISKS] = "disk service",
					     [HOST_LAYERS] = "layer store",
					     [HOST_TIERS] = "tier service",
					     [HOST_IMAGES] = "service of process images" };

	return names[which];
}

int host_service_start(struct host_state *h, enum host_service which, struct err *e)
{
	pid_t *pid = &h->service_pids[which];

	switch (which) {
	case HOST_DISKS:
		return disk_process_start(h->state_dir, pid, e);
	case HOST_LAYERS:
		return layer_store_start(h->layers_dir, h->roots_dir, h->checkpoints_dir, pid, e);
	case HOST_TIERS:
		return tier_service_start(&h->tier_host, pid, e);
	default:
		return procimage_service_start(h, pid, e);
	}
}

static void service_reap(pid_t *pid)
{
	if (*pid <= 0)
		return;
	kill(*pid, SIGKILL);
	while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
		;
	*pid = 0;
}

/* The thread gets the root and the folder of the namespace that it enters. */
static int service_enter(const struct host_state *h, struct err *e)
{
	if (unshare(CLONE_FS) < 0 || setns(h->host_mounts, CLONE_NEWNS) < 0)
		return err_sys(e, "enter the mounts of the host");
	return 0;
}

static void service_leave(const struct host_state *h, int own)
{
	if (setns(own, CLONE_NEWNS) == 0 && fchdir(h->run) == 0)
		return;
	/* With the mounts of the host this process must not do anything else. The next keeper continues. */
	fprintf(stderr, "atoll: keeper: leave the mounts of the host: errno %d\n", errno);
	abort();
}

int host_service_restart(struct host_state *h, enum host_service which, struct err *e)
{
	auto_fd int own = -1;
	int sock;

	service_reap(&h->service_pids[which]);
	if (h->rootless)
		return err_set(e, ERR_SYS,
			       "the %s has ended; a keeper without root cannot start it again",
			       host_service_name(which));
	if (h->host_mounts < 0)
		return host_service_start(h, which, e);
	own = openat(h->proc, "thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (own < 0)
		return err_sys(e, "own mounts");
	if (service_enter(h, e) < 0)
		return -1;
	sock = host_service_start(h, which, e);
	service_leave(h, own);
	return sock;
}
