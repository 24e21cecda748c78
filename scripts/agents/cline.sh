# shellcheck shell=bash disable=SC2034,SC2154
agent_name=Cline
agent_version=3.0.65
agent_packages=("cline@$agent_version")
# Neither an input nor a result can be changed.
expected[rewrite]=denied
expected[redact]=denied
# The shell ends it after a minute and the task with it: of that nothing is told to the model.
expected[hook-slow]=waits
# What makes it shorten its history was not found: it does not go by the tokens that the model counts.
proxied[compaction]='not reached'

agent_configure() {
    export CLINE_TELEMETRY_DISABLED=1
    "$BIN/cline" auth openai-compatible --apikey none --modelid fake-1 --baseurl "http://127.0.0.1:$PORT/v1"
}

agent_command() {
    words=("$BIN/cline" --json -P openai-compatible -k none -m fake-1 'Do what is to be done.')
}
