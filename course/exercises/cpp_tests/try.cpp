// Tests of exercise c_for_cuda.try; the learner's file is "answer.h".
#include "tests.h"
#include "answer.h"

static int calls, reports, seen_line, seen_error;
static char seen_text[200], seen_file[400];
void report(const char* file, int line, const char* text, int error) {
    ++reports;
    seen_line = line;
    seen_error = error;
    snprintf(seen_text, sizeof seen_text, "%s", text);
    snprintf(seen_file, sizeof seen_file, "%s", file);
}
static int call(int result) {
    ++calls;
    return result;
}

static bool in_twice;
static void ended() {
    if (in_twice)
        printf(
            "\nFAIL wrong_value The whole program ended. TRY ends only the function that it stands "
            "in: `return`.\n");
}

static int failing_line;
static int both(int first, int second) {
    failing_line = __LINE__ + 1;
    TRY(call(first));
    TRY(call(second));
    return 0;
}
static int twice(int first, int second) {
    in_twice = true;
    int got = both(first, second);
    in_twice = false;
    return got;
}
static int with_else(bool ready, int result) {
    if (ready)
        TRY(call(result));
    else
        return -7;  // TRY must be one statement
    return 0;
}
static int with_or(int a, int b) {
    TRY(a | b);
    return 0;
}
#define LIMIT 3
static int with_macro() {
    TRY(call(LIMIT));
    return 0;
}
static int named_error() {
    int error = 5;
    TRY(error);
    return 0;
}

void run_tests() {
    atexit(ended);
    int bad = random_int(1, 900);
    if (twice(0, 0) != 0)
        FAIL("wrong_value",
             "Two calls that succeed (value 0), and the function did not go on to its end.");
    if (calls > 2)
        FAIL("evaluated_twice",
             "Two calls were written, and %d were made: `call` may stand only once in the macro.",
             calls);
    if (calls < 2)
        FAIL("wrong_value",
             "Two calls that succeed were written, and %d made: a value of 0 ends nothing.", calls);
    if (reports)
        FAIL("wrong_value", "A call that succeeds (value 0) was reported as an error.");
    calls = 0;
    int got = twice(bad, 0);
    if (calls > 1 && got)
        FAIL("evaluated_twice", "The failing call was made %d times: keep its value in a variable.",
             calls);
    if (got != bad)
        FAIL("wrong_value",
             "A call gave %d; the function around TRY must return %d, and returned %d.", bad, bad,
             got);
    if (reports != 1)
        FAIL("wrong_value", "A failing call must be reported once, and was reported %d times.",
             reports);
    if (seen_error != bad)
        FAIL("wrong_value", "The error %d was reported as %d.", bad, seen_error);
    if (strcmp(seen_text, "call(first)"))
        FAIL("wrong_value", "The text must be `call(first)` (that is #call), not `%s`.", seen_text);
    if (seen_line != failing_line)
        FAIL("wrong_value", "The line must be %d, where TRY is used, not %d.", failing_line,
             seen_line);
    if (!strstr(seen_file, "try.cpp"))
        FAIL("wrong_value", "The file must be the one where TRY is used, not `%s`.", seen_file);
    for (int error : {-bad, 256 * bad}) {
        got = twice(error, 0);
        if (got != error || seen_error != error)
            FAIL("wrong_value",
                 "A call gave %d, which is not 0; it must be reported and returned. Returned was "
                 "%d, reported %d.",
                 error, got, seen_error);
    }
    got = with_else(false, 0);
    if (got != -7)
        FAIL("wrong_value",
             "`if (ready) TRY(...); else return -7;` returned %d with ready false: not one "
             "statement.",
             got);
    got = with_else(true, 0);
    if (got != 0)
        FAIL("wrong_value",
             "`if (ready) TRY(...); else return -7;` returned %d with ready true: not one "
             "statement.",
             got);
    got = with_or(4, 3);
    if (got != 7)
        FAIL("precedence",
             "`TRY(a | b)` with 4 and 3 must return 7, and returned %d. Put parentheses around "
             "`call`.",
             got);
    if (with_macro() != 3 || strcmp(seen_text, "call(LIMIT)"))
        FAIL("wrong_value", "The text must be `call(LIMIT)`, as it was written, not `%s`.",
             seen_text);
    if (named_error() != 5)
        FAIL("wrong_value",
             "`int error = 5; TRY(error);` went wrong: a variable in the macro has that name too.");
}
