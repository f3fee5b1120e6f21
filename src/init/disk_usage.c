/* disk_usage.c - see disk_usage.h. */
#include "init/disk_usage.h"
#include "init/params.h"
#include "initlib/sys.h"

void disk_measure(struct disk *out)
{
	struct statfs fs;

	*out = (struct disk){ 0 };
	if (sys_statfs(self.home, &fs) < 0 && sys_statfs("/", &fs) < 0)
		return;
	out->free = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	out->size = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
	out->files_free = (uint64_t)fs.f_ffree;
	out->files_size = (uint64_t)fs.f_files;
}
