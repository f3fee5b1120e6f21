/* bring.c - see bring.h. */
#include "cli/bring.h"
#include "base/cleanup.h"
#include "cli/below.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int bring_open(struct bring *b, const char *path, struct err *e)
{
	*b = (struct bring){ .folder = -1 };
	if (!path)
		return 0;
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return err_sys(e, "--out: create the folder %.80s", path);
	b->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return b->folder < 0 ? err_sys(e, "--out: open the folder %.80s", path) : 0;
}

static void bring_note(void *ctx, const struct wire_entry *entry, const char *path)
{
	struct bring *b = ctx;
	size_t home = strlen(BOX_HOME);

	if (strncmp(path, BOX_HOME, home) != 0 || path[home] != '/')
		return;
	if (!S_ISREG(entry->mode)) {
		b->skipped++;
		return;
	}
	if ((b->npaths & (b->npaths + 1)) == 0) { /* 0, 1, 3, 7, ...: full */
		b->paths = realloc(b->paths, 2 * (b->npaths + 1) * sizeof(*b->paths));
		b->modes = realloc(b->modes, 2 * (b->npaths + 1) * sizeof(*b->modes));
		if (!b->paths || !b->modes)
			abort();
	}
	b->paths[b->npaths] = strdup(path);
	if (!b->paths[b->npaths])
		abort();
	b->modes[b->npaths++] = entry->mode;
}

void bring_watch(struct bring *b, struct changes *c)
{
	if (b->folder < 0)
		return;
	c->each = bring_note;
	c->ctx = b;
}

static int bring_one(struct bring *b, struct files *f, const char *path, unsigned mode,
		     uint64_t max, struct err *e)
{
	auto_free char *to = strdup(path + strlen(BOX_HOME) + 1);
	uint64_t bytes = 0;
	auto_fd int fd = -1;

	if (!to)
		abort();
	if (below_tidy(to) < 0) {
		b->skipped++;
		return 0;
	}
	fd = below_create(b->folder, to, (mode & 0777) | 0600);
	if (fd < 0)
		return err_sys(e, "--out: create %.120s", to);
	if (files_get(f, path, fd, max - b->bytes, &bytes, e) < 0)
		return err_in(e, "--out");
	b->bytes += bytes;
	b->files++;
	return 0;
}

int bring_fetch(struct bring *b, struct box_handle *box, struct err *e)
{
	uint64_t max = box->about.limits.disk_bytes;
	struct files f;
	int rc = 0;

	if (b->folder < 0 || !b->npaths)
		return 0;
	if (!max || max == WIRE_DEFAULT)
		max = UINT64_MAX;
	if (files_open_alone(&f, box, e) < 0)
		return err_in(e, "--out");
	for (unsigned i = 0; i < b->npaths && rc == 0; i++)
		rc = bring_one(b, &f, b->paths[i], b->modes[i], max, e);
	files_close(&f);
	return rc;
}

void bring_fini(struct bring *b)
{
	for (unsigned i = 0; i < b->npaths; i++)
		free(b->paths[i]);
	free(b->paths);
	free(b->modes);
	own_close_fd(&b->folder);
	*b = (struct bring){ .folder = -1 };
}
