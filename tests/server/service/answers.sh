#!/bin/sh
# An MCP server over standard streams for transcripts of the whole server: tools that answer in every odd way.
#
#     answers.sh     # {"mcpServers": {"answers": {"command": "/bin/sh", "args": ["answers.sh"]}}}

PIXEL=iVBORw0KGgoAAAAASUVORK5CYII=
reply() {
    printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}\n' "$id" "$1"
}
tool() {
    printf '{"name":"%s","inputSchema":{"type":"object"}}' "$1"
}

while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[!0-9]*}
    case $line in
    *'"server/discover"'*)
        reply '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"answers","version":"1"}' ;;
    *'"tools/list"'*)
        reply "\"tools\":[$(tool nothing),$(tool fails),$(tool fails_without_words),$(tool picture),$(tool words),$(tool refuses),$(tool arguments)]" ;;
    *'"name":"nothing"'*) reply '"content":[]' ;;
    *'"name":"fails"'*) reply '"isError":true,"content":[{"type":"text","text":"It is broken."}]' ;;
    *'"name":"fails_without_words"'*) reply '"isError":true,"content":[]' ;;
    *'"name":"picture"'*) reply "\"content\":[{\"type\":\"image\",\"data\":\"$PIXEL\",\"mimeType\":\"image/png\"}]" ;;
    *'"name":"words"'*)
        reply '"content":[{"type":"text","text":"a \"quoted\"\nline"},{"type":"text","text":"and more"},{"type":"audio","data":"x","mimeType":"audio/wav"}]' ;;
    *'"name":"refuses"'*)
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"these arguments are wrong"}}\n' "$id" ;;
    *'"prompts/get"'*)
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"there are no prompts"}}\n' "$id" ;;
    *'"name":"arguments"'*)
        case $line in
        *'"arguments":{}'*) reply '"content":[{"type":"text","text":"none"}]' ;;
        *) reply '"content":[{"type":"text","text":"some"}]' ;;
        esac ;;
    esac
done
