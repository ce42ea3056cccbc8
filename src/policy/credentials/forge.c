/* forge: names of repositories, in addresses of remotes and in paths of requests. */

#include "policy/credentials/forge.h"

#include "base/str.h"
#include "policy/network.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Names. */

/* How a name is put together; `size` stays below FORGE_NAME_MAX. */
struct name {
	char *text;
	size_t size;
	bool fine;
};

static void add(struct name *name, char c)
{
	name->fine = name->fine && name->size + 1 < FORGE_NAME_MAX;
	if (name->fine)
		name->text[name->size++] = (char)tolower((unsigned char)c);
	name->text[name->size] = '\0';
}

/* Add one part of a path, behind a slash. */
static void add_part(struct name *name, struct str part)
{
	add(name, '/');
	name->fine =
		name->fine && part.size > 0 && !str_is(part, ".") && !str_is(part, "..");
	for (size_t i = 0; name->fine && i < part.size; i++) {
		const char c = part.data[i];

		name->fine = (c > 0 && isalnum((unsigned char)c)) || c == '.' ||
			     c == '-' || c == '_';
		add(name, c);
	}
}

/*
 * HOST and PATH, whose parts are divided by DIVIDER, become one name of LEAST to MOST
 * parts. Without it REPOSITORY is empty.
 */
static bool make_name(const char *host, struct str path, struct str divider, size_t least,
		      size_t most, char repository[FORGE_NAME_MAX])
{
	struct name name = {.text = repository, .fine = true};
	size_t parts = 0;

	if (str_ends(path, STR(".git")))
		path.size -= sizeof(".git") - 1;
	for (; *host != '\0'; host++)
		add(&name, *host);
	for (bool last = false; !last && name.fine; parts++) {
		const size_t end = str_find(path, divider, 0);

		last = end == (size_t)-1;
		add_part(&name, str_part(path, 0, end));
		if (!last)
			path = str_part(path, end + divider.size, path.size);
	}
	if (!name.fine || parts < least || parts > most)
		repository[0] = '\0';
	return repository[0] != '\0';
}

/* Deeper than GitLab's groups go. */
enum { PARTS_MAX = 32 };

/* Addresses of remotes. */

/* The part of TEXT behind its only '@'; TEXT without one. Empty with more than one. */
static struct str behind_user(struct str text)
{
	const size_t at = str_find(text, STR("@"), 0);

	if (at == (size_t)-1)
		return text;
	text = str_part(text, at + 1, text.size);
	return str_find(text, STR("@"), 0) == (size_t)-1 ? text : (struct str){0};
}

/* TEXT is "scheme://authority/path", or "user@host:path" of ssh. */
static bool divide_address(struct str text, struct str *authority, struct str *path)
{
	static const char schemes[] = "https http ssh git git+ssh ssh+git";
	const size_t scheme = str_find(text, STR("://"), 0);
	size_t end;

	if (scheme != (size_t)-1) {
		if (!str_among(schemes, str_part(text, 0, scheme)))
			return false;
		text = str_part(text, scheme + 3, text.size);
		end = str_find(text, STR("/"), 0);
	} else {
		end = str_find(text, STR(":"), 0);
		/* With a slash before the colon it is a path of this machine. */
		if (end != (size_t)-1 && str_find(text, STR("/"), 0) < end)
			return false;
	}
	/* A backslash is a slash for some programs. */
	if (end == (size_t)-1 || str_find(text, STR("\\"), 0) != (size_t)-1)
		return false;
	*authority = behind_user(str_part(text, 0, end));
	*path = str_part(text, end + 1, text.size);
	return true;
}

bool forge_read_address(struct str address, char repository[FORGE_NAME_MAX])
{
	struct str authority, path;
	struct network_host host;
	uint16_t port;

	repository[0] = '\0';
	if (!divide_address(address, &authority, &path) ||
	    !network_parse_authority(authority, NETWORK_PORT_TLS, &host, &port, NULL))
		return false;
	while (str_starts(path, STR("/")))
		path = str_part(path, 1, path.size);
	while (str_ends(path, STR("/")))
		path.size--;
	return make_name(host.text, path, STR("/"), 2, PARTS_MAX, repository);
}

/* Paths of requests. */

