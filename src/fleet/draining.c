/* draining.c - a machine that takes no new boxes, because it will be removed or restarted; its boxes continue, or move to
 * other nodes. See fleet.h. */
#include "base/cleanup.h"
#include "fleet/box.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRAINING_FILE "draining" /* empty, or: */
#define DRAINING_MOVES "move\n"

int fleet_load_draining(struct fleet *f, const char *folder, struct err *e)
{
	auto_fd int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), file = -1;
	char text[sizeof(DRAINING_MOVES)] = "";

	if (dir < 0)
		return err_sys(e, "open %.160s", folder);
	file = openat(dir, DRAINING_FILE, O_RDONLY | O_CLOEXEC);
	f->is_draining = file >= 0;
	if (file < 0)
		return errno == ENOENT ? 0 : err_sys(e, "read %.160s/" DRAINING_FILE, folder);
	if (read(file, text, sizeof(text) - 1) < 0)
		return err_sys(e, "read %.160s/" DRAINING_FILE, folder);
	f->is_moving = !strcmp(text, DRAINING_MOVES);
	return 0;
}

static int draining_write(int dir, int moves)
{
	auto_fd int file =
		openat(dir, DRAINING_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n = moves ? (ssize_t)strlen(DRAINING_MOVES) : 0;

	return file < 0 || write(file, DRAINING_MOVES, (size_t)n) != n || fsync(file) < 0 ? -1 : 0;
}

int fleet_set_draining(struct fleet *f, const char *folder, enum fleet_draining how, struct err *e)
{
	auto_fd int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_sys(e, "open %.160s", folder);
	if (how != FLEET_TAKES_BOXES) {
		if (draining_write(dir, how == FLEET_DRAINS_AND_MOVES) < 0)
			return err_sys(e, "write %.160s/" DRAINING_FILE, folder);
	} else if (unlinkat(dir, DRAINING_FILE, 0) < 0 && errno != ENOENT) {
		return err_sys(e, "delete %.160s/" DRAINING_FILE, folder);
	}
	if (fsync(dir) < 0)
		return err_sys(e, "sync %.160s", folder);
	f->is_draining = how != FLEET_TAKES_BOXES;
	f->is_moving = how == FLEET_DRAINS_AND_MOVES;
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

/* ---- boxes that move ---- */

int box_set_leaving(struct box *b, const char *snapshot, struct err *e)
{
	return box_set_metadata(b,
				snapshot ? box_metadata_with(b->row.metadata, BOX_LEAVING, snapshot)
					 : box_metadata_without(b->row.metadata, BOX_LEAVING),
				e);
}

char *box_leaving_snapshot(const struct box *b)
{
	json_t *marks = b->is_leaving ? json_loads(b->row.metadata, 0, NULL) : NULL;
	const char *text = json_string_value(json_object_get(marks, BOX_LEAVING));
	char *copy = strdup(text ? text : "");

	if (!copy)
		abort();
	json_decref(marks);
	return copy;
}

const char *box_stays_because(const struct box *b)
{
	if (b->is_leaving)
		return NULL;
	if (b->row.on_loss != STORE_LOSS_RESTART)
		return "its on_loss is not restart";
	if (b->state == BOX_PAUSED)
		return "it is paused: its programs are in the memory of this node; resume it";
	return b->stays_because;
}
