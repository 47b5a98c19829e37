/* context_fit: what is prepared of a conversation that is to be made shorter, time and again, and what comes of it, line by
 * line in context_fit.txt:
 *
 *     messages 900,400 {"max_tokens": 5, ...}    a body; the tokens that it takes each time it is prepared
 *     responses 900/500,x,lost {"input": ...}    900 where there is room for 500; too long, nobody knows by how much; no memory
 *     compact ...                                of POST /v1/responses/compact
 *     responses input[1][1].image_url,9 ...      a damaged image there
 *     chat 9,4 {"messages": ...}                 summed up although nobody asks
 *     context 4000                               that of the model from here on; 0: not known
 */
#include "server/protocol/context_fit.h"

#include "server/protocol/dialects/chat_request.h"
#include "server/protocol/dialects/messages_request.h"
#include "server/protocol/dialects/responses_request.h"
#include "tests/one_fails.h"
#include "tests/recorded.h"
#include "tests/said.h"

ONE_FAILS(void *, arena_calloc, (arena * a, size_t n, size_t item_bytes), (a, n, item_bytes), NULL)

enum { SHOWN = 44 }; /* of a text */

/* ---- the engine's part ---- */

struct gen_request {
    int32_t n_tokens;
};

static engine_info model;
static const char *next; /* what comes of the next preparing, behind it those after it */
static bytes shown;      /* of the last one */
static bytes *told;      /* where each is shown */
static int n_requests;   /* that there are */

const engine_info *__wrap_engine_get_info(const engine *e);
const engine_info *__wrap_engine_get_info(const engine *e)
{
    (void)e;
    return model.n_ctx ? &model : NULL;
}

gen_request_info __wrap_gen_request_get_info(const gen_request *r);
gen_request_info __wrap_gen_request_get_info(const gen_request *r)
{
    return (gen_request_info){.n_prompt_tokens = r->n_tokens};
}

void __wrap_gen_request_free(gen_request *r);
void __wrap_gen_request_free(gen_request *r)
{
    n_requests -= r != NULL;
    free(r);
}

static void show(bytes *out, const chat_input *in)
{
    static const char *const ROLES[] = {
        [CHAT_SYSTEM] = "system", [CHAT_USER] = "user", [CHAT_ASSISTANT] = "assistant", [CHAT_TOOL] = "tool"};
    for (size_t i = 0; i < in->n_messages; i++) {
        const chat_message *m = &in->messages[i];
        bytes_printf(out, " %s%s:", ROLES[m->role], m->is_string ? "" : "[]");
        if (m->reasoning) {
            bytes_printf(out, "(%s)", m->reasoning);
        }
        for (size_t k = 0; k < m->n_parts; k++) {
            const chat_part *p = &m->parts[k];
            const char *text = p->kind == CHAT_TEXT ? p->text : p->param;
            const int n = p->kind == CHAT_TEXT ? (int)p->text_len : (int)strlen(text);
            bytes_printf(out, p->kind == CHAT_TEXT ? "%.*s%s" : "[%.*s%s]", n < SHOWN ? n : SHOWN, text,
                         n < SHOWN ? "" : "...");
        }
        for (size_t k = 0; k < m->n_tool_calls; k++) {
            bytes_printf(out, " %s(", m->tool_calls[k].name);
            json_write(out, m->tool_calls[k].arguments);
            bytes_append_char(out, ')');
        }
    }
    const gen_params *p = &in->params;
    bytes_printf(out, " / most %d least %d logprobs %d%s%s%s", (int)p->max_tokens, (int)p->min_tokens,
                 (int)p->n_top_logprobs, in->continues ? " goes on" : "", in->form ? " form" : "",
                 in->form_is_calls ? " of calls" : "");
    if (in->template_kwargs) {
        bytes_append_char(out, ' ');
        json_write(out, in->template_kwargs);
    }
}

static err_code prepare(gen_request **out, const api_request *r, const struct completion_prompt *prompt,
                        engine *e, const prepare_hooks *hooks, err_detail *d)
{
    (void)prompt, (void)e, (void)hooks;
    const char *now = next;
    char *end;
    bytes_clear(&shown);
    show(&shown, r->in);
    bytes_printf(told, "<  %s\n", bytes_str(&shown));
    next += strcspn(next, ", ");
    next += *next == ',';
    if (strncmp(now, "lost", 4) == 0) {
        return err_set(d, ERR_NOMEM, "there is no memory");
    }
    if (*now == 'x') {
        return err_set(d, ERR_CONTEXT, "it is too long");
    }
    if (*now == 'i') {
        char param[ERR_PARAM_MAX];
        snprintf(param, sizeof param, "%.*s", (int)strcspn(now, ", "), now);
        return err_set_param(d, ERR_INVALID, param, NULL, "damaged");
    }
    const long n = strtol(now, &end, 10);
    if (end == now) {
        return err_set(d, ERR_INTERNAL, "prepared too often");
    }
    if (*end == '/') {
        (void)err_set(d, ERR_CONTEXT, "%ld are too many", n);
        return err_set_numbers(d, ERR_CONTEXT, n, strtol(end + 1, NULL, 10));
    }
    *out = malloc(sizeof **out);
    CHECK(*out != NULL);
    (*out)->n_tokens = (int32_t)n;
    n_requests++;
    return ERR_OK;
}

