/* credential: the shipped ones, entries over them, and the sentences about mistakes. */
#include "../base/unit.h"

#include <stdio.h>
#include <string.h>

#include "policy/config.h"
#include "policy/credentials/credential.h"

enum { TEXT_MAX = 64 << 10 };

static bool parse(const char *credentials, struct config **config, struct err *err)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	(void)buf_addf(&text, "{\"credentials\": {%s}}", credentials);
	bool fine = config_parse(buf_str(&text), "c", config, err);
	buf_fini(&text);
	return fine;
}

static void all_shipped_ones_are_read(void **state)
{
	static const char *const wanted[] = {"anthropic-login", "anthropic",  "brave",
					     "crates",          "exa",        "github",
					     "gitlab",          "google",     "npm",
					     "openai",          "openrouter", "pypi",
					     "rubygems",        "tavily",     NULL};
	struct arena arena;

	(void)state;
	arena_init(&arena);
	const char **names = credential_names(NULL, &arena);
	for (size_t i = 0; wanted[i] != NULL || names[i] != NULL; i++) {
		struct credential credential;
		struct err err = {0};

		assert_non_null(names[i]);
		assert_non_null(wanted[i]);
		assert_string_equal(names[i], wanted[i]);
		if (!credential_find(NULL, wanted[i], &credential, &err))
			fail_msg("%s", err.text);
		assert_true(credential.source_count > 0 && credential.host_count > 0 &&
			    credential.place_count > 0 && credential.variables.count > 0);
		assert_true(credential.scrub);
		credential_fini(&credential);
	}
	arena_fini(&arena);
}

static void an_entry_beats_the_shipped_one_key_by_key(void **state)
{
	auto_config struct config *config = NULL;
	struct credential credential;
	struct arena arena;
	struct buf url;
	struct err err = {0};

	(void)state;
	if (!parse("\"anthropic\": {\"from\": [\"keyring:anthropic/me\", {\"command\": "
		   "[\"pass\", \"show\", \"a\"], \"keep_s\": 60}, "
		   "\"file:~/a#b#/c/d\"]},"
		   "\"mine\": {\"from\": [\"env:A\"], \"hosts\": [\"a.example:8443\", "
		   "\"127.0.0.1:99\"], \"place\": [\"bearer\", \"query: k\"], \"allow\": [\"* "
		   "/a/**\"], \"ca_file\": \"~/ca.pem\"}",
		   &config, &err))
		fail_msg("%s", err.text);
	const struct value *entries = config_value(config, "credentials");

	assert_true(credential_find(entries, "anthropic", &credential, &err));
	assert_int_equal(credential.source_count, 3);
	assert_int_equal(credential.sources[0].from, FROM_KEYRING);
	assert_string_equal(credential.sources[0].text, "anthropic");
	assert_string_equal(credential.sources[0].more, "me");
	assert_int_equal(credential.sources[1].from, FROM_COMMAND);
	assert_string_equal(credential.sources[1].shown, "command: pass");
	assert_string_equal(credential.sources[1].argv[2], "a");
	assert_null(credential.sources[1].argv[3]);
	assert_true(credential.sources[1].keep_s == 60);
	assert_string_equal(credential.sources[2].text, "~/a#b");
	assert_string_equal(credential.sources[2].more, "/c/d");
	/* the rest is the shipped one's */
	assert_int_equal(credential.places[0].at, AT_HEADER);
	assert_string_equal(credential.places[0].name, "x-api-key");
	assert_int_equal(credential.errors, ERRORS_ANTHROPIC);
	buf_init(&url, TEXT_MAX);
	assert_true(credential_base_url(&credential, &credential.bases[0], 4000, &url));
	assert_string_equal(url.data, "http://127.0.0.1:4000/anthropic");
	credential_fini(&credential);

	assert_true(credential_find(entries, "mine", &credential, &err));
	assert_int_equal(credential.hosts[0].port, 8443);
	assert_int_equal(credential.place_count, 2);
	assert_true(credential.allow.given && !credential.foreign.given);
	assert_string_equal(credential.allow.items[0].method, "*");
	assert_string_equal(credential.allow.items[0].path, "/a/**");
	assert_string_equal(credential.ca_file, "~/ca.pem");
	/* the struct goes to another process as its entry */
	struct credential again;
	assert_true(credential_read("mine", credential.root, &again, &err));
	assert_true(value_equal(again.root, credential.root));
	credential_fini(&again);
	credential_fini(&credential);

	assert_true(credential_find(entries, "openai", &credential, &err));
	assert_true(credential.websocket);
	buf_clear(&url);
	assert_true(credential_base_url(&credential, &credential.bases[0], 1, &url));
	assert_string_equal(url.data, "http://127.0.0.1:1/openai/v1");
	credential_fini(&credential);

	assert_false(credential_find(entries, "antropic", &credential, &err));
	assert_string_equal(
		err.text,
		"there is no credential \"antropic\" (did you mean \"anthropic\"?); there are "
		"anthropic-login, anthropic, brave, crates, exa, github, gitlab, google, npm, "
		"openai, openrouter, pypi, rubygems, tavily, mine. "
		"Another one is an entry of `credentials` in the configuration");
	credential_fini(&credential);
	arena_init(&arena);
	const char **names = credential_names(entries, &arena);
	assert_string_equal(names[14], "mine");
	assert_null(names[15]);
	arena_fini(&arena);
	buf_fini(&url);
}

