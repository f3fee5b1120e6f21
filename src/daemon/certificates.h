/* certificates.h - the certificate authorities that this machine trusts, as one text. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "daemon/config.h"

/* PEM: the bundle of the system, if it has one, and the file of egress.ca. -1: that file cannot be read. */
must_check int certificates_read(const struct config *c, struct buf *out, struct err *e);
