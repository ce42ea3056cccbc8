/* Tests of tool/claims: what is read off messages, and which rule explains it. */
#include "../base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "tool/denial.h"

static struct policy *policy_make(void)
{
	struct policy *policy = policy_new("tester", "/w");
	struct err err;

	policy->write.items = memory_array(2, sizeof(*policy->write.items));
	policy->write.items[0].text = memory_copy("tests");
	policy->write.count = 1;
	policy->blocked.items = memory_array(2, sizeof(*policy->blocked.items));
	policy->blocked.items[0].text = memory_copy("secret");
	policy->blocked.count = 1;
	policy_show(policy, "/usr", false);
	policy_show(policy, "/tmp", true);
	assert_true(policy_paths_normal(policy, "/w", &err));
	return policy;
}

/* The denials of MESSAGE said in /w, as "kind target rule|". */
static void judge_by(enum claims_hosts hosts, const char *message, struct buf *out)
{
	auto_policy struct policy *policy = policy_make();
	struct tool_result result;

	tool_result_init(&result);
	denial_claims_gather(str_of(message), "/w", &result);
	denial_claims_judge(policy, hosts, &result);
	assert_null(value_member(result.details, "claims"));
	for (size_t i = 0; i < value_count(denial_list(&result)); i++) {
		const struct value *item = value_item(denial_list(&result), i);

		assert_true(value_is_true(value_member(item, "guessed")));
		(void)buf_addf(out, "%s %s %s|", value_text(value_member(item, "kind")),
			       value_text(value_member(item, "target")),
			       value_text(value_member(item, "rule")));
	}
	tool_result_fini(&result);
}

static void judge(const char *message, struct buf *out)
{
	judge_by(CLAIMS_HOSTS_LISTABLE, message, out);
}

static void a_workspace_with_blanks_is_no_other_place(void **state)
{
	static const char said[] =
		"cat: /home/a b/c: Permission denied\n"
		"/home/a b/c/run.sh: line 1: /home/a: Permission denied\n"
		"cat: /home/other: Permission denied\n";
	auto_policy struct policy *policy = policy_new("tester", "/home/a b/c");
	struct tool_result result;
	struct err err;

	(void)state;
	assert_true(policy_paths_normal(policy, "/home/a b/c", &err));
	tool_result_init(&result);
	denial_claims_gather(str_of(said), "/home/a b/c", &result);
	denial_claims_judge(policy, CLAIMS_HOSTS_LISTABLE, &result);
	assert_int_equal(value_count(denial_list(&result)), 1);
	assert_string_equal(value_text(value_member(value_item(denial_list(&result), 0),
						    "target")),
			    "/home/other");
	tool_result_fini(&result);
}

static void messages_become_the_rule_that_explains_them(void **state)
{
	static const struct {
		const char *message, *expected;
	} rows[] = {
		{"cat: /data/x: No such file or directory", "fs /data/x agents.tester.read|"},
		{"FileNotFoundError: [Errno 2] No such file or directory: '/data/x'",
		 "fs /data/x agents.tester.read|"},
		{"cat: nope: No such file or directory", ""},
		{"cat: /usr/nope: No such file or directory", ""},
		{"cat: /proc/7/nope: No such file or directory", ""},
		{"cat: secret/a: No such file or directory",
		 "fs /w/secret/a agents.tester.blocked|"},
		{"touch: cannot touch 'src/a b': Read-only file system",
		 "fs /w/src/a b agents.tester.write|"},
		{"mkdir: cannot create directory \xe2\x80\x98/usr/y\xe2\x80\x99: Read-only "
		 "file system",
		 "fs /usr/y agents.tester.write|"},
		{"bash: line 1: tests/x: Read-only file system", ""},
		{"bash: line 1: /usr/x: Permission denied", "fs /usr/x agents.tester.write|"},
		{"curl: (6) Could not resolve host: a-1.example.org",
		 "net a-1.example.org agents.tester.network|"},
		{"wget: unable to resolve host address \xe2\x80\x98"
		 "b.example\xe2\x80\x99",
		 "net b.example agents.tester.network|"},
		{"npm error getaddrinfo EAI_AGAIN registry.example\nfailed in name resolution",
		 "net registry.example agents.tester.network|"},
		{"connect: Network is unreachable", "net the network agents.tester.network|"},
		/* The same remedy once. */
		{"rm: cannot remove '/usr/b/1': Read-only file system\n"
		 "rm: cannot remove '/usr/b/2': Read-only file system",
		 "fs /usr/b/1 agents.tester.write|"},
		{": No such file or directory", ""},
		{"'': Permission denied", ""},
		{"", ""},
	};
	struct buf found;

	(void)state;
	buf_init(&found, 1 << 16);
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		buf_clear(&found);
		judge(rows[i].message, &found);
		if (strcmp(found.data, rows[i].expected) != 0)
			fail_msg("%s\n  gave %s\n  not  %s", rows[i].message, found.data,
				 rows[i].expected);
	}
	buf_fini(&found);
}

