/* prompt: reads what an editor sends to a session. */

#include "acp/prompt.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "tool/picture.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* A resource that is longer should be read by the agent, in parts. */
enum { RESOURCE_MAX = 1 << 20 };

/* Append the path that URI names, to LINKS (or NULL) as well, or URI itself when it names no file. */
static bool add_place(struct str uri, struct buf *out, struct value *links)
{
	/* An editor may add a line ("#L10:20") to the path. */
	const struct str file = str_part(uri, 0, str_find(uri, STR("#"), 0));
	struct buf path;
	bool fits;

	buf_init(&path, PATH_MAX);
	if (path_of_uri(file, &path)) {
		fits = buf_addstr(out, buf_str(&path));
		if (links != NULL)
			value_append(links, value_new_str(buf_str(&path)));
	} else {
		fits = buf_addstr(out, uri);
	}
	buf_fini(&path);
	return fits;
}

/* The text of RESOURCE, or NULL with the sentence in ERR. */
static const struct value *text_of(const struct value *resource, struct err *err)
{
	const struct value *text = value_member(resource, "text");

	if (value_text(value_member(resource, "uri")) == NULL) {
		(void)err_set(err, EINVAL, "A resource needs a uri.");
		return NULL;
	}
	if (value_text(text) == NULL) {
		(void)err_set(err, EINVAL,
			      "A resource of a prompt must be a text; %.200s is none.",
			      value_text(value_member(resource, "uri")));
		return NULL;
	}
	if (value_str(text).size > RESOURCE_MAX) {
		(void)err_set(err, E2BIG,
			      "The resource %.200s has more than %d MiB: save it as a file, "
			      "and name the file.",
			      value_text(value_member(resource, "uri")),
			      RESOURCE_MAX >> 20);
		return NULL;
	}
	return text;
}

static bool add_resource(const struct value *resource, struct buf *behind, struct err *err)
{
	const struct value *text = text_of(resource, err);

	if (text == NULL)
		return false;
	return (buf_adds(behind, "\n\n[From the editor: ") &&
		add_place(value_str(value_member(resource, "uri")), behind, NULL) &&
		buf_adds(behind, "]\n") && buf_addstr(behind, value_str(text)) &&
		buf_end_line(behind) && buf_adds(behind, "[End of what the editor gave]")) ||
	       err_set(err, E2BIG, "The prompt is longer than %d MiB.",
		       ACP_PROMPT_MAX >> 20);
}

static bool add_picture(const struct value *block, struct value *pictures, struct err *err)
{
	const struct str data = value_str(value_member(block, "data"));
	struct picture picture;
	struct err why = {0};
	struct buf bytes, told;
	struct value *item;
	bool fine;

	if (value_count(pictures) == ACP_PROMPT_PICTURES)
		return err_set(err, E2BIG, "A prompt may have %d pictures.",
			       ACP_PROMPT_PICTURES);
	buf_init(&bytes, PICTURE_BYTES_MAX + 1);
	fine = buf_base64_read(data, &bytes) ||
	       err_set(&why, EINVAL, "it is no Base64, or has more than " PICTURE_MOST_TEXT);
	fine = fine && picture_read(buf_str(&bytes), &picture, &why);
	fine = fine &&
	       (picture_fits(&picture, bytes.size) ||
		err_set(&why, E2BIG, "models take pictures of at most " PICTURE_MOST_TEXT));
	if (fine) {
		item = picture_value(&picture, buf_str(&bytes));
		buf_init(&told, ERR_TEXT_MAX);
		picture_describe(&picture, bytes.size, &told);
		value_set_str(item, "text", buf_str(&told));
		value_append(pictures, item);
		buf_fini(&told);
	} else {
		(void)err_set(err, EINVAL, "The picture %zu of the prompt: %s.",
			      value_count(pictures) + 1, why.text);
	}
	buf_fini(&bytes);
	return fine;
}

static bool add_block(const struct value *block, struct buf *text, struct buf *behind,
		      struct value *pictures, struct value *links, struct err *err)
{
	const char *type = value_text(value_member(block, "type"));
	const struct value *resource = value_member(block, "resource");
	bool fits;

