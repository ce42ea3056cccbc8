/* plugin_source: forms and placeholders; see plugin_source.h. */
#include "plugins/plugin_source.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { EXPANDED_MAX = 1 << 20, REF_MAX = 200, URL_MAX = 2048, QUOTED_MAX = 80 };

static const char *variable_of(const struct plugin_places *places, struct str name)
{
	for (const char *const *at = places->environment; at != NULL && *at != NULL; at++) {
		if (strncmp(*at, name.data, name.size) == 0 && (*at)[name.size] == '=')
			return *at + name.size + 1;
	}
	return NULL;
}

/* NAME is what stands between the braces. */
static bool expand_one(const struct plugin_places *places, struct str name,
		       struct buf *out, struct err *err)
{
	const char *value = NULL;
	struct buf shown;

	if (str_is(name, "CONFIG_DIR"))
		value = places->config_dir;
	else if (str_is(name, "WORKING_DIR"))
		value = places->working_dir;
	else if (str_starts(name, STR("env:")))
		value = variable_of(places, str_part(name, 4, name.size));
	if (value != NULL)
		return buf_adds(out, value) ||
		       err_set(err, E2BIG,
			       "a text is over %zu bytes with its placeholders filled in",
			       out->max);
	buf_init(&shown, 8 * QUOTED_MAX);
	text_add_name(&shown, str_part(name, 0, QUOTED_MAX));
	if (str_starts(name, STR("env:")))
		(void)err_set(err, ENOENT,
			      "${%s}: this variable is not set; set it, or take the placeholder "
			      "out (\"$${\" is a plain \"${\")",
			      shown.data);
	else
		(void)err_set(err, EINVAL,
			      "${%s}: the placeholders are ${env:NAME}, ${CONFIG_DIR} and "
			      "${WORKING_DIR} (\"$${\" is a plain \"${\")",
			      shown.data);
	buf_fini(&shown);
	return false;
}

bool plugin_expand(const struct plugin_places *places, struct str text, struct buf *out,
		   struct err *err)
{
	size_t at = 0;

	while (at < text.size) {
		struct str rest = str_part(text, at, text.size - at);
		size_t end;

		if (str_starts(rest, STR("$${"))) {
			(void)buf_adds(out, "${");
			at += 3;
			continue;
		}
		if (!str_starts(rest, STR("${"))) {
			(void)buf_addc(out, rest.data[0]);
			at++;
			continue;
		}
		end = str_find(rest, STR("}"), 2);
		if (end == (size_t)-1)
			return err_set(err, EINVAL, "\"${\" without its \"}\"");
		if (!expand_one(places, str_part(rest, 2, end - 2), out, err))
			return false;
		at += end + 1;
	}
	return !out->overflowed || err_set(err, E2BIG, "a text is too long");
}

static bool expand_text(const struct plugin_places *places, const struct value *value,
			struct value **expanded, struct err *err)
{
	struct buf out;

	buf_init(&out, EXPANDED_MAX);
	bool ok = plugin_expand(places, value_str(value), &out, err);
	if (ok)
		*expanded = value_new_str(buf_str(&out));
	buf_fini(&out);
	return ok;
}

bool plugin_expand_value(const struct plugin_places *places, const struct value *value,
			 struct value **expanded, struct err *err)
{
	auto_value struct value *made = NULL;
	struct value *item = NULL;

	if (value_kind(value) == VALUE_STRING)
		return expand_text(places, value, expanded, err);
	if (value_kind(value) == VALUE_ARRAY) {
		made = value_new_array();
		for (size_t i = 0; i < value_count(value); i++) {
			if (!plugin_expand_value(places, value_item(value, i), &item, err))
				return false;
			value_append(made, item);
		}
	} else if (value_kind(value) == VALUE_OBJECT) {
		made = value_new_object();
		for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
			if (!plugin_expand_value(places, value_at(at), &item, err))
				return err_while(err, "%s", value_key(at));
			value_set(made, value_key(at), item);
		}
	} else {
		made = value_copy(value);
	}
	*expanded = made;
	made = NULL;
	return true;
}

/* It becomes a word of git's command line, and stands in sentences. */
static bool check_ref(const char *ref, struct err *err)
{
	bool fine = strlen(ref) <= REF_MAX && ref[0] != '-' && ref[0] != '\0' &&
		    strstr(ref, "..") == NULL;

	for (const char *at = ref; fine && *at; at++)
		fine = isalnum((unsigned char)*at) || strchr("._/-+", *at) != NULL;
	return fine ||
	       err_set(err, EINVAL,
		       "the ref is a tag, a branch or a commit: letters, digits and ._/-+, "
		       "at most %d",
		       REF_MAX);
}

/* Refuse a URL for which git would run another program (ssh, ext::). */
static bool check_url(const char *url, struct err *err)
{
	struct str text = str_of(url);
	bool fine = str_starts(text, STR("https://")) ||
		    str_starts(text, STR("http://")) || str_starts(text, STR("file:///"));

	for (const char *at = url; fine && *at; at++)
		fine = (unsigned char)*at > ' ' && *at != 0x7f;
	return (fine && text.size <= URL_MAX) ||
	       err_set(err, EINVAL,
		       "a git source begins with https://, http:// or file:/// and holds no blank");
}

static bool set_git(const struct plugin_places *places, struct str url, struct str ref,
		    struct plugin_source *source, struct err *err)
{
	struct buf text;

