/*
 * glovebox batch: works through a file of tasks without any server, alone or as one of many shards,
 * and says how far a job is.
 */

#include "fleet/batch/batch.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "base/value.h"
#include "build_config.h"
#include "fleet/batch/claim.h"
#include "fleet/batch/job.h"
#include "fleet/batch/slots.h"
#include "fleet/store.h"
#include "fleet/task.h"
#include "front/config_file.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/fleet/cluster.h"
#include "front/verbs/fleet/fleet_at.h"
#include "policy/config.h"
#include "tui/paint.h"
#include "tui/screen.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TICK_MS = 50,         /* between looks whether all is over */
	PAINT_MS = 250,       /* between two states of the painted line */
	LINES_MS = 10000,     /* between two lines of progress in a pipe */
	SAME_SIGNAL_MS = 100, /* timeout(1), npm and docker send a signal twice */
	COLUMNS = 80,
	LINE_MAX_BYTES = 8 << 10,
	MISSING_SHOWN = 10,
	MISSING_TOLD = 1000,
	WORDS_ROOM = 16, /* of the command that continues */
	MINUTE_S = 60,
	HOUR_S = 3600,
};

#define MONEY_SMALL 0.995 /* below it, four digits are shown */
#define ENDLESS_S   (99 * 3600.0 * 24)

static const struct option_row batch_options[] = {
	{"out", 'o', OPTION_TEXT, "STORE",
	 "where results go: a folder, or s3://BUCKET/PREFIX; made when it is missing"},
	{"job", 0, OPTION_TEXT, "NAME",
	 "the job's name (default: from the file's name and content)"},
	{"cells", 'j', OPTION_COUNT, "CELLS",
	 "tasks at the same time (default: as many as processors)"},
	{"shard", 0, OPTION_TEXT, "I/N", "only the tasks whose number modulo N is I, from 0"},
	{"no-steal", 0, OPTION_FLAG, NULL,
	 "end with the shard; leave those that nobody works on"},
	{"retry", 0, OPTION_TEXT, "STATUS[,STATUS]",
	 "do tasks with such a result once more: set_up, gave_up, failed …"},
	{"fail-fast", 0, OPTION_COUNT, "N",
	 "begin no more tasks when N of them are not done"},
	{"money", 0, OPTION_AMOUNT, "DOLLARS",
	 "begin no more tasks when those of this run have cost so much"},
	{"time", 0, OPTION_SECONDS, "S", "begin no more tasks after S seconds"},
	{"any-result", 0, OPTION_FLAG, NULL,
	 "exit with 0 when each task has a result, whatever it says"},
	{"json", 0, OPTION_FLAG, NULL, "print what happens as lines of JSON"},
	{"slurm", 0, OPTION_MAYBE, "OPTIONS",
	 "submit the shards as an array of Slurm; OPTIONS are those of sbatch"},
	{"kubernetes", 0, OPTION_MAYBE, "IMAGE",
	 "print an indexed Job of Kubernetes, in containers from IMAGE"},
	{"shards", 0, OPTION_TEXT, "N[%M]",
	 "for --slurm, --kubernetes: N shards, M at the same time"},
	{"print", 0, OPTION_FLAG, NULL, "for --slurm: show the script, submit nothing"},
	OPTION_ROW_CONFIG,
	OPTION_ROW_HELP,
	{0},
};

/* A run of the verb. */
struct batching {
	const struct options *options;
	FILE *out;
	struct fleet_store *store;
	struct fleet_job *job;
	struct fleet_batch *batch;
	size_t shard, shards;
	unsigned retry;
	size_t cells;

	/* All that is shown; the lock is that of all output. */
	pthread_mutex_t lock;
	bool json, painted; /* a line of ours stands on the terminal, and is not ended */
	struct screen_options look;
	struct paint paint;
	int64_t began_ms, shown_ms;
	size_t before; /* results that there were at the first count */
	char waits[ERR_TEXT_MAX], stopped[ERR_TEXT_MAX], taken[ERR_TEXT_MAX];

	int signal; /* the first one that came */
	int64_t signal_ms;
	int signals;
};

/* Options. */

static bool read_shard(const char *text, size_t *shard, size_t *shards, struct err *err)
{
	char *end = NULL;
	unsigned long first = 0, count = 0;

	*shard = 0;
	*shards = 1;
	if (text == NULL)
		return true;
	errno = 0;
	if (text[0] >= '0' && text[0] <= '9')
		first = strtoul(text, &end, 10);
	if (end != NULL && *end == '/' && end[1] >= '0' && end[1] <= '9') {
		count = strtoul(end + 1, &end, 10);
		if (*end == '\0' && errno == 0 && first < count &&
		    count <= FLEET_SHARDS_MAX) {
			*shard = first;
			*shards = count;
			return true;
		}
	}
	return err_set(err, EINVAL,
		       "--shard: \"%.40s\" is no part; 0/8 to 7/8 are the parts of eight, at "
		       "most %d",
		       text, FLEET_SHARDS_MAX);
}

