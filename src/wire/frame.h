/* frame.h - checks whether a frame is valid. One table of types, sizes and tails. Freestanding:
 * used by init as well. */
#pragma once
#include "wire/wire.h"

/* 0 if the bytes are a complete frame of a known type and of WIRE_VERSION, else -1. */
int frame_check(const void *bytes, uint32_t len);
const char *frame_name(uint8_t type);      /* "START"; "?" for an unknown one */
const char *wire_tier_name(unsigned tier); /* "container"; "?" for an unknown one */
uint32_t frame_body(uint8_t type); /* bytes before the tail, head included; 0: unknown type */
