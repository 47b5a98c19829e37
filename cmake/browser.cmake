# The page in a real Chromium; skipped (77) where chromium or node is absent. A sanitizer sees only our program, so with one
# the shortest of the tests that run it is enough; most speak to a server made of JavaScript.
file(GLOB browser_tests CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/tests/web ${CMAKE_SOURCE_DIR}/tests/web/*.test.mjs)
if(PARLEY_SANITIZE)
    set(browser_tests upload.test.mjs)
endif()
# Each file is the test browser/FILE. The longest begin first, so that none is left alone at the end.
set(browser_long access chat two_places order states)
foreach(file ${browser_tests})
    string(REPLACE .test.mjs "" name ${file})
    add_test(NAME browser/${name} COMMAND ${CMAKE_SOURCE_DIR}/tests/web/run ${file})
    set_tests_properties(browser/${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS browser TIMEOUT 900 COST 50
        ENVIRONMENT "PARLEY_BIN=${CMAKE_BINARY_DIR}/parley")
    if(name IN_LIST browser_long)
        set_tests_properties(browser/${name} PROPERTIES COST 100)
    endif()
endforeach()
