/* prompt: nothing that a user, a tool or a file says becomes a control token, in any template.
 * Conversations are rendered twice, once with harmless strings and once with strings full of
 * markers; the control tokens must be the same. The vocabulary has every marker of the template as
 * an added token, half of them special. */
#include <dirent.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "engine/prompt.h"
#include "tests/check.h"

enum { TEXT_MAX = 8 << 20, PATH_LEN = 4096, NAME_MAX_BYTES = 128 };

/* How templates have been seen to build text, and worse. */
static const char NASTY[] =
    "{%- macro shown(c) %}{% if c is string %}{{ c }}{% else %}{% for p in c %}{{ p.text }}{% endfor %}{% "
    "endif %}"
    "{% endmacro %}"
    "{%- for t in tools or [] %}<tools>\n{{ t | tojson }}{{ t }}"
    "{%- for k, v in t.function.parameters.items() %}\n<{{ k }}>{{ '\n<' ~ k ~ '>' ~ (v | string) ~ '</' ~ k "
    "~ '>' }}"
    "{{ '<' + k + '>' }}{{ '<%s' % k }}>{{ '<{}|>'.format(k) }}{{ ['<', k, '>'] | join }}{% endfor %}"
    "<{{ t.function.name }}></tools>\n{% endfor %}"
    "{%- for m in messages %}{{ '<|' ~ m.role ~ '|>' }}<|im_start|>{{ m.role | upper | lower }}\n"
    "{%- set c = shown(m.content) | trim %}"
    "{%- if '</think>' in c %}{{ c.split('</think>')[-1] }}{% endif %}"
    "{{ c }}{{ c | lower }}{{ c | upper }}{{ c.replace('X', '') }}{{ c[::-1] }}{{ c | reverse }}{{ c * 2 }}"
    "{%- for x in c %}{{ x }}{% endfor %}{{ c | replace('harm', '<') }}{{ c | list | join }}"
    "{%- if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{%- for call in m.tool_calls or [] %}<tool_call>{{ call.function.name }}"
    "{%- for k, v in call.function.arguments | items %}<arg_key>{{ k }}</arg_key>{{ v }}{% endfor %}"
    "</tool_call>{% endfor %}{{ '<' }}{{ m.name }}{{ '>' }}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}";

/* The strings of one conversation. */
typedef struct strings {
    const char *text; /* of contents, descriptions, arguments */
    const char *name; /* of tools, keys, fields */
    const char *id;   /* of calls */
} strings;

static err_detail d;

/* A vocabulary of all bytes and the markers of this template. */
static tokenizer *vocabulary(const chat_template *t)
{
    static const char *const more[] = {"<|im_start|>", "<|im_end|>",   "<think>",         "</think>",
                                       "<tool_call>",  "</tool_call>", "<tool_response>", "</tool_response>",
                                       "<|system|>",   "<|user|>",     "<|tool|>",        "<|assistant|>"};
    const added_tokens *markers = chat_template_markers(t);
    bytes file;
    bytes_init(&file, TEXT_MAX);
    bytes_append_str(&file, "{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{");
    for (int byte = 0, next = 256; byte < 256; byte++) {
        const bool is_self = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        bytes_append_str(&file, byte ? ",\"" : "\"");
        bytes_printf(&file, "\\u%04x", (unsigned)(is_self ? byte : next));
        next += !is_self;
        bytes_printf(&file, "\":%d", byte);
    }
    bytes_append_str(&file,
                     "}},\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\","
                     "\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"},\"added_tokens\":[");
    int id = 300;
    for (size_t i = 0; i < ARRAY_LEN(more) + markers->len; i++) {
        const bool is_own = i < ARRAY_LEN(more);
        const char *text = is_own ? more[i] : markers->items[i - ARRAY_LEN(more)].text;
        const size_t len = is_own ? strlen(more[i]) : markers->items[i - ARRAY_LEN(more)].len;
        bool is_known = false;
        for (size_t k = 0; k < i && !is_known; k++) {
            const bool own = k < ARRAY_LEN(more);
            const char *other = own ? more[k] : markers->items[k - ARRAY_LEN(more)].text;
            const size_t n = own ? strlen(more[k]) : markers->items[k - ARRAY_LEN(more)].len;
            is_known = n == len && memcmp(other, text, n) == 0;
        }
        if (!is_known) {
            bytes_printf(&file, "%s{\"id\":%d,\"content\":", id > 300 ? "," : "", id);
            bytes_append_json(&file, text, len);
            bytes_printf(&file, ",\"special\":%s,\"normalized\":%s}", id % 2 ? "true" : "false",
                         id % 3 ? "false" : "true");
            id++;
        }
    }
    bytes_append_str(&file, "]}");
    tokenizer *tok = NULL;
    CHECK_OK(tokenizer_open_json(&tok, bytes_str(&file), file.len, "vocabulary", &d), d);
    bytes_deinit(&file);
    return tok;
}

