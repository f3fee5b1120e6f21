/* node_key.h - the Ed25519 key of this node, which signs receipts.
 * Owns: the key in memory. The private key is a PEM file that only its owner can read; it is created once, complete or
 * not at all. The public key is in a second file, which every user can read, and is what a verifier needs. */
#pragma once
#include "base/err.h"
#include <stddef.h>

struct evp_pkey_st;

enum { NODE_KEY_ID = 16, NODE_KEY_SIGNATURE = 64, NODE_KEY_PEM = 256 };

struct node_key {
	struct evp_pkey_st *key;  /* NULL: trouble says why */
	char id[NODE_KEY_ID + 1]; /* the beginning of the hash of the public key */
	char pem[NODE_KEY_PEM];   /* the public key */
	struct err trouble;
};

/* Reads <folder>/receipts.key and creates it if it does not exist, and <folder>/receipts.pub. */
void node_key_open(struct node_key *k, const char *folder);
/* For a verifier: the public key in a PEM text. */
must_check int node_key_parse(struct node_key *k, const char *pem, size_t n, struct err *e);
void node_key_close(struct node_key *k); /* fine on a zeroed one */

must_check int node_key_sign(const struct node_key *k, const void *bytes, size_t n,
			     unsigned char out[NODE_KEY_SIGNATURE], struct err *e);
/* 1: the signature is one of this key for these bytes. */
int node_key_verify(const struct node_key *k, const void *bytes, size_t n,
		    const unsigned char signature[NODE_KEY_SIGNATURE]);
