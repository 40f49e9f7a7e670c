#include "check.h"

#include <stdarg.h>
#include <stdio.h>

static char current[200];
static bool open_case, case_failed;
static int failed_cases, reasons;

static void close_case(void)
{
    if (open_case) {
        printf("%s %s\n", case_failed ? "FAIL" : "ok", current);
        fflush(stdout); /* a crash in the next case must not swallow this line */
        failed_cases += case_failed;
    }
    open_case = false;
}

void begin(const char *format, ...)
{
    close_case();
    va_list args;
    va_start(args, format);
    vsnprintf(current, sizeof current, format, args);
    va_end(args);
    open_case = true;
    case_failed = false;
    reasons = 0;
}

bool check_that(bool holds, const char *file, int line, const char *format, ...)
{
    if (!holds) {
        case_failed = true;
        if (reasons++ < 5) { /* the first few suffice */
            va_list args;
            va_start(args, format);
            printf("  %s:%d: ", file, line);
            vprintf(format, args);
            printf("\n");
            va_end(args);
        }
    }
    return holds;
}

int finish(void)
{
    close_case();
    return failed_cases != 0;
}
