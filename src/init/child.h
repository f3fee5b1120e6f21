/* child.h - turns a request into a program that runs as the box's user.
 * Owns: the steps between clone and execve. No other file of init changes an identity or a
 * capability. */
#pragma once
#include <stdint.h>

struct child_args { /* belongs to the caller; the child shares init's memory and writes its
		     * failure into it */
	const char *cwd;
	char **argv, **env;
	int stdio[3]; /* become 0, 1 and 2; a descriptor that already has its number stays */
	int channel;  /* becomes 3; -1: there is none */
	int tty;      /* stdio is a terminal: make it the controlling one */
	int root;     /* as the image's root, with its few capabilities */
	int ids; /* with uid and gid, not as the user; with root: as the image's root with gid */
	uint32_t uid, gid;
	uint64_t fsize_bytes; /* RLIMIT_FSIZE; 0: as it is */
	uint64_t without;     /* test builds: bits of enum inside_row to leave out */
	const char *failed;   /* out: the step that did not work, NULL if the program runs */
	int err;              /* out: its errno */
};

void child_drop_stack(
	void); /* frees the pages of the stack that children share; no child may use it */
int child_start(struct child_args *c); /* the pid, or -errno if there is no process at all */

/* Makes the calling process the user (or the image's root) permanently. 0 or -errno. */
int child_become(int root);
