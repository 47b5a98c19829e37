/* upstream_config and upstream_rules: what options name, what is refused, and which rule fits. */
#include "server/upstream/upstream_config.h"

#include "base/limits.h"
#include "server/media/fetch.h"
#include "server/upstream/upstream_models.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/said.h"

static upstream_config c;

/* "" if the settings are taken, else the error. c stays until the next call. */
static const char *read_all(upstream_settings s)
{
    static err_detail d;
    memset(&d, 0, sizeof d);
    upstream_config_deinit(&c);
    const err_code err = upstream_config_read(&c, &s, &d);
    CHECK(err == ERR_OK || (err == ERR_INVALID && d.text[0]));
    return d.text;
}

#define TAKEN(...) CHECK_STR(read_all((upstream_settings){__VA_ARGS__}), "")
#define REFUSED(part, ...)                                                                                   \
    do {                                                                                                     \
        const char *said = read_all((upstream_settings){__VA_ARGS__});                                       \
        if (!strstr(said, part)) {                                                                           \
            fprintf(stderr, "said: %s\n", said);                                                             \
            CHECK(!part);                                                                                    \
        }                                                                                                    \
    } while (0)

static void append(char *text, size_t cap, const char *more)
{
    snprintf(text + strlen(text), cap - strlen(text), "%s", more);
}

static void test_urls(void)
{
    static const char *const GOOD[][2] = {
        {"http://h:1", "http://h:1/v1"},     {"https://h/", "https://h/v1"},
        {"http://h/v1//", "http://h/v1"},    {"http://h/v2", "http://h/v2"},
        {"http://h/api", "http://h/api/v1"}, {"http://h/api/v1beta", "http://h/api/v1beta"},
        {"http://h/v", "http://h/v/v1"},     {"http://v1", "http://v1/v1"},
        {"http://h/vx", "http://h/vx/v1"},
    };
    static const char *const BAD[] = {"h:1", "ftp://h", "http://u@h", "http://h?x", "http://h/#x", "http://"};
    char out[64];
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        CHECK(upstream_base_url(out, sizeof out, GOOD[i][0]));
        CHECK_STR(out, GOOD[i][1]);
    }
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        CHECK(!upstream_base_url(out, sizeof out, BAD[i]));
    }
    CHECK(upstream_base_url(out, sizeof "http://h:1/v1", "http://h:1"));
    CHECK(!upstream_base_url(out, sizeof "http://h:1/v1" - 1, "http://h:1"));
}

