/* vault.c - see vault.h. */
#include "secret/vault.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { NONCE = 12, TAG = 16, KEY_TEXT = 2 * VAULT_KEY };

/* ---- the key file ---- */

static int vault_open_file(struct vault *v, struct err *e)
{
	auto_fd int fd =
		open(v->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0 && (errno == EROFS || errno == EACCES)) /* a key that was provided read-only */
		fd = open(v->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "key of secrets: open %.150s", v->path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_CONFLICT, "key of secrets: %.150s is not a file", v->path);
	if (st.st_mode & 077)
		return err_set(
			e, ERR_CONFLICT,
			"key of secrets: other users can read %.100s (mode %03o); type: chmod "
			"600 %.60s",
			v->path, (unsigned)st.st_mode & 0777, v->path);
	v->fd = steal_fd(&fd);
	return 0;
}

void vault_open(struct vault *v, const char *path)
{
	*v = (struct vault){ .fd = -1 };
	snprintf(v->path, sizeof(v->path), "%s", path);
	(void)!vault_open_file(v, &v->trouble);
}

void vault_close(struct vault *v)
{
	own_close_fd(&v->fd);
	explicit_bzero(v->key, sizeof(v->key));
	v->id[0] = 0;
}

static void vault_take_key(struct vault *v)
{
	static const char label[] = "atoll key of secrets";
	uint8_t hash[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, label, sizeof(label));
	sha256_add(&s, v->key, sizeof(v->key));
	sha256_end(&s, hash);
	hex_encode(v->id, hash, STORE_KEY_ID / 2);
}

static int vault_write_key(struct vault *v, struct err *e)
{
	char text[KEY_TEXT + 2];
	int rc = 0;

	if (id_random(v->key, sizeof(v->key), e) < 0)
		return -1;
	hex_encode(text, v->key, sizeof(v->key));
	text[KEY_TEXT] = '\n';
	if (pwrite(v->fd, text, KEY_TEXT + 1, 0) != KEY_TEXT + 1 || fsync(v->fd) < 0)
		rc = err_sys(e, "key of secrets: write %.150s", v->path);
	explicit_bzero(text, sizeof(text));
	if (rc < 0)
		(void)!ftruncate(v->fd, 0); /* a part of a key must not be mistaken for one */
	return rc;
}

static int vault_parse_key(struct vault *v, const char *text, ssize_t n, struct err *e)
{
	for (ssize_t i = 0; i < KEY_TEXT; i++) {
		int digit = i < n ? hex_digit(text[i]) : -1;

		if (digit < 0)
			return err_set(e, ERR_CONFLICT,
				       "key of secrets: %.120s is not a key of %d hexadecimal "
				       "digits; restore the file from a backup",
				       v->path, KEY_TEXT);
		v->key[i / 2] = (uint8_t)(i & 1 ? v->key[i / 2] | digit : digit << 4);
	}
	return 0;
}

static int vault_read_key(struct vault *v, int create, struct err *e)
{
	char text[KEY_TEXT + 1] = "";
	ssize_t n = pread(v->fd, text, sizeof(text), 0);
	int rc;

	if (n < 0)
		rc = err_sys(e, "key of secrets: read %.150s", v->path);
	else if (n > 0)
		rc = vault_parse_key(v, text, n, e);
	else if (create)
		rc = vault_write_key(v, e);
	else
		rc = err_set(
			e, ERR_CONFLICT,
			"key of secrets: %.120s is missing, or was empty when the daemon started; "
			"restore it from a backup and restart the daemon",
			v->path);
	explicit_bzero(text, sizeof(text));
	return rc;
}

