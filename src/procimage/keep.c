/* keep.c - see keep.h. */
#include "procimage/keep.h"
#include "base/err.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct keep_row keep_rows[KEEP_COUNT] = {
#define ROW(id, outcome, thing, text) { #id, KEEP_##outcome, thing, text },
	KEEP_ROWS(ROW)
#undef ROW
};

const char *keep_outcome_name(enum keep_outcome o)
{
	static const char *const names[] = { "kept", "differs", "refused" };

	return names[o];
}

static void keep_read_command(int pid, char command[16])
{
	char path[64];
	int fd;
	ssize_t n;

	strcpy(command, "?");
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, command, 15);
	close(fd);
	if (n > 0)
		command[command[n - 1] == '\n' ? n - 1 : n] = 0;
}

int keep_refuse(struct err *e, enum keep row, int pid, int descriptor, const char *seen)
{
	char command[16], number[32] = "";

	keep_read_command(pid, command);
	if (descriptor >= 0)
		snprintf(number, sizeof(number), ", descriptor %d", descriptor);
	return err_set(e, ERR_CONFLICT, "not_capturable: process %d (%s)%s: %s (%s): %s", pid,
		       command, number, keep_rows[row].thing, seen, keep_rows[row].text);
}
