#include "engine/constrain.h"

#include "base/limits.h"

#include "engine/engine_private.h"

/* The trie, made at the first call; several prep threads may come at once. */
static err_code open_trie(engine *e, err_detail *detail)
{
    const model_config *cfg = model_get_config(e->model);
    err_code err = ERR_OK;
    pthread_mutex_lock(&e->trie_lock);
    if (!e->trie) {
        err = token_trie_create(&e->trie, model_tokenizer(e->model), cfg->stop_ids, (size_t)cfg->n_stop_ids,
                                detail);
    }
    pthread_mutex_unlock(&e->trie_lock);
    return err;
}

enum { REASONING_PARTS = 6, CHANNEL_PARTS = 5 };

/* The form as an answer in channels: reasoning in front, perhaps, then the head of the channel. Calls
 * bring their own head. */
static grammar_spec in_channels(const chat_input *in, grammar_spec *parts, grammar_spec *choice)
{
    static const grammar_spec REASONING[REASONING_PARTS] = {
        {.kind = SPEC_MARKER, .text = "<|channel|>"}, {.kind = SPEC_TEXT, .text = "analysis"},
        {.kind = SPEC_MARKER, .text = "<|message|>"}, {.kind = SPEC_UNTIL, .text = "<|end|>"},
        {.kind = SPEC_MARKER, .text = "<|start|>"},   {.kind = SPEC_TEXT, .text = "assistant"}};
    size_t n = 0;
    choice[0] = (grammar_spec){.kind = SPEC_SEQUENCE, .items = REASONING, .n_items = REASONING_PARTS};
    choice[1] = (grammar_spec){.kind = SPEC_TEXT, .text = ""};
    parts[n++] = (grammar_spec){.kind = SPEC_CHOICE, .items = choice, .n_items = 2};
    if (!in->form_is_calls) {
        parts[n++] = (grammar_spec){.kind = SPEC_MARKER, .text = "<|channel|>"};
        parts[n++] = (grammar_spec){.kind = SPEC_TEXT, .text = "final"};
        parts[n++] = (grammar_spec){.kind = SPEC_MARKER, .text = "<|message|>"};
    }
    parts[n++] = *in->form;
    return (grammar_spec){.kind = SPEC_SEQUENCE, .items = parts, .n_items = n};
}

/* What following a grammar takes while the answer is written, at most. */
#define FOLLOWING_BYTES (LIMIT_GRAMMAR_STATE_BYTES + LIMIT_GRAMMAR_MASK_BYTES)

err_code constrain_request(engine *e, gen_request *r, const chat_input *in, work_count *work,
                           const ledger_patience *patience, err_detail *detail)
{
    if (!in->form) {
        return ERR_OK;
    }
    if (in->continues) {
        return err_set_param(detail, ERR_UNSUPPORTED, "continue_final_message", "not_supported",
                             "continue_final_message cannot be used where the answer's form is given");
    }
    grammar_spec whole = *in->form, parts[CHANNEL_PARTS], choice[2];
    if (e->prompts.think->has_channels) {
        whole = in_channels(in, parts, choice);
    }
    err_code err = ledger_take(&r->memory, "the form of this answer", LIMIT_GRAMMAR_BYTES + FOLLOWING_BYTES,
                               patience, detail);
    err = err == ERR_OK ? open_trie(e, detail) : err;
    err = err == ERR_OK ? grammar_build(&r->grammar, &whole, work, detail) : err;
    if (err == ERR_OK) {
        const size_t taken = arena_bytes(grammar_arena(r->grammar));
        ledger_give(&r->memory, taken < LIMIT_GRAMMAR_BYTES ? LIMIT_GRAMMAR_BYTES - taken : 0);
    }
    return err;
}

err_code constrain_start(const engine *e, grammar_cursor **cursor, const gen_request *r, err_detail *detail)
{
    *cursor = NULL;
    return r->grammar ? grammar_cursor_create(cursor, r->grammar, e->trie, r->starts_in_thinking, detail)
                      : ERR_OK;
}

err_code constrain_check(const grammar_cursor *cursor, err_detail *detail)
{
    const err_code err = cursor ? grammar_cursor_failure(cursor) : ERR_OK;
    if (err == ERR_LIMIT) {
        return err_set(
            detail, err,
            "the schema leaves too many ways to read this answer: more than %d at once, or %d steps "
            "for a token",
            LIMIT_GRAMMAR_STACKS, LIMIT_GRAMMAR_TOKEN_STEPS);
    }
    if (err == ERR_UNSUPPORTED) {
        return err_set(detail, err, "the model's vocabulary cannot write what the schema wants");
    }
    if (err == ERR_OK && cursor && grammar_cursor_state(cursor) == GRAMMAR_REFUSED) {
        return err_set(detail, ERR_INTERNAL, "the answer has left the form it must have");
    }
    return err == ERR_OK ? err : err_set(detail, err, "no memory to follow the schema");
}