/* A whole entry with one part exchanged; the sentence begins with the pointer. */
#define SOUND "\"from\": [\"env:A\"], \"hosts\": [\"a.example\"], \"place\": \"bearer\""

/* ENTRY is refused with a sentence that begins with SENTENCE. */
static void assert_refused(const char *entry, const char *sentence)
{
	auto_config struct config *config = NULL;
	char text[1024], wanted[512];
	struct err err = {0};

	(void)snprintf(text, sizeof(text), "\"a\": {%s}", entry);
	(void)snprintf(wanted, sizeof(wanted), "c: /credentials/a%s", sentence);
	if (parse(text, &config, &err))
		fail_msg("%s is taken", entry);
	if (strncmp(err.text, wanted, strlen(wanted)) != 0)
		fail_msg("%s:\n%s", wanted, err.text);
}

static void mistakes_of_a_renewal_are_named(void **state)
{
	static const struct {
		const char *entry, *sentence;
	} rows[] = {
		{"\"refresh\": {\"url\": \"http://a.example/\", \"send\": [], \"store\": {}}",
		 "/refresh/url: is https://HOST/path"},
		{"\"refresh\": {\"url\": \"https://a.example/t\", \"send\": [\"r\"]}",
		 "/refresh: needs \"store\""},
		{"\"refresh\": {\"url\": \"https://a.example/t\", \"send\": [\"r\"], \"store\": "
		 "{\"a\": \"b\"}}",
		 "/refresh/store/a: must be a JSON pointer"},
		{SOUND ", \"refresh\": {\"url\": \"https://b.example/t\", \"send\": [\"r\"], "
		       "\"store\": {\"a\": \"/b\"}}",
		 ": the url of `refresh` is at none of its hosts"},
		{SOUND ", \"refresh\": {\"url\": \"https://a.example:444/t\", \"send\": "
		       "[\"r\"], \"store\": {\"a\": \"/b\"}}",
		 ": the url of `refresh` is at none of its hosts"},
		{SOUND ", \"shape\": \"jwt\", \"refresh\": {\"url\": \"https://a.example/t\", "
		       "\"send\": [\"r\"], \"store\": {\"a\": \"/b\"}}",
		 ": a login with `refresh` has no shape \"jwt\""},
		{"\"refresh\": {\"url\": \"https://a.example/t\", \"send\": [\"r\"], \"store\": "
		 "{\"a\": \"/b\"}, \"keep\": [\"/b\", \"c\"]}",
		 "/refresh/keep/1: must be a JSON pointer"},
		{"\"refresh\": {\"url\": \"https://a.example/t\", \"send\": [\"r\"], \"store\": "
		 "{\"a\": \"/b\"}, \"expires\": \"c\"}",
		 "/refresh/expires: must be a JSON pointer"},
		{"\"refresh\": {\"url\": \"https://a.example/t\", \"send\": [\"r\"], \"store\": "
		 "{}}",
		 "/refresh/store: has 1 to 4 members"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++)
		assert_refused(rows[i].entry, rows[i].sentence);
}

static const struct {
	const char *entry, *sentence;
} mistakes[] = {
	{"\"from\": [\"env:A\"], \"place\": \"bearer\"", ": needs \"hosts\""},
	{"\"from\": [], \"hosts\": [\"a.example\"], \"place\": \"bearer\"",
	 ": needs \"from\""},
	{SOUND ", \"varables\": []",
	 ": there is no key \"varables\" (did you mean \"variables\"?); the keys are "
	 "from, hosts,"},

	{"\"from\": [\"A\"]", "/from/0: begins with env:, file: or keyring:"},
	{"\"from\": [\"env:A-B\"]", "/from/0: env: is followed by the name of a variable"},
	{"\"from\": [\"file:key\"]", "/from/0: the path of file: begins with / or ~/"},
	{"\"from\": [\"file:~/key#=\"]",
	 "/from/0: a line of a file is named as #=NAME or #[SECTION]NAME"},
	{"\"from\": [\"file:~/key#[a]\"]",
	 "/from/0: a line of a file is named as #=NAME or #[SECTION]NAME"},
	{"\"from\": [\"file:~/key#[]a\"]",
	 "/from/0: a line of a file is named as #=NAME or #[SECTION]NAME"},
	{"\"from\": [\"keyring:a\"]", "/from/0: a keyring is named as keyring:SERVICE/USER"},
	{"\"from\": [\"command:pass\"]",
	 "/from/0: a command is an object: {\"command\": [\"pass\", \"show\", \"key\"]}"},
	{"\"from\": [{\"command\": []}]", "/from/0/command: may not be empty"},
	{"\"from\": [{\"command\": [\"\"]}]",
	 "/from/0/command: begins with the name of a program"},
	{"\"hosts\": [\"*.example\"]",
	 "/hosts/0: is `host` or `host:port`: a key goes to named hosts only"},
	{"\"hosts\": [\"tcp://a.example:1\"]",
	 "/hosts/0: is `host` or `host:port`: a key goes to named hosts only"},
	{"\"place\": []", "/place: must be text, or a list of 1 to 4 texts"},
	{"\"place\": [\"bearer\", \"cookie\"]",
	 "/place/1: is one of bearer, \"header: NAME\", \"basic:USER\" and \"query: NAME\""},
	{"\"place\": \"header: Host\"",
	 "/place: header: is followed by the name of a header for keys"},
	{"\"place\": \"header: a\\nb\"",
	 "/place: header: is followed by the name of a header for keys"},
	{"\"place\": \"basic:a:b\"", "/place: basic: is followed by the name of a user"},
	{"\"variables\": [\"A=b\"]",
	 "/variables/0: is the name of a variable, without a value"},
	{"\"variables\": [\"HTTP_PROXY\"]", "/variables/0: HTTP_PROXY is set by the cell"},
	{"\"base_url\": {\"A\": \"v1\"}",
	 "/base_url/A: must be a path, as \"/v1\"; \"/\" is the host alone"},
	{"\"base_url\": {\"A\": \"/v1/../..\"}", "/base_url/A: must be a path"},
	{"\"shape\": \"sk-\"",
	 "/shape: is \"jwt\", or visible ASCII with one * for the random digits"},
	{"\"shape\": \"a*b*\"", "/shape: is \"jwt\""},
	{"\"allow\": [\"/v1\"]", "/allow/0: is \"METHOD /path\"; the method * is any"},
	{"\"allow\": [\"GET v1\"]", "/allow/0: is \"METHOD /path\"; the path is as"},
	{"\"allow\": [\"GET /a/**/b\"]", "/allow/0: is \"METHOD /path\"; the path is as"},
	{"\"allow\": [\"GET /a%2fb\"]", "/allow/0: is \"METHOD /path\"; the path is as"},
	{"\"foreign\": [\"/a/../b\"]", "/foreign/0: is a path as after decoding"},
	{"\"keyless\": [\"/list\"]", "/keyless/0: "},
	{"\"allow\": [\"pull\"]", "/allow/0: is \"METHOD /path\""},
	{"\"repositories\": \"bitbucket\"", "/repositories: must be one of: github gitlab"},
	{"\"errors\": \"text\"", "/errors: must be one of: message anthropic openai google"},
	{"\"errors\": \"xml\"", "/errors: must be one of: message anthropic openai google"},
	{"\"ca_file\": \"ca.pem\"", "/ca_file: begins with / or ~/"},
};

static void mistakes_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(mistakes); i++)
		assert_refused(mistakes[i].entry, mistakes[i].sentence);
	auto_config struct config *config = NULL;
	struct err err = {0};
	assert_false(parse("\"A B\": {" SOUND "}", &config, &err));
	assert_string_equal(err.text,
			    "c: /credentials: the name of a credential has 1 to 32 of a-z, 0-9, - "
			    "and _");
}

