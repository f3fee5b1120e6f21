/* boot_id.h - what programs of the box read as the id of this boot: another one after a stop.
 * Owns: the file behind /proc/sys/kernel/random/boot_id. */
#pragma once

void boot_init(int fd);
void boot_again(void); /* nothing of what ran before is left */
void boot_due(
	void); /* before any process that could read it: nobody else needs one, nor the memory */
