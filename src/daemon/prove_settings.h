/* prove_settings.h - the settings on which a proof of a tier depends. */
#pragma once
#include "base/buf.h"
#include "daemon/config.h"

/* "NAME=VALUE\n" of every row of [isolation] but `prove` itself. */
void prove_settings_text(const struct config *c, struct buf *out);
