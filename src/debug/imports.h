/* imports.h - the package for an import, and which packages must not be installed: share/imports, a
 * file per language, and the lists of src/lang.
 * Owns: the tables, read at first use, for the life of the process.
 *
 * languages = ["python"]
 * manager = "pip"
 * builtin = ["os", "sys"]        never installed; what is nearly one of them was mistyped
 * known = ["attrs", "rich"]      packages named like their import, besides those of lang/popular_packages.c
 * pattern = "lib{}-perl"         how a package is called after its module
 * [names]                        cv2 = "opencv-python"
 * [replaced]                     urllib2 = "urllib.request": of another version
 * [links]                        "zlib.h" = "z": the library behind a header or the beginning of a
 * symbol */
#pragma once
#include "document/embedded.h"
#include "lang/lang.h"
#include "lang/package.h"

enum import_kind {
	IMPORT_NONE,     /* unknown, and not a valid package name */
	IMPORT_KNOWN,    /* package, of manager */
	IMPORT_GUESSED,  /* the same, guessed from the import name */
	IMPORT_BUILTIN,  /* part of the language: never installed */
	IMPORT_MISTYPED, /* `meant` is a module of the language */
	IMPORT_REPLACED, /* `meant` is its current name */
	IMPORT_SUSPECT,  /* `meant` is a popular package, one letter away: never installed */
};

struct import {
	enum import_kind kind;
	enum package_manager manager;
	char package[PACKAGE_TEXT + 1];
	char meant[PACKAGE_TEXT + 1];
	char top[PACKAGE_TEXT + 1]; /* the matched part of the name: "a" of "a.b.c" */
};

/* name: as in the program: "PIL.Image", "@scope/x/y", "github.com/a/b/c", "zlib.h". */
void import_find(const struct lang *l, const char *name, struct import *out);
/* The library to link with for a header or a symbol: "z"; "": none is known. */
const char *import_link(const struct lang *l, const char *name);
/* The tables, for tests. */
const struct toml_node *import_table(const struct lang *l);