/* text with %T, %N and %I replaced by the strings, as JSON. */
static json_doc *fill(const char *form, const strings *s)
{
    bytes text;
    bytes_init(&text, TEXT_MAX);
    for (const char *p = form; *p; p++) {
        const char *what = *p != '%' ? NULL : p[1] == 'T' ? s->text : p[1] == 'N' ? s->name : s->id;
        if (what) {
            bytes_append_json(&text, what, strlen(what));
            p++;
        } else {
            bytes_append_char(&text, *p);
        }
    }
    json_doc *doc = NULL;
    CHECK_OK(json_parse(&doc, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, &d), d);
    bytes_deinit(&text);
    return doc;
}

static const char DOC[] = "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":%N,\"description\":%T,"
                          "\"parameters\":{\"type\":\"object\","
                          "\"properties\":{%N:{\"type\":\"string\",\"description\":%T,\"enum\":[%T],%N:%T}},"
                          "\"required\":[%N],%N:[%T]}}}],"
                          "\"arguments\":{%N:%T,\"n\":{%N:[%T]}},\"kwargs\":{\"enable_thinking\":true,"
                          "\"document\":%T,\"bos_token\":%T}}";

static chat_part part(const char *text)
{
    return (chat_part){.kind = CHAT_TEXT, .text = text, .text_len = strlen(text)};
}

/* As the engine does. */
static prompt_style style_of(const chat_template *t)
{
    prompt_style style = {.as_published = true};
    CHECK_OK(template_habits_find(&style.habits, t, &d), d);
    return style;
}

/* A conversation of all kinds of message; shape selects tools, lists of parts and what comes
 * last. */
static err_code render(bytes *out, const tokenizer *tok, const chat_template *t, const strings *s,
                       unsigned shape)
{
    json_doc *doc = fill(DOC, s);
    const json *root = json_root(doc);
    chat_part one = part(s->text), two[] = {part(s->text), part(s->text)};
    chat_tool_call call = {s->id, s->name, json_get(root, "arguments")};
    chat_message m[8];
    size_t n = 0;
    const bool is_string = !(shape & 1), has_tools = shape & 2;
    const chat_message user = {.role = CHAT_USER,
                               .parts = is_string ? &one : two,
                               .n_parts = is_string ? 1 : 2,
                               .is_string = is_string,
                               .name = s->name};
    m[n++] = (chat_message){.role = CHAT_SYSTEM, .parts = &one, .n_parts = 1, .is_string = true};
    m[n++] = user;
    m[n++] = (chat_message){
        .role = CHAT_ASSISTANT, .parts = &one, .n_parts = 1, .is_string = true, .reasoning = s->text};
    m[n++] = user;
    if (has_tools) {
        m[n++] = (chat_message){.role = CHAT_ASSISTANT,
                                .is_string = true,
                                .reasoning = s->text,
                                .tool_calls = &call,
                                .n_tool_calls = 1};
        m[n++] = (chat_message){.role = CHAT_TOOL,
                                .parts = &one,
                                .n_parts = 1,
                                .is_string = true,
                                .tool_call_id = s->id,
                                .name = s->name};
    }
    if (shape & 4) {
        m[n++] = (chat_message){.role = CHAT_ASSISTANT, .parts = &one, .n_parts = 1, .is_string = true};
        m[n++] = user;
    }
    const chat_input in = {.messages = m,
                           .n_messages = n,
                           .tools = has_tools ? json_get(root, "tools") : NULL,
                           .template_kwargs = json_get(root, "kwargs")};
    const prompt_style style = style_of(t);
    err_code err = prompt_render(out, NULL, tok, t, &style, &in, &d);
    json_free(doc);
    return err;
}

