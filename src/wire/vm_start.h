/* vm_start.h - what the keeper sends to the first process of a virtual machine: the limits of the box.
 * The guest writes VM_READY to its second port when everything that all boxes have in common exists,
 * and then waits for this struct: templates are saved at that moment. */
#pragma once
#include <stdint.h>

enum { VM_READY = 'R', VM_START_MAGIC = 0x61746c31 };

struct vm_start {
	uint32_t magic;      /* VM_START_MAGIC */
	uint32_t pids;       /* 0: no limit */
	uint64_t mem_bytes;  /* of all processes of the box */
	uint64_t disk_bytes; /* of its writable layer */
	uint64_t disk_files;
	uint32_t root; /* 1: programs may run as root of the box */
	uint32_t pad;
};
