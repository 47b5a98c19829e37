# The server: library parley_server, the page embedded in it, the program parley, and its test double.

# The page's files become one generated C file.
file(GLOB_RECURSE web_files RELATIVE ${CMAKE_SOURCE_DIR}/web CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/*)
list(FILTER web_files EXCLUDE REGEX "(^|/)(\\.|node_modules/)|\\.md$|SHA256SUMS$")
list(SORT web_files)
list(TRANSFORM web_files PREPEND ${CMAKE_SOURCE_DIR}/web/ OUTPUT_VARIABLE web_paths)
set(assets_c ${CMAKE_BINARY_DIR}/generated/assets_table.c)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated)
add_custom_command(OUTPUT ${assets_c}
    COMMAND embed_assets ${assets_c} ${CMAKE_SOURCE_DIR}/web ${web_files} openapi.json=../docs/openapi.json LICENSE=../LICENSE
    DEPENDS embed_assets ${web_paths} ${CMAKE_SOURCE_DIR}/docs/openapi.json ${CMAKE_SOURCE_DIR}/LICENSE VERBATIM)
# tools/embed_assets.c becomes a target after this file was read.
cmake_language(DEFER CALL target_link_libraries embed_assets PRIVATE PkgConfig::ZLIB)

file(GLOB_RECURSE server_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/server/*.c)
file(GLOB program_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/server/cli/*.c)
list(REMOVE_ITEM server_sources ${program_sources})
add_library(parley_server STATIC ${server_sources} ${assets_c})
target_link_libraries(parley_server PUBLIC parley_engine PRIVATE PkgConfig::LWS PkgConfig::ZLIB PkgConfig::SQLITE
    PkgConfig::CURL PkgConfig::EDIT PkgConfig::XML)
target_compile_options(parley_server PRIVATE -Wconversion)

# The program's commands and options as a library, so that tests can call them one by one.
set(main_source ${CMAKE_SOURCE_DIR}/server/cli/main.c)
list(REMOVE_ITEM program_sources ${main_source})
add_library(parley_cli STATIC ${program_sources})
target_compile_options(parley_cli PRIVATE -Wconversion)
target_link_libraries(parley_cli PUBLIC parley_server)

add_executable(parley ${main_source})
target_compile_options(parley PRIVATE -Wconversion)
target_link_libraries(parley PRIVATE parley_cli)
# Nothing that the linker fills in can be written later, and libraries are looked for where they were found: CMake's own
# path for the build tree ends in an empty part, which is the folder that the program is started in.
target_link_options(parley PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
set_target_properties(parley parley_cli PROPERTIES POSITION_INDEPENDENT_CODE ON)
set_target_properties(parley PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)

# The server with a double in the engine's place, for tests that need speed, faults and no model. The double's object
# comes first, so that the linker never looks for these functions in the engine's library.
enable_testing()
set(fake_sources ${CMAKE_SOURCE_DIR}/tests/server/fake_options.c ${CMAKE_SOURCE_DIR}/tests/server/fake_engine.c
    ${CMAKE_SOURCE_DIR}/tests/server/fake_engine_rest.c ${CMAKE_SOURCE_DIR}/tests/server/fake_media.c
    ${CMAKE_SOURCE_DIR}/tests/server/fake_said.c)
add_executable(parley_fake tests/server/fake_main.c ${fake_sources})
target_link_libraries(parley_fake PRIVATE parley_server)
# So that a test can hold up the disk: fake_main.c.
target_link_options(parley_fake PRIVATE -Wl,--wrap=write)

# An echo behind the sockets' layer alone, for the conformance of its WebSocket frames.
add_executable(net_echo tests/server/net/net_echo.c)
target_link_libraries(net_echo PRIVATE parley_server)

# These take longest, and begin first.
set(long_tests live_streams live_limits live_unread live_chat real_attacks real_mcp real_conformance real_fields real_memory)

function(server_test name script program)
    add_test(NAME server/${name} COMMAND ${NODE} ${script} ${program})
    set_tests_properties(server/${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 LABELS server COST 10)
    if(name IN_LIST long_tests)
        set_tests_properties(server/${name} PROPERTIES COST 70)
    endif()
endfunction()

find_program(NODE node)
if(NODE)
    server_test(ws_conformance ${CMAKE_SOURCE_DIR}/tests/server/net/ws_conformance.mjs $<TARGET_FILE:net_echo>)
    file(GLOB_RECURSE live_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/server/live_*.mjs)
    foreach(script ${live_tests})
        get_filename_component(name ${script} NAME_WE)
        server_test(${name} ${script} $<TARGET_FILE:parley_fake>)
    endforeach()
    file(GLOB_RECURSE real_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/server/real_*.mjs)
    foreach(script ${real_tests})
        get_filename_component(name ${script} NAME_WE)
        server_test(${name} ${script} $<TARGET_FILE:parley>)
    endforeach()
    add_test(NAME server/openai_client
        COMMAND ${CMAKE_SOURCE_DIR}/tests/server/openai/run $<TARGET_FILE:parley_fake> $<TARGET_FILE:parley>)
    set_tests_properties(server/openai_client PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 LABELS server COST 30)
endif()
