/* sealed_image_fuzz.c - any bytes as the file of a process image; a valid file with any bytes of it changed; and any bytes
 * as the stream of sections that was encrypted with the right key. Only the second can be read, and only unchanged. */
#include "fuzz.h"
#include "base/hex.h"
#include "procimage/sealed_image.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t key[SEALED_KEY] = "a key of 32 bytes for the fuzzer";
static const struct sealed_image_about about = { .checkpoint = "aaaabbbbcccc", .team = "blue" };
static const char content[] = "the pages of a program";
enum { START = SEALED_HEAD + SEALED_TAG, OWN_KEY = SEALED_HEAD - 48, NONCE = 64 };

static int write_new(struct sealed_image *f)
{
	int fd = memfd_create("image", MFD_CLOEXEC);
	struct err e;

	*f = (struct sealed_image){ 0 };
	assert(sealed_image_create(f, fd, &about, key, &e) == 0);
	return fd;
}

/* All sections; 1: it is complete. */
static int read_all(int fd, char *out, size_t room, size_t *len)
{
	struct sealed_image f = { 0 };
	struct sealed_image_section x;
	struct err e = { 0 };
	int rc, more = 1;

	*len = 0;
	lseek(fd, 0, SEEK_SET);
	rc = sealed_image_open(&f, fd, &about, key, &e);
	while (rc == 0 && (more = sealed_image_next(&f, &x, &e)) == 1) {
		assert(x.kind && x.kind < SEALED_KINDS && x.bytes <= SEALED_MOST);
		if (x.bytes > room - *len) /* the rest is skipped */
			continue;
		rc = sealed_image_read(&f, out + *len, x.bytes, &e);
		*len += x.bytes;
	}
	rc = rc == 0 && more == 0;
	assert(rc || (e.kind && e.msg[0]));
	sealed_image_fini(&f);
	return rc;
}

static void try_file(const uint8_t *bytes, size_t len)
{
	int fd = memfd_create("image", MFD_CLOEXEC);
	char out[4096];
	size_t n;

	assert(write(fd, bytes, len) == (ssize_t)len);
	assert(!read_all(fd, out, sizeof(out), &n));
	close(fd);
}

static void try_changed(const uint8_t *bytes, size_t len)
{
	struct sealed_image f;
	int fd = write_new(&f), changed = 0;
	char out[4096];
	struct stat st;
	struct err e;
	size_t n;

	assert(sealed_image_begin(&f, &(struct sealed_image_section){ 1, 0, sizeof(content) },
				  &e) == 0);
	assert(sealed_image_add(&f, content, sizeof(content), &e) == 0 &&
	       sealed_image_end(&f, &e) == 0);
	sealed_image_fini(&f);
	assert(fstat(fd, &st) == 0);
	for (size_t i = 0; i + 3 <= len; i += 3) {
		off_t at = (bytes[i] << 8 | bytes[i + 1]) % st.st_size;
		uint8_t now;

		assert(pread(fd, &now, 1, at) == 1);
		now ^= bytes[i + 2];
		assert(pwrite(fd, &now, 1, at) == 1);
		changed = 1;
	}
	if (read_all(fd, out, sizeof(out), &n))
		assert(n == sizeof(content) && !memcmp(out, content, n));
	else
		assert(changed);
	close(fd);
}

/* The key of the file, from its head; that needs the key of the machine. */
static void unwrap(int fd, uint8_t own[SEALED_KEY])
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t head[START];
	int n;

	assert(pread(fd, head, START, 0) == START);
	assert(EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, head + OWN_KEY + SEALED_KEY) ==
	       1);
	assert(EVP_DecryptUpdate(c, NULL, &n, head, OWN_KEY) == 1);
	assert(EVP_DecryptUpdate(c, own, &n, head + OWN_KEY, SEALED_KEY) == 1);
	assert(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, SEALED_TAG, head + SEALED_HEAD) == 1);
	assert(EVP_DecryptFinal_ex(c, own, &n) == 1);
	EVP_CIPHER_CTX_free(c);
}

static void try_stream(const uint8_t *bytes, size_t len)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	struct sealed_image f;
	int fd = write_new(&f), n = 0;
	uint8_t own[SEALED_KEY], nonce[SEALED_NONCE] = { 0 }, tag[SEALED_TAG];
	struct {
		uint32_t bytes, last;
	} h = { (uint32_t)len, 1 };
	uint8_t *to = malloc(len + 1);
	char out[4096];
	size_t read;

	sealed_image_fini(&f);
	unwrap(fd, own);
	assert(EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, own, nonce) == 1);
	assert(EVP_EncryptUpdate(c, NULL, &n, (const uint8_t *)&h, sizeof(h)) == 1);
	assert(!len || EVP_EncryptUpdate(c, to, &n, bytes, (int)len) == 1);
	assert(EVP_EncryptFinal_ex(c, to, &n) == 1);
	assert(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, SEALED_TAG, tag) == 1);
	assert(write(fd, &h, sizeof(h)) == sizeof(h) && write(fd, to, len) == (ssize_t)len);
	assert(write(fd, tag, sizeof(tag)) == sizeof(tag));
	(void)read_all(fd, out, sizeof(out), &read);
	EVP_CIPHER_CTX_free(c);
	free(to);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (len > SEALED_FRAME)
		return 0;
	try_file(bytes, len);
	try_changed(bytes, len);
	try_stream(bytes, len);
	return 0;
}
