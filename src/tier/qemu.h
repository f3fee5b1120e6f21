/* qemu.h - QEMU as the engine of tier microvm: how it is examined, its command line, its descriptors.
 * Owns: sealed copies of templates in memory, once per keeper. docs/tiers.md has the measurements. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "tier/tier.h"
#include "tier/vm_manifest.h"
#include "wire/vm_start.h"

#if defined(__x86_64__)
#define QEMU_PATH "/usr/bin/qemu-system-x86_64"
#define QEMU_PACKAGE "qemu-system-x86"
#define QEMU_MACHINE "x86_64"
#else
#define QEMU_PATH "/usr/bin/qemu-system-aarch64"
#define QEMU_PACKAGE "qemu-system-arm"
#define QEMU_MACHINE "aarch64"
#endif

enum { QEMU_OLDEST = 702 }; /* 7.2: Debian 12 */

/* Descriptors of the engine; 0 is the channel. The other ends of QMP and of the second port are held
 * by QEMU itself, so that it never sees them closed. */
enum qemu_fd {
	QEMU_FD_QMP = JAIL_ENGINE_FD,
	QEMU_FD_QMP_PEER,
	QEMU_FD_READY,
	QEMU_FD_READY_PEER,
	QEMU_FD_USR,
	QEMU_FD_LAYER, /* the first of VM_LAYERS */
	QEMU_FD_KERNEL = QEMU_FD_LAYER + VM_LAYERS,
	QEMU_FD_INITRD, /* with a template: its memory */
	QEMU_FD_STATE,  /* with a template: the state of its devices */
	QEMU_FD_END,
};

enum qemu_start {
	QEMU_COLD,     /* boots the kernel */
	QEMU_TEMPLATE, /* boots the kernel with its memory in a shared file */
	QEMU_CLONE,    /* continues a template; its memory is a private copy */
};

struct qemu_command {
	const char *argv[JAIL_ENGINE_ARGS];
	char text[2048]; /* of the arguments that are not constant */
};

/* The command line depends on these four values only, never on a request. */
void qemu_command(const char *engine, const char *platform, unsigned vcpus, unsigned mib,
		  enum qemu_start how, struct qemu_command *out);
/* "QEMU emulator version 7.2.22 (Debian ...)" -> "7.2.22" */
must_check int qemu_parse_version(const char *text, char out_version[40], struct err *e);
/* What a clone gets on QMP, in one piece: constant bytes, nothing is ever read back. */
extern const char qemu_clone_requests[];

int qemu_probe_path(const char *path, const struct tier_host *h, struct wire_tier_facts *out,
		    struct err *e); /* path: of QEMU; tests have others */
extern const char *const qemu_places[];
int qemu_probe(const struct tier_host *h, struct wire_tier_facts *out, struct err *e);
int qemu_prepare(const struct tier_host *h, const struct wire_tier_facts *f, struct err *e);
int qemu_outer_box(const struct tier_host *h, const struct wire_tier_facts *f,
		   const struct wire_box *about, struct spec *sp, struct jail_engine *out,
		   struct err *e);
void qemu_release(struct jail_engine *engine);
#define QEMU_KVM "/dev/kvm"
/* 0: this device (QEMU_KVM) can be opened and makes a virtual machine. Whether a guest runs is known only after the
 * first one was booted: some hosts have a KVM that runs modified kernels only. */
int qemu_check_kvm(const char *path, struct err *e);
