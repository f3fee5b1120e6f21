/* box_ca.h - the certificate authority of one box: egress signs certificates with it for the hosts whose
 * connections it opens, and only programs of that box trust it. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/* out_cert: PEM; out_key: PEM, to be wiped by the caller. */
must_check int box_ca_make(struct buf *out_cert, struct buf *out_key, struct err *e);
