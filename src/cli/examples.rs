//! The examples in `--help` of each command; a test runs them from top to bottom.
//!
//! The set is `web` in namespace `shop`, its manifests are in `manifests/`.

pub(super) const APPLY: &str = "\
Examples:
  # Apply a directory as the set \"web\", whose parent is the Secret web in namespace shop
  kubectl applyset apply web -n shop -f manifests/

  # What would that do?
  kubectl applyset apply web -n shop -f manifests/ --dry-run=server

  # With a ConfigMap as parent, from standard input
  kubectl kustomize prod | kubectl applyset apply configmap/prod -n shop -f -";

pub(super) const DELETE: &str = "\
Examples:
  # What would go?
  kubectl applyset delete web -n shop --dry-run=server

  # Delete it without a question, as a script does
  kubectl applyset delete web -n shop --yes";

pub(super) const ADOPT: &str = "\
Examples:
  # Take over what `kubectl apply --prune -l app=web` has made in all namespaces
  kubectl applyset adopt web -n shop -l app=web -A

  # The live objects of these manifests
  kubectl applyset adopt web -n shop -f manifests/

  # What a Helm release has installed
  kubectl applyset adopt web -n shop --from helm/web";

pub(super) const MOVE: &str = "\
Examples:
  # Rename the set \"web\"
  kubectl applyset move web storefront -n shop

  # Make a set of its own of what belongs to the database
  kubectl applyset move web database -n shop -l tier=database";

pub(super) const DIFF: &str = "\
Examples:
  # What would apply do?
  kubectl applyset diff web -n shop -f manifests/

  # Have it approved, and do exactly that
  kubectl applyset diff web -n shop -f manifests/ --out plan.json
  kubectl applyset apply --plan plan.json

  # Look at it in another program
  KUBECTL_EXTERNAL_DIFF='diff -y' kubectl applyset diff web -n shop -f manifests/";

pub(super) const RBAC: &str = "\
Examples:
  # Let the ServiceAccount web in namespace shop apply the set \"web\"
  kubectl applyset rbac web -n shop -f manifests/ | kubectl apply -f -

  # The same for a user
  kubectl applyset rbac web -n shop -f manifests/ --subject User:jane";

pub(super) const VERIFY: &str = "\
Examples:
  # Is anything wrong with the set \"web\" in namespace shop?
  kubectl applyset verify web -n shop

  # Look at all sets of the cluster, and for members of sets that are gone
  kubectl applyset verify -A

  # Mend the records of all sets; shows what it writes, and asks
  kubectl applyset verify -A --fix";

pub(super) const LIST: &str = "\
Examples:
  # The sets of the cluster
  kubectl applyset list -A

  # Their names, for a script
  kubectl applyset list -n shop -o name";

pub(super) const VIEW: &str = "\
Examples:
  # Is everything there, and is it ready?
  kubectl applyset view web -n shop

  # The members as a table with more columns
  kubectl applyset view web -n shop -o wide";

pub(super) const DISBAND: &str = "\
Examples:
  # What would be in no set any more?
  kubectl applyset disband web -n shop --dry-run=server

  # Forget it without a question, as a script does
  kubectl applyset disband web -n shop --yes";

pub(super) const COMPLETION: &str = "\
Examples:
  # Complete what is typed in this bash
  source <(kubectl applyset completion bash)

  # Keep it for fish
  kubectl applyset completion fish > kubectl-applyset.fish";
