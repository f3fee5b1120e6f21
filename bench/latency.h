/* latency.h - how long each subject takes, measured in turns. */
#pragma once

/* Opens every wanted subject; one that fails becomes "n/a". */
void latency_open(void);
unsigned latency_measure(unsigned rounds); /* how many it were: ^C ends it early */
