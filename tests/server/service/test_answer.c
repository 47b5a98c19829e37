/* answer: made-up events of an engine become text, calls, logprobs and figures. What tokens are says this file. */
#include "server/service/answer.h"

#include "base/clock.h"
#include "tests/check.h"
#include "tests/server/protocol/tools_of.h"

/* ---- tokens: a byte each; from SPECIAL on words that templates know ---- */

enum { SPECIAL = 256 };
static const char *const WORDS[] = {"<tool_call>", "</tool_call>", "<end>", "<think>", "</think>", ""};

const char *__wrap_engine_token_bytes(const engine *e, int32_t id, size_t *len,
                                      bool *special); /* the linker's name */

const char *__wrap_engine_token_bytes(const engine *e, int32_t id, size_t *len, bool *special)
{
    static char bytes_of[256];
    (void)e;
    if (id < 0) {
        *len = 0;
        *special = false;
        return NULL;
    }
    *special = id >= SPECIAL;
    if (id >= SPECIAL) {
        *len = strlen(WORDS[id - SPECIAL]);
        return WORDS[id - SPECIAL];
    }
    bytes_of[id] = (char)id;
    *len = 1;
    return &bytes_of[id];
}

/* ---- answers ---- */

static answer *begin(const gen_request_info *info)
{
    answer *a = answer_create(&dialect_chat, 7, 3);
    CHECK(a != NULL);
    answer_begin(a, info, tool_form_find("hermes"));
    return a;
}

/* The pieces that came since the last time, as "kind:text|". */
static const char *taken(answer *a)
{
    static const char *const NAMES[] = {"r", "c", "blank", "call", "args", "end", "cut", "item"};
    static char out[4096];
    int n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < a->pieces.n; i++) {
        n += snprintf(out + n, sizeof out - (size_t)n, "%s:%s|", NAMES[a->pieces.items[i].kind],
                      bytes_str(&a->pieces.items[i].text));
    }
    reply_pieces_clear(&a->pieces);
    return out;
}

static gen_event *event_of(gen_event_type type)
{
    static gen_event event;
    event = (gen_event){.type = type};
    return &event;
}

/* Text as tokens, "\1" for the word of a template with that number and so on, "\7" for an id without a text. */
static void say(answer *a, const char *text, gen_logprob *logprobs)
{
    gen_event *event = event_of(GEN_TOKENS);
    event->logprobs = logprobs; /* of a text that one event holds */
    for (const char *c = text; *c; c++) {
        event->tokens[event->n_tokens++] = *c == 7 ? -1 : *c < 7 ? SPECIAL + *c - 1 : (unsigned char)*c;
        if (event->n_tokens == GEN_EVENT_TOKENS || !c[1]) {
            CHECK(!answer_take_event(a, NULL, event));
            event->n_tokens = 0;
        }
    }
}

static void end(answer *a, gen_finish finish)
{
    gen_event *event = event_of(GEN_DONE);
    event->finish = finish;
    CHECK(answer_take_event(a, NULL, event));
    CHECK_INT(a->state, ANSWER_FINISHED);
}

static const gen_request_info THINKS = {.may_think = true, .n_prompt_tokens = 11};

