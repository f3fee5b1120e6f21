/* procimage_capture.h - the process that captures the programs of a box.
 *
 * Root of the box's own user namespace with CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE and CAP_DAC_OVERRIDE there (it writes /proc/PID/mem), no
 * capability on the host, and a filter of system calls. It is in the pid and network namespaces of the box; a procfs of them is its only file
 * system. A takeover gains what root of the box has. What it sends is hostile until procimage_decode() has accepted it.
 *
 *   worker                                    capture
 *   (init holds)                              stops all programs, makes the snapshot children
 *                          <── HELD ──
 *   files are read
 *                          ── RELEASE ──>     programs continue (or stay stopped); the images are completed
 *                          <── IMAGE ──       for each process: an image, and a pidfd of its snapshot child, or its pages
 *   reads the snapshot children
 *   closes the socket                         ends the snapshot children */
#pragma once
#include "base/err.h"
#include "wire/wire.h"
#include <sys/types.h>

enum { PROCIMAGE_PROGRAMS = 64 };

struct procimage_source { /* a program that is to be captured */
	struct wire_exec_state state;
};

struct procimage_message {
	enum { PROCIMAGE_HELD = 1, PROCIMAGE_RELEASE, PROCIMAGE_IMAGE } what;
	struct err err;
	uint64_t bytes; /* IMAGE: of the file */
	uint32_t
		count; /* HELD: of the images that will come: of each exec its processes, parents first */
	uint32_t exec;   /* IMAGE: index of the exec */
	uint32_t direct; /* IMAGE: the second descriptor is a file with the pages */
	uint32_t
		keep_stopped; /* RELEASE: the programs continue when the worker closes the socket */
};

/* Compiles the filter of the capture; once, before the first one. */
must_check int procimage_capture_prepare(struct err *e);
/* box: pidfd of its init. usr_dev: the device of the /usr that zygotes see. Returns the pid of the process. */
must_check pid_t procimage_capture_start(int box, const struct procimage_source *v, unsigned n,
					 uint64_t usr_dev, int *out_sock, struct err *e);
/* Receives a message; *out_fds: of an IMAGE the file and the pidfd or pages, else -1. */
must_check int procimage_receive(int sock, int timeout_ms, struct procimage_message *m,
				 int out_fds[2], struct err *e);
must_check int procimage_send(int sock, const struct procimage_message *m, const int *fds,
			      unsigned nfds);
