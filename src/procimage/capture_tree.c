/* capture_tree.c - pipes and socket pairs whose ends are in one or several processes of a tree. */
#include "procimage/capture.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/keep.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

struct ends {
	unsigned readers, writers, processes;
	int objects; /* another process has one of the descriptions, too */
	int first;   /* lowest number in the process */
};

static int ends_has(const struct image_descriptor *d, const struct image_descriptor *of)
{
	if (d->kind != of->kind)
		return 0;
	return of->kind == DESCRIPTOR_PIPE ? d->inode == of->inode
					   : d->inode == of->inode || d->inode == of->offset;
}

static struct ends ends_of(struct capture *const *v, unsigned n, const struct image_descriptor *of)
{
	struct ends x = { .first = -1 };

	for (unsigned k = 0; k < n; k++) {
		const struct image *im = &v[k]->image;
		int here = 0;

		for (uint64_t i = 0; i < im->header.count[TABLE_DESCRIPTORS]; i++) {
			const struct image_descriptor *d = &image_descriptors(im)[i];

			if (!ends_has(d, of))
				continue;
			here = 1;
			x.objects |= d->object != 0;
			x.first = x.first < 0 ? d->number : x.first;
			x.readers += of->kind == DESCRIPTOR_PIPE
					     ? (d->flags & O_ACCMODE) != O_WRONLY
					     : d->inode == of->inode;
			x.writers += of->kind == DESCRIPTOR_PIPE
					     ? (d->flags & O_ACCMODE) != O_RDONLY
					     : d->inode == of->offset;
		}
		x.processes += (unsigned)here;
	}
	return x;
}

/* No process has the other end of this pipe: the copy is to see the same end of file, or broken pipe. */
static int relate_is_closed(const struct capture *c, const struct image_descriptor *d)
{
	int reads = (d->flags & O_ACCMODE) == O_RDONLY;
	struct pollfd p = { .events = reads ? POLLIN : POLLOUT };
	auto_fd int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", c->tracee.pid, d->number);
	fd = open(path, (reads ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_CLOEXEC);
	p.fd = fd;
	return fd >= 0 && poll(&p, 1, 0) == 1 && p.revents & (reads ? POLLHUP : POLLERR);
}

static int relate_one(struct capture *const *v, unsigned n, struct capture *c,
		      struct image_descriptor *d, uint32_t *objects, struct err *e)
{
	struct ends x = ends_of(v, n, d);

	if ((d->kind == DESCRIPTOR_PAIR && !d->offset) ||
	    ((!x.readers || !x.writers) && (d->kind == DESCRIPTOR_PAIR || !relate_is_closed(c, d))))
		return keep_refuse(e,
				   d->kind == DESCRIPTOR_PIPE ? KEEP_OTHER_PIPE : KEEP_OTHER_SOCKET,
				   c->tracee.pid, d->number,
				   d->kind == DESCRIPTOR_PAIR ? "unix socket"
				   : x.readers                ? "reading end"
							      : "writing end");
	if (x.processes < 2 && !x.objects) {
		d->peer = x.first;
		return 0;
	}
	if (!d->object)
		d->object = ++*objects;
	return d->object < IMAGE_OBJECTS_MOST
		       ? 0
		       : keep_refuse(e, KEEP_TOO_MANY, c->tracee.pid, d->number,
				     "more than 4,095 shared descriptions");
}

int capture_relate(struct capture *const *v, unsigned n, struct err *e)
{
	uint32_t objects = 0;

	for (unsigned k = 0; k < n; k++)
		for (uint64_t i = 0; i < v[k]->image.header.count[TABLE_DESCRIPTORS]; i++)
			if (image_descriptors(&v[k]->image)[i].object > objects)
				objects = image_descriptors(&v[k]->image)[i].object;
	/* Twice: an end of which one became an object makes the other one an object. */
	for (int turn = 0; turn < 2; turn++)
		for (unsigned k = 0; k < n; k++)
			for (uint64_t i = 0; i < v[k]->image.header.count[TABLE_DESCRIPTORS]; i++) {
				struct image_descriptor *d = &image_descriptors(&v[k]->image)[i];

				if ((d->kind == DESCRIPTOR_PIPE || d->kind == DESCRIPTOR_PAIR) &&
				    relate_one(v, n, v[k], d, &objects, e) < 0)
					return -1;
			}
	return 0;
}
