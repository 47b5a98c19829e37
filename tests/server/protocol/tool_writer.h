/* tool_writer: calls as the models of each form write them, for tests: from a name and arguments as
 * JSON to the text that a model trained on the form's template answers.
 */
#ifndef PARLEY_TESTS_SERVER_PROTOCOL_TOOL_WRITER_H
#define PARLEY_TESTS_SERVER_PROTOCOL_TOOL_WRITER_H

#include "engine/think.h"
#include "server/protocol/output/tool_scanner.h"

/* A value in the words of Gemma (quote <|"|>, keys bare) or of Python. */
static inline void tool_writer_literal(bytes *out, const json *v, bool gemma)
{
    if (json_is(v, JSON_STRING) && gemma) {
        bytes_printf(out, "<|\"|>%s<|\"|>", json_str(v, ""));
    } else if (json_is(v, JSON_BOOL) && !gemma) {
        bytes_append_str(out, json_is_true(v) ? "True" : "False");
    } else if (json_typeof(v) == JSON_NULL && !gemma) {
        bytes_append_str(out, "None");
    } else if (json_is(v, JSON_ARRAY) || json_is(v, JSON_OBJECT)) {
        const bool list = json_is(v, JSON_ARRAY);
        bytes_append_char(out, list ? '[' : '{');
        for (const json *x = json_child(v); x; x = json_next(x)) {
            if (!list) {
                bytes_printf(out, gemma ? "%s:" : "'%s':", json_key(x));
            }
            tool_writer_literal(out, x, gemma);
            bytes_append_str(out, json_next(x) ? "," : "");
        }
        bytes_append_char(out, list ? ']' : '}');
    } else {
        json_write(out, v);
    }
}

/* Each argument between tags. */
static inline void tool_writer_tags(bytes *out, const json *arguments, const char *begin,
                                    const char *name_end, const char *close)
{
    for (const json *v = json_child(arguments); v; v = json_next(v)) {
        bytes_printf(out, "%s%s%s", begin, json_key(v), name_end);
        if (json_is(v, JSON_STRING)) {
            bytes_append_str(out, json_str(v, ""));
        } else {
            json_write(out, v);
        }
        bytes_append_str(out, close);
    }
}

static inline void tool_writer_named(bytes *out, const json *arguments, const char *assign, bool gemma)
{
    for (const json *v = json_child(arguments); v; v = json_next(v)) {
        bytes_printf(out, "%s%s", json_key(v), assign);
        tool_writer_literal(out, v, gemma);
        bytes_append_str(out, !json_next(v) ? "" : gemma ? "," : ", ");
    }
}

/* What stands in front of the calls, between two and behind them; and around each. %s: the name. */
typedef struct tool_writer_row {
    const tool_form *form;
    const char *all, *between, *all_close, *before, *after;
    enum { WRITES_JSON, WRITES_TAGS, WRITES_NAMED } kind;
    const char *marks[3];
} tool_writer_row;

