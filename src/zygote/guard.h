/* guard.h - secrets that the C library takes from the kernel at the start of a process, and a fork copies.
 * Owns: nothing. Renews AT_RANDOM and the stack canary of a child. The pointer guard stays that of the zygote:
 * the C library has pointers encoded with it in tables that cannot all be found. */
#pragma once

/* In the child, once. No function that was called before may return afterwards, unless it was compiled without
 * a check of the canary: its frame holds the old one. */
void guard_renew(void);