static void test_text(void)
{
    answer *a = begin(&(gen_request_info){.n_prompt_tokens = 11});
    CHECK_INT(a->id, 7);
    CHECK_INT(a->order, 7);
    CHECK_INT(a->conn, 3);
    CHECK_INT(a->state, ANSWER_RUNNING);
    CHECK(strncmp(a->chat_id, "chatcmpl-", 9) == 0 && a->created_at > 0 && a->submitted_ms >= a->created_ms);
    CHECK(a->first_token_ms <= 0);
    say(a, "He", NULL);
    CHECK(a->first_token_ms > 0);
    CHECK_STR(taken(a), "c:He|");
    const double first = a->first_token_ms;
    a->tools.n_rounds = 0;
    say(a, "y\3!", NULL); /* a word of the template is not shown */
    CHECK(a->first_token_ms <= first);
    CHECK_STR(taken(a), "c:y!|");
    CHECK_INT(a->n_tokens, 5);
    CHECK_INT(a->n_reasoning_tokens, 0);
    CHECK(a->finished_ms <= 0);
    end(a, GEN_FINISH_STOP);
    CHECK(a->finished_ms > 0);
    CHECK_STR(taken(a), "");
    CHECK_STR(answer_finish_reason(a), "stop");
    const reply_usage u = answer_usage(a);
    CHECK_INT(u.prompt_tokens, 11);
    CHECK_INT(u.completion_tokens, 5);
    answer_destroy(a);

    a = begin(&(gen_request_info){0});
    say(a, "a", NULL);
    gen_event *event = event_of(GEN_DONE);
    event->finish = GEN_FINISH_ERROR;
    event->error = ERR_BUSY;
    snprintf(event->message, sizeof event->message, "why");
    snprintf(event->error_name, sizeof event->error_name, "name");
    CHECK(answer_take_event(a, NULL, event));
    CHECK_INT(a->finish, GEN_FINISH_ERROR);
    CHECK_INT(a->error, ERR_BUSY);
    CHECK_STR(a->error_text, "why");
    CHECK_STR(a->error_name, "name");
    answer_destroy(a);
    static const struct {
        gen_finish finish;
        const char *reason;
    } ENDS[] = {{GEN_FINISH_LENGTH, "length"},
                {GEN_FINISH_FILTERED, "content_filter"},
                {GEN_FINISH_CANCELLED, "stop"}};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        a = begin(&(gen_request_info){0});
        end(a, ENDS[i].finish);
        CHECK_STR(answer_finish_reason(a), ENDS[i].reason);
        answer_destroy(a);
    }
    answer_destroy(NULL);
}

/* Thoughts end behind their marker, which is one of them. */
static void test_thoughts(void)
{
    gen_request_info info = THINKS;
    info.starts_in_thinking = true;
    answer *a = begin(&info);
    say(a, "hm", NULL);
    say(a, "</think>", NULL);
    CHECK_INT(a->n_reasoning_tokens, 10);
    say(a, "ab", NULL);
    CHECK_STR(taken(a), "r:hm|c:ab|");
    CHECK_INT(a->n_reasoning_tokens, 10);
    CHECK_INT(a->n_tokens, 12);
    end(a, GEN_FINISH_STOP);
    CHECK_INT(answer_usage(a).reasoning_tokens, 10);
    answer_destroy(a);
}

/* The markers of thoughts may be words of the template; others are not shown, nor is what has no text. */
static void test_marked_thoughts(void)
{
    gen_request_info info = THINKS;
    for (int k = 0; k < 4; k++) {
        info.think = k & 1 ? &THINK_TAGS : NULL;
        answer *a = begin(&info);
        answer_begin(a, &info, k & 2 ? tool_form_find("hermes") : NULL);
        say(a, "\4h\3\6m\5\7ab", NULL);
        end(a, GEN_FINISH_STOP);
        CHECK_STR(taken(a), k & 1 ? "r:hm|c:ab|" : "c:hmab|");
        CHECK_INT(a->n_tokens, 9);
        CHECK_INT(a->n_reasoning_tokens, k & 1 ? 6 : 0);
        answer_destroy(a);
    }
}

static char *copied(const char *text)
{
    return strdup(text);
}