/* Append a folder as other machines and other folders find it; s3://… as it is. */
static bool add_store(const char *where, struct buf *out, struct err *err)
{
	static const char file[] = "file:";
	char folder[PATH_MAX];
	const char *path = where;

	if (strncmp(where, file, sizeof(file) - 1) == 0)
		path = where + sizeof(file) - 1;
	else if (strstr(where, "://") != NULL)
		return buf_adds(out, where);
	if (getcwd(folder, sizeof(folder)) == NULL)
		return err_set(err, errno, "the working folder: %s", strerror(errno));
	return path_normal(folder, path, out) || err_set(err, EINVAL, "--out %s", where);
}

/* All that is printed. */

static void add_money(double money, struct buf *out)
{
	(void)buf_addf(out, money >= MONEY_SMALL ? "$%.2f" : "$%.4f", money);
}

static void add_time(double seconds, struct buf *out)
{
	if (seconds < MINUTE_S)
		(void)buf_addf(out, "%.0f s", seconds);
	else if (seconds < HOUR_S)
		(void)buf_addf(out, "%.0f min", seconds / MINUTE_S);
	else
		(void)buf_addf(out, "%.1f h", seconds / HOUR_S);
}

/* Take the painted line away; the lock is held. */
static void unpaint(struct batching *batching)
{
	if (batching->painted)
		(void)fputs("\r\033[K", batching->out);
	batching->painted = false;
}

/* Print TEXT, which may have names and words of others, as a line; the lock is held. */
static void print_line(struct batching *batching, const struct buf *text)
{
	struct buf clean;

	unpaint(batching);
	buf_init(&clean, 4 * LINE_MAX_BYTES);
	(void)text_clean(buf_str(text), &clean);
	(void)fprintf(batching->out, "%s\n", clean.data);
	(void)fflush(batching->out);
	buf_fini(&clean);
}

static void print_event(struct batching *batching, struct value *take_event)
{
	/* That nothing more can be written is told once, and not for each line. */
	if (!ferror(batching->out))
		(void)verb_print_json(take_event, 0, batching->out);
	value_free(take_event);
}

/* The numbers behind each other, and no colour unless there is a terminal that has it. */
static void add_progress(struct batching *batching, const struct fleet_batch_counts *counts)
{
	struct paint *paint = &batching->paint;
	const double seconds = (double)(clock_now_ms() - batching->began_ms) / 1000;
	const double rate = seconds > 0 ? (double)counts->ended / seconds : 0;
	const size_t left = counts->tasks - counts->results;
	size_t failed = 0;

	buf_clear(&paint->out);
	for (int i = FLEET_DONE + 1; i < FLEET_STATUSES; i++)
		failed += counts->by_status[i];
	paint_format(paint, PAINT_PLAIN, "%zu of %zu", counts->results, counts->tasks);
	if (failed > 0) {
		paint_text(paint, PAINT_PLAIN, str_of(paint_dot(paint)));
		paint_format(paint, PAINT_ERROR, "%zu not done", failed);
	}
	paint_format(paint, PAINT_PLAIN, "%s%zu running", paint_dot(paint), counts->running);
	if (counts->waiting > 0)
		paint_format(paint, PAINT_PLAIN, "%s%zu to be tried again",
			     paint_dot(paint), counts->waiting);
	if (counts->ended > 0)
		paint_format(paint, PAINT_PLAIN, rate >= 1 ? "%s%.1f/s" : "%s%.3f/s",
			     paint_dot(paint), rate);
	if (counts->money > 0) {
		paint_text(paint, PAINT_PLAIN, str_of(paint_dot(paint)));
		add_money(counts->money, &paint->out);
	}
	if (counts->stop != FLEET_STOP_NOT) {
		paint_format(paint, PAINT_WARNING, "%send%s", paint_dot(paint), "ing");
	} else if (rate > 0 && left > 0 && (double)left / rate < ENDLESS_S) {
		paint_text(paint, PAINT_PLAIN, str_of(paint_dot(paint)));
		add_time((double)left / rate, &paint->out);
		paint_text(paint, PAINT_PLAIN, STR(" left"));
	}
	if (batching->waits[0] != '\0')
		paint_format(paint, PAINT_WARNING, "%swaits: %s", paint_dot(paint),
			     batching->waits);
}

