/*
 * prompts: the prompts of the person's folder and of plugin packages, read when a client
 * asks for them; resources; and completion, for the arguments of prompts and the places
 * of templates.
 */

#include "mcp/server/mcp.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/front_matter.h"
#include "base/text/text.h"
#include "base/value.h"
#include "mcp/message.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROMPT_TEXT_MAX = 256 << 10, PROMPT_ARGUMENTS_MAX = 32 };

/*
 * The resources that a client may read: the long outputs that calls left in the cell, and
 * the resources of plugin packages.
 */

#define OUTPUT_URI "glovebox://output/"

enum {
	OUTPUTS_MAX = 16, /* as many as the cell keeps (SPILL_KEPT) */
	FILE_MAX = 8 << 20,
	WATCHED_MAX = 256,
};

static struct value *list_of(const struct value *given)
{
	return value_kind(given) == VALUE_ARRAY ? value_copy(given) : value_new_array();
}

/* Remove the members of ROW that clients must not see. */
static void hide_source(struct value *row)
{
	value_remove(row, "file");
	value_remove(row, "text");
	value_remove(row, "arguments");
}

static void set_output(struct value *row, const char *uri, const char *path)
{
	value_set_text(row, "uri", uri);
	value_set_text(row, "name", path_base_name(path));
	value_set_text(row, "title", "Output of a tool, whole");
	value_set_text(row, "mimeType", "text/plain");
}

void mcp_resources_list(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;
	struct value *result = value_new_object();
	struct value *rows = list_of(mcp->options.resources);

	for (size_t i = 0; i < value_count(rows); i++)
		hide_source(value_item(rows, i));
	for (void *at = value_first(mcp->outputs); at != NULL;
	     at = value_next(mcp->outputs, at)) {
		struct value *row = value_new_object();

		set_output(row, value_key(at), value_text(value_at(at)));
		value_append(rows, row);
	}
	value_set(result, "resources", rows);
	mcp_answer(request, result);
}

void mcp_templates_list(struct mcp_request *request)
{
	struct value *result = value_new_object();
	struct value *rows = list_of(request->mcp->options.templates);

	for (size_t i = 0; i < value_count(rows); i++)
		hide_source(value_item(rows, i));
	value_set(result, "resourceTemplates", rows);
	mcp_answer(request, result);
}

struct value *mcp_resource_of(struct mcp *mcp, const struct tool_result *result)
{
	const char *path = value_text(value_member(result->details, "spill"));
	struct buf uri;
	struct value *link;

	if (path == NULL)
		return NULL;
	buf_init(&uri, VALUE_TEXT_MAX);
	(void)buf_addf(&uri, OUTPUT_URI "%s", path_base_name(path));
	if (value_member(mcp->outputs, uri.data) == NULL) {
		if (value_count(mcp->outputs) >= OUTPUTS_MAX)
			value_remove(mcp->outputs, value_key(value_first(mcp->outputs)));
		value_set_text(mcp->outputs, uri.data, path);
		mcp_list_changed(mcp, MCP_LIST_RESOURCES);
	}
	link = value_new_object();
	value_set_text(link, "type", "resource_link");
	set_output(link, uri.data, path);
	buf_fini(&uri);
	return link;
}

/* Set BYTES as `text` when they are text, else as `blob`. */
static void set_bytes(struct value *item, struct str bytes)
{
	struct buf blob;

	if (text_is_utf8(bytes) && memchr(bytes.data, '\0', bytes.size) == NULL) {
		value_set_str(item, "text", bytes);
		return;
	}
	buf_init(&blob, FILE_MAX * 2);
	(void)buf_base64_add(bytes, &blob);
	value_set_str(item, "blob", buf_str(&blob));
	buf_fini(&blob);
}

