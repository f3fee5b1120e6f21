/* fuzz.h - the entry point of a fuzzer. Aborts when an assertion fails; otherwise returns 0. */
#pragma once
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
