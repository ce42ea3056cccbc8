/* cluster: scripts and manifests for schedulers, and the one call of sbatch. */

#include "front/verbs/fleet/cluster.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "base/value.h"
#include "fleet/batch/claim.h"
#include "process/follow.h"
#include "process/program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* Enough tasks for each cell of a part that its start is no matter. */
	TASKS_A_CELL = 4,
	CELLS_GUESSED = 16, /* of a machine that nobody has seen */
	SCHEDULER_S = 60,   /* for an answer of the scheduler */
	SAID_MAX = 400,
	WORDS_MAX = 128,
	COMMAND_MAX = 64 << 10,
	OUTPUT_MAX = PROGRAM_HEAD + PROGRAM_TAIL,
};

/* Words of a command that the scheduler's shell completes. */
#define SLURM_SHARD      "\"$SLURM_ARRAY_TASK_ID\""
#define KUBERNETES_SHARD "\"$JOB_COMPLETION_INDEX\""

bool cluster_read_shards(const char *text, size_t *shards, size_t *at_once, struct err *err)
{
	char *end;
	unsigned long number = 0, most = 0;

	errno = 0;
	if (text[0] >= '0' && text[0] <= '9') {
		number = strtoul(text, &end, 10);
		if (*end == '%' && end[1] >= '0' && end[1] <= '9')
			most = strtoul(end + 1, &end, 10);
		if (*end == '\0' && errno == 0 && number >= 1 &&
		    number <= FLEET_SHARDS_MAX && most <= FLEET_SHARDS_MAX) {
			*shards = number;
			*at_once = most;
			return true;
		}
	}
	return err_set(err, EINVAL,
		       "--shards: \"%.40s\" is no number of parts; 8, or 8%%2 for two at the same "
		       "time, at most %d",
		       text, FLEET_SHARDS_MAX);
}

/* Parts of JOB, at most MOST. */
static size_t count_shards(const struct cluster_job *job, size_t most)
{
	const size_t each = TASKS_A_CELL * (job->cells > 0 ? job->cells : CELLS_GUESSED);
	size_t shards = job->shards;

	if (shards == 0)
		shards = (job->tasks + each - 1) / each;
	return shards < most ? shards : most;
}

/* Append the command of a part, whose number the text SHARD is. */
static void add_command(const struct cluster_job *job, const char *program,
			const char *shard, size_t shards, struct buf *out)
{
	shell_token_add_word(program, out);
	(void)buf_adds(out, " batch --job ");
	shell_token_add_word(job->job, out);
	(void)buf_adds(out, " --out ");
	shell_token_add_word(job->store, out);
	(void)buf_addf(out, " --shard %s/%zu", shard, shards);
	if (job->cells > 0)
		(void)buf_addf(out, " -j %zu", job->cells);
	for (size_t i = 0; job->words != NULL && job->words[i] != NULL; i++) {
		(void)buf_addc(out, ' ');
		shell_token_add_word(job->words[i], out);
	}
}

/* Programs of the scheduler. */

static bool run(const char *const *argv, int input, struct buf *said, struct err *err)
{
	struct program_run program;
	struct buf error;
	bool done;

	program_run_init(&program);
	buf_init(&error, OUTPUT_MAX);
	program.start.argv = argv;
	program.start.environment = (const char *const *)environ;
	program.start.fds[0] = input;
	program.start.fds[1] = program.start.fds[2] = -1;
	program.deadline_ms = clock_deadline(SCHEDULER_S);
	done = follow_program(&program, err);
	if (done) {
		program_output_text(&program.out, said);
		program_output_text(&program.error, &error);
	}
	if (!done && err->code == ENOENT) {
		(void)err_set(err, ENOENT,
			      "%s is not here: run this where jobs are submitted, or have the "
			      "script printed by --print",
			      argv[0]);
	} else if (done && program.ending != PROGRAM_ENDED) {
		done = err_set(err, ETIMEDOUT, "%s did not answer within %d s", argv[0],
			       SCHEDULER_S);
	} else if (done && program.exit_code != 0) {
		const struct str words = str_part(str_trim(buf_str(&error)), 0, SAID_MAX);

		done = err_set(err, EIO, "%s: %.*s", argv[0], (int)words.size, words.data);
	}
	buf_fini(&error);
	program_run_fini(&program);
	return done;
}