/* As they were printed where no host is listed, with the variables that a cell sets for them. */
static void words_of_tools_without_a_network(void **state)
{
	static const struct {
		const char *message, *host;
	} rows[] = {
		/* pip, cargo, npm, gem, go */
		{"ERROR: Could not find a version that satisfies the requirement x (from versions: "
		 "none)\nERROR: No matching distribution found for x",
		 "the network"},
		{"  [6] Could not resolve hostname (Could not resolve host: index.crates.io)",
		 "index.crates.io"},
		{"npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo "
		 "EAI_AGAIN registry.npmjs.org",
		 "registry.npmjs.org"},
		{"          Unable to download data from https://rubygems.org/ - SocketError: Failed "
		 "to open TCP connection to rubygems.org:443 (getaddrinfo: Temporary failure in "
		 "name resolution) (https://rubygems.org/specs.4.8.gz)",
		 "rubygems.org"},
		{"go: example.org/x@latest: module example.org/x: Get "
		 "\"https://proxy.golang.org/example.org/x/@v/list\": dial tcp: lookup "
		 "proxy.golang.org on 127.0.0.1:53: read udp 127.0.0.1:35808->127.0.0.1:53: read: "
		 "connection refused",
		 "proxy.golang.org"},
		/* apt, curl, wget, git, ssh */
		{"  Temporary failure resolving 'deb.debian.org'", "deb.debian.org"},
		{"curl: (6) Could not resolve host: a.example.org", "a.example.org"},
		{"wget: unable to resolve host address \xe2\x80\x98w.example.org\xe2\x80\x99",
		 "w.example.org"},
		{"fatal: unable to access 'https://github.com/x/y/': Could not resolve host: "
		 "github.com",
		 "github.com"},
		{"ssh: Could not resolve hostname a.example.org: Temporary failure in name "
		 "resolution",
		 "a.example.org"},
		/* Maven, Gradle */
		{"[ERROR] transfer failed for https://repo.maven.apache.org/maven2/x.pom: Unknown "
		 "host repo.maven.apache.org: Temporary failure in name resolution -> [Help 1]",
		 "repo.maven.apache.org"},
		{"            > repo.maven.apache.org: Temporary failure in name resolution",
		 "repo.maven.apache.org"},
		{"   > Unknown host 'services.gradle.org'. You may need to adjust the proxy settings "
		 "in Gradle.",
		 "services.gradle.org"},
		{"Exception in thread \"main\" java.net.UnknownHostException: services.gradle.org",
		 "services.gradle.org"},
	};
	struct buf found, expected;

	(void)state;
	buf_init(&found, 1 << 16);
	buf_init(&expected, 1 << 16);
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		static const char *const rules[] = {[CLAIMS_HOSTS_WRONG] = NULL,
						    [CLAIMS_HOSTS_LISTABLE] =
							    "agents.tester.network",
						    [CLAIMS_HOSTS_CLOSED] =
							    "level below L3"};

		for (size_t j = 0; j < UNIT_COUNT(rules); j++) {
			buf_clear(&found);
			buf_clear(&expected);
			judge_by((enum claims_hosts)j, rows[i].message, &found);
			if (rules[j] != NULL)
				(void)buf_addf(&expected, "net %s %s|", rows[i].host,
					       rules[j]);
			assert_string_equal(found.data, expected.data);
		}
	}
	buf_fini(&expected);
	buf_fini(&found);
}

