/* stdin_forward.h - our stdin into a program of the daemon: every byte once, also when the daemon is killed
 * half-way. Owns: what the program may not have got yet. */
#pragma once

void *stdin_forward_thread(void *follow); /* a struct exec_follow */
