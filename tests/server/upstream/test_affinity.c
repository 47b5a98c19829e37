/* affinity: which replica has seen the longest beginning of a conversation. */
#include "server/upstream/affinity.h"

#include "tests/check.h"

/* A conversation of user and assistant in turns, of these words; '!' at first: a system message. */
static affinity_chain chain_of(const char *const *words, size_t n, size_t server, uint64_t scope)
{
    chat_part parts[16];
    chat_message messages[16];
    memset(messages, 0, sizeof messages);
    for (size_t i = 0; i < n; i++) {
        parts[i] = (chat_part){.kind = CHAT_TEXT, .text = words[i], .text_len = strlen(words[i])};
        messages[i] = (chat_message){.role = words[i][0] == '!' ? CHAT_SYSTEM
                                             : i % 2            ? CHAT_ASSISTANT
                                                                : CHAT_USER,
                                     .parts = &parts[i],
                                     .n_parts = 1};
    }
    const chat_input in = {.messages = messages, .n_messages = n, .scope = scope};
    affinity_chain chain;
    affinity_begin(&chain, server, &in);
    return chain;
}

#define CHAIN(server, scope, ...)                                                                            \
    chain_of((const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),     \
             server, scope)

static int find(affinity *t, affinity_chain chain)
{
    const int replica = affinity_find(t, &chain);
    affinity_chain_deinit(&chain);
    CHECK(chain.n == 0 && chain.hashes == NULL);
    return replica;
}

static void put(affinity *t, affinity_chain chain, int replica)
{
    affinity_put(t, &chain, replica);
    affinity_chain_deinit(&chain);
}

static void test_chats(void)
{
    affinity *t = affinity_create();
    CHECK_INT(find(t, CHAIN(0, 0, "a")), -1);
    put(t, CHAIN(0, 0, "a"), 3);
    CHECK_INT(find(t, CHAIN(0, 0, "a")), 3);
    CHECK_INT(find(t, CHAIN(0, 0, "a", "b", "c")), 3);
    CHECK_INT(find(t, CHAIN(0, 0, "b", "a")), -1);
    CHECK_INT(find(t, CHAIN(1, 0, "a")), -1); /* of another server */
    CHECK_INT(find(t, CHAIN(0, 1, "a")), -1); /* of another client */
    put(t, CHAIN(0, 0, "a", "b", "c"), 5);    /* the longest beginning counts */
    CHECK_INT(find(t, CHAIN(0, 0, "a", "b", "c", "d")), 5);
    CHECK_INT(find(t, CHAIN(0, 0, "a", "b", "x")), 5);
    CHECK_INT(find(t, CHAIN(0, 0, "a", "x")), 5); /* it has seen that too, and later */
    put(t, CHAIN(0, 0, "1", "2", "3", "4", "5", "6"), 2);
    CHECK_INT(find(t, CHAIN(0, 0, "1", "2", "3", "x")), 2);
    CHECK_INT(find(t, CHAIN(0, 0, "1", "2", "x")), -1); /* of a long one the last four */
    put(t, CHAIN(0, 0, "!sys", "q"), 1);
    CHECK_INT(find(t, CHAIN(0, 0, "!sys", "q", "r")), 1);
    CHECK_INT(find(t, CHAIN(0, 0, "!sys", "other")), -1); /* a system message alone is no beginning */
    affinity_destroy(t);
    affinity_destroy(NULL);
}

