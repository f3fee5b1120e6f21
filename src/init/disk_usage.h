/* disk_usage.h - how full the box is. */
#pragma once
#include <stdint.h>

struct disk {
	uint64_t free, size; /* bytes */
	uint64_t files_free, files_size;
};

void disk_measure(struct disk *out); /* all zero if the kernel does not report it */
