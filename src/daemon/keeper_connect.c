/* keeper_connect.c - see keeper_connect.h. */
#include "daemon/keeper_connect.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "client/box_handle.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

enum { TRIES = 50, PAUSE_MS = 20, LEAVE_TRIES = 250, ANSWER_MS = 2000, GLANCE_MS = 50 };

static void pause_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static pid_t peer_of(int fd)
{
	struct ucred peer = { .pid = 0 };
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ? 0 : peer.pid;
}

static int is_alive(pid_t pid)
{
	return pid > 1 && kill(pid, 0) == 0;
}

static void connect_patience(int fd, long ms)
{
	struct timeval t = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

enum verdict { GOOD, GONE, FOREIGN };

/* Does not use link_ask(), which would replace a keeper that closes the connection. A keeper
 * that was killed still accepts connections as long as a child of it has not ended: then no
 * answer arrives, and its pid shows that it is gone. */
static enum verdict connect_greet(int fd)
{
	struct keeper_sync k = { .fd = fd, .next_ref = 1 };
	struct wire_info about;
	struct err e = { 0 };

	for (long waited = 0; waited < ANSWER_MS; waited += GLANCE_MS) {
		connect_patience(fd, GLANCE_MS);
		if (keeper_sync_greet(&k, &about, &e) == 0) {
			connect_patience(fd, 0);
			if ((about.head.flags & WIRE_INFO_ALL) == WIRE_INFO_ALL)
				return GOOD;
			break; /* it would close the connection at a request that it does not know */
		}
		if (!is_alive(peer_of(fd)))
			return GONE;
		if (e.sys != EAGAIN)
			break;
	}
	log_warn("the keeper uses another version of the protocol", LOG_E(&e));
	return FOREIGN;
}

static void send_away(pid_t pid)
{
	log_info("asking the other keeper to leave", LOG_I("pid", pid));
	kill(pid, SIGTERM);
	for (int i = 0; i < LEAVE_TRIES && is_alive(pid); i++)
		pause_ms(PAUSE_MS);
}

int keeper_connect(struct err *e)
{
	for (int tries = 0; tries < TRIES; tries++) {
		struct keeper_sync k;
		enum verdict v;

		if (keeper_sync_open(&k, 1, e) < 0)
			return -1;
		v = connect_greet(k.fd);
		if (v == GOOD)
			return k.fd;
		if (v == FOREIGN)
			send_away(peer_of(k.fd));
		else
			pause_ms(PAUSE_MS);
		keeper_sync_close(&k);
	}
	return err_set(e, ERR_SYS, "no keeper of this version could be started");
}

void keeper_allow_process(int allowed)
{
	if (allowed ? setenv("ATOLL_KEEPER_PROCESS", "true", 1) : unsetenv("ATOLL_KEEPER_PROCESS"))
		abort(); /* out of memory */
}
