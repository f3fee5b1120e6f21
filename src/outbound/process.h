/* process.h - the outbound process: sends HTTP requests and mails for servers.
 * Owns: connections to other hosts and to servers.
 *
 *   server ── {send: n, message} ──►           {cancel: n}
 *         ◄── {done: n, status, body, cut, took_ms} or {done: n, error, kind, took_ms}
 *
 * Servers choose the targets, and answers are not trusted: after the process has confined itself it
 * cannot open files or start programs, and connects to no internal address that the settings do not
 * name. */
#pragma once
#include "base/err.h"
#include "outbound/target.h"

struct outbound_conf { /* borrowed for the life of the process */
	struct outbound_rules rules;
	const char *authorities; /* PEM, or "" */
	const char *const *dns;  /* servers, NULL-terminated; none: the host's */
};

/* Runs the process until `supervisor` is closed and the last request has ended: OUTBOUND_CONNECT
 * with a descriptor on it is a connection of a server. walls() is called when no more files must be
 * opened. Returns the exit status. */
int outbound_main(const struct outbound_conf *conf, int supervisor,
		  int (*walls)(void *ctx, struct err *e), void *ctx);
