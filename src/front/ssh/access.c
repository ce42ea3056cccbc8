/* access: reads the person's known hosts, and finds the person's ssh agent. */

#include "front/ssh/access.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum {
	KNOWN_HOSTS_MAX = 16 << 20, /* of a machine that knows a hundred thousand hosts */
	CONFIG_MAX = 256 << 10,
	LINES_MAX = 1 << 20,
};

#define SSH_CONFIG "/etc/ssh/ssh_config"

static void read_file(struct ssh_access *access, const char *path)
{
	struct buf text;

	buf_init(&text, KNOWN_HOSTS_MAX);
	if (fd_read_file(path, KNOWN_HOSTS_MAX, &text, NULL)) {
		for (size_t i = 0; i < access->count; i++)
			ssh_known_read(&access->hosts[i], buf_str(&text));
	}
	buf_fini(&text);
}

/* The files that ssh itself reads unless its configuration names others. */
static void read_files(struct ssh_access *access)
{
	static const char *const own[] = {"known_hosts", "known_hosts2"};
	static const char *const systems[] = {"/etc/ssh/ssh_known_hosts",
					      "/etc/ssh/ssh_known_hosts2"};
	const char *home = getenv("HOME");
	char path[PATH_MAX];

	for (size_t i = 0; home != NULL && i < sizeof(own) / sizeof(own[0]); i++) {
		if (snprintf(path, sizeof(path), "%s/.ssh/%s", home, own[i]) <
		    (int)sizeof(path))
			read_file(access, path);
	}
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		read_file(access, systems[i]);
}

/* Does a process listen at the socket PATH? */
static bool is_served(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (strlen(path) >= sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path, path, strlen(path));
	/* One that is busy just now has a full backlog. */
	return fd >= 0 &&
	       (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ||
		errno == EAGAIN);
}

static bool find_agent(struct ssh_access *access, struct err *err)
{
	const char *said = getenv("SSH_AUTH_SOCK");
	struct stat st;

	if (said == NULL || said[0] == '\0')
		return err_set(err, ENOENT,
			       "--ssh: there is no ssh agent: SSH_AUTH_SOCK is not set. Start "
			       "one: eval \"$(ssh-agent)\"; ssh-add");
	access->agent = realpath(said, NULL);
	/* The view hides a socket by its name, so a further name would reach it. */
	if (access->agent != NULL && stat(access->agent, &st) == 0 && st.st_nlink > 1)
		return err_set(err, EMLINK,
			       "--ssh: the socket of your ssh agent has a second name (a hard "
			       "link), which a cell might see: %s",
			       said);
	if (access->agent == NULL || !is_served(access->agent))
		return err_set(err, ENOENT,
			       "--ssh: SSH_AUTH_SOCK names no ssh agent that runs: %s",
			       said);
	return true;
}

/* Name the cell's own file before the files of ssh; the first value that is said holds. */
static void make_config(struct ssh_access *access)
{
	struct buf usual, text;
	struct stat st;

	buf_init(&usual, CONFIG_MAX);
	buf_init(&text, CONFIG_MAX + PATH_MAX);
	/*
	 * Where the system has no configuration of ssh, there is no place in the view for one,
	 * and the view covers no link.
	 */
	if (lstat(SSH_CONFIG, &st) == 0 && S_ISREG(st.st_mode) &&
	    fd_read_file(SSH_CONFIG, CONFIG_MAX, &usual, NULL)) {
		(void)buf_adds(&text,
			       "GlobalKnownHostsFile " SHAPE_KNOWN_HOSTS
			       " /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2\n");
		(void)buf_addstr(&text, buf_str(&usual));
		access->config = buf_take(&text);
	}
	buf_fini(&usual);
	buf_fini(&text);
}

/* Does some key of HOST remain? Append its lines to LINES. */
static bool has_keys(const struct ssh_known *host, struct buf *lines, struct err *err)
{
	const size_t before = lines->size;
	char name[NETWORK_TEXT_MAX];

	(void)ssh_known_name(host, name);
	ssh_known_print(host, lines);
	if (lines->size > before)
		return true;
	if (host->authority)
		return err_set(err, ENOENT,
			       "--ssh %s: your known_hosts knows it by a certificate authority "
			       "only, which --ssh does not take: it needs a key of the host",
			       name);
	return err_set(err, ENOENT,
		       "--ssh %s: your known_hosts has no key for it. Connect once outside, and "
		       "compare the key that ssh shows",
		       name);
}

bool ssh_access_init(struct ssh_access *access, const char *const *hosts, struct err *err)
{
	struct buf lines;
	bool fine = true;

	for (; *hosts != NULL; hosts++) {
		if (access->count == DOOR_HOSTS_MAX)
			return err_set(err, E2BIG, "--ssh: at most %d hosts",
				       DOOR_HOSTS_MAX);
		if (strchr(*hosts, '*') != NULL)
			return err_set(err, EINVAL,
				       "--ssh %.100s: it takes one host and no pattern; give it "
				       "once for each host",
				       *hosts);
		ssh_known_init(&access->hosts[access->count++]);
		if (!ssh_known_set_host(&access->hosts[access->count - 1], str_of(*hosts),
					err))
			return err_while(err, "--ssh %.100s", *hosts);
	}
	if (!find_agent(access, err))
		return false;
	read_files(access);
	buf_init(&lines, LINES_MAX);
	for (size_t i = 0; fine && i < access->count; i++)
		fine = has_keys(&access->hosts[i], &lines, err);
	access->known_hosts = buf_take(&lines);
	make_config(access);
	access->shape = (struct shape_ssh){.known_hosts = access->known_hosts,
					   .config = access->config,
					   .agent = access->agent};
	return fine;
}

void ssh_access_fini(struct ssh_access *access)
{
	for (size_t i = 0; i < access->count; i++)
		ssh_known_fini(&access->hosts[i]);
	free(access->agent);
	free(access->known_hosts);
	free(access->config);
	*access = (struct ssh_access){.count = 0};
}
