/* host_files.h - what the two files about files share: host_files.c has the table of open files, host_paths.c the imports
 * with a name. Owns: the descriptors of the table. */
#pragma once
#include "wasm/host.h"
#include <sys/stat.h>

enum files_kind { FILES_CLOSED, FILES_OPEN, FILES_FOLDER, FILES_START };

struct files_entry {
	enum files_kind kind;
	int fd;
	bool read_only; /* nothing below it can be changed */
	bool terminal;
	const char *preopen; /* the name of a folder that is open from the beginning */
	size_t position;     /* FILES_START */
};

/* ---- host_files.c ---- */
uint32_t files_add(struct files_entry e);  /* its number; UINT32_MAX: the table is full */
struct files_entry *files_at(uint32_t fd); /* NULL: not open */
int files_fstat(int fd, struct stat *st);
uint32_t files_store_stat(const struct stat *st, uint32_t at);
uint32_t files_counted(ssize_t n,
		       uint32_t at); /* stores the result of a system call, or returns its error */
/* flags: 1 and 2 for the time of access (given, now), 4 and 8 for that of modification. */
void files_times(uint64_t atime, uint64_t mtime, uint32_t flags, struct timespec out[2]);

/* ---- host_paths.c ---- */
/* Links that lead out of the folder are rejected by the kernel. */
int files_openat2(int folder, const char *path, uint64_t flags, uint64_t mode);
