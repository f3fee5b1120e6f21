/* host_wasi.h - numbers of WASI preview 1, and what the files with imports share. */
#pragma once
#include "wasm/host.h"

/* The name that wasm2c gives an import. The first parameter is not used: a process has one module. */
#define WASI(name) Z_wasi_snapshot_preview1Z_##name

enum wasi_error {
	WASI_OK = 0,
	WASI_BADF = 8,
	WASI_FAULT = 21,
	WASI_INVAL = 28,
	WASI_IO = 29,
	WASI_NAMETOOLONG = 37,
	WASI_NFILE = 41,
	WASI_NOSYS = 52,
	WASI_NOTDIR = 54,
	WASI_NOTSUP = 58,
	WASI_ROFS = 69,
	WASI_NOTCAPABLE = 76,
};

uint32_t wasi_error(int error); /* of an errno */
uint64_t wasi_now(uint32_t clock);

/* ---- host_files.c, for poll_oneoff ---- */
int host_files_native(uint32_t fd); /* -1: not open, or without a descriptor */

/* ---- imports: host_wasi.c, host_files.c, host_paths.c ---- */
uint32_t WASI(args_sizes_get)(void *, uint32_t, uint32_t);
uint32_t WASI(args_get)(void *, uint32_t, uint32_t);
uint32_t WASI(environ_sizes_get)(void *, uint32_t, uint32_t);
uint32_t WASI(environ_get)(void *, uint32_t, uint32_t);
uint32_t WASI(clock_res_get)(void *, uint32_t, uint32_t);
uint32_t WASI(clock_time_get)(void *, uint32_t, uint64_t, uint32_t);
uint32_t WASI(random_get)(void *, uint32_t, uint32_t);
uint32_t WASI(poll_oneoff)(void *, uint32_t, uint32_t, uint32_t, uint32_t);
void WASI(proc_exit)(void *, uint32_t);
uint32_t WASI(sched_yield)(void *);
uint32_t WASI(sock_accept)(void *, uint32_t, uint32_t, uint32_t);
uint32_t WASI(sock_recv)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
uint32_t WASI(sock_send)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
uint32_t WASI(sock_shutdown)(void *, uint32_t, uint32_t);
uint32_t WASI(fd_filestat_get)(void *, uint32_t, uint32_t);
uint32_t WASI(path_filestat_get)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
uint32_t WASI(fd_fdstat_get)(void *, uint32_t, uint32_t);
uint32_t WASI(fd_fdstat_set_flags)(void *, uint32_t, uint32_t);
uint32_t WASI(fd_prestat_get)(void *, uint32_t, uint32_t);
uint32_t WASI(fd_prestat_dir_name)(void *, uint32_t, uint32_t, uint32_t);
uint32_t WASI(path_open)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t,
			 uint64_t, uint32_t, uint32_t);
uint32_t WASI(fd_close)(void *, uint32_t);
uint32_t WASI(fd_renumber)(void *, uint32_t, uint32_t);
uint32_t WASI(fd_read)(void *, uint32_t, uint32_t, uint32_t, uint32_t);
uint32_t WASI(fd_write)(void *, uint32_t, uint32_t, uint32_t, uint32_t);
uint32_t WASI(fd_pread)(void *, uint32_t, uint32_t, uint32_t, uint64_t, uint32_t);
uint32_t WASI(fd_pwrite)(void *, uint32_t, uint32_t, uint32_t, uint64_t, uint32_t);
uint32_t WASI(fd_seek)(void *, uint32_t, uint64_t, uint32_t, uint32_t);
uint32_t WASI(fd_tell)(void *, uint32_t, uint32_t);
uint32_t WASI(fd_sync)(void *, uint32_t);
uint32_t WASI(fd_datasync)(void *, uint32_t);
uint32_t WASI(fd_advise)(void *, uint32_t, uint64_t, uint64_t, uint32_t);
uint32_t WASI(fd_allocate)(void *, uint32_t, uint64_t, uint64_t);
uint32_t WASI(fd_filestat_set_size)(void *, uint32_t, uint64_t);
uint32_t WASI(fd_filestat_set_times)(void *, uint32_t, uint64_t, uint64_t, uint32_t);
uint32_t WASI(fd_readdir)(void *, uint32_t, uint32_t, uint32_t, uint64_t, uint32_t);
uint32_t WASI(path_create_directory)(void *, uint32_t, uint32_t, uint32_t);
uint32_t WASI(path_remove_directory)(void *, uint32_t, uint32_t, uint32_t);
uint32_t WASI(path_unlink_file)(void *, uint32_t, uint32_t, uint32_t);
uint32_t WASI(path_rename)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
uint32_t WASI(path_link)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
			 uint32_t);
uint32_t WASI(path_symlink)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
uint32_t WASI(path_readlink)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
uint32_t WASI(path_filestat_set_times)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t,
				       uint64_t, uint32_t);