	buf_init(&text, URL_MAX);
	source->kind = PLUGIN_GIT;
	bool ok = plugin_expand(places, url, &text, err);
	source->text = buf_take(&text);
	if (ok && ref.data != NULL) {
		buf_init(&text, URL_MAX);
		ok = plugin_expand(places, ref, &text, err);
		source->ref = buf_take(&text);
		ok = ok && check_ref(source->ref, err);
	}
	return ok && check_url(source->text, err);
}

static bool set_path(const struct plugin_places *places, struct str path,
		     enum plugin_source_kind kind, struct plugin_source *source,
		     struct err *err)
{
	struct buf text, normal;

	if (str_starts(path, STR("~/")))
		return err_set(err, EINVAL,
			       "~ is the shell's word: write ${env:HOME}/ for your home, or ./~/ "
			       "for a folder of that name");
	buf_init(&text, PATH_MAX);
	buf_init(&normal, PATH_MAX);
	source->kind = kind;
	bool ok = plugin_expand(places, path, &text, err) &&
		  ((text.size > 0 && path_normal(places->config_dir, text.data, &normal)) ||
		   err_set(err, EINVAL, "\"%s\" is no path", text.data));
	source->text = buf_take(&normal);
	buf_fini(&text);
	return ok;
}

static bool parse_text(const struct plugin_places *places, struct str text,
		       struct plugin_source *source, struct err *err)
{
	struct buf shown;
	size_t hash;

	if (str_starts(text, STR("bash:")))
		return set_path(places, str_part(text, 5, text.size), PLUGIN_EITHER,
				source, err);
	if (str_starts(text, STR("toolbox:")))
		return set_path(places, str_part(text, 8, text.size), PLUGIN_EITHER,
				source, err);
	if (str_starts(text, STR("bash+git:"))) {
		text = str_part(text, 9, text.size);
		hash = str_find(text, STR("#"), 0);
		return set_git(places,
			       str_part(text, 0, hash == (size_t)-1 ? text.size : hash),
			       hash == (size_t)-1 ? (struct str){0}
						  : str_part(text, hash + 1, text.size),
			       source, err);
	}
	buf_init(&shown, 8 * QUOTED_MAX);
	text_add_name(&shown, str_part(text, 0, QUOTED_MAX));
	if (str_starts(text, STR("path:")))
		(void)err_set(err, EINVAL,
			      "\"%s\": path: is for packages in other languages, which are not "
			      "taken here; scripts are named by \"bash:%s\"",
			      shown.data, shown.data + 5);
	else
		(void)err_set(err, EINVAL,
			      "\"%s\": write \"bash:./folder\", \"bash+git:URL#ref\", "
			      "\"toolbox:./folder\", or an object with bash_tool or toolbox",
			      shown.data);
	buf_fini(&shown);
	return false;
}

static bool parse_object(const struct plugin_places *places, const struct value *tool,
			 struct plugin_source *source, struct err *err)
{
	const struct value *file = value_member(tool, "file");
	const struct value *path = value_member(tool, "path");
	const struct value *git = value_member(tool, "git");
	const struct value *ref = value_member(tool, "ref");

	if ((file != NULL) + (path != NULL) + (git != NULL) != 1)
		return err_set(err, EINVAL, "bash_tool has one of file, path and git");
	if (ref != NULL && git == NULL)
		return err_set(err, EINVAL, "bash_tool.ref is for git");
	if (git != NULL)
		return set_git(places, value_str(git),
			       ref != NULL ? value_str(ref) : (struct str){0}, source, err);
	return set_path(places, value_str(file != NULL ? file : path),
			file != NULL ? PLUGIN_FILE : PLUGIN_FOLDER, source, err);
}

/* Its keys have been checked with the configuration: git is none of them. */
static bool parse_toolbox(const struct plugin_places *places, const struct value *toolbox,
			  struct plugin_source *source, struct err *err)
{
	const struct value *file = value_member(toolbox, "file");
	const struct value *path = value_member(toolbox, "path");

	if ((file != NULL) == (path != NULL))
		return err_set(err, EINVAL, "toolbox has one of file and path");
	return set_path(places, value_str(file != NULL ? file : path),
			file != NULL ? PLUGIN_FILE : PLUGIN_FOLDER, source, err);
}

bool plugin_source_is_toolbox(const struct value *entry)
{
	return value_member(entry, "toolbox") != NULL ||
	       str_starts(value_str(entry), STR("toolbox:"));
}

bool plugin_source_parse(const struct plugin_places *places, const struct value *entry,
			 struct plugin_source *source, struct err *err)
{
	const struct value *tool = value_member(entry, "bash_tool");
	const struct value *toolbox = value_member(entry, "toolbox");
	bool ok;

	*source = (struct plugin_source){.is_toolbox = plugin_source_is_toolbox(entry)};
	if (value_kind(entry) == VALUE_STRING)
		ok = parse_text(places, value_str(entry), source, err);
	else if (tool != NULL && toolbox != NULL)
		ok = err_set(err, EINVAL, "an entry has one of bash_tool and toolbox");
	else if (value_kind(toolbox) == VALUE_OBJECT)
		ok = parse_toolbox(places, toolbox, source, err);
	else if (value_kind(tool) == VALUE_OBJECT)
		ok = parse_object(places, tool, source, err);
	else
		ok = err_set(err, EINVAL,
			     "an entry is a text, or an object with bash_tool or toolbox");
	if (!ok)
		plugin_source_fini(source);
	return ok;
}

void plugin_source_fini(struct plugin_source *source)
{
	free(source->text);
	free(source->ref);
	*source = (struct plugin_source){0};
}

void plugin_source_name(const struct plugin_source *source, struct buf *name)
{
	(void)buf_adds(name, source->text);
	if (source->ref != NULL)
		(void)buf_addf(name, "#%s", source->ref);
}
