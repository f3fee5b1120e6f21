/* host.h - the process that executes one module: WASI preview 1 for the code that wasm2c has translated.
 * Compiled together with a module by `atoll tier prepare wasm`; uses libc and nothing else of Atoll.
 * Owns: the linear memory, the stack and the table of the module, its files.
 *
 *   host_main.c    start
 *   host.c         memory, traps
 *   host_image.c   the saved state of an initialised module
 *   host_wasi.c    imports: arguments, clock, random values, end
 *   host_files.c   imports: files
 *   host_unstable.c  imports of WASI's first version
 *   host_filter.c  system calls that are left
 *
 * Addresses are constants, because the saved state contains them: the executable is not
 * position-independent, and memory, stack and table are mapped at these places. */
#pragma once
#include "wasm/wasm_rt.h"
#include <stddef.h>

#define HOST_MEMORY_SPAN (8ull << 30) /* what 32 bits of address and 32 of offset can reach */
#define HOST_TABLE ((uint8_t *)0x3800000000ull)
#define HOST_TABLE_SPAN (64ull << 20)
#define HOST_STACK ((uint8_t *)0x3000000000ull)
#define HOST_STACK_SPAN (64ull << 20)
#define HOST_GUARD (16ull << 20) /* around each of them */
#define HOST_PAGE 65536u

#ifndef HOST_FOLDER /* of the executable: build.c */
#define HOST_FOLDER "."
#endif

enum {
	HOST_STATUS_TRAP = 134, /* as a program that was aborted */
	HOST_STATUS_OURS = 125,
};

/* Names of the module's folder that are no files: opening the first is the moment at which the state of an
 * interpreter is saved; it contains what the program gets (host_start_text). */
#define HOST_START_FILE ".atoll-start"

/* ---- of the module: main.c, written by split.c ---- */
extern void *const wasm_instance;
extern const size_t wasm_instance_bytes;
wasm_rt_memory_t *wasm_instance_memory(void);
void wasm_module_init(void);   /* types; before anything else */
void wasm_instance_init(void); /* globals, memory, tables */
void wasm_instance_start(void);

/* ---- host.c ---- */
struct host {
	int argc;
	char **argv; /* of the module */
	char **envp;
	const char *save;   /* write the state to this file and exit; NULL: run */
	uint32_t pages_max; /* of the linear memory */
	uint32_t pages_of_image;
	bool deterministic;
	uint64_t clock_ns; /* deterministic: the next value */
	uint64_t seed;
};
extern struct host host;

void host_map_memory(void); /* nothing is accessible yet */
void host_catch_faults(void);
bool host_allow_memory(uint32_t pages);
__attribute__((noreturn)) void host_fail(const char *what, const char *detail);
/* Bytes of the linear memory, or NULL: not all of them are in it. */
void *host_bytes(uint32_t at, uint64_t n);
static inline uint32_t host_memory_bytes(void)
{
	return wasm_instance_memory()->size;
}
#define HOST_STORE(type, at, value)                                                                \
	({                                                                                         \
		type *host_to_ = host_bytes(at, sizeof(type));                                     \
		type host_value_ = (type)(value);                                                  \
		if (host_to_)                                                                      \
			memcpy(host_to_, &host_value_, sizeof(type));                              \
		host_to_ != NULL;                                                                  \
	})

/* ---- host_image.c ---- */
void host_image_open(const char *path); /* maps the image; ends the process if it is not ours */
bool host_image_is_initialised(void);   /* 0: only the data of the module */
__attribute__((noreturn)) void host_image_resume(void);
__attribute__((noreturn)) void host_image_start(void); /* _start(), on the module's stack */
void host_image_point(
	void); /* saves the state if host.save, and returns in every process that resumes it */

/* ---- host_files.c ---- */
void host_files_init(const char *folder, const char *home);
void host_files_start_text(const void *bytes, size_t n);

/* ---- host_filter.c ---- */
void host_filter_load(void);
extern const unsigned host_filter_calls;