/* Show how far it is: paint on a terminal, print a line in a pipe from time to time. */
static void show_progress(struct batching *batching)
{
	const int64_t now = clock_now_ms();
	const int64_t each = batching->look.terminal ? PAINT_MS : LINES_MS;
	struct fleet_batch_counts counts;
	size_t columns, width;

	if (batching->json || now - batching->shown_ms < each)
		return;
	batching->shown_ms = now;
	fleet_batch_count(batching->batch, &counts);
	(void)pthread_mutex_lock(&batching->lock);
	add_progress(batching, &counts);
	if (!batching->look.terminal) {
		print_line(batching, &batching->paint.out);
	} else {
		columns = paint_columns_of(fileno(batching->out));
		columns = columns == SIZE_MAX ? COLUMNS : columns;
		unpaint(batching);
		width = paint_width_of_row(buf_str(&batching->paint.out), NULL);
		if (width < columns) {
			(void)fputs(batching->paint.out.data, batching->out);
			batching->painted = true;
		} else {
			/* Without colours a row can be cut anywhere. */
			const bool colour = batching->paint.colour;

			batching->paint.colour = false;
			add_progress(batching, &counts);
			batching->paint.colour = colour;
			(void)fprintf(batching->out, "%.*s",
				      (int)paint_width_fit(buf_str(&batching->paint.out),
							   columns - 1),
				      batching->paint.out.data);
			batching->painted = true;
		}
		(void)fflush(batching->out);
	}
	(void)pthread_mutex_unlock(&batching->lock);
}

/* A result that is not "done", in words. */
static void add_result(const struct value *result, struct buf *text)
{
	const char *message = value_text(value_member(result, "message"));

	(void)buf_adds(text, fleet_status_name(fleet_result_status(result)));
	if (message != NULL)
		(void)buf_addf(text, ": %.400s", message);
}

static void print_news(struct batching *batching, const struct fleet_batch_event *event)
{
	struct buf text;

	buf_init(&text, LINE_MAX_BYTES);
	switch (event->news) {
	case FLEET_NEWS_ENDED:
		if (event->text != NULL)
			(void)buf_addf(&text, "%s: another process was first", event->id);
		else if (fleet_result_status(event->result) != FLEET_DONE) {
			(void)buf_addf(&text, "%s: ", event->id);
			add_result(event->result, &text);
		}
		break;
	case FLEET_NEWS_AGAIN:
		(void)buf_addf(&text, "%s: again in %g s (attempt %d): %.400s", event->id,
			       event->seconds, event->attempt, event->text);
		break;
	case FLEET_NEWS_SHARD:
		if (event->shard != batching->shard)
			(void)buf_addf(&text, "takes over shard %zu of %zu", event->shard,
				       batching->shards);
		break;
	case FLEET_NEWS_TAKEN:
		if (event->shard == batching->shard)
			(void)snprintf(batching->taken, sizeof(batching->taken), "%s",
				       event->text);
		break;
	case FLEET_NEWS_WAITS:
		/* The painted line has it. */
		if (!batching->look.terminal && strcmp(batching->waits, event->text) != 0)
			(void)buf_addf(&text, "waits: %s", event->text);
		(void)snprintf(batching->waits, sizeof(batching->waits), "%s", event->text);
		break;
	case FLEET_NEWS_GOES_ON:
		batching->waits[0] = '\0';
		break;
	case FLEET_NEWS_STOPPED:
		(void)snprintf(batching->stopped, sizeof(batching->stopped), "%s",
			       event->text);
		break;
	default:
		break;
	}
	if (text.size > 0)
		print_line(batching, &text);
	buf_fini(&text);
}

static struct value *news_value(const struct batching *batching,
				const struct fleet_batch_event *event)
{
	static const char *const names[] = {
		[FLEET_NEWS_BEGAN] = "began",     [FLEET_NEWS_LINE] = "line",
		[FLEET_NEWS_ENDED] = "ended",     [FLEET_NEWS_AGAIN] = "again",
		[FLEET_NEWS_SHARD] = "shard",     [FLEET_NEWS_TAKEN] = "taken",
		[FLEET_NEWS_WAITS] = "waits",     [FLEET_NEWS_GOES_ON] = "goes_on",
		[FLEET_NEWS_STOPPED] = "stopped",
	};
	struct value *value = value_new_object();

	value_set_text(value, "event", names[event->news]);
	if (event->id != NULL) {
		value_set_text(value, "id", event->id);
		value_set_integer(value, "attempt", event->attempt);
	}
	if (event->news == FLEET_NEWS_SHARD || event->news == FLEET_NEWS_TAKEN) {
		value_set_integer(value, "shard", (int64_t)event->shard);
		value_set_integer(value, "shards", (int64_t)batching->shards);
	}
	if (event->result != NULL) {
		value_set_boolean(value, "first", event->text == NULL);
		value_set(value, "result", value_ref(event->result));
	} else if (event->text != NULL) {
		value_set_text(value, event->news == FLEET_NEWS_LINE ? "text" : "because",
			       event->text);
	}
	if (event->news == FLEET_NEWS_AGAIN)
		value_set_real(value, "seconds", event->seconds);
	return value;
}

/* Called by the threads of the batch. */
static void take_news(void *context, const struct fleet_batch_event *event)
{
	struct batching *batching = context;

	(void)pthread_mutex_lock(&batching->lock);
	if (batching->json)
		print_event(batching, news_value(batching, event));
	/* The end is told in words of ours, also behind --json. */
	if (!batching->json || event->news == FLEET_NEWS_STOPPED ||
	    event->news == FLEET_NEWS_TAKEN)
		print_news(batching, event);
	(void)pthread_mutex_unlock(&batching->lock);
}

