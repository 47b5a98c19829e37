#include "server/upstream/upstream_rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_A_TOKEN = 4 };

static err_code bad(err_detail *d, const char *rule)
{
    return err_set(
        d, ERR_INVALID,
        "--route \"%.100s\" is no rule; write: when prompt_tokens > 30000 use MODEL (or queue > N, or media; "
        "several with \"and\")",
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

static bool read_rule(upstream_rule *r, char *text)
{
    *r = (upstream_rule){.prompt_tokens = -1, .queue = -1};
    bool ok = strcmp(next_word(&text), "when") == 0;
    for (const char *joint = "and"; ok && strcmp(joint, "and") == 0;) {
        const char *what = next_word(&text);
        ok = strcmp(what, "media") == 0           ? (r->media = true)
             : strcmp(what, "prompt_tokens") == 0 ? read_number(&r->prompt_tokens, &text)
             : strcmp(what, "queue") == 0         ? read_number(&r->queue, &text)
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
        if (!read_rule(&out->items[out->n], rule)) {
            return bad(d, text + at);
        }
        rule = comma ? comma + 1 : NULL;
    }
    return ERR_OK;
}

void upstream_rules_deinit(upstream_rules *r)
{
    free(r->text);
    memset(r, 0, sizeof *r);
}

const char *upstream_rules_choose(const upstream_rules *r, const upstream_case *c)
{
    for (size_t i = 0; i < r->n; i++) {
        const upstream_rule *one = &r->items[i];
        if (c->prompt_tokens > one->prompt_tokens && c->queue > one->queue && (c->media || !one->media)) {
            return one->model;
        }
    }
    return NULL;
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

/* The depth of a document is bounded (LIMIT_JSON_DEPTH). */
static size_t walk(const json *v, bool *has_media)
{
    size_t n = 0;
    const char *text = json_str(v, NULL);
    if (text) {
        return strncmp(text, "data:", 5) == 0 ? 0 : strlen(text);
    }
    if (json_is(v, JSON_OBJECT)) {
        *has_media = *has_media || is_media(json_str(json_get(v, "type"), ""));
    }
    const bool is_bytes = json_is(v, JSON_OBJECT) && strcmp(json_str(json_get(v, "type"), ""), "base64") == 0;
    for (const json *child = is_bytes ? NULL : json_child(v); child; child = json_next(child)) {
        n += json_is(child, JSON_NUMBER) ? BYTES_A_TOKEN : walk(child, has_media); /* a prompt of token ids */
    }
    return n;
}

void upstream_case_read(upstream_case *out, const json *body)
{
    out->media = false;
    out->prompt_tokens = (int64_t)(walk(body, &out->media) / BYTES_A_TOKEN);
}
