/* desktop_words.h - actions on the desktop of a box as the words of an xdotool command, and the facts that a
 * screenshot is checked for. Pure: no box and no display.
 * Owns: nothing. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>
#include <stdint.h>

enum { DESKTOP_KEYS = 512 }; /* bytes of the keys of one call */

/* Appends the words after "xdotool" for the checked arguments of one tool. what: a sentence about the action. */
must_check int desktop_click(const json_t *args, json_t *words, struct buf *what, struct err *e);
must_check int desktop_move(const json_t *args, json_t *words, struct buf *what, struct err *e);
must_check int desktop_drag(const json_t *args, json_t *words, struct buf *what, struct err *e);
must_check int desktop_scroll(const json_t *args, json_t *words, struct buf *what, struct err *e);
must_check int desktop_type(const json_t *args, json_t *words, struct buf *what, struct err *e);
must_check int desktop_keys(const json_t *args, json_t *words, struct buf *what, struct err *e);
/* An address that a browser may be started with: it cannot be an option. */
must_check int desktop_url(const char *url, struct err *e);

/* 1: the bytes are the beginning of a PNG image; its size. */
int desktop_png_size(const char *bytes, size_t n, uint32_t *out_width, uint32_t *out_height);

/* The arguments of Anthropic's computer tool as those of a tool of Atoll. *out_tool: its name, NULL for
 * "wait" (out_args then has "duration"). */
must_check int desktop_computer(const json_t *args, const char **out_tool, json_t **out_args,
				struct err *e);
