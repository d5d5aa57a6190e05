//! The examples in `--help` of each command; a test runs them from top to bottom.
//!
//! The set is `web` in namespace `shop`, its manifests are in `manifests/`.

pub(super) const APPLY: &str = "\
Examples:
  # Preview, then apply, and wait until everything is ready
  kubectl applyset diff web -n shop -f manifests/
  kubectl applyset apply web -n shop -f manifests/ --wait

  # Note in the history what this run is for
  kubectl applyset apply web -n shop -f manifests/ --message='blue banner'

  # Apply what another program renders, with a ConfigMap as the parent
  kubectl kustomize prod | kubectl applyset apply configmap/prod -n shop -f -";

pub(super) const DELETE: &str = "\
Examples:
  # Preview what would be deleted
  kubectl applyset delete web -n shop --dry-run=server

  # Delete without a question, as in a script
  kubectl applyset delete web -n shop --yes";

pub(super) const ADOPT: &str = "\
Examples:
  # Objects that `kubectl apply --prune -l app=web` manages, in all namespaces
  kubectl applyset adopt web -n shop -l app=web -A

  # The live objects of these manifests
  kubectl applyset adopt web -n shop -f manifests/

  # The objects of a Helm release
  kubectl applyset adopt web -n shop --from helm/web";

pub(super) const MOVE: &str = "\
Examples:
  # Rename the set web
  kubectl applyset move web storefront -n shop

  # Split off the members of the database
  kubectl applyset move web database -n shop -l tier=database";

pub(super) const DIFF: &str = "\
Examples:
  # Preview what apply would do
  kubectl applyset diff web -n shop -f manifests/

  # Preview as a user who may only read
  kubectl applyset diff web -n shop -f manifests/ --dry-run=client

  # Preview what a pull request changes, and list the drift separately
  kubectl applyset diff web -n shop -f manifests/ --base main/

  # Save the plan for review, then apply exactly that
  kubectl applyset diff web -n shop -f manifests/ --out plan.json
  kubectl applyset apply --plan plan.json

  # Find what others have changed since that plan was applied
  kubectl applyset diff --plan plan.json --exit-code-on=drift

  # Compare with another program
  KUBECTL_EXTERNAL_DIFF='diff -y' kubectl applyset diff web -n shop -f manifests";

pub(super) const RBAC: &str = "\
Examples:
  # Let the ServiceAccount web in namespace shop apply the set web
  kubectl applyset rbac web -n shop -f manifests/ | kubectl apply -f -

  # Print the same for a user
  kubectl applyset rbac web -n shop -f manifests/ --user jane

  # Print what a user needs to compare and nothing more
  kubectl applyset rbac web -n shop -f manifests/ --user jane --read-only";

pub(super) const VERIFY: &str = "\
Examples:
  # Check one set
  kubectl applyset verify web -n shop

  # Check all sets, and find members whose set is gone
  kubectl applyset verify -A

  # Show the repairs of all records, ask, and write them
  kubectl applyset verify -A --fix";

pub(super) const LIST: &str = "\
Examples:
  # All sets of the cluster
  kubectl applyset list -A

  # Names only, for a script
  kubectl applyset list -n shop -o name";

pub(super) const HISTORY: &str = "\
Examples:
  # Show the last runs that changed the set
  kubectl applyset history web -n shop

  # Print the digests of the manifests of the last runs
  kubectl applyset history web -n shop -o json | jq -r '.runs[].manifests'";

pub(super) const EXPORT: &str = "\
Examples:
  # Print the manifests of the set, as they were last applied
  kubectl applyset export web -n shop

  # Write each manifest to a file, to start a repository
  kubectl applyset export web -n shop --out exported
  kubectl applyset diff web -n shop -f exported";

pub(super) const VIEW: &str = "\
Examples:
  # Check that all members exist and are ready
  kubectl applyset view web -n shop

  # Print the members as a table
  kubectl applyset view web -n shop -o wide

  # Wait until all are ready, without applying anything
  kubectl applyset view web -n shop --wait=10m";

pub(super) const DISBAND: &str = "\
Examples:
  # Preview which objects would leave the set
  kubectl applyset disband web -n shop --dry-run=server

  # Disband without a question, as in a script
  kubectl applyset disband web -n shop --yes";

pub(super) const COMPLETION: &str = "\
Examples:
  # Enable completion in this bash
  source <(kubectl applyset completion bash)

  # Write the script for fish
  kubectl applyset completion fish > kubectl-applyset.fish";
