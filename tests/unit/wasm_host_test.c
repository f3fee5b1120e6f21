/* wasm_host_test.c - the WASI host with a memory of one page and without a module: wrong pointers, files, limits, the filter. */
#include "wasm/host_wasi.h"
#include "prove/thread_filters.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the module ---- */

static wasm_rt_memory_t memory;
static uint8_t instance[8];
void *const wasm_instance = instance;
const size_t wasm_instance_bytes = sizeof(instance);
wasm_rt_memory_t *wasm_instance_memory(void)
{
	return &memory;
}
void host_image_point(void)
{
}

enum { ROOT = 3, HOME = 4, READ = 1 << 1, WRITE = 1 << 6 };
static char home[64], top[64];

static void begin(void)
{
	static char *argv[] = { (char *)"module", (char *)"x", NULL };
	char root[80];

	if (home[0])
		return;
	strcpy(top, "/tmp/wasm-host-XXXXXX");
	CHECK(mkdtemp(top) != NULL);
	snprintf(home, sizeof(home), "%s/home", top);
	snprintf(root, sizeof(root), "%s/root", top);
	CHECK(mkdir(home, 0755) == 0 && mkdir(root, 0755) == 0 && chdir(home) == 0);
	host.argv = host.envp = argv;
	host.pages_max = 16;
	host_map_memory();
	wasm_rt_allocate_memory(&memory, 1, 65536);
	host_files_init(top, home);
	host_files_start_text("start", 5);
}

static uint32_t at_text(uint32_t at, const char *text)
{
	strcpy((char *)WASM_RT_MEMORY + at, text);
	return (uint32_t)strlen(text);
}

static uint32_t open_file(uint32_t folder, const char *path, uint32_t oflags, uint64_t rights,
			  uint32_t *fd)
{
	uint32_t n = at_text(1024, path),
		 rc = WASI(path_open)(NULL, folder, 1, 1024, n, oflags, rights, 0, 0, 8);

	memcpy(fd, WASM_RT_MEMORY + 8, 4);
	return rc;
}

/* ---- memory ---- */

TEST(a_pointer_beyond_the_memory_is_an_error)
{
	static const uint32_t bad[] = { 65536, 65535, 65533, 0xfffffff0u, 0xffffffffu };

	begin();
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		uint32_t p = bad[i], iov[2] = { p, 16 };

		CHECK_INT(WASI(args_sizes_get)(NULL, p, 0), WASI_FAULT);
		CHECK_INT(WASI(args_get)(NULL, 0, p), WASI_FAULT);
		CHECK_INT(WASI(clock_time_get)(NULL, 0, 0, p), WASI_FAULT);
		CHECK_INT(WASI(random_get)(NULL, p, 16), WASI_FAULT);
		CHECK_INT(WASI(random_get)(NULL, 16, p), WASI_FAULT);
		CHECK_INT(WASI(poll_oneoff)(NULL, p, 0, 1, 0), WASI_FAULT);
		CHECK_INT(WASI(poll_oneoff)(NULL, 0, 0, p, 0), WASI_FAULT);
		CHECK_INT(WASI(fd_prestat_dir_name)(NULL, ROOT, p, 16), WASI_FAULT);
		CHECK_INT(WASI(fd_filestat_get)(NULL, 0, p), WASI_FAULT);
		CHECK_INT(WASI(fd_readdir)(NULL, HOME, p, 16, 0, 0), WASI_FAULT);
		CHECK_INT(WASI(path_open)(NULL, HOME, 0, p, 16, 0, READ, 0, 0, 0), WASI_FAULT);
		CHECK_INT(WASI(path_unlink_file)(NULL, HOME, p, 16), WASI_FAULT);
		CHECK_INT(WASI(path_symlink)(NULL, p, 16, HOME, 0, 1), WASI_FAULT);
		CHECK_INT(WASI(path_readlink)(NULL, HOME, 0, 1, p, 16, 0), WASI_FAULT);
		CHECK_INT(WASI(fd_write)(NULL, 1, p, 1, 0), WASI_FAULT);
		CHECK_INT(WASI(fd_write)(NULL, 1, 0, p, 0), WASI_FAULT); /* as many vectors */
		memcpy(WASM_RT_MEMORY + 512, iov, sizeof(iov));
		CHECK_INT(WASI(fd_write)(NULL, 1, 512, 1, 0), WASI_FAULT);
		CHECK_INT(WASI(fd_read)(NULL, 0, 512, 1, 0), WASI_FAULT);
	}
}

