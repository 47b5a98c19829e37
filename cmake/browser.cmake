# The page in a real Chromium; skipped (77) where chromium or node is absent. A sanitizer sees only our program, so with one
# only the tests that run it are of use; the others speak to a server made of JavaScript.
set(browser_tests)
if(PARLEY_SANITIZE)
    set(browser_tests server.test.mjs upload.test.mjs)
endif()
add_test(NAME browser COMMAND ${CMAKE_SOURCE_DIR}/tests/web/run ${browser_tests})
set_tests_properties(browser PROPERTIES SKIP_RETURN_CODE 77 LABELS browser TIMEOUT 900 RUN_SERIAL TRUE
    ENVIRONMENT "PARLEY_BIN=${CMAKE_BINARY_DIR}/parley")
