/* filter.h - the system calls of mux after its engine was started, and those of QEMU. */
#pragma once

int filter_load(void); /* 0, or -errno */
/* In the process that becomes QEMU: the list of the outer box without what only mux needs. */
int filter_load_vm(void);