size_t cluster_array_max(void)
{
	static const char *const argv[] = {"scontrol", "show", "config", NULL};
	struct str rest, line, word;
	size_t most = CLUSTER_ARRAY_MAX;
	struct buf said;
	struct err err;

	buf_init(&said, OUTPUT_MAX);
	if (run(argv, -1, &said, &err)) {
		rest = buf_str(&said);
		while (str_next_line(&rest, &line)) {
			if (!str_next_word(&line, &word) || !str_is(word, "MaxArraySize") ||
			    !str_next_word(&line, &word) || !str_next_word(&line, &word))
				continue;
			/* 0 means that there are no arrays at all. */
			most = strtoul(word.data, NULL, 10);
		}
	}
	buf_fini(&said);
	return most < FLEET_SHARDS_MAX ? most : FLEET_SHARDS_MAX;
}

/* The program as machines find it that share our file systems. */
static bool find_program(char program[PATH_MAX], struct err *err)
{
	const ssize_t size = readlink("/proc/self/exe", program, PATH_MAX - 1);

	if (size < 0)
		return err_set(err, errno, "/proc/self/exe: %s", strerror(errno));
	program[size] = '\0';
	return true;
}

bool cluster_add_slurm(const struct cluster_job *job, size_t most, struct buf *script,
		       struct err *err)
{
	const size_t shards = count_shards(job, most);
	char program[PATH_MAX];

	if (most == 0)
		return err_set(err, ENOTSUP,
			       "this Slurm takes no arrays (MaxArraySize is 0): start the shards "
			       "by hand, with --shard I/N");
	if (job->shards > most)
		return err_set(err, E2BIG,
			       "--shards %zu: this Slurm takes arrays of at most %zu "
			       "(MaxArraySize)",
			       job->shards, most);
	if (strchr(job->store, '\n') != NULL)
		return err_set(err, EINVAL, "--out: a line end in the name of a store");
	if (!find_program(program, err))
		return false;
	(void)buf_addf(script,
		       "#!/bin/sh\n"
		       "#SBATCH --job-name=glovebox-%s\n"
		       "#SBATCH --array=0-%zu",
		       job->job, shards - 1);
	if (job->at_once > 0)
		(void)buf_addf(script, "%%%zu", job->at_once);
	(void)buf_adds(script, "\n#SBATCH --requeue\n");
	if (job->store[0] == '/' && strpbrk(job->store, " \t%\\\"'") == NULL)
		(void)buf_addf(script, "#SBATCH --output=%s/jobs/%s/slurm-%%A_%%a.out\n",
			       job->store, job->job);
	(void)buf_adds(script,
		       "# Slurm starts a part again when its node is lost, not when its script is\n"
		       "# killed: then submit this once more; results that are there stay.\n"
		       "exec ");
	add_command(job, program, SLURM_SHARD, shards, script);
	(void)buf_addc(script, '\n');
	return !script->overflowed ||
	       err_set(err, E2BIG, "the script has more than %d bytes", CLUSTER_TEXT_MAX);
}

/* The words of TEXT, as a shell would cut it; each has to be literal. */
static bool read_words(const char *text, char *values, const char **words, size_t *count,
		       struct err *err)
{
	struct shell_lexer lexer;
	struct shell_token token;

	shell_lexer_init(&lexer, str_of(text), values);
	for (shell_lexer_next(&lexer, &token); token.kind != SHELL_END;
	     shell_lexer_next(&lexer, &token)) {
		if (token.kind != SHELL_WORD || token.reason != SHELL_LITERAL)
			return err_set(err, EINVAL,
				       "--slurm: options of sbatch are plain words; \"%.*s\" is "
				       "none",
				       (int)(token.text.size < 40 ? token.text.size : 40),
				       token.text.data);
		if (*count >= WORDS_MAX)
			return err_set(err, E2BIG, "--slurm: at most %d words", WORDS_MAX);
		words[(*count)++] = token.value.data;
	}
	return true;
}

bool cluster_submit(const char *options, const struct buf *script, struct buf *said,
		    struct err *err)
{
	const char *text = options != NULL ? options : "";
	auto_free char *values = memory_alloc(strlen(text) + 1);
	const char *words[WORDS_MAX + 3] = {"sbatch"};
	auto_close int input = -1;
	size_t count = 1;