static void forges_hold_for_the_remotes_at_their_hosts(void **state)
{
	static const char *const addresses[] = {
		"git@github.com:Me/Own.git",     "https://github.com/me/own",
		"https://gitlab.com/me/own",     "https://github.com.evil.example/me/own",
		"https://api.github.com/me/own", "/srv/own",
		"https://github.com/up/own",     NULL};
	static const char *const none[] = {NULL};
	struct credential credential;
	struct arena arena;

	(void)state;
	arena_init(&arena);
	assert_true(credential_find(NULL, "github", &credential, NULL));
	assert_int_equal(credential.forge, FORGE_GITHUB);
	assert_true(credential.allow.given && credential.allow.fetch &&
		    credential.allow.push);
	assert_int_equal(credential.allow.count, 30);
	assert_string_equal(credential.allow.items[0].path, "/user");
	const char **names = credential_repositories(&credential, addresses, &arena);
	assert_string_equal(names[0], "github.com/me/own");
	assert_string_equal(names[1], "api.github.com/me/own");
	assert_string_equal(names[2], "github.com/up/own");
	assert_null(names[3]);
	assert_null(credential_repositories(&credential, none, &arena)[0]);
	credential_fini(&credential);
	assert_true(credential_find(NULL, "openai", &credential, NULL));
	assert_null(credential_repositories(&credential, addresses, &arena));
	credential_fini(&credential);
	arena_fini(&arena);
}

