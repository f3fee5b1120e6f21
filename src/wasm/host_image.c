/* host_image.c - see host.h: the state of an initialised module in a file. Every run maps that file
 * privately and continues where the preparation stopped, so that no interpreter starts twice.
 *
 *   header | stack of the module | table of functions | globals | linear memory     each from a page on
 *
 * Pages of zeros are holes. The state is valid for one executable, which is linked together with it. */
#include "wasm/host.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef HOST_TAG
#define HOST_TAG "test"
#endif
#define IMAGE_PAGE 4096u

struct image_header {
	char magic[16], tag[72];
	uint64_t stack_bytes, table_bytes, instance_bytes, memory_bytes;
	uint64_t regs[24];
};
static const char image_magic[16] = "atoll-wasm 1";

static struct {
	struct image_header header;
	bool initialised;
	int fd;
} image = { .fd = -1 };

/* ---- registers ---- */

/* As setjmp() and longjmp(), which encrypt addresses with a value of the process. */
__attribute__((returns_twice)) int image_regs_save(uint64_t regs[24]);
__attribute__((noreturn)) void image_regs_load(const uint64_t regs[24]);
__attribute__((noreturn)) void image_call_on(void *top, void (*f)(void));
#if defined(__x86_64__)
__asm__(".text\n"
	"image_regs_save:\n"
	"	mov %rbx, (%rdi)\n	mov %rbp, 8(%rdi)\n	mov %r12, 16(%rdi)\n	mov %r13, 24(%rdi)\n"
	"	mov %r14, 32(%rdi)\n	mov %r15, 40(%rdi)\n	lea 8(%rsp), %rax\n	mov %rax, 48(%rdi)\n"
	"	mov (%rsp), %rax\n	mov %rax, 56(%rdi)\n	xor %eax, %eax\n	ret\n"
	"image_regs_load:\n"
	"	mov (%rdi), %rbx\n	mov 8(%rdi), %rbp\n	mov 16(%rdi), %r12\n	mov 24(%rdi), %r13\n"
	"	mov 32(%rdi), %r14\n	mov 40(%rdi), %r15\n	mov 48(%rdi), %rsp\n	mov $1, %eax\n"
	"	jmp *56(%rdi)\n"
	"image_call_on:\n"
	"	mov %rdi, %rsp\n	xor %ebp, %ebp\n	call *%rsi\n	ud2\n");
enum { IMAGE_SP = 6 };
#elif defined(__aarch64__)
__asm__(".text\n"
	"image_regs_save:\n"
	"	stp x19, x20, [x0]\n	stp x21, x22, [x0, 16]\n	stp x23, x24, [x0, 32]\n"
	"	stp x25, x26, [x0, 48]\n	stp x27, x28, [x0, 64]\n	stp x29, x30, [x0, 80]\n"
	"	stp d8, d9, [x0, 96]\n	stp d10, d11, [x0, 112]\n	stp d12, d13, [x0, 128]\n"
	"	stp d14, d15, [x0, 144]\n	mov x1, sp\n	str x1, [x0, 160]\n	mov w0, 0\n	ret\n"
	"image_regs_load:\n"
	"	ldp x19, x20, [x0]\n	ldp x21, x22, [x0, 16]\n	ldp x23, x24, [x0, 32]\n"
	"	ldp x25, x26, [x0, 48]\n	ldp x27, x28, [x0, 64]\n	ldp x29, x30, [x0, 80]\n"
	"	ldp d8, d9, [x0, 96]\n	ldp d10, d11, [x0, 112]\n	ldp d12, d13, [x0, 128]\n"
	"	ldp d14, d15, [x0, 144]\n	ldr x1, [x0, 160]\n	mov sp, x1\n	mov w0, 1\n	ret\n"
	"image_call_on:\n"
	"	mov sp, x0\n	mov x29, 0\n	blr x1\n	brk 1\n");
enum { IMAGE_SP = 20 };
#endif

/* ---- parts ---- */

static uint64_t image_round(uint64_t n)
{
	return (n + IMAGE_PAGE - 1) / IMAGE_PAGE * IMAGE_PAGE;
}

struct image_part {
	uint8_t *at;
	uint64_t bytes, offset;
};
enum { PART_STACK, PART_TABLE, PART_INSTANCE, PART_MEMORY, PARTS };

static void image_parts(const struct image_header *h, struct image_part out[PARTS])
{
	uint64_t offset = image_round(sizeof *h);

	out[PART_STACK] = (struct image_part){ HOST_STACK + HOST_STACK_SPAN - h->stack_bytes,
					       h->stack_bytes, 0 };
	out[PART_TABLE] = (struct image_part){ HOST_TABLE, h->table_bytes, 0 };
	out[PART_INSTANCE] = (struct image_part){ wasm_instance, h->instance_bytes, 0 };
	out[PART_MEMORY] = (struct image_part){ WASM_RT_MEMORY, h->memory_bytes, 0 };
	for (int i = 0; i < PARTS; i++) {
		out[i].offset = offset;
		offset += image_round(out[i].bytes);
	}
}

/* ---- write ---- */

