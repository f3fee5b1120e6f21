/* local_daemon.c - see local_daemon.h. */
#include "daemon/local_daemon.h"
#include "base/cleanup.h"
#include "base/run_dir.h"
#include "http/client_conn.h"
#include "daemon/endpoint.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { CONNECT_MS = 5000 };

static int local_daemon_refuse(const char *command, const char *named, const char *run,
			       struct err *e)
{
	struct pidfile_record note;
	struct err why;
	char pid[32] = "none runs";

	if (pidfile_read(run, &note, &why) == 0)
		snprintf(pid, sizeof(pid), "pid %d", (int)note.supervisor);
	return err_set(
		e, ERR_INVALID,
		"%s acts on the daemon of a run folder, here %.60s (%s), and cannot act on %.80s; unset "
		"ATOLL_HOST, or set ATOLL_RUN to its run folder",
		command, run, pid, named);
}

/* The process that listens there: the supervisor, or systemd (1) where that opened the socket. */
static int listener_of(const struct client_conn_url *url, pid_t *out_pid, struct err *e)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	struct client_conn d;
	int rc;

	if (client_conn_open(&d, url, NULL, CONNECT_MS, e) < 0)
		return -1;
	rc = getsockopt(d.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	client_conn_close(&d);
	if (rc < 0)
		return err_sys(e, "read the credentials of the peer of %.100s", url->host);
	*out_pid = peer.pid;
	return 0;
}

/* The daemon's socket is in its run folder, unless serve.socket is set. */
static int find_by_socket(const char *command, const char *named, char run[256], struct err *e)
{
	struct pidfile_record note;
	struct client_conn_url url;
	char folder[256];
	pid_t listener = 0;
	char *slash;

	if (client_conn_url_parse(named, &url, e) < 0)
		return -1;
	if (url.kind != CLIENT_CONN_UNIX)
		return local_daemon_refuse(command, named, run, e);
	if (listener_of(&url, &listener, e) < 0)
		return -1;
	if (pidfile_read(run, &note, e) == 0 && note.supervisor == listener)
		return 0;
	snprintf(folder, sizeof(folder), "%.255s", url.host);
	slash = strrchr(folder, '/');
	*slash = 0;
	if (pidfile_read(folder, &note, e) < 0 || (note.supervisor != listener && listener != 1))
		return local_daemon_refuse(command, named, run, e);
	snprintf(run, 256, "%s", folder);
	return 0;
}

int local_daemon_find(const struct cli *cli, const char *command, char out[256], struct err *e)
{
	struct endpoint reach = { 0 };

	if (run_dir_find(out, 256, e) < 0 || (!cli->host && endpoint_find(&reach, e) < 0))
		return -1;
	if (cli->host)
		snprintf(reach.where, sizeof(reach.where), "%s", cli->host);
	if (!cli->host && !reach.chosen)
		return 0;
	if (find_by_socket(command, reach.where, out, e) < 0)
		return -1;
	return setenv("ATOLL_RUN", out, 1) < 0 ? err_sys(e, "setenv") : 0;
}
