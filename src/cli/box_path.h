/* box_path.h - BOX:PATH, and the type of that file. */
#pragma once
#include "cli/api_client.h"
#include <string.h>

struct box_path {
	char box[80];     /* "": here */
	const char *path; /* "" with a box: its home */
};

/* An argument with a colon before any slash is in a box; "./a:b" is not. */
void box_path_parse(struct box_path *p, const char *word);

/* BOX@CHECKPOINT: a file of a checkpoint of the box, which is named by its id or its name. */
static inline int box_path_of_checkpoint(const struct box_path *p)
{
	return strchr(p->box, '@') != NULL;
}
/* The route of the content of the file; NULL: r->status. */
char *box_path_content(struct api_client *r, const struct box_path *p);

/* The file that the arguments of a command name: BOX:PATH, or BOX PATH. Returns 0 or r->status. */
must_check int box_path_words(struct api_client *r, const struct args *a, struct box_path *out);

enum box_path_type { BOX_PATH_NOTHING, BOX_PATH_FILE, BOX_PATH_FOLDER, BOX_PATH_OTHER };
/* The type of the file at this path of the box, with links followed; -1: r->status. mode may be
 * NULL. */
int box_path_look(struct api_client *r, const char *box, const char *path, unsigned *mode);
/* tar of the content of the folder, to be read from *out_fd; -1: errno. */
pid_t box_path_start_tar(const char *folder, int *out_fd);
const char *box_path_last(const char *path,
			  char out[256]); /* its last part; "" of "/", "." and ".." */
