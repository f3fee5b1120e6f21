/* local_daemon.h - the run folder of the daemon that -H, ATOLL_HOST or the settings name.
 * `upgrade` and `stop` send signals to a daemon of this machine. They must not send them to
 * another daemon than the one that was named, so an address that is not a socket of this machine
 * is rejected. */
#pragma once
#include "cli/args.h"
#include "daemon/pidfile.h"

/* Writes the folder to out and sets ATOLL_RUN to it, for the keeper's socket. On -1 the message
 * names the daemon of the request and the one that would have been used. The command's name is
 * for that message. */
must_check int local_daemon_find(const struct cli *cli, const char *command, char out[256],
				 struct err *e);
