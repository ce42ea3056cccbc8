/* err: builds the sentence that says why a function failed. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/text/text.h"

/* Room for more than is kept, so that a long sentence can be cut between characters. */
enum { ERR_ROOM = ERR_TEXT_MAX + 4 };

static void err_store(struct err *err, const char *sentence)
{
	size_t size = text_character_border(str_of(sentence), sizeof(err->text) - 1);

	memcpy(err->text, sentence, size);
	err->text[size] = '\0';
}

void err_fill(struct err *err, int code, const char *format, ...)
{
	/* Do not write into ERR directly: the text of ERR may be among the arguments. */
	char sentence[ERR_ROOM];
	va_list arguments;

	if (!err)
		return;
	va_start(arguments, format);
	if (vsnprintf(sentence, sizeof(sentence), format, arguments) < 0)
		sentence[0] = '\0';
	va_end(arguments);
	err->code = code;
	err_store(err, sentence);
}

void err_put_before(struct err *err, const char *format, ...)
{
	char sentence[ERR_ROOM + 2 + ERR_TEXT_MAX];
	va_list arguments;
	size_t used;

	if (!err)
		return;
	va_start(arguments, format);
	if (vsnprintf(sentence, ERR_ROOM, format, arguments) < 0)
		sentence[0] = '\0';
	va_end(arguments);
	used = strlen(sentence);
	(void)snprintf(sentence + used, sizeof(sentence) - used, ": %s", err->text);
	err_store(err, sentence);
}
