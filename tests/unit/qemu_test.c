/* qemu_test.c - tier microvm without a guest: archives, kernels, images, lists of files, QEMU itself. */
#include "base/cleanup.h"
#include "tap.h"
#include "tier/cpio.h"
#include "tier/image.h"
#include "tier/kernel_image.h"
#include "tier/qemu.h"
#include "tier/tool.h"
#include "tier/vm_manifest.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static char folder[64];

static void new_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/qemu_test.XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
	const char *const argv[] = { "/usr/bin/rm", "-rf", folder, NULL };
	struct err e;

	CHECK_INT(host_tool_run_as(argv, 0, -1, 10, &e), 0);
}

static void write_text(const char *name, const char *text, size_t n, unsigned mode)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", folder, name);

	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, text, n) == (ssize_t)n && fchmod(fd, mode) == 0);
}

/* ---- the first root ---- */

TEST(cpio_reads_back_what_was_written)
{
	struct cpio c = { 0 };
	auto_buf struct buf names = { 0 };
	char path[160];
	const char *const argv[] = { "/usr/bin/cpio", "-t", "--quiet", "-F", path, NULL };
	struct err e = { 0 };

	if (access(argv[0], X_OK) < 0) {
		printf("# cpio is not installed\n");
		return;
	}
	new_folder();
	CHECK_INT(chmod(folder, 0755), 0);
	CHECK_INT(cpio_add(&c, ".", S_IFDIR | 0755, 0, NULL, 0, &e), 0);
	CHECK_INT(cpio_add(&c, "a", S_IFREG | 0644, 0, "12345", 5, &e), 0);
	CHECK_INT(cpio_add(&c, "link", S_IFLNK | 0777, 0, "a", 1, &e), 0);
	CHECK_INT(cpio_add(&c, "empty", S_IFREG | 0600, 1000, NULL, 0, &e), 0);
	cpio_end(&c);
	CHECK_INT(c.out.len % 4, 0);
	write_text("a.cpio", c.out.p, c.out.len, 0644);
	snprintf(path, sizeof(path), "%s/a.cpio", folder);
	CHECK_INT(host_tool_output(argv, &names, 4096, &e), 0);
	CHECK_STR(buf_str(&names), ".\na\nlink\nempty\n");
	cpio_fini(&c);
	remove_folder();
}

TEST(cpio_rejects_names_that_leave_the_root_or_are_too_long)
{
	struct cpio c = { 0 };
	char name[300];
	struct err e;

	memset(name, 'n', sizeof(name));
	name[256] = 0;
	CHECK_INT(cpio_add(&c, "/etc", S_IFDIR, 0, NULL, 0, &e), -1);
	CHECK_INT(cpio_add(&c, "", S_IFDIR, 0, NULL, 0, &e), -1);
	CHECK_INT(cpio_add(&c, name, S_IFREG, 0, NULL, 0, &e), -1);
	name[255] = 0;
	CHECK_INT(cpio_add(&c, name, S_IFREG, 0, NULL, 0, &e), 0);
	cpio_fini(&c);
}

TEST(a_tree_with_a_pipe_in_it_is_rejected_and_links_are_not_followed)
{
	struct cpio c = { 0 };
	char path[160];
	struct err e;

	new_folder();
	snprintf(path, sizeof(path), "%s/out", folder);
	CHECK_INT(symlink("/etc/passwd", path), 0);

	auto_fd int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK_INT(cpio_add_tree(&c, "s", dir, &e), 0);
	CHECK(memmem(c.out.p, c.out.len, "/etc/passwd", 11) &&
	      !memmem(c.out.p, c.out.len, "root:", 5));
	snprintf(path, sizeof(path), "%s/pipe", folder);
	CHECK_INT(mkfifo(path, 0600), 0);
	CHECK_INT(cpio_add_tree(&c, "s", dir, &e), -1);
	CHECK(strstr(e.msg, "s/pipe"));
	cpio_fini(&c);
	remove_folder();
}

/* ---- the kernel ---- */

static void x86_head(unsigned char head[KERNEL_HEAD])
{
	memset(head, 0, KERNEL_HEAD);
	head[0x1f1] = 3;  /* 4 sectors of setup code */
	head[0x1f4] = 16; /* 256 bytes of kernel */
	head[0x1fe] = 0x55;
	head[0x1ff] = 0xaa;
	memcpy(head + 0x202, "HdrS", 4);
}