/* create: if the file is empty, a new key is written to it. */
static int vault_load(struct vault *v, int create, struct err *e)
{
	int rc;

	if (v->id[0])
		return 0;
	if (v->fd < 0) {
		*e = v->trouble;
		return -1;
	}
	if (flock(v->fd, LOCK_EX) < 0)
		return err_sys(e, "key of secrets: lock %.150s", v->path);
	rc = vault_read_key(v, create, e);
	flock(v->fd, LOCK_UN);
	if (rc == 0)
		vault_take_key(v);
	return rc;
}

/* ---- AES-256-GCM ---- */

static int vault_crypto_failed(struct err *e, const char *what)
{
	return err_set(e, ERR_SYS, "%s a secret: OpenSSL has failed", what);
}

static int vault_encrypt(const struct vault *v, const char *context, size_t context_n,
			 const void *bytes, size_t n, struct buf *out, struct err *e)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t *to = (uint8_t *)buf_space(out, NONCE + n + TAG);
	int len = 0, last = 0, ok;

	if (id_random(to, NONCE, e) < 0) {
		EVP_CIPHER_CTX_free(c);
		return -1;
	}
	ok = c && EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, v->key, to) == 1 &&
	     EVP_EncryptUpdate(c, NULL, &len, (const uint8_t *)context, (int)context_n) == 1 &&
	     EVP_EncryptUpdate(c, to + NONCE, &len, bytes, (int)n) == 1 &&
	     EVP_EncryptFinal_ex(c, to + NONCE + len, &last) == 1 && (size_t)(len + last) == n &&
	     EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG, to + NONCE + n) == 1;
	EVP_CIPHER_CTX_free(c);
	if (!ok)
		return vault_crypto_failed(e, "encrypt");
	buf_grew(out, NONCE + n + TAG);
	return 0;
}

static int vault_decrypt(const struct vault *v, const char *context, size_t context_n,
			 const uint8_t *sealed, size_t n, struct buf *out, struct err *e)
{
	size_t plain = n >= NONCE + TAG ? n - NONCE - TAG : 0;
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t *to = (uint8_t *)buf_space(out, plain + 1);
	int len = 0, last = 0, ok;

	ok = c && n >= NONCE + TAG &&
	     EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, v->key, sealed) == 1 &&
	     EVP_DecryptUpdate(c, NULL, &len, (const uint8_t *)context, (int)context_n) == 1 &&
	     EVP_DecryptUpdate(c, to, &len, sealed + NONCE, (int)plain) == 1 &&
	     EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG, (void *)(sealed + NONCE + plain)) ==
		     1 &&
	     EVP_DecryptFinal_ex(c, to + len, &last) == 1;
	EVP_CIPHER_CTX_free(c);
	if (!ok)
		return err_set(e, ERR_CONFLICT,
			       "the encrypted bytes were changed, or belong to another name");
	buf_grew(out, plain);
	return 0;
}

/* ---- secrets ---- */

int vault_check_name(const char *name, struct err *e)
{
	size_t n = strlen(name);

	if (n > 0 && n <= STORE_NAME && name[0] != '.' && name[0] != '_' && name[0] != '-' &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n)
		return 0;
	return err_set(e, ERR_INVALID,
		       "'%.40s' cannot be the name of a secret: letters, digits, '.', '_', '-', at "
		       "most %d, the first one a letter or digit",
		       name, STORE_NAME);
}

/* "team NUL name": an encrypted value cannot be used under another name. */
static size_t vault_context(const char *team, const char *name, char out[2 * STORE_NAME + 2])
{
	size_t n = strlen(team) + 1;

	memcpy(out, team, n);
	memcpy(out + n, name, strlen(name));
	return n + strlen(name);
}

/* A new secret must not be encrypted with another key than the existing ones: none of the two key files
 * could decrypt all of them. */