/* The remedy for MESSAGE, in one line. */
static void check_remedy(enum claims_hosts hosts, const char *message, const char *remedy)
{
	auto_policy struct policy *policy = policy_make();
	struct tool_result result;

	tool_result_init(&result);
	denial_claims_gather(str_of(message), "/w", &result);
	denial_claims_judge(policy, hosts, &result);
	assert_string_equal(value_text(value_member(value_item(denial_list(&result), 0),
						    "remedy")),
			    remedy);
	tool_result_fini(&result);
}

static void a_host_is_listed_with_the_port_that_the_words_say(void **state)
{
	(void)state;
	check_remedy(CLAIMS_HOSTS_LISTABLE,
		     "curl: (7) Failed to connect to 203.0.113.7 port 80 after 0 ms",
		     "add \"203.0.113.7:80\" to network, or --allow-host 203.0.113.7:80");
	check_remedy(CLAIMS_HOSTS_LISTABLE, "Failed to connect to a.example port 443 after",
		     "add \"a.example\" to network, or --allow-host a.example");
	check_remedy(CLAIMS_HOSTS_LISTABLE, "Failed to connect to a.example port 99999999",
		     "add \"a.example\" to network, or --allow-host a.example");
	check_remedy(CLAIMS_HOSTS_LISTABLE, "connect: Network is unreachable",
		     "add the host that it wanted to network, or --allow-host HOST");
	/* What no configuration takes is not advised. */
	check_remedy(CLAIMS_HOSTS_CLOSED, "Could not resolve host: a.example",
		     "only a cell of level L3 has a network: `glovebox doctor` names what this "
		     "machine lacks for it");
}

static void a_path_outside_is_answered_alike_whether_it_exists_or_not(void **state)
{
	char folder[] = "/var/tmp/claims-XXXXXX";
	char text[256];
	struct buf there, missing;

	(void)state;
	buf_init(&there, 1 << 10);
	buf_init(&missing, 1 << 10);
	assert_non_null(mkdtemp(folder));
	(void)snprintf(text, sizeof(text), "ls: %s: No such file or directory", folder);
	judge(text, &there);
	assert_int_equal(rmdir(folder), 0);
	judge(text, &missing);
	assert_true(there.size > 0);
	assert_string_equal(there.data, missing.data);
	buf_fini(&there);
	buf_fini(&missing);
}

static void a_file_tool_is_exact(void **state)
{
	auto_policy struct policy *policy = policy_make();
	struct tool_result result;

	(void)state;
	tool_result_init(&result);
	(void)tool_fail(&result, "%s", "");
	denial_claims_add_unwritable("/w/src/a.c", &result);
	denial_claims_judge(policy, CLAIMS_HOSTS_LISTABLE, &result);
	assert_int_equal(result.status, RESULT_DENIED);
	assert_string_equal(result.text.data,
			    "[refused: /w/src/a.c (agents.tester.write); ask the user to add "
			    "\"src\" to agents.tester.write in the configuration]\n");
	tool_result_fini(&result);
}

static void what_is_no_claim_is_dropped(void **state)
{
	static const char *const lists[] = {
		"[1, null, \"x\", [], {}]",
		"{\"path\": \"/data\"}",
		"[{\"path\": 5}, {\"path\": \"../x\"}, {\"path\": \"/a/../b\"}, {\"path\": \"\"}]",
		"[{\"host\": \"a b\"}, {\"host\": \"]\\n[forged\"}, {\"host\": 5}]",
	};
	auto_policy struct policy *policy = policy_make();

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(lists); i++) {
		struct tool_result result;
		struct value *list = NULL;
		struct err err;

		tool_result_init(&result);
		assert_true(value_parse(str_of(lists[i]), 0, &list, &err));
		value_set(tool_details(&result), "claims", list);
		denial_claims_judge(policy, CLAIMS_HOSTS_LISTABLE, &result);
		assert_null(denial_list(&result));
		assert_int_equal(result.text.size, 0);
		tool_result_fini(&result);
	}
}