/* Stop strings: within a text, over its end, and in the white space in front of a call. */
static void test_stops(void)
{
    answer *a = begin(&THINKS);
    a->opt.stops[0] = copied("END");
    a->opt.n_stops = 1;
    answer_begin(a, &THINKS, tool_form_find("hermes"));
    say(a, "abEN", NULL);
    CHECK_STR(taken(a), "c:ab|");
    CHECK(!a->stop_found);
    say(a, "Dcd", NULL);
    CHECK_STR(taken(a), "");
    CHECK(a->stop_found);
    CHECK_INT(a->n_tokens, 5); /* nothing behind it counts */
    end(a, GEN_FINISH_CANCELLED);
    CHECK_INT(a->finish, GEN_FINISH_STOP);
    answer_destroy(a);

    a = begin(&THINKS); /* what is held back is text in the end */
    a->opt.stops[0] = copied("END");
    a->opt.n_stops = 1;
    answer_begin(a, &THINKS, NULL);
    say(a, "abEN", NULL);
    CHECK_STR(taken(a), "c:ab|");
    end(a, GEN_FINISH_LENGTH);
    CHECK_STR(taken(a), "c:EN|");
    answer_destroy(a);

    a = begin(&THINKS); /* stopped, and then failed */
    a->opt.stops[0] = copied("b");
    a->opt.n_stops = 1;
    answer_begin(a, &THINKS, NULL);
    say(a, "ab", NULL);
    CHECK(a->stop_found);
    end(a, GEN_FINISH_ERROR);
    CHECK_INT(a->finish, GEN_FINISH_ERROR);
    answer_begin(a, &THINKS, NULL); /* the next round is not stopped */
    CHECK(!a->stop_found);
    answer_destroy(a);

    a = begin(&THINKS); /* a summary heeds none */
    a->opt.stops[0] = copied("b");
    a->opt.n_stops = 1;
    a->tools.is_summary = true;
    answer_begin(a, &THINKS, tool_form_find("hermes"));
    say(a, "abc\1", NULL);
    CHECK_STR(taken(a), "c:abc|");
    answer_destroy(a);
}

static answer *begin_with_tools(const char *stop)
{
    answer *a = begin(&THINKS);
    a->opt.tools = tools_of("[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]");
    a->opt.stops[0] = stop ? copied(stop) : NULL;
    a->opt.n_stops = stop != NULL;
    answer_begin(a, &THINKS, tool_form_find("hermes"));
    return a;
}

#define CALL "\1{\"name\": \"f\", \"arguments\": {}}\2"

static void test_calls(void)
{
    answer *a = begin_with_tools(NULL);
    say(a, "so\n" CALL, NULL); /* markers are words of the template, and read all the same */
    say(a, "\n" CALL, NULL);
    CHECK_INT(a->n_calls, 2);
    end(a, GEN_FINISH_STOP);
    CHECK_STR(taken(a), "c:so|call:f|args:{}|end:|call:f|args:{}|end:|");
    CHECK_STR(answer_finish_reason(a), "tool_calls");
    answer_destroy(a);

    a = begin_with_tools(NULL); /* white space in front of one is not shown */
    say(a, "so \n" CALL, NULL);
    end(a, GEN_FINISH_STOP);
    CHECK_STR(taken(a), "c:so|call:f|args:{}|end:|");
    answer_destroy(a);

    a = begin_with_tools("\n\n"); /* unless the answer ends there */
    say(a, "so \n\n" CALL, NULL);
    end(a, GEN_FINISH_STOP);
    CHECK(a->stop_found);
    CHECK_STR(taken(a), "c:so |");
    CHECK_INT(a->n_calls, 0);
    CHECK_STR(answer_finish_reason(a), "stop");
    answer_destroy(a);

    a = begin(&THINKS); /* one call is all that was asked for */
    a->opt.tools = tools_of("[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]");
    a->opt.one_call = true;
    answer_begin(a, &THINKS, tool_form_find("hermes"));
    say(a, "so\n" CALL "ab", NULL);
    CHECK(a->stop_found);
    CHECK_INT(a->n_tokens, 36); /* no more than shows that the call has ended */
    end(a, GEN_FINISH_CANCELLED);
    CHECK_STR(taken(a), "c:so|call:f|args:{}|end:|");
    CHECK_INT(a->finish, GEN_FINISH_STOP);
    CHECK_STR(answer_finish_reason(a), "tool_calls");
    answer_destroy(a);

    a = begin_with_tools("so\n!"); /* what is held back of a text is shown in front of a call */
    say(a, "so\n" CALL, NULL);
    CHECK_STR(taken(a), "c:so|call:f|args:{}|end:|");
    answer_destroy(a);
}

#define LOGPROB(word, value, number)                                                                         \
    "{\"token\":\"" word "\",\"logprob\":" value ",\"bytes\":[" number "],\"top_logprobs\":["

#define LOGPROB_TOP "{\"token\":\"\",\"logprob\":0.000000,\"bytes\":[]}"

