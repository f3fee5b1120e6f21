/* typed.h - commands as a user types them: the `atoll` executable started once, and python3. */
#pragma once
#include "base/err.h"

struct subject;

int typed_version_open(struct subject *s, struct err *e);
int typed_true_open(struct subject *s, struct err *e);
int typed_python_open(struct subject *s, struct err *e);
int typed_once(struct subject *s, struct err *e);
/* The peer of the previous subject: the same file with python3 of the host, without a box. */
int python_open(struct subject *s, struct err *e);
int python_once(struct subject *s, struct err *e);
