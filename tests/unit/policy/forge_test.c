/* forge: names of repositories, as remotes and paths of requests say them. */
#include "../base/unit.h"

#include <string.h>

#include "policy/credentials/forge.h"

static void addresses_name_repositories(void **state)
{
	static const struct {
		const char *address, *name; /* NULL: it names none */
	} rows[] = {
		{"https://github.com/Me/Own.git", "github.com/me/own"},
		{"https://github.com/me/own", "github.com/me/own"},
		{"https://github.com/me/own/", "github.com/me/own"},
		{"https://github.com/me/own.git/", "github.com/me/own"},
		{"https://me@github.com/me/own", "github.com/me/own"},
		{"https://me:token@GitHub.com:443/me/own", "github.com/me/own"},
		{"http://github.com//me/own", "github.com/me/own"},
		{"git@github.com:me/own.git", "github.com/me/own"},
		{"github.com:/me/own.git", "github.com/me/own"},
		{"ssh://git@github.com:22/me/own.git", "github.com/me/own"},
		{"git+ssh://github.com/me/own", "github.com/me/own"},
		{"git://github.com/me/own", "github.com/me/own"},
		{"https://gitlab.com/group/sub/own.git", "gitlab.com/group/sub/own"},
		{"https://github.com/me/own.git.git", "github.com/me/own.git"},
		{"https://github.com/me", NULL},
		{"https://github.com/me/", NULL},
		{"https://github.com/", NULL},
		{"https://github.com", NULL},
		{"https://github.com/me/../you/own", NULL},
		{"https://github.com/me//own", NULL},
		{"https://github.com/me/.git", NULL},
		{"https://github.com/me/own?x", NULL},
		{"https://github.com/me/%6fwn", NULL},
		{"https://github.com/me/own\n", NULL},
		{"https://github.com\\@evil.example/me/own", NULL},
		{"https://a@b@github.com/me/own", NULL},
		{"https://github.com:99999/me/own", NULL},
		{"file:///github.com/me/own", NULL},
		{"ext::sh -c github.com/me/own", NULL},
		{"./github.com:me/own", NULL},
		{"/srv/git/own", NULL},
		{"../own", NULL},
		{"own", NULL},
		{"", NULL},
	};
	char name[FORGE_NAME_MAX], deep[4096];

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		const bool found = forge_read_address(str_of(rows[i].address), name);

		if (found != (rows[i].name != NULL) ||
		    strcmp(name, found ? rows[i].name : "") != 0)
			fail_msg("%s: %s", rows[i].address, name);
	}
	memset(deep, 'a', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	memcpy(deep, "https://github.com/me/", 22);
	assert_false(forge_read_address(str_of(deep), name));
	for (size_t i = 22; i + 1 < sizeof(deep); i++)
		deep[i] = i % 2 == 0 ? 'a' : '/';
	assert_false(forge_read_address(str_of(deep), name));
}

