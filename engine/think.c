#include "engine/think.h"

#include <string.h>

#include "base/compiler.h"

/* ---- forms ---- */

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

const think_form THINK_TAGS = {
    .name = "think",
    .aliases = TEXTS("qwen3", "deepseek_r1", "deepseek_v3", "glm45", "kimi_k2", "minimax_m2",
                     "minimax_m2_append_think", "nemotron_v3", "hunyuan_a13b", "step3", "olmo3", "ernie45"),
    .open = "<think>",
    .close = "</think>",
    .opening = "<think>\n",
    .closing = "\n</think>\n\n",
    .tokens = TEXTS("<think>", "</think>"),
};

static const think_form SEED = {
    .name = "seed_oss",
    .sign = "seed:think>",
    .open = "<seed:think>",
    .close = "</seed:think>",
    .opening = "<seed:think>",
    .closing = "</seed:think>",
    .tokens = TEXTS("<seed:think>", "</seed:think>"),
};

static const think_form MISTRAL = {
    .name = "mistral",
    .sign = "[THINK]",
    .open = "[THINK]",
    .close = "[/THINK]",
    .opening = "[THINK]",
    .closing = "[/THINK]",
    .tokens = TEXTS("[THINK]", "[/THINK]"),
};

static const think_form GEMMA4 = {
    .name = "gemma4",
    .sign = "<|channel>thought",
    .open = "<|channel>thought",
    .close = "<channel|>",
    .opening = "<|channel>thought\n",
    .closing = "\n<channel|>",
    .tokens = TEXTS("<|channel>", "<channel|>"),
};

static const think_form COMMAND = {
    .name = "cohere_command",
    .sign = "<|START_THINKING|>",
    .open = "<|START_THINKING|>",
    .close = "<|END_THINKING|>",
    .opening = "<|START_THINKING|>",
    .closing = "<|END_THINKING|>",
    .tokens = TEXTS("<|START_THINKING|>", "<|END_THINKING|>"),
};

static const think_form HARMONY = {
    .name = "openai_gptoss",
    .aliases = TEXTS("gpt_oss", "openai", "harmony"),
    .sign = "<|channel|>analysis",
    .open = "<|channel|>analysis<|message|>",
    .close = "<|end|>",
    .opening = "<|channel|>analysis<|message|>",
    .closing = "<|end|><|start|>assistant",
    .tokens = TEXTS("<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|call|>", "<|return|>",
                    "<|constrain|>"),
    .has_channels = true,
    .text_opening = "<|channel|>final<|message|>",
};

static const think_form *const FORMS[] = {&HARMONY, &GEMMA4, &MISTRAL, &SEED, &COMMAND, &THINK_TAGS};

const think_form *think_form_of_template(const char *text)
{
    for (size_t i = 0; text && i < ARRAY_LEN(FORMS); i++) {
        if (FORMS[i]->sign && strstr(text, FORMS[i]->sign)) {
            return FORMS[i];
        }
    }
    return &THINK_TAGS;
}

static bool is_among(const char *const *texts, const char *text, size_t len)
{
    for (; texts && *texts; texts++) {
        if (strlen(*texts) == len && memcmp(*texts, text, len) == 0) {
            return true;
        }
    }
    return false;
}

const think_form *think_form_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
        if (strcmp(FORMS[i]->name, name) == 0 || is_among(FORMS[i]->aliases, name, strlen(name))) {
            return FORMS[i];
        }
    }
    return NULL;
}

const char *think_form_names(void)
{
    return "think (or qwen3, deepseek_r1, glm45, kimi_k2, minimax_m2, nemotron_v3), openai_gptoss, gemma4, "
           "mistral, seed_oss, cohere_command";
}

bool think_form_reads(const think_form *form, const char *text, size_t len)
{
    return form && is_among(form->tokens, text, len);
}

/* ---- one answer ---- */

void think_init(think_watch *w, const think_form *form, bool starts_in_thinking, bool may_think,
                int32_t budget, const int32_t *close, size_t n_close)
{
    *w = (think_watch){.form = form, .budget = budget, .close = close, .n_close = n_close};
    w->phase = starts_in_thinking ? THINK_OPEN : may_think ? THINK_START : THINK_CLOSED;
}

int32_t think_choose(think_watch *w, int32_t drawn, bool is_stop)
{
    const bool is_spent = w->budget >= 0 && w->n_tokens >= w->budget;
    if (w->phase == THINK_OPEN && w->n_close > 0 && (is_stop || is_spent)) {
        w->phase = THINK_FORCED_CLOSE;
        w->n_closed = 0;
    }
    return w->phase == THINK_FORCED_CLOSE ? w->close[w->n_closed] : drawn;
}

void think_end(think_watch *w)
{
    w->budget = 0;
}

static void watch_start(think_watch *w, char c)
{
    const char *open = w->form->open;
    if (w->n_matched == 0 && strchr(" \n\r\t", c) && c) {
        return;
    }
    if (c != open[w->n_matched]) {
        w->phase = THINK_CLOSED;
        return;
    }
    w->n_matched++;
    w->phase = open[w->n_matched] ? THINK_START : THINK_OPEN;
}

/* Whether the text ends with the marker. */
static bool ends_with(const think_watch *w, const char *marker)
{
    const size_t n = strlen(marker);
    return w->n_tail >= n && memcmp(w->tail + w->n_tail - n, marker, n) == 0;
}

static void add_tail(think_watch *w, char c)
{
    if (w->n_tail == sizeof w->tail) {
        memmove(w->tail, w->tail + 1, --w->n_tail);
    }
    w->tail[w->n_tail++] = c;
}

void think_accept(think_watch *w, const char *text, size_t len)
{
    if (w->phase == THINK_FORCED_CLOSE) {
        w->n_closed++;
        w->phase = w->n_closed == w->n_close ? THINK_CLOSED : THINK_FORCED_CLOSE;
        w->n_tail = 0;
        return;
    }
    w->n_tokens += w->phase == THINK_OPEN;
    for (size_t i = 0; i < len; i++) {
        add_tail(w, text[i]);
        if (w->phase == THINK_START) {
            watch_start(w, text[i]);
        } else if (w->phase == THINK_OPEN && ends_with(w, w->form->close)) {
            w->phase = THINK_CLOSED;
        } else if (w->phase == THINK_CLOSED && w->form->has_channels && ends_with(w, w->form->open)) {
            w->phase = THINK_OPEN;
        }
    }
}