static void test_logprobs(void)
{
    gen_logprob list[4] = {
        {.logprob = -0.5F}, {.logprob = -1, .n_top = 2}, {.logprob = -2}, {.logprob = NAN}};
    list[1].top_ids[0] = 'x';
    list[1].top_logprobs[0] = -0.25F;
    list[1].top_ids[1] = 'y';
    list[1].top_logprobs[1] = -INFINITY;
    answer *a = begin(&THINKS);
    say(a, "ab", list);
    CHECK_STR(bytes_str(&a->logprobs), ""); /* nobody asked */
    a->opt.logprobs = true;
    say(a, "ab\3", list);
    CHECK_STR(bytes_str(&a->logprobs),
              LOGPROB("a", "-0.500000", "97") "]}," LOGPROB("b", "-1.000000", "98") //
              "{\"token\":\"x\",\"logprob\":-0.250000,\"bytes\":[120]},"
              "{\"token\":\"y\",\"logprob\":-9999.000000,\"bytes\":[121]}]}");
    bytes_clear(&a->logprobs);
    say(a, "abcd", list);
    CHECK(strstr(bytes_str(&a->logprobs), "},{\"token\":\"d\",\"logprob\":null,\"top_logprobs\":null}") !=
          NULL);
    /* As many others as there may be. */
    list[0].n_top = 25;
    memset(list[0].top_ids, 0, sizeof list[0].top_ids);
    bytes_clear(&a->logprobs);
    say(a, "a", list);
    int n = 0;
    for (const char *at = bytes_str(&a->logprobs); (at = strstr(at, "\"bytes\":[0]")); at++) {
        n++;
    }
    CHECK_INT(n, 20);
    /* Ids without a text. */
    list[0].n_top = 1;
    list[0].top_ids[0] = -1;
    bytes_clear(&a->logprobs);
    say(a, "\7", list);
    list[0].logprob = NAN;
    say(a, "\7", list);
    CHECK_STR(bytes_str(&a->logprobs), LOGPROB("", "-0.500000", "") LOGPROB_TOP //
              "]},{\"token\":\"\",\"logprob\":null,\"top_logprobs\":null}");
    answer_destroy(a);
    gen_request_info info = THINKS; /* thoughts have none */
    info.starts_in_thinking = true;
    a = begin(&info);
    a->opt.logprobs = true;
    say(a, "ab", list);
    CHECK_INT(a->logprobs.len, 0);
    answer_destroy(a);
}

/* The prompt shown before the answer, with its logprobs or without. */
static void test_echo(void)
{
    answer *a = begin(&THINKS);
    a->opt.echoes[0] = copied("first");
    a->opt.echoes[1] = copied("second");
    a->opt.n_echoes = 2;
    static const struct {
        int index, n_choices;
        const char *shown;
    } CASES[] = {{0, 0, "c:first|"},
                 {1, 0, "c:second|"},
                 {1, 1, "c:second|"},
                 {1, 2, "c:first|"},
                 {2, 2, "c:second|"}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        a->index = CASES[i].index;
        a->opt.n_choices = CASES[i].n_choices;
        a->opt.scores_prompt = false;
        answer_begin(a, &THINKS, NULL);
        CHECK_STR(taken(a), CASES[i].shown);
        a->opt.scores_prompt = true; /* they come behind their logprobs then */
        answer_begin(a, &THINKS, NULL);
        CHECK_STR(taken(a), "");
        gen_logprob logprobs[2] = {{.logprob = NAN}, {.logprob = -1}};
        gen_event *event = event_of(GEN_PROMPT);
        event->n_tokens = 2;
        event->tokens[0] = 'a';
        event->tokens[1] = 'b';
        event->logprobs = logprobs;
        event->processed = 2;
        event->total = 4;
        bytes_init(&a->echo, 1000);
        bytes_clear(&a->logprobs);
        CHECK(!answer_take_event(a, NULL, event));
        CHECK_STR(taken(a), "");
        event->processed = 4;
        CHECK(!answer_take_event(a, NULL, event));
        CHECK_STR(taken(a), CASES[i].shown);
        CHECK_INT(a->echo.len, 0);
        CHECK_STR(
            bytes_str(&a->logprobs),
            "{\"token\":\"a\",\"logprob\":null,\"top_logprobs\":null}," LOGPROB("b", "-1.000000", "98") //
            "]},{\"token\":\"a\",\"logprob\":null,\"top_logprobs\":null}," LOGPROB("b", "-1.000000",
                                                                                   "98") "]}");
    }
    free(a->opt.echoes[1]); /* written from its tokens */
    a->opt.echoes[1] = NULL;
    a->opt.n_choices = 1;
    a->index = 1;
    gen_logprob logprob = {.logprob = -1};
    gen_event *event = event_of(GEN_PROMPT);
    event->n_tokens = 1;
    event->tokens[0] = 'q';
    event->logprobs = &logprob;
    event->processed = event->total = 1;
    bytes_init(&a->echo, 1000);
    CHECK(!answer_take_event(a, NULL, event));
    CHECK_STR(taken(a), "c:q|");
    event->tokens[0] = -1; /* without a text */
    bytes_init(&a->echo, 1000);
    CHECK(!answer_take_event(a, NULL, event));
    CHECK_STR(taken(a), "");
    CHECK(!a->has_lost);
    a->opt.n_echoes = 1;
    answer_destroy(a);
}

