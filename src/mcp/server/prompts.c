/*
 * prompts: those of the person's folder and of plugin packages, read when they are asked for;
 * and completion, which is for their arguments and the places of templates.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "mcp/server/call.h"
#include "mcp/server/mcp.h"
#include "mcp/server/prompt.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".md"

enum { PROMPTS_MAX = 256, EMBEDDED_MAX = 4 << 20, PURPOSE_MAX = 2048 };

/* Files that are embedded, by the end of their name, with their MIME type. */
static const struct {
	const char *suffix, *mime;
} kinds[] = {
	{".png", "image/png"},    {".jpg", "image/jpeg"},
	{".jpeg", "image/jpeg"},  {".gif", "image/gif"},
	{".webp", "image/webp"},  {".svg", "image/svg+xml"},
	{".md", "text/markdown"}, {".json", "application/json"},
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The *.md of FOLDER in the order of their names; free each and all. */
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
	qsort(names, *count, sizeof(names[0]), compare_names);
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

/* One that cannot be read is left out; COMPLAIN (or NULL) is told why. */
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
	    (prompt_read(buf_str(&text), name, &prompt, &err) ||
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

/* All of them, each with its `path`. A person's own come first and win. */
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
		value_append(rows, prompt_row(value_item(prompts, i)));
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
	(void)base64_add(bytes, &data);
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

/* The file NAME beside the prompt at PATH, which leads nowhere else. */
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
	item = mcp_resource_at_hand(embedding->mcp, target);
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

static void add_purpose(const struct value *prompt, struct buf *purpose)
{
	(void)buf_addf(purpose, "prompts/get %s", value_text(value_member(prompt, "name")));
}

/* Ask the client for missing arguments: it sends the request again with them. */
static void ask_for(struct mcp_request *request, const struct value *prompt,
		    const struct value *schema)
{
	struct value *asked = value_new_object(), *result = value_new_object();
	struct value *inputs = value_new_object();
	struct buf text;

	buf_init(&text, PURPOSE_MAX);
	(void)buf_addf(&text,
		       "The prompt %s needs:", value_text(value_member(prompt, "name")));
	value_set_text(asked, "message", text.data);
	value_set(asked, "schema", value_copy(schema));
	value_set_text(asked, "key", "arguments");
	bool one;
	auto_value struct value *requests = ask_requests("form", asked, 1, &one);
	value_set(inputs, "arguments",
		  ask_message(value_at(value_first(requests)), false, NULL));
	value_free(asked);
	buf_clear(&text);
	add_purpose(prompt, &text);
	struct buf sealed;
	buf_init(&sealed, PURPOSE_MAX);
	seal_add(&request->mcp->key, buf_str(&text), STR("arguments"), &sealed);
	value_set_text(result, "resultType", "input_required");
	value_set(result, "inputRequests", inputs);
	value_set_text(result, "requestState", sealed.data);
	buf_fini(&sealed);
	buf_fini(&text);
	mcp_answer(request, result);
}

/* Add the client's responses to ARGUMENTS. False: REQUEST has been answered. */
static bool take_responses(struct mcp_request *request, const struct value *prompt,
			   struct value *arguments)
{
	const struct value *state = value_member(request->params, "requestState");
	const struct value *responses = value_member(request->params, "inputResponses");
	const struct value *said = value_member(responses, "arguments");
	const struct value *content = value_member(said, "content");
	bool sound = true;
	struct buf purpose;
	struct str inner;

	if (state != NULL) {
		buf_init(&purpose, PURPOSE_MAX);
		add_purpose(prompt, &purpose);
		sound = seal_check(&request->mcp->key, buf_str(&purpose),
				   value_str(state), &inner);
		buf_fini(&purpose);
	}
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
	const struct prompt_embed way = {embed, &embedding};
	const char *description = value_text(value_member(prompt, "description"));
	struct value *messages, *result;
	struct err err;

	if (!prompt_messages(prompt, arguments, &way, &messages, &err)) {
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
	if (modern && !take_responses(request, prompt, arguments))
		return;
	auto_value struct value *missing = prompt_missing(prompt, arguments);
	if (missing == NULL)
		answer_prompt(request, prompt, arguments);
	else if (modern && request->client.form)
		ask_for(request, prompt, missing);
	else
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "The prompt needs the argument \"%.100s\".",
			 value_text(value_item(value_member(missing, "required"), 0)));
}

/* The rows of arguments that REF names: of a prompt, or of a template's places. */
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
	values = prompt_proposals(arguments_of(request->mcp, ref, prompts), name,
				  value_str(value_member(argument, "value")));
	result = value_new_object();
	completion = value_new_object();
	value_set_integer(completion, "total", (int64_t)value_count(values));
	value_set_boolean(completion, "hasMore", false);
	value_set(completion, "values", values);
	value_set(result, "completion", completion);
	mcp_answer(request, result);
}
