/* vm_manifest.h - what `atoll tier prepare microvm` has made, with the SHA-256 of every file that a
 * guest starts from. Owns: the text format; parsing is a pure function. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "tier/kernel_image.h"
#include <stdint.h>

enum { VM_CLASSES = 4, VM_HEX = 65, VM_MANIFEST = 4096 };

struct vm_class {
	unsigned mib;       /* largest memory limit of its boxes; the guest has VM_SPARE_MIB more */
	char ram[VM_HEX];   /* SHA-256 of ram-MIB: pages that are not zero, each with its number */
	char state[VM_HEX]; /* SHA-256 of state-MIB */
};

struct vm_manifest {
	char engine[VM_HEX]; /* SHA-256 of the file of QEMU: another one cannot read the state */
	char platform[8];    /* "kvm" or "tcg": with which the templates were made */
	unsigned vcpus;
	char release[KERNEL_RELEASE];
	char init[VM_HEX], mux[VM_HEX]; /* the programs of Atoll in the guest */
	char kernel[VM_HEX], initrd[VM_HEX];
	char usr_key[VM_HEX]; /* image_usr_key() at that time */
	uint64_t usr_bytes;
	struct vm_class classes[VM_CLASSES];
	unsigned nclasses;
};

extern const unsigned vm_class_mib[VM_CLASSES]; /* 256, 512, 1024, 2048 */
enum { VM_SPARE_MIB = 64 };                     /* for the kernel of the guest */

must_check int vm_manifest_parse(const char *text, struct vm_manifest *out, struct err *e);
void vm_manifest_print(const struct vm_manifest *m, struct buf *out);
/* Of <dir>/microvm/manifest. ERR_NOT_FOUND: nothing was prepared. */
must_check int vm_manifest_read(int dir, struct vm_manifest *out, struct err *e);
/* The class for a memory limit, or NULL: it boots without a template. */
const struct vm_class *vm_class_for(const struct vm_manifest *m, uint64_t mem_bytes);
/* MiB of memory of a guest: those of its class, or of its own limit. */
unsigned vm_guest_mib(uint64_t mem_bytes);

/* The next page with data from this page on, or the size of the file. Moves the file position. */
uint64_t vm_skip_hole(int fd, uint64_t at);
/* SHA-256 of a file in hexadecimal; pages: only pages that are not zero count, so that a sparse file
 * and its copy are equal. */
must_check int vm_hash(int fd, int pages, char out_hex[VM_HEX], struct err *e);
