/* vm_manifest.c - see vm_manifest.h. One "name value" a line. */
#include "tier/vm_manifest.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define FORMAT "atoll-microvm 1\n"

enum { PAGE = 4096 };

const unsigned vm_class_mib[VM_CLASSES] = { 256, 512, 1024, 2048 };

/* ---- the text ---- */

static int manifest_is_hex(const char *s)
{
	for (unsigned i = 0; i < VM_HEX - 1; i++)
		if (hex_digit(s[i]) < 0)
			return 0;
	return s[VM_HEX - 1] == 0;
}

static char *manifest_hash_place(struct vm_manifest *m, const char *name)
{
	unsigned mib;
	int end = 0;

	if (!strcmp(name, "engine"))
		return m->engine;
	if (!strcmp(name, "init"))
		return m->init;
	if (!strcmp(name, "mux"))
		return m->mux;
	if (!strcmp(name, "kernel"))
		return m->kernel;
	if (!strcmp(name, "initrd"))
		return m->initrd;
	if (!strcmp(name, "usr-key"))
		return m->usr_key;
	if ((sscanf(name, "ram-%u%n", &mib, &end) != 1 &&
	     sscanf(name, "state-%u%n", &mib, &end) != 1) ||
	    name[end])
		return NULL;
	for (unsigned i = 0; i < m->nclasses; i++)
		if (m->classes[i].mib == mib)
			return name[0] == 'r' ? m->classes[i].ram : m->classes[i].state;
	if (m->nclasses == VM_CLASSES)
		return NULL;
	m->classes[m->nclasses].mib = mib;
	return name[0] == 'r' ? m->classes[m->nclasses++].ram : m->classes[m->nclasses++].state;
}

static int manifest_set(struct vm_manifest *m, const char *name, const char *value)
{
	unsigned long long n;
	char *hash;
	int end = 0;

	if (!strcmp(name, "platform") && (!strcmp(value, "kvm") || !strcmp(value, "tcg")))
		return snprintf(m->platform, sizeof(m->platform), "%s", value) > 0 ? 0 : -1;
	if (!strcmp(name, "release") && value[0] && strlen(value) < sizeof(m->release))
		return snprintf(m->release, sizeof(m->release), "%s", value) > 0 ? 0 : -1;
	if (!strcmp(name, "vcpus") || !strcmp(name, "usr-bytes") || !strcmp(name, "classes")) {
		if (value[0] < '0' || value[0] > '9' || sscanf(value, "%llu%n", &n, &end) != 1 ||
		    value[end])
			return -1;
		if (name[0] == 'v')
			m->vcpus = n <= 64 ? (unsigned)n : 0;
		else if (name[0] == 'c')
			return n == m->nclasses ? 1 : -1; /* the last line */
		else
			m->usr_bytes = n;
		return 0;
	}
	hash = manifest_hash_place(m, name);
	if (!hash || !manifest_is_hex(value))
		return -1;
	memcpy(hash, value, VM_HEX);
	return 0;
}

static int manifest_is_complete(const struct vm_manifest *m)
{
	for (unsigned i = 0; i < m->nclasses; i++)
		if (!m->classes[i].ram[0] || !m->classes[i].state[0] || !m->classes[i].mib)
			return 0;
	return m->engine[0] && m->platform[0] && m->vcpus && m->release[0] && m->init[0] &&
	       m->mux[0] && m->kernel[0] && m->initrd[0] && m->usr_key[0] && m->usr_bytes;
}

#define AGAIN "; repeat: atoll tier prepare microvm"

int vm_manifest_parse(const char *text, struct vm_manifest *out, struct err *e)
{
	char line[200], *space;
	int done = 0;

	*out = (struct vm_manifest){ .vcpus = 0 };
	if (strncmp(text, FORMAT, sizeof(FORMAT) - 1) != 0)
		return err_set(e, ERR_INVALID,
			       "the files were prepared by another version of Atoll" AGAIN);
	for (text += sizeof(FORMAT) - 1; *text;) {
		size_t n = strcspn(text, "\n");

		if (n >= sizeof(line) || text[n] != '\n')
			return err_set(e, ERR_INVALID,
				       "the list of prepared files is truncated" AGAIN);
		memcpy(line, text, n);
		line[n] = 0;
		text += n + 1;
		space = strchr(line, ' ');
		if (space)
			*space++ = 0;
		if (done || !space || (done = manifest_set(out, line, space)) < 0)
			return err_set(
				e, ERR_INVALID,
				"line '%.40s' of the list of prepared files is invalid" AGAIN,
				line);
	}
	if (!done || !manifest_is_complete(out))
		return err_set(e, ERR_INVALID, "the list of prepared files is incomplete" AGAIN);
	return 0;
}

