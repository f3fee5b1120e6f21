/* capture_terminal.c - terminals of a stopped program: their numbers and settings. */
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/capture_descriptors.h"
#include "procimage/keep.h"

#include <asm/termbits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(struct termios2) == IMAGE_TERMINAL_SETTINGS, "settings of a terminal");

static struct image_terminal *terminal_find(struct capture *c, uint32_t number)
{
	for (uint64_t i = 0; i < c->image.header.count[TABLE_TERMINALS]; i++)
		if (image_terminals(&c->image)[i].number == number)
			return &image_terminals(&c->image)[i];
	return NULL;
}

int capture_add_terminal(struct capture *c, const struct open_descriptor *o, uint32_t number,
			 struct err *e)
{
	auto_fd int pidfd = (int)syscall(SYS_pidfd_open, c->tracee.pid, 0);
	auto_fd int fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, o->number, 0);
	struct image_terminal *t = terminal_find(c, number);
	struct winsize size = { 0 };
	struct termios2 settings;
	int packets = 0;

	if (number >= IMAGE_TERMINAL_NUMBER)
		return keep_refuse(e, KEEP_TOO_MANY, c->tracee.pid, o->number,
				   "the number of a terminal is above 63");
	if (!t && c->image.header.count[TABLE_TERMINALS] == IMAGE_TERMINALS_MOST)
		return keep_refuse(e, KEEP_TOO_MANY, c->tracee.pid, o->number,
				   "more than 16 terminals");
	if (fd < 0)
		return err_sys(e, "duplicate descriptor %d of process %d", o->number,
			       c->tracee.pid);
	if (ioctl(fd, TCGETS2, &settings) < 0 || ioctl(fd, TIOCGWINSZ, &size) < 0)
		return err_sys(e, "read the settings of terminal %u", number);
	t = t ? t : procimage_add(&c->image, TABLE_TERMINALS, 1);
	t->number = number;
	/* Only a master has it. */
	if (ioctl(fd, TIOCGPKT, &packets) == 0)
		t->packets = packets != 0;
	t->rows = size.ws_row;
	t->cols = size.ws_col;
	t->width = size.ws_xpixel;
	t->height = size.ws_ypixel;
	memcpy(t->settings, &settings, sizeof(settings));
	return 0;
}
