/* play_files.h - the interpreters that /play/ executes in browsers: files of npm packages.
 * `atoll tier prepare play` installs them; the server sends them. They are not part of Atoll. */
#pragma once
#include <stddef.h>

struct play_file {
	const char *name;   /* in the folder of the set, and in its address */
	const char *type;   /* media type */
	const char *source; /* below node_modules */
	const char *sha256; /* of the file of the package */
};
extern const struct play_file play_files[];
extern const unsigned play_nfiles;
extern const char *const play_packages[]; /* "name@version", NULL-terminated */

/* Browsers have no table of packages: in the installed files the left name is replaced. */
#define PLAY_IMPORT "\"@jitl/quickjs-ffi-types\""
#define PLAY_IMPORT_FILE "\"./quickjs-ffi-types.mjs\""

#define PLAY_COMMAND "atoll tier prepare play"
#define PLAY_FOLDER "play" /* in the server's folder; the set is a folder in it */

enum { PLAY_SET = 33 };
/* The name of the set: 32 digits of the SHA-256 of all names and hashes. */
const char *play_set(void);
const struct play_file *play_find(const char *name);
