/* plugin_fetch: a policy and a script for git. */
#include "front/plugin_fetch.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "policy/policy.h"
#include "session/session.h"
#include "tools/tools.h"
#include "view/shape.h"

#define FETCH_SECONDS 120.0

/*
 * The variable that names the caller's file of certificates, for hosts that the system's
 * store does not know.
 */
#define AUTHORITY "GIT_SSL_CAINFO"

enum { SAID_MAX = 64 << 10, SAID_SHOWN = 400, URL_HOST_MAX = 4096 };

/*
 * URL and ref are positional parameters of the script, never part of its text. When a
 * server knows no shallow fetch, or does not give a commit by its name, the script
 * fetches more. The user's git configuration is not read.
 */
static const char script[] =
	"set -eu\n"
	"export HOME=\"$PWD/home\" GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0 LC_ALL=C\n"
	"mkdir home files\n"
	"git config --global safe.directory '*'\n"
	"git config --global protocol.allow never\n"
	"for known in https http file; do git config --global protocol.$known.allow always; done\n"
	"git init -q files\n"
	"cd files\n"
	"get() { git fetch -q --no-tags --no-recurse-submodules \"$@\"; }\n"
	"if get --depth 1 -- \"$1\" \"$2\" 2>/dev/null || get -- \"$1\" \"$2\" 2>/dev/null; then\n"
	"  at=FETCH_HEAD\n"
	"else\n"
	"  get -- \"$1\" '+refs/*:refs/fetched/*'\n"
	"  at=$2\n"
	"fi\n"
	"git rev-parse --verify \"$at^{commit}\"\n"
	"git checkout -q --detach \"$at\" --\n";

static struct policy *policy_of(const char *folder, const struct value *hosts,
				const char *authority, struct err *err)
{
	auto_policy struct policy *policy = policy_new("plugin-fetch", folder);
	struct policy *made;

	policy->write.items = memory_array(1, sizeof(struct policy_path));
	policy->write.items[0].text = memory_copy(".");
	policy->write.count = 1;
	policy->write.given = true;
	if (authority != NULL) {
		struct buf variable;

		buf_init(&variable, SAID_MAX);
		(void)buf_addf(&variable, "%s=%s", AUTHORITY, authority);
		policy->environment.items = memory_array(1, sizeof(char *));
		policy->environment.items[0] = buf_take(&variable);
		policy->environment.count = 1;
		policy->environment.given = true;
	}
	for (size_t i = 0; i < value_count(hosts); i++) {
		if (!policy_add_network(policy, value_text(value_item(hosts, i)),
					"plugin_policy.allowed_git_hosts", err))
			return NULL;
	}
	if (!policy_paths_normal(policy, folder, err))
		return NULL;
	made = policy;
	policy = NULL;
	return made;
}

/*
 * The host of URL, as a list for `network`. Used when the configuration lists no hosts.
 */
static struct value *host_of(const char *url)
{
	const bool plain = strncmp(url, "http://", strlen("http://")) == 0;
	const char *mark = strstr(url, "://");
	const char *place = mark != NULL ? mark + strlen("://") : url;
	struct str rest = {place, strcspn(place, "/?#")};
	struct value *hosts = value_new_array();
	struct buf entry;

	const char *at = memrchr(rest.data, '@', rest.size);
	if (at != NULL)
		rest = str_part(rest, (size_t)(at + 1 - rest.data), rest.size);
	/* A colon of an IPv6 address stands before its bracket. */
	const char *colon = memrchr(rest.data, ':', rest.size);
	const bool has_port =
		colon != NULL &&
		memchr(colon, ']', (size_t)(rest.data + rest.size - colon)) == NULL;
	buf_init(&entry, URL_HOST_MAX);
	(void)buf_addf(&entry, "%.*s%s", (int)rest.size, rest.data,
		       has_port ? ""
		       : plain  ? ":80"
				: ":443");
	value_append(hosts, value_new_str(buf_str(&entry)));
	buf_fini(&entry);
	return hosts;
}

/* Read into SAID the output that was written to FD, a file in memory. */
static void read_said(int fd, struct buf *said)
{
	buf_clear(said);
	if (lseek(fd, 0, SEEK_SET) == 0)
		(void)fd_read_all(fd, said, "what git said", NULL);
}