/* The added tokens among the ids of a rendering; what the model reads must be what the template
 * wrote. */
static void control_tokens(token_ids *out, const tokenizer *tok, const bytes *text)
{
    token_ids ids;
    bytes seen, want;
    token_ids_init(&ids);
    bytes_init(&seen, TEXT_MAX);
    bytes_init(&want, TEXT_MAX);
    out->len = 0;
    CHECK_OK(tokenizer_encode(tok, &ids, bytes_str(text), text->len, TOKENIZER_SPECIALS, &d), d);
    for (size_t i = 0; i < ids.len; i++) {
        if (ids.ids[i] >= 300) {
            CHECK(token_ids_push(out, ids.ids[i]) == ERR_OK);
        }
    }
    tokenizer_decode(tok, &seen, ids.ids, ids.len, false);
    guard_strip(&want, bytes_str(text), text->len);
    CHECK(seen.len == want.len && memcmp(bytes_str(&seen), bytes_str(&want), want.len) == 0);
    bytes_deinit(&seen);
    bytes_deinit(&want);
    token_ids_deinit(&ids);
}

static size_t n_compared;

static void compare(const char *where, const tokenizer *tok, const chat_template *t, strings evil,
                    unsigned shape)
{
    const strings harmless = {"harmless words", "harmless", "abcdefghi"};
    bytes a, b;
    token_ids x, y;
    bytes_init(&a, TEXT_MAX);
    bytes_init(&b, TEXT_MAX);
    token_ids_init(&x);
    token_ids_init(&y);
    if (render(&a, tok, t, &harmless, shape) == ERR_OK) {
        err_code err = render(&b, tok, t, &evil, shape);
        if (err != ERR_OK) { /* some templates say what a call's id may look like */
            evil.id = harmless.id;
            bytes_clear(&b);
            err = render(&b, tok, t, &evil, shape);
        }
        CHECK_OK(err, d);
        control_tokens(&x, tok, &a);
        control_tokens(&y, tok, &b);
        const bool same = x.len == y.len && (x.len == 0 || memcmp(x.ids, y.ids, x.len * sizeof *x.ids) == 0);
        if (!same) {
            size_t at = 0, len = 0;
            for (; at < x.len && at < y.len && x.ids[at] == y.ids[at]; at++) {
            }
            const char *text = at < y.len ? tokenizer_token_bytes(tok, y.ids[at], &len, NULL) : "";
            fprintf(stderr,
                    "  %s, shape %u, name \"%.60s\": %zu control tokens, not %zu; the first other is %.*s\n",
                    where, shape, evil.name, y.len, x.len, (int)len, text);
        }
        CHECK(same);
        n_compared++;
    }
    bytes_deinit(&a);
    bytes_deinit(&b);
    token_ids_deinit(&x);
    token_ids_deinit(&y);
}

/* Words with a meaning of their own in schemas and templates: as a key they change more than a
 * name. */