TEST(a_kernel_is_for_this_processor_and_complete)
{
	unsigned char head[KERNEL_HEAD];
	struct err e;

	x86_head(head);
	CHECK_INT(kernel_check(head, sizeof(head), 4 * 512 + 256, "x86_64", &e), 0);
	CHECK_INT(kernel_check(head, sizeof(head), 4 * 512 + 255, "x86_64", &e), -1);
	CHECK(strstr(e.msg, "truncated: 2303 bytes of 2304"));
	CHECK_INT(kernel_check(head, sizeof(head), 1 << 20, "aarch64", &e), -1);
	CHECK(strstr(e.msg, "for x86_64, this host is aarch64"));
	CHECK_INT(kernel_check(head, 100, 100, "x86_64", &e), -1);
	memset(head, 0, sizeof(head));
	CHECK_INT(kernel_check(head, sizeof(head), 1 << 20, "x86_64", &e), -1);
	memcpy(head + 0x38, "ARM\x64", 4);
	CHECK_INT(kernel_check(head, sizeof(head), 1 << 20, "aarch64", &e), 0);
	CHECK_INT(kernel_check(head, sizeof(head), 1 << 20, "x86_64", &e), -1);
}

TEST(the_newest_kernel_for_virtual_machines_is_found)
{
	static const char *const names[] = { "boot/vmlinuz-6.1.0-9-cloud-amd64",
					     "boot/vmlinuz-6.1.0-55-cloud-amd64",
					     "boot/vmlinuz-6.12.1-amd64", "boot/config-7.0" };
	struct kernel_image k;
	char path[160];
	struct err e;

	new_folder();
	CHECK_INT(kernel_find(folder, &k, &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	snprintf(path, sizeof(path), "%s/boot", folder);
	CHECK_INT(mkdir(path, 0755), 0);
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		write_text(names[i], "k", 1, 0644);
	CHECK_INT(kernel_find(folder, &k, &e), -1); /* no modules */
	snprintf(path, sizeof(path), "%s/lib", folder);
	CHECK_INT(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/lib/modules", folder);
	CHECK_INT(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/lib/modules/6.1.0-55-cloud-amd64", folder);
	CHECK_INT(mkdir(path, 0755), 0);
	CHECK_INT(kernel_find(folder, &k, &e), 0);
	CHECK_STR(k.release, "6.1.0-55-cloud-amd64");
	remove_folder();
}

static void write_module(const char *name, const char *needs)
{
	char bytes[256] = "\177ELF";
	int n = snprintf(bytes + 100, 100, "depends=%s", needs);

	write_text(name, bytes, 100 + (size_t)n + 1, 0644);
}

TEST(modules_are_loaded_after_those_they_depend_on)
{
	struct kernel_image k = { .release = "test" };
	struct kernel_modules m;
	struct err e;

	new_folder();
	snprintf(k.modules, sizeof(k.modules), "%s", folder);
	write_text("modules.builtin", "kernel/x/virtio_blk.ko\n", 23, 0644);
	write_module("virtio_pci.ko", "virtio,virtio_ring");
	write_module("virtio.ko", "virtio_ring");
	write_module("virtio-ring.ko", "");
	write_module("virtio_console.ko", "virtio");
	write_module("erofs.ko", "");
	CHECK_INT(kernel_read_modules(&k, &m, &e), -1);
	CHECK(strstr(e.msg, "no module overlay"));
	write_module("overlay.ko", "");
	CHECK_INT(kernel_read_modules(&k, &m, &e), 0);
	CHECK_INT(m.n, 6);
	CHECK_STR(m.at[0].name, "virtio_ring");
	CHECK_STR(m.at[1].name, "virtio");
	CHECK_STR(m.at[2].name, "virtio_pci");
	CHECK_STR(m.at[5].name, "overlay");
	kernel_modules_fini(&m);
	write_module("erofs.ko", "overlay");
	write_module("overlay.ko", "erofs");
	CHECK_INT(kernel_read_modules(&k, &m, &e), -1);
	CHECK(strstr(e.msg, "depends on itself"));
	write_text("overlay.ko", "text", 4, 0644);
	CHECK_INT(kernel_read_modules(&k, &m, &e), -1);
	CHECK(strstr(e.msg, "is no module"));
	remove_folder();
}

TEST(what_a_module_needs_ends_inside_the_module)
{
	char bytes[80] = "\177ELF";

	memcpy(bytes + 70, "depends=ab", 10);
	CHECK(!kernel_module_needs(bytes, sizeof(bytes)));
	bytes[79] = 0;
	CHECK_STR(kernel_module_needs(bytes, sizeof(bytes)), "a");
	CHECK(!kernel_module_needs(bytes, 10));
}

/* ---- the image of /usr ---- */

TEST(an_image_is_packed_without_the_files_of_root_and_a_truncated_one_is_found)
{
	char head[4096];
	char path[160];
	struct err e = { 0 };
	struct stat st;

	if (access("/usr/bin/mkfs.erofs", X_OK) < 0 || geteuid() != 0) {
		printf("# needs erofs-utils and root\n");
		return;
	}
	new_folder();
	CHECK_INT(chmod(folder, 0755), 0);
	snprintf(path, sizeof(path), "%s/tree", folder);
	CHECK_INT(mkdir(path, 0755), 0);
	write_text("tree/public", "known", 5, 0644);
	write_text("tree/private", "CANARY-OF-ROOT", 14, 0600);
	snprintf(path, sizeof(path), "%s/image", folder);

	auto_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0400);

	snprintf(path, sizeof(path), "%s/tree", folder);
	if (image_pack(path, fd, &e) < 0)
		CHECK_STR(e.msg, "");
	CHECK_INT(fstat(fd, &st), 0);
	CHECK_INT(st.st_uid, 0);

	ssize_t n = pread(fd, head, sizeof(head), 0);

	CHECK_INT(image_check(head, (size_t)n, (uint64_t)st.st_size, &e), 0);
	CHECK_INT(image_check(head, (size_t)n, (uint64_t)st.st_size / 2, &e), -1);
	CHECK(strstr(e.msg, "truncated"));
	CHECK_INT(image_check(head, 100, 100, &e), -1);

	auto_free char *all = malloc((size_t)st.st_size);

	CHECK_INT(pread(fd, all, (size_t)st.st_size, 0), st.st_size);
	CHECK(memmem(all, (size_t)st.st_size, "known", 5));
	CHECK(!memmem(all, (size_t)st.st_size, "CANARY-OF-ROOT", 14));
	remove_folder();
}

/* ---- the list of files ---- */

#define H "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
static const char good[] =
	"atoll-microvm 1\nengine " H "\nplatform tcg\nvcpus 1\nrelease 6.1\ninit " H "\nmux " H
	"\nkernel " H "\ninitrd " H "\nusr-key " H "\nusr-bytes 4096\nram-256 " H "\nstate-256 " H
	"\n";
static const char end[] = "classes 1\n";

TEST(a_list_of_files_is_read_as_it_was_written)
{
	auto_buf struct buf text = { 0 };
	struct vm_manifest m;
	struct err e;

	auto_free char *all = buf_text("%s%s", good, end);

	CHECK_INT(vm_manifest_parse(all, &m, &e), 0);
	CHECK_INT(m.nclasses, 1);
	vm_manifest_print(&m, &text);
	CHECK_STR(buf_str(&text), all);
	CHECK(vm_class_for(&m, 256 << 20) == &m.classes[0]);
	CHECK(vm_class_for(&m, 1) == &m.classes[0]);
	CHECK(!vm_class_for(&m, (256 << 20) + 1));
	CHECK_INT(vm_guest_mib((256 << 20) + 1), 512 + VM_SPARE_MIB);
	CHECK_INT(vm_guest_mib(UINT64_C(3) << 30), 3072 + VM_SPARE_MIB);
}

TEST(every_truncated_or_changed_list_of_files_is_rejected)
{
	struct vm_manifest m;
	char text[sizeof(good)];
	struct err e;

	for (size_t n = 0; n < sizeof(good); n++) {
		memcpy(text, good, n);
		text[n] = 0;
		CHECK_INT(vm_manifest_parse(text, &m, &e), -1);
		CHECK(strstr(e.msg, "atoll tier prepare microvm"));
	}
	static const char *const more[] = { "ram-257 " H "\n", "ram--1 " H "\n", "other 1\n",
					    "vcpus 0\n",       "vcpus 65\n",     "vcpus 1x\n",
					    "usr-bytes -1\n",  "platform hvf\n", "release \n",
					    "kernel 12\n",     "novalue\n",      "classes 2\n",
					    "classes 1\n" };

	for (unsigned i = 0; i < ARRAY_LEN(more); i++) {
		auto_free char *all = buf_text("%s%s%s", good, more[i], end);

		CHECK_INT(vm_manifest_parse(all, &m, &e), -1);
	}
}

TEST(one_changed_byte_of_a_template_changes_its_hash_and_holes_do_not)
{
	auto_fd int a = memfd_create("a", MFD_CLOEXEC), b = memfd_create("b", MFD_CLOEXEC);
	char zeros[8192] = { 0 }, first[VM_HEX], second[VM_HEX];
	struct err e;

	CHECK_INT(ftruncate(a, 4 << 20), 0);
	CHECK_INT(ftruncate(b, 4 << 20), 0);
	CHECK_INT(pwrite(a, "x", 1, 3 << 20), 1);
	CHECK_INT(pwrite(b, "x", 1, 3 << 20), 1);
	CHECK_INT(pwrite(b, zeros, sizeof(zeros), 1 << 20), (int)sizeof(zeros));
	CHECK_INT(vm_hash(a, 1, first, &e), 0);
	CHECK_INT(vm_hash(b, 1, second, &e), 0);
	CHECK_STR(first, second);
	CHECK_INT(pwrite(b, "y", 1, (1 << 20) + 5), 1);
	CHECK_INT(vm_hash(b, 1, second, &e), 0);
	CHECK(strcmp(first, second) != 0);
	CHECK_INT(pwrite(a, "y", 1, (1 << 20) + 4096 + 5), 1); /* the same page at another place */
	CHECK_INT(vm_hash(a, 1, first, &e), 0);
	CHECK(strcmp(first, second) != 0);
}

/* ---- QEMU ---- */

TEST(the_version_of_qemu_is_known_and_new_enough)
{
	char version[40];
	struct err e;

	CHECK_INT(qemu_parse_version("QEMU emulator version 7.2.22 (Debian 1:7.2)\nx", version, &e),
		  0);
	CHECK_STR(version, "7.2.22");
	CHECK_INT(qemu_parse_version("QEMU emulator version 10.0.2\n", version, &e), 0);
	CHECK_INT(qemu_parse_version("QEMU emulator version 6.2.0\n", version, &e), -1);
	CHECK(strstr(e.msg, "too old"));
	CHECK_INT(qemu_parse_version("QEMU emulator version \n", version, &e), -1);
	CHECK_INT(qemu_parse_version("QEMU emulator version 7\n", version, &e), -1);
	CHECK_INT(qemu_parse_version("runsc version 1\n", version, &e), -1);
	CHECK_INT(qemu_parse_version("", version, &e), -1);
}

static int probe_script(const char *script, unsigned mode, struct wire_tier_facts *out,
			struct err *e)
{
	struct tier_host h = { .dir = -1, .init_exe = -1, .mux_exe = -1, .skeleton = -1 };
	char path[160];

	*out = (struct wire_tier_facts){ .tier = WIRE_TIER_MICROVM };
	snprintf(path, sizeof(path), "%s/qemu", folder);
	if (script)
		write_text("qemu", script, strlen(script), mode);
	return qemu_probe_path(path, &h, out, e);
}

TEST(other_programs_in_the_place_of_qemu_are_rejected)
{
	struct wire_tier_facts f;
	struct err e;

	new_folder();
	CHECK_INT(chmod(folder, 0755), 0);
	CHECK_INT(probe_script(NULL, 0, &f, &e), -1);
	CHECK(strstr(e.msg, "not installed") && strstr(e.msg, "apt install"));
	CHECK_INT(probe_script("#!/bin/sh\necho hello\n", 0755, &f, &e), -1);
	CHECK(strstr(e.msg, "but 'hello"));
	CHECK_INT(probe_script("#!/bin/sh\nexit 3\n", 0755, &f, &e), -1);
	CHECK(strstr(e.msg, "status 3"));
	CHECK_INT(probe_script("#!/bin/sh\nkill -9 $$\n", 0755, &f, &e), -1);
	CHECK(strstr(e.msg, "signal 9"));
	CHECK_INT(probe_script("#!/bin/sh\nhead -c 1000000 /dev/zero\n", 0755, &f, &e), -1);
	CHECK(strstr(e.msg, "printed more than"));
	CHECK_INT(probe_script("#!/bin/sh\necho QEMU emulator version 7.2.0\n", 0644, &f, &e), -1);
	CHECK(strstr(e.msg, "no executable"));
	CHECK_INT(probe_script("#!/bin/sh\necho QEMU emulator version 7.2.0\n", 0777, &f, &e), -1);
	CHECK(strstr(e.msg, "can be changed by others"));
	CHECK_INT(probe_script("#!/bin/sh\necho QEMU emulator version 7.2.0\n", 0755, &f, &e), 0);
	CHECK_INT(f.state, WIRE_TIER_UNPREPARED);
	CHECK(strstr(f.reason, "atoll tier prepare microvm"));
	CHECK_INT(strlen(f.sha256), 64);
	remove_folder();
}

TEST(a_kvm_that_is_missing_not_permitted_or_another_device_is_named)
{
	char path[160];
	struct err e;
	int permitted;

	new_folder();
	CHECK_INT(chmod(folder, 0755), 0);
	snprintf(path, sizeof(path), "%s/kvm", folder);
	CHECK_INT(qemu_check_kvm(path, &e), -1);
	CHECK(strstr(e.msg, "there is no "));
	write_text("kvm", "", 0, 0600);
	CHECK_INT(qemu_check_kvm(path, &e), -1);
	CHECK(strstr(e.msg, "is not KVM"));
	if (geteuid() == 0) {
		CHECK_INT(seteuid(65534), 0);
		permitted = qemu_check_kvm(path, &e);
		CHECK_INT(seteuid(0), 0);
		CHECK_INT(permitted, -1);
		CHECK(strstr(e.msg, "open ") && strstr(e.msg, "Permission denied"));
	}
	remove_folder();
}

static unsigned count_args(const struct qemu_command *c)
{
	unsigned n = 0;

	while (c->argv[n])
		n++;
	return n;
}

static int has_arg(const struct qemu_command *c, const char *arg)
{
	for (unsigned i = 0; c->argv[i]; i++)
		if (!strcmp(c->argv[i], arg))
			return 1;
	return 0;
}

TEST(the_command_line_depends_on_the_class_only)
{
	struct qemu_command a, b, other;

	qemu_command("/q", "tcg", 1, 320, QEMU_CLONE, &a);
	qemu_command("/q", "tcg", 1, 320, QEMU_CLONE, &b);
	CHECK_INT(count_args(&a), count_args(&b));
	for (unsigned i = 0; a.argv[i]; i++)
		CHECK_STR(a.argv[i], b.argv[i]);
	qemu_command("/q", "tcg", 1, 576, QEMU_CLONE, &other);
	CHECK_INT(count_args(&a), count_args(&other));
	CHECK(has_arg(&other, "576M") && !has_arg(&a, "576M"));
}

TEST(a_clone_never_shares_its_memory_with_the_template)
{
	struct qemu_command c;

	qemu_command("/q", "kvm", 2, 320, QEMU_CLONE, &c);
	CHECK(has_arg(&c,
		      "memory-backend-file,id=ram,size=320M,mem-path=/proc/self/fd/19,share=off"));
	CHECK(has_arg(&c, "-incoming") && !has_arg(&c, "-initrd") && has_arg(&c, "kvm"));
	qemu_command("/q", "tcg", 1, 320, QEMU_TEMPLATE, &c);
	CHECK(has_arg(&c,
		      "memory-backend-file,id=ram,size=320M,mem-path=/proc/self/fd/20,share=on"));
	CHECK(!has_arg(&c, "-incoming") && has_arg(&c, "-initrd"));
	qemu_command("/q", "tcg", 1, 4160, QEMU_COLD, &c);
	CHECK(has_arg(&c, "memory-backend-ram,id=ram,size=4160M"));
}

/* ---- one launch ---- */

static void hash_of(const char *name, int pages, char out[VM_HEX])
{
	char path[160];
	struct err e;

	snprintf(path, sizeof(path), "%s/microvm/%s", folder, name);

	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && vm_hash(fd, pages, out, &e) == 0);
}

/* A prepared folder; templates with the same memory are loaded once. */
static void write_prepared(const char *memory)
{
	struct vm_manifest m = {
		.platform = "tcg", .vcpus = 1, .release = "6.1", .usr_bytes = 9, .nclasses = 1
	};
	auto_buf struct buf text = { 0 };
	char path[160];

	snprintf(path, sizeof(path), "%s/microvm", folder);
	CHECK_INT(mkdir(path, 0700), 0);
	memset(m.engine, 'e', VM_HEX - 1);
	for (unsigned i = 0; i < VM_HEX - 1; i++)
		m.init[i] = m.mux[i] = m.usr_key[i] = 'a';
	write_text("microvm/kernel", "kernel", 6, 0444);
	write_text("microvm/initrd", "initrd", 6, 0444);
	write_text("microvm/usr.erofs", "erofs", 5, 0400);
	write_text("microvm/blank", "", 0, 0400);
	write_text("microvm/ram-256", memory, strlen(memory), 0400);
	write_text("microvm/state-256", "state", 5, 0400);
	m.classes[0].mib = 256;
	snprintf(path, sizeof(path), "%s/microvm/ram-256", folder);
	CHECK_INT(truncate(path, 8192), 0);
	hash_of("kernel", 0, m.kernel);
	hash_of("initrd", 0, m.initrd);
	hash_of("ram-256", 1, m.classes[0].ram);
	hash_of("state-256", 0, m.classes[0].state);
	vm_manifest_print(&m, &text);
	write_text("microvm/manifest", text.p, text.len, 0400);
}

static int launch(uint64_t mem_bytes, struct jail_engine *out, struct err *e)
{
	struct tier_host h = { .dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	struct wire_tier_facts f = { .engine = "/usr/bin/qemu" };
	struct wire_box about = { .limits = { .mem_bytes = mem_bytes } };
	struct spec sp = { .disk_bytes = 1 << 20, .disk_files = 100 };
	int done;

	memset(f.sha256, 'e', VM_HEX - 1);
	*out = (struct jail_engine){ .tier = JAIL_MICROVM };
	done = qemu_outer_box(&h, &f, &about, &sp, out, e);
	close(h.dir);
	return done;
}

TEST(a_box_of_a_class_continues_the_template_and_a_larger_one_boots)
{
	struct jail_engine engine;
	struct err e = { 0 };
	char bytes[64];

	new_folder();
	write_prepared("memory of a template");
	if (launch(64 << 20, &engine, &e) < 0)
		CHECK_STR(e.msg, "");
	CHECK_INT(engine.nfds, QEMU_FD_END - JAIL_ENGINE_FD);
	for (unsigned i = 0; i < engine.nfds; i++)
		CHECK(fcntl(engine.fds[i], F_GETFD) >= 0);
	/* No box can change the memory that others start from. */
	CHECK_INT(pwrite(engine.fds[QEMU_FD_INITRD - JAIL_ENGINE_FD], "x", 1, 0), -1);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
		   engine.fds[QEMU_FD_INITRD - JAIL_ENGINE_FD], 0) == MAP_FAILED);
	CHECK_INT(read(engine.fds[QEMU_FD_STATE - JAIL_ENGINE_FD], bytes, sizeof(bytes)), 5);
	CHECK_INT(read(engine.fds[QEMU_FD_READY - JAIL_ENGINE_FD], bytes, sizeof(bytes)),
		  sizeof(struct vm_start));
	qemu_release(&engine);
	CHECK_INT(launch(UINT64_C(4) << 30, &engine, &e), 0);
	CHECK_INT(engine.nfds, QEMU_FD_STATE - JAIL_ENGINE_FD);
	qemu_release(&engine);
	qemu_release(&engine); /* twice is fine */
	remove_folder();
}

TEST(no_box_starts_from_a_template_with_one_changed_byte)
{
	static const char *const names[] = { "ram-256", "state-256" };
	struct jail_engine engine;
	struct err e;
	char path[160];

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		new_folder();
		write_prepared(i == 0 ? "memory of another template"
				      : "memory of a third template");
		snprintf(path, sizeof(path), "%s/microvm/%s", folder, names[i]);

		auto_fd int fd = open(path, O_RDWR | O_CLOEXEC);

		CHECK_INT(pwrite(fd, "x", 1, 2), 1);
		CHECK_INT(launch(64 << 20, &engine, &e), -1);
		CHECK(strstr(e.msg, names[i]) &&
		      strstr(e.msg, "has changed since it was prepared"));
		qemu_release(&engine);
		remove_folder();
	}
}

TEST(what_another_version_of_qemu_has_prepared_is_not_used)
{
	struct tier_host h = { .init_exe = -1, .mux_exe = -1, .skeleton = -1 };
	static const char script[] = "#!/bin/sh\necho QEMU emulator version 7.2.0\n";
	struct wire_tier_facts f = { .tier = WIRE_TIER_MICROVM };
	char path[160];
	struct err e;

	new_folder();
	CHECK_INT(chmod(folder, 0755), 0);
	write_prepared("memory of a fourth template");
	write_text("qemu", script, strlen(script), 0755);
	snprintf(path, sizeof(path), "%s/qemu", folder);
	h.dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(qemu_probe_path(path, &h, &f, &e), 0);
	CHECK_INT(f.state, WIRE_TIER_UNPREPARED);
	CHECK_STR(f.reason,
		  "QEMU has changed since the preparation; repeat: atoll tier prepare microvm");
	close(h.dir);
	remove_folder();
}
