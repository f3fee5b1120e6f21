/* node_key.c - see node_key.h. */
#include "receipt/node_key.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RAW = 32, FILE_MOST = 4096 };

static int node_key_failed(struct err *e, const char *what)
{
	return err_set(e, ERR_SYS, "key of receipts: OpenSSL cannot %s", what);
}

/* ---- files ---- */

static int node_key_write(int fd, const char *text, size_t n)
{
	while (n) {
		ssize_t did = write(fd, text, n);

		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0)
			return -1;
		text += did;
		n -= (size_t)did;
	}
	return fsync(fd);
}

/* Writes a new file, complete or not at all. EEXIST: another process was faster. */
static int node_key_place(const char *path, const char *text, size_t n, mode_t mode)
{
	char temporary[1200];
	int rc, why;
	auto_fd int fd = -1;

	snprintf(temporary, sizeof(temporary), "%.1100s.%d", path, (int)getpid());
	unlink(temporary); /* of a process that was killed and had this number */
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	rc = node_key_write(fd, text, n) < 0 || fchmod(fd, mode) < 0 ? -1 : link(temporary, path);
	why = errno;
	unlink(temporary);
	errno = why;
	return rc;
}

static int node_key_read_file(const char *path, struct buf *out, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "key of receipts: open %.150s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_CONFLICT, "key of receipts: %.150s is not a file", path);
	if (st.st_mode & 077)
		return err_set(
			e, ERR_CONFLICT,
			"key of receipts: other users can read %.100s (mode %03o); type: chmod 600 %.60s",
			path, (unsigned)st.st_mode & 0777, path);
	n = read(fd, buf_space(out, FILE_MOST), FILE_MOST);
	if (n < 0)
		return err_sys(e, "key of receipts: read %.150s", path);
	buf_grew(out, (size_t)n);
	return 0;
}

/* ---- PEM ---- */

static EVP_PKEY *node_key_checked(EVP_PKEY *take_key)
{
	if (take_key && EVP_PKEY_is_a(take_key, "ED25519"))
		return take_key;
	EVP_PKEY_free(take_key);
	return NULL;
}

static EVP_PKEY *node_key_from_pem(const char *pem, size_t n, int private)
{
	BIO *in = BIO_new_mem_buf(pem, (int)n);
	EVP_PKEY *key = !in       ? NULL
			: private ? PEM_read_bio_PrivateKey(in, NULL, NULL, (void *)"")
				  : PEM_read_bio_PUBKEY(in, NULL, NULL, (void *)"");

	BIO_free(in);
	return node_key_checked(key);
}

static int node_key_to_pem(EVP_PKEY *key, int private, struct buf *out, struct err *e)
{
	BIO *to = BIO_new(BIO_s_mem());
	char *text;
	long n;
	int ok = to && (private ? PEM_write_bio_PKCS8PrivateKey(to, key, NULL, NULL, 0, NULL, NULL)
				: PEM_write_bio_PUBKEY(to, key)) == 1;

	if (ok && (n = BIO_get_mem_data(to, &text)) > 0)
		buf_add(out, text, (size_t)n);
	BIO_free(to);
	return out->len ? 0 : node_key_failed(e, "encode a key");
}

/* Fills in id and pem. */
static int node_key_describe(struct node_key *k, struct err *e)
{
	auto_buf struct buf pem = { 0 };
	uint8_t raw[RAW], hash[SHA256_BYTES];
	size_t n = sizeof(raw);
	struct sha256 s;

	if (EVP_PKEY_get_raw_public_key(k->key, raw, &n) != 1 || n != RAW)
		return node_key_failed(e, "read a public key");
	sha256_init(&s);
	sha256_add(&s, raw, sizeof(raw));
	sha256_end(&s, hash);
	hex_encode(k->id, hash, NODE_KEY_ID / 2);
	if (node_key_to_pem(k->key, 0, &pem, e) < 0)
		return -1;
	snprintf(k->pem, sizeof(k->pem), "%s", buf_str(&pem));
	return 0;
}

/* ---- this node ---- */