/* The content of ROW, with VALUES in its places; NULL: its file is gone. */
static struct value *item_of(const struct value *row, const char *uri,
			     const struct value *values)
{
	const char *file = value_text(value_member(row, "file"));
	const char *mime = value_text(value_member(row, "mimeType"));
	struct value *item = NULL;
	struct buf bytes, filled;
	struct str text = value_str(value_member(row, "text"));

	buf_init(&bytes, FILE_MAX);
	buf_init(&filled, FILE_MAX);
	if (file == NULL || fd_read_file(file, FILE_MAX, &bytes, NULL)) {
		if (file != NULL)
			text = buf_str(&bytes);
		item = value_new_object();
		value_set_text(item, "uri", uri);
		if (mime != NULL)
			value_set_text(item, "mimeType", mime);
		if (values != NULL && text_is_utf8(text) &&
		    message_fill_add(text, values, &filled))
			text = buf_str(&filled);
		set_bytes(item, text);
	}
	buf_fini(&filled);
	buf_fini(&bytes);
	return item;
}

/*
 * One item of `contents` for URI, when the front itself has the content; NULL: it does
 * not.
 */
static struct value *resource_at_hand(struct mcp *mcp, const char *uri)
{
	const struct value *rows = mcp->options.resources;

	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);

		if (str_is(value_str(value_member(row, "uri")), uri))
			return item_of(row, uri, NULL);
	}
	rows = mcp->options.templates;
	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);
		auto_value struct value *values = value_new_object();

		if (message_fill_match(value_str(value_member(row, "uriTemplate")),
				       str_of(uri), values))
			return item_of(row, uri, values);
	}
	return NULL;
}

static void not_found(struct mcp_request *request, const char *uri)
{
	struct value *data = value_new_object();
	const bool modern = request->client.version >= MCP_2026_07_28;

	value_set_text(data, "uri", uri);
	mcp_fail(request, modern ? MCP_CODE_PARAMS : MCP_CODE_NO_RESOURCE, data,
		 "There is no resource %.200s; resources/list names those there are.", uri);
}

/* The `uri` of the params; NULL: the request has been answered. */
static const char *uri_of(struct mcp_request *request)
{
	const struct value *uri = value_member(request->params, "uri");

	if (value_text(uri) != NULL && strlen(value_text(uri)) == value_str(uri).size)
		return value_text(uri);
	mcp_fail(request, MCP_CODE_PARAMS, NULL, "The params need a uri.");
	return NULL;
}

void mcp_resources_read(struct mcp_request *request)
{
	const char *uri = uri_of(request);
	const char *path;
	struct value *item, *result;

	if (uri == NULL)
		return;
	path = value_text(value_member(request->mcp->outputs, uri));
	if (path != NULL) {
		/* The output is a file in the cell, so a worker reads it. */
		mcp_call_output(request, path);
		return;
	}
	item = resource_at_hand(request->mcp, uri);
	if (item == NULL) {
		not_found(request, uri);
		return;
	}
	result = value_new_object();
	value_set(result, "contents", value_new_array());
	value_append(value_member(result, "contents"), item);
	mcp_answer(request, result);
}

void mcp_resources_subscribe(struct mcp_request *request)
{
	struct mcp_peer *peer = request->peer;
	const char *uri = uri_of(request);

	if (uri == NULL)
		return;
	if (peer->watched == NULL)
		peer->watched = value_new_object();
	if (value_count(peer->watched) >= WATCHED_MAX) {
		mcp_fail(request, MCP_CODE_INTERNAL, NULL,
			 "%d resources are subscribed to; unsubscribe one first.",
			 WATCHED_MAX);
		return;
	}
	value_set_boolean(peer->watched, uri, true);
	mcp_answer_text(request, STR(""));
}

void mcp_resources_unsubscribe(struct mcp_request *request)
{
	const char *uri = uri_of(request);

	if (uri == NULL)
		return;
	if (request->peer->watched != NULL)
		value_remove(request->peer->watched, uri);
	mcp_answer_text(request, STR(""));
}

