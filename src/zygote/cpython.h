/* cpython.h - the interpreter's C interface, as far as it is the same in every Python 3.
 * Owns: the addresses of its functions; they are found by name, so nothing is linked with a version
 * of it. */
#pragma once
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct object object;
struct arenas { /* PyObjectArenaAllocator */
	void *ctx;
	void *(*alloc)(void *ctx, size_t size);
	void (*free)(void *ctx, void *at, size_t size);
};

struct py {
	void (*Py_InitializeEx)(int);
	void (*Py_IncRef)(object *);
	void (*Py_DecRef)(object *);
	object *(*PyImport_AddModule)(const char *);
	object *(*PyImport_GetModuleDict)(void);
	object *(*PyModule_GetDict)(object *);
	object *(*PyRun_StringFlags)(const char *, int, object *, object *, void *);
	object *(*PyRun_FileExFlags)(FILE *, const char *, int, object *, object *, int, void *);
	object *(*PyObject_CallFunction)(object *, const char *, ...);
	object *(*PyObject_CallObject)(object *, object *);
	object *(*PyObject_CallMethodObjArgs)(object *, object *, ...);
	object *(*PyObject_GetAttr)(object *, object *);
	int (*PyObject_SetAttr)(object *, object *, object *);
	int (*PyObject_IsTrue)(object *);
	object *(*PyBytes_FromStringAndSize)(const char *, ssize_t);
	char *(*PyBytes_AsString)(object *);
	ssize_t (*PyBytes_Size)(object *);
	object *(*PyDict_GetItem)(object *, object *);
	object *(*PyDict_GetItemString)(object *, const char *);
	int (*PyDict_SetItem)(object *, object *, object *);
	ssize_t (*PyDict_Size)(object *);
	ssize_t (*PyList_Size)(object *);
	long (*PyLong_AsLong)(object *);
	object *(*PyLong_FromLong)(long);
	object *(*PySys_GetObject)(const char *);
	object *(*PyUnicode_InternFromString)(const char *);
	object *(*PyWeakref_NewRef)(object *, object *);
	void *(*PyObject_Malloc)(size_t);
	void (*PyObject_Free)(void *);
	void (*PyErr_Print)(void);
	void (*PyErr_Clear)(void);
	int (*PyErr_ExceptionMatches)(object *);
	void (*PyErr_Fetch)(object **, object **, object **);
	void (*PyErr_NormalizeException)(object **, object **, object **);
	void (*PyObject_GetArenaAllocator)(struct arenas *);
	void (*PyObject_SetArenaAllocator)(struct arenas *);
	object **PyExc_KeyboardInterrupt, **PyExc_SystemExit;
};
extern struct py py;

/* Exits with the name of the missing symbol if this is another program. */
void py_find(void);
/* Exits if there is none. */
object *py_member(object *dict, const char *name);
/* The result of a call as a number. Exits with a traceback if the call failed. */
int py_number(object *take_result);
