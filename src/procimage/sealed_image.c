/* sealed_image.c - see sealed_image.h. */
#include "procimage/sealed_image.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "procimage/image.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct file_head { /* little endian, as both architectures are */
	char magic[8];
	uint32_t version, arch, page_bytes, frame_bytes;
	char checkpoint[ID_MAX + 1];
	uint8_t team[SEALED_TEAM];
	uint8_t key_id[SEALED_KEY_ID];
	/* The key of the file, encrypted; everything above is authenticated. */
	uint8_t key[SEALED_KEY];
	uint8_t nonce[SEALED_NONCE], pad[4];
};
_Static_assert(sizeof(struct file_head) == SEALED_HEAD, "the head has no holes");

struct frame_head {
	uint32_t bytes, last;
};

static const char magic[8] = "ATLIMAGE";

/* ---- bytes ---- */

static int file_put(struct sealed_image *f, const void *bytes, size_t n, struct err *e)
{
	for (size_t done = 0; done < n;) {
		ssize_t k = write(f->fd, (const char *)bytes + done, n - done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return err_sys(e, "write the process image");
		done += (size_t)k;
	}
	f->bytes += n;
	return 0;
}

/* The number of bytes: fewer than n only at the end of the file. */
static ssize_t file_get(struct sealed_image *f, void *to, size_t n, struct err *e)
{
	size_t done = 0;

	while (done < n) {
		ssize_t k = read(f->fd, (char *)to + done, n - done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return err_sys(e, "read the process image");
		if (k == 0)
			break;
		done += (size_t)k;
	}
	f->bytes += done;
	return (ssize_t)done;
}

static int file_truncated(const struct sealed_image *f, struct err *e)
{
	return err_set(e, ERR_CONFLICT, "the file of the process image is truncated at %llu bytes",
		       (unsigned long long)f->bytes);
}

/* ---- keys ---- */

static void file_hash(const char *label, const void *bytes, size_t n, void *out, size_t out_n)
{
	uint8_t hash[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, label, strlen(label) + 1);
	sha256_add(&s, bytes, n);
	sha256_end(&s, hash);
	memcpy(out, hash, out_n);
}

static void file_key_id(const uint8_t key[SEALED_KEY], uint8_t out[SEALED_KEY_ID])
{
	file_hash("atoll key of process images", key, SEALED_KEY, out, SEALED_KEY_ID);
}

void sealed_image_key_id(const uint8_t key[SEALED_KEY], char out[2 * SEALED_KEY_ID + 1])
{
	uint8_t id[SEALED_KEY_ID];

	file_key_id(key, id);
	hex_encode(out, id, sizeof(id));
}

static int file_crypto_failed(struct err *e)
{
	return err_set(e, ERR_SYS, "process image: OpenSSL has failed");
}

/* Encrypts or decrypts in place. The tag is written, or compared: -1. */
static int file_crypt(EVP_CIPHER_CTX *c, int encrypt, const uint8_t *key, const uint8_t *nonce,
		      const void *also, size_t also_n, uint8_t *bytes, size_t n, uint8_t *tag)
{
	int len = 0, last = 0;

	if (EVP_CipherInit_ex(c, key ? EVP_aes_256_gcm() : NULL, NULL, key, nonce, encrypt) != 1 ||
	    EVP_CipherUpdate(c, NULL, &len, also, (int)also_n) != 1 ||
	    (n && EVP_CipherUpdate(c, bytes, &len, bytes, (int)n) != 1) ||
	    (!encrypt && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, SEALED_TAG, tag) != 1) ||
	    EVP_CipherFinal_ex(c, bytes + n, &last) != 1)
		return -1;
	return encrypt && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, SEALED_TAG, tag) != 1 ? -1
											     : 0;
}

/* ---- head ---- */

static void file_describe(struct file_head *h, const struct sealed_image_about *a,
			  const uint8_t key[SEALED_KEY])
{
	struct image own;

	procimage_init(&own);
	*h = (struct file_head){ .version = SEALED_VERSION,
				 .arch = own.header.arch,
				 .page_bytes = own.header.page_bytes,
				 .frame_bytes = SEALED_FRAME };
	procimage_fini(&own);
	memcpy(h->magic, magic, sizeof(magic));
	memcpy(h->checkpoint, a->checkpoint, strnlen(a->checkpoint, ID_MAX));
	file_hash("team", a->team, strlen(a->team), h->team, sizeof(h->team));
	file_key_id(key, h->key_id);
}

static int file_init(struct sealed_image *f, int fd)
{
	*f = (struct sealed_image){ .fd = fd, .cipher = EVP_CIPHER_CTX_new() };
	/* With room for a tag after the largest frame. */
	f->frame = malloc(SEALED_FRAME + SEALED_TAG);
	if (!f->frame)
		abort();
	return f->cipher ? 0 : -1;
}

static void file_frame_nonce(uint64_t number, uint8_t nonce[SEALED_NONCE])
{
	memset(nonce, 0, SEALED_NONCE);
	memcpy(nonce, &number, sizeof(number));
}

