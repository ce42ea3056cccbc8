/*
 * races: a directory and a symbolic link that leads outside exchange their names without
 * a pause, while each tool works through that name. TAP; a hit is a text of outside in
 * a result, or a change there.
 *
 *   races PROGRAM TRIES [TOOL…]   PROGRAM becomes the cell; TRIES of each tool
 */
#include <glovebox.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 512, NAMES = 16, DEPTH = 16 };

#define SECRET "s3cr3t"
#define WITHIN "inside"

/* Each with one number that goes round: a name, or nothing. */
struct race {
	const char *tool, *before, *before_arguments, *arguments;
};

static const struct race races[] = {
	{"read_file", NULL, NULL, "{\"path\": \"real/f\", \"start_line\": 1}"},
	{"batch_read", NULL, NULL, "{\"files\": [\"real/f\", \"real/f\"]}"},
	{"write_file", NULL, NULL, "{\"path\": \"real/new%u\", \"content\": \"x\"}"},
	{"edit_file", "read_file", "{\"path\": \"real/f\"}",
	 "{\"path\": \"real/f\", \"edits\": [{\"old\": \"" WITHIN "\", \"new\": \"" WITHIN
	 "%u\"}]}"},
	/* Two files made at once; the third, which shall stay as it is, is read. */
	{"apply_patch", "apply_patch",
	 "{\"patch\": \"*** Begin Patch\\n*** Delete File: real/new1\\n*** Delete File: "
	 "real/new2\\n*** End Patch\"}",
	 "{\"patch\": \"*** Begin Patch\\n*** Add File: real/new1\\n+x\\n*** Add File: "
	 "real/new2\\n+x\\n*** Update File: real/f\\n@@\\n-" WITHIN "\\n+" WITHIN
	 "\\n*** End Patch\"}"},
	{"list_files", NULL, NULL, "{\"path\": \"real\"}"},
	{"glob", NULL, NULL, "{\"pattern\": \"real/*\"}"},
	{"grep", NULL, NULL, "{\"pattern\": \"s3c.3t|in+side\", \"path\": \"real\"}"},
	{"bash", NULL, NULL,
	 "{\"command\": \"cat f; ls; echo x > new\", \"workdir\": \"real\"}"},
	/* It shows what this session has written. */
	{"generate_patch", "write_file", "{\"path\": \"real/new1\", \"content\": \"x\\n\"}",
	 "{\"title\": \"t\", \"summary\": \"s\"}"},
};

static void die(const char *what)
{
	(void)fprintf(stderr, "races: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void file_make(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
		die(path);
}

static int entry_remove(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st, (void)kind, (void)where;
	return remove(path);
}

/* The workspace and what lies beside it; the working folder is then the workspace. */
static void place_make(char *base)
{
	if (mkdtemp(base) == NULL || chmod(base, 0755) < 0 || chdir(base) < 0)
		die("folder");
	if (mkdir("work", 0755) < 0 || mkdir("outside", 0755) < 0 || chdir("work") < 0 ||
	    mkdir("real", 0755) < 0 || symlink("../outside", "link") < 0)
		die("folders");
	file_make("real/f", WITHIN "\n");
	file_make("../outside/f", SECRET "\n");
	file_make("../outside/" SECRET "-name", "");
}

/* generate_patch compares with a repository's last commit. */
static void repository_make(void)
{
	char *const argv[] = {(char[]){"sh"}, (char[]){"-c"},
			      (char[]){"git init -q . && git add real && git -c user.name=T -c "
				       "user.email=t@example.com commit -qm first"},
			      NULL};
	int status = 1;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execvp(argv[0], argv);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
		die("git");
}

static pid_t swapper_start(void)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		(void)syscall(SYS_renameat2, AT_FDCWD, "real", AT_FDCWD, "link",
			      RENAME_EXCHANGE);
}

