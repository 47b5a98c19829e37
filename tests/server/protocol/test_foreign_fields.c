/* foreign_fields: of every field of other servers, what of it asks for nothing, and that anything else is refused. */
#include "server/protocol/foreign_fields.h"

#include "base/compiler.h"
#include "tests/check.h"

enum { NONE = -1000000, COMPLETIONS = 1, CHATS = 2 };

/* Numbers from low to high ask for nothing, and so do the words; where it is looked at. */
static const struct {
    const char *name;
    int low, high;
    const char *words;
    int where;
} FIELDS[] = {
    {"typical_p", 1, 1, NULL, 3},
    {"typ_p", 1, 1, NULL, 3},
    {"tfs_z", 1, 1, NULL, 3},
    {"top_a", 0, 0, NULL, 3},
    {"top_n_sigma", NONE, 0, NULL, 3},
    {"xtc_probability", 0, 0, NULL, 3},
    {"dry_multiplier", 0, 0, NULL, 3},
    {"dynatemp_range", 0, 0, NULL, 3},
    {"mirostat", 0, 0, NULL, 3},
    {"samplers", 0, 0, NULL, 3},
    {"min_keep", 0, 1, NULL, 3},
    {"length_penalty", 1, 1, NULL, 3},
    {"use_beam_search", 0, 0, NULL, 3},
    {"best_of", 1, 1, NULL, 2},
    {"logits_processors", 0, 0, NULL, 3},
    {"custom_logit_processor", 0, 0, NULL, 3},
    {"vllm_xargs", 0, 0, NULL, 3},
    {"allowed_token_ids", 0, 0, NULL, 3},
    {"bad_words", 0, 0, NULL, 3},
    {"stop_token_ids", 0, 0, NULL, 3},
    {"stop_regex", 0, 0, NULL, 3},
    {"no_stop_trim", 0, 0, NULL, 3},
    {"include_stop_str_in_output", 0, 0, NULL, 3},
    {"t_max_predict_ms", NONE, 0, NULL, 3},
    {"n_indent", 0, 0, NULL, 3},
    {"guided_json", 0, 0, NULL, 3},
    {"guided_regex", 0, 0, NULL, 3},
    {"guided_choice", 0, 0, NULL, 3},
    {"guided_grammar", 0, 0, NULL, 3},
    {"structured_outputs", 0, 0, NULL, 3},
    {"structural_tag", 0, 0, NULL, 3},
    {"grammar", 0, 0, NULL, 3},
    {"json_schema", 0, 0, NULL, 3},
    {"regex", 0, 0, NULL, 3},
    {"ebnf", 0, 0, NULL, 3},
    {"response_format", 0, 0, "text", 1},
    {"lora", 0, 0, NULL, 3},
    {"lora_path", 0, 0, NULL, 3},
    {"image_data", 0, 0, NULL, 3},
    {"audio", 0, 0, NULL, 3},
    {"documents", 0, 0, NULL, 3},
    {"chat_template", 0, 0, NULL, 3},
    {"add_generation_prompt", 1, 1, NULL, 2},
    {"thinking_forced_open", 0, 0, NULL, 3},
    {"reasoning_format", 0, 0, "auto deepseek deepseek-legacy", 3},
    {"include_reasoning", 1, 1, NULL, 3},
    {"separate_reasoning", 1, 1, NULL, 3},
    {"parse_tool_calls", 1, 1, NULL, 3},
    {"function_call", 0, 0, "auto none", 2},
    {"truncate_prompt_tokens", -1, -1, NULL, 3},
    {"skip_special_tokens", 1, 1, NULL, 3},
    {"detokenize", 1, 1, NULL, 3},
    {"return_token_ids", 0, 0, NULL, 3},
    {"return_tokens", 0, 0, NULL, 3},
    {"return_tokens_as_token_ids", 0, 0, NULL, 3},
    {"response_fields", 0, 0, NULL, 3},
    {"n_probs", 0, 0, NULL, 3},
    {"post_sampling_probs", 0, 0, NULL, 3},
    {"prompt_logprobs", 1, 0, NULL, 3},
    {"echo", 0, 0, NULL, 2},
};

