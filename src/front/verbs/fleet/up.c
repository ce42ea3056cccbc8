/*
 * glovebox fleet up: a fleet on one machine, to try: a nats-server on the loopback and some
 * workers, which all end with this program; and the manifest of workers for Kubernetes.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "base/value.h"
#include "build_config.h"
#include "fleet/batch/slots.h"
#include "fleet/queue/queue.h"
#include "fleet/task.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/fleet/fleet_at.h"
#include "process/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	WORKERS_MAX = 64,
	SERVER_MS = 15000, /* until the server has said its port */
	LOOK_MS = 50,
	END_MS = 10000, /* for workers to end in order, then they are killed */
	TEXT_BYTES = 64 << 10,
	LEASE_S = 120,
	PASSWORD_DIGITS = 32,
};

static const struct option_row up_options[] = {
	{"workers", 0, OPTION_COUNT, "N", "worker processes (default: 1)"},
	{"cells", 'j', OPTION_COUNT, "N",
	 "tasks at the same time in each (default: as many as processors)"},
	{"folder", 0, OPTION_TEXT, "DIR",
	 "where queue and store are (default: glovebox-fleet, here)"},
	{"port", 0, OPTION_COUNT, "N", "of the server (default: a free one)"},
	{"lease", 0, OPTION_SECONDS, "S",
	 "until the task of a lost worker comes again (default: 120)"},
	OPTION_ROW_CONFIG,
	OPTION_ROW_HELP,
	{0},
};

/* The processes that run. */
struct upping {
	const struct options *options;
	char *folder;                       /* absolute */
	int held;                           /* the folder, locked; -1: not yet */
	char *url;                          /* with the password */
	char *at;                           /* "@FILE", where the URL is */
	char password[PASSWORD_DIGITS + 1]; /* of the server, new at each start */
	pid_t server, workers[WORKERS_MAX];
	size_t worker_count;
};

/* FOLDER/NAME; the caller frees it. */
static char *below(const char *folder, const char *name)
{
	struct buf path;
	char *text;

	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/%s", folder, name);
	text = buf_take(&path);
	buf_fini(&path);
	return text;
}

/* Two servers in one folder would write over each other's queue. */
static bool hold_folder(struct upping *up, struct err *err)
{
	/* The user may have made it a link. */
	auto_free char *itself = below(up->folder, ".");

	up->held = fd_hold(AT_FDCWD, itself, LOCK_EX | LOCK_NB, 0);
	if (up->held >= 0)
		return true;
	if (errno == EWOULDBLOCK)
		return err_set(err, EBUSY,
			       "a fleet is up in %s already; use that one, end it, or name another "
			       "--folder",
			       up->folder);
	return err_set(err, errno, "%s: %s", up->folder, strerror(errno));
}

static bool find_folder(struct upping *up, struct err *err)
{
	const char *wish = options_text(up->options, "folder");
	auto_free char *here = getcwd(NULL, 0);
	auto_free char *inside = NULL;
	struct buf path;
	bool ok;

	buf_init(&path, PATH_MAX / 2);
	ok = (here != NULL &&
	      path_normal(here, wish != NULL ? wish : "glovebox-fleet", &path)) ||
	     err_set(err, ENAMETOOLONG, "--folder: the path is too long");
	if (ok) {
		up->folder = memory_copy(path.data);
		inside = below(up->folder, "ports/x");
		ok = fd_make_folders(inside, err) && hold_folder(up, err);
	}
	buf_fini(&path);
	return ok;
}

/* The first port that the server has told in FOLDER; NULL: none yet. */
static char *told_url(const char *folder)
{
	DIR *names = opendir(folder);
	auto_value struct value *ports = NULL;
	char *url = NULL;

	for (const struct dirent *at = names != NULL ? readdir(names) : NULL;
	     at != NULL && url == NULL; at = readdir(names)) {
		auto_free char *path = below(folder, at->d_name);
		struct buf text;

		if (strstr(at->d_name, ".ports") == NULL)
			continue;
		buf_init(&text, TEXT_BYTES);
		if (fd_read_file(path, TEXT_BYTES, &text, NULL) &&
		    value_parse(buf_str(&text), 0, &ports, NULL)) {
			const char *told =
				value_text(value_item(value_member(ports, "nats"), 0));

			url = memory_copy(told);
		}
		buf_fini(&text);
	}
	if (names != NULL)
		(void)closedir(names);
	return url;
}