TEST(memory_grows_to_the_limit_and_not_further)
{
	begin();
	CHECK_INT(wasm_rt_grow_memory(&memory, 65535), UINT32_MAX);
	CHECK_INT(wasm_rt_grow_memory(&memory, UINT32_MAX), UINT32_MAX);
	CHECK_INT(wasm_rt_grow_memory(&memory, 16), UINT32_MAX); /* one too many */
	CHECK_INT(wasm_rt_grow_memory(&memory, 15), 1);
	CHECK_INT(memory.size, 16 * 65536);
	WASM_RT_MEMORY[16 * 65536 - 1] = 1;
	CHECK_INT(wasm_rt_grow_memory(&memory, 1), UINT32_MAX);
	CHECK_INT(wasm_rt_grow_memory(&memory, 0), 16);
}

/* Ends as the process of a module does. */
static int status_of(void (*f)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 2);
		host_catch_faults();
		f();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void read_beyond(void)
{
	volatile uint8_t v = WASM_RT_MEMORY[0xffffffffull + 0xffffffffull];

	(void)v;
}

static void overflow_stack(void)
{
	*(volatile uint8_t *)(HOST_STACK - 4096) = 1;
}

TEST(an_access_beyond_the_memory_is_a_trap)
{
	begin();
	CHECK_INT(WEXITSTATUS(status_of(read_beyond)), HOST_STATUS_TRAP);
	CHECK_INT(WEXITSTATUS(status_of(overflow_stack)), HOST_STATUS_TRAP);
}

/* ---- files ---- */

TEST(files_are_below_the_home)
{
	static const char *const bad[] = { "/etc/passwd", "../root",       "..",  "out",
					   "out/passwd",  "in/../../root", "loop" };
	uint32_t fd, n;

	begin();
	CHECK(symlink("/etc", "out") == 0 && symlink("loop", "loop") == 0 &&
	      mkdir("in", 0755) == 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK(open_file(HOME, bad[i], 0, READ, &fd) != WASI_OK);
		n = at_text(1024, bad[i]);
		CHECK(WASI(path_filestat_get)(NULL, HOME, 1, 1024, n, 2048) != WASI_OK);
	}
	n = at_text(1024, "out/new");
	CHECK(WASI(path_create_directory)(NULL, HOME, 1024, n) != WASI_OK);
	n = at_text(1024, "../new");
	CHECK(WASI(path_create_directory)(NULL, HOME, 1024, n) != WASI_OK);
	n = at_text(1024, "in");
	CHECK_INT(WASI(path_rename)(NULL, HOME, 1024, n, HOME, 1100, at_text(1100, "../moved")),
		  WASI_NOTCAPABLE);
	n = at_text(1024, "/etc/passwd");
	CHECK_INT(WASI(path_symlink)(NULL, 1024, n, HOME, 1100, at_text(1100, "link")),
		  WASI_NOTCAPABLE);
	CHECK_INT(open_file(HOME, "in/file", 1, WRITE, &fd), WASI_OK);
	CHECK(access("in/file", F_OK) == 0);
	CHECK_INT(WASI(fd_close)(NULL, fd), WASI_OK);
	CHECK_INT(WASI(fd_close)(NULL, fd), WASI_BADF);
	CHECK_INT(WASI(path_unlink_file)(NULL, HOME, 1024, at_text(1024, "in/file")), WASI_OK);
}

TEST(files_of_the_module_cannot_be_changed)
{
	uint32_t fd;

	begin();
	CHECK_INT(open_file(ROOT, "new", 1, WRITE, &fd), WASI_ROFS);
	CHECK_INT(WASI(path_create_directory)(NULL, ROOT, 1024, at_text(1024, "new")), WASI_ROFS);
	CHECK_INT(open_file(ROOT, HOST_START_FILE, 0, READ, &fd), WASI_OK);
	memcpy(WASM_RT_MEMORY + 512, (uint32_t[]){ 4096, 3, 4200, 64 }, 16);
	CHECK_INT(WASI(fd_read)(NULL, fd, 512, 2, 600), WASI_OK);
	CHECK_INT(memcmp(WASM_RT_MEMORY + 4096, "sta", 3), 0);
	CHECK_INT(memcmp(WASM_RT_MEMORY + 4200, "rt", 2), 0);
	CHECK_INT(WASM_RT_MEMORY[600], 5);
	CHECK_INT(WASI(fd_close)(NULL, fd), WASI_OK);
}

TEST(descriptors_have_a_limit)
{
	uint32_t fd = 0, n = 0, rc;

	begin();
	while ((rc = open_file(HOME, "many", 1, WRITE, &fd)) == WASI_OK)
		n++;
	CHECK_INT(rc, WASI_NFILE);
	CHECK(n > 100 && n < 1024);
	for (uint32_t i = 6; i < 1024; i++)
		WASI(fd_close)(NULL, i);
	CHECK_INT(WASI(fd_close)(NULL, 0xffffffffu), WASI_BADF);
}

