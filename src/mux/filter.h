/* filter.h - the system calls of mux after its engine was started, and those of its engine. */
#pragma once

int filter_load(void); /* 0, or -errno */
/* In the process that becomes QEMU: the list of the outer box without what only mux needs. */
int filter_load_vm(void);
/* In the process that becomes runsc: without six calls that it can do without. */
int filter_load_runsc(void);