#define SUFFIX ".md"

enum { PROMPTS_MAX = 256, EMBEDDED_MAX = 4 << 20, PURPOSE_MAX = 2048 };

/* Kinds of files that can be embedded: the end of the name, and the MIME type. */
static const struct {
	const char *suffix, *mime;
} kinds[] = {
	{".png", "image/png"},    {".jpg", "image/jpeg"},
	{".jpeg", "image/jpeg"},  {".gif", "image/gif"},
	{".webp", "image/webp"},  {".svg", "image/svg+xml"},
	{".md", "text/markdown"}, {".json", "application/json"},
};

/* The names of all *.md in FOLDER, sorted. The caller frees each name and the list. */
static char **list_files(const char *folder, size_t *count)
{
	char **names = memory_array(PROMPTS_MAX, sizeof(names[0]));
	DIR *dir = folder != NULL ? opendir(folder) : NULL;

	*count = 0;
	for (struct dirent *entry;
	     dir != NULL && *count < PROMPTS_MAX && (entry = readdir(dir)) != NULL;) {
		if (entry->d_name[0] != '.' && str_ends(str_of(entry->d_name), STR(SUFFIX)))
			names[(*count)++] = memory_copy(entry->d_name);
	}
	if (dir != NULL)
		(void)closedir(dir);
	str_sort(names, *count);
	return names;
}

static bool is_named(const struct value *prompts, const struct value *prompt)
{
	for (size_t i = 0; i < value_count(prompts); i++) {
		if (value_equal(value_member(value_item(prompts, i), "name"),
				value_member(prompt, "name")))
			return true;
	}
	return false;
}

/*
 * Add the prompt in the file PATH. A file that cannot be read is left out, and COMPLAIN
 * (or NULL) gets the reason.
 */
static void add_file(const struct mcp *mcp, const char *path, mcp_complain *complain,
		     struct value *prompts)
{
	struct value *prompt = NULL;
	struct err err = {0};
	struct buf text;

	buf_init(&text, PROMPT_TEXT_MAX);
	auto_free char *name = memory_copy(path_base_name(path));
	if (str_ends(str_of(name), STR(SUFFIX)))
		name[strlen(name) - strlen(SUFFIX)] = '\0';
	if (fd_read_file(path, PROMPT_TEXT_MAX, &text, &err) &&
	    (mcp_prompt_read(buf_str(&text), name, &prompt, &err) ||
	     err_while(&err, "%s", path))) {
		value_set_text(prompt, "path", path);
		if (is_named(prompts, prompt))
			value_free(prompt);
		else
			value_append(prompts, prompt);
	} else if (complain != NULL) {
		complain(mcp->options.context, err.text);
	}
	buf_fini(&text);
}

/*
 * All prompts, each with its `path`. The person's prompts come first; a packaged prompt
 * of the same name is left out.
 */
static struct value *read_prompts(const struct mcp *mcp, mcp_complain *complain)
{
	struct value *prompts = value_new_array();
	size_t count;
	char **names = list_files(mcp->prompts, &count);
	struct buf path;

	buf_init(&path, PATH_MAX);
	for (size_t i = 0; i < count; i++) {
		buf_clear(&path);
		if (buf_addf(&path, "%s/%s", mcp->prompts, names[i]))
			add_file(mcp, path.data, complain, prompts);
		free(names[i]);
	}
	free(names);
	buf_fini(&path);
	for (size_t i = 0; i < value_count(mcp->options.package_prompts); i++) {
		const char *file = value_text(
			value_member(value_item(mcp->options.package_prompts, i), "file"));

		if (file != NULL)
			add_file(mcp, file, complain, prompts);
	}
	return prompts;
}