/* ---- what other servers write ---- */

static bool tell(answer *a, gen_text_kind kind, const char *text, int32_t n_tokens)
{
    static union {
        gen_text text;
        char room[sizeof(gen_text) + sizeof(gen_text_piece)];
    } t;
    t.text.n_tokens = n_tokens;
    t.text.n = 1;
    t.text.pieces[0] = (gen_text_piece){.kind = kind, .text = text, .len = strlen(text)};
    gen_event *event = event_of(GEN_TEXT);
    event->text = &t.text;
    event->timings.prompt_n = 5;
    const bool is_last = answer_take_event(a, NULL, event);
    CHECK_INT(a->timings.prompt_n, 5);
    return is_last;
}

static void test_told(void)
{
    gen_request_info info = {.is_remote = true, .may_think = true, .n_prompt_tokens = 11};
    answer *a = begin(&info);
    a->opt.stops[0] = copied("END");
    a->opt.n_stops = 1;
    answer_begin(a, &info, NULL);
    CHECK(!tell(a, GEN_TEXT_REASONING, "hm", 2));
    CHECK(a->first_token_ms > 0);
    CHECK_INT(a->n_reasoning_tokens, 2);
    CHECK(!tell(a, GEN_TEXT_LOGPROBS, "{1}", 0));
    CHECK_INT(a->logprobs.len, 0);
    a->opt.logprobs = true;
    CHECK(!tell(a, GEN_TEXT_LOGPROBS, "{1}", 0));
    CHECK(!tell(a, GEN_TEXT_LOGPROBS, "{2}", 0));
    CHECK_STR(bytes_str(&a->logprobs), "{1},{2}");
    CHECK(!tell(a, GEN_TEXT_CALL, "f", 1));
    CHECK(!tell(a, GEN_TEXT_ARGUMENTS, "{}", 0));
    CHECK(!tell(a, GEN_TEXT_CALL_END, "", 0));
    CHECK(!tell(a, GEN_TEXT_CONTENT, "aEND b", 3));
    CHECK(a->stop_found);
    CHECK(!tell(a, GEN_TEXT_CONTENT, "c", 1));
    CHECK_STR(taken(a), "r:hm|call:f|args:{}|end:|c:a|");
    CHECK_INT(a->n_reasoning_tokens, 2);
    CHECK_INT(a->n_tokens, 7);
    answer_destroy(a);

    a = begin(&info); /* one call is all that was asked for */
    a->opt.one_call = true;
    answer_begin(a, &info, NULL);
    CHECK(!tell(a, GEN_TEXT_CALL, "f", 1));
    CHECK(!tell(a, GEN_TEXT_ARGUMENTS, "{}", 1));
    CHECK(!a->stop_found);
    CHECK(!tell(a, GEN_TEXT_CALL_END, "", 0));
    CHECK(a->stop_found);
    CHECK(!tell(a, GEN_TEXT_CALL, "g", 1));
    CHECK_STR(taken(a), "call:f|args:{}|end:|");
    CHECK_INT(a->n_calls, 1);
    answer_destroy(a);
}