static void test_servers(void)
{
    TAKEN(.servers = "a=http://h:1,http://h:2/, b-1.x=https://g/v2");
    CHECK_INT(c.n_servers, 2);
    CHECK_STR(c.servers[0].name, "a");
    CHECK_INT(c.servers[0].n_urls, 2);
    CHECK_STR(c.servers[0].urls[1], "http://h:2/v1");
    CHECK_STR(c.servers[1].name, "b-1.x");
    CHECK_STR(c.servers[1].urls[0], "https://g/v2");
    CHECK(c.servers[0].key == NULL && c.servers[0].max_pixels == 0 &&
          c.servers[0].video == UPSTREAM_VIDEO_AUTO);
    CHECK(!c.local_only && c.connect_timeout_s > 0 && c.silence_timeout_s > 0);
    TAKEN(.servers = "a=http://h", .local_only = true, .connect_timeout_s = 3, .silence_timeout_s = 4);
    CHECK(c.local_only && c.connect_timeout_s == 3 && c.silence_timeout_s == 4);
    REFUSED("a name is missing", .servers = "http://h");
    REFUSED("a name is missing", .servers = "http://h/a=b");
    TAKEN(.servers = "a=http://h,http://g/x=y//");
    CHECK_INT(c.n_servers, 1);
    CHECK_STR(c.servers[0].urls[1], "http://g/x=y/v1");
    char is_long[FETCH_URL_MAX + 64]; /* an address of a few bytes more or less, with its name */
    for (int n = FETCH_URL_MAX - 1; n <= FETCH_URL_MAX + UPSTREAM_NAME_MAX; n++) {
        snprintf(is_long, sizeof is_long, "%0*d", n, 0);
        memcpy(is_long, "a=http://h/", 11);
        const char *said = read_all((upstream_settings){.servers = is_long});
        const bool fits = n < FETCH_URL_MAX + 2, is_cut = n >= FETCH_URL_MAX + UPSTREAM_NAME_MAX;
        CHECK_INT(said[0] == '\0', fits);
        CHECK_INT(strstr(said, "an address is longer than 4096 bytes") != NULL, is_cut);
    }
    REFUSED("is no name", .servers = "a/b=http://h");
    REFUSED("is no name", .servers = "=http://h");
    REFUSED("given twice", .servers = "a=http://h,a=http://g");
    REFUSED("twice", .servers = "a=http://h,http://h/");
    REFUSED("has no scheme", .servers = "a=h:1");
    REFUSED("no address of a server", .servers = "a=http://u@h");
    TAKEN(.servers = "abcdefghijklmnopqrstuvwxyz123456=http://h");
    REFUSED("is no name", .servers = "abcdefghijklmnopqrstuvwxyz1234567=http://h");
    char many[4096] = "";
    for (int i = 0; i < UPSTREAM_SERVERS; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "s%d=http://h,", i);
    }
    TAKEN(.servers = many);
    append(many, sizeof many, "x=http://h");
    REFUSED("at most 16", .servers = many);
    many[0] = '\0';
    append(many, sizeof many, "a=");
    for (int i = 0; i < UPSTREAM_REPLICAS; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "http://h:%d,", i + 1);
    }
    TAKEN(.servers = many);
    CHECK_INT(c.servers[0].n_urls, UPSTREAM_REPLICAS);
    append(many, sizeof many, "http://h:99");
    REFUSED("more than 16 addresses", .servers = many);
}

