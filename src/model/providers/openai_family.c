/* openai_family: the beginnings of names. */
#include "model/providers/openai_family.h"

#include <stddef.h>

#include "base/str.h"

/* The first that fits counts. */
static const struct {
	const char *start;
	enum openai_family family;
} rows[] = {
	{"gpt-3", OPENAI_PLAIN},   {"gpt-4", OPENAI_PLAIN},  {"chatgpt-", OPENAI_PLAIN},
	{"gpt-oss", OPENAI_OTHER}, {"gpt-", OPENAI_REASONS}, {"o1", OPENAI_REASONS},
	{"o3", OPENAI_REASONS},    {"o4", OPENAI_REASONS},   {"codex-", OPENAI_REASONS},
};

enum openai_family openai_family_of(const char *model)
{
	struct str name = str_of(model);

	for (size_t slash; (slash = str_find(name, STR("/"), 0)) != (size_t)-1;)
		name = str_part(name, slash + 1, name.size);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (str_starts(name, str_of(rows[i].start)))
			return rows[i].family;
	}
	return OPENAI_OTHER;
}
