/* git_text: small files of git, line by line. */
#include "guard/git_text.h"

#include <string.h>
#include <strings.h>

bool git_text_line(struct str text, struct str *path)
{
	while (text.size > 0 &&
	       (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
		text.size--;
	if (text.size == 0 || memchr(text.data, '\n', text.size) != NULL ||
	    memchr(text.data, '\0', text.size) != NULL)
		return false;
	*path = text;
	return true;
}

bool git_text_pointer(struct str text, struct str *path)
{
	static const struct str mark = {"gitdir: ", 8};

	return str_starts(text, mark) &&
	       git_text_line(str_part(text, mark.size, text.size), path);
}

bool git_text_todo_is_inert(struct str text)
{
	static const char known[] =
		"pick p revert edit e reword r fixup f squash s break b "
		"label l reset t merge m update-ref u noop drop d";
	struct str line;

	if (memchr(text.data, '\0', text.size) != NULL)
		return false;
	while (str_next_line(&text, &line)) {
		struct str rest = str_trim(line);
		if (rest.size == 0 || rest.data[0] == '#')
			continue;
		size_t size = 0;
		while (size < rest.size && strchr(" \t\r", rest.data[size]) == NULL)
			size++;
		if (!str_among(known, str_part(rest, 0, size)))
			return false;
	}
	return true;
}

bool git_text_strategy_is_own(struct str text)
{
	return str_among("ort recursive resolve octopus ours subtree", str_trim(text));
}

bool git_text_apply_is_inert(struct str text)
{
	static const char *const known[] = {
		"-p",          "-C",         "--whitespace=", "--ignore-whitespace",
		"--reject",    "--include=", "--exclude=",    "--ignore-space-change",
		"--directory="};
	struct str word;

	text = str_trim(text);
	while (str_next_word(&text, &word)) {
		bool fine = false;

		/*
		 * Each option is in quotes. The text behind a blank in it cannot be an
		 * option.
		 */
		if (str_starts(word, STR("'")))
			word = str_part(word, 1, word.size);
		for (size_t i = 0; !fine && i < sizeof(known) / sizeof(known[0]); i++)
			fine = str_starts(word, str_of(known[i]));
		if (!fine)
			return false;
	}
	return true;
}

bool git_text_next_conflict(struct str *text, struct str *path)
{
	const char *end = memchr(text->data, '\0', text->size);
	const size_t size = end != NULL ? (size_t)(end - text->data) : text->size;
	const size_t tab = str_find(str_part(*text, 0, size), STR("\t"), 0);

	if (text->size == 0)
		return false;
	*path = tab != (size_t)-1 && end != NULL ? str_part(*text, tab + 1, size - tab - 1)
						 : STR("");
	*text = str_part(*text, size + (end != NULL), text->size);
	return true;
}

bool git_text_is_empty(struct str text)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		line = str_trim(line);
		if (line.size > 0 && line.data[0] != '#')
			return false;
	}
	return true;
}
