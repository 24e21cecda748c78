# shellcheck shell=bash disable=SC2034,SC2154
agent_name='Copilot CLI'
agent_version=1.0.102
agent_packages=("@github/copilot@$agent_version")
agent_note=', entries by hand'
# A patch is not led elsewhere.
expected[rewrite]=denied
# A hook that ends well and says something else than JSON has nothing to say, to Copilot CLI.
expected[malformed]=open
expected[hook-slow]=waits

agent_configure() {
    export COPILOT_OFFLINE=true COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:$PORT/v1
    export COPILOT_PROVIDER_TYPE=openai COPILOT_PROVIDER_API_KEY=none COPILOT_MODEL=gpt-4o
    export COPILOT_AUTO_UPDATE=false
}

agent_command() {
    words=("$BIN/copilot" -p 'Do what is to be done.' --allow-all-tools --allow-all-paths)
}

# As long as `wardkeep install` does not know it: the entries, by hand.
agent_left_to_user() {
    local event entries='' program=$FOLDER/bin/wardkeep
    for event in sessionStart userPromptSubmitted preToolUse postToolUse sessionEnd; do
        entries+=",\"$event\":[{\"type\":\"command\",\"timeoutSec\":86400,"
        entries+="\"bash\":\"$program hook copilot-cli $event || exit 2\"}]"
    done
    mkdir -p "$HOME/.copilot/hooks"
    printf '{"version":1,"hooks":{%s}}\n' "${entries#,}" >"$HOME/.copilot/hooks/wardkeep.json"
}
