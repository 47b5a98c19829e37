/* wrap: a function of the test in the place of one that the code under test calls. The linker puts it there (cmake/tests.cmake:
 * -Wl,--wrap=NAME), for calls from other object files alone; __real_NAME is the one that it stands for.
 *
 * WRAP(err_code, disk_write, (disk * d, int n), (void)d; return n > 3 ? ERR_IO : ERR_OK;) is the whole of it.
 */
#ifndef PARLEY_TESTS_WRAP_H
#define PARLEY_TESTS_WRAP_H

#define WRAP(type, name, parameters, ...)                                                                    \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters                                                                            \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

#endif
