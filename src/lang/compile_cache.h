/* compile_cache.h - compiled programs, stored for the next exec of the same source.
 * Owns: a folder of the state with a fixed number of files in it.
 *
 * A key is a digest of everything that a compiler has seen in a box where nothing else had run: the
 * team, the command of the row, variables, every file, the layers of the box, and the state of the
 * toolchain of the host. So only a member of the same team with the same inputs could change an
 * entry of a key. A key with a box in it is valid for that box only: any program may have run
 * there, and a box that reports false digests affects only its own entries. A file starts with its
 * key and the digest of its content; a file that does not match is removed and treated as missing.
 * Two keys may have the same slot: the later one replaces the earlier. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "client/box_handle.h"
#include <jansson.h>

struct lang_pair;

enum {
	/* clang-format off */
	COMPILE_CACHE_MOST = 2 * 1024 * 1024, /* bytes of one, packed: with the files, less than FRAME_CONN_QUEUE */
	COMPILE_CACHE_PLACES = 512,
	/* clang-format on */
};

struct compile_caches {
	int folder;
	size_t most; /* bytes of one; compile_caches_open() sets COMPILE_CACHE_MOST */
};

struct compile_inputs {      /* borrowed for the call; anything may be NULL */
	const char *surface; /* surfaces report compiler output differently */
	const char *team;
	const char *const *argv, *const *env;
	const char *box_env; /* variables of the box, as stored; env overrides them */
	const char *cwd;
	const char *source, *code; /* the file that came without a name */
	size_t code_len;
	const json_t *files;             /* {path: text or {base64}} */
	const struct lang_pair *support; /* files of the language, up to one without a key */
	const char *box;                 /* the entry is valid for this box only */
	const uint8_t *state;            /* digest of other files in the box; NULL: none */
	const char (*layers)[WIRE_LAYER_ID];
	unsigned nlayers;
	const char *program; /* of the host: its compiler */
};

struct compile_cache_key {
	uint8_t bytes[SHA256_BYTES];
};

must_check int compile_caches_open(struct compile_caches *a, const char *state, struct err *e);
void compile_caches_close(struct compile_caches *a);

void compile_cache_key(const struct compile_inputs *of, struct compile_cache_key *out);
/* Is this word anywhere in the program's text? */
int compile_cache_mentions(const struct compile_inputs *of, const char *word);
/* Does the program use the compile time? It is in no key. */
int compile_cache_uses_time(const struct compile_inputs *of);
/* 1: found. 0: there is no entry, or no valid one. */
int compile_cache_get(const struct compile_caches *a, const struct compile_cache_key *key,
		      struct buf *out);
/* A program that is too large is not stored, and neither is one for which the disk has no space. */
void compile_cache_put(const struct compile_caches *a, const struct compile_cache_key *key,
		       const void *bytes, size_t n);

/* The command that writes a program (a file or a folder) of a box to its stdout. */
const char **compile_cache_pack(const char *program); /* the caller frees it */
/* The command that unpacks it, after the bytes were written to COMPILE_CACHE_FILE. */
const char **compile_cache_unpack(const char *program);
#define COMPILE_CACHE_FILE "/tmp/.atoll/made.tgz"

/* The same with the output of the compiler, and a program of one file unpacked: compile_reuse.h. An
 * entry has struct compile_messages, stdout, stderr, then the output of compile_cache_give(): a
 * command that prints 'f' and the bytes of the file, or 't' and the output of
 * compile_cache_pack(). */
const char **compile_cache_give(const char *program);
struct compile_messages {
	uint32_t bytes[2];
};
struct compile_output { /* views into the entry */
	const char *said[2];
	size_t said_len[2];
	const char *bytes; /* of the program: */
	size_t n;
	int is_file; /* unpacked; else packed */
};
/* -1: not a valid entry. */
must_check int compile_cache_read(const struct buf *kept, struct compile_output *out);
void compile_cache_write(struct buf *out, const struct buf said[2], const struct buf *given);
