# shellcheck shell=bash disable=SC2034,SC2154
agent_name='Copilot CLI'
agent_version=1.0.102
agent_packages=("@github/copilot@$agent_version")
# A patch is not led elsewhere.
expected[rewrite]=denied
# When Copilot CLI gives up waiting it goes on, so the entry has it wait for a day.
expected[hook-slow]=waits

agent_configure() {
    export COPILOT_OFFLINE=true COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:$PORT/v1
    export COPILOT_PROVIDER_TYPE=openai COPILOT_PROVIDER_API_KEY=none COPILOT_MODEL=gpt-4o
    export COPILOT_AUTO_UPDATE=false
}

agent_command() {
    words=("$BIN/copilot" -p 'Do what is to be done.' --allow-all-tools --allow-all-paths)
}
