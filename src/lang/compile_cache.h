/* compile_cache.h - what compilers have made, kept for who asks for the same again.
 * Owns: a folder of the state with a fixed number of files in it.
 *
 * A key is a digest of everything that a compiler has seen in a box where nothing else had run: the
 * team, the row's command, variables, every file, the layers of the box, and what the host's toolchain
 * looks like. So whoever could change what is kept under a key would have had to ask for the same
 * thing, in the same team. With a box in it, it is of that box alone: there anything may have run,
 * and whoever lies in there is the only one who hears it. A file has its key and the digest of its content in
 * front; what does not fit is removed and was never there. Two keys may want one place: the later one
 * has it. */
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
	const char *surface; /* who compiles: what is told of a compiler's words differs */
	const char *team;
	const char *const *argv, *const *env;
	const char *box_env; /* below those, as it is stored */
	const char *cwd;
	const char *source, *code; /* the file that came without a name */
	size_t code_len;
	const json_t *files;             /* {path: text or {base64}} */
	const struct lang_pair *support; /* files of the language's own, up to one without a key */
	const char *box;                 /* it is for this one alone */
	const uint8_t *state;            /* SHA256_BYTES: what else is in the box; NULL: nothing */
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
/* Does it ask its compiler what time it is? No key knows that. */
int compile_cache_tells_time(const struct compile_inputs *of);
/* 1: here it is. 0: there is none, or none that can be believed. */
int compile_cache_get(const struct compile_caches *a, const struct compile_cache_key *key,
		      struct buf *out);
/* What does not fit is not kept; a disk that is full keeps nothing. */
void compile_cache_put(const struct compile_caches *a, const struct compile_cache_key *key,
		       const void *bytes, size_t n);

/* How a program (a file or a folder) leaves a box: on the stdout of this command. */
const char **compile_cache_pack(const char *program); /* the caller frees it */
/* How it comes back, once the bytes lie in COMPILE_CACHE_FILE. */
const char **compile_cache_unpack(const char *program);
#define COMPILE_CACHE_FILE "/tmp/.atoll/made.tgz"

/* The same with the compiler's words, and a program of one file as it is: reuse.h.
 *   what is kept: struct compile_messages, stdout, stderr, then what compile_cache_give() has said
 * A command that says 'f' and the file's bytes, or 't' and what compile_cache_pack() says. */
const char **compile_cache_give(const char *program);
struct compile_messages {
	uint32_t bytes[2];
};
struct compile_output { /* views into what was kept */
	const char *said[2];
	size_t said_len[2];
	const char *bytes; /* of the program: */
	size_t n;
	int is_file; /* as it is; else packed */
};
/* -1: that is none. */
must_check int compile_cache_read(const struct buf *kept, struct compile_output *out);
void compile_cache_write(struct buf *out, const struct buf said[2], const struct buf *given);
