/*
 * credential_fuzz: any text as the `credentials` of a configuration, each of which goes to
 * another process and is read there; and "PATTERN\nPATH", compared with a second matcher.
 */
#include "base/memory.h"
#include "policy/config.h"
#include "policy/credentials/credential.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The second matcher takes exponential time. */
enum { PATTERN_BYTES = 24, PATH_BYTES = 40, STARS_MAX = 4 };

/* Tries every length of every star. */
static bool matches(const char *pattern, struct str path)
{
	if (strcmp(pattern, "/**") == 0)
		return path.size == 0 || path.data[0] == '/';
	if (pattern[0] == '\0')
		return path.size == 0;
	if (pattern[0] != '*')
		return path.size > 0 && path.data[0] == pattern[0] &&
		       matches(pattern + 1, str_part(path, 1, path.size));
	for (size_t i = 0; i <= path.size; i++) {
		if (matches(pattern + 1, str_part(path, i, path.size)))
			return true;
		if (i < path.size && path.data[i] == '/')
			return false;
	}
	return false;
}

static void try_pattern(struct str text)
{
	size_t end = str_find(text, STR("\n"), 0);
	char pattern[PATTERN_BYTES + 1];

	if (end == (size_t)-1 || end > PATTERN_BYTES || text.size - end > PATH_BYTES ||
	    memchr(text.data, '\0', end) != NULL)
		return;
	memcpy(pattern, text.data, end);
	pattern[end] = '\0';
	struct str path = str_part(text, end + 1, text.size);
	size_t stars = 0;
	for (size_t i = 0; i < end; i++)
		stars += pattern[i] == '*';
	if (stars > STARS_MAX)
		return;
	assert(credential_path_matches(pattern, path) == matches(pattern, path));
}

static void try_entry(const struct value *entries, const char *name)
{
	struct credential credential, again;
	struct err err = {0};

	if (credential_find(entries, name, &credential, &err)) {
		assert(credential.source_count > 0 && credential.host_count > 0);
		assert(credential.place_count > 0);
		for (size_t i = 0; i < credential.host_count; i++)
			assert(credential.hosts[i].port != 0 &&
			       !credential.hosts[i].suffix && !credential.hosts[i].carried);
		for (size_t i = 0; i < credential.source_count; i++)
			assert(credential.sources[i].shown != NULL);
		assert(credential_read(name, credential.root, &again, &err));
		assert(value_equal(again.root, credential.root));
		credential_fini(&again);
	} else {
		assert(err.text[0] != '\0');
	}
	credential_fini(&credential);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = {(const char *)data, size};
	auto_config struct config *config = NULL;
	struct err err = {0};
	struct buf text;

	try_pattern(bytes);
	buf_init(&text, CONFIG_TEXT_MAX);
	(void)buf_adds(&text, "{\"credentials\": ");
	(void)buf_addstr(&text, bytes);
	(void)buf_adds(&text, "}");
	if (!text.overflowed && config_parse(buf_str(&text), "input", &config, &err)) {
		const struct value *entries = config_value(config, "credentials");

		for (void *at = value_first(entries); at != NULL;
		     at = value_next(entries, at))
			try_entry(entries, value_key(at));
	}
	buf_fini(&text);
	return 0;
}