/* Its own figures, where it tells them: {prompt, completion, reasoning} to what is told. */
static void test_told_usage(void)
{
    static const struct {
        bool is_known;
        int n_rounds, reasoning, n_reasoning_before;
        int prompt, completion, thought;
    } CASES[] = {{false, 0, 5, 3, 11, 9, 3}, {true, 0, 5, 3, 20, 8, 5},  {true, 0, 0, 3, 20, 8, 0},
                 {true, 0, -1, 3, 20, 8, 3}, {true, 0, -1, 9, 20, 8, 8}, {true, 1, 5, 3, 20, 9, 3}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        answer *a = begin(&THINKS);
        a->n_tokens = 9;
        a->n_reasoning_tokens = CASES[i].n_reasoning_before;
        a->tools.n_rounds = CASES[i].n_rounds;
        gen_event *event = event_of(GEN_DONE);
        event->usage = (gen_usage){
            .is_known = CASES[i].is_known, .prompt = 20, .completion = 8, .reasoning = CASES[i].reasoning};
        CHECK(answer_take_event(a, NULL, event));
        const reply_usage u = answer_usage(a);
        CHECK_INT(u.prompt_tokens, CASES[i].prompt);
        CHECK_INT(u.completion_tokens, CASES[i].completion);
        CHECK_INT(u.reasoning_tokens, CASES[i].thought);
        answer_destroy(a);
    }
}

/* ---- figures ---- */

static void test_progress(void)
{
    answer *a = begin(&(gen_request_info){.route = GEN_ROUTE_MEDIA});
    a->media_ms = 4;
    CHECK_INT(a->timings.route, GEN_ROUTE_MEDIA);
    gen_event *event = event_of(GEN_PROGRESS);
    event->phase = GEN_PHASE_QUEUED;
    event->processed = 1;
    event->total = 2;
    event->timings.cache_n = 3;
    CHECK(!answer_take_event(a, NULL, event));
    CHECK(!a->started && a->phase_start_ms > 0);
    CHECK_INT(a->phase, GEN_PHASE_QUEUED);
    CHECK_INT(a->processed * 100 + a->total * 10 + a->cached, 123);
    CHECK_INT(a->progress_version, 1);
    CHECK_INT(a->timings.cache_n, 3);
    CHECK_NEAR(a->timings.media_ms, 4, 0);
    a->phase_start_ms = 1; /* of the same phase it stays, of the next one it is new */
    CHECK(!answer_take_event(a, NULL, event));
    CHECK_NEAR(a->phase_start_ms, 1, 0);
    event->phase = GEN_PHASE_PREFILL;
    event->timings.media_ms = 9;
    CHECK(!answer_take_event(a, NULL, event));
    CHECK(a->started && a->phase_start_ms > 1);
    CHECK_INT(a->progress_version, 3);
    CHECK_NEAR(a->timings.media_ms, 9, 0);
    event->phase = GEN_PHASE_QUEUED; /* what has begun has begun */
    CHECK(!answer_take_event(a, NULL, event));
    CHECK(a->started);
    answer_destroy(a);
    a = begin(&(gen_request_info){.route = GEN_ROUTE_TEXT});
    a->media_ms = 4;
    say(a, "a", NULL);
    CHECK_NEAR(a->timings.media_ms, 0, 0);
    answer_destroy(a);
}

static void test_vectors(void)
{
    float vector[3] = {1, 2, 3};
    answer *a = begin(&THINKS);
    gen_event *event = event_of(GEN_VECTOR);
    event->vector = vector;
    event->n_vector = 3;
    CHECK(!answer_take_event(a, NULL, event));
    CHECK(!answer_take_event(a, NULL, event));
    CHECK_INT(a->n_vectors, 2);
    CHECK_INT(a->vector_size, 3);
    CHECK_INT(a->vectors.len, 2 * sizeof vector);
    CHECK(memcmp(a->vectors.data + sizeof vector, vector, sizeof vector) == 0);
    answer_destroy(a);
}

