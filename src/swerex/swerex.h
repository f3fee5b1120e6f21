/* swerex.h - the runtime of SWE-ReX as a surface: /swerex/{box}, for agents that use it.
 *   swerex.c         routes                       swerex_run.c     sessions, programs
 *   swerex_call.c    boxes, answers, exceptions   swerex_files.c   files, uploads
 *   swerex_again.c   what is sent twice           swerex_text.c    scripts in, clean text out
 *
 * A session is a folder of the box. Each command runs in a new shell that starts in the state of
 * the previous one, as with the tool `bash`: a command that hangs or exits does not end the
 * session, and a replaced server loses none.
 *
 *   state    what a shell needs to continue: options, variables, functions, aliases, folder
 *   busy     process and start time of the running command; the next command waits for it
 *
 * A script reports to the server by a line on stderr that starts with REX_MARK. It is written
 * before the command starts, whose stderr is the stdout of the script: a command cannot write such
 * a line. */
#pragma once
#include "base/buf.h"
#include <jansson.h>

#define SWEREX_MARK "atoll-rex: "

/* name: a FIELD_NAME, so that it needs no quotes. The command of a session is the script's $1. */
void swerex_script_create(struct buf *out, const char *name, const json_t *sources);
void swerex_script_run(struct buf *out, const char *name);
void swerex_script_interrupt(struct buf *out, const char *name, unsigned tries, unsigned wait_ms);
void swerex_script_close(struct buf *out, const char *name); /* NULL: all of them */
/* The archive is removed in every case; the folder that it is unpacked to is $1 of the script. */
void swerex_script_unzip(struct buf *out, const char *archive);

/* Terminal escape sequences are removed, and a line ends with \n. */
void swerex_plain(const char *text, size_t n, struct buf *out);

/* The word after the mark, and the length of the text before it; NULL: no mark. */
const char *swerex_marked(const char *said, size_t *before);

enum swerex_codec { SWEREX_UTF8, SWEREX_ASCII, SWEREX_LATIN1 };
enum swerex_errors { SWEREX_STRICT, SWEREX_REPLACE, SWEREX_IGNORE, SWEREX_BACKSLASH };
int swerex_codec(const char *name);  /* -1: not known */
int swerex_errors(const char *name); /* -1: not known */
/* Bytes as UTF-8. -1: strict, and byte *at is invalid in the codec. */
int swerex_decode(const struct buf *bytes, enum swerex_codec c, enum swerex_errors how,
		  struct buf *out, size_t *at);
