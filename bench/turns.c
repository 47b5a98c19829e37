#include "bench/turns.h"

#include <stdio.h>
#include <string.h>

#define SYSTEM                                                                                               \
    {                                                                                                        \
        CHAT_SYSTEM, "You are a careful assistant. Answer in one sentence.", NULL, NULL                      \
    }
#define USER(text)                                                                                           \
    {                                                                                                        \
        CHAT_USER, text, NULL, NULL                                                                          \
    }
#define SAID(text)                                                                                           \
    {                                                                                                        \
        CHAT_ASSISTANT, text, NULL, NULL                                                                     \
    }
#define THOUGHT(reasoning, text)                                                                             \
    {                                                                                                        \
        CHAT_ASSISTANT, text, reasoning, NULL                                                                \
    }
#define CALLED(reasoning, tool)                                                                              \
    {                                                                                                        \
        CHAT_ASSISTANT, "", reasoning, tool                                                                  \
    }
#define BILLED(version)                                                                                      \
    {                                                                                                        \
        CHAT_SYSTEM,                                                                                         \
            "x-anthropic-billing-header: cc_version=" version "; cc_entrypoint=cli; cch=" version ";\n\n"    \
            "You are a careful agent.",                                                                      \
            NULL, NULL                                                                                       \
    }
#define LATE(text)                                                                                           \
    {                                                                                                        \
        CHAT_SYSTEM, text, NULL, NULL                                                                        \
    }
#define RESULT(text)                                                                                         \
    {                                                                                                        \
        CHAT_TOOL, text, NULL, NULL                                                                          \
    }

/* What an agent appends, with thinking and without; the reasoning comes back. */
#define GROWING(words, thinks, thought)                                                                      \
    {.name = "tool result to tool result" words,                                                             \
     .thinking = {thinks, thinks},                                                                           \
     .tools = true,                                                                                          \
     .grows = true,                                                                                          \
     .turns = {{SYSTEM, USER("Look at it."), CALLED(thought, "get_weather"), RESULT(LONG_TEXT)},             \
               {SYSTEM, USER("Look at it."), CALLED(thought, "get_weather"), RESULT(LONG_TEXT),              \
                CALLED(thought, "get_weather"), RESULT("18 degrees, rain")}},                                \
     .n = {4, 6}},                                                                                           \
        {.name = "tool result to user text" words,                                                           \
         .thinking = {thinks, thinks},                                                                       \
         .tools = true,                                                                                      \
         .grows = true,                                                                                      \
         .turns = {{SYSTEM, USER("Look at it."), CALLED(thought, "get_weather"), RESULT(LONG_TEXT)},         \
                   {SYSTEM, USER("Look at it."), CALLED(thought, "get_weather"), RESULT(LONG_TEXT),          \
                    THOUGHT(thought, "It rains."), USER("And now?")}},                                       \
         .n = {4, 6}},                                                                                       \
        {.name = "user text to user text" words,                                                             \
         .thinking = {thinks, thinks},                                                                       \
         .grows = true,                                                                                      \
         .turns = {{SYSTEM, USER(LONG_TEXT), THOUGHT(thought, "A circle."), USER("Why?")},                   \
                   {SYSTEM, USER(LONG_TEXT), THOUGHT(thought, "A circle."), USER("Why?"),                    \
                    THOUGHT(thought, "It is."), USER("Sure?")}},                                             \
         .n = {4, 6}},                                                                                       \
        {.name = "a late system message" words,                                                              \
         .thinking = {thinks, thinks},                                                                       \
         .tools = true,                                                                                      \
         .grows = true,                                                                                      \
         .turns = {{SYSTEM, USER("Look at it."), CALLED(thought, "get_weather"), RESULT(LONG_TEXT)},         \
                   {SYSTEM, USER("Look at it."), CALLED(thought, "get_weather"), RESULT(LONG_TEXT),          \
                    THOUGHT(thought, "It rains."), LATE("Be brief."), USER("And now?")}},                    \
         .n = {4, 7}},                                                                                       \
    {                                                                                                        \
        .name = "a changing billing header" words, .thinking = {thinks, thinks}, .grows = true,              \
        .turns = {{BILLED("2.1.0a7"), USER(LONG_TEXT)},                                                      \
                  {BILLED("2.1.f31"), USER(LONG_TEXT), THOUGHT(thought, "A circle."), USER("And now?")}},    \
        .n = {                                                                                               \
            2,                                                                                               \
            4                                                                                                \
        }                                                                                                    \
    }