static bool take_commit(struct str said, char commit[HASH_HEX + 1], struct err *err)
{
	struct str text = str_trim(said);
	bool fine = text.size == 40 || text.size == HASH_HEX;

	for (size_t i = 0; fine && i < text.size; i++)
		fine = isxdigit((unsigned char)text.data[i]);
	if (!fine)
		return err_set(err, EPROTO, "git named no commit");
	(void)snprintf(commit, HASH_HEX + 1, "%.*s", (int)text.size, text.data);
	return true;
}

static bool run_git(struct session *session, const struct plugin_source *source,
		    bool listed, char commit[HASH_HEX + 1], struct err *err)
{
	const char *ref = commit[0] != '\0'     ? commit
			  : source->ref != NULL ? source->ref
						: "HEAD";
	const char *const words[] = {"/bin/bash",  "-c", script, "fetch",
				     source->text, ref,  NULL};
	auto_value struct value *arguments = value_new_object();
	auto_close int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	auto_close int out = -1;
	auto_close int error = -1;
	struct tool_result result;
	struct buf said;

	if (input < 0 || !fd_memory_file("commit", STR(""), &out, err) ||
	    !fd_memory_file("said", STR(""), &error, err))
		return err_while(err, "fetching");
	value_set(arguments, "argv", value_new_texts(words));
	const struct request request = {.tool = "exec",
					.arguments = arguments,
					.fds = {input, out, error},
					.fd_count = 3,
					.by_front = true,
					.quiet = true,
					.timeout_s = FETCH_SECONDS};
	session_call(session, &request, &result);
	buf_init(&said, SAID_MAX);
	bool ok = result.status == RESULT_DONE && result.exit_code == 0;
	read_said(ok ? out : error, &said);
	if (ok) {
		ok = take_commit(buf_str(&said), commit, err);
	} else {
		struct str why =
			str_trim(said.size > 0 ? buf_str(&said) : buf_str(&result.text));

		(void)err_set(err, EIO,
			      "git could not fetch %s: %.*s (%s "
			      "plugin_policy.allowed_git_hosts)",
			      ref, (int)(why.size < SAID_SHOWN ? why.size : SAID_SHOWN),
			      why.data,
			      listed ? "hosts are listed in"
				     : "only its own host is reached; others are listed in");
	}
	buf_fini(&said);
	tool_result_fini(&result);
	return ok;
}

bool plugin_fetch(const struct plugin_source *source, const struct plugin_fetch_terms *terms,
		  const char *folder, char commit[HASH_HEX + 1], struct err *err)
{
	const bool is_local = str_starts(str_of(source->text), STR("file://"));
	const char *authority = getenv(AUTHORITY);
	struct shape_shown shown[3] = {{0}};
	size_t count = 0;
	struct session *session = NULL;
	auto_value struct value *own =
		is_local || terms->hosts != NULL ? NULL : host_of(source->text);
	const struct value *hosts = own != NULL ? own : terms->hosts;

	if (!is_local && value_count(hosts) == 0)
		return err_set(err, EPERM,
			       "no host may be fetched from: name it in "
			       "plugin_policy.allowed_git_hosts, or leave that key out");
	if (authority != NULL && authority[0] != '/')
		authority = NULL;
	struct policy *policy = policy_of(folder, hosts, authority, err);
	if (policy == NULL)
		return false;
	if (is_local) {
		const char *local = source->text + strlen("file://");

		shown[count++] =
			(struct shape_shown){local, local, "a plugin's repository"};
	}
	if (authority != NULL)
		shown[count++] = (struct shape_shown){authority, authority, AUTHORITY};
	const struct session_options options = {
		.workspace = folder,
		.take_policy = policy,
		.tools = builtin_tools,
		.shown = shown,
		.resolver = terms->resolver,
		.minimum_level = terms->minimum_level,
		.cancel_fd = -1,
	};
	bool ok = session_open(&options, &session, err) &&
		  run_git(session, source, own == NULL, commit, err);
	session_close(session);
	return ok;
}