/* Whether a value of a field is taken. */
static bool takes(const char *name, const char *value, bool is_completion)
{
    char text[256];
    json_doc *doc = NULL;
    err_detail d = {0};
    snprintf(text, sizeof text, "{\"%s\":%s}", name, value);
    CHECK_OK(json_parse(&doc, text, strlen(text), 8, &d), d);
    const err_code err = foreign_fields_check(json_root(doc), is_completion, &d);
    if (err != ERR_OK) {
        CHECK_INT(err, ERR_UNSUPPORTED);
        CHECK_STR(d.param, name);
        CHECK_STR(d.name, "not_supported");
        snprintf(text, sizeof text, "%s is not supported: ", name);
        CHECK(strncmp(d.text, text, strlen(text)) == 0 && strlen(d.text) > strlen(text));
    }
    json_free(doc);
    return err == ERR_OK;
}

static void test_field(size_t i, bool is_completion)
{
    const char *name = FIELDS[i].name;
    const int low = FIELDS[i].low, high = FIELDS[i].high;
    const bool is_looked_at = FIELDS[i].where & (is_completion ? COMPLETIONS : CHATS);
    for (int n = -3; n <= 4; n++) { /* halves, too */
        char value[32];
        snprintf(value, sizeof value, "%g", n / 2.0);
        if (takes(name, value, is_completion) != (!is_looked_at || (n >= 2 * low && n <= 2 * high))) {
            fprintf(stderr, "  %s: %s\n", name, value);
            CHECK(!"what a number of a field asks for");
        }
    }
    CHECK_INT(takes(name, "true", is_completion), !is_looked_at || (low <= 1 && high >= 1));
    CHECK_INT(takes(name, "false", is_completion), !is_looked_at || (low <= 0 && high >= 0));
    static const char *const EMPTY[] = {"null", "\"\"", "[]", "{}"};
    for (size_t k = 0; k < ARRAY_LEN(EMPTY); k++) {
        CHECK(takes(name, EMPTY[k], is_completion));
    }
    CHECK_INT(takes(name, "\"words\"", is_completion), !is_looked_at);
    CHECK_INT(takes(name, "[1]", is_completion), !is_looked_at);
    CHECK_INT(takes(name, "{\"type\":\"other\"}", is_completion), !is_looked_at);
    char words[128] = "";
    snprintf(words, sizeof words, "%s", FIELDS[i].words ? FIELDS[i].words : "");
    for (char *rest = words, *word; (word = strtok_r(rest, " ", &rest));) {
        char value[96];
        snprintf(value, sizeof value, "\"%s\"", word);
        CHECK(takes(name, value, is_completion));
        snprintf(value, sizeof value, "{\"type\":\"%s\"}", word);
        CHECK(takes(name, value, is_completion));
        snprintf(value, sizeof value, "\"%sx\"", word);
        CHECK_INT(takes(name, value, is_completion), !is_looked_at);
        snprintf(value, sizeof value, "\"%s\"", word + 1);
        CHECK_INT(takes(name, value, is_completion), !is_looked_at);
        snprintf(value, sizeof value, "\" %s\"", word);
        CHECK_INT(takes(name, value, is_completion), !is_looked_at);
        snprintf(value, sizeof value, "\"%s \"", word);
        CHECK_INT(takes(name, value, is_completion), !is_looked_at);
    }
}

int main(void)
{
    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
        test_field(i, false);
        test_field(i, true);
    }
    /* vLLM wants both fields of who continues an answer. */
    json_doc *doc = NULL;
    err_detail d = {0};
    static const char BOTH[] = "{\"add_generation_prompt\":false,\"continue_final_message\":true}";
    CHECK_OK(json_parse(&doc, BOTH, sizeof BOTH - 1, 8, &d), d);
    CHECK_OK(foreign_fields_check(json_root(doc), false, &d), d);
    json_free(doc);
    static const char OTHER[] = "{\"echo\":true,\"continue_final_message\":true}";
    CHECK_OK(json_parse(&doc, OTHER, sizeof OTHER - 1, 8, &d), d);
    CHECK_INT(foreign_fields_check(json_root(doc), false, &d), ERR_UNSUPPORTED);
    json_free(doc);
    CHECK_DONE();
}
