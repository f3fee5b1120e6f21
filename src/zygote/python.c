/* python.c - a Python interpreter as zygote.
 *
 * This object is preloaded into the distribution's own python3 and replaces its main(). It loads the
 * modules that zygote/python.py names, serves fork requests, and in a child runs the requested program
 * through the C interface (cpython.h), so that the program's traceback has no frame of Atoll. */
#include "zygote/heap_image.h"
#include "zygote/guard.h"
#include "zygote/heap_compact.h"
#include "zygote/fork_server.h"
#include "zygote/cpython.h"
#include "zygote/fast_path.h"

#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { FILE_INPUT = 257 }; /* Py_file_input */
enum { LARGE_PIECE = 8 << 20 };
enum { RUN_FILE, RUN_DRIVER, RUN_CODE }; /* what become() says */

extern const char zygote_python_text[]; /* python.py; python_text.S */

static char *title, *variables; /* the memory that /proc/self/cmdline and /proc/self/environ show */
static size_t title_room, variables_room;
static object *module; /* the dictionary of python.py */

static object *python_function(const char *name)
{
	return py_member(module, name);
}

/* Loaded objects are placed in the memory of the image; objects of a program use the normal
 * allocator. */
static struct arenas usual;
static struct heap_compact_arena newest;

static void *arena_alloc(void *ctx, size_t size)
{
	void *at = heap_image_room(size);

	newest = (struct heap_compact_arena){ at, size };
	return at ? at : usual.alloc(ctx, size);
}

/* The C library maps large blocks separately until one is freed: then it takes such blocks from
 * its heap, which is part of the image. */
static void keep_in_heap(void)
{
	void *volatile large = malloc(LARGE_PIECE); /* prevents that the compiler removes both */

	free(large);
}

static void choose_arenas(void)
{
	struct arenas ours;

	keep_in_heap();
	py.PyObject_GetArenaAllocator(&usual);
	ours = (struct arenas){ usual.ctx, arena_alloc, usual.free };
	py.PyObject_SetArenaAllocator(&ours);
}

static void run_text(void)
{
	module = py.PyModule_GetDict(py.PyImport_AddModule("_atoll_zygote"));
	if (!py.PyRun_StringFlags(zygote_python_text, FILE_INPUT, module, module, NULL)) {
		py.PyErr_Print();
		_exit(72);
	}
}

/* A page that was never written costs a child half as much as a copy. */
static void leave_rest(const struct heap_compact_small *small)
{
	struct heap_compact_rest rest[HOLES_RESTS];

	heap_compact_close(small, &newest);
	heap_compact_leave(small, &newest, rest);
	for (unsigned i = 0; i < HOLES_RESTS; i++)
		heap_image_spare(rest[i].from, rest[i].to);
}

static void python_load(const char *kind)
{
	const struct heap_compact_small small = { py.PyObject_Malloc, py.PyObject_Free };

	run_text();
	if (py_number(py.PyObject_CallFunction(python_function("load"), "s", kind)) != 0)
		_exit(73); /* no module that this zygote needs is installed */
	heap_compact_close(&small, &newest);
	run_text();
	if (py_number(py.PyObject_CallFunction(python_function("settle"), NULL)) != 0)
		_exit(72);
	fast_path_learn(module);
	leave_rest(&small);
	py.PyObject_SetArenaAllocator(&usual);
}

/* Programs like those of children. They print nothing. */
static const char *const trials[BAKE_LIVES] = {
	"def f(a, b):\n"
	"    return [x for x in a if x not in b]\n"
	"assert f([1, 2], (2,)) == [1]\n",

	"import math\n"
	"from typing import List\n"
	"def g(n: int) -> List[int]:\n"
	"    \"\"\" What it does. \"\"\"\n"
	"    out = []\n"
	"    for i in range(2, n):\n"
	"        if n % i == 0 and i < math.sqrt(n):\n"
	"            out.append(i)\n"
	"    return sorted(out)\n"
	"def check(candidate):\n"
	"    assert candidate(12) == [2, 3]\n"
	"    assert candidate(5) == []\n"
	"check(g)\n",

	"class A:\n"
	"    def __init__(self, n):\n"
	"        self.n = n\n"
	"    def add(self, other):\n"
	"        return A(self.n + other.n)\n"
	"print('' if A(1).add(A(2)).n == 3 else 1, end='')\n",

	"from collections import Counter\n"
	"counts = Counter()\n"
	"for word in 'one two one'.split():\n"
	"    counts[word] = counts.get(word, 0) + 1\n"
	"text = ', '.join(f'{k}={v}' for k, v in counts.items())\n"
	"assert len(text) > 3 and max(counts.values()) == 2\n"
	"print(text[:0], end='')\n",
};