/* Has anything been made or changed outside? */
static bool outside_touched(void)
{
	char text[sizeof(SECRET) + 2] = "";
	struct stat st;
	FILE *file = fopen("../outside/f", "re");
	bool same = file != NULL && fread(text, 1, sizeof(text), file) == sizeof(SECRET) &&
		    strcmp(text, SECRET "\n") == 0;

	if (file != NULL)
		(void)fclose(file);
	/* Folders count their folders in st_nlink; of files only these two are there. */
	if (!same || stat("../outside/new", &st) == 0)
		return true;
	for (unsigned i = 0; i < NAMES; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "../outside/new%u", i);
		if (stat(path, &st) == 0)
			return true;
	}
	return false;
}

struct score {
	unsigned long tries, hits, through; /* through: the tool found what is inside */
};

static void try_once(struct glovebox_session *session, const char *tool,
		     const char *arguments, struct score *score)
{
	struct glovebox_result *result = glovebox_call(session, tool, arguments);

	score->tries++;
	/* A pattern that is repeated in a sentence is no hit: it is s3c.3t. */
	score->hits += strstr(result->text, SECRET) != NULL;
	score->through += result->status == GLOVEBOX_DONE;
	glovebox_result_free(result);
}

static bool play(const char *program, const struct race *race, unsigned long tries,
		 unsigned number)
{
	struct glovebox_options options = GLOVEBOX_OPTIONS;
	char base[] = "/tmp/glovebox-races-XXXXXX", error[GLOVEBOX_ERROR_MAX];
	char arguments[ARGUMENTS_MAX];
	struct score score = {0};
	struct timespec begin, end;

	place_make(base);
	if (strcmp(race->tool, "generate_patch") == 0)
		repository_make();
	options.workspace = ".";
	options.policy = "{\"write\": [\".\"]}";
	options.program = program;
	struct glovebox_session *session = glovebox_open(&options, error, sizeof(error));
	if (session == NULL) {
		(void)fprintf(stderr, "races: %s\n", error);
		exit(1);
	}
	pid_t swapper = swapper_start();
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned i = 0; score.tries < tries; i = (i + 1) % NAMES) {
		if (race->before != NULL)
			glovebox_result_free(glovebox_call(session, race->before,
							   race->before_arguments));
		(void)snprintf(arguments, sizeof(arguments), "%s", race->arguments);
		char *place = strstr(arguments, "%u");
		if (place != NULL)
			(void)snprintf(arguments, sizeof(arguments), "%.*s%u%s",
				       (int)(strstr(race->arguments, "%u") - race->arguments),
				       race->arguments, i,
				       strstr(race->arguments, "%u") + 2);
		try_once(session, race->tool, arguments, &score);
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	(void)kill(swapper, SIGKILL);
	(void)waitpid(swapper, NULL, 0);
	glovebox_close(session);
	bool good = score.hits == 0 && score.through > 0 && !outside_touched();
	(void)printf("%s %u - %s: %lu hits in %lu tries, %lu done, %.0f s\n",
		     good ? "ok" : "not ok", number, race->tool, score.hits, score.tries,
		     score.through, difftime(end.tv_sec, begin.tv_sec));
	(void)fflush(stdout);
	if (chdir("/") < 0 || nftw(base, entry_remove, DEPTH, FTW_DEPTH | FTW_PHYS) < 0)
		die(base);
	return good;
}

static bool chosen(const char *tool, char *const *names)
{
	for (size_t i = 0; names[i] != NULL; i++) {
		if (strcmp(names[i], tool) == 0)
			return true;
	}
	return names[0] == NULL;
}

int main(int argc, char **argv)
{
	bool good = true;
	unsigned number = 0;

	if (argc < 3) {
		(void)fprintf(stderr, "races: see the head of races.c\n");
		return 2;
	}
	char *program = realpath(argv[1], NULL); /* each race is in a folder of its own */
	if (program == NULL)
		die(argv[1]);
	for (size_t i = 0; i < sizeof(races) / sizeof(races[0]); i++) {
		if (chosen(races[i].tool, argv + 3))
			good = play(program, &races[i], strtoul(argv[2], NULL, 10),
				    ++number) &&
			       good;
	}
	free(program);
	(void)printf("1..%u\n", number);
	return good ? 0 : 1;
}
