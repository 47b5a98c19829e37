/* mcp_calculator: every name, sign and way to write a number, what binds before what, and what is refused with its reason. */
#include "server/mcp/mcp_calculator.h"

#include "base/compiler.h"
#include "tests/check.h"

typedef struct sum {
    const char *text;
    double value;
} sum;

static void check_values(void)
{
    static const sum SUMS[] = {
        {"1+2", 3},
        {"max(1, 23)", 23}, /* a comma with a blank behind it groups no digits */
        {"7 - 2 - 1", 4},
        {"2+3*4", 14},
        {"(2+3)*4", 20},
        {"8/4/2", 1},
        {"7%4", 3},
        {"2*7 % 4", 2},
        {"2^3^2", 512},
        {"2^-1", 0.5},
        {"-2^2", -4},
        {"--3", 3},
        {"+3 - -2", 5},
        {"2**3", 8},
        {"3!", 6},
        {"3!!", 720},
        {"0!", 1},
        {"170!/169!", 170},
        {"2 + 2 =", 4},
        {" \t1 \n", 1},
        /* signs of other keyboards; x is one between numbers */
        {"6 x 7", 42},
        {"6X7", 42},
        {"0 x 10", 0},
        {"10x10", 100},
        {"0x 10", 0},
        {"0*0.5", 0},
        {"5*0", 0},
        {"6\xc3\x97"
         "7",
         42},
        {"6\xc2\xb7"
         "7",
         42},
        {"6\xc3\xb7"
         "4",
         1.5},
        {"6\xe2\x88\x92"
         "4",
         2},
        {"\xe2\x88\x92"
         "4",
         -4},
        /* numbers */
        {".5", 0.5},
        {"5.", 5},
        {"1,234,567", 1234567},
        {"1'000", 1000},
        {"1_000", 1000},
        {"1,000.5", 1000.5},
        {"1e3", 1000},
        {"1.5E-2", 0.015},
        {"2e+2", 200},
        {"2E-1", 0.2},
        {"min(3,4)", 3},
        /* names */
        {"sqrt(9)", 3},
        {"abs(-2)", 2},
        {"sin(0)", 0},
        {"cos(0)", 1},
        {"tan(0)", 0},
        {"sin(pi/2)", 1},
        {"tan(pi/4)", 1},
        {"cos(pi)", -1},
        {"exp(1)", 2.71828182845904523536},
        {"ln(e)", 1},
        {"log(1000)", 3},
        {"log10(100)", 2},
        {"log2(8)", 3},
        {"floor(2.7)", 2},
        {"ceil(2.1)", 3},
        {"round(2.5)", 3},
        {"min(1; 2)", 1},
        {"max(1; 2)", 2},
        {"pow(2; 10)", 1024},
        {"mod(7; 4)", 3},
        {"pi", 3.14159265358979323846},
        {"e", 2.71828182845904523536},
        {"PI*2", 6.28318530717958647692},
        {"Sqrt (16)", 4},
        {"min(1, 2)", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(SUMS); i++) {
        double v = -99;
        char why[200] = "x";
        const bool ok = mcp_calculate(&v, SUMS[i].text, why, sizeof why);
        if (!ok || fabs(v - SUMS[i].value) > 1e-12 * (1 + fabs(SUMS[i].value)) || why[0]) {
            fprintf(stderr, "%s is %.17g, not %.17g: %s\n", SUMS[i].text, v, SUMS[i].value, why);
            check_failures++;
        }
    }
}

static bool is_refused(const char *text, const char *word)
{
    double v = 0;
    char why[200] = "";
    const bool ok = mcp_calculate(&v, text, why, sizeof why);
    if (ok || !strstr(why, word)) {
        fprintf(stderr, "%.80s: %.17g, %s\n", text, v, why);
    }
    return !ok && strstr(why, word);
}

static void check_refusals(void)
{
    static const struct {
        const char *text, *why;
    } ROWS[] = {
        {"", "ends where a number is missing"},
        {"1+", "ends where a number is missing"},
        {"1+*2", "a number is missing"},
        {"1 2", "behind it"},
        {"1 = 2", "behind it"},
        {"(1", "bracket is not closed"},
        {"sqrt(1", "bracket is not closed"},
        {"1)", "behind it"},
        {"sqrt 9", "argument in brackets"},
        {"max(1)", "two arguments"},
        {"max(1,234)", "two arguments"}, /* a digit group */
        {"sqr(9)", "not known"},
        {"sinus(1)", "not known"},
        {"piece", "not known"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "not known"},
        {"1/0", "divides by zero"},
        {"1%0", "divides by zero"},
        {"1/(2-2)", "divides by zero"},
        {"171!", "factorial"},
        {"(0-1)!", "factorial"},
        {"2.5!", "factorial"},
        {"1e999", "too large"},
        {"10^400", "too large"},
        {"sqrt(0-1)", "no value"},
        {"ln(0)", "too large"},
        {"1,23", "behind it"},
        {"1,2345", "behind it"},
        {"1.0,000", "behind it"},
        {"1.2.3", "behind it"},
        {"2x", "number is missing"},
        {"2xpi", "behind it"},
        {"1e", "behind it"},
        {"1e+", "behind it"},
        {"1e-x", "behind it"},
        {"1e*2", "behind it"},
        /* not 0 times 10 */
        {"0x10", "another base"},
        {"0XfF", "another base"},
        {"1 + 0b101", "another base"},
        {"2*(0o17)", "another base"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        CHECK(is_refused(ROWS[i].text, ROWS[i].why));
    }
}

/* "((((1))))" with n brackets, or n signs before a number. */
static void repeat(char *out, size_t n, char left, char right)
{
    memset(out, left, n);
    out[n] = '1';
    memset(out + n + 1, right, right ? n : 0);
    out[n + 1 + (right ? n : 0)] = '\0';
}

/* Depth and length are bounded, and what is below the bound is read. */
static void check_bounds(void)
{
    char text[5000], why[200];
    double v = 0;
    repeat(text, 63, '(', ')');
    CHECK(mcp_calculate(&v, text, why, sizeof why));
    CHECK_NEAR(v, 1, 0);
    repeat(text, 63, '-', '\0');
    CHECK(mcp_calculate(&v, text, why, sizeof why));
    CHECK_NEAR(v, -1, 0);
    repeat(text, 64, '(', ')');
    CHECK(is_refused(text, "nested too deeply"));
    repeat(text, 64, '-', '\0');
    CHECK(is_refused(text, "nested too deeply"));
    repeat(text, 62, '0', '\0');
    CHECK(mcp_calculate(&v, text, why, sizeof why));
    repeat(text, 63, '0', '\0');
    CHECK(is_refused(text, "a number is too long"));
    memset(text, ' ', sizeof text);
    text[4095] = '1';
    text[4096] = '\0';
    CHECK(mcp_calculate(&v, text, why, sizeof why));
    text[4096] = ' ';
    text[4097] = '\0';
    CHECK(is_refused(text, "too long"));
    CHECK(!mcp_calculate(&v, "1+", why, 5)); /* cut to the room that there is */
    CHECK_STR(why, "it e");
}

int main(void)
{
    check_values();
    check_refusals();
    check_bounds();
    CHECK_DONE();
}
