/* policy_words: see policy_words.h. */
#include "front/policy_words.h"

#include "base/str.h"
#include "front/verb.h"

#include <ctype.h>

enum { SENTENCE_MAX = 64 << 10 };

/* "limits.memory" at the beginning of TEXT; a full stop at its end belongs to the sentence. */
static size_t key_size(struct str text)
{
	size_t size = 0;

	while (size < text.size && (islower((unsigned char)text.data[size]) ||
				    text.data[size] == '_' || text.data[size] == '.'))
		size++;
	while (size > 0 && text.data[size - 1] == '.')
		size--;
	return size;
}

void policy_words_add(const char *file, const char *text, struct buf *out)
{
	const struct str mark = STR("agents." POLICY_FILE_AGENT ".");
	const struct str where = STR(" in the configuration");
	struct str rest = str_of(text);
	size_t at;

	while (file != NULL && (at = str_find(rest, mark, 0)) != (size_t)-1) {
		struct str key = str_part(rest, at + mark.size, SIZE_MAX);

		key.size = key_size(key);
		(void)buf_addstr(out, str_part(rest, 0, at));
		if (at == 0 && rest.data == text)
			(void)buf_addf(out, "%s: %.*s", file, (int)key.size, key.data);
		else
			(void)buf_addf(out, "%.*s of %s", (int)key.size, key.data, file);
		rest = str_part(rest, at + mark.size + key.size, SIZE_MAX);
		if (str_starts(rest, where))
			rest = str_part(rest, where.size, SIZE_MAX);
	}
	(void)buf_addstr(out, rest);
}

int policy_words_complain(int code, const char *file, const char *text)
{
	struct buf words;

	buf_init(&words, SENTENCE_MAX);
	policy_words_add(file, text, &words);
	code = verb_complain(code, "%s", words.data);
	buf_fini(&words);
	return code;
}