void mcp_prompts_list(struct mcp_request *request)
{
	auto_value struct value *prompts =
		read_prompts(request->mcp, request->mcp->options.complain);
	struct value *result = value_new_object(), *rows = value_new_array();

	for (size_t i = 0; i < value_count(prompts); i++)
		value_append(rows, mcp_prompt_row(value_item(prompts, i)));
	value_set(result, "prompts", rows);
	mcp_answer(request, result);
}

static const char *mime_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (str_ends(str_of(name), str_of(kinds[i].suffix)))
			return kinds[i].mime;
	}
	return "text/plain";
}

static struct value *image_of(struct str bytes, const char *mime)
{
	struct value *content = value_new_object();
	struct buf data;

	buf_init(&data, EMBEDDED_MAX * 2);
	(void)buf_base64_add(bytes, &data);
	value_set_text(content, "type", "image");
	value_set_str(content, "data", buf_str(&data));
	value_set_text(content, "mimeType", mime);
	buf_fini(&data);
	return content;
}

static struct value *resource_content(struct value *take_item)
{
	struct value *content = value_new_object();

	value_set_text(content, "type", "resource");
	value_set(content, "resource", take_item);
	return content;
}

/* The file NAME beside the prompt at PATH. NAME cannot lead to another folder. */
static struct value *file_beside(const char *path, const char *name)
{
	auto_free char *folder = memory_copy_str(
		str_part(str_of(path), 0, (size_t)(path_base_name(path) - path)));
	auto_close int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int fd =
		folder_fd >= 0 ? fd_open_beneath(folder_fd, name, O_RDONLY) : -1;
	struct value *content = NULL, *item;
	const char *mime = mime_of(name);
	struct stat st;
	struct buf bytes;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	buf_init(&bytes, EMBEDDED_MAX);
	if (fd_read_all(fd, &bytes, name, NULL)) {
		if (str_starts(str_of(mime), STR("image/"))) {
			content = image_of(buf_str(&bytes), mime);
		} else {
			item = value_new_object();
			value_set_text(item, "uri", name);
			value_set_text(item, "mimeType", mime);
			value_set_str(item, "text", buf_str(&bytes));
			content = resource_content(item);
		}
	}
	buf_fini(&bytes);
	return content;
}

struct embedding {
	struct mcp *mcp;
	const char *path; /* of the prompt */
};

static struct value *embed(void *context, const char *target, bool made)
{
	const struct embedding *embedding = context;
	struct value *item;

	if (strstr(target, ":") == NULL)
		return made ? NULL : file_beside(embedding->path, target);
	item = resource_at_hand(embedding->mcp, target);
	return item != NULL ? resource_content(item) : NULL;
}

static struct value *find_prompt(const struct value *prompts, struct str name)
{
	for (size_t i = 0; i < value_count(prompts); i++) {
		struct value *prompt = value_item(prompts, i);

		if (str_equal(value_str(value_member(prompt, "name")), name))
			return prompt;
	}
	return NULL;
}

/* Ask the client for missing arguments: it sends the request again with them. */
static void ask_for(struct mcp_request *request, const struct value *prompt,
		    const struct value *schema)
{
	struct value *asked = value_new_object(), *inputs = value_new_object();
	struct buf text;

	buf_init(&text, PURPOSE_MAX);
	(void)buf_addf(&text,
		       "The prompt %s needs:", value_text(value_member(prompt, "name")));
	value_set_text(asked, "message", text.data);
	value_set(asked, "schema", value_copy(schema));
	value_set_text(asked, "key", "arguments");
	bool one;
	auto_value struct value *requests = mcp_ask_requests("form", asked, 1, &one);
	value_set(inputs, "arguments",
		  mcp_ask_message(value_at(value_first(requests)), false, NULL));
	value_free(asked);
	buf_fini(&text);
	mcp_ask_answer(request, inputs, "arguments");
}

