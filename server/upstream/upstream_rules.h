/* upstream_rules: which requests that name no model of another server go to one all the same.
 *
 *     upstream_rules rules;
 *     err_code err = upstream_rules_read(&rules, "when prompt_tokens > 30000 use big", d);
 *     const upstream_rule *rule = upstream_rules_choose(&rules, &(upstream_case){.prompt_tokens = 40000});
 *     const char *model = rule ? rule->model : NULL;     // "big"
 *     upstream_rules_deinit(&rules);
 *
 * A rule is "when CONDITION [and CONDITION...] use MODEL"; the first that fits decides. A condition is
 * "prompt_tokens > N" (or "> context": more than the model here holds), "queue > N" (requests that wait here), "media"
 * (images or videos) or "key N" (the client has shown the N-th of this server's keys). Plain data, read at the start;
 * then any thread.
 */
#ifndef PARLEY_SERVER_UPSTREAM_UPSTREAM_RULES_H
#define PARLEY_SERVER_UPSTREAM_UPSTREAM_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

enum { UPSTREAM_RULES = 32 };

#define UPSTREAM_CONTEXT INT64_MAX

typedef struct upstream_rule {
    int64_t prompt_tokens, queue; /* more than these; -1: whatever; UPSTREAM_CONTEXT */
    int64_t key;                  /* the client has this one, counted from 1; 0: any, or none */
    bool media;                   /* only with images or videos */
    const char *model;
    char *text; /* as it was written, for people */
} upstream_rule;

typedef struct upstream_rules {
    char *text; /* that the models point into */
    upstream_rule items[UPSTREAM_RULES];
    size_t n;
} upstream_rules;

/* What the rules look at. */
typedef struct upstream_case {
    int64_t prompt_tokens, queue;
    int64_t context; /* of the model here; 0: there is none */
    int64_t key;     /* 0: none */
    bool media;
} upstream_case;

/* Rules with commas between; text NULL: none. ERR_INVALID says which is wrong. *out is deinited in any case. */
MUST_CHECK err_code upstream_rules_read(upstream_rules *out, const char *text, err_detail *d);
void upstream_rules_deinit(upstream_rules *r);
/* The first that fits; NULL: none does. */
const upstream_rule *upstream_rules_choose(const upstream_rules *r, const upstream_case *c);

/* Whether any rule looks at the length of prompts. */
bool upstream_rules_count(const upstream_rules *r);

/* Counts the tokens of a text; -1 if it cannot. */
typedef int64_t upstream_count_fn(void *ctx, const char *text, size_t len);

/* Reads prompt_tokens and media off a body of any dialect, before it is parsed. Texts are counted by `count`; where that
 * is NULL or cannot, there is a token for every four bytes. */
void upstream_case_read(upstream_case *out, const json *body, upstream_count_fn *count, void *ctx);

#endif
