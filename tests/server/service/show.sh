#!/bin/sh
# An MCP server over standard streams for transcripts of the whole server: tools that show pictures, that wait until the call is
# cancelled, that say how far they are; a resource, one that never comes, and a prompt.
#
#     show.sh     # {"mcpServers": {"show": {"command": "/bin/sh", "args": ["show.sh"]}}}

PIXEL=iVBORw0KGgoAAAAASUVORK5CYII=
reply() {
    printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}\n' "$id" "$1"
}
tool() {
    printf '{"name":"%s","description":"%s","inputSchema":{"type":"object"}}' "$1" "$2"
}

while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[!0-9]*}
    case $line in
    *'"server/discover"'*)
        reply '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"show","version":"1"}' ;;
    *'"tools/list"'*)
        reply "\"tools\":[$(tool pictures 'Shows two'),$(tool wait 'Never ends'),$(tool slow 'Says how far it is')]" ;;
    *'"resources/list"'*)
        reply '"resources":[{"uri":"show:one","name":"one","mimeType":"text/plain"}]' ;;
    *'"prompts/list"'*)
        reply '"prompts":[{"name":"greet","description":"Greets","arguments":[{"name":"who","required":true}]}]' ;;
    *'"tools/call"'*'"name":"pictures"'*)
        reply "\"content\":[{\"type\":\"text\",\"text\":\"Two.\"},{\"type\":\"image\",\"data\":\"$PIXEL\",\"mimeType\":\"image/png\"},{\"type\":\"image\",\"data\":\"$PIXEL\",\"mimeType\":\"image/png\"}]" ;;
    *'"tools/call"'*'"name":"slow"'*)
        printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"total":4,"message":"a quarter"}}\n' "$id"
        reply '"content":[{"type":"text","text":"Done."}]' ;;
    *'"resources/read"'*'"uri":"show:one"'*)
        reply '"contents":[{"uri":"show:one","mimeType":"text/plain","text":"What is in it."}]' ;;
    *'"prompts/get"'*'"name":"greet"'*)
        reply '"messages":[{"role":"user","content":{"type":"text","text":"Greet them."}}]' ;;
    *'"uri":"show:never"'*) ;;
    *'"resources/read"'* | *'"prompts/get"'*)
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"there is no such thing"}}\n' "$id" ;;
    esac
done