struct form {
	const char *name;
	const char *api;     /* the beginning of the API's paths, at a host of git */
	bool at_api_host;    /* the API is at api.HOST too, without `api` */
	const char *project; /* in the API, before the name of a repository */
	const char *divider; /* between the parts of that name */
	const char *number;  /* in the API, before the number of a repository; or NULL */
	size_t parts;        /* of a name, at most */
};

static const struct form forms[] = {
	[FORGE_GITHUB] = {"github", "/api/v3", true, "/repos/", "/", "/repositories/", 2},
	[FORGE_GITLAB] = {"gitlab", "/api/v4", false, "/projects/", "%2F", NULL, PARTS_MAX},
};

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

enum forge forge_of_name(struct str name)
{
	size_t form = FORGE_GITHUB;

	while (form < FORMS && !str_is(name, forms[form].name))
		form++;
	return form < FORMS ? (enum forge)form : FORGE_NONE;
}

/* Does TEXT begin with PREFIX? Some servers do not mind the case. Then cut it off. */
static bool cut(struct str *text, const char *prefix)
{
	if (!str_starts_caseless(*text, prefix))
		return false;
	*text = str_part(*text, strlen(prefix), text->size);
	return true;
}

/* Does TEXT end with ENDING? Then cut it off. */
static bool cut_end(struct str *text, const char *ending)
{
	if (!str_ends(*text, str_of(ending)))
		return false;
	text->size -= strlen(ending);
	return true;
}

struct str forge_escaped_part(enum forge form, struct str path)
{
	struct str rest = path;

	if (form == FORGE_NONE || strcmp(forms[form].divider, "/") == 0 ||
	    !cut(&rest, forms[form].api) || !cut(&rest, forms[form].project))
		return (struct str){0};
	return rest;
}

/* PATH is of the API, and its beginning (`api`) is cut off. */
static void read_api(const struct form *form, const char *host, struct str path,
		     struct forge_request *request)
{
	struct str name;
	size_t end;

	request->kind = FORGE_API;
	if (form->number != NULL && cut(&path, form->number))
		request->kind = FORGE_PROJECT;
	if (!cut(&path, form->project))
		return;
	request->kind = FORGE_PROJECT;
	end = str_find(path, STR("/"), 0);
	if (strcmp(form->divider, "/") == 0 && end != (size_t)-1)
		end = str_find(path, STR("/"), end + 1);
	name = str_part(path, 0, end);
	(void)make_name(host, name, str_of(form->divider), 2, form->parts,
			request->repository);
}

/* Does QUERY say that git comes to fetch? */
static bool is_fetching(struct str query)
{
	return query.size == 0 || str_is(query, "service=git-upload-pack");
}

/* PATH is of git, or of a page. */
static void read_git(const struct form *form, const char *host, struct str method,
		     struct str path, struct str query, struct forge_request *request)
{
	static const struct {
		const char *ending, *methods;
		enum forge_kind kind;
	} rows[] = {
		{"/info/refs", "GET HEAD", FORGE_FETCH},
		{"/git-upload-pack", "POST", FORGE_FETCH},
		{"/git-receive-pack", "POST", FORGE_PUSH},
		{"/info/lfs/objects/batch", "POST", FORGE_OBJECTS},
		{"/info/lfs/locks", "GET HEAD POST", FORGE_PUSH},
		{"/info/lfs/locks/verify", "POST", FORGE_PUSH},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!cut_end(&path, rows[i].ending))
			continue;
		if (!str_among(rows[i].methods, method))
			return;
		request->kind = i == 0 && !is_fetching(query) ? FORGE_PUSH : rows[i].kind;
		(void)make_name(host, str_part(path, 1, path.size), STR("/"), 2,
				form->parts, request->repository);
		return;
	}
}

void forge_read_request(enum forge form, const char *host, struct str method,
			struct str path, struct str query, struct forge_request *request)
{
	const struct form *row = &forms[form];
	struct str of_api = path, any = path;

	*request = (struct forge_request){.kind = FORGE_PAGE};
	if (row->at_api_host && strncmp(host, "api.", 4) == 0)
		read_api(row, host + 4, path, request);
	else if (cut(&of_api, row->api) && (of_api.size == 0 || of_api.data[0] == '/'))
		read_api(row, host, of_api, request);
	else if (cut(&any, "/api/"))
		request->kind = FORGE_API; /* GraphQL and uploads, of no version */
	else
		read_git(row, host, method, path, query, request);
}
