/* disk_service.c - see disk_service.h. */
#include "keeper/disk_service.h"
#include "base/cleanup.h"
#include "keeper/disk_image.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DISK_FD = 3, DISK_FD_HIGH = 64, DISK_TRIES = 200, DISK_TRY_US = 10000 };

struct order {
	enum { BOX_DISK, VOLUME_MAKE, VOLUME_DROP, VOLUME_MOUNT } what;
	int read_only;
	uint64_t bytes, files, promised;
	uint32_t uid, pad;
	char volume[WIRE_VOLUME_ID];
};

/* ---- in the disk service ---- */

/* Returns a mount, or -1 if there is none to return; e is set if that is a failure. */
static int disk_fulfil(const char *dir, const struct order *o, struct err *e)
{
	switch (o->what) {
	case BOX_DISK:
		if (image_room(dir, o->promised, o->bytes, e) < 0)
			return -1;
		return image_box_disk(dir, o->bytes, o->files, o->uid, e);
	case VOLUME_MAKE:
		if (image_room(dir, o->promised, o->bytes, e) == 0)
			(void)!image_volume_make(dir, o->volume, o->bytes, e);
		return -1;
	case VOLUME_DROP:
		(void)!image_volume_drop(dir, o->volume, e);
		return -1;
	case VOLUME_MOUNT:
		return image_volume_mount(dir, o->volume, o->read_only, e);
	}
	return err_set(e, ERR_INVALID, "no such order");
}

static _Noreturn void disk_process(int sock, const char *dir)
{
	struct order o;

	/* Closes all other descriptors, also the lock of the keeper: it must be free when the
	 * keeper has ended. */
	if (dup3(sock, DISK_FD, O_CLOEXEC) < 0 || close_range(DISK_FD + 1, ~0U, 0) < 0)
		_exit(1);
	sock = DISK_FD;
	signal(SIGTERM, SIG_IGN); /* this process ends when the keeper's end of the socket
				   * is closed */
	signal(SIGINT, SIG_IGN);
	while (recv(sock, &o, sizeof(o), 0) == (ssize_t)sizeof(o)) {
		struct err e = { 0 };
		auto_fd int fd = disk_fulfil(dir, &o, &e);

		if (sock_send_message(sock, &e, sizeof(e), &fd, fd >= 0) < 0)
			break;
	}
	_exit(0);
}

/* ---- in the keeper ---- */

/* With the folders above it: a new user has no ~/.local. Those get the mode of the XDG specification. */
static int disk_make_state_dir(const char *path, struct err *e)
{
	char part[PATH_MAX];

	if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return err_set(e, ERR_INVALID,
			       "the path of the state folder is longer than %d bytes",
			       PATH_MAX - 1);
	for (char *p = part + 1; *part && *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return err_sys(e, "make folder %s for the state", part);
		*p = '/';
	}
	if (mkdir(path, 0711) < 0 && errno != EEXIST)
		return err_sys(e, "make state folder %s", path);
	return 0;
}

int disk_process_start(const char *state_dir, pid_t *out_pid, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (disk_make_state_dir(state_dir, e) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to the disk process");
	pid = fork();
	if (pid < 0) {
		close(pair[0]);
		close(pair[1]);
		return err_sys(e, "start the disk process");
	}
	if (pid == 0) {
		close(pair[0]);
		disk_process(pair[1], state_dir);
	}
	close(pair[1]);
	*out_pid = pid;
	return pair[0];
}

static int receive_answer(int sock, struct err *out_e)
{
	int fd;

	if (sock_recv_message(sock, out_e, sizeof(*out_e), &fd, 1) != (ssize_t)sizeof(*out_e)) {
		own_close_fd(&fd);
		err_set(out_e, ERR_SYS, "the disk service has exited");
		out_e->sys = EPIPE;
		return -1;
	}
	return fd;
}

/* A copy of the descriptor: the number may get the socket of a new service between request and reply. */
static int disk_try(int process, const struct order *o, int *out_sent, struct err *answer)
{
	auto_fd int sock = fcntl(process, F_DUPFD_CLOEXEC, DISK_FD_HIGH);

	*out_sent = sock >= 0 && send(sock, o, sizeof(*o), MSG_NOSIGNAL) == (ssize_t)sizeof(*o);
	if (*out_sent)
		return receive_answer(sock, answer);
	err_set(answer, ERR_SYS, "the disk service has exited");
	answer->sys = EPIPE;
	return -1;
}

/* Sends a request and waits for the reply. Builder threads take turns. The loop starts a service that was killed again. An
 * unnamed disk and a mount can be ordered twice, and everything that was not sent. */
static int do_order(int process, const struct order *o, struct err *e)
{
	static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
	int fd, sent, again = o->what == BOX_DISK || o->what == VOLUME_MOUNT;

	pthread_mutex_lock(&turn);
	for (unsigned i = 0;; i++) {
		*e = (struct err){ 0 };
		fd = disk_try(process, o, &sent, e);
		if (fd >= 0 || e->sys != EPIPE || (sent && !again) || i == DISK_TRIES)
			break;
		usleep(DISK_TRY_US);
	}
	pthread_mutex_unlock(&turn);
	return fd;
}

int disk_make(int process, uint64_t bytes, uint64_t files, uint32_t uid, uint64_t promised,
	      int *out_mount, struct err *e)
{
	const struct order o = {
		.what = BOX_DISK, .bytes = bytes, .files = files, .promised = promised, .uid = uid
	};
	int fd = do_order(process, &o, e);

	if (fd < 0)
		return err_in(e, "disk");
	*out_mount = fd;
	return 0;
}

static int order_volume(int process, struct order *o, const char *id, struct err *e)
{
	memcpy(o->volume, id, strnlen(id, sizeof(o->volume) - 1));
	return do_order(process, o, e);
}

int disk_volume_make(int process, const char *id, uint64_t bytes, struct err *e)
{
	struct order o = { .what = VOLUME_MAKE, .bytes = bytes };

	(void)order_volume(process, &o, id, e); /* the reply has no descriptor */
	return e->kind ? -1 : 0;
}

int disk_volume_drop(int process, const char *id, struct err *e)
{
	struct order o = { .what = VOLUME_DROP };

	(void)order_volume(process, &o, id, e);
	return e->kind ? -1 : 0;
}

int disk_volume_mount(int process, const char *id, int read_only, int *out_mount, struct err *e)
{
	struct order o = { .what = VOLUME_MOUNT, .read_only = !!read_only };
	int fd = order_volume(process, &o, id, e);

	if (fd < 0)
		return -1;
	*out_mount = fd;
	return 0;
}
