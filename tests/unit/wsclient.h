/* wsclient.h - a WebSocket client. Sending blocks, receiving does not:
 *
 * 	poll(wsclient_fd(w)), then wsclient_take(w) until the next poll
 *
 * Owns: its connection. */
#pragma once
#include "base/err.h"
#include "http/client.h"

#include <stddef.h>
#include <stdint.h>

struct wsclient;

struct wsclient_events {
	void (*on_text)(void *user, const char *text, size_t n);
	void (*on_binary)(void *user, const void *bytes, size_t n);
};

/* 0: open. 1: the server answered with another status than 101; *out_status has it, body has the
 * answer (to be freed by the caller's buf_fini()). -1. protocol: NULL, or the subprotocol. */
must_check int wsclient_open(const char *base, const struct http_client_options *o,
			     const char *target, const struct http_header *headers,
			     unsigned nheaders, const char *protocol, size_t message_max,
			     const struct wsclient_events *on, void *user, struct wsclient **out_ws,
			     int *out_status, struct buf *body, struct err *e);
int wsclient_fd(const struct wsclient *w);
must_check int wsclient_text(struct wsclient *w, const char *text, size_t n, struct err *e);
must_check int wsclient_binary(struct wsclient *w, const void *bytes, size_t n, struct err *e);
/* Reads the bytes that have arrived, without waiting. 1: open, 0: closed by the peer (see code),
 * -1. */
must_check int wsclient_take(struct wsclient *w, struct err *e);
uint16_t wsclient_code(
	const struct wsclient *w); /* of the close; 1006: the connection ended without one */
void wsclient_close(struct wsclient *w,
		    uint16_t code); /* sends a close frame if it can, and frees */
