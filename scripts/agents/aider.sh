# shellcheck shell=bash disable=SC2034,SC2154
agent_name=aider
agent_version=0.86.2
agent_python=("aider-chat==$agent_version")
# It offers the model no tools: it reads what is to be done from the text.
proxied[poisoned]='no tools'
# It repeats its instructions in the words of the user, to whom they are no secret then.
proxied[prompt]='no secret'
compaction_sign='summarize this partial conversation'

agent_configure() {
    export OPENAI_API_KEY=none OPENAI_API_BASE=http://127.0.0.1:$PORT/v1
    export AIDER_ANALYTICS=false AIDER_CHECK_UPDATE=false LITELLM_LOCAL_MODEL_COST_MAP=True
    tight=()
}

# It shortens what was said before a file was changed.
said=$'berths.txt\n```\nBerth 9 is free from Wednesday.\n```\n'

agent_tighten() {
    tight=(--max-chat-history-tokens 200)
}

agent_command() {
    words=("$BIN/aider" --model openai/fake-1 --weak-model openai/fake-1 --yes-always --no-pretty --no-fancy-input
        --no-show-model-warnings --no-analytics --map-tokens 0 --no-auto-commits "${tight[@]}")
    case $CASE in
    long | compaction)
        # One turn a line.
        for number in {1..31}; do printf 'What is to be done in hour %d of the day? Tell it in detail.\n' "$number"; done >"$FOLDER/lines"
        input=$FOLDER/lines
        ;;
    *) words+=(--message 'Do what is to be done.') ;;
    esac
}
