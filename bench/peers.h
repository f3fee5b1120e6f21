/* peers.h - the programs that Atoll is compared with: plain processes, bubblewrap, OCI runtimes.
 * Every one is started by vfork+exec of its own program and waited for. */
#pragma once
#include "base/err.h"

struct subject;

/* The folder of all bundles and state; its creator removes it at the end. */
extern char bench_dir[];

int fork_open(struct subject *s, struct err *e);
int fork_once(struct subject *s, struct err *e);
int bwrap_open(struct subject *s, struct err *e);
int bwrap_once(struct subject *s, struct err *e);

/* oci.c: crun, runc, runsc, distinguished by the name of the subject. */
int oci_open(struct subject *s, struct err *e);
int oci_join(struct subject *s, int worker, struct err *e);
int oci_once(struct subject *s, struct err *e);
void oci_close(struct subject *s);
