#!/bin/sh
# An MCP server over standard streams for transcripts of the whole server: tools whose results let the double of the engine call
# again, or take its time with what comes next.
#
#     calls.sh     # {"mcpServers": {"calls": {"command": "/bin/sh", "args": ["calls.sh"]}}}

reply() {
    printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}\n' "$id" "$1"
}
tool() {
    printf '{"name":"%s","inputSchema":{"type":"object"}}' "$1"
}
text() {
    reply "\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]"
}

while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[!0-9]*}
    case $line in
    *'"server/discover"'*)
        reply '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"calls","version":"1"}' ;;
    *'"tools/list"'*) reply "\"tools\":[$(tool again),$(tool stalls),$(tool fails)]" ;;
    *'"name":"again"'*) text '!raw <tool_call>\n<function=again>\n</function>\n</tool_call>' ;;
    *'"name":"stalls"'*) text '!stallprep words' ;;
    *'"name":"fails"'*) text '!fail words' ;;
    esac
done