/* Add the client's responses to ARGUMENTS. False: REQUEST has been answered. */
static bool take_responses(struct mcp_request *request, struct value *arguments)
{
	const struct value *responses = value_member(request->params, "inputResponses");
	const struct value *said = value_member(responses, "arguments");
	const struct value *content = value_member(said, "content");
	struct str state;
	const bool sound = value_member(request->params, "requestState") == NULL ||
			   mcp_ask_state(request, &state);

	if (!sound || (responses != NULL && value_kind(responses) != VALUE_OBJECT)) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 sound ? "inputResponses must be an object."
			       : "This requestState was not made here, for this prompt; ask "
				 "for it anew, without requestState.");
		return false;
	}
	for (void *at = value_first(content); at != NULL; at = value_next(content, at)) {
		if (value_text(value_at(at)) != NULL)
			value_set(arguments, value_key(at), value_copy(value_at(at)));
	}
	return true;
}

static void answer_prompt(struct mcp_request *request, const struct value *prompt,
			  const struct value *arguments)
{
	struct embedding embedding = {request->mcp,
				      value_text(value_member(prompt, "path"))};
	const struct mcp_prompt_embed way = {embed, &embedding};
	const char *description = value_text(value_member(prompt, "description"));
	struct value *messages, *result;
	struct err err;

	if (!mcp_prompt_messages(prompt, arguments, &way, &messages, &err)) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL, "%s", err.text);
		return;
	}
	result = value_new_object();
	if (description != NULL)
		value_set_text(result, "description", description);
	value_set(result, "messages", messages);
	mcp_answer(request, result);
}

void mcp_prompts_get(struct mcp_request *request)
{
	const struct str name = value_str(value_member(request->params, "name"));
	const struct value *given = value_member(request->params, "arguments");
	auto_value struct value *prompts = read_prompts(request->mcp, NULL);
	const struct value *prompt = find_prompt(prompts, name);
	auto_value struct value *arguments =
		value_kind(given) == VALUE_OBJECT ? value_copy(given) : value_new_object();

	if (prompt == NULL) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "There is no prompt \"%.*s\"; prompts/list names those there are.",
			 (int)(name.size < 100 ? name.size : 100), name.data);
		return;
	}
	const bool modern = request->client.version >= MCP_2026_07_28;
	if (modern && !take_responses(request, arguments))
		return;
	auto_value struct value *missing = mcp_prompt_missing(prompt, arguments);
	if (missing == NULL)
		answer_prompt(request, prompt, arguments);
	else if (modern && request->client.form)
		ask_for(request, prompt, missing);
	else
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "The prompt needs the argument \"%.100s\".",
			 value_text(value_item(value_member(missing, "required"), 0)));
}

/* The rows of the arguments of REF: those of a prompt, or the places of a template. */
static const struct value *arguments_of(const struct mcp *mcp, const struct value *ref,
					const struct value *prompts)
{
	const struct value *rows = mcp->options.templates;
	const struct str uri = value_str(value_member(ref, "uri"));

	if (str_is(value_str(value_member(ref, "type")), "ref/prompt"))
		return value_member(find_prompt(prompts,
						value_str(value_member(ref, "name"))),
				    "arguments");
	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);

		if (str_equal(value_str(value_member(row, "uriTemplate")), uri))
			return value_member(row, "arguments");
	}
	return NULL;
}

void mcp_complete(struct mcp_request *request)
{
	const struct value *ref = value_member(request->params, "ref");
	const struct value *argument = value_member(request->params, "argument");
	const char *name = value_text(value_member(argument, "name"));
	auto_value struct value *prompts = read_prompts(request->mcp, NULL);
	struct value *result, *completion, *values;

	if (value_kind(ref) != VALUE_OBJECT || name == NULL) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "completion/complete needs a ref and an argument with a name.");
		return;
	}
	values = mcp_prompt_proposals(arguments_of(request->mcp, ref, prompts), name,
				      value_str(value_member(argument, "value")));
	result = value_new_object();
	completion = value_new_object();
	value_set_integer(completion, "total", (int64_t)value_count(values));
	value_set_boolean(completion, "hasMore", false);
	value_set(completion, "values", values);
	value_set(result, "completion", completion);
	mcp_answer(request, result);
}

