/* http_answer: three headers; see http_answer.h. */
#include "model/http_answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { VALUE_MAX = 64 };

bool http_header_is(struct str line, const char *name, struct str *value)
{
	size_t size = strlen(name);

	if (line.size <= size || line.data[size] != ':' ||
	    strncasecmp(line.data, name, size) != 0)
		return false;
	*value = str_trim(str_part(line, size + 1, line.size));
	return true;
}

/* The one form of a date that is still written (RFC 9110, 5.6.7). -1: it is none. */
static time_t date_in(const char *text)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);

	return end != NULL && *end == '\0' ? timegm(&tm) : -1;
}

/* Seconds from now in TEXT: a number (times UNIT_S), or a date. Else -1. */
static double wait_in(struct str text, double unit_s)
{
	char copy[VALUE_MAX];
	char *end;
	double number;
	time_t date;

	if (text.size == 0 || text.size >= sizeof(copy))
		return -1;
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	number = strtod(copy, &end);
	if (*end == '\0')
		return number >= 0 ? number * unit_s : -1;
	date = date_in(copy);
	if (date < 0)
		return -1;
	return date > time(NULL) ? (double)(date - time(NULL)) : 0;
}

void http_answer_clear(struct http_answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	answer->retry_after_s = -1;
	answer->should_retry = -1;
}

void http_answer_line(struct http_answer *answer, struct str line)
{
	struct str value;

	if (http_header_is(line, "x-should-retry", &value))
		answer->should_retry = str_is(value, "true")    ? 1
				       : str_is(value, "false") ? 0
								: -1;
	else if (http_header_is(line, "retry-after-ms", &value))
		answer->retry_after_s = wait_in(value, 0.001);
	else if (http_header_is(line, "retry-after", &value) && answer->retry_after_s < 0)
		answer->retry_after_s = wait_in(value, 1);
}