static void no_more_are_gathered_than_can_be_told(void **state)
{
	auto_policy struct policy *policy = policy_make();
	struct tool_result result;
	struct buf text;

	(void)state;
	tool_result_init(&result);
	buf_init(&text, 1 << 16);
	for (int i = 0; i < 100; i++)
		(void)buf_addf(&text, "cat: /d%d/x: No such file or directory\n", i);
	denial_claims_gather(buf_str(&text), "/w", &result);
	denial_claims_judge(policy, CLAIMS_HOSTS_LISTABLE, &result);
	assert_int_equal(value_count(denial_list(&result)), CLAIMS_MAX);
	buf_fini(&text);
	tool_result_fini(&result);
}

static void gits_own_files_are_named_by_the_words_of_programs(void **state)
{
	static const struct {
		const char *said, *target; /* NULL: none */
	} rows[] = {
		{"error: could not write config file .git/config: Device or resource busy",
		 ".git/config"},
		{"error: could not lock config file /w/.git/modules/a b/config: Device or resource "
		 "busy",
		 "/w/.git/modules/a b/config"},
		{"sh: 1: cannot create .git/hooks/pre-commit: Read-only file system",
		 ".git/hooks/pre-commit"},
		{"rm: cannot remove 'wt/.git': Device or resource busy", "wt/.git"},
		{"mv: cannot move '.git/hooks' to '.git/h': Device or resource busy",
		 ".git/hooks"},
		{"rm: cannot remove '.git/modules': Device or resource busy", ".git/modules"},
		{"error: failed to delete '/w/wt': Device or resource busy", "/w/wt/.git"},
		{"rm: cannot remove 'config': Device or resource busy", NULL},
		{"fatal: Unable to create '/w/.git/index.lock': Read-only file system", NULL},
		{"touch: cannot touch '../x': Read-only file system", NULL},
		{"error: could not write config file \x1b/.git/config: Device or resource busy",
		 NULL},
		{"error: could not write config file /w/\xe2\x80\xae/.git/config: Device or resource "
		 "busy",
		 NULL},
		{"error: could not lock config file /w/\xc2\x9b\x33\x31m/.git/config: Device or "
		 "resource busy",
		 NULL},
		{"rm: cannot remove '/w/\xff/.git': Device or resource busy", NULL},
		{"rm: cannot remove '/w/\xc3\xa9/.git': Device or resource busy",
		 "/w/\xc3\xa9/.git"},
		{"error: failed to delete '", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tool_result result;
		const struct value *list;

		tool_result_init(&result);
		denial_claims_protected(str_of(rows[i].said), &result);
		list = denial_list(&result);
		assert_int_equal(value_count(list), rows[i].target != NULL);
		if (rows[i].target != NULL)
			assert_string_equal(value_text(value_member(value_item(list, 0),
								    "target")),
					    rows[i].target);
		tool_result_fini(&result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_become_the_rule_that_explains_them),
		cmocka_unit_test(a_workspace_with_blanks_is_no_other_place),
		cmocka_unit_test(words_of_tools_without_a_network),
		cmocka_unit_test(a_host_is_listed_with_the_port_that_the_words_say),
		cmocka_unit_test(a_path_outside_is_answered_alike_whether_it_exists_or_not),
		cmocka_unit_test(a_file_tool_is_exact),
		cmocka_unit_test(what_is_no_claim_is_dropped),
		cmocka_unit_test(no_more_are_gathered_than_can_be_told),
		cmocka_unit_test(gits_own_files_are_named_by_the_words_of_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