static void registries_only_read(void **state)
{
	static const char *const registries[] = {"npm", "pypi", "crates", "rubygems"};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(registries); i++) {
		struct credential credential;

		assert_true(credential_find(NULL, registries[i], &credential, NULL));
		assert_true(credential.allow.given && credential.anonymous);
		for (size_t j = 0; j < credential.allow.count; j++) {
			const struct credential_rule *rule = &credential.allow.items[j];

			if (strcmp(rule->method, "GET") != 0 &&
			    strcmp(rule->method, "HEAD") != 0 &&
			    strncmp(rule->path, "/-/npm/v1/security/", 19) != 0)
				fail_msg("%s: %s %s", registries[i], rule->method,
					 rule->path);
		}
		credential_fini(&credential);
	}
}

/* An answer of these holds another key, which counts outside of the cell as well. */
static void forges_leave_out_what_shows_keys(void **state)
{
	static const struct {
		const char *forge, *path;
	} rows[] = {
		{"github", "/repos/me/own"},
		{"github", "/repos/me/own/secret-scanning/alerts"},
		{"github", "/repos/me/own/secret-scanning/alerts/7"},
		{"github", "/repos/me/own/hooks"},
		{"github", "/repos/me/own/keys"},
		{"github", "/repos/me/own/actions/runners"},
		{"gitlab", "/api/v4/projects/me%2Fown"},
		{"gitlab", "/api/v4/projects/me%2Fown/variables"},
		{"gitlab", "/api/v4/projects/me%2Fown/triggers"},
		{"gitlab", "/api/v4/projects/me%2Fown/runners"},
		{"gitlab", "/api/v4/projects/me%2Fown/hooks"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct credential credential;

		assert_true(credential_find(NULL, rows[i].forge, &credential, NULL));
		for (size_t j = 0; j < credential.allow.count; j++) {
			const char *pattern = credential.allow.items[j].path;

			if (pattern[0] == '/' &&
			    credential_path_matches(pattern, str_of(rows[i].path)))
				fail_msg("%s: %s lets %s pass", rows[i].forge, pattern,
					 rows[i].path);
		}
		credential_fini(&credential);
	}
}

static void patterns_match_decoded_paths(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool matches;
	} rows[] = {
		{"/v1/messages", "/v1/messages", true},
		{"/v1/messages", "/v1/messages/", false},
		{"/v1/messages", "/v1/messagesx", false},
		{"/v1/models/**", "/v1/models", true},
		{"/v1/models/**", "/v1/models/", true},
		{"/v1/models/**", "/v1/models/a/b", true},
		{"/v1/models/**", "/v1/modelsx", false},
		{"/**", "/", true},
		{"/**", "/a/b", true},
		{"/a/*/c", "/a/b/c", true},
		{"/a/*/c", "/a//c", true},
		{"/a/*/c", "/a/b/b/c", false},
		{"/models/*:generate*", "/models/gemini-2:generateContent", true},
		{"/models/*:generate*", "/models/a/b:generateContent", false},
		{"/*a*b*/**", "/xaxbx/y", true},
		{"/*a*b*/**", "/xbxax/y", false},
		{"/a*/b*", "/aab/bba", true},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		if (credential_path_matches(rows[i].pattern, str_of(rows[i].path)) !=
		    rows[i].matches)
			fail_msg("%s %s", rows[i].pattern, rows[i].path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_shipped_ones_are_read),
		cmocka_unit_test(an_entry_beats_the_shipped_one_key_by_key),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(forges_hold_for_the_remotes_at_their_hosts),
		cmocka_unit_test(registries_only_read),
		cmocka_unit_test(forges_leave_out_what_shows_keys),
		cmocka_unit_test(mistakes_of_a_renewal_are_named),
		cmocka_unit_test(patterns_match_decoded_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
