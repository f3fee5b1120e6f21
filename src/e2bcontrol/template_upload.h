/* template_upload.h - archives for COPY: GET answers a signed link, PUT to that link stores the archive.
 * Owns:         an archive while it is received.
 * Does not own: the stored archives (template/build.h).
 *
 *   GET /templates/ID/files/HASH -> {present, url: ".../templates/ID/files/HASH?token=..."}
 *   PUT url (no API key): team, hash and time of expiry are in the token, encrypted and authenticated */
#pragma once
#include "e2b/e2b.h"

extern const struct field template_upload_query[];
void template_upload_link(struct call *c);
void template_upload_put(struct call *c);
