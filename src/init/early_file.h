/* early_file.h - writes a file before the first program of the box runs. */
#pragma once
#include "wire/wire.h"

/* Below the user's home or /tmp; missing folders are made. path may be changed meanwhile.
 * -errno. */
int lay_file(char *path, const struct wire_put *put, const char *bytes, uint32_t n);
