/* main: reads the command line and calls the command. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/cli/command.h"
#include "server/cli/commands.h"
#include "server/cli/serve_sandbox.h"
#include "server/cli/options_parse.h"

/* The model that is meant; prints what is wrong and returns the exit code, or 0. */
static int choose_model(options *o)
{
    err_detail detail = {0};
    if (o->command == COMMAND_SERVE && o->upstream && !o->model && !o->models_dir) {
        return 0; /* models of other servers alone */
    }
    if (o->command == COMMAND_CHAT && o->connect) {
        return 0; /* -m is a name that the other server knows */
    }
    if (o->command == COMMAND_INSPECT && !o->model) {
        o->model = o->models_dir;
    }
    const char *given = o->model;
    const err_code err = command_find_model(o, &o->model, o->mmproj ? NULL : &o->mmproj, &detail);
    if (err != ERR_OK) {
        return command_fail(err, &detail);
    }
    if (o->model != given && !o->models_dir && !o->alias) {
        o->alias = given; /* the folder of a model of a hub is named by a commit */
    }
    if (!o->model) {
        o->model = command_default_model();
    }
    if (!o->model) {
        fprintf(stderr, "parley: the demonstration model (assets/seedling) is not beside this program; "
                        "name a checkpoint folder with -m DIR\n");
        return OPTIONS_EXIT_USAGE;
    }
    return 0;
}

/* Sets what every command needs; false after printing what is wrong. */
static bool prepare(options *o)
{
    log_level level = o->verbose                                 ? LOG_DEBUG
                      : o->command == COMMAND_SERVE && !o->quiet ? LOG_INFO
                      : o->command == COMMAND_CHAT ? LOG_ERROR /* nothing beside what is typed */
                                                   : LOG_WARN;
    if (o->log_level && !log_parse_level(o->log_level, &level)) {
        return false;
    }
    log_set_level(level);
    log_set_format(strcmp(o->log_format, "json") == 0 ? LOG_JSON
                   : !o->log_file && log_is_journal() ? LOG_JOURNAL
                                                      : LOG_TEXT);
    err_detail detail;
    if (o->log_file && log_open(o->log_file, &detail) != ERR_OK) {
        fprintf(stderr, "parley: %s\n", detail.text);
        return false;
    }
    return true;
}

static int execute(options *o)
{
    if (o->command == COMMAND_VERSION) {
        printf("parley " PARLEY_VERSION "\n");
        return 0;
    }
    if (o->licenses) {
        return command_licenses();
    }
    if (o->command == COMMAND_CONVERT) {
        return command_convert(o);
    }
    if (o->command == COMMAND_DOCTOR) {
        return command_doctor();
    }
    if (o->command == COMMAND_HEALTH) {
        return command_health(o);
    }
    if (o->command == COMMAND_STATUS) {
        return command_status(o);
    }
    if (o->command == COMMAND_STOP) {
        return command_stop(o);
    }
    if (o->command == COMMAND_PULL) {
        return command_pull(o);
    }
    if (o->command == COMMAND_LIST) {
        return command_list(o);
    }
    if (o->command == COMMAND_REMOVE) {
        return command_remove(o);
    }
    if (!prepare(o)) {
        return OPTIONS_EXIT_USAGE;
    }
    const int code = choose_model(o);
    if (code) {
        return code;
    }
    switch (o->command) {
    case COMMAND_RUN:
        return command_run(o);
    case COMMAND_CHAT:
        return command_chat(o);
    case COMMAND_BENCH:
        return command_bench(o);
    case COMMAND_INSPECT:
        return command_inspect(o);
    default:
        return command_serve(o);
    }
}

/* What was printed is where it belongs; else says why not. A reader that has left (EPIPE) wanted no more. */
static int end_output(int code)
{
    const bool is_lost = ferror(stdout) != 0;
    errno = 0;
    if ((fflush(stdout) == 0 && !is_lost) || errno == EPIPE) {
        return code;
    }
    fprintf(stderr, "parley: the output was not written%s%s\n", errno ? ": " : "",
            errno ? strerror(errno) : "");
    return code ? code : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], ENGINE_VIDEO_COMMAND) == 0) {
        return engine_video_worker();
    }
    serve_sandbox_start_again(argv);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow (ulimit -f) fails that write, not the program */
    options o;
    int code = options_parse(&o, argc, argv);
    if (code < 0) {
        code = execute(&o);
        const bool is_server = o.command == COMMAND_SERVE && !o.check;
        options_deinit(&o);
        return is_server ? code : end_output(code);
    }
    return end_output(code);
}
