#!/bin/sh
# Writes what kubectl reads in each case beside the case: NAME.json, or NAME.error if
# kubectl rejects it. No cluster is needed. KUBECTL names another kubectl than that of PATH.
#
#   yaml/corpus/regenerate.sh [DIRECTORY]   the cases of this directory, not of its own
set -eu
cd "${1:-$(dirname "$0")}"
kubectl=${KUBECTL:-kubectl}
unreachable='{"apiVersion":"v1","kind":"Config"}'
config=$(mktemp)
trap 'rm -f "$config"' EXIT
printf '%s\n' "$unreachable" >"$config"
"$kubectl" version --client --kubeconfig "$config" | sed -n 's/^Client Version: //p' >kubectl-version
for case in *.yaml; do
    name=${case%.yaml}
    rm -f "$name.json" "$name.error"
    # Taking away a label that is not there changes nothing, and prints the object.
    if output=$("$kubectl" label --kubeconfig "$config" --local -f "$case" corpus- -o json 2>"$name.error"); then
        printf '%s\n' "$output" >"$name.json"
        rm "$name.error"
    fi
done
