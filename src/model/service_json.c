/* service_json: JSON as services send it, made readable where it can be. */
#include "model/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "model/failure.h"

/* An escaped half of a surrogate pair at AT, as proxies cut them apart, or 0. */
static unsigned surrogate_at(struct str text, size_t at)
{
	char digits[5] = "";
	unsigned long code;

	if (at + 6 > text.size || text.data[at] != '\\' || text.data[at + 1] != 'u')
		return 0;
	memcpy(digits, text.data + at + 2, 4);
	code = strtoul(digits, NULL, 16);
	return code >= 0xd800 && code <= 0xdfff ? (unsigned)code : 0;
}

/* TEXT with U+FFFD for invalid UTF-8 and for surrogates without their other half. */
static void repair_characters(struct str text, struct buf *out)
{
	size_t at = 0;

	while (at < text.size) {
		size_t length = text_utf8_length(str_part(text, at, 4));
		unsigned half = surrogate_at(text, at);

		if (length == 0) {
			(void)buf_adds(out, "\xef\xbf\xbd");
			at++;
		} else if (half && half < 0xdc00 && surrogate_at(text, at + 6) >= 0xdc00) {
			(void)buf_add(out, text.data + at, 12);
			at += 12;
		} else if (half) {
			(void)buf_adds(out, "\\ufffd");
			at += 6;
		} else if (text.data[at] == '\\' && at + 1 < text.size) {
			/* Both at once: the second may be a backslash too. */
			(void)buf_add(out, text.data + at, 1);
			at++;
			if ((unsigned char)text.data[at] < 0x80) {
				(void)buf_add(out, text.data + at, 1);
				at++;
			}
		} else {
			(void)buf_add(out, text.data + at, length);
			at += length;
		}
	}
}

bool service_parse(struct str text, const char *complaint, struct value **root,
		   struct err *err)
{
	struct buf repaired, shown;
	struct err why = {0};
	bool ok;

	if (value_parse(text, 0, root, &why))
		return true;
	buf_init(&repaired, VALUE_TEXT_MAX);
	repair_characters(text, &repaired);
	ok = !repaired.overflowed && value_parse(buf_str(&repaired), 0, root, NULL);
	buf_fini(&repaired);
	if (ok)
		return true;
	buf_init(&shown, ERR_TEXT_MAX);
	failure_quote(str_of(why.text), &shown);
	(void)err_set(err, EPROTO, "%s (%s)", complaint, shown.data);
	buf_fini(&shown);
	return false;
}

bool service_parse_event(struct str data, struct value **root, bool *end, struct err *err)
{
	data = str_trim(data);
	if (data.size == 0)
		return true;
	if (str_is(data, "[DONE]")) {
		*end = true;
		return true;
	}
	return service_parse(data, "an event of the stream is no JSON", root, err);
}

bool service_parse_whole(struct str body, struct value **root, struct err *err)
{
	if (!service_parse(body, "the answer is neither a stream nor JSON", root, err))
		return false;
	return !service_is_error(*root) || service_refuse(*root, err);
}
