/* confirm: see confirm.h. */
#include "front/confirm.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

bool confirm_ask(FILE *to, const char *format, ...)
{
	char answer[16] = "";
	va_list arguments;

	va_start(arguments, format);
	(void)vfprintf(to, format, arguments);
	va_end(arguments);
	(void)fputs(" [y/N] ", to);
	(void)fflush(to);
	if (fgets(answer, sizeof(answer), stdin) == NULL)
		(void)fputc('\n', to);
	answer[strcspn(answer, "\r\n")] = '\0';
	return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}
