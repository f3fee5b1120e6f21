/* peers.h - what we are compared with: plain processes, bubblewrap, and the OCI runtimes.
 * Every one is started by vfork+exec of its own program and waited for. */
#pragma once
#include "base/err.h"

struct subject;

/* The folder all bundles and state live in; removed at the end by whoever made it. */
extern char bench_dir[];

int fork_open(struct subject *s, struct err *e);
int fork_once(struct subject *s, struct err *e);
int bwrap_open(struct subject *s, struct err *e);
int bwrap_once(struct subject *s, struct err *e);

/* oci.c: crun, runc, runsc, told apart by the subject's name. */
int oci_open(struct subject *s, struct err *e);
int oci_join(struct subject *s, int worker, struct err *e);
int oci_once(struct subject *s, struct err *e);
void oci_close(struct subject *s);
