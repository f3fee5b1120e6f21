/* checkpoint_archive.h - the words `export` and `import` of `atoll checkpoint`. Each returns the status of the command. */
#pragma once
#include "cli/api_client.h"
#include "commands/commands.h"

/* delta: only what has changed since the parent; layer: the layer alone, without an image around it. */
int checkpoint_file_export(struct api_client *r, const char *id, const char *path, int delta,
			   int layer);
/* name: NULL: none. */
int checkpoint_file_import(struct api_client *r, const char *box, const char *path,
			   const char *name, int pin);
