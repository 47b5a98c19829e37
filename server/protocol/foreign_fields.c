#include "server/protocol/foreign_fields.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"

typedef enum where { EVERYWHERE, IN_COMPLETIONS, IN_CHATS } where;

/* Numbers from low to high ask for nothing (NAN: none do), and true and false as 1 and 0; so do texts in
 * words, of an object its type, and whatever is empty. */
typedef struct foreign_field {
    const char *name;
    double low, high;
    const char *words; /* a space on both sides of each; NULL: none */
    const char *instead;
    where where;
} foreign_field;

#define BELOW    (-1e300)
#define AS_FORM  "send response_format with a JSON schema"
#define NOT_HERE "there is no such sampling here"
#define STOPS    "send stop"
#define ONE      "one answer is drawn"

static const foreign_field FIELDS[] = {
    {"typical_p", 1, 1, NULL, NOT_HERE, EVERYWHERE},
    {"typ_p", 1, 1, NULL, NOT_HERE, EVERYWHERE},
    {"tfs_z", 1, 1, NULL, NOT_HERE, EVERYWHERE},
    {"top_a", 0, 0, NULL, NOT_HERE, EVERYWHERE},
    {"top_n_sigma", BELOW, 0, NULL, NOT_HERE, EVERYWHERE},
    {"xtc_probability", 0, 0, NULL, NOT_HERE, EVERYWHERE},
    {"dry_multiplier", 0, 0, NULL, NOT_HERE, EVERYWHERE},
    {"dynatemp_range", 0, 0, NULL, NOT_HERE, EVERYWHERE},
    {"mirostat", 0, 0, NULL, NOT_HERE, EVERYWHERE},
    {"samplers", 0, 0, NULL, "the order of samplers is fixed", EVERYWHERE},
    {"min_keep", 0, 1, NULL, NOT_HERE, EVERYWHERE},
    {"length_penalty", 1, 1, NULL, ONE, EVERYWHERE},
    {"use_beam_search", 0, 0, NULL, ONE, EVERYWHERE},
    {"best_of", 1, 1, NULL, ONE, IN_CHATS},
    {"logits_processors", 0, 0, NULL, "send logit_bias", EVERYWHERE},
    {"custom_logit_processor", 0, 0, NULL, "send logit_bias", EVERYWHERE},
    {"vllm_xargs", 0, 0, NULL, "nothing here reads it", EVERYWHERE},
    {"allowed_token_ids", 0, 0, NULL, "send response_format, or logit_bias", EVERYWHERE},
    {"bad_words", 0, 0, NULL, "send logit_bias with -100", EVERYWHERE},
    {"stop_token_ids", 0, 0, NULL, STOPS, EVERYWHERE},
    {"stop_regex", 0, 0, NULL, STOPS, EVERYWHERE},
    {"no_stop_trim", 0, 0, NULL, "a stop string is never part of the answer", EVERYWHERE},
    {"include_stop_str_in_output", 0, 0, NULL, "a stop string is never part of the answer", EVERYWHERE},
    {"t_max_predict_ms", BELOW, 0, NULL, "send max_tokens or timeout", EVERYWHERE},
    {"n_indent", 0, 0, NULL, NOT_HERE, EVERYWHERE},
    {"guided_json", 0, 0, NULL, AS_FORM, EVERYWHERE},
    {"guided_regex", 0, 0, NULL, AS_FORM " and a pattern", EVERYWHERE},
    {"guided_choice", 0, 0, NULL, AS_FORM " and an enum", EVERYWHERE},
    {"guided_grammar", 0, 0, NULL, AS_FORM, EVERYWHERE},
    {"structured_outputs", 0, 0, NULL, AS_FORM, EVERYWHERE},
    {"structural_tag", 0, 0, NULL, AS_FORM, EVERYWHERE},
    {"grammar", 0, 0, NULL, AS_FORM, EVERYWHERE},
    {"json_schema", 0, 0, NULL, AS_FORM, EVERYWHERE},
    {"regex", 0, 0, NULL, AS_FORM " and a pattern", EVERYWHERE},
    {"ebnf", 0, 0, NULL, AS_FORM, EVERYWHERE},
    {"response_format", 0, 0, " text ", "send a chat", IN_COMPLETIONS},
    {"lora", 0, 0, NULL, "merge the adapter into the checkpoint", EVERYWHERE},
    {"lora_path", 0, 0, NULL, "merge the adapter into the checkpoint", EVERYWHERE},
    {"image_data", 0, 0, NULL, "send a chat with image_url parts", EVERYWHERE},
    {"audio", 0, 0, NULL, "answers are text", EVERYWHERE},
    {"documents", 0, 0, NULL, "write them into a message", EVERYWHERE},
    {"chat_template", 0, 0, NULL, "start the server with --chat-template-file", EVERYWHERE},
    {"add_generation_prompt", 1, 1, NULL, "send continue_final_message, or a completion", IN_CHATS},
    {"thinking_forced_open", 0, 0, NULL, "send enable_thinking", EVERYWHERE},
    {"reasoning_format", 0, 0, " auto deepseek deepseek-legacy ", "reasoning comes apart from the content",
     EVERYWHERE},
    {"include_reasoning", 1, 1, NULL, "leave reasoning_content unread", EVERYWHERE},
    {"separate_reasoning", 1, 1, NULL, "reasoning comes apart from the content", EVERYWHERE},
    {"parse_tool_calls", 1, 1, NULL, "leave out tools, or send a completion", EVERYWHERE},
    {"function_call", 0, 0, " auto none ", "it was replaced by tool_choice", IN_CHATS},
    {"truncate_prompt_tokens", -1, -1, NULL, "a prompt is read whole or refused", EVERYWHERE},
    {"skip_special_tokens", 1, 1, NULL, "special tokens are never part of an answer's text", EVERYWHERE},
    {"detokenize", 1, 1, NULL, "answers are text", EVERYWHERE},
    {"return_token_ids", 0, 0, NULL, "answers are text", EVERYWHERE},
    {"return_tokens", 0, 0, NULL, "answers are text", EVERYWHERE},
    {"return_tokens_as_token_ids", 0, 0, NULL, "answers are text", EVERYWHERE},
    {"response_fields", 0, 0, NULL, "replies are whole", EVERYWHERE},
    {"n_probs", 0, 0, NULL, "send logprobs", EVERYWHERE},
    {"post_sampling_probs", 0, 0, NULL, "logprobs are the model's own", EVERYWHERE},
    {"prompt_logprobs", NAN, NAN, NULL, "logprobs are those of the answer", EVERYWHERE},
    {"echo", 0, 0, NULL, "the client has the messages", IN_CHATS},
};