static void test_settings(void)
{
    const char *two = "a=http://h,b=http://g";
    setenv("TEST_KEY", "secret", 1);
    setenv("TEST_LINES", "a\nb", 1);
    setenv("TEST_EMPTY", "", 1);
    TAKEN(.servers = two, .keys = "b=TEST_KEY");
    CHECK(c.servers[0].key == NULL);
    CHECK_STR(c.servers[1].key, "secret");
    setenv("TEST_LETTER", "k", 1);
    TAKEN(.servers = two, .keys = "a=TEST_LETTER");
    CHECK_STR(c.servers[0].key, "k");
    setenv("TEST_LETTER", "\n", 1);
    REFUSED("more than one line", .servers = two, .keys = "a=TEST_LETTER");
    REFUSED("NAME=VARIABLE", .servers = two, .keys = "b");
    REFUSED("NAME=VARIABLE", .servers = two, .keys = "b=");
    REFUSED("no --upstream has the name x", .servers = two, .keys = "x=TEST_KEY");
    REFUSED("there are two for a", .servers = two, .keys = "a=TEST_KEY,a=TEST_KEY");
    REFUSED("empty or not set", .servers = two, .keys = "a=TEST_EMPTY");
    REFUSED("empty or not set", .servers = two, .keys = "a=TEST_NOT_THERE");
    REFUSED("more than one line", .servers = two, .keys = "a=TEST_LINES");

    TAKEN(.servers = two, .models = "big=a/org/model,small=b/m");
    CHECK_INT(c.n_aliases, 2);
    CHECK_STR(c.aliases[0].name, "big");
    CHECK_STR(c.aliases[0].model, "a/org/model");
    REFUSED("ALIAS=NAME/ID", .servers = two, .models = "big");
    REFUSED("ALIAS=NAME/ID", .servers = two, .models = "big=a");
    REFUSED("ALIAS=NAME/ID", .servers = two, .models = "big=a/");
    REFUSED("ALIAS=NAME/ID", .servers = two, .models = "=a/m");
    REFUSED("no --upstream has the name c", .servers = two, .models = "big=c/m");
    REFUSED("take another", .servers = two, .models = "default=a/m");
    REFUSED("given twice", .servers = two, .models = "x=a/m,x=b/m");
    char many[4096] = "";
    for (int i = 0; i < UPSTREAM_ALIASES; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "m%d=a/m,", i);
    }
    TAKEN(.servers = two, .models = many);
    append(many, sizeof many, "x=a/m");
    REFUSED("at most 64", .servers = two, .models = many);

    TAKEN(.servers = two, .videos = "a=frames,b=url", .pixels = "b=1024");
    CHECK_INT(c.servers[0].video, UPSTREAM_VIDEO_FRAMES);
    CHECK_INT(c.servers[1].video, UPSTREAM_VIDEO_URL);
    CHECK_INT(c.servers[1].max_pixels, 1024);
    CHECK_INT(c.servers[0].max_pixels, 0);
    TAKEN(.servers = two, .videos = "a=none,b=auto");
    CHECK_INT(c.servers[0].video, UPSTREAM_VIDEO_NONE);
    REFUSED("neither auto", .servers = two, .videos = "a=some");
    REFUSED("NAME=VALUE", .servers = two, .videos = "a");
    REFUSED("no --upstream has the name x", .servers = two, .videos = "x=url");
    REFUSED("--upstream-pixels", .servers = two, .pixels = "a=1023");
    REFUSED("--upstream-pixels", .servers = two, .pixels = "a=9x");
    REFUSED("--upstream-pixels", .servers = two, .pixels = "a=");
    char most[64];
    snprintf(most, sizeof most, "a=%lld", (long long)LIMIT_IMAGE_PIXELS);
    TAKEN(.servers = two, .pixels = most);
    snprintf(most, sizeof most, "a=%lld", (long long)LIMIT_IMAGE_PIXELS + 1);
    REFUSED("--upstream-pixels", .servers = two, .pixels = most);
    char is_long[1100]; /* the longest of each list, and one byte more */
    static const struct {
        const char *begin, *said;
        size_t most, place;
    } LONG[] = {{"a=", "the variable 0", 511, offsetof(upstream_settings, keys)},
                {"a=", "NAME=VARIABLE", 512, offsetof(upstream_settings, keys)},
                {"x=a/", "", 1023, offsetof(upstream_settings, models)},
                {"x=a/", "ALIAS=NAME/ID", 1024, offsetof(upstream_settings, models)},
                {"a=", "is neither auto", 255, offsetof(upstream_settings, videos)},
                {"a=", "takes NAME=VALUE", 256, offsetof(upstream_settings, videos)}};
    for (size_t i = 0; i < ARRAY_LEN(LONG); i++) {
        upstream_settings settings = {.servers = two};
        snprintf(is_long, sizeof is_long, "%0*d", (int)LONG[i].most, 0);
        memcpy(is_long, LONG[i].begin, strlen(LONG[i].begin));
        memcpy((char *)&settings + LONG[i].place, &(const char *){is_long}, sizeof(const char *));
        const char *said = read_all(settings);
        CHECK(LONG[i].said[0] ? strstr(said, LONG[i].said) != NULL : !said[0]);
    }
}

static upstream_rules rules;

static void take_rules(const char *text)
{
    err_detail d = {0};
    upstream_rules_deinit(&rules);
    CHECK_OK(upstream_rules_read(&rules, text, &d), d);
}

/* The model that the rules choose, or "-". */
static const char *choose(upstream_case what)
{
    const upstream_rule *r = upstream_rules_choose(&rules, &what);
    return r ? r->model : "-";
}

