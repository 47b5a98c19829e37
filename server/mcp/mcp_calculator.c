#include "server/mcp/mcp_calculator.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

enum { DEPTH = 64, TEXT = 4096, NAME = 16, DIGITS = 64 };

typedef struct reader {
    const char *p;
    int depth;
    const char *why; /* the first error; NULL: none */
} reader;

static double read_sum(reader *r);

static double fail(reader *r, const char *why)
{
    r->why = r->why ? r->why : why;
    return 0.0;
}

/* What stands for an operator besides its ASCII character. */
static char take_operator(reader *r, const char *wanted)
{
    static const struct {
        const char *text;
        char means;
    } SIGNS[] = {{"**", '^'}, {"\xc3\x97", '*'}, {"\xc2\xb7", '*'}, {"\xc3\xb7", '/'}, {"\xe2\x88\x92", '-'}};
    while (isspace((unsigned char)*r->p)) {
        r->p++;
    }
    for (size_t i = 0; i < ARRAY_LEN(SIGNS); i++) {
        const size_t n = strlen(SIGNS[i].text);
        if (strncmp(r->p, SIGNS[i].text, n) == 0) {
            const bool is_it = strchr(wanted, SIGNS[i].means) != NULL;
            r->p += is_it ? n : 0;
            return is_it ? SIGNS[i].means : '\0';
        }
    }
    if ((*r->p == 'x' || *r->p == 'X') && strchr(wanted, '*') && !isalpha((unsigned char)r->p[1])) {
        r->p++;
        return '*';
    }
    if (*r->p && strchr(wanted, *r->p)) {
        return *r->p++;
    }
    return '\0';
}

/* 0x10, 0b1, 0o7: not 0 times what follows. "0x 5" and "0 x 5" are products. */
static bool has_base(const char *p)
{
    return p[0] == '0' && p[1] && strchr("xXbBoO", p[1]) && isxdigit((unsigned char)p[2]);
}

static double read_number(reader *r)
{
    char text[DIGITS];
    size_t n = 0;
    bool has_point = false;
    if (has_base(r->p)) {
        return fail(r, "it has a number of another base; write it with decimal digits, and a product with *");
    }
    for (; isdigit((unsigned char)*r->p) || strchr(".,'_", *r->p); r->p++) {
        const char c = *r->p;
        if (!c || n + 1 >= sizeof text) {
            break;
        }
        const bool is_group = (c == ',' || c == '\'' || c == '_') && isdigit((unsigned char)r->p[1]) &&
                              isdigit((unsigned char)r->p[2]) && isdigit((unsigned char)r->p[3]) &&
                              !isdigit((unsigned char)r->p[4]) && !has_point;
        if (isdigit((unsigned char)c) || (c == '.' && !has_point)) {
            has_point = has_point || c == '.';
            text[n++] = c;
        } else if (!is_group) {
            break;
        }
    }
    text[n] = '\0';
    if (isdigit((unsigned char)*r->p)) {
        return fail(r, "a number is too long");
    }
    double v = strtod(text, NULL);
    if ((*r->p == 'e' || *r->p == 'E') &&
        (isdigit((unsigned char)r->p[1]) ||
         ((r->p[1] == '-' || r->p[1] == '+') && isdigit((unsigned char)r->p[2])))) {
        char *end;
        const long power = strtol(r->p + 1, &end, 10);
        r->p = end;
        v *= pow(10.0, (double)power);
    }
    return v;
}

static double factorial(reader *r, double v)
{
    if (v < 0.0 || v > 170.0 || floor(v) < v) {
        return fail(r, "a factorial needs a whole number from 0 to 170");
    }
    double out = 1.0;
    for (int k = 2; k <= (int)v; k++) {
        out *= k;
    }
    return out;
}

