/* tls_rig.h - two ends of a connection with TLS, established, in one thread. */
#pragma once
#include "http/dev_ca.h"
#include "http/upstream_link.h"
#include "tap.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TLS_RIG __attribute__((unused)) static

static SSL_CTX *rig_server, *rig_client;

TLS_RIG BIO *rig_pem(const struct buf *b)
{
	BIO *bio = BIO_new_mem_buf(b->p, (int)b->len);

	if (!bio)
		abort();
	return bio;
}

TLS_RIG void rig_certificates(void)
{
	struct ca_files files = { 0 };
	struct err e;
	BIO *cert, *key;
	X509 *x;
	EVP_PKEY *k;

	if (rig_server)
		return;
	if (ca_make("box.test", &files, &e) < 0)
		abort();
	rig_server = SSL_CTX_new(TLS_server_method());
	rig_client = SSL_CTX_new(TLS_client_method());
	cert = rig_pem(&files.cert);
	key = rig_pem(&files.key);
	x = PEM_read_bio_X509(cert, NULL, NULL, NULL);
	k = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);
	if (SSL_CTX_use_certificate(rig_server, x) != 1 ||
	    SSL_CTX_use_PrivateKey(rig_server, k) != 1)
		abort();
	X509_free(x);
	EVP_PKEY_free(k);
	BIO_free(cert);
	BIO_free(key);
	ca_fini(&files);
}

TLS_RIG void rig_forget(void)
{
	SSL_CTX_free(rig_server);
	SSL_CTX_free(rig_client);
	rig_server = rig_client = NULL;
}

/* Plain if version is 0. accepted: near has the TLS role of the server. */
TLS_RIG void rig_link(int version, int accepted, struct upstream_link *near,
		      struct upstream_link *far)
{
	int pair[2], done = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		abort();
	*near = upstream_link_plain(pair[0]);
	*far = upstream_link_plain(pair[1]);
	if (!version)
		return;
	rig_certificates();
	near->tls = SSL_new(accepted ? rig_server : rig_client);
	far->tls = SSL_new(accepted ? rig_client : rig_server);
	SSL_set_min_proto_version(near->tls, version);
	SSL_set_max_proto_version(near->tls, version);
	SSL_set_fd(near->tls, near->fd);
	SSL_set_fd(far->tls, far->fd);
	accepted ? SSL_set_accept_state(near->tls) : SSL_set_connect_state(near->tls);
	accepted ? SSL_set_connect_state(far->tls) : SSL_set_accept_state(far->tls);
	SSL_set_mode(far->tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	for (int i = 0; i < 20 && done != 3; i++)
		done = (SSL_do_handshake(near->tls) == 1) | (SSL_do_handshake(far->tls) == 1) << 1;
	if (done != 3)
		abort();
	ERR_clear_error();
}
