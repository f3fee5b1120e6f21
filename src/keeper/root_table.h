/* root_table.h - roots: which layers make up the root file system of a box.
 * Owns: the files `<state>/roots/<id>`, and the list of them in memory.
 *
 * A file has one line per layer, the topmost first. The first line may be "merged": boxes mount one
 * tree that was made of these layers, `<state>/layers/merged.<id>`. The last line may be "base": the
 * skeleton of base and the host's /usr lie below. The id is the SHA-256 of the file. */
#pragma once
#include "base/err.h"
#include "keeper/layer_tree.h"
#include "wire/wire.h"
#include <stddef.h>
#include <stdint.h>

enum { ROOT_TEXT = (WIRE_ROOT_LAYERS + 2) * (TREE_ID + 1) + 1 };

struct root {
	char id[TREE_ID + 1];
	uint8_t merged, base;
	uint32_t nlayers;
	char layer[WIRE_ROOT_LAYERS][TREE_ID + 1];
};

struct root_entry {
	struct root_entry *next;
	struct root root;
};

struct root_table {
	struct root_entry *first;
};

/* Returns the length; out has a NUL, too. */
size_t root_format(const struct root *r, char out[ROOT_TEXT]);
/* With its id; -1: not the text of a root. */
int root_parse(const char *text, size_t len, struct root *out);
void root_set_id(struct root *r);
struct root *root_copy(const struct root *r); /* on the heap */
/* The folder of a merged root among the layers. */
void root_merged_name(const char *id, char out[WIRE_LAYER_ID]);

/* Opens `<state>/roots`, which is made if it is missing. */
must_check int root_table_open(const char *state_dir, struct err *e);
/* Reads all files. Files that are not roots are logged; unfinished ones are removed. */
must_check int root_table_load(struct root_table *t, int roots, struct err *e);
void root_table_fini(struct root_table *t);
const struct root *root_table_find(const struct root_table *t, const char *id);
/* A root that has this layer; NULL: none. */
const struct root *root_table_user(const struct root_table *t, const char *layer);
void root_table_add(struct root_table *t, const struct root *r);
void root_table_remove(struct root_table *t, const char *id);

/* On the disk when it returns, or not at all. */
must_check int root_write(int roots, const struct root *r, struct err *e);
