/* procimage_process.h - the service that makes process images, and one worker for each image.
 *
 *   keeper ── service (a child of the keeper, without threads)
 *                └── worker: one for each image; holds its checkpoint zygotes
 *                       ├── capture: procimage_capture.h
 *                       └── checkpoint zygote: one for each program (procimage/image_zygote.h)
 *
 * A worker ends with its socket at the keeper, with the service, and after a failure; its zygotes end with it. Copies
 * are processes of their boxes and do not end with it. The root folder of the service, its workers and their zygotes contains /usr,
 * /proc and /dev/null. They have the capabilities that the confinement of a copy needs.
 * Owns: the layout of the messages. */
#pragma once
#include "base/err.h"
#include "keeper/procimage_capture.h"
#include "wire/wire.h"
#include <stdint.h>
#include <sys/types.h>

struct host_state;

enum { PROCIMAGE_TASKS = 6, PROCIMAGE_FDS = 3 + PROCIMAGE_TASKS };

struct procimage_order { /* TAKE, to the service: fds are the socket of the worker, a connection to init, the pidfd of
			  * init. LOAD, to the service: the socket of the worker, a file. START, to the worker: a
			  * connection to init, its pidfd, files of the cgroups. SAVE, to the worker: a file */
	enum {
		PROCIMAGE_TAKE = 1,
		PROCIMAGE_LOAD,
		PROCIMAGE_FILES_DONE,
		PROCIMAGE_START,
		PROCIMAGE_SAVE
	} what;
	uint32_t uid_base;
	uint32_t keep_stopped; /* TAKE: the programs of the source do not continue */
	uint32_t without;      /* TAKE; test builds: bits of enum copy_step */
	uint32_t
		spoil; /* TAKE; test builds: images are changed at random, from this number; 0: not */
	uint32_t
		portable; /* SAVE: with the mapped files of /usr. LOAD; test builds: as if the kernel were another one */
	uint64_t features; /* of the box: bits of enum jail_feature */
	/* SAVE, LOAD */
	char id[WIRE_ID], team[72];
	uint8_t key[32];
	char boot[40]; /* the id of this boot of the machine */
};

struct procimage_answer { /* from the worker; after an error of TAKE it has ended */
	enum { PROCIMAGE_STOPPED = 1, PROCIMAGE_READY, PROCIMAGE_STARTED, PROCIMAGE_SAVED } what;
	struct err err; /* kind 0: done */
	struct wire_image_about about;
	struct wire_image_program program[PROCIMAGE_PROGRAMS]; /* READY */
};

/* Before the keeper leaves the host's mounts, when its filter is compiled. Returns a socket to the service. */
must_check int procimage_service_start(const struct host_state *h, pid_t *out_pid, struct err *e);
/* fds: as above, n of them. */
must_check int procimage_order(int sock, const struct procimage_order *o, const int *fds,
			       unsigned n, struct err *e);
