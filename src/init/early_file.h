/* early_file.h - a file that lies there before the first program. */
#pragma once
#include "wire/wire.h"

/* Below the user's home or /tmp; folders on the way are made. path may be changed while it works. -errno. */
int lay_file(char *path, const struct wire_put *put, const char *bytes, uint32_t n);