static struct value *statuses_value(const size_t by_status[FLEET_STATUSES])
{
	struct value *value = value_new_object();

	for (int i = 0; i < FLEET_STATUSES; i++) {
		if (by_status[i] > 0)
			value_set_integer(value, fleet_status_name((enum fleet_status)i),
					  (int64_t)by_status[i]);
	}
	return value;
}

static void add_statuses(const size_t by_status[FLEET_STATUSES], struct buf *text)
{
	const char *between = "";

	for (int i = 0; i < FLEET_STATUSES; i++) {
		if (by_status[i] == 0)
			continue;
		(void)buf_addf(text, "%s%zu %s", between, by_status[i],
			       fleet_status_name((enum fleet_status)i));
		between = ", ";
	}
	if (between[0] == '\0')
		(void)buf_adds(text, "no results");
}

/* Append the command that goes on with JOB, as it is typed. */
static void add_continue(const char *job, const char *store, struct buf *text)
{
	(void)buf_adds(text, "glovebox batch --job ");
	shell_token_add_word(job, text);
	(void)buf_adds(text, " --out ");
	shell_token_add_word(store, text);
}

/* Signals. */

/* The first INT: nothing new. The second, TERM and HUP: end what runs. One more: end at once. */
static void take_signal(struct batching *batching, int number)
{
	const int64_t now = clock_now_ms();

	if (batching->signals > 0 && number == batching->signal &&
	    now - batching->signal_ms < SAME_SIGNAL_MS)
		return;
	batching->signal_ms = now;
	if (batching->signal == 0 || number != SIGINT)
		batching->signal = number;
	batching->signals += number == SIGINT || batching->signals >= 2 ? 1 : 2;
	if (batching->signals > 2 && number == SIGINT)
		_exit(CODE_SIGNAL + number);
	if (batching->signals >= 2) {
		fleet_batch_cancel(batching->batch);
		return;
	}
	fleet_batch_drain(batching->batch);
	(void)pthread_mutex_lock(&batching->lock);
	unpaint(batching);
	(void)verb_complain(0, "no more tasks begin; Ctrl+C once more ends those that run");
	(void)pthread_mutex_unlock(&batching->lock);
}

static void watch(struct batching *batching)
{
	const struct timespec tick = {.tv_nsec = TICK_MS * 1000000};
	sigset_t set;

	fleet_at_signals(&set);
	while (!fleet_batch_over(batching->batch)) {
		const int number = sigtimedwait(&set, NULL, &tick);

		if (number > 0)
			take_signal(batching, number);
		show_progress(batching);
	}
}

/* The end. */

static int exit_code(const struct batching *batching, const struct fleet_batch_counts *counts)
{
	const bool all = counts->results == counts->tasks;

	if (all && (counts->by_status[FLEET_DONE] == counts->tasks ||
		    options_given(batching->options, "any-result")))
		return CODE_DONE;
	if (!all && batching->signal != 0)
		return CODE_SIGNAL + batching->signal;
	if (!all && (counts->stop == FLEET_STOP_MONEY || counts->stop == FLEET_STOP_TIME))
		return CODE_LIMIT;
	return CODE_FAILED;
}

static void print_end(struct batching *batching, const struct fleet_batch_counts *counts,
		      int code)
{
	const char *job = fleet_job_name_of(batching->job);
	const size_t missing = counts->tasks - counts->results;
	struct buf text;

	buf_init(&text, LINE_MAX_BYTES);
	(void)buf_addf(&text, "%s: ", job);
	(void)text_add_count(&text, counts->tasks, "task");
	(void)buf_adds(&text, ": ");
	add_statuses(counts->by_status, &text);
	if (missing > 0)
		(void)buf_addf(&text, ", %zu missing", missing);
	if (counts->money > 0) {
		(void)buf_adds(&text, "; this run: ");
		add_money(counts->money, &text);
	}
	if (batching->json) {
		struct value *event = value_new_object();

		value_set_text(event, "event", "over");
		value_set_text(event, "job", job);
		value_set_integer(event, "tasks", (int64_t)counts->tasks);
		value_set_integer(event, "results", (int64_t)counts->results);
		value_set_integer(event, "ended", (int64_t)counts->ended);
		value_set(event, "statuses", statuses_value(counts->by_status));
		value_set_real(event, "money", counts->money);
		value_set_integer(event, "code", code);
		print_event(batching, event);
	} else {
		print_line(batching, &text);
	}
	buf_clear(&text);
	if (missing > 0 && !batching->json) {
		(void)buf_adds(&text, "To go on: ");
		add_continue(job, fleet_store_where(batching->store), &text);
		if (batching->shards > 1)
			(void)buf_addf(&text, " --shard %zu/%zu", batching->shard,
				       batching->shards);
		print_line(batching, &text);
	}
	buf_fini(&text);
}