static double read_name(reader *r)
{
    static const struct {
        const char *name;
        double (*one)(double);
        double (*two)(double, double);
        double constant;
    } NAMES[] = {{.name = "sqrt", .one = sqrt},
                 {.name = "abs", .one = fabs},
                 {.name = "sin", .one = sin},
                 {.name = "cos", .one = cos},
                 {.name = "tan", .one = tan},
                 {.name = "asin", .one = asin},
                 {.name = "acos", .one = acos},
                 {.name = "atan", .one = atan},
                 {.name = "exp", .one = exp},
                 {.name = "ln", .one = log},
                 {.name = "log", .one = log10},
                 {.name = "log10", .one = log10},
                 {.name = "log2", .one = log2},
                 {.name = "floor", .one = floor},
                 {.name = "ceil", .one = ceil},
                 {.name = "round", .one = round},
                 {.name = "min", .two = fmin},
                 {.name = "max", .two = fmax},
                 {.name = "pow", .two = pow},
                 {.name = "mod", .two = fmod},
                 {.name = "pi", .constant = 3.14159265358979323846},
                 {.name = "e", .constant = 2.71828182845904523536}};
    char name[NAME];
    size_t n = 0, i = 0;
    while (isalnum((unsigned char)*r->p) && n + 1 < sizeof name) {
        name[n++] = (char)tolower((unsigned char)*r->p++);
    }
    name[n] = '\0';
    while (i < ARRAY_LEN(NAMES) && strcmp(NAMES[i].name, name) != 0) {
        i++;
    }
    if (i == ARRAY_LEN(NAMES)) {
        return fail(
            r, "it has a name that is not known: sqrt, abs, sin, cos, tan, exp, ln, log, log2, floor, ceil, "
               "round, min, max, pow, mod, pi and e are");
    }
    if (!NAMES[i].one && !NAMES[i].two) {
        return NAMES[i].constant;
    }
    if (!take_operator(r, "(")) {
        return fail(r, "a function needs its argument in brackets");
    }
    const double a = read_sum(r);
    double b = 0.0;
    if (NAMES[i].two) {
        if (!take_operator(r, ",;")) {
            return fail(r, "min, max, pow and mod need two arguments");
        }
        b = read_sum(r);
    }
    if (!take_operator(r, ")")) {
        return fail(r, "a bracket is not closed");
    }
    return NAMES[i].two ? NAMES[i].two(a, b) : NAMES[i].one(a);
}

static double read_value(reader *r)
{
    double v;
    if (take_operator(r, "(")) {
        v = read_sum(r);
        if (!take_operator(r, ")")) {
            return fail(r, "a bracket is not closed");
        }
    } else if (isdigit((unsigned char)*r->p) || *r->p == '.') {
        v = read_number(r);
    } else if (isalpha((unsigned char)*r->p)) {
        v = read_name(r);
    } else {
        return fail(r, *r->p ? "a number is missing" : "it ends where a number is missing");
    }
    for (char op = take_operator(r, "!"); op; op = take_operator(r, "!")) {
        v = factorial(r, v);
    }
    return v;
}

/* Signs bind less than powers: -2^2 is -4; 2^-1 and 2^3^2 are read from the right. */
static double read_power(reader *r)
{
    if (++r->depth > DEPTH) {
        return fail(r, "it is nested too deeply");
    }
    double v;
    const char sign = take_operator(r, "+-");
    if (sign) {
        v = read_power(r);
        v = sign == '-' ? -v : v;
    } else {
        v = read_value(r);
        if (!r->why && take_operator(r, "^")) {
            v = pow(v, read_power(r));
        }
    }
    r->depth--;
    return v;
}

static double read_product(reader *r)
{
    double v = read_power(r);
    for (char op; !r->why && (op = take_operator(r, "*/%"));) {
        const double b = read_power(r);
        if (op != '*' && fpclassify(b) == FP_ZERO) {
            return fail(r, "it divides by zero");
        }
        v = op == '*' ? v * b : op == '/' ? v / b : fmod(v, b);
    }
    return v;
}

static double read_sum(reader *r)
{
    double v = read_product(r);
    for (char op; !r->why && (op = take_operator(r, "+-"));) {
        const double b = read_product(r);
        v = op == '+' ? v + b : v - b;
    }
    return v;
}

bool mcp_calculate(double *out, const char *text, char *why, size_t cap)
{
    reader r = {.p = text};
    if (strlen(text) > TEXT) {
        fail(&r, "it is too long");
    }
    *out = r.why ? 0.0 : read_sum(&r);
    (void)take_operator(&r, "="); /* "2 + 2 =" */
    while (isspace((unsigned char)*r.p)) {
        r.p++;
    }
    if (!r.why && *r.p) {
        fail(&r, "there is something behind it that is not understood");
    }
    if (!r.why && !isfinite(*out)) {
        fail(&r, "it has no value, or one that is too large");
    }
    snprintf(why, cap, "%s", r.why ? r.why : "");
    return !r.why;
}
