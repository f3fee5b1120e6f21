/* fast_path.c - see fast_path.h. Unusual cases are detected here and left to python.py. */
#include "zygote/fast_path.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOME "/home/user"

static struct {
	object *module, *none, *modules;
	object *main_thread, *reseed_generator,
		*more_random; /* the last one: None, or a function */
	object *threads, *thread_exits, *exit_count, *exits, *open_handlers;
	object *collect, *drop_modules;
	object *native_id, *closed, *flush, *main; /* names */
	ssize_t handlers, before;
} o;
static struct { /* after the working directory */
	char *words;
	uint32_t len;
	const char *path;
} assumed;

static void learn_words(object *bytes)
{
	const char *words = py.PyBytes_AsString(bytes);
	size_t folder = strlen(words) + 1;

	assumed.len = (uint32_t)((size_t)py.PyBytes_Size(bytes) - folder);
	assumed.words = malloc(assumed.len);
	if (!assumed.words)
		_exit(72);
	memcpy(assumed.words, words + folder, assumed.len);
	assumed.path = assumed.words; /* the words after argc and python3 */
	for (int i = 0; i < 2; i++)
		assumed.path += strlen(assumed.path) + 1;
}

void fast_path_learn(object *module)
{
	const struct {
		const char *name;
		object **to;
	} rows[] = {
		{ "none", &o.none },
		{ "main_thread", &o.main_thread },
		{ "reseed_generator", &o.reseed_generator },
		{ "more_random", &o.more_random },
		{ "threads", &o.threads },
		{ "thread_exits", &o.thread_exits },
		{ "exit_count", &o.exit_count },
		{ "other_exits", &o.exits },
		{ "open_handlers", &o.open_handlers },
		{ "collect", &o.collect },
		{ "drop_modules", &o.drop_modules },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		*rows[i].to = py_member(module, rows[i].name);
	o.module = module;
	o.modules = py.PyImport_GetModuleDict();
	o.native_id = py.PyUnicode_InternFromString("_native_id");
	o.closed = py.PyUnicode_InternFromString("closed");
	o.flush = py.PyUnicode_InternFromString("flush");
	o.main = py.PyUnicode_InternFromString("__main__");
	o.handlers = py.PyLong_AsLong(py_member(module, "handlers"));
	o.before = py.PyLong_AsLong(py_member(module, "before"));
	learn_words(py_member(module, "ASSUMED"));
}

/* ---- the beginning ---- */

void fast_path_reseed(void)
{
	object *id = py.PyLong_FromLong(syscall(SYS_gettid));

	if (!id || py.PyDict_SetItem(o.main_thread, o.native_id, id) < 0 ||
	    !py.PyObject_CallObject(o.reseed_generator, NULL) ||
	    (o.more_random != o.none && !py.PyObject_CallObject(o.more_random, NULL))) {
		py.PyErr_Print();
		_exit(72);
	}
	py.Py_DecRef(id);
}

int fast_path_start(const char *words, uint32_t len)
{
	size_t folder = strlen(words) + 1;
	struct stat st;

	if (*words && strcmp(words, HOME) != 0)
		return 0;
	if (len - folder != assumed.len || memcmp(words + folder, assumed.words, assumed.len) != 0)
		return 0;
	/* Only an existing regular file: not a symlink, a package folder or a missing file. Packages
	 * of the user need a fresh interpreter. */
	return chdir(HOME) == 0 && lstat(assumed.path, &st) == 0 && S_ISREG(st.st_mode) &&
	       access(HOME "/.local/lib", F_OK) < 0;
}

/* ---- the end ---- */

static long fast_number(object *function)
{
	object *said = py.PyObject_CallObject(function, NULL);
	long n = said ? py.PyLong_AsLong(said) : -1;

	if (said)
		py.Py_DecRef(said);
	else
		py.PyErr_Clear();
	return n;
}

/* -1: not a list. */
static ssize_t fast_length(object *list)
{
	ssize_t n = list == o.none ? -1 : py.PyList_Size(list);

	if (n < 0)
		py.PyErr_Clear();
	return n;
}

int fast_path_end(void)
{
	return fast_length(o.thread_exits) == 0 && fast_length(o.exits) == 0 &&
	       fast_length(o.open_handlers) == o.handlers && fast_number(o.threads) == 0 &&
	       fast_number(o.exit_count) == 0;
}

/* Prints the current exception to stderr. */
static void fast_complain(const char *how, object *about)
{
	object *type, *value, *trace, *said;

	py.PyErr_Fetch(&type, &value, &trace);
	py.PyErr_NormalizeException(&type, &value, &trace);
	said = py.PyObject_CallFunction(py_member(o.module, how), "OOO", value, about,
					trace ? trace : o.none);
	if (!said)
		py.PyErr_Clear();
}

static int flush_open(object *stream)
{
	object *closed = py.PyObject_GetAttr(stream, o.closed), *done;
	int is = closed ? py.PyObject_IsTrue(closed) : -1;

	if (closed)
		py.Py_DecRef(closed);
	if (is < 0)
		py.PyErr_Clear(); /* unknown counts as open */
	if (is > 0)
		return 0;
	done = py.PyObject_CallMethodObjArgs(stream, o.flush, NULL);
	if (done)
		py.Py_DecRef(done);
	return done ? 0 : -1;
}

static int fast_flush(const char *name)
{
	object *stream = py.PySys_GetObject(name);
	int done;

	if (!stream || stream == o.none)
		return 0;
	py.Py_IncRef(stream); /* the program may have replaced it */
	done = flush_open(stream);
	if (done < 0)
		fast_complain("complain_of", stream);
	py.Py_DecRef(stream);
	return done;
}

/* 1: the module of the program is still referenced, so its objects must be destroyed one by one. */
static int clear_rest(object *ref)
{
	object *left = py.PyObject_CallObject(ref, NULL), *done;

	if (!left || left == o.none)
		return 0;
	done = py.PyObject_CallFunction(py_member(o.module, "clear"), "O", left);
	if (done)
		py.Py_DecRef(done);
	else
		fast_complain("complain", o.collect);
	py.Py_DecRef(left);
	return 1;
}

/* The same as drop_modules() if the module of the program is the only new one. */
static void drop_main(void)
{
	object *main = py.PyDict_GetItem(o.modules, o.main);
	object *ref = main ? py.PyWeakref_NewRef(main, NULL) : NULL;
	int found;

	py.PyErr_Clear(); /* not every object supports weak references */
	if (py.PyDict_SetItem(o.modules, o.main, o.none) < 0)
		fast_complain("complain", o.modules);
	found = fast_number(o.collect) != 0;
	if (ref && clear_rest(ref))
		found = 1;
	if (found) /* there may be more now */
		fast_number(o.collect);
}

static void drop_all(void)
{
	object *done = py.PyObject_CallObject(o.drop_modules, NULL);

	if (done)
		py.Py_DecRef(done);
	else
		fast_complain("complain", o.drop_modules);
}

int fast_path_leave(int status)
{
	if (fast_flush("stdout") < 0)
		status = 120;
	fast_flush("stderr");
	if (py.PyDict_Size(o.modules) > o.before)
		drop_all();
	else
		drop_main();
	fast_flush("__stdout__"); /* output of destructors; and the original streams */
	fast_flush("__stderr__");
	return status;
}
