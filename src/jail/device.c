/* device.c - see device.h. */
#include "jail/device.h"
#include "base/cleanup.h"
#include "jail/launch.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct device_row device_rows[] = {
	{ 1, 3, "null", JAIL_ALL },       { 1, 5, "zero", JAIL_ALL },
	{ 1, 7, "full", JAIL_ALL },       { 1, 8, "random", JAIL_ALL },
	{ 1, 9, "urandom", JAIL_ALL },    { 5, 0, "tty", JAIL_ALL },
	{ 5, 2, "ptmx", JAIL_ALL },       { 136, -1, "pts", JAIL_ALL },
	{ 10, 232, "kvm", JAIL_MICROVM },
};
const unsigned device_nrows = ARRAY_LEN(device_rows);

static long device_bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* r2 major, r3 minor: skips a row when one differs, returns 1 when both match, 0 at the end. */
static unsigned device_assemble(unsigned tier, struct bpf_insn *out)
{
	const short major = offsetof(struct bpf_cgroup_dev_ctx, major);
	const short minor = offsetof(struct bpf_cgroup_dev_ctx, minor);
	const struct bpf_insn yes = { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1 };
	const struct bpf_insn no = { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 };
	const struct bpf_insn end = { .code = BPF_JMP | BPF_EXIT };
	struct bpf_insn *p = out;

	*p++ = (struct bpf_insn){
		.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1, .off = major
	};
	*p++ = (struct bpf_insn){
		.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 3, .src_reg = 1, .off = minor
	};
	for (unsigned i = 0; i < device_nrows; i++) {
		int any = device_rows[i].minor < 0;

		if (!(device_rows[i].tiers & tier))
			continue;
		*p++ = (struct bpf_insn){ .code = BPF_JMP | BPF_JNE | BPF_K,
					  .dst_reg = 2,
					  .off = any ? 2 : 3,
					  .imm = device_rows[i].major };
		if (!any)
			*p++ = (struct bpf_insn){ .code = BPF_JMP | BPF_JNE | BPF_K,
						  .dst_reg = 3,
						  .off = 2,
						  .imm = device_rows[i].minor };
		*p++ = yes;
		*p++ = end;
	}
	*p++ = no;
	*p++ = end;
	return (unsigned)(p - out);
}

/* An earlier keeper may have attached a program that no box can replace: the kernel does not change this in place. */
static int device_attach_again(union bpf_attr *attach, struct err *e)
{
	union bpf_attr detach = { .target_fd = attach->target_fd,
				  .attach_type = BPF_CGROUP_DEVICE };

	if (device_bpf(BPF_PROG_DETACH, &detach) < 0 || device_bpf(BPF_PROG_ATTACH, attach) < 0)
		return err_sys(e, "replace the device program");
	return 0;
}

int device_attach(int cgroup_dir, unsigned tier, struct err *e)
{
	struct bpf_insn code[64];
	union bpf_attr load = {
		.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
		.insns = (uint64_t)(uintptr_t)code,
		.license = (uint64_t)(uintptr_t) "Apache-2.0",
		.expected_attach_type = BPF_CGROUP_DEVICE,
	};
	union bpf_attr attach;
	auto_fd int prog = -1;

	load.insn_cnt = device_assemble(tier, code);
	prog = (int)device_bpf(BPF_PROG_LOAD, &load);
	if (prog < 0)
		return err_sys(e, "load the device program");
	attach = (union bpf_attr){ .target_fd = (uint32_t)cgroup_dir,
				   .attach_bpf_fd = (uint32_t)prog,
				   .attach_type = BPF_CGROUP_DEVICE,
				   .attach_flags = BPF_F_ALLOW_OVERRIDE };
	if (device_bpf(BPF_PROG_ATTACH, &attach) == 0)
		return 0;
	if (errno == EPERM)
		return device_attach_again(&attach, e);
	return err_sys(e, "attach the device program");
}
