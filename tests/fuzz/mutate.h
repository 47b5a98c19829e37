/* mutate: changes that keep the form of an input, so that a fuzzer comes behind the first check of a
 * reader. One thread. Each function changes data[0..size) in place to at most max bytes, in a way that
 * the seed decides, and returns the new length: what LLVMFuzzerCustomMutator has to do.
 *
 *     size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
 *     {
 *         return mutate_json(data, size, max, seed, "config");
 *     }
 *
 * dictionary: the words of tests/fuzz/dictionaries/NAME.dict, which scripts/fuzz gives to libFuzzer, too.
 */
#ifndef PARLEY_TESTS_FUZZ_MUTATE_H
#define PARLEY_TESTS_FUZZ_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Of the fuzzer, which knows nothing of forms; without one of replay.c. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
/* Of a target that has one. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* Of a target that has one: all small changes of an input by their numbers, from 0 on. The new length, 0 where the number
 * changes nothing, MUTATE_NO_MORE behind the last. */
#define MUTATE_NO_MORE SIZE_MAX
size_t fuzz_each(uint8_t *data, size_t size, size_t max, unsigned number);

typedef size_t mutate_function(uint8_t *data, size_t size, size_t max, unsigned seed, const char *dictionary);

/* Members and elements of JSON come, go, change places, names and kinds. */
mutate_function mutate_json;
/* Words and lines of a text come, go and change places. */
mutate_function mutate_words;
/* Likewise; of a line with JSON in it mostly that. */
mutate_function mutate_lines;
/* The header as JSON; its length is right, and mostly the tensors lie one behind the other as it says. */
mutate_function mutate_safetensors;
/* Keys, values and tensors; counts and lengths stay right, mostly. */
mutate_function mutate_gguf;
/* For fuzz_each: each key, value and tensor away, or another. */
size_t mutate_gguf_each(uint8_t *data, size_t size, size_t max, unsigned number);
/* Likewise each member and element of JSON. */
size_t mutate_json_each(uint8_t *data, size_t size, size_t max, unsigned number);
/* Chunks of PNG, segments of JPEG: their lengths stay right. */
mutate_function mutate_png;
mutate_function mutate_jpeg;

/* The first n bytes, which steer a target, change seldom, and those behind them by `inner`. */
size_t mutate_behind(size_t n, mutate_function *inner, uint8_t *data, size_t size, size_t max, unsigned seed,
                     const char *dictionary);

/* Of inputs of two parts: MUTATE_LENGTH bytes say how long the first is, and go on saying so. */
enum { MUTATE_LENGTH = 4 };
/* The length of the first part, at most what there is; size > MUTATE_LENGTH. */
size_t mutate_first_part(const uint8_t *data, size_t size);
/* Changes one of the parts by `inner`, the second one once in `turns`. */
size_t mutate_two_parts(size_t turns, mutate_function *inner, uint8_t *data, size_t size, size_t max,
                        unsigned seed, const char *dictionary);

/* For fuzz_each: the first part by `inner`. */
size_t mutate_first_each(size_t (*inner)(uint8_t *, size_t, size_t, unsigned), uint8_t *data, size_t size,
                         size_t max, unsigned number);

/* Writes a header of safetensors again with each tensor behind the one before; *total: how many bytes they
 * take. False if it is none, or they take too many. */
bool mutate_lay_out(bytes *out, size_t *total, const uint8_t *header, size_t n);

/* ---- for the functions above ---- */

typedef struct edit {
    uint8_t *data;
    size_t size, max;
    uint64_t random;
} edit;

edit edit_begin(uint8_t *data, size_t size, size_t max, unsigned seed);
/* A number from 0 to n - 1; n > 0. */
size_t edit_below(edit *e, size_t n);
/* data[from..to) becomes text[0..n), which may lie in data; nothing happens where that has no room. */
void edit_splice(edit *e, size_t from, size_t to, const void *text, size_t n);
/* Changes data[from..to) by the fuzzer's own mutator. */
void edit_bytes(edit *e, size_t from, size_t to);
/* Changes data[from..to) by a function for a form. */
void edit_part(edit *e, size_t from, size_t to, mutate_function *inner, const char *dictionary);
/* A word; "" if there is no dictionary. */
const char *edit_word(edit *e, const char *dictionary, size_t *n);

#endif