static const char *const known_keys[] = {"name",      "title",  "description",
					 "arguments", "prompt", NULL};
static const char *const argument_keys[] = {"name",     "title",  "description",
					    "required", "values", NULL};

enum { PROPOSALS_MAX = 100 };

static bool keys_are_known(const struct value *object, const char *const *known,
			   struct err *err)
{
	for (void *at = value_first(object); at != NULL; at = value_next(object, at)) {
		const char *const *name = known;

		while (*name != NULL && strcmp(*name, value_key(at)) != 0)
			name++;
		if (*name == NULL)
			return err_set(err, EINVAL,
				       "the key \"%.40s\" means nothing here%s%s",
				       value_key(at),
				       text_nearest(value_key(at), known) != NULL
					       ? "; did you mean "
					       : "",
				       text_nearest(value_key(at), known) != NULL
					       ? text_nearest(value_key(at), known)
					       : "");
	}
	return true;
}

static bool arguments_are_sound(const struct value *rows, struct err *err)
{
	if (rows == NULL)
		return true;
	if (value_kind(rows) != VALUE_ARRAY || value_count(rows) > PROMPT_ARGUMENTS_MAX)
		return err_set(err, EINVAL, "arguments must be a list of at most %d rows",
			       PROMPT_ARGUMENTS_MAX);
	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);

		if (value_text(value_member(row, "name")) == NULL)
			return err_set(err, EINVAL, "argument %zu has no name", i + 1);
		if (!keys_are_known(row, argument_keys, err))
			return false;
	}
	return true;
}

static bool has_front_matter(struct str text)
{
	return str_starts(text, STR("---\n")) || str_starts(text, STR("---\r\n"));
}

bool mcp_prompt_read(struct str text, const char *name, struct value **prompt,
		     struct err *err)
{
	struct value *made = NULL;

	if (text.size > PROMPT_TEXT_MAX)
		return err_set(err, EFBIG, "is larger than %d bytes", PROMPT_TEXT_MAX);
	if (!text_is_utf8(text))
		return err_set(err, EINVAL, "is not UTF-8");
	if (has_front_matter(text)) {
		if (!front_matter_parse(text, &made, err))
			return false;
	} else {
		made = value_new_object();
		value_set_str(made, "prompt", str_trim(text));
	}
	if (!keys_are_known(made, known_keys, err) ||
	    !arguments_are_sound(value_member(made, "arguments"), err)) {
		value_free(made);
		return false;
	}
	if (value_text(value_member(made, "name")) == NULL)
		value_set_text(made, "name", name);
	*prompt = made;
	return true;
}

static void copy_text(const struct value *from, const char *key, struct value *to)
{
	const char *text = value_text(value_member(from, key));

	if (text != NULL)
		value_set_text(to, key, text);
}

struct value *mcp_prompt_row(const struct value *prompt)
{
	const struct value *rows = value_member(prompt, "arguments");
	struct value *made = value_new_object();

	copy_text(prompt, "name", made);
	copy_text(prompt, "title", made);
	copy_text(prompt, "description", made);
	if (value_count(rows) > 0)
		value_set(made, "arguments", value_new_array());
	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);
		struct value *shown = value_new_object();

		copy_text(row, "name", shown);
		copy_text(row, "title", shown);
		copy_text(row, "description", shown);
		value_set_boolean(shown, "required",
				  value_is_true(value_member(row, "required")));
		value_append(value_member(made, "arguments"), shown);
	}
	return made;
}