/* A program that ends with us; its output goes to the file LOG, or where ours goes. */
static bool start_one(const char *const *argv, const char *log, pid_t *pid, struct err *err)
{
	auto_close int fd = -1;
	struct program_start start = {
		.argv = argv,
		.environment = (const char *const *)environ,
		.fds = {-1, STDOUT_FILENO, STDERR_FILENO},
		.ends_with_us = true,
	};

	if (log != NULL) {
		fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		if (fd < 0)
			return err_set(err, errno, "%s: %s", log, strerror(errno));
		start.fds[1] = start.fds[2] = fd;
	}
	return program_start(&start, pid, err);
}

static bool is_running(pid_t *pid)
{
	if (*pid > 0 && waitpid(*pid, NULL, WNOHANG) != 0)
		*pid = 0;
	return *pid > 0;
}

/*
 * Others on this machine reach the loopback, too, and a task runs with our rights: the server
 * takes nobody without the password, which is in files of ours and in no list of processes.
 */
static bool write_settings(struct upping *up, const char *path, struct err *err)
{
	struct buf text;
	bool ok;

	if (!text_random_hex(up->password, PASSWORD_DIGITS))
		return err_set(err, errno, "no random numbers: %s", strerror(errno));
	buf_init(&text, TEXT_BYTES);
	(void)buf_addf(&text, "authorization { user: glovebox, password: \"%s\" }\n",
		       up->password);
	ok = fd_replace_file(path, buf_str(&text), err);
	buf_fini(&text);
	return ok;
}

/* Write the URL TOLD, with user and password, where --fleet @FILE finds it. */
static bool write_url(struct upping *up, const char *told, struct err *err)
{
	const char *host = strstr(told, "://");
	auto_free char *path = below(up->folder, "url");
	struct buf text;
	bool ok;

	buf_init(&text, TEXT_BYTES);
	(void)buf_addf(&text, "nats://glovebox:%s@%s\n", up->password,
		       host != NULL ? host + 3 : told);
	ok = fd_replace_file(path, buf_str(&text), err);
	if (ok) {
		text.data[text.size - 1] = '\0';
		up->url = buf_take(&text);
		(void)buf_addf(&text, "@%s", path);
		up->at = buf_take(&text);
	}
	buf_fini(&text);
	return ok;
}

static bool start_server(struct upping *up, struct err *err)
{
	auto_free char *store = below(up->folder, "queue");
	auto_free char *ports = below(up->folder, "ports");
	auto_free char *log = below(up->folder, "nats-server.log");
	auto_free char *settings = below(up->folder, "nats-server.conf");
	auto_free char *told = NULL;
	const int64_t end_ms = clock_now_ms() + SERVER_MS;
	char port[16] = "-1";
	const char *const argv[] = {"nats-server",
				    "-c",
				    settings,
				    "-js",
				    "-sd",
				    store,
				    "-a",
				    "127.0.0.1",
				    "-p",
				    port,
				    "--ports_file_dir",
				    ports,
				    NULL};

	if (options_given(up->options, "port"))
		(void)snprintf(port, sizeof(port), "%d",
			       (int)(options_count(up->options, "port", 0) & 0xffff));
	/* A server that was killed leaves its file. */
	fd_folder_remove(ports);
	{
		auto_free char *inside = below(ports, "x");

		if (!fd_make_folders(inside, err))
			return false;
	}
	if (!write_settings(up, settings, err))
		return false;
	if (!start_one(argv, log, &up->server, err))
		return err->code == ENOENT
			       ? err_set(err, ENOENT,
					 "nats-server is not installed: apt install nats-server")
			       : err_while(err, "nats-server");
	while ((told = told_url(ports)) == NULL) {
		if (!is_running(&up->server) || clock_now_ms() > end_ms)
			return err_set(err, EIO, "nats-server did not start; %s says why",
				       log);
		(void)poll(NULL, 0, LOOK_MS);
	}
	return write_url(up, told, err);
}

