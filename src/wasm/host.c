/* host.c - see host.h: memory, traps. */
#include "wasm/host.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

struct host host = { .pages_max = 65535, .seed = 1, .clock_ns = 1000000000000000000ull };

static void host_print(const char *a, const char *b)
{
	struct iovec v[] = { { (void *)"atoll-wasm: ", 12 },
			     { (void *)a, strlen(a) },
			     { (void *)": ", b ? 2 : 0 },
			     { (void *)(b ? b : ""), b ? strlen(b) : 0 },
			     { (void *)"\n", 1 } };

	(void)!writev(2, v, 5);
}

void host_fail(const char *what, const char *detail)
{
	host_print(what, detail);
	_exit(HOST_STATUS_OURS);
}

/* ---- traps ---- */

void wasm_rt_trap(wasm_rt_trap_t t)
{
	static const char *const names[] = {
		[WASM_RT_TRAP_OOB] = "access beyond the memory",
		[WASM_RT_TRAP_INT_OVERFLOW] = "integer overflow",
		[WASM_RT_TRAP_DIV_BY_ZERO] = "division by zero",
		[WASM_RT_TRAP_INVALID_CONVERSION] = "invalid conversion to an integer",
		[WASM_RT_TRAP_UNREACHABLE] = "unreachable code was reached (the program aborted)",
		[WASM_RT_TRAP_CALL_INDIRECT] = "indirect call of a wrong function",
		[WASM_RT_TRAP_EXHAUSTION] = "the call stack is exhausted",
	};

	host_print("trap", names[t]);
	_exit(HOST_STATUS_TRAP);
}

/* On a stack of its own: the module's may be exhausted. */
static void host_on_fault(int sig, siginfo_t *info, void *context)
{
	const uint8_t *at = info->si_addr;

	(void)sig;
	(void)context;
	if (at >= HOST_STACK - HOST_GUARD && at < HOST_STACK + HOST_STACK_SPAN)
		wasm_rt_trap(WASM_RT_TRAP_EXHAUSTION);
	if (at >= WASM_RT_MEMORY && at < WASM_RT_MEMORY + HOST_MEMORY_SPAN + HOST_PAGE)
		wasm_rt_trap(WASM_RT_TRAP_OOB);
	host_print("fault of the host", sig == SIGFPE ? "arithmetic" : "memory");
	_exit(HOST_STATUS_OURS);
}

void host_catch_faults(void)
{
	static uint8_t stack[32768];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction a = { .sa_flags = SA_SIGINFO | SA_ONSTACK };

	a.sa_sigaction = host_on_fault;
	if (sigaltstack(&alternate, NULL) < 0 || sigaction(SIGSEGV, &a, NULL) < 0 ||
	    sigaction(SIGBUS, &a, NULL) < 0 || sigaction(SIGFPE, &a, NULL) < 0)
		host_fail("cannot catch faults", strerror(errno));
	signal(SIGPIPE, SIG_IGN);
}

/* ---- memory ---- */

static void host_reserve(uint8_t *at, uint64_t bytes, int prot)
{
	if (mmap(at, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
		 -1, 0) != at)
		host_fail("cannot reserve addresses", strerror(errno));
}

void host_map_memory(void)
{
	host_reserve(WASM_RT_MEMORY, HOST_MEMORY_SPAN + HOST_PAGE, PROT_NONE);
	host_reserve(HOST_STACK - HOST_GUARD, HOST_GUARD, PROT_NONE);
	host_reserve(HOST_STACK, HOST_STACK_SPAN, PROT_READ | PROT_WRITE);
	host_reserve(HOST_TABLE, HOST_TABLE_SPAN, PROT_READ | PROT_WRITE);
}

bool host_allow_memory(uint32_t pages)
{
	return mprotect(WASM_RT_MEMORY, (uint64_t)pages * HOST_PAGE, PROT_READ | PROT_WRITE) == 0;
}

void *host_bytes(uint32_t at, uint64_t n)
{
	return (uint64_t)at + n <= host_memory_bytes() ? WASM_RT_MEMORY + at : NULL;
}

bool wasm_rt_is_initialized(void)
{
	return true;
}

void wasm_rt_allocate_memory(wasm_rt_memory_t *m, uint32_t initial, uint32_t max)
{
	if (initial > host.pages_max)
		host_fail("the memory limit is less than the module needs", NULL);
	*m = (wasm_rt_memory_t){ .data = WASM_RT_MEMORY,
				 .pages = initial,
				 .max_pages = max < 65535 ? max : 65535,
				 .size = initial * HOST_PAGE };
	if (host.pages_of_image < initial &&
	    mprotect(WASM_RT_MEMORY + (uint64_t)host.pages_of_image * HOST_PAGE,
		     (uint64_t)(initial - host.pages_of_image) * HOST_PAGE,
		     PROT_READ | PROT_WRITE) < 0)
		host_fail("cannot allocate memory", strerror(errno));
}

/* The limit is exact: the allocator of the module gets an error, and Python raises MemoryError. */
uint32_t wasm_rt_grow_memory(wasm_rt_memory_t *m, uint32_t delta)
{
	uint64_t pages = (uint64_t)m->pages + delta;
	uint32_t before = m->pages;

	if (pages > m->max_pages || pages > host.pages_max)
		return UINT32_MAX;
	if (delta && mprotect(WASM_RT_MEMORY + m->size, (uint64_t)delta * HOST_PAGE,
			      PROT_READ | PROT_WRITE) < 0)
		return UINT32_MAX;
	m->pages = (uint32_t)pages;
	m->size = (uint32_t)pages * HOST_PAGE;
	return before;
}

void wasm_rt_free_memory(wasm_rt_memory_t *m)
{
	(void)m;
}

void wasm_rt_allocate_funcref_table(wasm_rt_funcref_table_t *t, uint32_t n, uint32_t max)
{
	if (n * sizeof *t->data > HOST_TABLE_SPAN || t->data)
		host_fail("a table of functions that is too large, or a second one", NULL);
	*t = (wasm_rt_funcref_table_t){ (wasm_rt_funcref_t *)HOST_TABLE, max, n };
}

void wasm_rt_free_funcref_table(wasm_rt_funcref_table_t *t)
{
	(void)t;
}

/* Equal signatures have equal numbers. */
uint32_t wasm_rt_register_func_type(uint32_t params, uint32_t results, ...)
{
	static uint8_t types[4096][40];
	static uint32_t ntypes;
	uint8_t key[40] = { (uint8_t)params, (uint8_t)results };
	va_list ap;

	va_start(ap, results);
	for (uint32_t i = 0; i < params + results; i++)
		if (i + 2 < sizeof key)
			key[i + 2] = (uint8_t)(va_arg(ap, int) + 1);
	va_end(ap);
	if (params + results + 2 > sizeof key)
		host_fail("a function type with too many parameters", NULL);
	for (uint32_t i = 0; i < ntypes; i++)
		if (!memcmp(types[i], key, sizeof key))
			return i + 1;
	if (ntypes == 4096)
		host_fail("too many function types", NULL);
	memcpy(types[ntypes], key, sizeof key);
	return ++ntypes;
}
