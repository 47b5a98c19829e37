# The page in a real Chromium; skipped (77) where chromium or node is absent.
add_test(NAME browser COMMAND ${CMAKE_SOURCE_DIR}/tests/browser/run)
set_tests_properties(browser PROPERTIES SKIP_RETURN_CODE 77 LABELS browser TIMEOUT 900 RUN_SERIAL TRUE
    ENVIRONMENT "PARLEY_BIN=${CMAKE_BINARY_DIR}/parley")