	if (type != NULL && strcmp(type, "text") == 0 &&
	    value_text(value_member(block, "text")) != NULL) {
		fits = buf_addstr(text, value_str(value_member(block, "text")));
	} else if (type != NULL && strcmp(type, "resource_link") == 0 &&
		   value_text(value_member(block, "uri")) != NULL) {
		fits = add_place(value_str(value_member(block, "uri")), text, links);
	} else if (type != NULL && strcmp(type, "resource") == 0 && resource != NULL) {
		fits = add_place(value_str(value_member(resource, "uri")), text, NULL);
		if (!add_resource(resource, behind, err))
			return false;
	} else if (type != NULL && strcmp(type, "image") == 0) {
		return add_picture(block, pictures, err);
	} else {
		return err_set(err, EINVAL,
			       "A block of a prompt is a text, an image, a resource_link or a "
			       "resource with its members; this one is \"%.50s\".",
			       type != NULL ? type : "");
	}
	return fits || err_set(err, E2BIG, "The prompt is longer than %d MiB.",
			       ACP_PROMPT_MAX >> 20);
}

bool acp_prompt_read(const struct value *blocks, struct buf *text, struct value *pictures,
		     struct value *links, struct err *err)
{
	struct buf behind;
	bool fine = true;

	buf_init(&behind, ACP_PROMPT_MAX);
	for (size_t i = 0; fine && i < value_count(blocks); i++)
		fine = add_block(value_item(blocks, i), text, &behind, pictures, links, err);
	if (fine && str_trim(buf_str(text)).size == 0 && value_count(pictures) > 0)
		(void)buf_adds(text, "(See the picture.)");
	if (fine && str_trim(buf_str(text)).size == 0)
		fine = err_set(err, EINVAL, "The prompt is empty.");
	else if (fine && strlen(text->data) != text->size)
		fine = err_set(err, EINVAL, "The prompt holds a NUL byte.");
	else if (fine && !buf_addstr(text, buf_str(&behind)))
		fine = err_set(err, E2BIG, "The prompt is longer than %d MiB.",
			       ACP_PROMPT_MAX >> 20);
	buf_fini(&behind);
	return fine;
}

/* The list of {name, value} VARIABLES as an object. */
static struct value *variables_of(const struct value *variables)
{
	struct value *made = value_new_object();

	for (size_t i = 0; i < value_count(variables); i++) {
		const struct value *variable = value_item(variables, i);
		const char *name = value_text(value_member(variable, "name"));

		if (name != NULL)
			value_set_str(made, name,
				      value_str(value_member(variable, "value")));
	}
	return made;
}

/* GIVEN, a server of the editor, as a configuration has it; NULL: it is of another kind. */
static struct value *server_of(const struct value *given)
{
	const struct value *command = value_member(given, "command");
	const struct value *arguments = value_member(given, "args");
	const struct value *url = value_member(given, "url");
	const struct str type = value_str(value_member(given, "type"));
	struct value *server = value_new_object();

	if (str_is(type, "http") && value_text(url) != NULL) {
		value_set_text(server, "type", "http");
		value_set(server, "url", value_copy(url));
		value_set(server, "headers", variables_of(value_member(given, "headers")));
	} else if (value_text(command) != NULL) {
		value_set(server, "command", value_copy(command));
		if (value_kind(arguments) == VALUE_ARRAY)
			value_set(server, "args", value_copy(arguments));
		value_set(server, "env", variables_of(value_member(given, "env")));
	} else {
		value_free(server);
		server = NULL;
	}
	return server;
}

bool acp_prompt_servers(const struct value *list, struct value **servers, struct err *err)
{
	auto_value struct value *made = value_new_object();

	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *given = value_item(list, i);
		const char *name = value_text(value_member(given, "name"));
		const char *type = value_text(value_member(given, "type"));
		struct value *server;

		if (name == NULL || name[0] == '\0')
			return err_set(err, EINVAL, "An MCP server needs a name.");
		if (value_member(made, name) != NULL)
			return err_set(err, EINVAL, "Two MCP servers are called %.64s.",
				       name);
		server = server_of(given);
		if (server == NULL)
			return err_set(err, EINVAL,
				       "The MCP server %.64s%s%.16s is no program and has no "
				       "address of the type http: give one of these.",
				       name, type != NULL ? " of the type " : "",
				       type != NULL ? type : "");
		value_set(made, name, server);
	}
	*servers = value_count(made) > 0 ? value_ref(made) : NULL;
	return true;
}
