/* sign.h - the signatures of a delivery: by them a receiver knows that it comes from this server.
 *
 *   Atoll-Signature: t=SECONDS,v1=HEX     HMAC-SHA256 with the secret, of "SECONDS.BODY"
 *   e2b-signature: TEXT                   as E2B: SHA-256 of secret and body, base64url without padding */
#pragma once
#include <stdint.h>

enum { WEBHOOK_SIGNATURE = 120 };

void webhook_sign(char out[WEBHOOK_SIGNATURE], const char *secret, int64_t at_s, const char *body);
void webhook_sign_e2b(char out[WEBHOOK_SIGNATURE], const char *secret, const char *body);
