/* json_faults: what the parser says of text that is no JSON, and where it is at fault.
 *
 *     check_faults();
 */
#ifndef PARLEY_TESTS_BASE_JSON_FAULTS_H
#define PARLEY_TESTS_BASE_JSON_FAULTS_H

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/check.h"

/* Every fault by its words, and the column of the character that is one (all on line 1); in the place of a member's name
 * as in that of a value. */
static inline void check_faults(void)
{
    static const struct {
        const char *text, *fault;
        int column;
    } cases[] = {
        {"", "the end of the text where a value is expected", 1},
        {"{\"a\":", "the end of the text where a value is expected", 6},
        {"[1, ]", "an unexpected character where a value is expected", 5},
        {"{\"a\": }", "an unexpected character where a value is expected", 7},
        {"{a: 1}", "no member name in quotes where one is expected", 2},
        {"{\"a\": 1, }", "no member name in quotes where one is expected", 10},
        {"{", "no member name in quotes where one is expected", 2},
        {"{\"a\" 1}", "no ':' behind a member name", 6},
        {"{\"a\"", "no ':' behind a member name", 5},
        {"{\"ab", "the end of the text inside a string", 5},
        {"{\"a\\", "an unknown escape sequence", 4},
        {"{\"a\\q\": 1}", "an unknown escape sequence", 4},
        {"{\"\\u12\": 1}", "\\u without four hexadecimal digits", 3},
        {"{\"\\udc00\": 1}", "half of a surrogate pair", 3},
        {"{\"a\tb\": 1}", "a control character inside a string", 4},
        {"{\"a\xff\": 1}", "invalid UTF-8", 4},
        {"\"ab", "the end of the text inside a string", 4},
        {"[\"\\x41\"]", "an unknown escape sequence", 3},
        {"[\"\\u123g\"]", "\\u without four hexadecimal digits", 3},
        {"[\"\\u123", "\\u without four hexadecimal digits", 3},
        {"[\"\\ud800\"]", "half of a surrogate pair", 3},
        {"[\"\\ud800\\ud800\"]", "half of a surrogate pair", 3},
        {"[\"\\ud800\\ue000\"]", "half of a surrogate pair", 3},
        {"[\"\\ud800\\udbff\"]", "half of a surrogate pair", 3},
        {"[\"\\udfff\"]", "half of a surrogate pair", 3},
        {"\"\x1f\"", "a control character inside a string", 2},
        {"[01]", "a number with a leading zero", 3},
        {"[-]", "a malformed number", 3},
        {"[+1]", "an unexpected character where a value is expected", 2},
        {"[1.]", "a malformed number", 4},
        {"[1e]", "a malformed number", 4},
        {"[1e+]", "a malformed number", 5},
        {"[1E-x]", "a malformed number", 5},
        {"[1e400]", "a number that is too large", 2},
        {"[nul]", "an unknown word", 2},
        {"[falsy]", "an unknown word", 2},
        {"[tru", "an unknown word", 2},
        {"[1", "the end of the text inside an array or object", 3},
        {"{\"a\": 1", "the end of the text inside an array or object", 8},
        {"[1 2]", "no ',' or closing bracket behind a value", 4},
        {"[1}", "no ',' or closing bracket behind a value", 3},
        {"{\"a\": 1]", "no ',' or closing bracket behind a value", 8},
        {"1 2", "text behind the end of the document", 3},
        {"[] x", "text behind the end of the document", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char want[256];
        json_doc *doc = NULL;
        err_detail d = {0};
        CHECK_INT(json_parse(&doc, cases[i].text, strlen(cases[i].text), 64, &d), ERR_INVALID);
        snprintf(want, sizeof want, "JSON is not valid: %s, at line 1, column %d", cases[i].fault,
                 cases[i].column);
        CHECK_STR(d.text, want);
        CHECK_STR(d.name, "invalid_json");
    }
    static const char *const good[] = {"[\"\\ud800\\udc00\"]",
                                       "[\"\\udbff\\udfff\"]",
                                       "[\"\\ud7ff\\ue000\"]",
                                       "[0, -0, 0.5, 1e0, 1E+2, -1.5e-3]",
                                       " \t\r\n[ ] ",
                                       "{ }",
                                       "\" \x7f\""};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        json_doc *doc = NULL;
        err_detail d = {0};
        CHECK_OK(json_parse(&doc, good[i], strlen(good[i]), 64, &d), d);
        json_free(doc);
    }
}

#endif
