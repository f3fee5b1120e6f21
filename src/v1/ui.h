/* ui.h - the web UI's files, for browsers.
 * Owns:         the index of the files that ui/bundle.mjs put into this executable (docs/ui.md).
 * Does not own: what the page does: it is a client of /v1 like any other, with a key of its own.
 *
 * This surface comes after the one for ports of boxes: their requests never get here. Takes GET and
 * HEAD of /a/FILE, of /favicon.svg, and, for clients that accept text/html, of the pages' paths
 * (/templates is also a path of E2B's API); all other requests belong to the API. */
#pragma once
#include "api/api.h"

extern const struct api_surface ui_surface;
int ui_is_built(void); /* 0: this executable has no web UI in it */
/* 1: ports of boxes are reached at names of the same site as this Host, so the page is not served
 * there. */
int ui_is_beside_previews(const struct api_conf *conf, const char *host);

/* For pages that are in the bundle and have policies of their own (play.c). */
int ui_reply_path(struct call *c, const char *path); /* -1: the bundle has no such file */
int ui_accepts_gzip(const struct http_req *r);
void ui_refuse_site(struct call *c); /* the answer where ui_is_beside_previews() */
