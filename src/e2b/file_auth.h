/* file_auth.h - who may have a file of /files: by the box's token, or by a signature made with it.
 * Owns: nothing; paths are the call's. */
#pragma once
#include "api/api.h"

/* Whose file it is to be. 0: nobody knows them, or they may not; that is answered. */
int file_auth_user(struct call *c, int *out_root);
/* NULL: refused, and answered. */
const char *file_auth_path(struct call *c, const char *given, int root);