static void test_rules(void)
{
    take_rules(NULL);
    CHECK_STR(choose((upstream_case){.prompt_tokens = 9}), "-");
    take_rules("when prompt_tokens > 30 use big");
    CHECK(upstream_rules_count(&rules));
    CHECK_STR(rules.items[0].text, "when prompt_tokens > 30 use big");
    CHECK_STR(choose((upstream_case){.prompt_tokens = 30}), "-");
    CHECK_STR(choose((upstream_case){.prompt_tokens = 31}), "big");
    take_rules("when prompt_tokens > 1000000 use big"); /* as long as the word */
    CHECK_STR(choose((upstream_case){.prompt_tokens = 1000000}), "-");
    CHECK_STR(choose((upstream_case){.prompt_tokens = 1000001}), "big");
    take_rules("when prompt_tokens > context use big");
    CHECK(upstream_rules_count(&rules));
    CHECK_STR(choose((upstream_case){.prompt_tokens = 10, .context = 10}), "-");
    CHECK_STR(choose((upstream_case){.prompt_tokens = 11, .context = 10}), "big");
    CHECK_STR(choose((upstream_case){.prompt_tokens = 11}), "-"); /* there is no model here */
    take_rules("when media use seer, when queue > 2 and key 3 use other ,when\tqueue >  5  use any");
    CHECK(!upstream_rules_count(&rules));
    CHECK_INT(rules.n, 3);
    CHECK_STR(choose((upstream_case){.media = true, .queue = 9}), "seer");
    CHECK_STR(choose((upstream_case){.queue = 3, .key = 3}), "other");
    CHECK_STR(choose((upstream_case){.queue = 2, .key = 3}), "-");
    CHECK_STR(choose((upstream_case){.queue = 3, .key = 2}), "-");
    CHECK_STR(choose((upstream_case){.queue = 6, .key = 2}), "any");
    take_rules("when key 1 use first");
    CHECK_STR(choose((upstream_case){.key = 1}), "first");
    CHECK_STR(choose((upstream_case){.key = 2}), "-");
    CHECK_STR(choose((upstream_case){.key = 0}), "-");
    take_rules("when prompt_tokens >context and media use a/b");
    CHECK_STR(choose((upstream_case){.prompt_tokens = 2, .context = 1, .media = true}), "a/b");
    CHECK_STR(choose((upstream_case){.prompt_tokens = 2, .context = 1}), "-");
    static const char *const BAD[] = {
        "",
        "use big",
        "when use big",
        "when media",
        "when media use",
        "when media use a b",
        "when media or media use a",
        "when queue 3 use a",
        "when queue > x use a",
        "when queue > 3x use a",
        "when key 0 use a",
        "when key x use a",
        "when key 1x use a",
        "when media and use a",
        "when prompt_tokens context use a",
        "when prompt_tokens > contexts use a",
        "when prompt_tokens > contest use a",
        "when words > 3 use a",
        "when media use a,",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        upstream_rules r;
        err_detail d = {0};
        if (upstream_rules_read(&r, BAD[i], &d) != ERR_INVALID) {
            fprintf(stderr, "taken: %s\n", BAD[i]);
            CHECK(false);
        }
        upstream_rules_deinit(&r);
    }
    char many[2048] = "";
    for (int i = 0; i < UPSTREAM_RULES; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "%swhen media use a", i ? "," : "");
    }
    take_rules(many);
    CHECK_INT(rules.n, UPSTREAM_RULES);
    append(many, sizeof many, ",when media use a");
    err_detail d = {0};
    upstream_rules r;
    CHECK_INT(upstream_rules_read(&r, many, &d), ERR_INVALID);
    CHECK(strstr(d.text, "at most 32") != NULL);
    upstream_rules_deinit(&r);
    upstream_rules_deinit(&rules);
    CHECK_INT(rules.n, 0);
    REFUSED("neither an alias", .servers = "a=http://h", .rules = "when media use nobody/x");
    TAKEN(.servers = "a=http://h", .rules = "when media use a/x");
    CHECK_STR(c.rules.items[0].model, "a/x");
    TAKEN(.servers = "a=http://h", .models = "big=a/x", .rules = "when media use big");
    TAKEN(.servers = "a=http://h", .models = "big=a/x,other=a/y", .rules = "when media use big");
    REFUSED("neither an alias", .servers = "a=http://h", .models = "big=a/x,other=a/y",
            .rules = "when media use none");
}

