/* typed.h - what a user types: the `atoll` executable itself, started for one command, and python3. */
#pragma once
#include "base/err.h"

struct subject;

int typed_version_open(struct subject *s, struct err *e);
int typed_true_open(struct subject *s, struct err *e);
int typed_python_open(struct subject *s, struct err *e);
int typed_once(struct subject *s, struct err *e);
/* The peer of the last one: the same file with the host's python3, in no box. */
int python_open(struct subject *s, struct err *e);
int python_once(struct subject *s, struct err *e);
