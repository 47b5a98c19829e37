#include "text/jinja/chat_template.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "text/jinja/jinja_library.h"

/* The tree of a template is many times larger than its text. */
enum { TREE_FACTOR = 256, MEMORY_BLOCK = 1 << 16 };
static const size_t TREE_BYTES = (size_t)8 << 20;

struct chat_template {
    arena *arena;
    jinja_program program;
    const char *text;
    added_tokens markers;
};

err_code chat_template_compile(chat_template **out, const char *text, size_t len, err_detail *detail)
{
    *out = NULL;
    if (len > LIMIT_TEMPLATE_BYTES) {
        return err_set(detail, ERR_LIMIT, "the chat template has %zu bytes; at most %zu are allowed", len,
                       LIMIT_TEMPLATE_BYTES);
    }
    if (!utf8_valid(text, len)) {
        return err_set(detail, ERR_INVALID, "the chat template is not valid UTF-8");
    }
    chat_template *t = calloc(1, sizeof *t);
    if (t) {
        t->arena = arena_create(TREE_BYTES + TREE_FACTOR * len);
    }
    if (!t || !t->arena) {
        free(t);
        return err_set(detail, ERR_NOMEM, "no memory for the chat template");
    }
    t->text = arena_strdup(t->arena, text, len);
    if (!t->text) {
        chat_template_close(t);
        return err_set(detail, ERR_NOMEM, "no memory for the chat template");
    }
    err_code err = jinja_parse(&t->program, text, len, t->arena, detail);
    if (!err) {
        err = guard_read_markers(&t->markers, text, len, detail);
    }
    if (err) {
        chat_template_close(t);
        return err;
    }
    *out = t;
    return ERR_OK;
}

void chat_template_close(chat_template *t)
{
    if (t) {
        added_tokens_deinit(&t->markers);
        arena_destroy(t->arena);
        free(t);
    }
}

const char *chat_template_text(const chat_template *t)
{
    return t->text;
}

const char *chat_template_unknown(const chat_template *t)
{
    return t->program.unknown;
}

const added_tokens *chat_template_markers(const chat_template *t)
{
    return &t->markers;
}

bool chat_template_has_variable(const chat_template *t, const char *name)
{
    for (size_t i = 0; i < t->program.n_symbols; i++) {
        const jinja_symbol *s = &t->program.symbols[i];
        if (s->is_read && strcmp(s->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Gives every name of the template its value: from vars, or a global function of that name. */
static bool fill_root(jinja_render *r, const jinja_value *vars)
{
    const jinja_program *p = r->program;
    r->root = jinja_alloc(&r->m, p->n_symbols * sizeof *r->root);
    r->root_set = jinja_alloc(&r->m, p->n_symbols * sizeof *r->root_set);
    for (size_t i = 0; i < p->n_symbols && !r->m.failed; i++) {
        if (strcmp(p->symbols[i].name, "add_generation_prompt") == 0) {
            r->invite = (int32_t)i;
        }
        const jinja_value *v = jinja_map_get_text(vars->as.map, p->symbols[i].name, p->symbols[i].len);
        const jinja_callable *f = v ? NULL : jinja_find_global(p->symbols[i].name, p->symbols[i].len);
        r->root_set[i] = v || f;
        if (v) {
            r->root[i] = *v;
        } else if (f) {
            r->root[i] = (jinja_value){.type = JINJA_FUNCTION, .as.callable = f};
        }
    }
    const jinja_value *now = jinja_map_get_text(vars->as.map, CHAT_TEMPLATE_NOW, strlen(CHAT_TEMPLATE_NOW));
    if (!now || !jinja_as_int(now, &r->now)) {
        r->now = (int64_t)time(NULL);
    }
    return jinja_check_memory(r);
}

/* The list that the spans of a trace are of; NULL: there is none. */
static const jinja_seq *traced_messages(const chat_template_trace *trace, const jinja_value *vars)
{
    static const char NAME[] = "messages";
    const jinja_value *v =
        trace && trace->spans ? jinja_map_get_text(vars->as.map, NAME, sizeof NAME - 1) : NULL;
    return v && v->type == JINJA_LIST ? v->as.seq : NULL;
}

static void fill_trace(chat_template_trace *trace, const jinja_render *r, size_t before)
{
    trace->history_len = r->err ? 0 : r->history_end - before;
    trace->is_torn = r->is_torn;
    for (size_t i = 0; r->messages && i < r->messages->len; i++) {
        trace->spans[i].begin -= trace->spans[i].end ? before : 0;
        trace->spans[i].end -= trace->spans[i].end ? before : 0;
    }
}

err_code chat_template_render(const chat_template *t, bytes *out, chat_template_trace *trace,
                              const jinja_value *vars, const guard *g, arena *a, err_detail *detail)
{
    if (!vars || vars->type != JINJA_DICT) {
        return arena_lacked_memory(a)
                   ? err_set(detail, ERR_NOMEM, "no memory for the chat template's variables")
                   : err_set(detail, ERR_LIMIT,
                             "the chat template's variables do not fit the memory for rendering it");
    }
    jinja_render r = {.program = &t->program,
                      .m = {.arena = a, .block = MEMORY_BLOCK},
                      .out = out,
                      .guard = g,
                      .begin = out->len,
                      .own_from = out->len,
                      .invite = -1,
                      .history_end = out->len,
                      .messages = traced_messages(trace, vars),
                      .spans = trace ? trace->spans : NULL,
                      .line = 1,
                      .detail = detail};
    size_t before = out->len;
    if (r.messages) {
        memset(r.spans, 0, r.messages->len * sizeof *r.spans);
    }
    bytes_init(&r.capture, out->max);
    if (fill_root(&r, vars)) {
        jinja_exec(&r, t->program.body);
    }
    jinja_check_memory(&r);
    bytes_deinit(&r.capture);
    if (r.err && out->data) {
        out->len = before;
        out->data[before] = '\0';
    }
    if (trace) {
        fill_trace(trace, &r, before);
    }
    return r.err;
}
