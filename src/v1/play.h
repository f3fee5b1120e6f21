/* play.h - /play/: programs in the reader's own browser, without a box.
 * Owns:         the policies of these pages, and sending the files of the interpreters.
 * Does not own: the pages (part of the web UI's bundle), the files (play_files.h).
 *
 *   /play/              a page with an editor and output
 *   /play/info          whether the files are installed, and where they are
 *   /play/frame.html    the page that executes programs, in a frame of /play/ or of the web UI
 *   /play/lib/SET/FILE  files of the interpreters
 *
 * The frame has an opaque origin: a program in it reaches no storage, no channel and no key of the web
 * UI. Its policy permits requests to /play/lib/ and to no other address, the API included. */
#pragma once
#include "api/api.h"

extern const struct api_surface play_surface;