void vm_manifest_print(const struct vm_manifest *m, struct buf *out)
{
	buf_printf(out, FORMAT "engine %s\nplatform %s\nvcpus %u\nrelease %s\n", m->engine,
		   m->platform, m->vcpus, m->release);
	buf_printf(out, "init %s\nmux %s\nkernel %s\ninitrd %s\nusr-key %s\nusr-bytes %llu\n",
		   m->init, m->mux, m->kernel, m->initrd, m->usr_key,
		   (unsigned long long)m->usr_bytes);
	for (unsigned i = 0; i < m->nclasses; i++)
		buf_printf(out, "ram-%u %s\nstate-%u %s\n", m->classes[i].mib, m->classes[i].ram,
			   m->classes[i].mib, m->classes[i].state);
	buf_printf(out, "classes %u\n", m->nclasses);
}

int vm_manifest_read(int dir, struct vm_manifest *out, struct err *e)
{
	auto_fd int fd =
		dir < 0 ? -1 : openat(dir, "microvm/manifest", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[VM_MANIFEST + 1];
	ssize_t n;

	if (fd < 0 && (dir < 0 || errno == ENOENT))
		return err_set(e, ERR_NOT_FOUND, "not prepared (atoll tier prepare microvm)");
	if (fd < 0)
		return err_sys(e, "open the list of prepared files");
	n = read(fd, text, VM_MANIFEST);
	if (n < 0)
		return err_sys(e, "read the list of prepared files");
	text[n] = 0;
	return vm_manifest_parse(text, out, e);
}

/* ---- classes ---- */

static uint64_t manifest_mib(uint64_t bytes)
{
	return (bytes + (1 << 20) - 1) >> 20;
}

const struct vm_class *vm_class_for(const struct vm_manifest *m, uint64_t mem_bytes)
{
	unsigned want = vm_guest_mib(mem_bytes) - VM_SPARE_MIB;

	for (unsigned i = 0; i < m->nclasses; i++)
		if (m->classes[i].mib == want)
			return &m->classes[i];
	return NULL;
}

unsigned vm_guest_mib(uint64_t mem_bytes)
{
	uint64_t mib = manifest_mib(mem_bytes);

	for (unsigned i = 0; i < VM_CLASSES; i++)
		if (mib <= vm_class_mib[i])
			return vm_class_mib[i] + VM_SPARE_MIB;
	return (unsigned)(mib + VM_SPARE_MIB);
}

/* ---- hashes ---- */

static int manifest_is_zero(const char *page)
{
	return page[0] == 0 && memcmp(page, page + 1, PAGE - 1) == 0;
}

uint64_t vm_skip_hole(int fd, uint64_t at)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);

	if (data >= 0)
		return (uint64_t)data / PAGE * PAGE;
	data = errno == ENXIO ? lseek(fd, 0, SEEK_END) : -1;
	return data > (off_t)at ? (uint64_t)data : at;
}

int vm_hash(int fd, int pages, char out_hex[VM_HEX], struct err *e)
{
	auto_free char *block = malloc(256 * PAGE);
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;
	uint64_t at = 0;
	ssize_t n;

	if (!block)
		abort();
	sha256_init(&s);
	for (;;) {
		at = pages ? vm_skip_hole(fd, at) : at;
		n = pread(fd, block, 256 * PAGE, (off_t)at);
		if (n <= 0)
			break;
		if (!pages)
			sha256_add(&s, block, (size_t)n);
		for (ssize_t i = 0; pages && i + PAGE <= n; i += PAGE) {
			uint64_t number = (at + (uint64_t)i) / PAGE;

			if (manifest_is_zero(block + i))
				continue;
			sha256_add(&s, &number, sizeof(number));
			sha256_add(&s, block + i, PAGE);
		}
		at += (uint64_t)n;
	}
	if (n < 0)
		return err_sys(e, "read a prepared file");
	sha256_add(&s, &at, sizeof(at));
	sha256_end(&s, sum);
	hex_encode(out_hex, sum, sizeof(sum));
	return 0;
}
