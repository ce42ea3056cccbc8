/* when: both forms of times, the calendar with its odd days, and intervals of 0.1.0. */
#include "agent/when.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	AT_2026_11_23 = 1795392000, /* 00:00 UTC, a Monday */
	AT_2026_03_28 = 1774656000, /* the day before summer time begins in Berlin */
	AT_2026_10_24 = 1792800000, /* the day before it ends there */
	AT_2027_01_01 = 1798761600,
	HOUR = 3600,
	DAY = 24 * HOUR,
};

/* Append the form of TEXT that is kept; "! sentence" when TEXT is refused. */
static void add_kept(const char *text, struct buf *out)
{
	struct err err = {0};
	struct buf times;
	int64_t next_s;

	buf_init(&times, 4096);
	if (when_schedule_settle(text, NULL, AT_2026_11_23, &times, &next_s, &err))
		(void)buf_adds(out, times.data);
	else
		(void)buf_addf(out, "! %s", err.text);
	buf_fini(&times);
}

static void assert_kept(const char *text, const char *wanted)
{
	struct buf kept;

	buf_init(&kept, 4096);
	add_kept(text, &kept);
	if (wanted[0] == '!' ? strstr(kept.data, wanted + 1) == NULL || kept.data[0] != '!'
			     : strcmp(kept.data, wanted) != 0)
		fail_msg("\"%s\" gives \"%s\", not \"%s\"", text, kept.data, wanted);
	buf_fini(&kept);
}

/* The next three runs of TEXT after AFTER_S, as a person in ZONE has them. */
static void assert_runs(const char *text, const char *zone, int64_t after_s,
			const char *wanted)
{
	struct buf runs;

	assert_kept(text, text);
	buf_init(&runs, 4096);
	when_schedule_add_runs(str_of(text), str_of(zone), 0, after_s, &runs);
	if (strncmp(runs.data, "runs: ", 6) != 0 || strcmp(runs.data + 6, wanted) != 0)
		fail_msg("\"%s\" %s, not %s", text, runs.data, wanted);
	buf_fini(&runs);
}