/* Each prompt counts once, answers all. */
static void test_usage(void)
{
    answer *a = begin(&THINKS), *others[3];
    for (int i = 0; i < 3; i++) {
        others[i] = begin(&THINKS);
        others[i]->first = a;
        others[i]->index = i + 1;
        others[i]->info.n_prompt_tokens = 100 * (i + 1);
        others[i]->timings.cache_n = 10 * (i + 1);
        others[i]->n_tokens = 2;
        others[i]->n_reasoning_tokens = 1;
        CHECK(answer_first(others[i]) == a);
    }
    CHECK(answer_first(a) == a);
    a->others = calloc(3, sizeof *a->others);
    memcpy(a->others, others, sizeof others);
    a->n_others = 3;
    a->opt.n_choices = 2;
    a->n_tokens = 5;
    a->n_reasoning_tokens = 3;
    a->timings = (gen_timings){.cache_n = 4, .sparse_n = 8, .sparse_kept_n = 6};
    a->tools.prompt_tokens = 1000;
    a->tools.cached_tokens = 500;
    const reply_usage u = answer_usage(a);
    CHECK_INT(u.prompt_tokens, 1000 + 11 + 200);
    CHECK_INT(u.cached_tokens, 500 + 4 + 20);
    CHECK_INT(u.completion_tokens, 5 + 3 * 2);
    CHECK_INT(u.reasoning_tokens, 3 + 3);
    CHECK_INT(u.sparse_tokens * 10 + u.sparse_kept_tokens, 86);
    for (int i = 0; i < 3; i++) {
        answer_destroy(others[i]);
    }
    answer_destroy(a);
}

/* What counts of the memory of one that has ended: everything that grows with its text. */
static void test_bytes(void)
{
    answer *a = begin(&THINKS);
    size_t was = answer_bytes(a);
    CHECK(was >= sizeof *a);
    bytes *const texts[] = {&a->sse,     &a->whole_logprobs, &a->logprobs, &a->body,
                            &a->vectors, &a->edits,          &a->echo,     &a->tools.turns};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        texts[i]->max = 1 << 20;
        for (int k = 0; k < 1000; k++) {
            bytes_append_str(texts[i], "0123456789");
        }
        CHECK_INT(answer_bytes(a), was + texts[i]->cap);
        was = answer_bytes(a);
    }
    reply_pieces *const lists[] = {&a->whole, &a->pieces, &a->parser.pieces};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        reply_pieces_add(lists[i], REPLY_CONTENT, "some text", 9);
        CHECK_INT(answer_bytes(a), was + lists[i]->cap * sizeof(reply_piece) + lists[i]->items[0].text.cap);
        was = answer_bytes(a);
    }
    a->opt.echoes[0] = copied("12345");
    a->opt.n_echoes = 1;
    CHECK_INT(answer_bytes(a), was + 5);
    a->opt.fields = copied("123");
    CHECK_INT(answer_bytes(a), was + 8);
    responses_reply_init(&a->reply, &a->opt, "m", 4096);
    CHECK_INT(answer_bytes(a), was + 8);
    a->has_reply = true;
    was = answer_bytes(a);
    responses_reply_created(&a->reply);
    CHECK(a->reply.log.data.cap > 0);
    CHECK(answer_bytes(a) > was + 100);
    was = answer_bytes(a);
    reply_pieces_clear(&a->pieces);
    reply_pieces_add(&a->pieces, REPLY_CONTENT, "some text", 9);
    was = answer_bytes(a) - a->reply.log.data.cap - a->reply.log.cap * sizeof *a->reply.log.entries;
    responses_reply_delta(&a->reply, &a->pieces, &a->echo);
    CHECK(a->reply.n_items == 1 && a->reply.items[0].text.cap > 0);
    const responses_reply *r = &a->reply;
    CHECK_INT(answer_bytes(a), was + r->log.data.cap + r->log.cap * sizeof *r->log.entries +
                                   (size_t)r->cap_items * sizeof *r->items + r->items[0].name.cap +
                                   r->items[0].text.cap + r->items[0].logprobs.cap);
    answer_destroy(a);
}

