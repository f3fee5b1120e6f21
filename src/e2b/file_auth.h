/* file_auth.h - access to a file of /files: by the box's token, or by a signature made with it.
 * Owns: nothing; paths belong to the call. */
#pragma once
#include "api/api.h"

/* The user that will own the file. 0: no such user, or not permitted, and the error was sent. */
int file_auth_user(struct call *c, int *out_root);
/* NULL: rejected, and the error was sent. */
const char *file_auth_path(struct call *c, const char *given, int root);