static bool start_workers(struct upping *up, const char *program, struct err *err)
{
	const uint64_t count = options_count(up->options, "workers", 1);
	const uint64_t cells = options_count(up->options, "cells", clock_cores_usable());
	const char *config = options_text(up->options, "config");
	auto_free char *store = below(up->folder, "store");
	char cells_text[16];

	if (count > WORKERS_MAX || cells > FLEET_SLOTS_MAX)
		return err_set(err, EINVAL, "at most %d workers of %d cells", WORKERS_MAX,
			       FLEET_SLOTS_MAX);
	(void)snprintf(cells_text, sizeof(cells_text), "%d", (int)cells);
	for (uint64_t i = 0; i < count; i++) {
		const char *const argv[] = {
			program,   "worker",   "--fleet",
			up->at,    "--store",  store,
			"--cells", cells_text, config != NULL ? "--config" : NULL,
			config,    NULL};

		if (!start_one(argv, NULL, &up->workers[i], err))
			return err_while(err, "a worker");
		up->worker_count++;
	}
	return true;
}

static void print_lines(const struct upping *up, FILE *out)
{
	auto_free char *store = below(up->folder, "store");
	struct buf words;

	buf_init(&words, TEXT_BYTES);
	(void)buf_adds(&words, "--fleet ");
	shell_token_add_word(up->at, &words);
	(void)buf_adds(&words, " --store ");
	shell_token_add_word(store, &words);
	(void)fprintf(out,
		      "The fleet is up, with %zu worker%s; Ctrl+C ends it. In another terminal:\n\n"
		      "  glovebox fleet submit TASKS %s\n"
		      "  glovebox fleet status %s\n"
		      "  glovebox fleet results JOB %s\n\n",
		      up->worker_count, up->worker_count == 1 ? "" : "s", words.data,
		      words.data, words.data);
	(void)fflush(out);
	buf_fini(&words);
}

static size_t workers_left(struct upping *up)
{
	size_t left = 0;

	for (size_t i = 0; i < up->worker_count; i++)
		left += is_running(&up->workers[i]) ? 1 : 0;
	return left;
}

/* End all: the workers give their tasks back, then the server ends. */
static void end_all(struct upping *up)
{
	int64_t end_ms = clock_now_ms() + END_MS;

	for (size_t i = 0; i < up->worker_count; i++) {
		if (is_running(&up->workers[i]))
			(void)kill(up->workers[i], SIGTERM);
	}
	while (workers_left(up) > 0 && clock_now_ms() < end_ms)
		(void)poll(NULL, 0, LOOK_MS);
	for (size_t i = 0; i < up->worker_count; i++) {
		if (is_running(&up->workers[i]))
			(void)kill(up->workers[i], SIGKILL);
	}
	if (is_running(&up->server))
		(void)kill(up->server, SIGTERM);
	end_ms = clock_now_ms() + END_MS;
	while (is_running(&up->server) && clock_now_ms() < end_ms)
		(void)poll(NULL, 0, LOOK_MS);
	if (is_running(&up->server))
		(void)kill(up->server, SIGKILL);
}

/* Make the queue with the lease that was asked for, before a worker makes it. */
static bool make_queue(struct upping *up, struct err *err)
{
	const struct fleet_queue_options options = {
		.url = up->url,
		.lease_s = options_seconds(up->options, "lease", LEASE_S),
	};
	struct fleet_queue *queue = NULL;

	if (options.lease_s < QUEUE_LEASE_LEAST_S || options.lease_s > QUEUE_LEASE_MOST_S)
		return err_set(err, EINVAL, "--lease: %d to %d seconds",
			       QUEUE_LEASE_LEAST_S, QUEUE_LEASE_MOST_S);
	if (!fleet_queue_open(&options, &queue, err))
		return false;
	fleet_queue_close(queue);
	return true;
}

