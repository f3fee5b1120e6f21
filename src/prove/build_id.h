/* build_id.h - the identity of the running executable. */
#pragma once
#include "store/proofs.h"

/* Its version, and the build id that the linker computed from its content: "0.1.0 5f1c...". Without one the version. */
void build_id_text(char out[STORE_PROOF_KEY + 1]);
