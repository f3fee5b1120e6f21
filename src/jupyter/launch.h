/* launch.h - a kernel as a process: its connection file, its command, its end.
 * Owns: the folder of the connection (0700), the kernel, and a watcher that kills the kernel with
 * all its children and removes the folder when the driver has exited for any reason. */
#pragma once
#include "base/err.h"
#include "jupyter/message.h"
#include "jupyter/spec.h"
#include <signal.h>
#include <sys/types.h>

enum { PORT_SHELL = 1, PORT_IOPUB, PORT_STDIN, PORT_CONTROL, PORT_HEARTBEAT, PORTS };

struct launch {
	char folder[64], file[96]; /* of the connection */
	char key[JUPYTER_MSG_KEY + 1];
	pid_t kernel; /* also its process group */
	int raw[2];   /* its stdout and stderr, non-blocking */
};

/* Creates the folder and the key, writes the file. */
must_check int launch_init(struct launch *l, const char *kernel_name, struct err *e);
void launch_socket(const struct launch *l, int port, char out[96]); /* the path of one */

/* One argument with all placeholders replaced. */
struct buf;
void launch_word(struct buf *out, const char *word, const char *file, const char *folder);
/* One value of an env: $NAME and ${NAME} are variables of the driver. */
void launch_value(struct buf *out, const char *value);

/* Call it before any other thread exists. The signals of unblock are unblocked in the kernel. */
must_check int launch_start(struct launch *l, const struct kernel_spec *s, const sigset_t *unblock,
			    struct err *e);
/* 1: it has exited, with status *out; it stays a zombie, so that its pid is not reused. */
int launch_ended(const struct launch *l, siginfo_t *out);
