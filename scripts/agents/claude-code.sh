# shellcheck shell=bash disable=SC2016,SC2034,SC2154
agent_name='Claude Code'
agent_version=2.1.325
agent_packages=("@anthropic-ai/claude-code@$agent_version")

agent_configure() {
    export ANTHROPIC_BASE_URL=http://$MODEL:$PORT ANTHROPIC_API_KEY=none
    export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1
}

agent_command() {
    words=("$BIN/claude" -p 'Do what is to be done.' --model claude-sonnet-4-5
        --allowedTools 'Bash,Read,Write,Edit')
}

# It shortens its history when it is told to; the next run goes on from there.
agent_again() {
    words=("$BASH" -c '"$0" -p --continue /compact --model claude-sonnet-4-5 &&
        "$0" -p --continue "Go on." --model claude-sonnet-4-5 --allowedTools Bash,Read,Write,Edit' "$BIN/claude")
}
