/* box_path.h - BOX:PATH, and what is there. */
#pragma once
#include "cli/api_client.h"

struct place {
	char box[80];     /* "": here */
	const char *path; /* "" with a box: its home */
};

/* A word with a colon before any slash is in a box; "./a:b" is not. */
void place_parse(struct place *p, const char *word);

/* The file that a verb's words name: BOX:PATH, or BOX PATH. Returns 0 or r->status. */
must_check int place_words(struct remote *r, const struct args *a, struct place *out);

enum place_type { PLACE_NOTHING, PLACE_FILE, PLACE_FOLDER, PLACE_OTHER };
/* What is at this path of the box, links followed; -1: r->status. mode may be NULL. */
int place_look(struct remote *r, const char *box, const char *path, unsigned *mode);
/* tar of what is in the folder, to be read from *out_fd; -1: errno. */
pid_t place_start_tar(const char *folder, int *out_fd);
const char *place_last(const char *path, char out[256]); /* its last part; "" of "/", "." and ".." */