static int64_t letters(void *ctx, const char *text, size_t len)
{
    CHECK(strlen(text) == len);
    return *(bool *)ctx ? (int64_t)len : -1;
}

static int64_t tokens_of(const char *body, bool *media)
{
    json_doc *doc = NULL;
    bool counts = true;
    upstream_case seen = {.prompt_tokens = 99, .media = true}, guessed;
    CHECK(json_parse(&doc, body, strlen(body), 32, NULL) == ERR_OK);
    upstream_case_read(&seen, json_root(doc), letters, &counts);
    counts = false;
    upstream_case_read(&guessed, json_root(doc), letters, &counts);
    CHECK(guessed.prompt_tokens <= seen.prompt_tokens);
    *media = seen.media;
    json_free(doc);
    return seen.prompt_tokens;
}

static void test_bodies(void)
{
    static const struct {
        const char *body;
        int tokens;
        bool media;
    } CASES[] = {
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"12345\",\"name\":\"no\"}],\"model\":\"no\"}", 5,
         false},
        {"{\"messages\":[{\"content\":[{\"type\":\"text\",\"text\":\"1234\"},{\"type\":\"image_url\",\"image_"
         "url\":{\"url\":\"data:x\"}}]}]}",
         4, true},
        {"{\"input\":[{\"type\":\"input_image\",\"image_url\":\"data:x\"}],\"instructions\":\"12\"}", 2,
         true},
        {"{\"input\":\"123\"}", 3, false},
        {"{\"prompt\":[1,2,3,4]}", 4, false},
        {"{\"prompt\":[\"ab\",\"c\"],\"max_tokens\":7}", 3, false},
        {"{\"content\":{\"a\":5,\"b\":6}}", 0, false}, /* numbers with names are no ids */
        {"{\"prompt\":\"data:none\"}", 0, false},
        {"{\"system\":[{\"type\":\"text\",\"text\":\"12\"}],\"messages\":[{\"content\":[{\"type\":\"image\"}]"
         "}]}",
         2, true},
        {"{\"messages\":[{\"content\":[{\"type\":\"video_url\"}]}]}", 0, true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bool media;
        CHECK_INT(tokens_of(CASES[i].body, &media), CASES[i].tokens);
        CHECK_INT(media, CASES[i].media);
    }
    /* A token for every four bytes where nobody counts. */
    json_doc *doc = NULL;
    upstream_case seen = {0};
    CHECK(json_parse(&doc, "{\"prompt\":\"123456789\"}", 22, 8, NULL) == ERR_OK);
    upstream_case_read(&seen, json_root(doc), NULL, NULL);
    CHECK_INT(seen.prompt_tokens, 2);
    json_free(doc);
}

/* ---- a file of certificates, and what has no room ---- */

static void write_text(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(text, 1, n, f) == n);
    CHECK(f && fclose(f) == 0);
}

static void test_certificates(void)
{
    static const char PEM[] = "a name\n-----BEGIN CERTIFICATE-----\n", ALMOST[] = "-----BEGIN";
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/ca.pem", folder);
    REFUSED("/ca.pem cannot be read", .ca_file = path);
    REFUSED("cannot be read", .ca_file = folder);
    write_text(path, "", 0);
    REFUSED("/ca.pem holds no certificate (PEM)", .ca_file = path);
    write_text(path, ALMOST, strlen(ALMOST));
    REFUSED("holds no certificate", .ca_file = path);
    write_text(path, PEM, strlen(PEM));
    TAKEN(.servers = "a=https://h", .ca_file = path);
    CHECK_STR(c.ca_file, path);
    REFUSED("has no scheme", .servers = "a=h", .ca_file = path);
    const size_t most = (size_t)8 << 20;
    for (size_t n = most; n <= most + 1; n++) {
        char *large = calloc(1, n);
        CHECK(large != NULL);
        memset(large, ' ', n);
        memcpy(large, PEM, sizeof PEM - 1);
        write_text(path, large, n);
        if (n == most) {
            TAKEN(.ca_file = path);
        } else {
            REFUSED("cannot be read", .ca_file = path);
        }
        free(large);
    }
}