static const tool_writer_row TOOL_WRITERS[] = {
    {&TOOL_FORM_HERMES,
     "",
     "\n",
     "",
     "<tool_call>\n{\"name\": \"%s\", \"arguments\": ",
     "}\n</tool_call>",
     WRITES_JSON,
     {0}},
    {&TOOL_FORM_MISTRAL, "", "", "", "[TOOL_CALLS]%s[ARGS]", "", WRITES_JSON, {0}},
    {&TOOL_FORM_MISTRAL, "", "", "", "[TOOL_CALLS]%s[CALL_ID]abcdefghi[ARGS]", "", WRITES_JSON, {0}},
    {&TOOL_FORM_MISTRAL_LIST,
     "[TOOL_CALLS][",
     ", ",
     "]",
     "{\"name\": \"%s\", \"arguments\": ",
     ", \"id\": \"abcdefghi\"}",
     WRITES_JSON,
     {0}},
    {&TOOL_FORM_LLAMA3_JSON, "", "; ", "", "{\"name\": \"%s\", \"parameters\": ", "}", WRITES_JSON, {0}},
    {&TOOL_FORM_LLAMA3_JSON,
     "<|python_tag|>",
     ";",
     "",
     "{\"type\": \"function\", \"name\": \"%s\", \"parameters\": ",
     "}",
     WRITES_JSON,
     {0}},
    {&TOOL_FORM_DEEPSEEK_V3,
     "<｜tool▁calls▁begin｜>",
     "\n",
     "<｜tool▁calls▁end｜>",
     "<｜tool▁call▁begin｜>function<｜tool▁sep｜>%s\n```json\n",
     "\n```<｜tool▁call▁end｜>",
     WRITES_JSON,
     {0}},
    {&TOOL_FORM_DEEPSEEK_V31,
     "<｜tool▁calls▁begin｜>",
     "",
     "<｜tool▁calls▁end｜>",
     "<｜tool▁call▁begin｜>%s<｜tool▁sep｜>",
     "<｜tool▁call▁end｜>",
     WRITES_JSON,
     {0}},
    {&TOOL_FORM_KIMI,
     "<|tool_calls_section_begin|>",
     "",
     "<|tool_calls_section_end|>",
     "<|tool_call_begin|>functions.%s:0<|tool_call_argument_begin|>",
     "<|tool_call_end|>",
     WRITES_JSON,
     {0}},
    {&TOOL_FORM_GRANITE,
     "<|tool_call|>[",
     ", ",
     "]",
     "{\"name\": \"%s\", \"arguments\": ",
     "}",
     WRITES_JSON,
     {0}},
    {&TOOL_FORM_NEMOTRON,
     "<TOOLCALL>[",
     ", ",
     "]</TOOLCALL>",
     "{\"name\": \"%s\", \"arguments\": ",
     "}",
     WRITES_JSON,
     {0}},
    {&TOOL_FORM_XML,
     "",
     "\n",
     "",
     "<tool_call>\n<function=%s>\n",
     "</function>\n</tool_call>",
     WRITES_TAGS,
     {"<parameter=", ">\n", "\n</parameter>\n"}},
    {&TOOL_FORM_SEED,
     "",
     "\n",
     "",
     "<seed:tool_call>\n<function=%s>\n",
     "</function>\n</seed:tool_call>",
     WRITES_TAGS,
     {"<parameter=", ">", "</parameter>\n"}},
    {&TOOL_FORM_MINIMAX,
     "<minimax:tool_call>\n",
     "",
     "</minimax:tool_call>",
     "<invoke name=\"%s\">\n",
     "</invoke>\n",
     WRITES_TAGS,
     {"<parameter name=\"", "\">", "</parameter>\n"}},
    {&TOOL_FORM_DEEPSEEK_V32,
     "<｜DSML｜function_calls>\n",
     "",
     "</｜DSML｜function_calls>",
     "<｜DSML｜invoke name=\"%s\">\n",
     "</｜DSML｜invoke>\n",
     WRITES_TAGS,
     {"<｜DSML｜parameter name=\"", "\">", "</｜DSML｜parameter>\n"}},
    {&TOOL_FORM_GLM,
     "",
     "\n",
     "",
     "<tool_call>%s\n",
     "</tool_call>",
     WRITES_TAGS,
     {"<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"}},
    {&TOOL_FORM_GLM,
     "",
     "",
     "",
     "<tool_call>%s",
     "</tool_call>",
     WRITES_TAGS,
     {"<arg_key>", "</arg_key><arg_value>", "</arg_value>"}},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[", ", ", "]<|tool_call_end|>", "%s(", ")", WRITES_NAMED, {"="}},
    {&TOOL_FORM_PYTHONIC, "[", ", ", "]", "%s(", ")", WRITES_NAMED, {"="}},
    {&TOOL_FORM_HARMONY,
     "",
     "<|start|>assistant",
     "",
     "<|channel|>commentary to=functions.%s <|constrain|>json<|message|>",
     "<|call|>",
     WRITES_JSON,
     {0}},
    {&TOOL_FORM_GEMMA4, "", "", "", "<|tool_call>call:%s{", "}<tool_call|>", WRITES_NAMED, {":"}},
};

/* How answers that call in this form think. */
static inline const think_form *tool_writer_think(const tool_form *form)
{
    return form == &TOOL_FORM_HARMONY ? think_form_find("openai_gptoss") : NULL;
}

/* calls: a list of {"name", "arguments"}. */
static inline void tool_writer_calls(bytes *out, const tool_writer_row *w, const json *calls)
{
    bytes_append_str(out, w->all);
    for (const json *c = json_child(calls); c; c = json_next(c)) {
        const char *name = json_str(json_get(c, "name"), ""), *at = strstr(w->before, "%s");
        const json *arguments = json_get(c, "arguments");
        bytes_printf(out, "%.*s%s%s", (int)(at - w->before), w->before, name, at + 2);
        if (w->kind == WRITES_JSON) {
            json_write(out, arguments);
        } else if (w->kind == WRITES_TAGS) {
            tool_writer_tags(out, arguments, w->marks[0], w->marks[1], w->marks[2]);
        } else {
            tool_writer_named(out, arguments, w->marks[0], w->form == &TOOL_FORM_GEMMA4);
        }
        bytes_append_str(out, w->after);
        bytes_append_str(out, json_next(c) ? w->between : "");
    }
    bytes_append_str(out, w->all_close);
}

#endif
