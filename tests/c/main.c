// main: runs the C test suites, listed by hand. Comes in: suite names as arguments, none = all.
// Goes out: one line per test, the closing count, exit status 1 on any failure or unknown suite.
#include "test.h"

TestCounts test_counts;

bool test_check(bool is_true, const char *expression, const char *file, int line)
{
	test_counts.check_count++;
	if (!is_true)
	{
		test_counts.failure_count++;
		printf("%s:%d: %s is false\n", file, line, expression);
	}
	return is_true;
}

bool test_check_near(double value, double expected, double tolerance, const char *expression, const char *file,
                     int line)
{
	test_counts.check_count++;
	bool is_near = fabs(value - expected) <= tolerance;
	if (!is_near)
	{
		test_counts.failure_count++;
		printf("%s:%d: %s is %.17g, expected %.17g within %g\n", file, line, expression, value, expected, tolerance);
	}
	return is_near;
}

bool test_check_int(int64_t value, int64_t expected, const char *expression, const char *file, int line)
{
	test_counts.check_count++;
	if (value != expected)
	{
		test_counts.failure_count++;
		printf("%s:%d: %s is %lld, expected %lld\n", file, line, expression, (long long)value, (long long)expected);
	}
	return value == expected;
}

bool test_check_contains(const char *text, const char *part, const char *expression, const char *file, int line)
{
	test_counts.check_count++;
	bool is_found = text && strstr(text, part);
	if (!is_found)
	{
		test_counts.failure_count++;
		printf("%s:%d: %s is \"%s\", expected \"%s\" in it\n", file, line, expression, text ? text : "(null)", part);
	}
	return is_found;
}

bool test_check_status(SandStatus status, SandStatus expected, const SandError *err, const char *expression,
                       const char *file, int line)
{
	test_counts.check_count++;
	const char *complaint = NULL;
	if (status != expected)
	{
		complaint = "wrong status";
	}
	else if (err && status != SAND_OK && err->status != status)
	{
		complaint = "the error carries another status";
	}
	else if (err && status != SAND_OK && err->message[0] == '\0')
	{
		complaint = "the error carries no sentence";
	}
	if (complaint)
	{
		test_counts.failure_count++;
		printf("%s:%d: %s: %s: returned '%s', expected '%s', message \"%s\"\n", file, line, expression, complaint,
		       sand_status_name(status), sand_status_name(expected), err ? err->message : "");
	}
	return complaint == NULL;
}

void test_run(void (*test)(void), const char *name)
{
	uint64_t failures_before = test_counts.failure_count;
	uint64_t checks_before = test_counts.check_count;
	test();
	if (test_counts.check_count == checks_before)
	{
		test_counts.failure_count++;
		printf("%s checked nothing\n", name);
	}
	if (test_counts.failure_count == failures_before)
	{
		test_counts.passed_count++;
		printf("ok %s\n", name);
	}
	else
	{
		test_counts.failed_count++;
		printf("FAILED %s\n", name);
	}
	(void)fflush(stdout); // so that the lines before a crash are seen
}

void test_skip(const char *name, const char *reason)
{
	test_counts.skipped_count++;
	printf("SKIPPED %s: %s\n", name, reason);
}

static const struct
{
	const char *name;
	void (*run)(void);
} suites[] = {
    {"base", test_base},
    {"pool", test_pool},
    {"sort", test_sort},
    {"planes", test_planes},
    {"io", test_io},
    {"mesh", test_mesh},
    {"repair", test_repair},
    {"field", test_field},
    {"surface", test_surface},
    {"sampler", test_sampler},
    {"spread", test_spread},
    {"fit", test_fit},
    {"solid", test_solid},
    {"clump", test_clump},
    {"packing", test_packing},
    {"scene", test_scene},
    {"sim", test_sim},
    {"contact", test_contact},
    {"obstacle", test_obstacle},
    {"coupling", test_coupling},
    {"cache", test_cache},
    {"checkpoint", test_checkpoint},
    {"lock", test_lock},
    {"writer", test_writer},
    {"collider", test_collider},
    {"track", test_track},
    {"between", test_between},
    {"gpu", test_gpu},
    {"light", test_light},
    {"gltwins", test_gltwins},
    {"glpasses", test_glpasses},
    {"glsim", test_glsim},
    {"glsample", test_glsample},
};
enum
{
	SUITE_COUNT = sizeof suites / sizeof suites[0]
};

int main(int argc, char **argv)
{
	for (int argument = 1; argument < argc; argument++)
	{
		bool is_known = false;
		for (int suite = 0; suite < SUITE_COUNT; suite++)
		{
			is_known = is_known || strcmp(argv[argument], suites[suite].name) == 0;
		}
		if (!is_known)
		{
			(void)fprintf(stderr, "no suite '%s'; suites:", argv[argument]);
			for (int suite = 0; suite < SUITE_COUNT; suite++)
			{
				(void)fprintf(stderr, " %s", suites[suite].name);
			}
			(void)fprintf(stderr, "\n");
			return 1;
		}
	}
	for (int suite = 0; suite < SUITE_COUNT; suite++)
	{
		bool is_wanted = argc == 1;
		for (int argument = 1; argument < argc; argument++)
		{
			is_wanted = is_wanted || strcmp(argv[argument], suites[suite].name) == 0;
		}
		if (is_wanted)
		{
			printf("# %s\n", suites[suite].name);
			suites[suite].run();
		}
	}
	if (test_counts.skipped_count > 0)
	{
		printf("%d skipped\n", test_counts.skipped_count);
	}
	printf("%d passed, %d failed\n", test_counts.passed_count, test_counts.failed_count);
	return test_counts.failed_count == 0 ? 0 : 1;
}