/* Say on standard error why not all was done, when there is a reason. */
static void complain(struct batching *batching, const struct fleet_batch_counts *counts)
{
	if (batching->stopped[0] != '\0')
		(void)verb_complain(0, "batch: no more tasks began: %s", batching->stopped);
	if (batching->taken[0] != '\0' && counts->results < counts->tasks)
		(void)verb_complain(0,
				    "batch: shard %zu of %zu is worked on already (%s); other "
				    "processes share a job by --shard I/N",
				    batching->shard, batching->shards, batching->taken);
}

static void print_begin(struct batching *batching)
{
	struct fleet_batch_counts counts;
	struct buf text;

	fleet_batch_count(batching->batch, &counts);
	batching->before = counts.results;
	(void)pthread_mutex_lock(&batching->lock);
	if (batching->json) {
		struct value *event = value_new_object();

		value_set_text(event, "event", "job");
		value_set_text(event, "job", fleet_job_name_of(batching->job));
		value_set_text(event, "store", fleet_store_where(batching->store));
		value_set_integer(event, "tasks", (int64_t)counts.tasks);
		value_set_integer(event, "results", (int64_t)counts.results);
		value_set_integer(event, "shard", (int64_t)batching->shard);
		value_set_integer(event, "shards", (int64_t)batching->shards);
		print_event(batching, event);
	} else {
		buf_init(&text, LINE_MAX_BYTES);
		(void)buf_addf(&text, "%s: ", fleet_job_name_of(batching->job));
		(void)text_add_count(&text, counts.tasks, "task");
		if (batching->shards > 1)
			(void)buf_addf(&text, " of shard %zu of %zu", batching->shard,
				       batching->shards);
		if (counts.results > 0)
			(void)buf_addf(&text, ", %zu with a result", counts.results);
		print_line(batching, &text);
		buf_fini(&text);
	}
	(void)pthread_mutex_unlock(&batching->lock);
}

static int work_through(struct batching *batching)
{
	const struct options *options = batching->options;
	char program[PATH_MAX];
	const ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
	const struct fleet_batch_options wanted = {
		.store = batching->store,
		.job = batching->job,
		.cells = batching->cells,
		.shard = batching->shard,
		.shards = batching->shards,
		.steals = !options_given(options, "no-steal"),
		.retry = batching->retry,
		.fail_fast = options_count(options, "fail-fast", 0),
		.money = options_amount(options, "money", 0),
		.time_s = options_seconds(options, "time", 0),
		.program = program,
		.config = options_text(options, "config"),
		.tell = take_news,
		.context = batching,
	};
	struct fleet_batch_counts counts;
	struct err err = {0};
	sigset_t set;
	int code;

	if (size < 0)
		return verb_complain(CODE_FAILED, "/proc/self/exe: %s", strerror(errno));
	program[size] = '\0';
	fleet_at_signals(&set);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	batching->began_ms = batching->shown_ms = clock_now_ms();
	if (!fleet_batch_start(&wanted, &batching->batch, &err))
		return verb_complain(CODE_FAILED, "batch: %s", err.text);
	print_begin(batching);
	watch(batching);
	if (!fleet_batch_finish(batching->batch, &counts, &err))
		(void)verb_complain(0, "batch: %s", err.text);
	code = exit_code(batching, &counts);
	print_end(batching, &counts, code);
	complain(batching, &counts);
	return code;
}

/* Other machines. */

static struct value *part_words(const struct batching *batching)
{
	static const char *const passed[] = {"retry", "fail-fast", "money",
					     "time",  "config",    NULL};
	struct value *words = value_new_array();
	struct buf word;

	buf_init(&word, LINE_MAX_BYTES);
	for (size_t i = 0; passed[i] != NULL; i++) {
		if (!options_given(batching->options, passed[i]))
			continue;
		buf_clear(&word);
		(void)buf_addf(&word, "--%s", passed[i]);
		value_append(words, value_new_text(word.data));
		value_append(words,
			     value_new_text(options_text(batching->options, passed[i])));
	}
	if (options_given(batching->options, "no-steal"))
		value_append(words, value_new_text("--no-steal"));
	buf_fini(&word);
	return words;
}

static int hand_over(struct batching *batching, const struct cluster_job *job)
{
	const struct options *options = batching->options;
	const char *image = options_text(options, "kubernetes");
	const bool slurm = options_given(options, "slurm");
	struct buf text, said;
	struct err err = {0};
	bool ok;

	buf_init(&text, CLUSTER_TEXT_MAX);
	buf_init(&said, CLUSTER_TEXT_MAX);
	ok = slurm ? cluster_add_slurm(job, cluster_array_max(), &text, &err)
		   : cluster_add_kubernetes(job,
					    image != NULL ? image
							  : "glovebox:" GLOVEBOX_VERSION,
					    &text, &err);
	if (ok && slurm && !options_given(options, "print")) {
		ok = cluster_submit(options_text(options, "slurm"), &text, &said, &err);
		buf_swap(&text, &said);
		if (ok) {
			(void)buf_adds(&text, "How far it is: glovebox batch status ");
			shell_token_add_word(job->store, &text);
			(void)buf_adds(&text, " --job ");
			shell_token_add_word(job->job, &text);
			(void)buf_addc(&text, '\n');
		}
	}
	if (ok)
		(void)fputs(text.data, batching->out);
	buf_fini(&text);
	buf_fini(&said);
	return ok ? CODE_DONE : verb_complain(CODE_FAILED, "batch: %s", err.text);
}