static int up_run(const struct options *options, FILE *out)
{
	const struct timespec tick = {0, LOOK_MS * 1000000L};
	struct upping up = {.options = options, .held = -1};
	char program[PATH_MAX];
	const ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct err err = {0};
	sigset_t set, before;
	int number = 0, code = CODE_DONE;

	if (size < 0)
		return verb_complain(CODE_FAILED, "/proc/self/exe: %s", strerror(errno));
	program[size] = '\0';
	if (!find_folder(&up, &err) || !start_server(&up, &err) ||
	    !make_queue(&up, &err) || !start_workers(&up, program, &err)) {
		code = verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED,
				     "fleet up: %s", err.text);
	} else {
		(void)sigemptyset(&set);
		(void)sigaddset(&set, SIGINT);
		(void)sigaddset(&set, SIGTERM);
		(void)sigaddset(&set, SIGHUP);
		(void)pthread_sigmask(SIG_BLOCK, &set, &before);
		print_lines(&up, out);
		while (number <= 0 && is_running(&up.server) && workers_left(&up) > 0)
			number = sigtimedwait(&set, NULL, &tick);
		if (number > 0)
			code = CODE_SIGNAL + number;
		else
			code = verb_complain(CODE_FAILED,
					     "fleet up: %s has ended; %s/nats-server.log may "
					     "say why",
					     is_running(&up.server) ? "the last worker"
								    : "nats-server",
					     up.folder);
	}
	end_all(&up);
	fd_close(&up.held);
	if (up.url != NULL)
		explicit_bzero(up.url, strlen(up.url));
	explicit_bzero(up.password, sizeof(up.password));
	free(up.folder);
	free(up.url);
	free(up.at);
	return code;
}

static const char up_help[] =
	"A fleet on this machine, to try: starts a nats-server on the loopback and workers, and\n"
	"prints the lines to use. Queue and store are in a folder, which stays: the same line\n"
	"goes on where it was. The server takes nobody without the password in FOLDER/url,\n"
	"which is new at each start. A signal ends all of it.";

const struct verb verb_fleet_up = {
	.name = "fleet up",
	.summary = "a fleet on this machine, to try",
	.arguments = "",
	.help = up_help,
	.example = "  glovebox fleet up --workers 2 --cells 4",
	.options = up_options,
	.run = up_run,
};

/* manifest */

static const struct option_row manifest_options[] = {
	{"image", 0, OPTION_TEXT, "IMAGE",
	 "of containers with glovebox in it (default: glovebox:" GLOVEBOX_VERSION ")"},
	{"replicas", 0, OPTION_COUNT, "N", "pods (default: 2)"},
	{"cells", 'j', OPTION_COUNT, "N", "tasks at the same time in each (default: 8)"},
	FLEET_AT_OPTION_ROWS,
	{0},
};

enum { QUOTED_BYTES = 16 << 10, QUOTED_TEXTS = 4 };

/* TEXT as a text of YAML, which one of JSON is. The caller frees it. */
static char *quoted(const char *text)
{
	struct buf buf;
	char *made;

	buf_init(&buf, QUOTED_BYTES);
	(void)value_quote(str_of(text), &buf);
	made = memory_copy(buf.data);
	buf_fini(&buf);
	return made;
}

/* Is there a name or a key in URL, which everybody who sees the manifest would have? */
static bool has_key(const char *url)
{
	const char *scheme = strstr(url, "://");
	const char *begin = scheme != NULL ? scheme + 3 : url;

	return memchr(begin, '@', strcspn(begin, "/?#")) != NULL;
}