static void times_are_kept_as_they_are_written(void **state)
{
	static const char *const rows[] = {
		"0 9 * * 1-5",
		"*/15 8-17/3 * jan,JUL mon-fri",
		"0 0 1,L 2 *",
		"5,07 */6 1-10/3 * sun",
		"0 9 * * fri-sun",
		"0 9 * * monday",
		"@daily",
		"@Midnight",
		"Mon..Fri 09:00",
		"mon,Wed..fri 9:0",
		"Sat-Sun",
		"Monday",
		"*-*-01 06:30",
		"05-03",
		"2027-02-28 23:59:59",
		"2027..2030/2-1-1",
		"*-*~07/1",
		"*-*~22/10",
		"Mon *-05~07/1 8:00",
		"*-2~1..3",
		"9,17..19:00,30",
		"8..18/2:0/20:15",
		"*:0/15",
		"*:*:0/10",
		"daily",
		"Weekly UTC",
		"quarterly Europe/Berlin",
		"09:00 America/Port-au-Prince",
		"Sun *-02-29",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_kept(rows[i], rows[i]);
	assert_kept(" 0\t9  * * 1-5\n", "0 9 * * 1-5");
	assert_kept("Mon   09:00 ", "Mon 09:00");
}

static void what_is_none_is_refused_with_its_place(void **state)
{
	static const char *const rows[][2] = {
		{"", "!no time is given"},
		{" \t", "!no time is given"},
		{"60 * * * *",
		 "!minute \"60\" is none: 0 to 59, a list (1,15), a range (1-5)"},
		{"* 24 * * *", "!hour \"24\" is none"},
		{"* * 0 * *", "!day of the month \"0\""},
		{"* * * 13 *", "!month \"13\""},
		{"* * * * 8", "!day of the week \"8\""},
		{"* * * * mond", "!day of the week \"mond\""},
		{"5-1 * * * *", "!minute \"5-1\""},
		{"1/5 * * * *", "!minute \"1/5\""},
		{"1, * * * *", "!minute \"1,\""},
		{"*/0 * * * *", "!minute \"*/0\""},
		{"0..5 * * * *", "!minute \"0..5\""},
		{"0 9:30 * * *", "!hour \"9:30\""},
		{"* * * *", "!there are 4"},
		{"* * * * * *", "!behind the five fields"},
		{"0 9 * * 1-5 root", "!\"root\" stands behind the five fields"},
		{"@reboot", "!neither cron's five fields nor systemd's OnCalendar"},
		{"@daily UTC", "!\"UTC\" stands behind the five fields"},
		{"Mon..Fri 25:00",
		 "!hour \"25\" is none: 0 to 23, a list (1,15), a range (1..5)"},
		{"9-17:00", "!hour \"9-17\""},
		{"*/2:00", "!hour \"*/2\""},
		{"09:60", "!minute \"60\""},
		{"09:00:7.5", "!second \"7.5\""},
		{"*-*-* 9", "!\"9\" is no time of day"},
		{"Mon..Fri 9", "!\"9\" is no time of day"},
		{"09:00:00:00", "!is no time of day"},
		{"*-*~10/10", "!day from the end of the month \"10/10\""},
		{"*:0/60", "!minute \"0/60\""},
		{"*-*-32", "!day of the month \"32\""},
		{"*-13-01", "!month \"13\""},
		{"1969-01-01", "!year \"1969\""},
		{"2200-01-01", "!year \"2200\""},
		{"*-*~29", "!day from the end of the month \"29\""},
		{"*-*~3..1", "!day from the end of the month \"3..1\""},
		{"1-2-3-4", "!is no date"},
		{"*~*-1", "!is no date"},
		{"Fri..Mon 09:00", "!neither"},
		{"Sun..Tue 09:00", "!neither"},
		{"Mon,3 09:00", "!neither"},
		{"Mon/2 09:00", "!neither"},
		{"Mon.. 09:00", "!neither"},
		{"09:00 leapseconds", "!there is no time zone \"leapseconds\" here"},
		{"09:00 Europe", "!there is no time zone \"Europe\" here"},
		{"09:00 Mars/Base", "!there is no time zone \"Mars/Base\" here"},
		{"09:00 UTC UTC", "!\"UTC\" stands behind the time zone"},
		{"every day at 9\xff", "!neither"},
		{"9:00\x01", "!neither"},
		{"0 0 30 2 *", "!\"0 0 30 2 *\" never comes"},
		{"2026-11-22", "!never comes"},
		{"*-02-30", "!never comes"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_kept(rows[i][0], rows[i][1]);
}

/* Both forms give the same runs, of which the first is WANTED. */
static void assert_same(const char *cron, const char *calendar, const char *wanted)
{
	struct buf runs;

	buf_init(&runs, 4096);
	when_schedule_add_runs(str_of(cron), STR("UTC"), 0, AT_2026_11_23, &runs);
	if (!strstr(runs.data, wanted))
		fail_msg("\"%s\" %s, not %s", cron, runs.data, wanted);
	assert_runs(cron, "UTC", AT_2026_11_23, runs.data + strlen("runs: "));
	assert_runs(calendar, "UTC", AT_2026_11_23, runs.data + strlen("runs: "));
	buf_fini(&runs);
}

static void both_forms_mean_the_same(void **state)
{
	(void)state;
	assert_same("0 9 * * 1-5", "Mon..Fri 09:00", ": Mon 2026-11-23 09:00 UTC, Tue");
	assert_same("*/15 8-17/3 * jan,JUL mon-fri", "Mon-Fri *-1,7-* 8..17/3:0/15",
		    ": Fri 2027-01-01 08:00 UTC, Fri 2027-01-01 08:15 UTC");
	assert_same("0 0 * * 7", "Sun", ": Sun 2026-11-29 00:00 UTC");
	assert_same("0 0 * * sun-sun", "Sun..Sun", ": Sun 2026-11-29 00:00 UTC, Sun");
	assert_same("0 0 * * 0", "sunday", ": Sun 2026-11-29 00:00 UTC");
	assert_same("0 9 * * fri-sun", "Fri..Sun 9:0", ": Fri 2026-11-27 09:00 UTC, Sat");
	assert_same("30 18 L * *", "*-*~01 18:30",
		    ": Mon 2026-11-30 18:30 UTC, Thu 2026-12-31 18:30 UTC");
	assert_same("0 0 * * *", "*~*", ": Tue 2026-11-24 00:00 UTC, Wed");
	assert_same("* * * * *", "minutely", ": Mon 2026-11-23 00:01 UTC, Mon");
	assert_same("@hourly", "hourly", ": Mon 2026-11-23 01:00 UTC");
	assert_same("@daily", "daily", ": Tue 2026-11-24 00:00 UTC");
	assert_same("@midnight", "*-*-*", ": Tue 2026-11-24 00:00 UTC");
	assert_same("@monthly", "monthly", ": Tue 2026-12-01 00:00 UTC");
	assert_same("@yearly", "annually", ": Fri 2027-01-01 00:00 UTC");
	assert_same("@annually", "yearly", ": Fri 2027-01-01 00:00 UTC");
	assert_same("0 0 1 */3 *", "quarterly",
		    ": Fri 2027-01-01 00:00 UTC, Thu 2027-04-01");
	assert_same("0 0 1 1,7 *", "semiannually",
		    ": Fri 2027-01-01 00:00 UTC, Thu 2027-07-01");
	assert_same("0 12 29 2 *", "02-29 12:00",
		    ": Tue 2028-02-29 12:00 UTC, Sun 2032-02-29 12:00 UTC");
	/* Here they differ. */
	assert_runs("@weekly", "UTC", AT_2026_11_23,
		    "Sun 2026-11-29 00:00 UTC, Sun 2026-12-06 00:00 UTC, "
		    "Sun 2026-12-13 00:00 UTC\n");
	assert_runs("weekly", "UTC", AT_2026_11_23,
		    "Mon 2026-11-30 00:00 UTC, Mon 2026-12-07 00:00 UTC, "
		    "Mon 2026-12-14 00:00 UTC\n");
}

/* The sentence that refuses WORDS names CRON and CALENDAR, which mean the same. */
static void assert_nearest(const char *words, const char *cron, const char *calendar)
{
	char wanted[256];
	struct buf runs;

	(void)snprintf(wanted, sizeof(wanted),
		       "!\"%s\" is neither cron's five fields nor systemd's OnCalendar: say it "
		       "as \"%s\" or \"%s\"",
		       words, cron, calendar);
	assert_kept(words, wanted);
	buf_init(&runs, 4096);
	when_schedule_add_runs(str_of(cron), STR("UTC"), 0, AT_2026_11_23, &runs);
	assert_runs(calendar, "UTC", AT_2026_11_23, runs.data + strlen("runs: "));
	buf_fini(&runs);
}

static void words_are_refused_with_the_nearest_forms(void **state)
{
	static const char *const none[] = {"sometimes",
					   "every full moon",
					   "every day at 25",
					   "every 0 minutes",
					   "daily at 9 and 10",
					   "every monday in july at 9",
					   "every 90 minutes at 9",
					   "every hour on weekdays",
					   "monthly on monday",
					   "now and then"};

	(void)state;
	assert_nearest("every weekday at 9", "0 9 * * 1-5", "Mon..Fri 09:00");
	assert_nearest("Every Weekday at 9:30", "30 9 * * 1-5", "Mon..Fri 09:30");
	assert_nearest("daily at 7:05pm", "5 19 * * *", "19:05");
	assert_nearest("each day at 12am", "0 0 * * *", "00:00");
	assert_nearest("9", "0 9 * * *", "09:00");
	assert_nearest("at 6pm", "0 18 * * *", "18:00");
	assert_nearest("every monday and friday at 18:00", "0 18 * * Mon,Fri",
		       "Mon,Fri 18:00");
	assert_nearest("on mondays, tuesdays and sundays at 8", "0 8 * * Mon,Tue,Sun",
		       "Mon,Tue,Sun 08:00");
	assert_nearest("weekly on thu at 8", "0 8 * * Thu", "Thu 08:00");
	assert_nearest("every weekend at 10", "0 10 * * 6,7", "Sat,Sun 10:00");
	assert_nearest("on the last day of every month at 18:30", "30 18 L * *",
		       "*-*~01 18:30");
	assert_nearest("every month at 9", "0 9 1 * *", "*-*-01 09:00");
	assert_nearest("every year", "0 0 1 1 *", "*-01-01 00:00");
	assert_nearest("every minute", "*/1 * * * *", "*:0/1");
	assert_nearest("every 15 minutes", "*/15 * * * *", "*:0/15");
	assert_nearest("every hour", "0 */1 * * *", "0/1:00");
	assert_nearest("every 90 minutes", "0 */2 * * *", "0/2:00");
	assert_nearest("every 2 days", "0 0 */2 * *", "*-*-1/2");
	assert_nearest("every 8 weeks", "0 0 1 * *", "*-*-01");
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_kept(none[i], "!OnCalendar: say it as \"0 9 * * 1-5\" or "
				     "\"Mon..Fri 09:00\", for example");
}

static void the_next_runs_follow_each_other(void **state)
{
	(void)state;
	assert_runs("Mon..Fri 09:00", "UTC", AT_2026_11_23 + 4 * DAY,
		    "Fri 2026-11-27 09:00 UTC, Mon 2026-11-30 09:00 UTC, "
		    "Tue 2026-12-01 09:00 UTC\n");
	assert_runs("0 9 * * *", "UTC", AT_2026_11_23 + 9 * HOUR,
		    "Tue 2026-11-24 09:00 UTC, Wed 2026-11-25 09:00 UTC, "
		    "Thu 2026-11-26 09:00 UTC\n");
	assert_runs("09:00:20/20", "UTC", AT_2026_11_23 + 9 * HOUR,
		    "Mon 2026-11-23 09:00:20 UTC, Mon 2026-11-23 09:00:40 UTC, "
		    "Tue 2026-11-24 09:00:20 UTC\n");
	assert_runs("2027,2040-06-01 9:00", "UTC", AT_2026_11_23,
		    "Tue 2027-06-01 09:00 UTC, Fri 2040-06-01 09:00 UTC\n");
	assert_runs("2027-06-01", "UTC", AT_2027_01_01 + 300 * DAY, "none\n");
	assert_runs("Sun *-02-29", "UTC", AT_2026_11_23,
		    "Sun 2032-02-29 00:00 UTC, Sun 2060-02-29 00:00 UTC, "
		    "Sun 2088-02-29 00:00 UTC\n");
}

/* crontab(5): either of two restricted day fields fits; one with a "*" restricts none. */
static void two_fields_of_days(void **state)
{
	(void)state;
	assert_runs("0 0 13 * fri", "UTC", AT_2026_11_23 + 13 * DAY,
		    "Fri 2026-12-11 00:00 UTC, Sun 2026-12-13 00:00 UTC, "
		    "Fri 2026-12-18 00:00 UTC\n");
	assert_runs("0 0 */10 * fri", "UTC", AT_2026_11_23,
		    "Fri 2026-12-11 00:00 UTC, Fri 2027-01-01 00:00 UTC, "
		    "Fri 2027-05-21 00:00 UTC\n");
	assert_runs("0 0 1-31 * fri", "UTC", AT_2026_11_23,
		    "Tue 2026-11-24 00:00 UTC, Wed 2026-11-25 00:00 UTC, "
		    "Thu 2026-11-26 00:00 UTC\n");
	assert_runs("Fri *-*-13", "UTC", AT_2026_11_23,
		    "Fri 2027-08-13 00:00 UTC, Fri 2028-10-13 00:00 UTC, "
		    "Fri 2029-04-13 00:00 UTC\n");
}

static void months_end_where_they_end(void **state)
{
	(void)state;
	assert_runs("0 9 L * *", "UTC", AT_2027_01_01,
		    "Sun 2027-01-31 09:00 UTC, Sun 2027-02-28 09:00 UTC, "
		    "Wed 2027-03-31 09:00 UTC\n");
	assert_runs("*-*-31 09:00", "UTC", AT_2027_01_01,
		    "Sun 2027-01-31 09:00 UTC, Wed 2027-03-31 09:00 UTC, "
		    "Mon 2027-05-31 09:00 UTC\n");
	assert_runs("0 0 30,L 2 *", "UTC", AT_2027_01_01,
		    "Sun 2027-02-28 00:00 UTC, Tue 2028-02-29 00:00 UTC, "
		    "Wed 2029-02-28 00:00 UTC\n");
	assert_runs("Mon *-05~07/1", "UTC", AT_2027_01_01,
		    "Mon 2027-05-31 00:00 UTC, Mon 2028-05-29 00:00 UTC, "
		    "Mon 2029-05-28 00:00 UTC\n");
	assert_runs("*-02~5/2", "UTC", AT_2027_01_01,
		    "Wed 2027-02-24 00:00 UTC, Fri 2027-02-26 00:00 UTC, "
		    "Sun 2027-02-28 00:00 UTC\n");
	/* 2100 has no 29 February. */
	assert_runs("0 12 29 2 *", "UTC", 3981398400,
		    "Fri 2104-02-29 12:00 UTC, Wed 2108-02-29 12:00 UTC, "
		    "Mon 2112-02-29 12:00 UTC\n");
}

static void an_hour_that_is_skipped_comes_later(void **state)
{
	(void)state;
	assert_runs("30 2 * * *", "Europe/Berlin", AT_2026_03_28,
		    "Sat 2026-03-28 02:30 CET, Sun 2026-03-29 03:30 CEST, "
		    "Mon 2026-03-30 02:30 CEST\n");
	assert_runs("03-29 1,2,3:30 Europe/Berlin", "", AT_2026_03_28,
		    "Sun 2026-03-29 01:30 CET, Sun 2026-03-29 03:30 CEST, "
		    "Mon 2027-03-29 01:30 CEST\n");
	assert_runs("*-03-29 02:30:10", "Europe/Berlin", AT_2026_03_28,
		    "Sun 2026-03-29 03:30:10 CEST, Mon 2027-03-29 02:30:10 CEST, "
		    "Wed 2028-03-29 02:30:10 CEST\n");
}

static void an_hour_that_comes_twice_counts_once(void **state)
{
	(void)state;
	assert_runs("30 2 * * *", "Europe/Berlin", AT_2026_10_24 + HOUR,
		    "Sun 2026-10-25 02:30 CEST, Mon 2026-10-26 02:30 CET, "
		    "Tue 2026-10-27 02:30 CET\n");
	assert_runs("02:30 Europe/Berlin", "", AT_2026_10_24 + HOUR,
		    "Sun 2026-10-25 02:30 CEST, Mon 2026-10-26 02:30 CET, "
		    "Tue 2026-10-27 02:30 CET\n");
	assert_runs("30 * 25 10 *", "Europe/Berlin", AT_2026_10_24 + DAY,
		    "Sun 2026-10-25 02:30 CEST, Sun 2026-10-25 02:30 CET, "
		    "Sun 2026-10-25 03:30 CET\n");
	/* In Ireland the winter is what is shifted. */
	assert_runs("30 1 * * *", "Europe/Dublin", AT_2026_10_24 + HOUR,
		    "Sun 2026-10-25 01:30 IST, Mon 2026-10-26 01:30 GMT, "
		    "Tue 2026-10-27 01:30 GMT\n");
}

static void the_zone_of_the_process_stays(void **state)
{
	(void)state;
	(void)setenv("TZ", "America/New_York", 1);
	assert_int_equal(when_schedule_next(STR("09:00"), STR("Asia/Tokyo"), 0,
					    AT_2026_11_23),
			 AT_2026_11_23 + 24 * HOUR);
	assert_string_equal(getenv("TZ"), "America/New_York");
	assert_int_equal(when_schedule_next(STR("09:00"), STR(""), 0, AT_2026_11_23),
			 AT_2026_11_23 + 14 * HOUR);
	/* The zone in the time itself goes before the schedule's. */
	assert_int_equal(when_schedule_next(STR("09:00 UTC"), STR("Asia/Tokyo"), 0,
					    AT_2026_11_23),
			 AT_2026_11_23 + 9 * HOUR);
	(void)unsetenv("TZ");
}

static void zones_are_names_of_the_table(void **state)
{
	static const char *const none[] = {
		"",        "Mars/Base",       "../../etc/passwd", "/etc/passwd",
		"Europe/", "Europe/Berlin\n", "Europe/../UTC"};
	struct buf times;
	struct err err;
	int64_t next_s;

	(void)state;
	buf_init(&times, 4096);
	assert_true(when_schedule_settle("9:00", "Europe/Berlin", AT_2026_11_23, &times,
					 &next_s, NULL));
	assert_int_equal(next_s, AT_2026_11_23 + 8 * HOUR);
	assert_true(when_schedule_settle("9:00", "UTC", AT_2026_11_23, &times, &next_s,
					 NULL));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_false(when_schedule_settle("9:00", none[i], AT_2026_11_23, &times,
						  &next_s, &err));
		assert_non_null(strstr(err.text, "time zone"));
	}
	assert_false(when_schedule_settle("9:00 UTC", "UTC", AT_2026_11_23, &times,
					  &next_s, &err));
	assert_non_null(strstr(err.text, "names a time zone itself"));
	buf_fini(&times);
}

/* The schedule that version 0.1.0 stored for an interval, added MADE_S. */
static struct schedule interval(const char *times, int64_t made_s)
{
	return (struct schedule){.id = 1,
				 .workspace = STR("/w"),
				 .agent = STR("coder"),
				 .task = STR("look"),
				 .times = str_of(times),
				 .zone = STR("Europe/Berlin"),
				 .made_s = made_s};
}

static void an_interval_gets_a_form_with_the_same_times(void **state)
{
	static const char *const rows[][2] = {
		{"every 1 minute", "*:00/1:31"},
		{"every 20 minutes", "*:17/20:31"},
		{"every 30 minutes", "*:27/30:31"},
		{"every 60 minutes", "*:57:31"},
		{"every 120 minutes", "01/2:57:31"},
		{"every 720 minutes", "11/12:57:31"},
		{"every 1440 minutes", "23:57:31"},
		{"every 10080 minutes", "Sat 23:57:31"},
	};
	/* in Berlin the evening before the clocks change */
	const int64_t made_s = AT_2026_03_28 + DAY - 149;
	struct schedule renewed;
	struct buf times;

	(void)state;
	buf_init(&times, 4096);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct schedule old = interval(rows[i][0], made_s);
		int64_t at = made_s;

		buf_clear(&times);
		assert_true(when_schedule_renew(&old, &times, &renewed));
		assert_string_equal(times.data, rows[i][1]);
		assert_true(str_is(renewed.times, rows[i][1]));
		assert_true(str_is(renewed.zone, "UTC"));
		for (int run = 0; run < 12; run++) {
			const int64_t next =
				when_schedule_next(old.times, old.zone, made_s, at);

			assert_true(next > at);
			assert_int_equal(when_schedule_next(renewed.times, renewed.zone,
							    made_s, at),
					 next);
			at = next;
		}
	}
	buf_fini(&times);
}

static void an_interval_without_such_a_form_still_runs(void **state)
{
	struct schedule old = interval("every 90 minutes", AT_2026_11_23), renewed;
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	assert_false(when_schedule_renew(&old, &out, &renewed));
	assert_int_equal(out.size, 0);
	assert_int_equal(when_schedule_next(old.times, old.zone, old.made_s,
					    AT_2026_11_23 + DAY),
			 AT_2026_11_23 + DAY + 90 * 60);
	when_schedule_add(&old, AT_2026_11_23, &out);
	assert_non_null(
		strstr(out.data,
		       "\n  when: every 90 minutes in Europe/Berlin\n"
		       "  runs: Mon 2026-11-23 02:30 CET, Mon 2026-11-23 04:00 CET, "
		       "Mon 2026-11-23 05:30 CET\n"
		       "  this still runs, but such an interval cannot be written any more: "
		       "to replace it, add the schedule again, as with \"0 */2 * * *\" or "
		       "\"0/2:00\", and remove this one\n"));
	/* A time that nobody can read is said to be one. */
	old.times = STR("whenever");
	buf_clear(&out);
	when_schedule_add(&old, AT_2026_11_23, &out);
	assert_non_null(strstr(out.data,
			       "runs: none\n  this does not run: \"whenever\" is neither"));
	/* Nor does a new schedule get an interval. */
	assert_kept("every 30 minutes", "!neither");
	old.times = STR("every 99999999999999999999 minutes");
	assert_int_equal(when_schedule_next(old.times, old.zone, old.made_s, AT_2026_11_23),
			 0);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_kept_as_they_are_written),
		cmocka_unit_test(what_is_none_is_refused_with_its_place),
		cmocka_unit_test(both_forms_mean_the_same),
		cmocka_unit_test(words_are_refused_with_the_nearest_forms),
		cmocka_unit_test(the_next_runs_follow_each_other),
		cmocka_unit_test(two_fields_of_days),
		cmocka_unit_test(months_end_where_they_end),
		cmocka_unit_test(an_hour_that_is_skipped_comes_later),
		cmocka_unit_test(an_hour_that_comes_twice_counts_once),
		cmocka_unit_test(the_zone_of_the_process_stays),
		cmocka_unit_test(zones_are_names_of_the_table),
		cmocka_unit_test(an_interval_gets_a_form_with_the_same_times),
		cmocka_unit_test(an_interval_without_such_a_form_still_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
