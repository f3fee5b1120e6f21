/* probe.h - the program that attempts accesses from inside a box, for `atoll prove`.
 *
 * It is static, needs no other file, and is put into an ordinary box. It is not trusted: its lines are compared with what
 * the checker observes outside (check.h). Every attempt runs in a process of its own, so that one that is killed or blocks
 * does not end the others. One line of JSON for each attempt:
 *
 *	{"probe": "host files", "way": "/proc/1/root", "result": "EACCES", "got": ""}
 *
 * result: "ok", the name of an errno, "killed" or "late". got: what was read, at most PROBE_GOT bytes. */
#pragma once
#include <stddef.h>

enum { PROBE_GOT = 2000 };

/* What the checker has set up, as NAME=VALUE arguments of the program; "" where it is missing. */
const char *probe_word(const char *name);
int probe_number(const char *name);                  /* 0 if it is missing */
const char *probe_nth(const char *name, unsigned i); /* the i-th of equal names; NULL: no more */

/* The text that the line of this attempt will have. */
void probe_got(const char *bytes, size_t n);
void probe_got_text(const char *text);
/* Appends the content of a file; 0: something was read. */
int probe_read(const char *path);

struct probe_row {
	const char *probe, *way;
	int (*attempt)(void); /* 0, or -1 and errno */
};
extern const struct probe_row probe_files[], probe_processes[], probe_sockets[], probe_kernel[];

/* probe_use.c: `use KIND MOST`: one unit after the other until this fails. Returns the exit status. */
int probe_use(const char *kind, long most);
