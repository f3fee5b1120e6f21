/* thread_list.c - see thread_list.h. */
#include "procimage/thread_list.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/keep.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int thread_list_read(pid_t pid, pid_t *tids, unsigned most, struct err *e)
{
	char path[64];
	struct dirent *d;
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return err_set(e, ERR_NOT_FOUND, "process %d no longer exists", pid);
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.')
			continue;
		if (n == most) {
			closedir(dir);
			return keep_refuse(e, KEEP_TOO_MANY, pid, -1, "more than 512 threads");
		}
		tids[n++] = atoi(d->d_name);
	}
	closedir(dir);
	return (int)n;
}

/* Executable areas are searched in pieces that overlap, because most libraries are large and the C
 * library has the instructions near its beginning. */
static void thread_list_search(int memory, struct arch_code *code, uint64_t start, uint64_t end)
{
	enum { PIECE = 65536, OVERLAP = 16 };
	static char piece[PIECE + OVERLAP];

	for (uint64_t at = start; at < end && !(code->call && code->sig_return); at += PIECE) {
		size_t want = end - at < sizeof(piece) ? end - at : sizeof(piece);
		ssize_t n = pread(memory, piece, want, (off_t)at);

		if (n <= 0)
			return;
		arch_find_code(code, piece, (size_t)n, at);
	}
}

int thread_list_find_code(pid_t pid, int memory, struct arch_code *code, uint64_t *out_stack,
			  struct err *e)
{
	char path[64], *line = NULL;
	size_t room = 0;
	uint64_t stack = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return err_sys(e, "read %s", path);
	/* The C library first: every dynamic program has it. */
	for (int turn = 0; turn < 2; turn++, rewind(maps))
		while (getline(&line, &room, maps) > 0) {
			unsigned long start, end;
			char prot[5];

			if (sscanf(line, "%lx-%lx %4s", &start, &end, prot) != 3)
				continue;
			if (strstr(line, "[stack]"))
				stack = start;
			if (prot[2] == 'x' && prot[0] == 'r' && (turn || strstr(line, "/libc")))
				thread_list_search(memory, code, start, end);
		}
	free(line);
	fclose(maps);
	if (!stack)
		return err_set(e, ERR_CONFLICT, "process %d has no main stack", pid);
	if (!code->call || !code->sig_return)
		return err_set(
			e, ERR_CONFLICT,
			"no instruction for system calls was found in the code of process %d", pid);
	*out_stack = stack;
	return 0;
}
