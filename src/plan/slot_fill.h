/* slot_fill.h - finds values in the text of a task for the slots of a library task. */
#pragma once
#include "plan/library.h"

/* Returns values by name. The words have their numbers (library_word()). used: one per word, set
 * for words of values. Slots without a value are not in the result: defaults and questions are
 * handled by the caller. */
json_t *slot_fill_find(const struct library_task *t, const struct words *w, unsigned char *used);
/* Converts an answer to the type of the slot; NULL: invalid. */
json_t *slot_answer(const struct library_slot *s, const char *text, size_t len);