static bool is_in(const char *words, const char *text)
{
    const size_t n = strlen(text);
    const char *at = words && n > 0 ? strstr(words, text) : NULL;
    return at && at > words && at[-1] == ' ' && at[n] == ' ';
}

static bool asks_nothing(const foreign_field *f, const json *v)
{
    switch (json_typeof(v)) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
    case JSON_NUMBER: {
        const double n = json_num(v, json_is_true(v)); /* true counts as 1, false as 0 */
        return n >= f->low && n <= f->high;
    }
    case JSON_STRING:
        return json_str(v, "")[0] == '\0' || is_in(f->words, json_str(v, ""));
    default:
        return json_len(v) == 0 || is_in(f->words, json_str(json_get(v, "type"), ""));
    }
}

/* vLLM wants both fields of who continues an answer. */
static bool continues(const json *root, const foreign_field *f)
{
    return strcmp(f->name, "add_generation_prompt") == 0 &&
           json_is_true(json_get(root, "continue_final_message"));
}

err_code foreign_fields_check(const json *root, bool is_completion, err_detail *d)
{
    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
        const foreign_field *f = &FIELDS[i];
        const bool is_here = f->where == EVERYWHERE || (f->where == IN_COMPLETIONS) == is_completion;
        if (is_here && !asks_nothing(f, json_get(root, f->name)) && !continues(root, f)) {
            return err_set_param(d, ERR_UNSUPPORTED, f->name, "not_supported", "%s is not supported: %s",
                                 f->name, f->instead);
        }
    }
    return ERR_OK;
}
