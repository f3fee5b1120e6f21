/* swerex.h - the runtime of SWE-ReX as a surface: /swerex/{box}, for agents that speak to it.
 *   swerex.c         routes                       swerex_run.c     sessions, programs
 *   swerex_call.c    boxes, answers, exceptions   swerex_files.c   files, uploads
 *   swerex_again.c   what is sent twice           swerex_text.c    scripts in, clean text out
 *
 * A session is a folder of the box. Each command is a shell of its own that begins where the last
 * one ended, as with the tool `bash`: one that hangs or exits takes no session along, and a server
 * that is replaced loses none.
 *
 *   state    what a shell needs to go on: options, variables, functions, aliases, folder
 *   busy     process and start time of the command that runs; whoever comes then, waits
 *
 * What a script has to say to us is a line on stderr that begins with REX_MARK. It is said before
 * the command begins, whose own stderr is the script's stdout: it cannot say such a line. */
#pragma once
#include "base/buf.h"
#include <jansson.h>

#define SWEREX_MARK "atoll-rex: "

/* name: a FIELD_NAME, so that it needs no quotes. The command of a session is the script's $1. */
void swerex_script_create(struct buf *out, const char *name, const json_t *sources);
void swerex_script_run(struct buf *out, const char *name);
void swerex_script_interrupt(struct buf *out, const char *name, unsigned tries, unsigned wait_ms);
void swerex_script_close(struct buf *out, const char *name); /* NULL: all of them */
/* The archive goes, whatever becomes of it; the folder that it is unpacked to is the script's $1. */
void swerex_script_unzip(struct buf *out, const char *archive);

/* What a terminal would have taken for itself is left out, and a line ends with \n alone. */
void swerex_plain(const char *text, size_t n, struct buf *out);

/* The word behind the mark, and the length of what stands before it; NULL: there is none. */
const char *swerex_marked(const char *said, size_t *before);

enum swerex_codec { SWEREX_UTF8, SWEREX_ASCII, SWEREX_LATIN1 };
enum swerex_errors { SWEREX_STRICT, SWEREX_REPLACE, SWEREX_IGNORE, SWEREX_BACKSLASH };
int swerex_codec(const char *name);  /* -1: not known */
int swerex_errors(const char *name); /* -1: not known */
/* Bytes as UTF-8. -1: strict, and byte *at is none of the codec's. */
int swerex_decode(const struct buf *bytes, enum swerex_codec c, enum swerex_errors how,
		  struct buf *out, size_t *at);