static void requests_are_for_repositories(void **state)
{
	static const struct {
		enum forge form;
		const char *host, *method, *path, *query;
		enum forge_kind kind;
		const char *repository;
	} rows[] = {
		{FORGE_GITHUB, "api.github.com", "GET", "/repos/Me/Own", "",
		 FORGE_PROJECT, "github.com/me/own"},
		{FORGE_GITHUB, "api.github.com", "GET", "/repos/me/own/issues/1", "",
		 FORGE_PROJECT, "github.com/me/own"},
		{FORGE_GITHUB, "api.github.com", "GET", "/REPOS/me/own.git/x", "",
		 FORGE_PROJECT, "github.com/me/own"},
		{FORGE_GITHUB, "api.github.com", "GET", "/repos/me", "", FORGE_PROJECT, ""},
		{FORGE_GITHUB, "api.github.com", "GET", "/repos/me/o n/x", "",
		 FORGE_PROJECT, ""},
		{FORGE_GITHUB, "api.github.com", "GET", "/repositories/1/x", "",
		 FORGE_PROJECT, ""},
		{FORGE_GITHUB, "api.github.com", "GET", "/repos/", "", FORGE_PROJECT, ""},
		{FORGE_GITHUB, "api.github.com", "GET", "/repos", "", FORGE_API, ""},
		{FORGE_GITHUB, "api.github.com", "GET", "/user", "", FORGE_API, ""},
		{FORGE_GITHUB, "api.github.com", "POST", "/graphql", "", FORGE_API, ""},
		/* at the host of git, the API is below /api/v3 */
		{FORGE_GITHUB, "forge.example", "GET", "/api/v3/repos/me/own/x", "",
		 FORGE_PROJECT, "forge.example/me/own"},
		{FORGE_GITHUB, "forge.example", "POST", "/api/graphql", "", FORGE_API, ""},
		{FORGE_GITHUB, "github.com", "GET", "/repos/me/own", "", FORGE_PAGE, ""},
		{FORGE_GITHUB, "github.com", "GET", "/api/v33/info/refs", "", FORGE_API, ""},
		{FORGE_GITHUB, "github.com", "GET", "/me/own.git/info/refs",
		 "service=git-upload-pack", FORGE_FETCH, "github.com/me/own"},
		{FORGE_GITHUB, "github.com", "GET", "/me/own/info/refs", "", FORGE_FETCH,
		 "github.com/me/own"},
		{FORGE_GITHUB, "github.com", "GET", "/me/own/info/refs",
		 "service=git-receive-pack", FORGE_PUSH, "github.com/me/own"},
		{FORGE_GITHUB, "github.com", "GET", "/me/own/info/refs",
		 "service=git-upload-pack&service=git-receive-pack", FORGE_PUSH,
		 "github.com/me/own"},
		{FORGE_GITHUB, "github.com", "POST", "/me/own/git-upload-pack", "",
		 FORGE_FETCH, "github.com/me/own"},
		{FORGE_GITHUB, "github.com", "GET", "/me/own/git-upload-pack", "",
		 FORGE_PAGE, ""},
		{FORGE_GITHUB, "github.com", "POST", "/me/own.git/git-receive-pack", "",
		 FORGE_PUSH, "github.com/me/own"},
		{FORGE_GITHUB, "github.com", "POST", "/me/own.git/info/lfs/objects/batch",
		 "", FORGE_OBJECTS, "github.com/me/own"},
		{FORGE_GITHUB, "github.com", "POST", "/me/own/x/git-receive-pack", "",
		 FORGE_PUSH, ""},
		{FORGE_GITHUB, "github.com", "POST", "/own/git-receive-pack", "",
		 FORGE_PUSH, ""},
		{FORGE_GITHUB, "github.com", "POST", "/git-receive-pack", "", FORGE_PUSH, ""},
		{FORGE_GITHUB, "github.com", "POST", "/me/own.git.git/git-receive-pack",
		 "", FORGE_PUSH, "github.com/me/own.git"},
		{FORGE_GITHUB, "github.com", "POST", "/me/own/git-receive-pack/", "",
		 FORGE_PAGE, ""},
		{FORGE_GITHUB, "github.com", "GET", "/me/own/archive/x.tar.gz", "",
		 FORGE_PAGE, ""},
		{FORGE_GITLAB, "gitlab.com", "GET", "/api/v4/projects/Group%2FSub%2FOwn",
		 "", FORGE_PROJECT, "gitlab.com/group/sub/own"},
		{FORGE_GITLAB, "gitlab.com", "GET", "/api/v4/projects/me%2Fown/a%2Fb", "",
		 FORGE_PROJECT, "gitlab.com/me/own"},
		{FORGE_GITLAB, "gitlab.com", "GET", "/api/v4/projects/7/issues", "",
		 FORGE_PROJECT, ""},
		{FORGE_GITLAB, "gitlab.com", "GET", "/api/v4/projects/me/own", "",
		 FORGE_PROJECT, ""},
		{FORGE_GITLAB, "gitlab.com", "GET", "/api/v4/projects", "", FORGE_API, ""},
		{FORGE_GITLAB, "gitlab.com", "GET", "/api/v4/projects/", "",
		 FORGE_PROJECT, ""},
		{FORGE_GITLAB, "gitlab.com", "POST", "/api/graphql", "", FORGE_API, ""},
		{FORGE_GITLAB, "gitlab.com", "POST", "/group/sub/own.git/git-receive-pack",
		 "", FORGE_PUSH, "gitlab.com/group/sub/own"},
		{FORGE_GITLAB, "api.example", "GET", "/projects/me%2Fown", "", FORGE_PAGE,
		 ""},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct forge_request request;

		forge_read_request(rows[i].form, rows[i].host, str_of(rows[i].method),
				   str_of(rows[i].path), str_of(rows[i].query), &request);
		if (request.kind != rows[i].kind ||
		    strcmp(request.repository, rows[i].repository) != 0)
			fail_msg("%s %s: %d %s", rows[i].host, rows[i].path, request.kind,
				 request.repository);
	}
}

static void slashes_are_letters_in_gitlabs_paths_only(void **state)
{
	(void)state;
	assert_true(str_is(forge_escaped_part(FORGE_GITLAB, STR("/api/v4/projects/a%2fb/c")),
			   "a%2fb/c"));
	assert_int_equal(forge_escaped_part(FORGE_GITLAB, STR("/api/v4/projects")).size, 0);
	assert_int_equal(forge_escaped_part(FORGE_GITLAB, STR("/x/api/v4/projects/a")).size,
			 0);
	assert_int_equal(forge_escaped_part(FORGE_GITHUB, STR("/repos/a%2fb")).size, 0);
	assert_int_equal(forge_escaped_part(FORGE_NONE, STR("/api/v4/projects/a")).size, 0);
	assert_int_equal(forge_of_name(STR("github")), FORGE_GITHUB);
	assert_int_equal(forge_of_name(STR("gitlab")), FORGE_GITLAB);
	assert_int_equal(forge_of_name(STR("")), FORGE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_name_repositories),
		cmocka_unit_test(requests_are_for_repositories),
		cmocka_unit_test(slashes_are_letters_in_gitlabs_paths_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