/* All that options may name, and one thing that is wrong behind it: each piece of memory may be the one that fails. */
static err_code read_once(void *settings)
{
    upstream_config one;
    err_detail d = {0};
    const err_code err = upstream_config_read(&one, settings, &d);
    upstream_config_deinit(&one);
    CHECK((err != ERR_OK) == (d.text[0] != '\0'));
    /* libcurl does not say why it cannot read an address. */
    return err == ERR_INVALID && strstr(d.text, "no address of a server") ? ERR_NOMEM : err;
}

static void test_short_memory(void)
{
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/ca.pem", folder);
    write_text(path, "-----BEGIN CERTIFICATE-----\n", 28);
    CHECK_INT(setenv("A_KEY", "secret", 1), 0);
    upstream_settings s = {.servers = "a=http://h:1,http://h:2,b=https://g",
                           .keys = "a=A_KEY",
                           .models = "big=a/m,small=b/n",
                           .videos = "a=frames",
                           .pixels = "b=1000000",
                           .rules = "when media use big,when prompt_tokens > 1000 use b/n",
                           .ca_file = path};
    CHECK(alloc_fail_each(read_once, &s, 1000) > 0);
}

/* The name with its address. */
static void test_lengths(void)
{
    char text[FETCH_URL_MAX + UPSTREAM_NAME_MAX + 8];
    for (int more = 0; more < 2; more++) {
        snprintf(text, sizeof text, "a=http://%0*d",
                 FETCH_URL_MAX + UPSTREAM_NAME_MAX - 1 - (int)strlen("a=http://") + more, 0);
        CHECK_HAS(read_all((upstream_settings){.servers = text}),
                  more ? "--upstream: an address is longer than 4096 bytes" : "--upstream a: http://000");
    }
}

/* ---- what a server says of its models ---- */

/* "id engine context images videos|.." or the error's text. */
static const char *listed(const char *text)
{
    static char out[2048];
    static const char *const ANSWERS[] = {
        [UPSTREAM_UNKNOWN] = "?", [UPSTREAM_YES] = "yes", [UPSTREAM_NO] = "no"};
    upstream_models m = {0};
    err_detail d = {0};
    int n = 0;
    out[0] = '\0';
    if (upstream_models_read(&m, text, strlen(text), &d) != ERR_OK) {
        CHECK_INT(m.n, 0);
        snprintf(out, sizeof out, "%s", d.text);
    }
    for (size_t i = 0; i < m.n; i++) {
        const upstream_model_facts *f = &m.items[i];
        n += snprintf(out + n, sizeof out - (size_t)n, "%s%s %s %d %s %s", i ? "|" : "", f->id,
                      upstream_engine_name(f->engine), f->n_ctx, ANSWERS[f->sees_images],
                      ANSWERS[f->sees_videos]);
    }
    if (m.n) {
        CHECK(upstream_models_find(&m, m.items[m.n - 1].id) == &m.items[m.n - 1]);
        CHECK(!upstream_models_find(&m, "none"));
    }
    upstream_models_deinit(&m);
    CHECK(m.n == 0 && m.items == NULL);
    return out;
}

