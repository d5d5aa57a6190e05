# shellcheck shell=bash
# What the scripts of action.yml share. It also has to run with Bash 3.2, as on macOS.
set -euo pipefail
umask 077

# GitHub takes summaries of 1 MiB; the rest is for the lines around.
readonly max_bytes_of_summary=1044480
# shellcheck disable=SC2034 # the scripts use it
readonly directory=$RUNNER_TEMP/kubectl-applyset

# fail MESSAGE: ends the step, and shows the message on the page of the run.
fail() {
    local message=${1//'%'/%25}
    message=${message//$'\r'/%0D}
    printf '::error title=kubectl-applyset::%s\n' "${message//$'\n'/%0A}" >&2
    exit 2
}

command -v jq >/dev/null || fail 'jq is not on PATH: install it in a step before this one'

# output NAME VALUE: sets an output of the step. Values are never text from others.
output() { printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"; }

# jq ends lines as the platform does.
json() { jq "$@" | tr -d '\r'; }

# event FILTER: a value of the event that started this run; empty if there is none.
event() { json -r "$1 // empty" "$GITHUB_EVENT_PATH"; }

# Names become part of a hidden marker, the name of an artifact and a path.
check_names() {
    local word='^[A-Za-z0-9][A-Za-z0-9._-]*$'
    [[ $SET =~ ^[A-Za-z0-9][A-Za-z0-9._/-]*$ ]] || fail 'input set: not the name of a set'
    [[ -z $NAMESPACE || $NAMESPACE =~ $word ]] || fail 'input namespace: not the name of a namespace'
    [[ -z $ID || $ID =~ $word ]] || fail 'input id: only letters, digits, dots, dashes and underscores are possible'
}

# Conditions of steps ignore case, and the scripts do not.
check_switches() {
    local name value
    while IFS='=' read -r name value; do
        [[ $value == true || $value == false ]] || fail "input $name: neither true nor false"
    done <<<"$SWITCHES"
}

# Code of a fork never runs with the credentials of this repository.
refuse_forks() {
    case $GITHUB_EVENT_NAME in
        pull_request_target | workflow_run | issue_comment) fail "event $GITHUB_EVENT_NAME: code of a fork could run with credentials" ;;
        pull_request*)
            [[ $(event .pull_request.head.repo.full_name) == "$GITHUB_REPOSITORY" ]] ||
                fail 'pull request from a fork: it has no access to the cluster'
            ;;
    esac
}

# The commit that the run shows; for a pull request, its last one.
commit_of_run() {
    local commit
    commit=$(event .pull_request.head.sha)
    printf '%s\n' "${commit:-$GITHUB_SHA}"
}

# No two sets have the same artifact name: names hold no comma, and the separators are always there.
artifact_name() { printf '%s\n' "applyset-plan,$ID,$NAMESPACE,${SET//\//,}"; }

marker() { printf '%s\n' "<!-- kubectl-applyset${ID:+ $ID} $NAMESPACE/$SET -->"; }

# The last line of a comment begins with this if there is a plan. What is above it is partly text
# from manifests, and proves nothing.
plan_line() { printf 'Plan `sha256:%s`' "$1"; }

# footer DIGEST COMMIT: the last line of a comment; DIGEST may be empty.
footer() {
    local run="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID"
    if [[ -n $1 ]]; then
        printf '%s for commit %s, [run %s](%s)\n' "$(plan_line "$1")" "$2" "$GITHUB_RUN_ID" "$run"
    else
        printf 'Commit %s, [run %s](%s)\n' "$2" "$GITHUB_RUN_ID" "$run"
    fi
}

sha256() {
    local sum
    if command -v sha256sum >/dev/null; then sum=$(sha256sum <"$1"); else sum=$(shasum -a 256 <"$1"); fi || true
    [[ ${sum%% *} =~ ^[0-9a-f]{64}$ ]] || fail 'neither sha256sum nor shasum works'
    printf '%s\n' "${sum%% *}"
}

# api METHOD PATH [ARGUMENT...]: sends a request to GitHub, and prints the answer. PATH is below the
# repository. The other arguments are for curl, which reads the token from its standard input.
api() {
    local method=$1 path=$2
    shift 2
    curl --config - --silent --show-error --fail --location --max-time 60 --request "$method" \
        --header 'Accept: application/vnd.github+json' --header 'X-GitHub-Api-Version: 2022-11-28' \
        "$@" "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY$path" <<<"header = \"Authorization: Bearer $GH_TOKEN\"" ||
        fail "$method $path: the request failed; is a permission of the job missing?"
}

# Do not call the next three functions in a command substitution: bash would continue after a failure.
#
# find_ref REF: sets `found` to the commit or tag at `heads/…` or `tags/…`; empty if there is none.
find_ref() {
    local path answer
    path=$(json -rn --arg ref "$1" '$ref | split("/") | map(@uri) | join("/")')
    # The answer also has the refs that begin with the same text.
    answer=$(api GET "/git/matching-refs/$path" --retry 3)
    # shellcheck disable=SC2034 # the scripts use it
    found=$(json -r --arg ref "refs/$1" '[.[] | select(.ref == $ref)][0].object.sha // empty' <<<"$answer")
}

# find_pull_request: sets `number` to the pull request of this run; for a push, to the one that was
# merged as this commit. Empty if there is none.
find_pull_request() {
    local answer
    number=$(event .pull_request.number)
    if [[ -z $number && $GITHUB_EVENT_NAME == push ]]; then
        answer=$(api GET "/commits/$GITHUB_SHA/pulls" --retry 3)
        number=$(json -r --arg commit "$GITHUB_SHA" \
            '[.[] | select(.merged_at != null and .merge_commit_sha == $commit)][0].number // empty' <<<"$answer")
    fi
}

# find_comment: sets `comment` to the comment on the pull request with the marker, as `{"id", "last"}`;
# empty if there is none. Anyone may write the marker, so the author counts as well.
find_comment() {
    local page answer
    for page in {1..30}; do
        answer=$(api GET "/issues/$number/comments?per_page=100&page=$page" --retry 3)
        comment=$(json -c --arg marker "$(marker)" --arg author "$AUTHOR" \
            '[.[] | select(.user.login == $author and (.body | startswith($marker + "\n")))][0] // empty
             | {id, last: (.body | rtrimstr("\n") | split("\n")[-1])}' <<<"$answer")
        if [[ -n $comment || $(json length <<<"$answer") -lt 100 ]]; then break; fi
    done
}

# check_kubeconfig: refuses an empty kubeconfig: that of a secret that does not exist, or that this run
# may not read.
check_kubeconfig() {
    case $KUBECONFIG_CONTENT in
        *[![:space:]]*) ;;
        *) fail 'input kubeconfig: empty: this environment has no such secret, or this run may not read it' ;;
    esac
}