struct value *mcp_prompt_missing(const struct value *prompt, const struct value *arguments)
{
	const struct value *rows = value_member(prompt, "arguments");
	struct value *schema = NULL;

	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);
		const char *name = value_text(value_member(row, "name"));
		struct value *field;

		if (!value_is_true(value_member(row, "required")) ||
		    value_text(value_member(arguments, name)) != NULL)
			continue;
		if (schema == NULL) {
			schema = value_new_object();
			value_set_text(schema, "type", "object");
			value_set(schema, "properties", value_new_object());
			value_set(schema, "required", value_new_array());
		}
		field = value_new_object();
		value_set_text(field, "type", "string");
		copy_text(row, "title", field);
		copy_text(row, "description", field);
		value_set(value_member(schema, "properties"), name, field);
		value_append(value_member(schema, "required"), value_new_text(name));
	}
	return schema;
}

static void add_message(struct value *messages, struct value *take_content)
{
	struct value *message = value_new_object();

	value_set_text(message, "role", "user");
	value_set(message, "content", take_content);
	value_append(messages, message);
}

static void end_text(struct buf *text, struct value *messages)
{
	const struct str trimmed = str_trim(buf_str(text));
	struct value *content;

	if (trimmed.size > 0) {
		content = value_new_object();
		value_set_text(content, "type", "text");
		value_set_str(content, "text", trimmed);
		add_message(messages, content);
	}
	buf_clear(text);
}

/* Is LINE nothing but ![words](target)? Then TARGET is set. */
static bool is_embedded(struct str line, struct str *target)
{
	const struct str trimmed = str_trim(line);
	const size_t at = str_find(trimmed, STR("]("), 0);

	if (!str_starts(trimmed, STR("![")) || at == (size_t)-1 ||
	    !str_ends(trimmed, STR(")")))
		return false;
	*target = str_part(trimmed, at + 2, trimmed.size - at - 3);
	return target->size > 0;
}

static bool embed_target(struct str target, const struct value *arguments,
			 const struct mcp_prompt_embed *embed, struct value *messages,
			 struct err *err)
{
	struct value *content;
	struct buf name;

	buf_init(&name, PROMPT_TEXT_MAX);
	(void)message_fill_add(target, arguments, &name);
	content = embed->content(embed->context, name.data, message_fill_has_place(target));
	if (content != NULL)
		add_message(messages, content);
	else
		(void)err_set(err, ENOENT,
			      "There is no %.200s, which the prompt wants to show.",
			      name.data);
	buf_fini(&name);
	return content != NULL;
}

bool mcp_prompt_messages(const struct value *prompt, const struct value *arguments,
			 const struct mcp_prompt_embed *embed, struct value **messages,
			 struct err *err)
{
	struct str rest = value_str(value_member(prompt, "prompt")), line, target;
	struct value *made = value_new_array();
	struct buf text;
	bool ok = true;

	buf_init(&text, VALUE_TEXT_MAX);
	/*
	 * Go through the lines as they were written, so that the text of an argument is
	 * never taken for a target.
	 */
	while (ok && str_next_line(&rest, &line)) {
		if (is_embedded(line, &target)) {
			end_text(&text, made);
			ok = embed_target(target, arguments, embed, made, err);
			continue;
		}
		(void)message_fill_add(line, arguments, &text);
		(void)buf_addc(&text, '\n');
	}
	end_text(&text, made);
	buf_fini(&text);
	if (ok)
		*messages = made;
	else
		value_free(made);
	return ok;
}

struct value *mcp_prompt_proposals(const struct value *arguments, const char *name,
				   struct str text)
{
	struct value *found = value_new_array();

	for (size_t i = 0; i < value_count(arguments); i++) {
		const struct value *row = value_item(arguments, i);
		const struct value *values = value_member(row, "values");

		if (!str_is(value_str(value_member(row, "name")), name))
			continue;
		for (size_t j = 0; j < value_count(values); j++) {
			const struct value *value = value_item(values, j);

			if (value_count(found) < PROPOSALS_MAX &&
			    str_starts(value_str(value), text))
				value_append(found, value_copy(value));
		}
	}
	return found;
}