/* For lack of memory it ends as one that has failed. */
static void test_lost(void)
{
    for (int how = 0; how < 3; how++) {
        answer *a = begin(&THINKS);
        a->opt.stops[0] = copied("x");
        a->opt.n_stops = 1;
        snprintf(a->error_text, sizeof a->error_text, "other");
        if (how == 0) {
            answer_check_lost(a);
            CHECK_INT(a->finish, GEN_FINISH_STOP);
            CHECK_STR(a->error_text, "other");
        } else if (how == 1) {
            a->has_lost = true;
        } else {
            responses_reply_init(&a->reply, &a->opt, "m", 4096);
            a->has_reply = true;
            a->reply.has_lost = true;
        }
        answer_check_lost(a);
        CHECK_INT(a->finish, how ? GEN_FINISH_ERROR : GEN_FINISH_STOP);
        CHECK_INT(a->error, how ? ERR_NOMEM : ERR_OK);
        CHECK_STR(a->error_text, how ? "" : "other");
        answer_destroy(a);
    }
    answer *a = begin(&THINKS); /* a part that could not be written */
    bytes *const parts[] = {&a->vectors, &a->echo};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        float vector[1] = {1};
        bytes_fail_memory(parts[i]);
        a->has_lost = false;
        gen_event *event = event_of(i ? GEN_PROMPT : GEN_VECTOR);
        event->vector = vector;
        event->n_vector = 1;
        CHECK(!answer_take_event(a, NULL, event));
        CHECK(a->has_lost);
    }
    answer_destroy(a);
    a = begin(&THINKS);
    say(a, "a", NULL);
    CHECK(!a->has_lost);
    a->parser.pieces.failed = true;
    say(a, "a", NULL);
    CHECK(a->has_lost);
    answer_destroy(a);
    a = begin(&THINKS); /* the prompt in front of it */
    a->pieces.failed = true;
    CHECK(!answer_take_event(a, NULL, event_of(GEN_PROMPT)));
    CHECK(a->has_lost);
    answer_destroy(a);
    a = begin_with_tools(NULL); /* the white space in front of a call */
    say(a, "so \n\n", NULL);
    CHECK(!a->has_lost);
    a->content_stream.held.failed = true;
    say(a, CALL, NULL);
    CHECK(a->has_lost);
    answer_destroy(a);
}

/* Which streams begin before their media are read: numbered ones over HTTP whose client wants progress. */
static void test_early(void)
{
    for (int bits = 0; bits < 16; bits++) {
        answer *a = answer_create(bits & 1 ? &dialect_responses : &dialect_chat, 1, 1);
        a->opt.stream = bits & 2;
        a->opt.return_progress = bits & 4;
        a->is_socket = !(bits & 8);
        CHECK_INT(answer_streams_early(a), bits == 15);
        answer_destroy(a);
    }
}

static void test_runs(void)
{
    answer *a = begin(&THINKS);
    a->tools.runs = calloc(2, sizeof *a->tools.runs);
    a->tools.n_runs = a->tools.cap_runs = 2;
    a->tools.n_waiting = 1;
    for (int i = 0; i < 2; i++) {
        tool_run *t = &a->tools.runs[i];
        t->label = t->tool = t->name = t->arguments = bytes_empty(100);
        bytes_append_str(&t->label, "label");
        bytes_append_str(&t->arguments, "{}");
    }
    answer_clear_runs(a);
    CHECK_INT(a->tools.n_runs, 0);
    CHECK_INT(a->tools.n_waiting, 0);
    CHECK(a->tools.runs[0].label.data == NULL && a->tools.runs[1].arguments.data == NULL);
    answer_destroy(a);
}

int main(void)
{
    test_text();
    test_thoughts();
    test_marked_thoughts();
    test_stops();
    test_calls();
    test_logprobs();
    test_echo();
    test_told();
    test_told_usage();
    test_progress();
    test_vectors();
    test_usage();
    test_bytes();
    test_lost();
    test_early();
    test_runs();
    CHECK_DONE();
}