static void test_contents(void)
{
    uint8_t one[32] = {1}, two[32] = {2};
    json_doc *doc = NULL;
    static const char TOOLS[] = "[{\"function\":{\"name\":\"f\"}}]";
    CHECK(json_parse(&doc, TOOLS, sizeof TOOLS - 1, 8, NULL) == ERR_OK);
    const chat_tool_call call = {.name = "f"}, other_call = {.name = "g"};
    chat_part parts[] = {{.kind = CHAT_IMAGE, .hash = one},
                         {.kind = CHAT_IMAGE, .hash = two},
                         {.kind = CHAT_IMAGE, .data = one, .data_bytes = 32},
                         {.kind = CHAT_IMAGE, .data = two, .data_bytes = 32}};
    uint64_t hashes[9];
    for (size_t i = 0; i < 9; i++) {
        chat_message m = {
            .role = i == 4 ? CHAT_ASSISTANT : CHAT_USER, .parts = i < 4 ? &parts[i] : NULL, .n_parts = i < 4};
        chat_input in = {.messages = &m, .n_messages = 1};
        if (i >= 5 && i < 7) {
            m.tool_calls = (chat_tool_call *)(i == 5 ? &call : &other_call);
            m.n_tool_calls = 1;
        }
        m.reasoning = i == 7 ? "hm" : NULL;
        in.tools = i == 8 ? json_root(doc) : NULL;
        affinity_chain chain;
        affinity_begin(&chain, 0, &in);
        CHECK_INT(chain.n, 1);
        hashes[i] = chain.hashes[0];
        affinity_chain_deinit(&chain);
    }
    for (size_t i = 0; i < 9; i++) {
        for (size_t k = 0; k < i; k++) {
            /* The bytes of an image are as good as its hash, which stands here for the same 32. */
            CHECK((hashes[i] == hashes[k]) == ((i == 2 && k == 0) || (i == 3 && k == 1)));
        }
    }
    json_free(doc);
}

static void test_texts(void)
{
    static char text[9000 * 1024];
    memset(text, 'x', sizeof text);
    affinity *t = affinity_create();
    affinity_chain chain;
    affinity_begin_text(&chain, 0, text, 1023);
    CHECK_INT(chain.n, 0);
    affinity_chain_deinit(&chain);
    affinity_begin_text(&chain, 0, text, 3 * 1024 + 5);
    CHECK_INT(chain.n, 3);
    affinity_put(t, &chain, 4);
    affinity_chain_deinit(&chain);
    text[2048] = 'y';
    affinity_begin_text(&chain, 0, text, 4096);
    CHECK_INT(affinity_find(t, &chain), 4);
    affinity_chain_deinit(&chain);
    text[0] = 'y';
    affinity_begin_text(&chain, 0, text, 4096);
    CHECK_INT(affinity_find(t, &chain), -1);
    affinity_chain_deinit(&chain);
    affinity_begin_text(&chain, 0, text, sizeof text);
    CHECK_INT(chain.n, 8192);
    affinity_chain_deinit(&chain);
    affinity_destroy(t);
}

/* A full place loses what was put longest ago. */
static void test_oldest(void)
{
    affinity *t = affinity_create();
    uint64_t hashes[6];
    for (size_t i = 0; i < 6; i++) {
        hashes[i] = 7 << 20 | (i + 1); /* all of one place, which has four */
        const affinity_chain one = {.hashes = &hashes[i], .n = 1};
        affinity_put(t, &one, (int)i);
        if (i == 3) {
            const affinity_chain first = {.hashes = &hashes[0], .n = 1};
            affinity_put(t, &first, 9); /* used again */
        }
    }
    static const int EXPECTED[] = {9, -1, -1, 3, 4, 5};
    for (size_t i = 0; i < 6; i++) {
        const affinity_chain one = {.hashes = &hashes[i], .n = 1};
        CHECK_INT(affinity_find(t, &one), EXPECTED[i]);
    }
    affinity_destroy(t);
}

static void test_bound(void)
{
    static const int CASES[][3] = {{0, 0, 1},   {9, 0, 10},  {0, 1, 4},   {3, 2, 5}, {7, 2, 7},
                                   {99, 4, 32}, {31, 2, 20}, {30, 2, 20}, {3, 4, 4}, {4, 4, 5}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        CHECK_INT(affinity_bound(CASES[i][0], CASES[i][1]), CASES[i][2]);
    }
}

int main(void)
{
    test_chats();
    test_contents();
    test_texts();
    test_oldest();
    test_bound();
    CHECK_DONE();
}