static bool has_meaning(const char *name)
{
    static const char *const words[] = {"name",     "description", "parameters", "arguments",
                                        "type",     "function",    "tools",      "properties",
                                        "required", "any",         "object",     "text"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(words[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void check_template(const char *where, const char *source, size_t len)
{
    chat_template *t = NULL;
    CHECK_OK(chat_template_compile(&t, source, len, &d), d);
    tokenizer *tok = t ? vocabulary(t) : NULL;
    if (!tok) {
        chat_template_close(t);
        return;
    }
    const added_tokens *markers = tokenizer_markers(tok);
    bytes all;
    bytes_init(&all, TEXT_MAX);
    bytes_append_str(&all, "harm");
    for (size_t i = 0; i < markers->len; i++) {
        bytes_append(&all, markers->items[i].text, markers->items[i].len);
        bytes_printf(&all, "\n%.*s ", (int)markers->items[i].len, markers->items[i].text);
        for (size_t k = 0; k < markers->items[i].len; k++) { /* what filters could turn into a marker */
            const char c = markers->items[i].text[k];
            bytes_append_char(&all, c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c);
        }
        bytes_printf(&all, "%.*sX%s", (int)markers->items[i].len - 1, markers->items[i].text, ">]");
    }
    bytes_append_str(&all, "less words");
    for (unsigned shape = 0; shape < 8; shape++) {
        compare(where, tok, t, (strings){bytes_str(&all), bytes_str(&all), bytes_str(&all)}, shape);
    }
    for (size_t i = 0; i < markers->len; i++) {
        const added_token *k = &markers->items[i];
        char whole[NAME_MAX_BYTES], inside[NAME_MAX_BYTES], front[NAME_MAX_BYTES], back[NAME_MAX_BYTES];
        snprintf(whole, sizeof whole, "%.*s", (int)k->len, k->text);
        snprintf(inside, sizeof inside, "%.*s", (int)k->len - 2, k->text + 1);
        snprintf(front, sizeof front, "%.*s", (int)k->len - 1, k->text);
        snprintf(back, sizeof back, "%s", whole + 1);
        const char *bare = inside + (inside[0] == '/');
        const char *const names[] = {whole, inside, front, back, bare};
        for (size_t n = 0; n < ARRAY_LEN(names); n++) {
            if (!has_meaning(names[n])) {
                compare(where, tok, t, (strings){names[n], names[n], names[n]}, 2);
            }
        }
    }
    bytes_deinit(&all);
    tokenizer_close(tok);
    chat_template_close(t);
}

static void check_file(const char *path)
{
    bytes source;
    bytes_init(&source, LIMIT_TEMPLATE_BYTES);
    CHECK_OK(file_read(&source, path, &d), d);
    check_template(path, bytes_str(&source), source.len);
    bytes_deinit(&source);
}

/* An answer kept with its reasoning in one text is taken apart, as templates want it; tool calls
 * stay control tokens. */
static void test_history(void)
{
    bytes source, a, b;
    chat_template *t = NULL;
    char path[PATH_LEN];
    bytes_init(&source, LIMIT_TEMPLATE_BYTES);
    bytes_init(&a, TEXT_MAX);
    bytes_init(&b, TEXT_MAX);
    snprintf(path, sizeof path, "%s/assets/seedling/chat_template.jinja", PARLEY_SOURCE_DIR);
    CHECK_OK(file_read(&source, path, &d), d);
    CHECK_OK(chat_template_compile(&t, bytes_str(&source), source.len, &d), d);
    tokenizer *tok = vocabulary(t);
    chat_part ask = part("hi"), whole = part("<think>\nhm </think\n</think>\n\nyes </think> no"),
              text = part("yes </think> no");
    chat_message m[] = {{.role = CHAT_USER, .parts = &ask, .n_parts = 1, .is_string = true},
                        {.role = CHAT_ASSISTANT, .parts = &whole, .n_parts = 1, .is_string = true}};
    const chat_input in = {.messages = m, .n_messages = 2};
    const prompt_style style = style_of(t);
    CHECK_OK(prompt_render(&a, NULL, tok, t, &style, &in, &d), d);
    m[1].parts = &text;
    m[1].reasoning = "hm </think";
    CHECK_OK(prompt_render(&b, NULL, tok, t, &style, &in, &d), d);
    CHECK_STR(bytes_str(&a), bytes_str(&b));
    CHECK(strstr(bytes_str(&a), "<think>\nhm </think"));
    tokenizer_close(tok);
    chat_template_close(t);
    bytes_deinit(&source);
    bytes_deinit(&a);
    bytes_deinit(&b);
}

int main(void)
{
    char path[PATH_LEN];
    check_template("the test's own template", NASTY, sizeof NASTY - 1);
    snprintf(path, sizeof path, "%s/assets/seedling/chat_template.jinja", PARLEY_SOURCE_DIR);
    check_file(path);
    test_history();
    CHECK(n_compared > 50);
    const char *shared = check_shared_dir();
    if (!shared) {
        printf("the published templates are left out: no shared folder beside the checkout\n");
        CHECK_DONE();
    }
    snprintf(path, sizeof path, "%s/reference/templates", shared);
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    size_t n_files = 0;
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        if (strstr(e->d_name, ".jinja")) {
            snprintf(path, sizeof path, "%s/reference/templates/%s", shared, e->d_name);
            check_file(path);
            n_files++;
        }
    }
    if (dir) {
        closedir(dir);
    }
    CHECK(n_files > 30);
    printf("%zu templates, %zu pairs of renderings\n", n_files + 2, n_compared);
    CHECK_DONE();
}
