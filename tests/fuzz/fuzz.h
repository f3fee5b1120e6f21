/* fuzz.h - what a fuzzer calls. Ends the process if a promise is broken; returns 0. */
#pragma once
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
