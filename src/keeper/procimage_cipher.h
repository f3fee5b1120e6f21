/* procimage_cipher.h - the confined process between a worker and the file of a process image: it encrypts what it is sent,
 * or decrypts and checks the file. It has the file, a pipe to the worker and the key; no capability, no id of the host, and a
 * filter that opens nothing.
 *
 * Through the pipe go sections as in procimage/sealed_image.h; one of kind 0 is the end.
 * Owns: the process, until cipher_end() or cipher_fini(). */
#pragma once
#include "keeper/procimage_process.h"
#include "procimage/sealed_image.h"

struct cipher {
	pid_t pid;
	int pipe;   /* of the worker; -1: closed */
	int report; /* the result */
};

/* Once, before the first one: compiles the filter. */
must_check int cipher_prepare(struct err *e);
must_check int cipher_start(struct cipher *c, const struct procimage_order *o, int file,
			    int encrypt, struct err *e);
/* encrypt: one section, or its first part. */
must_check int cipher_begin(struct cipher *c, uint32_t kind, uint32_t index, uint64_t bytes,
			    struct err *e);
must_check int cipher_put(struct cipher *c, const void *bytes, size_t n, struct err *e);
/* The end was put or read: waits for the result. out_bytes: of the file. */
must_check int cipher_end(struct cipher *c, uint64_t *out_bytes, struct err *e);
/* decrypt: the next section must be of this kind. */
must_check int cipher_expect(struct cipher *c, uint32_t kind, uint64_t most, uint64_t *out_bytes,
			     struct err *e);
must_check int cipher_get(struct cipher *c, void *to, size_t n, struct err *e);
void cipher_fini(struct cipher *c); /* fine on one that was not started */
