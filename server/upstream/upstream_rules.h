/* upstream_rules: which requests that name no model of another server go to one all the same.
 *
 *     upstream_rules rules;
 *     err_code err = upstream_rules_read(&rules, "when prompt_tokens > 30000 use big", d);
 *     const char *model = upstream_rules_choose(&rules, &(upstream_case){.prompt_tokens = 40000});  // "big"
 *     upstream_rules_deinit(&rules);
 *
 * A rule is "when CONDITION [and CONDITION...] use MODEL"; the first that fits decides. A condition is
 * "prompt_tokens > N", "queue > N" (requests that wait here) or "media" (images or videos). Plain data,
 * read at the start; then any thread.
 */
#ifndef PARLEY_SERVER_UPSTREAM_UPSTREAM_RULES_H
#define PARLEY_SERVER_UPSTREAM_UPSTREAM_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

enum { UPSTREAM_RULES = 32 };

typedef struct upstream_rule {
    int64_t prompt_tokens, queue; /* more than these; -1: whatever */
    bool media;                   /* only with images or videos */
    const char *model;
} upstream_rule;

typedef struct upstream_rules {
    char *text; /* that the models point into */
    upstream_rule items[UPSTREAM_RULES];
    size_t n;
} upstream_rules;

/* What the rules look at. */
typedef struct upstream_case {
    int64_t prompt_tokens, queue;
    bool media;
} upstream_case;

/* Rules with commas between; text NULL: none. ERR_INVALID says which is wrong. *out is deinited in any case. */
MUST_CHECK err_code upstream_rules_read(upstream_rules *out, const char *text, err_detail *d);
void upstream_rules_deinit(upstream_rules *r);
/* The model that the first fitting rule names; NULL: none does. */
const char *upstream_rules_choose(const upstream_rules *r, const upstream_case *c);

/* Reads prompt_tokens and media off a body of any dialect, before it is parsed: a token for every four bytes of
 * text. */
void upstream_case_read(upstream_case *out, const json *body);

#endif