/* Workers of AT_FLEET, which reach their server at URL. */
static void print_manifest(const struct fleet_at *at_fleet, const char *url,
			   const struct options *options, FILE *out)
{
	const char *image = options_text(options, "image");
	char *const texts[QUOTED_TEXTS] = {
		quoted(image != NULL ? image : "glovebox:" GLOVEBOX_VERSION), quoted(url),
		quoted(at_fleet->where != NULL ? at_fleet->where : "s3://BUCKET/PREFIX"),
		quoted(at_fleet->name)};

	(void)fprintf(
		out,
		"# Workers of the fleet %s. The cells are made in a user namespace of the pod\n"
		"# (hostUsers: false, Kubernetes 1.30 and newer) and see a /proc of their own.\n"
		"# The profile is examples/fleet/seccomp.json; it stands on each node below\n"
		"# /var/lib/kubelet/seccomp/.\n"
		"apiVersion: apps/v1\n"
		"kind: Deployment\n"
		"metadata:\n"
		"  name: glovebox-worker\n"
		"spec:\n"
		"  replicas: %d\n"
		"  selector:\n"
		"    matchLabels: {app: glovebox-worker}\n"
		"  template:\n"
		"    metadata:\n"
		"      labels: {app: glovebox-worker}\n"
		"    spec:\n"
		"      hostUsers: false\n"
		"      # TERM drains: tasks that run may end within this time.\n"
		"      terminationGracePeriodSeconds: 3600\n"
		"      containers:\n"
		"        - name: worker\n"
		"          image: %s\n"
		"          args: [\"worker\", \"--fleet\", %s, \"--store\", %s, \"--fleet-name\", "
		"%s,\n"
		"                 \"--cells\", \"%d\", \"--drain-on\", \"TERM\"]\n"
		"          # keys of models, and of the store\n"
		"          envFrom: [{secretRef: {name: glovebox-keys, optional: true}}]\n"
		"          resources:\n"
		"            requests: {cpu: \"2\", memory: 4Gi}\n"
		"          securityContext:\n"
		"            procMount: Unmasked\n"
		"            seccompProfile: {type: Localhost, localhostProfile: glovebox.json}\n"
		"---\n"
		"# With KEDA: as many workers as there are tasks that wait.\n"
		"apiVersion: keda.sh/v1alpha1\n"
		"kind: ScaledObject\n"
		"metadata:\n"
		"  name: glovebox-worker\n"
		"spec:\n"
		"  scaleTargetRef: {name: glovebox-worker}\n"
		"  minReplicaCount: 0\n"
		"  maxReplicaCount: %d\n"
		"  triggers:\n"
		"    - type: nats-jetstream\n"
		"      metadata:\n"
		"        natsServerMonitoringEndpoint: \"nats.default.svc:8222\"\n"
		"        account: \"$G\"\n"
		"        stream: GB_%s_TASKS\n"
		"        consumer: default_1\n"
		"        lagThreshold: \"%d\"\n",
		at_fleet->name, (int)options_count(options, "replicas", 2), texts[0],
		texts[1], texts[2], texts[3], (int)options_count(options, "cells", 8),
		(int)options_count(options, "replicas", 2) * 10, at_fleet->name,
		(int)options_count(options, "cells", 8));
	for (size_t i = 0; i < QUOTED_TEXTS; i++)
		free(texts[i]);
}

static int manifest_run(const struct options *options, FILE *out)
{
	const char *url;
	struct fleet_at at_fleet;
	struct err err = {0};

	if (strcmp(options->words[0], "kubernetes") != 0)
		return verb_complain(CODE_USAGE,
				     "fleet manifest: \"%.40s\" is not known; there is: "
				     "kubernetes",
				     options->words[0]);
	if (!fleet_at_read(&at_fleet, options, NULL, &err))
		return verb_complain(setup_code(&err), "fleet manifest: %s", err.text);
	url = at_fleet.queue_options.url != NULL ? at_fleet.queue_options.url
						 : "nats://nats.default.svc:4222";
	if (!fleet_name_check(FLEET_LANE, at_fleet.name, &err)) {
		fleet_at_fini(&at_fleet);
		return verb_complain(CODE_USAGE, "fleet manifest: --fleet-name: %s",
				     err.text);
	}
	if (has_key(url)) {
		fleet_at_fini(&at_fleet);
		return verb_complain(
			CODE_USAGE,
			"fleet manifest: the URL of the fleet has a name or a "
			"password in it, which a manifest would tell; leave it out "
			"here, and put it into the configuration of the workers");
	}
	print_manifest(&at_fleet, url, options, out);
	fleet_at_fini(&at_fleet);
	return CODE_DONE;
}

const struct verb verb_fleet_manifest = {
	.name = "fleet manifest",
	.summary = "workers for Kubernetes, as YAML",
	.arguments = "kubernetes",
	.help = "Print a Deployment of workers, and how KEDA scales it by the tasks that wait.",
	.example = "  glovebox fleet manifest kubernetes --image registry/glovebox:1 | kubectl apply -f -",
	.options = manifest_options,
	.words_least = 1,
	.words_most = 1,
	.run = manifest_run,
};
