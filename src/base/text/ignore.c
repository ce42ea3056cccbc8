/* ignore: rules of gitignore(5); see ignore.h. */
#include "base/text/ignore.h"

#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text/pattern.h"
#include "base/text/pattern_match.h"

struct ignore_rule {
	struct str pattern; /* without "!", a leading slash and a closing slash */
	struct pattern_ends ends;
	bool negated;
	bool directories; /* only these */
	bool base_name;   /* no slash inside: any depth */
};

struct ignore {
	char *text;
	char *folder;
	size_t folder_size;
	struct ignore_rule *rules;
	size_t count;
	unsigned flags;
	const struct ignore *parent;
};

/* gitignore(5): blanks at the end go unless a backslash quotes them; tabs stay. */
static struct str ignore_trim(struct str line)
{
	size_t end = 0;

	for (size_t at = 0; at < line.size; at++) {
		if (line.data[at] == '\\')
			at++;
		else if (line.data[at] == ' ')
			continue;
		end = at + 1;
	}
	/* A backslash that ends the line quotes nothing. */
	return str_part(line, 0, end);
}

/* False for a line that is no rule, or one that can never match. */
static bool ignore_parse_line(struct str line, struct ignore_rule *rule)
{
	const char *nul = memchr(line.data, '\0', line.size);

	/* git reads C strings. */
	if (nul)
		line.size = (size_t)(nul - line.data);
	if (line.size == 0 || line.data[0] == '#')
		return false;
	*rule = (struct ignore_rule){0};
	line = ignore_trim(line);
	if (str_starts(line, STR("!"))) {
		rule->negated = true;
		line = str_part(line, 1, line.size);
	}
	if (str_ends(line, STR("/"))) {
		rule->directories = true;
		line.size--;
	}
	rule->base_name = !memchr(line.data, '/', line.size);
	if (str_starts(line, STR("/")))
		line = str_part(line, 1, line.size);
	rule->pattern = line;
	rule->ends = pattern_ends_of(line);
	return line.size > 0 &&
	       (rule->ends.head == line.size || pattern_check(line, 0, NULL));
}

struct ignore *ignore_new(struct str text, struct str folder, const struct ignore *parent,
			  unsigned flags)
{
	struct ignore *ignore = memory_alloc(sizeof(*ignore));
	size_t capacity = 0;
	struct str rest, line;

	ignore->text = memory_copy_str(text);
	ignore->folder = memory_copy_str(folder);
	ignore->folder_size = folder.size;
	ignore->parent = parent;
	ignore->flags = flags;
	rest = (struct str){ignore->text, text.size};
	if (str_starts(rest, STR("\xef\xbb\xbf")))
		rest = str_part(rest, 3, rest.size);
	while (str_next_line(&rest, &line)) {
		if (ignore->count == capacity) {
			capacity = capacity ? 2 * capacity : 16;
			ignore->rules = memory_grow(ignore->rules, capacity,
						    sizeof(*ignore->rules));
		}
		if (str_ends(line, STR("\r")))
			line.size--;
		if (ignore_parse_line(line, &ignore->rules[ignore->count]))
			ignore->count++;
	}
	return ignore;
}

void ignore_free(struct ignore *ignore)
{
	if (!ignore)
		return;
	free(ignore->text);
	free(ignore->folder);
	free(ignore->rules);
	free(ignore);
}

/*
 * As in git, only the plain beginning of a pattern is compared ahead of the matcher here,
 * not its plain end.
 */
static bool ignore_rule_matches_any_case(const struct ignore_rule *rule, struct str below,
					 struct str name)
{
	struct str pattern = rule->pattern;
	size_t head = rule->ends.head;

	if (rule->base_name)
		return pattern_match_plain(pattern, name, PATTERN_IGNORE_CASE);
	if (head > below.size || strncasecmp(pattern.data, below.data, head) != 0)
		return false;
	return pattern_match_plain(str_part(pattern, head, pattern.size),
				   str_part(below, head, below.size), PATTERN_IGNORE_CASE);
}

static bool ignore_rule_matches(const struct ignore_rule *rule, struct str below,
				struct str name)
{
	struct str pattern = rule->pattern;
	size_t head = rule->ends.head;

	if (rule->base_name)
		return pattern_match_name(&rule->ends, pattern, name, 0);
	if (!pattern_ends_fit(&rule->ends, pattern, below))
		return false;
	if (head == pattern.size)
		return below.size == pattern.size;
	/* As git: the literal beginning is gone when "**" asks what stands before it. */
	return pattern_match_plain(str_part(pattern, head, pattern.size),
				   str_part(below, head, below.size), 0);
}

/* The last matching rule of one file. */
static enum ignore_answer ignore_decide_here(const struct ignore *ignore, struct str path,
					     struct str name, bool is_directory)
{
	struct str folder = {ignore->folder, ignore->folder_size}, below = path;

	if (folder.size) {
		if (!str_starts(path, folder) || path.size <= folder.size + 1 ||
		    path.data[folder.size] != '/')
			return IGNORE_SILENT;
		below = str_part(path, folder.size + 1, path.size);
	}
	for (size_t i = ignore->count; i-- > 0;) {
		const struct ignore_rule *rule = &ignore->rules[i];

		if (rule->directories && !is_directory)
			continue;
		const bool matches =
			(ignore->flags & PATTERN_IGNORE_CASE) != 0
				? ignore_rule_matches_any_case(rule, below, name)
				: ignore_rule_matches(rule, below, name);
		if (matches)
			return rule->negated ? IGNORE_NO : IGNORE_YES;
	}
	return IGNORE_SILENT;
}

enum ignore_answer ignore_decide(const struct ignore *ignore, struct str path,
				 bool is_directory)
{
	const char *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;
	struct str name = path;

	if (slash)
		name = str_part(path, (size_t)(slash + 1 - path.data), path.size);
	for (; ignore; ignore = ignore->parent) {
		enum ignore_answer answer =
			ignore_decide_here(ignore, path, name, is_directory);

		if (answer != IGNORE_SILENT)
			return answer;
	}
	return IGNORE_SILENT;
}
