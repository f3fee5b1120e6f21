/* slot_fill.h - what a task's text says for the slots of a library's task. */
#pragma once
#include "plan/library.h"

/* Values by name. The words have their numbers (library_word()). used: one per word, set where a value was taken from. What the text does not have is
 * not in the answer: neither defaults nor questions are its business. */
json_t *slot_fill_find(const struct library_task *t, const struct words *w, unsigned char *used);
/* An answer to a question, as the slot's type; NULL: it is none. */
json_t *slot_answer(const struct library_slot *s, const char *text, size_t len);