const turn_case turn_cases[TURN_CASES] = {
    {.name = "a new question",
     .turns = {{USER(LONG_TEXT)}, {USER(LONG_TEXT), SAID("a red circle"), USER("What is your name?")}},
     .n = {1, 3}},
    {.name = "a new question, thinking",
     .thinking = {true, true},
     .turns = {{SYSTEM, USER(LONG_TEXT)},
               {SYSTEM, USER(LONG_TEXT), THOUGHT("I see a shape.", "a red circle"), USER("And now?")}},
     .n = {2, 4}},
    {.name = "thinking switched off in between",
     .thinking = {true, false},
     .turns = {{SYSTEM, USER(LONG_TEXT)},
               {SYSTEM, USER(LONG_TEXT), THOUGHT("I see a shape.", "a red circle"), USER("And now?")}},
     .n = {2, 4}},
    {.name = "a tool's result",
     .tools = true,
     .turns = {{SYSTEM, USER(LONG_TEXT)},
               {SYSTEM, USER(LONG_TEXT), CALLED(NULL, "get_weather"), RESULT("18 degrees, rain")}},
     .n = {2, 4}},
    {.name = "a tool's result, thinking",
     .thinking = {true, true},
     .tools = true,
     .turns = {{SYSTEM, USER(LONG_TEXT)},
               {SYSTEM, USER(LONG_TEXT), CALLED("The tool knows it.", "get_weather"), RESULT("18 degrees")}},
     .n = {2, 4}},
    {.name = "a changed last message",
     .turns = {{SYSTEM, USER(LONG_TEXT), SAID("a red circle"), USER("What is your name?")},
               {SYSTEM, USER(LONG_TEXT), SAID("a red circle"), USER("What can you do?")}},
     .n = {4, 4}},
    {.name = "the same once more",
     .turns = {{SYSTEM, USER(LONG_TEXT)}, {SYSTEM, USER(LONG_TEXT)}},
     .n = {2, 2}},
    {.name = "an answer changed in the middle",
     .turns = {{SYSTEM, USER(LONG_TEXT), SAID("a red circle"), USER("Why?"), SAID("It is."), USER("Sure?")},
               {SYSTEM, USER(LONG_TEXT), SAID("a blue star"), USER("Why?"), SAID("It is."), USER("Sure?")}},
     .n = {6, 6}},
    {.name = "the first question changed",
     .is_short = true,
     .turns = {{SYSTEM, USER("Look at this."), SAID("Yes."), USER(LONG_TEXT)},
               {SYSTEM, USER("Look at that."), SAID("Yes."), USER(LONG_TEXT)}},
     .n = {4, 4}},
    GROWING("", false, NULL),
    GROWING(", thinking", true, "I see a shape."),
};

static const char TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"description\":\"The weather of a "
    "city.\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}}}}}]";

/* Everything that the chat points into, as one document: the tools, the template's switches, a
 * call's arguments. */
static err_code keep_document(chat_input *in, const turn_case *c, int turn, err_detail *detail)
{
    char text[1024];
    int n = snprintf(text, sizeof text,
                     "{\"tools\":%s,\"kwargs\":{\"enable_thinking\":%s},\"arguments\":{\"city\":\"Graz\"}}",
                     TOOLS, c->thinking[turn] ? "true" : "false");
    err_code err = json_parse(&in->keep, text, (size_t)n, LIMIT_JSON_DEPTH, detail);
    if (err == ERR_OK) {
        in->template_kwargs = json_get(json_root(in->keep), "kwargs");
        in->tools = c->tools ? json_get(json_root(in->keep), "tools") : NULL;
    }
    return err;
}

static bool add_message(chat_input *in, const turn_message *m, const char *long_text)
{
    const char *text = strcmp(m->text, LONG_TEXT) == 0 ? long_text : m->text;
    chat_part *part = arena_calloc(in->arena, 1, sizeof *part);
    chat_tool_call *call = arena_calloc(in->arena, 1, sizeof *call);
    if (!part || !call) {
        return false;
    }
    *part = (chat_part){.kind = CHAT_TEXT, .text = text, .text_len = strlen(text)};
    *call = (chat_tool_call){.name = m->call, .arguments = json_get(json_root(in->keep), "arguments")};
    in->messages[in->n_messages++] = (chat_message){.role = m->role,
                                                    .parts = part,
                                                    .n_parts = text[0] ? 1 : 0,
                                                    .is_string = true,
                                                    .reasoning = m->reasoning,
                                                    .tool_calls = m->call ? call : NULL,
                                                    .n_tool_calls = m->call ? 1 : 0};
    return true;
}

err_code turns_chat(chat_input **out, const turn_case *c, int turn, const char *long_text, err_detail *detail)
{
    chat_input *in = chat_input_create((size_t)4 << 20);
    bool ok = in != NULL;
    if (ok) {
        in->messages = arena_calloc(in->arena, TURN_MESSAGES, sizeof *in->messages);
        ok = in->messages != NULL;
    }
    err_code err = ok ? keep_document(in, c, turn, detail) : ERR_OK;
    for (int i = 0; ok && err == ERR_OK && i < c->n[turn]; i++) {
        ok = add_message(in, &c->turns[turn][i], long_text);
    }
    if (!ok) {
        err = err_set(detail, ERR_NOMEM, "no memory for a chat");
    }
    if (err != ERR_OK) {
        chat_input_destroy(in);
        in = NULL;
    }
    *out = in;
    return err;
}