# cancel: stops the program. When a run is canceled, only the shell gets a signal. On Windows, the program
# gets it from the console of both, and `kill` would end it at once.
program=
is_canceled=
cancel() {
    is_canceled=true
    if [[ -n $program && $RUNNER_OS != Windows ]]; then kill -TERM "$program" 2>/dev/null || true; fi
}

# finish PID: waits for the program, even while it is stopping, and returns its exit code.
finish() {
    local code=0 last=0
    program=$1
    if [[ -n $is_canceled ]]; then cancel; fi
    wait "$program" || code=$?
    while kill -0 "$program" 2>/dev/null; do
        code=0
        wait "$program" || code=$?
    done
    # If a signal ended the first wait, the program may have ended before the loop. Bash sometimes
    # no longer knows its exit code (-1); that of the first wait is one of a canceled program.
    wait "$program" 2>/dev/null || last=$?
    if ((last >= 0 && last != 127)); then code=$last; fi
    trap - INT TERM
    return "$code"
}

# run_program FILE ARGUMENT...: runs the program with its Markdown in FILE and in FILE.brief, which fits in a
# comment, and returns its exit code. Lines that it prints are not commands for the runner.
run_program() {
    local file=$1 word line code=0
    shift
    rm -f "$file.brief"
    while IFS= read -r line; do
        line=${line%$'\r'}
        if [[ -n $line ]]; then set -- "$@" "$line"; fi
    done <<<"$ARGUMENTS"
    if [[ $KUBECONFIG_CONTENT != environment ]]; then
        export KUBECONFIG=$directory/kubeconfig
        printf '%s\n' "$KUBECONFIG_CONTENT" >"$KUBECONFIG"
        trap 'rm -f "$directory/kubeconfig"' EXIT
    fi
    unset KUBECONFIG_CONTENT
    word=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    printf '::stop-commands::%s\n' "$word"
    # Bash handles signals only while it waits for a program in the background.
    trap cancel INT TERM
    # Through one stream, since the runner reads standard error before standard output.
    # shellcheck disable=SC2069 # the results do not join it
    kubectl-applyset "$@" -o markdown "--max-bytes=$max_bytes_of_summary" --brief-out "$file.brief" 2>&1 >"$file" &
    finish "$!" || code=$?
    printf '\n::%s::\n' "$word"
    return "$code"
}

# failure_comment: prints the comment of a comparison that failed before it had a result.
failure_comment() {
    marker
    printf '**`kubectl applyset diff` failed for %s.** The log of the run says why.\n\n' "$SET"
    footer '' "$(commit_of_run)"
}

# report FILE CODE DIGEST COMMIT: adds what is missing to the Markdown of the program, writes the
# summary of the job, and makes the comment.
report() {
    local page more=
    for page in "$1" "$1.brief"; do
        if [[ ! -s $page ]]; then
            printf '**Exit code %s of `kubectl applyset` for %s.** The log of the run says why.\n' "$2" "$SET" >"$page"
        fi
    done
    if (($(wc -c <"$1") > $(wc -c <"$1.brief"))); then more=$'The summary of the run shows more.\n\n'; fi
    { cat "$1" && printf '\n' && footer "$3" "$4"; } >>"$GITHUB_STEP_SUMMARY"
    { marker && cat "$1.brief" && printf '\n%s' "$more" && footer "$3" "$4"; } >"$directory/comment.md"
    output comment "$directory/comment.md"
    output exit-code "$2"
}
