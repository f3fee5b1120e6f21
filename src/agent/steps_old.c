/* steps_old.c - steps about a program for another version or another runtime than the one that ran it. */
#include "agent/steps.h"
#include "base/own.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- Python 2 ---- */

/* Behind the code of a line: blanks and a comment, which stay outside. */
static size_t statement_end(const char *line, size_t n)
{
	char quote = 0;
	size_t end = 0;

	for (size_t i = 0; i < n; i++) {
		if (quote) {
			quote = line[i] == '\\' ? (i++, quote) : line[i] == quote ? 0 : quote;
		} else if (line[i] == '#' || line[i] == ';') {
			break;
		} else if (line[i] == '"' || line[i] == '\'') {
			quote = line[i];
		}
		if (i < n && (quote || !isspace((unsigned char)line[i])))
			end = i + 1;
	}
	return end < n ? end : n;
}

/* print x, y  ->  print(x, y);  print >>f, x  ->  print(x, file=f);  a comma at the end: no new line. */
static int new_print(struct buf *out, const char *line, size_t n)
{
	size_t blanks = strspn(line, " \t"), end = statement_end(line, n), from = blanks + 5;
	const char *file = NULL;
	size_t file_n = 0;
	int comma;

	if (n < from || strncmp(line + blanks, "print", 5) != 0 ||
	    (n > from && line[from] != ' ' && line[from] != '"' && line[from] != '\'' && line[from] != '#'))
		return 0;
	from += strspn(line + from, " ");
	if (from < end && line[from] == '(' && line[end - 1] == ')')
		return 0;
	if (end > from + 2 && !strncmp(line + from, ">>", 2)) {
		file = line + from + 2 + strspn(line + from + 2, " ");
		file_n = strcspn(file, ",\n");
		from = (size_t)(file + file_n - line);
		from += line[from] == ',';
		from += strspn(line + from, " ");
	}
	from = from < end ? from : end;
	comma = end > from && line[end - 1] == ',';
	buf_add(out, line, blanks);
	buf_printf(out, "print(%.*s%s%s%.*s)", (int)(end > from + (size_t)comma ? end - from - (size_t)comma : 0),
		   line + from, comma ? ", end=\" \"" : "", file ? ", file=" : "", (int)file_n,
		   file ? file : "");
	buf_add(out, line + (end > blanks + 5 ? end : blanks + 5), n - (end > blanks + 5 ? end : blanks + 5));
	return 1;
}

/* except A, e:  ->  except A as e: */
static int new_except(struct buf *out, const char *line, size_t n)
{
	size_t blanks = strspn(line, " \t");
	const char *comma = memchr(line, ',', n);

	if (strncmp(line + blanks, "except ", 7) != 0 || !comma || memchr(line, '(', n))
		return 0;
	buf_add(out, line, (size_t)(comma - line));
	buf_puts(out, " as ");
	comma += 1 + strspn(comma + 1, " ");
	buf_add(out, comma, (size_t)(line + n - comma));
	return 1;
}

int mend_python2(struct sick *s)
{
	const char *path = sick_main(s), *text = sick_text(s, path);
	auto_buf struct buf out = { 0 };
	unsigned changed = 0;

	while (text && *text) {
		size_t n = strcspn(text, "\n");

		if (new_print(&out, text, n) || new_except(&out, text, n))
			changed++;
		else
			buf_add(&out, text, n);
		text += n;
		if (*text)
			buf_putc(&out, *text++);
	}
	return changed && sick_edit(s, path, &out, "print and except are written as in Python 3");
}