static int node_key_create(const char *path, struct err *e)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	struct buf pem = { 0 };
	int rc = key ? node_key_to_pem(key, 1, &pem, e) : node_key_failed(e, "create a key");

	if (rc == 0 && node_key_place(path, pem.p, pem.len, 0600) < 0 && errno != EEXIST)
		rc = err_sys(e, "key of receipts: create %.150s", path);
	EVP_PKEY_free(key);
	if (pem.p)
		explicit_bzero(pem.p, pem.room);
	buf_fini(&pem);
	return rc;
}

static int node_key_load(struct node_key *k, const char *path, struct err *e)
{
	struct buf pem = { 0 };
	int rc = 0;

	if (access(path, F_OK) < 0 && errno == ENOENT)
		rc = node_key_create(path, e);
	if (rc == 0)
		rc = node_key_read_file(path, &pem, e);
	if (rc == 0 && !(k->key = node_key_from_pem(buf_str(&pem), pem.len, 1)))
		rc = err_set(
			e, ERR_CONFLICT,
			"key of receipts: %.120s is not an Ed25519 key in PEM; restore the file from a backup",
			path);
	if (pem.p)
		explicit_bzero(pem.p, pem.room);
	buf_fini(&pem);
	return rc < 0 ? -1 : node_key_describe(k, e);
}

/* The file of the public key is for people; the server does not read it. One of another key is replaced. */
static void node_key_publish(const struct node_key *k, const char *path)
{
	char has[NODE_KEY_PEM] = "";
	auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, has, sizeof(has) - 1);

	has[n > 0 ? n : 0] = 0;
	if (!strcmp(has, k->pem))
		return;
	unlink(path);
	(void)!node_key_place(path, k->pem, strlen(k->pem),
			      0644); /* GET /v1/receipts/key has it, too */
}

void node_key_open(struct node_key *k, const char *folder)
{
	char path[1100];

	*k = (struct node_key){ 0 };
	snprintf(path, sizeof(path), "%.1000s/receipts.key", folder);
	if (node_key_load(k, path, &k->trouble) < 0) {
		EVP_PKEY_free(k->key);
		k->key = NULL;
		return;
	}
	snprintf(path, sizeof(path), "%.1000s/receipts.pub", folder);
	node_key_publish(k, path);
}

int node_key_parse(struct node_key *k, const char *pem, size_t n, struct err *e)
{
	*k = (struct node_key){ 0 };
	k->key = node_key_from_pem(pem, n, 0);
	if (!k->key)
		return err_set(
			e, ERR_INVALID,
			"not a public Ed25519 key in PEM (-----BEGIN PUBLIC KEY-----); get it with: atoll receipt key");
	return node_key_describe(k, e);
}

void node_key_close(struct node_key *k)
{
	EVP_PKEY_free(k->key);
	k->key = NULL;
}

/* ---- signatures ---- */

int node_key_sign(const struct node_key *k, const void *bytes, size_t n,
		  unsigned char out[NODE_KEY_SIGNATURE], struct err *e)
{
	EVP_MD_CTX *c;
	size_t len = NODE_KEY_SIGNATURE;
	int ok;

	if (!k->key) {
		*e = k->trouble;
		return -1;
	}
	c = EVP_MD_CTX_new();
	ok = c && EVP_DigestSignInit(c, NULL, NULL, NULL, k->key) == 1 &&
	     EVP_DigestSign(c, out, &len, bytes, n) == 1 && len == NODE_KEY_SIGNATURE;
	EVP_MD_CTX_free(c);
	return ok ? 0 : node_key_failed(e, "sign");
}

int node_key_verify(const struct node_key *k, const void *bytes, size_t n,
		    const unsigned char signature[NODE_KEY_SIGNATURE])
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	int ok = c && EVP_DigestVerifyInit(c, NULL, NULL, NULL, k->key) == 1 &&
		 EVP_DigestVerify(c, signature, NODE_KEY_SIGNATURE, bytes, n) == 1;

	EVP_MD_CTX_free(c);
	return ok;
}
