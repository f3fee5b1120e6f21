/* vm_start.h - what the keeper sends to the first process of a virtual machine: the limits of the box, and
 * which of its disks are used.
 * The guest writes VM_READY to its second port when everything that all boxes have in common exists,
 * and then waits for this struct: templates are saved at that moment. */
#pragma once
#include <stdint.h>

enum { VM_READY = 'R', VM_START_MAGIC = 0x61746c32 };

/* Every guest has these read-only disks after that of /usr, all of one size: a template does not know
 * what is on them. Four layers of packages and a root. */
enum { VM_LAYERS = 5 };
#define VM_LAYER_BYTES (UINT64_C(64) << 30)

enum {                         /* vm_start.flags */
       VM_WHOLE_ROOT = 1 << 0, /* the layers are its whole root: without the /usr of the host */
       VM_SECRETS = 1 << 1,    /* a small file system in memory at /run/secrets */
};

struct vm_start {
	uint32_t magic;      /* VM_START_MAGIC */
	uint32_t pids;       /* 0: no limit */
	uint64_t mem_bytes;  /* of all processes of the box */
	uint64_t disk_bytes; /* of its writable layer */
	uint64_t disk_files;
	uint32_t root;   /* 1: programs may run as root of the box */
	uint32_t flags;  /* VM_WHOLE_ROOT ... */
	uint32_t layers; /* disks that are used; the first is the upper one */
	uint32_t pad;
};
