#include <stdio.h>

#include "server/cli/command.h"
#include "server/cli/commands.h"
#include "server/load_bar.h"

int command_convert(const options *o)
{
    err_detail detail = {0};
    int layer_bits = 0, head_bits = 0;
    if (!o->convert_from || !o->convert_to) {
        fprintf(stderr, "parley: convert needs a checkpoint folder and the folder to make: "
                        "parley convert MODEL OUT --quantize q8\n");
        return OPTIONS_EXIT_USAGE;
    }
    if (!command_formats(o, &layer_bits, &head_bits)) {
        return OPTIONS_EXIT_USAGE;
    }
    const char *from = o->convert_from;
    err_code err = command_find_model(o, &from, NULL, &detail);
    if (err == ERR_OK) {
        load_bar bar;
        load_bar_begin(&bar);
        err = engine_convert(from, o->convert_to,
                             &(engine_convert_options){.layer_bits = layer_bits,
                                                       .head_bits = head_bits,
                                                       .n_threads = (size_t)o->threads,
                                                       .on_load = load_bar_on_load,
                                                       .on_load_ctx = &bar},
                             &detail);
        load_bar_end(&bar);
    }
    if (err == ERR_OK) {
        printf("%s is ready: parley -m %s\n", o->convert_to, o->convert_to);
    }
    return err == ERR_OK ? 0 : command_fail(err, &detail);
}