TEST(a_large_folder_is_read_in_pieces_and_each_name_once)
{
	enum { MOST = 1000000, ROOM = 4096 };
	static uint8_t seen[MOST];
	const char *set = getenv("LARGE_FOLDER"); /* 1000000: by hand, it takes a minute */
	int many = set && atoi(set) > 0 && atoi(set) <= MOST ? atoi(set) : 5000;
	uint64_t cookie = 0;
	uint32_t used, fd, names = 0;
	char name[32];

	begin();
	CHECK(mkdir("large", 0755) == 0);
	for (int i = 0; i < many; i++) {
		snprintf(name, sizeof(name), "large/%d", i);
		close(open(name, O_CREAT | O_WRONLY, 0644));
	}
	CHECK_INT(open_file(HOME, "large", 2, READ, &fd), WASI_OK);
	do {
		const uint8_t *p = WASM_RT_MEMORY + 8192;

		if (WASI(fd_readdir)(NULL, fd, 8192, ROOM, cookie, 600) != WASI_OK)
			break;
		memcpy(&used, WASM_RT_MEMORY + 600, 4);
		CHECK(used <= ROOM);
		for (uint32_t at = 0; at + 24 <= used;) {
			uint32_t n;

			memcpy(&n, p + at + 16, 4);
			if (at + 24 + n > used)
				break;
			memcpy(&cookie, p + at, 8);
			snprintf(name, sizeof(name), "%.*s", (int)n, (const char *)p + at + 24);
			if (name[0] != '.' && !seen[atoi(name)]++)
				names++;
			at += 24 + n;
		}
	} while (used == ROOM);
	CHECK_INT(names, many);
	WASI(fd_close)(NULL, fd);
}

/* ---- clock and random values ---- */

TEST(clock_and_random_values_can_be_supplied)
{
	uint64_t a[3], b[3];

	begin();
	for (int i = 0; i < 2; i++) {
		host.deterministic = true;
		host.seed = 1;
		host.clock_ns = 1000;
		CHECK_INT(WASI(random_get)(NULL, 4096, 8), WASI_OK);
		CHECK_INT(WASI(clock_time_get)(NULL, 0, 0, 4104), WASI_OK);
		CHECK_INT(WASI(clock_time_get)(NULL, 0, 0, 4112), WASI_OK);
		memcpy(i ? b : a, WASM_RT_MEMORY + 4096, sizeof(a));
	}
	CHECK_INT(memcmp(a, b, sizeof(a)), 0);
	CHECK_INT(a[2] > a[1], 1);
	host.deterministic = false;
	CHECK_INT(WASI(random_get)(NULL, 4096, 8), WASI_OK);
	CHECK(memcmp(a, WASM_RT_MEMORY + 4096, 8) != 0);
	CHECK_INT(WASI(clock_time_get)(NULL, 99, 0, 4096), WASI_INVAL);
}

/* ---- the filter ---- */

static void try_calls(void)
{
	char *argv[] = { NULL };

	host_filter_load();
	if (execve("/bin/true", argv, argv) == 0 || errno != ENOSYS)
		_exit(1);
	if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != ENOSYS)
		_exit(2);
	if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0 || errno != ENOSYS)
		_exit(3);
	if (openat(AT_FDCWD, "/etc/passwd", O_RDONLY) >= 0 || errno != ENOSYS)
		_exit(4);
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	    MAP_FAILED)
		_exit(5);
	if (wasm_rt_grow_memory(&memory, 0) != memory.pages || !host_allow_memory(1))
		_exit(6);
}

static void make_executable(void)
{
	host_filter_load();
	mprotect(HOST_TABLE, 4096, PROT_READ | PROT_EXEC);
}

TEST(the_filter_leaves_few_calls)
{
	int status;

	begin();
	CHECK(host_filter_calls <= 28);
	status = status_of(try_calls);
	CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), 0);
	status = status_of(make_executable);
	CHECK_INT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, 1);
}

TEST(nothing_is_left)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", top);
	CHECK_INT(system(command), 0);
}

/* As `atoll prove` counts them: by the filter that the kernel has loaded. */
TEST(at_most_28_system_calls_reach_the_kernel_seen_from_outside)
{
	struct filter_numbers native, other;
	struct thread_filters cache = { 0 };
	struct iovec byte = { (void *)"x", 1 };
	int pair[2], rc;
	pid_t pid;
	char c;

	if (geteuid() != 0)
		SKIP("not root");
	CHECK(pipe(pair) == 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		host_filter_load();
		rc = (int)writev(pair[1], &byte, 1);
		for (;;)
			syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
	}
	rc = read(pair[0], &c, 1) == 1 ? thread_filters_read(&cache, pid, &native, &other) : -1;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pair[0]);
	close(pair[1]);
	thread_filters_fini(&cache);
	if (rc < 0)
		SKIP("this host does not permit to read filters");
	CHECK_INT(filter_numbers_count(&native), host_filter_calls);
	CHECK(filter_numbers_distinct(&native) <= 28);
	CHECK_INT(filter_numbers_count(&other), 0);
}
