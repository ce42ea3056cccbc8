/* model_name: `replay:FILE`, `PROVIDER:NAME` or NAME, whose colons may be its own. */
#include "model/model_name.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "model/http.h"
#include "model/provider.h"

enum { PROVIDERS_MAX = 8, URL_MAX = 2048 };

/*
 * Services and programs that people write before the colon although they are reached by
 * openai-chat and a base URL. No model is called so. One that is a provider as well is
 * taken as that.
 */
static const char *const services[] = {"llama.cpp",  "llamacpp",  "vllm", "lmstudio",
				       "openrouter", "localhost", NULL};

static const struct provider *find_provider(struct str word)
{
	for (size_t i = 0; providers[i]; i++) {
		if (str_is(word, providers[i]->name))
			return providers[i];
	}
	return NULL;
}

/* ERR when WORD, before a colon, was meant as a provider and is none. */
static bool check_prefix(struct str word, struct err *err)
{
	const char *names[PROVIDERS_MAX + 2] = {"replay"};
	auto_free char *text = memory_copy_str(word);
	const char *nearest;

	for (size_t i = 0; i < PROVIDERS_MAX && providers[i]; i++)
		names[i + 1] = providers[i]->name;
	for (size_t i = 0; services[i]; i++) {
		if (str_is(word, services[i]))
			return err_set(err, EINVAL,
				       "\"%s\" is no provider: write openai-chat:NAME and give the "
				       "service's base URL",
				       text);
	}
	nearest = text_nearest(text, names);
	if (nearest)
		return err_set(err, EINVAL,
			       "unknown provider \"%.80s\"; did you mean \"%s\"?", text,
			       nearest);
	return true;
}

bool model_name_parse(const char *name, struct model_name *parsed, struct err *err)
{
	struct str whole = str_trim(str_of(name));
	size_t colon = str_find(whole, STR(":"), 0);
	struct str word = str_part(whole, 0, colon);
	struct model_name result = {.rest = whole, .shown = whole};

	if (whole.size == 0 || str_is(whole, "replay")) {
		*parsed = (struct model_name){.rest = STR(""), .shown = STR("replay")};
		return true;
	}
	result.provider = &openai_chat_provider;
	result.is_plain = true;
	if (colon != (size_t)-1) {
		const struct provider *named = find_provider(word);
		bool is_replay = str_is(word, "replay");

		if (!named && !is_replay && !check_prefix(word, err))
			return false;
		if (named || is_replay) {
			result.provider = named;
			result.is_plain = false;
			result.rest = str_trim(str_part(whole, colon + 1, whole.size));
		}
		if (is_replay && result.rest.size == 0)
			return err_set(err, EINVAL, "replay: needs a file after the colon");
	} else if (find_provider(whole)) {
		result.rest = STR("");
	}
	if (result.rest.size == 0)
		return err_set(err, EINVAL,
			       "%.*s: needs a model's name after it, as in %.*s:NAME",
			       (int)word.size, word.data, (int)word.size, word.data);
	*parsed = result;
	return true;
}

static bool check_url(struct str url, struct str host, const char *path, struct err *err)
{
	for (size_t i = 0; i < url.size; i++) {
		unsigned char c = (unsigned char)url.data[i];

		if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\')
			return err_set(err, EINVAL,
				       "the base URL holds a character that no URL has, at byte %zu",
				       i + 1);
	}
	if (str_find(host, STR("@"), 0) != (size_t)-1)
		return err_set(
			err, EINVAL,
			"the base URL names a user: give the key in its variable instead");
	if (str_find(url, STR("?"), 0) != (size_t)-1 ||
	    str_find(url, STR("#"), 0) != (size_t)-1)
		return err_set(err, EINVAL,
			       "the base URL has a query or a fragment: it ends "
			       "where %s begins",
			       path);
	if (host.size == 0 || str_starts(host, STR(":")))
		return err_set(err, EINVAL, "the base URL names no host");
	return true;
}

/* HOST of BASE, which loses the slashes at its end. */
static bool read_base(struct str *base, const char *path, struct str *host, struct err *err)
{
	struct str rest;

	if (str_starts(*base, STR("http://")))
		rest = str_part(*base, 7, base->size);
	else if (str_starts(*base, STR("https://")))
		rest = str_part(*base, 8, base->size);
	else
		return err_set(err, EINVAL,
			       "the base URL begins with http:// or https://, as in "
			       "http://127.0.0.1:8080/v1");
	while (str_ends(rest, STR("/"))) {
		rest.size--;
		base->size--;
	}
	*host = str_part(rest, 0, str_find(rest, STR("/"), 0));
	return check_url(*base, *host, path, err);
}

bool model_name_origin(const char *base_url, char **origin, struct err *err)
{
	struct str base = str_trim(str_of(base_url));
	struct str host = base;

	if (!read_base(&base, "the path", &host, err))
		return false;
	if (base.size > URL_MAX)
		return err_set(err, EINVAL, "the base URL is longer than %d bytes", URL_MAX);
	*origin = memory_copy_str(
		str_part(base, 0, (size_t)(host.data - base.data) + host.size));
	return true;
}

bool model_name_url(const struct provider *provider, const char *base_url, char **url,
		    char **host, struct err *err)
{
	struct str base = str_trim(str_of(base_url));
	const struct str version = STR("/v1");
	struct str path = str_of(provider->path);
	struct str name;
	struct buf text;

	if (base.size == 0)
		base = str_of(provider->base_url);
	if (!read_base(&base, provider->path, &name, err))
		return false;

	buf_init(&text, URL_MAX);
	(void)buf_addstr(&text, base);
	/* People copy the address of another API of the same server. */
	if (str_starts(path, STR("/api/")) && str_ends(base, version))
		base.size -= version.size;
	buf_clear(&text);
	(void)buf_addstr(&text, base);
	/* People copy the address of the endpoint itself, or of the version in it. */
	if (!str_ends(base, path)) {
		if (str_ends(base, version) && str_starts(path, version))
			path = str_part(path, version.size, path.size);
		(void)buf_addstr(&text, path);
	}
	if (text.overflowed) {
		buf_fini(&text);
		return err_set(err, EINVAL, "the base URL is longer than %d bytes", URL_MAX);
	}
	*url = buf_take(&text);
	*host = memory_copy_str(name);
	return true;
}

bool model_name_is_ollama(const char *base_url)
{
	auto_free char *origin = NULL;

	return base_url && http_is_here(base_url) &&
	       model_name_origin(base_url, &origin, NULL) &&
	       str_ends(str_of(origin), STR(":11434"));
}
