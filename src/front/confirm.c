/* confirm: prints the question and reads the answer. */
#include "front/confirm.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "front/terminal/fold.h"

enum { QUESTION_MAX = 8 << 10 };

bool confirm_ask(FILE *to, const char *format, ...)
{
	char answer[16] = "";
	struct buf text, lines;
	va_list arguments;

	buf_init(&text, QUESTION_MAX);
	buf_init(&lines, 4 * QUESTION_MAX);
	va_start(arguments, format);
	(void)buf_addv(&text, format, arguments);
	va_end(arguments);
	(void)buf_adds(&text, " [y/N] ");
	fold_for(fileno(to), buf_str(&text), &lines);
	(void)fputs(lines.data, to);
	(void)fflush(to);
	buf_fini(&lines);
	buf_fini(&text);
	if (fgets(answer, sizeof(answer), stdin) == NULL)
		(void)fputc('\n', to);
	answer[strcspn(answer, "\r\n")] = '\0';
	return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}