static int run_elsewhere(struct batching *batching)
{
	auto_value struct value *words = part_words(batching);
	const size_t count = value_count(words);
	const char *list[WORDS_ROOM + 1] = {0};
	struct buf store;
	struct cluster_job job = {
		.job = fleet_job_name_of(batching->job),
		.tasks = fleet_tasks_count(fleet_job_tasks(batching->job)),
		.cells = batching->cells,
		.words = list,
	};
	const char *shards = options_text(batching->options, "shards");
	struct err err = {0};
	int code;

	for (size_t i = 0; i < count && i < WORDS_ROOM; i++)
		list[i] = value_text(value_item(words, i));
	buf_init(&store, PATH_MAX);
	if ((shards != NULL &&
	     !cluster_read_shards(shards, &job.shards, &job.at_once, &err)) ||
	    !add_store(options_text(batching->options, "out"), &store, &err)) {
		code = verb_complain(CODE_USAGE, "batch: %s", err.text);
	} else {
		job.store = store.data;
		code = hand_over(batching, &job);
	}
	buf_fini(&store);
	return code;
}

/* The verb. */

/* Open store and job. Returns an exit code. */
static int open_job(struct batching *batching)
{
	const struct options *options = batching->options;
	const char *path = options->words[0], *name = options_text(options, "job");
	struct fleet_tasks *tasks = NULL;
	char own[FLEET_NAME_MAX + 1];
	struct err err = {0};
	bool ok;

	if (name != NULL && !fleet_name_check(FLEET_JOB, name, &err))
		return verb_complain(CODE_USAGE, "--job: %s", err.text);
	/* A bad line is told before anything is made. */
	if (path != NULL && !fleet_tasks_open(path, &tasks, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (!fleet_store_open(options_text(options, "out"), path != NULL,
			      &batching->store, &err)) {
		fleet_tasks_free(tasks);
		return verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED,
				     "batch: %s", err.text);
	}
	if (path != NULL && name == NULL) {
		fleet_job_name(path, fleet_tasks_hash(tasks), own);
		name = own;
	}
	ok = path != NULL ? fleet_job_begin(batching->store, name, tasks, path,
					    &batching->job, &err)
			  : fleet_job_open(batching->store, name, &batching->job, &err);
	return ok ? CODE_DONE
		  : verb_complain(err.code == EEXIST || err.code == ENOENT ? CODE_USAGE
									   : CODE_FAILED,
				  "batch: %s", err.text);
}

/*
 * May the options of --slurm and --kubernetes stand with the others? Somebody who has asked for a
 * script must not get a run.
 */
static bool check_cluster(const struct options *options, struct err *err)
{
	const bool slurm = options_given(options, "slurm");
	const bool kubernetes = options_given(options, "kubernetes");
	const char *shards = options_text(options, "shards");
	size_t count, at_once;

	if (slurm && kubernetes)
		return err_set(err, EINVAL, "--slurm and --kubernetes exclude each other");
	if (!slurm && !kubernetes && (options_given(options, "print") || shards != NULL))
		return err_set(err, EINVAL, "--%s goes with --slurm or --kubernetes%s",
			       shards != NULL ? "shards" : "print",
			       shards != NULL ? "; one of several processes has --shard I/N"
					      : "");
	if ((slurm || kubernetes) && options_given(options, "shard"))
		return err_set(err, EINVAL,
			       "--shard is for one process; --slurm and --kubernetes divide the "
			       "tasks themselves: --shards N");
	return shards == NULL || cluster_read_shards(shards, &count, &at_once, err);
}

/* Read the options that are more than a word. Returns an exit code. */
static int read_options(struct batching *batching)
{
	const struct options *options = batching->options;
	const char *retry = options_text(options, "retry");
	auto_config struct config *config = NULL;
	struct err err = {0};

	if (options_text(options, "out") == NULL)
		return verb_complain(CODE_USAGE,
				     "batch: --out STORE is missing: a folder, or "
				     "s3://BUCKET/PREFIX, for tasks and results");
	if (options->word_count == 0 && options_text(options, "job") == NULL)
		return verb_complain(CODE_USAGE,
				     "batch: name a file of tasks, or by --job a job that the "
				     "store has");
	if (!read_shard(options_text(options, "shard"), &batching->shard,
			&batching->shards, &err) ||
	    !fleet_status_read_set("--retry", retry != NULL ? retry : "",
				   &batching->retry, &err))
		return verb_complain(CODE_USAGE, "batch: %s", err.text);
	batching->cells = options_count(options, "cells", 0);
	if (batching->cells > FLEET_SLOTS_MAX)
		return verb_complain(CODE_USAGE, "batch: -j: at most %d", FLEET_SLOTS_MAX);
	if (!check_cluster(options, &err))
		return verb_complain(CODE_USAGE, "batch: %s", err.text);
	/* No engine could be begun with it. */
	if (!config_file_load(options_text(options, "config"), &config, &err))
		return verb_complain(setup_code(&err), "batch: %s", err.text);
	return CODE_DONE;
}

static int batch_run(const struct options *options, FILE *out)
{
	struct batching batching = {
		.options = options,
		.out = out,
		.json = options_given(options, "json"),
		.look = screen_options_of(fileno(out)),
	};
	int code;

	(void)pthread_mutex_init(&batching.lock, NULL);
	paint_init(&batching.paint);
	batching.paint.colour = batching.look.colour;
	batching.paint.unicode = batching.look.unicode;
	code = read_options(&batching);
	if (code == CODE_DONE)
		code = open_job(&batching);
	if (code == CODE_DONE)
		code = options_given(options, "slurm") ||
				       options_given(options, "kubernetes")
			       ? run_elsewhere(&batching)
			       : work_through(&batching);
	fleet_job_free(batching.job);
	fleet_store_close(batching.store);
	paint_fini(&batching.paint);
	(void)pthread_mutex_destroy(&batching.lock);
	return code;
}

static const char batch_help[] =
	"Work through the tasks of a file, a JSON object on each line (docs/tasks.md), several\n"
	"at the same time, each in a cell of its own. Tasks and results are kept in STORE, and\n"
	"a task with a result is never done again: after any end, also by kill -9, the same\n"
	"command goes on. Without TASKS the job NAME of STORE goes on.\n\n"
	"A task that could not be set up is tried again, up to its `attempts`. Ctrl+C begins\n"
	"no more tasks; the second one, or TERM, ends those that run. --shard divides the\n"
	"tasks among processes that share a store; each takes over shards at its end that\n"
	"nobody works on.\n\n"
	"Exit codes: 0 all are done, 1 a task has no result `done`, 2 usage, 3 stopped by\n"
	"--money or --time, 130 and 143 ended by a signal.";

const struct verb verb_batch = {
	.name = "batch",
	.summary = "work through a file of tasks, each in a cell of its own",
	.arguments = "[TASKS|-]",
	.help = batch_help,
	.example = "  glovebox batch tasks.jsonl --out results -j 8\n"
		   "  glovebox batch tasks.jsonl --out /shared/results --shard 0/4\n"
		   "  glovebox batch tasks.jsonl --out s3://bucket/runs --money 50\n"
		   "  glovebox batch tasks.jsonl --out /shared/results --slurm=\"-p cpu\"",
	.options = batch_options,
	.words_most = 1,
	.run = batch_run,
};

/* How far a job is. */

struct status {
	struct fleet_store *store;
	struct fleet_job *job;
	bool *has; /* a result, for each task */
	size_t tasks, results, by_status[FLEET_STATUSES], unreadable;
	double money;
};

static void take_has(void *context, size_t nth)
{
	struct status *status = context;

	status->has[nth] = true;
}

static bool read_status(struct status *status, struct err *err)
{
	status->tasks = fleet_tasks_count(fleet_job_tasks(status->job));
	status->has = memory_array(status->tasks + 1, sizeof(*status->has));
	if (!fleet_job_results(status->job, take_has, status, err))
		return false;
	for (size_t nth = 0; nth < status->tasks; nth++) {
		auto_value struct value *result = NULL;
		enum fleet_status of;

		if (!status->has[nth])
			continue;
		if (!fleet_job_result(status->job, nth, &result, err)) {
			if (err->code != ENOENT)
				return false;
			status->has[nth] = false;
			continue;
		}
		status->results++;
		status->money += value_number(value_member(result, "money"));
		of = fleet_result_status(result);
		if (of < FLEET_STATUSES)
			status->by_status[of]++;
		else
			status->unreadable++;
	}
	return true;
}

static void add_missing(const struct status *status, struct buf *text)
{
	const struct fleet_tasks *tasks = fleet_job_tasks(status->job);
	size_t told = 0;

	for (size_t nth = 0; nth < status->tasks && told < MISSING_SHOWN; nth++) {
		if (status->has[nth])
			continue;
		(void)buf_addf(text, "%s%s", told > 0 ? " " : "",
			       fleet_tasks_id(tasks, nth));
		told++;
	}
	if (status->tasks - status->results > told)
		(void)buf_addf(text, " and %zu more",
			       status->tasks - status->results - told);
}

static void print_status(const struct status *status, FILE *out)
{
	const char *job = fleet_job_name_of(status->job);
	const size_t missing = status->tasks - status->results;
	struct buf text;

	buf_init(&text, CLUSTER_TEXT_MAX);
	(void)buf_addf(&text, "%s: ", job);
	(void)text_add_count(&text, status->tasks, "task");
	(void)buf_adds(&text, ": ");
	add_statuses(status->by_status, &text);
	if (status->unreadable > 0)
		(void)buf_addf(&text, ", %zu that are no results", status->unreadable);
	if (missing > 0)
		(void)buf_addf(&text, ", %zu missing", missing);
	if (status->money > 0) {
		(void)buf_adds(&text, "; ");
		add_money(status->money, &text);
	}
	(void)buf_addc(&text, '\n');
	if (missing > 0) {
		(void)buf_adds(&text, "Missing: ");
		add_missing(status, &text);
		(void)buf_adds(&text, "\nTo go on: ");
		add_continue(job, fleet_store_where(status->store), &text);
		(void)buf_addc(&text, '\n');
	}
	if (status->by_status[FLEET_GAVE_UP] > 0) {
		(void)buf_adds(&text, "To try again what gave up: ");
		add_continue(job, fleet_store_where(status->store), &text);
		(void)buf_adds(&text, " --retry gave_up\n");
	}
	(void)fputs(text.data, out);
	buf_fini(&text);
}

static struct value *status_value(const struct status *status)
{
	const struct fleet_tasks *tasks = fleet_job_tasks(status->job);
	struct value *value = value_new_object(), *missing = value_new_array();
	struct buf text;

	value_set_text(value, "job", fleet_job_name_of(status->job));
	value_set_integer(value, "tasks", (int64_t)status->tasks);
	value_set_integer(value, "results", (int64_t)status->results);
	value_set(value, "statuses", statuses_value(status->by_status));
	value_set_real(value, "money", status->money);
	for (size_t nth = 0; nth < status->tasks && value_count(missing) < MISSING_TOLD;
	     nth++)
		if (!status->has[nth])
			value_append(missing, value_new_text(fleet_tasks_id(tasks, nth)));
	value_set_integer(value, "missing", (int64_t)(status->tasks - status->results));
	value_set(value, "missing_ids", missing);
	buf_init(&text, CLUSTER_TEXT_MAX);
	add_continue(fleet_job_name_of(status->job), fleet_store_where(status->store),
		     &text);
	value_set_text(value, "continue", text.data);
	buf_fini(&text);
	return value;
}

/* Say how far the job NAME is. Returns an exit code. */
static int tell_status(struct fleet_store *store, const char *name, bool json, FILE *out)
{
	struct status status = {.store = store};
	struct err err = {0};
	int code = CODE_FAILED;

	if (!fleet_job_open(store, name, &status.job, &err)) {
		code = verb_complain(err.code == ENOENT ? CODE_USAGE : CODE_FAILED,
				     "batch status: %s", err.text);
	} else if (!read_status(&status, &err)) {
		code = verb_complain(CODE_FAILED, "batch status: %s", err.text);
	} else {
		if (json) {
			auto_value struct value *value = status_value(&status);

			(void)verb_print_json(value, 0, out);
		} else {
			print_status(&status, out);
		}
		code = status.by_status[FLEET_DONE] == status.tasks ? CODE_DONE
								    : CODE_FAILED;
	}
	fleet_job_free(status.job);
	free(status.has);
	return code;
}

static int status_run(const struct options *options, FILE *out)
{
	const char *where = options->words[0], *name = options_text(options, "job");
	auto_value struct value *names = NULL;
	struct fleet_store *store = NULL;
	struct err err = {0};
	int code = CODE_DONE;

	if (!fleet_store_open(where, false, &store, &err))
		return verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED,
				     "batch status: %s", err.text);
	if (name != NULL) {
		code = tell_status(store, name, options_given(options, "json"), out);
	} else if (!fleet_job_names(store, &names, &err)) {
		code = verb_complain(CODE_FAILED, "batch status: %s", err.text);
	} else if (value_count(names) == 0) {
		code = verb_complain(CODE_FAILED, "batch status: %s has no job",
				     fleet_store_where(store));
	}
	for (size_t i = 0; names != NULL && i < value_count(names); i++) {
		const int one = tell_status(store, value_text(value_item(names, i)),
					    options_given(options, "json"), out);

		code = code == CODE_DONE ? one : code;
	}
	fleet_store_close(store);
	return code;
}

static const struct option_row status_options[] = {
	{"job", 0, OPTION_TEXT, "NAME", "only this job (default: each one of the store)"},
	{"json", 0, OPTION_FLAG, NULL, "print one JSON object for each job"},
	OPTION_ROW_HELP,
	{0},
};

const struct verb verb_batch_status = {
	.name = "batch status",
	.summary = "count the results of a batch, and name what is missing",
	.arguments = "STORE",
	.help = "Say how many tasks of each job in STORE have which result, which have none, and\n"
		"the command that goes on.\n\n"
		"Exit codes: 0 all are done, 1 a task has no result `done`.",
	.example = "  glovebox batch status results\n"
		   "  glovebox batch status s3://bucket/runs --job swe-1a2b3c4d --json",
	.options = status_options,
	.words_least = 1,
	.words_most = 1,
	.run = status_run,
};
