/* draining.c - a machine that takes no new boxes, because it will be removed or restarted. See fleet.h. */
#include "base/cleanup.h"
#include "fleet/fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define DRAINING_FILE "draining"

int fleet_load_draining(struct fleet *f, const char *folder, struct err *e)
{
	auto_fd int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_sys(e, "open %.160s", folder);
	f->is_draining = faccessat(dir, DRAINING_FILE, F_OK, 0) == 0;
	return f->is_draining || errno == ENOENT ? 0
						 : err_sys(e, "read %.160s/" DRAINING_FILE, folder);
}

int fleet_set_draining(struct fleet *f, const char *folder, int on, struct err *e)
{
	auto_fd int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), file = -1;

	if (dir < 0)
		return err_sys(e, "open %.160s", folder);
	if (on)
		file = openat(dir, DRAINING_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (on ? file < 0 : unlinkat(dir, DRAINING_FILE, 0) < 0 && errno != ENOENT)
		return err_sys(e, "%s %.160s/" DRAINING_FILE, on ? "create" : "delete", folder);
	if (fsync(dir) < 0)
		return err_sys(e, "sync %.160s", folder);
	f->is_draining = on;
	return 0;
}

int fleet_check_accepts(const struct fleet *f, struct err *e)
{
	if (!f->is_draining)
		return 0;
	err_set(e, ERR_LIMIT,
		"this node takes no new boxes: it is draining; `atoll node undrain` ends that");
	e->sys = ESHUTDOWN;
	return -1;
}