/* The key of the file is set once; frames change only the nonce. */
static int file_set_key(struct sealed_image *f, int encrypt, const uint8_t *key)
{
	return EVP_CipherInit_ex(f->cipher, EVP_aes_256_gcm(), NULL, key, NULL, encrypt) == 1 ? 0
											      : -1;
}

int sealed_image_create(struct sealed_image *f, int fd, const struct sealed_image_about *a,
			const uint8_t key[SEALED_KEY], struct err *e)
{
	uint8_t own[SEALED_KEY], tag[SEALED_TAG];
	struct file_head h;
	int ok = file_init(f, fd) == 0;

	file_describe(&h, a, key);
	if (id_random(own, sizeof(own), e) < 0 || id_random(h.nonce, sizeof(h.nonce), e) < 0)
		return -1;
	memcpy(h.key, own, sizeof(own));
	ok = ok &&
	     file_crypt(f->cipher, 1, key, h.nonce, &h, offsetof(struct file_head, key), h.key,
			sizeof(h.key), tag) == 0 &&
	     file_set_key(f, 1, own) == 0;
	explicit_bzero(own, sizeof(own));
	if (!ok)
		return file_crypto_failed(e);
	return file_put(f, &h, sizeof(h), e) < 0 ? -1 : file_put(f, tag, sizeof(tag), e);
}

static int file_check_head(const struct file_head *h, const struct file_head *own, struct err *e)
{
	char has[2 * SEALED_KEY_ID + 1], wants[2 * SEALED_KEY_ID + 1];

	if (memcmp(h->magic, own->magic, sizeof(h->magic)) != 0)
		return err_set(e, ERR_CONFLICT, "this is no file of a process image");
	if (h->version != own->version)
		return err_set(e, ERR_CONFLICT,
			       "file of a process image of version %u, this program reads %u",
			       h->version, own->version);
	if (h->arch != own->arch || h->page_bytes != own->page_bytes)
		return err_set(e, ERR_CONFLICT,
			       "process image of another architecture (%u, pages of %u bytes; this "
			       "machine: %u, %u)",
			       h->arch, h->page_bytes, own->arch, own->page_bytes);
	if (memcmp(h->checkpoint, own->checkpoint, sizeof(h->checkpoint)) != 0)
		return err_set(e, ERR_CONFLICT, "process image of checkpoint %.15s, not of %.15s",
			       h->checkpoint, own->checkpoint);
	if (memcmp(h->team, own->team, sizeof(h->team)) != 0)
		return err_set(e, ERR_CONFLICT, "process image of another team");
	hex_encode(has, h->key_id, sizeof(h->key_id));
	hex_encode(wants, own->key_id, sizeof(own->key_id));
	if (strcmp(has, wants) != 0)
		return err_set(e, ERR_CONFLICT,
			       "the process image was encrypted with key %s, this machine has %s: "
			       "restore the file checkpoints/key of the state folder",
			       has, wants);
	return 0;
}