	return read_words(text, values, words, &count, err) &&
	       fd_memory_file("script", buf_str(script), &input, err) &&
	       run(words, input, said, err);
}

/* Kubernetes. */

/* A name as objects of Kubernetes have it: small letters, digits and "-", at most 52. */
static void add_object_name(const char *job, struct buf *out)
{
	enum { NAME_MAX_SIZE = 43 };
	size_t size = strlen(job);

	size = size < NAME_MAX_SIZE ? size : NAME_MAX_SIZE;
	while (size > 0 && (job[size - 1] == '-' || job[size - 1] == '_'))
		size--;
	(void)buf_adds(out, "glovebox-");
	for (size_t i = 0; i < size; i++) {
		const char c = job[i];

		(void)buf_addc(out, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a')
				    : c == '_'           ? '-'
							 : c);
	}
}

static void add_volume(const struct cluster_job *job, struct buf *out)
{
	(void)buf_adds(out, "          volumeMounts:\n"
			    "            - name: store\n"
			    "              mountPath: ");
	(void)value_quote(str_of(job->store), out);
	(void)buf_adds(out, "\n"
			    "      volumes:\n"
			    "        - name: store\n"
			    "          persistentVolumeClaim:\n"
			    "            # a claim with ReadWriteMany\n"
			    "            claimName: glovebox\n");
}

static void add_container(const struct cluster_job *job, const char *image, size_t shards,
			  struct buf *out)
{
	struct buf command;

	buf_init(&command, COMMAND_MAX);
	(void)buf_adds(&command, "exec ");
	add_command(job, "glovebox", KUBERNETES_SHARD, shards, &command);
	/* A part that has ended with 1 would be started again, until the whole Job is ended. */
	(void)buf_adds(&command, " --any-result");
	(void)buf_adds(out, "      containers:\n"
			    "        - name: batch\n"
			    "          image: ");
	(void)value_quote(str_of(image), out);
	(void)buf_adds(out, "\n          command: [\"/bin/sh\", \"-c\", ");
	(void)value_quote(buf_str(&command), out);
	(void)buf_adds(out, "]\n"
			    "          securityContext:\n"
			    "            # cells mount a /proc of their own\n"
			    "            procMount: Unmasked\n"
			    "            seccompProfile:\n"
			    "              type: Localhost\n"
			    "              # examples/fleet/seccomp.json, in /var/lib/kubelet/seccomp "
			    "of each node\n"
			    "              localhostProfile: glovebox.json\n");
	buf_fini(&command);
	if (job->store[0] == '/')
		add_volume(job, out);
	else
		(void)buf_adds(out, "          envFrom:\n"
				    "            # AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, "
				    "AWS_REGION, AWS_ENDPOINT_URL_S3\n"
				    "            - secretRef:\n"
				    "                name: glovebox-store\n");
}

bool cluster_add_kubernetes(const struct cluster_job *job, const char *image,
			    struct buf *manifest, struct err *err)
{
	const size_t shards = count_shards(job, FLEET_SHARDS_MAX);
	const size_t at_once =
		job->at_once > 0 && job->at_once < shards ? job->at_once : shards;

	(void)buf_adds(manifest, "apiVersion: batch/v1\n"
				 "kind: Job\n"
				 "metadata:\n"
				 "  name: ");
	add_object_name(job->job, manifest);
	(void)buf_addf(manifest,
		       "\n"
		       "spec:\n"
		       "  completionMode: Indexed\n"
		       "  completions: %zu\n"
		       "  parallelism: %zu\n"
		       "  # a part that was killed goes on where it was; this many times for all\n"
		       "  backoffLimit: %zu\n"
		       "  template:\n"
		       "    spec:\n"
		       "      restartPolicy: OnFailure\n"
		       "      # the cells are made in a user namespace of the pod\n"
		       "      hostUsers: false\n",
		       shards, at_once, shards * 3 < 100 ? shards * 3 : 100);
	add_container(job, image, shards, manifest);
	return !manifest->overflowed ||
	       err_set(err, E2BIG, "the manifest has more than %d bytes", CLUSTER_TEXT_MAX);
}
