/* hex.h - bytes as hexadecimal digits, and the value of a digit. */
#pragma once
#include <stddef.h>

/* Writes 2 * n lower-case digits and a NUL to out. */
void hex_encode(char *out, const void *bytes, size_t n);
int hex_digit(char c); /* 0 to 15, in either case; -1: not a digit */