static int vault_ready_to_set(struct vault *v, const char *team, const char *name, struct err *e)
{
	struct store_secret has = { 0 };
	uint64_t all, others, mine;
	struct err ignored;

	if (store_secret_count(v->store, NULL, NULL, &all, e) < 0 || vault_load(v, !all, e) < 0 ||
	    store_secret_count(v->store, NULL, v->id, &others, e) < 0 ||
	    store_secret_count(v->store, team, NULL, &mine, e) < 0)
		return -1;
	if (others)
		return err_set(
			e, ERR_CONFLICT,
			"%.110s has another key than the one that encrypted %llu secrets; restore "
			"the file, or delete those secrets",
			v->path, (unsigned long long)others);
	if (mine < VAULT_TEAM)
		return 0;
	if (store_secret_find(v->store, team, name, &has, &ignored) == 0) {
		store_secret_fini(&has);
		return 0;
	}
	return err_set(e, ERR_LIMIT, "the team has %d secrets, the maximum; delete one first",
		       VAULT_TEAM);
}

int vault_seal_secret(struct vault *v, const char *team, const char *name, const void *value,
		      size_t n, struct buf *out, struct err *e)
{
	char context[2 * STORE_NAME + 2];

	if (vault_check_name(name, e) < 0)
		return -1;
	if (n == 0 || n > VAULT_VALUE)
		return err_set(e, ERR_INVALID, "value: %zu bytes are not between 1 and %d", n,
			       VAULT_VALUE);
	if (vault_ready_to_set(v, team, name, e) < 0)
		return -1;
	return vault_encrypt(v, context, vault_context(team, name, context), value, n, out, e);
}

int vault_set(struct vault *v, struct store_secret *x, const void *value, size_t n, struct err *e)
{
	auto_buf struct buf sealed = { 0 };
	int rc;

	if (vault_seal_secret(v, x->team, x->name, value, n, &sealed, e) < 0)
		return -1;
	memcpy(x->key, v->id, sizeof(x->key));
	x->sealed = sealed.p;
	x->sealed_n = sealed.len;
	rc = store_secret_put(v->store, x, e);
	x->sealed = NULL;
	x->sealed_n = 0;
	return rc;
}

int vault_get(struct vault *v, const char *team, const char *name, struct buf *out,
	      struct store_secret *out_row, struct err *e)
{
	struct store_secret row = { 0 };
	char context[2 * STORE_NAME + 2];
	int rc;

	if (store_secret_find(v->store, team, name, &row, e) < 0)
		return -1;
	rc = vault_load(v, 0, e);
	if (rc == 0 && strcmp(row.key, v->id) != 0)
		rc = err_set(
			e, ERR_CONFLICT,
			"it was encrypted with key %s, and %.100s has key %s; restore the file, "
			"or set the secret again after deleting it",
			row.key, v->path, v->id);
	if (rc == 0)
		rc = vault_decrypt(v, context, vault_context(team, name, context), row.sealed,
				   row.sealed_n, out, e);
	if (rc < 0)
		err_in(e, "secret '%s'", name);
	if (rc == 0 && out_row)
		*out_row = row;
	else
		store_secret_fini(&row);
	return rc;
}

int vault_seal(struct vault *v, const char *context, const void *bytes, size_t n, struct buf *out,
	       struct err *e)
{
	uint64_t secrets;

	if (store_secret_count(v->store, NULL, NULL, &secrets, e) < 0 ||
	    vault_load(v, !secrets, e) < 0)
		return -1;
	return vault_encrypt(v, context, strlen(context), bytes, n, out, e);
}

int vault_unseal(struct vault *v, const char *context, const void *sealed, size_t n,
		 struct buf *out, struct err *e)
{
	return vault_load(v, 0, e) < 0
		       ? -1
		       : vault_decrypt(v, context, strlen(context), sealed, n, out, e);
}

void vault_wipe(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->room);
	buf_fini(b);
}

int vault_make_key(const char *path, struct err *e)
{
	struct vault v;
	int rc;

	vault_open(&v, path);
	if (v.fd < 0) {
		*e = v.trouble;
		return -1;
	}
	rc = vault_load(&v, 1, e);
	vault_close(&v);
	return rc;
}
