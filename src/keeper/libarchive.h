/* libarchive.h - the functions of libarchive that are used, loaded when they are needed.
 * Only the process that unpacks an image layer has the library in its memory: the keeper and its
 * other processes never load it. */
#pragma once
#include "base/err.h"
#include <archive.h>
#include <archive_entry.h>

#define LIBARCHIVE_CALLS(X)                                                                        \
	X(read_new)                                                                                \
	X(read_free)                                                                               \
	X(read_support_filter_gzip)                                                                \
	X(read_support_filter_zstd)                                                                \
	X(read_support_format_raw)                                                                 \
	X(read_support_format_tar)                                                                 \
	X(read_open)                                                                               \
	X(read_next_header)                                                                        \
	X(read_header_position)                                                                    \
	X(read_data_block)                                                                         \
	X(filter_count)                                                                            \
	X(filter_bytes)                                                                            \
	X(error_string)                                                                            \
	X(set_error)                                                                               \
	X(entry_pathname)                                                                          \
	X(entry_hardlink)                                                                          \
	X(entry_symlink)                                                                           \
	X(entry_filetype)                                                                          \
	X(entry_perm)                                                                              \
	X(entry_uid)                                                                               \
	X(entry_gid)                                                                               \
	X(entry_size)                                                                              \
	X(entry_mtime)                                                                             \
	X(entry_mtime_nsec)                                                                        \
	X(entry_xattr_reset)                                                                       \
	X(entry_xattr_next)

struct libarchive {
#define X(call) __typeof__(archive_##call) *call;
	LIBARCHIVE_CALLS(X)
#undef X
};
extern struct libarchive libarchive;

/* Called while the files of the host are visible. */
must_check int libarchive_load(struct err *e);
