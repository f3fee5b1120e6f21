/* wasm_rt.h - what the C text that wasm2c writes expects of its runtime. `atoll tier prepare wasm`
 * compiles a module with this file as "wasm-rt.h"; host.c defines the functions.
 *
 * A process has one module with one linear memory, at a constant address. Addresses of a module have
 * 32 bits and constant offsets of 32 bits: whatever is beyond the memory's size, within 8 GiB, is
 * reserved and not accessible, so that a wrong address is a fault (trap) and no access is checked. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define wasm_rt_memcpy __builtin_memcpy

#define WASM_RT_MEMORY ((uint8_t *)0x4000000000ull)
#define WASM_RT_MEMCHECK_SIGNAL_HANDLER 1
#define WASM_RT_USE_STACK_DEPTH_COUNT 0

typedef enum {
	WASM_RT_TRAP_OOB,
	WASM_RT_TRAP_INT_OVERFLOW,
	WASM_RT_TRAP_DIV_BY_ZERO,
	WASM_RT_TRAP_INVALID_CONVERSION,
	WASM_RT_TRAP_UNREACHABLE,
	WASM_RT_TRAP_CALL_INDIRECT,
	WASM_RT_TRAP_EXHAUSTION,
} wasm_rt_trap_t;

typedef enum {
	WASM_RT_I32,
	WASM_RT_I64,
	WASM_RT_F32,
	WASM_RT_F64,
	WASM_RT_FUNCREF,
	WASM_RT_EXTERNREF,
} wasm_rt_type_t;

typedef void (*wasm_rt_function_ptr_t)(void);

typedef struct {
	uint32_t func_type;
	wasm_rt_function_ptr_t func;
	void *module_instance;
} wasm_rt_funcref_t;

typedef void *wasm_rt_externref_t;

static const wasm_rt_funcref_t wasm_rt_funcref_null_value = { 0, NULL, NULL };
static const wasm_rt_externref_t wasm_rt_externref_null_value = NULL;

typedef struct {
	uint8_t *data;
	uint32_t pages, max_pages;
	uint32_t size;
} wasm_rt_memory_t;

typedef struct {
	wasm_rt_funcref_t *data;
	uint32_t max_size;
	uint32_t size;
} wasm_rt_funcref_table_t;

typedef struct {
	wasm_rt_externref_t *data;
	uint32_t max_size;
	uint32_t size;
} wasm_rt_externref_table_t;

bool wasm_rt_is_initialized(void);
__attribute__((noreturn)) void wasm_rt_trap(wasm_rt_trap_t);
uint32_t wasm_rt_register_func_type(uint32_t params, uint32_t results, ...);
void wasm_rt_allocate_memory(wasm_rt_memory_t *, uint32_t initial_pages, uint32_t max_pages);
uint32_t wasm_rt_grow_memory(wasm_rt_memory_t *, uint32_t pages);
void wasm_rt_free_memory(wasm_rt_memory_t *);
void wasm_rt_allocate_funcref_table(wasm_rt_funcref_table_t *, uint32_t elements,
				    uint32_t max_elements);
void wasm_rt_free_funcref_table(wasm_rt_funcref_table_t *);
