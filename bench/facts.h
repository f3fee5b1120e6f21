/* facts.h - which machine the numbers come from. */
#pragma once

struct facts {
	char when[32]; /* UTC */
	char kernel[96], arch[32], cpu[96], distro[96];
	int cpus; /* this process may use: taskset shows here */
	long memory_mib;
	const char *cgroup; /* "v1", "v2", "v1+v2", "none" */
	double load;        /* one-minute average before the first sample: neighbours */
};

struct facts facts_read(void);