/* ---- a line ---- */

static err_code parse(api_request *r, const char *line, size_t len, err_detail *d)
{
    const engine_info *info = model.n_ctx ? &model : NULL;
    const char *body = memchr(line, '{', len);
    const size_t n = len - (size_t)(body - line);
    switch (*line) {
    case 'm':
        return messages_request_parse(r, body, n, true, info, d);
    case 'r':
        return responses_request_parse(r, body, n, false, info, d);
    case 'c':
        return line[1] == 'o' ? responses_compact_parse(r, body, n, info, d)
                              : chat_request_parse(r, body, n, info, d);
    default:
        return err_set(d, ERR_INTERNAL, "no such dialect");
    }
}

static err_code ask(const char *line, size_t len, bytes *out)
{
    api_request r;
    err_detail d = {0};
    gen_request none, *request = &none;
    context_fit fit = {.r = &r, .prepare = prepare, .told = bytes_empty(4096)};
    api_request_init(&r);
    told = out;
    next = line + strcspn(line, " ") + 1;
    err_code err = parse(&r, line, len, &d);
    if (err == ERR_OK && line[1] == 'h') {
        r.compact_at = 1;
    }
    request = err == ERR_OK ? request : NULL;
    err = err == ERR_OK ? context_fit_prepare(&request, &fit, &d) : err;
    if (err == ERR_OK) {
        bytes left = bytes_empty(1 << 16);
        show(&left, r.in);
        bytes_printf(out, strcmp(bytes_str(&left), bytes_str(&shown)) == 0 ? "" : "< not%s\n",
                     bytes_str(&left));
        bytes_deinit(&left);
    }
    bytes_printf(out, "< %s%s%s of %lld%s%s", err_name(err), err ? ": " : "", err ? d.text : "",
                 (long long)fit.n_original, fit.asks_summary ? ", a summary " : " ", bytes_str(&fit.told));
    bytes_printf(out, "%s\n", *next == ' ' || err ? "" : ", prepared too seldom");
    CHECK((err == ERR_OK) == (request != NULL));
    __wrap_gen_request_free(request);
    CHECK_INT(n_requests, 0);
    bytes_deinit(&fit.told);
    api_request_deinit(&r);
    return err;
}

/* The same where there is no memory, at each place: there is no request then. */
static void ask_without_memory(const char *line, size_t len, const char *whole)
{
    one_fails(NULL, 0);
    bytes out = bytes_empty(1 << 16);
    (void)ask(line, len, &out);
    CHECK_STR(bytes_str(&out), whole);
    const int n = one_fails_counted("arena_calloc");
    CHECK(n > 0);
    for (int i = 1; i <= n; i++) {
        bytes_clear(&out);
        one_fails("arena_calloc", i);
        const err_code err = ask(line, len, &out);
        CHECK(one_fails_over());
        CHECK_INT(err, ERR_NOMEM);
        CHECK_HAS(bytes_str(&out), "< nomem: no memory for ");
    }
    bytes_deinit(&out);
}

static void tell(void *ctx, bytes *out, const char *line, size_t len)
{
    (void)ctx;
    if (strncmp(line, "context ", 8) == 0) {
        model = (engine_info){.n_ctx = (int32_t)strtol(line + 8, NULL, 10),
                              .has_thinking = true,
                              .has_vision = true,
                              .max_images = 4};
    } else if (len > 0 && *line != '#') {
        bytes one = bytes_empty(1 << 16);
        const err_code err = ask(line, len, &one);
        if (err == ERR_OK) {
            ask_without_memory(line, len, bytes_str(&one));
        }
        bytes_append(out, one.data, one.len);
        bytes_deinit(&one);
    }
}

int main(void)
{
    shown = bytes_empty(1 << 16);
    recorded_answers(PARLEY_SOURCE_DIR "/tests/server/protocol/context_fit.txt", tell, NULL);
    bytes_deinit(&shown);
    CHECK_DONE();
}