static bool image_write(int fd, const uint8_t *bytes, uint64_t n, uint64_t offset)
{
	for (uint64_t done = 0; done < n;) {
		uint64_t k = n - done < IMAGE_PAGE ? n - done : IMAGE_PAGE;
		bool zeros = bytes[done] == 0 && !memcmp(bytes + done, bytes + done + 1, k - 1);

		if (!zeros && pwrite(fd, bytes + done, k, (off_t)(offset + done)) != (ssize_t)k)
			return false;
		done += k;
	}
	return true;
}

static void image_save(uint64_t regs[24])
{
	struct image_header h = { 0 };
	struct image_part parts[PARTS];
	uint8_t *sp = (uint8_t *)regs[IMAGE_SP];
	int fd = open(host.save, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	bool ok;

	memcpy(h.magic, image_magic, sizeof h.magic);
	strncpy(h.tag, HOST_TAG, sizeof h.tag - 1);
	memcpy(h.regs, regs, sizeof h.regs);
	/* Below the stack pointer there may be values that the code still uses (red zone). */
	h.stack_bytes = image_round((uint64_t)(HOST_STACK + HOST_STACK_SPAN - sp) + 256);
	h.table_bytes = image_round(HOST_TABLE_SPAN);
	while (h.table_bytes && HOST_TABLE[h.table_bytes - 1] == 0)
		h.table_bytes--;
	h.table_bytes = image_round(h.table_bytes);
	h.instance_bytes = wasm_instance_bytes;
	h.memory_bytes = host_memory_bytes();
	image_parts(&h, parts);
	ok = fd >= 0 &&
	     ftruncate(fd, (off_t)(parts[PART_MEMORY].offset + image_round(h.memory_bytes))) == 0 &&
	     image_write(fd, (const uint8_t *)&h, sizeof h, 0);
	for (int i = 0; ok && i < PARTS; i++)
		ok = image_write(fd, parts[i].at, parts[i].bytes, parts[i].offset);
	if (!ok)
		host_fail("cannot write the image", strerror(errno));
	_exit(0);
}

__attribute__((noinline)) void host_image_point(void)
{
	static uint64_t regs[24];

	if (host.save && image_regs_save(regs) == 0)
		image_save(regs);
}

/* ---- read ---- */

static void image_map(const struct image_part *p)
{
	if (p->bytes && mmap(p->at, image_round(p->bytes), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_FIXED, image.fd, (off_t)p->offset) != p->at)
		host_fail("cannot map the image", strerror(errno));
}

/* The initial memory of the module, without a header. */
static void image_map_data(uint64_t bytes)
{
	struct image_part all = { WASM_RT_MEMORY, bytes, 0 };

	host.pages_of_image = (uint32_t)((bytes + HOST_PAGE - 1) / HOST_PAGE);
	if (!host_allow_memory(host.pages_of_image))
		host_fail("cannot allocate memory", strerror(errno));
	image_map(&all);
}

static bool image_is_valid(uint64_t file_bytes, struct image_part parts[PARTS])
{
	struct image_header *h = &image.header;

	if (pread(image.fd, h, sizeof *h, 0) != sizeof *h ||
	    memcmp(h->magic, image_magic, sizeof h->magic) != 0 ||
	    strncmp(h->tag, HOST_TAG, sizeof h->tag) != 0 ||
	    h->instance_bytes != wasm_instance_bytes || h->stack_bytes > HOST_STACK_SPAN ||
	    h->table_bytes > HOST_TABLE_SPAN || h->memory_bytes > 4ull << 30)
		return false;
	image_parts(h, parts);
	return parts[PART_MEMORY].offset + image_round(h->memory_bytes) == file_bytes;
}

void host_image_open(const char *path)
{
	struct image_part parts[PARTS];
	struct stat st;

	image.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (image.fd < 0 && !host.save) { /* a module that needs no initialisation */
		path = HOST_FOLDER "/data";
		image.fd = open(path, O_RDONLY | O_CLOEXEC);
	} else if (!host.save) {
		image.initialised = true;
	}
	if (image.fd < 0 || fstat(image.fd, &st) < 0)
		host_fail(path, strerror(errno));
	if (!image.initialised) {
		image_map_data((uint64_t)st.st_size);
		close(image.fd);
		return;
	}
	if (!image_is_valid((uint64_t)st.st_size, parts))
		host_fail(
			path,
			"the image does not belong to this executable; atoll tier prepare wasm --force");
	if (image.header.memory_bytes / HOST_PAGE > host.pages_max)
		host_fail("the memory limit is less than the interpreter needs", NULL);
	image_map(&parts[PART_STACK]);
	image_map(&parts[PART_TABLE]);
	image_map(&parts[PART_MEMORY]);
	if (pread(image.fd, wasm_instance, image.header.instance_bytes,
		  (off_t)parts[PART_INSTANCE].offset) != (ssize_t)image.header.instance_bytes)
		host_fail("cannot read the image", strerror(errno));
	close(image.fd);
}

bool host_image_is_initialised(void)
{
	return image.initialised;
}

void host_image_resume(void)
{
	image_regs_load(image.header.regs);
}

static void image_main(void)
{
	wasm_instance_start();
	_exit(0);
}

void host_image_start(void)
{
	image_call_on(HOST_STACK + HOST_STACK_SPAN, image_main);
}
