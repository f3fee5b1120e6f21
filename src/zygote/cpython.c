/* cpython.c - see cpython.h. */
#include "zygote/cpython.h"

#include <dlfcn.h>
#include <unistd.h>

struct py py;

#define NAME(f)                                                                                    \
	{                                                                                          \
#f, (void **)&py.f                                                                 \
	}
static const struct {
	/* clang-format off */
	const char *name;
	void **to;
} names[] = {
	NAME(Py_InitializeEx), NAME(Py_IncRef), NAME(Py_DecRef),
	NAME(PyImport_AddModule), NAME(PyImport_GetModuleDict), NAME(PyModule_GetDict),
	NAME(PyRun_StringFlags), NAME(PyRun_FileExFlags),
	NAME(PyObject_CallFunction), NAME(PyObject_CallObject), NAME(PyObject_CallMethodObjArgs),
	NAME(PyObject_GetAttr), NAME(PyObject_SetAttr), NAME(PyObject_IsTrue),
	NAME(PyBytes_FromStringAndSize), NAME(PyBytes_AsString), NAME(PyBytes_Size),
	NAME(PyDict_GetItem), NAME(PyDict_GetItemString), NAME(PyDict_SetItem), NAME(PyDict_Size),
	NAME(PyList_Size), NAME(PyLong_AsLong), NAME(PyLong_FromLong), NAME(PySys_GetObject),
	NAME(PyUnicode_InternFromString), NAME(PyWeakref_NewRef),
	NAME(PyObject_Malloc), NAME(PyObject_Free),
	NAME(PyErr_Print), NAME(PyErr_Clear), NAME(PyErr_ExceptionMatches), NAME(PyErr_Fetch),
	NAME(PyErr_NormalizeException),
	NAME(PyObject_GetArenaAllocator), NAME(PyObject_SetArenaAllocator),
	NAME(PyExc_KeyboardInterrupt), NAME(PyExc_SystemExit),
	/* clang-format on */
};

void py_find(void)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*names[i].to = dlsym(RTLD_DEFAULT, names[i].name);
		if (!*names[i].to) {
			fprintf(stderr, "this python3 has no %s\n", names[i].name);
			_exit(72);
		}
	}
}

object *py_member(object *dict, const char *name)
{
	object *o = py.PyDict_GetItemString(dict, name);

	if (!o)
		_exit(72);
	return o;
}

int py_number(object *take_result)
{
	int said;

	if (!take_result) {
		py.PyErr_Print();
		_exit(72);
	}
	said = (int)py.PyLong_AsLong(take_result);
	py.Py_DecRef(take_result);
	return said;
}