static void in_child(void)
{
	heap_image_warm();
	fast_path_reseed();
}

/* The part of Py_FinalizeEx() that affects the program, without the clean-up of the interpreter. */
static int python_leave(int status)
{
	if (fast_path_end())
		return fast_path_leave(status);
	return py_number(py.PyObject_CallFunction(python_function("leave"), "i", status));
}

static object *main_scope(void)
{
	return py.PyModule_GetDict(py.PyImport_AddModule("__main__"));
}

/* A complete run from the fork to the exit. Most programs are files. */
static void live_once(unsigned which)
{
	int fd = memfd_create("trial", MFD_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r+be");
	object *scope;

	in_child();
	if (!f || pwrite(fd, trials[which], strlen(trials[which]), 0) < 0)
		_exit(72);
	free(malloc(256)); /* in place of its start message */
	scope = main_scope();
	if (!py.PyRun_FileExFlags(f, "<trial>", FILE_INPUT, scope, scope, 1, NULL))
		_exit(72);
	python_leave(0);
}

static void lay_out(const char *kind)
{
	struct err e;

	if (heap_image_take(&e) < 0 ||
	    heap_image_learn(live_once, &e) < 0) /* then forks are slower */
		fprintf(stderr, "zygote %s: %s\n", kind, e.msg);
}

/* The command line for ps. One string with spaces: its end cannot be moved. */
static void rename_process(const char *words, uint32_t len, unsigned argc)
{
	size_t at = 0;

	memset(title, 0, title_room);
	for (const char *w = words, *end = words + len; w < end && argc-- && at + 2 < title_room;
	     w += strlen(w) + 1)
		at += (size_t)snprintf(title + at, title_room - at, "%s%s", at ? " " : "", w);
	title[title_room - 1] = '.'; /* not NUL: the kernel then reads it as one string */
	prctl(PR_SET_NAME, "python3");
}

/* As /proc/self/environ shows them, where they fit. The rest stays zero. */
static void show_variables(const char *words, const char *end)
{
	size_t at = 0;

	memset(variables, 0, variables_room);
	for (const char *w = words; w < end; w += strlen(w) + 1) {
		size_t n = strlen(w) + 1;

		if (n < variables_room - at) {
			memcpy(variables + at, w, n);
			at += n;
		}
	}
}

static const char *skip_words(const char *word, const char *end, unsigned n)
{
	while (n-- && word < end)
		word += strlen(word) + 1;
	return word;
}

/* Exits by SIGINT if that ended the program, so that waitpid() reports it. */
static void die_of_interrupt(void)
{
	python_leave(130);
	signal(SIGINT, SIG_DFL);
	kill(getpid(), SIGINT);
	_exit(130);
}

/* PyErr_Print() would exit on a SystemExit. */
static int asked_for(void)
{
	object *type, *value, *trace;

	py.PyErr_Fetch(&type, &value, &trace);
	py.PyErr_NormalizeException(&type, &value, &trace);
	return py_number(py.PyObject_CallFunction(python_function("asked_for"), "O", value));
}

static int end_of(object *done)
{
	int interrupted;

	if (done)
		return 0;
	if (py.PyErr_ExceptionMatches(*py.PyExc_SystemExit))
		return asked_for();
	interrupted = py.PyErr_ExceptionMatches(*py.PyExc_KeyboardInterrupt);
	py.PyErr_Print();
	if (interrupted)
		die_of_interrupt();
	return 1;
}

static int run_file(const char *path)
{
	object *scope = main_scope();
	FILE *f = fopen(path, "rbe");

	if (!f) {
		fprintf(stderr, "python3: can't open file '%s': [Errno %d] %s\n", path, errno,
			strerror(errno));
		return 2;
	}
	return end_of(py.PyRun_FileExFlags(f, path, FILE_INPUT, scope, scope, 1, NULL));
}

static int run_code(const char *code)
{
	object *scope = main_scope();

	return end_of(py.PyRun_StringFlags(code, FILE_INPUT, scope, scope, NULL));
}

static const char *word_after(const char *word)
{
	return word + strlen(word) + 1;
}

/* A pooled child has time to run a dummy program: the pages of this path are mapped then. It leaves
 * nothing that a program could see. */
static void python_warm_up(void)
{
	static const char words[] = "1\0/usr/bin/python3";
	char *copy = malloc(sizeof(words)), *argv;
	FILE *f = fopen("/dev/null", "rbe");

	if (!copy)
		_exit(70);
	memcpy(copy, words, sizeof(words));
	rename_process(copy + 2, sizeof(words) - 2, (unsigned)strtoul(copy, &argv, 10));
	free(copy);
	py_number(py.PyObject_CallFunction(python_function("warm_up"), NULL));
	if (f)
		py.PyRun_FileExFlags(f, "<nothing>", FILE_INPUT, module, module, 1, NULL);
	py.PyRun_StringFlags("print(1, file=sink)\nprint('', end='')", FILE_INPUT, module, module,
			     NULL);
	py_number(py.PyObject_CallFunction(python_function("warmed_up"), NULL));
}

/* cwd NUL argc NUL argv... env..., as init wrote it. */
static int python_live(int sock)
{
	uint32_t len;
	char *words = fork_server_start_msg(sock, &len), *count = words + strlen(words) + 1, *argv;
	unsigned argc = (unsigned)strtoul(count, &argv, 10);
	int what;

	argv++;
	rename_process(argv, len - (uint32_t)(argv - words), argc);
	show_variables(skip_words(argv, words + len, argc), words + len);
	what = fast_path_start(words, len)
		       ? RUN_FILE
		       : py_number(py.PyObject_CallFunction(
				 python_function("become_other"), "N",
				 py.PyBytes_FromStringAndSize(words, (ssize_t)len)));
	if (what == RUN_DRIVER) {
		if (!py.PyObject_CallFunction(python_function("drive"), "i", sock))
			py.PyErr_Print();
		return 1;
	}
	close(sock);
	/* become() has checked that they exist. */
	return what == RUN_CODE ? run_code(word_after(word_after(argv)))
				: run_file(word_after(argv));
}

static void watch_words(int argc, char **argv, char **env)
{
	title = argv[0];
	title_room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
	variables = env[0];
	while (env[1])
		env++;
	variables_room = variables ? (size_t)(env[0] + strlen(env[0]) + 1 - variables) : 0;
}

/* argv: python3 KIND PADDING */
static int zygote_python_main(int argc, char **argv, char **env)
{
	const struct fork_server_hooks hooks = { in_child };
	char kind[32];
	int sock, status, waits;

	if (argc < 3 || !env[0])
		return 72;
	snprintf(kind, sizeof(kind), "%s", argv[1]);
	watch_words(argc, argv, env);
	setlocale(LC_CTYPE, "");
	choose_arenas();
	py.Py_InitializeEx(1);
	python_load(kind);
	show_variables(NULL, NULL); /* those of the zygote: the interpreter has its own copies */
	lay_out(kind);
	sock = fork_server_run(&hooks, &waits);
	guard_renew(); /* this function does not return from here on */
	fork_server_stdio(sock);
	if (waits && !fork_server_told(sock))
		python_warm_up();
	status = python_live(sock);
	status = python_leave(status);
	/* Exit handlers of libraries only clean up, which would copy pages. */
	fflush(NULL);
	_exit(status);
}

/* The C library's start of a program: calls the main() of the zygote instead of python3's. */
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	__typeof__(__libc_start_main) *real;

	(void)main;
	*(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
	unsetenv("LD_PRELOAD"); /* a child process of an imported library is not a zygote */
	py_find();
	return real(zygote_python_main, argc, argv, init, fini, rtld_fini, stack_end);
}