int sealed_image_open(struct sealed_image *f, int fd, const struct sealed_image_about *a,
		      const uint8_t key[SEALED_KEY], struct err *e)
{
	struct {
		struct file_head h;
		uint8_t tag[SEALED_TAG];
	} in;
	struct file_head own;
	ssize_t n;
	int ok;

	if (file_init(f, fd) < 0)
		return file_crypto_failed(e);
	file_describe(&own, a, key);
	n = file_get(f, &in, sizeof(in), e);
	if (n < 0)
		return -1;
	if (n < (ssize_t)sizeof(in))
		return file_truncated(f, e);
	if (file_check_head(&in.h, &own, e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(in.h.pad); i++)
		if (in.h.pad[i])
			return err_set(e, ERR_CONFLICT,
				       "the head of the process image was changed");
	ok = in.h.frame_bytes == SEALED_FRAME &&
	     file_crypt(f->cipher, 0, key, in.h.nonce, &in.h, offsetof(struct file_head, key),
			in.h.key, sizeof(in.h.key), in.tag) == 0 &&
	     file_set_key(f, 0, in.h.key) == 0;
	explicit_bzero(in.h.key, sizeof(in.h.key));
	return ok ? 0 : err_set(e, ERR_CONFLICT, "the head of the process image was changed");
}

/* ---- frames ---- */

static int file_write_frame(struct sealed_image *f, int last, struct err *e)
{
	const struct frame_head h = { f->have, (uint32_t)last };
	uint8_t nonce[SEALED_NONCE];

	file_frame_nonce(f->number++, nonce);
	if (file_crypt(f->cipher, 1, NULL, nonce, &h, sizeof(h), f->frame, f->have,
		       f->frame + f->have) < 0)
		return file_crypto_failed(e);
	if (file_put(f, &h, sizeof(h), e) < 0 || file_put(f, f->frame, f->have + SEALED_TAG, e) < 0)
		return -1;
	f->have = 0;
	return 0;
}

static int file_read_frame(struct sealed_image *f, struct err *e)
{
	uint8_t nonce[SEALED_NONCE];
	struct frame_head h;
	ssize_t n = file_get(f, &h, sizeof(h), e);

	if (n < 0)
		return -1;
	if (n < (ssize_t)sizeof(h))
		return file_truncated(f, e);
	if (h.bytes > SEALED_FRAME || h.last > 1 || (!h.last && h.bytes != SEALED_FRAME))
		return err_set(e, ERR_CONFLICT, "frame %llu of the process image was changed",
			       (unsigned long long)f->number);
	n = file_get(f, f->frame, h.bytes + SEALED_TAG, e);
	if (n < 0)
		return -1;
	if (n < (ssize_t)h.bytes + SEALED_TAG)
		return file_truncated(f, e);
	file_frame_nonce(f->number, nonce);
	if (file_crypt(f->cipher, 0, NULL, nonce, &h, sizeof(h), f->frame, h.bytes,
		       f->frame + h.bytes) < 0)
		return err_set(e, ERR_CONFLICT, "frame %llu of the process image was changed",
			       (unsigned long long)f->number);
	f->number++;
	f->at = 0;
	f->have = h.bytes;
	f->last = (int)h.last;
	if (f->last && file_get(f, &h, 1, e) != 0)
		return err_set(e, ERR_CONFLICT, "the process image has bytes after its end");
	return 0;
}

/* ---- stream ---- */

static int file_add(struct sealed_image *f, const void *bytes, size_t n, struct err *e)
{
	while (n) {
		size_t room = SEALED_FRAME - f->have, k = n < room ? n : room;

		memcpy(f->frame + f->have, bytes, k);
		f->have += (uint32_t)k;
		bytes = (const char *)bytes + k;
		n -= k;
		if (f->have == SEALED_FRAME && file_write_frame(f, 0, e) < 0)
			return -1;
	}
	return 0;
}

/* to: NULL: the bytes are skipped. The number of bytes: fewer only at the end of the stream. */
static int64_t file_take(struct sealed_image *f, void *to, uint64_t n, struct err *e)
{
	uint64_t done = 0;

	while (done < n) {
		uint64_t k = n - done;

		if (f->at == f->have) {
			if (f->last)
				break;
			if (file_read_frame(f, e) < 0)
				return -1;
			continue;
		}
		if (k > f->have - f->at)
			k = f->have - f->at;
		if (to)
			memcpy((char *)to + done, f->frame + f->at, k);
		f->at += (uint32_t)k;
		done += k;
	}
	return (int64_t)done;
}

int sealed_image_begin(struct sealed_image *f, const struct sealed_image_section *x, struct err *e)
{
	if (f->left || !x->kind || x->kind >= SEALED_KINDS || x->bytes > SEALED_MOST)
		return err_set(e, ERR_LIMIT, "a section of %llu bytes does not fit a process image",
			       (unsigned long long)x->bytes);
	f->left = x->bytes;
	return file_add(f, x, sizeof(*x), e);
}

int sealed_image_add(struct sealed_image *f, const void *bytes, size_t n, struct err *e)
{
	if (n > f->left)
		return err_set(e, ERR_SYS, "more bytes than the section of the process image has");
	f->left -= n;
	return file_add(f, bytes, n, e);
}

int sealed_image_end(struct sealed_image *f, struct err *e)
{
	if (f->left)
		return err_set(e, ERR_SYS, "fewer bytes than the section of the process image has");
	return file_write_frame(f, 1, e);
}

static int file_section_cut(struct err *e)
{
	return err_set(e, ERR_CONFLICT, "a section of the process image ends beyond the file");
}

int sealed_image_next(struct sealed_image *f, struct sealed_image_section *out, struct err *e)
{
	struct sealed_image_section x;
	int64_t n = file_take(f, NULL, f->left, e);

	if (n < 0)
		return -1;
	if ((uint64_t)n < f->left)
		return file_section_cut(e);
	f->left = 0;
	n = file_take(f, &x, sizeof(x), e);
	if (n <= 0)
		return (int)n;
	if (n < (int64_t)sizeof(x))
		return file_section_cut(e);
	if (!x.kind || x.kind >= SEALED_KINDS || x.bytes > SEALED_MOST)
		return err_set(e, ERR_CONFLICT,
			       "the process image has a section of kind %u with "
			       "%llu bytes",
			       x.kind, (unsigned long long)x.bytes);
	f->left = x.bytes;
	*out = x;
	return 1;
}

int sealed_image_read(struct sealed_image *f, void *to, size_t n, struct err *e)
{
	int64_t got;

	if (n > f->left)
		return err_set(e, ERR_CONFLICT, "a section of the process image is too short");
	got = file_take(f, to, n, e);
	if (got < 0)
		return -1;
	if ((size_t)got < n)
		return file_section_cut(e);
	f->left -= n;
	return 0;
}

void sealed_image_fini(struct sealed_image *f)
{
	if (f->frame)
		explicit_bzero(f->frame, SEALED_FRAME);
	free(f->frame);
	EVP_CIPHER_CTX_free(f->cipher);
	*f = (struct sealed_image){ .fd = -1 };
}
