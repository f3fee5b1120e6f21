/* scratch.h - the one large buffer: a received frame, or bytes to be sent.
 * Handlers of frames change state and send nothing that is read from a log; the pump does that
 * after the last handler of the turn. So the two uses never overlap. */
#pragma once
#include "wire/wire.h"
#include <stddef.h>

extern char scratch[WIRE_MAX];

void scratch_used(size_t n); /* bytes of it that were written */
void scratch_idle(void);     /* gives its pages back to the kernel if they are many */
