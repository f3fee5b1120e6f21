/* frame.h - is this frame what it says? One table of types, sizes and tails.
 * Freestanding: used by init as well. */
#pragma once
#include "wire/wire.h"

/* 0 if the bytes are a whole frame of a known type and of our version, else -1. */
int frame_check(const void *bytes, uint32_t len);
const char *frame_name(uint8_t type); /* "START"; "?" for an unknown one */
uint32_t frame_body(uint8_t type);    /* bytes before the tail, head included; 0: unknown type */
