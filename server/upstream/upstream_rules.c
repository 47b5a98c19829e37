#include "server/upstream/upstream_rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_A_TOKEN = 4 };

static err_code bad(err_detail *d, const char *rule)
{
    return err_set(d, ERR_INVALID,
                   "--route \"%.100s\" is no rule; write: when prompt_tokens > 30000 use MODEL (or > "
                   "context, queue > N, "
                   "media, key N; several with \"and\")",
                   rule);
}

/* The next word, which is cut off; "" at the end. */
static char *next_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t");
    char *end = word + strcspn(word, " \t");
    *rest = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

static bool read_number(int64_t *out, char **rest)
{
    char *end;
    const char *sign = next_word(rest), *digits = next_word(rest);
    if (strcmp(sign, ">") != 0 || !isdigit((unsigned char)digits[0])) {
        return false;
    }
    *out = strtoll(digits, &end, 10);
    return *end == '\0';
}

static bool read_key(int64_t *out, char **rest)
{
    char *end;
    const char *digits = next_word(rest);
    *out = isdigit((unsigned char)digits[0]) ? strtoll(digits, &end, 10) : 0;
    return *out > 0 && *end == '\0';
}

static bool read_tokens(int64_t *out, char **rest)
{
    char *before = *rest;
    const size_t n = strspn(before, " \t>");
    const size_t len = strcspn(before + n, " \t");
    if (memchr(before, '>', n) && len == strlen("context") && memcmp(before + n, "context", len) == 0) {
        *rest = before + n + len;
        *out = UPSTREAM_CONTEXT;
        return true;
    }
    return read_number(out, rest);
}

static bool read_rule(upstream_rule *r, char *text)
{
    *r = (upstream_rule){.prompt_tokens = -1, .queue = -1};
    bool ok = strcmp(next_word(&text), "when") == 0;
    for (const char *joint = "and"; ok && strcmp(joint, "and") == 0;) {
        const char *what = next_word(&text);
        ok = strcmp(what, "media") == 0           ? (r->media = true)
             : strcmp(what, "prompt_tokens") == 0 ? read_tokens(&r->prompt_tokens, &text)
             : strcmp(what, "queue") == 0         ? read_number(&r->queue, &text)
             : strcmp(what, "key") == 0           ? read_key(&r->key, &text)
                                                  : false;
        joint = next_word(&text);
        ok = ok && (strcmp(joint, "and") == 0 || strcmp(joint, "use") == 0);
    }
    r->model = next_word(&text);
    return ok && r->model[0] && next_word(&text)[0] == '\0';
}

err_code upstream_rules_read(upstream_rules *out, const char *text, err_detail *d)
{
    memset(out, 0, sizeof *out);
    if (!text) {
        return ERR_OK;
    }
    out->text = strdup(text);
    if (!out->text) {
        return err_set(d, ERR_NOMEM, "no memory for the server");
    }
    for (char *rule = out->text; rule; out->n++) {
        char *comma = strchr(rule, ',');
        const size_t at = (size_t)(rule - out->text);
        if (comma) {
            *comma = '\0';
        }
        if (out->n == UPSTREAM_RULES) {
            return err_set(d, ERR_INVALID, "--route: at most %d rules are possible", UPSTREAM_RULES);
        }
        upstream_rule *one = &out->items[out->n];
        char *whole = strdup(rule + strspn(rule, " \t"));
        if (!whole) {
            return err_set(d, ERR_NOMEM, "no memory for the server");
        }
        const bool is_right = read_rule(one, rule);
        one->text = whole;
        if (!is_right) {
            out->n++; /* it is freed with the others */
            return bad(d, text + at);
        }
        rule = comma ? comma + 1 : NULL;
    }
    return ERR_OK;
}

void upstream_rules_deinit(upstream_rules *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->items[i].text);
    }
    free(r->text);
    memset(r, 0, sizeof *r);
}

static bool is_longer(const upstream_rule *r, const upstream_case *c)
{
    return r->prompt_tokens == UPSTREAM_CONTEXT ? c->context > 0 && c->prompt_tokens > c->context
                                                : c->prompt_tokens > r->prompt_tokens;
}

const upstream_rule *upstream_rules_choose(const upstream_rules *r, const upstream_case *c)
{
    for (size_t i = 0; i < r->n; i++) {
        const upstream_rule *one = &r->items[i];
        if (is_longer(one, c) && c->queue > one->queue && (one->key == 0 || c->key == one->key) &&
            (c->media || !one->media)) {
            return one;
        }
    }
    return NULL;
}

bool upstream_rules_count(const upstream_rules *r)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->items[i].prompt_tokens >= 0) {
            return true;
        }
    }
    return false;
}

/* ---- a body ---- */

static bool is_media(const char *type)
{
    static const char *const TYPES[] = {"image_url", "input_image", "image",
                                        "video_url", "input_video", "video"};
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        if (strcmp(type, TYPES[i]) == 0) {
            return true;
        }
    }
    return false;
}

typedef struct counting {
    upstream_case *out;
    upstream_count_fn *count;
    void *ctx;
} counting;

/* Where the texts of a prompt stand, in the bodies of all dialects. Names, types and ids are not read by a model. */
static bool is_prompt(const char *key)
{
    static const char *const KEYS[] = {
        "content",  "text",   "input",       "prompt",    "instructions", "system",           "arguments",
        "thinking", "output", "description", "reasoning", "tools",        "reasoning_content"};
    for (size_t i = 0; key && i < ARRAY_LEN(KEYS); i++) {
        if (strcmp(key, KEYS[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* in_prompt: v is a text of the prompt, or a list of such. The depth of a document is bounded (LIMIT_JSON_DEPTH). */
static void walk(const counting *c, const json *v, bool in_prompt)
{
    const char *text = json_str(v, NULL), *type = json_str(json_get(v, "type"), "");
    if (text && in_prompt && strncmp(text, "data:", 5) != 0) {
        const size_t len = strlen(text);
        const int64_t n = c->count ? c->count(c->ctx, text, len) : -1;
        c->out->prompt_tokens += n >= 0 ? n : (int64_t)(len / BYTES_A_TOKEN);
    }
    const bool is_object = json_is(v, JSON_OBJECT);
    if (is_object) {
        c->out->media = c->out->media || is_media(type);
    }
    for (const json *child = text ? NULL : json_child(v); child; child = json_next(child)) {
        if (json_is(child, JSON_NUMBER)) {
            c->out->prompt_tokens += in_prompt && !is_object; /* of a prompt of token ids */
        } else {
            walk(c, child, is_object ? is_prompt(json_key(child)) : in_prompt);
        }
    }
}

void upstream_case_read(upstream_case *out, const json *body, upstream_count_fn *count, void *ctx)
{
    out->media = false;
    out->prompt_tokens = 0;
    walk(&(counting){out, count, ctx}, body, false);
}
