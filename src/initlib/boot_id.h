/* boot_id.h - the boot id that programs of the box read: a new one after a stop, that of the
 * source in a copy of its programs.
 * Owns: the file mounted at /proc/sys/kernel/random/boot_id. */
#pragma once

void boot_init(int fd);
void boot_again(void); /* every process from before has ended */
void boot_due(void);   /* before any process that could read it is started: until then its memory is
	        * saved */
/* The present id, without the newline; empty: there is none yet. */
void boot_read(char out[40]);
/* Programs continue that have read this id. Anything else than an id is ignored. */
void boot_take(const char id[40]);