static void test_models(void)
{
    CHECK_STR(listed("{"), "its list of models is no JSON");
    CHECK_STR(listed("{}"), "it gives no list of models");
    CHECK_STR(listed("{\"data\":{}}"), "it gives no list of models");
    CHECK_STR(listed("{\"data\":[]}"), "");
    CHECK_STR(listed("{\"data\":[{\"id\":\"a\"},{},{\"id\":\"\"},{\"id\":\"b\",\"owned_by\":\"vllm\",\"max_"
                     "model_len\":8}]}"),
              "a other 0 ? ?|b vllm 8 ? ?");
    CHECK_STR(listed("{\"data\":[{\"id\":\"a\",\"architecture\":{\"input_modalities\":[\"text\",\"image\"]}},"
                     "{\"id\":\"b\","
                     "\"architecture\":{\"input_modalities\":[\"video\"]}},{\"id\":\"c\",\"architecture\":{"
                     "\"input_modalities\":\"image\"}}]}"),
              "a other 0 yes no|b other 0 no yes|c other 0 ? ?");
    CHECK_STR(listed("{\"data\":[{\"id\":\"a\"},{\"id\":\"b\"},{\"id\":\"c\"}],\"models\":[{\"name\":\"a\","
                     "\"capabilities\":["
                     "\"completion\",\"multimodal\"]},{\"name\":\"b\",\"capabilities\":[\"completion\"]},{"
                     "\"name\":\"c\"}]}"),
              "a other 0 yes no|b other 0 no no|c other 0 ? ?");
    CHECK_STR(listed("{\"data\":[{\"id\":\"a\",\"max_model_len\":1,\"context_length\":2,\"meta\":{\"n_ctx\":"
                     "3,\"n_ctx_train\":4}},"
                     "{\"id\":\"b\",\"max_model_len\":0,\"context_length\":2,\"meta\":{\"n_ctx\":3,\"n_ctx_"
                     "train\":4}},"
                     "{\"id\":\"c\",\"context_length\":2,\"meta\":{\"n_ctx_train\":4}},{\"id\":\"d\","
                     "\"meta\":{\"n_ctx_train\":4}},"
                     "{\"id\":\"e\",\"context_length\":2147483648}]}"),
              "a other 1 ? ?|b other 3 ? ?|c other 2 ? ?|d other 4 ? ?|e other 0 ? ?");
    const size_t most = sizeof((upstream_model_facts *)NULL)->id - UPSTREAM_PREFIX_MAX - 1;
    for (size_t n = most; n <= most + 1; n++) { /* its prefix has room, too */
        char text[1024], name[512];
        memset(name, 'x', sizeof name);
        snprintf(text, sizeof text, "{\"data\":[{\"id\":\"%.*s\"},{\"id\":\"b\"}]}", (int)n, name);
        CHECK_INT(strncmp(listed(text), "b other", 7) == 0, n > most);
    }
    bytes text = bytes_empty(1 << 20);
    for (int i = 0; i < LIMIT_UPSTREAM_MODELS + 1; i++) {
        bytes_printf(&text, i ? ",{\"id\":\"m%d\"}" : "{\"data\":[{\"id\":\"m%d\"}", i);
    }
    bytes_append_str(&text, "]}");
    upstream_models m = {0}, other = {0};
    err_detail d = {0};
    CHECK_OK(upstream_models_read(&m, bytes_str(&text), text.len, &d), d);
    CHECK_OK(upstream_models_read(&other, bytes_str(&text), text.len, &d), d);
    CHECK_INT(m.n, LIMIT_UPSTREAM_MODELS);
    CHECK(upstream_models_equal(&m, &other));
    for (int i = 0; i < 7; i++) { /* each difference is one */
        upstream_model_facts *f = &other.items[LIMIT_UPSTREAM_MODELS - 1];
        const upstream_model_facts was = *f;
        other.n -= i == 0;
        f->engine = i == 1 ? UPSTREAM_VLLM : f->engine;
        f->n_ctx += i == 2;
        f->sees_images = i == 3 ? UPSTREAM_YES : f->sees_images;
        f->sees_videos = i == 4 ? UPSTREAM_YES : f->sees_videos;
        f->id[0] = i == 5 ? 'x' : f->id[0];
        CHECK_INT(upstream_models_equal(&m, &other), i == 6);
        *f = was;
        other.n = m.n;
    }
    upstream_models_deinit(&m);
    upstream_models_deinit(&other);
    bytes_deinit(&text);
}

int main(void)
{
    test_models();
    test_urls();
    test_servers();
    test_settings();
    test_rules();
    test_bodies();
    test_certificates();
    test_short_memory();
    test_lengths();
    upstream_config_deinit(&c);
    CHECK_INT(c.n_servers, 0);
    CHECK_DONE();
}
